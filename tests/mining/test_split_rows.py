"""What is drawn for an anchor depends on that anchor alone: any split of the rows gives the rows of the whole."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_search import candidates_from

import naysay as ns
from naysay.errors import NaysayError
from naysay.mining.backfill import backfill, distinct, rows_of
from naysay.mining.select import select, uniform

N, M, ITEMS = 9, 6, 20


def found(seed):
    rng = np.random.default_rng(seed)
    ids = np.stack([rng.permutation(ITEMS)[:M] for _ in range(N)])
    known = ns.Positives.from_pairs(*rng.integers(0, (N, ITEMS), (15, 2)).T, N, ITEMS)
    return ids, rng.integers(0, 9, (N, M)) / 8, known


@given(st.integers(0, 300), st.lists(st.integers(0, N), max_size=4), st.sampled_from(["random", "softmax"]))
def test_a_split_gives_the_rows_of_the_whole(seed, cuts, how):
    ids, scores, known = found(seed)
    options = {"rng": ns.rng_for(seed)} | ({"temperature": 0.3} if how == "softmax" else {})

    def filled(start, stop):
        rows = np.arange(start, stop)
        options["rng"] = ns.rng_for(seed)
        taken = select(candidates_from(ids[rows], scores[rows]), 2, how, first=start, **options)
        taken = backfill(
            taken,
            9,
            "random",
            known=rows_of(known, rows),
            score=lambda anchors, items: np.zeros(len(items)),
            rng=ns.rng_for(seed, 1),
            first=start,
        )
        return [
            sorted(zip(taken.ids[row][kept].tolist(), taken.kept_by[row][kept].tolist(), strict=True))
            for row, kept in enumerate(taken.kept & (taken.kept_by >= 0))
        ]

    edges = sorted({0, *cuts, N})
    assert [row for start, stop in pairwise(edges) for row in filled(start, stop)] == filled(0, N)


def test_rows_have_draws_of_their_own():
    ids = np.tile(np.arange(5), (4, 1))
    whole = uniform(np.uint64(7), ids, np.arange(4))
    assert (uniform(np.uint64(7), ids[2:], np.array([2, 3])) == whole[2:]).all()
    assert len(np.unique(whole)) == whole.size


@given(st.integers(0, 1000), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8)), max_size=8))
def test_distinct_numbers(seed, asked):
    counts, sizes = np.array(asked, np.int64).reshape(-1, 2).T
    rows = np.arange(len(asked)) * 3 + 1
    drawn = distinct(np.uint64(seed), rows, counts, sizes)
    for row, (count, size) in enumerate(asked):
        own = [number for number in drawn[row].tolist() if number >= 0]
        assert len(own) == len(set(own)) == min(count, size)
        assert all(number < size for number in own)
        assert drawn[row, len(own) :].tolist() == [-1] * (drawn.shape[1] - len(own))


def test_every_set_is_as_likely():
    draws = 30_000
    drawn = distinct(np.uint64(5), np.arange(draws), np.full(draws, 3), np.full(draws, 6))
    names = {pick: place for place, pick in enumerate(combinations(range(6), 3))}
    counts = np.bincount([names[tuple(row)] for row in np.sort(drawn, axis=1).tolist()], minlength=20)
    assert ((counts - draws / 20) ** 2 / (draws / 20)).sum() < 60  # 19 degrees of freedom


def test_errors():
    taken = select(candidates_from([[1]], [[0.5]]), 1, first=4)
    with pytest.raises(NaysayError, match=r"^backfill: anchor 4 has 1 of 2 negatives "):
        backfill(taken, 2, "raise", first=4)
    with pytest.raises(NaysayError, match=r"^select: `first` must be at least 0, got -1"):
        select(candidates_from([[1]], [[0.5]]), 1, first=-1)
