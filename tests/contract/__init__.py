"""What users rely on, in every area, through public names alone.

The library can be rewritten behind these tests. They assert behaviour, numbers and `error.parameter`; no sentence is
pinned, and no name that starts with an underscore is used. Names that differ between versions are in `names.py`.
"""
