"""The exact search: engines, the bounds that certify them, its plan, and the scores of listed pairs."""
