"""The slot losses once more, a row at a time in plain Python, and small random inputs for them.

A loss here is a function of a row: the positive p and its slots, pairs (score, count), where count is the weight, over
K_b q_j if log_q is given. Slots that are masked or weigh nothing are gone; `drawn` is K_b.
"""

import dataclasses
import math

import numpy as np
import torch
from hypothesis import strategies as st

from naysay import losses


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def bpr(p, slots, drawn):
    return math.fsum(count * softplus(s - p) for s, count in slots)


def hinge(p, slots, drawn, margin):
    return math.fsum(count * max(0.0, s - p + margin) for s, count in slots)


def sampled_bce(p, slots, drawn):
    return softplus(-p) + math.fsum(count * softplus(s) for s, count in slots)


def gbce(p, slots, drawn, n_items, calibration):
    """In the paper's letters; at least one negative, so alpha is above 0."""
    alpha = min(math.fsum(count for _, count in slots) / (n_items - 1), 1.0)
    beta = alpha * ((1 - 1 / alpha) * calibration + 1 / alpha)
    return beta * softplus(-p) + math.fsum(count * softplus(s) for s, count in slots)


def info_nce(p, slots, drawn, temperature):
    return math.log1p(math.fsum(count * math.exp((s - p) / temperature) for s, count in slots))


def sampled_softmax(p, slots, drawn, temperature, form, own):
    total = math.fsum(count * math.exp(s / temperature) for s, count in slots)  # the estimate of the sum over all items
    if form == "classic":
        return math.log1p(drawn * total / math.exp(p / temperature - own))
    if own is not None:
        total *= 1 - math.exp(own)
    if form == "sampled":
        return math.log1p(total / math.exp(p / temperature))
    wrong = total / (total + math.exp(p / temperature))  # 1 - P
    return wrong * (math.log(drawn * total) - p / temperature)


def decoupled(p, slots, drawn, temperature, sigma, batch):
    total = math.fsum(count * math.exp(s / temperature) for s, count in slots)
    v = 1.0
    if sigma is not None:
        v = 2 - len(batch) * math.exp(p / sigma) / math.fsum(math.exp(other / sigma) for other in batch)
    return math.log(total) - v * p / temperature


def debiased(p, slots, drawn, temperature, prior, min_score):
    return hard_negative_nce(p, slots, drawn, temperature, prior, min_score, beta=0.0)


def hard_negative_nce(p, slots, drawn, temperature, prior, min_score, beta):
    number = math.fsum(count for _, count in slots)
    tilted = [(s, count * math.exp(beta * s / temperature)) for s, count in slots]
    mean = math.fsum(u * math.exp(s / temperature) for s, u in tilted) / math.fsum(u for _, u in tilted)
    pull = math.exp(p / temperature)
    g = max((mean - prior * pull) / (1 - prior), math.exp(min_score / temperature))
    return math.log1p(number * g / pull)


def self_adversarial(p, slots, drawn, alpha, margin):
    shares = [count * math.exp(alpha * (s + margin)) for s, count in slots]
    pushed = math.fsum(share * softplus(s + margin) for share, (s, _) in zip(shares, slots, strict=True))
    return (softplus(-p - margin) + pushed / math.fsum(shares)) / 2


