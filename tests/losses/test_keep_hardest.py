"""keep_hardest: by sorting in plain Python, gradients of the chosen alone, and ties."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay.losses import bpr, keep_hardest


def in_loops(values, keep, groups, mask):
    """1 for what stays of one row."""
    order = sorted((j for j in range(len(values)) if mask[j]), key=lambda j: -values[j])
    count = int(keep * len(order) + 1e-9) if isinstance(keep, float) else keep
    chosen, seen = [], set()
    for j in order:
        if groups[j] < 0 or groups[j] not in seen:
            chosen.append(j)
            seen.add(groups[j])
    return [float(j in chosen[:count]) for j in range(len(values))]


@settings(max_examples=10, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 7) | st.integers(30, 70),
    st.sampled_from([1, 2, 5, 0.5, 1.0, 0.3, 0.1]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_by_loops(rows, slots, keep, grouped, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (rows, slots)) / 2.0  # many ties
    groups = rng.integers(-1, 2 + slots // 2, (rows, slots)) if grouped else np.full((rows, slots), -1)
    mask = rng.random((rows, slots)) < 0.8
    found = keep_hardest(torch.from_numpy(values), keep, groups=groups, mask=mask)
    assert found.tolist() == [in_loops(*parts) for parts in zip(values, [keep] * rows, groups, mask, strict=True)]
    first = keep_hardest(torch.from_numpy(values[0]), keep, groups=groups[0], mask=mask[0])
    assert first.tolist() == found[0].tolist()


def test_the_gradient_is_that_of_the_chosen():
    scores = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(6, 2).requires_grad_()
    losses = bpr(scores[:, 0], scores[:, 1:])
    weights = keep_hardest(losses, 0.5)
    assert not weights.requires_grad
    (losses * weights).sum().backward()
    assert (scores.grad.abs().sum(dim=1) > 0).tolist() == (weights == 1).tolist()
    assert keep_hardest(losses, 1.0).eq(1).all()
    assert keep_hardest(torch.tensor([1.0, 1.0, 1.0]), 2).tolist() == [1.0, 1.0, 0.0]
