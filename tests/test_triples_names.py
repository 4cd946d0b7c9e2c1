"""Triples of names: from files and tables, joined, saved and loaded, and corrupted."""

from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay import NaysayError, Triples, triples

FACTS = [("ann", "knows", "bob"), ("ann", "likes", "eve"), ("eve", "knows", "ann"), ("bob", "knows", "007")]
TABLE = {name: [fact[part] for fact in FACTS] for part, name in enumerate(("head", "relation", "tail"))}


def facts_of(known):
    return set(known.names(known.array))


def from_tsv(folder, facts, **names):
    (folder / "facts.tsv").write_text("".join("\t".join(fact) + "\n" for fact in facts))
    return Triples.from_tsv(folder / "facts.tsv", **names)


@pytest.mark.parametrize("kind", ["list", "array", "arrow", "dictionary", "tsv"])
def test_names_get_vocabularies(kind, tmp_path):
    coded = {name: pa.array(column).dictionary_encode() for name, column in TABLE.items()}
    known = {
        "list": lambda: Triples(FACTS),
        "array": lambda: Triples(np.array(FACTS, object)),
        "arrow": lambda: Triples.from_table(pa.table(TABLE)),
        "dictionary": lambda: Triples.from_table(pa.table(coded), "head", "relation", "tail"),
        "tsv": lambda: from_tsv(tmp_path, FACTS),
    }[kind]()
    assert facts_of(known) == set(FACTS)
    assert known.entity_names.names(range(4)) == ["ann", "eve", "bob", "007"]
    assert known.relation_names.names([0, 1]) == ["knows", "likes"]
    assert known.contains(FACTS).all()
    assert known.contains(known.ids(FACTS)).all()
    assert not known.contains([("eve", "likes", "ann")]).any()
    entities, relations = "Vocabulary(4 names: 'ann', 'eve', 'bob', ...)", "Vocabulary(2 names: 'knows', 'likes')"
    names = f"entity_names={entities}, relation_names={relations}"
    assert repr(known) == f"Triples(4 triples, 4 entities, 2 relations, {names})"


def test_splits_share_ids_and_a_union_keeps_them(tmp_path):
    train = Triples(FACTS[:3])
    test = from_tsv(tmp_path, [("bob", "knows", "zoe"), ("zoe", "hates", "ann")])
    both = train.union(test, [("ann", "knows", "zoe")])
    assert facts_of(both) == {*FACTS[:3], ("bob", "knows", "zoe"), ("zoe", "hates", "ann"), ("ann", "knows", "zoe")}
    assert both.ids(FACTS[:3]).tolist() == train.ids(FACTS[:3]).tolist()
    shared = from_tsv(tmp_path, FACTS[:1], entity_names=both.entity_names, relation_names=both.relation_names)
    assert shared.array.tolist() == train.ids(FACTS[:1]).tolist()
    assert (shared.n_entities, shared.n_relations) == (4, 3)
    with pytest.raises(NaysayError, match=r"Triples\.from_tsv: `triples` must be among the 3 known names, got 'zoe'"):
        from_tsv(
            tmp_path, [("ann", "knows", "zoe")], entity_names=train.entity_names, relation_names=train.relation_names
        )


def test_corruption_of_names_and_the_advice_for_them():
    test = [("bob", "likes", "007")]
    pool = ns.pools.Corruption(Triples(FACTS), [test])
    query = ns.Query(FACTS[:2])
    with pytest.raises(NaysayError, match=r"The ids of names are pool\.known\.ids\(names\)\.$"):
        pool.draw(query, 2, rng=ns.rng_for(0))
    query = ns.Query(pool.known.ids(FACTS[:2]))
    drawn = pool.draw(query, 3, rng=ns.rng_for(0))
    made = pool.corrupted(query, drawn).reshape(-1, 3)
    made = made[made[:, 0] >= 0]
    assert len(made) == 6
    assert not {*FACTS, *test} & set(pool.known.names(made))
    assert ns.pools.Corruption(FACTS).known.contains(FACTS).all()


