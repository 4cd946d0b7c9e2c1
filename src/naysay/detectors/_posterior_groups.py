"""P(labelled | positive): the labelled share of the slots of highest g, in groups of anchors that differ in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.posterior_summary import MIN_LABELLED

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Whole = NDArray[np.intp]
_LEAST, _LATER, _MOST, _PREFIXES, _ERROR = 0.2, 0.4, 0.9, 200, 0.05
_GROUP = 60  # anchors at least in a group of similar richness
_ANCHORS = 200  # at a time


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """The slots of highest g that hold 20 to 90 % of the labelled, at least 15 of them; equal slots stay together.

    Args:
        limits: (P,) descending: a prefix holds the slots with at least this log-odds.
        labelled: (P,) labelled slots in each.
        slots: (P,) slots in each.
        places: (n,) the first prefix that a slot is in, P if none.
    """

    limits: Floats
    labelled: Floats
    slots: Floats
    places: NDArray[np.intp]

    @staticmethod
    def of(log_odds: Floats, labels: Mask, order: Whole, inside: Mask | None = None) -> Prefixes | None:
        """At most 200 prefixes, evenly spread, of the slots `inside`, or of all; None if there is none.

        `order` is that of descending log-odds.
        """
        if inside is not None:
            order = order[inside[order]]
        if not labels[order].any():
            return None
        values, hits = log_odds[order], np.cumsum(labels[order])
        total = hits[-1]
        ends = np.append(values[1:] != values[:-1], True) & _with_labels(values, labels[order])
        good = ends & (hits >= np.maximum(MIN_LABELLED, _LEAST * total)) & (hits <= _MOST * total)
        chosen = np.flatnonzero(good)
        if not len(chosen):
            return None
        if len(chosen) > _PREFIXES:
            chosen = chosen[np.linspace(0, len(chosen) - 1, _PREFIXES).round().astype(np.intp)]
        limits = values[chosen]
        places = np.full(len(labels), len(limits))
        places[order] = np.searchsorted(-limits, -values, side="left")
        return Prefixes(limits, hits[chosen].astype(np.float64), (chosen + 1).astype(np.float64), places)

    def lower_limit(self, labelled: Floats, slots: Floats) -> float:
        """The largest lower limit of Clopper and Pearson (95 %) of the labelled share."""
        from scipy.special import betaincinv

        return float(betaincinv(labelled, slots - labelled + 1, _ERROR).max())

    def rising(self) -> float:
        """The share of the shortest prefix over that of the first with 40 % of the labelled, with an error of 5 %.

        About 1 if the first slots are positives, all of them: their share is c then, however few they are.
        """
        from scipy.special import betaincinv

        later = int(np.searchsorted(self.labelled, _LATER / _LEAST * self.labelled[0]))
        if later >= len(self.limits):
            return 1.0
        first = float(betaincinv(self.labelled[0], self.slots[0] - self.labelled[0] + 1, _ERROR))
        return first * float(self.slots[later] / self.labelled[later])

    def upper_limit(self) -> float:
        """The upper limit of the labelled share, of the prefix with the largest lower limit."""
        from scipy.special import betaincinv

        best = int(betaincinv(self.labelled, self.slots - self.labelled + 1, _ERROR).argmax())
        hits, missed = self.labelled[best], self.slots[best] - self.labelled[best]
        return float(betaincinv(hits + 1, missed, 1 - _ERROR)) if missed > 0 else 1.0

    def clearly_above(self, other: Prefixes) -> bool:
        """Whether the lower limit of this share is above the upper limit of another."""
        return self.lower_limit(self.labelled, self.slots) > other.upper_limit()

    def resampled(self, counts: Floats, labels: Mask, rows: Whole) -> tuple[Floats, Floats]:
        """(B, P) labelled slots and slots of each prefix under counts (B, A) of the anchors."""
        size = len(self.limits) + 1
        used = np.flatnonzero(self.places < len(self.limits))
        totals = np.zeros((2, len(counts), size))
        for start in range(0, counts.shape[1], _ANCHORS):
            part = used[slice(*np.searchsorted(rows[used], [start, start + _ANCHORS]))]
            keys = (rows[part] - start) * size + self.places[part]
            for total, weights in zip(totals, (labels[part].astype(np.float64), np.ones(len(part))), strict=True):
                table = np.bincount(keys, weights, _ANCHORS * size).reshape(_ANCHORS, size)
                some = counts[:, start : start + _ANCHORS]
                total += some @ table[: some.shape[1]]  # whole numbers: exact in any order
        labelled, slots = (np.cumsum(total, axis=1)[:, :-1] for total in totals)
        return labelled, slots


def _with_labels(values: Floats, labels: Mask) -> Mask:
    """(n,) whether the slots of this value contain a labelled one: other ends only lower the share."""
    groups = np.cumsum(np.append(True, values[1:] != values[:-1])) - 1
    return np.asarray(np.bincount(groups, labels)[groups] > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Anchors of similar richness, with a labelled share of their own.

    An anchor with many positives has a smaller share of them labelled, and more high scores. So groups are halves,
    then quarters, eighths, ... of the richest, and neighbours are joined unless the richer one has clearly less.

    Args:
        limits: (s - 1,) the richness at which the next group begins.
        shares: (s,) the labelled share of each, descending.
        inside: (s,) how many labelled positives each has.
    """

    limits: Floats
    shares: Floats
    inside: Whole

    @staticmethod
    def of(log_odds: Floats, labels: Mask, order: Whole, rows: Whole, richness: Floats, whole: Prefixes) -> Groups:
        """Find the groups."""
        anchors, cuts, part = len(richness), [], 0.5
        while anchors * part >= _GROUP:
            cuts.append(1 - part)
            part /= 2
        limits = np.unique(np.quantile(richness, cuts)) if cuts else np.zeros(0)

        def found(first: int, last: int) -> Prefixes | None:
            """Of the groups from first to last."""
            group = np.searchsorted(limits, richness, side="right")
            inside = ((group >= first) & (group <= last))[rows]
            return Prefixes.of(log_odds, labels, order, inside)

        joined: list[tuple[int, int, Prefixes | None]] = []
        for place in range(len(limits), -1, -1):  # from the richest
            first, last, prefixes = place, place, found(place, place)
            while joined and not (prefixes and joined[-1][2] and prefixes.clearly_above(joined[-1][2])):
                last = joined.pop()[1]
                prefixes = found(first, last)
            joined.append((first, last, prefixes))
        joined.reverse()
        kept = [part if part is not None else whole for _, _, part in joined]
        shares = np.array([part.lower_limit(part.labelled, part.slots) for part in kept])
        limits = limits[[last for _, last, _ in joined[:-1]]]
        group = np.searchsorted(limits, richness, side="right")
        inside = np.bincount(group[rows[labels]], minlength=len(shares))
        return Groups(limits, shares, inside)
