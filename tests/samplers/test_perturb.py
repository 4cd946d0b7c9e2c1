"""shuffled, noise and ascend: what is kept, what is moved, and that no model is touched."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.losses import in_batch
from naysay.samplers import ascend, noise, shuffled


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 6), st.integers(1, 4), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 1000))
def test_shuffled_keeps_rows_or_entries_and_moves_every_row(n, d, rows, columns, as_torch, seed):
    vectors = np.arange(float(n * d)).reshape(n, d)
    given_ = torch.from_numpy(vectors) if as_torch else vectors
    moved = np.asarray(shuffled(given_, rows=rows, columns=columns, rng=ns.rng_for(seed)))
    if columns:
        np.testing.assert_array_equal(np.sort(moved, axis=None), vectors.ravel())
    else:
        np.testing.assert_array_equal(moved[np.argsort(moved[:, 0])], vectors)
    places = moved[:, 0] // d
    if rows and n > 1:
        assert (places != np.arange(n)).all()
    elif not rows:
        assert (places == np.arange(n)).all()


def test_noise():
    made = noise(500, 8, rng=ns.rng_for(0))
    assert abs(made.mean()) < 0.06
    assert made.std() == pytest.approx(1.0, abs=0.03)
    like = torch.zeros(1, dtype=torch.float32)
    assert torch.equal(noise(500, 8, rng=ns.rng_for(0), like=like), torch.from_numpy(made).float())


@pytest.mark.parametrize("norm", ["unit", "sign", "none"])
def test_ascend_raises_the_loss_and_leaves_the_model_alone(norm):
    layer = torch.nn.Linear(3, 3).double()
    rows = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 3)))
    started = noise(7, 3, rng=ns.rng_for(1), like=rows)

    def loss(moved):
        anchors = layer(rows)
        return in_batch(anchors, anchors + 0.1, negatives=moved.expand(5, 7, 3), temperature=0.5)

    moved = ascend(started, loss, steps=3, size=1e-2, norm=norm)
    assert loss(moved).sum() > loss(started).sum()
    assert layer.weight.grad is None
    assert not moved.requires_grad
    apart = ascend(started, loss, steps=1, size=0.5, norm=norm) - started
    if norm == "unit":
        assert torch.allclose(apart.norm(dim=1), torch.full((7,), 0.5).double())
    if norm == "sign":
        assert torch.allclose(apart.abs(), torch.full((7, 3), 0.5).double())
    assert torch.equal(ascend(started, loss, steps=0), started)
