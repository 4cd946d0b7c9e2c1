"""Means over seeds with their CIs, and the sentences made from them."""

import math

import pytest

from naysay.demo._show import advice_sentence, difference, excludes_zero, mean_of, mean_text, result_sentence

T = 4.302652729911275  # of Student's t at 97.5 %, 2 degrees of freedom, from a table


def test_the_interval_is_that_of_student():
    found = mean_of([0.40, 0.42, 0.47])
    deviation = math.sqrt(((0.40 - 0.43) ** 2 + (0.42 - 0.43) ** 2 + (0.47 - 0.43) ** 2) / 2)
    assert found.mean == pytest.approx(0.43)
    assert found.high - found.mean == pytest.approx(T * deviation / math.sqrt(3))
    assert found.mean - found.low == pytest.approx(T * deviation / math.sqrt(3))
    assert mean_text(found) == "43.0 ± 9.0"


def test_the_mean_of_one_seed():
    found = mean_of([0.4])
    assert mean_text(found) == "40.0"
    assert math.isnan(found.low)
    assert not excludes_zero(found)


def test_a_difference_is_taken_seed_by_seed():
    found = difference([0.1, 0.5, 0.9], [0.0, 0.4, 0.8])
    assert found.mean == pytest.approx(0.1)
    assert found.high - found.low == pytest.approx(0, abs=1e-12)  # though the seeds themselves are far apart
    assert excludes_zero(found)


def told(judged, in_batch, plain=(0.1, 0.1, 0.1)):
    values = {"in-batch": in_batch, "plain hard": plain, "judged": judged}
    return result_sentence(values, "MRR"), advice_sentence(values)


WIN, NARROW, LOSS = (0.50, 0.51, 0.52), (0.50, 0.40, 0.45), (0.40, 0.41, 0.43)


def test_a_clear_win():
    result, advice = told(WIN, LOSS)
    assert result == (
        "Best mean MRR: judged, 51.0 %. Judged is 9.7 points above in-batch (95 % CI 8.2 to 11.1, excludes 0) and 41.0 "
        "points above plain hard (95 % CI 38.5 to 43.5, excludes 0)."
    )
    assert advice == "What to do: mine negatives and judge them."
    assert told(WIN, LOSS, (0.50, 0.52, 0.51))[1].endswith("do not show that judging them changes the result here.")
    assert told(WIN, LOSS, (0.80, 0.81, 0.82))[1] == "What to do: mine negatives; judging them is worse here."


def test_a_difference_that_may_be_chance():
    result, advice = told(NARROW, (0.40, 0.42, 0.43))
    assert "Judged is 3.3 points above in-batch (95 % CI -11.8 to 18.5, includes 0) and " in result
    assert advice.startswith("What to do: run more seeds.")


def test_a_loss():
    result, advice = told(LOSS, WIN)
    assert result.startswith(
        "Best mean MRR: in-batch, 51.0 %. Judged is 9.7 points below in-batch (95 % CI -11.1 to -8.2, excludes 0)"
    )
    assert advice == "What to do: train with in-batch negatives. Mined negatives are worse here."


def test_another_arm_may_win():
    assert told((0.2,) * 3, (0.1,) * 3, (0.9,) * 3)[0].startswith("Best mean MRR: plain hard, 90.0 %.")


def test_one_seed_has_no_ci():
    result, advice = told((0.5,), (0.4,), (0.1,))
    assert "10.0 points above in-batch (one seed: no CI)" in result
    assert advice.startswith("What to do: run more seeds.")
