"""Losses over a positive and its slots: plain-loop oracles, gradients, the laws they share and those of each."""

import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from slots_in_loops import LOSSES, TEMPERATURES, Batch, batches
from slots_in_loops import decoupled as decoupled_in_loops
from slots_in_loops import sampled_softmax as sampled_softmax_in_loops

from naysay import losses

EACH = pytest.mark.parametrize("name", list(LOSSES))


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Some functions of torch start their threads for four numbers; where cores are shared, that takes the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def close(found, expected, size=0.0):
    """Equal to 1e-12, relative; `size` is that of the terms if the value is a difference of them."""
    assert found.tolist() == pytest.approx(list(expected), rel=1e-12, abs=1e-12 * size + 1e-14)


def gradients(loss, positive, negatives, *others):
    """Those of the sum of the loss in positive, negatives and others; 0 in what the loss does not use."""
    return values_and_gradients(loss, positive, negatives, *others)[1:]


def values_and_gradients(loss, positive, negatives, *others):
    leaves = [positive.requires_grad_(), negatives.requires_grad_(), *others]
    values = loss(positive, negatives)
    found = torch.autograd.grad(values.sum(), leaves, allow_unused=True)
    grads = [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, found, strict=True)]
    return [values.detach(), *grads]


def counts(batch):
    """The largest number of negatives in a row, by weight, and by 1 / (K q) if that is known."""
    return max((math.fsum(count for _, count in slots) for _, slots, _ in batch.rows()), default=0.0)


# ---- the same in plain loops -----------------------------------------------------------------------------------------


@EACH
@given(data=st.data())
@settings(max_examples=30)
def test_every_loss_in_loops(name, data):
    loss, in_loops, options, log_q = LOSSES[name]
    batch = data.draw(batches(log_q))
    chosen = {option: data.draw(values, option) for option, values in options.items()}
    found = loss(*batch.tensors(), **batch.options(), **chosen)
    assert found.dtype == torch.float64
    close(found, batch.map(in_loops, **chosen), counts(batch) if name in ("debiased", "hard_negative_nce") else 0.0)


@given(batches(True), TEMPERATURES, st.sampled_from(["sampled", "refined", "classic"]), st.data())
@settings(max_examples=40)
def test_sampled_softmax_in_loops(batch, temperature, form, data):
    known = form == "classic" or data.draw(st.booleans())
    own = [data.draw(st.floats(-5.0, -0.01)) for _ in batch.positive] if known else None
    expected = [
        sampled_softmax_in_loops(*row, temperature, form, own[place] if known else None) if row[1] else 0.0
        for place, row in enumerate(batch.rows())
    ]
    given_own = {"positive_log_q": np.array(own, np.float64)} if known else {}
    setting = {"temperature": temperature, "form": form}
    found = losses.sampled_softmax(*batch.tensors(), **batch.options(), **given_own, **setting)
    close(found, expected, 30.0 if form == "refined" else 0.0)


@given(batches(None), TEMPERATURES, st.none() | st.floats(0.2, 2.0))
@settings(max_examples=30)
def test_decoupled_in_loops(batch, temperature, sigma):
    found = losses.decoupled(*batch.tensors(), **batch.options(), temperature=temperature, sigma=sigma)
    expected = batch.map(decoupled_in_loops, temperature=temperature, sigma=sigma, batch=batch.positive)
    close(found, expected, 30.0)


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
}
CORRECTED = {
    "sampled": losses.sampled_softmax,
    "sampled, hits": functools.partial(losses.sampled_softmax, positive_log_q=OWN),
    "classic": functools.partial(losses.sampled_softmax, positive_log_q=OWN, form="classic"),
}


ALL = UNTEMPERED | SOFTMAX | CORRECTED
WAYS = [(name, name in CORRECTED) for name in ALL] + [(name, True) for name in SOFTMAX]  # without and with log_q


