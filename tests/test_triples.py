"""Triples: membership, rows by side and the Bernoulli chance, against sets and loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay import NaysayError, Triples
from naysay.types import HEAD, RELATION, TAIL

TRIPLE = st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4))
SIDE_SETS = [(HEAD,), (RELATION,), (TAIL,), (HEAD, TAIL), (HEAD, RELATION), (HEAD, RELATION, TAIL)]


def all_triples():
    return np.stack(np.meshgrid(np.arange(5), np.arange(3), np.arange(5), indexing="ij"), -1).reshape(-1, 3)


@given(st.lists(TRIPLE, max_size=30))
@settings(max_examples=40, deadline=None)
def test_contains_length_and_duplicates_are_those_of_a_set(triples):
    known = Triples(triples, 5, 3)
    truth = set(triples)
    assert len(known) == len(truth)
    assert known.duplicates == len(triples) - len(truth)
    assert [tuple(row) for row in known.array.tolist()] == sorted(truth)
    everything = all_triples()
    assert known.contains(everything).tolist() == [tuple(row) in truth for row in everything.tolist()]


@given(st.lists(TRIPLE, max_size=25), st.sampled_from(SIDE_SETS))
@settings(max_examples=40, deadline=None)
def test_rows_of_an_index_list_what_completes_the_other_two_parts(triples, sides):
    index = Triples(triples, 5, 3).index(sides)
    everything = all_triples()
    rows = index.rows(everything)
    assert rows.shape == (len(everything), len(sides))
    known = index.known
    for triple, places in zip(everything.tolist(), rows.tolist(), strict=True):
        for side, row in zip(sides, places, strict=True):
            others = [part for part in range(3) if part != side]
            expected = {t[side] for t in triples if all(t[part] == triple[part] for part in others)}
            assert known.indices[known.indptr[row] : known.indptr[row + 1]].tolist() == sorted(expected)


@given(st.lists(TRIPLE, max_size=25))
@settings(max_examples=40, deadline=None)
def test_head_chance_is_tails_per_head_over_both(triples):
    truth = set(triples)
    chance = Triples(triples, 5, 3).head_chance
    assert chance.shape == (3,)
    for relation in range(3):
        mine = [(h, t) for h, r, t in truth if r == relation]
        if not mine:
            assert chance[relation] == 0.5
            continue
        tph = len(mine) / len({h for h, _ in mine})
        hpt = len(mine) / len({t for _, t in mine})
        assert chance[relation] == pytest.approx(tph / (tph + hpt), abs=1e-12)


@given(st.lists(TRIPLE, max_size=10), st.lists(TRIPLE, max_size=10), st.lists(TRIPLE, max_size=10))
@settings(max_examples=25, deadline=None)
def test_union_is_that_of_sets(one, two, three):
    both = Triples(one, 5, 3).union(Triples(two, 5, 3), np.array(three, np.int64).reshape(-1, 3))
    assert {tuple(row) for row in both.array.tolist()} == {*one, *two, *three}
    assert (both.n_entities, both.n_relations) == (5, 3)


def test_sizes_default_to_the_largest_id_and_grow_in_a_union():
    small = Triples([[0, 0, 3], [1, 1, 0]])
    assert (small.n_entities, small.n_relations) == (4, 2)
    large = small.union([[9, 0, 0]], Triples([[0, 0, 0]], 3, 7))
    assert (large.n_entities, large.n_relations) == (10, 7)
    assert (small.union().n_entities, small.union().n_relations) == (4, 2)


def test_empty_triples():
    for empty in ([], np.empty((0, 3)), np.empty((0, 3), np.int32)):
        known = Triples(empty, 2, 1)
        assert len(known) == 0
        assert known.contains([[0, 0, 1]]).tolist() == [False]
        assert known.contains([]).shape == (0,)
        assert known.head_chance.tolist() == [0.5]
    nothing = Triples([])
    assert (nothing.n_entities, nothing.n_relations) == (0, 0)
    assert nothing.head_chance.shape == (0,)


def test_forms_that_are_taken():
    rows = [[0, 0, 1], [1, 0, 2], [0, 0, 1]]
    for form in (rows, tuple(map(tuple, rows)), np.array(rows, np.uint64), np.array(rows, np.int8), torch.tensor(rows)):
        known = Triples(form)
        assert known.array.tolist() == [[0, 0, 1], [1, 0, 2]]
        assert known.duplicates == 1
    assert repr(known) == "Triples(2 triples, 3 entities, 1 relations, duplicates=1)"


def test_the_given_array_is_left_alone():
    given = np.array([[4, 0, 1], [0, 0, 1], [4, 0, 1]])
    before = given.copy()
    Triples(given).contains(given)
    assert (given == before).all()


def test_ids_near_the_limit_make_no_key_twice():
    last = (1 << 31) - 2
    triples = [[0, 0, last], [last, last, 0], [last, 2, last], [1, last, 1]]
    known = ns.Triples(triples, last + 1)
    assert known.contains(triples).all()
    assert not known.contains([[last, last, 1], [last, 1, last], [0, last, 0], [0, 1, last], [2, 0, 1]]).any()
    for sides in SIDE_SETS:
        rows = known.index(sides).rows(known.array)
        assert all(len(set(column)) == 4 for column in rows.T.tolist())


def test_many_triples_against_sorted_keys():
    rng = np.random.default_rng(6)
    triples = rng.integers(0, [3000, 40, 3000], (60_000, 3))
    known = ns.Triples(triples)
    asked = np.concatenate([rng.integers(0, [3000, 40, 3000], (60_000, 3)), triples[:1000]])
    keys = (triples[:, 0] * 40 + triples[:, 1]) * 3000 + triples[:, 2]
    wanted = (asked[:, 0] * 40 + asked[:, 1]) * 3000 + asked[:, 2]
    assert (known.contains(asked) == np.isin(wanted, keys)).all()
    assert known.contains(triples).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Triples([0, 0, 1]),
            r"^Triples: `triples` must be of shape \(n, 3\): head, relation, tail, got shape \(3,\)\.$",
        ),
        (lambda: Triples([[0, 1]]), r"^Triples: `triples` must be of shape \(n, 3\): .*, got shape \(1, 2\)\.$"),
        (
            lambda: Triples(np.empty((0, 5))),
            r"^Triples: `triples` must be of shape \(n, 3\): .*, got shape \(0, 5\)\.$",
        ),
        (lambda: Triples(None), r"^Triples: `triples` must be of shape \(n, 3\): .*, got shape \(\)\.$"),
        (
            lambda: Triples([[0.0, 1.0, 2.0]]),
            r"^Triples: `triples` must be whole numbers, got dtype float64\. Ids count",
        ),
        (
            lambda: Triples([[0, 0, 1]]).contains([["a", "b", "c"]]),
            r"^Triples\.contains: `triples` must be whole numbers, got dtype <U1\. Ids count",
        ),
        (
            lambda: Triples([[0, 0, 1]]).ids([["a", "b", "c"]]),
            r"^Triples\.ids: `names` must be of triples that were made from names, got triples that were made from ids",
        ),
        (
            lambda: Triples([["a", "b", "c"]]).ids([["a", "b", "d"]]),
            r"^Triples\.ids: `triples` must be among the 2 known names, got 'd' at row 0 \(1 such row\)",
        ),
        (
            lambda: Triples([["a", "b", "c"]], entity_names=["a"]),
            r"^Triples: `entity_names` must be a Vocabulary, got list\. Pass Vocabulary\(names\), or True to make",
        ),
        (
            lambda: Triples([[0, 0, 1], [0, 0, -1], [-2, 0, 0]]),
            r"^Triples: `triples` must be of ids within 2 entities and 1 relations, got \[0, 0, -1\] at row 1 \(2 ",
        ),
        (
            lambda: Triples([[0, 0, 5]], n_entities=5),
            r"^Triples: `triples` must be of ids within 5 entities and 1 relations, got \[0, 0, 5\] at row 0 \(1",
        ),
        (
            lambda: Triples([[0, 3, 1]], n_relations=3),
            r"^Triples: `triples` must be of ids within 2 entities and 3 relations, got \[0, 3, 1\] at row 0",
        ),
        (lambda: Triples([], n_entities=-1), r"^Triples: `n_entities` must be at least 0, got -1\.$"),
        (lambda: Triples([], n_entities=1.5), r"^Triples: `n_entities` must be a whole number, got 1\.5\.$"),
        (lambda: Triples([], n_entities=1 << 31), r"^Triples: `n_entities` must be below 2\^31, got 2147483648\.$"),
        (lambda: Triples([[0, 1 << 40, 0]]), r"^Triples: `n_relations` must be below 2\^31, got 1099511627777\.$"),
        (lambda: Triples([], n_relations="2"), r"^Triples: `n_relations` must be a whole number, got '2'\.$"),
        (
            lambda: Triples([[0, 0, 1]]).contains([[0, 0, 2]]),
            r"^Triples\.contains: `triples` must be of ids within 2 entities and 1 relations, got \[0, 0, 2\] at row 0",
        ),
        (lambda: Triples([[0, 0, 1]]).contains([0, 0, 1]), r"^Triples\.contains: `triples` must be of shape \(n, 3\)"),
        (lambda: Triples([[0, 0, 1]]).union([0, 0, 1]), r"^Triples\.union: `triples` must be of shape \(n, 3\)"),
    ],
)
def test_what_is_rejected(call, message):
    with pytest.raises(NaysayError, match=message):
        call()
