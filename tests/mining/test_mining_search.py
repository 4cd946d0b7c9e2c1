"""A search that goes past the suspects: the nearest k below the threshold, however many are above it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import Bands, Calibrated, Combined, Margin, MaxScore, ShareOfPositive
from naysay.mining import _search as deepen
from naysay.mining import _task as tasks
from naysay.mining.candidates import Candidates
from naysay.mining.judge import ask
from naysay.search._below import search_below
from naysay.search.exact import Found, search
from naysay.types import Query


def world_of(seed, n, items, kinds):
    """Vectors of a few kinds, so that scores tie, and what is known of them."""
    rng = ns.rng_for(seed)
    corpus = rng.integers(-2, 3, (items, 3)).astype(np.float32)
    corpus[(corpus == 0).all(axis=1)] = 1
    corpus = corpus[rng.integers(0, min(kinds, items), items)]
    queries = rng.normal(size=(n, 3)).astype(np.float32)
    count = int(rng.integers(0, 1 + n * items // 2))
    pairs = rng.integers(0, n, count), rng.integers(0, items, count)
    return queries, corpus, ns.Positives.from_pairs(*pairs, n, items)


def detectors(rng, scores, n):
    line = float(rng.choice(scores.ravel()))  # at a score that there is, so that ties with the line are met
    each = rng.choice(scores.ravel(), n).astype(np.float64)
    fitted = Calibrated(0.2)
    fitted.fit(np.append(rng.choice(scores.ravel(), 30), [line - 1, line + 1]).astype(np.float64))
    return [
        MaxScore(line),
        Bands(line - 1, line),
        Margin(0.1, each),
        ShareOfPositive(each, 0.9),
        fitted,
        Combined({"one": MaxScore(line)}),
        {"one": MaxScore(float(np.float32(line)) + 1e-12)},
    ]


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 100), st.integers(1, 60), st.sampled_from([1, 5, 30]))
def test_the_nearest_below_the_threshold_however_many_are_above(seed, n, items, kinds, slots):
    """With lists of 5 and a few rows in memory, an anchor that is short is searched again: the answer is a loop's."""
    queries, corpus, known = world_of(seed, n, items, kinds)
    scores = search(queries, corpus, items)
    scores = np.take_along_axis(scores.scores, np.argsort(scores.ids, axis=1), axis=1)
    owners, items_of = known.pairs()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tasks, "LEAST_DEPTH", 5)
        patched.setattr("naysay.mining._pipeline._SLOTS", slots)
        for detector in detectors(ns.rng_for(seed, 1), scores, n):
            mined = ns.mine(queries, corpus, None, 2, judge=detector, ignore=known, keep_own_text=True)
            everything = Found(np.tile(np.arange(items), (n, 1)), scores)
            suspected = ask(Candidates.of(everything), detector, Query(np.arange(n))) >= 0.5
            for row in range(n):
                left = np.setdiff1d(np.flatnonzero(~suspected[row]), items_of[owners == row])
                best = sorted(left, key=lambda item: (-scores[row, item], item))[:2]
                assert [item for item in mined.ids[row].tolist() if item >= 0] == best
            assert (sum(mined.dropped.values(), np.zeros(n)) <= items).all()


class NoLine:
    """Suspects every other item, though it names a line."""

    threshold = staticmethod(lambda query: np.zeros(len(query)))

    def suspicion(self, query, negatives):
        return np.where(negatives.ids % 2 == 0, 1.0, 0.0)


@given(st.integers(0, 1000))
def test_the_highest_score_that_is_not_suspected(seed):
    queries, corpus, _ = world_of(seed, 6, 80, 60)
    found, query = search(queries, corpus, 3), Query(np.arange(6))
    for detector in detectors(ns.rng_for(seed), found.scores, 6):
        highest = deepen.highest_scores(detector, query)
        for scores, over in ((highest, False), (np.nextafter(highest, np.float32(np.inf)), True)):
            near = Candidates.of(Found(found.ids[:, :1], scores[:, None]))  # which would refuse a score that is none
            assert ((ask(near, detector, query)[:, 0] >= 0.5) == over).all()


@pytest.mark.parametrize(("threshold", "highest"), [(np.inf, np.inf), (-np.inf, -np.inf), (1e300, np.inf)])
def test_a_threshold_that_no_score_reaches(threshold, highest):
    detector, query = Bands(-np.inf, threshold), Query(np.arange(6))
    assert (deepen.highest_scores(detector, query) == highest).all()
    caps = deepen.highest_scores(detector, query)
    queries, corpus, _ = world_of(5, 6, 80, 60)
    found, above = search_below(queries, corpus, 3, caps)
    assert (above == (0 if highest > 0 else 80)).all()
    assert (found.ids == (search(queries, corpus, 3).ids if highest > 0 else -1)).all()


def test_a_detector_without_a_threshold_has_no_highest_score():
    assert np.isnan(deepen.highest_scores(NoLine(), Query(np.arange(6)))).all()


@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 60))
def test_a_list_that_is_cut_at_a_threshold_is_what_a_search_below_finds(seed, depth, reached):
    queries, corpus, known = world_of(seed, 6, 80, 60)
    found = search(queries, corpus, reached, exclude=known)
    scores = search(queries, corpus, 80).scores
    highest = ns.rng_for(seed, 1).choice(np.append(scores.ravel(), [2, -2]), 6).astype(np.float32)
    cut, skipped, told = deepen.cut_below(Candidates.of(found), depth, highest)
    right, above = search_below(queries, corpus, depth, highest, exclude=known)
    assert np.array_equal(cut.ids[told], right.ids[told])
    assert np.array_equal(cut.scores[told], right.scores[told])
    assert np.array_equal(skipped[told], above[told])
    reaches = (np.count_nonzero(right.ids >= 0, axis=1) + above <= np.count_nonzero(found.ids >= 0, axis=1)) & (
        (above + depth <= reached) | (found.ids[:, -1] < 0)
    )
    assert np.array_equal(told, reaches)
