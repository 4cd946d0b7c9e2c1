"""Means over seeds, their intervals, and sentences that follow from them."""

import math

import pytest

from naysay.demo._summary import difference, mean_of, verdict

T = 4.302652729911275  # of Student's t at 97.5 %, 2 degrees of freedom, from a table


def test_the_interval_is_that_of_student():
    found = mean_of([0.40, 0.42, 0.47])
    deviation = math.sqrt(((0.40 - 0.43) ** 2 + (0.42 - 0.43) ** 2 + (0.47 - 0.43) ** 2) / 2)
    assert found.mean == pytest.approx(0.43)
    assert found.half == pytest.approx(T * deviation / math.sqrt(3))
    assert str(found) == "43.0 ± 9.0"


def test_one_seed_has_no_interval():
    found = mean_of([0.4])
    assert str(found) == "40.0"
    assert math.isnan(found.half)
    assert not found.tells


def test_a_difference_is_taken_seed_by_seed():
    found = difference([0.1, 0.5, 0.9], [0.0, 0.4, 0.8])
    assert found.mean == pytest.approx(0.1)
    assert found.half == pytest.approx(0, abs=1e-12)  # though the seeds themselves are far apart
    assert found.tells


def said(judged, rival, other=(0.1, 0.1, 0.1)):
    values = {"other": other, "rival": rival, "judged": judged}
    return verdict(values, "MRR", "judged", ("rival",))


def test_a_win_that_is_none_of_chance():
    assert said((0.50, 0.51, 0.52), (0.40, 0.41, 0.43)) == (
        "By MRR, judged has the highest mean, 51.0. judged is 9.7 points above rival (the interval of 95%, "
        "8.2 to 11.1, leaves 0 out)."
    )


def test_a_win_that_may_be_chance():
    assert said((0.50, 0.40, 0.45), (0.40, 0.42, 0.43)) == (
        "By MRR, judged has the highest mean, 45.0. judged is 3.3 points above rival (the interval of 95%, "
        "-11.8 to 18.5, has 0 in it, so it may be chance)."
    )


def test_a_defeat():
    assert said((0.40, 0.41, 0.43), (0.50, 0.51, 0.52)) == (
        "By MRR, rival has the highest mean, 51.0. judged is 9.7 points below rival (the interval of 95%, "
        "-11.1 to -8.2, leaves 0 out)."
    )


def test_a_third_may_win():
    assert said((0.2,) * 3, (0.1,) * 3, (0.9, 0.9, 0.9)).startswith("By MRR, other has the highest mean, 90.0.")


def test_one_seed_says_so():
    assert said((0.5,), (0.4,), (0.1,)).endswith(
        "10.0 points above rival (one seed cannot say whether that is chance)."
    )
