"""Positives joined, saved, mapped from disk and sent to other processes."""

import copy
import errno
import os
import pickle
import shutil
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from positives_as_sets import (
    ARRAYS,
    COMPILING,
    N_ANCHORS,
    PAIRS,
    as_set,
    build,
    refusal,
    same,
    with_ignored,
)

import naysay as ns
from naysay import _rows as rows
from naysay.positives import IGNORE, POSITIVE


@COMPILING
@given(PAIRS, PAIRS, PAIRS, PAIRS)
def test_union_holds_both_and_positive_wins(a, a_ignored, b, b_ignored):
    one, other = with_ignored(a, a_ignored), with_ignored(b, b_ignored)
    both = one.union(other)
    assert as_set(both, "positive") == {*a, *b}
    assert as_set(both, "ignore") == {*a_ignored, *b_ignored} - {*a, *b}
    assert both.duplicates == one.duplicates + other.duplicates
    swapped = other.union(one)
    assert same(both, swapped)
    assert np.array_equal(both.filter, build([*a, *b, *a_ignored, *b_ignored]).filter)


@COMPILING
@given(PAIRS, PAIRS)
def test_a_relation_byte_only_where_it_is_used(pairs, ignored):
    known = with_ignored(pairs, ignored)
    if set(ignored) <= set(pairs):
        assert known.relation is None
        assert known.nbytes == 5 * len(known) + 8 * (N_ANCHORS + 1)
    else:
        assert set(known.relation.tolist()) <= {POSITIVE, IGNORE}
        assert known.nbytes == 6 * len(known) + 8 * (N_ANCHORS + 1)


def test_sizes_grow_to_the_larger():
    small, large = ns.Positives.from_pairs([0], [1]), ns.Positives.from_pairs([3], [0], 5, 2)
    for both in (small.union(large), large.union(small)):
        assert (both.n_anchors, both.n_items) == (5, 2)
        assert as_set(both) == {(0, 1), (3, 0)}
    empty = ns.Positives.from_pairs([], [])
    assert same(empty.union(small), small)
    assert same(small.union(empty), small)


def named_pairs(known, relation="positive"):
    """The pairs of a relation, by name."""
    anchors, items = known.pairs()
    chosen = known.contains(anchors, items, relation=relation)
    return set(
        zip(known.anchor_names.names(anchors[chosen]), known.item_names.names(items[chosen]), strict=True),
    )


def test_a_union_takes_new_users_and_items_by_name():
    """Ids stay those of the first; the second is looked up by name, and its new names follow."""
    first = ns.Positives.from_pairs(["ann", "bob"], ["x", "y"])
    later = ns.Positives.from_pairs(["cy", "bob", "ann"], ["z", "x", "x"]).with_ignored(["cy"], ["x"])
    both = first.union(later)
    assert both.anchor_names.names([0, 1, 2]) == ["ann", "bob", "cy"]
    assert both.item_names.names([0, 1, 2]) == ["x", "y", "z"]
    assert (both.n_anchors, both.n_items) == (3, 3)
    assert named_pairs(both) == {("ann", "x"), ("bob", "y"), ("cy", "z"), ("bob", "x")}
    assert named_pairs(both, "ignore") == {("cy", "x")}
    assert both.contains(*first.pairs()).all()
    assert named_pairs(later.union(first)) == named_pairs(both)
    drawn = ns.pools.Everything(both).draw(ns.Query(both.anchor_names.ids(["cy"])), 3, rng=ns.rng_for(0))
    assert both.item_names.names(drawn.ids[drawn.ids >= 0]) == ["y"]


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz")), min_size=1),
    st.lists(st.tuples(st.sampled_from("cdef"), st.sampled_from("yzuv")), min_size=1),
)
def test_a_union_of_names_is_the_union_of_sets(one, other):
    first, second = (ns.Positives.from_pairs([a for a, _ in part], [i for _, i in part]) for part in (one, other))
    assert named_pairs(first.union(second)) == {*one, *other}


def test_a_union_takes_names_of_one_side_only():
    known = ns.Positives.from_pairs([0], ["x"])
    both = known.union(ns.Positives.from_pairs([4], ["y"]))
    assert (both.n_anchors, both.item_names.names([0, 1])) == (5, ["x", "y"])
    assert as_set(both) == {(0, 0), (4, 1)}


