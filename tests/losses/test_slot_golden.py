"""Golden values: what the projects' own code gave for one small batch, from slot losses.

Four anchors, positives and negatives in three dimensions, in float32. The values come from pytorch-metric-learning
2.9.0 (NTXentLoss), the authors' code of HCL, lightly (DCLLoss, DCLWLoss) and sentence-transformers 6.2.0
(MultipleNegativesRankingLoss, MNRL); the debiased one is HCL's with beta = 0.
"""

import pytest
import torch
from torch.nn.functional import normalize

from naysay.losses import debiased, decoupled, hard_negative_nce, info_nce

NUMBERS = torch.arange(1, 13, dtype=torch.float32).view(4, 3)
ANCHORS = normalize(NUMBERS.sin(), dim=1)
POSITIVES = normalize(ANCHORS + 0.3 * NUMBERS.cos(), dim=1)
NEGATIVES = normalize((2 * NUMBERS).cos(), dim=1)
OTHERS, EVERY = ~torch.eye(4, dtype=torch.bool), torch.ones(4, 4, dtype=torch.bool)


def golden(value):
    return pytest.approx(value, abs=2e-6, rel=0)


# ---- two views: a row for each of 2 B, whose 2 B - 2 negatives are all but itself and its other view -----------------


@pytest.fixture
def views():
    """(positive (8,), negatives (8, 8)) and the mask."""
    both = torch.cat([ANCHORS, POSITIVES])
    scores = both @ both.T
    return (scores.roll(4, dims=1).diagonal(), scores), OTHERS.repeat(2, 2)


def test_two_views(views):
    scores, mask = views
    assert mask.sum(dim=1).tolist() == [6] * 8
    assert info_nce(*scores, mask=mask, temperature=0.5).mean().item() == golden(1.126260)
    assert debiased(*scores, mask=mask, prior=0.1, temperature=0.5).mean().item() == golden(0.973627)
    assert hard_negative_nce(*scores, mask=mask, beta=0.0, prior=0.1, temperature=0.5).mean().item() == golden(0.973627)
    assert hard_negative_nce(*scores, mask=mask, beta=1.0, prior=0.1, temperature=0.5).mean().item() == golden(1.908181)
    assert hard_negative_nce(*scores, mask=mask, beta=2.0, prior=0.0, temperature=0.5).mean().item() == golden(1.958880)


@pytest.mark.parametrize("backprop_weights", [False, True])
def test_gradients_through_the_weights_do_not_change_the_value(views, backprop_weights):
    scores, mask = views
    assert hard_negative_nce(*scores, mask=mask, backprop_weights=backprop_weights).mean().item() == golden(1.908181)


@pytest.mark.parametrize(("sigma", "value"), [(None, 0.767889), (0.5, 0.767908)], ids=["DCL", "DCLW"])
def test_decoupled_of_two_views(views, sigma, value):
    """lightly takes one view after the other, each a batch of four, and their mean."""
    (positive, negatives), mask = views
    each = [
        decoupled(positive[view], negatives[view], mask=mask[view], temperature=0.1, sigma=sigma).mean()
        for view in (slice(0, 4), slice(4, 8))
    ]
    assert torch.stack(each).mean().item() == golden(value)


# ---- MNRL: a temperature of 1 / 20; documents are the positives and the negatives of all anchors ---------------------

TO_POSITIVES, TO_NEGATIVES = ANCHORS @ POSITIVES.T, ANCHORS @ NEGATIVES.T
OWN = TO_POSITIVES.diagonal()
DOCUMENTS, DOCUMENTS_MASK = torch.cat([TO_POSITIVES, TO_NEGATIVES], dim=1), torch.cat([OTHERS, EVERY], dim=1)


def mnrl(negatives, mask, weights=None):
    return info_nce(OWN, negatives, mask=mask, weights=weights, temperature=0.05).mean().item()


def test_pairs_and_triplets():
    assert mnrl(TO_POSITIVES, OTHERS) == golden(0.751410)
    assert mnrl(DOCUMENTS, DOCUMENTS_MASK) == golden(0.751425)


def test_symmetric_per_direction():
    """The mean of two losses of triplets: a query among all documents, a positive among all queries."""
    assert (mnrl(DOCUMENTS, DOCUMENTS_MASK) + mnrl(TO_POSITIVES.T, OTHERS)) / 2 == golden(0.745338)


def test_four_directions_joint():
    """GTE's loss of triplets, one sum over four kinds of slots.

    query to document   all documents, but the positive, which is the numerator
    query to query      all but itself
    document to query   all queries, its own too: the positive pair stands in the denominator twice
    document to document   all documents but the two of its own query
    """
    slots = [
        (DOCUMENTS, DOCUMENTS_MASK),
        (ANCHORS @ ANCHORS.T, OTHERS),
        (TO_POSITIVES.T, EVERY),
        (POSITIVES @ torch.cat([POSITIVES, NEGATIVES]).T, torch.cat([OTHERS, OTHERS], dim=1)),
    ]
    scores, masks = zip(*slots, strict=True)
    assert mnrl(torch.cat(scores, dim=1), torch.cat(masks, dim=1)) == golden(2.121121)


@pytest.mark.parametrize(
    ("mode", "strength", "value"),
    [("hard_negatives", 5, 0.751471), ("in_batch_negatives", 9, 7.465917), ("all_negatives", 5, 3.936450)],
)
def test_hardness_of_mnrl(mode, strength, value):
    """A logit rises by strength times the cosine, which is a weight of e^{strength cosine}, without gradient.

    Hard negatives are an anchor's own explicit one, in-batch negatives all that belongs to other anchors.
    """
    own = torch.cat([torch.zeros_like(OTHERS), ~OTHERS], dim=1)
    lifted = {
        "hard_negatives": own,
        "in_batch_negatives": ~own,
        "all_negatives": torch.ones_like(own),
    }[mode]
    weights = torch.where(lifted, (strength * DOCUMENTS).exp(), 1.0)
    assert mnrl(DOCUMENTS, DOCUMENTS_MASK, weights) == golden(value)
