"""Deepen: one look past the suspects gives what rounds of deeper and deeper searches give."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import Absolute, Bands, Calibrated, Combined, Margin, ShareOfPositive
from naysay.mining import _search as deepen
from naysay.mining._search import Demand, deepened
from naysay.mining.backfill import rows_of
from naysay.mining.candidates import Candidates
from naysay.mining.judge import ask, score_thresholds
from naysay.search.exact import Found, search, search_below
from naysay.search.vectors import open_vectors
from naysay.types import Query


def in_rounds(found, look, queries, known, detector, query, wanted, low, deepest):
    """The contract, an anchor at a time: 8 times as deep while it is short, then what comes after the suspected."""
    width, n_items = found.ids.shape[1], known.n_items
    ids, scores, skipped = found.ids.copy(), found.scores.copy(), np.zeros(len(found), np.int64)
    for row in range(len(found)):
        one = Query(query.anchors[row : row + 1])
        depth, last = width, min(n_items, max(deepest, width))
        own_ids, own_scores = found.ids[row : row + 1], found.scores[row : row + 1]
        while True:
            suspicion = ask(Candidates.of(type(found)(own_ids, own_scores)), detector, one)[0]
            filled = own_ids[0] >= 0
            free = sum(bool(there) and value < 0.5 for there, value in zip(filled, suspicion, strict=True))
            full = filled[-1] and (low is None or own_scores[0, -1] >= np.float32(low))
            if depth > width:
                skip = min(sum(suspicion >= 0.5), depth - width)
                ids[row], scores[row] = own_ids[0, skip : skip + width], own_scores[0, skip : skip + width]
                skipped[row] = skip
            if free >= wanted[row] or not full or depth >= last:
                break
            depth = min(last, 8 * depth)
            deep = look(queries[row : row + 1], depth, rows_of(known, np.array([row])))
            own_ids, own_scores = deep.ids, deep.scores
    return ids, scores, skipped


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
        Absolute(line),
        Bands(line - 1, line),
        Margin(0.1, each),
        ShareOfPositive(each, 0.9),
        fitted,
        Combined({"one": Absolute(line)}),
        {"one": Absolute(float(np.float32(line)) + 1e-12)},
    ]


@given(
    st.integers(0, 1000),
    st.integers(1, 6),
    st.integers(1, 150),
    st.integers(1, 60),
    st.integers(1, 7),
    st.sampled_from([1, 5, 24, 70, 1 << 14]),
    st.sampled_from(["none", "any", "next"]),
    st.sampled_from(["cosine", "dot", "l2"]),
    st.sampled_from([1, 30, None]),
)
def test_one_look_is_all_rounds(seed, n, items, kinds, width, deepest, floor, metric, slots):
    queries, corpus, known = world_of(seed, n, items, kinds)
    rng, width = ns.rng_for(seed, 1), min(width, items)
    look = partial(search_of, corpus, metric)
    everything = look(queries, items, None).scores
    found = look(queries, width, known)
    wanted, query = rng.integers(0, 2 * width + 3, n), Query(np.arange(n))
    for detector in detectors(rng, everything, n):
        line = np.float32(score_thresholds(detector, query)[0])
        lows = {"none": None, "any": rng.choice(everything.ravel()), "next": np.nextafter(line, np.float32(-np.inf))}
        low = None if floor == "none" else float(lows[floor])
        expected = in_rounds(found, look, queries, known, detector, query, wanted, low, deepest)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(deepen, "DEEPEST", deepest)
            for below in (None, partial(below_of, corpus, metric)):
                given, demand = open_vectors(queries), Demand(detector, query, wanted, low)
                got, skipped = deepened(found, look, given, known, demand, slots, below)
                assert (got.ids == expected[0]).all()
                assert (got.scores == expected[1]).all()
                assert (skipped == expected[2]).all()


def search_of(corpus, metric, queries, depth, exclude, tell=None):
    return search(queries, corpus, depth, metric=metric, exclude=exclude)


def below_of(corpus, metric, queries, depth, caps, exclude):
    return search_below(queries, corpus, depth, caps, metric=metric, exclude=exclude)


def test_it_looks_once_where_that_tells(monkeypatch):
    """Some hundred of 400 are suspected: two rounds, or one look, and a search where a round ends among them."""
    rng = ns.rng_for(0)
    corpus, queries = rng.normal(size=(400, 8)).astype(np.float32), rng.normal(size=(30, 8)).astype(np.float32)
    known = ns.Positives.from_pairs([0], [0], 30, 400)
    searched, looked = [], []

    def look(queries, depth, exclude):
        searched.append((len(queries), depth))
        return search(queries, corpus, depth, exclude=exclude)

    def below(queries, depth, caps, exclude):
        looked.append((len(queries), depth))
        return search_below(queries, corpus, depth, caps, exclude=exclude)

    found, wanted, given = look(queries, 5, known), np.full(30, 3), open_vectors(queries)
    arguments = (given, known, Demand(Absolute(0.3), Query(np.arange(30)), wanted))
    searched.clear()
    old, skipped = deepened(found, look, *arguments)
    assert [depth for _, depth in searched] == [40, 320]
    late = int((np.isin(skipped, (35, 315))).sum())  # a round ended among the last of the suspected
    assert 40 < skipped.max() < 315
    searched.clear()
    new, again = deepened(found, look, *arguments, below=below)
    assert looked == [(30, 5)]
    assert sum(count for count, _ in searched) <= late < 5
    assert new.ids.tobytes() == old.ids.tobytes()
    assert new.scores.tobytes() == old.scores.tobytes()
    assert (again == skipped).all()
    monkeypatch.setattr(deepen, "_SLOTS", 40 * 7)
    looked.clear()
    deepened(found, look, *arguments, below=below)
    assert looked == [(7, 5)] * 4 + [(2, 5)]


@pytest.mark.parametrize("excluded", [59, 60, 61, 63, 64, 65, 66, 90])
def test_a_round_that_ends_because_nothing_is_left(excluded):
    """All are suspected: the slots hold the last places of a round that is not full, and so some are empty."""
    queries, corpus, _ = world_of(7, 2, 100, 60)
    known = ns.Positives.from_pairs([1] * excluded, np.arange(excluded), 2, 100)
    look, below = partial(search_of, corpus, "cosine"), partial(below_of, corpus, "cosine")
    judged = (Absolute(-2.0), Query(np.arange(2)), np.array([2, 2]))
    found = look(queries, 5, known)
    ids, scores, skipped = in_rounds(found, look, queries, known, *judged, None, 1 << 14)
    left = 100 - excluded
    assert skipped.tolist() == [95, min(left, 35 if left < 40 else 95)]
    got, again = deepened(found, look, open_vectors(queries), known, Demand(*judged), below=below)
    assert (got.ids == ids).all()
    assert (got.scores == scores).all()
    assert (again == skipped).all()


class Odd:
    """Suspects by score, and even items that score much lower, too: it has a line, and suspects beyond it."""

    def __init__(self, line):
        self.line = line

    def threshold(self, query):
        return np.full(len(query), self.line)

    def suspicion(self, query, negatives):
        even = (negatives.ids % 2 == 0) & (negatives.scores < self.line - 0.01)
        return np.where(even | (negatives.scores >= self.line), 1.0, 0.0)


class NoLine:
    """Suspects every other item, though it names a line."""

    threshold = staticmethod(lambda query: np.zeros(len(query)))

    def suspicion(self, query, negatives):
        return np.where(negatives.ids % 2 == 0, 1.0, 0.0)


@pytest.mark.parametrize("detector", [NoLine(), Odd(0.6)])
def test_what_has_no_line_is_searched_in_rounds(detector):
    queries, corpus, known = world_of(3, 6, 300, 60)
    look, below = partial(search_of, corpus, "cosine"), partial(below_of, corpus, "cosine")
    found, query = look(queries, 12, known), Query(np.arange(6))
    given, demand = open_vectors(queries), Demand(detector, query, np.full(6, 12))
    old, skipped = deepened(found, look, given, known, demand)
    new, again = deepened(found, look, given, known, demand, below=below)
    assert skipped.any()
    assert (new.ids == old.ids).all()
    assert (again == skipped).all()


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
