"""Estimate k during the run: probes over uniform negatives, a learning curve fitted to them, and its best k."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_number,
    check_one_of,
    check_whole,
    public,
    raise_invalid,
)
from naysay.errors import NaysayError
from naysay.quantity.effectiveness import MAX_K_MAX, Floats, auc, check_weight, run_mean
from naysay.quantity.estimate import estimate
from naysay.quantity.schedules import adaptive
from naysay.text import described, short_repr

SPLITS = ("validation", "training")
MIN_STEPS = 5  # with a probe: at most three numbers are fitted, which leaves two degrees of freedom
RUN_POINTS = 60  # of the averaged curve, as in the paper's simulated run
CONVERGED = 3.0  # time constants after which the paper's simulated run ends, 95 % of the way
MAX_SEPARATION = 8.0  # beyond it an AUC differs from 1 by less than 1e-8
MIN_RATE, MAX_RATE = -50.0, 500.0  # of a curve; beyond them exponentials overflow, or a curve is a step
MAX_BEND = 0.05  # systematic deviation from the curve, as a share of its rise, from which on there is no estimate
# One degree of freedom: a start or a wait other than 0 gains more by chance in 1 % of curves.
CHI_SQUARE_1_PERCENT = 6.63
NORMAL_1_PERCENT = 2.33  # neighbouring residuals agree more than this by chance in 1 % of curves
WIDE_SCATTER = 2.0  # variance over that of the errors, from which on it is noted and a late start is tried

_COLUMNS = {"split": np.int8, "step": np.int64, "auc": np.float64, "error": np.float64, "comparisons": np.float64}


# ---- A probe ---------------------------------------------------------------------------------------------------------


class Probe(NamedTuple):
    """What is kept of a probe."""

    auc: float  # the mean over rows of the share of a row's negatives below its positive; a tie counts one half
    error: float  # the standard error of auc: the standard deviation of the rows' shares over sqrt(rows)
    # The effective number of independent comparisons, auc (1 - auc) / error^2, at least one for each row and at most
    # one for each slot. An AUC of exactly 0 or 1 has no spread, and counts one comparison for each row.
    comparisons: float


def probe(positive: Any, negatives: Any, mask: Any = None) -> Probe:
    """Compute the AUC of n positives, each against the m negatives of its own row.

    InfoNCE never compares two anchors, so the AUC is not pooled. Rows are the independent units.
    """
    positives, others, valid = _scores(positive, negatives, mask)
    wins = (others < positives[:, None]) + 0.5 * (others == positives[:, None])
    slots = valid.sum(axis=1)
    filled = slots > 0
    rows = int(filled.sum())
    if rows < 2:
        got = f"{rows} of {len(positives)} rows"
        raise_invalid("negatives", "scores for at least 2 rows", got, "Score some hundred pairs.")
    shares = np.where(valid, wins, 0.0).sum(axis=1)[filled] / slots[filled]
    mean = float(shares.mean())
    error = float(shares.std(ddof=1) / np.sqrt(rows))
    effective = mean * (1 - mean) / error**2 if error > 0 else float(rows)
    return Probe(mean, error, float(np.clip(effective, rows, slots.sum())))


def _scores(positive: Any, negatives: Any, mask: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Positives (n,), negatives (n, m) and which slots count (n, m), as checked arrays."""
    positives = as_array("positive", to_numpy(positive))
    others = as_array("negatives", to_numpy(negatives))
    if positives.ndim != 1:
        raise_invalid("positive", "of shape (n,)", f"shape {positives.shape}")
    if others.ndim != 2 or len(others) != len(positives):
        raise_invalid("negatives", f"of shape ({len(positives)}, m), a row for each positive", f"shape {others.shape}")
    for name, array in (("positive", positives), ("negatives", others)):
        if array.dtype.kind not in "iuf":
            raise_invalid(name, "scores", f"dtype {array.dtype}")
    valid = np.ones(others.shape, bool) if mask is None else as_array("mask", to_numpy(mask))
    if valid.dtype.kind != "b" or valid.shape != others.shape:
        rule = f"True or False for each slot, of shape {others.shape}"
        raise_invalid("mask", rule, f"dtype {valid.dtype}, shape {valid.shape}", "Pass ids >= 0.")
    check_all("positive", positives, np.isfinite(positives) | ~valid.any(axis=1), "finite scores")
    check_all("negatives", others, np.isfinite(others) | ~valid, "finite scores")
    return positives, others, valid


