"""Three findings of an audit: gradient share by band, repeated documents, and whether k fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.audits._training_set import SetScores
from naysay.checks import public
from naysay.mining.problem import Problem
from naysay.pools.everything import Everything
from naysay.quantity.effectiveness import auc, separation, simulated
from naysay.quantity.estimate import estimate
from naysay.quantity.online import Probe, probe
from naysay.text import percent
from naysay.types import Query

Ids = NDArray[np.int64]
NEGLIGIBLE = 1e-3  # a negative with a smaller softmax weight contributes no useful gradient
BANDS = ("easy", "hard", "suspected")
K_MAX = 1000
_SLOTS = 1 << 20  # slots in a block
_TOP_SHARE = 0.01  # of the documents
_SHOWN = 10
_RANDOM_ANCHORS, _RANDOM_DOCUMENTS = 2048, 256  # at most: random documents are drawn for so many anchors
_MINED = 0.75  # the hardness above which negatives are not random: random ones have 0.5, mined ones nearly 1
_BASIS = (
    "one AUC, of this model over uniform negatives of the corpus, used as the AUC of the labels, and a simulated "
    "training run; in-batch negatives count towards k"
)


@final
@public
@dataclass(frozen=True, slots=True)
class GradientShare:
    """Which negatives the InfoNCE gradient comes from, by band.

    A slot is "suspected", or else "easy" if its softmax weight p_j is below 0.001, or else "hard".

    Args:
        temperature: The temperature t of InfoNCE.
        counts: {band: slots}.
        shares: {band: share of the sum of p_j over all slots}. They sum to 1, or are 0 if there is no gradient.
        idle_rows: The share of rows in which all negatives together weigh less than 0.001: the model has learnt them.

    Example: see `audit`.
    """

    temperature: float
    counts: dict[str, int]
    shares: dict[str, float]
    idle_rows: float

    @property
    def easy_share(self) -> float:
        """The share of the slots that is easy."""
        return self.counts["easy"] / max(1, sum(self.counts.values()))


def softmax_weights(scores: SetScores, temperature: float) -> tuple[NDArray[np.float32], float]:
    """Return (n, k) p_j of each slot, NaN where it has none, and the share of rows that weigh less than 0.001.

        p_j = exp(s_j / t) / (exp(s_p / t) + sum_i exp(s_i / t))

    The gradient of `losses.info_nce` by s_j is p_j / t. A row is an anchor with one of its positives; p_j of an anchor
    with several positives is the mean over them. Anchors without a scored positive have no row. O(k) per row, in
    blocks.
    """
    rows = np.flatnonzero(~np.isnan(scores.positives))
    anchors = scores.anchors[rows]
    total = np.zeros(scores.negatives.shape)
    times = np.bincount(anchors, minlength=len(total))
    step, idle = max(1, _SLOTS // max(1, scores.negatives.shape[1])), 0
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        own = scores.negatives[anchors[part]].astype(np.float64) / temperature
        positive = scores.positives[rows[part], None].astype(np.float64) / temperature
        top = np.fmax(positive, np.fmax.reduce(own, axis=1, keepdims=True, initial=-np.inf))
        weights = np.where(np.isnan(own), 0.0, np.exp(own - top))
        weights /= np.exp(positive - top) + weights.sum(axis=1, keepdims=True)
        np.add.at(total, anchors[part], weights)
        idle += int((weights.sum(axis=1) < NEGLIGIBLE).sum())
    mean = total / np.maximum(times, 1)[:, None]
    known = np.where(scores.filled & (times > 0)[:, None], mean, np.nan).astype(np.float32)
    return known, idle / max(1, len(rows))


def gradient_share(scores: SetScores, suspected: NDArray[np.bool_], temperature: float) -> GradientShare:
    """Sum the softmax weights of each band. Slots without a weight are in none."""
    weights, idle = softmax_weights(scores, temperature)
    known = ~np.isnan(weights)
    easy = known & ~suspected & (weights < NEGLIGIBLE)
    masks = dict(zip(BANDS, (easy, known & ~suspected & ~easy, known & suspected), strict=True))
    sums = {band: float(weights[mask].sum(dtype=np.float64)) for band, mask in masks.items()}
    whole = sum(sums.values())
    return GradientShare(
        temperature,
        {band: int(mask.sum()) for band, mask in masks.items()},
        {band: part / whole if whole else 0.0 for band, part in sums.items()},
        idle,
    )


@final
@public
@dataclass(frozen=True, slots=True)
class Repeats:
    """How evenly the negatives are spread over the documents.

    Args:
        documents: Documents in the corpus.
        used: Documents that are a negative of some anchor.
        top_share: The share of all slots taken by the most frequent 1 % of the documents (by one document if there are
            fewer than 100).
        expected_share: What `top_share` would be if every slot had been drawn at random.
        most_frequent: The most frequent documents: (row, anchors that have it, its text or name), at most 10.
        limit: In 19 of 20 random draws no document has more anchors than this.
        above_limit: Documents with more anchors than `limit`.

    Example: see `audit`.
    """

    documents: int
    used: int
    top_share: float
    expected_share: float
    most_frequent: tuple[tuple[int, int, str], ...]
    limit: int
    above_limit: int


def repeats(ids: NDArray[np.int64], documents: int, label: Callable[[int], str]) -> Repeats:
    """Count how many anchors each document is a negative of. O(slots), and a sort of the documents.

    `label` gives the text or name of a row of the corpus.
    """
    counts = np.bincount(ids[ids >= 0], minlength=documents)
    slots, top = int(counts.sum()), max(1, round(_TOP_SHARE * documents))
    best = np.argsort(-counts, kind="stable")[:_SHOWN].tolist()
    frequent = tuple((row, int(counts[row]), label(row)) for row in best if counts[row])
    expected, limit = _by_chance(slots, documents, top)
    share = float(np.partition(counts, documents - top)[documents - top :].sum() / slots)
    return Repeats(documents, int((counts > 0).sum()), share, expected, frequent, limit, int((counts > limit).sum()))


def _by_chance(slots: int, documents: int, top: int) -> tuple[float, int]:
    """Return the share of slots of the `top` most frequent documents, and `limit`, if counts were Poisson."""
    from scipy.special import pdtrc

    mean = slots / documents
    values = np.arange(int(mean + 40 * np.sqrt(mean) + 60))
    above = pdtrc(values, mean)  # P(X > value)
    chance = -np.diff(above, prepend=1.0)  # P(X = value)
    in_top = np.clip(top / documents - above, 0.0, chance)  # the upper tail of top / documents
    limit = int(np.argmax(documents * above <= 0.05))
    return float((in_top * values).sum() / mean), limit


@final
@public
@dataclass(frozen=True, slots=True)
class KVerdict:
    """Whether k, the negatives per row, fits labels that are as noisy as these.

    Args:
        k: Negatives per row: the median over anchors that have some.
        verdict: "too small", "too large", "fits" or "unknown".
        best: K*, the k at which training is most effective (`quantity.estimate`); None if unknown.
        low: The smallest k within 1 % of the best, for some AUC within 2 standard errors; None if unknown.
        high: The largest such k; 1000 means 1000 or more.
        auc: The AUC of positives against uniform negatives; None without vectors.
        standard_error: Its standard error.
        separation: The separation of that AUC; `naysay howmany --separation` draws its curve.
        basis: What the result is based on, or why it is unknown.

    Example: see `audit`.
    """

    k: int
    verdict: str
    best: int | None = None
    low: int | None = None
    high: int | None = None
    auc: float | None = None
    standard_error: float | None = None
    separation: float | None = None
    basis: str = ""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RandomScores:
    """Scores of some anchors with random documents that are not their positives."""

    anchors: Ids  # (b,) ascending: anchors with a scored positive
    scores: NDArray[np.float32]  # (b, m)
    filled: NDArray[np.bool_]  # (b, m): False where an anchor has no more documents
    positives: NDArray[np.float32]  # (b,) the score of one positive of each anchor


def random_scores(problem: Problem, scores: SetScores, rng: np.random.Generator) -> RandomScores | None:
    """Score up to 256 random documents for each of up to 2,048 anchors; None if there are none."""
    chosen = scores.one_each
    if len(chosen) > _RANDOM_ANCHORS:
        chosen = np.sort(rng.choice(chosen, _RANDOM_ANCHORS, replace=False))
    anchors = scores.anchors[chosen]
    drawn = Everything(problem.known).draw(Query(anchors), min(_RANDOM_DOCUMENTS, problem.n_items), rng=rng).ids
    has_some = (drawn >= 0).any(axis=1) if drawn.size else np.zeros(len(anchors), np.bool_)
    anchors, drawn = anchors[has_some], drawn[has_some]
    if not len(anchors):
        return None
    filled = drawn >= 0
    values = np.zeros(drawn.shape, np.float32)
    values[filled] = problem.score(np.repeat(anchors, filled.sum(axis=1)), drawn[filled])
    return RandomScores(anchors, values, filled, scores.positives[chosen][has_some])


def hardness(scores: SetScores, random: RandomScores) -> float:
    """The mean share of random documents that score below a negative of the same anchor: 0.5 for random negatives."""
    shares = []
    for row, anchor in enumerate(random.anchors.tolist()):
        own = scores.negatives[anchor]
        others = np.sort(random.scores[row][random.filled[row]])
        shares.append(np.searchsorted(others, own[~np.isnan(own)]) / len(others))
    every = np.concatenate(shares)
    return float(every.mean()) if len(every) else 0.5


def k_verdict(k: int, random: RandomScores | None, scores: SetScores | None) -> KVerdict:
    """Compare k with K* of the model's AUC (Wu, Wu and Huang; see `quantity.estimate`).

    K* is the number of *random* negatives. For a mined set, whose negatives are harder, the result is "unknown".

    The AUC must be over uniform negatives: over the set's own negatives, which are mostly hard ones, it is another
    number. It is used as the labels' AUC, at which the paper's simulated run ends. K* is computed for five AUCs, from 2
    standard errors below to 2 above, because it is not monotone in the AUC.
    """
    if random is None or scores is None:
        return KVerdict(k, "unknown", basis="needs vectors: the AUC must be over uniform negatives of the corpus")
    if len(random.anchors) < 2:
        return KVerdict(k, "unknown", basis="needs positives of at least 2 anchors")
    probed = probe(random.positives, random.scores, random.filled)
    middle, harder, basis = _below_one(probed.auc, probed), hardness(scores, random), ""
    if harder > _MINED:
        basis = f"these negatives score above {percent(harder)} of random documents, and K* is for random negatives"
    elif middle <= 0.5:
        basis = "the model ranks positives no higher than uniform negatives"
    if basis:
        return KVerdict(k, "unknown", auc=probed.auc, standard_error=probed.error, basis=basis)
    spread = np.linspace(-2, 2, 5) * probed.error
    runs = [_best_k(_below_one(probed.auc + step, probed)) for step in spread.tolist() if probed.auc + step > 0.5]
    best, low, high = _best_k(middle)[0], min(run[1] for run in runs), max(run[2] for run in runs)
    verdict = "too small" if k < low else "too large" if k > high and high < K_MAX else "fits"
    return KVerdict(k, verdict, best, low, high, probed.auc, probed.error, separation(middle), _BASIS)


def _below_one(value: float, probed: Probe) -> float:
    """Return an AUC that this many comparisons can distinguish from 1."""
    return min(value, 1 - 0.5 / max(probed.comparisons, 1.0))


def _best_k(reached: float) -> tuple[int, int, int]:
    """Return (K*, low, high) of a simulated run that ends at an AUC."""
    known = estimate(reached, auc(simulated(separation(reached))), k_max=K_MAX)
    return known.k, *known.flat
