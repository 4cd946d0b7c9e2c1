"""Known pairs, queries, negatives, names and random numbers: what everything else is built on."""

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from tests.contract import names

N_ANCHORS, N_ITEMS = 5, 9
PAIRS = st.lists(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, N_ITEMS - 1)), max_size=40)


def made(pairs):
    return ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], N_ANCHORS, N_ITEMS)


def as_set(known):
    return set(zip(*(part.tolist() for part in known.pairs()), strict=True))


@given(PAIRS, PAIRS)
def test_contains_and_count_are_those_of_a_set(pairs, ignored):
    known = made(pairs).with_ignored([a for a, _ in ignored], [i for _, i in ignored])
    anchors = np.arange(N_ANCHORS)
    items = np.tile(np.arange(N_ITEMS), (N_ANCHORS, 1))
    ignored = set(ignored) - set(pairs)  # a pair that is positive stays positive
    for relation, wanted in (("positive", set(pairs)), ("ignore", ignored), ("any", set(pairs) | ignored)):
        expected = [[(a, i) in wanted for i in range(N_ITEMS)] for a in range(N_ANCHORS)]
        assert known.contains(anchors, items, relation=relation).tolist() == expected
        assert known.count(anchors, relation=relation).tolist() == [sum(row) for row in expected]
    assert as_set(known) == set(pairs) | ignored
    assert known.item_counts().tolist() == [sum(i == item for _, i in set(pairs)) for item in range(N_ITEMS)]


def test_an_empty_slot_is_never_known():
    assert made([(0, 0)]).contains([0], [[-1, 0]]).tolist() == [[False, True]]


@given(PAIRS, PAIRS)
def test_union_holds_the_pairs_of_both(one, other):
    assert as_set(made(one).union(made(other))) == set(one) | set(other)


def test_union_takes_new_anchors_and_items():
    joined = ns.Positives.from_pairs([0], [1], 1, 2).union(ns.Positives.from_pairs([3], [5], 4, 6))
    assert (joined.n_anchors, joined.n_items) == (4, 6)
    assert as_set(joined) == {(0, 1), (3, 5)}


