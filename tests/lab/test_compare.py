"""A comparison: the same start and order for all arms, the rate by halving, kept runs, and a table that repeats."""

import importlib
import re
import time
from dataclasses import replace
from math import isnan
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.errors import NaysayError
from naysay.lab import Images, Recommendation, Recommender, _run, split_by_user
from naysay.lab._kinds import KINDS
from naysay.lab.arms import Arm, read_arms
from naysay.lab.result import TUNED

DATA = split_by_user(*np.nonzero(np.random.default_rng(1).random((40, 60)) < 0.2), 40, 60)
SMALL = {"methods": "uniform,dynamic", "steps": 8, "seeds": 2}


def without_times(result):
    rows = []
    for arm in result.arms:
        points = [[(p.step, p.value, p.hardness, p.false_share) for p in run.points] for run in arm.runs]
        rows.append((arm.name, arm.lr, arm.tried, points, [run.test for run in arm.runs]))
    return rows


def test_all_arms_start_from_the_same_vectors_and_see_the_same_batches():
    task = Recommendation(DATA, dim=8, batch=32)
    seen = []
    for arm in read_arms("dynamic,uniform:3", task.start(0).parts(), task.defaults):
        run = _run.Run(task, arm, 0.01, 3)
        start = run.model.network.vectors.detach().clone()
        batches = []
        for _ in range(20):  # more than an epoch
            run.train(1)
            batches.append(run.batch.tolist())
        seen.append((start, batches))
    assert all(torch.equal(start, seen[0][0]) for start, _ in seen)
    assert all(batches == seen[0][1] for _, batches in seen)
    epoch = [row for batch in seen[0][1][: task.pairs // 32] for row in batch]
    assert len(set(epoch)) == len(epoch)


@pytest.mark.parametrize(("model", "decay"), [("mf", 1e-6), ("lightgcn", 1e-8)])
def test_the_weight_decay_is_that_of_the_model(model, decay):
    task = Recommendation(DATA, model, dim=8)
    arm = read_arms(["uniform"], task.start(0).parts(), task.defaults, task.own)[0]
    (group,) = _run.Run(task, arm, 0.01, 0).optimiser.param_groups
    assert group["weight_decay"] == decay
    found = ns.compare(DATA, task="recommendation", model=model, methods=["uniform"], steps=4, seeds=1)
    assert found.settings["decay"] == decay


def test_the_learning_rate_is_chosen_by_successive_halving(monkeypatch):
    quality = {0.001: [9, 9, 90], 0.003: [1, 50, 50], 0.01: [5, 40, 70], 0.03: [8, 20, 20], 0.1: [6, 30, 80]}
    trained = []

    class Fake:
        def __init__(self, task, arm, lr, seed, steps):
            assert steps == 100
            self.lr, self.done, self.best_value = lr, 0, -1.0
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


@pytest.mark.parametrize("task", ["graph", "text", "images"])
def test_every_task_gives_the_same_table_twice(task, tmp_path, monkeypatch):
    images = KINDS["images"].generated(0)
    few = Images(images.images[:240, 0], images.labels[:240])  # all 1,500 take ten times as long
    monkeypatch.setitem(KINDS, "images", replace(KINDS["images"], generated=lambda seed: few))
    methods = {"graph": "k-hop:2", "text": "judged:4", "images": "SimSiam"}[task]
    options = {"task": task, "quick": True, "methods": methods, "steps": 4, "seeds": 1}
    first, second = ns.compare(**options, out=tmp_path), ns.compare(**options)
    np.testing.assert_equal(without_times(first), without_times(second))
    assert (tmp_path / "compare.html").stat().st_size > 10_000


def test_a_folder_of_something_else_is_an_error(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(NaysayError, match=r"`out` must be a new folder, or that of an earlier comparison, got"):
        ns.compare(DATA, **SMALL, out=tmp_path)
    with pytest.raises(NaysayError, match=r"`out` must be a folder, got"):
        ns.compare(DATA, **SMALL, out=tmp_path / "thesis.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_with_other_settings_is_an_error(tmp_path):
    ns.compare(DATA, **SMALL, out=tmp_path / "out")
    for change, message in (
        ({"steps": 12}, "`out` must be the folder of a comparison with steps 12, got one with 8."),
        ({"model": "lightgcn"}, "`out` must be the folder of a comparison with model lightgcn, got one with mf."),
    ):
        with pytest.raises(NaysayError) as caught:
            ns.compare(DATA, **SMALL | change, out=tmp_path / "out")
        assert message in str(caught.value)


def test_the_budget_decides_the_steps_once(tmp_path, monkeypatch):
    monkeypatch.setattr(_run, "step_seconds", lambda task, arm, seed: (0.01, None))
    monkeypatch.setattr(_run, "validation_seconds", lambda run: 0.0)
    steps = importlib.import_module("naysay.lab.comparison").steps_for
    task, arms = Recommendation(DATA, batch=40), [Arm("uniform", 1, ""), Arm("dynamic", 1, "")]
    each = 2 * (3 + TUNED) * 0.01  # seconds of a step of the whole comparison
    for afford, expected in ((100, 100), (199, 100), (200, 200), (4999, 2000), (5000, 5000)):
        assert steps(task, arms, 3, afford * each * 1.0001, 0, lambda *_: None) == expected
    options = {"methods": "uniform,dynamic", "seeds": 1, "budget": 210 * 2 * (1 + TUNED) * 0.01, "out": tmp_path}
    first = ns.compare(DATA, **options)
    monkeypatch.setattr(_run, "step_seconds", lambda task, arm, seed: (0.0001, None))  # a faster moment
    again = ns.compare(DATA, **options)
    assert first.settings["steps"] == again.settings["steps"] == 200


def test_validations_and_tests_are_part_of_the_budget(monkeypatch):
    """Two arms, (3 + 3) runs of 20 validations of 0.1 s each, and 3 tests that cost ten validations."""
    monkeypatch.setattr(_run, "step_seconds", lambda task, arm, seed: (0.01, None))
    monkeypatch.setattr(_run, "validation_seconds", lambda run: 0.1)
    monkeypatch.setattr(Recommendation, "test_work", 10.0, raising=False)
    steps = importlib.import_module("naysay.lab.comparison").steps_for
    task, arms = Recommendation(DATA, batch=40), [Arm("uniform", 1, ""), Arm("dynamic", 1, "")]
    monkeypatch.setattr(task, "test_work", 10.0)
    measures, each = 2 * (6 * 20 + 3 * 10) * 0.1, 2 * 6 * 0.01
    assert steps(task, arms, 3, measures + 201 * each, 0, lambda *_: None) == 200
    with pytest.raises(NaysayError) as caught:
        steps(task, arms, 3, measures, 0, lambda *_: None)
    assert caught.value.parameter == "budget"


def burn(seconds):
    """Use the processor, which is what a budget counts."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_an_impossible_budget_is_known_before_a_second_arm_is_timed(monkeypatch):
    measure, drawn = Recommender.measure, []

    def slow_measure(self, vectors, part="validation"):
        burn(0.3)
        return measure(self, vectors, part)

    def noticed(parts):
        drawn.append("made")
        sampler = ns.samplers.Static(parts["pool"])
        return SimpleNamespace(
            sample=lambda *given, **settings: drawn.append("drawn") or sampler.sample(*given, **settings)
        )

    monkeypatch.setattr(Recommender, "measure", slow_measure)
    said = []
    began = time.process_time()
    with pytest.raises(NaysayError) as caught:
        # 20 validations of 0.3 s, for 6 runs of 2 arms, are 72 s
        ns.compare(
            DATA,
            methods={"uniform": None, "mine": noticed},
            budget="20s",
            on_progress=lambda what, _: said.append(what),
        )
    assert time.process_time() - began < 5
    assert caught.value.parameter == "budget"
    needed = int(re.search(r"at least (\d+)m", str(caught.value))[1])
    assert 72 <= 60 * needed <= 180
    assert "drawn" not in drawn
    assert len(said) == 1


def test_timing_the_arms_takes_a_small_share_of_the_budget():
    timed = set()

    def slow(name):
        def make(parts):
            sampler = ns.samplers.Static(parts["pool"])

            def sample(*given, **settings):
                timed.add(name)
                burn(0.3)
                return sampler.sample(*given, **settings)

            return SimpleNamespace(sample=sample)

        return make

    methods = {"uniform": None} | {f"slow {place}": slow(place) for place in range(8)}
    began = time.process_time()
    with pytest.raises(NaysayError) as caught:
        ns.compare(DATA, methods=methods, budget="30s")
    # 5 % of 30 s are 1.5 s; one arm takes at least 0.6 s, and one that was begun is ended.
    assert time.process_time() - began < 6
    assert len(timed) <= 4
    assert caught.value.parameter == "budget"


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
