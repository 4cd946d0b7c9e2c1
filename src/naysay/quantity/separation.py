"""AUC and separation: how far apart positives and negatives lie, in standard deviations.

The model behind this folder draws the score of a negative from N(0, 1) and that of a positive from N(mu, 1). Their
difference is N(mu, 2), so

    AUC = P(positive > negative) = Phi(mu / sqrt 2)        mu = sqrt(2) Phi^-1(AUC)

Wu, Wu and Huang. Rethinking InfoNCE: How Many Negative Samples Do You Need? The paper has the integral of the first
(its Eq. 7) and solves it by bisection; the closed form gives the same number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import as_floats, check_all, plain_number, public

Floats = NDArray[np.float64]


@public
def separation(auc: Any) -> Any:
    """Convert an AUC to the separation sqrt(2) Phi^-1(auc).

    0.5 gives 0, an AUC below 0.5 a negative number, 1 gives inf and 0 gives -inf.

    Args:
        auc: A number between 0 and 1, or an array of them.

    Returns:
        A float for a number, else a float64 array of the same shape.

    Examples:
        >>> round(separation(0.75), 5), round(separation(0.95), 5), separation(0.5)
        (0.95387, 2.32617, 0.0)
    """
    from scipy.special import ndtri

    values = as_floats("auc", auc)
    check_all("auc", values, (values >= 0) & (values <= 1), "between 0 and 1")
    return plain_number(np.asarray(np.sqrt(2) * ndtri(values)))


@public
def auc(separation: Any) -> Any:
    """Convert a separation to the AUC Phi(separation / sqrt 2): the inverse of `separation`.

    From about 11.7 on the AUC rounds to 1, because float64 cannot represent the difference.

    Args:
        separation: A number, or an array of them.

    Returns:
        A float for a number, else a float64 array of the same shape.

    Examples:
        >>> round(auc(1.0), 4), auc(0.0)
        (0.7602, 0.5)
    """
    from scipy.special import ndtr

    return plain_number(np.asarray(ndtr(as_floats("separation", separation) / np.sqrt(2))))
