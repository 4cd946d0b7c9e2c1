"""Everything: the laws of its draws, by plain-loop oracles on small worlds and by sorted keys on a large one."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay import NaysayError
from naysay.kernels import uniform
from naysay.pools import Everything, popularity

UNIFORM_OR_NOT = pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
DISTINCT_OR_NOT = pytest.mark.parametrize("distinct", [True, False], ids=["distinct", "independent"])


def world(known, n_items):
    """Positives from a list of sets, one for each anchor."""
    pairs = [(anchor, item) for anchor, items in enumerate(known) for item in items]
    anchors, items = zip(*pairs, strict=True) if pairs else ((), ())
    return ns.Positives.from_pairs(anchors, items, len(known), n_items)


def draw(pool, anchors, n, seed=0):
    return pool.draw(ns.Query(np.asarray(anchors, np.int64)), n, rng=ns.rng_for(seed))


def check_row(ids, log_q, asked, weights, free, distinct):
    """One row by the words of the design: what may stand in it, how much of it, and log_q slot by slot."""
    reachable = {item for item in free if weights[item] > 0}
    filled = [item for item in ids if item != -1]
    assert ids == filled + [-1] * (len(ids) - len(filled))
    assert set(filled) <= reachable
    assert len(filled) == (min(asked, len(reachable)) if distinct else asked * bool(reachable))
    if distinct:
        assert len(set(filled)) == len(filled)
    left = math.fsum(weights[item] for item in reachable)
    for slot, item in enumerate(ids):
        expected = 0.0 if item == -1 else math.log(weights[item]) - math.log(left)
        assert log_q[slot] == pytest.approx(expected, abs=1e-9)
        if distinct and item != -1:
            reachable.discard(item)
            left = math.fsum(weights[item] for item in reachable)


# ---- laws on small worlds -------------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_every_row_of_every_small_world(data):
    n_items = data.draw(st.integers(1, 12), "n_items")
    known = data.draw(st.lists(st.sets(st.integers(0, n_items - 1)), min_size=1, max_size=4), "known")
    anchors = data.draw(st.lists(st.integers(0, len(known) - 1), max_size=5), "anchors")
    distinct = data.draw(st.booleans(), "distinct")
    weights = data.draw(
        st.none() | st.lists(st.sampled_from([0, 0.001, 1, 2.5, 1000]), min_size=n_items, max_size=n_items).filter(any),
        "weights",
    )
    width = st.integers(0, 2 * n_items)
    n = data.draw(width | st.lists(width, min_size=len(anchors), max_size=len(anchors)), "n")
    pool = Everything(world(known, n_items), weights, distinct)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniform, "TRIES", data.draw(st.sampled_from([0, 1, 2, 32]), "tries"))
        got = draw(pool, anchors, n, data.draw(st.integers(0, 9), "seed"))
    asked = [n] * len(anchors) if isinstance(n, int) else n
    assert got.ids.shape == (len(anchors), max(asked, default=n if isinstance(n, int) else 0))
    assert got.ids.dtype == np.int64
    assert got.log_q.shape == got.ids.shape
    each = [1.0] * n_items if weights is None else weights
    for row, anchor in enumerate(anchors):
        free = set(range(n_items)) - known[anchor]
        check_row(got.ids[row].tolist(), got.log_q[row].tolist(), asked[row], each, free, distinct)
    missing = sum(asked) - int((got.ids >= 0).sum())
    assert dict(got.dropped) == ({"exhausted": missing} if missing else {})


@UNIFORM_OR_NOT
@DISTINCT_OR_NOT
@pytest.mark.parametrize("n", [31, 32, 33, 64, 65, 255, 257, 1001, 2500])
@pytest.mark.parametrize("tries", [0, 32])
def test_wide_rows(weighted, distinct, n, tries, monkeypatch):
    """Beyond 32 slots a hash table finds repetitions; 2,500 is more than is free of the fuller anchors."""
    monkeypatch.setattr(uniform, "TRIES", tries)
    rng = np.random.default_rng(n)
    n_items = 3000
    known = [set(), set(rng.choice(n_items, 600, False).tolist()), set(range(2990)), set(range(3000))]
    weights = rng.uniform(0.5, 2.0, n_items).tolist() if weighted else None
    got = draw(Everything(world(known, n_items), weights, distinct), [0, 1, 2, 3, 1], n)
    for row, anchor in enumerate([0, 1, 2, 3, 1]):
        free = set(range(n_items)) - known[anchor]
        filled = got.ids[row][got.ids[row] >= 0].tolist()
        assert set(filled) <= free
        assert len(filled) == (min(n, len(free)) if distinct else n * bool(free))
        assert not distinct or len(set(filled)) == len(filled)
        assert (got.ids[row, len(filled) :] == -1).all()
        w = np.ones(n_items) if weights is None else np.array(weights)
        total, drawn = w[list(free)].sum(), w[filled]
        before = np.cumsum(drawn) - drawn if distinct else np.zeros(len(filled))
        assert np.abs(got.log_q[row, : len(filled)] - np.log(drawn) + np.log(total - before)).max(initial=0) < 1e-9
        assert (got.log_q[row, len(filled) :] == 0).all()


@UNIFORM_OR_NOT
@DISTINCT_OR_NOT
def test_shapes_of_nothing_and_one(weighted, distinct):
    pool = Everything(world([{0}, {1}], 5), [1, 2, 3, 4, 5] if weighted else None, distinct)
    for rows, n, shape in ((0, 3, (0, 3)), (0, 0, (0, 0)), (1, 0, (1, 0)), (1, 1, (1, 1)), (2, 0, (2, 0))):
        got = draw(pool, [0] * rows, n)
        assert got.ids.shape == got.log_q.shape == got.mask.shape == shape
        assert got.ids.dtype == np.int64
        assert got.dropped == {}
    assert draw(pool, [], np.empty(0, np.int64)).ids.shape == (0, 0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("distinct", [False, True])
def test_candidates_are_the_same_draw_without_log_q(weighted, distinct):
    known = ns.Positives.from_pairs([0, 0, 1, 2, 2, 2], [0, 1, 2, 0, 1, 2], 3, 4)
    pool = ns.pools.Everything(known, [1, 2, 3, 4] if weighted else None, distinct=distinct)
    query = ns.Query([0, 1, 2, 1])
    drawn, candidates = pool.draw(query, 3, rng=ns.rng_for(0)), pool.draw_candidates(query, 3, rng=ns.rng_for(0))
    assert np.array_equal(drawn.ids, candidates.ids)
    assert drawn.dropped == candidates.dropped
    assert drawn.log_q is not None
    assert candidates.log_q is None


def test_n_for_each_row_and_in_every_form():
    pool = Everything(world([{0}, {1}, set()], 9))
    whole = draw(pool, [0, 1, 2], 4).ids
    for n in (np.int32(4), np.array(4), torch.tensor(4), [4, 4, 4], np.array([4, 4, 4], np.uint8), torch.full((3,), 4)):
        assert draw(pool, [0, 1, 2], n).ids.tolist() == whole.tolist()
    uneven = draw(pool, [0, 1, 2], [0, 4, 2])
    assert (uneven.ids >= 0).sum(axis=1).tolist() == [0, 4, 2]
    assert uneven.ids[1].tolist() == whole[1].tolist()
    assert uneven.dropped == {}
    anchors = torch.tensor([0, 1, 2])
    assert pool.draw(ns.Query(anchors), 4, rng=ns.rng_for(0)).ids.tolist() == whole.tolist()


@UNIFORM_OR_NOT
@DISTINCT_OR_NOT
@pytest.mark.parametrize("tries", [0, 1, 32])
def test_the_first_8_are_the_same_for_8_and_80(weighted, distinct, tries, monkeypatch):
    """With 200 or more free items. The one exception is below."""
    monkeypatch.setattr(uniform, "TRIES", tries)
    rng = np.random.default_rng(3)
    known = [set(rng.choice(2000, size, False).tolist()) for size in (0, 10, 900, 1100, 1800)]
    pool = Everything(world(known, 2000), popularity(rng.integers(1, 99, 2000)) if weighted else None, distinct)
    anchors = np.arange(5).repeat(20)
    narrow = draw(pool, anchors, 8)
    for n in (9, 31, 33, 80):
        wide = draw(pool, anchors, n)
        assert (wide.ids[:, :8] == narrow.ids).all()
        assert np.abs(wide.log_q[:, :8] - narrow.log_q).max() < 1e-12
    uneven = draw(pool, anchors, np.arange(100) % 9)
    assert (uneven.ids[uneven.ids >= 0] == narrow.ids[uneven.ids >= 0]).all()


@UNIFORM_OR_NOT
def test_the_first_8_differ_only_where_uniform_rows_are_asked_for_more_than_half(weighted):
    """A distinct uniform row switches to a shuffle of all that is free when it is asked for more than half of it.

    That is the one place where asking for more changes the earlier slots; a weighted row never switches.
    """
    pool = Everything(world([set()], 40), np.arange(1, 41) if weighted else None)
    rows = np.zeros(50, np.int64)
    eight, half, more = (draw(pool, rows, n).ids[:, :8] for n in (8, 20, 21))
    assert (eight == half).all()
    assert (eight == more).all() == weighted
    assert (draw(pool, rows, 40).ids[:, :8] == more).all()  # within the shuffle the law holds again


@UNIFORM_OR_NOT
@DISTINCT_OR_NOT
def test_a_row_depends_on_its_place_in_the_batch_alone(weighted, distinct):
    pool = Everything(world([{0, 5}, {1}, set()], 30), np.arange(1, 31) if weighted else None, distinct)
    one = draw(pool, [0, 1, 2, 0], 6).ids
    two = draw(pool, [0, 2, 2, 1], 6).ids
    assert (one[[0, 2]] == two[[0, 2]]).all()
    assert (one[0] != one[3]).any()
    assert (draw(pool, [0, 1], 6).ids == one[:2]).all()
    assert (draw(pool, [0, 1], 6, seed=1).ids != one[:2]).any()


# ---- nothing known comes back, at scale -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    """5,000 x 40,000 with 300,000 pairs: Zipf-like items and users, and three users who know almost all."""
    rng = np.random.default_rng(20)
    n_anchors, n_items = 5_000, 40_000
    items = np.exp(rng.uniform(0, np.log(n_items + 1), 213_000)).astype(np.int64) - 1
    anchors = (n_anchors * rng.uniform(size=len(items)) ** 2).astype(np.int64)
    full = [rng.permutation(n_items)[:size] for size in (39_960, 39_999, 40_000)]
    keys = [anchors * n_items + items, *(who * n_items + ids for who, ids in zip((7, 11, 13), full, strict=True))]
    keys = np.unique(np.concatenate(keys))
    shuffled = rng.permutation(keys)
    assert 290_000 < len(keys) < 340_000
    return ns.Positives.from_pairs(shuffled // n_items, shuffled % n_items, n_anchors, n_items), keys


def among(keys, asked):
    """Whether each of `asked` is in sorted `keys`; quick where `asked` is almost in order."""
    return keys[np.minimum(np.searchsorted(keys, asked), len(keys) - 1)] == asked


@UNIFORM_OR_NOT
@DISTINCT_OR_NOT
def test_no_known_positive_in_a_million_draws(large, weighted, distinct):
    """By sorted keys anchor * n + item, which share no code with Positives."""
    positives, keys = large
    weights = popularity(np.bincount(keys % 40_000, minlength=40_000) + 1, 1.0) if weighted else None
    pool = Everything(positives, weights, distinct)
    got = draw(pool, np.arange(5_000), 200)
    drawn = np.sort(got.ids, axis=1)
    empty = drawn < 0
    degrees = np.bincount(keys // 40_000, minlength=5_000)
    possible = np.minimum(200, 40_000 - degrees) if distinct else np.where(degrees < 40_000, 200, 0)
    assert ((~empty).sum(axis=1) == possible).all()
    assert got.dropped == {"exhausted": int((200 - possible).sum())}
    assert drawn.max() < 40_000
    asked = (drawn + 40_000 * np.arange(5_000)[:, None])[~empty]
    assert not among(keys, asked).any()
    if distinct:
        assert (np.diff(asked) > 0).all()


@UNIFORM_OR_NOT
def test_the_exact_fallback_alone_lets_nothing_known_through(large, weighted, monkeypatch):
    """With no tries at all: every known candidate and every repetition goes to the fallback."""
    monkeypatch.setattr(uniform, "TRIES", 0)
    positives, keys = large
    weights = popularity(positives.item_counts() + 1, 1.0) if weighted else None
    anchors = np.concatenate([np.arange(2000), np.arange(2000)])
    got = draw(Everything(positives, weights), anchors, 50).ids
    ordered = np.sort(got, axis=1)
    asked = (ordered + 40_000 * anchors[:, None])[ordered >= 0]
    assert not among(keys, asked).any()
    assert among(keys, keys[::1000]).all()  # the check itself can see
    assert not ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any()


def test_ignored_pairs_are_never_drawn_either():
    known = world([{0}, {1}], 5).with_ignored([0, 0, 1], [1, 2, 0])
    for weights in (None, [1, 1, 1, 1, 1]):
        got = draw(Everything(known, weights), [0, 1], 5).ids
        assert [sorted(row) for row in got.tolist()] == [[-1, -1, -1, 3, 4], [-1, -1, 2, 3, 4]]


# ---- draw_pairs -----------------------------------------------------------------------------------------------------


def graph():
    sources, targets = [0, 0, 1, 2, 4, 4], [1, 2, 2, 3, 5, 0]
    edges = {(a, b) for a, b in zip(sources, targets, strict=True)}
    return ns.Positives.from_edges(sources, targets, 7), edges | {(b, a) for a, b in edges}


@pytest.mark.parametrize("n", [1, 5, 20, 28])
@DISTINCT_OR_NOT
def test_pairs_are_uniform_over_all_that_are_not_known(n, distinct):
    positives, edges = graph()
    allowed = sorted({(a, b) for a in range(7) for b in range(7) if a != b} - edges)
    assert len(allowed) == 30
    pool = Everything(positives)
    counts = dict.fromkeys(allowed, 0)
    first = dict.fromkeys(allowed, 0)
    rounds = 6000 // n
    for step in range(rounds):
        anchors, items = pool.draw_pairs(n, rng=ns.rng_for(1, step), distinct=distinct)
        pairs = list(zip(anchors.tolist(), items.tolist(), strict=True))
        assert len(pairs) == n
        assert not distinct or len(set(pairs)) == n
        first[pairs[0]] += 1  # a KeyError here is an edge or a loop
        for pair in pairs:
            counts[pair] += 1
    if distinct:  # fewer degrees of freedom: at n of 30 the variance is (30 - n) / 29 of the independent one
        excess = (np.array(list(counts.values())) - rounds * n / 30) ** 2 / (rounds * n / 30)
        assert 1e-4 < stats.chi2.sf(excess.sum() * 29 / (30 - n), 29) < 1 - 1e-4
    else:
        assert stats.chisquare(list(counts.values())).pvalue > 1e-4
    if rounds > 200:
        assert stats.chisquare(list(first.values())).pvalue > 1e-4  # the order is random too


def test_more_pairs_than_there_are_gives_each_once():
    positives, edges = graph()
    everything = {(a, b) for a in range(7) for b in range(7) if a != b} - edges
    for n in (30, 31, 1000):
        anchors, items = Everything(positives).draw_pairs(n, rng=ns.rng_for(0))
        pairs = list(zip(anchors.tolist(), items.tolist(), strict=True))
        assert len(pairs) == 30
        assert set(pairs) == everything


@pytest.mark.parametrize("directed", [False, True])
def test_pairs_of_a_graph_are_no_edges_and_no_loops(directed):
    rng = np.random.default_rng(4)
    sources, targets = rng.integers(0, 300, (2, 8000))
    positives = ns.Positives.from_edges(sources, targets, 300, directed=directed)
    edges = sources * 300 + targets
    if not directed:
        edges = np.concatenate([edges, targets * 300 + sources])
    n_pairs = 300 * 299 - len(np.unique(edges[edges // 300 != edges % 300]))
    for n in (1000, n_pairs, n_pairs + 5):
        anchors, items = Everything(positives).draw_pairs(n, rng=ns.rng_for(0))
        assert len(anchors) == len(items) == min(n, n_pairs)
        keys = anchors * 300 + items
        assert not np.isin(keys, edges).any()
        assert (anchors != items).all()
        assert len(np.unique(keys)) == len(keys)
    loops = Everything(ns.Positives.from_edges([0, 1], [1, 2], 3, self_pairs=True))
    anchors, items = loops.draw_pairs(99, rng=ns.rng_for(0))
    assert {(0, 0), (1, 1), (2, 2)} <= set(zip(anchors.tolist(), items.tolist(), strict=True))


def test_pairs_follow_the_settings_of_the_pool():
    positives, _ = graph()
    independent = Everything(positives, distinct=False)
    assert len(independent.draw_pairs(500, rng=ns.rng_for(0))[0]) == 500
    assert len(independent.draw_pairs(500, rng=ns.rng_for(0), distinct=True)[0]) == 30
    strict = Everything(positives, on_short="raise")
    assert len(strict.draw_pairs(30, rng=ns.rng_for(0))[0]) == 30
    assert len(strict.draw_pairs(31, rng=ns.rng_for(0), distinct=False)[0]) == 31
    message = r"^Everything\.draw_pairs: `n` must be at most 30, the pairs that are not known, got 31\. Request fewer"
    with pytest.raises(NaysayError, match=message):
        strict.draw_pairs(31, rng=ns.rng_for(0))
    full = Everything(world([{0, 1}], 2), on_short="raise", distinct=False)
    assert len(full.draw_pairs(0, rng=ns.rng_for(0))[0]) == 0
    with pytest.raises(NaysayError, match=r"`n` must be at most 0, the pairs that are not known, got 1\."):
        full.draw_pairs(1, rng=ns.rng_for(0))
    with pytest.raises(NaysayError, match=r"^Everything\.draw_pairs: `distinct` must be True or False, got 'no'\.$"):
        strict.draw_pairs(1, rng=ns.rng_for(0), distinct="no")


def test_pairs_of_a_full_graph_and_of_none():
    full = Everything(world([{0, 1}, {0, 1}], 2))
    for distinct in (True, False):
        anchors, items = full.draw_pairs(5, rng=ns.rng_for(0), distinct=distinct)
        assert len(anchors) == len(items) == 0
        anchors, items = Everything(world([{0}], 2)).draw_pairs(0, rng=ns.rng_for(0), distinct=distinct)
        assert len(anchors) == len(items) == 0
    anchors, items = Everything(world([{0}], 2)).draw_pairs(3, rng=ns.rng_for(0), distinct=False)
    assert (anchors.tolist(), items.tolist()) == ([0, 0, 0], [1, 1, 1])


# ---- what is refused, and how ---------------------------------------------------------------------------------------


def test_on_short_raise_names_the_first_row_and_the_count():
    pool = Everything(world([set(), {0, 1}, {0}], 3), on_short="raise")
    assert draw(pool, [0, 2], [3, 2]).dropped == {}
    message = (
        r"^Everything\.draw: row 1 has 1 candidates left of the 2 requested \(2 such rows\)\. "
        r"Request fewer, or pass on_short='pad'\.$"
    )
    with pytest.raises(NaysayError, match=message):
        draw(pool, [0, 1, 1], 2)
    with pytest.raises(NaysayError, match=r"row 0 has 0 candidates left of the 1 requested \(1 such row\)\."):
        draw(Everything(world([{0, 1}], 2), distinct=False, on_short="raise"), [0], 1)


SMALL = world([{0}, {1}], 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"positives": [[0, 1]]}, r"^Everything: `positives` must be a Positives, got list\.$"),
        ({"positives": world([set()], 0)}, r"^Everything: `positives` must be of at least one item, got 0 items\.$"),
        (
            {"positives": ns.Positives.from_pairs([], [], 1, 1 << 32)},
            r"^Everything: `positives` must be of fewer than 2\^32 items, got 4294967296\.$",
        ),
        ({"weights": [1, 2]}, r"^Everything: `weights` must be of shape \(3,\), got shape \(2,\)\.$"),
        ({"weights": [[1, 2, 3]]}, r"^Everything: `weights` must be of shape \(3,\), got shape \(1, 3\)\.$"),
        (
            {"weights": ["a", "b", "c"]},
            r"^Everything: `weights` must be None, or numbers of shape \(3,\), one for each item, got dtype <U1\.",
        ),
        (
            {"weights": "popularity"},
            r"^Everything: `weights` must be None, or numbers of shape \(3,\), one for each item, got 'popularity'\. "
            r"For weights by popularity pass naysay\.pools\.popularity\(positives\)\.$",
        ),
        (
            {"weights": [1, -2, -3]},
            r"^Everything: `weights` must be finite and at least 0, got -2\.0 at row 1 \(2 such rows\)\.$",
        ),
        (
            {"weights": [1, 2, np.nan]},
            r"^Everything: `weights` must be finite and at least 0, got nan at row 2 \(1 such row\)\.$",
        ),
        ({"weights": [np.inf, 1, 1]}, r"finite and at least 0, got inf at row 0 \(1 such row\)\.$"),
        ({"weights": [0, 0, 0]}, r"^Everything: `weights` must be above 0 for at least one item, got all 0\.$"),
        (
            {"on_short": "pda"},
            r"^Everything: `on_short` must be one of 'pad', 'raise', got 'pda'\. Did you mean 'pad'\?$",
        ),
    ],
)
def test_what_a_pool_rejects(arguments, message):
    with pytest.raises(NaysayError, match=message):
        Everything(**{"positives": SMALL, **arguments})


@pytest.mark.parametrize(
    ("anchors", "n", "message"),
    [
        (
            [0, 2],
            1,
            r"^Everything\.draw: `anchors` must be between 0 and 1 \(2 anchors\), got 2 at row 1 \(1 such row\)",
        ),
        ([-1, 0, -7], 1, r"must be between 0 and 1 \(2 anchors\), got -1 at row 0 \(2 such rows\)\.$"),
        (
            [[0, 0, 1]],
            1,
            r"^Everything\.draw: `query\.anchors` must be of shape \(B,\), got triples\. Use naysay\.pools\.Corruption",
        ),
        ([0], -1, r"^Everything\.draw: `n` must be at least 0, got -1\.$"),
        ([0], 2.0, r"^Everything\.draw: `n` must be a whole number, got 2\.0\.$"),
        ([0], True, r"^Everything\.draw: `n` must be a whole number, got True\.$"),
        ([0], "3", r"^Everything\.draw: `n` must be a whole number, got '3'\.$"),
        ([0], None, r"^Everything\.draw: `n` must be a whole number, got None\.$"),
        ([0, 1], [1, -4], r"^Everything\.draw: `n` must be at least 0, got -4\.$"),
        ([0, 1], [1], r"^Everything\.draw: `n` must be one number, or one for each of the 2 rows, got 1 numbers\.$"),
        ([0, 1], [[1, 2]], r"^Everything\.draw: `n` must be of shape \(n,\), got shape \(1, 2\)\.$"),
        ([0, 1], [1.0, 2.0], r"^Everything\.draw: `n` must be whole numbers, got dtype float64"),
    ],
)
def test_what_a_draw_rejects(anchors, n, message):
    with pytest.raises(NaysayError, match=message):
        Everything(SMALL).draw(ns.Query(anchors), n, rng=ns.rng_for(0))


def test_a_draw_needs_a_generator():
    message = r"^Everything\.draw: `rng` must be a numpy Generator, got 0\. Pass rng=naysay\.rng_for\(seed, step\)\.$"
    with pytest.raises(NaysayError, match=message):
        Everything(SMALL).draw(ns.Query([0]), 1, rng=0)
    with pytest.raises(NaysayError, match=r"^Everything\.draw_pairs: `rng` must be a numpy Generator, got RandomState"):
        Everything(SMALL).draw_pairs(1, rng=np.random.RandomState(0))


@pytest.mark.parametrize(
    ("weights", "n", "message"),
    [
        (None, 1.5, r"^Everything\.draw_pairs: `n` must be a whole number, got 1\.5\.$"),
        (None, -1, r"^Everything\.draw_pairs: `n` must be at least 0, got -1\.$"),
        (
            [1, 2, 3],
            1,
            r"^Everything\.draw_pairs: `weights` must be None, got weights\. Weighted draws are per anchor: use draw\.",
        ),
    ],
)
def test_what_draw_pairs_rejects(weights, n, message):
    with pytest.raises(NaysayError, match=message):
        Everything(SMALL, weights).draw_pairs(n, rng=ns.rng_for(0))


def test_a_rejected_draw_takes_nothing_from_the_generator():
    rng = ns.rng_for(0)
    with pytest.raises(NaysayError):
        Everything(SMALL).draw(ns.Query([9]), 1, rng=rng)
    assert rng.integers(1 << 40) == ns.rng_for(0).integers(1 << 40)


def test_repr_names_the_settings():
    assert repr(Everything(SMALL, [1, 2, 3], distinct=False, on_short="raise")) == (
        "Everything(Positives(2 pairs, 2 anchors x 3 items), weighted, distinct=False, on_short='raise')"
    )
    assert repr(Everything(SMALL)).endswith("uniform, distinct=True, on_short='pad')")


@pytest.mark.parametrize(
    "pool",
    [
        ns.pools.Everything(ns.Positives.from_pairs([0], [1], n_items=5)),
        ns.pools.Local([[0, 1]]),
        ns.pools.InBatch(),
        ns.pools.Memory(4),
        ns.pools.KHop(ns.Positives.from_edges([0], [1])),
        ns.pools.Walks(ns.Positives.from_edges([0], [1])),
        ns.pools.PageRank(ns.Positives.from_edges([0], [1]), ranks=(0, 1)),
        ns.pools.Corruption([[0, 0, 1]]),
    ],
    ids=lambda pool: type(pool).__name__,
)
def test_a_bare_array_of_anchors_is_rejected_by_every_pool(pool):
    owner = type(pool).__name__
    message = f"{owner}.draw: `query` must be a Query, got list. Write naysay.Query(anchors)."
    with pytest.raises(NaysayError, match=f"^{re.escape(message)}$"):
        pool.draw([0], 2, rng=ns.rng_for(0))


def test_ragged_weights_are_rejected():
    with pytest.raises(NaysayError, match=r"^Everything: `weights` must be rows of one length"):
        Everything(SMALL, [[1.0], [1.0, 2.0]])


@UNIFORM_OR_NOT
def test_the_probability_of_ids_that_are_none(weighted):
    pool = Everything(world([{0}], 3), [1.0, 2.0, 5.0] if weighted else None)
    assert pool.log_chance(ns.Query([0]), [[-1, 0]]).tolist() == [[0.0, -np.inf]]
    for ids, got in (([[1, 3]], "3 at row 0, slot 1"), ([[-2]], "-2 at row 0, slot 0")):
        said = rf"^Everything.log_chance: `ids` must be between -1 and 2 \(3 items\), got {got} \(1 such row\)"
        with pytest.raises(NaysayError, match=said):
            pool.log_chance(ns.Query([0]), ids)
