"""log_q: the sum over K draws is unbiased, by enumeration of every row that can be drawn from six items."""

import itertools
import math

import numpy as np
import pytest
import torch

from naysay.losses import distinct_log_q, gist, info_nce, mixture_log_q, sampled_softmax

# ---- every row that can be drawn from six items ----------------------------------------------------------------------

FEW = np.array([0.5, 1.0, 2.0, 0.25, 3.0, 1.25])  # their weights
SMALL = np.array([0.3, -1.0, 0.7, 2.0, -0.4, 0.1])  # their scores


def expected(rows, chances, loss=info_nce, scores=SMALL, **options):
    """The expectation of e^loss - 1 at p = 0, over all rows with their chances, which is that of the sum."""
    values = loss(torch.zeros(len(rows), dtype=torch.float64), torch.tensor(scores[rows]), temperature=1.0, **options)
    return math.fsum(torch.expm1(values).double().numpy() * chances)


def one_after_the_other(k):
    """All ordered rows of k distinct items, their chances, and log_q given the earlier slots."""
    rows = np.array(list(itertools.permutations(range(6), k)))
    earlier = np.cumsum(FEW[rows], axis=1) - FEW[rows]
    q = FEW[rows] / (FEW.sum() - earlier)
    return rows, q.prod(axis=1), np.log(q)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_all_distinct_rows(k):
    rows, chances, log_q = one_after_the_other(k)
    assert math.fsum(chances) == pytest.approx(1.0, rel=1e-12)
    truth = math.fsum(np.exp(SMALL))
    assert expected(rows, chances, log_q=distinct_log_q(log_q)) == pytest.approx(truth, rel=1e-12)
    raw = expected(rows, chances, log_q=log_q)
    assert raw == pytest.approx(truth, rel=1e-12) if k == 1 else raw < 0.99 * truth


def test_all_distinct_rows_with_empty_slots():
    """Three items in the first, third and last of five slots."""
    rows, chances, log_q = one_after_the_other(3)
    places = np.array([0, 2, 4])
    wide, wide_log_q, mask = (np.zeros((len(rows), 5), kind) for kind in (np.int64, np.float64, bool))
    wide[:, places], wide_log_q[:, places], mask[:, places] = rows, log_q, True
    found = expected(wide, chances, log_q=distinct_log_q(wide_log_q, mask), mask=mask)
    assert found == pytest.approx(math.fsum(np.exp(SMALL)), rel=1e-12)
    assert (distinct_log_q(wide_log_q, mask)[~mask] == 0).all()


def independent(*samplers):
    """All rows of one draw from each of the samplers, given as probabilities (6,), and their chances."""
    rows = np.array(list(itertools.product(range(6), repeat=len(samplers))))
    chances = np.prod([q[rows[:, slot]] for slot, q in enumerate(samplers)], axis=0)
    return rows, chances


def test_all_independent_rows():
    q = FEW / FEW.sum()
    rows, chances = independent(q, q, q)
    assert expected(rows, chances, log_q=np.log(q[rows])) == pytest.approx(math.fsum(np.exp(SMALL)), rel=1e-12)


def test_all_rows_of_a_mixture():
    """Two slots by weight, one of them from the first three items only."""
    wide, narrow = FEW / FEW.sum(), np.array([0.2, 0.3, 0.5, 0.0, 0.0, 0.0])
    rows, chances = independent(wide, narrow, narrow)
    with np.errstate(divide="ignore"):
        by_sampler = [np.log(wide)[rows], np.log(narrow)[rows]]
    found = expected(rows, chances, log_q=mixture_log_q(by_sampler, [1, 2]))
    assert found == pytest.approx(math.fsum(np.exp(SMALL)), rel=1e-12)


def test_all_rows_that_may_hit_the_positive():
    """Item 4 is the positive, drawn like any other and masked: given that something else was drawn, unbiased."""
    q = FEW / FEW.sum()
    rows, chances = independent(q, q, q)
    mask = rows != 4
    some = mask.any(axis=1)
    own = np.full(len(rows), math.log(q[4]))
    truth = math.fsum(np.exp(np.delete(SMALL, 4)))
    told = expected(rows, chances, sampled_softmax, log_q=np.log(q[rows]), mask=mask, positive_log_q=own)
    assert told / chances[some].sum() == pytest.approx(truth, rel=1e-12)
    not_told = expected(rows, chances, sampled_softmax, log_q=np.log(q[rows]), mask=mask)
    assert not_told / chances[some].sum() == pytest.approx(truth / (1 - q[4]), rel=1e-12)


def test_all_rows_of_guided():
    """Items whose guide is above that of the positive are not in the sum; K is that of the draw."""
    q = FEW / FEW.sum()
    rows, chances = independent(q, q, q)
    guide = np.array([0.1, 0.9, 0.4, 0.2, 0.6, 0.3])
    by_guide = {"guide_positive": np.full(len(rows), 0.5), "guide_negatives": guide[rows]}
    found = expected(rows, chances, gist, log_q=np.log(q[rows]), **by_guide)
    assert found == pytest.approx(math.fsum(np.exp(SMALL[guide <= 0.5])), rel=1e-12)


# ---- by hand ---------------------------------------------------------------------------------------------------------

ONE, TWO = np.log([[0.5, 0.25]]), np.log([[0.125, 0.5]])


def test_mixtures_by_hand():
    assert np.exp(mixture_log_q([ONE, TWO], [3, 1])) == pytest.approx(np.array([[0.40625, 0.3125]]))
    assert np.exp(mixture_log_q([ONE], [0.2])) == pytest.approx(np.exp(ONE))
    with np.errstate(divide="ignore"):
        never = np.log([[0.0, 0.0]])
    assert np.exp(mixture_log_q([ONE, never], [1, 1])) == pytest.approx(np.exp(ONE) / 2)
    assert np.exp(mixture_log_q([ONE, TWO], [0, 1])) == pytest.approx(np.exp(TWO))
    assert mixture_log_q([never, never], [1, 1]).tolist() == [[-math.inf, -math.inf]]
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        found = mixture_log_q([torch.tensor(ONE, dtype=dtype), TWO], [1, 1])
        assert found.dtype == dtype
        assert found.exp().tolist()[0] == pytest.approx([0.3125, 0.375], rel=1e-2)


def test_distinct_rows_by_hand():
    """Three of six, one after the other, uniformly: 6 + 2 slots after it, 5 + 1, 4."""
    drawn = -np.log([[6.0, 5.0, 4.0]])
    assert np.exp(-distinct_log_q(drawn)) == pytest.approx(np.array([[8.0, 6.0, 4.0]]))
    some = np.exp(-distinct_log_q(-np.log([[6.0, 9.0, 5.0]]), [[True, False, True]]))
    assert some == pytest.approx(np.array([[7.0, 1.0, 5.0]]))
    assert distinct_log_q(np.empty((0, 3))).shape == (0, 3)
    assert distinct_log_q(np.empty((2, 0))).shape == (2, 0)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        found = distinct_log_q(torch.tensor(drawn, dtype=dtype), torch.ones(1, 3, dtype=torch.bool))
        assert found.dtype == dtype
        assert (-found).exp().tolist()[0] == pytest.approx([8.0, 6.0, 4.0], rel=1e-2)
