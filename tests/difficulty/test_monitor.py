"""The monitor of a training run: its numbers by plain loops, every kind of logger, states, and files that go on."""

import json
import math
import resource
import sys
import types

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.difficulty import Monitor


def step_of(seed, rows=5, width=8, step=0, **more):
    """A query, negatives with empty slots, scores and scores of the positives."""
    rng = np.random.default_rng(seed)
    ids = np.where(rng.random((rows, width)) < 0.2, -1, rng.integers(0, 50, (rows, width)))
    negatives = ns.Negatives(ids, suspicion=rng.random((rows, width)), **more)
    return (
        ns.Query(rng.integers(0, 9, rows), step=step),
        negatives,
        rng.normal(size=(rows, width)),
        rng.normal(size=rows),
    )


def observe(monitor, query, negatives, scores, positive):
    return monitor.observe(query, negatives, scores, positive_scores=positive)


def mean(values):
    return sum(values) / len(values) if values else math.nan


def by_loops(negatives, scores, positive, temperature, hard, hardest):
    """The same numbers, one row after the other."""
    rows = [
        [(scores[b, j], negatives.suspicion[b, j]) for j in range(negatives.shape[1]) if negatives.ids[b, j] >= 0]
        for b in range(len(positive))
    ]
    filled = [row for row in rows if row]
    bands, effective = {"easy": [], "hard": [], "hardest": []}, []
    for row in filled:
        ordered = sorted((score for score, _ in row), reverse=True)
        powers = [math.exp(score / temperature) for score in ordered]
        shares = [power / sum(powers) for power in powers]
        top, upper = math.floor(hardest * len(row) + 1e-9), math.floor(hard * len(row) + 1e-9)
        for name, part in (("hardest", shares[:top]), ("hard", shares[top:upper]), ("easy", shares[upper:])):
            bands[name].append(sum(part))
        effective.append(1 / sum(share**2 for share in shares))
    slots = [slot for row in rows for slot in row]
    return {
        "score/negatives": mean([score for score, _ in slots]),
        "score/positives": mean(positive.tolist()),
        "above_positive": mean([score > positive[b] for b, row in enumerate(rows) for score, _ in row]),
        "effective_negatives": mean(effective),
        "false_share": mean([one for _, one in slots]),
        "suspected": mean([one >= 0.5 for _, one in slots]),
        "negatives": mean([len(row) for row in rows]),
        "empty_rows": mean([not row for row in rows]),
        **{f"gradient/{name}": mean(parts) for name, parts in bands.items()},
    }


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 9), st.sampled_from([0.05, 0.3, 1.0]))
def test_the_numbers_are_those_of_plain_loops(seed, rows, width, temperature):
    parts = step_of(seed, rows, width)
    found = observe(Monitor(temperature=temperature), *parts)
    expected = by_loops(*parts[1:], temperature, 0.5, 0.125)
    for name, value in expected.items():
        assert found.get(name, math.nan) == pytest.approx(value, nan_ok=True), name


def test_torch_gives_the_same_and_gradients_are_not_needed():
    query, negatives, scores, positive = step_of(3)
    expected = observe(Monitor(), query, negatives, scores, positive)
    there = ns.Query(torch.from_numpy(query.anchors))
    with_gradient = torch.from_numpy(scores).requires_grad_()
    assert observe(Monitor(), there, negatives.to("cpu"), with_gradient, torch.from_numpy(positive)) == expected


def test_a_detector_is_asked():
    query, negatives, scores, _ = step_of(3)
    negatives = ns.Negatives(negatives.ids, scores=scores)
    found = Monitor(detector=ns.detectors.MaxScore(0.5)).observe(query, negatives)
    assert found["suspected"] == pytest.approx((scores[negatives.mask] >= 0.5).mean())


def test_nan_and_infinite_scores_are_counted_and_do_not_end_the_run():
    scores = np.array([[np.nan, 1.0], [np.inf, -np.inf]])
    found = Monitor().observe(ns.Query([0, 1]), ns.Negatives(np.array([[1, 2], [3, 4]])), scores)
    assert (found["not_finite"], found["score/negatives"], found["effective_negatives"]) == (0.75, 1.0, 1.0)


def test_repeats_are_pairs_of_an_earlier_step():
    monitor = Monitor()
    shares = []
    for ids in ([[1, 2], [3, 4]], [[1, 9], [8, 3]], [[4, 5], [1, 2]], [[9, 1], [3, -1]]):
        negatives = ns.Negatives(np.array(ids), scores=np.zeros((2, 2)))
        shares.append(monitor.observe(ns.Query([0, 1]), negatives)["repeats"])
    assert shares == [0, 0.5, 0, 1]
    assert "repeats" not in Monitor(memory=0).observe(ns.Query([0, 1]), negatives)


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_and_no_negatives_are_ordinary(rows):
    found = Monitor().observe(ns.Query(np.zeros(rows, int)), ns.Negatives(np.full((rows, 3), -1)), np.zeros((rows, 3)))
    assert found.get("empty_rows") == (1.0 if rows else None)
    assert "score/negatives" not in found


def test_what_was_left_out_is_counted():
    query, negatives, scores, _ = step_of(3, dropped={"exhausted": 3, "suspicious": 2})
    found = Monitor().observe(query, negatives, scores)
    assert (found["exhausted"], found["dropped/suspicious"]) == (3, 2)


