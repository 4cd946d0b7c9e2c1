"""Every state of the package is a flat dictionary of arrays and numbers: np.savez keeps it, without a pickle."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import naysay as ns
from naysay import catalog
from naysay.detectors._states import all_or_none, joined_states, plain, split_states
from naysay.errors import NaysayError
from naysay.types import Stateful

N_ANCHORS, N_ITEMS, WIDTH = 8, 30, 4
RNG = np.random.default_rng(0)
TABLE = RNG.uniform(-0.9, 0.9, (N_ANCHORS, N_ITEMS))
VECTORS = RNG.standard_normal((N_ITEMS, WIDTH))
KNOWN = ns.Positives.from_pairs(np.arange(N_ANCHORS), np.arange(N_ANCHORS), N_ANCHORS, N_ITEMS)
POOL = ns.pools.Everything(KNOWN)
QUERY = ns.Query(np.arange(N_ANCHORS), positives=np.arange(N_ANCHORS), vectors=VECTORS[:N_ANCHORS])
ASKED = np.tile(np.arange(10, 16), (N_ANCHORS, 1))
NEGATIVES = ns.Negatives(ASKED, scores=TABLE[np.arange(N_ANCHORS)[:, None], ASKED], vectors=VECTORS[ASKED])
STEPS = 1000


def score(anchors, ids):
    return TABLE[anchors[:, None], ids]


def of_pairs(anchors, ids):
    return TABLE[anchors, ids]


def learnt_online(online):
    for step in range(0, 601, 50):
        level = 1 - np.exp(-step / 200)
        for split in ("validation", "training"):
            rng = ns.rng_for(1, step, rank=int(split == "training"))
            online.record(step, level + rng.standard_normal(400), rng.standard_normal((400, 2)), split)


def observed(part):
    part.observe(QUERY, NEGATIVES, vectors=VECTORS[:N_ANCHORS])


def judged_step(judged):
    judged.observe(QUERY, judged.sample(QUERY, 4, rng=ns.rng_for(3)), vectors=VECTORS[:N_ANCHORS])


def suspicion(part):
    return part.suspicion(QUERY, NEGATIVES)


def sample(part):
    return part.sample(QUERY, 4, rng=ns.rng_for(1)).ids


def draw(part):
    return part.draw(QUERY, 4, rng=ns.rng_for(1)).ids


def mixture():
    return ns.detectors.Mixture(bounds=(-1, 1))


def quantile():
    return ns.detectors.LearnedQuantile(N_ANCHORS, alpha=0.2)


def guide(first):
    return ns.detectors.Guide(of_pairs, 0.1, first=first, budget=5, total_budget=9, cache_size=100)


def combined():
    inner = ns.detectors.Combined({"mixture": mixture(), "groups": ns.detectors.SoftClusters(3)})
    return ns.detectors.Combined({"lines": quantile(), "inner": inner, "guide": guide(quantile())}, "mean")


def taught_parts(both):
    both.detectors["lines"].observe(QUERY, NEGATIVES)
    both.detectors["inner"].detectors["mixture"].update(TABLE)
    both.detectors["inner"].detectors["groups"].update(VECTORS, rng=ns.rng_for(0))
    both.suspicion(QUERY, NEGATIVES)


def judged():
    hard = ns.samplers.Dynamic(POOL, score, candidates=12)
    return ns.samplers.Judged(_Scored(ns.samplers.Bank(POOL, N_ITEMS), hard), {"lines": quantile()})


class _Scored:
    """A sampler that scores, with the state of one that does not."""

    def __init__(self, banked, hard):
        self.banked, self.hard = banked, hard
        self.observe, self.state, self.restore = banked.observe, banked.state, banked.restore

    def sample(self, query, k, *, rng):
        return self.hard.sample(query, k, rng=rng)


def oversampling():
    return ns.samplers.AdaptiveOversampling(KNOWN, VECTORS, lambda anchors: VECTORS[anchors], scale=3.0)


# How a part is made, what teaches it, and an answer that depends on what it was taught.
PARTS = {
    "Calibrated": (
        lambda: ns.detectors.Calibrated(0.1),
        lambda part: part.fit(TABLE.reshape(-1)[:40]),
        suspicion,
    ),
    "Combined": (combined, taught_parts, suspicion),
    "Guide": (lambda: guide(0.0), suspicion, suspicion),
    "Guide with a detector": (lambda: guide(quantile()), lambda part: observed(part.first), suspicion),
    "Incremental": (
        lambda: ns.detectors.Incremental(N_ITEMS, (3, 5)),
        lambda part: part.update(VECTORS, 0.9),
        suspicion,
    ),
    "Judged": (judged, judged_step, sample),
    "Labelled": (
        ns.detectors.Labelled,
        lambda part: part.fit(QUERY, NEGATIVES, lambda anchors, ids: score(anchors, ids) > 0.1),
        suspicion,
    ),
    "LearnedQuantile": (quantile, observed, suspicion),
    "Mixture": (mixture, lambda part: part.update(TABLE), suspicion),
    "Mixture, normal": (lambda: ns.detectors.Mixture("normal"), lambda part: part.update(TABLE), suspicion),
    "SoftClusters": (
        lambda: ns.detectors.SoftClusters(3),
        lambda part: part.update(VECTORS, rng=ns.rng_for(0)),
        suspicion,
    ),
    "Cache": (
        lambda: ns.pools.Cache(N_ANCHORS, 6, KNOWN),
        lambda part: part.put(np.arange(N_ANCHORS), ASKED),
        draw,
    ),
    "Memory": (lambda: ns.pools.Memory(16, KNOWN), lambda part: part.push([3, 9, 4], [0, 1, 2], VECTORS[:3]), draw),
    "Memory without vectors": (lambda: ns.pools.Memory(16, KNOWN), lambda part: part.push([3, 9], [0, 1]), draw),
    "Bank": (
        lambda: ns.samplers.Bank(POOL, N_ITEMS),
        observed,
        lambda part: part.sample(QUERY, 20, rng=ns.rng_for(1)).vectors,
    ),
    "AdaptiveOversampling": (oversampling, lambda part: part.update(-(VECTORS[::-1] ** 3)), sample),
    "Online": (lambda: ns.quantity.Online(STEPS), learnt_online, lambda part: part.k_at(700)),
}


def kept(part, path):
    """The state of a part as it comes back from a file."""
    state = part.state()
    for name, value in state.items():
        assert isinstance(name, str)
        assert np.asarray(value).dtype.kind in "biuf", name
    np.savez(path, **state)
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert np.asarray(value).dtype == np.asarray(other[name]).dtype, name
        np.testing.assert_array_equal(value, other[name], err_msg=name)


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
            "detectors",
            "quantity",
            "losses",
            "difficulty",
            "mining",
        ):
            members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
            classes |= {name for name, kind in members if hasattr(kind, "state") and hasattr(kind, "restore")}
    assert classes - {"Stateful"} == {name.partition(" ")[0].strip(",") for name in PARTS}


EXAMPLES = {
    row.program: row.example
    for row in (
        *catalog.methods(),
        *(alias for row in catalog.methods() for alias in row.aliases),
        *catalog.detectors(),
    )
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_the_catalogue_makes_can_be_saved_and_restored(name, tmp_path):
    """The state of one run restores what a second run made, and both answer alike."""
    first, second = ({}, {})
    for names in (first, second):
        exec(compile(EXAMPLES[name], name, "exec"), names)
    parts = [key for key, part in first.items() if isinstance(part, Stateful) and not inspect.isclass(part)]
    for key in parts:
        second[key].restore(kept(first[key], tmp_path / "state.npz"))
        same(first[key].state(), second[key].state())
    if parts and "detector" in first:
        answers = [names["detector"].suspicion(names["query"], names["negatives"]) for names in (first, second)]
        np.testing.assert_array_equal(*answers)
    elif parts:
        one, other = (names["sampler"].sample(names["query"], 4, rng=ns.rng_for(5)) for names in (first, second))
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
    all_or_none(parts, lambda name, part: part.add(1))
    assert [part.count for part in parts.values()] == [1, 1, 1]
    with pytest.raises(RuntimeError, match="5"):
        all_or_none(parts, lambda name, part: part.add(5))
    assert [part.count for part in parts.values()] == [1, 1, 1]


def test_one_part_alone_is_not_copied():
    part = Counter()
    part.state = None  # calling it would fail
    all_or_none({"a": part}, lambda name, part: part.add(1))
    assert part.count == 1
    all_or_none({}, lambda name, part: part.add(1))


def test_numbers_from_files_and_tensors_are_plain():
    torch = pytest.importorskip("torch")
    for value in (3, np.int32(3), np.array(3), torch.tensor(3)):
        assert plain(value) == 3
        assert type(plain(value)) is int
    assert plain(np.array(True)) is True
    assert plain("x") == "x"
    assert plain(np.array([3])).shape == (1,)
