"""Arms: which catalogue names fit interactions, samplers of one's own, and what is said about the others."""

import sys

import numpy as np
import pytest

import naysay as ns
from naysay.comparing import Arm, fitting_methods
from naysay.comparing._run import Run
from naysay.comparing.arms import read_arms, reference_for
from naysay.errors import NaysayError
from naysay.tasks import (
    ImageContrast,
    NodeEmbedding,
    Recommendation,
    Retrieval,
    split_by_user,
)

DATA = split_by_user(*np.nonzero(np.random.default_rng(0).random((30, 250)) < 0.1), 30, 250)
TASK = Recommendation(DATA, "lightgcn", width=8)
PARTS = TASK.start(0).parts()
FITTING = fitting_methods(PARTS, TASK.own)


def arms(methods):
    return read_arms(methods, PARTS, TASK.defaults, TASK.own)


def test_what_fits_is_what_the_task_can_offer():
    assert {"uniform", "popularity", "DNS", "AOBPR", "warp", "MixGCF", "N.S. (negative sharing)"} <= {*FITTING}
    assert not {"TransE", "SANS", "MoCo", "ANCE", "distance-weighted", "losses.bpr", "DENS", "DPR", "SimANS"} & {
        *FITTING
    }
    assert {arm.name.partition(":")[0] for arm in arms(None)} <= {*FITTING}
    assert fitting_methods({}) == ()


@pytest.mark.parametrize("name", FITTING)
def test_every_fitting_method_trains_and_draws_nothing_known(name):
    arm = next(arm for arm in arms([name]) if arm.name == name)
    run = Run(TASK, arm, 0.01, 0)
    run.train(2)
    if run.negatives is not None:
        users = TASK.users.numpy()[run.batch]
        ids = run.negatives.numpy().ids
        assert ids.max() >= 0
        assert not DATA.train.contains(users, ids).any()
    assert np.isfinite(run.model.vectors.detach().numpy()).all()


def test_a_number_asks_for_as_many_negatives():
    found = arms("dynamic:4, uniform:8,DNS(M, N)" if "DNS(M, N)" in FITTING else "dynamic:4, uniform:8")
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


@pytest.mark.parametrize("task", [Recommendation, NodeEmbedding, Retrieval, ImageContrast])
@pytest.mark.parametrize("which", ["defaults", "quick"])
def test_the_default_arms_of_a_task_have_one_k(task, which):
    numbers = {name.rpartition(":")[2] for name in getattr(task, which) if ":" in name}
    assert len(numbers) == 1
    assert numbers == {str(getattr(task, "k", 8))}


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


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("dynamc", "`methods` must be names of methods, got 'dynamc'. Did you mean 'dynamic'?"),
        ("SimSiam", "`methods` must be methods that fit the data, got 'SimSiam', which is for images."),
        ("nosuch", "`methods` must be names of methods, got 'nosuch'. `naysay methods` lists them all."),
        (
            "TransE",
            "`methods` must be methods that fit the data, got 'TransE', which needs Corruption, train, valid. These ",
        ),
        ("DPR", "got 'DPR', which has no composition of one sampler. These fit: whole-data, uniform, "),
        ("losses.bpr", "got 'losses.bpr', which has no composition of one sampler."),
        ("uniform:0", "`methods` must be names with a number of negatives from 1 to 100,000, got 'uniform:0'."),
        (
            "no_such_module:make",
            "`methods` must be names of the catalogue, or module:object, got 'no_such_module:make' (No",
        ),
        ("os:nothing", "got 'os:nothing' (module 'os' has no attribute 'nothing')."),
        ("math:pi", "`methods` must be functions that get {name: part} and return a sampler, got 'math:pi': 3.14"),
        (["dynamic", "dynamic"], "`methods` must be different names, got 'dynamic' twice."),
        (7, "`methods` must be names, or {name: function}, got 7."),
        ([], "`methods` must be at least one name, got none."),
        ([7], "`methods` must be names, or {name: function}, got [7]."),
    ],
)
def test_methods_that_cannot_be_used_are_explained(methods, message):
    with pytest.raises(NaysayError) as caught:
        arms(methods)
    assert message in str(caught.value)


def test_a_function_must_return_a_sampler():
    arm = arms({"mine": lambda parts: 3})[0]
    with pytest.raises(NaysayError, match=r"return an object with sample\(query, k, \*, rng\), got 3"):
        Run(TASK, arm, 0.01, 0)
