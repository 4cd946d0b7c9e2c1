"""Parts of a job that fit the budget."""

from dataclasses import fields
from types import SimpleNamespace

import pytest

from naysay.jobs._prepare import within
from naysay.mining._task import Task
from naysay.mining.options import MiningOptions


@pytest.mark.parametrize(
    ("n", "budget", "rows"),
    [
        (100, 10**9, 4096),
        (20_000, 10**10, 4096),
        (160_000, 10**10, 10_000),
        (160_000, 3 * 10**8, 4994),
        (9, 160 * 10**6, 1379),
    ],
)
def test_parts_fit_the_budget(n, budget, rows):
    vectors = SimpleNamespace(n=n, width=384, whole=None)
    task = Task(
        **dict.fromkeys((field.name for field in fields(Task)), None)
        | {"queries": vectors, "corpus": vectors, "lists": {}, "depth": 100, "width": 8, "options": MiningOptions()}
    )
    made, found = within(task, budget)
    assert found == rows
    assert found * 108 * 200 <= budget
    assert made.options.budget < budget
    assert made.slots * 100 < budget
