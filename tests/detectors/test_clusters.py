"""k-means by faiss: features that are refused, plain loops for the nearest, and one answer for all thread counts."""

import signal
import subprocess
import sys
import threading
import time

import faiss
import numpy as np
import pytest
import torch

import naysay as ns
from naysay import NaysayError
from naysay.detectors import _clusters as clusters
from naysay.detectors._clusters import as_features, centroids, nearest, norms, run_alone


def blobs(n=600, d=7, groups=6, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, groups, n)
    return (rng.standard_normal((groups, d))[which] * 3 + spread * rng.standard_normal((n, d))).astype(
        np.float32
    ), which


def fitted(vectors, k, seed=0, iterations=20, restarts=1):
    settings = {"iterations": iterations, "restarts": restarts, "seed": seed}
    return run_alone(lambda _, stopped: centroids(vectors, k, **settings, stopped=stopped), [k])[0]


def test_the_nearest_centroid_in_plain_loops(monkeypatch):
    monkeypatch.setattr(clusters, "BLOCK", 100)  # several blocks, of a row or a few
    vectors, _ = blobs(50, 4)
    means = fitted(vectors, 8)
    found = run_alone(lambda *_: nearest(vectors, means), [8])[0]
    for vector, place in zip(vectors.astype(float), found, strict=True):
        away = [sum((a - b) ** 2 for a, b in zip(vector, mean.astype(float), strict=True)) for mean in means]
        assert away[place] <= min(away) * (1 + 1e-5)


def test_centroids_are_the_means_of_their_samples():
    """Lloyd's steps have come to rest on groups that are far apart."""
    vectors, which = blobs(seed=3, spread=0.05)
    means = fitted(vectors, 6, restarts=20)
    found = run_alone(lambda *_: nearest(vectors, means), [6])[0]
    assert len(set(zip(which.tolist(), found.tolist(), strict=True))) == 6  # the groups themselves
    for place in range(6):
        np.testing.assert_allclose(means[place], vectors[found == place].mean(axis=0), atol=1e-5)


def test_more_restarts_are_never_worse():
    vectors, _ = blobs(seed=1)

    def spread(restarts):
        means = fitted(vectors, 6, restarts=restarts)
        return float((norms(vectors - means[run_alone(lambda *_: nearest(vectors, means), [6])[0]]) ** 2).sum())

    assert spread(20) <= spread(1) * (1 + 1e-6)


@pytest.mark.parametrize("k", [1, 2, 30])
def test_as_many_clusters_as_samples_and_samples_that_are_equal(k):
    """faiss says nothing of few samples, and splits clusters that run empty."""
    vectors = np.tile(np.array([[1.0, 2.0]], np.float32), (30, 1))
    means = fitted(vectors, k)
    assert means.shape == (k, 2)
    np.testing.assert_allclose(means, np.tile([[1.0, 2.0]], (k, 1)), rtol=0.01)


def test_every_sample_counts():
    """Without our limit faiss would take 256 samples for each centroid."""
    vectors = np.concatenate([np.full((4000, 1), 1.0), np.full((4000, 1), 2.0)]).astype(np.float32)
    assert fitted(vectors, 1) == pytest.approx(1.5, abs=1e-5)


@pytest.mark.parametrize("k", [1, 6, 90, 150])
@pytest.mark.parametrize(("iterations", "restarts"), [(1, 1), (20, 1), (50, 4)])
def test_step_by_step_is_what_faiss_does_at_once(k, iterations, restarts):
    """To the bit, with clusters that run empty and starts that come to rest early; seeds up to the largest."""
    some, _ = blobs(150, seed=4)
    for vectors in (some, some[np.arange(150) % 40], np.round(some).astype(np.float32)):
        for seed in (0, 2**31 - 1):
            limits = {"min_points_per_centroid": 1, "max_points_per_centroid": 150}
            whole = faiss.Kmeans(7, k, niter=iterations, nredo=restarts, seed=seed, **limits)
            run_alone(lambda *_, whole=whole, vectors=vectors: whole.train(vectors), [k])
            assert (fitted(vectors, k, seed, iterations, restarts) == whole.centroids).all()


def waiting(seen):
    """A job that ends when it is asked to, or gives up: place 1 is done as soon as place 0 has begun."""

    def job(place, stopped):
        seen.append(place)
        end = time.monotonic() + 120
        while (place != 1 or 0 not in seen) and not stopped() and time.monotonic() < end:
            time.sleep(0.001)
        seen.append((place, stopped()))

    return job


