"""eliminate, attract and sup_con: plain loops, the paper's closed-form gradients, and laws."""

import math

import numpy as np
import pytest
import torch

from naysay.losses import attract, eliminate, in_batch, sup_con

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def world(rows=10, keys=4, seed=0, granularities=None, classes=3):
    """(z, partner, labels, keys, key_labels): rows in pairs, labels from -1 up."""
    rng = np.random.default_rng(seed)
    z = torch.from_numpy(rng.standard_normal((rows, 5))).requires_grad_()
    partner = rng.permutation(rows).reshape(-1, 2)
    who = np.empty(rows, dtype=int)
    who[partner[:, 0]], who[partner[:, 1]] = partner[:, 1], partner[:, 0]
    shape = () if granularities is None else (granularities,)
    labels, key_labels = rng.integers(-1, classes, (*shape, rows)), rng.integers(-1, classes, (*shape, keys))
    return z, who, labels, torch.from_numpy(rng.standard_normal((keys, 5))).requires_grad_(), key_labels


# ---- gradients ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["eliminate", "attract", "all", "negatives"])
def test_all_gradients_against_finite_differences(name):
    """In several blocks, with factors that differ between rows."""
    z, partner, labels, keys, key_labels = world(rows=18, keys=2, granularities=2)
    factor = torch.linspace(0.5, 1.5, 18, dtype=torch.float64)
    loss = calls(name, partner)

    def total(z, keys):
        return (factor * loss(z, labels, keys=keys, key_labels=key_labels, block=1)).sum()

    assert torch.autograd.gradcheck(total, (z, keys), rtol=1e-6, atol=1e-8, fast_mode=True)


# ---- laws -----------------------------------------------------------------------------------------------


def test_elimination_is_in_batch_with_labels():
    z, partner, labels, _, _ = world(granularities=2)
    wanted = in_batch(z, partner=partner, labels=labels, temperature=0.5)
    torch.testing.assert_close(eliminate(z, partner, labels, temperature=0.5), wanted, **CLOSE)


@pytest.mark.parametrize("loss", [eliminate, attract])
def test_the_anchors_own_older_entries_are_masked(loss):
    """With a queue: as if those entries were not there, for that row alone."""
    z, partner, labels, keys, key_labels = world(keys=3)
    ids, queued = np.arange(10), np.array([2, 7, 7])
    names = np.concatenate([ids, queued])
    given = {"temperature": 0.5, "keys": keys, "key_labels": key_labels}
    found = loss(z, partner, labels, mask=lambda rows: ids[rows, None] != names, **given)
    for row, left in ((2, [1, 2]), (7, [0]), (5, [0, 1, 2])):
        wanted = loss(z, partner, labels, temperature=0.5, keys=keys[left], key_labels=key_labels[left])
        torch.testing.assert_close(found[row], wanted[row], **CLOSE)


@pytest.mark.parametrize("name", ["eliminate", "attract", "all", "negatives"])
def test_a_weight_of_two_is_the_column_twice(name):
    z, partner, labels, keys, key_labels = world(keys=3)
    twice, names = torch.cat([keys, keys[1:2]]), np.append(key_labels, key_labels[1])
    weights = np.ones(13)
    weights[11] = 2
    call = calls(name, partner)
    found = call(z, labels, keys=keys, key_labels=key_labels, weights=weights)
    torch.testing.assert_close(found, call(z, labels, keys=twice, key_labels=names), **CLOSE)
    weights[11] = 0
    without = call(z, labels, keys=keys[[0, 2]], key_labels=key_labels[[0, 2]])
    torch.testing.assert_close(call(z, labels, keys=keys, key_labels=key_labels, weights=weights), without, **CLOSE)
    mask = torch.from_numpy(weights > 0).expand(10, 13)
    torch.testing.assert_close(call(z, labels, keys=keys, key_labels=key_labels, mask=mask), without, **CLOSE)


def calls(name, partner):
    if name in ("eliminate", "attract"):
        loss = {"eliminate": eliminate, "attract": attract}[name]
        return lambda z, labels, **given: loss(z, partner, labels, temperature=0.5, **given)
    return lambda z, labels, **given: sup_con(z, labels, temperature=0.5, denominator=name, **given)


@pytest.mark.parametrize("loss", [eliminate, attract])
def test_a_row_with_no_negatives_gives_0_and_no_gradient(loss):
    z = torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    values = loss(z, [1, 0], [-1, -1], temperature=0.5)
    assert (values == 0).all()
    assert (torch.autograd.grad(values.sum(), z)[0].abs() < 1e-15).all()


def test_a_row_whose_negatives_are_all_eliminated_gives_0():
    z, partner, _, _, _ = world()
    values = eliminate(z, partner, np.zeros(10, dtype=int), temperature=0.1)
    assert (values == 0).all()
    assert (torch.autograd.grad(values.sum(), z)[0] == 0).all()


@pytest.mark.parametrize("denominator", ["all", "negatives"])
def test_supervised_contrast_in_plain_loops(denominator):
    z, _, labels, _, _ = world(rows=14)
    labels[:2] = [40, -1]  # one that is alone in its class, one without
    found = sup_con(z, labels, temperature=0.8, denominator=denominator)
    vectors = z.detach().numpy()
    for i in range(14):
        sim = [math.exp(float(vectors[i] @ vectors[j]) / 0.8) for j in range(14)]
        mine = [j for j in range(14) if j != i and labels[j] == labels[i] != -1]
        other = [j for j in range(14) if j != i and j not in mine]
        wanted = 0.0
        for p in mine:
            total = sum(sim[j] for j in ([*mine, *other] if denominator == "all" else [p, *other]))
            wanted -= math.log(sim[p] / total) / len(mine)
        assert found[i].item() == pytest.approx(wanted, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["eliminate", "attract", "all", "negatives"])
def test_low_precision_and_extreme_scores(name):
    z, partner, labels, keys, key_labels = world()
    call = calls(name, partner)
    exact = call(z, labels, keys=keys, key_labels=key_labels)
    for dtype, loose in ((torch.float32, 1e-5), (torch.bfloat16, 5e-2)):
        found = call(z.to(dtype), labels, keys=keys.to(dtype), key_labels=key_labels)
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), exact, rtol=loose, atol=loose)
    large = (60 * z.detach()).float().requires_grad_()
    values = call(large, labels)
    assert values.isfinite().all()
    assert torch.autograd.grad(values.sum(), large)[0].isfinite().all()
