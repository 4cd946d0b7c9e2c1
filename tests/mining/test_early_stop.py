"""A search that stops early finds the same negatives as one that lists all candidates."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import Absolute, Bands, Posterior
from naysay.mining import _early_stop
from naysay.search import search

ARRAYS = ("ids", "scores", "rank", "suspicion", "source", "kept_by", "positive_scores", "thresholds", "counts")


def world(seed, n=60, items=180, kinds=40, width=6):
    """Vectors near a few centres, with copies among them, so that scores tie and duplicates exist."""
    rng = ns.rng_for(seed)
    centres = rng.normal(size=(kinds, width))
    corpus = centres[rng.integers(0, kinds, items)] + 0.4 * rng.normal(size=(items, width))
    corpus[rng.integers(0, items, items // 8)] = corpus[rng.integers(0, items, items // 8)]
    own = rng.integers(0, items, n)
    queries = corpus[own] + 0.4 * rng.normal(size=(n, width))
    some = rng.random(n) < 0.9
    more = rng.integers(0, n, n), rng.integers(0, items, n)
    positives = ns.Positives.from_pairs(
        np.append(np.flatnonzero(some), more[0]), np.append(own[some], more[1]), n, items
    )
    return queries.astype(np.float32), corpus.astype(np.float32), positives


def posterior(scores):
    """One that drops many, fitted to other scores of the same kind."""
    rng = ns.rng_for(5)
    own = scores[:, :4].mean(axis=1).astype(np.float64) + 0.01 * rng.normal(size=len(scores))
    lists = np.repeat(scores[:, :60], 4, axis=0) + 0.001 * rng.normal(size=(4 * len(scores), 60))
    return Posterior(3, 0.2, positive_scores=own).fit(lists, np.repeat(own, 4))


def same(one, other):
    for name in ARRAYS:
        assert np.asarray(getattr(one, name)).tobytes() == np.asarray(getattr(other, name)).tobytes(), name
    assert one.rule == other.rule
    # One that stopped early knows where a deeper search would not help.
    assert [note.split(" Search")[0] for note in one.notes] == [note.split(" Search")[0] for note in other.notes]


def both(monkeypatch, *arguments, **options):
    """The result that stops early, and the one that lists all."""
    found = []
    for listed in (0, 1 << 62):
        monkeypatch.setattr(_early_stop, "LISTED", listed)
        monkeypatch.setattr(sys.modules["naysay.mining.mine"], "_FITTED_TO", listed)
        found.append(ns.mine(*arguments, **options))
    return found


JUDGES = {
    "none": lambda scores: None,
    "share": lambda scores: "share:0.95",
    "margin": lambda scores: "margin:0.05",
    "calibrated": lambda scores: "calibrated:0.2",
    "absolute": lambda scores: Absolute(float(np.quantile(scores, 0.97))),
    "bands": lambda scores: Bands(-0.5, float(np.quantile(scores, 0.9))),
    "all": lambda scores: Absolute(-2.0),
    "nothing": lambda scores: Absolute(2.0),
    "auto": lambda scores: "auto",
    "posterior": lambda scores: posterior(scores),
}
OPTIONS = [{}, {"min_score": 0.3}, {"on_short": "drop"}, {"metric": "dot"}, {"metric": "l2"}]


@pytest.mark.parametrize("judge", JUDGES)
@settings(max_examples=12)
@given(
    st.integers(0, 1000),
    st.sampled_from([1, 3, 12, "each", "auto"]),
    st.sampled_from(OPTIONS),
    st.sampled_from([200, 1 << 19]),
)
def test_the_same_negatives_as_with_all_candidates(judge, seed, k, options, slots):
    queries, corpus, positives = world(seed)
    scores = search(queries, corpus, 100).scores
    if k == "each":
        k = ns.rng_for(seed, 1).integers(0, 9, len(queries))
    if judge == "none" and isinstance(k, str):
        return
    given = {"judge": JUDGES[judge](scores), "seed": seed, **options}
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("naysay.mining._pipeline.SLOTS", slots)
        early, whole = both(monkeypatch, queries, corpus, positives, k, **given)
    same(early, whole)
