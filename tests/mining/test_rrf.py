"""rrf: the sum of reciprocal ranks, as in plain loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from naysay.mining import rrf
from naysay.search import Found

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=6, unique=True), min_size=3, max_size=3)


def found_of(lists):
    found = Found.empty(len(lists), 6)
    for row, ids in enumerate(lists):
        found.ids[row, : len(ids)] = ids
        found.scores[row, : len(ids)] = -np.arange(len(ids))
    return found


@given(LISTS, LISTS, LISTS, st.integers(1, 9), st.sampled_from([0.0, 1.0, 60.0]))
def test_as_in_loops(one, two, three, depth, constant):
    merged = rrf({"a": found_of(one), "b": found_of(two), "c": found_of(three)}, depth, constant=constant)
    for row in range(3):
        scores = {}
        for lists in (one, two, three):
            for place, item in enumerate(lists[row], 1):
                scores[item] = scores.get(item, 0.0) + 1 / (constant + place)
        order = sorted(scores, key=lambda item: (-np.float32(scores[item]), item))[:depth]
        assert merged.ids[row][merged.ids[row] >= 0].tolist() == order
        assert merged.scores[row][: len(order)].tolist() == [np.float32(scores[item]) for item in order]
        assert (merged.scores[row][len(order) :] == -np.inf).all()
