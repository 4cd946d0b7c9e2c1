"""invariant_spreading and proto_nce: by loops, golden values, and what happens at the edges."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_in_batch_golden import vectors

import naysay as ns
from naysay.losses import concentrations, in_batch, invariant_spreading, proto_nce

ONE, TWO, _ = vectors(torch.float64)
BOTH, PARTNER = torch.cat([ONE, TWO]), torch.arange(8).roll(4)


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 4), st.floats(0, 3), st.integers(0, 2**32), st.sampled_from([1, 1 << 22]), st.booleans())
def test_spreading_by_loops(pairs, weight, seed, block, masked):
    rng = np.random.default_rng(seed)
    z, partner = rng.standard_normal((2 * pairs, 3)), np.arange(2 * pairs) ^ 1
    mask = rng.random((2 * pairs, 2 * pairs)) < (0.7 if masked else 2)
    tensor = torch.from_numpy(z).requires_grad_()
    how = {"temperature": 0.8, "weight": weight, "block": block, "mask": mask}
    found = invariant_spreading(tensor, partner, **how)
    for i in range(2 * pairs):
        columns = [j for j in range(2 * pairs) if j != i and (mask[i, j] or j == partner[i])]
        raised = {j: math.exp(z[i] @ z[j] / 0.8) for j in columns}
        share = {j: value / sum(raised.values()) for j, value in raised.items()}
        wanted = -math.log(share.pop(partner[i])) - weight * sum(math.log1p(-value) for value in share.values())
        assert found[i].item() == pytest.approx(wanted if len(columns) > 1 else 0.0, rel=1e-6, abs=1e-9)
    assert torch.autograd.gradcheck(lambda z: invariant_spreading(z, partner, **how), tensor, atol=1e-4)


def test_golden_values_of_ye():
    assert invariant_spreading(BOTH, PARTNER, temperature=0.5).mean().item() == pytest.approx(1.937924, abs=5e-7)
    assert invariant_spreading(BOTH, PARTNER, temperature=0.1).mean().item() == pytest.approx(2.037558, abs=1e-6)
    plain = in_batch(BOTH, partner=PARTNER, temperature=0.5)
    assert torch.allclose(invariant_spreading(BOTH, PARTNER, temperature=0.5, weight=0.0), plain)


def test_a_probability_of_1_has_a_finite_loss_and_gradient():
    """The published code takes log(1 - P) of a rounded P, which is -inf."""
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]).mul(20).requires_grad_()  # float32
    losses = invariant_spreading(z, [1, 0, 3, 2], temperature=1.0)
    losses.sum().backward()
    assert losses.isfinite().all()
    assert losses.min() > 700
    assert z.grad.isfinite().all()


def centres(granularity):
    return torch.linspace(-1, 1, 3 * granularity, dtype=torch.float64).cos().reshape(granularity, 3)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 5), st.integers(0, 2**32))
def test_prototypes_by_loops(rows, seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((rows, 3))
    labels = np.stack([rng.integers(-1, k, rows) for k in (2, 4)])
    phis = [0.3, rng.uniform(0.1, 1, 4)]
    found = proto_nce(torch.from_numpy(z), [centres(2), centres(4)], labels, temperatures=phis)
    for i in range(rows):
        losses = []
        for k, phi, label in zip((2, 4), phis, labels[:, i], strict=True):
            logits = centres(k).numpy() @ z[i] / phi
            losses.append(math.log(np.exp(logits).sum()) - logits[label] if label >= 0 else 0.0)
        assert found[i].item() == pytest.approx(sum(losses) / 2, abs=1e-9)


def test_two_samples_of_a_cluster_share_one_column():
    """The published code has one column for each, and so each other's centre as a negative."""
    z = torch.eye(3, dtype=torch.float64)[[0, 0]]
    few = proto_nce(z, torch.eye(3), [0, 0], temperatures=1.0, negatives=2, rng=ns.rng_for(0))
    assert torch.allclose(few, proto_nce(z, torch.eye(3), [0, 0], temperatures=1.0))
    assert proto_nce(z, torch.eye(3), [0, 0], temperatures=1.0, negatives=0, rng=ns.rng_for(0)).tolist() == [0.0, 0.0]
    assert proto_nce(z, torch.eye(3)[:1], [0, -1], temperatures=1.0).tolist() == [0.0, 0.0]


def test_drawn_clusters_are_outside_of_the_batch_and_change():
    z = torch.ones(1, 4, dtype=torch.float64)
    scores = torch.diag(torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64))
    seen = {
        round(proto_nce(z, scores, [0], temperatures=1.0, negatives=1, rng=ns.rng_for(0, step)).item(), 6)
        for step in range(40)
    }
    assert seen == {round(math.log1p(math.exp(gap)), 6) for gap in (1, 2, 3)}


def test_concentrations():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), (1, 5, 10, 20, 40, 80))
    middle = rng.standard_normal((6, 4))
    points = middle[labels] + rng.standard_normal((len(labels), 4)) * (1 + labels[:, None])
    phi = concentrations(points, middle, labels, temperature=0.2)
    assert phi.mean() == pytest.approx(0.2)
    raw = [
        np.linalg.norm(points[labels == c] - middle[c], axis=1).mean() / math.log((labels == c).sum() + 10)
        for c in range(6)
    ]
    raw[0] = max(raw[1:])
    clipped = np.clip(raw, *np.percentile(raw, (10, 90)))
    np.testing.assert_allclose(phi, 0.2 * clipped / clipped.mean())
