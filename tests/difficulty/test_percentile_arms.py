"""arms: what each arm of the study keeps, by sorting in plain Python."""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.errors import NaysayError

N = 3000  # candidates of the pool
KNOWN = ns.Positives.from_pairs([0], [N], n_items=N + 1)
POOL = ns.pools.Everything(KNOWN)


def score(anchors, ids):
    return ids * 1.0


def same_class(query, ids):
    return ids % 3 == 0


def kept(name, size=N, in_torch=False):
    anchors = torch.tensor([0]) if in_torch else [0]
    taken = ns.difficulty.arms(POOL, score, size, same_class)[name].sample(ns.Query(anchors), size, rng=ns.rng_for(0))
    ids = np.asarray(taken.ids[0])
    return sorted(ids[ids >= 0].tolist())


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("all", lambda i: True),
        ("only 95-100 %", lambda i: i >= 0.95 * N),
        ("only 90-95 %", lambda i: 0.9 * N <= i < 0.95 * N),
        ("all but 85-100 %", lambda i: i < 0.85 * N),
        ("all but 90-95 %", lambda i: not 0.9 * N <= i < 0.95 * N),
        ("easiest 50 %", lambda i: i < 0.5 * N),
        ("without the same class", lambda i: i % 3 != 0),
        ("without the easiest 99.9 % of the same class", lambda i: i % 3 != 0 or i >= 0.999 * N),
    ],
)
@pytest.mark.parametrize("in_torch", [False, True])
def test_an_arm_keeps_what_its_name_says(name, inside, in_torch):
    assert kept(name, in_torch=in_torch) == [i for i in range(N) if inside(i)]


def test_arms_of_table_1_replace_what_they_leave_out():
    for name, left_out in (
        ("without the hardest 0.1 %", lambda i: True),
        ("without the hardest 0.1 % of the same class", lambda i: i % 3 == 0),
        ("without the hardest 0.1 % of other classes", lambda i: i % 3 != 0),
    ):
        found = kept(name, 2000)
        assert len(found) == 2000
        assert not [i for i in found if i >= N - 1 and left_out(i)], name
    everything = ns.difficulty.arms(POOL, score, 2000, lambda query, ids: ids >= 0)
    query = ns.Query([0])
    one, other = (
        everything[name].sample(query, 2000, rng=ns.rng_for(0)).ids
        for name in ("without the hardest 0.1 %", "without the hardest 0.1 % of the same class")
    )
    assert np.array_equal(one, other)  # all of one class: the mask changes nothing


def test_there_are_20_and_a_class_is_a_function():
    assert len(ns.difficulty.arms(POOL, score, 100, same_class)) == 20
    with pytest.raises(
        NaysayError, match=r"^arms: `same_class` must be a function same_class\(query, ids\), got int\.$"
    ):
        ns.difficulty.arms(POOL, score, 100, 3)