def test_every_constructor_gives_the_same_pairs(tmp_path):
    pairs = [(0, 1), (0, 3), (2, 0), (2, 0), (4, 8)]
    anchors, items = map(list, zip(*pairs, strict=True))
    wanted = as_set(made(pairs))
    table = pa.table({"user": anchors, "item": items})
    pq.write_table(table, tmp_path / "pairs.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "pairs.csv")
    matrix = scipy.sparse.coo_array((np.ones(5), (anchors, items)), shape=(N_ANCHORS, N_ITEMS))
    columns = {"anchors": "user", "items": "item"}
    for known in (
        ns.Positives.from_scipy(matrix),
        ns.Positives.from_csr([0, 2, 2, 4, 4, 5], [3, 1, 0, 0, 8], N_ITEMS),
        names.from_table(table, **columns, n_anchors=N_ANCHORS, n_items=N_ITEMS),
        ns.Positives.from_parquet(tmp_path / "pairs.parquet", **columns, n_anchors=N_ANCHORS, n_items=N_ITEMS),
        ns.Positives.from_csv(tmp_path / "pairs.csv", **columns, n_anchors=N_ANCHORS, n_items=N_ITEMS),
    ):
        assert as_set(known) == wanted
        assert (known.n_anchors, known.n_items) == (N_ANCHORS, N_ITEMS)
    assert made(pairs).duplicates == 1


def test_names_become_ids_and_are_saved_beside_the_pairs(tmp_path):
    table = pa.table({"user": ["bo", "al", "bo"], "item": ["x", "y", "z"]})
    known = names.from_table(table, anchors="user", items="item")
    assert known.contains(["bo", "al"], [["x", "y", "z"], ["x", "y", "z"]]).tolist() == [
        [True, False, True],
        [False, True, False],
    ]
    known.save(tmp_path / "known")
    again = ns.Positives.load(tmp_path / "known")
    assert as_set(again) == as_set(known)
    assert again.item_names.names(again.item_names.ids(["z", "x"])) == ["z", "x"]
    assert again.contains(["al"], ["y"]).tolist() == [True]


@given(PAIRS, PAIRS)
def test_saved_and_loaded_pairs_are_the_same(pairs, ignored):
    import tempfile

    known = made(pairs).with_ignored([a for a, _ in ignored], [i for _, i in ignored])
    with tempfile.TemporaryDirectory() as folder:
        known.save(f"{folder}/known")
        again = ns.Positives.load(f"{folder}/known", mmap=False)
    for relation in ("positive", "ignore", "any"):
        assert again.count(relation=relation).tolist() == known.count(relation=relation).tolist()
    assert as_set(again) == as_set(known)


def test_edges_go_both_ways_unless_directed():
    assert as_set(ns.Positives.from_edges([0, 1], [1, 2], 3)) >= {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert (1, 0) not in as_set(ns.Positives.from_edges([0, 1], [1, 2], 3, directed=True))


def test_triples_know_what_they_hold_and_are_saved(tmp_path):
    given = [("a", "likes", "b"), ("b", "likes", "c"), ("a", "knows", "c")]
    triples = ns.Triples(given, entity_names=True, relation_names=True)
    assert triples.contains(triples.ids([("a", "likes", "b"), ("a", "likes", "c")])).tolist() == [True, False]
    assert triples.names(triples.ids([("b", "likes", "c")])) == [("b", "likes", "c")]
    triples.save(tmp_path / "triples")
    again = ns.Triples.load(tmp_path / "triples")
    assert again.names(again.ids([("a", "knows", "c")])) == [("a", "knows", "c")]
    joined = ns.Triples([[0, 0, 1]], 3, 1).union([[1, 0, 2]])
    assert joined.contains([[0, 0, 1], [1, 0, 2], [2, 0, 0]]).tolist() == [True, True, False]


def test_a_vocabulary_turns_names_to_ids_and_back():
    words = ns.Vocabulary(["b", "a", "c"])
    assert words.names(words.ids(["c", "b"])) == ["c", "b"]
    assert len({*words.ids(["a", "b", "c"]).tolist()}) == 3


# ---- Query and Negatives --------------------------------------------------------------------------------------------


def test_negatives_mask_what_is_empty_attracted_or_ignored():
    negatives = ns.Negatives(np.array([[4, -1, 2, 3]]), relation=np.array([[0, 0, 1, 2]], np.int8))
    assert negatives.mask.tolist() == [[True, False, False, False]]
    assert negatives.shape == (1, 4)
    assert ns.Negatives(np.array([[4, -1]])).mask.tolist() == [[True, False]]


def test_negatives_are_frozen_and_compared_by_identity():
    one, other = ns.Negatives(np.array([[1]])), ns.Negatives(np.array([[1]]))
    assert one != other
    assert one == one
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.ids = np.array([[2]])


def test_negatives_go_to_torch_and_back():
    negatives = ns.Negatives(np.array([[1, -1]]), scores=np.array([[0.5, 0.0]], np.float32), log_q=np.zeros((1, 2)))
    there = negatives.to("cpu")
    assert torch.is_tensor(there.ids)
    assert torch.is_tensor(there.scores)
    assert there.mask.tolist() == [[True, False]]
    back = there.numpy()
    assert back.ids.tolist() == [[1, -1]]
    assert back.scores.dtype == np.float32


def test_samplers_answer_in_the_array_type_of_the_query():
    pool = ns.pools.Everything(made([(0, 1)]))
    scores = np.linspace(0, 1, N_ITEMS, dtype=np.float32)
    seen = []

    def score(anchors, ids):
        seen.append((type(anchors), type(ids)))
        return torch.from_numpy(scores)[ids] if torch.is_tensor(ids) else scores[ids]

    sampler = ns.samplers.Dynamic(pool, score, candidates=6)
    plain = sampler.sample(ns.Query([0, 1]), 2, rng=ns.rng_for(0))
    tensor = sampler.sample(ns.Query(torch.tensor([0, 1])), 2, rng=ns.rng_for(0))
    assert isinstance(plain.ids, np.ndarray)
    assert torch.is_tensor(tensor.ids)
    assert tensor.ids.tolist() == plain.ids.tolist()
    assert seen == [(np.ndarray, np.ndarray), (torch.Tensor, torch.Tensor)]
    assert isinstance(pool.draw(ns.Query(torch.tensor([0])), 2, rng=ns.rng_for(0)).ids, np.ndarray)


# ---- random numbers -------------------------------------------------------------------------------------------------


def test_generators_depend_on_seed_step_rank_and_worker_alone():
    calls = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
    first = [ns.rng_for(*call).integers(0, 2**62) for call in calls]
    assert first == [ns.rng_for(*call).integers(0, 2**62) for call in calls]
    assert len({*first}) == len(calls)


def test_no_global_generator_is_read_or_moved(known):
    pool = ns.pools.Everything(known)

    def drawn():
        return pool.draw(ns.Query([0, 1]), 4, rng=ns.rng_for(3)).ids.tolist()

    before_numpy, before_torch = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    first = drawn()
    np.random.seed(5)  # noqa: NPY002
    assert drawn() == first
    np.random.set_state(("MT19937", before_numpy, 624))  # noqa: NPY002
    drawn()
    assert (np.random.get_state()[1] == before_numpy).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before_torch)