# ---- The learning curve ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """mu'(t) = start + rise (1 - e^(-rate u)) / (1 - e^(-rate)), where u = (t - wait) / (last - wait), at least 0.

    `rise` is the increase from `wait` to the last probe, `rate` how much it has slowed down by then: at 1 the last
    probe is at tau, 63 % of the way; 0 is a straight line. Nothing is singular, although end and tau then are infinite.
    """

    numbers: Floats  # (3,) start, rise, rate
    covariance: Floats  # (3, 3) of the numbers, with the scatter included; 0 for a start that is fixed at 0
    last: float  # the step of the last probe
    wait: float  # the step up to which the curve stays at its start; 0 unless the probes contradict that
    scatter: float  # the variance of the probes around the curve over that of their errors, at least 1
    bend: float  # how far the probes deviate systematically, as a share of the rise; 0 if within chance
    chi_square: float

    @property
    def start(self) -> float:
        """The separation at step 0."""
        return float(self.numbers[0])

    @property
    def tau(self) -> float:
        """The steps in which the distance to the end falls to 37 %."""
        return float((self.last - self.wait) / self.numbers[2])

    def share(self, steps: Floats) -> Floats:
        """U of some steps."""
        return np.asarray(np.maximum(steps - self.wait, 0) / (self.last - self.wait))

    def significant(self, which: int, above: float, errors: float) -> bool:
        """Whether one of the numbers is above a bound by more than `errors` standard errors."""
        return bool(self.numbers[which] - above > errors * np.sqrt(self.covariance[which, which]))

    def principal_steps(self, errors: float) -> Floats:
        """(6, 3) numbers at `errors` standard errors on both sides along each principal axis of the covariance."""
        variances, axes = np.linalg.eigh(self.covariance)
        steps = errors * np.sqrt(np.maximum(variances, 0))[:, None] * axes.T
        moved = np.concatenate([self.numbers + steps, self.numbers - steps])
        moved[:, 2] = np.maximum(moved[:, 2], 1e-3)  # the curve must have an end
        return moved


def separation_at(numbers: Floats, share: Floats) -> Floats:
    """Mu' of a curve at shares of the way to the last probe."""
    start, rise, rate = numbers
    rate = np.clip(rate, MIN_RATE, MAX_RATE)
    rate = rate if abs(rate) > 1e-9 else 1e-9
    growth = np.expm1(-rate * share) / np.expm1(-rate)
    return np.asarray(np.clip(start + rise * growth, -MAX_SEPARATION, MAX_SEPARATION))


def end_of(numbers: Floats) -> float:
    """The limit of mu', at most MAX_SEPARATION."""
    return float(min(numbers[0] - numbers[1] / np.expm1(-numbers[2]), MAX_SEPARATION))


def fit_curve(steps: Floats, aucs: Floats, comparisons: Floats) -> Curve:
    """Fit the curve to probes (P,) at `steps`, of which the last is above 0.

    Where probes scatter more than their errors explain, or lie on one side, the curve may begin to rise late: then the
    step of each probe is tried as the wait, and kept if it lowers chi-square by more than chance does in 1 % of curves.
    """
    curve = _fit_from(0.0, steps, aucs, comparisons)
    if not curve.bend and curve.scatter <= WIDE_SCATTER:
        return curve
    waits = np.unique(steps[steps > 0])[:-MIN_STEPS]
    later = [_fit_from(float(wait), steps, aucs, comparisons) for wait in waits]
    best = min(later, key=lambda each: each.chi_square, default=curve)
    gain = curve.chi_square - best.chi_square
    return best if gain > CHI_SQUARE_1_PERCENT * best.scatter else curve


