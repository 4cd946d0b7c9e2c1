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
CHECKS += ("a_judge_learns_as_one",)
SAME = [
    *((2, name) for name in METHODS),
    *((3, name) for name in AMONG_THREE),
    *((size, name) for size in (2, 3) for name in (*learners(), *LOSSES, *CHECKS)),
]


@pytest.mark.parametrize(("size", "check"), SAME, ids=lambda value: str(value))
def test_it_is_that_of_one_process(found, size, check):
    assert [process[size, check] for process in found[:size]] == [""] * size


def test_only_the_first_process_holds_all_rows(found):
    """Beside their own rows, as a share of 61 MB: the first holds all of them, another some blocks of 4 MB."""
    first, *others = (process["held"] for process in found)
    assert first > 0.9
    assert max(others) < 0.6


def test_states_of_two_processes_go_on_in_three_as_in_one(found):
    alone = states_after((0, 1, None), range(5))
    for process in found:
        for name, state in alone.items():
            assert difference(process["states"][name], state) == "", name


SENTENCES = {
    "rng": "WholeBatch.sample: `rng` must be the same in all processes, got others. Pass rng_for(seed, step), without "
    "a rank. `data.loader` draws by rank: give it the sampler itself.",
    "k": "WholeBatch.sample: `k` must be the same in all processes, got {1, 2}.",
    "kinds of k": "WholeBatch.sample: `k` must be the same in all processes, got {1, one per row}.",
    "step": "WholeBatch.sample: `query` must be of one step in all processes, got {0, 1}.",
    "positives": "WholeBatch.sample: `positives` must be given in all processes, got {None, an array}.",
    "a bad query": "WholeBatch.sample: `query` must be a Query, got list. Write naysay.Query(anchors).",
    "no generator": "WholeBatch.sample: `rng` must be a numpy Generator, got 7. Pass rng=naysay.rng_for(seed, step).",
    "width": "observe_all: `vectors` must be of one width in all processes, got {(2,), (3,)}.",
    "rows": "observe_all: `vectors` must be a row for each of the 2 of the query, got shape (3, 2).",
    "negatives": "observe_all: `negatives` must be given in all processes, got {none, negatives}.",
    "shares": "`ids` must be of one shape in all processes, got {(2, 1), (3, 1)}. Use it inside WholeBatch.",
    "missing": "update_on_first: `ids` must be all of 0 to 3 over all processes, got no 2 (1 missing).",
    "below 0": "update_on_first: `ids` must be at least 0, got -1.",
    "widths": "update_on_first: `rows` must be of one width in all processes, got {(2,), (3,)}.",
    "dtypes": "update_on_first: `rows` must be of one dtype in all processes, got {float32, float64}.",
    "whole numbers": "update_on_first: `rows` must be floating-point numbers of shape (n, d), got int64 of shape (4, "
    "2).",
    "collapsed": "Incremental.update: `features` must be different vectors, got 4 rows within 1e-05 of their norm. Is "
    "the encoder trained?",
    "unchanged": (0, 0),
}


def of_all(sentence, size):
    """A sentence with what each process has: all the first, but the last process the second."""
    before, brace, rest = sentence.partition("{")
    if not brace:
        return sentence
    values, after = rest.split("}")
    most, last = values.rsplit(", (", 1) if ", (" in values else values.rsplit(", ", 1)
    last = f"({last}" if ", (" in values else last
    return before + ", ".join([most] * (size - 1) + [last]) + after


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("case", SENTENCES)
def test_what_does_not_fit_raises_one_sentence_in_all_processes(found, size, case):
    expected = SENTENCES[case] if case == "unchanged" else of_all(SENTENCES[case], size)
    assert [process[size, "refusals"][case] for process in found[:size]] == [expected] * size


@pytest.mark.parametrize("size", [2, 3])
def test_an_error_of_the_sampler_or_the_update_reaches_all(found, size):
    first, *others = (process[size, "refusals"] for process in found[:size])
    assert first["update"] == "ZeroDivisionError"
    assert {one["update"] for one in others} == {"the first process failed: ZeroDivisionError(1)"}
    short = "Everything.draw: row 0 has 2 candidates left of the 3 requested"
    assert all(one["short"].startswith(short) for one in (first, *others))
    few = f"update_on_first: `ids` must be all of 0 to 1000000000000 over all processes, got {2 * size} of them."
    assert all(one["too few"] == few for one in (first, *others))


@pytest.mark.parametrize("size", [2, 3])
def test_an_error_of_the_model_of_one_process_reaches_all(found, size):
    *others, last = (process[size, "refusals"]["a model"] for process in found[:size])
    assert last == "IndexError: of this process"
    assert others == [f"RuntimeError: process {size - 1} failed: IndexError('of this process')"] * (size - 1)


def test_a_backend_without_the_operation_and_a_worker_raise_one_sentence(found):
    rule = (
        "`group` must be of a backend that exchanges tensors of this device, such as gloo for the CPU, got cuda:gloo."
    )
    names = ("gather_rows", "observe_all", "update_on_first")
    worker = "observe_all: `group` must be used in the main process, got a worker of a DataLoader. Set workers=0."
    for process in found:
        assert process["backends"] == [f"{name}: {rule}" for name in names]
        assert process["a worker"] == worker


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
