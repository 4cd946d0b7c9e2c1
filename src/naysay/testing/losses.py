"""check_loss: what every loss over a positive and its negatives promises. In torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, need_torch, to_numpy
from naysay.checks import public, raise_invalid
from naysay.rng import rng_for
from naysay.testing._trials import equal
from naysay.testing.promises import Promises, check_promises, named, used_generator

_CLOSE = 1e-9  # in float64
_DTYPES = ("float32", "bfloat16", "float64")


@dataclass(frozen=True)
class Case:
    """Inputs of a loss as tensors, and the loss itself. `log_q` is passed only if the loss needs it."""

    loss: Callable[..., Any]
    positive: Any  # (B,)
    negatives: Any  # (B, K)
    mask: Any = None
    weights: Any = None
    log_q: Any = None

    def values(self) -> Any:
        """(B,) the loss; options that are None are left out."""
        options = {"mask": self.mask, "weights": self.weights, "log_q": self.log_q}
        given = {name: value for name, value in options.items() if value is not None}
        return self.loss(self.positive, self.negatives, **given)

    def all(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The loss (B,) and the gradients of its sum in the positive (B,) and the negatives (B, K), in NumPy."""
        torch = need_torch()
        leaves = [score.detach().clone().requires_grad_() for score in (self.positive, self.negatives)]
        values = replace(self, positive=leaves[0], negatives=leaves[1]).values()
        total = values.sum()
        found = torch.autograd.grad(total, leaves, allow_unused=True) if total.requires_grad else (None, None)
        grads = [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, found, strict=True)]
        return np.asarray(to_numpy(values)), np.asarray(to_numpy(grads[0])), np.asarray(to_numpy(grads[1]))

    def rows(self, rows: Any, slots: Any = slice(None)) -> Case:
        """The same for some rows and some of their slots."""
        parts = {name: getattr(self, name) for name in ("negatives", "mask", "weights", "log_q")}
        cut = {name: value[rows][:, slots] for name, value in parts.items() if value is not None}
        return replace(self, positive=self.positive[rows], **cut)


@dataclass(frozen=True)
class Bench:
    """A loss under test and the inputs to test it with."""

    loss: Callable[..., Any]
    needs_log_q: bool
    seed: int

    def case(self, rows: int = 6, slots: int = 5, dtype: str = "float64") -> Case:
        """Random scores, with log_q if the loss needs it; no mask and no weights."""
        torch, rng = need_torch(), rng_for(self.seed, step=rows)
        kind = getattr(torch, dtype)
        positive, negatives = rng.standard_normal(rows), rng.standard_normal((rows, slots))
        log_q = torch.tensor(rng.uniform(-5, -1, (rows, slots)), dtype=kind) if self.needs_log_q else None
        return Case(self.loss, torch.tensor(positive, dtype=kind), torch.tensor(negatives, dtype=kind), log_q=log_q)

    def masked(self) -> Case:
        """A case whose rows have one masked slot, two, and so on."""
        torch, case = need_torch(), self.case()
        rows, slots = case.negatives.shape
        mask = np.arange(slots) > np.arange(rows)[:, None] % (slots - 1)
        return replace(case, mask=torch.tensor(rng_for(self.seed).permuted(mask, axis=1)))

    def weighted(self) -> Case:
        """The same with weights."""
        torch, case = need_torch(), self.masked()
        weights = rng_for(self.seed).uniform(0.2, 2.0, tuple(case.negatives.shape))
        return replace(case, weights=torch.tensor(weights))


def shape(bench: Bench) -> Iterator[str]:
    """(B,), one number per row, also for B = 0 and 1."""
    for rows, slots in ((0, 3), (1, 1), (6, 5)):
        values = bench.case(rows, slots).values()
        if not is_torch(values) or tuple(values.shape) != (rows,):
            got = f"shape {tuple(values.shape)}" if is_torch(values) else f"a {type(values).__name__}"
            yield f"returned {got} for negatives ({rows}, {slots}); it is unreduced, ({rows},)"


