"""Positives saved, mapped from disk and sent to other processes; damaged folders."""

import copy
import pickle
import shutil
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from positives_as_sets import ARRAYS, N_ANCHORS, PAIRS, as_set, build, same, with_ignored

import naysay as ns


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
    for _ in range(2):  # replaced, then gone
        with pytest.raises(ns.NaysayError) as error:
            pickle.loads(for_process)
        assert error.value.parameter == "path"
        shutil.rmtree(tmp_path / "known", ignore_errors=True)
    assert as_set(sent(shared)) == {(0, 1), (2, 3)}


# ---- Damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("indices", np.zeros(1, np.int32)),
        ("indices", np.zeros(3)),
        ("indptr", np.array([0, 9])),
        ("indptr", np.array([0, 1, 10**12, 3, 3, 3])),
        ("indices", np.array([1, -1, 2], np.int32)),
        ("indices", np.array([1, 9, 2], np.int32)),
        ("indices", np.array([2, 1, 2], np.int32)),  # reversed rows gave known positives back
        ("indices", np.array([1, 1, 2], np.int32)),
        ("indices", np.array([1, 3, 2**31 - 1], np.int32)),  # which ended the process in a weighted pool
    ],
)
def test_damaged_arrays_are_not_loaded(tmp_path, name, array):
    build([(0, 1), (0, 3), (1, 2)]).save(tmp_path / "known")
    np.save(tmp_path / "known" / f"{name}.npy", array)
    for mmap in (True, False):
        with pytest.raises(ns.NaysayError) as error:
            ns.Positives.load(tmp_path / "known", mmap=mmap)
        assert error.value.parameter == "path"
        assert str(error.value).startswith("Positives.load: ")


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, 8)), min_size=1), st.data())
def test_what_loads_never_draws_a_positive(tmp_path, pairs, data):
    """A folder with one changed number: it is rejected, or it is as good as before."""
    build(pairs).save(tmp_path / "known")
    file = tmp_path / "known" / f"{data.draw(st.sampled_from(['indptr', 'indices', 'filter']))}.npy"
    array = np.load(file)
    limits = np.iinfo(array.dtype)
    place = data.draw(st.integers(0, len(array) - 1))
    array[place] = data.draw(st.integers(int(limits.min), int(limits.max)) | st.integers(0, 9))
    np.save(file, array)
    try:
        loaded = ns.Positives.load(tmp_path / "known")
    except ns.NaysayError:
        return
    assert loaded.contains(*loaded.pairs()).all()
    drawn = ns.pools.Everything(loaded).draw(ns.Query(np.arange(loaded.n_anchors)), 9, rng=ns.rng_for(0)).ids
    assert not loaded.contains(np.arange(loaded.n_anchors), drawn).any()