@dataclasses.dataclass(frozen=True)
class Batch:
    """Inputs of a slot loss as lists; None for an option that is not given."""

    positive: list
    negatives: list
    mask: list | None
    weights: list | None
    log_q: list | None

    def tensors(self, dtype=torch.float64):
        """positive (B,) and negatives (B, K); masked scores are NaN, which a loss must not see."""
        size = (len(self.positive), len(self.negatives[0]) if self.negatives else 3)
        negatives = np.array(self.negatives, np.float64).reshape(size)
        if self.mask is not None:
            negatives[~np.array(self.mask, bool).reshape(size)] = np.nan
        return torch.tensor(self.positive, dtype=dtype), torch.tensor(negatives, dtype=dtype)

    def options(self):
        """mask, weights and log_q as a loss takes them, those that are given; NumPy and torch by turns."""
        size = (len(self.positive), len(self.negatives[0]) if self.negatives else 3)
        kinds = {"mask": bool, "weights": np.float64, "log_q": np.float64}
        given = {name: getattr(self, name) for name in kinds if getattr(self, name) is not None}
        arrays = {name: np.array(values, kinds[name]).reshape(size) for name, values in given.items()}
        if self.log_q is not None and self.mask is not None:
            arrays["log_q"][~arrays["mask"]] = np.nan
        return arrays if len(given) % 2 else {name: torch.tensor(array) for name, array in arrays.items()}

    def rows(self):
        """(p, slots, drawn) of each row, slots as the losses above read them."""
        for row, p in enumerate(self.positive):
            size = range(len(self.negatives[row]))
            valid = [slot for slot in size if self.mask is None or self.mask[row][slot]]
            slots = []
            for slot in valid:
                count = 1.0 if self.weights is None else self.weights[row][slot]
                if self.log_q is not None:
                    count /= len(valid) * math.exp(self.log_q[row][slot])
                if count > 0:
                    slots.append((self.negatives[row][slot], count))
            yield p, slots, len(valid)

    def map(self, loss, **settings):
        """`loss` of every row; a row with no negatives gives 0."""
        return [loss(p, slots, drawn, **settings) if slots else 0.0 for p, slots, drawn in self.rows()]


def table(draw, rows, slots, values):
    return [[draw(values) for _ in range(slots)] for _ in range(rows)]


WEIGHTS = st.sampled_from([0.0, 0.3, 1.0, 2.0]) | st.floats(0.01, 3.0)


@st.composite
def batches(draw, log_q=True, weights=WEIGHTS, lowest=-3.0):
    """B from 0 to 4 rows of K from 0 to 6 slots, any option given or not; log_q True, False or None for either."""
    rows, slots = draw(st.integers(0, 4)), draw(st.integers(0, 6))
    scores = st.floats(lowest, 3.0)
    corrected = draw(st.booleans()) if log_q is None else log_q
    return Batch(
        positive=[draw(scores) for _ in range(rows)],
        negatives=table(draw, rows, slots, scores),
        mask=table(draw, rows, slots, st.booleans()) if draw(st.booleans()) else None,
        weights=table(draw, rows, slots, weights) if draw(st.booleans()) else None,
        log_q=table(draw, rows, slots, st.floats(-5.0, -0.01)) if corrected else None,
    )


TEMPERATURES = st.floats(0.2, 2.0)
SHARES = st.sampled_from([0.0, 0.1]) | st.floats(0.0, 0.6)
MIN_SCORES = st.sampled_from([-1.0, -math.inf, -3.0])

# name: (the loss, the same in loops, its settings, whether it takes log_q: None is with or without)
LOSSES = {
    "bpr": (losses.bpr, bpr, {}, False),
    "hinge": (losses.hinge, hinge, {"margin": st.floats(0.0, 2.0)}, False),
    "sampled_bce": (losses.sampled_bce, sampled_bce, {}, False),
    "gbce": (losses.gbce, gbce, {"n_items": st.integers(2, 30), "calibration": st.floats(0.0, 1.0)}, False),
    "info_nce": (losses.info_nce, info_nce, {"temperature": TEMPERATURES}, None),
    "debiased": (
        losses.debiased,
        debiased,
        {"temperature": TEMPERATURES, "prior": SHARES, "min_score": MIN_SCORES},
        None,
    ),
    "hard_negative_nce": (
        losses.hard_negative_nce,
        hard_negative_nce,
        {"temperature": TEMPERATURES, "prior": SHARES, "min_score": MIN_SCORES, "beta": st.floats(0.0, 2.0)},
        None,
    ),
    "self_adversarial": (
        losses.self_adversarial,
        self_adversarial,
        {"alpha": st.floats(0.0, 2.0), "margin": st.floats(-3.0, 6.0)},
        False,
    ),
}
