"""Judged: a sampler whose negatives a detector has looked at, and a policy has acted on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import like_query
from naysay.arrays import to_numpy
from naysay.checks import check_one_of, public, raise_invalid, shown
from naysay.detectors import policy as policies
from naysay.detectors._part_states import all_or_none, joined_states, parted_states
from naysay.detectors._slots import SUSPICION_THRESHOLD
from naysay.detectors.combined import Combined, Judgement, learns
from naysay.pools._slots import EXHAUSTED, ON_SHORT
from naysay.samplers._candidates import wanted_slots
from naysay.samplers._numbers import check_number
from naysay.samplers._top_k import take
from naysay.types import Array, Detector, Negatives, Query, Sampler, Stateful, check_query

POLICIES = ("drop", "reweight", "attract", "ignore")
_REFILL = 2.0


@final
@public
class Judged:
    """Ask a sampler for candidates, a detector about them, and hand out those that can be trusted.

    `dropped` of "drop" counts, under each detector's name, the suspicious candidates that stood before the last one
    that was taken: those further back would not have been taken either. A candidate counts under the detector that
    suspects it most, of equal ones the first. {"exhausted": n} are slots for which the sampler had no candidate at all;
    what else it counted is that of its larger answer. `suspicion` (B, K) stands beside what is kept. log_q is None
    after "drop", as in `naysay.detectors.drop`, and the sampler's own after the others.

    Parts that learn are taught what was drawn, before the policy: a quantile of what was left over would sink for ever.
    So where one learns, the candidates of the last `sample` are kept until the next, and `observe` takes the negatives
    that it handed out: as they are, on another device, or with other scores, which nobody looks at.

    Cost: the sampler's for refill * k, and the detector's for as many. Nothing is tried twice.

    Args:
        sampler: Any sampler; it has excluded what is known.
        detector: A detector, or several: a `Combined`, or {name: detector} with `rule` ("max" by default).
        policy: "drop": k negatives below the line; the sampler is asked for `refill` times as many, and the first k
            of them, in its order, are taken. "reweight", "attract", "ignore": the sampler's k, changed as the
            functions of these names do.
        line: From which suspicion on to act; for "reweight" None (the default) is every slot.
        refill: How many candidates for each slot, at least 1; 2 by default. With "drop" only.
        on_short: "pad" or "raise", if a row has fewer than k left. With "drop" only.

    Example:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=4))
        >>> from naysay.detectors.duplicates import Duplicates
        >>> duplicates = Duplicates(item_texts=["Paris", "paris.", "Rome", "Oslo"])
        >>> sampler = Judged(ns.samplers.Static(pool), {"duplicates": duplicates})
        >>> taken = sampler.sample(ns.Query([0], positives=[0]), 2, rng=ns.rng_for(0))
        >>> sorted(taken.ids[0].tolist())
        [2, 3]
    """

    def __init__(
        self,
        sampler: Sampler,
        detector: Detector | Mapping[str, Detector],
        policy: str = "drop",
        *,
        line: float | None = None,
        rule: str | None = None,
        refill: float | None = None,
        on_short: str | None = None,
    ) -> None:
        """Keep the parts."""
        if isinstance(sampler, type) or not isinstance(sampler, Sampler):
            wanted = "a sampler, with a method sample(query, k, *, rng)"
            raise_invalid("sampler", wanted, type(sampler).__name__)
        check_one_of("policy", policy, POLICIES)
        if line is not None:
            check_number("line", line, "a number from 0 to 1", lambda number: 0 <= number <= 1)
        for name, value in (("refill", refill), ("on_short", on_short)):
            if value is not None and policy != "drop":
                raise_invalid(name, f"None with policy={policy!r}, which empties no slot", shown(value))
        if on_short is not None:
            check_one_of("on_short", on_short, ON_SHORT)
        self.sampler, self.policy, self.on_short = sampler, policy, on_short or "pad"
        self.line = SUSPICION_THRESHOLD if line is None and policy != "reweight" else line
        self.refill = _REFILL
        if refill is not None:
            self.refill = check_number("refill", refill, "a number of at least 1", lambda share: 1 <= share < np.inf)
        self.detector = _combined(detector, rule)
        self.distinct = getattr(sampler, "distinct", None)
        self._last: tuple[Array, Array, Negatives] | None = None  # anchors and ids handed out, and what was drawn

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives; k is a number, K = ceil(k), realised per row; or (B,) of them, and K the largest."""
        check_query(query)
        if self.policy != "drop":
            drawn = self.sampler.sample(query, k, rng=rng)
            found = self.detector.judge(query, drawn).suspicion
            if self.policy == "reweight":
                return self._handed(query, drawn, policies.reweight(drawn, found, line=self.line))
            act = policies.attract if self.policy == "attract" else policies.ignore
            return self._handed(query, drawn, act(drawn, found, line=self._least))
        counts, width = wanted_slots(k, len(query), rng)
        more = np.ceil(self.refill * counts).astype(np.int64)
        one_for_all = np.ndim(to_numpy(k)) == 0 and bool((counts == width).all())
        drawn = self.sampler.sample(query, int(np.ceil(self.refill * width)) if one_for_all else more, rng=rng)
        judgement = self.detector.judge(query, drawn)
        marked = policies.ignore(drawn, judgement.suspicion, line=self._least)
        flagged = np.asarray(to_numpy(drawn.mask & ~marked.mask))
        kept = np.asarray(to_numpy(drawn.ids)) >= 0
        kept &= ~flagged
        order = np.argsort(~kept, axis=1, kind="stable")
        first = like_query(order, query), like_query(np.take_along_axis(kept, order, axis=1), query)
        judged = replace(drawn, suspicion=marked.suspicion)
        taken = take(judged, *first, counts, width, self.on_short, drawn.scores)
        return self._handed(query, drawn, replace(taken, dropped=_counts(drawn, judgement, flagged, kept, counts)))

    @property
    def _least(self) -> float:
        return SUSPICION_THRESHOLD if self.line is None else self.line

    def observe(self, query: Query, negatives: Negatives, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Teach the detectors and the sampler, those of them that learn from a step, what was drawn for it.

        If one part refuses, those that have a state stay as they were.

        Args:
            negatives: What the last `sample` handed out, for the same anchors; the parts get the candidates that it
                was made of. Others are handed on as they are, candidates that no policy has touched; with "drop"
                and a detector that learns, others that were judged are refused, because what was dropped is not in
                them: those of an earlier `sample`, or of another process.
        """
        seen, told = self._before_policy(query, negatives), {"positive_scores": positive_scores, "vectors": vectors}
        all_or_none(self._learning(), lambda _, part: part.observe(query, seen, **told))

    def _learning(self) -> dict[str, Any]:
        """The parts that learn; the sampler last, whose state may be large."""
        return {name: part for name, part in (("detector", self.detector), ("sampler", self.sampler)) if learns(part)}

    def _handed(self, query: Query, drawn: Negatives, negatives: Negatives) -> Negatives:
        """The negatives; what they were drawn from is kept for `observe`, if anything learns."""
        if self._learning():
            self._last = query.anchors, negatives.ids, drawn
        return negatives

    def _before_policy(self, query: Query, negatives: Negatives) -> Negatives:
        """What was drawn, if these are the negatives that the last `sample` made of it."""
        if not isinstance(query, Query) or not isinstance(negatives, Negatives):
            return negatives  # for each part to raise_invalid, or to do without
        if self._last is not None:
            anchors, ids, drawn = self._last
            if _same(anchors, query.anchors) and _same(ids, negatives.ids):
                return drawn
        if self.policy == "drop" and self.detector.learns and negatives.suspicion is not None:
            rule = "what the last sample handed out for these anchors, or candidates that nobody has judged"
            advice = 'Observe each step before the next sample, in the same process, or use policy="ignore".'
            raise_invalid("negatives", rule, "others, without what was dropped", advice)
        return negatives

    def state(self) -> dict[str, Any]:
        """{"sampler/key": value, "detector/name/key": value} of the parts that have a state; no batch is in it."""
        return joined_states(self._keeping())

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; if a part refuses its own, all stay as they were."""
        parts = self._keeping()
        found = parted_states(state, parts)
        all_or_none(parts, lambda name, part: part.restore(found[name]))

    def _keeping(self) -> dict[str, Stateful]:
        """The parts that have a state."""
        parts: dict[str, Stateful] = {"detector": self.detector}
        return {**parts, "sampler": self.sampler} if isinstance(self.sampler, Stateful) else parts

    def __repr__(self) -> str:
        """The parts and the policy."""
        return f"Judged({self.sampler!r}, {self.detector!r}, policy={self.policy!r}, line={self.line})"


def _same(one: Array, other: Array) -> bool:
    """Whether two arrays, NumPy or torch, hold the same ids."""
    return one is other or np.array_equal(to_numpy(one), to_numpy(other))


def _combined(detector: Any, rule: str | None) -> Combined:
    """One detector under its class's name, several by the rule, or what is combined already."""
    if isinstance(detector, Mapping):
        return Combined(detector, "max" if rule is None else rule)
    if rule is not None:
        raise_invalid("rule", "None unless detector is a dictionary", shown(rule), "A Combined has a rule of its own.")
    if isinstance(detector, Combined):
        return detector
    if isinstance(detector, type) or not isinstance(detector, Detector):
        wanted = "a detector with a method suspicion(query, negatives), or a dictionary of them"
        raise_invalid("detector", wanted, type(detector).__name__)
    return Combined({type(detector).__name__.lower(): detector})


def _counts(
    drawn: Negatives,
    judgement: Judgement,
    flagged: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> dict[str, int]:
    """What was left out, by reason: flagged while the row still had room, or never there."""
    in_the_way = flagged & (np.cumsum(kept, axis=1) < counts[:, None])
    blamed = np.bincount(judgement.blame[in_the_way], minlength=len(judgement.names)).tolist()
    held = np.count_nonzero(kept | flagged, axis=1)
    dropped = {reason: count for reason, count in drawn.dropped.items() if reason != EXHAUSTED}
    reasons = [*zip(judgement.names, blamed, strict=True), (EXHAUSTED, int(np.maximum(counts - held, 0).sum()))]
    for reason, count in reasons:
        if count:
            dropped[reason] = dropped.get(reason, 0) + count
    return dropped
