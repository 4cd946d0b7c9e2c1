"""Every loss once, with inputs that it takes: for tests of what all of them promise."""

import functools

import numpy as np
import torch

from naysay import losses

ROWS, SLOTS, ITEMS = 5, 4, 40


def random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).float()


LABELS = torch.from_numpy(np.random.default_rng(0).integers(-1, 4, ITEMS))
PARTNER = torch.arange(ITEMS).roll(ITEMS // 2)
LOG_Q = -random(ROWS, SLOTS, seed=3).abs()
GUIDE = {"guide_positive": random(ROWS, seed=4), "guide_negatives": random(ROWS, SLOTS, seed=5)}
TEACHER = {"teacher_positive": random(ROWS, seed=4), "teacher_negatives": random(ROWS, SLOTS, seed=5)}

# loss(positive (B,), negatives (B, K), mask=, weights=)
PAIRWISE = {
    "bpr": losses.bpr,
    "hinge": losses.hinge,
    "sampled_bce": losses.sampled_bce,
    "gbce": functools.partial(losses.gbce, n_items=10),
    "self_adversarial": losses.self_adversarial,
    "bounded_margin": losses.bounded_margin,
    "margin_mse": functools.partial(losses.margin_mse, **TEACHER),
    "normalised_hardness": losses.normalised_hardness,
}
# The same, and log_q= and temperature=.
SOFTMAX = {
    "info_nce": losses.info_nce,
    "sampled_softmax": functools.partial(losses.sampled_softmax, log_q=LOG_Q),
    "decoupled": losses.decoupled,
    "debiased": losses.debiased,
    "hard_negative_nce": losses.hard_negative_nce,
    "gist": functools.partial(losses.gist, **GUIDE),
}
SLOT_LOSSES = PAIRWISE | SOFTMAX

# loss(z (40, d), block=)
BATCH_LOSSES = {
    "in_batch": lambda z, **given: losses.in_batch(z, partner=PARTNER, temperature=0.5, **given),
    "in_batch, masked": lambda z, **given: losses.in_batch(
        z, partner=PARTNER, temperature=0.5, mask=lambda rows: LABELS[rows, None] != LABELS, **given
    ),
    "in_batch, labels": lambda z, **given: losses.in_batch(
        z, partner=PARTNER, labels=LABELS, temperature=0.5, prior=0.1, beta=0.5, min_score=-9.0, **given
    ),
    "in_batch_hinge": lambda z, **given: losses.in_batch_hinge(z, partner=PARTNER, among=3, **given),
    "eliminate": lambda z, **given: losses.eliminate(z, PARTNER, LABELS, temperature=0.5, **given),
    "attract": lambda z, **given: losses.attract(z, PARTNER, LABELS, temperature=0.5, **given),
    "sup_con": lambda z, **given: losses.sup_con(z, LABELS, temperature=0.5, **given),
    "sup_con, negatives": lambda z, **given: losses.sup_con(
        z, LABELS, temperature=0.5, denominator="negatives", **given
    ),
    "invariant_spreading": lambda z, **given: losses.invariant_spreading(z, PARTNER, temperature=0.5, **given),
}
BLOCKS = {"one block": 1 << 20, "several blocks": 1}
