"""Loshchilov and Hutter: rows of high loss more often, by their rank."""

import numpy as np

import naysay as ns

losses = np.random.default_rng(0).random(400)
plan = ns.batches.ByLoss(400, 32, pressure=100.0)
plan.observe(np.arange(400), losses)  # once a step, of the rows in the batch
batches = plan.plan(epoch=1, rng=ns.rng_for(seed=1))
