"""Incremental: confidence, acceptance and suspicion in plain loops, by hand, through the losses, and after a restart.

That the losses have the gradients of the paper's Eq. 8 and Eq. 10 is held by tests/losses/test_labelled.py.
"""

import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay import NaysayError
from naysay.detectors import _clusters as clusters
from naysay.detectors import detection_rates
from naysay.detectors._clusters import cluster_confidence, sample_confidence
from naysay.detectors.incremental import Incremental, LinearAcceptance, StepAcceptance
from naysay.losses import attract, eliminate, in_batch
from naysay.pools import Memory


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


@pytest.mark.parametrize("temperature", [0.01, 0.2, 5.0])
@pytest.mark.parametrize("block", [1, 40, 1 << 20])
def test_the_confidence_of_samples_in_plain_loops(temperature, block, monkeypatch):
    monkeypatch.setattr(clusters, "_BLOCK", block)
    vectors, _ = world(60, seed=2)
    rng = np.random.default_rng(1)
    means, assigned = rng.standard_normal((7, 6)).astype(np.float32), rng.integers(0, 7, 60)
    means[3] = 0
    found = sample_confidence(vectors, means, assigned, temperature)
    for vector, place, sure in zip(vectors.astype(float).tolist(), assigned, found, strict=True):
        logits = [cosine(vector, mean) / temperature for mean in means.astype(float).tolist()]
        total = math.log(sum(math.exp(value - max(logits)) for value in logits)) + max(logits)
        assert math.log(sure) == pytest.approx(logits[place] - total, abs=2e-6 / temperature)


def test_confidence_is_taken_at_the_assigned_centroid_not_at_the_most_similar():
    """(1, 0) is nearer to (1, 1), and points exactly at (10, 0)."""
    vectors, means = np.array([[1, 0]], np.float32), np.array([[10, 0], [1, 1]], np.float32)
    assert clusters.nearest(vectors, means).tolist() == [1]
    wanted = math.exp(math.sqrt(0.5)) / (math.exp(math.sqrt(0.5)) + math.e)
    assert sample_confidence(vectors, means, np.array([1]), 1.0)[0] == pytest.approx(wanted, rel=1e-6)


def test_confidence_near_one_still_tells_samples_apart():
    vectors, means = np.array([[1, 0], [1, 0.01]], np.float32), np.array([[1, 0], [-1, 0]], np.float32)
    found = sample_confidence(vectors, means, np.array([0, 0]), 0.1)
    assert 1 - 1e-8 < found[1] < found[0] < 1


def test_the_confidence_of_clusters_in_plain_loops():
    vectors, _ = world(60, seed=2)
    means = np.random.default_rng(1).standard_normal((6, 6)).astype(np.float32)
    assigned = np.array([0] * 30 + [1] * 20 + [2] * 8 + [3] + [4])  # two clusters of one, one of none
    away = [math.dist(v, means[a].astype(float)) for v, a in zip(vectors.astype(float), assigned, strict=True)]
    phi = {}
    for place in range(3):
        mine = [length for length, a in zip(away, assigned, strict=True) if a == place]
        phi[place] = sum(mine) / (len(mine) * math.log(len(mine) + 10))
    phi[3] = phi[4] = max(phi.values())
    wanted = [1 / (1 + phi[a]) for a in assigned.tolist()]
    np.testing.assert_allclose(cluster_confidence(vectors, means, assigned), wanted, rtol=1e-6)
    assert (cluster_confidence(vectors[:2], means, np.array([0, 1])) == 1).all()  # no cluster of two: nothing to go by


# ---- labels ---------------------------------------------------------------------------------------------


def test_by_hand():
    """Centroids (4, 0) and (0, 3); sample 1 is the surest, 2 and 3 are equal, 0 leans over."""
    found = Incremental(4, 2, temperature=1.0, accept=0.5, restarts=9)
    found.update([[4.0, 1.0], [4.0, -1.0], [0.0, 2.0], [0.0, 4.0]], progress=0.0)
    one, other = found.assigned[0, 0], found.assigned[0, 2]
    assert found.assigned.tolist() == [[one, one, other, other]]
    assert one != other
    root = math.sqrt(17)
    wanted = [1 / (1 + math.exp(-3 / root)), 1 / (1 + math.exp(-5 / root))] + [1 / (1 + math.exp(-1))] * 2
    np.testing.assert_allclose(found.confidence[0], wanted, rtol=1e-6)
    assert found.labels.tolist() == [[-1, one, other, -1]]


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


def test_progress_accepts_more_and_more_of_the_same():
    vectors, _ = world()
    before = np.full((2, 300), -1)
    for progress in (0.0, 0.2, 0.5, 0.999, 1.0):
        found = Incremental(300, (5, 20))
        found.update(vectors, progress)
        assert np.count_nonzero(found.labels >= 0, axis=1).tolist() == [math.floor(progress * 300)] * 2
        assert ((before == found.labels) | (before == -1)).all()
        before = found.labels
    assert (before == found.assigned).all()


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


