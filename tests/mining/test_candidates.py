"""Candidates, window, floor and join: nothing is lost, and each has one reason."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_search import candidates_from, check_counts, kept_ids

from naysay.mining import Candidates, Reason, drop_below, join, window
from naysay.mining.candidates import canonical_order

IDS = [[4, 2, 7, 9], [1, 0, -1, -1]]
SCORES = [[0.9, 0.5, 0.5, -0.1], [0.3, 0.2, 0, 0]]


@st.composite
def made(draw, rows=3, width=6, items=9, name="search"):
    """Candidates with repeated scores and empty slots at the ends of rows."""
    ids = np.full((rows, width), -1)
    scores = np.zeros((rows, width), np.float32)
    for row in range(rows):
        some = draw(st.lists(st.integers(0, items - 1), max_size=width, unique=True))
        ids[row, : len(some)] = some
        values = draw(st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0]), min_size=width, max_size=width))
        scores[row] = values
    return candidates_from(ids, scores, name)


def test_what_a_search_found():
    found = candidates_from(IDS, SCORES, "dense")
    assert found.kept.tolist() == [[True] * 4, [True, True, False, False]]
    assert found.rank.tolist() == [[1, 2, 3, 4], [1, 2, 0, 0]]
    assert found.source.tolist() == [[0] * 4, [0, 0, -1, -1]]
    assert found.source_names == ("dense",)
    assert found.scores[1].tolist() == [np.float32(0.3), np.float32(0.2), -np.inf, -np.inf]
    assert np.isnan(found.positive_scores).all()
    assert found.dropped == {}
    assert len(found) == 2


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0)])
def test_nothing_found(shape):
    found = candidates_from(np.empty(shape, np.int64), np.empty(shape))
    for stage in (found, window(found, 2, 3), drop_below(found, 0.5), found.drop(found.kept, Reason.DUPLICATE)):
        assert stage.ids.shape == shape
        assert stage.dropped == {}


@given(made(), st.data())
def test_a_candidate_has_one_reason_and_counts_add_up(found, data):
    masks = [
        np.array(data.draw(st.lists(st.booleans(), min_size=found.ids.size, max_size=found.ids.size)))
        .reshape(found.ids.shape)
        .astype(bool)
        for _ in range(3)
    ]
    changed = found
    first, second, third = Reason.POSITIVE, Reason.DUPLICATE, Reason.SUSPICIOUS
    expected = {reason: np.zeros(3, int) for reason in (first, second, third)}
    gone = set()
    for mask, reason in zip(masks, expected, strict=True):
        changed = changed.drop(mask, reason)
        for row in range(3):
            for slot in range(found.ids.shape[1]):
                if mask[row, slot] and found.ids[row, slot] >= 0 and (row, slot) not in gone:
                    gone.add((row, slot))
                    expected[reason][row] += 1
    check_counts(changed)
    assert {name: counts.tolist() for name, counts in changed.dropped.items()} == {
        name: counts.tolist() for name, counts in expected.items() if counts.any()
    }
    assert found.dropped == {}  # the first is as it was
    back = changed.restored(changed.dropped_for(second, Reason.TOO_FAR))
    assert second not in back.dropped
    assert (back.kept.sum(axis=1) == changed.kept.sum(axis=1) + expected[second]).all()


def test_a_stage_marks_what_it_takes():
    found = candidates_from(IDS, SCORES).drop(np.array(IDS) == 4, Reason.POSITIVE)
    taken = found.marked(np.ones((2, 4), bool), 0).marked(np.array(IDS) == 7, 1)
    assert taken.kept_by.tolist() == [[-1, 0, 1, 0], [0, 0, -1, -1]]
    assert taken.kept_names == ("top", "relaxed", "random")


@given(made(), st.integers(1, 6), st.data())
def test_fewer_slots_keep_what_is_left_and_count_the_rest(found, width, data):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=18, max_size=18))).reshape(3, 6)
    whole = found.drop(mask, Reason.SUSPICIOUS)
    cut = whole.narrowed(width)
    check_counts(cut)
    for row in range(3):
        assert kept_ids(cut)[row] == kept_ids(whole)[row][:width]
        lost = whole.kept[row].sum() - cut.kept[row].sum()
        assert cut.dropped.get(Reason.NOT_SELECTED, np.zeros(3))[row] == lost
        assert cut.dropped.get(Reason.SUSPICIOUS, np.zeros(3))[row] == (mask & found.filled)[row].sum()


def test_rows_of_a_deeper_search_replace_those_of_the_first():
    found = candidates_from(IDS, SCORES)
    deeper = candidates_from([[8, 7, 6, 5, 4]], [[0.5, 0.4, 0.3, 0.2, 0.1]])
    whole = found.with_rows(np.array([1]), deeper)
    assert kept_ids(whole) == [[4, 2, 7, 9], [8, 7, 6, 5, 4]]
    assert kept_ids(Candidates.stacked([found, deeper])) == [[4, 2, 7, 9], [1, 0], [8, 7, 6, 5, 4]]


@given(made())
def test_the_canonical_order_as_in_loops(found):
    order = canonical_order(found, found.filled)
    for row in range(len(found)):
        slots = [slot for slot in range(found.ids.shape[1]) if found.ids[row, slot] >= 0]
        slots.sort(key=lambda slot, row=row: (-found.scores[row, slot], found.ids[row, slot]))
        assert order[row, : len(slots)].tolist() == slots


# ---- window and floor -----------------------------------------------------------------------------------


@given(made(), st.integers(1, 7), st.none() | st.integers(0, 7), st.sampled_from([-1.0, 0.0, 0.25, 0.3, 2.0]))
def test_window_and_floor_as_in_loops(found, first, more, low):
    last = None if more is None else first + more
    left = drop_below(window(found, first, last), low)
    check_counts(left)
    counts = {"too near": 0, "too far": 0, "too easy": 0}
    for row in range(len(found)):
        kept = []
        for slot, i in enumerate(found.ids[row].tolist()):
            rank, score = slot + 1, found.scores[row, slot]
            if i < 0:
                continue
            if rank < first:
                counts["too near"] += 1
            elif last is not None and rank > last:
                counts["too far"] += 1
            elif score < np.float32(low):
                counts["too easy"] += 1
            else:
                kept.append(i)
        assert kept_ids(left)[row] == kept
    assert {name: int(c.sum()) for name, c in left.dropped.items()} == {n: c for n, c in counts.items() if c}


def test_a_floor_of_each_anchor():
    left = drop_below(candidates_from(IDS, SCORES), [0.5, 0.3])
    assert kept_ids(left) == [[4, 2, 7], [1]]


# ---- join -----------------------------------------------------------------------------------------------


@given(made(name="a"), made(name="b"), made(name="c"))
def test_join_as_in_loops(one, two, three):
    joined = join(one, two, three)
    check_counts(joined)
    assert joined.source_names == ("a", "b", "c")
    for row in range(3):
        seen, kept, sources, ranks, again = set(), [], [], [], 0
        for source, part in enumerate((one, two, three)):
            for slot, i in enumerate(part.ids[row].tolist()):
                if i >= 0 and i not in seen:
                    kept.append(i)
                    sources.append(source)
                    ranks.append(slot + 1)
                elif i >= 0:
                    again += 1
                seen.add(i)
        assert kept_ids(joined)[row] == kept
        assert joined.source[row][joined.kept[row]].tolist() == sources
        assert joined.rank[row][joined.kept[row]].tolist() == ranks
        assert joined.dropped.get("repeated", np.zeros(3))[row] == again


# ---- refusals -------------------------------------------------------------------------------------------

FOUND = candidates_from(IDS, SCORES)


def test_anything_with_ids_and_scores_is_found():
    half = SimpleNamespace(ids=np.array([[3]], np.int32), scores=np.array([[0.5]], np.float16))
    assert Candidates.of(half).scores.dtype == np.float32
