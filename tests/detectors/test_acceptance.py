"""Acceptance: schedules by their tables, and the most confident share in plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay import NaysayError
from naysay.detectors.incremental import LinearAcceptance, StepAcceptance, accepted

confidences = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]) | st.floats(0, 1), max_size=12)
rates = st.floats(0, 1)
shares = st.fractions(0, 1, max_denominator=1000)  # decimals, and epoch / epochs


@given(confidences, shares)
def test_the_most_confident_in_plain_loops(values, share):
    left, chosen = list(range(len(values))), set()
    for _ in range(math.floor(share * len(values))):
        best = left[0]
        for place in left:
            if values[place] > values[best]:  # an equal one of a higher id does not pass
                best = place
        left.remove(best)
        chosen.add(best)
    assert set(np.flatnonzero(accepted(np.array(values, float), float(share))).tolist()) == chosen


@given(confidences, shares, shares)
def test_a_higher_rate_accepts_the_same_and_more(values, one, other):
    low, high = (accepted(np.array(values, float), float(share)) for share in sorted((one, other)))
    assert not (low & ~high).any()
    assert low.sum() == math.floor(min(one, other) * len(values))


def test_rounding_is_down():
    assert [int(accepted(np.zeros(10), rate).sum()) for rate in (0, 0.09, 0.1, 0.25, 0.99, 1)] == [0, 0, 1, 2, 9, 10]


@given(shares, st.integers(1, 100_000))
def test_rates_are_what_was_meant_by_them(share, n):
    assert accepted(np.zeros(n), float(share)).sum() == math.floor(share * n)


def test_rates_that_have_no_exact_double():
    assert math.floor(0.29 * 100) == 28
    assert accepted(np.zeros(100), 0.29).sum() == 29
    assert accepted(np.zeros(300), 1 / 3).sum() == 100  # whose decimals end in a 3
    assert accepted(np.zeros(100), LinearAcceptance(0.7)(0.1)).sum() == 7
    assert accepted(np.zeros(10_000), LinearAcceptance(0.0, 1.0)(0.9999)).sum() == 1
    assert accepted(np.zeros(100), 0.2899999999).sum() == 28


@given(rates, rates)
def test_linear(final, progress):
    assert LinearAcceptance(final)(progress) == pytest.approx(final * progress, abs=1e-12)
    assert LinearAcceptance(final)(1.0) == final
    assert LinearAcceptance(final, initial=0.3)(0.0) == 0.3


def test_the_papers_schedules():
    progress = [0.0, 0.05, 0.1, 0.5, 1.0]
    assert [LinearAcceptance()(p) for p in progress] == progress
    assert [LinearAcceptance(0.5)(p) for p in progress] == [0.0, 0.025, 0.05, 0.25, 0.5]
    assert [StepAcceptance()(p) for p in progress] == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert [StepAcceptance(0.5, 0.25)(p) for p in progress] == [0.0, 0.0, 0.0, 0.25, 0.25]


BAD = {
    "final": (
        lambda: LinearAcceptance(1.5),
        r"LinearAcceptance: `final` must be a number at least 0 and at most 1, got 1\.5\.",
    ),
    "initial": (lambda: LinearAcceptance(initial=-1), r"`initial` must be a number at least 0 and at most 1, got -1\."),
    "start": (
        lambda: StepAcceptance(start=math.nan),
        r"StepAcceptance: `start` must be a number at least 0 and at most 1, got nan",
    ),
    "rate": (lambda: StepAcceptance(rate="half"), r"`rate` must be a number at least 0 and at most 1, got 'half'\."),
    "a bool": (
        lambda: StepAcceptance(rate=True),
        r"`rate` must be a number at least 0 and at most 1, got True\.",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), BAD.values(), ids=BAD)
def test_errors(call, sentence):
    with pytest.raises(NaysayError, match=sentence):
        call()
