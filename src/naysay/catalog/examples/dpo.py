"""DPO: rejected answers are negatives. Which of a prompt's own samples to reject is a sampler's question."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(6)
reward = rng.normal(size=(40, 16))  # of 16 answers to each of 40 prompts
chosen = reward.argmax(axis=1) + 16 * np.arange(40)  # the best of n
known = ns.Positives.from_pairs(np.arange(40), chosen, n_anchors=40, n_items=640)
pool = ns.pools.Local(np.arange(640).reshape(40, 16), known)  # the prompt's other answers
choices = {
    "random": ns.samplers.Static(pool),
    "worst": ns.samplers.Dynamic(pool, lambda prompts, answers: -reward.flat[answers], candidates=15),
    "second best": ns.samplers.Dynamic(pool, lambda prompts, answers: reward.flat[answers], candidates=15),
    "a gap of 1": ns.samplers.NearTarget(
        pool, lambda prompts, answers: reward.flat[answers], 15, lambda own, step: own - 1
    ),
}
query = ns.Query(np.arange(40), positives=chosen)
rejected = {name: sampler.sample(query, 1, rng=ns.rng_for(seed=0)) for name, sampler in choices.items()}
equal = ns.detectors.Margin(0.1, reward.max(axis=1))  # flags an answer that is nearly as good
clear = ns.detectors.drop(rejected["second best"], equal.suspicion(query, rejected["second best"]))
ratio = torch.from_numpy(rng.normal(size=640)).requires_grad_()  # log pi - log pi_ref of each answer
loss = ns.losses.bpr(0.1 * ratio[query.positives], 0.1 * ratio[clear.ids.clip(0)], mask=clear.mask)
