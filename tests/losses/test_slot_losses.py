"""Losses over a positive and its slots: forms that have no oracle in tests/contract, gradients, and laws."""

import functools
import math

import numpy as np
import pytest
import torch

from naysay import losses

SEEDS = pytest.mark.parametrize("seed", range(6))


def world(seed, rows=4, slots=5):
    """(positive, negatives, options): row 2 is empty, masked scores are NaN, and some weights are 0."""
    rng = np.random.default_rng(seed)
    positive, negatives = (torch.tensor(rng.uniform(-3, 3, shape)) for shape in (rows, (rows, slots)))
    mask = rng.random((rows, slots)) < 0.7
    mask[2] = False
    weights = rng.choice([0.0, 0.3, 1.0, 2.0], (rows, slots), p=[0.1, 0.3, 0.3, 0.3])
    log_q = rng.uniform(-5.0, -0.01, (rows, slots))
    negatives[torch.from_numpy(~mask)] = math.nan
    return positive.requires_grad_(), negatives.requires_grad_(), {"mask": mask, "weights": weights, "log_q": log_q}


def rows_of(positive, negatives, options):
    """(p, [(score, weight / (K_b q))], K_b) of each row, in plain Python."""
    for row, p in enumerate(positive.tolist()):
        drawn = [slot for slot in range(negatives.shape[1]) if options["mask"][row, slot]]
        slots = []
        for slot in drawn:
            count = options["weights"][row, slot] / (len(drawn) * math.exp(options["log_q"][row, slot]))
            if count > 0:
                slots.append((negatives[row, slot].item(), count))
        yield p, slots, len(drawn)


def gradients(values, *leaves):
    return torch.autograd.grad(values.sum(), leaves)


def close(found, expected, size=0.0):
    """Equal to 1e-11, relative; `size` is that of the terms if the value is a difference of them."""
    assert found.tolist() == pytest.approx(list(expected), rel=1e-11, abs=1e-12 * size + 1e-13)


# ---- the same in plain loops -----------------------------------------------------------------------------------------


def sampled_softmax(p, slots, drawn, temperature, form, own):
    total = math.fsum(count * math.exp(s / temperature) for s, count in slots)  # the estimate of the sum over all items
    if form == "classic":
        return math.log1p(drawn * total / math.exp(p / temperature - own))
    if own is not None:
        total *= 1 - math.exp(own)
    if form == "sampled":
        return math.log1p(total / math.exp(p / temperature))
    wrong = total / (total + math.exp(p / temperature))  # 1 - P
    return wrong * (math.log(drawn * total) - p / temperature)


@SEEDS
@pytest.mark.parametrize(("form", "with_own"), [("sampled", 0), ("sampled", 1), ("refined", 1), ("classic", 1)])
def test_sampled_softmax_in_loops(seed, form, with_own):
    positive, negatives, options = world(seed)
    own = np.random.default_rng(seed).uniform(-5.0, -0.01, 4) if with_own else None
    expected = [
        sampled_softmax(*row, 0.7, form, own[place] if with_own else None) if row[1] else 0.0
        for place, row in enumerate(rows_of(positive, negatives, options))
    ]
    found = losses.sampled_softmax(positive, negatives, **options, positive_log_q=own, temperature=0.7, form=form)
    close(found, expected, 30.0)


@SEEDS
def test_decoupled_with_sigma_in_loops(seed):
    """v_b = 2 - B softmax(p / sigma)_b, which takes no gradient."""
    positive, negatives, options = world(seed)
    values = losses.decoupled(positive, negatives, **options, temperature=0.6, sigma=0.5)
    (by_positive,) = gradients(values, positive)
    each = [math.exp(p / 0.5) for p in positive.tolist()]
    for row, (p, slots, _) in enumerate(rows_of(positive, negatives, options)):
        v = 2 - len(each) * each[row] / math.fsum(each)
        wanted = math.log(math.fsum(count * math.exp(s / 0.6) for s, count in slots)) - v * p / 0.6 if slots else 0.0
        assert values[row].item() == pytest.approx(wanted, rel=1e-11, abs=1e-11)
        assert by_positive[row].item() == pytest.approx(-v / 0.6 if slots else 0.0, rel=1e-12, abs=1e-12)


