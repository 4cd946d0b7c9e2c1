"""compare: the table of arms, the same numbers again, and a run that continues."""

import numpy as np
import pytest

import naysay as ns
from tests.contract.command import run
from tests.contract.names import learning_rate

SMALL = {"methods": "uniform:2,dynamic:2", "steps": 8, "seeds": 2}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "clicks.csv"
    users, items = np.nonzero(np.random.default_rng(2).random((40, 60)) < 0.2)
    pairs = [f"u{user},i{item}" for user, item in zip(users.tolist(), items.tolist(), strict=True)]
    path.write_text("\n".join(["user,item", *pairs]) + "\n")
    return path


@pytest.fixture(scope="module")
def found(table):
    return ns.compare(table, **SMALL)


def numbers(result):
    """What must repeat: everything but times."""
    return [(arm.name, arm.k, learning_rate(arm), [run_.test for run_ in arm.runs]) for arm in result.arms]


def test_the_table_has_a_row_for_each_arm_with_its_k_and_its_seeds(found):
    assert {(arm.name.split(":")[0], arm.k) for arm in found.arms} >= {("uniform", 2), ("dynamic", 2)}
    for arm in found.arms:
        assert len(arm.runs) == 2
        for one in arm.runs:
            assert all(0 <= value <= 1 for value in one.test.values())
    assert len(found.rows()) == len(found.arms)
    assert all(len(row) == len(found.columns) for row in found.rows())
    assert found.measure in found.arms[0].runs[0].test


def test_the_same_call_gives_the_same_numbers(found, table):
    assert numbers(ns.compare(table, **SMALL)) == numbers(found)
    assert numbers(ns.compare(table, **SMALL, seed=1)) != numbers(found)


def test_a_second_call_continues_and_the_page_is_written(found, table, tmp_path):
    words = ["compare", table, "--methods", SMALL["methods"], "--steps", 8, "--seeds", 2, "-o", "out"]
    first = run(*words, folder=tmp_path)
    assert first.code == 0, first.err
    assert (tmp_path / "out" / "compare.html").is_file()
    again = ns.compare(table, **SMALL, out=tmp_path / "out")
    assert numbers(again) == numbers(found)
    second = run(*words, folder=tmp_path)
    assert second.code == 0, second.err