def _fit_from(wait: float, steps: Floats, aucs: Floats, comparisons: Floats) -> Curve:
    """The curve that rises after a step. Its start is 0, chance, unless the probes contradict that."""
    at_chance = _least_squares(wait, steps, aucs, comparisons, free_start=False)
    free = _least_squares(wait, steps, aucs, comparisons, free_start=True)
    gain = (at_chance.chi_square - free.chi_square) / max(1.0, free.chi_square / (len(steps) - 3))
    return free if gain > CHI_SQUARE_1_PERCENT and free.numbers[0] > 0 else at_chance


def _least_squares(wait: float, steps: Floats, aucs: Floats, comparisons: Floats, *, free_start: bool) -> Curve:
    """Fit the AUCs, not the separations, which are infinite for an AUC of 1 as small probes of good models have.

    An AUC of c comparisons has the variance p (1 - p) / c. p is first that of the probe, moved from 0 and 1 by half a
    comparison, then that of the curve, twice: observed variances would favour probes that are too high by chance.
    """
    from scipy.optimize import least_squares
    from scipy.special import ndtr, ndtri

    share = np.maximum(steps - wait, 0) / (steps.max() - wait)
    half = 0.5 / comparisons
    chance = np.clip(aucs, half, 1 - half)
    rough = np.sqrt(2) * ndtri(chance)

    def predicted(numbers: Floats) -> Floats:
        return np.asarray(ndtr(separation_at(_three(numbers), share) / np.sqrt(2)))

    def residuals(numbers: Floats, errors: Floats) -> Floats:
        return (predicted(numbers) - aucs) / errors

    # A long, flat beginning has other local minima than a fast rise, so several rates are tried.
    start = [float(rough[0])] if free_start else []
    rise = float(rough[-1] - rough[0]) or 1.0
    beginnings = [np.array([*start, rise, rate]) for rate in (0.3, 3.0, 20.0)]
    for _ in range(3):
        errors = np.sqrt(chance * (1 - chance) / comparisons)
        fits = [least_squares(residuals, beginning, args=(errors,), method="lm") for beginning in beginnings]
        best = min(fits, key=lambda fit: fit.cost)
        beginnings = [best.x]
        chance = np.clip(predicted(best.x), half, 1 - half)
    numbers, chi_square = _three(best.x), 2 * best.cost
    n_fitted = len(best.x) + (wait > 0)
    scatter = max(1.0, chi_square / (len(steps) - n_fitted))
    jacobian = np.asarray(best.jac, np.float64)
    fitted = slice(3 - len(best.x), 3)
    covariance = np.zeros((3, 3))
    # A number that the probes do not determine gets a huge variance instead of an infinite one.
    covariance[fitted, fitted] = np.linalg.inv(jacobian.T @ jacobian + 1e-9 * np.eye(len(best.x)))
    slope = np.exp(-(separation_at(numbers, share) ** 2) / 4) / np.sqrt(4 * np.pi)  # d AUC / d mu'
    bend = _bend(-best.fun, errors / slope, scatter) / max(abs(numbers[1]), 1e-9)
    return Curve(numbers, scatter * covariance, float(steps.max()), wait, scatter, bend, chi_square)


def _three(numbers: Any) -> Floats:
    """Start, rise and rate; the start is 0 if only the other two are given."""
    return np.array([0.0, *numbers][-3:], np.float64)


def _bend(residuals: Floats, errors: Floats, scatter: float) -> float:
    """How far, in separation, the probes deviate systematically; 0 if neighbours agree no more than by chance.

    Products of neighbouring residuals average 0 if errors are independent; a curve of another shape leaves long
    stretches of residuals with one sign.
    """
    products = float((residuals[1:] * residuals[:-1]).sum())
    if products <= NORMAL_1_PERCENT * scatter * np.sqrt(len(residuals)):
        return 0.0
    return float(np.sqrt(products / (1 / (errors[1:] * errors[:-1])).sum()))