def test_neither_is_changed():
    one, other = with_ignored([(0, 1)], [(0, 2)]), build([(0, 2)])
    before = copy.deepcopy(one)
    one.union(other)
    one.with_ignored([0], [3])
    assert same(one, before)


def test_ignored_by_name():
    known = ns.Positives.from_pairs(["ann", "bob"], ["x", "y"])
    ignored = known.with_ignored(["bob"], ["x"])
    assert as_set(ignored, "ignore") == {(1, 0)}
    assert as_set(ignored, "positive") == {(0, 0), (1, 1)}
    assert ignored.anchor_names == known.anchor_names
    assert same(ignored, known.with_ignored([1], [0]))


def test_combining_rejects():
    known, named = build([]), ns.Positives.from_pairs(["ann"], [0])
    assert refusal(known.union, [(0, 1)]) == "Positives.union: `other` must be a Positives, got list."
    rule = "`other` must be of at most 1 anchors, as many as have a name, got 5 in all."
    assert refusal(known.union, named).startswith(f"Positives.union: {rule}")
    owner = "Positives.with_ignored"
    rule = "`items` must be between 0 and 8 (9 items), got 9 at row 0 (1 such row)."
    assert refusal(known.with_ignored, [0], [9]) == f"{owner}: {rule}"
    rule = "`anchors` must be between 0 and 4 (5 anchors), got -1 at row 0 (1 such row)."
    assert refusal(known.with_ignored, [-1], [0]) == f"{owner}: {rule}"
    rule = "`anchors` must be of the same length as the others, got anchors 1, items 2."
    assert refusal(known.with_ignored, [0], [0, 1]) == f"{owner}: {rule}"
    rule = "`anchors` must be whole numbers, got dtype <U3. Ids count from 0."
    assert refusal(known.with_ignored, ["ann"], [0]) == f"{owner}: {rule}"
    rule = "`anchors` must be among the 1 known names, got 'eve' at row 0 (1 such row)."
    assert refusal(named.with_ignored, ["eve"], [0]) == f"{owner}: {rule}"


# ---- keeping


def is_mapped(array):
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAIRS, PAIRS, st.booleans())
def test_loading_gives_identical_answers(tmp_path, pairs, ignored, mmap):
    known = with_ignored(pairs, ignored)
    known.save(tmp_path / "known")  # over the last one
    loaded = ns.Positives.load(tmp_path / "known", mmap=mmap)
    assert same(loaded, known)
    assert as_set(loaded, "positive") == set(pairs)
    assert (
        loaded.nth_negative([0, 1], [[0, 1], [2, 3]]).tolist() == known.nth_negative([0, 1], [[0, 1], [2, 3]]).tolist()
    )
    for name in ARRAYS:
        array = getattr(loaded, name)
        if array is not None:
            assert is_mapped(array) == mmap
            assert not array.flags.writeable
    query = ns.Query([0, 1, 2])
    drawn = [ns.pools.Everything(one).draw(query, 3, rng=ns.rng_for(0)).ids.tolist() for one in (known, loaded)]
    assert drawn[0] == drawn[1]


def test_names_are_saved_beside(tmp_path):
    known = ns.Positives.from_pairs(["ann", "\N{SNOWMAN}", ""], ["x", "y", "x"])
    known.save(tmp_path / "known")
    loaded = ns.Positives.load(tmp_path / "known")
    assert same(loaded, known)
    assert loaded.anchor_names.names([1, 2]) == ["\N{SNOWMAN}", ""]
    assert loaded.item_names.ids(["y"]).tolist() == [1]


def test_the_folder_is_plain(tmp_path):
    with_ignored([(0, 1)], [(0, 2)]).save(tmp_path / "known")
    names = sorted(path.name for path in (tmp_path / "known").iterdir())
    assert names == ["filter.npy", "header.json", "indices.npy", "indptr.npy", "relation.npy"]
    for path in (tmp_path / "known").glob("*.npy"):
        assert np.load(path, allow_pickle=False).dtype != object


