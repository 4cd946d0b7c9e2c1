"""Guide: a second opinion that costs something, asked about the slots where it matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import partners
from naysay.arrays import to_numpy
from naysay.checks import check_one_of, check_whole, public, raise_invalid, shown
from naysay.detectors._answers import Answers, Floats, Pairs, read_answers
from naysay.detectors._asked_pairs import OfPairs, Sides, answers_of, pair_named, slot_pairs
from naysay.detectors._part_states import joined_states, parted_states, whole_of_state
from naysay.detectors._slots import (
    SUSPICION_THRESHOLD,
    as_suspicion,
    check_asked,
    filled_slots,
    on_its_side,
    slot_scores,
)
from naysay.samplers._numbers import check_number
from naysay.types import Array, Detector, Negatives, Query, Stateful

ANSWERS = ("scores", "probabilities")
_STATE = ("asked", "changed", "pairs", "scores")


@final
@public
class Guide:
    """Ask a better model whether a candidate is a positive: a cross-encoder, a reranker, a person.

    Slots that are not asked about keep the first opinion: the detector's suspicion, or 1 / (1 + exp(first - score)).
    `asked` counts pairs, positives for a margin among them; `changed` counts slots where the guide overruled the first
    opinion. If score_pairs fails, or answers with something else, the refusal names the pairs; answers that came
    before are kept, and the next call does not ask for them again. So asking changes the guide: with a budget and a
    cache, or with a total, an equal question may get another answer the second time.

    Cost: the guide's, one call for `batch` pairs; a sort of the slots; with a cache a sort of that too.

    Solatorio. GISTEmbed: Guided In-sample Selection of Training Negatives for Text Embedding Fine-tuning. 2024, which
    keeps a pair on the line, as `margin` does.

    Args:
        score_pairs: Score_pairs(anchors (n,), ids (n,)) -> (n,), higher is closer. It gets the query's array type,
            runs without gradients, and never sees -1 nor a pair twice in a call. Of triples it gets (n, 3) and (n,
            3).
        line: The guide's own: a pair at or above it is a false negative.
        margin: In place of `line`: the guide's score of the row's positive, less `margin`, or less margin * |score|
            if `relative`; a pair above that is one. The query must have positives. This is GIST's rule.
        answers: "scores": any numbers; suspicion = 1 / (1 + exp(-(g - line) / scale)), 0.5 at the line.
            "probabilities": from 0 to 1; logit suspicion = logit g - logit line, so g itself at line 0.5.
        scale: Above 0, of scores: how far above the line is 0.73.
        first: The first opinion: a number, the line of `negatives.scores`, or another detector; one that learns is
            taught by its own `observe`, not through the guide.
        near: None, or how far from the first opinion's line a slot may be to be asked about: |score - first|, or
            |suspicion - 0.5| of a detector.
        budget: None, or the most pairs that are asked about in one call, the nearest to that line first.
        total: None, or the most pairs in all; `left` says how many remain.
        batch: How many pairs score_pairs gets at once; batches run over the rows, they do not stop at a query.
        cache: How many answers are kept for later calls, the newest. Leave it 0 if the guide itself is in training.

    Example:
        >>> import numpy as np, naysay as ns
        >>> guide = Guide(lambda anchors, ids: np.where(ids == 7, 3.0, -3.0), line=0.0, first=0.5, budget=2)
        >>> negatives = ns.Negatives(np.array([[7, 4, 9, -1]]), scores=np.array([[0.45, 0.6, 0.1, 0.0]]))
        >>> guide.suspicion(ns.Query([0]), negatives).round(2), guide.asked, guide.changed
        (array([[0.95, 0.05, 0.4 , 0.  ]]), 2, 2)
    """

    def __init__(
        self,
        score_pairs: OfPairs,
        line: float | None = None,
        *,
        margin: float | None = None,
        relative: bool = False,
        answers: str = "scores",
        scale: float = 1.0,
        first: float | Detector | None = None,
        near: float | None = None,
        budget: int | None = None,
        total: int | None = None,
        batch: int = 256,
        cache: int = 0,
    ) -> None:
        """Keep the settings; nothing is asked yet."""
        if not callable(score_pairs):
            raise_invalid("score_pairs", "a function score_pairs(anchors, ids)", type(score_pairs).__name__)
        check_one_of("answers", answers, ANSWERS)
        if (line is None) == (margin is None):
            raise_invalid("line", "given, or margin in its place", "neither" if line is None else "both")
        if not isinstance(relative, bool | np.bool_):
            raise_invalid("relative", "True or False", shown(relative))
        self.line, self.margin, self.relative, self.answers = line, margin, relative, answers
        if line is not None:
            self._check_line(line)
        if margin is not None:
            check_number("margin", margin, "a number of at least 0", lambda number: 0 <= number < np.inf)
            if answers != "scores":
                raise_invalid("answers", "'scores' with a margin", answers, "Probabilities are scores, too.")
        elif relative:
            raise_invalid("relative", "False without a margin", relative)
        self.scale = check_number("scale", scale, "a number above 0", lambda number: 0 < number < np.inf)
        if isinstance(first, type) or not (first is None or isinstance(first, Detector)):
            check_number("first", first, "a finite number, or a detector", np.isfinite)
        self.first, self.near, self.budget, self.total = first, near, budget, total
        for name, value in (("near", near), ("budget", budget), ("total", total)):
            if value is not None and first is None:
                raise_invalid("first", f"given with {name}, for the slots that are not asked about", None)
        if near is not None:
            check_number("near", near, "a number of at least 0", lambda number: number >= 0)
        for name, value in (("budget", budget), ("total", total)):
            if value is not None:
                check_whole(name, value, 0)
        self.score_pairs = score_pairs
        self.batch, self.cache = check_whole("batch", batch, 1), check_whole("cache", cache, 0)
        self.asked = self.changed = 0
        self._answers = Answers()

    def _check_line(self, line: float) -> None:
        if self.answers == "probabilities":
            rule = "above 0 and below 1, like a probability"
            check_number("line", line, rule, lambda number: 0 < number < 1)
        else:
            check_number("line", line, "a finite number", np.isfinite)

    @property
    def left(self) -> int | None:
        """How many pairs may still be asked about, None if there is no total."""
        return None if self.total is None else max(self.total - self.asked, 0)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) in [0, 1]: the guide's where it was asked, the first opinion's elsewhere."""
        check_asked(query, negatives)
        found, distance = self._first_opinion(query, negatives)
        open_slots = filled_slots(negatives) & (distance <= (np.inf if self.near is None else self.near))
        rows, slots = np.nonzero(open_slots)
        order = np.argsort(distance[rows, slots], kind="stable")
        rows, slots = rows[order], slots[order]
        pairs, places = self._needed(query, negatives, rows, slots)
        known = self._answers.look_up(pairs)
        asked_first = _in_order(places[: self._affordable(places, ~np.isnan(known))].reshape(-1))
        wanted = asked_first[np.isnan(known[asked_first])]
        known[wanted] = self._ask(query, pairs[wanted])
        answered = ~np.isnan(known[places]).any(axis=1)  # also slots beyond the budget whose answers are known
        rows, slots, places = rows[answered], slots[answered], places[answered]
        scores = known[places[:, 0]]
        verdict = self._verdict(scores, None if self.margin is None else known[places[:, 1]])
        if self.first is not None:
            self.changed += int(
                np.count_nonzero((verdict >= SUSPICION_THRESHOLD) != (found[rows, slots] >= SUSPICION_THRESHOLD))
            )
        found[rows, slots] = verdict
        self._answers.trim(self.cache)
        return as_suspicion(found, negatives)

    def _first_opinion(self, query: Query, negatives: Negatives) -> tuple[Floats, Floats]:
        """(B, K) suspicion before the guide is asked, and how far each slot is from the line."""
        if self.first is None:
            return np.zeros(negatives.shape), np.zeros(negatives.shape)
        if isinstance(self.first, Detector):
            found = np.array(to_numpy(self.first.suspicion(query, negatives)), np.float64)
            return found, np.abs(found - SUSPICION_THRESHOLD)
        scores = slot_scores(negatives)
        return _logistic(scores, self.first), np.abs(scores - self.first)

    def _needed(
        self, query: Query, negatives: Negatives, rows: NDArray[Any], slots: NDArray[Any]
    ) -> tuple[Pairs, NDArray[np.int64]]:
        """The distinct pairs that slots need, and which of them each slot does: (S, 1), with its positive (S, 2)."""
        anchors, asked = slot_pairs(query, negatives, rows, slots)
        items = [asked]
        if self.margin is not None:
            items.append(anchors if anchors.ndim == 2 else np.asarray(to_numpy(partners(query)))[rows])
        width = 2 if anchors.ndim == 1 else 6
        sides = (len(asked), width // 2)
        needed = [np.concatenate([part.reshape(sides) for part in (anchors, item)], 1) for item in items]
        pairs, places = np.unique(np.stack(needed, 1).reshape(-1, width), axis=0, return_inverse=True)
        return pairs, places.reshape(len(asked), len(needed))

    def _affordable(self, places: NDArray[np.int64], known: NDArray[np.bool_]) -> int:
        """How many slots, in order, can be asked about; an answer that is known, or asked for before, is free."""
        limits = [limit for limit in (self.budget, self.left) if limit is not None]
        if not limits or places.size == 0:
            return len(places)
        flat = places.reshape(-1)
        fresh = np.zeros(len(flat), np.int64)
        fresh[np.unique(flat, return_index=True)[1]] = 1
        cost = np.cumsum(np.where(known[flat], 0, fresh)).reshape(places.shape)[:, -1]
        return int(np.searchsorted(cost, min(limits), side="right"))

    def _ask(self, query: Query, pairs: Pairs) -> Floats:
        """The guide's scores of pairs, in batches; each is counted as it comes, and all are kept, also if one fails."""
        found: list[Floats] = [np.empty(0)]
        try:
            for start in range(0, len(pairs), self.batch):
                found.append(self._answered(query, pairs[start : start + self.batch]))
                self.asked += len(found[-1])
        finally:
            scores = np.concatenate(found)
            self._answers.add(pairs[: len(scores)], scores)
        return scores

    def _answered(self, query: Query, pairs: Pairs) -> Floats:
        """What the function says of one batch, as (n,) finite numbers."""
        rule = f"a function that answers with {len(pairs)} finite numbers for {len(pairs)} pairs"
        sides = _sides(pairs)
        scores = answers_of("score_pairs", self.score_pairs, query, sides, rule)
        if scores.shape not in ((len(pairs),), (len(pairs), 1)):
            raise_invalid("score_pairs", rule, f"shape {scores.shape}, from {pair_named(sides, 0)} on")
        scores = scores.reshape(-1)
        bad = ~np.isfinite(scores)
        if self.answers == "probabilities":
            rule, bad = rule.replace("finite numbers", "probabilities"), ~((scores >= 0) & (scores <= 1))
        if bad.any():
            got = f"{scores[bad][0]} for {pair_named(sides, int(bad.argmax()))} ({bad.sum()} such)"
            raise_invalid("score_pairs", rule, got)
        return scores

    def _verdict(self, scores: Floats, positives: Floats | None) -> Floats:
        """Suspicion from the guide's scores."""
        if positives is not None and self.margin is not None:
            lines = positives - self.margin * (np.abs(positives) if self.relative else 1.0)
            return on_its_side(_logistic(scores, lines, self.scale), scores > lines)
        line = 0.0 if self.line is None else self.line
        if self.answers == "scores":
            return _logistic(scores, line, self.scale)
        ahead, behind = scores * (1 - line), (1 - scores) * line
        return on_its_side(ahead / (ahead + behind), scores >= line)

    def state(self) -> dict[str, Any]:
        """The counts, the answers that are kept, and under "first/key" the state of a first opinion that has one."""
        return {"asked": self.asked, "changed": self.changed, **self._answers.state(), **joined_states(self._inner())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; refused, with nothing changed, if it is not whole."""
        inner = self._inner()
        if not isinstance(state, Mapping) or not set(_STATE) <= set(state):
            got = shown(sorted(map(str, state))) if isinstance(state, Mapping) else type(state).__name__
            raise_invalid("state", f"{sorted(_STATE)}, as Guide.state gave", got)
        asked, changed = (whole_of_state(name, state[name], 0) for name in ("asked", "changed"))
        answers = read_answers(state)
        first = parted_states({name: state[name] for name in state if name not in _STATE}, inner)
        for name, part in inner.items():
            part.restore(first[name])
        self.asked, self.changed, self._answers = asked, changed, answers

    def _inner(self) -> dict[str, Stateful]:
        return {"first": self.first} if isinstance(self.first, Stateful) else {}

    def __repr__(self) -> str:
        """The line and what was asked."""
        line = f"line={self.line}" if self.margin is None else f"margin={self.margin}"
        return f"Guide({line}, budget={self.budget}, total={self.total}; asked={self.asked}, changed={self.changed})"


def _logistic(scores: Floats, lines: Any, scale: float = 1.0) -> Floats:
    """1 / (1 + exp(-(score - line) / scale)), at least 0.5 from the line on and below it elsewhere."""
    with np.errstate(over="ignore"):
        found = 0.5 + 0.5 * np.tanh(0.5 * ((scores - lines) / scale))
    return on_its_side(found, scores >= lines)


def _in_order(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct numbers, in the order in which they first come."""
    distinct, first = np.unique(places, return_index=True)
    return distinct[np.argsort(first)]


def _sides(pairs: Pairs) -> Sides:
    """The anchors and the ids of pairs that were put side by side."""
    half = pairs.shape[1] // 2
    return (pairs[:, 0], pairs[:, 1]) if half == 1 else (pairs[:, :half], pairs[:, half:])