def test_an_interrupt_ends_what_runs_and_cancels_what_waits(monkeypatch):
    monkeypatch.setattr(clusters, "threads", lambda: 1)
    seen = []

    began = threading.Event()

    def job(place, stopped):
        began.set()
        waiting(seen)(place, stopped)

    def interrupted(futures):
        began.wait()
        signal.raise_signal(signal.SIGINT)
        return iter(futures)

    monkeypatch.setattr(clusters, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_alone(job, [9, 1, 2, 3])
    assert seen == [0, (0, True)]  # it has ended, and no other began


@pytest.mark.parametrize("wrong", [ValueError, KeyboardInterrupt])
def test_a_failure_ends_the_others_too(wrong, monkeypatch):
    monkeypatch.setattr(clusters, "threads", lambda: 2)
    seen = []

    def on_progress(more):
        raise wrong(more)

    with pytest.raises(wrong, match="1"):
        run_alone(waiting(seen), [9, 8, 1, 1, 1], on_progress)
    assert (0, True) in seen
    assert not {3, 4} & set(seen)


def test_it_tells_of_each_job_in_the_callers_thread(monkeypatch):
    monkeypatch.setattr(clusters, "threads", lambda: 2)
    told = []
    assert run_alone(
        lambda place, _: 10 * place, [3, 9, 1], lambda more: told.append((more, threading.get_ident()))
    ) == [
        0,
        10,
        20,
    ]
    assert told == [(1, threading.get_ident())] * 3


def test_jobs_come_back_in_order_and_faiss_keeps_its_threads():
    before = faiss.omp_get_max_threads()
    seen = run_alone(lambda place, _: (place, faiss.omp_get_max_threads()), [3, 9, 1, 5])
    assert seen == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert faiss.omp_get_max_threads() == before


HASH = """
import hashlib, os, sys
import numpy as np, naysay as ns
from naysay.detectors.incremental import Incremental
features = np.random.default_rng(0).standard_normal((4097, 129)).astype(np.float32)
found = Incremental(4097, (33, 100), iterations=5)
found.update(features, 0.5)
kept = [found.state()[name].tobytes() for name in ("labels", "assigned", "confidence")]
print(hashlib.sha256(b"".join(kept)).hexdigest())
"""


def test_no_number_of_threads_changes_a_bit():
    """Of naysay, of OpenMP in faiss, and of the BLAS under NumPy: each in a process of its own."""
    found = set()
    for own, openmp, blas in ((1, 1, 1), (2, 4, 3)):
        chosen = {"NAYSAY_THREADS": own, "OMP_NUM_THREADS": openmp, "OPENBLAS_NUM_THREADS": blas, "PATH": "/usr/bin"}
        environment = {name: str(value) for name, value in chosen.items()}
        done = subprocess.run([sys.executable, "-c", HASH], env=environment, capture_output=True, text=True, check=True)
        found.add(done.stdout)
    assert len(found) == 1


def test_features_of_every_kind(tmp_path):
    vectors, _ = blobs(40, 3)
    np.save(tmp_path / "features.npy", vectors)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    assert np.shares_memory(as_features(mapped, 40), mapped)
    assert np.shares_memory(as_features(vectors, 40), vectors)
    for given in (vectors.astype(np.float64), torch.from_numpy(vectors).requires_grad_(), vectors.tolist()):
        found = as_features(given, 40)
        assert found.dtype == np.float32
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, vectors)
    for given in (vectors.astype(np.float16), torch.from_numpy(vectors).bfloat16()):
        np.testing.assert_allclose(as_features(given, 40), vectors, rtol=0.01, atol=0.01)
    np.testing.assert_array_equal(as_features(vectors[::-1], 40), vectors[::-1])


def damaged(rows, value, dtype=np.float32):
    vectors = np.ones((6, 3), dtype)
    vectors[rows] = value
    return vectors


BAD = {
    "another length": (
        np.ones((5, 3), np.float32),
        r"must be of shape \(6, d\), a row for each sample, got shape \(5, 3\)\.",
    ),
    "one dimension": (np.ones(6, np.float32), r"must be of shape \(6, d\), a row for each sample, got shape \(6,\)\."),
    "whole numbers": (np.ones((6, 3), np.uint8), r"must be floating-point numbers, got dtype uint8\."),
    "NaN": (damaged([2, 4], np.nan), r"must be finite, got nan at row 2 \(2 such rows\)\."),
    "infinity": (damaged(5, [1, -np.inf, 0]), r"must be finite, got inf at row 5 \(1 such row\)\."),
    "zero": (
        damaged(3, 0),
        r"must be of a norm between 1e-15 and 1e\+15, got 0\.0 at row 3 \(1 such row\)\. "
        r"A zero vector has no direction: leave the sample out, or check the encoder\.",
    ),
    "too long for float32": (damaged(0, 1e300, np.float64), r"must be finite, got inf at row 0"),
    "too long to square": (
        damaged(1, [0, 1e20, 0]),
        r"must be of a norm between 1e-15 and 1e\+15, got 1\.0+\d*e\+20",
    ),
    "no columns": (np.ones((6, 0), np.float32), r"must be of a norm between 1e-15 and 1e\+15, got 0\.0 at row 0"),
    "all equal": (
        np.ones((6, 3), np.float32),
        r"must be different vectors, got 6 rows within 1e-05 of their norm\. Is the encoder trained\?$",
    ),
    "all equal in float32": (damaged(3, 1 + 1e-9, np.float64), r"must be different vectors, got 6 rows within"),
    "all but equal": (damaged(3, 1 + 9e-6), r"must be different vectors, got 6 rows within"),
    "all but equal, and long": (1e14 * damaged(3, 1 + 9e-6), r"must be different vectors, got 6 rows within"),
    "ragged": ([[1.0], [1.0, 2.0]], r"must be rows of one length, got rows of different lengths\."),
}


@pytest.mark.parametrize(("features", "sentence"), BAD.values(), ids=BAD)
def test_errors(features, sentence):
    with pytest.raises(NaysayError, match="^`features` " + sentence):
        as_features(features, 6)


@pytest.mark.parametrize("row", [0, 1, 5])
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_one_that_is_apart_is_enough(row, block, monkeypatch):
    monkeypatch.setattr(clusters, "BLOCK", block)
    for vectors in (damaged(row, 1 + 2e-5), damaged(row, -1), 1e-14 * damaged(row, [1, 1, 2])):
        np.testing.assert_array_equal(as_features(vectors, 6), vectors)
    assert len(as_features(np.ones((1, 3)), 1)) == 1  # one sample is where it is


def test_naysay_is_light():
    """faiss is loaded by the first update, not by the import."""
    code = "import sys, naysay.detectors.incremental; print('faiss' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    assert ns.__name__ == "naysay"
