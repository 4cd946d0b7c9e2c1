"""Policies: nothing is added, nothing lost uncounted, and what should not depend on the order does not."""

import copy
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import attract, compact, drop, ignore, reweight
from naysay.testing._trials import differs

POLICIES = {"drop": drop, "reweight": reweight, "attract": attract, "ignore": ignore}
ARRAYS = tuple(f.name for f in fields(ns.Negatives) if f.name not in ("source_names", "dropped"))


@st.composite
def asked(draw):
    """Negatives with every field, some slots empty, some no negatives; and suspicion on a short grid."""
    rows, slots = draw(st.integers(0, 3)), draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    ids = rng.integers(-1, 5, (rows, slots))
    filled = ids >= 0
    parts = {
        "relation": np.where(filled, rng.integers(0, 3, ids.shape), 0).astype(np.int8),
        "scores": np.where(filled, rng.random(ids.shape), 0),
        "weights": np.where(filled, rng.random(ids.shape), 0),
        "vectors": np.where(filled[..., None], rng.random((*ids.shape, 2)), 0),
        "parents": np.where(filled[..., None], rng.integers(0, 5, (*ids.shape, 2)), -1),
        "side": np.where(filled, 2, -1).astype(np.int8),
        "source": np.where(filled, 1, -1).astype(np.int8),
        "log_q": np.where(filled, -rng.random(ids.shape), 0),
        "suspicion": np.where(filled, rng.integers(0, 5, ids.shape) / 4, 0),
    }
    held = {name: value for name, value in parts.items() if draw(st.booleans())}
    negatives = ns.Negatives(ids, source_names=("a", "b"), dropped={"exhausted": 2}, **held)
    return negatives, rng.integers(0, 5, ids.shape) / 4


@given(asked())
def test_array_types_agree_nothing_given_is_changed_and_a_relation_leaves_ids(given_):
    negatives, suspicion = given_
    before, tensors = copy.deepcopy(negatives), torch.from_numpy(suspicion)
    for policy in POLICIES.values():
        found = policy(negatives, suspicion)
        assert differs(before, negatives) is None
        in_torch = policy(negatives.to("cpu"), tensors)
        assert all(isinstance(getattr(in_torch, n), torch.Tensor) for n in ARRAYS if getattr(found, n) is not None)
        assert differs(found, in_torch) is None
        assert differs(found, policy(negatives, tensors)) is None
        assert found.suspicion.dtype.kind == "f"
    for policy in (attract, ignore):
        found = policy(negatives, suspicion)
        assert found.ids is negatives.ids
        assert np.array_equal(found.mask, negatives.mask & ~(suspicion >= 0.5))
        assert found.relation.dtype == np.int8
        assert dict(found.dropped) == {"exhausted": 2}


