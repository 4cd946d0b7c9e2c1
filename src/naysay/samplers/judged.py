"""Judged: a sampler whose negatives are checked by a detector and changed by a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import get_ident
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._state import all_or_none, joined_states, split_states
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import check_number, check_one_of, public, raise_invalid, shown
from naysay.detectors import policy as policies
from naysay.detectors._suspicion import threshold_of
from naysay.detectors.combined import Combined, Judgement, learns
from naysay.pools._slots import EXHAUSTED
from naysay.samplers._choose import take_kept, wanted_slots
from naysay.samplers._settings import check_base, check_on_short
from naysay.text import described
from naysay.types import Array, Detector, MadeOf, Negatives, Query, Sampler, Stateful, check_query

__all__ = ["Judged"]

_REFILL = 2.0  # candidates per slot, if not given
_MOST_THREADS = 16  # whose last candidates are kept


@final
@public
class Judged(MadeOf):
    """Draw candidates from a sampler, score them with a detector, and apply a policy.

    `suspicion` (B, K) is stored with the negatives. With "drop", `dropped` counts the suspicious candidates that come
    before the last one taken, under the name of the detector with the largest suspicion (ties: the first). log_q is
    None after "drop", the sampler's own after "reweight", and as `naysay.detectors.ignore` says after "ignore" and
    "attract".

    Detectors and samplers that learn must see the candidates before the policy: a quantile of the remaining ones would
    fall at every step. So if a part learns, the candidates of the last `sample` of each thread (16 at most) are kept,
    and `observe` replaces the negatives that `sample` returned by them.

    Cost: the sampler's for refill * k candidates, and the detector's for as many. Nothing is drawn twice.

    Args:
        sampler: Any sampler. It has already excluded known positives.
        detector: A detector, a `Combined`, or {name: detector}.
        policy: "drop": draw `refill` times as many candidates and take the first k below the threshold, in the
            sampler's order. "reweight", "attract", "ignore": draw k, and change them as the functions of these names.
            After "attract" pass `attract=negatives.relation == 1` to `losses.info_nce`: a loss that is only given the
            mask ignores these slots.
        threshold: The suspicion from which the policy acts. By default the detector's own `suspicion_threshold`, or 0.5
            if it has none. For "reweight" the default is all slots.
        rule: How to combine {name: detector}, as in `Combined`; "max" by default.
        refill: Candidates per slot, at least 1; 2 by default. With "drop" only.
        on_short: "pad" or "raise", if a row has fewer than k left. With "drop" only.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=4))
        >>> duplicates = ns.detectors.Duplicates(item_texts=["Paris", "paris.", "Rome", "Oslo"])
        >>> sampler = Judged(ns.samplers.Static(pool), {"duplicates": duplicates})
        >>> taken = sampler.sample(ns.Query([0], positives=[0]), 2, rng=ns.rng_for(0))
        >>> sorted(taken.ids[0].tolist())
        [2, 3]
    """

    _made_of = ("sampler", "detector")

    def __init__(
        self,
        sampler: Sampler,
        detector: Detector | Mapping[str, Detector],
        policy: str = "drop",
        *,
        threshold: float | None = None,
        rule: str | None = None,
        refill: float | None = None,
        on_short: str | None = None,
    ) -> None:
        """Store the parts."""
        check_base("sampler", sampler)
        check_one_of("policy", policy, ("drop", "reweight", "attract", "ignore"))
        if threshold is not None:
            check_number("threshold", threshold, at_least=0, at_most=1)
        for name, value in (("refill", refill), ("on_short", on_short)):
            if value is not None and policy != "drop":
                raise_invalid(name, f"left out with policy={policy!r}, which empties no slot", shown(value))
        self.sampler, self.policy, self.on_short = sampler, policy, "pad" if on_short is None else on_short
        check_on_short(self.on_short)
        self.threshold = threshold
        self.refill = _REFILL if refill is None else check_number("refill", refill, at_least=1, finite=True)
        self.detector = _combined(detector, rule)
        self.distinct = getattr(sampler, "distinct", None)
        self._last: dict[int, tuple[Array, Array, Negatives]] = {}  # of a thread: anchors, ids returned, and candidates
        self._lock, self._turns = Lock(), Lock()  # of `_last`, and of changes to the parts

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives."""
        check_query(query)
        if self.policy == "drop":
            candidates, negatives = self._drop(query, k, rng)
        else:
            candidates = self.sampler.sample(query, k, rng=rng)
            suspicion = self.detector.judge(query, candidates).suspicion
            if self.policy == "reweight":
                negatives = policies.reweight(candidates, suspicion, threshold=self.threshold)
            elif self.policy == "attract":
                negatives = policies.attract(candidates, suspicion, threshold=self._acts_from)
            else:
                negatives = policies.ignore(candidates, suspicion, threshold=self._acts_from)
        if self._learning():
            self._keep(query, candidates, negatives)
        return negatives

    def _drop(self, query: Query, k: Any, rng: np.random.Generator) -> tuple[Negatives, Negatives]:
        """More candidates than k, and the first k of each row that are not suspicious."""
        counts, width = wanted_slots(k, len(query), rng)
        same_for_all = np.ndim(to_numpy(k)) == 0 and bool((counts == width).all())
        if same_for_all:
            more: Any = int(np.ceil(self.refill * width))
        else:
            more = np.ceil(self.refill * counts).astype(np.int64)
        candidates = self.sampler.sample(query, more, rng=rng)
        judgement = self.detector.judge(query, candidates)
        marked = policies.ignore(candidates, judgement.suspicion, threshold=self._acts_from)
        flagged = np.asarray(to_numpy(candidates.mask & ~marked.mask))
        kept = (np.asarray(to_numpy(candidates.ids)) >= 0) & ~flagged
        judged = replace(candidates, suspicion=marked.suspicion)
        taken = take_kept(judged, kept, query, counts, width, self.on_short)
        return candidates, replace(taken, dropped=_counts(candidates, judgement, flagged, kept, counts))

    @property
    def _acts_from(self) -> float:
        """The suspicion from which the policy acts now: a detector that is fitted again may have moved its own."""
        return threshold_of(self.detector) if self.threshold is None else self.threshold

    def observe(self, query: Query, negatives: Negatives, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Update the detectors and the sampler, those that learn, with the candidates of a step.

        Pass what the last `sample` returned: the parts get the candidates that it was made of. Other negatives are
        passed on unchanged, as positive_scores (B,) and vectors are.

        Raises:
            NaysayError: If a part raises; those with a state stay unchanged. With "drop" and a detector that learns,
                also for judged negatives of an earlier `sample` or of another process, because the dropped candidates
                are missing.
        """
        before = self._before_policy(query, negatives)
        all_or_none(
            self._turns,
            self._learning(),
            lambda _, part: part.observe(query, before, positive_scores=positive_scores, vectors=vectors),
        )

    def _learning(self) -> dict[str, Any]:
        """The parts that learn; the sampler last, because its state may be large."""
        return {name: part for name, part in (("detector", self.detector), ("sampler", self.sampler)) if learns(part)}

    def _keep(self, query: Query, candidates: Negatives, negatives: Negatives) -> None:
        """Keep the candidates of these negatives for `observe`."""
        with self._lock:
            self._last.pop(get_ident(), None)
            self._last[get_ident()] = query.anchors, negatives.ids, candidates
            if len(self._last) > _MOST_THREADS:
                del self._last[next(iter(self._last))]  # of the thread that has not sampled for the longest

    def _before_policy(self, query: Query, negatives: Negatives) -> Negatives:
        """The candidates of the last `sample`, if it returned these negatives."""
        if not isinstance(query, Query) or not isinstance(negatives, Negatives):
            return negatives  # each part raises, or does without
        with self._lock:
            samples = list(self._last.values())
        for anchors, ids, candidates in reversed(samples):
            if _same(anchors, query.anchors) and _same(ids, negatives.ids):
                return candidates
        if self.policy == "drop" and self.detector.learns and negatives.suspicion is not None:
            rule = "what the last `sample` returned for these anchors, or candidates without suspicion"
            advice = 'Call observe before the next sample, in the same process, or use policy="ignore".'
            raise_invalid("negatives", rule, "others, without the dropped candidates", advice)
        return negatives

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Return {"sampler/key": value, "detector/name/key": value} of the parts that have a state."""
        return joined_states(self._stateful())

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. If a part raises, all stay unchanged."""
        parts = self._stateful()
        states = split_states(state, parts)
        all_or_none(self._turns, parts, lambda name, part: part.restore(states[name]))

    def _stateful(self) -> dict[str, Stateful]:
        parts: dict[str, Stateful] = {"detector": self.detector}
        return {**parts, "sampler": self.sampler} if isinstance(self.sampler, Stateful) else parts

    def __repr__(self) -> str:
        return described(self)


def _same(one: Array, other: Array) -> bool:
    """Whether two arrays, NumPy or torch, hold the same ids."""
    return one is other or np.array_equal(to_numpy(one), to_numpy(other))


def _combined(detector: Any, rule: str | None) -> Combined:
    """The detector or detectors as a `Combined`; one detector is named after its class."""
    if isinstance(detector, Mapping):
        return Combined(detector, "max" if rule is None else rule)
    if rule is not None:
        raise_invalid("rule", "left out unless detector is a dictionary", shown(rule), "A Combined has its own rule.")
    if isinstance(detector, Combined):
        return detector
    if isinstance(detector, type) or not isinstance(detector, Detector):
        expected = "a detector with a method suspicion(query, negatives), or a dictionary of them"
        raise_invalid("detector", expected, type(detector).__name__)
    return Combined({type(detector).__name__.lower(): detector})


def _counts(
    candidates: Negatives,
    judgement: Judgement,
    flagged: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> dict[str, int]:
    """What was left out, by reason: flagged before the row was full, or missing."""
    before_full = flagged & (np.cumsum(kept, axis=1) < counts[:, None])
    blamed = np.bincount(judgement.blame[before_full], minlength=len(judgement.names)).tolist()
    filled = np.count_nonzero(kept | flagged, axis=1)
    dropped = {reason: count for reason, count in candidates.dropped.items() if reason != EXHAUSTED}
    reasons = [*zip(judgement.names, blamed, strict=True), (EXHAUSTED, int(np.maximum(counts - filled, 0).sum()))]
    for reason, count in reasons:
        if count:
            dropped[reason] = dropped.get(reason, 0) + count
    return dropped
