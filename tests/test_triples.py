"""Triples: membership, rows by side and the Bernoulli chance, against sets and loops; names, files and damage."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
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


# ---- Names -----------------------------------------------------------------------------------------------------------

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


def test_unused_entities_are_said_and_counted():
    facts = np.array([[5, 0, 900], [900, 1, 7]])
    with pytest.warns(ns.NaysayWarning) as caught:
        known = Triples(facts)
    assert "898 of the 901 entity ids" in str(caught[0].message)
    assert known.unused_entities == 898
    assert known.union([[0, 0, 1]]).unused_entities == 896  # and no second warning
    numbered = Triples(facts, entity_names=True)
    assert (numbered.n_entities, numbered.unused_entities) == (3, 0)
    assert numbered.entity_names.ids([900]).tolist() == [1]
    assert Triples(facts, 901).unused_entities == 0


# ---- Invalid calls and damage ----------------------------------------------------------------------------------------

KNOWN, NAMED = Triples([[0, 0, 1]]), Triples([["a", "b", "c"]])
INVALID = [
    (Triples, ([0, 0, 1],), {}, "triples"),
    (Triples, ([[0, 1]],), {}, "triples"),
    (Triples, (np.empty((0, 5)),), {}, "triples"),
    (Triples, (None,), {}, "triples"),
    (Triples, ([[0.0, 1.0, 2.0]],), {}, "triples"),
    (Triples, ([[0, 0, 1], [0, 0, -1], [-2, 0, 0]],), {}, "triples"),
    (Triples, ([[0, 0, 5]],), {"n_entities": 5}, "triples"),
    (Triples, ([[0, 3, 1]],), {"n_relations": 3}, "triples"),
    (Triples, ([["a", "b", "c"]],), {"entity_names": ["a"]}, "entity_names"),
    (Triples, ([],), {"n_entities": -1}, "n_entities"),
    (Triples, ([],), {"n_entities": 1.5}, "n_entities"),
    (Triples, ([],), {"n_entities": 1 << 31}, "n_entities"),
    (Triples, ([[0, 1 << 40, 0]],), {}, "n_relations"),
    (Triples, ([],), {"n_relations": "2"}, "n_relations"),
    (KNOWN.contains, ([["a", "b", "c"]],), {}, "triples"),
    (KNOWN.contains, ([[0, 0, 2]],), {}, "triples"),
    (KNOWN.contains, ([0, 0, 1],), {}, "triples"),
    (KNOWN.union, ([0, 0, 1],), {}, "triples"),
    (KNOWN.ids, ([["a", "b", "c"]],), {}, "names"),
    (KNOWN.names, ([[0, 0, 1]],), {}, "ids"),
    (NAMED.ids, ([["a", "b", "d"]],), {}, "triples"),
    (Triples.from_table, (pa.table({"s": [1]}),), {}, "heads"),
    (Triples.from_tsv, ("none.tsv",), {}, "path"),
    (Triples.from_tsv, ("short.tsv",), {}, "path"),
    (Triples.from_tsv, ("short.tsv",), {"delimiter": "::"}, "delimiter"),
    (Triples.from_tsv, ("facts.tsv",), {"entity_names": NAMED.entity_names}, "triples"),
]


@pytest.mark.parametrize(("call", "arguments", "options", "parameter"), INVALID)
def test_invalid_calls(call, arguments, options, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.tsv").write_text("a\tr\tb\nc\td\n")
    (tmp_path / "facts.tsv").write_text("a\tr\tzoe\n")
    with pytest.raises(NaysayError) as error:
        call(*arguments, **options)
    assert error.value.parameter == parameter
    assert str(error.value).startswith("Triples")
    assert "\n" not in str(error.value)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 11), st.integers(-3, 8) | st.sampled_from([2**31 - 1, -(2**63), 2**63 - 1]), st.booleans())
def test_a_changed_number_is_seen_or_harmless(tmp_path, place, number, mmap):
    array = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [3, 1, 2]])
    Triples(array).save(tmp_path / "facts")
    array.reshape(-1)[place] = number
    np.save(tmp_path / "facts" / "triples.npy", array)
    good = (array >= 0).all() and (array < [4, 2, 4]).all()
    good = good and sorted({tuple(row) for row in array.tolist()}) == [tuple(row) for row in array.tolist()]
    if good:
        assert Triples.load(tmp_path / "facts", mmap=mmap).contains(array).all()
        return
    with pytest.raises(NaysayError) as error:
        Triples.load(tmp_path / "facts", mmap=mmap)
    assert error.value.parameter == "path"


@pytest.mark.parametrize("array", [np.zeros((2, 3), np.int32), np.zeros(3, np.int64)])
def test_an_array_of_another_kind_is_damage(tmp_path, array):
    Triples([[0, 0, 1]]).save(tmp_path / "facts")
    np.save(tmp_path / "facts" / "triples.npy", array)
    with pytest.raises(NaysayError) as error:
        Triples.load(tmp_path / "facts")
    assert error.value.parameter == "path"