@given(asked(), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_drop_as_in_loops(given_, line):
    negatives, suspicion = given_
    found = drop(negatives, suspicion, threshold=line, name="guide")
    lost = 0
    for row in range(negatives.shape[0]):
        for slot in range(negatives.shape[1]):
            flagged = bool(negatives.mask[row, slot]) and suspicion[row, slot] >= line
            lost += flagged
            assert found.ids[row, slot] == (-1 if flagged else negatives.ids[row, slot])
            for name in ARRAYS:
                before, after = getattr(negatives, name), getattr(found, name)
                if name in ("ids", "log_q", "suspicion") or before is None:
                    continue
                if flagged:
                    assert (after[row, slot] == (-1 if name in ("parents", "side", "source") else 0)).all()
                else:
                    assert (after[row, slot] == before[row, slot]).all()
    assert found.dropped == {"exhausted": 2} | ({"guide": lost} if lost else {})
    assert (negatives.ids >= 0).sum() == (found.ids >= 0).sum() + lost  # filled before = filled after + dropped
    assert ((found.ids == negatives.ids) | (found.ids == -1)).all()  # it adds nothing
    assert found.log_q is None


def asked_like(negatives):
    grid = st.integers(0, 4).map(lambda value: value / 4)
    row = st.lists(grid, min_size=negatives.shape[1], max_size=negatives.shape[1])
    table = st.lists(row, min_size=negatives.shape[0], max_size=negatives.shape[0])
    return table.map(lambda values: np.array(values, float).reshape(negatives.shape))


@given(asked(), st.data())
def test_reweighting_commutes_with_dropping_and_with_itself(given_, data):
    negatives, one = given_
    other = data.draw(asked_like(negatives))
    assert differs(reweight(drop(negatives, one), other), drop(reweight(negatives, other), one)) is None
    twice, back = reweight(reweight(negatives, one), other), reweight(reweight(negatives, other), one)
    assert np.allclose(twice.weights, back.weights, rtol=0, atol=1e-15)


@given(asked(), st.data())
def test_of_attract_and_ignore_the_first_to_act_wins(given_, data):
    negatives, one = given_
    other = data.draw(asked_like(negatives))
    found = ignore(attract(negatives, one), other).relation
    before = np.zeros(negatives.shape) if negatives.relation is None else negatives.relation
    filled = negatives.ids >= 0
    expected = np.where(before > 0, before, np.where(one >= 0.5, 1, np.where(other >= 0.5, 2, 0)))
    assert np.array_equal(found, np.where(filled, expected, 0))
    apart = np.where(one >= 0.5, 0.0, other)  # where no slot is flagged twice, the order does not matter
    there, back = ignore(attract(negatives, one), apart), attract(ignore(negatives, apart), one)
    if negatives.log_q is not None:  # of the slots that are left, up to rounding
        assert np.allclose(there.log_q[there.mask], back.log_q[there.mask])
    assert differs(replace(there, log_q=None), replace(back, log_q=None)) is None


@given(asked(), st.sampled_from([None, 0.0, 0.25, 0.5, 1.0]))
def test_reweight_as_in_loops(given_, line):
    negatives, suspicion = given_
    found = reweight(negatives, suspicion, threshold=line)
    for row in range(negatives.shape[0]):
        for slot in range(negatives.shape[1]):
            weight = float(negatives.ids[row, slot] >= 0) if negatives.weights is None else negatives.weights[row, slot]
            acted = negatives.mask[row, slot] and (line is None or suspicion[row, slot] >= line)
            assert found.weights[row, slot] == weight * (1 - suspicion[row, slot] if acted else 1)
    assert found.log_q is negatives.log_q
    assert found.ids is negatives.ids


@given(asked())
def test_compact_moves_and_changes_nothing_else(given_):
    negatives, _ = given_
    for found in (compact(negatives), compact(negatives.to("cpu")).numpy()):
        for row in range(negatives.shape[0]):
            order = [slot for slot in range(negatives.shape[1]) if negatives.ids[row, slot] >= 0]
            assert found.ids[row].tolist() == negatives.ids[row, order].tolist() + [-1] * (
                negatives.shape[1] - len(order)
            )
            for name in ARRAYS:
                if getattr(negatives, name) is not None:
                    assert np.array_equal(getattr(found, name)[row, : len(order)], getattr(negatives, name)[row, order])


def test_blame_counts_by_detector():
    negatives = ns.Negatives(np.array([[1, 2, 3, -1], [4, 5, 6, 7]]), dropped={"duplicates": 1})
    suspicion = np.array([[0.9, 0.1, 0.6, 1.0], [0.5, 0.49, 1.0, 0.0]])
    blame = np.array([[0, 1, 1, 1], [1, 0, 0, 1]])
    found = drop(negatives, suspicion, name=("duplicates", "guide"), blame=torch.from_numpy(blame))
    assert found.dropped == {"duplicates": 3, "guide": 2}
    assert found.ids.tolist() == [[-1, 2, -1, -1], [-1, 5, -1, 7]]


# ---- log_q after a policy -------------------------------------------------------------------------------------------

FLAGGED = np.arange(10) < 5
DRAWS = 4000


def estimated_sum(negatives):
    """The sum over items of exp(0) that InfoNCE estimates for each row: e^{loss + p} - e^p at p = 0."""
    zeros = torch.zeros(negatives.shape, dtype=torch.float64)
    loss = ns.losses.info_nce(zeros[:, 0], zeros, mask=negatives.mask, log_q=negatives.log_q)
    return np.expm1(loss.numpy())


def drawn_of_ten(distinct, slots=4):
    known = ns.Positives.from_pairs([0], [10], 1, 11)
    drawn = ns.pools.Everything(known, distinct=distinct).draw(ns.Query(np.zeros(DRAWS, int)), slots, rng=ns.rng_for(0))
    if distinct:
        drawn = replace(drawn, log_q=ns.losses.distinct_log_q(drawn.log_q, drawn.mask))
    return drawn


@pytest.mark.parametrize("policy", [ignore, attract])
@pytest.mark.parametrize("distinct", [False, True])
def test_the_sum_over_items_that_are_not_flagged_is_estimated_without_bias(policy, distinct):
    drawn = drawn_of_ten(distinct)
    left = policy(drawn, FLAGGED[drawn.ids] * 1.0)
    sums = estimated_sum(left)
    error = sums.std() / np.sqrt(DRAWS)
    assert error < 0.1
    assert abs(sums.mean() - 5) < 4 * error
    assert estimated_sum(left.to("cpu")) == pytest.approx(sums)


@pytest.mark.parametrize("distinct", [False, True])
def test_policies_one_after_the_other_are_one_policy(distinct):
    """Also where the first leaves a row no slot; and the estimate is that of both."""
    drawn = drawn_of_ten(distinct)
    first, second = (drawn.ids < 3) * 1.0, (drawn.ids >= 8) * 1.0
    both = attract(ignore(drawn, first), second)
    at_once = ignore(drawn, np.maximum(first, second))
    assert np.array_equal(both.mask, at_once.mask)
    assert both.log_q[both.mask] == pytest.approx(at_once.log_q[at_once.mask])
    slots = both.mask.sum(axis=1)
    shift = (both.log_q - drawn.log_q)[both.mask]
    assert shift == pytest.approx(np.log(4 / np.repeat(slots, slots)))
    sums = estimated_sum(both)
    assert abs(sums.mean() - 5) < 4 * sums.std() / np.sqrt(DRAWS)


def test_check_sampler_knows_the_log_q_of_judged_negatives():
    class Low:
        def suspicion(self, query, negatives):
            return ((negatives.ids >= 0) & (negatives.ids < 5)) * 1.0

    known = ns.Positives.from_pairs([0, 0, 1], [0, 1, 2], n_items=9)
    sampler = ns.samplers.Judged(ns.samplers.Static(ns.pools.Everything(known)), Low(), "ignore")
    ns.check_sampler(sampler, known)
