"""A comparison: the same start and order for all arms, the rate by halving, kept runs, and a table that repeats."""

import importlib
import sys
from math import isnan
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lab_worlds import FEW_IMAGES, GRAPH, OF_VECTORS

import naysay as ns
from naysay._commands import CompareOptions
from naysay.errors import NaysayError
from naysay.lab import Point, Recommendation, RunResult, _run, split_by_user
from naysay.lab.arms import Arm, parts_of, read_arms, reference_for
from naysay.lab.result import TUNED

DATA = split_by_user(*np.nonzero(np.random.default_rng(1).random((40, 60)) < 0.2), 40, 60)
SMALL = {"methods": "uniform,dynamic", "steps": 8, "seeds": 2}
TASK = Recommendation(DATA, "lightgcn", dim=8, batch=32)
PARTS = parts_of(TASK, 0, 100)


def arms(methods):
    return read_arms(methods, TASK, PARTS, TASK.defaults)


def without_times(result):
    rows = []
    for arm in result.arms:
        points = [[(p.step, p.value, p.hardness, p.false_share) for p in run.points] for run in arm.runs]
        rows.append((arm.name, arm.lr, arm.tried, points, [run.test for run in arm.runs]))
    return rows


# ---- arms ----


def test_a_number_asks_for_as_many_negatives_and_a_name_alone_for_those_of_the_default_arms():
    found = arms("dynamic:4, uniform:8,popularity")
    assert [(arm.name, arm.k) for arm in found] == [("dynamic:4", 4), ("uniform:8", 8), ("popularity", TASK.k)]
    run = _run.Run(TASK, found[0], 0.01, 0)
    run.train(1)
    assert run.negatives.shape[1] == 4
    assert [arm.name for arm in arms("")] == [arm.name for arm in arms(None)] == [*TASK.defaults]


def test_an_arm_alone_gets_a_reference_of_the_same_k():
    reference = reference_for(arms(["popularity:3"])[0], TASK, PARTS, TASK.defaults)
    assert reference == Arm("uniform:3", 3, "Static(Everything(positives))")
    assert reference_for(arms(["uniform:3"])[0], TASK, PARTS, TASK.defaults) is None


