"""in_batch equals the plain form with its (N, M) matrix, in value and in every gradient, for every form and block."""

import math
import weakref

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from naysay.losses import debiased, hard_negative_nce, in_batch, info_nce, sampled_softmax

CLOSE = {"rtol": 1e-9, "atol": 1e-9}
FORMS = {
    "plain": {},
    "debiased": {"prior": 0.1},
    "hard": {"beta": 1.5},
    "hard and debiased": {"prior": 0.1, "beta": 1.0},
    "hard, weights as given": {"prior": 0.1, "beta": 1.0, "backprop_weights": False},
    "debiased, without a bound": {"prior": 0.01, "min_score": -math.inf},
}


def vectors(*shape, seed=0, dtype=torch.float64):
    values = torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)
    return torch.nn.functional.normalize(values, dim=-1).requires_grad_()


def plain(left, right, *, partner, keep, temperature=1.0, own=None, weights=None, log_q=None, prior=0, beta=0, **form):
    """The same from the whole matrix, by the losses over slots.

    keep   (N, M) which columns may be negatives;  own   further slots: vectors (N, K, d) and their mask
    """
    scores, rows = left @ right.T, torch.arange(len(left))
    positive, mask = scores[rows, partner], keep.clone()
    mask[rows, partner] = False
    if own is not None:
        scores = torch.cat([scores, torch.einsum("nd,nkd->nk", left, own[0])], dim=1)
        mask = torch.cat([mask, own[1]], dim=1)
    options = {"temperature": temperature, "mask": mask, "weights": weights, "log_q": log_q}
    if beta:
        return hard_negative_nce(positive, scores, beta=beta, prior=prior, **form, **options)
    if prior:
        return debiased(positive, scores, prior=prior, **form, **options)
    return info_nce(positive, scores, **options)


def assert_equal(ours, theirs, inputs):
    """Values, and gradients for one factor of all rows, and for factors that differ between rows."""
    torch.testing.assert_close(ours(), theirs(), **CLOSE)
    rows = len(ours())
    for factor in (torch.full((rows,), 0.3), torch.linspace(0.1, 2.0, rows)):
        found, wanted = (torch.autograd.grad((make() * factor.double()).sum(), inputs) for make in (ours, theirs))
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, **CLOSE)


EACH_FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
RNG = np.random.default_rng(2)
KEEP = torch.from_numpy(RNG.random((20, 30)) < 0.4)
KEEP[3] = False  # a row with no negatives
WEIGHTS = torch.from_numpy(RNG.integers(0, 3, (20, 30)).astype(float))
LOG_Q = torch.log_softmax(torch.from_numpy(RNG.standard_normal(30)), dim=0)
ALL = torch.ones(20, 30, dtype=torch.bool)
# {name: (options of in_batch, options of `plain`)}
OPTIONS = {
    "none": ({}, {}),
    "mask": ({"mask": KEEP}, {"keep": KEEP}),
    "mask in NumPy": ({"mask": KEEP.numpy()}, {"keep": KEEP}),
    "function as mask": ({"mask": lambda rows: KEEP[rows].numpy()}, {"keep": KEEP}),
    "weights": ({"weights": WEIGHTS}, {"weights": WEIGHTS}),
    "function as weights": ({"weights": lambda rows: WEIGHTS[rows]}, {"weights": WEIGHTS}),
    "weights of columns": ({"weights": WEIGHTS[0].numpy()}, {"weights": WEIGHTS[0].expand(20, 30)}),
    "log_q": ({"log_q": LOG_Q, "mask": KEEP}, {"log_q": LOG_Q.expand(20, 30), "keep": KEEP}),
}


@EACH_FORM
@pytest.mark.parametrize("name", OPTIONS)
def test_the_rest_of_the_batch(form, name):
    left, right = vectors(20, 5), vectors(30, 5, seed=1)
    ours, theirs = OPTIONS[name]
    assert_equal(
        lambda: in_batch(left, right, temperature=0.4, block=1, **ours, **form),
        lambda: plain(left, right, partner=torch.arange(20), temperature=0.4, **({"keep": ALL} | theirs), **form),
        [left, right],
    )


@EACH_FORM
def test_eliminated_at_several_granularities(form):
    left, right = vectors(20, 5), vectors(30, 5, seed=1)
    rng = np.random.default_rng(4)
    labels, key_labels = rng.integers(-1, 3, (2, 20)), rng.integers(-1, 3, (2, 30))

    def wanted():
        found = []
        for mine, theirs in zip(torch.from_numpy(labels), torch.from_numpy(key_labels), strict=True):
            same = (mine[:, None] == theirs) & (mine[:, None] != -1)
            found.append(plain(left, right, partner=torch.arange(20), keep=~same, temperature=0.3, **form))
        return torch.stack(found).mean(dim=0)

    assert_equal(
        lambda: in_batch(left, right, labels=labels, key_labels=key_labels, temperature=0.3, block=64, **form),
        wanted,
        [left, right],
    )


