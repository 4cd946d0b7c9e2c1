"""The weight of the paper's formula."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number

Floats = NDArray[np.float64]


def check_weight(weight: Any) -> float:
    """The weight w of good and bad samples against easy ones, in (0, 1)."""
    return check_number("weight", weight, above=0, below=1, advice="The paper finds 0.9 to fit.")
