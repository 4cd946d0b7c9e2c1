"""Tasks on a device: every tensor is there, and the numbers are those of the processor."""

import json
import sys

import numpy as np
import pytest
import torch
from lab_worlds import TASKS, triples
from pretend_device import NAME, PretendDevice

from naysay.arrays import to_numpy, to_torch
from naysay.errors import NaysayError
from naysay.kernels.random import uniforms
from naysay.lab import _task, compare
from naysay.lab._run import Run
from naysay.lab.arms import parts_of, read_arms
from naysay.rng import generator_of
from naysay.samplers import _choose
from tests.fuzz.rules import run as run_command

LEARNING = {
    "lightgcn": ("cached", "learned", "markov-chain", "ANS"),
    "rotate": ("NSCaching", "learned", "SANS", "MixKG"),
    "graphsage": ("MCNS",),
}


def first_step(run):
    """The loss of the first step, its gradients, and the negatives of each row, sorted: equal scores have no order."""
    loss, negatives = run.step_of(run._next_batch(), k=run.arm.k, step=0)
    gradients = torch.autograd.grad(loss, list(run.model.network.parameters()), allow_unused=True)
    made = [np.zeros(0) if part is None else to_numpy(part) for part in gradients]
    return float(loss.detach()), made, None if negatives is None else np.sort(to_numpy(negatives.ids)).tolist()


def check_same(run, other):
    """The same first step, and the same measures."""
    (loss, gradients, ids), (other_loss, other_gradients, other_ids) = first_step(run), first_step(other)
    assert loss == pytest.approx(other_loss, rel=1e-5)
    for ours, theirs in zip(gradients, other_gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert ids == other_ids
    ours, theirs = (one.model.measure(one.model.snapshot(), "test") for one in (run, other))
    assert ours == pytest.approx(theirs, abs=0.01)  # rounding may turn a tie


@pytest.fixture
def pretend(monkeypatch):
    """A device that is not the processor; torch's own check would refuse its name."""
    monkeypatch.setattr(_task, "check_device", lambda parameter, device: None)
    monkeypatch.setattr(sys.modules["naysay.lab.comparison"], "check_device", lambda parameter, device: None)

    def as_on_the_processor(shape, key, like):
        if len(shape) == 2:  # noise of choices
            drawn = np.empty(shape)
            uniforms(0, len(drawn), key, drawn)
        else:  # shares of mixed vectors
            drawn = generator_of(key).random(shape)
        return to_torch(drawn, like.device).to(like.dtype)

    # It has no generator of its own: noise is what the processor would draw.
    monkeypatch.setattr(_choose, "_uniform_on_device", as_on_the_processor)
    return PretendDevice()


@pytest.mark.parametrize("name", ["lightgcn", "rotate", "graphsage", "adapter", "subwords", "conv"])
def test_every_part_of_a_task_is_on_its_device(name, pretend):
    here = TASKS[name]()
    # The head for the tail is as similar as the tail for the head, and a device may take either of equal ones.
    names = [one for one in here.defaults if not one.startswith("near-positive")]
    names += LEARNING.get(name, ())
    if name == "subwords":  # whose arms are those of the adapter
        names = names[:2]

    def arms_of(task):
        return read_arms(names, task, parts_of(task, 0, 100), task.defaults)

    with pretend:
        there = TASKS[name](device=NAME)
        assert there.settings() == {**here.settings(), "device": NAME}
        for arm, other in zip(arms_of(there), arms_of(here), strict=True):
            run = Run(there, arm, 0.01, 0)
            check_same(run, Run(here, other, 0.01, 0))
            run.train(2)
            run.validate()
            assert {part.device.type for part in run.model.network.parameters()} == {NAME}
            assert run.negatives is None or run.negatives.ids.device.type == NAME


def test_a_tensor_of_another_device_is_noticed(pretend):
    with pretend:
        there, here = torch.ones(3, 2).to(NAME), torch.ones(3, 2)
        assert to_numpy(there @ there.T).tolist() == [[2.0] * 3] * 3
        with pytest.raises(RuntimeError, match="two devices"):
            there + here
        with pytest.raises(RuntimeError, match="another device"):
            here[there.long()]


def test_a_comparison_records_its_device(pretend, tmp_path):
    given = {"task": "knowledge-graph", "methods": "corruption:2", "steps": 4, "seeds": 1}
    with pretend:
        there = compare(triples(), **given, out=tmp_path / "there", device=NAME)
        kept = json.loads((tmp_path / "there" / "comparison.json").read_text())["settings"]
        assert there.settings["device"] == kept["device"] == NAME
    with pytest.raises(NaysayError) as caught:
        compare(triples(), **given, out=tmp_path / "there")
    assert caught.value.parameter == "out"


@pytest.mark.parametrize("device", ["nowhere", "cuda:99"])
def test_devices_that_are_refused(device, tmp_path):
    for call in (TASKS["mf"], lambda device: compare(tmp_path / "no.csv", out=tmp_path / "out", device=device)):
        with pytest.raises(NaysayError) as caught:
            call(device=device)
        assert caught.value.parameter == "device"
    finished = run_command(["compare", "--quick", "--device", device, "-o", str(tmp_path / "out")])
    assert (finished.code, finished.out, finished.err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "out").exists()