@SEEDS
def test_hardness_with_constant_weights(seed):
    """The gradient of log(1 + N g e^{-p}) with u held still; scores are at least -3, so that `min_score` never acts."""
    temperature, prior, beta = 0.8, 0.2, 1.1
    positive, negatives, options = world(seed)
    setting = {"temperature": temperature, "prior": prior, "beta": beta, "min_score": -1e6, "backprop_weights": False}
    values = losses.hard_negative_nce(positive, negatives, **options, **setting)
    by_positive, by_negatives = gradients(values, positive, negatives)
    for row, (p, slots, _) in enumerate(rows_of(positive, negatives, options)):
        number, pull = math.fsum(count for _, count in slots), math.exp(p / temperature)
        tilts = [count * math.exp(beta * s / temperature) for s, count in slots]
        lifts = [u / math.fsum(tilts) * math.exp(s / temperature) for u, (s, _) in zip(tilts, slots, strict=True)]
        left = math.fsum(lifts) - prior * pull
        outer = number / (1 - prior) / (pull + number * left / (1 - prior)) / temperature if left > 0 else 0.0
        assert [grad for grad in by_negatives[row].tolist() if grad] == pytest.approx(
            [outer * lift for lift in lifts] if outer else [], rel=1e-9
        )
        assert by_positive[row].item() == pytest.approx(-outer * math.fsum(lifts), rel=1e-9, abs=1e-13)


# ---- gradients -------------------------------------------------------------------------------------------------------

OWN = [-1.0, -2.0, -0.5, -4.0]  # log_q of four positives
UNTEMPERED = {
    "bpr": losses.bpr,
    "hinge": functools.partial(losses.hinge, margin=0.7),
    "sampled_bce": losses.sampled_bce,
    "gbce": functools.partial(losses.gbce, n_items=12),
}
SOFTMAX = {
    "info_nce": losses.info_nce,
    "decoupled": losses.decoupled,
    "gist": functools.partial(losses.gist, margin=0.1),
    "debiased": functools.partial(losses.debiased, prior=0.2),
    "debiased, unbounded": functools.partial(losses.debiased, prior=0.2, min_score=-math.inf),
    "hard_negative_nce": functools.partial(losses.hard_negative_nce, beta=1.5),
    "hard_negative_nce, unbounded": functools.partial(losses.hard_negative_nce, min_score=-math.inf),
    "sampled": losses.sampled_softmax,
    "sampled, hits": functools.partial(losses.sampled_softmax, positive_log_q=OWN),
    "classic": functools.partial(losses.sampled_softmax, positive_log_q=OWN, form="classic"),
}


@pytest.mark.parametrize("name", UNTEMPERED | SOFTMAX)
def test_the_gradient_is_that_of_the_value(name):
    """In the positive, the negatives, the weights and the temperature; row 2 is empty."""
    loss = (UNTEMPERED | SOFTMAX)[name]
    rng = np.random.default_rng(3)
    options = {"mask": rng.random((4, 5)) < 0.7}
    options["mask"][2] = False
    shapes = [(4,), (4, 5)]
    positive, negatives = (torch.tensor(rng.standard_normal(shape)).requires_grad_() for shape in shapes)
    weights = torch.tensor(rng.uniform(0.5, 2.0, (4, 5))).requires_grad_()
    leaves = [positive, negatives, weights]
    if name in SOFTMAX:
        options["log_q"] = rng.uniform(-4.0, -0.1, (4, 5))
        leaves.append(torch.tensor(0.6, dtype=torch.float64, requires_grad=True))

    def value(positive, negatives, weights, *temperature):
        tempered = {"temperature": temperature[0]} if temperature else {}
        return loss(positive, negatives, weights=weights, **options, **tempered)

    assert torch.autograd.gradcheck(value, leaves)
    found = gradients(value(*leaves), *leaves[:3])
    assert not any(grad[2].any() for grad in found)
    assert not found[1][torch.tensor(~options["mask"])].any()


