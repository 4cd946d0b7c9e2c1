"""A comparison: the same start and order for all arms, the rate by halving, kept runs, and a table that repeats."""

import importlib
import json
from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.comparing import Point, RunResult, _run
from naysay.comparing._data import KINDS
from naysay.comparing._folder import Folder
from naysay.comparing.arms import Arm, read_arms
from naysay.errors import NaysayError
from naysay.tasks import Images, Recommendation, split_by_user

DATA = split_by_user(*np.nonzero(np.random.default_rng(1).random((40, 60)) < 0.2), 40, 60)
SMALL = {"methods": "dynamic", "steps": 8, "seeds": 2}


def without_times(result):
    rows = []
    for arm in result.arms:
        points = [[(p.step, p.value, p.hardness, p.false_share) for p in run.points] for run in arm.runs]
        rows.append((arm.name, arm.rate, arm.tried, points, [run.test for run in arm.runs]))
    return rows


def test_all_arms_start_from_the_same_vectors_and_see_the_same_batches():
    task = Recommendation(DATA, width=8, batch=32)
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
    task = Recommendation(DATA, model, width=8)
    arm = read_arms(["uniform"], task.start(0).parts(), task.defaults, task.own)[0]
    (group,) = _run.Run(task, arm, 0.01, 0).optimiser.param_groups
    assert group["weight_decay"] == decay
    found = ns.compare(DATA, task="recommendation", model=model, methods=["uniform"], steps=4, seeds=1)
    assert found.settings["decay"] == decay


def test_the_rate_is_chosen_by_successive_halving(monkeypatch):
    quality = {0.001: [9, 9, 90], 0.003: [1, 50, 50], 0.01: [5, 40, 70], 0.03: [8, 20, 20], 0.1: [6, 30, 80]}
    trained = []

    class Fake:
        def __init__(self, task, arm, rate, seed):
            self.rate, self.done, self.top = rate, 0, -1.0
            assert seed == 5 + _run.TUNING

        def to(self, step, every, told):
            trained.append((self.rate, step))
            told(step - self.done)
            self.done = step
            self.top = quality[self.rate][{25: 0, 50: 1, 100: 2}[step]]

    monkeypatch.setattr(_run, "Run", Fake)
    steps = []
    rate, tried = _run.choose_rate(None, None, 100, 5, steps.append)
    # After a quarter 0.001, 0.03 and 0.1 are best; after half 0.1 and 0.03; 0.1 is best at the end.
    assert [rate for rate, step in trained if step == 50] == [0.001, 0.03, 0.1]
    assert [rate for rate, step in trained if step == 100] == [0.1, 0.03]
    assert rate == 0.1
    assert tried == {"0.001": 9, "0.003": 1, "0.01": 5, "0.03": 20, "0.1": 80}
    assert sum(steps) == _run.TUNED * 100


def test_the_best_point_is_the_first_highest_and_is_the_one_that_is_tested(monkeypatch):
    task = Recommendation(DATA, width=8)
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


def test_two_comparisons_are_the_same_but_for_times(tmp_path):
    first, second = (ns.compare(DATA, **SMALL) for _ in range(2))
    assert without_times(first) == without_times(second)
    kept = ns.compare(DATA, **SMALL, out=tmp_path / "out")
    assert without_times(kept) == without_times(first)
    other = ns.compare(DATA, **SMALL, seed=1)
    assert without_times(other) != without_times(first)
    assert without_times(other)[0][3][0] == without_times(first)[0][3][1] or other.arms[0].rate != first.arms[0].rate


