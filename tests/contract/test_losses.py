"""Losses over slots: golden values of other libraries, plain loops, gradients, masks, weights and log_q."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

import naysay as ns
from tests.contract import names, oracles

# name: (loss, its oracle, options of both)
LOSSES = {
    "info_nce": (ns.losses.info_nce, oracles.info_nce, {"temperature": 0.7}),
    "bpr": (ns.losses.bpr, oracles.bpr, {}),
    "hinge": (ns.losses.hinge, oracles.hinge, {"margin": 0.4}),
    "sampled_bce": (ns.losses.sampled_bce, oracles.sampled_bce, {}),
    "gbce": (ns.losses.gbce, oracles.gbce, {"n_items": 50, "calibration": 0.75}),
    "decoupled": (ns.losses.decoupled, oracles.decoupled, {"temperature": 0.5}),
    "debiased": (
        ns.losses.debiased,
        lambda p, slots, **settings: oracles.hard_negative_nce(p, slots, beta=0.0, **settings),
        {"prior": 0.1, "min_score": -1.0, "temperature": 0.5},
    ),
    "hard_negative_nce": (
        names.hard_negative_nce,
        oracles.hard_negative_nce,
        {"prior": 0.1, "min_score": -1.0, "temperature": 0.5, "beta": 0.8},
    ),
    "self_adversarial": (ns.losses.self_adversarial, oracles.self_adversarial, {"alpha": 0.7, "margin": 0.3}),
}
SOFTMAX_FAMILY = ["info_nce", "decoupled", "debiased", "hard_negative_nce"]
EVERY = pytest.mark.parametrize("name", LOSSES)


def batch(seed, rows=5, slots=6):
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, slots)) < 0.7
    mask[:, 0] = True
    return {
        "positive": rng.normal(size=rows),
        "negatives": rng.normal(size=(rows, slots)),
        "mask": mask,
        "weights": rng.uniform(0.2, 2.0, (rows, slots)),
        "log_q": np.log(rng.uniform(0.05, 0.5, (rows, slots))),
    }


def tensors(world):
    return torch.from_numpy(world["positive"]), torch.from_numpy(world["negatives"])


@EVERY
@given(seed=st.integers(0, 10_000), weighted=st.booleans(), corrected=st.booleans())
def test_a_loss_is_that_of_plain_loops(name, seed, weighted, corrected):
    loss, oracle, options = LOSSES[name]
    world, given_slots = batch(seed), {}
    weights, log_q = np.ones_like(world["weights"]), None
    if weighted:
        weights = given_slots["weights"] = world["weights"]
    if corrected and name in SOFTMAX_FAMILY:
        log_q = given_slots["log_q"] = world["log_q"]
    found = loss(*tensors(world), mask=world["mask"], **given_slots, **options)
    for row, value in enumerate(found.tolist()):
        slots = oracles.counted_slots(
            world["negatives"][row], world["mask"][row], weights[row], None if log_q is None else log_q[row]
        )
        assert value == pytest.approx(oracle(world["positive"][row], slots, **options), rel=1e-9)


@EVERY
def test_the_library_s_own_check_of_losses_passes(name):
    loss, _, options = LOSSES[name]
    # A harder negative takes weight from the others; the weights of self-adversarial sampling carry no gradient.
    without = {"hard_negative_nce": ("monotone",), "self_adversarial": ("monotone", "gradient")}.get(name, ())
    ns.check_loss(lambda *scores, **slots: loss(*scores, **slots, **options), without=without)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "self_adversarial"])
def test_gradients_are_those_of_finite_differences(name):
    loss, _, options = LOSSES[name]
    world = batch(3)
    scores = [part.requires_grad_() for part in tensors(world)]
    assert torch.autograd.gradcheck(
        lambda p, s: loss(p, s, mask=world["mask"], weights=world["weights"], **options).sum(), scores
    )


def test_the_weights_of_self_adversarial_sampling_carry_no_gradient():
    world = batch(3)
    positive, negatives = tensors(world)
    negatives.requires_grad_()
    ns.losses.self_adversarial(positive, negatives, alpha=0.7).sum().backward()
    shares = torch.softmax(0.7 * negatives.detach(), dim=1)
    torch.testing.assert_close(negatives.grad, shares * torch.sigmoid(negatives.detach()) / 2)


@EVERY
def test_a_masked_slot_has_no_gradient_whatever_its_score(name):
    loss, _, options = LOSSES[name]
    world = batch(1)
    positive, negatives = tensors(world)
    wild = torch.where(torch.from_numpy(world["mask"]), negatives, 1e30).requires_grad_()
    value = loss(positive, wild, mask=world["mask"], **options)
    torch.testing.assert_close(value, loss(positive, negatives, mask=world["mask"], **options))
    value.sum().backward()
    assert (wild.grad[~torch.from_numpy(world["mask"])] == 0).all()
    assert torch.isfinite(wild.grad).all()


@EVERY
def test_masks_and_weights_may_be_numpy_or_torch(name):
    loss, _, options = LOSSES[name]
    world = batch(2)
    plain = loss(*tensors(world), mask=world["mask"], weights=world["weights"], **options)
    moved = {key: torch.from_numpy(world[key]) for key in ("mask", "weights")}
    torch.testing.assert_close(plain, loss(*tensors(world), **moved, **options))


@EVERY
def test_batches_of_none_and_of_one(name):
    loss, _, options = LOSSES[name]
    assert loss(torch.zeros(0), torch.zeros(0, 3), **options).shape == (0,)
    assert loss(torch.zeros(1), torch.zeros(1, 3), **options).shape == (1,)


def test_info_nce_by_hand():
    value = ns.losses.info_nce(torch.tensor([1.0]), torch.tensor([[0.0, 2.0]]))
    assert value.item() == pytest.approx(math.log(math.e + 1 + math.e**2) - 1, rel=1e-6)
    corrected = ns.losses.info_nce(
        torch.tensor([1.0]), torch.tensor([[0.0, 2.0]]), log_q=np.log([[0.5, 0.25]]), mask=np.array([[True, True]])
    )
    wanted = math.log(math.e + 1 / (2 * 0.5) + math.e**2 / (2 * 0.25)) - 1  # the positive is not corrected
    assert corrected.item() == pytest.approx(wanted, rel=1e-6)


def test_a_row_without_negatives_has_no_loss_of_info_nce():
    empty = ns.losses.info_nce(torch.tensor([3.0]), torch.zeros(1, 2), mask=np.zeros((1, 2), bool))
    assert empty.item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_extreme_scores_stay_finite(size):
    scores = torch.tensor([size]), torch.tensor([[-size, size]])
    for loss in (ns.losses.info_nce, ns.losses.bpr, ns.losses.hinge, ns.losses.sampled_bce):
        assert torch.isfinite(loss(*scores)).all()


def test_the_mask_of_negatives_goes_into_a_loss_as_it_is():
    negatives = ns.Negatives(np.array([[4, -1, 2]]), relation=np.array([[0, 0, 2]], np.int8))
    scores = torch.tensor([[1.0, 50.0, 50.0]])
    value = ns.losses.info_nce(torch.tensor([0.0]), scores, mask=negatives.mask)
    assert value.item() == pytest.approx(math.log(1 + math.e), rel=1e-6)


# ---- sampled softmax ------------------------------------------------------------------------------------------------


def test_sampled_softmax_estimates_the_full_softmax():
    """The mean of e^loss over many draws is 1 + the sum over all other items / the positive."""
    scores = torch.linspace(-1, 1, 20)
    weights = np.linspace(1, 3, 20)
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], 1, 20), weights, distinct=False)
    drawn = pool.draw(ns.Query(np.zeros(3000, int)), 5, rng=ns.rng_for(0))
    losses = ns.losses.sampled_softmax(
        scores[0].repeat(3000), scores[torch.from_numpy(drawn.ids)], log_q=np.array(drawn.log_q)
    )
    ratios = losses.exp()
    wanted = 1 + (scores[1:] - scores[0]).exp().sum()
    assert abs(ratios.mean() - wanted) < 4 * ratios.std() / math.sqrt(3000)


def test_log_q_of_distinct_draws_becomes_that_of_an_unbiased_sum():
    """Des Raj's estimator: the mean over rows of the corrected sum is the sum over all free items."""
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], 1, 6), [1, 2, 3, 4, 5, 6])
    values = np.exp(np.linspace(-1, 1, 6))
    drawn = pool.draw(ns.Query(np.zeros(4000, int)), 3, rng=ns.rng_for(0))
    log_q = np.asarray(ns.losses.distinct_log_q(np.array(drawn.log_q), drawn.mask))
    sums = (values[drawn.ids] / (3 * np.exp(log_q))).sum(axis=1)
    assert abs(sums.mean() - values[1:].sum()) < 4 * sums.std() / math.sqrt(4000)