def test_tensors_in_tensors_out():
    pool = ns.pools.Corruption(Triples(FACTS))
    ids = pool.known.ids(FACTS)
    for k in (2, 9):
        drawn = pool.draw(ns.Query(ids), k, rng=ns.rng_for(0))
        wanted = pool.corrupted(ns.Query(ids), drawn)
        query = ns.Query(torch.from_numpy(ids))
        for negatives in (drawn, drawn.to("cpu")):
            made = pool.corrupted(query, negatives)
            assert isinstance(made, torch.Tensor)
            assert made.device == query.device
            assert np.array_equal(made.numpy(), wanted)
            assert isinstance(pool.corrupted(ns.Query(ids), negatives), np.ndarray)
    assert (wanted == -1).any()


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("given", [FACTS, [[0, 1, 2], [2, 0, 0]], []])
def test_a_saved_folder_comes_back(given, mmap, tmp_path):
    known = Triples(given)
    known.save(tmp_path / "facts")
    loaded = Triples.load(tmp_path / "facts", mmap=mmap)
    assert np.array_equal(loaded.array, known.array)
    for name in ("n_entities", "n_relations", "duplicates", "unused_entities", "entity_names", "relation_names"):
        assert getattr(loaded, name) == getattr(known, name)
    assert loaded.contains(known.array).all()
    assert loaded.union(known).array.tolist() == known.array.tolist()


@settings(deadline=None)
@given(st.integers(0, 11), st.integers(-3, 8) | st.sampled_from([2**31 - 1, -(2**63), 2**63 - 1]))
def test_a_changed_number_is_seen_or_harmless(place, number):
    array = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [3, 1, 2]])
    array.reshape(-1)[place] = number
    good = (array >= 0).all() and (array < [4, 2, 4]).all()
    good = good and sorted({tuple(row) for row in array.tolist()}) == [tuple(row) for row in array.tolist()]
    rule = "`path` must be a folder of ascending triples of 4 entities and 2 relations, got row"
    with nullcontext() if good else pytest.raises(NaysayError, match=rule):
        triples._check_sound(array, 4, 2)


@pytest.mark.parametrize("mmap", [True, False])
def test_a_damaged_folder_is_one_sentence(tmp_path, mmap):
    Triples([[0, 0, 1], [1, 0, 2], [2, 0, 0]]).save(tmp_path / "facts")
    for array, got in (
        (np.array([[0, 0, 1], [2, 0, 0], [1, 0, 2]]), "row 2 damaged (1 such row)."),
        (np.array([[0, 0, 1], [1, 0, 2], [2**31 - 1, 0, 0]]), "row 2 damaged (1 such row)."),
        (np.zeros((2, 3), np.int32), "(2, 3) int32."),
        (np.zeros(3, np.int64), "(3,) int64."),
    ):
        np.save(tmp_path / "facts" / "triples.npy", array)
        with pytest.raises(NaysayError) as caught:
            Triples.load(tmp_path / "facts", mmap=mmap)
        assert str(caught.value).startswith("Triples.load: `path` must be a folder of ")
        assert str(caught.value).endswith(got)


def test_unused_entities_are_said_and_counted():
    facts = np.array([[5, 0, 900], [900, 1, 7]])
    with pytest.warns(ns.NaysayWarning) as caught:
        known = Triples(facts)
    assert str(caught[0].message) == (
        "898 of the 901 entity ids from 0 to 900 (99.7%) occur nowhere, and may be drawn as negatives. "
        "Pass n_entities=901 if they all exist, or entity_names=True for a vocabulary of those that occur."
    )
    assert known.unused_entities == 898
    assert known.union([[0, 0, 1]]).unused_entities == 896  # and no second warning
    numbered = Triples(facts, entity_names=True)
    assert (numbered.n_entities, numbered.unused_entities) == (3, 0)
    assert numbered.entity_names.ids([900]).tolist() == [1]
    assert Triples(facts, 901).unused_entities == 0


def test_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "facts.tsv"
    with pytest.raises(NaysayError, match=r"Triples\.from_tsv: `path` must be an existing file"):
        Triples.from_tsv(path)
    path.write_text("a\tr\tb\nc\td\n")
    with pytest.raises(NaysayError, match=r"`path` must be a file of that format, .*Expected 3 columns, got 2"):
        Triples.from_tsv(path)
    with pytest.raises(NaysayError, match=r"`delimiter` must be one character, got '::'"):
        Triples.from_tsv(path, delimiter="::")
    with pytest.raises(NaysayError, match=r"Triples\.from_table: `heads` must be one of the columns 's', got 'head'"):
        Triples.from_table(pa.table({"s": [1]}))