def test_what_is_finished_is_kept_and_a_second_call_continues(tmp_path, monkeypatch):
    whole = ns.compare(DATA, **SMALL)

    def stop(what, share):
        if what.startswith("dynamic: seed 2"):
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        ns.compare(DATA, **SMALL, out=out, told=stop)
    kept = sorted(path.name for path in (out / "runs").iterdir())
    assert [name.partition(".")[2] for name in kept] == [
        "rate.json",
        "seed0.json",
        "rate.json",
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
    done = ns.compare(DATA, **SMALL, out=out, told=lambda what, share: shares.append(share))
    assert trained == [("dynamic", 1)]
    assert without_times(done) == without_times(whole)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    more = ns.compare(DATA, **{**SMALL, "methods": "dynamic,popularity"}, out=out)
    assert [name for name, _ in trained[1:]] == ["popularity", "popularity"]
    assert [arm.name for arm in more.arms] == ["uniform", "dynamic", "popularity"]
    (out / "runs" / kept[0]).write_text("{damaged")
    assert without_times(ns.compare(DATA, **SMALL, out=out)) == without_times(whole)


def test_what_is_not_known_is_kept_as_such(tmp_path):
    folder, arm = Folder(tmp_path / "out"), Arm("SimSiam", 1, "sim_siam()")
    folder.begin({"steps": 8}, None)
    run = RunResult(3, (Point(1, 0.5, 0.25, 0.125, nan, nan),), {"accuracy": 0.5})
    folder.keep_run(arm, run)
    again = folder.run(arm, 3)
    assert (again.seed, again.test, again.points[0].value) == (3, run.test, 0.125)
    assert isnan(again.points[0].hardness)
    assert isnan(again.peak_bytes)


def test_a_step_of_ones_own_without_negatives(tmp_path):
    def mine(parts):
        return parts["whole_data"](weight=0.5)

    result = ns.compare(DATA, methods={"mine": mine}, steps=8, seeds=1, out=tmp_path)
    assert all(isnan(point.false_share) and isnan(point.hardness) for point in result["mine"].runs[0].points)
    assert not isnan(result["uniform"].runs[0].points[0].hardness)
    assert "Hardness of the negatives" in (tmp_path / "compare.html").read_text()


def test_an_arm_that_cannot_be_made_is_an_error_before_any_training(monkeypatch):
    monkeypatch.setattr(_run.Run, "train", None)
    with pytest.raises(NaysayError, match=r"functions that return an object with sample\(query, k, \*, rng\), got 3"):
        ns.compare(DATA, methods={"mine": lambda parts: 3}, steps=8)


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


def test_the_results_and_the_report_are_written(tmp_path):
    result = ns.compare(DATA, **SMALL, out=tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["recommendation"] == result.recommendation
    assert [row["negatives"] for row in found["table"]] == [row[0] for row in result.rows()]
    assert found["settings"]["steps"] == 8
    page = (tmp_path / "compare.html").read_text()
    assert result.recommendation.replace("'", "&#x27;") in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"task": "recomendation"},
            "`task` must be one of 'recommendation', 'knowledge-graph', 'graph', 'images', 'text', got 'recomendation'",
        ),
        ({"model": "svd"}, "`model` must be one of 'mf', 'lightgcn', got 'svd'."),
        ({"seeds": 0}, "`seeds` must be at least 1, got 0."),
        ({"steps": 3}, "`steps` must be at least 4, got 3."),
        ({"budget": "soon"}, "`budget` must be a time such as 30m, 2h or 90s, got 'soon'."),
        ({"budget": 0}, "`budget` must be a finite number above 0, got 0."),
        ({"methods": "TransE"}, "`methods` must be methods that fit the data, got 'TransE', which needs Corruption"),
        ({"task": "text"}, "`task` must be 'recommendation' for Interactions, got 'text'."),
        ({"split": "time"}, "`split` must be left out for the task 'recommendation', got 'time'."),
        ({"quick": True}, "`data` must be left out with `quick`, got Interactions("),
        ({"out": "missing/folder"}, "`out` must be in an existing folder, got 'missing/folder'."),
    ],
)
def test_bad_options_are_explained_before_any_training(options, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_run.Run, "train", None)
    with pytest.raises(NaysayError) as caught:
        ns.compare(DATA, **options)
    assert str(caught.value).startswith(f"compare: {message}")


@pytest.mark.parametrize("option", [{"budget": "1s"}, {"split": "time"}, {"liked": 4.0}, {"test": "held.csv"}])
def test_options_that_quick_does_not_use_are_errors(option, monkeypatch):
    monkeypatch.setattr(_run.Run, "train", None)
    with pytest.raises(NaysayError, match=rf"^compare: `{next(iter(option))}` must be left out with `quick`, got "):
        ns.compare(quick=True, **option)


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
    monkeypatch.setattr(_run, "cost_of", lambda task, arm, seed: (0.01, 0.0))
    steps = importlib.import_module("naysay.comparing.compare")._steps_for
    task, arms = Recommendation(DATA, batch=40), [Arm("uniform", 1, ""), Arm("dynamic", 1, "")]
    each = 2 * (3 + _run.TUNED) * 0.01  # seconds of a step of the whole comparison
    epoch = -(-task.pairs // 40)
    for afford, expected in ((99, 50), (100, 100), (199, 100), (200, 200), (4999, 2000), (5000, 5000)):
        assert steps(task, arms, 3, afford * each * 1.0001, 0, lambda *_: None) == expected
    assert steps(task, arms, 3, (epoch + 0.5) * each, 0, lambda *_: None) >= epoch
    with pytest.raises(NaysayError) as caught:
        steps(task, arms, 3, 0.5 * epoch * each, 0, lambda *_: None)
    needed = f"`budget` must be enough for an epoch of {epoch} steps, about 1m, got"
    assert str(caught.value).startswith(needed)
    options = {
        "methods": "dynamic",
        "seeds": 1,
        "budget": f"{30 * 2 * (1 + _run.TUNED) * 0.01}s",
        "out": tmp_path / "out",
    }
    first = ns.compare(DATA, **options)
    monkeypatch.setattr(_run, "cost_of", lambda task, arm, seed: (0.0001, 0.0))  # a faster moment
    again = ns.compare(DATA, **options)
    assert first.settings["steps"] == again.settings["steps"] == 20


def test_the_first_step_and_measure_are_not_timed(monkeypatch):
    clock = [0.0]

    class Slow:
        """A first step of 5 s and a first measure of 7 s; later ones of 0.4 s and 0.1 s."""

        def __init__(self, *_):
            self.done, self.looks, self.processor_seconds = 0, 0, 0.0

        def train(self, steps):
            took = 5.0 if not self.done else 0.4 * steps
            self.done, self.processor_seconds = self.done + steps, self.processor_seconds + took

        def look(self):
            clock[0] += 0.1 if self.looks else 7.0
            self.looks += 1

    monkeypatch.setattr(_run, "Run", Slow)
    monkeypatch.setattr(_run.time, "process_time", lambda: clock[0])
    assert _run.cost_of(Recommendation(DATA), Arm("uniform", 1, ""), 0) == (pytest.approx(0.4), pytest.approx(0.1))


def test_torch_has_its_threads_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    ns.compare(DATA, **SMALL)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