def test_one_loaded_may_be_saved_over_itself(tmp_path):
    known = build([(0, 1), (3, 4)])
    known.save(tmp_path / "known")
    loaded = ns.Positives.load(tmp_path / "known")
    loaded.union(build([(2, 2)])).save(tmp_path / "known")
    assert as_set(ns.Positives.load(tmp_path / "known")) == {(0, 1), (2, 2), (3, 4)}
    assert same(loaded, known)


def test_a_failed_save_leaves_the_old_one(tmp_path, monkeypatch):
    known = build([(0, 1)])
    known.save(tmp_path / "known")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(ns.NaysayError, match=r"/known' \(the disk is full\)"):
        build([(1, 2)]).save(tmp_path / "known")
    assert [path.name for path in tmp_path.iterdir()] == ["known"]
    assert same(ns.Positives.load(tmp_path / "known"), known)


def test_a_foreign_folder_is_not_saved_over(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    message = f"Positives.save: `path` must be new, or a folder that naysay wrote, got {str(tmp_path / 'mine')!r}."
    assert refusal(build([]).save, tmp_path / "mine") == message
    assert (tmp_path / "mine" / "file").read_text() == "x"


def scribble(folder: Path, name: str, array: np.ndarray):
    np.save(folder / f"{name}.npy", array, allow_pickle=True)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "indices.npy").unlink(), "a complete folder, got indices.npy: [Errno 2]"),
        (lambda folder: (folder / "filter.npy").write_bytes(b""), "a complete folder, got filter.npy: "),
        (
            lambda folder: (folder / "indptr.npy").write_bytes((folder / "indptr.npy").read_bytes()[:-1]),
            "a complete folder, got indptr.npy: ",
        ),
        (lambda folder: (folder / "header.json").write_text("{"), "a folder with a sound header, got "),
        (
            lambda folder: (folder / "header.json").write_text('{"kind": "positives", "format": 1, "arrays": []}'),
            "a folder with a sound header, got ",
        ),
        (lambda folder: (folder / "header.json").unlink(), "a folder that naysay wrote, got "),
        (lambda folder: scribble(folder, "indices", np.array([{}], object)), "a complete folder, got indices.npy: "),
        (
            lambda folder: scribble(folder, "indices", np.zeros(1, np.int32)),
            "a folder of matching arrays, got filter: ",
        ),
        (
            lambda folder: scribble(folder, "indices", np.zeros(2)),
            "a folder of matching arrays, got indices: (2,) float64",
        ),
        (
            lambda folder: scribble(folder, "indptr", np.array([0, 9])),
            "a folder of matching arrays, got indptr: not from",
        ),
        (
            lambda folder: scribble(folder, "indptr", np.array([0, 1, 10**12, 2, 2, 2])),
            "a folder of ascending ids below 9 in every row, got row 2 damaged (1 such row).",
        ),
    ],
)
def test_a_damaged_folder_is_one_sentence(tmp_path, damage, message, mmap):
    build([(0, 1), (1, 2)]).save(tmp_path / "known")
    damage(tmp_path / "known")
    found = refusal(ns.Positives.load, tmp_path / "known", mmap=mmap)
    assert found.startswith(f"Positives.load: `path` must be {message}")


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("wrong", [[1, -1, 2], [1, 9, 2], [2, 1, 2], [1, 1, 2], [1, 3, 2**31 - 1]])
def test_damaged_ids_are_never_drawn_with(tmp_path, wrong, mmap):
    """Ids of 2^31 - 1 ended the process in a weighted pool; reversed rows gave known positives back."""
    build([(0, 1), (0, 3), (1, 2)]).save(tmp_path / "known")
    scribble(tmp_path / "known", "indices", np.array(wrong, np.int32))
    row = int(wrong[:2] == [1, 3])
    rule = f"a folder of ascending ids below 9 in every row, got row {row} damaged (1 such row)."
    assert refusal(ns.Positives.load, tmp_path / "known", mmap=mmap) == f"Positives.load: `path` must be {rule}"


