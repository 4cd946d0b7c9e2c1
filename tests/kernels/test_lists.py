"""The loops that draw from lists: against plain Python loops, exact probabilities, and any number of threads."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay.kernels import lists, threads
from naysay.kernels.random import row_state
from naysay.kernels.threads import in_rows


@pytest.fixture
def _threads():
    before = threads.threads()
    yield
    ns.set_threads(before)


def places_of(key, sizes, counts, repeat, width):
    out = np.full((len(sizes), width), -7, np.int64)
    log_q = np.full((len(sizes), width), np.nan)
    sizes, counts = np.asarray(sizes, np.int64), np.asarray(counts, np.int64)
    places = (np.zeros_like(sizes), sizes, np.arange(max(sizes.max(initial=0), 1)))  # an entry is its own place
    in_rows(lists.draw_places, len(sizes), 3 * out.size, np.uint64(key), repeat, counts, places, out, log_q)
    return out, log_q


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 24)), max_size=8), st.booleans(), st.integers(0, 2**64 - 1)
)
def test_places_follow_the_laws(rows, repeat, key):
    sizes, counts = [size for size, _ in rows], [count for _, count in rows]
    out, log_q = places_of(key, sizes, counts, repeat, max(counts, default=0))
    for row, (size, count) in enumerate(rows):
        filled = (count if size else 0) if repeat else min(count, size)
        line = out[row].tolist()
        assert all(0 <= place < size for place in line[:filled])
        assert line[filled:] == [-1] * (len(line) - filled)
        assert repeat or len(set(line[:filled])) == filled
        for slot in range(len(line)):
            expected = 0.0 if slot >= filled else -np.log(size if repeat else size - slot)
            assert log_q[row, slot] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("size", "wanted"), [(3000, 1400), (3000, 1501), (1000, 300), (300, 300)])
def test_wide_rows_are_distinct(size, wanted):
    out, log_q = places_of(5, [size] * 20, [wanted] * 20, False, wanted)
    assert out.min() >= 0
    assert out.max() < size
    assert all(len(set(row)) == wanted for row in out.tolist())
    assert np.allclose(log_q, -np.log(size - np.arange(wanted)), rtol=0, atol=1e-12)


def ordered_counts(drawn, outcomes):
    """How often each ordered outcome came, in the order of `outcomes`."""
    seen = dict.fromkeys(outcomes, 0)
    for row in drawn:
        seen[tuple(row)] += 1
    return list(seen.values())


@pytest.mark.parametrize(("size", "wanted"), [(4, 2), (4, 3), (6, 3), (3, 3), (5, 1)])
def test_every_order_is_equally_likely(size, wanted):
    rows = 60_000
    out, log_q = places_of(11, [size] * rows, [wanted] * rows, False, wanted)
    counts = ordered_counts(out.tolist(), permutations(range(size), wanted))
    assert chisquare(counts, rows * np.exp(log_q[0].sum()) * np.ones(len(counts))).pvalue > 1e-4


def test_repeated_places_are_independent():
    rows = 40_000
    out, log_q = places_of(3, [3] * rows, [2] * rows, True, 2)
    counts = np.bincount(3 * out[:, 0] + out[:, 1], minlength=9)
    assert chisquare(counts, rows * np.exp(2 * log_q[0, 0]) * np.ones(9)).pvalue > 1e-4


@pytest.mark.parametrize("room", [0, 16])
def test_the_exact_fallback_is_uniform(room):
    """Without a single second try, every repetition is settled by counting past the earlier slots."""
    wanted, size, rows = 3, 6, 12_000
    drawn = np.empty((rows, wanted), np.int64)
    ranks, table = np.empty(2 * wanted, np.int64), np.empty(room, np.int64)
    for row in range(rows):
        state = np.uint64(row_state(np.uint64(9), row))
        lists.distinct_places(state, 0, wanted, size, drawn[row], table, ranks)
    counts = ordered_counts(drawn.tolist(), permutations(range(size), wanted))
    assert chisquare(counts).pvalue > 1e-4


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("repeat", [False, True])
def test_places_do_not_depend_on_threads(repeat):
    sizes, counts = np.arange(4000) % 97, np.arange(4000) % 33
    answers = []
    for count in (1, 2, 4):
        ns.set_threads(count)
        answers.append(places_of(1, sizes, counts, repeat, 32))
    for other in answers[1:]:
        assert np.array_equal(answers[0][0], other[0])
        assert np.array_equal(answers[0][1], other[1])


def test_a_list_is_read_from_where_it_begins():
    out, log_q = np.empty((2, 3), np.int64), np.empty((2, 3))
    places = (np.array([1, 3]), np.array([2, 3]), np.array([9, 8, 7, 6, 5, 4]))
    lists.draw_places(0, 2, np.uint64(1), False, np.array([3, 3]), places, out, log_q)
    assert sorted(out[0].tolist()) == [-1, 7, 8]
    assert sorted(out[1].tolist()) == [4, 5, 6]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 6), st.sampled_from([0, 1, 5, 300]), st.integers(0, 2**32 - 1))
def test_keep_first_against_plain_loops(rows, width, seed):
    generator = np.random.default_rng(seed)
    given_ids = generator.integers(-1, max(4, width // 2), (rows, width))
    known = generator.random((rows, width)) < 0.2
    out, dropped = np.empty((rows, width), np.int64), np.empty(rows, np.int64)
    lists.keep_first(0, rows, given_ids, known, out, dropped)
    for row in range(rows):
        kept, lost = [], 0
        for item, refused in zip(given_ids[row].tolist(), known[row].tolist(), strict=True):
            if item == -1:
                continue
            if refused or item in kept:
                lost += 1
            else:
                kept.append(item)
        assert out[row].tolist() == kept + [-1] * (width - len(kept))
        assert dropped[row] == lost


# ---- entries that all rows share ------------------------------------------------------------------------


def entries_of(key, tries, repeat, counts, width, asking, entries, known):
    rows = len(asking[0])
    out, places = np.empty((rows, width), np.int64), np.empty((rows, width), np.int64)
    counts, *batch = (np.asarray(a, np.int64) for a in (counts, *asking, *entries))
    how = (np.uint64(key), tries, repeat)
    in_rows(lists.draw_entries, rows, 4 * out.size, how, counts, tuple(batch), known._rows, out, places)
    return out, places


def sequences(items, wanted):
    """Exact probability of each ordered outcome: uniform over the entries whose item was not drawn yet."""
    chances = {(): 1.0}
    for _ in range(wanted):
        longer = {}
        for drawn, chance in chances.items():
            left = [item for item in items if item not in drawn]
            for item in left:
                longer[(*drawn, item)] = longer.get((*drawn, item), 0.0) + chance / len(left)
        chances = longer
    return chances


@pytest.mark.parametrize("tries", [0, 1, 2, 32])
def test_entries_have_their_exact_probabilities(tries):
    """Trial, the listing after it, and any mixture of the two are one distribution."""
    known = ns.Positives.from_pairs([0, 0], [6, 7], n_anchors=2, n_items=9)
    items = [1, 1, 2, 3, 6, 4, 8, 1]
    owners = [1, 1, 1, 1, 1, 0, 1, 1]  # 6 is known, 4 is the anchor's own, 8 its positive
    rows, wanted = 30_000, 3
    asking = (np.zeros(rows), np.full(rows, 8))
    out, places = entries_of(2, tries, False, [wanted] * rows, wanted, asking, (items, owners), known)
    assert np.array_equal(np.asarray(items)[places], out)
    chances = sequences([1, 1, 2, 3, 1], wanted)
    counts = ordered_counts(out.tolist(), chances)
    assert chisquare(counts, rows * np.array(list(chances.values()))).pvalue > 1e-4


@pytest.mark.parametrize("tries", [0, 1, 32])
def test_repeated_entries_are_independent_and_uniform(tries):
    known = ns.Positives.from_pairs([0], [5], n_anchors=1, n_items=6)
    rows = 20_000
    items, owners = [1, 1, 2, 5], [9, 9, 9, 9]
    asking = (np.zeros(rows), np.full(rows, -1))
    _, places = entries_of(4, tries, True, [2] * rows, 2, asking, (items, owners), known)
    counts = np.bincount(3 * places[:, 0] + places[:, 1], minlength=9)
    assert chisquare(counts).pvalue > 1e-4


def test_fewer_entries_asked_for_are_the_first_of_more():
    known = ns.Positives.from_pairs([0], [5], n_anchors=1, n_items=400)
    entries = (np.arange(300) % 150, np.arange(300) % 7 + 1)
    asking = (np.zeros(50), np.full(50, 3))
    few, _ = entries_of(8, 2, False, [8] * 50, 8, asking, entries, known)
    many, _ = entries_of(8, 2, False, [300] * 50, 300, asking, entries, known)
    assert np.array_equal(few, many[:, :8])
    assert (np.count_nonzero(many >= 0, axis=1) == 148).all()  # 150 items, but for 3 and 5
