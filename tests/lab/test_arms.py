"""Arms: which catalogue names fit interactions, samplers of one's own, and what is said about the others."""

import sys

import numpy as np

import naysay as ns
from naysay.lab import (
    Arm,
    Recommendation,
    split_by_user,
)
from naysay.lab._run import Run
from naysay.lab.arms import read_arms, reference_for

DATA = split_by_user(*np.nonzero(np.random.default_rng(0).random((30, 250)) < 0.1), 30, 250)
TASK = Recommendation(DATA, "lightgcn", dim=8)
PARTS = TASK.start(0).parts()


def arms(methods):
    return read_arms(methods, PARTS, TASK.defaults, TASK.own)


def test_a_number_asks_for_as_many_negatives():
    found = arms("dynamic:4, uniform:8")
    assert [(arm.name, arm.k) for arm in found[:2]] == [("dynamic:4", 4), ("uniform:8", 8)]
    run = Run(TASK, found[1], 0.01, 0)
    run.train(1)
    assert run.negatives.shape[1] == 8


def test_a_name_without_a_number_has_the_k_of_the_default_arms():
    assert [(arm.name, arm.k) for arm in arms(["popularity", "uniform:2", "whole-data"])] == [
        ("popularity", TASK.k),
        ("uniform:2", 2),
        ("whole-data", TASK.k),
    ]


def test_only_a_single_arm_gets_a_reference_of_the_same_k():
    def reference(methods):
        return reference_for(arms(methods), PARTS, TASK.defaults, TASK.own)

    assert reference(["popularity:3"]) == Arm("uniform:3", 3, "Static(Everything(positives))")
    assert reference(["uniform:3"]) is None
    assert reference(["popularity", "dynamic"]) is None
    assert [arm.name for arm in arms(["popularity", "uniform"])] == ["popularity", "uniform"]
    assert [arm.name for arm in arms("")] == [arm.name for arm in arms(None)] == [*TASK.defaults]


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
    run = Run(TASK, mine, 0.01, 0)
    run.train(1)
    assert str(tmp_path) not in sys.path
