"""The fitted posterior as a few small arrays, its state, and the share of false negatives that it estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import Z, most_share
from naysay._state import Entry, read_state
from naysay.checks import check_all, raise_invalid
from naysay.detectors._posterior_fit import FEATURES, KNOTS, PASSES, WIDTH, Fit, curves
from naysay.detectors._posterior_lists import Lists, backgrounds
from naysay.detectors.cut import cut_at, mean_of, nearest_below
from naysay.detectors.posterior_summary import PosteriorSummary, posterior_share, summary_of
from naysay.detectors.rate import CONFIDENCE
from naysay.detectors.share import Share

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]
TERMS = 6  # of the regression of similarities
_BLOCK = 1 << 15  # slots at a time
_LEAST = 0.02  # posterior of the most similar candidate at which similarities count
_LAST = 10  # ranks whose mean holds behind the list
_SHOWN = 0.8  # of the typical length: a shorter list does not reach the ranks of its background
_FAR = 1e3  # deviations
_MOST = 600.0  # log-odds: its exponential is finite
MODEL_ERROR = 0.15  # of the log-share, where assumptions hold about: benchmarks/results/coverage.json
_FIRST = 0.5  # of the labelled positives are among the slots that c rests on, about
_SELECTED = (0.6, 0.3)  # more of it at either end, where all of the posterior was left out
_DRAWN_SLOTS = 5_000  # at most, to see how other weights change the estimate
LARGEST = 1 - 2.0**-24  # in 32 bits: a threshold of 1 drops nothing, and log-odds are finite


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted posterior.

        logit p = constant + curve(score) + curve(score - background)    P(an unlabelled candidate is positive)
        logit q = slope (logit p + log ratio(v)) + shift                 with the evidence v of item vectors

    Args:
        knots: (passes, 2, knots) of the curves. The first pass finds the backgrounds of the second.
        weights: (passes, width) the constant, and the heights of the curves at their knots.
        c: P(labelled | positive).
        beyond: The posterior of candidates behind the lists that were fitted.
        depth: How many candidates of a list are fitted.
        scale: (4,) mean and deviation of scores, mean and deviation of positives' scores.
        similar: (6,) the regression of similarities; empty without item vectors.
        edges: (b - 1,) of the bins of v; empty without item vectors.
        ratios: (b,) the log-ratio of densities in each bin, ascending.
        shift: What a check of the labels, or labels of candidates, add to the log-odds.
        slope: By what labels of candidates multiply the log-odds.
        error: The error of the log-share that no draw shows: that of the model itself, and that of c.
        reach: (2,) how many times as many false negatives other evidence demands, at most 1, and allows, at least 1.
        draws: (B, width + 2) other weights of the last pass, shifts and slopes that the labels allow.
        level: The typical background of a list, for rows of unknown anchors that are too short to show their own.
        length: The typical number of candidates of a list that were fitted.
        anchors: (n,) the anchors whose lists were fitted, ascending; empty if they are unknown.
        levels: (n,) the backgrounds of their lists.
    """

    knots: Floats
    weights: Floats
    c: float
    beyond: float
    depth: int
    scale: Floats
    similar: Floats
    edges: Floats
    ratios: Floats
    shift: float
    slope: float
    error: float
    reach: Floats
    draws: Floats
    level: float
    length: int
    anchors: Whole
    levels: Floats

    @staticmethod
    def of(fit: Fit, lists: Lists, depth: int, anchors: Whole | None = None) -> Model:
        """Without the evidence of item vectors. `anchors` (A,) are the ids of the lists, if they are known."""
        none, fixed = np.zeros(0), np.tile([0.0, 1.0], (len(fit.draws), 1))
        sizes = lists.cut(depth).filled.sum(axis=1)
        shown = np.flatnonzero(sizes)  # a list without candidates has no background
        ids = np.zeros(0, np.int64) if anchors is None else anchors[shown]
        ids, first = np.unique(ids, return_index=True)
        model = Model(
            fit.knots,
            fit.weights,
            fit.c,
            beyond=0.0,
            depth=depth,
            scale=np.array([0.0, 1, 0, 1]),
            similar=none,
            edges=none,
            ratios=none,
            shift=0.0,
            slope=1.0,
            error=float(np.sqrt(MODEL_ERROR**2 + (1 - fit.c) / (_FIRST * fit.labelled))),
            reach=np.ones(2),
            draws=np.concatenate([fit.draws, fixed], axis=1),
            level=float(np.median(fit.levels[shown])),
            length=int(np.median(sizes[shown])),
            anchors=ids,
            levels=fit.levels[shown][first],
        )
        return replace(model, beyond=beyond_of(model, lists, model.log_odds(lists)))

    def features(self, scores: Floats, levels: Floats | None = None) -> list[Floats]:
        """The score and the score above the background of the last pass, of the first candidates of each list.

        The backgrounds are `levels` (A,), as `learnt_levels` gives them, and those of the lists where these are NaN.
        Without levels, each list is complete, whatever its length.
        """
        length = 0 if levels is None else self.length
        expected: Floats | None = None
        for knots, weights in zip(self.knots[:-1], self.weights[:-1], strict=True):
            above = scores - backgrounds(scores, expected, length)[:, None]
            odds = curves([scores, above], knots, weights)
            expected = np.nansum(0.5 + 0.5 * np.tanh(0.5 * odds), axis=1)
        shown = backgrounds(scores, expected, length)
        level = shown if levels is None else np.where(np.isnan(levels), shown, levels)
        return [scores, scores - level[:, None]]

    def learnt_levels(self, anchors: Whole, lists: Lists) -> Floats:
        """(A,) the backgrounds that the fit found: the anchor's, or the typical one; NaN for a list that shows its own.

        A list of an unknown anchor shows its own background if it is about as long as those that were fitted.
        """
        sizes = lists.cut(self.depth).filled.sum(axis=1)
        found = np.where(sizes >= _SHOWN * self.length, np.nan, self.level)
        if len(self.anchors) and anchors.ndim == 1:
            place = np.minimum(np.searchsorted(self.anchors, anchors), len(self.anchors) - 1)
            found = np.where(self.anchors[place] == anchors, self.levels[place], found)
        return found

    def log_odds(self, lists: Lists, levels: Floats | None = None) -> Floats:
        """(A, W) logit p of the first candidates; NaN where a list has ended. For `levels` see `features`."""
        scores = lists.scores[:, : self.depth]
        found = np.empty(scores.shape)
        step = max(1, _BLOCK // max(1, scores.shape[1]))
        for start in range(0, len(found), step):
            rows = slice(start, start + step)
            features = self.features(scores[rows], None if levels is None else levels[rows])
            found[rows] = curves(features, self.knots[-1], self.weights[-1])
        return found

    def counts(self, odds: Floats) -> Mask:
        """(A, W): where similarities count: elsewhere not even the most similar candidate is likely to be positive."""
        if not len(self.ratios):
            return np.zeros(odds.shape, bool)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.slope * (odds + self.ratios[-1]) + self.shift >= np.log(_LEAST / (1 - _LEAST)))

    def evidence(self, odds: Floats, lists: Lists) -> Floats:
        """(A, W) the log-ratio of densities of each slot, 0 where there is no evidence, or where it does not count."""
        found = np.zeros(odds.shape)
        if lists.alike is None or not len(self.similar):
            return found
        part, alike = lists.cut(odds.shape[1]), lists.alike[:, : odds.shape[1]]
        known = self.counts(odds) & ~np.isnan(alike + part.positives[:, None] + part.scores)
        rows, columns = np.nonzero(known)
        values = part.scores[rows, columns], part.positives[rows]
        v = alike[rows, columns] - predicted(self.similar, self.scale, *values)
        found[rows, columns] = self.ratios[np.searchsorted(self.edges, v, side="right")]
        return found

    def of_odds(self, odds: Floats, lists: Lists) -> Floats:
        """(A, M) the posterior of all candidates from what `log_odds` returned, 0 where a list has ended."""
        found = np.full(lists.scores.shape, np.float64(np.float32(min(self.beyond, LARGEST))))
        width = odds.shape[1]
        step = max(1, _BLOCK // max(1, width))
        for start in range(0, len(found), step):
            rows = slice(start, start + step)
            raised = odds[rows] + self.evidence(odds[rows], lists.take(rows))
            found[rows, :width] = probability(self.slope * raised + self.shift)
        found[np.isnan(lists.scores)] = 0.0
        return found

    def of_lists(self, lists: Lists) -> Floats:
        """`of_odds` of the log-odds."""
        return self.of_odds(self.log_odds(lists), lists)

    def moved(self, shift: float, slope: float = 1.0) -> Model:
        """The same with the log-odds of the posterior multiplied by a slope, and more added."""
        before = np.log(max(self.beyond, 1e-300)) - np.log1p(-min(self.beyond, LARGEST))
        beyond = float(probability(np.asarray(slope * before + shift)))
        return replace(self, shift=slope * self.shift + shift, slope=slope * self.slope, beyond=beyond)

    def state(self) -> dict[str, Any]:
        """All of it: arrays and numbers."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: part.copy() if isinstance(part, np.ndarray) else part for name, part in found.items()}


def probability(odds: Floats) -> Floats:
    """The probability of log-odds, below 1, rounded to 32 bits: thresholds mean the same in both."""
    found = 1 / (1 + np.exp(-np.clip(odds, -_MOST, _MOST)))
    return np.asarray(np.minimum(found, LARGEST).astype(np.float32).astype(np.float64))


_STATE = {
    "knots": Entry((PASSES, FEATURES, KNOTS)),
    "weights": Entry((PASSES, WIDTH)),
    "c": Entry(),
    "beyond": Entry(),
    "depth": Entry(whole=True),
    "scale": Entry((4,)),
    "similar": Entry(("t",)),
    "edges": Entry(("b - 1",)),
    "ratios": Entry(("b",)),
    "shift": Entry(),
    "slope": Entry(),
    "error": Entry(),
    "reach": Entry((2,)),
    "draws": Entry(("B", WIDTH + 2)),
    "level": Entry(),
    "length": Entry(whole=True),
    "anchors": Entry(("n",), whole=True),
    "levels": Entry(("n",)),
}
MODEL_KEYS = tuple(_STATE)


def model_of_state(state: Mapping[str, Any], others: Iterable[str]) -> Model:
    """The model from its state, which may have other keys. Raises if the state does not fit."""
    parts = read_state(state, _STATE, others)
    bins = len(parts["ratios"])
    for name, size in {"edges": max(0, bins - 1), "similar": TERMS if bins else 0}.items():
        if len(parts[name]) != size:
            raise_invalid(name, f"numbers of shape ({size},), as there are {bins} ratios", f"shape {parts[name].shape}")
    for name in ("edges", "ratios"):
        if (np.diff(parts[name]) < 0).any():
            raise_invalid(name, "ascending", "another order")
    if (np.diff(parts["knots"], axis=2) <= 0).any():
        raise_invalid("knots", "ascending", "another order")
    if (np.diff(parts["anchors"]) <= 0).any():
        raise_invalid("anchors", "ascending", "another order")
    check_all("scale", parts["scale"][1::2], parts["scale"][1::2] > 0, "deviations above 0")
    plain: dict[str, Any] = {name: part if part.ndim else part.item() for name, part in parts.items()}
    return Model(**plain)


def terms(scale: Floats, scores: Floats, positives: Floats) -> list[Floats]:
    """1, s, pos, s pos, s^2, pos^2, of standardised scores and positives' scores."""
    parts = (scores - scale[0]) / scale[1], (positives - scale[2]) / scale[3]
    s, pos = np.broadcast_arrays(*(np.clip(part, -_FAR, _FAR) for part in parts))
    return [np.ones(s.shape), s, pos, s * pos, s * s, pos * pos]


def predicted(weights: Floats, scale: Floats, scores: Floats, positives: Floats) -> Floats:
    """(n,) the similarity that scores alone predict."""
    found = np.zeros(len(scores))
    for start in range(0, len(scores), _BLOCK):
        part = slice(start, start + _BLOCK)
        for weight, column in zip(weights.tolist(), terms(scale, scores[part], positives[part]), strict=True):
            found[part] += weight * column
    return found


def beyond_of(model: Model, lists: Lists, odds: Floats) -> float:
    """The mean posterior of the last ten ranks that are fitted."""
    last = (lists.nearest(model.depth) & ~lists.nearest(model.depth - _LAST))[:, : odds.shape[1]]
    posterior = model.of_odds(odds, lists.cut(odds.shape[1]))
    return float(posterior[last].mean()) if last.any() else float(posterior[~np.isnan(odds)].min(initial=1.0))


def share_of(model: Model, lists: Lists, posterior: Floats, mask: Mask) -> Share:
    """The mean posterior of some slots, with a 95 % interval for their share of false negatives.

    Three errors add up, as squares of logs. The model's draws: those of their means that leave out 2.5 % at each end.
    The outcomes: the variance of each slot and that between anchors. The model itself, which no sample shows, and which
    is larger where slots of high posterior were left out: then the share rests on what is said of the others, and is as
    good as nothing if the posterior is sharper than it says. Where
    other evidence allows more false negatives, or fewer, the interval reaches to that.
    """
    n, anchors = int(np.count_nonzero(mask)), int(mask.any(axis=1).sum())
    if n == 0:
        return posterior_share(0.0, 0.0, 1.0, 0)
    estimate = mean_of(posterior, mask)
    if estimate == 0:
        return posterior_share(0.0, 0.0, most_share(0, anchors, 1 - CONFIDENCE), anchors)
    sums, slots = np.where(mask, posterior, 0.0).sum(axis=1), mask.sum(axis=1)
    variance = float((np.where(mask, posterior * (1 - posterior), 0.0)).sum() + ((sums - estimate * slots) ** 2).sum())
    whole = float(posterior[lists.filled & (np.arange(mask.shape[1]) < slots[:, None])].sum())  # of as many nearest
    left, ends = min(1.0, estimate * n / whole), []
    for drawn, selected, sign, reach in zip(
        _drawn_ends(model, lists, mask), _SELECTED, (-1, 1), model.reach, strict=True
    ):
        error = model.error + selected * (1 - left)
        spread = np.hypot(Z * np.sqrt(variance / (n * estimate) ** 2 + error**2), drawn)
        ends.append(min(1.0, estimate * float(reach * np.exp(sign * spread))))
    return posterior_share(estimate, ends[0], ends[1], anchors)


def _drawn_ends(model: Model, lists: Lists, mask: Mask) -> tuple[float, float]:
    """How far below and above the log of the mean posterior 95 % of the draws are, by at most 5,000 of the slots."""
    if not len(model.draws):
        return 0.0, 0.0
    rows = np.flatnonzero(mask.any(axis=1))
    rows = rows[:: max(1, -(-int(np.count_nonzero(mask)) // _DRAWN_SLOTS))]
    part, chosen = lists.take(rows).cut(model.depth), mask[rows][:, : model.depth]
    if not chosen.any():
        return 0.0, 0.0
    features = model.features(part.scores)
    evidence = model.evidence(curves(features, model.knots[-1], model.weights[-1]), part)[chosen]
    inside = [feature[chosen] for feature in features]
    behind, total = int(mask[rows][:, model.depth :].sum()), int(np.count_nonzero(mask[rows]))

    def mean(weights: Floats, shift: float, slope: float) -> float:
        odds = curves(inside, model.knots[-1], weights) + evidence
        return float((probability(slope * odds + shift).sum() + behind * model.beyond) / total)

    centre = mean(model.weights[-1], model.shift, model.slope)
    ends = [mean(draw[:WIDTH], model.shift + draw[WIDTH], model.slope * draw[WIDTH + 1]) for draw in model.draws]
    logs = np.log(np.maximum(ends, 1e-12)) - np.log(max(centre, 1e-12))
    low, high = np.quantile(logs, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return min(0.0, float(low)), max(0.0, float(high))


def with_cut(
    model: Model,
    lists: Lists,
    summary: PosteriorSummary,
    target: float,
    posterior: Floats,
    free: Mask,
    counts: int | NDArray[np.int64],
) -> PosteriorSummary:
    """The summary with tau, and with the shares before and after: of the nearest that are free, `counts` of each."""
    shown = np.where(free, posterior, 2.0)
    found = cut_at(shown, counts, target, lists.scores)
    before, after = (
        share_of(model, lists, posterior, mask) for mask in (nearest_below(shown, counts, 1.0), found.kept)
    )
    return summary_of(summary, model.c, found, before, after)