def dtype(bench: Bench) -> Iterator[str]:
    """The answer has the dtype of the scores."""
    for name in _DTYPES:
        given = str(bench.case(dtype=name).values().dtype).removeprefix("torch.")
        if given != name:
            yield f"returned {given} for scores in {name}"


def mask(bench: Bench) -> Iterator[str]:
    """A masked slot has no effect, whatever its score."""
    full = bench.case()
    slots = full.negatives.shape[1]
    for left in range(1, slots):
        first = replace(full, mask=full.negatives.new_zeros(full.negatives.shape).bool())
        first.mask[:, :left] = True
        if not _close(first.all()[0], full.rows(slice(None), slice(left)).all()[0]):
            yield f"gives another value with {slots - left} slots masked than with them left out"
    case = bench.masked()
    values = case.all()[0]
    for score in (float("nan"), float("inf"), float("-inf"), 1e30):
        strange = replace(case, negatives=case.negatives.masked_fill(~case.mask, score))
        found, by_positive, by_negatives = strange.all()
        if not _close(values, found):
            yield f"changed by a score of {score} in a masked slot"
        hidden = by_negatives[~case.mask.numpy()]
        if not (hidden == 0).all() or not np.isfinite([*by_positive, *by_negatives.flat]).all():
            yield f"gives a gradient to a masked slot with a score of {score}"


def weights(bench: Bench) -> Iterator[str]:
    """A weight of 1 is none. A weight of 0 is a mask, but where log_q counts the slots: a weight leaves K as it is."""
    case = bench.masked()
    ones = case.mask.double() * 0 + 1
    pairs = [("1 as without", replace(case, weights=ones), case)]
    if not bench.needs_log_q:
        pairs.append(("0 as masked", replace(case, mask=None, weights=case.mask.double()), case))
    for name, one, other in pairs:
        if not all(_close(a, b) for a, b in zip(one.all(), other.all(), strict=True)):
            yield f"does not give the same for weights of {name}"


def empty(bench: Bench) -> Iterator[str]:
    """A row with no negatives gives 0 and no gradient."""
    full = bench.masked()
    nothing = full.mask.clone()
    nothing[::2] = False
    for case, rows in ((bench.case(slots=0), slice(None)), (replace(full, mask=nothing), slice(None, None, 2))):
        for name, found in zip(("a loss", "a gradient", "a gradient"), case.all(), strict=True):
            if found[rows].size and not (found[rows] == 0).all():
                yield f"gave {name} of {found[rows].ravel()[0]:.6g} for a row with no negatives; it is 0"


def finite(bench: Bench) -> Iterator[str]:
    """Scores of 1e4, either way, leave the loss and its gradient finite, with and without empty slots."""
    case, mask = bench.case(dtype="float32"), bench.masked().mask
    signs = case.positive.sign(), case.negatives.sign()  # of both signs, or of one
    for positive, negatives in (signs, (signs[0].abs(), signs[1].abs())):
        for scales in ((1e4, -1e4), (-1e4, 1e4), (1e4, 1e4), (-1e4, -1e4)):
            extreme = replace(case, positive=positive * scales[0], negatives=negatives * scales[1])
            for shown in (extreme, replace(extreme, mask=mask)):
                if not all(np.isfinite(found).all() for found in shown.all()):
                    yield "is not finite, or its gradient is not, for scores of 1e4 and -1e4"


def order(bench: Bench) -> Iterator[str]:
    """The order of the slots does not matter."""
    case = bench.weighted()
    turned = case.rows(slice(None), [2, 0, 4, 1, 3])
    if not _close(case.all()[0], turned.all()[0]):
        yield "depends on the order of the slots"


def rows(bench: Bench) -> Iterator[str]:
    """A row's loss depends on that row alone."""
    case = bench.weighted()
    together = case.all()
    for row in range(len(together[0])):
        alone = case.rows([row]).all()
        if not all(_close(one[row], other[0]) for one, other in zip(together, alone, strict=True)):
            yield f"gives row {row} another value or gradient alone than among others"


