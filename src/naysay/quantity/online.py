"""Estimate k during the run: probes over uniform negatives, a curve fitted to them, and its best k."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import (
    as_floats,
    check_all,
    check_bool,
    check_kind,
    check_number,
    check_one_of,
    check_whole,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.errors import NaysayError
from naysay.quantity._fit import MIN_STEPS, fit, probe
from naysay.quantity.effectiveness import MAX_K_MAX, check_weight
from naysay.quantity.forecast import OnlineEstimate, forecast
from naysay.quantity.schedules import adaptive

SPLITS = ("validation", "training")
_COLUMNS = {"split": np.int8, "step": np.int64, "auc": np.float64, "error": np.float64, "comparisons": np.float64}
_SETTINGS = ("steps", "labels", "same_pairs", "start", "tolerance", "confidence", "weight", "k_max")


@final
@public
class Online:
    """Estimate k from small probes while the real run goes on, without the run at k = 1 that `estimate` needs.

    Every few per cent of the run, and once before step 0, score n pairs with m *uniform* negatives each: held-out pairs
    for "validation", training pairs for "training". Hard negatives, or those that the run trains on, would give another
    AUC than the formulas mean. Only the AUC of a probe and its error are stored.

    The model's separation is fitted by mu'(t) = start + (end - start)(1 - e^(-t / tau)), with start = 0 (chance) unless
    the probes contradict it, as they do for a pretrained encoder. t counts from step 0, unless the probes contradict
    that too, as they do for a factorisation from small vectors: it then counts from the probe after which the curve
    rises. k is the best for the mean of v from step 0 to 3 tau after that or the end of the run, on 60 points. The
    interval and the regret come from 400 curves drawn from the error of the fit, always with the same normal numbers:
    equal records give equal estimates.

    There is no estimate yet (`ready` is False, `why` has the reason, `estimate` raises) while, in this order,

    1. a required split has probes at fewer than 5 steps;
    2. a curve has not risen beyond its error, or its last probe is not past tau beyond its error: at the given
       confidence, less than 63 % of the rise may have been observed, and the end would be a guess;
    3. the probes deviate from the curve by more than 5 % of its rise, with neighbours on the same side more often than
       in 1 % of runs by chance: the run does not have the assumed shape;
    4. at the given confidence, k loses more than `tolerance` of v on the drawn curves. The width of the interval does
       not matter: where v is flat, a wide interval does no harm.

    Wu, Wu and Huang. Rethinking InfoNCE: How Many Negative Samples Do You Need? Probes and fit are ours, as are the
    deviations: the run has k above 1, unlike the paper's, and the labels' mu is taken from the same run.

    Cost: O(n m) a probe, which is stored as five numbers. The first estimate after a probe costs a fit, O(probes), and
    a product of matrices of a few million cells; `k_at` is then a lookup.

    Args:
        steps: The number of steps of the run.
        labels: Where the separation mu of the labels comes from. "training": the end of the curve of training
            probes, as in the paper. "validation": the end of the validation curve, as if the model could become as
            good as its labels; if these are better, k mostly comes out too low.
        same_pairs: Whether every probe scores the same pairs and negatives. Their errors are then correlated, which
            makes the curve smooth and the interval wider. False: new ones each time, which is more informative.
        start: k while there is no estimate; 4 is the smallest that any label quality gives on the paper's curve.
        tolerance: The share of the best effectiveness that k may lose.
        confidence: The confidence of that, and of the interval.
        weight: w, the weight of good and bad samples against easy ones.
        k_max: All k from 1 to k_max are tried.

    Examples:
        >>> import naysay as ns
        >>> online, rng = Online(steps=1000), ns.rng_for(0)
        >>> for step in range(0, 601, 50):
        ...     for split in ("validation", "training"):
        ...         positive = rng.normal(2 * (1 - np.exp(-step / 300)), 1, 500)
        ...         online.record(step, positive, rng.normal(0, 1, (500, 8)), split)
        >>> found = online.estimate()
        >>> found.k, found.low, found.high
        (12, 8, 16)
    """

    def __init__(
        self,
        steps: int,
        *,
        labels: str = "training",
        same_pairs: bool = False,
        start: float = 4.0,
        tolerance: float = 0.02,
        confidence: float = 0.9,
        weight: float = 0.9,
        k_max: int = 1000,
    ) -> None:
        """Start with no probes."""
        self.steps = check_whole("steps", steps, 1)
        check_one_of("labels", labels, SPLITS[::-1])
        self.labels = labels
        self.same_pairs = check_bool("same_pairs", same_pairs)
        self.start = check_number("start", start, at_least=1, finite=True)
        self.tolerance = check_number("tolerance", tolerance, above=0, below=1)
        self.confidence = check_number("confidence", confidence, above=0.5, below=1)
        self.weight = check_weight(weight)
        self.k_max = check_whole("k_max", k_max, 1, MAX_K_MAX)
        self._lock = Lock()
        # Both are replaced, never changed: (split, step, auc, error, comparisons) of each probe, and the estimate that
        # belongs to them, or why there is none.
        self._probes: tuple[tuple[float, ...], ...] = ()
        self._answer: OnlineEstimate | str | None = None

    def record(self, step: int, positive: Any, negatives: Any, split: str = "validation", *, mask: Any = None) -> None:
        """Store the AUC of one probe.

        Args:
            step: The step of the probe, from 0 (before the first update) to `steps`, and not before the last one of
                its split. Several probes of one step count as several observations.
            positive: (n,) scores of the pairs, NumPy or torch.
            negatives: (n, m) scores of uniform negatives, those of an anchor in its row.
            split: "validation" (held-out pairs) or "training".
            mask: (n, m) whether a slot holds a negative, `Negatives.mask`; None: all do.
        """
        at = self._checked_step(step)
        check_one_of("split", split, SPLITS)
        if split == "training" and self.labels == "validation":
            advice = 'Create Online(steps, labels="training") to use them.'
            raise_invalid("split", '"validation" with labels="validation"', repr(split), advice)
        which, measured = SPLITS.index(split), probe(positive, negatives, mask)
        with self._lock:
            before = max((one[1] for one in self._probes if one[0] == which), default=0)
            if at < before:
                advice = "Create a new Online for a new run, or restore the state that belongs to this step."
                raise_invalid("step", f"at least {before}, the last {split} step", at, advice)
            new = (which, at, measured.auc, measured.error, measured.comparisons)
            self._probes, self._answer = (*self._probes, new), None

    @property
    def ready(self) -> bool:
        """Whether there is an estimate."""
        return isinstance(self._answered(), OnlineEstimate)

    @property
    def why(self) -> str:
        """Why there is no estimate yet, in a sentence; empty if there is one."""
        answer = self._answered()
        return answer if isinstance(answer, str) else ""

    def estimate(self) -> OnlineEstimate:
        """Return the best k of the whole run, with its interval.

        Raises:
            NaysayError: If there is no estimate yet, with the reason (`why`).
        """
        answer = self._answered()
        if isinstance(answer, str):
            raise NaysayError(answer)
        return answer

    def k_at(self, step: int) -> float:
        """Return the k to use now: `start` while there is no estimate, then adaptive(peak=k, steps) with the latest k.

        Args:
            step: From 0 to `steps`.
        """
        at, answer = self._checked_step(step), self._answered()
        return self.start if isinstance(answer, str) else float(adaptive(answer.k, self.steps)(at))

    def _checked_step(self, step: Any) -> int:
        at = check_whole("step", step, 0)
        if at > self.steps:
            advice = "Create an Online with the true number of steps."
            raise_invalid("step", f"at most {self.steps}, the steps of the run", at, advice)
        return at

    def _answered(self) -> OnlineEstimate | str:
        """The estimate, or why there is none; computed once after each probe, outside the lock."""
        with self._lock:
            probes, answer = self._probes, self._answer
        if answer is None:
            try:
                answer = self._estimated(np.array(probes, np.float64).reshape(-1, len(_COLUMNS)))
            except NaysayError as error:
                answer = str(error)
            with self._lock:
                if self._probes is probes:
                    self._answer = answer
        return answer

    def _estimated(self, probes: NDArray[np.float64]) -> OnlineEstimate:
        curves = {}
        for which, split in enumerate(SPLITS if self.labels == "training" else SPLITS[:1]):
            _, step, auc, _, comparisons = probes[probes[:, 0] == which].T
            n_steps = len(np.unique(step))
            if n_steps < MIN_STEPS:
                advice = "Record a probe before step 0 and every few per cent of the run."
                if split == "training":
                    advice = 'Record training pairs too, or create Online(steps, labels="validation").'
                raise_invalid(split, f"recorded at {MIN_STEPS} steps or more", n_steps, advice)
            curves[split] = fit(step, auc, comparisons, same_pairs=self.same_pairs)
        return forecast(
            curves,
            self.steps,
            weight=self.weight,
            k_max=self.k_max,
            confidence=self.confidence,
            tolerance=self.tolerance,
        )

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Return all probes and the number of steps, without the settings.

        Returns:
            "steps", and arrays (probes,) in order: "split" (0 validation, 1 training), "step", "auc", "error" (of the
            AUC) and "comparisons" (its effective sample size).
        """
        columns = list(zip(*self._probes, strict=True)) or [()] * len(_COLUMNS)
        arrays = {name: np.array(column, _COLUMNS[name]) for name, column in zip(_COLUMNS, columns, strict=True)}
        return {"steps": self.steps, **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. If it is invalid, nothing changes.

        Args:
            state: What `state` returned, of a run of the same number of steps.

        Raises:
            NaysayError: If the state is incomplete, inconsistent, or of another run length.
        """
        check_kind("state", state, Mapping, "what Online.state returned")
        missing = [name for name in ("steps", *_COLUMNS) if name not in state]
        if missing:
            raise_invalid("state", "what Online.state returned", f"no {missing[0]!r} in {shown(list(state))}")
        steps = check_number("steps", state["steps"])
        if steps != self.steps:
            advice = "Create an Online with that number."
            raise_invalid("state", f"of a run of {self.steps} steps", f"{steps:g}", advice)
        # As int64: a difference of unsigned numbers is never negative.
        split, step = (whole_numbers(name, to_numpy(state[name])).astype(np.int64) for name in ("split", "step"))
        parts = {name: as_floats(name, state[name]) for name in ("auc", "error", "comparisons")}
        for name, part in {"split": split, **parts}.items():
            if part.shape != step.shape:
                raise_invalid(name, f"of shape {step.shape}, like step", f"shape {part.shape}")
        splits = len(SPLITS) if self.labels == "training" else 1
        backward = np.zeros(len(step), bool)
        for which in range(splits):
            rows = np.flatnonzero(split == which)
            backward[rows[1:]] = np.diff(step[rows]) < 0
        check_all("split", split, (split >= 0) & (split < splits), f"one of the {splits} in use")
        check_all("step", step, (step >= 0) & (step <= self.steps) & ~backward, f"rising, from 0 to {self.steps}")
        for name in ("auc", "error"):
            check_all(name, parts[name], (parts[name] >= 0) & (parts[name] <= 1), "between 0 and 1")
        comparisons = parts["comparisons"]
        check_all("comparisons", comparisons, np.isfinite(comparisons) & (comparisons >= 2), "finite and at least 2")
        probes = tuple(zip(*(column.tolist() for column in (split, step, *parts.values())), strict=True))
        with self._lock:
            self._probes, self._answer = probes, None

    def __repr__(self) -> str:
        """All settings, and how many probes there are."""
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in _SETTINGS)
        probes = self._probes
        counts = (f"{sum(one[0] == which for one in probes)} {split}" for which, split in enumerate(SPLITS))
        return f"Online({settings}; {', '.join(counts)} probes)"
