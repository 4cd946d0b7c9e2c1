"""Code: the size of the source."""