def test_the_log_q_of_a_mixture_is_the_logarithm_of_the_mean():
    one, other = np.log([[0.2, 0.5]]), np.log([[0.4, 0.1]])
    found = np.asarray(ns.losses.mixture_log_q([one, other], [0.25, 0.75]))
    assert np.exp(found)[0].tolist() == pytest.approx([0.35, 0.2])


# ---- others ---------------------------------------------------------------------------------------------------------


def test_margin_mse_is_that_of_plain_loops():
    world, rng = batch(5), np.random.default_rng(9)
    teacher_positive, teacher_negatives = rng.normal(size=5), rng.normal(size=(5, 6))
    found = ns.losses.margin_mse(
        *tensors(world), teacher_positive=teacher_positive, teacher_negatives=teacher_negatives, mask=world["mask"]
    )
    for row, value in enumerate(found.tolist()):
        places = np.flatnonzero(world["mask"][row])
        slots = [(world["negatives"][row, place], 1.0) for place in places]
        teacher = teacher_negatives[row, places]
        wanted = oracles.margin_mse(world["positive"][row], slots, teacher_positive[row], teacher)
        assert value == pytest.approx(wanted, rel=1e-9)


def test_gist_leaves_out_what_the_guide_scores_above_the_positive():
    world, rng = batch(6), np.random.default_rng(1)
    guide_positive, guide_negatives = rng.normal(size=5), rng.normal(size=(5, 6))
    found = names.gist(*tensors(world), guide_positive=guide_positive, guide_negatives=guide_negatives, temperature=0.5)
    kept = guide_negatives <= guide_positive[:, None]
    wanted = ns.losses.info_nce(*tensors(world), mask=kept, temperature=0.5)
    torch.testing.assert_close(found, wanted)
    assert (~kept).any()


