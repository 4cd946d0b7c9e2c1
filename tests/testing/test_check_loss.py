"""Every promise of a loss has broken duplicates that `check_loss` names, and plain InfoNCE and BPR pass."""

import functools
import sys

import pytest
import torch
from torch.nn.functional import softplus

from naysay.errors import MissingExtraError, NaysayError
from naysay.testing import PromiseBroken, check_loss
from naysay.testing.losses import PROMISES


def usable(negatives, mask, weights):
    """(scores that are safe everywhere, weights with 0 where masked), as a loss has to prepare them."""
    weight = torch.ones_like(negatives)
    if weights is not None:
        weight = weight * torch.as_tensor(weights).to(negatives)
    if mask is not None:
        kept = torch.as_tensor(mask, dtype=torch.bool)
        negatives, weight = negatives.masked_fill(~kept, 0.0), weight.masked_fill(~kept, 0.0)
    return negatives, weight


def info_nce(positive, negatives, *, mask=None, weights=None, temperature=1.0):
    scores, weight = usable(negatives, mask, weights)
    terms = scores / temperature + weight.log()
    logits = torch.cat([positive[:, None] / temperature, terms], dim=1)
    return torch.logsumexp(logits, dim=1) - logits[:, 0]


def bpr(positive, negatives, *, mask=None, weights=None):
    """The weighted mean of softplus(negative - positive)."""
    scores, weight = usable(negatives, mask, weights)
    total = (weight * softplus(scores - positive[:, None])).sum(dim=1)
    return total / weight.sum(dim=1).clamp_min(torch.finfo(weight.dtype).tiny)


def sampled_softmax(positive, negatives, *, log_q, mask=None, weights=None):
    """InfoNCE with each negative corrected by log(K q)."""
    scores, weight = usable(negatives, mask, weights)
    size = (weight > 0).sum(dim=1, keepdim=True).clamp_min(1).to(negatives)
    return info_nce(positive, scores - torch.as_tensor(log_q).to(scores) - size.log(), weights=weight)


def reduced(positive, negatives, *, mask=None, weights=None):
    return bpr(positive, negatives, mask=mask, weights=weights).sum()


def in_single(positive, negatives, *, mask=None, weights=None):
    return bpr(positive, negatives, mask=mask, weights=weights).float()


def overwrites(positive, negatives, *, mask=None, weights=None):
    values = bpr(positive, negatives, mask=mask, weights=weights)
    if weights is not None and isinstance(weights, torch.Tensor):
        weights.fill_(1.0)
    return values


def takes_no_mask(positive, negatives, *, weights=None):
    return bpr(positive, negatives, weights=weights)


def ignores_mask(positive, negatives, *, mask=None, weights=None):
    return bpr(positive, negatives, weights=weights)


def multiplies_by_mask(positive, negatives, *, mask=None, weights=None):
    """0 times NaN is NaN."""
    weight = usable(negatives, mask, weights)[1]
    return (weight * softplus(negatives - positive[:, None])).sum(dim=1)


def divides_by_slots(positive, negatives, *, mask=None, weights=None):
    scores, weight = usable(negatives, mask, weights)
    return (weight * softplus(scores - positive[:, None])).sum(dim=1) / max(negatives.shape[1], 1)


def leaks_gradient(positive, negatives, *, mask=None, weights=None):
    """The value of a masked slot is hidden after the fact; its gradient is 0 times infinity."""
    values = bpr(positive, negatives, mask=mask, weights=weights)
    return values + (negatives - negatives.detach()).nan_to_num().sum(dim=1)


def takes_no_weights(positive, negatives, *, mask=None):
    return bpr(positive, negatives, mask=mask)


def ignores_weights(positive, negatives, *, mask=None, weights=None):
    return bpr(positive, negatives, mask=mask)


def doubles_weights(positive, negatives, *, mask=None, weights=None):
    factor = 1.0 if weights is None else 2.0
    return factor * bpr(positive, negatives, mask=mask, weights=weights)


def counts_weightless(positive, negatives, *, mask=None, weights=None):
    """Divides by the slots of the mask, also those of weight 0."""
    scores, weight = usable(negatives, mask, weights)
    count = usable(negatives, mask, None)[1].sum(dim=1).clamp_min(1)
    return (weight * softplus(scores - positive[:, None])).sum(dim=1) / count


def keeps_the_positive(positive, negatives, *, mask=None, weights=None):
    """The positive's own term of a binary loss stays when there is nothing to tell it from."""
    return bpr(positive, negatives, mask=mask, weights=weights) + softplus(-positive)


def not_a_number_when_empty(positive, negatives, *, mask=None, weights=None):
    scores, weight = usable(negatives, mask, weights)
    return (weight * softplus(scores - positive[:, None])).sum(dim=1) / weight.sum(dim=1)


def naive(positive, negatives, *, mask=None, weights=None):
    scores, weight = usable(negatives, mask, weights)
    return torch.log1p((weight * torch.exp(scores - positive[:, None])).sum(dim=1))


def first_only(positive, negatives, *, mask=None, weights=None):
    scores, weight = usable(negatives, mask, weights)
    first = (weight > 0) & ((weight > 0).cumsum(dim=1) == 1)
    return (first * weight * softplus(scores - positive[:, None])).sum(dim=1)