@COMPILING
@given(st.lists(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, 8)), min_size=1), st.data())
def test_what_loads_never_draws_a_positive(pairs, data):
    """A folder with one changed number: it is rejected, or it is as good as before."""
    known = build(pairs)
    name = data.draw(st.sampled_from(["indptr", "indices", "filter"]))
    arrays = {each: getattr(known, each).copy() for each in ("indptr", "indices", "filter")}
    place = data.draw(st.integers(0, len(arrays[name]) - 1))
    limits = np.iinfo(arrays[name].dtype)
    arrays[name][place] = data.draw(st.integers(int(limits.min), int(limits.max)) | st.integers(0, 9))
    try:
        rows.check_sound(arrays, known.n_items)
    except ns.NaysayError:
        return
    loaded = ns.Positives(**arrays, n_items=known.n_items)
    anchors, items = loaded.pairs()
    assert loaded.contains(anchors, items).all()
    drawn = ns.pools.Everything(loaded).draw(ns.Query(np.arange(N_ANCHORS)), 9, rng=ns.rng_for(0)).ids
    assert not loaded.contains(np.arange(N_ANCHORS), drawn).any()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_it_travels_to_other_processes_read_only(tmp_path, copied):
    known = ns.Positives.from_pairs(["a", "b"], ["x", "y"]).with_ignored([0], [1])
    known.save(tmp_path / "known")
    for one in (known, ns.Positives.load(tmp_path / "known")):
        other = copied(one)
        assert same(other, known)
        assert as_set(other, "ignore") == {(0, 1)}
        for name in ARRAYS:
            assert not getattr(other, name).flags.writeable


def sent(value):
    """What another process of this machine gets: multiprocessing has a pickler of its own."""
    return pickle.loads(ForkingPickler.dumps(value))


def test_a_mapped_one_is_sent_to_processes_as_its_path(tmp_path):
    known = ns.Positives.from_pairs(np.repeat(np.arange(50), 400), np.tile(np.arange(400), 50), n_items=500)
    known = known.with_ignored([0], [499])
    shared = known.shared(tmp_path / "known")
    assert same(shared, known)
    sampler = ns.samplers.Static(ns.pools.Everything(shared))
    assert len(ForkingPickler.dumps(sampler)) < 2000 < shared.nbytes
    other = sent(sampler)
    assert same(other.pool.positives, known)
    assert all(is_mapped(getattr(other.pool.positives, name)) for name in ARRAYS)
    query = ns.Query(np.arange(50))
    drawn = [one.sample(query, 3, rng=ns.rng_for(0)).ids for one in (sampler, other, sent(other))]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] == drawn[2]).all()
    for one in (known, ns.Positives.load(tmp_path / "known", mmap=False), copy.deepcopy(shared)):
        assert len(ForkingPickler.dumps(one)) > one.nbytes
        assert same(sent(one), known)


def test_names_are_sent_with_the_path(tmp_path):
    known = ns.Positives.from_pairs(["ann", "bob"], ["x", "y"]).shared(tmp_path / "known")
    assert sent(known).contains(["bob"], ["y"]).tolist() == [True]


def test_a_pickle_in_a_file_and_one_of_a_replaced_folder_have_the_pairs(tmp_path):
    shared = build([(0, 1), (2, 3)]).shared(tmp_path / "known")
    in_file, for_process = pickle.dumps(shared), ForkingPickler.dumps(shared)
    build([(4, 4)]).save(tmp_path / "known")
    assert as_set(shared) == as_set(sent(shared)) == as_set(pickle.loads(in_file)) == {(0, 1), (2, 3)}
    rule = f"`path` must be the folder that was mapped, got {str(tmp_path / 'known')!r}, which is gone or was replaced."
    assert refusal(pickle.loads, for_process) == f"{rule} Load it again."
    shutil.rmtree(tmp_path / "known")
    assert as_set(sent(shared)) == {(0, 1), (2, 3)}
    assert refusal(pickle.loads, for_process) == f"{rule} Load it again."


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_only(name):
    for known in (with_ignored([(0, 1)], [(0, 2)]), with_ignored([(0, 1)], [(0, 2)]).union(build([(1, 1)]))):
        with pytest.raises(ValueError, match="read-only"):
            getattr(known, name)[0] = 0


def test_plain_ids_can_be_added_to_named_ones():
    named = ns.Positives.from_pairs(["ann", "bob"], ["x", "y"])
    both = named.union(ns.Positives.from_pairs([0], [1], n_anchors=2, n_items=2))
    assert both.anchor_names == named.anchor_names
    assert both.contains([0, 0, 1, 1], [0, 1, 0, 1]).tolist() == [True, True, False, True]
