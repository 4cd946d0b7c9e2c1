"""The weights of popularity, of ranks, and of rarity, against their formulas and against the draws they give."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import naysay as ns
from naysay import NaysayError
from naysay.pools import Everything, item_oriented, log_uniform, popularity

KNOWN = ns.Positives.from_pairs([0, 0, 1, 1, 2, 3], [0, 1, 0, 2, 0, 0], n_anchors=5, n_items=4)


@pytest.mark.parametrize("power", [0.75, 1.0, 0.5, 2, -0.5, 0, np.float32(0.75), np.int64(2)])
def test_popularity_is_a_power_of_the_counts(power):
    counts = [4, 1, 1, 0]
    expected = [0.0 if count == 0 else count ** float(power) for count in counts]
    for given in (counts, np.array(counts), np.array(counts, np.float32), np.array(counts, np.uint16), KNOWN):
        assert popularity(given, power) == pytest.approx(expected, rel=1e-12)


def test_popularity_is_word2vecs_by_default():
    assert popularity([16, 81, 0]) == pytest.approx([8.0, 27.0, 0.0])


def test_an_item_that_never_occurs_is_never_drawn_whatever_the_power():
    for power in (-2.0, 0.0, 0.75):
        pool = Everything(KNOWN, popularity([3, 0, 2, 0], power), distinct=False)
        drawn = pool.draw(ns.Query(np.full(50, 4)), 20, rng=ns.rng_for(0)).ids
        assert set(drawn.ravel().tolist()) == {0, 2}


def test_popularity_leaves_ignored_pairs_out_of_the_counts():
    assert popularity(KNOWN.with_ignored([4, 4], [0, 3]), 1.0).tolist() == [4.0, 1.0, 1.0, 0.0]


def test_popularity_takes_torch_counts():
    assert popularity(torch.tensor([16, 81]), 0.75).tolist() == pytest.approx([8.0, 27.0])


def test_popularity_draws_follow_the_renormalised_power():
    """4.1: chi-square against the renormalised q, nothing known, and log-probabilities that add up to 1."""
    counts = np.array([100, 50, 25, 12, 6, 3, 1, 1])
    positives = ns.Positives.from_pairs([0, 0], [0, 4], 1, 8)
    q = counts**0.75
    q[[0, 4]] = 0
    q /= q.sum()
    got = Everything(positives, popularity(counts), distinct=False).draw(
        ns.Query(np.zeros(2000, np.int64)), 10, rng=ns.rng_for(2)
    )
    seen = np.bincount(got.ids.ravel(), minlength=8)
    assert seen[[0, 4]].tolist() == [0, 0]
    free = q > 0
    assert stats.chisquare(seen[free], q[free] * seen.sum()).pvalue > 1e-4
    assert np.abs(got.log_q - np.log(q[got.ids])).max() < 1e-9
    claims = {int(item): math.exp(claim) for item, claim in zip(got.ids.ravel(), got.log_q.ravel(), strict=True)}
    assert sum(claims.values()) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_log_uniform_is_the_candidate_samplers_formula(n):
    expected = [(math.log(rank + 2) - math.log(rank + 1)) / math.log(n + 1) for rank in range(n)]
    assert log_uniform(n) == pytest.approx(expected, rel=1e-9)
    assert log_uniform(n).sum() == pytest.approx(1.0, abs=1e-12)


def test_log_uniform_ranks_by_counts_with_ties_by_id():
    by_rank = log_uniform(5)
    assert log_uniform(5, [3, 9, 3, 0, 10]).tolist() == by_rank[[2, 1, 3, 4, 0]].tolist()
    assert log_uniform(4, KNOWN).tolist() == log_uniform(4).tolist()


def test_item_oriented_is_what_is_missing():
    assert item_oriented(KNOWN).tolist() == [1.0, 4.0, 4.0, 5.0]
    assert item_oriented(KNOWN.with_ignored([4], [0])).tolist() == [1.0, 4.0, 4.0, 5.0]
    full = ns.Positives.from_pairs([0, 1], [0, 0], 2, 2)
    drawn = Everything(full, item_oriented(full), distinct=False).draw(ns.Query([0, 1]), 9, rng=ns.rng_for(0)).ids
    assert (drawn == 1).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: popularity([[1, 2]]), r"^popularity: `counts` must be of shape \(n_items,\), got shape \(1, 2\)\.$"),
        (lambda: popularity(3), r"^popularity: `counts` must be of shape \(n_items,\), got shape \(\)\.$"),
        (lambda: popularity(["a", "b"]), r"^popularity: `counts` must be numbers, got dtype <U1\.$"),
        (
            lambda: popularity([1, -1, -2]),
            r"^popularity: `counts` must be finite and at least 0, got -1\.0 at row 1 \(2 such rows\)\.$",
        ),
        (lambda: popularity([np.nan]), r"^popularity: `counts` must be finite and at least 0, got nan at row 0 \(1 "),
        (lambda: popularity([1], np.inf), r"^popularity: `power` must be a finite number, got inf\.$"),
        (lambda: popularity([1], np.nan), r"^popularity: `power` must be a finite number, got nan\.$"),
        (lambda: popularity([1], "0.75"), r"^popularity: `power` must be a finite number, got '0\.75'\.$"),
        (lambda: popularity([1], None), r"^popularity: `power` must be a finite number, got None\.$"),
        (
            lambda: popularity([1, 10, 20], 400),
            r"^popularity: `power` must be such that counts\^400 is neither 0 nor infinite, got 10\.0 at row 1 \(2",
        ),
        (
            lambda: popularity([0, 1, 10], -400),
            r"^popularity: `power` must be such that counts\^-400 is neither 0 nor infinite, got 10\.0 at row 2 \(1",
        ),
        (lambda: log_uniform(0), r"^log_uniform: `n_items` must be at least 1, got 0\.$"),
        (lambda: log_uniform(2.0), r"^log_uniform: `n_items` must be a whole number, got 2\.0\.$"),
        (lambda: log_uniform(3, [1, 2]), r"^log_uniform: `counts` must be of 3 items, got 2\.$"),
        (
            lambda: log_uniform(2, [1, -2]),
            r"^log_uniform: `counts` must be finite and at least 0, got -2\.0 at row 1 \(",
        ),
        (lambda: log_uniform(2, [[1, 2]]), r"^log_uniform: `counts` must be of shape \(n_items,\), got shape \(1, 2\)"),
        (lambda: item_oriented([1, 2]), r"^item_oriented: `positives` must be a Positives, got list\.$"),
    ],
)
def test_what_is_rejected(call, message):
    with pytest.raises(NaysayError, match=message):
        call()


def test_ragged_counts_are_rejected():
    with pytest.raises(NaysayError, match=r"^popularity: `counts` must be rows of one length"):
        popularity([[1], [1, 2]])