# ---- The estimate ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class OnlineEstimate:
    """The best k of a run that is under way, with its uncertainty.

    Attributes:
        k: The best whole number from 1 to k_max for the run as a whole.
        low: Lower end of the confidence interval of k, if the run has the assumed shape.
        high: Upper end of the interval.
        regret: The share of the best effectiveness that k loses at most, at the same confidence.
        curve: (k_max,) float64: v at k = 1 to k_max, the mean over the run.
        at_edge: Whether k equals k_max.
        flat: (low, high): every k between them gives v within 1 % of the best, on the fitted curve.
        separation: mu of the labels.
        start: mu' of the model at step 0.
        end: The limit of mu'.
        tau: The steps in which the distance of mu' to its limit falls to 37 %.
        until: The step up to which v is averaged: 3 tau after the rise begins, or the end of the run if that comes
            first.
        steps_seen: The last step with a validation probe.
        notes: A sentence for each reason to doubt the result.
        turning: The share of the run at which the slope of mu' has fallen to 1 / e of its first, for
            `adaptive(k, steps, turning)` in place of the paper's 10 %.

    Example: see `Online`, whose `estimate` returns one.
    """

    k: int
    low: int
    high: int
    regret: float
    curve: Floats
    at_edge: bool
    flat: tuple[int, int]
    separation: float
    start: float
    end: float
    tau: float
    until: float
    steps_seen: int
    notes: tuple[str, ...]
    turning: float

    __repr__ = short_repr


