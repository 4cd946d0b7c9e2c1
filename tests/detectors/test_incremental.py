"""Incremental: confidence, acceptance and suspicion in plain loops, by hand, through the losses, and after a restart.

That the losses have the gradients of the paper's Eq. 8 and Eq. 10 is held by tests/losses/test_labelled.py.
"""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import Incremental, LinearAcceptance, StepAcceptance
from naysay.losses import attract, eliminate, in_batch


def world(n=300, d=6, groups=5, seed=0, spread=0.4):
    """Vectors around some centres, and whose they are."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, groups, n)
    return (2 * rng.standard_normal((groups, d))[which] + spread * rng.standard_normal((n, d))).astype(
        np.float32
    ), which


def updated(n=300, k=(5, 20), progress=0.6, seed=0, **settings):
    found = Incremental(n, k, iterations=5, **settings)
    found.update(world(n, seed=seed)[0], progress)
    return found


# ---- confidence -----------------------------------------------------------------------------------------


def cosine(one, other):
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*other)) if math.hypot(*other) else 0.0


def means_of(vectors, assigned, k):
    """The centroids of k-means at rest: the mean of what is assigned to each."""
    return [vectors[assigned == place].mean(axis=0).astype(float).tolist() for place in range(k)]


@pytest.mark.parametrize("temperature", [0.05, 0.2, 5.0])
def test_the_confidence_of_samples_in_plain_loops(temperature):
    vectors, _ = world(60, seed=2)
    found = Incremental(60, 5, temperature, iterations=50)
    found.update(vectors, 1.0)
    means = means_of(vectors, found.assigned[0], 5)
    for vector, place, sure in zip(vectors.astype(float).tolist(), found.assigned[0], found.confidence[0], strict=True):
        logits = [cosine(vector, mean) / temperature for mean in means]
        total = math.log(sum(math.exp(value - max(logits)) for value in logits)) + max(logits)
        assert math.log(sure) == pytest.approx(logits[place] - total, abs=1e-5 / temperature)


def test_the_confidence_of_clusters_in_plain_loops():
    """PCL's concentration; a cluster of one sample counts as the least dense."""
    vectors, _ = world(60, seed=2)
    vectors[0] = 50.0  # alone
    found = Incremental(60, 6, confidence="cluster", iterations=50, restarts=5)
    found.update(vectors, 1.0)
    assigned = found.assigned[0]
    means = means_of(vectors, assigned, 6)
    phi = {}
    for place in range(6):
        away = [math.dist(vector, means[place]) for vector in vectors[assigned == place].astype(float).tolist()]
        if len(away) > 1:
            phi[place] = sum(away) / (len(away) * math.log(len(away) + 10))
    expected = [1 / (1 + phi.get(place, max(phi.values()))) for place in assigned.tolist()]
    assert len(phi) < 6
    np.testing.assert_allclose(found.confidence[0], expected, rtol=1e-4)


# ---- labels ---------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    st.integers(3, 40),
    st.fractions(0, 1, max_denominator=100),
    st.sampled_from(["sample", "cluster"]),
    st.integers(0, 5),
    st.data(),
)
def test_the_surest_keep_their_cluster_in_plain_loops(n, share, measure, seed, data):
    sizes = data.draw(st.lists(st.integers(1, n), min_size=1, max_size=3))
    found = Incremental(n, sizes, accept=float(share), confidence=measure, iterations=2, seed=seed)
    vectors, _ = world(n, seed=seed)
    found.update(vectors[np.arange(n) // 2 * 2 % n], 0.3)  # every vector twice: equal confidences
    for k, assigned, sure, labels in zip(sizes, found.assigned, found.confidence, found.labels, strict=True):
        assert 0 <= assigned.min() <= assigned.max() < k
        assert ((sure > 0) & (sure <= 1)).all()
        order = sorted(range(n), key=lambda i, sure=sure: (-sure[i], i))
        kept = set(order[: math.floor(share * n)])
        assert labels.tolist() == [assigned[i] if i in kept else -1 for i in range(n)]


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (None, [0, 30, 300]),
        (LinearAcceptance(0.25), [0, 7, 75]),
        (0.75, [225, 225, 225]),
        (1, [300, 300, 300]),
        (StepAcceptance(), [0, 300, 300]),
        (lambda progress: progress**2, [0, 3, 300]),
    ],
)
def test_schedules(accept, wanted):
    found = Incremental(300, 5, accept=accept, iterations=1)
    for progress, count in zip((0.0, 0.1, 1.0), wanted, strict=True):
        found.update(world()[0], progress)
        assert np.count_nonzero(found.labels >= 0) == count


# ---- losses ---------------------------------------------------------------------------------------------


def batch(n=300, rows=24, seed=0):
    """(z, partner, ids): two views of some samples."""
    rng = np.random.default_rng(seed)
    ids = np.tile(rng.choice(n, rows, replace=False), 2)
    z = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((2 * rows, 5))), dim=1)
    return z, np.roll(np.arange(2 * rows), rows), ids


@pytest.mark.parametrize("loss", [eliminate, attract])
def test_with_no_accepted_label_both_are_plain_info_nce(loss):
    z, partner, ids = batch()
    plain = in_batch(z, partner=partner, temperature=0.2)
    for found in (Incremental(300, (5, 20)), updated(progress=0.0)):
        torch.testing.assert_close(loss(z, partner, found.labels[:, ids], temperature=0.2), plain)
    assert not torch.allclose(loss(z, partner, updated().labels[:, ids], temperature=0.2), plain)


def test_elimination_leaves_out_what_is_suspect():
    found = updated(k=(5,))
    z, partner, ids = batch()
    suspect = found.suspicion(ns.Query(ids), ns.Negatives(np.tile(ids, (len(ids), 1)))) >= 0.5
    assert 0 < suspect.mean() < 1
    wanted = in_batch(z, partner=partner, temperature=0.2, mask=~suspect)
    torch.testing.assert_close(eliminate(z, partner, found.labels[:, ids], temperature=0.2), wanted)


# ---- states ---------------------------------------------------------------------------------------------


def same(one, other):
    return all(np.array_equal(one.state()[name], value) for name, value in other.state().items())


def test_a_restored_one_goes_on_as_if_nothing_had_happened():
    make = partial(Incremental, 300, (5, 20), seed=3, iterations=3)
    one, other = make(), make()
    one.update(world(seed=1)[0], 0.2)
    one.update(world(seed=2)[0], 0.4)
    other.restore({name: np.asarray(value) for name, value in one.state().items()})  # as a file gives it back
    assert same(one, other)
    assert other.updates == 2
    for found in (one, other):
        found.update(world(seed=3)[0], 0.6)
    assert same(one, other)
    assert same(updated(), updated())
    fresh = make()
    fresh.update(world(seed=3)[0], 0.6)
    assert not (fresh.assigned == one.assigned).all()  # k-means begins elsewhere at every update
