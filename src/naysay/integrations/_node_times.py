"""Targets that are not known and not later than a given time, drawn exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.positives import Positives

Ids = NDArray[np.int64]
Times = NDArray[np.int64] | NDArray[np.float64]


class NodeTimes:
    """The nodes in the order of time. The possible targets of a row are a first part of them, less the known ones.

    Args:
        known: Pairs of nodes to exclude.
        source_times: (n_anchors,), or None: they are always possible.
        target_times: (n_items,), or None: they are always possible.
    """

    def __init__(self, known: Positives, source_times: Times | None, target_times: Times | None) -> None:
        self._source_order, self._source_times = _in_order(source_times, known.n_anchors)
        self._order, self._times = _in_order(target_times, known.n_items)
        place = np.empty(known.n_items, np.int64)
        place[self._order] = np.arange(known.n_items)
        anchors, items = known.pairs()
        self._known = Positives.from_pairs(anchors, place[items], known.n_anchors, known.n_items)
        anchors, items = self._known.pairs()
        self._codes = anchors * known.n_items + items

    def sources(self, own: Ids, latest: Times, rng: np.random.Generator) -> Ids:
        """(B,) any nodes of time at most `latest`, but the row's own source where that one has no possible target."""
        early = np.searchsorted(self._source_times, latest, side="right")
        drawn = self._source_order[rng.integers(0, np.maximum(early, 1))]
        return np.where((early > 0) & (self._free(drawn, latest) > 0), drawn, own)

    def targets(self, sources: Ids, latest: Times, rng: np.random.Generator) -> Ids:
        """(B,) nodes of time at most `latest`, uniform over those that are not known of the source."""
        free = self._free(sources, latest)
        check_possible("data", sources, free > 0)
        return self._order[self._known.nth_negative(sources, rng.integers(0, free))]

    def _free(self, sources: Ids, latest: Times) -> Ids:
        """(B,) the number of possible targets."""
        early = np.searchsorted(self._times, latest, side="right")
        before = np.searchsorted(self._codes, sources * self._known.n_items + early)
        return np.asarray(early - before + self._known.indptr[sources])


def check_possible(parameter: str, sources: Ids, good: NDArray[np.bool_]) -> None:
    """Raise if a source has no possible target."""
    if not good.all():
        rule = "a graph in which every source has a possible target"
        got = f"node {sources[good.argmin()]}, which has none ({np.count_nonzero(~good)} such rows)"
        raise_invalid(parameter, rule, got)


def _in_order(times: Times | None, size: int) -> tuple[Ids, Times]:
    """The nodes from the oldest to the newest, and their times."""
    if times is None:
        return np.arange(size), np.full(size, -np.inf)
    order = np.argsort(times, kind="stable")
    return order, times[order]
