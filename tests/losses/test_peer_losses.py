"""Ours against the losses of pytorch-metric-learning, run here: values and gradients, and where ours differs.

test_in_batch_golden.py has the values of more of its losses, and of those of sentence-transformers.
"""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize as on_sphere

from naysay.losses import eliminate, gist, in_batch, info_nce, sup_con

ROWS, WIDTH = 20, 5
SMALL = {"block": 1}  # the smallest blocks: 16 rows, then 4


def peer(module, package):
    return pytest.importorskip(module, reason=f"{package} is not installed")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads take most of the time of operations as small as these."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def pml():
    """The losses of pytorch-metric-learning."""
    return peer("pytorch_metric_learning.losses", "pytorch-metric-learning")


def unit(vectors):
    return on_sphere(vectors, dim=-1)


def as_given(vectors):
    return vectors


SCORES = pytest.mark.parametrize("scored", [unit, as_given], ids=["cosine", "dot product"])


def vectors(count, rows=ROWS, seed=0, width=WIDTH):
    """`count` leaves (rows, width) of any length."""
    values = np.random.default_rng(seed).standard_normal((count, rows, width))
    return [torch.from_numpy(value).requires_grad_() for value in values]


def assert_same(ours, theirs, leaves):
    """Two numbers, and their gradients in every leaf."""
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    found, wanted = (torch.autograd.grad(value, leaves, retain_graph=True) for value in (ours, theirs))
    for one, other in zip(found, wanted, strict=True):
        assert other.abs().max() > 1e-6  # there is something to compare
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


# ---- pytorch-metric-learning: where it agrees ----------------------------------------------------------------------


def measured(scored):
    """Its default is a cosine."""
    from pytorch_metric_learning.distances import DotProductSimilarity

    return {} if scored is unit else {"distance": DotProductSimilarity(normalize_embeddings=False)}


LABELS = {
    "balanced": [label for label in range(5) for _ in range(4)],
    "unbalanced": [0] * 7 + [1] * 5 + [2] * 3 + [3] * 2 + [4, 5, 6],  # three rows are alone
}


