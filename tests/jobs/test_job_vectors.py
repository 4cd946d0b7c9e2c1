"""Parts of a job that fit the budget."""

from types import SimpleNamespace

import pytest

from naysay.jobs._prepare import within
from naysay.mining.options import MiningOptions
from naysay.mining.problem import Problem

NONE = dict.fromkeys(("known", "itself", "counts", "duplicates", "reviewed", "searcher")) | {"sources": {}}


@pytest.mark.parametrize(
    ("n", "budget", "rows"),
    [
        (100, 10**9, 4096),
        (20_000, 10**10, 4096),
        (160_000, 10**10, 10_000),
        (160_000, 3 * 10**8, 4994),
        (9, 160 * 10**6, 3126),
    ],
)
def test_parts_fit_the_budget(n, budget, rows):
    vectors = SimpleNamespace(n=n, width=384, whole=None)
    problem = Problem(queries=vectors, corpus=vectors, options=MiningOptions(depth=100), width=8, **NONE)
    made, found = within(problem, budget)
    assert found == rows
    assert found * 108 * 200 <= budget
    assert made.options.budget < budget
    assert made.block_slots * 100 < budget
