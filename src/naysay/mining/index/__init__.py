"""The approximate search: an index, its rules and its files, and the recall that it is measured by."""
