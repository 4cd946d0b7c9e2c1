"""Judge: any detector is asked about what is in play, acts on nothing else, and its line can be moved later."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_search import candidates_from, check_counts, kept_ids

import naysay as ns
from naysay.detectors import Bands, Calibrated, Combined, Duplicates, Margin, MaxScore, RankWindow
from naysay.errors import NaysayError
from naysay.mining.judge import ask, judge, rejudged, score_thresholds, was_suspicious

N, M, ITEMS = 3, 5, 9
TABLES = st.lists(st.sampled_from([0.0, 0.25, 0.49999999999, 0.5, 0.75, 1.0]), min_size=N * ITEMS, max_size=N * ITEMS)


class ByTable:
    """Suspicion by anchor and item; it remembers what it was asked."""

    def __init__(self, table):
        self.table = np.array(table).reshape(-1, ITEMS)
        self.seen = []

    def suspicion(self, query, negatives):
        self.seen.append(negatives.ids.copy())
        return np.where(negatives.ids >= 0, self.table[np.asarray(query.anchors)[:, None], negatives.ids], 0.0)


def lists(seed=0):
    rng = np.random.default_rng(seed)
    ids = np.stack([rng.permutation(ITEMS)[:M] for _ in range(N)])
    ids[2, 3:] = -1
    return candidates_from(ids, rng.integers(0, 5, (N, M)) / 4)


@given(TABLES, TABLES, st.integers(0, 20), st.sampled_from([0.25, 0.5, 0.75]))
def test_several_detectors_as_in_loops(one, two, seed, line):
    found = lists(seed).drop(lists(seed).ids == 3, "gone")
    detectors = {"one": ByTable(one), "two": ByTable(two)}
    left = judge(found, detectors, threshold=line)
    check_counts(left)
    counts = {"gone": 0, "suspicious: one": 0, "suspicious: two": 0}
    for row in range(N):
        kept = []
        for slot, i in enumerate(found.ids[row].tolist()):
            if i < 0:
                continue
            said = [float(detector.table[row, i]) for detector in detectors.values()]
            if i == 3:
                counts["gone"] += 1
                assert left.suspicion[row, slot] == 0
                continue
            assert left.suspicion[row, slot] == pytest.approx(max(said), abs=1e-6)
            assert (left.suspicion[row, slot] >= 0.5) == (max(said) >= 0.5)  # rounding to 32 bits moves none across
            if max(said) >= line:
                counts["suspicious: one" if said[0] >= said[1] else "suspicious: two"] += 1
            else:
                kept.append(i)
        assert kept_ids(left)[row] == kept
    assert {name: int(c.sum()) for name, c in left.dropped.items()} == {n: c for n, c in counts.items() if c}
    assert all((seen != 3).all() for detector in detectors.values() for seen in detector.seen)
    combined = judge(found, Combined(detectors), threshold=line)
    assert (combined.why == left.why).all()


@given(TABLES, st.integers(0, 20), st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0]))
def test_another_line_is_the_same_as_asking_again(table, seed, line):
    found = lists(seed)
    detector = ByTable(table)
    first = judge(found, detector)
    again, asked = rejudged(first, line), judge(found, detector, threshold=line)
    assert len(detector.seen) == 2  # rejudged asks nobody
    assert (again.kept == asked.kept).all()
    assert {n: c.tolist() for n, c in again.dropped.items()} == {n: c.tolist() for n, c in asked.dropped.items()}
    assert (rejudged(again, 0.5).kept == first.kept).all()
    assert (was_suspicious(first) == (first.why > 0)).all()


def test_one_detector_and_the_query_it_is_asked():
    found = candidates_from([[4, 2], [7, 1]], [[0.9, 0.5], [0.9, 0.5]])
    own = Margin(0.1, positive_scores=[0.0, 0.7, 1.1])
    left = judge(found, own, query=ns.Query([2, 1]))
    assert kept_ids(left) == [[4, 2], [1]]
    assert left.dropped["suspicious"].tolist() == [0, 1]
    assert ask(found, own, ns.Query([2, 1])).shape == (2, 2)
    empty = candidates_from(np.empty((0, 4), int), np.empty((0, 4)))
    assert len(judge(empty, MaxScore(0.5))) == 0


def test_the_line_in_scores():
    query = ns.Query([2, 0])
    fitted = Calibrated(0.1).fit(np.arange(30) / 30)
    assert score_thresholds(fitted, query).tolist() == [fitted.high] * 2
    assert score_thresholds({"one": fitted}, query).tolist() == [fitted.high] * 2
    assert score_thresholds(Combined({"one": MaxScore(0.25)}), query).tolist() == [0.25] * 2
    assert score_thresholds(Bands(0.1, 0.75), query).tolist() == [0.75] * 2
    assert score_thresholds(Margin(0.5, positive_scores=[0.5, np.nan, 1.5]), query).tolist() == [1.0, 0.0]
    assert np.isnan(score_thresholds(Duplicates(item_texts=["a"]), query)).all()
    assert np.isnan(score_thresholds({"one": fitted, "two": fitted}, query)).all()


FOUND = candidates_from([[1]], [[0.5]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: judge([1], MaxScore(0.5)), r"^judge: `candidates` must be a Candidates"),
        (
            lambda: judge(FOUND, "auto"),
            r"^judge: `detector` must be a detector with a method suspicion.*, got 'auto'\.$",
        ),
        (lambda: judge(FOUND, {}), r"^judge: `detector` must be a detector with a method .*, got dict\.$"),
        (lambda: judge(FOUND, MaxScore), r"^judge: `detector` must be a detector with a method .*, got type\.$"),
        (lambda: judge(FOUND, {"a": 3}), r"^judge: `detector` must be a detector with a method .*, got int\.$"),
        (lambda: judge(FOUND, RankWindow(9)), r"Use window\(candidates, first=10\), or rank_range=\(10, None\)\.$"),
        (lambda: judge(FOUND, {"a": RankWindow(9)}), r"does not rank the candidates that are left, got RankWindow"),
        (
            lambda: judge(FOUND, Combined({"a": RankWindow(9)})),
            r"does not rank the candidates that are left, got RankWindow",
        ),
        (
            lambda: judge(FOUND, MaxScore(0.5), threshold=1.5),
            r"^judge: `threshold` must be a number at least 0 and at most 1, got 1\.5\.$",
        ),
        (lambda: rejudged(FOUND, -1), r"^rejudged: `threshold` must be a number at least 0 and at most 1, got -1\.$"),
        (lambda: judge(FOUND, MaxScore(0.5), query=ns.Query([0, 1])), r"got query 2, candidates 1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(NaysayError, match=message):
        call()
