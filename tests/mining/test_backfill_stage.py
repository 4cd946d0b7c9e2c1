"""Backfill: what a short row gets is what the policy says, marked, never twice, never what is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_search import candidates_from, check_counts, kept_ids

import naysay as ns
from naysay.errors import NaysayError
from naysay.mining import Reason, backfill, select

N, M, ITEMS = 4, 6, 14


def score(anchors, ids):
    return anchors + ids / 100


def short_lists(seed, k):
    """Lists of which some are known, some suspicious, and k of the rest selected."""
    rng = np.random.default_rng(seed)
    ids = np.stack([rng.permutation(ITEMS)[:M] for _ in range(N)])
    ids[2, 1:] = -1
    found = candidates_from(ids, rng.integers(0, 4, (N, M)) / 4)
    known = ns.Positives.from_pairs(*rng.integers(0, (N, ITEMS), (12, 2)).T, N, ITEMS).with_ignored([3], [5])
    found = found.drop(known.contains(np.arange(N), ids, relation="any"), Reason.POSITIVE)
    suspicion = np.where(found.kept, rng.integers(0, 5, (N, M)) / 4, 0).astype(np.float32)
    found = type(found)(**{name: getattr(found, name) for name in found.__slots__} | {"suspicion": suspicion})
    return select(found.drop(suspicion >= 0.5, Reason.SUSPICIOUS), k), known


@pytest.mark.parametrize("policy", ["pad", "drop", "relax", "random"])
@given(seed=st.integers(0, 200), k=st.integers(0, 7))
def test_as_in_loops(policy, seed, k):
    found, known = short_lists(seed, k)
    given = {"known": known, "score": score, "rng": ns.rng_for(seed)} if policy == "random" else {}
    filled = backfill(found, k, policy, **given)
    check_counts(filled)
    for row in range(N):
        had = kept_ids(found)[row]
        missing = max(k - len(had), 0)
        now = kept_ids(filled)[row]
        assert len(set(now)) == len(now)
        if policy == "pad" or missing == 0:
            assert now == had
        elif policy == "drop":
            assert now == []
            assert filled.dropped["short anchor"][row] == len(had) if had else True
        elif policy == "relax":
            slots = [s for s in range(M) if found.dropped_for(Reason.SUSPICIOUS)[row, s]]
            slots.sort(key=lambda s, row=row: (found.suspicion[row, s], found.scores[row, s], found.ids[row, s]))
            back = slots[:missing]
            assert sorted(now) == sorted([*had, *found.ids[row, back].tolist()])
            for slot in back:
                assert filled.kept_names[filled.kept_by[row, slot]] == "relaxed"
        else:
            listed = {i for i in found.ids[row].tolist() if i >= 0}
            barred = {i for i in range(ITEMS) if known.contains([row], [i], relation="any")[0]} | listed
            new = [i for i in now if i not in had]
            assert not set(new) & barred
            assert len(new) == min(missing, ITEMS - len(barred))
            for slot in np.flatnonzero(filled.kept[row, M:]) + M:
                assert filled.kept_names[filled.kept_by[row, slot]] == "random"
                assert filled.source_names[filled.source[row, slot]] == "random"
                assert filled.rank[row, slot] == 0
                assert filled.scores[row, slot] == np.float32(score(row, filled.ids[row, slot]))


def test_random_is_uniform_over_what_is_free():
    draws = 3000
    found = candidates_from(np.tile([0, 1], (draws, 1)), np.zeros((draws, 2)))
    known = ns.Positives.from_pairs(np.arange(draws), np.full(draws, 2), draws, 8)
    found = found.drop(found.ids == 1, Reason.SUSPICIOUS)
    filled = backfill(select(found, 2), 2, "random", known=known, score=score, rng=ns.rng_for(1))
    counts = np.bincount(filled.ids[:, 2], minlength=8)
    assert counts[:3].tolist() == [0, 0, 0]  # taken, suspicious, known
    assert ((counts[3:] - 600) ** 2 / 600).sum() < 30  # 4 degrees of freedom
    again = backfill(select(found, 2), 2, "random", known=known, score=score, rng=ns.rng_for(1))
    assert (again.ids == filled.ids).all()
    part = {"known": ns.Positives.from_pairs(np.arange(50), np.full(50, 2), 50, 8), "score": score}
    block = backfill(select(found, 2).take(np.arange(100, 150)), 2, "random", **part, rng=ns.rng_for(1), first=100)
    assert (block.ids == filled.ids[100:150]).all()  # an anchor gets the same in any block


def test_one_k_for_each_anchor_and_raise():
    found = candidates_from([[1, 2], [3, -1]], [[0.5, 0.4], [0.3, 0]])
    counts = np.array([2, 1])
    taken = select(found, counts)
    assert backfill(taken, counts, "raise") is taken
    with pytest.raises(NaysayError, match=r"^backfill: anchor 0 has 2 of 3 negatives \(2 such anchors\)\."):
        backfill(select(found, 3), 3, "raise")
    with pytest.raises(NaysayError, match=r"anchor 1 has 1 of 2 negatives \(1 such anchor\)\. Pass a smaller"):
        backfill(select(found, 2), 2, "raise")


FOUND = candidates_from([[1]], [[0.5]])
KNOWN = ns.Positives.from_pairs([0], [0], 1, 4)