def monotone(bench: Bench) -> Iterator[str]:
    """A higher negative never lowers the loss, a higher positive never raises it."""
    case = bench.weighted()
    base = case.all()[0]
    for rise in (0.01, 1.0, 10.0):
        for slot in range(case.negatives.shape[1]):
            raised = case.negatives.clone()
            raised[:, slot] += rise
            if (replace(case, negatives=raised).all()[0] < base - _CLOSE).any():
                yield f"fell when a negative's score rose by {rise}"
        if (replace(case, positive=case.positive + rise).all()[0] > base + _CLOSE).any():
            yield f"rose when the positive's score rose by {rise}"


def gradient(bench: Bench) -> Iterator[str]:
    """The gradient is that of the value: it agrees with finite differences."""
    torch, case = need_torch(), bench.weighted()
    leaves = [score.detach().clone().requires_grad_() for score in (case.positive, case.negatives)]

    def values(positive: Any, negatives: Any) -> Any:
        return replace(case, positive=positive, negatives=negatives).values()

    if not torch.autograd.gradcheck(values, leaves, atol=1e-5, rtol=1e-5, raise_exception=False):
        yield "has a gradient that is not the slope of its value"


def arrays(bench: Bench) -> Iterator[str]:
    """mask, weights and log_q may be NumPy."""
    case = bench.weighted()
    plain = replace(case, mask=to_numpy(case.mask), weights=to_numpy(case.weights), log_q=to_numpy(case.log_q))
    if not _close(case.all()[0], plain.all()[0]):
        yield "gives another value for NumPy options"


def frozen(bench: Bench) -> Iterator[str]:
    """The inputs are not changed."""
    case = bench.weighted()
    before = copy.deepcopy(case)
    case.values()
    for name in ("positive", "negatives", "mask", "weights", "log_q"):
        if not equal(getattr(before, name), getattr(case, name)):
            yield f"changed its {name}"


def global_state(bench: Bench) -> Iterator[str]:
    """No global generator is used."""
    return used_generator(bench.case().values)


PROMISES: Promises[Bench] = named(
    shape, dtype, frozen, mask, weights, empty, finite, order, rows, monotone, gradient, arrays, global_state
)


@public
def check_loss(
    loss: Callable[..., Any], *, needs_log_q: bool = False, seed: int = 0, without: Collection[str] = ()
) -> None:
    """Raise PromiseBroken if `loss` breaks a promise of a loss. Needs torch.

    shape         (B,), unreduced, for B = 0, 1 and more
    dtype         that of the scores: float32, bfloat16 or float64
    frozen        its inputs are not changed
    mask          a masked slot has no effect and no gradient, also if its score is NaN or infinite
    weights       1 is no weight, 0 is a mask (without log_q, whose correction counts the slots)
    empty         a row with no negatives gives 0 and no gradient, also for K = 0
    finite        scores of 1e4 give a finite loss and gradient, in float32
    order         the order of the slots does not matter
    rows          a row's loss depends on that row alone
    monotone      a higher negative never lowers the loss, a higher positive never raises it
    gradient      it agrees with finite differences
    arrays        mask, weights and log_q may be NumPy arrays
    global_state  the global generators of NumPy, Python and torch are not used

    Args:
        loss: loss(positive (B,), negatives (B, K), *, mask=None, weights=None) -> (B,) in torch. Bind other settings
            first: check_loss(functools.partial(info_nce, temperature=0.1)).
        needs_log_q: Whether to pass log_q=(B, K) as well.
        seed: Of the inputs.
        without: Names of promises that this loss does not make: "gradient" if it stops gradients on purpose,
            "monotone" if it weighs negatives against each other.

    Examples:
        >>> import naysay as ns
        >>> check_loss(ns.losses.bpr)
    """
    if not callable(loss):
        raise_invalid("loss", "a function", f"a {type(loss).__name__}")
    need_torch()
    check_promises(getattr(loss, "__name__", "the loss"), PROMISES, Bench(loss, needs_log_q, seed), without)


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=_CLOSE, atol=_CLOSE))
