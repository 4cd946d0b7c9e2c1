"""What a comparison says: a winner only if the interval does, nothing from too little, and the evidence."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from naysay.lab import ArmResult, Comparison, Point, RunResult
from naysay.lab.report import contents_of
from naysay.lab.result import LEAST_SEEDS, LEAST_STEPS

FLAT = (0.1, 0.3, 0.2)
RISING = (0.1, 0.2, 0.3)


def arm(name, values, cost=1.0, curve=FLAT, step=50, k=8):
    """An arm with one test value per seed; the validation curve is the same for all seeds, or one for each."""
    runs = []
    curves = [curve] * len(values) if isinstance(curve[0], float) else curve
    for seed, (value, own) in enumerate(zip(values, curves, strict=True)):
        points = tuple(Point(step * n, cost * n, cost * n, valid, 0.4, 0.01) for n, valid in enumerate(own, 1))
        runs.append(RunResult(seed, points, {"recall@20": value, "ndcg@20": value / 2}))
    return ArmResult(name, k, "Static(...)", 0.01, {"0.01": 0.3}, tuple(runs))


def comparison(*arms, **settings):
    known = {"task": "recommendation", "model": "mf", "steps": 150, "data": "data"}
    return Comparison("recall@20", arms, known | settings)


def better(gain, values=None):
    return [value + gain for value in (values or BASE)]


BASE = (0.50, 0.52, 0.51)


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_an_arm_wins_only_if_every_paired_interval_excludes_0(seed, seeds):
    rng = np.random.default_rng(seed)
    values = rng.normal(rng.normal(0.5, 0.05, (4, 1)), 0.01, (4, seeds))
    found = comparison(*(arm(name, row) for name, row in zip(("uniform", "a", "b", "c"), values.tolist(), strict=True)))
    top = int(values.mean(axis=1).argmax())
    others = [other for other in range(4) if other != top]
    beaten = [ttest_rel(values[top], values[other]).confidence_interval().low > 0 for other in others]
    assert (found.winner is not None) == (all(beaten) and seeds >= LEAST_SEEDS)
    assert found.best.name == ("uniform", "a", "b", "c")[top]
    if found.winner:
        assert found.winner == found.best.name
        assert found.recommended is found.best


def test_a_clear_winner_is_recommended_with_its_evidence():
    found = comparison(arm("uniform", BASE), arm("dynamic", better(0.1), cost=2.0, curve=(0.4, 0.5, 0.4)))
    assert found.winner == "dynamic"
    assert found.recommended.name == "dynamic"
    assert found.withheld is None
    assert found.recommendation.startswith("Use dynamic")
    for evidence in ("0.6100", "+0.1000", "3 seeds", "uniform"):
        assert evidence in found.recommendation


def test_a_winner_that_is_the_first_arm_names_its_nearest_rival():
    found = comparison(arm("uniform", better(0.1)), arm("near", better(0.01)), arm("far", BASE))
    assert found.winner == "uniform"
    assert "near, -0.0900" in found.recommendation
    assert "far" not in found.recommendation


def test_a_tie_names_the_arm_with_the_higher_mean_and_asks_for_more_seeds():
    found = comparison(arm("uniform", BASE), arm("dynamic", (0.53, 0.51, 0.56)), arm("bad", better(-0.2)))
    assert found.winner is None
    assert [each.name for each in found.tied] == ["uniform", "dynamic"]
    assert found.recommended.name == "dynamic"
    assert not found.recommendation.startswith("Use ")
    assert "dynamic has the highest mean" in found.recommendation
    assert "more seeds" in found.recommendation
    assert "bad" not in found.recommendation


@pytest.mark.parametrize(
    ("seeds", "step", "settings", "needed"),
    [
        (2, 50, {}, f"at least {LEAST_SEEDS}"),
        (1, 50, {}, f"at least {LEAST_SEEDS}"),
        (3, 5, {}, f"at least {LEAST_STEPS}"),
        (3, 50, {"epochs": 0.5}, "at least 300 steps"),
    ],
)
def test_nothing_is_recommended_from_too_little(seeds, step, settings, needed):
    """With two seeds and equal differences the 95 % CI has no width: +0.0003 to +0.0003."""
    values = BASE[:seeds]
    arms = arm("uniform", values, step=step), arm("judged", better(0.0003, values), step=step)
    found = comparison(*arms, **settings)
    assert found.winner is None
    assert found.recommended is None
    assert needed in found.withheld
    assert "Use " not in found.recommendation
    assert "judged" in found.recommendation
    assert contents_of(found).result.mark == ()


def test_nothing_is_recommended_while_the_best_arm_still_rises():
    found = comparison(arm("uniform", BASE), arm("dynamic", better(0.1), cost=60.0, curve=RISING))
    assert [run.rising for run in found["dynamic"].runs] == [True] * 3
    assert [each.name for each in found.unsettled] == ["dynamic"]
    assert found.recommended is None
    assert found.winner is None
    assert "rising" in found.withheld
    assert "dynamic" in found.withheld
    assert "at least 300 steps" in found.withheld  # twice the 150 of a run
    # Two arms of 3 and 180 seconds a run, six whole runs each with the learning rate, for twice the steps: 37 minutes.
    assert "37 minutes" in found.withheld


def test_one_run_of_three_that_rises_is_reported_and_does_not_withhold():
    found = comparison(arm("uniform", BASE), arm("dynamic", better(0.1), curve=(FLAT, RISING, FLAT)))
    assert found["dynamic"].runs_rising == 1
    assert found.winner == "dynamic"
    rising = {row[0]: row[found.columns.index("still rising")] for row in found.rows()}
    assert rising == {"dynamic": "1 of 3", "uniform": "0 of 3"}


@pytest.mark.parametrize(("curve", "decides"), [((0.1, 0.2, 0.25), True), ((0.01, 0.02, 0.021), False)])
def test_an_arm_that_rises_withholds_only_if_it_could_reach_the_best(curve, decides):
    """0.25 + 2 (0.25 - 0.1) is above the best validation, 0.3; 0.021 + 2 (0.021 - 0.01) is not."""
    found = comparison(arm("uniform", BASE), arm("dynamic", better(0.1)), arm("slow", better(-0.1), curve=curve))
    assert [each.name for each in found.unsettled] == ["slow"] * decides
    assert (found.winner is None) == decides


def test_no_two_of_many_arms_have_the_same_marker():
    found = comparison(*(arm(f"arm {place}", BASE) for place in range(20)))
    encoding = contents_of(found).charts[0].spec["layer"][1]["encoding"]
    ranges = [encoding[channel]["scale"]["range"] for channel in ("color", "shape")]
    assert len(set(zip(*ranges, strict=True))) == 20


def test_one_seed_has_no_interval():
    found = comparison(arm("uniform", [0.5]), arm("dynamic", [0.9]))
    assert found.rows()[0][2:4] == ("0.9000", "+0.4000")
    assert "nothing else was compared" in comparison(arm("uniform", BASE)).recommendation


def test_k_is_in_the_table_the_report_and_the_file():
    found = comparison(arm("uniform:8", BASE), arm("dynamic:2", better(0.1), k=2), arm("whole", better(0.2), k="all"))
    cells = {row[0]: row[found.columns.index("k")] for row in found.rows()}
    assert cells == {"uniform:8": "8", "dynamic:2": "2", "whole": "all"}
    page = contents_of(found).result
    assert [row[page.columns.index("k")] for row in page.rows] == ["all", "2", "8"]
    written = json.loads(found.as_json())
    assert [one["k"] for one in written["arms"]] == [8, 2, "all"]
    assert [row["k"] for row in written["table"]] == ["all", "2", "8"]


def test_times_to_uniforms_best_and_equal_time():
    slow = arm("slow", BASE, cost=2.0, curve=(0.1, 0.2, 0.3))
    never = arm("never", BASE, curve=(0.1, 0.29, 0.2))
    found = comparison(arm("uniform", BASE), slow, never)
    assert [point.step for point in found.reached(slow)] == [150, 150, 150]
    assert found.reached(never) == []
    assert found.at_equal_time(slow).mean == pytest.approx(0.1)  # 3 s are enough for one point of 2 s each
    rows = {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.rows()}
    assert (rows["slow"]["steps to best of uniform"], rows["slow"]["seconds to best of uniform"]) == ("150", "6.0")
    assert rows["never"]["steps to best of uniform"] == "never"
    assert rows["slow"]["ms per step"] == "40.0"


def test_it_prints_a_table_and_the_recommendation():
    found = comparison(arm("uniform", BASE), arm("dynamic", (0.53, 0.51, 0.56)))
    lines = str(found).splitlines()
    assert lines[0].split()[:3] == ["negatives", "k", "recall@20"]
    assert re.match(r"dynamic    8  0\.5333 ± 0\.0625  \+0\.0233 ± 0\.0759", lines[1])
    assert lines[-1] == found.recommendation