def test_all_items_are_the_exact_sum_over_unobserved_items():
    rng = np.random.default_rng(0)
    anchors, items = torch.from_numpy(rng.normal(size=(3, 4))), torch.from_numpy(rng.normal(size=(6, 4)))
    known = ns.Positives.from_pairs([0, 0, 1], [1, 3, 2], 3, 6)
    found = names.all_items(anchors, items, (known, np.arange(3)), weight=0.1)
    scores, total = (anchors @ items.T).numpy(), []
    for row in range(3):
        value = 0.0
        for item in range(6):
            is_known = known.contains([row], [item])[0]
            value += (1 - scores[row, item]) ** 2 if is_known else 0.1 * scores[row, item] ** 2
        total.append(value)
    assert found.tolist() == pytest.approx(total, rel=1e-9)


def test_the_hardest_rows_are_kept():
    kept = ns.losses.keep_hardest(torch.tensor([0.5, 3.0, 1.0, 2.0]), 0.5)
    assert [bool(value) for value in kept] == [False, True, False, True]


# ---- golden values --------------------------------------------------------------------------------------------------
# Four anchors, positives and negatives in three dimensions, in float32. pytorch-metric-learning 2.9.0 (NTXentLoss), the
# authors' code of HCL (debiased: beta = 0), lightly (DCLLoss, DCLWLoss), sentence-transformers 6.2.0 (MNRL).

NUMBERS = torch.arange(1, 13, dtype=torch.float32).view(4, 3)
ANCHORS = normalize(NUMBERS.sin(), dim=1)
POSITIVES = normalize(ANCHORS + 0.3 * NUMBERS.cos(), dim=1)
HARD = normalize((2 * NUMBERS).cos(), dim=1)
OTHERS = ~torch.eye(4, dtype=torch.bool)
VIEWS = torch.cat([ANCHORS, POSITIVES])
SIMILAR = VIEWS @ VIEWS.T
TWO_VIEWS = SIMILAR.roll(4, dims=1).diagonal(), SIMILAR
NOT_OWN = OTHERS.repeat(2, 2)


@pytest.mark.parametrize(
    ("value", "loss", "options"),
    [
        (1.126260, ns.losses.info_nce, {}),
        (0.973627, ns.losses.debiased, {"prior": 0.1}),
        (0.973627, names.hard_negative_nce, {"prior": 0.1, "beta": 0.0}),
        (1.908181, names.hard_negative_nce, {"prior": 0.1, "beta": 1.0}),
        (1.958880, names.hard_negative_nce, {"prior": 0.0, "beta": 2.0}),
    ],
)
def test_two_views_give_the_values_of_the_authors_code(value, loss, options):
    found = loss(*TWO_VIEWS, mask=NOT_OWN, temperature=0.5, **options).mean().item()
    assert found == pytest.approx(value, abs=2e-6)


@pytest.mark.parametrize(("sigma", "value"), [(None, 0.767889), (0.5, 0.767908)])
def test_decoupled_gives_the_value_of_lightly(sigma, value):
    halves = []
    for view in (slice(0, 4), slice(4, 8)):
        scores = TWO_VIEWS[0][view], TWO_VIEWS[1][view]
        halves.append(ns.losses.decoupled(*scores, mask=NOT_OWN[view], temperature=0.1, sigma=sigma).mean().item())
    assert sum(halves) / 2 == pytest.approx(value, abs=2e-6)


def test_multiple_negatives_ranking_gives_the_values_of_sentence_transformers():
    own = (ANCHORS * POSITIVES).sum(dim=1)
    pairs = ns.losses.info_nce(own, ANCHORS @ POSITIVES.T, mask=OTHERS, temperature=0.05).mean()
    assert pairs.item() == pytest.approx(0.751410, abs=2e-6)
    documents, mask = torch.cat([ANCHORS @ POSITIVES.T, ANCHORS @ HARD.T], 1), torch.cat([OTHERS, OTHERS | True], 1)
    triplets = ns.losses.info_nce(own, documents, mask=mask, temperature=0.05).mean()
    assert triplets.item() == pytest.approx(0.751425, abs=2e-6)
