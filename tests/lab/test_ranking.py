"""Ranks and measures: those of plain loops, of scikit-learn, and the laws of ties, blocks and filters."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.lab import ranking


def world(seed, n=8, m=15, levels=6):
    """Scores with ties, known and wanted pairs of which some are both."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (n, m)).astype(np.float64)
    known, wanted = rng.random((n, m)) < 0.2, rng.random((n, m)) < 0.25
    wanted[0, 0] = True
    return scores, positives(known), positives(wanted), known, wanted


def positives(matrix):
    return ns.Positives.from_pairs(*np.nonzero(matrix), *matrix.shape)


def plain(scores, known, wanted, *, ties, alone, candidates=None):
    """{(anchor, item): (rank, share of negatives below)} in plain loops."""
    found = {}
    for a, i in np.argwhere(wanted).tolist():
        own = scores[a, i]
        pool = range(scores.shape[1]) if candidates is None else candidates[a].tolist()
        others = [scores[a, j] for j in pool if j >= 0 and not wanted[a, j] and not known[a, j]]
        mates = [] if alone else [j for j in range(scores.shape[1]) if wanted[a, j] and j != i]
        rank = (
            1
            + sum(score > own for score in others)
            + {"mean": 0.5, "optimistic": 0, "pessimistic": 1}[ties] * sum(score == own for score in others)
        )
        rank += sum(scores[a, j] > own or (scores[a, j] == own and j < i) for j in mates)
        below = sum(score < own for score in others) + 0.5 * sum(score == own for score in others)
        found[a, i] = rank, below / len(others) if others else math.nan
    return found


def measures(found, *, alone, n):
    """recall, NDCG, hits, MRR and AUC in plain loops."""
    lists = {}
    for (a, i), value in found.items():
        lists.setdefault((a, i) if alone else a, []).append(value)
    rows = []
    for values in lists.values():
        ranks = [rank for rank, _ in values]
        ideal = sum(1 / math.log2(place + 2) for place in range(min(len(ranks), n)))
        rows.append(
            (
                sum(rank <= n for rank in ranks) / len(ranks),
                sum(1 / math.log2(rank + 1) for rank in ranks if rank <= n) / ideal,
                float(min(ranks) <= n),
                1 / min(ranks),
                sum(area for _, area in values) / len(values),
            )
        )
    return np.mean(rows, axis=0)


@given(
    st.integers(0, 10_000),
    st.sampled_from(["mean", "optimistic", "pessimistic"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 20),
)
def test_ranks_and_measures_are_those_of_plain_loops(seed, ties, alone, sampled, n):
    scores, known, wanted, known_matrix, wanted_matrix = world(seed)
    candidates = np.random.default_rng(seed).integers(-1, 15, (8, 5)) if sampled else None
    found = ranking(scores, wanted, known=known, candidates=candidates, alone=alone, ties=ties)
    expected = plain(scores, known_matrix, wanted_matrix, ties=ties, alone=alone, candidates=candidates)
    pairs = list(zip(found.anchors.tolist(), found.items.tolist(), strict=True))
    assert pairs == list(expected)
    np.testing.assert_allclose(found.ranks, [rank for rank, _ in expected.values()])
    np.testing.assert_allclose(found.areas, [area for _, area in expected.values()])
    got = (found.recall(n), found.ndcg(n), found.hits(n), found.mrr, found.auc)
    np.testing.assert_allclose(got, measures(expected, alone=alone, n=n))
    assert found.ndcg(n) <= 1 + 1e-12


@given(st.integers(0, 10_000))
def test_blocks_vectors_functions_and_tensors_give_the_same_ranks(seed):
    rng = np.random.default_rng(seed)
    queries, items = rng.integers(-3, 4, (8, 4)).astype(np.float32), rng.integers(-3, 4, (15, 4)).astype(np.float32)
    _, known, wanted, *_ = world(seed)
    scores = queries @ items.T
    expected = ranking(scores, wanted, known=known).ranks
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ranking.__wrapped__.__globals__, "_MEMORY", 100)  # one row at a time
        for given_scores, keywords in (
            (scores, {}),
            (queries, {"items": items}),
            (torch.from_numpy(scores), {}),
            (torch.from_numpy(queries), {"items": torch.from_numpy(items)}),
            (torch.from_numpy(queries), {"items": items}),
            (lambda rows: scores[rows], {}),
            (lambda rows: torch.from_numpy(scores[rows]), {}),
            (scores.astype(np.int64), {}),
        ):
            np.testing.assert_array_equal(ranking(given_scores, wanted, known=known, **keywords).ranks, expected)


def test_a_constant_score_ranks_as_a_random_order_the_best_and_the_worst():
    wanted = ns.Positives.from_pairs([0], [3], n_items=11)
    ranks = {
        ties: ranking(np.zeros((1, 11)), wanted, ties=ties).ranks[0] for ties in ("mean", "optimistic", "pessimistic")
    }
    assert ranks == {"mean": 6.0, "optimistic": 1.0, "pessimistic": 11.0}
    assert ranking(np.zeros((1, 11)), wanted, ties="pessimistic").auc == 0.5


def test_only_anchors_that_want_something_are_scored():
    asked = []

    def scores(anchors):
        asked.extend(anchors.tolist())
        return np.zeros((len(anchors), 5))

    ranking(scores, ns.Positives.from_pairs([7, 2], [0, 1], 1000, 5))
    assert sorted(asked) == [2, 7]


def test_without_negatives_the_auc_is_unknown_and_the_rank_is_known():
    found = ranking(np.ones((1, 2)), ns.Positives.from_pairs([0, 0], [0, 1], 1, 2))
    assert found.ranks.tolist() == [1, 2]
    assert math.isnan(found.auc)


@pytest.mark.parametrize("n", [10**11, 2**63])
def test_a_number_above_all_ranks_is_that_of_the_whole_list(n):
    scores, known, wanted, *_ = world(0)
    found = ns.lab.ranking(scores, wanted, known=known)
    last = wanted.n_items
    assert (found.ndcg(n), found.recall(n), found.hits(n)) == (found.ndcg(last), found.recall(last), found.hits(last))