@pytest.mark.parametrize(("name", "log_q"), WAYS)
def test_the_gradient_is_that_of_the_value(name, log_q):
    """In the positive, the negatives, the weights and the temperature; row 2 is empty."""
    loss, tempered = ALL[name], name not in UNTEMPERED
    rng = np.random.default_rng(3)
    positive, negatives = (torch.tensor(rng.standard_normal(shape)) for shape in ((4,), (4, 5)))
    weights = torch.tensor(rng.uniform(0.5, 2.0, (4, 5)))
    options = {"mask": rng.random((4, 5)) < 0.7}
    options["mask"][2] = False
    if log_q:
        options["log_q"] = rng.uniform(-4.0, -0.1, (4, 5))
    temperature = torch.tensor(0.6, dtype=torch.float64)

    def value(positive, negatives, weights, temperature):
        more = {"temperature": temperature} if tempered else {}
        return loss(positive, negatives, weights=weights, **options, **more)

    inputs = [leaf.requires_grad_() for leaf in (positive, negatives, weights, temperature)]
    assert torch.autograd.gradcheck(value, inputs if tempered else [*inputs[:3], temperature.detach()])
    found = torch.autograd.grad(value(*inputs).sum(), inputs[:3])
    assert not any(grad[2].any() for grad in found)
    assert not found[1][torch.tensor(~options["mask"])].any()


@given(batches(True), TEMPERATURES, st.booleans())
@settings(max_examples=30)
def test_refined_has_the_gradient_of_sampled(batch, temperature, with_own):
    own = np.linspace(-2.0, -0.1, len(batch.positive)) if with_own else None
    learnt = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
    loss = functools.partial(losses.sampled_softmax, **batch.options(), positive_log_q=own, temperature=learnt)
    assume(batch.positive)
    sampled = gradients(functools.partial(loss, form="sampled"), *batch.tensors(), learnt)
    refined = gradients(functools.partial(loss, form="refined"), *batch.tensors(), learnt)
    for one, other in zip(sampled, refined, strict=True):
        close(one.flatten(), other.flatten().tolist())


@given(batches(None), TEMPERATURES, st.floats(0.2, 2.0))
@settings(max_examples=25)
def test_decoupled_takes_the_weight_of_a_positive_as_given(batch, temperature, sigma):
    loss = functools.partial(losses.decoupled, **batch.options(), temperature=temperature, sigma=sigma)
    by_positive, _ = gradients(loss, *batch.tensors())
    each = [math.exp(p / sigma) for p in batch.positive]
    for row, (_, slots, _) in enumerate(batch.rows()):
        v = 2 - len(each) * each[row] / math.fsum(each)
        assert by_positive[row].item() == pytest.approx(-v / temperature if slots else 0.0, rel=1e-12, abs=1e-12)


@given(batches(None), TEMPERATURES, st.floats(0.0, 0.5), st.floats(0.0, 2.0))
@settings(max_examples=30)
def test_hardness_with_constant_weights(batch, temperature, prior, beta):
    """The gradient of log(1 + N g e^{-p}) with u held still; scores are at least -3, so that `min_score` never acts."""
    setting = {"temperature": temperature, "prior": prior, "beta": beta, "min_score": -1e6, "backprop_weights": False}
    loss = functools.partial(losses.hard_negative_nce, **batch.options(), **setting)
    by_positive, by_negatives = gradients(loss, *batch.tensors())
    for row, (p, slots, _) in enumerate(batch.rows()):
        number, pull = math.fsum(count for _, count in slots), math.exp(p / temperature)
        tilts = [count * math.exp(beta * s / temperature) for s, count in slots]
        lifts = [u / math.fsum(tilts) * math.exp(s / temperature) for u, (s, _) in zip(tilts, slots, strict=True)]
        left = math.fsum(lifts) - prior * pull
        assume(not slots or abs(left) > 1e-3 * prior * pull)
        outer = number / (1 - prior) / (pull + number * left / (1 - prior)) / temperature if left > 0 else 0.0
        assert [grad for grad in by_negatives[row].tolist() if grad] == pytest.approx(
            [outer * lift for lift in lifts] if outer else [], rel=1e-11
        )
        assert by_positive[row].item() == pytest.approx(-outer * math.fsum(lifts), rel=1e-11, abs=1e-14)


# ---- laws that all of them keep --------------------------------------------------------------------------------------


def refined(positive, negatives, **options):
    own = np.linspace(-3.0, -0.2, len(positive))
    return losses.sampled_softmax(positive, negatives, **options, positive_log_q=own, form="refined")


WITH_LOG_Q = SOFTMAX | {"sampled": losses.sampled_softmax, "refined": refined}


def answers(loss, batch):
    """The values (B,) of a loss over a batch, and its gradients (B,) and (B, K)."""
    return values_and_gradients(functools.partial(loss, **batch.options()), *batch.tensors())


def near(one, other):
    """Equal to 1e-10, in float64."""
    assert torch.allclose(one, other, rtol=1e-10, atol=1e-10)


def same(one, other):
    """The same answers for each row: its value, the gradient in its positive."""
    near(one[0], other[0])
    near(one[1], other[1])