@SEEDS
def test_refined_has_the_gradient_of_sampled(seed):
    positive, negatives, options = world(seed)
    temperature = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    settings = options | {"positive_log_q": OWN, "temperature": temperature}
    sampled, refined = (
        gradients(losses.sampled_softmax(positive, negatives, form=form, **settings), positive, negatives, temperature)
        for form in ("sampled", "refined")
    )
    for one, other in zip(sampled, refined, strict=True):
        close(one.flatten(), other.flatten().tolist())


# ---- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["info_nce", "decoupled", "debiased", "hard_negative_nce", "sampled"])
def test_log_q_of_one_in_k_is_none(name):
    """K draws from K items by equal chances stand for themselves."""
    for seed in range(4):
        positive, negatives, options = world(seed)
        drawn = np.maximum(options["mask"].sum(axis=1, keepdims=True), 1)
        options["log_q"] = np.broadcast_to(-np.log(drawn), options["mask"].shape)
        corrected = SOFTMAX[name](positive, negatives, **options)
        del options["log_q"]
        plain = losses.info_nce if name == "sampled" else SOFTMAX[name]
        assert torch.allclose(corrected, plain(positive, negatives, **options), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_a_temperature_may_be_a_tensor_of_another_dtype(shape):
    scores = torch.tensor([0.3, -0.2]).double(), torch.tensor([[0.2, -0.4], [0.1, 0.9]]).double()
    learnt = torch.full(shape, 0.5, dtype=torch.float32, requires_grad=True)
    values = losses.info_nce(*scores, temperature=learnt)
    assert values.dtype == torch.float64
    assert torch.equal(values, losses.info_nce(*scores, temperature=0.5))
    (slope,) = gradients(values, learnt)
    assert (slope.shape, slope.dtype) == (shape, torch.float32)


def test_a_threshold_is_a_tie_kept_and_a_relative_one_has_its_sign():
    """With a guide below 0 the threshold is g - |g| margin, below g, and not g (1 - margin), above it."""
    scores = torch.zeros(2), torch.zeros((2, 3))
    guide = {"guide_positive": [-0.5, 0.5], "guide_negatives": [[-0.5, -0.75, -1.0], [0.5, 0.25, 0.0]]}
    plain = losses.gist(*scores, **guide, temperature=1.0)
    assert plain.tolist() == pytest.approx([math.log(4), math.log(4)])  # a tie stays
    relative = losses.gist(*scores, **guide, margin=0.5, relative=True, temperature=1.0)
    assert relative.tolist() == pytest.approx([math.log(3), math.log(3)])  # thresholds of -0.75 and 0.25
    absolute = losses.gist(*scores, **guide, margin=0.5, temperature=1.0)
    assert absolute.tolist() == pytest.approx([math.log(2), math.log(2)])  # of -1 and 0


def test_the_guide_takes_no_gradient():
    scores = torch.zeros(2, requires_grad=True), torch.zeros((2, 3), requires_grad=True)
    guide = torch.ones(2, requires_grad=True), torch.zeros((2, 3), requires_grad=True)
    losses.gist(*scores, guide_positive=guide[0], guide_negatives=guide[1]).sum().backward()
    assert (guide[0].grad, guide[1].grad) == (None, None)
    assert scores[1].grad.tolist() == [[25.0] * 3] * 2  # a softmax of four, over t


def test_half_precision_does_not_move_the_threshold_of_a_guide():
    """1 <= 1 - 0.001 is false, though bfloat16 cannot tell the two apart: it is compared in float32."""
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        scores = torch.ones(1, dtype=dtype), torch.ones((1, 1), dtype=dtype)
        assert losses.gist(*scores, margin=0.0).item() > 0.5
        assert losses.gist(*scores, margin=0.001).item() == 0.0


def test_the_value_of_refined_is_not_monotone():
    """sigmoid(x) (x + log K), x = log sum - p: below 0 where negatives are far, and lowest at x = -1.28 for K = 1."""
    nothing = torch.zeros((3, 1), dtype=torch.float64)
    positive = torch.tensor([5.0, 1.2784645, 0.0], dtype=torch.float64)
    far, lowest, level = losses.sampled_softmax(positive, nothing, log_q=nothing, form="refined").tolist()
    assert far == pytest.approx(-5 / (1 + math.exp(5)))
    assert lowest == pytest.approx(-0.2784645, abs=1e-7)
    assert lowest < far < level == 0.0
