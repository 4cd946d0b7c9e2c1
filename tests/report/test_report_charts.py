"""The standard charts and tables: their data is what the library computes, and the words say the same."""

import json
from itertools import pairwise

import numpy as np
import pytest
from report_cases import point, trade, whole

from naysay.detectors import choose_thresholds
from naysay.errors import NaysayError
from naysay.quantity import auc, estimate, simulated
from naysay.report import (
    Chart,
    Contents,
    Example,
    Examples,
    Scores,
    Table,
    difficulty_by_percentile,
    effectiveness,
    score_distribution,
    threshold_tables,
    trade_chart,
)


def scores_of(reasons=2, *, seed=0, **changed):
    rng = np.random.default_rng(seed)
    why = np.repeat(np.arange(reasons), 10 * (1 + np.arange(reasons)))
    given = {
        "positives": rng.normal(0.8, 0.1, 50),
        "kept": rng.normal(0.4, 0.1, 200),
        "dropped": rng.normal(0.6, 0.1, len(why)),
        "why": why,
        "reasons": tuple(f"reason {n}" for n in range(reasons)),
    }
    return Scores(**(given | changed))


def test_every_score_is_counted_once():
    given = scores_of(3)
    chart = score_distribution(given)
    rows = chart.spec["layer"][0]["data"]["values"]
    kinds = ["positives", "kept negatives", "dropped: reason 2", "dropped: reason 1", "dropped: reason 0"]
    assert list(dict.fromkeys(row["kind"] for row in rows)) == kinds
    assert [row[0] for row in chart.table.rows] == kinds
    values = dict(
        zip(kinds, [given.positives, given.kept, *(given.dropped[given.why == n] for n in (2, 1, 0))], strict=True)
    )
    width = (np.concatenate(list(values.values())).max() - np.concatenate(list(values.values())).min()) / 60
    for row in rows:
        low, high = row["score"] - width / 2, row["score"] + width / 2
        plain = sum(low - 1e-9 <= value < high + 1e-9 for value in values[row["kind"]].tolist())
        assert abs(row["scores"] - plain) <= 1  # a score may lie on an edge
        assert row["share"] == row["scores"] / len(values[row["kind"]])
    for kind, count, *quantiles in chart.table.rows:
        assert count == len(values[kind]) == sum(row["scores"] for row in rows if row["kind"] == kind)
        assert quantiles == pytest.approx(np.quantile(values[kind], [0, 0.05, 0.5, 0.95, 1]))
    assert "the median of the positives is 0.8" in chart.description


def test_thresholds_are_drawn():
    assert len(score_distribution(scores_of()).spec["layer"]) == 1
    chart = score_distribution(scores_of(low=0.3, high=0.6))
    assert [row["score"] for row in chart.spec["layer"][1]["data"]["values"]] == [0.3, 0.6]
    assert "The high threshold is 0.6." in chart.description


@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5]])
def test_few_and_equal_scores_have_a_chart(values):
    given = Scores(values, values, [], [])
    chart = score_distribution(given)
    assert json.loads(json.dumps(chart.spec, allow_nan=False))["width"] == "container"
    assert chart.table.rows[0][1] == len(values)


def test_the_tables_of_the_note():
    negatives, positives = 1_163_686, 11_540
    high = {0.35: 1036, 0.34: 1136, 0.335: 1165, 0.33: 1682}
    low = {0.12: 60_697, 0.121: 59_568, 0.122: 58_225, 0.123: 57_080}
    at = {**high, **{value: count + high[0.335] for value, count in low.items()}}
    edges = sorted(at)
    counts = [at[one] - at[other] for one, other in pairwise(edges)] + [at[edges[-1]]]
    scores = np.concatenate([np.repeat(edges, counts), np.full(negatives - sum(counts), 0.01)])
    chosen = choose_thresholds(scores, n_positives=positives, grid=(list(low), list(high)))
    first, second = threshold_tables(chosen, caption="Of the note.")
    assert [row[:3] for row in first.rows] == [(f"{value:g}", positives, count) for value, count in high.items()]
    assert [row[5] for row in first.rows] == ["0.0882%", "0.0967%", "0.0991%", "0.1431%"]
    assert [row[3] for row in second.rows] == list(low.values())
    assert (first.mark, second.mark) == ((2,), (1,))
    assert first.caption == "Pairs by the upper threshold high, counted at low = 0. Of the note."
    assert second.caption == "Pairs by the lower threshold low, counted at high = 0.335. Of the note."


def test_effectiveness_over_k():
    found = estimate(0.75, auc(simulated(0.95)), k_max=300)
    chart = effectiveness(found, k=8, caption="A run.")
    layers = chart.spec["layer"]
    assert layers[0]["data"]["values"] == [{"k": found.flat[0], "to": found.flat[1]}]
    for row in layers[1]["data"]["values"]:
        assert row["v"] == found.curve[row["k"] - 1]
    assert [row["k"] for row in layers[2]["data"]["values"]] == [found.k, 8]
    assert (found.k, float(found.curve[found.k - 1]), "best") in chart.table.rows
    assert (8, float(found.curve[7]), "in use") in chart.table.rows
    assert f"v is largest at k = {found.k}" in chart.description
    assert chart.caption == "A run."
    edge = effectiveness(estimate(1.0, [0.9], k_max=10), k=99)
    assert "labels without noise" in edge.caption
    assert [row["k"] for row in edge.spec["layer"][2]["data"]["values"]] == [10]  # 99 is off the curve