@pytest.mark.parametrize("name", [name for name in WITH_LOG_Q if name not in ("gist", "refined")])
@given(batch=batches(False))
@settings(max_examples=25)
def test_log_q_of_one_in_k_is_none(name, batch):
    """K draws from K items by equal chances stand for themselves."""
    drawn = [row[2] for row in batch.rows()]
    log_q = [[-math.log(max(k, 1))] * len(row) for k, row in zip(drawn, batch.negatives, strict=True)]
    corrected = Batch(batch.positive, batch.negatives, batch.mask, batch.weights, log_q)
    plain = losses.info_nce if name == "sampled" else WITH_LOG_Q[name]
    same(answers(plain, batch), answers(WITH_LOG_Q[name], corrected))


@pytest.mark.parametrize(("name", "log_q"), [way for way in WAYS if way[0] not in UNTEMPERED])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_temperature_may_be_learnt(name, log_q, shape):
    """A number and a tensor of one agree, also if that is of another dtype, and the tensor gets a gradient."""
    torch.set_warn_always(True)  # torch says some things once, to whichever test comes first
    try:
        batch = Batch(
            [0.3, -0.2, 0.0, 1.0], [[0.2, -0.4, 0.9], [0.1, 0.3, -0.6], [-0.5, 0.0, 0.4], [0.2, 0.3, -1.0]], *[None] * 3
        )
        options = {"log_q": np.full((4, 3), -1.5)} if log_q else {}
        for dtype in (torch.float64, torch.float32):
            learnt = torch.full(shape, 0.5, dtype=dtype, requires_grad=True)
            loss = functools.partial(ALL[name], **options)
            values = loss(*batch.tensors(), temperature=learnt)
            assert values.dtype == torch.float64
            near(values, loss(*batch.tensors(), temperature=0.5))
            (slope,) = torch.autograd.grad(values.sum(), learnt)
            above, below = (loss(*batch.tensors(), temperature=0.5 + step).sum().item() for step in (1e-6, -1e-6))
            assert slope.shape == shape
            assert slope.dtype == dtype
            assert slope.item() == pytest.approx((above - below) / 2e-6, rel=1e-5)
    finally:
        torch.set_warn_always(False)


# ---- how they are related --------------------------------------------------------------------------------------------


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
    assert guide[0].grad is None
    assert guide[1].grad is None
    assert scores[1].grad.tolist() == [[25.0] * 3] * 2  # a softmax of four, over t


# ---- numbers: half precision, large scores ---------------------------------------------------------------------------


@pytest.mark.parametrize("score", [-50.0, -100.0, -1000.0])
def test_distances_far_beyond_the_margin(score):
    """Two negatives far away and an empty slot: (softplus(-f) + softplus(f)) / 2 with f = 9 + score, as without it."""
    positive, negatives = torch.tensor([score]), torch.tensor([[score, score, 0.0]])
    far = functools.partial(losses.self_adversarial, margin=9.0, mask=torch.tensor([[True, True, False]]))
    value, by_positive, by_negatives = values_and_gradients(far, positive, negatives)
    assert value.item() == pytest.approx(-(score + 9.0) / 2)
    assert by_positive.item() == pytest.approx(-0.5)
    assert by_negatives.tolist()[0] == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)


# ---- the promises of a loss ------------------------------------------------------------------------------------------


def with_own(loss, **settings):
    """A loss that is told the log_q of its positives."""

    def bound(positive, negatives, **options):
        own = torch.full((len(positive),), -1.5, dtype=torch.float64)
        return loss(positive, negatives, positive_log_q=own, **settings, **options)

    return bound


def test_refined_is_monotone_in_its_gradient_only():
    """sigmoid(x) (x + log K), x = log sum - p: below 0 where negatives are far, and lowest at x = -1.28 for K = 1."""
    nothing = torch.zeros((3, 1), dtype=torch.float64)
    positive = torch.tensor([5.0, 1.2784645, 0.0], dtype=torch.float64)
    loss = functools.partial(losses.sampled_softmax, log_q=nothing, form="refined")
    far, lowest, level = loss(positive, nothing).tolist()
    assert far == pytest.approx(-5 / (1 + math.exp(5)))
    assert lowest == pytest.approx(-0.2784645, abs=1e-7)
    assert lowest < far < level == 0.0
    by_positive, by_negatives = gradients(loss, positive, nothing.clone())
    assert (by_positive < 0).all()
    assert (by_negatives > 0).all()
