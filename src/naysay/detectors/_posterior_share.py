"""The estimated share of false negatives in a set of candidates, with its interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._posterior_model import LARGEST, WIDTH, Model, listed_features
from naysay.detectors._posterior_pool import Lists
from naysay.detectors._posterior_splines import design_of
from naysay.detectors.cut import mean_of
from naysay.detectors.posterior_summary import ASSUMPTIONS
from naysay.detectors.rate import CONFIDENCE, most_share
from naysay.detectors.share import Share

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_MODEL_ERROR = 0.15  # of the log-share, where assumptions hold about: benchmarks/results/posterior.json
_SLOTS = 20_000  # at most, to see how other weights change the estimate


def share_of(model: Model, lists: Lists, posterior: Floats, mask: Mask, seed: int) -> Share:
    """The mean posterior of some slots, with a 95 % interval for their share of false negatives.

    Log-normal: the deviation of the log-mean over the model's draws, and that of the outcomes, which counts the
    variance of each slot and that between anchors. To them comes the error of the model itself, which no sample shows.
    """
    from scipy.special import ndtri

    n, anchors = int(np.count_nonzero(mask)), int(mask.any(axis=1).sum())
    what = "false negatives"
    if n == 0:
        return Share(what, 0.0, 0.0, 1.0, CONFIDENCE, 0, ASSUMPTIONS)
    estimate = mean_of(posterior, mask)
    if estimate == 0:
        return Share(what, 0.0, 0.0, most_share(0, anchors, 1 - CONFIDENCE), CONFIDENCE, anchors, ASSUMPTIONS)
    sums, slots = np.where(mask, posterior, 0.0).sum(axis=1), mask.sum(axis=1)
    variance = float((np.where(mask, posterior * (1 - posterior), 0.0)).sum() + ((sums - estimate * slots) ** 2).sum())
    spread = np.sqrt(_drawn_variance(model, lists, mask, seed) + variance / (n * estimate) ** 2 + _MODEL_ERROR**2)
    factor = float(np.exp(ndtri((1 + CONFIDENCE) / 2) * spread))
    return Share(what, estimate, estimate / factor, min(1.0, estimate * factor), CONFIDENCE, anchors, ASSUMPTIONS)


def _drawn_variance(model: Model, lists: Lists, mask: Mask, seed: int) -> float:
    """The variance of the log of the mean posterior over the model's draws, by at most 20,000 of the slots."""
    if not len(model.draws):
        return 0.0
    rows = np.flatnonzero(mask.any(axis=1))
    step = max(1, -(-int(np.count_nonzero(mask)) // _SLOTS))
    rows = rows[::step]
    part, chosen = lists.take(rows), mask[rows]
    scores, ranks, gaps = (values[chosen] for values in listed_features(part, seed))
    evidence = model.evidence(part.scores, part.positives[:, None], part.alike)[chosen]
    beyond = ranks > model.depth
    design = design_of(np.stack([scores, np.log1p(ranks), gaps]), model.knots)
    means = []
    for draw in model.draws:
        weights, c = draw[:WIDTH], float(draw[WIDTH])
        posterior = model.final(model.prior(design.times(weights), c), evidence)
        factor = (1 - c) / c * model.c / (1 - model.c)
        means.append(np.where(beyond, min(LARGEST, model.beyond * factor), posterior).mean())
    return float(np.log(np.maximum(means, 1e-12)).var())