def divides_by_batch(positive, negatives, *, mask=None, weights=None):
    return bpr(positive, negatives, mask=mask, weights=weights) / max(len(positive), 1)


def distance(positive, negatives, *, mask=None, weights=None):
    """Written for distances: lower is closer."""
    scores, weight = usable(negatives, mask, weights)
    return (weight * softplus(positive[:, None] - scores)).sum(dim=1)


def rewards_the_positive(positive, negatives, *, mask=None, weights=None):
    scores, weight = usable(negatives, mask, weights)
    return (weight * softplus(scores + positive[:, None])).sum(dim=1)


def stops_gradient(positive, negatives, *, mask=None, weights=None):
    return bpr(positive, negatives.detach(), mask=mask, weights=weights)


def torch_only(positive, negatives, *, mask=None, weights=None):
    return bpr(positive, negatives, mask=None if mask is None else mask.bool().clone(), weights=weights)


def noisy(positive, negatives, *, mask=None, weights=None):
    torch.rand(1)
    return bpr(positive, negatives, mask=mask, weights=weights)


TWINS = [
    ("shape", reduced, r"returned shape \(\) for negatives \(0, 3\); it is unreduced, \(0,\)"),
    ("shape", lambda positive, negatives: 1.0, "returned a float for negatives"),
    ("dtype", in_single, "returned float32 for scores in bfloat16"),
    ("frozen", overwrites, "changed its weights"),
    ("mask", ignores_mask, "gives another value with 4 slots masked than with them left out"),
    ("mask", divides_by_slots, "gives another value with 4 slots masked"),
    ("mask", multiplies_by_mask, "changed by a score of nan in a masked slot"),
    ("mask", leaks_gradient, "gives a gradient to a masked slot with a score of"),
    ("weights", ignores_weights, "does not give the same for weights of 0 as masked"),
    ("weights", doubles_weights, "does not give the same for weights of 1 as without"),
    ("weights", counts_weightless, "does not give the same for weights of 0 as masked"),
    ("empty", keeps_the_positive, r"gave a loss of \d\.\d+ for a row with no negatives; it is 0"),
    ("empty", not_a_number_when_empty, "gave a loss of nan for a row with no negatives"),
    ("finite", naive, "is not finite, or its gradient is not, for scores of 1e4 and -1e4"),
    ("order", first_only, "depends on the order of the slots"),
    ("rows", divides_by_batch, "gives row 0 another value or gradient alone than among others"),
    ("monotone", distance, "fell when a negative's score rose by 0.01"),
    ("monotone", rewards_the_positive, "rose when the positive's score rose by 0.01"),
    ("gradient", stops_gradient, "has a gradient that is not the slope of its value"),
    ("arrays", torch_only, "raised AttributeError: 'numpy.ndarray' object has no attribute 'bool'"),
    ("global_state", noisy, "used the global generator of torch"),
]


@pytest.mark.parametrize(("promise", "loss", "message"), TWINS)
def test_a_broken_promise_is_named(promise, loss, message):
    with pytest.raises(PromiseBroken, match=rf"^`{promise}`: {loss.__name__} {message}"):
        check_loss(loss)


def test_every_promise_has_a_broken_duplicate():
    assert {promise for promise, _, _ in TWINS} == set(PROMISES)


@pytest.mark.parametrize("seed", range(3))
def test_honest_losses_pass(seed):
    check_loss(info_nce, seed=seed)
    check_loss(functools.partial(info_nce, temperature=0.05), seed=seed)
    check_loss(bpr, seed=seed)
    check_loss(sampled_softmax, needs_log_q=True, seed=seed)


def test_options_must_be_taken():
    with pytest.raises(PromiseBroken, match="takes_no_mask raised TypeError") as caught:
        check_loss(takes_no_mask)
    assert caught.value.promise == "frozen"  # the first call with a mask
    with pytest.raises(PromiseBroken, match="takes_no_weights raised TypeError"):
        check_loss(takes_no_weights)
    with pytest.raises(PromiseBroken, match=r"sampled_softmax raised TypeError: .*missing .* 'log_q'"):
        check_loss(sampled_softmax)


def test_log_q_is_masked_and_permuted_too():
    def uncorrected_order(positive, negatives, *, log_q, mask=None, weights=None):
        first = torch.as_tensor(log_q)[:, :1]  # that of the first slot, for all
        scores, weight = usable(negatives, mask, weights)
        return info_nce(positive, scores - first.to(scores), weights=weight)

    with pytest.raises(PromiseBroken, match="uncorrected_order"):
        check_loss(uncorrected_order, needs_log_q=True)


def test_a_promise_that_is_not_made_is_not_held():
    check_loss(stops_gradient, without=("gradient",))
    with pytest.raises(NaysayError, match=r"check_loss: `without` must be one of .* Did you mean 'gradient'"):
        check_loss(bpr, without=("gradients",))


def test_errors(monkeypatch):
    with pytest.raises(NaysayError, match=r"check_loss: `loss` must be a function, got a str"):
        check_loss("bpr")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtraError,
        match=r"check_loss: torch is not installed. Run in a clone of naysay: pip install '\.\[torch\]'",
    ):
        check_loss(bpr)