def test_only_each_so_many_steps_are_measured_and_the_cost_is_known():
    monitor = Monitor(every=3)
    found = [observe(monitor, *step_of(0, step=step)) is not None for step in range(7)]
    assert found == [True, False, False, True, False, False, True]
    assert monitor.cost > 0


# ---- loggers --------------------------------------------------------------------------------------------


class Board:
    """As SummaryWriter of TensorBoard."""

    def __init__(self):
        self.seen = []

    def add_scalar(self, name, value, step):
        self.seen.append((name, value, step))

    def add_histogram(self, name, values, step):
        self.seen.append((name, len(values), step))


class Metrics:
    """As a logger of Lightning."""

    def log_metrics(self, metrics, step=None):
        self.seen = (metrics, step)


def test_every_kind_of_logger_gets_the_numbers(tmp_path, monkeypatch):
    parts = step_of(1, step=7)
    board, metrics, called = Board(), Metrics(), []
    found = observe(Monitor(board), *parts)
    assert {name: value for name, value, step in board.seen[: len(found)]} == found
    assert {name for name, _, _ in board.seen[len(found) :]} == {"score/negatives", "score/positives", "suspicion"}
    assert {step for _, _, step in board.seen} == {7}
    assert (observe(Monitor(metrics), *parts), 7) == metrics.seen
    assert observe(Monitor(called.append), *parts) == called[0]["scalars"]
    assert sum(called[0]["histograms"]["score/negatives"]["counts"]) == int(parts[1].mask.sum())
    wandb = types.ModuleType("wandb")
    wandb.Histogram = lambda np_histogram: ("histogram", len(np_histogram[0]))
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    logged = []
    run = type("Run", (), {"__module__": "wandb.sdk", "log": lambda self, data, step: logged.append((data, step))})()
    found = observe(Monitor(run), *parts)
    pictures = {f"histogram/{name}": ("histogram", 30) for name in called[0]["histograms"]}
    assert logged == [({**found, **pictures}, 7)]


def test_a_disk_that_is_full_leaves_whole_lines(tmp_path):
    """The system writes a part of a line then; without it the next line would be damaged."""
    log = tmp_path / "run.jsonl"
    monitor = Monitor(log)
    query, negatives, scores, _ = step_of(0)
    monitor.observe(query, negatives, scores)
    before, limits = log.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, limits[1]))
    try:
        with pytest.raises(OSError, match="No space left on device"):
            monitor.observe(query, negatives, scores)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert log.read_bytes() == before
    monitor.observe(ns.Query(query.anchors, step=7), negatives, scores)
    assert ns.report.read_run(log).steps.tolist() == [query.step, 7]


def test_a_file_of_lines_goes_on_after_a_restart(tmp_path):
    path = tmp_path / "run.jsonl"
    first = Monitor(path, memory=1 << 16)
    for step in range(4):
        observe(first, *step_of(0, step=step))
    np.savez(tmp_path / "state.npz", **first.state())
    with path.open("ab") as file:
        file.write(b'{"step": 4, "scal')  # killed while it wrote
    again = Monitor(path, memory=1 << 16)
    with np.load(tmp_path / "state.npz") as saved:  # in which a number is an array
        again.restore(saved)
    assert observe(again, *step_of(0, step=3))["repeats"] == 1
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("step") for line in lines] == [None, 0, 1, 2, 3, 3]
    assert ns.report.read_run(path).steps.tolist() == [0, 1, 2, 3]
    assert again.calls == 5


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"log": 3}, "log"),
        ({"log": Board}, "log"),
        ({"log": "run.txt"}, "log"),
        ({"log": "nowhere/run.jsonl"}, "log"),
        ({"log": "old.jsonl"}, "log"),
        ({"histograms": -1}, "histograms"),
        ({"hard": 0.1}, "hardest"),
        ({"detector": 3}, "detector"),
        ({"memory": -1}, "memory"),
    ],
)
def test_an_invalid_setting_is_named(settings, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.jsonl").write_text('{"text": "mine"}\n')
    with pytest.raises(ns.NaysayError) as caught:
        Monitor(**settings)
    assert caught.value.parameter == parameter
    assert (tmp_path / "old.jsonl").read_text() == '{"text": "mine"}\n'


QUERY, NEGATIVES, SCORES, POSITIVE = step_of(0)


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda monitor: monitor.observe([1], NEGATIVES, SCORES), "query"),
        (lambda monitor: monitor.observe(QUERY, NEGATIVES.ids, SCORES), "negatives"),
        (lambda monitor: monitor.observe(QUERY, NEGATIVES), "scores"),
        (lambda monitor: monitor.observe(QUERY, NEGATIVES, SCORES[:2]), "scores"),
        (lambda monitor: observe(monitor, QUERY, NEGATIVES, SCORES, POSITIVE[:2]), "positive_scores"),
        (lambda monitor: monitor.restore(Monitor(memory=9).state()), "seen"),
        (lambda monitor: monitor.restore(None), "state"),
    ],
)
def test_an_invalid_argument_is_named(call, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        call(Monitor(memory=8))
    assert caught.value.parameter == parameter


def test_the_share_of_suspected_slots_is_that_of_the_detectors_threshold():
    class Third:
        suspicion_threshold = 0.3

        def suspicion(self, query, negatives):
            return np.full(negatives.shape, 0.35)

    negatives = ns.Negatives(np.array([[1, 2]]), scores=np.zeros((1, 2)))
    assert Monitor(detector=Third()).observe(ns.Query([0]), negatives)["suspected"] == 1.0