def test_difficulty_by_percentile():
    chart = difficulty_by_percentile([5, 50, 95], [0.1, 0.4, 0.9], {"same class": [0.0, np.nan, 0.5]}, caption="All.")
    score, shares = chart.spec["hconcat"]
    assert score["data"]["values"][2] == {"percentile": 95.0, "score": 0.9}
    assert [row["share"] for row in shares["data"]["values"]] == [0.0, 0.5]
    assert chart.table.rows[0] == (5.0, 0.1, 0.0)
    assert chart.description == (
        "The mean score goes from 0.1 for the easiest to 0.9 for the hardest. "
        "The share same class goes from 0.0% to 50.0%."
    )
    assert len(difficulty_by_percentile([1], [2]).spec["hconcat"]) == 1


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: difficulty_by_percentile([], []), "percentiles"),
        (lambda: difficulty_by_percentile([1], [1, 2]), "percentiles"),
        (lambda: difficulty_by_percentile([1], [1], {"a": [1, 1]}), "a"),
        (lambda: difficulty_by_percentile([1], [1], {"a": [2]}), "a"),
        (lambda: effectiveness(3), "estimate"),
        (lambda: threshold_tables(3), "choice"),
        (lambda: Table("t", ("a",), ((1,), (1, 2))), "rows"),
        (lambda: Table(3, ("a",), ()), "title"),
        (lambda: Table("t", (3,), ()), "columns[0]"),
        (lambda: Table("t", None, ()), "columns"),
        (lambda: Table("t", ("a",), (1,)), "rows[0]"),
        (lambda: Table("t", ("a",), (), mark=3), "mark"),
        (lambda: Chart("t", {}, "d", table=3), "table"),
        (lambda: Example(*"apc", "high", 0.1, 1, "o", "e"), "score"),
        (lambda: Example(1, *"pc", 0.1, 0.1, 1, "o", "e"), "anchor"),
        (lambda: Examples("t", "kind", None), "rows"),
        (lambda: Scores([0.9], [0.5], [], [], reasons=3), "reasons"),
        (lambda: Scores([0.9], [0.5], [], [], high="x"), "high"),
        (lambda: score_distribution(3), "scores"),
        (lambda: difficulty_by_percentile([1], [1], 3), "shares"),
        (lambda: difficulty_by_percentile([1], [1], {"a": ["x"]}), "a"),
        (lambda: effectiveness(estimate(0.7, [0.6]), k="x"), "k"),
        (lambda: Chart("t", "spec", "d"), "spec"),
        (lambda: Chart("t", {}, " "), "description"),
        (lambda: Examples("t", "kind", (1,)), "rows[0]"),
        (lambda: Contents("t", ()), "advice"),
        (lambda: Contents("t", "do"), "advice"),
        (lambda: Contents("t", (1,)), "advice[0]"),
        (lambda: whole(tables=(1,)), "tables[0]"),
        (lambda: whole(charts=5), "charts"),
        (lambda: whole(examples=(1,)), "examples[0]"),
        (lambda: whole(scores=1), "scores"),
        (lambda: whole(numbers=[1]), "numbers"),
    ],
)
def test_invalid_arguments(call, parameter):
    with pytest.raises(NaysayError) as caught:
        call()
    assert caught.value.parameter == parameter


def test_the_trade_is_drawn_as_it_is():
    given = trade()
    chart = trade_chart(given)
    band, curve, *others = chart.spec["layer"]
    assert [row["share"] for row in curve["data"]["values"]] == [one.false_share for one in given.curve]
    assert band["encoding"]["y2"] == {"field": "high"}
    texts = [
        one["encoding"]["text"]["value"] for one in others if one["mark"]["type"] == "text" and "color" in one["mark"]
    ]
    assert texts == ["nearest", "share 0.95", "margin 0.05", "these negatives"]
    assert chart.spec["params"] == [{"name": "place", "value": 4}]
    assert [row[0] for row in chart.table.rows[:4]] == texts
    assert len(chart.table.rows) == 4 + 12
    assert chart.table.mark == (3,)
    assert "nearest: 20.0 % (95 % CI 10.0 to 40.0) at mean score 0.51" in chart.description
    json.dumps(chart.spec, allow_nan=False)


def test_a_set_without_negatives_has_no_place_in_the_picture():
    empty = point("share 0.95", 0.0, float("nan"), negatives=0, low=0.0, high=1.0)
    chart = trade_chart(trade(rules=(empty,), curve=(point(score=float("nan"), target=0.1, negatives=0),)))
    json.dumps(chart.spec, allow_nan=False)
    assert "share 0.95" not in chart.description
    assert chart.table.rows[0][0] == "share 0.95"


def test_the_slider_starts_at_the_target_or_at_the_closest_share():
    assert trade().start == 4
    assert trade(chosen=point("these", 0.19)).start == 11
    assert trade(chosen=point("these", 0.0, low=0.0, high=0.1)).start == 0
