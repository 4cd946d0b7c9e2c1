"""What a comparison says: a winner only if the interval does, the cheapest of equals, and the evidence."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from naysay.comparing import ArmResult, Comparison, Point, RunResult
from naysay.comparing.report import contents_of


def arm(name, values, cost=1.0, curve=(0.1, 0.3, 0.2)):
    """An arm with one test value per seed and the same validation curve for all seeds."""
    runs = []
    for seed, value in enumerate(values):
        points = tuple(Point(10 * n, cost * n, cost * n, valid, 0.4, 0.01) for n, valid in enumerate(curve, 1))
        runs.append(RunResult(seed, points, {"recall@20": value, "ndcg@20": value / 2}))
    return ArmResult(name, 1, "Static(...)", 0.01, {"0.01": 0.3}, tuple(runs))


def comparison(*arms):
    return Comparison("recall@20", arms, {"task": "recommendation", "model": "mf", "steps": 30, "data": "data"})


BASE = (0.50, 0.52, 0.51)


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_an_arm_wins_only_if_every_paired_interval_excludes_0(seed, seeds):
    rng = np.random.default_rng(seed)
    values = rng.normal(rng.normal(0.5, 0.05, (4, 1)), 0.01, (4, seeds))
    found = comparison(*(arm(name, row) for name, row in zip(("uniform", "a", "b", "c"), values.tolist(), strict=True)))
    top = int(values.mean(axis=1).argmax())
    others = [other for other in range(4) if other != top]
    beaten = [ttest_rel(values[top], values[other]).confidence_interval().low > 0 for other in others]
    assert (found.winner is not None) == all(beaten)
    assert found.best.name == ("uniform", "a", "b", "c")[top]
    if found.winner:
        assert found.winner == found.best.name
        assert found.recommended is found.best


def test_a_clear_winner_is_named_with_its_evidence():
    found = comparison(
        arm("uniform", BASE), arm("dynamic", [value + 0.1 for value in BASE], cost=2.0, curve=(0.4, 0.5))
    )
    assert found.winner == "dynamic"
    assert found.recommendation == (
        "Use dynamic: recall@20 0.6100, +0.1000 (95 % CI +0.1000 to +0.1000) over uniform (3 seeds), reaching the "
        "best of uniform in 1.0 times its time, better than every other arm by its 95 % CI."
    )


def test_a_tie_with_uniform_recommends_uniform():
    found = comparison(arm("uniform", BASE), arm("dynamic", (0.53, 0.51, 0.56)))
    assert found.winner is None
    assert [each.name for each in found.tied] == ["uniform", "dynamic"]
    assert found.recommendation.startswith(
        "Use uniform: recall@20 0.5100; no other is better by its 95 % CI, the nearest is dynamic, +0.0233 (95 % CI"
    )


def test_of_tied_arms_that_are_better_the_cheapest_is_recommended():
    better = [[value + 0.1 for value in BASE], [value + 0.1 + 0.001 * n for n, value in enumerate(BASE)]]
    found = comparison(arm("uniform", BASE), arm("cheap", better[0]), arm("dear", better[1], cost=3.0))
    assert found.winner is None
    assert found.best.name == "dear"
    assert found.recommended.name == "cheap"
    assert found.recommendation.endswith("; tied with dear.")


def test_an_arm_that_is_better_is_recommended_though_the_best_is_not_clearly_so():
    steady, wild = [value + 0.02 for value in BASE], [BASE[0] + 0.12, BASE[1] - 0.02, BASE[2] + 0.01]
    found = comparison(arm("uniform", BASE), arm("steady", steady), arm("wild", wild))
    assert [each.name for each in found.tied] == ["uniform", "steady", "wild"]
    assert found.best.name == "wild"
    assert found.recommended.name == "steady"
    assert found.recommendation.endswith("; tied with wild.")


def test_no_two_of_many_arms_have_the_same_marker():
    found = comparison(*(arm(f"arm {place}", BASE) for place in range(20)))
    encoding = contents_of(found).charts[0].spec["layer"][1]["encoding"]
    ranges = [encoding[channel]["scale"]["range"] for channel in ("color", "shape")]
    assert len(set(zip(*ranges, strict=True))) == 20


def test_one_seed_cannot_tell():
    found = comparison(arm("uniform", [0.5]), arm("dynamic", [0.9]))
    assert found.winner is None
    assert found.recommendation == (
        "One seed cannot tell: dynamic is +0.4000 to the recall@20 0.5000 of uniform; run more seeds."
    )
    assert found.rows()[0][1:3] == ("0.9000", "+0.4000")
    assert comparison(arm("uniform", [0.5])).recommendation.endswith("nothing else was compared.")


def test_times_to_uniforms_best_and_equal_time():
    slow = arm("slow", BASE, cost=2.0, curve=(0.1, 0.2, 0.3))
    never = arm("never", BASE, curve=(0.1, 0.29, 0.2))
    found = comparison(arm("uniform", BASE), slow, never)
    assert [point.step for point in found.reached(slow)] == [30, 30, 30]
    assert found.reached(never) == []
    assert found.at_equal_time(slow).mean == pytest.approx(0.1)  # 3 s are enough for one point of 2 s each
    rows = {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.rows()}
    assert (rows["slow"]["steps to best of uniform"], rows["slow"]["seconds to best of uniform"]) == ("30", "6.0")
    assert rows["never"]["steps to best of uniform"] == "never"
    assert rows["slow"]["ms per step"] == "200.0"


def test_it_prints_a_table_and_the_recommendation():
    text = str(comparison(arm("uniform", BASE), arm("dynamic", (0.53, 0.51, 0.56))))
    lines = text.splitlines()
    assert lines[0].startswith("negatives  recall@20")
    assert re.match(r"dynamic    0\.5333 ± 0\.0625  \+0\.0233 ± 0\.0759", lines[1])
    assert lines[-1].startswith("Use uniform")
