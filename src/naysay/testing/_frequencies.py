"""Is log_q correct? Frequencies of a few rows against exp(log_q), and the one value that is known beforehand.

The chance of a row's first two slots together is exp(log_q[0] + log_q[1]): distinct or not, by the chain rule. So the
first slot is tested alone, then both. And a distinct row that ran out had one candidate left for its last filled slot:
there log_q is 0. A marginal chance in place of the conditional one, the usual mistake, breaks both.

What a part claims is only seen for ids that it returns. So half of the draws are used to learn the claims, and the
other half to test them: given the first half, the cells of the test are fixed, and it is exact up to the chi-square
approximation. Whatever was not learnt is one more cell, with the probability that the claims leave over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.detectors.policy import log_left_out
from naysay.testing._trials import MANY, Trial, place_keys
from naysay.types import Negatives, anchor_ids

_DRAWS = 2000
_ROWS = 8
# A fair part fails once in ten million checks or so; a wrong distribution is far beyond it.
_TOO_UNLIKELY = 1e-8
_ENOUGH = 10.0  # draws for a group of cells, so that the chi-square approximation holds


def log_q(trial: Trial) -> Iterator[str]:
    """None, or finite and at most 0, 0 in empty slots, and the log-probability with which ids come."""
    for query, slots in ((trial.batches.mixed(MANY), trial.uneven()), (trial.batches.emptiest(), trial.max_slots)):
        answer = _before_policies(trial.ask(query, slots).numpy())
        if answer.log_q is None:
            return
        filled = answer.ids >= 0
        if not np.isfinite(answer.log_q).all() or (answer.log_q > 1e-9).any():
            yield f"gave a log_q between {np.min(answer.log_q)} and {np.max(answer.log_q)}; it is finite and at most 0"
        if (answer.log_q[~filled] != 0).any():
            yield "gave a log_q other than 0 in an empty slot"
    complaint = _last_choice(trial) or _frequencies(trial)
    if complaint is not None:
        yield complaint


def _before_policies(answer: Negatives) -> Negatives:
    """The answer with the log_q of the draw: without what policies added where they left out slots of a row."""
    if answer.log_q is None or answer.relation is None:
        return answer
    return replace(answer, log_q=answer.log_q - log_left_out(answer.ids >= 0, answer.mask))


def _last_choice(trial: Trial) -> str | None:
    """In a distinct row that ran out, the last filled slot had no choice: its log_q is 0."""
    if getattr(trial.part, "distinct", None) is not True:
        return None
    query = trial.batches.mixed(MANY)
    answer = _before_policies(trial.ask(query, trial.max_slots).numpy())
    filled = answer.ids >= 0
    if answer.dropped.get("exhausted", 0) != np.count_nonzero(~filled):  # slots may be empty for other reasons
        return None
    last = filled.shape[1] - 1 - np.argmax(filled[:, ::-1], axis=1)
    claims = np.take_along_axis(answer.log_q, last[:, None], axis=1)[:, 0]
    # The first slot may have had a choice of sides.
    had_none = filled.any(axis=1) & ~filled.all(axis=1) & ((last > 0) | (answer.side is None))
    bad = np.flatnonzero(had_none & (claims < -1e-6))
    if len(bad) == 0:
        return None
    row = bad[0]
    anchor = anchor_ids(query)[row].tolist()
    return (
        f"gave a log_q of {claims[row]:.4g} to the last candidate of anchor {anchor}, slot {last[row]}; it is 0 there"
    )


def _frequencies(trial: Trial) -> str | None:
    query = trial.batches.mixed(_ROWS)
    # Independent slots all have the law of the first; others only given the slots before.
    independent = getattr(trial.part, "distinct", None) is False
    slots = trial.slots if independent else min(trial.slots, 2)
    draws = _DRAWS // slots + 1 if independent else _DRAWS
    keys = np.empty((draws, len(query), slots), np.int64)
    claims = np.empty(keys.shape)
    for step in range(draws):
        answer = _before_policies(trial.ask(query, step=step).numpy())
        keys[step] = place_keys(answer)[:, :slots]
        claims[step] = to_numpy(answer.log_q)[:, :slots]
    for row, anchor in enumerate(anchor_ids(query).tolist()):
        tests = {"": (keys[:, row], claims[:, row])} if independent else _of_first_slots(keys[:, row], claims[:, row])
        for where, (cells, chances) in tests.items():
            learnt, tested = np.array_split(cells, 2)
            if (learnt < 0).all():
                continue
            complaint = _against(learnt.ravel(), np.exp(chances[: len(learnt)]).ravel(), tested.ravel())
            if complaint is not None:
                return f"gave a log_q for anchor {anchor}{where} {complaint}"
    return None


def _of_first_slots(
    keys: NDArray[np.int64], claims: NDArray[np.float64]
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Cells and their log-probabilities, of the first slot and of the first two together; -1 where nothing came."""
    codes = np.unique(keys, return_inverse=True)[1].reshape(keys.shape)
    both = np.where(keys[:, 0] < 0, -1, codes @ (keys.size ** np.arange(keys.shape[1])))
    return {"": (keys[:, 0], claims[:, 0]), ", its first two slots together,": (both, claims.sum(axis=1))}


def _against(learnt: NDArray[np.int64], claimed: NDArray[np.float64], tested: NDArray[np.int64]) -> str | None:
    """What is wrong with the log_q of one row, given further draws of it; -1 is an empty slot."""
    from scipy import stats  # here, because it takes a second to import

    cells, first, place = np.unique(learnt, return_index=True, return_inverse=True)
    chance = claimed[first]
    if np.abs(claimed - chance[place]).max() > 1e-6 * chance.max():
        return "that has two values for one outcome"
    cells, chance = cells[cells >= 0], chance[cells >= 0]
    rest = 1.0 - chance.sum()
    if rest < -1e-6:
        return f"that adds up to {chance.sum():.4g} over {len(cells)} outcomes"
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
        return f"that its draws do not follow (p = {likelihood:.1g} over {len(tested)} draws, {len(cells)} outcomes)"
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
