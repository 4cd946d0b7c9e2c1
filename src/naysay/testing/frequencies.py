"""Is log_q honest? Slot-0 frequencies of a few rows against exp(log_q).

What a part claims is only seen for ids that it returns. So half of the draws are used to learn the claims, and the
other half to test them: given the first half, the cells of the test are fixed, and it is exact up to the chi-square
approximation. Whatever was not learnt is one more cell, with the probability that the claims leave over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.testing.trials import MANY, Trial, place_keys

_DRAWS = 2000
_ROWS = 8
# A fair part fails once in ten million checks or so; a wrong distribution is far beyond it.
_TOO_UNLIKELY = 1e-8
_ENOUGH = 10.0  # draws for a group of cells, so that the chi-square approximation holds


def log_q(trial: Trial) -> str | None:
    """None, or finite and at most 0, 0 in empty slots, and the log-probability with which ids come."""
    for query, slots in ((trial.batches.mixed(MANY), trial.uneven()), (trial.batches.emptiest(), trial.most)):
        answer = trial.ask(query, slots).numpy()
        if answer.log_q is None:
            return None
        filled = answer.ids >= 0
        if not np.isfinite(answer.log_q).all() or (answer.log_q > 1e-9).any():
            return f"gave a log_q between {np.min(answer.log_q)} and {np.max(answer.log_q)}; it is finite and at most 0"
        if (answer.log_q[~filled] != 0).any():
            return "gave a log_q other than 0 in an empty slot"
    return _frequencies(trial)


def _frequencies(trial: Trial) -> str | None:
    query = trial.batches.mixed(_ROWS)
    # Independent slots all have the law of the first; distinct ones only given the slots before.
    slots = trial.slots if getattr(trial.part, "distinct", None) is False else 1
    draws = _DRAWS // slots + 1
    keys = np.empty((draws, len(query), slots), np.int64)
    claims = np.empty(keys.shape)
    for step in range(draws):
        answer = trial.ask(query, step=step)
        keys[step] = place_keys(answer)[:, :slots]
        claims[step] = np.exp(to_numpy(answer.log_q)[:, :slots])
    half = draws // 2
    for row, anchor in enumerate(query.ids("check").tolist()):
        learnt, claimed = keys[:half, row].ravel(), claims[:half, row].ravel()
        if (learnt < 0).all():
            continue
        complaint = _against(learnt, claimed, keys[half:, row].ravel())
        if complaint is not None:
            return f"gave a log_q for anchor {anchor} {complaint}"
    return None


def _against(learnt: NDArray[np.int64], claimed: NDArray[np.float64], tested: NDArray[np.int64]) -> str | None:
    """What is wrong with the claims of one row, given further draws of it; -1 stands for an empty slot."""
    from scipy import stats  # here, because it takes a second to import

    cells, first, place = np.unique(learnt, return_index=True, return_inverse=True)
    chance = claimed[first]
    if np.abs(claimed - chance[place]).max() > 1e-6 * chance.max():
        return "that has two values for one item at the same slot"
    cells, chance = cells[cells >= 0], chance[cells >= 0]
    rest = 1.0 - chance.sum()
    if rest < -1e-6:
        return f"that adds up to {chance.sum():.4g} over {len(cells)} items"
    places = np.minimum(np.searchsorted(cells, tested), len(cells) - 1)
    hit = cells[places] == tested
    seen = np.bincount(places[hit], minlength=len(cells))
    unseen = len(tested) - int(hit.sum())
    likelihood = float(stats.binom.sf(unseen - 1, len(tested), max(rest, 0.0)))
    expected = np.append(chance, max(rest, 0.0)) * len(tested)
    observed = np.append(seen, unseen)
    groups = _groups(expected)
    wanted, found = np.bincount(groups, expected), np.bincount(groups, observed)
    if len(wanted) > 1:
        statistic = ((found - wanted) ** 2 / wanted).sum()
        likelihood = min(likelihood, float(stats.chi2.sf(statistic, len(wanted) - 1)))
    if likelihood < _TOO_UNLIKELY:
        return f"that its draws do not follow (p = {likelihood:.1g} over {len(tested)} draws of {len(cells)} items)"
    return None


def _groups(expected: NDArray[np.float64]) -> NDArray[np.int64]:
    """The group of each cell: neighbours by size put together until each group expects enough, half of it at least."""
    order = np.argsort(-expected, kind="stable")
    steps = np.floor(np.cumsum(expected[order]) / _ENOUGH)
    _, places = np.unique(steps, return_inverse=True)
    sizes = np.bincount(places, expected[order])
    if len(sizes) > 1 and sizes[-1] < _ENOUGH / 2:  # the tail may be too small
        places = np.minimum(places, len(sizes) - 2)
    groups = np.empty(len(expected), np.int64)
    groups[order] = places
    return groups
