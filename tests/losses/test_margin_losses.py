"""bounded_margin, margin_mse, normalised_hardness and in_batch_hinge: by loops, and golden values."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_in_batch_golden import vectors

from naysay.losses import bounded_margin, in_batch_hinge, margin_mse, normalised_hardness

ONE, TWO, NEGATED = vectors(torch.float64)


def in_loops(rows, positive, negatives, mask, weights):
    """A weighted mean over the valid slots of rows(p, s), written out."""
    losses = []
    for p, row, valid, counts in zip(positive, negatives, mask, weights, strict=True):
        kept = [(s, w) for s, ok, w in zip(row, valid, counts, strict=True) if ok and w > 0]
        losses.append(sum(w * rows(p, s) for s, w in kept) / sum(w for _, w in kept) if kept else 0.0)
    return losses


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 4), st.integers(0, 5), st.integers(0, 2**32))
def test_means_over_slots_by_loops(rows, slots, seed):
    rng = np.random.default_rng(seed)
    p, s = rng.uniform(-1, 1, rows), rng.uniform(-1, 1, (rows, slots))
    mask, weights = rng.random((rows, slots)) < 0.7, rng.integers(0, 3, (rows, slots)) * 0.5
    given_ = (torch.from_numpy(p), torch.from_numpy(s))
    found = bounded_margin(*given_, low=0.2, high=0.5, mask=mask, weights=weights)
    wanted = in_loops(lambda p, s: max(0, s - p + 0.2) + max(0, p - s - 0.5), p, s, mask, weights)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    found = margin_mse(*given_, teacher_positive=p * 3, teacher_negatives=s**2, mask=mask, weights=weights)
    losses = []
    for b in range(rows):
        kept = [j for j in range(slots) if mask[b, j] and weights[b, j] > 0]
        total = sum(weights[b, j] * (p[b] - s[b, j] - (3 * p[b] - s[b, j] ** 2)) ** 2 for j in kept)
        losses.append(total / sum(weights[b, j] for j in kept) if kept else 0.0)
    np.testing.assert_allclose(found, losses, atol=1e-12)


def test_golden_values_of_sncse():
    gaps = torch.tensor([-0.2, 0.0, -0.5], dtype=torch.float64)
    assert bounded_margin(torch.zeros(3).double(), gaps[:, None]).tolist() == pytest.approx([0.0, 0.1, 0.2])
    rows = bounded_margin((ONE * TWO).sum(1), (ONE * NEGATED).sum(1)[:, None])
    assert rows.tolist() == pytest.approx([1.164964, 0.188224, 1.038703, 0.264893], abs=5e-7)
    both = bounded_margin(torch.zeros(3).double(), gaps[:, None], low=0.3, high=0.3)
    assert both.tolist() == pytest.approx((gaps + 0.3).abs().tolist())


def squared(one, two):
    return ((one[:, None] - two) ** 2).sum(dim=2)


def test_golden_values_of_dual_amn():
    apart = -squared(ONE, TWO)
    others = apart[~torch.eye(4, dtype=torch.bool)].reshape(4, 3)
    rows = normalised_hardness(apart.diagonal(), others)
    assert rows.tolist() == pytest.approx([52.424705, 52.388707, 52.381955, 52.274398], abs=5e-4)
    exact = normalised_hardness(apart.diagonal() * 1e6, others * 1e6)  # the 1e-6 of the deviation is then nothing
    assert exact.tolist() == pytest.approx([52.424705, 52.388707, 52.381955, 52.274398], abs=5e-7)


def test_standardised_margins_do_not_see_units_and_equal_ones_are_zero():
    p, s = torch.tensor([0.3], dtype=torch.float64), torch.tensor([[1.0, 5.0, 2.0, 9.0]], dtype=torch.float64)
    plain = normalised_hardness(p, s)
    assert normalised_hardness(p * 7 + 3, s * 7 + 3).item() == pytest.approx(plain.item(), abs=1e-3)
    masked = normalised_hardness(p, s, mask=[[True, True, False, True]])
    assert masked.item() == pytest.approx(normalised_hardness(p, s[:, [0, 1, 3]]).item(), abs=1e-12)
    assert normalised_hardness(p, s * 0 + 4).item() == pytest.approx(math.log(4) + 10)
    p.requires_grad_()
    normalised_hardness(p, s).sum().backward()
    assert p.grad.item() < 0  # the value does not depend on the positive, the gradient raises it


def hinge_in_loops(scores, partner, margin, among, left_out):
    losses = []
    for i, row in enumerate(scores):
        gaps = [
            max(0.0, margin + s - row[partner[i]]) for j, s in enumerate(row) if j != partner[i] and not left_out[i][j]
        ]
        losses.append(sum(sorted(gaps, reverse=True)[: len(gaps) if among is None else among]))
    return losses


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 5), st.sampled_from([None, 1, 2, 9]), st.integers(0, 2**32), st.sampled_from([1, 1 << 22]))
def test_in_batch_hinge_by_loops(rows, among, seed, block):
    rng = np.random.default_rng(seed)
    anchors, keys = rng.standard_normal((rows, 3)), rng.standard_normal((rows + 2, 3))
    labels, key_labels = rng.integers(-1, 2, rows), rng.integers(-1, 2, rows + 2)
    mask, partner = rng.random((rows, rows + 2)) < 0.8, rng.permutation(rows + 2)[:rows]
    tensors = [torch.from_numpy(part).requires_grad_() for part in (anchors, keys)]
    options = {"partner": partner, "margin": 0.5, "among": among, "mask": mask, "block": block}
    found = in_batch_hinge(*tensors, labels=labels, key_labels=key_labels, **options)
    same = (labels[:, None] == key_labels) & (labels[:, None] >= 0)
    wanted = hinge_in_loops((anchors @ keys.T).tolist(), partner, 0.5, among, same | ~mask)
    np.testing.assert_allclose(found.detach(), wanted, atol=1e-10)
    if rows:
        assert torch.autograd.gradcheck(
            lambda *parts: in_batch_hinge(*parts, labels=labels, key_labels=key_labels, **options), tensors, atol=1e-5
        )


def test_golden_values_of_vse():
    for margin, among, value in ((2, 1, 15.723357), (2, None, 18.040198), (0.2, 1, 1.323357), (0.2, None, 1.323357)):
        how = {"margin": margin, "among": among}
        both = in_batch_hinge(ONE, TWO, **how).sum() + in_batch_hinge(TWO, ONE, **how).sum()
        assert both.item() == pytest.approx(value, abs=5e-7)
    assert torch.equal(in_batch_hinge(ONE, TWO, margin=2, among=3), in_batch_hinge(ONE, TWO, margin=2))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "scores",
    [[0.3], [0.7, 0.7, 0.7], [0.1] * 7, [1e4, 1e4, 1e4], [0.0, 0.0]],
    ids=["one negative", "ties", "ties whose mean is rounded", "large ties", "zeros"],
)
def test_normalised_hardness_without_a_spread_pushes_by_its_scale(scores, dtype):
    """There is nothing to divide by: the margins count as they are, and the slots share the gradient."""
    positive = torch.tensor([0.5], dtype=dtype, requires_grad=True)
    negatives = torch.tensor([scores], dtype=dtype, requires_grad=True)
    loss = normalised_hardness(positive, negatives, scale=30.0)
    assert loss.item() == pytest.approx(math.log(len(scores)) + 10, rel=1e-2)
    loss.sum().backward()
    assert negatives.grad.double().tolist()[0] == pytest.approx([30.0 / len(scores)] * len(scores), rel=1e-2)
    assert positive.grad.item() == pytest.approx(-30.0, rel=1e-2)


def test_normalised_hardness_of_nearly_equal_scores_is_finite_in_half_precision():
    positive = torch.tensor([0.5], dtype=torch.float16, requires_grad=True)
    negatives = torch.tensor([[0.5, 0.5005, 0.501]], dtype=torch.float16, requires_grad=True)
    normalised_hardness(positive, negatives).sum().backward()
    assert positive.grad.isfinite().all()
    assert negatives.grad.isfinite().all()
