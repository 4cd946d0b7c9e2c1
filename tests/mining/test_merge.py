"""Merging sources, against plain loops."""

import importlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay.errors import NaysayError
from naysay.mining.merge import merge
from naysay.search.exact import Found


@st.composite
def found(draw, n, size):
    """What a source finds: distinct ids in canonical order, fewer in some rows."""
    depth = draw(st.integers(0, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ids, scores = np.full((n, depth), -1, np.int64), np.full((n, depth), -np.inf, np.float32)
    for row in range(n):
        count = int(rng.integers(0, min(depth, size) + 1))
        chosen = rng.choice(size, count, replace=False)
        values = rng.integers(0, 4, count).astype(np.float32) / 4  # ties
        order = np.lexsort((chosen, -values))
        ids[row, :count], scores[row, :count] = chosen[order], values[order]
    return Found(ids, scores)


@st.composite
def several(draw):
    n, size = draw(st.integers(0, 4)), draw(st.integers(1, 8))
    return {name: draw(found(n, size)) for name in draw(st.permutations(["a", "b", "c"]))[: draw(st.integers(1, 3))]}


def lists(sources, row):
    """{name: [(id, score), ...]} of one anchor."""
    return {
        name: [(int(i), float(s)) for i, s in zip(each.ids[row], each.scores[row], strict=True) if i >= 0]
        for name, each in sources.items()
    }


def by_rrf(row, depth, constant):
    names, fused, best = list(row), {}, {}
    for place, name in enumerate(names):
        for rank, (item, _) in enumerate(row[name], 1):
            fused[item] = fused.get(item, 0.0) + 1 / (constant + rank)
            best[item] = min(best.get(item, (math.inf, 0)), (rank, place))
    order = sorted(fused, key=lambda item: (-np.float32(fused[item]), item))[:depth]
    return [(item, float(np.float32(fused[item])), best[item][1]) for item in order]


def by_best(row, depth):
    best = {}
    for place, name in enumerate(row):
        for item, score in row[name]:
            best[item] = max(best.get(item, (-math.inf, 0)), (score, -place))
    order = sorted(best, key=lambda item: (-best[item][0], item))[:depth]
    return [(item, best[item][0], -best[item][1]) for item in order]


def by_quota(row, quotas):
    taken, answer = set(), []
    for place, name in enumerate(row):
        mine = [pair for pair in row[name] if pair[0] not in taken][: quotas[name]]
        taken |= {item for item, _ in mine}
        answer += [(item, score, place) for item, score in mine]
    return answer


def rows_of(merged):
    return [
        [
            (int(i), float(s), int(w))
            for i, s, w in zip(merged.ids[row], merged.scores[row], merged.source[row], strict=True)
            if i >= 0
        ]
        for row in range(len(merged))
    ]


def check_shape(merged, sources, depth):
    """Empty slots stand at the end, and every candidate knows its rank in every source."""
    assert merged.ids.shape == merged.scores.shape == merged.source.shape == (len(merged), depth)
    assert merged.ranks.shape == (len(merged), depth, len(sources))
    assert merged.source_names == tuple(sources)
    empty = merged.ids < 0
    assert (np.diff(empty.astype(int), axis=1) >= 0).all()
    assert (merged.source[empty] == -1).all()
    assert np.isneginf(merged.scores[empty]).all()
    assert not merged.ranks[empty].any()
    for row in range(len(merged)):
        for slot in np.flatnonzero(~empty[row]):
            for place, each in enumerate(sources.values()):
                ranks = {int(item): rank for rank, item in enumerate(each.ids[row], 1) if item >= 0}
                assert merged.ranks[row, slot, place] == ranks.get(int(merged.ids[row, slot]), 0)


@given(several(), st.integers(1, 9), st.sampled_from([0.5, 1.0, 60.0]))
def test_reciprocal_ranks(sources, depth, constant):
    merged = merge(sources, depth, constant=constant)
    check_shape(merged, sources, depth)
    n = len(next(iter(sources.values())))
    assert rows_of(merged) == [by_rrf(lists(sources, row), depth, constant) for row in range(n)]


@given(several(), st.integers(1, 9))
def test_the_best_score_of_any_source(sources, depth):
    merged = merge(sources, depth, rule="best")
    check_shape(merged, sources, depth)
    n = len(next(iter(sources.values())))
    assert rows_of(merged) == [by_best(lists(sources, row), depth) for row in range(n)]


@given(several(), st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any))
def test_quotas(sources, places):
    quotas = dict(zip(sources, places, strict=False))
    quotas[next(iter(sources))] += 1
    merged = merge(sources, rule="quota", quotas=quotas)
    check_shape(merged, sources, sum(quotas.values()))
    n = len(next(iter(sources.values())))
    want = [by_quota(lists(sources, row), quotas) for row in range(n)]
    assert rows_of(merged) == want
    for place, name in enumerate(sources):
        filled = sum(source == place for row in want for _, _, source in row)
        assert merged.short.get(name, 0) == quotas[name] * n - filled


def test_golden_fusion():
    """Two lists of Cormack's formula by hand: 1/61 + 1/62, 1/61, 1/62."""
    one = Found(np.array([[3, 8, -1]]), np.array([[9, 8, -np.inf]], np.float32))
    other = Found(np.array([[5, 3]]), np.array([[0.2, 0.1]], np.float32))
    merged = merge({"one": one, "other": other}, 4)
    assert merged.ids.tolist() == [[3, 5, 8, -1]]
    assert merged.source.tolist() == [[0, 1, 0, -1]]
    assert merged.ranks[0].tolist() == [[1, 2], [0, 1], [2, 0], [0, 0]]
    assert merged.scores[0, :3].tolist() == np.float32([1 / 61 + 1 / 62, 1 / 61, 1 / 62]).tolist()


def test_scores_that_float32_cannot_tell_apart_go_by_id():
    one = Found(np.array([[9, 2]]), np.array([[2, 1]], np.float32))
    merged = merge({"one": one}, 2, constant=1e9)
    assert merged.scores[0, 0] == merged.scores[0, 1]
    assert merged.ids.tolist() == [[2, 9]]
    assert merged.ranks[0, :, 0].tolist() == [2, 1]


@pytest.mark.parametrize("rule", ["rrf", "best", "quota"])
def test_blocks_of_anchors_do_not_show(rule, monkeypatch):
    rng = np.random.default_rng(0)
    sources = {}
    for name in "abc":
        ids = rng.permuted(np.tile(np.arange(12), (30, 1)), axis=1)[:, :5]
        scores = -np.sort(-rng.integers(0, 6, (30, 5)), axis=1).astype(np.float32)
        sources[name] = Found(ids, scores)
    arguments = {"quotas": {"a": 2, "b": 1, "c": 3}} if rule == "quota" else {"depth": 6}
    whole = merge(sources, rule=rule, **arguments)
    # The package's name `merge` is the function; its module is asked for by its whole name.
    monkeypatch.setattr(importlib.import_module("naysay.mining.merge"), "_CELLS", 1)
    parts = merge(sources, rule=rule, **arguments)
    for name in ("ids", "scores", "source", "ranks"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))
    assert whole.short == parts.short
    assert ((whole.ranks > 0).sum(axis=2) > 1).any()