def test_one_sample_is_a_cluster():
    found = Incremental(1, 1)
    found.update(world(1)[0], 1.0)
    assert found.labels.tolist() == [[0]]


def test_groups_are_found_and_the_surest_first():
    """Of groups that run into each other, what is accepted early is purer than the rest."""
    vectors, which = world(2000, groups=10, spread=2.0, seed=4)
    found = Incremental(2000, 10, accept=0.3, restarts=3)
    found.update(vectors, 0.0)
    some = found.labels[0] >= 0
    rates = detection_rates(found.labels[0][some], which[some])
    assert rates.true_positive > detection_rates(found.assigned[0], which).true_positive + 0.05
    assert rates.true_negative > 0.97


def test_before_an_update_there_is_no_label():
    found = Incremental(7, (2, 3))
    assert found.labels.dtype == np.int64
    assert (found.labels == -1).all()
    assert found.labels.shape == found.confidence.shape == found.assigned.shape == (2, 7)
    assert (found.confidence == 0).all()
    assert (found.suspicion(ns.Query([0, 1]), ns.Negatives(np.array([[0, 1], [2, 3]]))) == 0).all()


def test_answers_are_read_only():
    found = updated()
    for array in (found.labels, found.assigned, found.confidence):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    assert found.labels[:, [1, 2]].flags.writeable


# ---- suspicion ------------------------------------------------------------------------------------------


def question(n, rows=8, slots=6, seed=0, make=np.asarray):
    rng = np.random.default_rng(seed)
    return ns.Query(make(rng.integers(0, n, rows))), ns.Negatives(make(rng.integers(-1, n, (rows, slots))))


def test_suspicion_in_plain_loops():
    found = updated()
    query, negatives = question(300, rows=40, slots=30)
    given_labels = found.labels.tolist()
    seen = Counter()
    for anchor, ids, line in zip(query.anchors, negatives.ids, found.suspicion(query, negatives), strict=True):
        for item, value in zip(ids, line, strict=True):
            same = [labels[anchor] == labels[item] != -1 for labels in given_labels] if item >= 0 else [False]
            assert value == sum(same) / len(same)
            seen[value] += 1
    assert set(seen) == {0.0, 0.5, 1.0}


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


@pytest.mark.parametrize("loss", [eliminate, attract])
@pytest.mark.parametrize("progress", [0.0, 0.7])
def test_a_queue_in_plain_loops(loss, progress):
    """Keys are looked up by their ids; an anchor's own older entries are masked before anything else."""
    found = updated(progress=progress)
    z, partner, ids = batch()
    queue = Memory(30)
    rng = np.random.default_rng(9)
    queued = np.concatenate([ids[:6], rng.integers(0, 300, 24)])  # six of this batch from an epoch ago
    queue.push(queued, vectors=rng.standard_normal((30, 5)))
    keys, columns = torch.from_numpy(queue.vectors), np.concatenate([ids, queue.ids])
    values = loss(
        z,
        partner,
        found.labels[:, ids],
        temperature=0.5,
        keys=keys,
        key_labels=found.labels[:, queue.ids],
        mask=lambda rows: ids[rows, None] != columns,
    )
    whole, wanted = torch.cat([z, keys]).numpy(), np.zeros(len(z))
    for labels in found.labels.tolist():
        for i in range(len(z)):
            terms = [math.exp(float(whole[i] @ whole[j]) / 0.5) for j in range(len(whole))]
            others = [j for j in range(len(whole)) if columns[j] != ids[i]]
            same = [j for j in others if labels[columns[j]] == labels[ids[i]] != -1]
            positives = [partner[i]] + (same if loss is attract else [])
            total = sum(terms[j] for j in {partner[i], *others} - set(same if loss is eliminate else []))
            wanted[i] -= sum(math.log(terms[p] / total) for p in positives) / len(positives) / 2
    np.testing.assert_allclose(values.numpy(), wanted, rtol=1e-9)
    if progress == 0:
        plain = in_batch(z, torch.cat([z, keys]), partner=partner, temperature=0.5, mask=ids[:, None] != columns)
        torch.testing.assert_close(values, plain)


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
    fresh = make()
    fresh.update(world(seed=3)[0], 0.6)
    assert not (fresh.assigned == one.assigned).all()  # k-means begins elsewhere at every update


def test_seeds():
    assert same(updated(), updated())
    one, other = (Incremental(300, 20, seed=seed, accept=1.0, iterations=1) for seed in (0, 1))
    for found in (one, other):
        found.update(world()[0], 1.0)
    assert not (one.labels == other.labels).all()


# ---- refusals -------------------------------------------------------------------------------------------


def test_a_schedule_that_leaves_its_range_is_rejected_before_any_work():
    found = updated(accept=lambda progress: 2 * progress, progress=0.5)
    with pytest.raises(
        NaysayError, match=r"^Incremental\.update: `accept` must be a number at least 0 and at most 1, got 1\.2\."
    ):
        found.update(world()[0], 0.6)
    assert found.updates == 1
