"""The callback of Lightning, on the hooks that Lightning calls; the package itself is replaced by its base class."""

import sys
import types

import numpy as np
import pytest

import naysay as ns
from naysay.integrations.lightning import monitor_callback

QUERY, NEGATIVES = ns.Query([0, 1], step=3), ns.Negatives(np.array([[4, 5], [6, 7]]))
STEP = {"query": QUERY, "negatives": NEGATIVES, "scores": np.ones((2, 2)), "positive_scores": np.zeros(2)}


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def package(request, monkeypatch):
    module = types.ModuleType(request.param)
    module.Callback = type("Callback", (), {})
    for name in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, module if name == request.param else None)
    return module


class Logger:
    def log_metrics(self, metrics, step=None):
        self.seen = (metrics, step)


def trainer():
    return types.SimpleNamespace(loggers=[Logger()], global_step=9)


def test_each_step_goes_to_the_loggers_of_the_trainer(package):
    callback, run = monitor_callback(ns.difficulty.Monitor()), trainer()
    assert isinstance(callback, package.Callback)
    callback.on_train_batch_end(run, None, {"loss": 1, "naysay": STEP}, None, 0)
    metrics, step = run.loggers[0].seen
    assert (metrics["above_positive"], step) == (1.0, 9)


@pytest.mark.usefixtures("package")
def test_a_monitor_with_a_log_keeps_to_it():
    seen, run = [], trainer()
    callback = monitor_callback(ns.difficulty.Monitor(seen.append), key="mine")
    callback.on_train_batch_end(run, None, {"loss": 1, "mine": STEP}, None, 0)
    assert seen[0]["step"] == 3
    assert not hasattr(run.loggers[0], "seen")


@pytest.mark.usefixtures("package")
def test_the_state_is_part_of_a_checkpoint():
    one, other = (ns.difficulty.Monitor(memory=1 << 16) for _ in range(2))
    callback = monitor_callback(one)
    callback.on_train_batch_end(trainer(), None, {"naysay": STEP}, None, 0)
    monitor_callback(other).load_state_dict(callback.state_dict())
    assert other.calls == 1
    assert other.observe(QUERY, NEGATIVES, np.ones((2, 2)))["repeats"] == 1


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("outputs", [3, {"loss": 1}, {"naysay": {"query": QUERY}}])
def test_a_step_without_what_is_needed_is_named(outputs):
    callback = monitor_callback(ns.difficulty.Monitor())
    with pytest.raises(ns.NaysayError, match=r"^`training_step` must be a dictionary with 'loss' and 'naysay'"):
        callback.on_train_batch_end(trainer(), None, outputs, None, 0)


@pytest.mark.parametrize("first", ["lightning.pytorch", "pytorch_lightning"])
def test_the_package_in_use_is_taken_and_the_other_not_imported(monkeypatch, first):
    module = types.ModuleType(first)
    module.Callback = type("Callback", (), {})
    asked = []

    def imported(name):
        asked.append(name)
        return module

    for name in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, first, module)
    monkeypatch.setattr("importlib.import_module", imported)
    assert isinstance(monitor_callback(ns.difficulty.Monitor()), module.Callback)
    assert asked == [first]


def test_the_other_package_is_tried_where_one_is_too_old(monkeypatch):
    modules = {name: types.ModuleType(name) for name in ("lightning.pytorch", "pytorch_lightning")}
    for name, module in modules.items():
        module.Callback = type("Callback", (), {})
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("naysay._packages.version", {"lightning": "1.9.5", "pytorch-lightning": "2.5.0"}.get)
    assert isinstance(monitor_callback(ns.difficulty.Monitor()), modules["pytorch_lightning"].Callback)
