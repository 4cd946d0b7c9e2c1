"""Every state of the package is a flat dictionary of arrays and numbers: np.savez keeps it, without a pickle."""

import importlib
import inspect
import io
import pkgutil
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from catalog_programs import run
from stateful_parts import PARTS, same

import naysay as ns
from naysay import catalog
from naysay._lock import Lock
from naysay.catalog import world
from naysay.detectors._states import all_or_none, joined_states, split_states
from naysay.errors import NaysayError
from naysay.types import Stateful

CLASSES = {name.partition(" ")[0].strip(",") for name in PARTS}


def kept(part, path):
    """The state of a part as it comes back from a file."""
    state = part.state()
    for name, value in state.items():
        assert isinstance(name, str)
        assert np.asarray(value).dtype.kind in "biuf", name
    np.savez(path, **state)
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


@pytest.mark.parametrize("name", PARTS)
def test_a_state_survives_a_file(name, tmp_path):
    make, teach, answer = PARTS[name]
    one, other = make(), make()
    teach(one)
    before = one.state()
    with pytest.raises(AssertionError):
        same(before, other.state())  # there is something to bring over
    other.restore(kept(one, tmp_path / "state.npz"))
    same(before, other.state())
    np.testing.assert_array_equal(answer(other), answer(one))
    same(one.state(), other.state())  # and both go on alike


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_has_learnt_nothing_can_be_written_down_and_taken_back(name, tmp_path):
    make, teach, _ = PARTS[name]
    fresh, other = make(), make()
    teach(other)
    other.restore(kept(fresh, tmp_path / "state.npz"))
    same(fresh.state(), other.state())


@pytest.mark.parametrize("name", PARTS)
def test_a_state_is_a_copy(name):
    make, teach, _ = PARTS[name]
    one = make()
    teach(one)
    given, before = one.state(), one.state()
    other = make()
    other.restore(given)
    for value in given.values():
        if isinstance(value, np.ndarray) and value.ndim:
            value[...] = 0
    same(one.state(), before)
    same(other.state(), before)


@pytest.mark.parametrize("name", PARTS)
def test_what_is_no_state_is_rejected_and_changes_nothing(name):
    make, teach, _ = PARTS[name]
    part = make()
    teach(part)
    before = part.state()
    for bad in (None, 3, [1], {"odd": 1}, *({**before, key: np.array(["x", "y"])} for key in before)):
        with pytest.raises(NaysayError, match=r": `\w+` must be "):
            part.restore(bad)
        same(part.state(), before)


def test_everything_with_a_state_is_tried():
    classes = set()
    for module in pkgutil.walk_packages(ns.__path__, "naysay."):
        if module.name.split(".")[1] in (
            "pools",
            "samplers",
            "batches",
            "detectors",
            "quantity",
            "losses",
            "difficulty",
            "mining",
        ):
            members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
            classes |= {
                name
                for name, kind in members
                if hasattr(kind, "state")
                and hasattr(kind, "restore")
                and not kind.__module__.split(".")[-1].startswith("_")
            }
    # A Monitor returns nothing that a damaged state could change; tests/difficulty/test_monitor.py restores it.
    assert classes - {"Stateful", "Monitor"} == CLASSES


MAKERS = [
    row
    for question in ("where", "which", "distrust")
    for row in catalog.methods(question)
    if CLASSES & set(re.findall(r"\w+", row.program))  # others make nothing that has a state
]


@pytest.mark.parametrize("row", MAKERS, ids=lambda row: row.name)
def test_what_the_catalogue_makes_can_be_saved_and_restored(row, tmp_path):
    """The state of one run restores what a second run made, and both answer alike."""
    first = run(row)
    parts = [key for key, part in first.items() if isinstance(part, Stateful) and not inspect.isclass(part)]
    if not parts:
        return
    second = run(row)
    for key in parts:
        second[key].restore(kept(first[key], tmp_path / "state.npz"))
        same(first[key].state(), second[key].state())
    if "detector" in first:
        np.testing.assert_array_equal(first["suspicion"], second["suspicion"])
    else:
        query = getattr(world, row.query)
        one, other = (names["sampler"].sample(query, 4, rng=ns.rng_for(5)) for names in (first, second))
        np.testing.assert_array_equal(one.ids, other.ids)


