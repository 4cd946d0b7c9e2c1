"""Mined negatives for readers: the report, its examples and tables, and the notes."""
