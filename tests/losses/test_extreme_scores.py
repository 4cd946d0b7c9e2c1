"""Slot losses for scores of any finite size, against the same formulas in 60 decimal digits.

A loss of large scores is often a small difference of them, in which a logarithm of a weight still counts.
"""

import decimal
import functools

import numpy as np
import pytest
import torch

from naysay import losses

D = decimal.Decimal
decimal.getcontext().prec = 60
ZERO, ONE = D(0), D(1)
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}
SIZES = (1.0, 30.0, 1e4, 1e8, 1e30)


def exp(x):
    return ZERO if x < -2000 else x.exp() if x < 2000 else D("Infinity")


def softplus(x):
    return max(x, ZERO) + (ONE + exp(-abs(x))).ln()


def log_sum(terms):
    """log sum w e^x of pairs (log w, x)."""
    top = max(log_w + x for log_w, x in terms)
    return top + sum((exp(log_w + x - top) for log_w, x in terms), ZERO).ln()


def bpr(p, slots, drawn):
    return sum((exp(log_w) * softplus(s - p) for log_w, s in slots), ZERO)


def hinge(p, slots, drawn, margin):
    return sum((exp(log_w) * max(ZERO, s - p + D(margin)) for log_w, s in slots), ZERO)


def sampled_bce(p, slots, drawn):
    return softplus(-p) + sum((exp(log_w) * softplus(s) for log_w, s in slots), ZERO)


def gbce(p, slots, drawn, n_items, calibration):
    rate = min(ONE, sum((exp(log_w) for log_w, _ in slots), ZERO) / (n_items - 1))
    beta = 1 - D(calibration) * (1 - rate)
    return beta * softplus(-p) + sum((exp(log_w) * softplus(s) for log_w, s in slots), ZERO)


def info_nce(p, slots, drawn, temperature):
    return softplus(log_sum([(log_w, (s - p) / D(temperature)) for log_w, s in slots]))


def sampled_softmax(p, slots, drawn, temperature, form):
    gap = log_sum([(log_w, (s - p) / D(temperature)) for log_w, s in slots])
    return softplus(gap) if form == "sampled" else (gap + D(drawn).ln()) / (ONE + exp(-gap))


def decoupled(p, slots, drawn, temperature):
    return log_sum([(log_w, (s - p) / D(temperature)) for log_w, s in slots])


def hard_negative_nce(p, slots, drawn, temperature, prior, min_score, beta=0.0):
    count = log_sum([(log_w, ZERO) for log_w, _ in slots])
    logits = [(log_w, (s - p) / D(temperature)) for log_w, s in slots]
    tilted = [(log_w, x * D(beta)) for log_w, x in logits]
    mean = log_sum([(log_w, x * (1 + D(beta))) for log_w, x in logits]) - log_sum(tilted)
    left = 1 - exp(D(prior).ln() - mean) if prior else ONE
    lowest = (D(min_score) - p) / D(temperature)
    mean = max(mean + (left / (1 - D(prior))).ln(), lowest) if left > 0 else lowest
    return softplus(count + mean)


def self_adversarial(p, slots, drawn, alpha, margin):
    total = log_sum([(log_w, D(alpha) * s) for log_w, s in slots])
    shares = [exp(log_w + D(alpha) * s - total) for log_w, s in slots]
    pushed = sum((share * softplus(s + D(margin)) for share, (_, s) in zip(shares, slots, strict=True)), ZERO)
    return (softplus(-p - D(margin)) + pushed) / 2


# The loss, the same in decimals, its options (powers of two, which every dtype has), and whether it takes log_q.
LOSSES = {
    "bpr": (losses.bpr, bpr, {}, False),
    "hinge": (losses.hinge, hinge, {"margin": 0.5}, False),
    "sampled_bce": (losses.sampled_bce, sampled_bce, {}, False),
    "gbce": (losses.gbce, gbce, {"n_items": 9, "calibration": 0.75}, False),
    "info_nce": (losses.info_nce, info_nce, {"temperature": 0.5}, True),
    "gist": (functools.partial(losses.gist, margin=0.0), info_nce, {"temperature": 0.125}, True),
    "sampled": (losses.sampled_softmax, sampled_softmax, {"temperature": 0.25, "form": "sampled"}, True),
    "refined": (losses.sampled_softmax, sampled_softmax, {"temperature": 0.25, "form": "refined"}, True),
    "decoupled": (losses.decoupled, decoupled, {"temperature": 0.125}, True),
    "debiased": (losses.debiased, hard_negative_nce, {"temperature": 0.5, "prior": 0.125, "min_score": -1.0}, True),
    "hard_negative_nce": (
        losses.hard_negative_nce,
        hard_negative_nce,
        {"temperature": 0.5, "prior": 0.125, "min_score": -1.0, "beta": 0.5},
        True,
    ),
    "self_adversarial": (losses.self_adversarial, self_adversarial, {"alpha": 0.5, "margin": 0.25}, False),
}