# ---- parts of one whole -------------------------------------------------------------------------------------------


class Counter:
    """Counts, keeps its count, and refuses what it is told to refuse."""

    def __init__(self, refused=None):
        self.count, self.refused = 0, refused

    def add(self, number):
        if number == self.refused:
            raise RuntimeError(number)
        self.count += number

    def state(self):
        return {"count": self.count, "deep/er": 1} if self.count else {}

    def restore(self, state):
        self.count = state.get("count", 0)


def test_states_are_joined_and_parted():
    parts = {"a": Counter(), "b": Counter(), "c": Counter()}
    parts["a"].count, parts["b"].count = 3, 4
    state = joined_states(parts)
    assert state == {"a/count": 3, "a/deep/er": 1, "b/count": 4, "b/deep/er": 1}
    expected = {"a": {"count": 3, "deep/er": 1}, "b": {"count": 4, "deep/er": 1}, "c": {}}
    assert split_states(state, parts) == expected
    rule = r"^`state` must be a dictionary with the states of \['a', 'b', 'c'\], as `state` returned, got"
    for bad, got in (
        (7, "int"),
        ({"a": {"count": 1}}, "the key 'a'"),
        ({"d/x": 1}, "the key 'd/x'"),
        ({1: 2}, "the key 1"),
    ):
        with pytest.raises(NaysayError, match=rf"{rule} {got}\.$"):
            split_states(bad, parts)


@pytest.mark.parametrize("failing", ["a", "b", "c"])
def test_all_parts_change_or_none(failing):
    parts = {name: Counter(refused=5 if name == failing else None) for name in "abc"}
    all_or_none(Lock(), parts, lambda name, part: part.add(1))
    assert [part.count for part in parts.values()] == [1, 1, 1]
    with pytest.raises(RuntimeError, match="5"):
        all_or_none(Lock(), parts, lambda name, part: part.add(5))
    assert [part.count for part in parts.values()] == [1, 1, 1]


def test_one_part_alone_is_not_copied():
    part = Counter()
    part.state = None  # calling it would fail
    all_or_none(Lock(), {"a": part}, lambda name, part: part.add(1))
    assert part.count == 1
    all_or_none(Lock(), {}, lambda name, part: part.add(1))


def through_torch(state):
    """A state as it comes back from a checkpoint of torch that is loaded without pickled code."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("name", PARTS)
def test_torch_loads_a_state_with_weights_only(name):
    make, teach, answer = PARTS[name]
    one, other = make(), make()
    teach(one)
    other.restore(through_torch(one.state()))
    np.testing.assert_array_equal(answer(other), answer(one))
    same(one.state(), other.state())


def test_torch_loads_the_state_of_a_monitor_and_of_a_loader():
    query, negatives = ns.Query([0, 1]), ns.Negatives(np.array([[1, 2], [3, 4]]), scores=np.zeros((2, 2)))
    one, other = (ns.difficulty.Monitor(memory=64) for _ in range(2))
    one.observe(query, negatives)
    other.restore(through_torch(one.state()))
    assert other.observe(query, negatives)["repeats"] == 1.0
    known = ns.Positives.from_pairs([0, 1, 2], [0, 1, 2])
    loaders = [ns.data.loader(known, ns.samplers.Static(ns.pools.Everything(known)), 1) for _ in range(2)]
    next(iter(loaders[0]))
    loaders[1].restore(through_torch(loaders[0].state()))
    assert loaders[1].step == 1


def test_a_state_holds_numpy_arrays_that_pickle_without_torch_too():
    code = (
        "import pickle, sys, numpy as np, naysay as ns\n"
        "pool = ns.pools.Memory(4); pool.push([1, 2])\n"
        "ids = pool.state()['ids']\n"
        "assert isinstance(ids, np.ndarray)\n"
        "assert np.array_equal(pickle.loads(pickle.dumps(ids)), ids)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
