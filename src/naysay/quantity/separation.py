"""AUC and separation: how far apart positives and negatives lie, in standard deviations.

The model behind this folder draws the score of a negative from N(0, 1) and that of a positive from N(mu, 1). Their
difference is N(mu, 2), so

    AUC = P(positive > negative) = Phi(mu / sqrt 2)        mu = sqrt(2) Phi^-1(AUC)

Wu, Wu and Huang. Rethinking InfoNCE: How Many Negative Samples Do You Need? The paper has the integral of the first
(its Eq. 7) and solves it by bisection; the closed form is the same number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.checks import as_floats, check_all, plain_number, public


@public
def separation(auc: Any) -> Any:
    """The separation that an AUC means, sqrt(2) Phi^-1(auc): a float for a number, else an array of its shape.

    0.5 gives 0, less than 0.5 a negative number, 1 gives inf and 0 gives -inf. NaN and anything outside [0, 1] is
    refused.

    Example:
        >>> round(separation(0.75), 5), round(separation(0.95), 5), separation(0.5)
        (0.95387, 2.32617, 0.0)
    """
    from scipy.special import ndtri

    values = as_floats("auc", auc)
    check_all("auc", values, (values >= 0) & (values <= 1), "between 0 and 1")
    return plain_number(np.asarray(np.sqrt(2) * ndtri(values)))


@public
def auc(separation: Any) -> Any:
    """The AUC that a separation means, Phi(separation / sqrt 2): the inverse of `separation`.

    It rounds to 1 from about 11.7 on, where 1 - AUC is less than a float64 can tell from 0 beside 1.

    Example:
        >>> round(auc(1.0), 4), auc(0.0)
        (0.7602, 0.5)
    """
    from scipy.special import ndtr

    return plain_number(np.asarray(ndtr(as_floats("separation", separation) / np.sqrt(2))))
