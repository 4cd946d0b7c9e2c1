"""Judge: any detector is asked about what is in play, acts on nothing else, and its line can be moved later."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_search import candidates_from, check_counts, kept_ids

import naysay as ns
from naysay.detectors import Combined, Margin, MaxScore
from naysay.mining import Reason, judge

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
    found = lists(seed).drop(lists(seed).ids == 3, Reason.DUPLICATE)
    detectors = {"one": ByTable(one), "two": ByTable(two)}
    left = judge(found, detectors, threshold=line)
    check_counts(left)
    counts = {"duplicate": 0, "suspicious": 0}
    for row in range(N):
        kept = []
        for slot, i in enumerate(found.ids[row].tolist()):
            if i < 0:
                continue
            said = [float(detector.table[row, i]) for detector in detectors.values()]
            if i == 3:
                counts["duplicate"] += 1
                assert left.suspicion[row, slot] == 0
                continue
            assert left.suspicion[row, slot] == pytest.approx(max(said), abs=1e-6)
            assert (left.suspicion[row, slot] >= 0.5) == (max(said) >= 0.5)  # rounding to 32 bits moves none across
            if max(said) >= line:
                counts["suspicious"] += 1
            else:
                kept.append(i)
        assert kept_ids(left)[row] == kept
    assert {name: int(c.sum()) for name, c in left.dropped.items()} == {n: c for n, c in counts.items() if c}
    assert all((seen != 3).all() for detector in detectors.values() for seen in detector.seen)
    combined = judge(found, Combined(detectors), threshold=line)
    assert (combined.why == left.why).all()


def test_one_detector_and_the_query_it_is_asked():
    found = candidates_from([[4, 2], [7, 1]], [[0.9, 0.5], [0.9, 0.5]])
    own = Margin(0.1, positive_scores=[0.0, 0.7, 1.1])
    left = judge(found, own, query=ns.Query([2, 1]))
    assert kept_ids(left) == [[4, 2], [1]]
    assert left.dropped["suspicious"].tolist() == [0, 1]
    empty = candidates_from(np.empty((0, 4), int), np.empty((0, 4)))
    assert len(judge(empty, MaxScore(0.5))) == 0