@final
@public
class Online:
    """Estimate k from small probes while the real run goes on, without the run at k = 1 that `estimate` needs.

    Every few per cent of the run, and once before step 0, score n pairs with m *uniform* negatives each: held-out pairs
    for "validation", training pairs for "training". The model's separation is fitted by
    mu'(t) = start + (end - start)(1 - e^(-t / tau)), where start is 0 (chance) and t counts from step 0 unless the
    probes contradict it. k is the best for the mean of v from step 0 to 3 tau after the rise begins, or to the end.

    There is no estimate yet (`ready` is False, `why` has the reason, `estimate` raises) while a required split has
    probes at fewer than 5 steps; a curve has not risen beyond its error, or its last probe is not past tau; the probes
    deviate systematically from the curve by more than 5 % of its rise; or k may lose more than `tolerance` of v.

    Wu, Wu and Huang. Rethinking InfoNCE: How Many Negative Samples Do You Need? Probes and fit are ours. Cost: O(n m) a
    probe; the first estimate after it costs a fit and 13 means of v over a run.

    Args:
        steps: The number of steps of the run.
        labels: Where the separation mu of the labels comes from: the end of the curve of "training" probes, as in the
            paper, or of "validation" probes, as if the model could become as good as its labels.
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
        (12, 8, 18)
    """

    def __init__(
        self,
        steps: int,
        *,
        labels: str = "training",
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
        self.start = check_number("start", start, at_least=1, finite=True)
        self.tolerance = check_number("tolerance", tolerance, above=0, below=1)
        self.confidence = check_number("confidence", confidence, above=0.5, below=1)
        self.weight = check_weight(weight)
        self.k_max = check_whole("k_max", k_max, 1, MAX_K_MAX)
        self._lock = Lock()
        # Both are replaced, never changed: (split, step, auc, error, comparisons) of each probe, and the estimate that
        # belongs to them, or the error that says why there is none.
        self._probes: tuple[tuple[float, ...], ...] = ()
        self._answer: OnlineEstimate | NaysayError | None = None

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
        which = SPLITS.index(split)
        measured = probe(positive, negatives, mask)
        with self._lock:
            last = max((recorded[1] for recorded in self._probes if recorded[0] == which), default=0)
            if at < last:
                advice = "Create a new Online for a new run, or restore the state that belongs to this step."
                raise_invalid("step", f"at least {last}, the last {split} step", at, advice)
            self._probes = (*self._probes, (which, at, *measured))
            self._answer = None

    @property
    def ready(self) -> bool:
        """Whether there is an estimate."""
        return isinstance(self._answered(), OnlineEstimate)

    @property
    def why(self) -> str:
        """Why there is no estimate yet, in a sentence; empty if there is one."""
        answer = self._answered()
        return str(answer) if isinstance(answer, NaysayError) else ""

    def estimate(self) -> OnlineEstimate:
        """Return the best k of the whole run, with its interval.

        Raises:
            NaysayError: If there is no estimate yet, with the reason (`why`).
        """
        answer = self._answered()
        if isinstance(answer, NaysayError):
            error = NaysayError(str(answer))
            error.parameter = answer.parameter
            raise error
        return answer

    def k_at(self, step: int) -> float:
        """Return the k to use now: `start` while there is no estimate, then adaptive(peak=k, steps) with the latest k.

        Args:
            step: From 0 to `steps`.
        """
        at = self._checked_step(step)
        answer = self._answered()
        return self.start if isinstance(answer, NaysayError) else float(adaptive(answer.k, self.steps)(at))

    def _checked_step(self, step: Any) -> int:
        at = check_whole("step", step, 0)
        if at > self.steps:
            advice = "Create an Online with the true number of steps."
            raise_invalid("step", f"at most {self.steps}, the steps of the run", at, advice)
        return at

    def _answered(self) -> OnlineEstimate | NaysayError:
        """The estimate, or why there is none; computed once after each probe, outside the lock."""
        with self._lock:
            probes, answer = self._probes, self._answer
        if answer is not None:
            return answer
        try:
            answer = self._estimated(np.array(probes, np.float64).reshape(-1, len(_COLUMNS)))
        except NaysayError as error:
            answer = error.with_traceback(None)
        with self._lock:
            if self._probes is probes:
                self._answer = answer
        return answer

    def _estimated(self, probes: NDArray[np.float64]) -> OnlineEstimate:
        """Fit a curve to each split, check that they suffice, and find the best k of the run that they predict."""
        splits = SPLITS if self.labels == "training" else ("validation",)
        curves = {split: self._fitted(split, probes) for split in splits}
        for split, curve in curves.items():
            _check_suffices(split, curve, self.confidence)
        model = curves["validation"]
        labels = curves.get("training", model)

        def mean_v(model_numbers: Floats, label_numbers: Floats) -> Floats:
            run, _ = self._run(model, model_numbers)
            return run_mean(end_of(label_numbers), run, self.weight, self.k_max)

        run, until = self._run(model, model.numbers)
        best = estimate(auc(end_of(labels.numbers)), auc(run), weight=self.weight, k_max=self.k_max)
        low, high, regret = _uncertainty(best.k, model, labels, mean_v, self.confidence)
        if regret > self.tolerance:
            rule = f"within {self.tolerance:.1%} of the best effectiveness with confidence {self.confidence:g}"
            got = f"{best.k} ({low} to {high}), which may lose {regret:.1%}"
            raise_invalid("k", rule, got, "Record more probes; larger probes need fewer steps.")
        return OnlineEstimate(
            k=best.k,
            low=low,
            high=high,
            regret=regret,
            curve=best.curve,
            at_edge=best.at_edge,
            flat=best.flat,
            separation=end_of(labels.numbers),
            start=model.start,
            end=end_of(model.numbers),
            tau=model.tau,
            until=until,
            steps_seen=int(model.last),
            notes=(*_notes(curves), *best.notes),
            turning=min((model.wait + model.tau) / self.steps, 1.0),
        )

    def _fitted(self, split: str, probes: NDArray[np.float64]) -> Curve:
        _, step, aucs, _, comparisons = probes[probes[:, 0] == SPLITS.index(split)].T
        n_steps = len(np.unique(step))
        if n_steps < MIN_STEPS:
            advice = "Record a probe before step 0 and every few per cent of the run."
            if split == "training":
                advice = 'Record training pairs too, or create Online(steps, labels="validation").'
            raise_invalid(split, f"recorded at {MIN_STEPS} steps or more", n_steps, advice)
        return fit_curve(step, aucs, comparisons)

    def _run(self, model: Curve, numbers: Floats) -> tuple[Floats, float]:
        """The model's separations through the run up to convergence, and the step of the last of them."""
        tau = (model.last - model.wait) / numbers[2]
        until = float(min(self.steps, model.wait + CONVERGED * tau))
        return separation_at(numbers, model.share(np.linspace(0, until, RUN_POINTS))), until

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
            NaysayError: If the state is incomplete, or of another run length.
        """
        entries = {name: Entry(("probes",), whole=name in ("split", "step")) for name in _COLUMNS}
        read = read_state(state, {"steps": Entry(whole=True), **entries})
        if read["steps"] != self.steps:
            advice = "Create an Online with that number."
            raise_invalid("state", f"of a run of {self.steps} steps", int(read["steps"]), advice)
        probes = tuple(zip(*(read[name].tolist() for name in _COLUMNS), strict=True))
        with self._lock:
            self._probes = probes
            self._answer = None

    def __repr__(self) -> str:
        """All settings, and how many probes there are."""
        counts = (f"{sum(one[0] == which for one in self._probes)} {split}" for which, split in enumerate(SPLITS))
        return described(self, f"{', '.join(counts)} probes")


def _check_suffices(split: str, curve: Curve, confidence: float) -> None:
    """Raise if a curve has not come far enough to predict its end, or does not have the assumed shape."""
    from scipy.special import ndtri

    errors = float(ndtri(confidence))
    seen = f"step {curve.last:.0f}"
    if not curve.significant(1, 0, errors):
        advice = "Record more probes, or score more pairs."
        raise_invalid(split, "probes whose AUC rises beyond its error", f"none by {seen}", advice)
    if not curve.significant(2, 1, errors):
        tau = f"tau = {curve.tau:.0f}" if curve.numbers[2] > 0 else "a rise that does not slow down"
        rule = "probes past tau, 63 % of the way, beyond their error"
        raise_invalid(split, rule, f"{seen} and {tau}", "Record more probes; more pairs reduce the error.")
    if curve.bend > MAX_BEND:
        rule = "probes along start + rise (1 - e^(-t / tau))"
        got = f"probes that deviate systematically, by {curve.bend:.0%} of the rise"
        raise_invalid(split, rule, got, "After the run, pass the measured AUCs to `estimate`.")


def _uncertainty(
    k: int, model: Curve, labels: Curve, mean_v: Callable[[Floats, Floats], Floats], confidence: float
) -> tuple[int, int, float]:
    """The confidence interval of k, and the share of v that k loses at most.

    Each principal axis of the fit's error is independent of the others. So the changes of log k at the ends of their
    confidence intervals add up as squares, and the losses, which are squares already, as they are.
    """
    from scipy.special import ndtri

    errors = float(ndtri((1 + confidence) / 2))
    if labels is model:
        ends = [(numbers, numbers) for numbers in model.principal_steps(errors)]
    else:
        ends = [(numbers, labels.numbers) for numbers in model.principal_steps(errors)]
        ends += [(model.numbers, numbers) for numbers in labels.principal_steps(errors)]
    change = np.zeros(len(ends))
    loss = np.zeros(len(ends))
    for place, (model_numbers, label_numbers) in enumerate(ends):
        v = mean_v(model_numbers, label_numbers)
        best = int(v.argmax())
        change[place] = np.log((best + 1) / k)
        loss[place] = (v[best] - v[k - 1]) / abs(v[best])
    sides = np.stack([change.reshape(-1, 2, 3), loss.reshape(-1, 2, 3)])  # (changes and losses, curves, sides, axes)
    up = np.maximum(sides[0].max(axis=1), 0)
    down = np.maximum(-sides[0].min(axis=1), 0)
    low = int(np.floor(k * np.exp(-np.sqrt((down**2).sum()))))
    high = int(np.ceil(k * np.exp(np.sqrt((up**2).sum()))))
    return max(low, 1), high, float(sides[1].max(axis=1).sum())


def _notes(curves: dict[str, Curve]) -> list[str]:
    """Return a sentence for each reason to doubt the result."""
    notes = []
    if "training" not in curves:
        notes.append(
            "The labels are assumed to be as good as the model becomes on validation pairs; "
            "if they are better, a larger k is. Record training probes to measure them."
        )
    for split, curve in curves.items():
        if curve.start:
            above = f"begin at an AUC of {auc(curve.start):.2f}, not at chance"
            notes.append(f"The {split} probes {above}, so the start is fitted too.")
        if curve.wait:
            notes.append(
                f"The {split} probes stay at their start up to step {curve.wait:.0f}, so the rise is from there."
            )
        if curve.scatter > WIDE_SCATTER:
            times = f"{np.sqrt(curve.scatter):.1f} times as widely as their errors explain"
            notes.append(f"The {split} probes scatter {times}; the interval includes that.")
        if curve.bend:
            share = f"{curve.bend:.1%} of its rise"
            notes.append(f"The {split} probes deviate from the curve by {share}; the interval does not include that.")
    return notes
