"""The catalogue: methods of the literature, and the parts that make each of them.

`methods.toml` is the table, sorted by the question that a method answers. The `parts` of a row are an expression in the
public names of the package and in the names of one small world of data (`world.py`, `torch_world.py`). `Method.program`
is that expression with its imports and its use; one test runs the program of every row and passes what it makes to
`naysay.check_pool`, `check_sampler`, `check_detector` or `check_loss`. `naysay methods` and docs/methods.md print the
same table.
"""

from naysay.catalog._filter import matching
from naysay.catalog._method import Method
from naysay.catalog._table import find, methods

__all__ = ["Method", "find", "matching", "methods"]
