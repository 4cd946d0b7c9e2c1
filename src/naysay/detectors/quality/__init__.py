"""How good a detector is, and how many false negatives are left: rates, bounds and their intervals."""
