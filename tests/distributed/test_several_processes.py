"""Three processes over gloo, and two of them: the negatives, states and losses of one process with the whole batch."""

import numpy as np
import pytest
import torch
from three_processes import AMONG_THREE, LOSSES, METHODS, SECONDS, difference, learners, states_after, work

import naysay as ns
from naysay.distributed import WholeBatch, in_shares, observe_all, update_on_first
from naysay.errors import NaysayError
from naysay.losses import gather_rows
from naysay.testing import _frequencies


@pytest.fixture(scope="module")
def found(run_processes):
    """What each of three processes found, over gloo on this machine."""
    return run_processes(work, 3, SECONDS)


CHECKS = ("tensors_and_scores_in_shares", "few_rows_in_shares", "pushes_as_one", "online_as_one", "clusters_as_one")
CHECKS += ("a_judge_learns_as_one", "model_as_one")
SAME = [
    *((2, name) for name in METHODS),
    *((3, name) for name in AMONG_THREE),
    *((size, name) for size in (2, 3) for name in (*learners(), *LOSSES, *CHECKS)),
]


@pytest.mark.parametrize(("size", "check"), SAME, ids=lambda value: str(value))
def test_it_is_that_of_one_process(found, size, check):
    assert [process[size, check] for process in found[:size]] == [""] * size


def test_only_the_first_process_holds_all_rows(found):
    """Beside their own rows, as a share of 31 MB: the first holds all of them, another some blocks of 4 MB."""
    first, *others = (process["held"] for process in found)
    assert first > 0.9
    assert max(others) < 0.8


def test_states_of_two_processes_go_on_in_three_as_in_one(found):
    alone = states_after((0, 1, None), range(5))
    for process in found:
        for name, state in alone.items():
            assert difference(process["states"][name], state) == "", name


# The parameter that the error names in all processes, where one of them has something else.
PARAMETERS = {
    "rng": "rng",
    "k": "k",
    "kinds of k": "k",
    "step": "query",
    "positives": "positives",
    "a bad query": "query",
    "no generator": "rng",
    "width": "vectors",
    "rows": "vectors",
    "negatives": "negatives",
    "shares": "ids",
    "missing": "ids",
    "too few": "ids",
    "below 0": "ids",
    "widths": "rows",
    "dtypes": "rows",
    "whole numbers": "rows",
    "collapsed": "features",
}


@pytest.mark.parametrize("size", [2, 3])
def test_what_does_not_fit_raises_the_same_error_in_all_processes(found, size):
    for process in found[:size]:
        raised = process[size, "refusals"]
        assert {case: raised[case] for case in PARAMETERS} == PARAMETERS
        assert raised["unchanged"] == (0, 0)


@pytest.mark.parametrize("size", [2, 3])
def test_rows_come_in_the_order_of_ranks(found, size):
    everyone = [0, 1, 10, 11, 12, 20, 21, 22, 23][: 5 if size == 2 else 9]
    for rank, process in enumerate(found[:size]):
        ids, first, has_gradients, no_rows, raised = process[size, "gathers"]
        assert (ids, first) == (everyone, (0, 2, 5)[rank])
        assert (has_gradients, no_rows) == (False, (0, 3))
        assert raised == ["vectors"] * 4


@pytest.mark.parametrize("size", [2, 3])
def test_an_error_of_the_sampler_or_the_update_reaches_all(found, size):
    first, *others = (process[size, "refusals"] for process in found[:size])
    assert first["update"] == "ZeroDivisionError"
    assert {one["update"] for one in others} == {"the first process failed: ZeroDivisionError(1)"}
    short = "Everything.draw: row 0 has 2 candidates left of the 3 requested"
    assert all(one["short"].startswith(short) for one in (first, *others))


@pytest.mark.parametrize("size", [2, 3])
def test_an_error_of_the_model_of_one_process_reaches_all(found, size):
    *others, last = (process[size, "refusals"]["a model"] for process in found[:size])
    assert last == "IndexError: of this process"
    assert others == [f"RuntimeError: process {size - 1} failed: IndexError('of this process')"] * (size - 1)


def test_a_backend_without_the_operation_and_a_worker_raise(found):
    for process in found:
        assert process["backends"] == ["group"] * 3
        assert process["a worker"] == "group"


# ---- one process ----------------------------------------------------------------------------------------

KNOWN = ns.Positives.from_pairs(np.arange(20), np.arange(20), 20, 50)
STATIC = ns.samplers.Static(ns.pools.Everything(KNOWN))


def test_one_process_needs_no_group(monkeypatch):
    monkeypatch.setattr(_frequencies, "_DRAWS", 500)
    sampler = WholeBatch(STATIC)
    query = ns.Query(np.arange(20))
    assert difference(sampler.sample(query, 3, rng=ns.rng_for(0)), STATIC.sample(query, 3, rng=ns.rng_for(0))) == ""
    ns.check_sampler(sampler, KNOWN)
    sampler.observe(query, None)  # of a sampler that does not learn
    assert sampler.state() == {}
    sampler.restore({})
    assert repr(sampler).startswith("WholeBatch(sampler=Static(")


CALLS = {
    "sample": lambda group: WholeBatch(STATIC, group).sample(ns.Query([0]), 1, rng=ns.rng_for(0)),
    "observe": lambda group: observe_all(ns.pools.Memory(2), ns.Query([0], positives=[0]), None, group=group),
    "update": lambda group: update_on_first(ns.detectors.Incremental(1, 1), [0], np.ones((1, 1)), print, group=group),
    "score": lambda group: in_shares(lambda anchors, ids: ids, group)(np.arange(2), np.ones((2, 1))),
    "gather_rows": lambda group: gather_rows(torch.ones(1), group),
    "loader": lambda group: ns.data.loader(KNOWN, STATIC, 2),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_processes_that_have_not_met_raise_one_sentence(call, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    rule = "`torch.distributed` must be initialised first, got WORLD_SIZE=2 in the environment without it"
    with pytest.raises(NaysayError, match=rf"{rule}\. Call init_process_group\.$"):
        call(None)
    monkeypatch.setenv("WORLD_SIZE", "1")
    call(None)


def test_a_group_before_torch_distributed_is_initialised_raises():
    with pytest.raises(NaysayError, match=r"^gather_rows: `torch.distributed` must be .* got a group without it\."):
        gather_rows(torch.ones(2), object())
