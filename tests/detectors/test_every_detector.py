"""Every detector keeps the promises of `check_detector`, in NumPy and torch, and shows its settings."""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay import detectors as d

N_ANCHORS, N_ITEMS = 8, 30
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(-0.9, 0.9, (N_ANCHORS, N_ITEMS))
VECTORS = RNG.normal(size=(N_ITEMS, 4))
ANCHORS = np.arange(N_ANCHORS)
IDS = np.tile(np.arange(10, 22), (N_ANCHORS, 1))
IDS[::3, 5] = -1
KNOWN = ns.Positives.from_pairs(ANCHORS, ANCHORS, N_ANCHORS, N_ITEMS)
NEGATIVES = ns.Negatives(
    IDS,
    scores=np.where(IDS >= 0, SCORES[ANCHORS[:, None], IDS], 0.0),
    vectors=np.where(IDS[..., None] >= 0, VECTORS[IDS], 0.0),
)
QUERY = ns.Query(ANCHORS, positives=ANCHORS, vectors=VECTORS[:N_ANCHORS])


def of_pairs(anchors, ids):
    return torch.as_tensor(SCORES[anchors, ids]) if isinstance(anchors, torch.Tensor) else SCORES[anchors, ids]


def incremental():
    detector = d.Incremental(N_ITEMS, (2, 5))
    detector.update(VECTORS, 0.9)
    return detector


def mixture():
    detector = d.Mixture(bounds=(-1, 1))
    detector.update(SCORES)
    return detector


def quantile():
    detector = d.LearnedQuantile(N_ANCHORS, 0.2)
    detector.observe(QUERY, NEGATIVES)
    return detector


def soft_clusters():
    detector = d.SoftClusters(3)
    detector.update(VECTORS, rng=ns.rng_for(0))
    return detector


def posterior():
    scores = RNG.normal(0, 1, (300, 150)) + 3.0 * (np.arange(150) < 2)
    return d.Posterior(k=5, depth=20).fit(-np.sort(-scores, axis=1)[:, :40], RNG.normal(3, 1, 300))


PARTS = {
    "MaxScore": lambda: d.MaxScore(0.2),
    "Margin": lambda: d.Margin(0.1, SCORES[:, 0]),
    "ShareOfPositive": lambda: d.ShareOfPositive(SCORES[:, 0]),
    "RankWindow": lambda: d.RankWindow(2),
    "Bands": lambda: d.Bands(-0.5, 0.5),
    "Calibrated": lambda: d.Calibrated(0.1).fit(SCORES.ravel()[:60]),
    "LearnedQuantile": quantile,
    "Incremental": incremental,
    "SoftClusters": soft_clusters,
    "SupportViews": lambda: d.SupportViews(RNG.normal(size=(N_ANCHORS, 3, 4)), threshold=0.2),
    "Mixture": mixture,
    "Posterior": posterior,
    "Labelled": lambda: d.Labelled().fit(QUERY, NEGATIVES, NEGATIVES.scores > 0.1),
    "ByReviewer": lambda: d.ByReviewer(lambda pairs: of_pairs(pairs.anchors, pairs.items) % 1),
    "Duplicates": lambda: d.Duplicates(item_texts=[f"a b c {n % 9}" for n in range(N_ITEMS)], positives=KNOWN),
    "Combined": lambda: d.Combined({"high": d.MaxScore(0.2), "ranks": d.RankWindow(2)}, "mean"),
}
EVERY = pytest.mark.parametrize("name", PARTS)


def test_every_detector_is_here():
    classes = [name for name in d.__all__ if hasattr(getattr(d, name), "suspicion")]
    assert {*PARTS} == {*classes} - {"Judgement", "Reliability"}  # which have an array of that name


@EVERY
def test_it_keeps_the_promises_of_a_detector(name):
    ns.check_detector(PARTS[name](), QUERY, NEGATIVES)


@EVERY
def test_torch_gets_the_same_answer_in_torch(name):
    detector = PARTS[name]()
    wanted = detector.suspicion(QUERY, NEGATIVES)
    tensors = {part: torch.from_numpy(getattr(NEGATIVES, part)) for part in ("ids", "scores", "vectors")}
    query = ns.Query(torch.arange(N_ANCHORS), positives=torch.arange(N_ANCHORS), vectors=torch.tensor(QUERY.vectors))
    found = detector.suspicion(query, ns.Negatives(**tensors))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-6)


@pytest.mark.parametrize("name", ["MaxScore", "Margin", "ShareOfPositive", "Bands", "Calibrated", "LearnedQuantile"])
def test_detectors_by_threshold_suspect_what_is_above_it(name):
    detector = PARTS[name]()
    threshold = detector.threshold(QUERY)
    assert threshold.shape == (N_ANCHORS,)
    suspected = detector.suspicion(QUERY, NEGATIVES) >= 0.5
    assert (suspected == (NEGATIVES.mask & (NEGATIVES.scores > threshold[:, None]))).all()