@SCORES
def test_nt_xent_over_pairs_that_are_named(pml, scored):
    """One partner each and a list of negatives: any mask, and elimination by labels of which -1 is none."""
    (z,) = vectors(1)
    partner, number = torch.arange(ROWS).roll(ROWS // 2), torch.arange(ROWS)
    loss = pml.NTXentLoss(temperature=0.4, **measured(scored))

    def theirs(keep):
        keep = keep & (number != number[:, None]) & (number != partner[:, None])
        return loss(z, indices_tuple=(number, partner, *torch.where(keep)))

    keep = torch.from_numpy(np.random.default_rng(1).random((ROWS, ROWS)) < 0.4)
    keep[3] = False  # a row with no negatives counts as 0 in both
    ours = in_batch(scored(z), partner=partner, mask=keep, temperature=0.4, **SMALL)
    assert_same(ours.mean(), theirs(keep), [z])
    labels = torch.from_numpy(np.random.default_rng(2).integers(-1, 3, ROWS))
    other = theirs((labels != labels[:, None]) | (labels == -1))
    assert_same(eliminate(scored(z), partner, labels, temperature=0.4, **SMALL).mean(), other, [z])
    assert_same(in_batch(scored(z), partner=partner, labels=labels, temperature=0.4).mean(), other, [z])


# ---- and where ours differs ----------------------------------------------------------------------------------------


def test_rows_of_no_class_do_not_attract_each_other(pml):
    """To theirs -1 is a class like any other; ours is theirs if every such row had a class of its own."""
    (z,) = vectors(1)
    unknown, alone, named = [torch.tensor(LABELS["balanced"]) for _ in range(3)]
    unknown[:4], alone[:4], named[:4] = -1, torch.tensor([5, 6, 7, 8]), 5
    loss = pml.NTXentLoss(temperature=0.5)
    rows = sup_con(unit(z), unknown, temperature=0.5, denominator="negatives")
    assert (rows[:4] == 0).all()
    assert_same(rows[4:].mean(), loss(z, alone), [z])
    assert loss(z, unknown) == loss(z, named)
    assert abs(loss(z, unknown) - loss(z, alone)) > 0.1


def test_a_loss_above_87_keeps_its_value_and_its_gradient_in_float32(pml):
    """Theirs adds the smallest float32 to a probability before the log: 87.34 and no gradient from there on."""
    labels, partner = torch.tensor([0, 0, 1, 1]), [1, 0, 3, 2]
    low = torch.tensor([[1.0, 0.0], [-1.0, 0.02], [1.0, 0.01], [-1.0, 0.03]], requires_grad=True)
    high = low.detach().double().requires_grad_()
    theirs, exact = (pml.NTXentLoss(temperature=0.01)(z, labels) for z in (low, high))
    assert exact.item() == pytest.approx(199.945, abs=1e-3)
    assert theirs.item() == pytest.approx(87.3365, abs=1e-3)
    assert torch.autograd.grad(theirs, low)[0].abs().max() == 0
    wanted = torch.autograd.grad(exact, high)[0].float()
    for ours in (
        sup_con(unit(low), labels, temperature=0.01, denominator="negatives").mean(),
        in_batch(unit(low), partner=partner, temperature=0.01).mean(),
    ):
        assert ours.item() == pytest.approx(exact.item(), rel=1e-6)
        torch.testing.assert_close(torch.autograd.grad(ours, low)[0], wanted, rtol=1e-4, atol=1e-4)


def test_a_row_that_is_solved_stays_in_the_mean(pml):
    """Theirs takes the mean over rows above 0, so that it rises as rows are solved; ours hands over the rows."""
    z = torch.tensor([[1, 0], [1, 0], [-1, 0], [0.6, 0.8]], dtype=torch.float64)  # the last is near the other class
    labels = torch.tensor([0, 0, 1, 1])
    rows = sup_con(z, labels, temperature=0.01)
    assert rows.tolist() == pytest.approx([0, 0, 0, 120 + math.log(2)], abs=1e-12)
    assert pml.SupConLoss(temperature=0.01)(z, labels).item() == pytest.approx(rows[3].item())


def test_positives_compete_in_a_batch_of_one_class_too(pml):
    """The denominator of SupCon holds all others, so there is a loss without negatives; theirs is then 0."""
    z, labels = torch.eye(3).double(), torch.zeros(3).long()
    assert sup_con(z, labels, temperature=1.0).tolist() == pytest.approx([math.log(2)] * 3)
    assert pml.SupConLoss(temperature=1.0)(z, labels) == 0
    for answer in (sup_con(z, labels, denominator="negatives").sum(), pml.NTXentLoss()(z, labels)):
        assert answer == 0  # there is nothing to tell apart


def test_a_single_triplet_has_a_loss(pml):
    """Theirs is 0 if there is no more than one pair of each kind."""
    (z,) = vectors(1, rows=3)
    triplet = [torch.tensor([row]) for row in (0, 1, 0, 2)]
    ours = in_batch(unit(z)[:1], unit(z)[1:], temperature=0.5)
    to_positive, to_negative = (unit(z)[1:] @ unit(z)[0]).tolist()
    assert ours.item() == pytest.approx(math.log1p(math.exp((to_negative - to_positive) / 0.5)))
    assert pml.NTXentLoss(temperature=0.5)(z, indices_tuple=triplet) == 0


# ---- sentence-transformers 6.2.0, by the numbers that its losses give ---------------------------------------------


def test_a_positive_counts_once_unless_it_is_handed_over_again():
    """With doc to query in one softmax theirs counts the positive twice, so that it cannot fall below log 2."""
    scores, others = torch.eye(6, dtype=torch.float64), torch.eye(6) == 0
    both, options = torch.cat([scores, scores], dim=1), {"temperature": 0.01}
    once, twice = torch.cat([others, others], dim=1), torch.cat([others, torch.ones(6, 6) > 0], dim=1)
    assert info_nce(scores.diagonal(), both, mask=twice, **options).mean().item() == pytest.approx(math.log(2))
    assert info_nce(scores.diagonal(), both, mask=once, **options).mean() < 1e-40


def test_a_row_is_not_its_own_negative_whatever_the_guide_says():
    """Theirs leaves a row out of its own negatives only if the guide puts its positive below a cosine of 1: log 3."""
    anchors = torch.eye(4, dtype=torch.float64)
    scores, others = torch.cat([anchors] * 3, dim=1), (torch.eye(4) == 0).repeat(1, 3)
    assert gist(torch.ones(4).double(), scores, mask=others).mean() < 1e-40
    itself = others | torch.cat([torch.zeros(4, 4), torch.eye(4), torch.eye(4)], dim=1).bool()
    assert gist(torch.ones(4).double(), scores, mask=itself).mean().item() == pytest.approx(math.log(3))
