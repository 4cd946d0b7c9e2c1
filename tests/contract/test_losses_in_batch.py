"""Losses over a batch: elimination and attraction with the gradients of their source, in-batch, supervised, cached."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

import naysay as ns
from tests.contract import names, oracles

BOTH = pytest.mark.parametrize("kind", ["eliminate", "attract"])


def world(rows=10, keys=4, seed=0, granularities=None):
    """(z, partner, labels, keys, key_labels): rows in pairs, labels from -1 up."""
    rng = np.random.default_rng(seed)
    z = torch.from_numpy(rng.standard_normal((rows, 5)))
    pairs = rng.permutation(rows).reshape(-1, 2)
    partner = np.empty(rows, int)
    partner[pairs[:, 0]], partner[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    shape = () if granularities is None else (granularities,)
    labels, key_labels = rng.integers(-1, 3, (*shape, rows)), rng.integers(-1, 3, (*shape, keys))
    return z, partner, labels, torch.from_numpy(rng.standard_normal((keys, 5))), key_labels


@BOTH
@pytest.mark.parametrize("granularities", [None, 1, 3])
@pytest.mark.parametrize("queue", [False, True])
def test_the_equations_of_the_source_in_plain_loops(kind, granularities, queue):
    z, partner, labels, keys, key_labels = world(granularities=granularities)
    extra = {"keys": keys, "key_labels": key_labels} if queue else {}
    found = getattr(ns.losses, kind)(z, partner, labels, temperature=0.7, **extra)
    columns = torch.cat([z, keys]).numpy() if queue else z.numpy()
    everyone = np.concatenate([labels, key_labels], axis=-1) if queue else labels
    rows = [getattr(oracles, kind)(columns, partner.tolist(), one, 0.7) for one in np.atleast_2d(everyone)]
    assert found.tolist() == pytest.approx(np.mean(rows, axis=0).tolist(), rel=1e-10)


@BOTH
@given(seed=st.integers(0, 10_000), pairs=st.integers(1, 5), temperature=st.floats(0.1, 2.0))
def test_the_gradient_of_a_row_is_that_of_the_source(kind, seed, pairs, temperature):
    """Equations 8 and 10, to 1e-9, with negative coefficients of near positives as they are."""
    z, partner, labels, _, _ = world(2 * pairs, seed=seed)
    closed_form = {"eliminate": oracles.gradient_of_eliminate, "attract": oracles.gradient_of_attract}[kind]
    for i in range(2 * pairs):
        row = z[i].clone().requires_grad_()
        moved = torch.cat([z[:i], row[None], z[i + 1 :]])
        loss = getattr(ns.losses, kind)(moved, partner, labels, temperature=temperature)[i]
        found = torch.autograd.grad(loss, row)[0].numpy()
        np.testing.assert_allclose(found, closed_form(z.numpy(), partner, labels, temperature, i), rtol=1e-9, atol=1e-9)


@BOTH
def test_without_an_accepted_label_it_is_info_nce(kind):
    z, partner, _, _, _ = world()
    found = getattr(ns.losses, kind)(z, partner, np.full(10, -1), temperature=0.5)
    scores, mask = z @ z.T, ~torch.eye(10, dtype=torch.bool)
    mask[torch.arange(10), torch.from_numpy(partner)] = False
    own = scores[torch.arange(10), torch.from_numpy(partner)]
    torch.testing.assert_close(found, ns.losses.info_nce(own, scores, mask=mask, temperature=0.5))


@BOTH
def test_keys_without_labels_only_enlarge_the_denominator(kind):
    z, partner, labels, keys, _ = world()
    loss = getattr(ns.losses, kind)
    found = loss(z, partner, labels, temperature=0.5, keys=keys)
    unlabelled = loss(z, partner, labels, temperature=0.5, keys=keys, key_labels=np.full(4, -1))
    torch.testing.assert_close(found, unlabelled)
    assert (found > loss(z, partner, labels, temperature=0.5)).all()


def test_a_near_positive_is_pushed_away_by_attraction():
    z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.5]], dtype=torch.float64, requires_grad=True)
    gradient = torch.autograd.grad(ns.losses.attract(z, [1, 0, 3, 2], [5, 5, 5, -1], temperature=0.2)[0], z)[0]
    assert gradient[1, 0] > 0  # downhill leads away from the partner
    assert gradient[2, 0] < 0  # and towards the far one


@pytest.mark.parametrize("block", [7, 1 << 20])
def test_blocks_change_neither_values_nor_gradients(block):
    z, partner, labels, keys, key_labels = world(20)
    z.requires_grad_()
    options = {"temperature": 0.5, "keys": keys, "key_labels": key_labels}
    for loss in (ns.losses.eliminate, ns.losses.attract):
        whole, parts = loss(z, partner, labels, **options), loss(z, partner, labels, **options, block=block)
        torch.testing.assert_close(whole, parts)
        one, other = (torch.autograd.grad(value.sum(), z)[0] for value in (whole, parts))
        torch.testing.assert_close(one, other)


# ---- in batch -------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000))
def test_in_batch_is_info_nce_over_the_other_keys(seed):
    rng = np.random.default_rng(seed)
    anchors, keys = torch.from_numpy(rng.normal(size=(5, 3))), torch.from_numpy(rng.normal(size=(5, 3)))
    scores = anchors @ keys.T
    mask = ~torch.eye(5, dtype=torch.bool)
    found = ns.losses.in_batch(anchors, keys, temperature=0.4)
    torch.testing.assert_close(found, ns.losses.info_nce(scores.diagonal(), scores, mask=mask, temperature=0.4))
    # An item in two rows is no negative of the other row: that is the mask of the pool.
    query = ns.Query(np.arange(5), positives=np.array([0, 1, 0, 2, 3]))
    eligible = ns.pools.InBatch().eligible(query)
    masked = ns.losses.in_batch(anchors, keys, temperature=0.4, mask=eligible)
    torch.testing.assert_close(masked, ns.losses.info_nce(scores.diagonal(), scores, mask=eligible, temperature=0.4))


def test_in_batch_gradients_and_blocks():
    rng = np.random.default_rng(0)
    vectors = [torch.from_numpy(rng.normal(size=(6, 3))).requires_grad_() for _ in range(2)]
    assert torch.autograd.gradcheck(lambda a, k: ns.losses.in_batch(a, k, temperature=0.5).sum(), vectors)
    whole = ns.losses.in_batch(*vectors, temperature=0.5)
    torch.testing.assert_close(whole, ns.losses.in_batch(*vectors, temperature=0.5, block=7))


# Values of the losses of other libraries for twelve vectors, in float64: pytorch-metric-learning 2.9.0 (NT-Xent,
# SupCon), sentence-transformers 6.2.0 (multiple negatives ranking); debiased and hard: their authors' code, float32.
COUNT = torch.arange(1, 13, dtype=torch.float64)
ONE = normalize(COUNT.sin().view(4, 3), dim=1)
TWO = normalize(ONE + 0.3 * COUNT.cos().view(4, 3), dim=1)
THREE = normalize((2 * COUNT).cos().view(4, 3), dim=1)
VIEWS = torch.cat([ONE, TWO])
OTHER_VIEW = torch.arange(8).roll(4)
LABELS = [0, 0, 1, 1, 0, 1, 2, 2]


@pytest.mark.parametrize(
    ("value", "loss", "tolerance"),
    [
        (1.1262597087, lambda: ns.losses.in_batch(VIEWS, partner=OTHER_VIEW, temperature=0.5), 1e-9),
        (0.6889511534, lambda: ns.losses.in_batch(ONE, TWO, temperature=0.5), 1e-9),
        (0.973627, lambda: ns.losses.in_batch(VIEWS, partner=OTHER_VIEW, temperature=0.5, prior=0.1), 2e-6),
        (1.908181, lambda: ns.losses.in_batch(VIEWS, partner=OTHER_VIEW, temperature=0.5, prior=0.1, beta=1.0), 2e-6),
        (4.0018207319, lambda: ns.losses.sup_con(VIEWS, LABELS, temperature=0.5), 1e-9),
        (15.5391067337, lambda: ns.losses.sup_con(VIEWS, LABELS, temperature=0.1), 1e-9),
        (0.7514101875, lambda: ns.losses.in_batch(ONE, TWO, temperature=0.05), 1e-9),
        (
            0.7514247712,
            lambda: ns.losses.in_batch(ONE, TWO, negatives=THREE[:, None], share_negatives=True, temperature=0.05),
            1e-9,
        ),
    ],
)
def test_the_values_of_other_libraries(value, loss, tolerance):
    assert loss().mean().item() == pytest.approx(value, abs=tolerance)


@given(seed=st.integers(0, 10_000))
def test_supervised_contrast_is_that_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    z, labels = rng.normal(size=(7, 3)), rng.integers(-1, 3, 7)
    found = ns.losses.sup_con(torch.from_numpy(z), labels, temperature=0.6)
    assert found.tolist() == pytest.approx(oracles.sup_con(z, labels, 0.6), rel=1e-9)


def test_the_hinge_of_a_batch_is_a_hinge_over_its_slots():
    scores = ONE @ TWO.T
    found = ns.losses.in_batch_hinge(ONE, TWO, margin=0.2)
    wanted = ns.losses.hinge(scores.diagonal(), scores, margin=0.2, mask=~torch.eye(4, dtype=torch.bool))
    assert found.tolist() == pytest.approx(wanted.tolist(), rel=1e-9)


# ---- instances and clusters -----------------------------------------------------------------------------------------


def test_invariant_spreading_in_plain_loops():
    found = names.invariant_spreading(VIEWS, OTHER_VIEW, temperature=0.5, weight=0.7)
    for i in range(8):
        similar = [math.exp(float(VIEWS[i] @ VIEWS[j]) / 0.5) for j in range(8)]
        total = math.fsum(similar[j] for j in range(8) if j != i)
        own = int(OTHER_VIEW[i])
        value = -math.log(similar[own] / total)
        value -= 0.7 * math.fsum(math.log1p(-similar[j] / total) for j in range(8) if j not in (i, own))
        assert found[i].item() == pytest.approx(value, rel=1e-9)


def test_prototypes_are_a_softmax_over_centres():
    centres, labels = THREE[:3], np.array([0, 1, 2, -1])
    found = names.proto_nce(ONE, centres, labels, temperatures=np.array([0.2, 0.3, 0.4]))
    for i in range(3):
        logits = [float(ONE[i] @ centres[j]) / (0.2, 0.3, 0.4)[j] for j in range(3)]
        value = math.log(math.fsum(map(math.exp, logits))) - logits[labels[i]]
        assert found[i].item() == pytest.approx(value, rel=1e-9)
    assert found[3].item() == 0


# ---- large batches --------------------------------------------------------------------------------------------------


def test_a_cached_step_has_the_gradients_of_the_whole_batch():
    encoder = torch.nn.Linear(3, 2).double()
    inputs = ONE, TWO

    def loss(a, b):
        return ns.losses.in_batch(a, b, temperature=0.5).mean()

    whole = loss(*map(encoder, inputs))
    wanted = torch.autograd.grad(whole, list(encoder.parameters()))
    for chunk in (1, 3, 4):
        encoder.zero_grad()
        value = ns.losses.cached_step(encoder, inputs, loss, chunk=chunk)
        assert value.item() == pytest.approx(whole.item(), rel=1e-12)
        for parameter, gradient in zip(encoder.parameters(), wanted, strict=True):
            torch.testing.assert_close(parameter.grad, gradient)


def test_rows_of_one_process_are_gathered_as_they_are():
    rows, first = ns.losses.gather_rows(ONE.clone().requires_grad_())
    assert torch.equal(rows.detach(), ONE)
    assert first == 0
