"""Combined: one suspicion of several, by a stated rule, with each detector's own share of the blame."""

from functools import reduce

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.arrays import to_numpy
from naysay.detectors import Combined, LearnedQuantile, drop
from naysay.errors import NaysayError


class Fixed:
    """The same numbers for every question."""

    def __init__(self, values):
        self.values = np.asarray(values, float)
        self.calls = 0

    def suspicion(self, query, negatives):
        self.calls += 1
        found = np.where(to_numpy(negatives.ids) >= 0, self.values[: len(query)], 0.0)
        return torch.from_numpy(found) if isinstance(negatives.ids, torch.Tensor) else found


GRID = st.integers(0, 4).map(lambda value: value / 4)
TABLES = st.lists(st.lists(st.lists(GRID, min_size=3, max_size=3), min_size=2, max_size=2), min_size=1, max_size=4)
IDS = np.array([[4, -1, 2], [0, 3, 3]])
QUERY, NEGATIVES = ns.Query([0, 1]), ns.Negatives(IDS)


def by_rule(rule, values):
    if rule == "max":
        return max(values)
    if rule == "all":
        return min(values)
    if rule == "mean":
        return sum(values) / len(values)
    return 1 - reduce(lambda product, value: product * (1 - value), values, 1.0)


@given(TABLES)
def test_every_rule_as_in_loops_and_counts_by_blame_add_up(tables):
    for rule in ("max", "all", "mean", "noisy_or"):
        parts = {f"d{i}": Fixed(table) for i, table in enumerate(tables)}
        both = Combined(parts, rule)
        found = both.judge(QUERY, NEGATIVES)
        assert found.names == tuple(parts)
        for row, slot in np.ndindex(2, 3):
            if IDS[row, slot] < 0:
                assert found.suspicion[row, slot] == 0
                continue
            values = [table[row][slot] for table in tables]
            assert found.suspicion[row, slot] == pytest.approx(by_rule(rule, values), abs=1e-12)
            assert found.blame[row, slot] == values.index(max(values))
            if rule == "max":
                assert (found.suspicion[row, slot] >= 0.5) == any(value >= 0.5 for value in values)
            if rule == "all":
                assert (found.suspicion[row, slot] >= 0.5) == all(value >= 0.5 for value in values)
        assert np.array_equal(found.suspicion, both.suspicion(QUERY, NEGATIVES))
        assert all(part.calls == 2 for part in parts.values())
        each = {name: int(((np.array(t) >= 0.5) & (IDS >= 0)).sum()) for name, t in zip(parts, tables, strict=True)}
        assert found.flags() == each
        kept = drop(NEGATIVES, found.suspicion, name=found.names, blame=found.blame)
        assert sum(kept.dropped.values()) == (IDS >= 0).sum() - (kept.ids >= 0).sum()


def test_if_one_part_rejects_a_step_none_has_learnt_from_it():
    parts = {"wide": LearnedQuantile(2, bounds=(-9, 9)), "inner": Combined({"narrow": LearnedQuantile(2)})}
    both = Combined(parts)
    near = ns.Negatives(np.array([[4, 7], [1, 2]]), scores=np.array([[0.1, 0.5], [0.2, 0.3]]))
    both.observe(QUERY, near)
    before = both.state()
    far = ns.Negatives(near.ids, scores=np.array([[0.1, 5.0], [0.2, 0.3]]))  # beyond the bounds of the second only
    with pytest.raises(NaysayError):
        both.observe(QUERY, far)
    after = both.state()
    assert after.keys() == before.keys()
    assert all(np.array_equal(value, before[name]) for name, value in after.items())
    both.observe(QUERY, near)
    assert both.state()["wide/seen"].tolist() == both.state()["inner/narrow/seen"].tolist() == [2, 2]


class Wrong:
    def __init__(self, answer):
        self.answer = answer

    def suspicion(self, query, negatives):
        return self.answer


@pytest.mark.parametrize(
    "answer", [np.zeros((2, 2)), np.zeros((2, 3), bool), np.full((2, 3), 2.0), np.full((2, 3), np.nan)]
)
def test_an_answer_that_is_no_suspicion_names_its_detector(answer):
    both = Combined({"good": Fixed([[0] * 3] * 2), "bad": Wrong(answer)})
    with pytest.raises(NaysayError) as caught:
        both.suspicion(QUERY, NEGATIVES)
    assert caught.value.parameter == "bad"
