"""Fading: replacement by loops, what is never replaced, lists that run out, state, promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.pools import Fading

LISTS = np.array([[5, 6, 7, 8], [4, 3, 2, -1]])
MINED = np.array([[0.7, 0.6, 0.5, 0.4], [0.6, 0.5, 0.4, 0.0]])


def seen(pool, step, scores, anchors=(0, 1)):
    """All active ids, with the given scores of the model."""
    ids = pool.active_ids(list(anchors))
    pool.observe(ns.Query(list(anchors), step=step), ns.Negatives(ids, scores=np.array(scores)))


def test_scores_that_stay_replace_nothing():
    pool = Fading(LISTS, MINED, 2, check=1)
    for step in range(1, 20):
        seen(pool, step, MINED[:, :2])
    assert pool.active_ids([0, 1]).tolist() == [[5, 6], [4, 3]]


def test_replacement_is_in_the_order_of_the_list_until_it_runs_out():
    pool = Fading(LISTS, MINED, 2, check=1)
    seen(pool, 1, [[0.1, 0.6], [0.1, 0.1]])
    assert pool.active_ids([0, 1]).tolist() == [[7, 6], [2, -1]]
    seen(pool, 2, [[0.45, 0.5], [0.39, 0.0]])  # 1.15 x 0.45 is above 0.5, 1.15 x 0.5 is below 0.6
    assert pool.active_ids([0, 1]).tolist() == [[7, 8], [2, -1]]
    seen(pool, 3, [[-0.9, -0.1], [0.0, 0.0]])  # -0.9 is beyond the level
    assert pool.active_ids([0, 1]).tolist() == [[7, -1], [-1, -1]]
    drawn = pool.draw(ns.Query([0, 1]), 2, rng=ns.rng_for(0))
    assert drawn.ids.tolist() == [[7, -1], [-1, -1]]
    assert drawn.dropped == {"exhausted": 3}


def test_an_anchor_is_checked_every_so_many_steps():
    pool = Fading(LISTS, MINED, 1, check=100)
    seen(pool, 99, [[0.1], [0.1]])
    assert pool.active_ids([0]).tolist() == [[5]]
    seen(pool, 100, [[0.1]], [0])
    seen(pool, 150, [[0.1], [0.1]])
    assert pool.active_ids([0, 1]).tolist() == [[6], [3]]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2**32))
def test_by_loops(active, seed):
    rng = np.random.default_rng(seed)
    lists = np.stack([rng.permutation(12)[:6] for _ in range(3)])
    mined = rng.uniform(-1, 1, (3, 6))
    known = ns.Positives.from_pairs(*rng.integers(0, (3, 12), (6, 2)).T, 3, 12)
    pool = Fading(lists, mined, active, known, check=1)
    plain = []
    for a in range(3):
        kept = [(int(i), s) for i, s in zip(lists[a], mined[a], strict=True) if not known.contains([a], [int(i)])[0]]
        plain.append({"active": kept[:active] + [None] * (active - len(kept[:active])), "spare": kept[active:]})
    for step in range(1, 5):
        scores = rng.uniform(-1, 1, (3, active))
        for a in range(3):
            for slot, one in enumerate(plain[a]["active"]):
                if one is not None and 1.15 * scores[a, slot] < one[1] and abs(scores[a, slot]) < 0.8:
                    plain[a]["active"][slot] = plain[a]["spare"].pop(0) if plain[a]["spare"] else None
        seen(pool, step, scores, (0, 1, 2))
        wanted = [[-1 if one is None else one[0] for one in row["active"]] for row in plain]
        assert pool.active_ids([0, 1, 2]).tolist() == wanted


def test_state_in_mid_run_and_promises():
    pool, other = (Fading(LISTS, MINED, 2, check=1) for _ in range(2))
    seen(pool, 1, [[0.1, 0.6], [0.1, 0.1]])
    other.restore(pool.state())
    for one in (pool, other):
        seen(one, 2, [[0.1, 0.1], [0.1, 0.1]])
    assert pool.active_ids([0, 1]).tolist() == other.active_ids([0, 1]).tolist()
    rng = np.random.default_rng(0)
    known = ns.Positives.from_pairs(*rng.integers(0, (5, 12), (20, 2)).T, 5, 12)
    lists = np.stack([rng.permutation(12)[:9] for _ in range(5)])
    ns.check_pool(Fading(lists, np.zeros(lists.shape), 5, known), known, n=3)


def test_errors():
    for call, sentence in (
        (
            lambda: Fading(LISTS, MINED[:1], 1),
            "Fading: `lists` must be ids of shape (n_anchors, m), with scores of that",
        ),
        (lambda: Fading(LISTS, MINED, 1, fade=0.5), "Fading: `fade` must be"),
        (lambda: Fading(LISTS, MINED, 0), "Fading: `active` must be at least 1"),
        (
            lambda: Fading(LISTS, MINED, 1).observe(ns.Query([0]), ns.Negatives(np.zeros((1, 1), int))),
            "Fading.observe: `negatives` must be with scores",
        ),
    ):
        with pytest.raises(NaysayError) as caught:
            call()
        assert str(caught.value).startswith(sentence)
