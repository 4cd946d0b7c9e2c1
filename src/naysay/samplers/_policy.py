"""Policy gradients of a softmax over candidates: draws, and the gradient of the expected reward in the logits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def softmax(logits: Floats) -> Floats:
    """Rows of probabilities; -inf has 0, and a row of -inf is all 0. The largest logit is taken off first."""
    top = logits.max(axis=1, keepdims=True, initial=-np.inf)
    raised = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    total = raised.sum(axis=1, keepdims=True)
    return np.asarray(raised / np.where(total > 0, total, 1.0))


def draw_independent(chance: Floats, slots: int, rng: np.random.Generator) -> Ids:
    """(B, slots) places by the probabilities of each row, with replacement; 0 in a row of zeros."""
    cumulated = np.cumsum(chance, axis=1)
    last = np.argmax(np.where(chance > 0, np.arange(1, chance.shape[1] + 1), 0), axis=1)  # the last that may be drawn
    rows = np.arange(len(chance))[:, None]
    total = np.where(cumulated[:, -1:] > 0, cumulated[:, -1:], 1.0)
    place = np.searchsorted(
        (2 * rows + cumulated / total).ravel(), 2 * rows + rng.random((len(chance), slots)), "right"
    )
    return np.asarray(np.minimum(place - rows * chance.shape[1], last[:, None]), np.int64)


def draw_distinct(logits: Floats, slots: int, rng: np.random.Generator) -> Ids:
    """(B, slots) places one after the other without replacement, by Gumbel noise, which is added."""
    noise = -np.log(np.maximum(rng.standard_exponential(logits.shape), np.finfo(float).tiny))
    return np.argsort(-(logits + noise), axis=1, kind="stable")[:, :slots]


def exact_gradient(chance: Floats, reward: Floats) -> Floats:
    """(B, n) the gradient of E r = sum_j p_j r_j in the logits: p_j (r_j - E r)."""
    known = np.where(chance > 0, reward, 0.0)
    return np.asarray(chance * (known - (chance * known).sum(axis=1, keepdims=True)))


def mixed(chance: Floats, other: Floats, share: float) -> Floats:
    """(1 - share) p + share of another distribution; p alone in rows where there is none."""
    return np.where(other.sum(axis=1, keepdims=True) > 0, (1 - share) * chance + share * other, chance)


def ratios(chance: Floats, proposal: Floats, places: Ids) -> Floats:
    """(B, slots) p / q of what was drawn by q, which is 1 on average; 0 in a row of zeros."""
    p, q = (np.take_along_axis(one, places, axis=1) for one in (chance, proposal))
    return np.asarray(p / np.where(q > 0, q, 1.0))


def drawn_gradient(chance: Floats, places: Ids, advantage: Floats) -> Floats:
    """The mean over independent slots of advantage_j d log p_j: unbiased for `exact_gradient`.

    advantage: (B, slots) r_j - b, where b must not depend on the slot's own draw; times p / q for draws from q.
    """
    advantage = advantage / max(places.shape[1], 1)
    by_logit = -chance * advantage.sum(axis=1, keepdims=True)
    np.add.at(by_logit, (np.arange(len(chance))[:, None], places), advantage)
    return np.asarray(by_logit)


def ordered_gradient(chance: Floats, places: Ids, reward: Floats, baseline: Any) -> Floats:
    """(R - b) d log P(ordered row), of slots drawn without replacement and the row's total reward R.

    P is the product over slots of p_j / (1 - what was drawn before). Summing d log p_j as if draws were independent is
    biased.
    """
    rows = np.arange(len(chance))
    left, by_logit = chance.copy(), np.zeros_like(chance)
    for place in places.T:
        total = left.sum(axis=1, keepdims=True)
        by_logit -= left / np.where(total > 0, total, 1.0)
        by_logit[rows, place] += 1.0
        left[rows, place] = 0.0
    return np.asarray(by_logit * (reward.sum(axis=1, keepdims=True) - baseline))


def entropy(chance: Floats) -> Floats:
    """(B, 1) -sum p log p."""
    return np.asarray(-(chance * np.log(np.where(chance > 0, chance, 1.0))).sum(axis=1, keepdims=True))


def entropy_gradient(chance: Floats) -> Floats:
    """(B, n) dH / dl_i = -p_i (log p_i + H)."""
    return np.asarray(-chance * (np.log(np.where(chance > 0, chance, 1.0)) + entropy(chance)))
