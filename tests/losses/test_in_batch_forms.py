"""in_batch with positive_log_q and the three forms: those of sampled_softmax, block by block."""

import numpy as np
import pytest
import torch

from naysay.losses import in_batch, sampled_softmax

RNG = np.random.default_rng(0)
ANCHORS, KEYS = (torch.from_numpy(RNG.standard_normal((n, 3))) for n in (5, 7))
LOG_Q = torch.from_numpy(np.log(RNG.dirichlet(np.ones(7))))
MASK = RNG.random((5, 7)) < 0.8
MASK[2] = False


@pytest.mark.parametrize("form", ["sampled", "refined", "classic"])
@pytest.mark.parametrize("block", [1, 1 << 22])
@pytest.mark.parametrize("positive", [True, False])
def test_they_are_those_of_slots(form, block, positive):
    if form == "classic" and not positive:
        return
    own = LOG_Q[:5] if positive else None
    factors = torch.linspace(0.5, 2, 5).double()

    def gradients(loss):
        parts = [part.clone().requires_grad_() for part in (ANCHORS, KEYS)]
        values = loss(*parts)
        return values.detach(), *torch.autograd.grad((values * factors).sum(), parts)

    def of_slots(anchors, keys):
        scores, others = anchors @ keys.T, MASK & ~np.eye(5, 7, dtype=bool)
        options = {"log_q": LOG_Q.expand(5, 7), "positive_log_q": own, "form": form, "mask": others, "temperature": 0.7}
        return sampled_softmax(scores.diagonal(), scores, **options)

    def of_batch(anchors, keys):
        options = {
            "log_q": LOG_Q,
            "positive_log_q": own,
            "form": form,
            "mask": MASK,
            "temperature": 0.7,
            "block": block,
        }
        return in_batch(anchors, keys, **options)

    for one, other in zip(gradients(of_slots), gradients(of_batch), strict=True):
        assert torch.allclose(one, other, atol=1e-10)


def full_gradient(scores, p):
    share = torch.softmax(scores, dim=0)
    share[p] -= 1
    return share


def test_bias_on_twelve_items():
    """Items drawn by popularity: sampled and refined are close to the full softmax, classic and none are not."""
    rng = np.random.default_rng(1)
    scores = torch.from_numpy(rng.standard_normal(12))
    chance = np.arange(1, 13) / 78.0
    draws = torch.from_numpy(rng.choice(12, (4000, 40), p=chance))
    log_q, p = torch.from_numpy(np.log(chance)), 3

    def bias(**options):
        logits = scores.clone().requires_grad_()
        keys = torch.cat([logits[p].expand(4000, 1), logits[draws]], dim=1)
        own = torch.cat([torch.full((4000, 1), p), draws], dim=1)
        mask = own != p
        if options:
            options["log_q"] = log_q[own]
            loss = sampled_softmax(keys[:, 0], keys, mask=mask, positive_log_q=log_q[p].expand(4000), **options)
        else:
            loss = -keys[:, 0] + torch.logsumexp(
                torch.cat([keys[:, :1], keys.masked_fill(~mask, -torch.inf)], 1), dim=1
            )
        (gradient,) = torch.autograd.grad(loss.mean(), logits)
        return (gradient - full_gradient(scores, p)).abs().sum().item()

    sampled, refined, classic, none = bias(form="sampled"), bias(form="refined"), bias(form="classic"), bias()
    assert sampled == pytest.approx(refined, abs=1e-9)
    assert sampled < 0.05 < classic
    assert sampled < 0.05 < none
