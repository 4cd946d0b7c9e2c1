"""SoftmaxWeights: the weights of Softmax(rho, N) and AdaSIR, and the loss they make."""

import math

import numpy as np
import pytest
import torch
from by_table import by
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.samplers import SoftmaxWeights, Static

COMPILING = settings(deadline=None, max_examples=30)  # a first call compiles
N_ANCHORS, N_ITEMS = 4, 12
TABLE = np.random.default_rng(0).normal(size=(N_ANCHORS, N_ITEMS)) * 3
POSITIVES = {0: 0, 1: 5, 2: 3, 3: 1}
KNOWN = ns.Positives.from_pairs(list(POSITIVES), list(POSITIVES.values()), N_ANCHORS, N_ITEMS)
POPULAR = ns.pools.Everything(KNOWN, np.arange(1.0, N_ITEMS + 1), distinct=False)
UNIFORM = ns.pools.Everything(KNOWN, distinct=False)
QUERY = ns.Query([0, 1, 2, 3], positives=[0, 5, 3, 1])


def in_loops(scores, positive, log_q, rho, temperature):
    if not scores:
        return []
    if rho is None:
        logits = [(s - positive) / temperature for s in scores]  # as AdaSIR writes it
    else:
        z = [-math.log(1 / (1 + math.exp(-(positive - s)))) for s in scores]
        mean = sum(z) / len(z)
        tau = math.sqrt(sum((one - mean) ** 2 for one in z) / len(z) / (2 * rho))
        logits = [one / tau if tau > 1e-12 else 0.0 for one in z]
    raised = [math.exp(logit - q) for logit, q in zip(logits, log_q, strict=True)]
    return [one / sum(raised) for one in raised]


@COMPILING
@given(
    st.lists(st.integers(0, N_ANCHORS - 1), max_size=5),
    st.sampled_from([(0.01, None), (1.0, None), (2.5, None), (None, 0.5), (None, 3.0)]),
    st.one_of(st.integers(0, 9), st.floats(0, 9), st.just("each")),
    st.booleans(),
    st.booleans(),
)
def test_weights_are_those_of_the_loops(anchors, numbers, k, correct, in_torch):
    rho, temperature = numbers
    ids = np.array(anchors, np.int64)
    positives = np.array([POSITIVES[anchor] for anchor in anchors], np.int64)
    query = ns.Query(*((torch.from_numpy(ids), torch.from_numpy(positives)) if in_torch else (ids, positives)))
    k = np.arange(len(anchors)) if k == "each" else k
    sampler = SoftmaxWeights(POPULAR, by(TABLE), rho, temperature=temperature, correct=correct)
    taken = sampler.sample(query, k, rng=ns.rng_for(0))
    plain = Static(POPULAR).sample(query, k, rng=ns.rng_for(0)).numpy()
    assert isinstance(taken.weights, torch.Tensor) is in_torch
    taken = taken.numpy()
    assert np.array_equal(taken.ids, plain.ids)
    assert np.array_equal(taken.log_q, plain.log_q)
    assert taken.dropped == plain.dropped
    for row, anchor in enumerate(anchors):
        found = [item for item in taken.ids[row].tolist() if item >= 0]
        empty = [0.0] * (taken.shape[1] - len(found))
        scores = [TABLE[anchor, item] for item in found]
        log_q = taken.log_q[row, : len(found)].tolist() if correct else [0.0] * len(found)
        expected = in_loops(scores, TABLE[anchor, POSITIVES[anchor]], log_q, rho, temperature)
        assert taken.weights[row].tolist() == pytest.approx(expected + empty, rel=1e-9, abs=1e-12)
        assert taken.scores[row].tolist() == scores + empty


@pytest.mark.parametrize("rho", [1e-6, 1e-4, 1e-3])
def test_rho_is_how_far_the_weights_are_from_even_ones(rho):
    taken = SoftmaxWeights(UNIFORM, by(TABLE), rho).sample(QUERY, 400, rng=ns.rng_for(0))
    divergence = (taken.weights * np.log(taken.weights * 400)).sum(axis=1)
    assert divergence == pytest.approx([rho] * 4, rel=3 * math.sqrt(rho))


# Z = log(1 + e^s) for s = 2, 1, 0, -1, by mpmath.
GOLDEN = [0.66643306156868, 0.20363875805092, 0.082498461295349, 0.047429719085048]


def test_golden_weights():
    scores = np.array([[0.0, 2.0, 1.0, 0.0, -1.0]])
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], 1, 5))
    query = ns.Query([0], positives=[0])
    taken = SoftmaxWeights(pool, by(scores), 0.5, correct=False).sample(query, 4, rng=ns.rng_for(0))
    found = dict(zip(taken.ids[0].tolist(), taken.weights[0].tolist(), strict=True))
    assert [found[item] for item in (1, 2, 3, 4)] == pytest.approx(GOLDEN, abs=1e-12)


def test_correction_undoes_the_pool():
    """With even hardness a weight is 1 / q: the estimate is that of uniform draws."""
    taken = SoftmaxWeights(POPULAR, by(np.zeros_like(TABLE)), 1.0).sample(QUERY, 6, rng=ns.rng_for(0))
    inverse = 1 / (taken.ids + 1.0)  # q is in proportion to id + 1
    assert taken.weights == pytest.approx(inverse / inverse.sum(axis=1, keepdims=True))
