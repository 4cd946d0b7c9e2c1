"""The catalogue: every method, loss and detector that runs, with its names in the literature.

`methods.toml` is the table; `examples/NAME.py` is one program per row. The program of a method leaves `known` (the
positives that must never be drawn), `sampler`, `query` and `negatives` behind, that of a loss `loss` and `values`, that
of a detector `detector`, `query`, `negatives` and `suspicion`. The tests run each program and pass what it made to
`naysay.check_sampler`, `check_loss` or `check_detector`. `naysay methods`, the documentation and those tests read the
same table. `names.toml` has the names that are no rows: spellings, other parts of the package, and what is not here.
"""

from naysay.catalog._filter import matching
from naysay.catalog._names import Other, others
from naysay.catalog._table import Alias, Detector, Loss, Method, detectors, find, losses, methods

__all__ = [
    "Alias",
    "Detector",
    "Loss",
    "Method",
    "Other",
    "detectors",
    "find",
    "losses",
    "matching",
    "methods",
    "others",
]
