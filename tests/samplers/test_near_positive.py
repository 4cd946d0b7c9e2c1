"""NearPositive: the nearest of the positive, at random among them, below a limit, after a first stage."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import Dynamic
from naysay.samplers.near_positive import NearPositive

pytestmark = pytest.mark.filterwarnings("ignore:.*at least k:naysay.NaysayWarning")  # some rows are short here

COMPILING = settings(deadline=None, max_examples=30)  # a first call compiles
N_ANCHORS, N_ITEMS = 4, 12
# Scores without ties: by the positive (items x items) and by the anchor.
ALIKE = np.random.default_rng(0).permutation(N_ITEMS * N_ITEMS).reshape(N_ITEMS, N_ITEMS) / 20.0
LIKED = np.random.default_rng(1).permutation(N_ANCHORS * N_ITEMS).reshape(N_ANCHORS, N_ITEMS) / 8.0
POSITIVES = {0: 0, 1: 5, 2: 3, 3: 1}
KNOWN = ns.Positives.from_pairs(list(POSITIVES), list(POSITIVES.values()), N_ANCHORS, N_ITEMS)
POOL = ns.pools.Everything(KNOWN)
QUERY = ns.Query([0, 1, 2, 3], positives=[0, 5, 3, 1])


def by(table):
    def score(owners, ids):
        if isinstance(ids, torch.Tensor):
            return torch.from_numpy(table)[owners[:, None], ids]
        return table[owners[:, None], ids]

    return score


@COMPILING
@given(
    st.lists(st.integers(0, N_ANCHORS - 1), max_size=5),
    st.sampled_from([None, 1.0, 3.5]),
    st.sampled_from([None, 4, 9]),
    st.integers(0, N_ITEMS + 2),
    st.booleans(),
)
def test_it_takes_what_the_loops_take(anchors, limit, shortlist, k, in_torch):
    if shortlist is not None:
        k = min(k, shortlist)
    ids = np.array(anchors, np.int64)
    positives = np.array([POSITIVES[anchor] for anchor in anchors], np.int64)
    query = ns.Query(*((torch.from_numpy(ids), torch.from_numpy(positives)) if in_torch else (ids, positives)))
    first = None if shortlist is None else by(LIKED)
    sampler = NearPositive(POOL, by(ALIKE), N_ITEMS, limit=limit, first=first, shortlist=shortlist)
    taken = sampler.sample(query, k, rng=ns.rng_for(0))
    assert isinstance(taken.ids, torch.Tensor) is in_torch
    taken = taken.numpy()
    missing = beyond = 0
    for row, anchor in enumerate(anchors):
        positive = POSITIVES[anchor]
        left = [item for item in range(N_ITEMS) if item != positive]
        if shortlist is not None:
            left = sorted(left, key=lambda item, anchor=anchor: -LIKED[anchor, item])[:shortlist]
        fit = [item for item in left if limit is None or ALIKE[positive, item] <= limit]
        fit.sort(key=lambda item, positive=positive: -ALIKE[positive, item])
        empty = max(k - len(fit), 0)
        assert taken.ids[row].tolist() == fit[:k] + [-1] * empty
        assert taken.scores[row].tolist() == [ALIKE[positive, item] for item in fit[:k]] + [0.0] * empty
        missing += max(min(k, len(left)) - len(fit), 0)
        beyond += max(k - len(left), 0)
    assert taken.dropped == {name: n for name, n in (("exhausted", beyond), ("too close", missing)) if n}
    assert taken.log_q is None
    assert taken.shape == (len(anchors), k)


TRIPLES = np.random.default_rng(2).integers(0, (N_ITEMS, 2, N_ITEMS), (30, 3))
TRIPLES = np.concatenate([TRIPLES, [[0, 0, tail] for tail in range(N_ITEMS)]])  # no tail is left for (0, 0)
PLAUSIBLE = np.random.default_rng(3).permutation(N_ITEMS * 2 * N_ITEMS).reshape(N_ITEMS, 2, N_ITEMS) / 8.0


def plausible(_, triples):
    table = PLAUSIBLE if isinstance(triples, np.ndarray) else torch.from_numpy(PLAUSIBLE)
    return table[triples[..., 0], triples[..., 1], triples[..., 2]]


@COMPILING
@given(
    st.lists(st.integers(0, len(TRIPLES) - 1), max_size=5),
    st.sampled_from([("head",), ("tail",), ("head", "tail")]),
    st.sampled_from([None, 3.5]),
    st.sampled_from([None, 5]),
    st.integers(0, 5),
    st.booleans(),
    st.integers(0, 99),
)
def test_of_triples_it_takes_what_is_like_the_entity_that_it_replaces(rows, sides, limit, shortlist, k, in_torch, seed):
    triples = TRIPLES[rows].reshape(-1, 3)
    query = ns.Query(torch.from_numpy(triples) if in_torch else triples)
    pool = ns.pools.Corruption(TRIPLES, sides=sides)
    first = None if shortlist is None else plausible
    sampler = NearPositive(pool, by(ALIKE), 9, limit=limit, first=first, shortlist=shortlist)
    taken = sampler.sample(query, k, rng=ns.rng_for(seed)).numpy()
    drawn = pool.draw(ns.Query(triples), 9, rng=ns.rng_for(seed))
    for row, triple in enumerate(triples.tolist()):
        left = [
            (side, item)
            for side, item in zip(drawn.side[row].tolist(), drawn.ids[row].tolist(), strict=True)
            if item >= 0
        ]
        if shortlist is not None:

            def whole(candidate, triple=triple):
                return tuple(candidate[1] if part == candidate[0] else triple[part] for part in range(3))

            left = sorted(left, key=lambda candidate: -PLAUSIBLE[whole(candidate)])[:shortlist]
        alike = {candidate: ALIKE[triple[candidate[0]], candidate[1]] for candidate in left}
        fit = [candidate for candidate in left if limit is None or alike[candidate] <= limit]
        fit = sorted(fit, key=lambda candidate: -alike[candidate])[:k]
        empty = k - len(fit)
        assert list(zip(taken.side[row].tolist(), taken.ids[row].tolist(), strict=True)) == fit + [(-1, -1)] * empty
        assert taken.scores[row].tolist() == [alike[candidate] for candidate in fit] + [0.0] * empty
    assert taken.shape == (len(rows), k)


def test_relations_may_be_compared_with_relations():
    pool = ns.pools.Corruption(TRIPLES, sides=("relation",), n_relations=6)
    query = ns.Query(TRIPLES[:20])
    taken = NearPositive(pool, by(ALIKE), 6).sample(query, 1, rng=ns.rng_for(0))
    for triple, found in zip(TRIPLES[:20].tolist(), taken.ids[:, 0].tolist(), strict=True):
        free = [r for r in range(6) if r != triple[1] and not pool.known.contains([[triple[0], r, triple[2]]])[0]]
        assert found == max(free, key=lambda r, triple=triple: ALIKE[triple[1], r])


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0}, {"top_m": 5}])
def test_it_keeps_the_promises_of_a_sampler_on_triples(settings):
    pool = ns.pools.Corruption(TRIPLES)
    ns.check_sampler(NearPositive(pool, by(ALIKE), 8, **settings), pool.known)


@pytest.mark.parametrize("numbers", [{}, {"temperature": 0.3}, {"temperature": 4.0}, {"top_m": 5}])
def test_it_is_dynamic_with_the_positive_in_the_place_of_the_anchor(numbers):
    matched = by(ALIKE)
    near = NearPositive(POOL, matched, 8, **numbers).sample(QUERY, 3, rng=ns.rng_for(7))
    dynamic = Dynamic(POOL, lambda anchors, ids: matched(QUERY.positives, ids), 8, **numbers)
    same = dynamic.sample(QUERY, 3, rng=ns.rng_for(7))
    assert np.array_equal(near.ids, same.ids)
    assert np.array_equal(near.scores, same.scores)


def test_epsilon_truncation_is_uniform_over_the_nearest():
    epsilon, rows = 0.55, 20_000
    nearest = math.ceil((1 - epsilon) * (N_ITEMS - 1))
    query = ns.Query(np.zeros(rows, np.int64), positives=np.zeros(rows, np.int64))
    taken = NearPositive(POOL, by(ALIKE), N_ITEMS - 1, top_m=nearest).sample(query, 2, rng=ns.rng_for(0))
    expected = sorted(range(1, N_ITEMS), key=lambda item: -ALIKE[0, item])[:nearest]
    assert nearest == 5
    for slot in range(2):
        counts = np.bincount(taken.ids[:, slot], minlength=N_ITEMS)
        assert counts[expected].sum() == rows
        assert ((counts[expected] - rows / 5) ** 2 / (rows / 5)).sum() < 33.4  # 4 degrees, p = 1e-6
    assert (taken.ids[:, 0] != taken.ids[:, 1]).all()


def test_the_limit_comes_before_the_nearest():
    sampler = NearPositive(POOL, by(ALIKE), N_ITEMS, top_m=2, limit=3.0)
    below = sorted((item for item in range(1, N_ITEMS) if ALIKE[0, item] <= 3.0), key=lambda item: -ALIKE[0, item])
    seen = set()
    for seed in range(30):
        seen.add(int(sampler.sample(ns.Query([0], positives=[0]), 1, rng=ns.rng_for(seed)).ids[0, 0]))
    assert seen == set(below[:2])


def test_a_candidate_at_the_limit_stays():
    sampler = NearPositive(POOL, by(ALIKE), N_ITEMS, limit=float(ALIKE[0, 4]))
    assert sampler.sample(ns.Query([0], positives=[0]), 1, rng=ns.rng_for(0)).ids.tolist() == [[4]]


def test_softmax_of_the_scores_against_the_positive():
    rows = 20_000
    query = ns.Query(np.zeros(rows, np.int64), positives=np.zeros(rows, np.int64))
    taken = NearPositive(POOL, by(ALIKE), N_ITEMS, 2.5).sample(query, 1, rng=ns.rng_for(0))
    raised = np.exp(ALIKE[0, 1:] / 2.5)
    expected = rows * raised / raised.sum()
    counts = np.bincount(taken.ids[:, 0], minlength=N_ITEMS)[1:]
    assert ((counts - expected) ** 2 / expected).sum() < 47.5  # 10 degrees, p = 8e-7


def test_the_numbers_may_follow_the_step():
    query = ns.Query(QUERY.anchors, positives=QUERY.positives, step=4)
    moving = NearPositive(
        POOL,
        by(ALIKE),
        lambda step: 6 + step,
        top_m=lambda step: step,
        limit=lambda step: float(step),
        first=by(LIKED),
        shortlist=lambda step: 2 * step,
    )
    fixed = NearPositive(POOL, by(ALIKE), 10, top_m=4, limit=4.0, first=by(LIKED), shortlist=8)
    assert np.array_equal(moving.sample(query, 3, rng=ns.rng_for(0)).ids, fixed.sample(query, 3, rng=ns.rng_for(0)).ids)
    with pytest.raises(NaysayError, match=r"NearPositive.sample: `shortlist` must be at least 1, got 0\."):
        moving.sample(ns.Query([0], positives=[0]), 1, rng=ns.rng_for(0))


@pytest.mark.parametrize("anchors", [[], [2]])
@pytest.mark.parametrize("k", [0, 3, 2.5, "each"])
def test_no_row_and_one_row(anchors, k):
    k = np.full(len(anchors), 3) if k == "each" else k
    query = ns.Query(np.array(anchors, np.int64), positives=np.full(len(anchors), 3))
    taken = NearPositive(POOL, by(ALIKE), 2).sample(query, k, rng=ns.rng_for(0))
    assert taken.shape == (len(anchors), np.max(np.ceil(k), initial=0))


@pytest.mark.parametrize(
    "settings",
    [{}, {"temperature": 1.0}, {"top_m": 5}, {"limit": 4.0}, {"first": by(LIKED), "shortlist": 6}],
    ids=lambda settings: next(iter(settings), "nearest"),
)
def test_it_keeps_the_promises_of_a_sampler(settings):
    pairs = [(0, item) for item in range(N_ITEMS)] + [(1, item) for item in range(N_ITEMS - 2)] + [(2, 3), (3, 1)]
    known = ns.Positives.from_pairs(*zip(*pairs, strict=True), N_ANCHORS, N_ITEMS)
    ns.check_sampler(NearPositive(ns.pools.Everything(known), by(ALIKE), 8, **settings), known, k=3)


def test_the_sampler_rejects():
    def refusal(call, *arguments, **named):
        with pytest.raises(NaysayError) as caught:
            call(*arguments, **named)
        return str(caught.value)

    score, rng = by(ALIKE), ns.rng_for(0)
    assert refusal(NearPositive, KNOWN, score, 5).startswith("NearPositive: `pool` must be a pool, with a method draw")
    assert refusal(NearPositive, POOL, 3, 5) == "NearPositive: `score` must be a function score(anchors, ids), got int."
    assert refusal(NearPositive, POOL, score, 0) == "NearPositive: `candidates` must be at least 1, got 0."
    assert refusal(NearPositive, POOL, score, None) == "NearPositive: `candidates` must be a whole number, got None."
    for bad in (-1.0, float("nan"), float("inf"), True, "1", None):
        rule = f"NearPositive: `temperature` must be a finite number at least 0, got {bad!r}."
        assert refusal(NearPositive, POOL, score, 5, bad) == rule
    assert refusal(NearPositive, POOL, score, 5, top_m=0) == "NearPositive: `top_m` must be at least 1, got 0."
    assert (
        refusal(NearPositive, POOL, score, 5, top_m=6)
        == "NearPositive: `top_m` must be at most `candidates`, 5, got 6."
    )
    rule = "NearPositive: `top_m` must be left out with a `temperature`, got 3. Only one of the two softens the choice."
    assert refusal(NearPositive, POOL, score, 5, 1.0, top_m=3) == rule
    rule = "NearPositive: `limit` must be a finite number, got nan."
    assert refusal(NearPositive, POOL, score, 5, limit=float("nan")) == rule
    rule = "NearPositive: `shortlist` must be given with `first`, and only then, got 3."
    assert refusal(NearPositive, POOL, score, 5, shortlist=3) == rule
    assert refusal(NearPositive, POOL, score, 5, first=score).endswith("given with `first`, and only then, got None.")
    rule = "NearPositive: `first` must be a function score(anchors, ids), got int."
    assert refusal(NearPositive, POOL, score, 5, first=3, shortlist=3) == rule
    rule = "NearPositive: `shortlist` must be at most `candidates`, 5, got 6."
    assert refusal(NearPositive, POOL, score, 5, first=score, shortlist=6) == rule
    rule = "NearPositive: `top_m` must be at most `shortlist`, 3, got 4."
    assert refusal(NearPositive, POOL, score, 5, first=score, shortlist=3, top_m=4) == rule
    assert refusal(NearPositive, POOL, score, 5, on_short="skip").startswith("NearPositive: `on_short` must be one of")
    sampler = NearPositive(POOL, score, 5, top_m=2)
    assert refusal(sampler.sample, [0], 1, rng=rng).startswith(
        "NearPositive.sample: `query` must be a Query, got list."
    )
    rule = "NearPositive.sample: `query.positives` must be given, got None. Pass Query(anchors, positives=items)."
    assert refusal(sampler.sample, ns.Query([0]), 1, rng=rng) == rule
    assert refusal(sampler.sample, ns.Query([[0, 1, 2]]), 1, rng=rng).endswith("Use naysay.pools.Corruption.")
    both = NearPositive(ns.pools.Corruption(TRIPLES, sides=("relation", "tail")), score, 8)
    rule = (
        "NearPositive.sample: `pool` must be one that replaces relations or entities, got ['relation', 'tail']. "
        "Make two pools, with a sampler each, and put them into Mixed."
    )
    assert refusal(both.sample, ns.Query(TRIPLES), 1, rng=rng) == rule
    rule = "NearPositive.sample: `k` must be at most `top_m`, 2, got 3."
    assert refusal(sampler.sample, QUERY, 3, rng=rng) == rule
    two = NearPositive(POOL, score, 5, first=by(LIKED), shortlist=3)
    assert refusal(two.sample, QUERY, 4, rng=rng) == "NearPositive.sample: `k` must be at most `shortlist`, 3, got 4."
    none = NearPositive(POOL, score, 5, limit=-1.0, on_short="raise")
    with pytest.raises(NaysayError, match=r"NearPositive\.sample: row 0 has 0 candidates left of the 1 requested"):
        none.sample(QUERY, 1, rng=rng)
