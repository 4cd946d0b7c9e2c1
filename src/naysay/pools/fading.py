"""Fading: mined lists in which a negative that has become easy gives its place to the next of the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._lock import Lock
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import (
    as_array,
    as_floats,
    check_all,
    check_kind,
    check_number,
    check_one_of,
    check_range,
    public,
    raise_invalid,
    shown,
)
from naysay.pools._slots import ON_SHORT, anchors_of, check_count, shortfall, shown_settings, slot_counts
from naysay.positives import Positives
from naysay.rng import generator_of, key_from
from naysay.types import Negatives, Query, anchor_ids, check_query

Ids = NDArray[np.int64]


@final
@public
class Fading:
    """Draw from the `active` ids of an anchor's list; `observe` replaces those whose score has fallen.

    At first the first `active` ids of a list are used. Every `check` steps of an anchor, an id with the score s now and
    s0 when it was mined is replaced by the next unused one of the list if fade * s < s0 and |s| < level: it was hard
    and is so no more, and no search is needed to find another. A list that has run out leaves the place empty. log_q is
    exact: -log(m - slot), of m active ids.

    Li et al. Conan-embedding: General Text Embedding with More and Better Negative Samples. 2024: every 100 steps, fade
    1.15; the level of 0.8 is not verified.

    Cost: O(active) per row; 16 bytes per id of the lists.

    Args:
        lists: (n_anchors, m) ids, the hardest first, -1 at the end of a row.
        scores: (n_anchors, m) their scores when they were mined.
        active: How many ids of an anchor are in use.
        positives: Pairs to exclude, exactly.
        fade: Above or equal to 1.
        level: Scores of at least this, in either sign, are never replaced.
        check: Steps between two checks of an anchor.
        on_short: "pad" or "raise".

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = Fading([[5, 6, 7]], [[0.7, 0.6, 0.5]], active=1, check=1)
        >>> query = ns.Query([0], step=1)
        >>> drawn = pool.draw(query, 1, rng=ns.rng_for(0))
        >>> pool.observe(query, ns.Negatives(drawn.ids, scores=np.array([[0.2]])))   # it was 0.7
        >>> pool.active_ids([0]).tolist()
        [[6]]
    """

    distinct = True
    needs_main_process = True  # its draws depend on what it was taught in the training loop

    def __init__(
        self,
        lists: ArrayLike,
        scores: ArrayLike,
        active: int,
        positives: Positives | None = None,
        *,
        fade: float = 1.15,
        level: float = 0.8,
        check: int = 100,
        on_short: str = "pad",
    ) -> None:
        """Take out what is known: O(ids)."""
        ids, first = as_array("lists", to_numpy(lists)), as_floats("scores", to_numpy(scores))
        if ids.ndim != 2 or ids.dtype.kind not in "iu" or first.shape != ids.shape:
            got = f"{ids.dtype} of shape {ids.shape}, and scores of shape {first.shape}"
            raise_invalid("lists", "ids of shape (n_anchors, m), with scores of that shape", got)
        check_all("lists", ids, ids >= -1, "at least -1")
        check_all("scores", first, np.isfinite(first) | (ids < 0), "finite")
        self.active = check_count("active", active)
        self.fade = check_number("fade", fade, at_least=1, finite=True)
        self.level = check_number("level", level, above=0)
        self.check = check_count("check", check)
        check_one_of("on_short", on_short, ON_SHORT)
        self.on_short, self.positives = on_short, positives
        bad = ids < 0
        if positives is not None:
            check_kind("positives", positives, Positives, "a Positives or None")
            if positives.n_anchors != len(ids):
                raise_invalid("lists", f"of the {positives.n_anchors} anchors of positives", len(ids))
            check_range("lists", ids.ravel(), positives.n_items, "items", least=-1)
            bad |= positives.contains(np.arange(len(ids)), ids, relation="any")
        order = np.argsort(bad, axis=1, kind="stable")
        self._ids = np.take_along_axis(np.where(bad, -1, ids), order, axis=1).astype(np.int64)
        self._first = np.take_along_axis(np.where(bad, 0.0, first), order, axis=1)
        self._counts = (self._ids >= 0).sum(axis=1)
        self._lock = Lock()
        places = np.broadcast_to(np.arange(self.active), (len(ids), self.active))
        self._places = np.where(places < self._counts[:, None], places, -1)
        self._next = np.minimum(self._counts, self.active)
        self._checked = np.zeros(len(ids), np.int64)

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) negatives for the query's anchors; n is a number, or (B,) numbers."""
        anchors = anchors_of(query, len(self._ids))
        counts, width = slot_counts(n, len(anchors))
        held = self.active_ids(anchors)
        noise = generator_of(key_from(rng)).random(held.shape)
        order = np.argsort(np.where(held < 0, 2.0, noise), axis=1)[:, :width]
        ids = np.full((len(anchors), width), -1, np.int64)
        ids[:, : order.shape[1]] = np.take_along_axis(held, order, axis=1)
        ids[np.arange(width) >= counts[:, None]] = -1
        left = (held >= 0).sum(axis=1)[:, None] - np.arange(width)
        log_q = np.where(ids < 0, 0.0, -np.log(np.maximum(left, 1)))
        return Negatives(ids, log_q=log_q, dropped=shortfall(self.on_short, ids, counts))

    def active_ids(self, anchors: ArrayLike) -> Ids:
        """(B, active) the ids in use, -1 for none."""
        rows = np.asarray(to_numpy(anchors), np.int64)
        check_range("anchors", rows, len(self._ids), "anchors")
        with self._lock:
            places = self._places[rows]
        found = np.take_along_axis(self._ids[rows], np.maximum(places, 0), axis=1) if self._ids.shape[1] else places
        return np.where(places < 0, -1, found)

    def observe(self, query: Query, negatives: Any, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Check the negatives of anchors whose last check was `check` steps ago; of an anchor twice, the first row.

        Args:
            query: The anchors, and the step.
            negatives: What was drawn, with `scores` by the model now.
            positive_scores: Not used.
            vectors: Not used.
        """
        check_query(query)
        if negatives.scores is None:
            raise_invalid("negatives", "with scores", "none", "Pass dataclasses.replace(negatives, scores=...).")
        anchors, first = np.unique(anchor_ids(query), return_index=True)
        check_range("anchors", anchors, len(self._ids), "anchors")
        ids = np.asarray(to_numpy(negatives.ids))[first]
        scores = np.asarray(to_numpy(negatives.scores), np.float64)[first]
        check_all("negatives", scores, np.isfinite(scores) | (ids < 0), "of finite scores")
        with self._lock:
            due = query.step - self._checked[anchors] >= self.check
            anchors, ids, scores = anchors[due], ids[due], scores[due]
            places, own = self._places[anchors], self.active_ids(anchors)
            same = (own[:, :, None] == ids[:, None]) & (own >= 0)[:, :, None]
            now = np.where(same, scores[:, None], -np.inf).max(axis=2, initial=-np.inf)
            mined = np.take_along_axis(self._first[anchors], np.maximum(places, 0), axis=1)
            faded = np.isfinite(now) & (self.fade * now < mined) & (np.abs(now) < self.level)
            place = self._next[anchors][:, None] + np.cumsum(faded, axis=1) - 1
            place = np.where(place < self._counts[anchors][:, None], place, -1)
            self._places[anchors] = np.where(faded, place, places)
            self._next[anchors] = np.minimum(self._next[anchors] + faded.sum(axis=1), self._counts[anchors])
            self._checked[anchors] = query.step

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The places of the lists in use, the next ones, and the step of each anchor's last check."""
        with self._lock:
            parts = {"places": self._places, "next": self._next, "checked": self._checked}
            return {name: part.copy() for name, part in parts.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        check_kind("state", state, Mapping, "what Fading.state returned")
        shapes = {name: tuple(old.shape) for name, old in self.state().items()}
        if set(state) != set(shapes):
            raise_invalid("state", f"of {sorted(shapes)}", shown(list(state)))
        read: dict[str, Ids] = {}
        for name, shape in shapes.items():
            array = as_array(name, to_numpy(state[name]))
            if array.shape != shape or array.dtype.kind not in "iu":
                raise_invalid(name, f"whole numbers of shape {shape}", f"{array.dtype} of shape {array.shape}")
            read[name] = array.astype(np.int64)
        check_all("places", read["places"], (read["places"] >= -1) & (read["places"] < self._counts[:, None]), "places")
        check_all("next", read["next"], (read["next"] >= 0) & (read["next"] <= self._counts), "places of the lists")
        check_all("checked", read["checked"], (read["checked"] >= 0) & (read["checked"] < 1 << 62), "steps")
        ordered = np.sort(read["places"], axis=1)
        twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
        check_all("places", read["places"], np.broadcast_to(~twice[:, None], read["places"].shape), "different")
        with self._lock:
            self._places, self._next, self._checked = read["places"], read["next"], read["checked"]

    def __repr__(self) -> str:
        """The settings."""
        held = f"{len(self._ids):,} anchors, {int(self._counts.sum()):,} ids"
        settings = {"active": self.active, "fade": self.fade, "level": self.level, "check": self.check}
        return shown_settings(self, held, positives=self.positives, **settings)