def test_samplers_of_ones_own_come_from_a_module_or_a_mapping(tmp_path, monkeypatch):
    text = (
        "import naysay as ns\n\ndef make(parts):\n    return ns.samplers.Static(ns.pools.Everything(parts['known']))\n"
    )
    (tmp_path / "own_negatives.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    arm = arms("own_negatives:make:2")[0]
    sys.modules.pop("own_negatives")
    assert (arm.name, arm.k, arm.code) == ("own_negatives:make:2", 2, "own_negatives:make")
    assert isinstance(arm.sampler(PARTS), ns.samplers.Static)
    mine = arms({"mine": lambda parts: ns.samplers.Dynamic(parts["pool"], parts["score"], 16)})[0]
    _run.Run(TASK, mine, 0.01, 0).train(1)
    assert str(tmp_path) not in sys.path


# ---- runs ----


def test_all_arms_start_from_the_same_vectors_and_see_the_same_batches():
    seen = []
    for arm in arms("dynamic,uniform:3"):
        run = _run.Run(TASK, arm, 0.01, 3)
        start = run.model.snapshot()
        batches = []
        for _ in range(20):  # more than an epoch
            run.train(1)
            batches.append(run.batch.tolist())
        seen.append((start, batches))
    (start, batches), (other_start, other_batches) = seen
    assert all(torch.equal(value, other_start[name]) for name, value in start.items())
    assert batches == other_batches
    epoch = [row for batch in batches[: TASK.pairs // 32] for row in batch]
    assert len(set(epoch)) == len(epoch)


@pytest.mark.parametrize(("model", "decay"), [("mf", 1e-6), ("lightgcn", 1e-8)])
def test_the_weight_decay_is_that_of_the_model(model, decay):
    (group,) = _run.Run(Recommendation(DATA, model, dim=8), arms("uniform")[0], 0.01, 0).optimiser.param_groups
    assert group["weight_decay"] == decay
    found = ns.compare(DATA, task="recommendation", model=model, methods=["uniform"], steps=4, seeds=1)
    assert found.settings["decay"] == decay


def test_the_learning_rate_is_chosen_by_successive_halving(monkeypatch):
    quality = {0.001: [9, 9, 90], 0.003: [1, 50, 50], 0.01: [5, 40, 70], 0.03: [8, 20, 20], 0.1: [6, 30, 80]}
    trained = []

    class Fake:
        def __init__(self, task, arm, lr, seed, steps):
            assert steps == 100
            self.lr, self.done, self.best_value, self.diverged = lr, 0, -1.0, False
            assert seed == 5 + _run.TUNING

        def to(self, step, every, on_steps):
            trained.append((self.lr, step))
            on_steps(step - self.done)
            self.done = step
            self.best_value = quality[self.lr][{25: 0, 50: 1, 100: 2}[step]]

    monkeypatch.setattr(_run, "Run", Fake)
    steps = []
    lr, tried = _run.choose_lr(SimpleNamespace(learning_rates=tuple(quality)), None, 100, 5, steps.append)
    # After a quarter 0.001, 0.03 and 0.1 are best; after half 0.1 and 0.03; 0.1 is best at the end.
    assert [lr for lr, step in trained if step == 50] == [0.001, 0.03, 0.1]
    assert [lr for lr, step in trained if step == 100] == [0.1, 0.03]
    assert lr == 0.1
    assert tried == {"0.001": 9, "0.003": 1, "0.01": 5, "0.03": 20, "0.1": 80}
    assert sum(steps) == TUNED * 100


def test_the_best_point_is_the_first_highest_and_is_the_one_that_is_tested(monkeypatch):
    task = Recommendation(DATA, dim=8)
    run = _run.Run(task, Arm("uniform", 1, "Static(Everything(positives))"), 0.01, 0)
    values, states = iter([0.1, 0.5, 0.5, 0.2]), iter("abcd")
    monkeypatch.setattr(run.model, "snapshot", lambda: next(states))
    tested = []

    def measure(state, part="validation"):
        tested.append((state, part))
        return {task.measure: 0.7 if part == "test" else next(values)}

    monkeypatch.setattr(run.model, "measure", measure)
    run.to(8, 2, lambda steps: None)
    result = run.result()
    assert [point.step for point in result.points] == [2, 4, 6, 8]
    assert (result.best.step, tested[-1]) == (4, ("b", "test"))
    assert result.first_at(0.5) is result.points[1]
    assert result.first_at(0.6) is None


def test_what_is_finished_is_kept_and_a_second_call_continues(tmp_path, monkeypatch):
    whole = ns.compare(DATA, **SMALL)

    def stop(what, share):
        if what.startswith("dynamic: seed 2"):
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        ns.compare(DATA, **SMALL, out=out, on_progress=stop)
    kept = sorted(path.name for path in (out / "runs").iterdir())
    assert [name.partition(".")[2] for name in kept] == [
        "lr.json",
        "seed0.json",
        "lr.json",
        "seed0.json",
        "seed1.json",
    ]
    assert not (out / "results.json").exists()
    trained = []
    train = _run.train_arm

    def counted(task, arm, *rest):
        trained.append((arm.name, rest[2]))
        return train(task, arm, *rest)

    monkeypatch.setattr(_run, "train_arm", counted)
    shares = []
    done = ns.compare(DATA, **SMALL, out=out, on_progress=lambda what, share: shares.append(share))
    assert trained == [("dynamic", 1)]
    assert without_times(done) == without_times(whole)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    more = ns.compare(DATA, **{**SMALL, "methods": "uniform,dynamic,popularity"}, out=out)
    assert [name for name, _ in trained[1:]] == ["popularity", "popularity"]
    assert [arm.name for arm in more.arms] == ["uniform", "dynamic", "popularity"]


def test_a_sampler_of_ones_own_may_answer_in_numpy():
    class FromPool:
        def __init__(self, parts):
            self.pool = parts["pool"]

        def sample(self, query, k, *, rng):
            return self.pool.draw(query, k, rng=rng).numpy()

    found = ns.compare(DATA, methods={"mine": FromPool, "uniform": None}, steps=8, seeds=1)
    assert len(found["mine"].runs[0].points) == 8


def diverging(monkeypatch, at_rates):
    """Training with these learning rates ends in NaN."""
    train = _run.Run.train

    def train_or_diverge(self, steps):
        train(self, steps)
        if self.lr in at_rates:
            next(iter(self.model.network.parameters())).data[0] = float("nan")

    monkeypatch.setattr(_run.Run, "train", train_or_diverge)


def test_a_learning_rate_that_diverges_is_not_chosen(monkeypatch, tmp_path):
    diverging(monkeypatch, (0.03, 0.1))
    for _ in range(2):  # the second one reads what was kept
        found = ns.compare(DATA, methods="uniform", steps=8, seeds=1, out=tmp_path)
        assert found.arms[0].lr <= 0.01
        assert [lr for lr, value in found.arms[0].tried.items() if isnan(value)] == ["0.03", "0.1"]


def test_an_arm_that_always_diverges_is_named(monkeypatch):
    diverging(monkeypatch, Recommendation.learning_rates)
    with pytest.raises(NaysayError, match="'uniform', whose parameters are NaN or infinite at step 1 ") as caught:
        ns.compare(DATA, methods="uniform", steps=8, seeds=1)
    assert caught.value.parameter == "methods"


def test_a_step_of_ones_own_without_negatives(tmp_path):
    def mine(parts):
        return parts["whole_data"](weight=0.5)

    options = {"methods": {"uniform:1": None, "mine": mine}, "steps": 8, "seeds": 1, "out": tmp_path}
    result = ns.compare(DATA, **options)
    assert all(isnan(point.false_share) and isnan(point.hardness) for point in result["mine"].runs[0].points)
    assert not isnan(result["uniform:1"].runs[0].points[0].hardness)
    assert [arm.k for arm in result.arms] == [1, "all"]
    again = ns.compare(DATA, **options)  # what is not known is kept as such
    np.testing.assert_equal(without_times(again), without_times(result))
    assert "Hardness of the negatives" in (tmp_path / "compare.html").read_text()


@pytest.mark.parametrize(
    ("task", "data", "method"),
    [("graph", GRAPH, "k-hop:2"), ("text", OF_VECTORS, "mined:4"), ("images", FEW_IMAGES, "MoCo")],
)
def test_every_task_gives_the_same_table_twice(task, data, method, tmp_path):
    options = {"task": task, "methods": method, "steps": 4, "seeds": 1}
    first, second = ns.compare(data, **options, out=tmp_path), ns.compare(data, **options)
    np.testing.assert_equal(without_times(first), without_times(second))
    assert (tmp_path / "compare.html").stat().st_size > 10_000


def test_a_folder_of_something_else_is_an_error(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    for out in (tmp_path, tmp_path / "thesis.txt"):
        with pytest.raises(NaysayError) as caught:
            ns.compare(DATA, **SMALL, out=out)
        assert caught.value.parameter == "out"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_with_other_settings_is_an_error(tmp_path):
    ns.compare(DATA, **SMALL, out=tmp_path / "out")
    for change in ({"steps": 12}, {"model": "lightgcn"}, {"seed": 1}):
        with pytest.raises(NaysayError) as caught:
            ns.compare(DATA, **SMALL | change, out=tmp_path / "out")
        assert caught.value.parameter == "out"


# ---- the budget, and what is said ----


def steps_for(task, names, budget, seeds=3):
    steps = importlib.import_module("naysay.lab.comparison").steps_for
    return steps(task, [Arm(name, 1, "") for name in names], CompareOptions(seeds=seeds), budget, lambda *_: None)


def test_the_budget_decides_the_steps_once(tmp_path, monkeypatch):
    monkeypatch.setattr(_run, "step_seconds", lambda task, arm, seed: (0.01, None))
    monkeypatch.setattr(_run, "validation_seconds", lambda run: 0.0)
    each = 2 * (3 + TUNED) * 0.01  # seconds of a step of the whole comparison
    for afford, expected in ((100, 100), (199, 100), (200, 200), (4999, 2000), (5000, 5000)):
        task = Recommendation(DATA, batch=40)
        assert steps_for(task, ("uniform", "dynamic"), afford * each * 1.0001) == expected
    point = Point(100, 1.0, 1.0, 0.5, 0.5, 0.0)
    monkeypatch.setattr(_run, "choose_lr", lambda *given: (0.01, {}))
    monkeypatch.setattr(
        _run, "train_arm", lambda *given: RunResult(given[4], (point,), {"recall@20": 0.5, "ndcg@20": 0.5})
    )
    options = {"methods": "uniform,dynamic", "seeds": 1, "budget": 110 * 2 * (1 + TUNED) * 0.01, "out": tmp_path}
    first = ns.compare(DATA, **options)
    monkeypatch.setattr(_run, "step_seconds", lambda task, arm, seed: (0.0001, None))  # a faster moment
    again = ns.compare(DATA, **options)
    assert first.settings["steps"] == again.settings["steps"] == 100


def test_validations_and_tests_are_part_of_the_budget(monkeypatch):
    """Two arms, (3 + 3) runs of 20 validations of 0.1 s each, and 3 tests that cost ten validations."""
    monkeypatch.setattr(_run, "step_seconds", lambda task, arm, seed: (0.01, None))
    monkeypatch.setattr(_run, "validation_seconds", lambda run: 0.1)
    task = Recommendation(DATA, batch=40)
    monkeypatch.setattr(task, "test_work", 10.0)
    measures, each = 2 * (6 * 20 + 3 * 10) * 0.1, 2 * 6 * 0.01
    assert steps_for(task, ("uniform", "dynamic"), measures + 201 * each) == 200
    with pytest.raises(NaysayError) as caught:
        steps_for(task, ("uniform", "dynamic"), measures)
    assert caught.value.parameter == "budget"


def test_an_impossible_budget_is_known_before_a_second_arm_is_timed(monkeypatch):
    timed = []
    monkeypatch.setattr(_run, "step_seconds", lambda task, arm, seed: timed.append(arm.name) or (10.0, None))
    monkeypatch.setattr(_run, "validation_seconds", lambda run: 0.1)
    with pytest.raises(NaysayError) as caught:
        ns.compare(DATA, methods="uniform,dynamic", budget="20s")
    assert caught.value.parameter == "budget"
    assert timed == ["uniform"]


def test_what_was_not_asked_for_is_said():
    said = []
    one = ns.compare(DATA, methods=["popularity:3"], steps=4, seeds=1, on_progress=lambda what, _: said.append(what))
    assert [(arm.name, arm.k) for arm in one.arms] == [("uniform:3", 3), ("popularity:3", 3)]
    assert "uniform:3" in said[0]
    assert f"{said[0]}." in one.notes
    assert "as many negatives" in said[0]
    alone = ns.compare(DATA, methods="whole-data", steps=4, seeds=1)
    assert [(arm.name, arm.k) for arm in alone.arms] == [("uniform:8", 8), ("whole-data", "all")]
    assert not any("as many negatives" in note for note in alone.notes)
    two = ns.compare(DATA, methods=["popularity:2", "dynamic:3"], steps=4, seeds=1)
    assert [arm.name for arm in two.arms] == ["popularity:2", "dynamic:3"]
    assert any("k of 2 and 3" in note for note in two.notes)
    with pytest.raises(NaysayError) as caught:
        ns.compare(DATA, methods=["uniform:3", "whole-data:3"], steps=4, seeds=1)
    assert caught.value.parameter == "methods"


def test_an_option_of_files_with_data_in_memory_is_refused_for_that_reason():
    with pytest.raises(NaysayError, match="in memory"):
        ns.compare(DATA, split="time")


def test_torch_has_its_threads_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    ns.compare(DATA, **SMALL)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
