"""The trade of mined negatives: what each target and other rules would take from the same lists, and pairs to label."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import final

import numpy as np

from naysay.detectors.posterior import Posterior
from naysay.detectors.posterior_summary import cut_at, nearest_below
from naysay.detectors.rate import CONFIDENCE, RateEstimate
from naysay.mining._false_share import FitLists, Floats, Ids, Mask, among, own_positives, usable
from naysay.mining.explain import MinedArrays
from naysay.mining.judge import judge_of, limits_of
from naysay.report.trade import Trade, TradePoint
from naysay.rng import rng_for
from naysay.text import counted
from naysay.types import Query

CHOSEN = "these negatives"
_RULES = {"share 0.95": "share:0.95", "margin 0.05": "margin:0.05"}  # what others use most
_TARGETS, _SMALLEST = 48, 40  # on the slider; how many times smaller than the share of the nearest the first is
REVIEWED = 100  # pairs to label
_NOTHING = RateEstimate("false negatives", 0.0, 0.0, 1.0, CONFIDENCE, 0, ())  # of a set without negatives


@final
@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """The trade, or why there is none, and pairs to label."""

    trade: Trade | None = None
    reason: str = ""
    rows: Ids | None = None  # (p,) of the pairs: rows of what was mined
    ids: Ids | None = None  # their candidates
    scores: Floats | None = None
    posterior: Floats | None = None  # NaN where it cannot be told


def weighed(
    mined: MinedArrays,
    anchors: Ids,
    detector: Posterior,
    lists: FitLists,
    false_share: RateEstimate | None,
    *,
    total: int,
    seed: int,
    command: str = "",
) -> Weighed:
    """Weigh what was mined by a posterior, on the lists of some of its anchors; counts are scaled to all.

    Args:
        mined: What was mined.
        anchors: (n,) the anchor of each of its rows, ascending.
        detector: The posterior, fitted or not.
        lists: The candidates of some of the anchors.
        false_share: The estimate of what was mined; None without negatives.
        total: How many anchors there are.
        seed: Seed of the pairs to label.
        command: What applies another target, with TARGET in place of its value.
    """
    rows = np.searchsorted(anchors, lists.anchors)
    counts, own = mined.counts[rows], own_positives(detector, lists.anchors)
    near = nearest_below(np.where(lists.free, 0.0, 2.0), counts, 1.0)
    posterior = np.full(lists.scores.shape, nan)
    if usable(detector):
        posterior = detector.posterior(lists.scores, own, alike=lists.alike)
    slots = np.flatnonzero(near)
    row, slot = np.divmod(rng_for(seed).permutation(slots)[:REVIEWED], max(1, near.shape[1]))
    pairs = rows[row], lists.ids[row, slot], lists.scores[row, slot], posterior[row, slot]
    if not usable(detector) or not len(slots):
        return Weighed(None, detector.reason or "no candidates were found", *pairs)
    shown = np.where(lists.free, posterior, 2.0)
    named = mined.judge.false_share if isinstance(mined.judge, Posterior) else nan
    targets = _targets(float(posterior[near].mean()), named)
    masks = [near, *_by_rules(mined, rows, lists, counts)]
    masks += [cut_at(shown, counts, target, None).kept for target in targets]
    shares = detector.shares(lists.scores, own, masks, alike=lists.alike)
    shares[0] = detector.summary.before or shares[0]  # of all anchors that it was fitted to, as in the rule
    taken = mined.mask[rows]
    masks.append(among(lists, np.where(taken, mined.ids[rows], -1)))
    shares.append(_NOTHING if false_share is None else false_share)
    names = ["nearest", *_RULES, *["cut"] * len(targets), CHOSEN]
    marks = [nan] * (1 + len(_RULES)) + [*targets, named]
    points = []
    for name, mask, share, target in zip(names, masks, shares, marks, strict=True):
        n, scores = int(mask.sum()), lists.scores[mask]
        if name == CHOSEN:
            n, scores = int(taken.sum()), mined.scores[rows][taken].astype(np.float64)
        numbers = (int((near & ~mask).sum()), n, max(0, int(counts.sum()) - n))
        dropped, taken_in_all, empty = (round(number * total / len(rows)) for number in numbers)
        ends, mean = (share.estimate, share.low, share.high), float(scores.mean()) if n else nan
        points.append(TradePoint(name, dropped, taken_in_all, empty, *ends, mean, target))
    basis = (
        f"Estimated from {counted(detector.summary.labelled, 'labelled positive')} and the nearest candidates of "
        f"{counted(len(rows), 'anchor')}" + ("; counts are scaled to all." if len(rows) < total else ".")
    )
    first = 1 + len(_RULES)
    trade = Trade(tuple(points[first:-1]), points[-1], tuple(points[:first]), command, basis)
    return Weighed(trade, "", *pairs)


def _by_rules(mined: MinedArrays, rows: Ids, lists: FitLists, counts: Ids) -> list[Mask]:
    """What each of the other rules would take."""
    lowest, found = mined.positive_scores[rows], []
    for text in _RULES.values():
        limits = limits_of(judge_of(text, lowest), Query(np.arange(len(rows))), lowest)
        allowed = lists.free & (lists.scores <= limits[:, None])
        found.append(nearest_below(np.where(allowed, 0.0, 2.0), counts, 1.0))
    return found


def _targets(highest: float, named: float) -> list[float]:
    """Targets up to the share of the nearest, where nothing is dropped, in three digits; the one in use among them."""
    if not highest > 0:
        return [named if named > 0 else 0.05]
    steps = np.geomspace(highest / _SMALLEST, highest, _TARGETS).tolist()
    found = {float(f"{step:.3g}") for step in steps if float(f"{step:.3g}") < highest}
    return sorted(found | {highest} | ({named} if named < highest else set()))
