"""How many negatives, found during the run: probes of uniform negatives, the curve through them, and its best k."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    as_floats,
    check_all,
    check_lengths,
    check_number,
    check_one_of,
    check_whole,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.errors import NaysayError
from naysay.quantity._fit import fit
from naysay.quantity._probe import probe
from naysay.quantity._weight import check_weight
from naysay.quantity.effectiveness import check_k_max
from naysay.quantity.forecast import OnlineEstimate, outlook
from naysay.quantity.schedules import adaptive

SPLITS = ("validation", "training")
_COLUMNS = (
    ("split", np.int8),
    ("step", np.int64),
    ("auc", np.float64),
    ("error", np.float64),
    ("comparisons", np.float64),
)
LEAST = 5  # steps with a probe: three numbers are fitted at most, and two are left to speak against them


@final
@public
class Online:
    """The k of `estimate`, without the run at k = 1 that it needs: from small probes while the real run goes on.

    Every few per cent of the run, and once before step 0, score n pairs with m *uniform* negatives each: held-out pairs
    for "validation", training pairs for "training". Hard negatives, or those that the run trains on, would give another
    AUC than the formulas mean. What is kept of a probe is its AUC and error.

    The model's separation is fitted by mu'(t) = start + (end - start)(1 - e^(-t / tau)), start = 0 (chance) unless the
    probes speak against it, as they do for an encoder that was trained before. k is the best for the mean of v from
    step 0 to 3 tau or the end of the run, on 60 points. Low, high and regret come from 400 curves drawn by the error
    of the fit, always with the same normal numbers: equal records give equal answers.

    It cannot tell, and `estimate` refuses, `ready` is False and `why` is the sentence, in this order, while

    1. a split that it needs has probes at fewer than 5 steps;
    2. a curve has not risen beyond its error, or its last probe is not past tau beyond its error: with the confidence
       asked for, less than 63 % of the way may have been seen, and the end would be a guess;
    3. the probes bend away from the curve by more than 5 % of its rise, neighbours on the same side more often than
       once in a hundred by chance: the run is not of the shape assumed;
    4. with the confidence asked for, k loses more than `tolerance` of v on the curves that the probes leave open. Not
       the width of the interval decides: where v is flat, a wide interval does no harm.

    Wu, Wu and Huang. Rethinking InfoNCE: How Many Negative Samples Do You Need? Probes and fit are ours, as are the
    deviations: the run has k above 1, which the paper's has not, and the labels' mu is taken from the same run.

    Cost: O(n m) a probe, five numbers to keep it. After a probe the next question costs a fit, O(probes), and a product
    of matrices of a few million cells; `k_at` is then a lookup.

    Args:
        steps: How many steps the run will have.
        labels: Where the separation mu of the labels comes from. "training": from probes of training pairs, as the
            end of their curve; this is the paper's. "validation": from the end of the validation curve, as if the
            model could become as good as its labels; where these are better, k mostly comes out too low.
        same_pairs: Whether every probe scores the same pairs and negatives. Their errors then move together, which
            makes the curve smooth and the interval wider. False: new ones each time, which says more.
        start: K while it cannot be told; 4 is the least that any label quality gives on the paper's curve.
        tolerance: How much effectiveness k may lose, as a share.
        confidence: How sure that has to be; also that of the interval.
        weight: W of good and bad samples against easy ones.
        k_max: All k from 1 to k_max are tried.

    Example:
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
        """Nothing recorded yet."""
        self.steps = check_whole("steps", steps, 1)
        check_one_of("labels", labels, SPLITS[::-1])
        self.labels = labels
        if not isinstance(same_pairs, bool | np.bool_):
            raise_invalid("same_pairs", "True or False", shown(same_pairs))
        self.same_pairs = bool(same_pairs)
        self.start = check_number("start", start)
        if not 1 <= self.start < np.inf:
            raise_invalid("start", "finite and at least 1", start)
        self.tolerance = _share("tolerance", tolerance, 0)
        self.confidence = _share("confidence", confidence, 0.5)
        self.weight = check_weight(weight)
        self.k_max = check_k_max(k_max)
        self._probes: list[tuple[int, int, float, float, float]] = []  # split, step, auc, error, comparisons
        self._answer: OnlineEstimate | str | None = None  # what `estimate` gives, or why it refuses

    def record(self, step: int, positive: Any, negatives: Any, split: str = "validation", *, mask: Any = None) -> None:
        """Keep the AUC of one probe.

        Args:
            step: When it was taken, from 0 (before the first update) to `steps`; never before the last one of its
                split. Several probes of one step are several looks at it.
            positive: (n,) scores of the pairs, NumPy or torch.
            negatives: (n, m) scores of uniform negatives, those of an anchor in its row.
            split: "validation" (held-out pairs) or "training".
            mask: (n, m) whether a slot holds a negative, `Negatives.mask`; None: all do.
        """
        at = check_whole("step", step, 0)
        if at > self.steps:
            advice = "Make an Online of the true length."
            raise_invalid("step", f"at most {self.steps}, the steps of the run", at, advice)
        check_one_of("split", split, SPLITS)
        if split == "training" and self.labels == "validation":
            advice = 'Make it Online(steps, labels="training") to use them.'
            raise_invalid("split", '"validation" where the labels are read from it', repr(split), advice)
        which = SPLITS.index(split)
        before = max((one[1] for one in self._probes if one[0] == which), default=0)
        if at < before:
            advice = "Make a new Online for a new run, or restore the state that belongs to this step."
            raise_invalid("step", f"at least {before}, the last {split} step", at, advice)
        found = probe(positive, negatives, mask)
        self._probes.append((which, at, found.auc, found.error, found.comparisons))
        self._answer = None

    @property
    def ready(self) -> bool:
        """Whether `estimate` has an answer."""
        return isinstance(self._answered(), OnlineEstimate)

    @property
    def why(self) -> str:
        """What is missing, in a sentence; empty if nothing is."""
        answer = self._answered()
        return answer if isinstance(answer, str) else ""

    def estimate(self) -> OnlineEstimate:
        """The best k of the whole run, with its interval; refused, with what is missing, while it cannot be told."""
        answer = self._answered()
        if isinstance(answer, str):
            raise NaysayError(answer)
        return answer

    def k_at(self, step: int) -> float:
        """What to use now: `start` while k cannot be told, then `adaptive(peak=k, steps)` with the latest k."""
        at = check_whole("step", step, 0)
        if at > self.steps:
            raise_invalid("step", f"at most {self.steps}, the steps of the run", at)
        answer = self._answered()
        return self.start if isinstance(answer, str) else float(adaptive(answer.k, self.steps)(at))

    def _answered(self) -> OnlineEstimate | str:
        """The answer or the refusal, made once after each probe."""
        if self._answer is None:
            try:
                self._answer = self._estimated()
            except NaysayError as refusal:
                self._answer = str(refusal)
        return self._answer

    def _estimated(self) -> OnlineEstimate:
        record = {name: values for name, values in self.state().items() if name != "steps"}
        curves = {}
        for which, split in enumerate(SPLITS if self.labels == "training" else SPLITS[:1]):
            chosen = {name: np.asarray(values)[record["split"] == which] for name, values in record.items()}
            seen = len(np.unique(chosen["step"]))
            if seen < LEAST:
                advice = "Record a probe before step 0 and every few per cent of the run."
                if split == "training":
                    advice = 'Record training pairs too, or make it Online(steps, labels="validation").'
                raise_invalid(split, f"recorded at {LEAST} steps or more", seen, advice)
            probes = (chosen["step"].astype(np.float64), chosen["auc"], chosen["comparisons"])
            curves[split] = fit(*probes, same_pairs=self.same_pairs)
        return outlook(
            curves,
            self.steps,
            weight=self.weight,
            k_max=self.k_max,
            confidence=self.confidence,
            tolerance=self.tolerance,
        )

    def state(self) -> dict[str, NDArray[Any] | int]:
        """All that was recorded, and the length of the run; settings are not in it. Arrays (probes,), in order.

        split 0 is validation and 1 training; step, auc and error are what to plot; comparisons is what an AUC is worth.
        """
        columns = list(zip(*self._probes, strict=True)) or [()] * len(_COLUMNS)
        arrays = {name: np.array(column, kind) for (name, kind), column in zip(_COLUMNS, columns, strict=True)}
        return {"steps": self.steps, **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; refused, with nothing changed, if it is of another length or not whole."""
        if not isinstance(state, Mapping):
            raise_invalid("state", "what Online.state gave", type(state).__name__)
        missing = [name for name in ("steps", *dict(_COLUMNS)) if name not in state]
        if missing:
            raise_invalid("state", "what Online.state gave", f"no {missing[0]!r} in {shown(list(state))}")
        steps = check_number("steps", state["steps"])
        if steps != self.steps:
            raise_invalid("state", f"of a run of {self.steps} steps", f"{steps:g}", "Make an Online of that length.")
        split, step = (whole_numbers(name, to_numpy(state[name])) for name in ("split", "step"))
        parts = {name: as_floats(name, state[name]) for name in ("auc", "error", "comparisons")}
        for name, part in parts.items():
            if part.shape != step.shape:
                raise_invalid(name, f"of shape {step.shape}, like step", f"shape {part.shape}")
        check_lengths(split=len(split), step=len(step))
        worth = parts["comparisons"]
        splits = len(SPLITS) if self.labels == "training" else 1
        backward = np.zeros(len(step), bool)
        for which in range(splits):
            rows = np.flatnonzero(split == which)
            backward[rows[1:]] = np.diff(step[rows]) < 0
        for name, values, good, rule in (
            ("split", split, (split >= 0) & (split < splits), f"one of the {splits} in use"),
            ("step", step, (step >= 0) & (step <= self.steps) & ~backward, f"rising, from 0 to {self.steps}"),
            ("auc", parts["auc"], (parts["auc"] >= 0) & (parts["auc"] <= 1), "between 0 and 1"),
            ("error", parts["error"], (parts["error"] >= 0) & (parts["error"] <= 1), "between 0 and 1"),
            ("comparisons", worth, np.isfinite(worth) & (worth >= 2), "finite and at least 2"),
        ):
            check_all(name, values.astype(np.float64), good, rule)
        columns = (split, step, parts["auc"], parts["error"], parts["comparisons"])
        self._probes = list(zip(*(column.tolist() for column in columns), strict=True))
        self._answer = None

    def __repr__(self) -> str:
        """The record in one line."""
        counts = ", ".join(
            f"{sum(one[0] == which for one in self._probes)} {split}" for which, split in enumerate(SPLITS)
        )
        return f"Online({self.steps:,} steps, {counts} probes)"


def _share(parameter: str, value: Any, least: float) -> float:
    """A number between `least` and 1, both excluded."""
    number = check_number(parameter, value)
    if not least < number < 1:
        raise_invalid(parameter, f"above {least} and below 1", number)
    return number
