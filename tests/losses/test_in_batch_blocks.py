"""in_batch equals the plain form with its (N, M) matrix, in value and in every gradient, for every form and block."""

import math
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from naysay.losses import debiased, hard_negative_nce, in_batch, info_nce

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
    """Values, and gradients for a factor of 1, for that of a mean, and for one that differs between rows."""
    torch.testing.assert_close(ours(), theirs(), **CLOSE)
    rows = len(ours())
    for factor in (torch.ones(rows), torch.full((rows,), 1 / max(rows, 1)), torch.linspace(0.1, 2.0, rows)):
        found, wanted = (torch.autograd.grad((make() * factor.double()).sum(), inputs) for make in (ours, theirs))
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("block", [1, 700, 1 << 22])
def test_pairs(form, block):
    left, right = vectors(37, 8), vectors(45, 8, seed=1)
    keep = torch.ones(37, 45, dtype=torch.bool)
    assert_equal(
        lambda: in_batch(left, right, temperature=0.3, block=block, **form),
        lambda: plain(left, right, partner=torch.arange(37), keep=keep, temperature=0.3, **form),
        [left, right],
    )


MASKS = {
    "(N, M)": lambda keep: keep,
    "NumPy": lambda keep: keep.numpy(),
    "function": lambda keep: lambda rows: keep[rows],
    "function in NumPy": lambda keep: lambda rows: keep[rows].numpy(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("given_as", MASKS.values(), ids=MASKS)
def test_masked(form, given_as):
    left, right = vectors(20, 5), vectors(30, 5, seed=1)
    keep = torch.from_numpy(np.random.default_rng(2).random((20, 30)) < 0.4)
    keep[3] = False  # a row with no negatives
    assert_equal(
        lambda: in_batch(left, right, temperature=0.4, mask=given_as(keep), block=64, **form),
        lambda: plain(left, right, partner=torch.arange(20), keep=keep, temperature=0.4, **form),
        [left, right],
    )
    assert in_batch(left, right, mask=given_as(keep), **form)[3] == 0


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_weighted(form):
    left, right = vectors(20, 5), vectors(30, 5, seed=1)
    weights = torch.from_numpy(np.random.default_rng(2).integers(0, 3, (20, 30)).astype(float))
    keep = torch.ones(20, 30, dtype=torch.bool)
    wanted = lambda: plain(left, right, partner=torch.arange(20), keep=keep, weights=weights, **form)  # noqa: E731
    for given_as in (weights, weights.numpy(), lambda rows: weights[rows]):
        assert_equal(lambda w=given_as: in_batch(left, right, weights=w, block=64, **form), wanted, [left, right])
    one = weights[0]
    assert_equal(
        lambda: in_batch(left, right, weights=one, block=64, **form),
        lambda: plain(left, right, partner=torch.arange(20), keep=keep, weights=one.expand(20, 30), **form),
        [left, right],
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_corrected_by_log_q(form):
    left, right = vectors(12, 5), vectors(18, 5, seed=1)
    log_q = torch.log_softmax(torch.from_numpy(np.random.default_rng(3).standard_normal(18)), dim=0)
    keep = torch.from_numpy(np.random.default_rng(2).random((12, 18)) < 0.6)
    full = torch.ones(12, 18, dtype=torch.bool)
    for mask in (None, keep):
        assert_equal(
            lambda m=mask: in_batch(left, right, log_q=log_q, mask=m, block=64, **form),
            lambda m=mask: plain(
                left,
                right,
                partner=torch.arange(12),
                keep=full if m is None else m,
                log_q=log_q.expand(12, 18),
                **form,
            ),
            [left, right],
        )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_eliminated_at_several_granularities(form):
    left, right = vectors(16, 5), vectors(22, 5, seed=1)
    rng = np.random.default_rng(4)
    labels, key_labels = rng.integers(-1, 3, (2, 16)), rng.integers(-1, 3, (2, 22))
    partner = torch.arange(16)

    def wanted():
        found = []
        for mine, theirs in zip(torch.from_numpy(labels), torch.from_numpy(key_labels), strict=True):
            same = (mine[:, None] == theirs) & (mine[:, None] != -1)
            found.append(plain(left, right, partner=partner, keep=~same, temperature=0.3, **form))
        return torch.stack(found).mean(dim=0)

    assert_equal(
        lambda: in_batch(left, right, labels=labels, key_labels=key_labels, temperature=0.3, block=64, **form),
        wanted,
        [left, right],
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("shared", [False, True])
def test_further_negatives_for_oneself_or_for_all(form, shared):
    left, right, further = vectors(10, 5), vectors(10, 5, seed=1), vectors(10, 3, 5, seed=2)
    valid = torch.from_numpy(np.random.default_rng(5).random((10, 3)) < 0.7)
    valid[4] = False
    keep = torch.ones(10, 10, dtype=torch.bool)

    def wanted():
        partner = torch.arange(10)
        if not shared:
            return plain(left, right, partner=partner, keep=keep, own=(further, valid), temperature=0.3, **form)
        wide = torch.cat([keep, valid.flatten().expand(10, 30)], dim=1)
        return plain(
            left, torch.cat([right, further.flatten(0, 1)]), partner=partner, keep=wide, temperature=0.3, **form
        )

    assert_equal(
        lambda: in_batch(
            left,
            right,
            negatives=further,
            negative_mask=valid,
            share_negatives=shared,
            temperature=0.3,
            block=64,
            **form,
        ),
        wanted,
        [left, right, further],
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_learnt_temperature_has_its_gradient(form):
    left, right = vectors(9, 4), vectors(9, 4, seed=1)
    scale = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    keep = torch.ones(9, 9, dtype=torch.bool)
    assert_equal(
        lambda: in_batch(left, right, temperature=scale, **form),
        lambda: plain(left, right, partner=torch.arange(9), keep=keep, temperature=scale, **form),
        [left, right, scale],
    )


@given(st.integers(0, 9), st.integers(0, 4), st.integers(1, 60), st.integers(0, 2**31), st.sampled_from(list(FORMS)))
@settings(deadline=None)
def test_any_sizes(rows, more, block, seed, form):
    left, right = vectors(rows, 3, seed=seed), vectors(rows + more, 3, seed=seed + 1)
    keep = torch.from_numpy(np.random.default_rng(seed).random((rows, rows + more)) < 0.5)
    partner = torch.from_numpy(np.random.default_rng(seed).integers(0, max(rows + more, 1), rows))
    assert_equal(
        lambda: in_batch(left, right, partner=partner, mask=keep, temperature=0.2, block=block, **FORMS[form]),
        lambda: plain(left, right, partner=partner, keep=keep, temperature=0.2, **FORMS[form]),
        [left, right],
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_other_precisions(dtype, form):
    left, right = vectors(30, 16), vectors(30, 16, seed=1)
    low = [value.detach().to(dtype).requires_grad_() for value in (left, right)]
    exact = [value.detach().double().requires_grad_() for value in low]
    ours, wanted = in_batch(*low, temperature=0.2, **form), in_batch(*exact, temperature=0.2, **form)
    assert ours.dtype == dtype
    loose = {"rtol": 2e-2, "atol": 2e-2} if dtype != torch.float32 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(ours.double(), wanted, **loose)
    found = torch.autograd.grad(ours.sum(), low)
    for one, other in zip(found, torch.autograd.grad(wanted.sum(), exact), strict=True):
        assert one.dtype == dtype
        torch.testing.assert_close(one.double(), other, **loose)


def test_a_frozen_side_takes_no_gradient_and_none_is_made_without_one():
    left, right = vectors(5, 3), vectors(5, 3, seed=1)
    in_batch(left, right.detach()).sum().backward()
    assert left.grad is not None
    with torch.no_grad():
        assert not in_batch(left, right).requires_grad
    found = torch.autograd.grad(in_batch(left.detach(), right).sum(), right)[0]
    wanted = torch.autograd.grad(in_batch(left, right).sum(), right)[0]
    torch.testing.assert_close(found, wanted, **CLOSE)


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_log_q_takes_no_gradient(block):
    log_q, positive_log_q = (torch.full((40,), -3.0, dtype=torch.float64, requires_grad=True) for _ in range(2))
    losses = in_batch(
        vectors(40, 4), vectors(40, 4, seed=1), log_q=log_q, positive_log_q=positive_log_q, form="classic", block=block
    )
    losses.sum().backward()
    assert (log_q.grad, positive_log_q.grad) == (None, None)


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


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("uneven", [False, True])
def test_the_matrix_is_never_stored(form, uneven):
    """No tensor has more than a block or one of the inputs, and nothing of a block is kept for the backward pass."""
    left, right = (vectors(512, 8, seed=s, dtype=torch.float32) for s in (0, 1))
    factor = torch.linspace(0.5, 1.5, 512) if uneven else torch.ones(512)
    saved = []

    def pack(tensor):
        saved.append(weakref.ref(tensor))
        return tensor

    with Largest() as largest:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            losses = in_batch(left, right, temperature=0.1, block=1 << 14, **form)
        kept = sum(tensor().numel() for tensor in saved if tensor() is not None)
        (losses * factor).sum().backward()
    assert largest.size <= 4 * (1 << 14)
    assert kept < 20 * 512 * 8  # a few of the size of the inputs, where the matrix has 512 * 512
