"""The stages of `mine` against plain loops: judge, rescore, select, and what a short row gets."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import check_counts, plain_scores, vectors
from scipy.stats import chi2

import naysay as ns
from naysay.detectors import MaxScore
from naysay.mining import Reason

N, ITEMS = 4, 14
GROUPS = np.arange(ITEMS) % 4
QUERIES = vectors(N, 3, 0, values=[-1, 0, 1])  # many scores are equal
CORPUS = vectors(ITEMS, 3, 1, values=[-1, 0, 1])
SCORES = plain_scores(QUERIES, CORPUS)


def mine(k, **options):
    return ns.mine(QUERIES, CORPUS, None, k, **{"depth": ITEMS, "keep_own_text": True, "judge": None, **options})


# ---- judge and rescore ----------------------------------------------------------------------------------------------


class ByTable:
    """Suspicion by anchor and item; it remembers what it was asked."""

    def __init__(self, table):
        self.table = np.array(table).reshape(N, ITEMS)
        self.seen = []

    def suspicion(self, query, negatives):
        self.seen.append(negatives.ids.copy())
        return np.where(negatives.ids >= 0, self.table[np.asarray(query.anchors)[:, None], negatives.ids], 0.0)


TABLES = st.lists(st.sampled_from([0.0, 0.25, 0.49999999999, 0.5, 1.0]), min_size=N * ITEMS, max_size=N * ITEMS)


@settings(max_examples=25)
@given(TABLES, TABLES, st.sampled_from([0.25, 0.5, 0.75]))
def test_several_detectors_as_in_loops(one, two, threshold):
    detectors = {"one": ByTable(one), "two": ByTable(two)}
    judged = mine(ITEMS, judge=detectors, min_score=-0.5)
    left = judged if threshold == 0.5 else judged.rethreshold(threshold)
    check_counts(left.candidates)
    for row in range(N):
        far = [i for i in range(ITEMS) if SCORES[row, i] < -0.5]
        kept = [i for i in range(ITEMS) if max(d.table[row, i] for d in detectors.values()) < threshold]
        assert sorted(left.ids[row][left.mask[row]].tolist()) == [i for i in kept if i not in far]
        slots = np.argsort(left.candidates.ids[row])
        suspicion = left.candidates.suspicion[row, slots]
        for i in range(ITEMS):
            highest = max(d.table[row, i] for d in detectors.values())
            assert suspicion[i] == pytest.approx(0 if i in far else highest, abs=1e-6)
            assert (suspicion[i] >= 0.5) == (i not in far and highest >= 0.5)  # rounding to 32 bits moves none across
        assert all(not np.isin(seen[row], far).any() for d in detectors.values() for seen in d.seen)


@settings(max_examples=25)
@given(st.integers(0, 30), st.none() | st.integers(0, 60), st.integers(1, 6))
def test_rescored_as_in_loops(seed, more, batch):
    table = np.random.default_rng(seed).integers(0, 9, (N, ITEMS)) / 8
    calls = []

    def model(anchors, ids):
        calls.append(list(zip(anchors.tolist(), ids.tolist(), strict=True)))
        return table[anchors, ids]

    positives = ([0, 2], [3, 5])
    budget = None if more is None else 2 + more
    left = ns.mine(
        QUERIES, CORPUS, positives, ITEMS, judge=None, depth=ITEMS, keep_own_text=True,
        rescore=model, rescore_budget=budget, rescore_batch=batch,
    )  # fmt: skip
    turns = []
    for row in range(N):
        free = [i for i in range(ITEMS) if (row, i) not in ((0, 3), (2, 5))]
        free.sort(key=lambda i, row=row: (-SCORES[row, i], i))
        turns += [(turn, row, i) for turn, i in enumerate(free)]
    wanted = [(row, i) for _, row, i in sorted(turns)]
    afforded = wanted[:more]
    assert [pair for call in calls for pair in call] == [(0, 3), (2, 5), *afforded]
    assert all(len(call) == batch for call in calls[:-1])  # across anchors, not one call an anchor
    for row in range(N):
        taken = left.ids[row][left.mask[row]].tolist()
        assert taken == sorted((i for r, i in afforded if r == row), key=lambda i, row=row: (-table[row, i], i))
        assert left.scores[row, : len(taken)].tolist() == [np.float32(table[row, i]) for i in taken]
    assert left.positive_scores[[0, 2]].tolist() == [np.float32(table[0, 3]), np.float32(table[2, 5])]
    assert np.isnan(left.positive_scores[[1, 3]]).all()


# ---- select ---------------------------------------------------------------------------------------------------------


def in_order(row):
    return sorted(range(ITEMS), key=lambda i: (-SCORES[row, i], i))


def plain(row, k, how):
    """The items that are taken, in loops."""
    items = in_order(row)
    if how == "top":
        return items[:k]
    if how == "spread":
        wanted = min(k, ITEMS)
        return [items[(2 * j + 1) * ITEMS // (2 * wanted)] for j in range(wanted)]
    turns = [(sum(GROUPS[other] == GROUPS[i] for other in items[:place]), place, i) for place, i in enumerate(items)]
    return [i for _, _, i in sorted(turns)][:k]


@pytest.mark.parametrize("how", ["top", "spread", "groups"])
@settings(max_examples=15)
@given(k=st.integers(0, ITEMS + 1))
def test_selected_as_in_loops(how, k):
    mined = mine(k, select=how, **({"groups": GROUPS} if how == "groups" else {}))
    check_counts(mined.candidates)
    for row in range(N):
        assert sorted(mined.ids[row][mined.mask[row]].tolist()) == sorted(plain(row, k, how))
        assert mined.dropped.get("not selected", np.zeros(N))[row] == ITEMS - min(k, ITEMS)
    assert (mined.kept_by[mined.mask] == 0).all()
    assert mined.kept_names[0] == how


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), k=st.integers(0, 8), mmr_lambda=st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_mmr_as_in_loops(seed, k, mmr_lambda):
    rng = np.random.default_rng(seed)
    queries, corpus = rng.standard_normal((3, 5)), rng.standard_normal((12, 5))
    mined = ns.mine(queries, corpus, None, k, judge=None, depth=8, select="mmr", mmr_lambda=mmr_lambda)
    scores = plain_scores(queries, corpus)
    unit = corpus / np.linalg.norm(corpus, axis=1, keepdims=True)
    for row in range(3):
        items = sorted(range(12), key=lambda i, row=row: (-scores[row, i], i))[:8]
        taken = []
        for _ in range(k):

            def value(i, taken=tuple(taken), row=row):
                closest = max((unit[i] @ unit[other] for other in taken), default=0.0)
                return mmr_lambda * float(scores[row, i]) - (1 - mmr_lambda) * closest

            taken.append(max((i for i in items if i not in taken), key=value))
        assert sorted(mined.ids[row].tolist()) == sorted(taken)


DRAWS = 4000
ANGLES = np.arccos([0.6, 0.3, 0.0])
ON_A_CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
SAME_QUERY = np.tile([1.0, 0.0], (DRAWS, 1))


def chi_square(how, chances, **options):
    """The probability of the sets of two that were taken, if they are to have these chances."""
    mined = ns.mine(SAME_QUERY, ON_A_CIRCLE, None, 2, judge=None, select=how, seed=5, **options)
    taken = Counter(frozenset(row) for row in mined.ids.tolist())
    statistic = sum((taken[pair] - DRAWS * chance) ** 2 / (DRAWS * chance) for pair, chance in chances.items())
    return chi2.sf(statistic, len(chances) - 1)


def test_random_and_softmax_take_sets_in_proportion():
    uniform = {frozenset(pair): 1 / 3 for pair in ((0, 1), (0, 2), (1, 2))}
    weights = np.exp(np.array([0.6, 0.3, 0.0]) / 0.3)
    weighted = Counter()
    for first, second in permutations(range(3), 2):
        chance = weights[first] / weights.sum() * weights[second] / (weights.sum() - weights[first])
        weighted[frozenset((first, second))] += chance
    assert chi_square("random", uniform) > 1e-4
    assert chi_square("softmax", weighted, temperature=0.3) > 1e-4
    assert chi_square("random", weighted) < 1e-6  # the test can fail


def test_a_random_choice_does_not_depend_on_the_other_anchors():
    for options in ({"select": "random"}, {"select": "softmax", "temperature": 0.3}):
        both = [mine(3, **options, seed=seed) for seed in (0, 0, 1)]
        assert (both[0].ids == both[1].ids).all()
        assert (both[0].ids != both[2].ids).any()
        fewer = ns.mine(QUERIES[:2], CORPUS, None, 3, judge=None, depth=ITEMS, keep_own_text=True, **options)
        assert (fewer.ids == both[0].ids[:2]).all()


# ---- rows that are short --------------------------------------------------------------------------------------------


def test_relax_takes_the_least_suspicious_back():
    suspicion = np.random.default_rng(0).integers(2, 5, (N, ITEMS)) / 4
    suspicion[:, :2] = 0
    judge = ByTable(suspicion)
    mined = mine(6, judge=judge, on_short="relax")
    for row in range(N):
        suspected = sorted(range(2, ITEMS), key=lambda i, row=row: (suspicion[row, i], SCORES[row, i], i))
        assert sorted(mined.ids[row].tolist()) == sorted([0, 1, *suspected[:4]])
        marks = [mined.kept_names[by] for by in mined.kept_by[row]]
        assert marks == ["top"] * 2 + ["relaxed"] * 4
    assert mined.candidates.dropped_for(Reason.SUSPICIOUS).sum() == N * (ITEMS - 6)


def test_random_items_are_uniform_over_what_is_free():
    """Item 0 is near and taken, 1 is suspected, 2 is a known positive; 3 to 7 are free."""
    angles = np.arccos([0.8, 0.95, 0.9, 0.5, 0.4, 0.3, 0.2, 0.1])
    corpus = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    options = {"judge": MaxScore(0.85), "depth": 2, "on_short": "random"}
    mined = ns.mine(SAME_QUERY, corpus, np.full(DRAWS, 2), 3, **options)
    assert (mined.ids[:, 0] == 0).all()
    drawn = mined.ids[:, 1:]
    counts = np.bincount(drawn.ravel(), minlength=8)
    assert counts[:3].tolist() == [0, 0, 0]
    assert (drawn[:, 0] != drawn[:, 1]).all()
    expected = 2 * DRAWS / 5
    assert ((counts[3:] - expected) ** 2 / expected).sum() < 30  # 4 degrees of freedom
    assert (mined.rank[:, 1:] == 0).all()
    assert (mined.source[:, 1:] == mined.source_names.index("random")).all()
    fewer = ns.mine(SAME_QUERY[:50], corpus, np.full(50, 2), 3, **options)
    assert (fewer.ids == mined.ids[:50]).all()
    everything = ns.mine(SAME_QUERY[:50], corpus, np.full(50, 2), 20, **options)
    assert (np.sort(everything.ids, axis=1)[:, -6:] == [0, 3, 4, 5, 6, 7]).all()


def test_two_queries_with_a_positive_each_are_not_pairs():
    assert ns.mine(QUERIES[:2], CORPUS, (3, 5), 2, judge=None).known.pairs()[1].tolist() == [3, 5]


def test_positives_of_fewer_anchors_and_items_are_those_that_are_known():
    mined = ns.mine(QUERIES, CORPUS, ns.Positives.from_pairs([0, 2], [1, 4]), 2, judge=None)
    assert [part.tolist() for part in mined.known.pairs()] == [[0, 2], [1, 4]]
    assert (mined.known.n_anchors, mined.known.n_items) == (N, ITEMS)