@EACH_FORM
@pytest.mark.parametrize("shared", [False, True])
def test_further_negatives_for_oneself_or_for_all(form, shared):
    left, right, further = vectors(20, 5), vectors(20, 5, seed=1), vectors(20, 3, 5, seed=2)
    valid = torch.from_numpy(np.random.default_rng(5).random((20, 3)) < 0.7)
    valid[4] = False
    keep = torch.ones(20, 20, dtype=torch.bool)
    options = {"negatives": further, "negative_mask": valid, "share_negatives": shared}
    if shared:
        keys = lambda: torch.cat([right, further.flatten(0, 1)])  # noqa: E731
        theirs = {"keep": torch.cat([keep, valid.flatten().expand(20, 60)], dim=1)}
    else:
        keys = lambda: right  # noqa: E731
        theirs = {"keep": keep, "own": (further, valid)}
    assert_equal(
        lambda: in_batch(left, right, temperature=0.3, block=64, **options, **form),
        lambda: plain(left, keys(), partner=torch.arange(20), temperature=0.3, **theirs, **form),
        [left, right, further],
    )


@pytest.mark.parametrize(
    ("form", "own"), [("sampled", None), ("sampled", LOG_Q[:20]), ("refined", LOG_Q[:20]), ("classic", LOG_Q[:20])]
)
def test_forms_are_those_of_slots(form, own):
    left, right = vectors(20, 5), vectors(30, 5, seed=1)
    options = {"positive_log_q": own, "form": form, "temperature": 0.7}

    def of_slots():
        scores = left @ right.T
        others = KEEP & ~torch.eye(20, 30).bool()
        return sampled_softmax(scores.diagonal(), scores, log_q=LOG_Q.expand(20, 30), mask=others, **options)

    assert_equal(lambda: in_batch(left, right, log_q=LOG_Q, mask=KEEP, block=1, **options), of_slots, [left, right])


@EACH_FORM
def test_a_learnt_temperature_has_its_gradient(form):
    left, right = vectors(20, 5), vectors(30, 5, seed=1)
    scale = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert_equal(
        lambda: in_batch(left, right, temperature=scale, block=1, **form),
        lambda: plain(left, right, partner=torch.arange(20), keep=ALL, temperature=scale, **form),
        [left, right, scale],
    )


@pytest.mark.parametrize(("rows", "more", "block"), [(0, 0, 1), (0, 3, 1), (1, 0, 1), (17, 0, 1), (33, 4, 500)])
def test_any_sizes(rows, more, block):
    left, right = vectors(rows, 3), vectors(rows + more, 3, seed=1)
    partner = torch.from_numpy(np.random.default_rng(3).integers(0, max(rows + more, 1), rows))
    keep = torch.from_numpy(np.random.default_rng(4).random((rows, rows + more)) < 0.5)
    assert_equal(
        lambda: in_batch(left, right, partner=partner, mask=keep, temperature=0.2, block=block),
        lambda: plain(left, right, partner=partner, keep=keep, temperature=0.2),
        [left, right],
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["plain", "hard and debiased"])
def test_other_precisions(dtype, name):
    low = [vectors(30, 16, seed=seed).detach().to(dtype).requires_grad_() for seed in (0, 1)]
    exact = [value.detach().double().requires_grad_() for value in low]
    ours, wanted = (in_batch(*pair, temperature=0.2, **FORMS[name]) for pair in (low, exact))
    assert ours.dtype == dtype
    loose = {"rtol": 2e-2, "atol": 2e-2} if dtype != torch.float32 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(ours.double(), wanted, **loose)
    found = torch.autograd.grad(ours.sum(), low)
    for one, other in zip(found, torch.autograd.grad(wanted.sum(), exact), strict=True):
        assert one.dtype == dtype
        torch.testing.assert_close(one.double(), other, **loose)


def test_only_what_asks_for_a_gradient_gets_one():
    left, right = vectors(40, 3), vectors(40, 3, seed=1)
    log_q, positive_log_q = (torch.full((40,), -3.0, dtype=torch.float64, requires_grad=True) for _ in range(2))
    options = {"log_q": log_q, "positive_log_q": positive_log_q, "form": "classic", "block": 1}
    found = torch.autograd.grad(in_batch(left.detach(), right, **options).sum(), right)[0]
    in_batch(left, right, **options).sum().backward()
    torch.testing.assert_close(found, right.grad, **CLOSE)
    assert (log_q.grad, positive_log_q.grad) == (None, None)
    with torch.no_grad():
        assert not in_batch(left, right, block=1).requires_grad


class Largest(TorchDispatchMode):
    """The largest tensor that an operation returned."""

    def __init__(self):
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        found = operation(*args, **(kwargs or {}))
        tensors = [value for value in tree_leaves(found) if isinstance(value, torch.Tensor)]
        self.size = max([self.size, *(value.untyped_storage().nbytes() for value in tensors)])
        return found


@pytest.mark.parametrize("name", ["plain", "hard and debiased"])
@pytest.mark.parametrize("uneven", [False, True])
def test_the_matrix_is_never_stored(name, uneven):
    """No tensor has more than a block or one of the inputs, and nothing of a block is kept for the backward pass."""
    left, right = (vectors(512, 8, seed=s, dtype=torch.float32) for s in (0, 1))
    factor = torch.linspace(0.5, 1.5, 512) if uneven else torch.ones(512)
    saved = []

    def pack(tensor):
        saved.append(weakref.ref(tensor))
        return tensor

    with Largest() as largest:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            losses = in_batch(left, right, temperature=0.1, block=1 << 14, **FORMS[name])
        kept = sum(tensor().numel() for tensor in saved if tensor() is not None)
        (losses * factor).sum().backward()
    assert largest.size <= 4 * (1 << 14)
    assert kept < 20 * 512 * 8  # a few of the size of the inputs, where the matrix has 512 * 512
