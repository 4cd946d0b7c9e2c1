"""Slots that a policy attracts are further positives of info_nce; slots of weight 0 count as drawn."""

import functools
import math

import numpy as np
import pytest
import torch

import naysay as ns
from naysay import losses


def in_loops(p, row, mask, weights, log_q, attract, temperature):
    """The mean over positives of -log of the share of that positive among itself and the negatives."""
    drawn = sum(mask)
    total = 0.0
    for j, s in enumerate(row):
        if mask[j] and not attract[j]:
            total += weights[j] * math.exp(s / temperature) / (drawn * math.exp(log_q[j]))
    positives = [p] + [s for j, s in enumerate(row) if attract[j]]
    own = [math.exp(s / temperature) for s in positives]
    return sum(-math.log(one / (one + total)) for one in own) / len(own)


def inputs(rows=6, slots=5):
    rng = np.random.default_rng(0)
    positive, negatives = (torch.from_numpy(rng.standard_normal(shape)) for shape in (rows, (rows, slots)))
    given = {
        "mask": rng.random((rows, slots)) < 0.7,
        "weights": rng.uniform(0.0, 2.0, (rows, slots)),
        "log_q": rng.uniform(-4.0, -0.5, (rows, slots)),
        "attract": rng.random((rows, slots)) < 0.4,
    }
    given["attract"][0], given["mask"][1] = False, False
    return positive.requires_grad_(), negatives.requires_grad_(), given


def test_the_mean_over_positives_in_loops():
    positive, negatives, given = inputs()
    found = losses.info_nce(positive, negatives, temperature=0.7, **given)
    for b in range(6):
        parts = [given[name][b] for name in ("mask", "weights", "log_q", "attract")]
        wanted = in_loops(positive[b].item(), negatives[b].tolist(), *parts, 0.7)
        assert found[b].item() == pytest.approx(wanted, rel=1e-12)
    assert found[1] == 0  # no negatives
    wanted = losses.info_nce(
        positive[:1], negatives[:1], temperature=0.7, **{k: given[k][:1] for k in ("mask", "weights", "log_q")}
    )
    assert found[0].item() == pytest.approx(wanted.item(), rel=1e-12)  # nothing is attracted there


def test_its_gradient_is_that_of_the_value():
    positive, negatives, given = inputs()
    loss = functools.partial(losses.info_nce, temperature=0.7, **given)
    assert torch.autograd.gradcheck(loss, (positive, negatives))
    (gradient,) = torch.autograd.grad(loss(positive, negatives).sum(), negatives)
    pulled = torch.from_numpy(given["attract"]) & torch.from_numpy(given["mask"]).any(dim=1)[:, None]
    assert (gradient[pulled] <= 0).all()  # downhill leads up
    assert (gradient[pulled] < 0).any()


def test_attracted_slots_need_not_be_in_the_mask():
    """As Negatives have it: mask is relation 0, attract is relation 1; ignored slots are in neither."""
    drawn = ns.Negatives(ids=np.arange(6).reshape(2, 3), relation=np.array([[0, 1, 2], [1, 0, 0]], np.int8))
    positive, negatives = torch.tensor([0.5, 1.0]), torch.tensor([[0.1, 0.9, torch.nan], [0.4, 0.2, 0.3]])
    found = losses.info_nce(positive, negatives, mask=drawn.mask, attract=drawn.relation == 1)
    first = (math.log1p(math.exp(0.1 - 0.5)) + math.log1p(math.exp(0.1 - 0.9))) / 2
    total = math.exp(0.2) + math.exp(0.3)
    second = (math.log1p(total / math.e) + math.log1p(total / math.exp(0.4))) / 2
    assert found.tolist() == pytest.approx([first, second], rel=1e-6)


# ---- what counts as drawn --------------------------------------------------------------------------------------------

N = 10
SCORES = torch.zeros(1, dtype=torch.float64), torch.zeros(1, N, dtype=torch.float64)
UNIFORM = {"log_q": np.full((1, N), -math.log(N)), "temperature": 1.0}
HALF = np.arange(N)[None] < N // 2  # ten draws of ten items; five of them are distrusted afterwards
ESTIMATES = {  # each loss as the estimate of the sum over all items of e^score
    "info_nce": lambda **given: torch.expm1(losses.info_nce(*SCORES, **given)),
    "sampled_softmax": lambda **given: torch.expm1(losses.sampled_softmax(*SCORES, **given)),
    "decoupled": lambda **given: losses.decoupled(*SCORES, **given).exp(),
    "debiased": lambda **given: torch.expm1(losses.debiased(*SCORES, prior=0.0, **given)),
    "hard_negative_nce": lambda **given: torch.expm1(losses.hard_negative_nce(*SCORES, prior=0.0, **given)),
    "gist": lambda **given: torch.expm1(losses.gist(*SCORES, **given)),
}


@pytest.mark.parametrize("name", ESTIMATES)
def test_a_slot_of_weight_0_counts_as_drawn(name):
    """Five trusted items of score 0 sum to 5, not to the 10 of a row that only had five draws."""
    assert ESTIMATES[name](**UNIFORM).item() == pytest.approx(10.0)
    assert ESTIMATES[name](weights=HALF.astype(float), **UNIFORM).item() == pytest.approx(5.0)
    all_in_mask = np.ones((1, N), bool)
    assert ESTIMATES[name](mask=all_in_mask, weights=HALF.astype(float), **UNIFORM).item() == pytest.approx(5.0)
    assert ESTIMATES[name](mask=HALF, **UNIFORM).item() == pytest.approx(10.0)  # the mask says what was drawn


def test_what_is_left_out_after_the_draw_counts_as_drawn():
    """By the guide of gist, by labels of in_batch, and as a further positive of info_nce."""
    guide = {"guide_positive": [0.5], "guide_negatives": np.where(HALF, 0.0, 1.0)}
    assert ESTIMATES["gist"](**guide, **UNIFORM).item() == pytest.approx(5.0)
    assert torch.expm1(losses.info_nce(*SCORES, attract=~HALF, **UNIFORM)).item() == pytest.approx(5.0)
    keys = torch.zeros(N + 1, 2, dtype=torch.float64)  # the first is the positive
    log_q = np.full(N + 1, -math.log(N))
    key_labels = np.r_[-1, np.where(HALF[0], -1, 3)]
    loss = losses.in_batch(keys[:1], keys, log_q=log_q, labels=[3], key_labels=key_labels)
    assert torch.expm1(loss).item() == pytest.approx(5.0)
