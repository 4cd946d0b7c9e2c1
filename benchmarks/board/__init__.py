"""The board: a small benchmark of negatives, with known truth. The page docs/board.md explains it."""