def batch(rng, dtype, *, with_log_q):
    """Scores of one size, most of them close to each other, with weights, empty slots and empty rows."""
    rows, slots = 3, int(rng.integers(1, 5))
    size = rng.choice([size for size in SIZES if size < torch.finfo(dtype).max / 100])
    centre = rng.choice([-1, 0, 1]) * size
    near = rng.choice([0.0, 1.0, 3.0, size * 1e-6, size], (rows, slots + 1)) * rng.choice([-1, 1], (rows, slots + 1))
    scores = torch.tensor(centre + near).to(dtype)
    given = {"mask": torch.tensor(rng.random((rows, slots)) < 0.8)}
    if rng.random() < 0.8:
        given["weights"] = torch.tensor(rng.choice([0.0, 0.5, 1.0, 2.0, 1000.0], (rows, slots))).to(dtype)
    if with_log_q:
        given["log_q"] = torch.tensor(rng.choice([-0.5, -1.0, -20.0], (rows, slots))).to(dtype)
    return scores[:, 0], scores[:, 1:], given


def exact(plain, name, positive, negatives, given, options):
    """The losses of a batch in decimals, a row at a time."""
    answer = []
    for row, p in enumerate(positive.tolist()):
        mask, drawn, slots = given["mask"][row].tolist(), int(given["mask"][row].sum()), []
        for slot, s in enumerate(negatives[row].tolist()):
            weight = given["weights"][row, slot].item() if "weights" in given else 1.0
            if mask[slot] and weight > 0 and (name != "gist" or s <= p):
                log_w = D(weight).ln()
                if "log_q" in given:
                    log_w -= D(given["log_q"][row, slot].item()) + D(drawn).ln()
                slots.append((log_w, D(s)))
        answer.append(plain(D(p), slots, drawn, **options) if slots else ZERO)
    return answer


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_right_for_scores_of_any_size(name, dtype):
    loss, plain, options, takes_log_q = LOSSES[name]
    rng = np.random.default_rng(len(name))
    for trial in range(16):
        positive, negatives, given = batch(
            rng, dtype, with_log_q=takes_log_q and (trial % 2 or name in ("sampled", "refined"))
        )
        positive, negatives = positive.requires_grad_(), negatives.requires_grad_()
        values = loss(positive, negatives, **given, **options)
        values.double().clamp(max=1e300).sum().backward()
        assert positive.grad.isfinite().all()
        assert negatives.grad.isfinite().all()
        assert (negatives.grad[~given["mask"]] == 0).all()
        expected = exact(plain, name, positive.detach(), negatives.detach(), given, options)
        for found, wanted in zip(values.tolist(), expected, strict=True):
            if abs(wanted) > torch.finfo(dtype).max:
                assert abs(found) == np.inf
            else:
                assert abs(D(found) - wanted) <= D(TOLERANCE[dtype]) * (1 + abs(wanted)), (trial, found, float(wanted))


def test_a_weight_counts_once_however_large_the_scores():
    """Two slots, of weights 2 and 1: the shares of equal scores are 2/3 and 1/3, and their loss is that of one slot."""
    for score in (1.0, 1e8, 1e30):
        scores = torch.tensor([0.0]), torch.tensor([[score, score]])
        one = losses.self_adversarial(scores[0], scores[1][:, :1], weights=torch.tensor([[2.0]]))
        assert losses.self_adversarial(*scores, weights=torch.tensor([[2.0, 1.0]])).item() == pytest.approx(one.item())
        assert one.item() == losses.self_adversarial(scores[0], scores[1][:, :1]).item()


# ---- over a batch ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 1e4, 1e15])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_count_over_a_batch_of_equal_large_scores(size, dtype):
    """All scores are size^2: the losses are logarithms of weights, which are small beside them."""
    z, weights = torch.full((4, 1), size, dtype=dtype), torch.tensor([2.0, 2.0, 3.0, 5.0])
    partner = [1, 0, 3, 2]
    expected = torch.tensor([1.0 + 3 + 5, 1 + 3 + 5, 1 + 2 + 2, 1 + 2 + 2]).log()
    close = functools.partial(torch.testing.assert_close, rtol=1e-5, atol=0, check_dtype=False)
    close(losses.in_batch(z, partner=partner, weights=weights), expected)
    close(losses.eliminate(z, partner, [-1] * 4, temperature=1.0, weights=weights), expected)
    close(losses.attract(z, partner, [-1] * 4, temperature=1.0, weights=weights), expected)
    one_class = torch.tensor([10.0, 10.0, 9.0, 7.0]).log()
    close(losses.sup_con(z, [0] * 4, temperature=1.0, weights=weights), one_class)
    close(losses.sup_con(z, [0, 0, 1, 1], temperature=1.0, weights=weights, denominator="negatives"), expected)
    keys = torch.full((1, 1), size, dtype=dtype)
    close(losses.in_batch(z[:1], keys, negatives=z[None, :3]), torch.tensor([4.0]).log())
