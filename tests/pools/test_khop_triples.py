"""KHop on triples (SANS): entities near the end that is kept, against breadth-first search."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay.pools import KHop

N_ENTITIES, N_RELATIONS = 9, 2


def ball(triples, start, low, high):
    """The entities at distance low ... high from `start`, over the triples in both directions."""
    found, edge = {start: 0}, [start]
    while edge:
        node, *edge = edge
        for head, _, tail in triples:
            for a, b in ((head, tail), (tail, head)):
                if a == node and b not in found:
                    found[b] = found[node] + 1
                    edge.append(b)
    return {node for node, distance in found.items() if low <= distance <= high} - {start}


def candidates(train, known, triple, side, hops):
    """By loops: near the end that is kept, without what makes a true triple and the triple's own part."""
    kept, own = (triple[2], triple[0]) if side == 0 else (triple[0], triple[2])
    near = ball(train, kept, *hops)
    made = {node: (node, triple[1], triple[2]) if side == 0 else (triple[0], triple[1], node) for node in near}
    return {node for node in near if made[node] not in known and node != own}


triples_of = st.lists(
    st.tuples(st.integers(0, N_ENTITIES - 1), st.integers(0, 1), st.integers(0, N_ENTITIES - 1)),
    min_size=1,
    max_size=14,
)


@given(triples_of, triples_of, st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 3)]), st.integers(0, 99), st.booleans())
def test_rows_are_what_loops_say(train, more, hops, seed, as_torch):
    graph, held_out = (ns.Triples(np.array(part), N_ENTITIES, N_RELATIONS) for part in (train, more))
    pool = KHop(graph, hops, held_out)
    asked = np.array((train + more) * 2)  # also triples that make no edges
    query = ns.Query(torch.from_numpy(asked) if as_torch else asked)
    drawn = pool.draw(query, N_ENTITIES, rng=ns.rng_for(seed))
    missing = 0
    for row, triple in enumerate(map(tuple, asked.tolist())):
        both = {side: candidates(train, {*train, *more}, triple, side, hops) for side in (0, 2)}
        line = [item for item in drawn.ids[row].tolist() if item >= 0]
        assert drawn.ids[row].tolist() == line + [-1] * (N_ENTITIES - len(line))
        missing += N_ENTITIES - len(line)
        side = drawn.side[row, 0]
        assert (drawn.side[row] == [side] * len(line) + [-1] * (N_ENTITIES - len(line))).all()
        if line:
            assert sorted(line) == sorted(both[side])
            logs = [-np.log(len(line) - slot) for slot in range(len(line))]
            logs[0] += np.log(0.5)
            np.testing.assert_allclose(drawn.log_q[row, : len(line)], logs, atol=1e-12)
        else:
            assert not both[0] or not both[2]
    assert drawn.dropped == ({"exhausted": missing} if missing else {})


WORLD = np.array([[0, 0, 1], [1, 0, 2], [2, 1, 3], [3, 1, 4], [4, 0, 5], [0, 1, 2], [5, 1, 6]])


def test_a_neighbour_by_another_relation_is_a_candidate_and_the_kept_end_is_not():
    pool = KHop(ns.Triples(WORLD), hops=1, on_short="pad")
    tails = Counter()
    for step in range(40):
        drawn = pool.draw(ns.Query([[0, 0, 1]]), 3, rng=ns.rng_for(0, step))
        if drawn.side[0, 0] == 2:
            tails.update(drawn.ids[0].tolist())
    assert set(tails) == {2, -1}  # 1 and 2 are next to 0; (0, 0, 1) is true, (0, 1, 2) is another relation


@pytest.mark.parametrize("distinct", [True, False])
def test_sides_and_ids_come_by_their_chances(distinct):
    pool = KHop(ns.Triples(WORLD), hops=(1, 3), distinct=distinct)
    triple, rows = [2, 1, 3], 8000
    drawn = pool.draw(ns.Query([triple] * rows), 2, rng=ns.rng_for(0))
    seen = Counter(zip(drawn.side[:, 0].tolist(), drawn.ids[:, 0].tolist(), strict=True))
    known = {tuple(each) for each in WORLD.tolist()}
    expected = {}
    for side in (0, 2):
        near = candidates(WORLD.tolist(), known, tuple(triple), side, (1, 3))
        expected |= {(side, item): rows / 2 / len(near) for item in near}
    assert set(seen) == set(expected)
    assert chisquare([seen[cell] for cell in expected], list(expected.values())).pvalue > 1e-5
    chance = np.exp(drawn.log_q[0, 0]) * rows
    assert chance == pytest.approx(expected[drawn.side[0, 0], drawn.ids[0, 0]])
