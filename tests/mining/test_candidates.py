"""Candidates, window, floor and join: nothing is lost, and each has one reason."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_search import candidates_from, check_counts, kept_ids

from naysay.errors import NaysayError
from naysay.mining.candidates import Candidates, canonical_order, join
from naysay.mining.exclude import drop_below, window

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
    asked = found.negatives()
    assert asked.ids[1].tolist() == [1, 0, -1, -1]
    assert asked.scores[1].tolist() == [np.float32(0.3), np.float32(0.2), 0, 0]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0)])
def test_nothing_found(shape):
    found = candidates_from(np.empty(shape, np.int64), np.empty(shape))
    for stage in (found, window(found, 2, 3), drop_below(found, 0.5), found.drop(found.kept, "x")):
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
    expected = {"a": np.zeros(3, int), "b": np.zeros(3, int), "c": np.zeros(3, int)}
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
    back = changed.restored(changed.dropped_for(["b", "never"]))
    assert "b" not in back.dropped
    assert (back.kept.sum(axis=1) == changed.kept.sum(axis=1) + expected["b"]).all()


def test_a_stage_marks_what_it_takes():
    found = candidates_from(IDS, SCORES).drop(np.array(IDS) == 4, "x")
    taken = found.marked(np.ones((2, 4), bool), "top").marked(np.array(IDS) == 7, "late")
    assert taken.kept_by.tolist() == [[-1, 0, 1, 0], [0, 0, -1, -1]]
    assert taken.kept_names == ("top", "late")


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


def test_join_adds_what_was_outside_and_takes_the_first_positive():
    one, two = candidates_from(IDS, SCORES, "a"), candidates_from(IDS, SCORES, "b")
    one = replace(one, outside={"positive": np.array([2, 0])}, positive_scores=np.float32([0.5, np.nan]))
    two = replace(two, outside={"positive": np.array([1, 1])}, positive_scores=np.float32([0.1, 0.2]))
    joined = join(one, two)
    assert joined.dropped["positive"].tolist() == [3, 1]
    assert joined.positive_scores.tolist() == [np.float32(0.5), np.float32(0.2)]
    assert join(one) is one


# ---- refusals -------------------------------------------------------------------------------------------

FOUND = candidates_from(IDS, SCORES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Candidates.of([[1]]), r"^Candidates\.of: `found` must be a Found, with ids and scores, got list\.$"),
        (lambda: candidates_from([[1.5]], [[1]]), r"Candidates\.of: `ids` must be whole numbers, got dtype float64"),
        (
            lambda: candidates_from([[1], [-2]], [[1], [1]]),
            r"`ids` must be at least -1, got -2 at row 1 \(1 such row\)",
        ),
        (
            lambda: candidates_from([[1]], [[1, 2]]),
            r"`scores` must be numbers of shape \(1, 1\), like ids, got \(1, 2\)",
        ),
        (
            lambda: candidates_from([[1], [2]], [[1], [np.nan]]),
            r"`scores` must be finite where there is an id, got .*row 1",
        ),
        (
            lambda: FOUND.drop(np.ones((1, 4), bool), "x"),
            r"`mask` must be of shape \(2, 4\) bool.*got \(1, 4\) bool\.$",
        ),
        (lambda: FOUND.drop([[True]], "x"), r"Candidates\.drop: `mask` must be .*, got list\.$"),
        (
            lambda: replace(FOUND, why=np.zeros((1, 1), np.int8)),
            r"^Candidates: `why` must be of shape \(2, 4\), like ids",
        ),
        (
            lambda: replace(FOUND, positive_scores=np.zeros(3)),
            r"`positive_scores` must be of shape \(2,\), got shape \(3,\)",
        ),
        (
            lambda: window([[1]], 2),
            r"^window: `candidates` must be a Candidates, got list\. Write Candidates\.of\(found\)",
        ),
        (lambda: window(FOUND, 0), r"window: `first` must be at least 1, got 0"),
        (lambda: window(FOUND, 5, 4), r"window: `last` must be at least first = 5, got 4"),
        (lambda: drop_below(FOUND, np.nan), r"drop_below: `min_score` must be a number, got nan"),
        (
            lambda: drop_below(FOUND, [1, 2, 3]),
            r"drop_below: `min_score` must be a number, or \(2,\) one for each anchor, got shape \(3,\)",
        ),
        (lambda: join(), r"join: `parts` must be at least one Candidates, got none"),
        (
            lambda: join(FOUND, FOUND),
            r"join: `parts` must be at most 127 sources with different names, got 'search', 'se",
        ),
        (
            lambda: join(FOUND, candidates_from([[1]], [[1]], "b")),
            r"join: `parts` must be of 2 anchors, like the first, got 1",
        ),
        (lambda: join(FOUND.drop(FOUND.kept, "x")), r"join: `parts` must be as they were found.*Join first, then drop"),
    ],
)
def test_errors(call, message):
    with pytest.raises(NaysayError, match=message):
        call()


def test_at_most_127_reasons():
    found = candidates_from([list(range(128))], [[0.0] * 128])
    for slot in range(127):
        found = found.drop(found.ids == slot, f"reason {slot}")
    with pytest.raises(NaysayError, match=r"`name` must be one of at most 127, got 'one more' as another"):
        found.drop(found.ids == 127, "one more")
    check_counts(found)


def test_anything_with_ids_and_scores_is_found():
    half = SimpleNamespace(ids=np.array([[3]], np.int32), scores=np.array([[0.5]], np.float16))
    assert Candidates.of(half).scores.dtype == np.float32
