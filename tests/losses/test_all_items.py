"""all_items: the double loop over anchors and items, the golden value, and its errors."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_in_batch_golden import vectors

import naysay as ns
from naysay.losses import all_items

ONE, TWO, _ = vectors(torch.float64)


def in_loops(anchors, items, positives, weight):
    """The loss as it is defined: (B,)."""
    losses = []
    for row, anchor in enumerate(anchors):
        terms = []
        for item, vector in enumerate(items):
            score = (anchor * vector).sum()
            terms.append((1 - score) ** 2 if (row, item) in positives else weight[item] * score**2)
        losses.append(torch.stack(terms).sum())
    return torch.stack(losses) if losses else anchors.new_zeros(0)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 4), st.integers(1, 6), st.integers(0, 2**32), st.booleans())
def test_it_is_the_double_loop(rows, n_items, seed, single):
    rng = np.random.default_rng(seed)
    anchors, items = (torch.from_numpy(rng.standard_normal((n, 3))).requires_grad_() for n in (rows, n_items))
    pairs = [(b, i) for b in range(rows) for i in range(n_items) if rng.random() < 0.4]
    weight = 0.3 if single else rng.random(n_items)
    given_ = tuple(np.array([*pairs, *pairs], int).reshape(-1, 2).T)  # each pair twice: it counts once
    found = all_items(anchors, items, given_, weight=weight)
    wanted = in_loops(anchors, items, set(pairs), np.broadcast_to(weight, n_items))
    assert torch.allclose(found, wanted, atol=1e-10)
    if rows:
        one, two = (torch.autograd.grad(loss.sum(), (anchors, items)) for loss in (found, wanted))
        assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(one, two, strict=True))


def test_golden_value_of_enmf():
    rows = all_items(ONE, TWO, (range(4), range(4)), weight=0.1)
    assert rows.tolist() == pytest.approx([0.298343, 0.276809, 0.243800, 0.201767], abs=5e-7)
    code = ((1 - 0.1) * (ONE * TWO).sum(1) ** 2 - 2 * (ONE * TWO).sum(1)).sum() + 0.1 * ((ONE @ TWO.T) ** 2).sum()
    assert rows.sum().item() == pytest.approx(code.item() + 4)  # which leaves out the number of positives


def test_an_ignored_pair_is_neither_positive_nor_negative():
    """Its term is gone; the positives after it in the row stay positives."""
    known = ns.Positives.from_pairs([0, 0, 1], [3, 4, 0], 2, 5).with_ignored([0], [0])
    anchors = torch.tensor([[1.0, -2.0], [0.5, 1.0]], dtype=torch.float64, requires_grad=True)
    items = torch.tensor([[2.0, 1.0], [0.3, 0.1], [-1.0, 0.4], [0.9, 0.0], [0.2, -0.3]], dtype=torch.float64)
    found = all_items(anchors, items, (known, [0, 1]), weight=0.1)
    scores = (anchors @ items.T).detach()
    first = 0.1 * (scores[0, 1] ** 2 + scores[0, 2] ** 2) + (1 - scores[0, 3]) ** 2 + (1 - scores[0, 4]) ** 2
    second = (1 - scores[1, 0]) ** 2 + 0.1 * (scores[1, 1:] ** 2).sum()
    torch.testing.assert_close(found.detach(), torch.stack([first, second]))
    items_only = items.clone().requires_grad_()
    all_items(anchors[:1].detach(), items_only, (known, [0])).sum().backward()
    assert (items_only.grad[0] == 0).all()