ONE = Found(np.array([[1]]), np.array([[0.5]], np.float32))
TWO = Found(np.array([[1], [2]]), np.array([[0.5], [0.5]], np.float32))


@pytest.mark.parametrize(
    ("sources", "arguments", "message"),
    [
        ({}, {"depth": 1}, "`sources` must be 1 to 127 of {name: Found}, got 0 of them"),
        ([ONE], {"depth": 1}, "`sources` must be 1 to 127 of {name: Found}, got list"),
        ({"a": ONE.ids}, {"depth": 1}, "`sources` must be {name: Found}, got 'a': ndarray"),
        ({"a": ONE, "b": TWO}, {"depth": 1}, "`sources` must be of the same anchors, got a 1, b 2"),
        ({"a": ONE}, {"depth": 0}, "`depth` must be at least 1, got 0"),
        ({"a": ONE}, {}, "`depth` must be a whole number, got None"),
        ({"a": ONE}, {"depth": 1, "rule": "rff"}, r"`rule` must be one of .*, got 'rff'. Did you mean 'rrf'\?"),
        ({"a": ONE}, {"depth": 1, "constant": -1}, "`constant` must be a number at least 0, got -1"),
        ({"a": ONE}, {"depth": 1, "quotas": {"a": 1}}, "`quotas` must be left out for the rule 'rrf', got"),
        ({"a": ONE}, {"rule": "quota"}, "`quotas` must be {name: places} of 'a', got None"),
        ({"a": ONE}, {"rule": "quota", "quotas": {"b": 1}}, "`quotas` must be {name: places} of 'a', got {'b': 1}"),
        ({"a": ONE}, {"rule": "quota", "quotas": {"a": -1}}, r"`quotas\['a'\]` must be at least 0, got -1"),
        ({"a": ONE}, {"rule": "quota", "quotas": {"a": 0}}, "`quotas` must be at least one place in all, got"),
        (
            {"a": ONE},
            {"rule": "quota", "quotas": {"a": 2}, "depth": 3},
            "`depth` must be 2, the sum of quotas, or left",
        ),
    ],
)
def test_errors(sources, arguments, message):
    with pytest.raises(NaysayError, match=f"^merge: {message}"):
        merge(sources, **arguments)
