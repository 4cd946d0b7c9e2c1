"""A comparison as one HTML file: quality against time, learning curves, what the negatives were like, and costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from naysay.checks import check_kind, public
from naysay.files import as_path
from naysay.lab.result import ArmResult, Comparison, Point, mean_text
from naysay.plots import Spec, axis, layer
from naysay.report.contents import Chart, Contents, Table
from naysay.report.html import as_html, write_report
from naysay.text import number

# Colours are variables of the page; after seven arms they repeat with another dash.
_COLOURS = ("kept", "first", "positive", "second", "accent", "fourth", "third")
_DASHES = ([1, 0], [6, 3], [2, 2])
_SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")  # one fewer than the colours


@public
def report_comparison(result: Comparison, path: str | Path) -> Path:
    """Write a comparison as one HTML file that opens offline; see `report.write_report`.

    Args:
        result: The comparison.
        path: The file, ending in .html.

    Example: see `compare`, which writes compare.html to its folder.
    """
    check_kind("result", result, Comparison, "a Comparison")
    target = as_path("path", path)
    write_report(target, contents_of(result))
    return target


def page_of(result: Comparison) -> bytes:
    """The page as the bytes of a file."""
    return as_html(contents_of(result)).encode()


def contents_of(result: Comparison) -> Contents:
    """The contents of the page."""
    chosen, base = result.best, result.arms[0]
    table = result.table()
    mark = () if result.withheld else tuple(place for place, row in enumerate(table) if row["negatives"] == chosen.name)
    note = (
        "Test measures are at the step of the best validation measure: the mean over seeds, ± half of its 95 % CI. "
        "Differences are paired by seed. Validation at equal time: the best within the processor seconds of the whole "
        f"run of {base.name}, whose best is that of the same seed. Still rising: how many runs have their best "
        "validation measure at the last check, so that a longer run would have been better."
    )
    to_best = [heading for heading in table[0] if heading.endswith(f"to best of {base.name}")]
    costs = ["validation at equal time", *to_best, "ms per step", "lr"]
    quality = [heading for heading in table[0] if heading not in costs]
    settings = tuple((arm.name, arm.k, arm.lr, _tried(arm), arm.code) for arm in result.arms)
    return Contents(
        title=f"Which negatives: {result.settings['task']}, {result.settings['model']}",
        advice=(result.recommendation,),
        numbers={
            f"{result.measure}, {chosen.name}": mean_text(result.mean(chosen)),
            f"{result.measure}, {base.name}": mean_text(result.mean(base)),
            "arms": str(len(result.arms)),
            "seeds": str(len(base.runs)),
            "steps of a run": f"{result.settings['steps']:,}",
        },
        result=Table("Arms", *_columns(table, quality), "All arms, best first.", note, mark),
        tables=(
            Table(
                "Speed",
                *_columns(table, ["negatives", *costs]),
                f"Processor time, and steps and seconds to reach the best of {base.name}.",
            ),
            _all_measures(result),
            Table("Settings", ("negatives", "k", "lr", "validation by lr", "composition"), settings, "By arm."),
        ),
        charts=(_quality_and_time(result), *_curves(result), _cost_of_a_step(result)),
        provenance={name: str(value) for name, value in result.settings.items()},
        notes=result.notes,
    )


def _columns(table: list[dict[str, str]], headings: list[str]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Some columns of the table: their headings, and their cells. All of them would be wider than the page."""
    return tuple(headings), tuple(tuple(row[heading] for heading in headings) for row in table)


def _all_measures(result: Comparison) -> Table:
    """Every measure of the test part: for recommenders also by the popularity of items."""
    names = [*result.arms[0].runs[0].test]
    rows = tuple((arm.name, *(mean_text(result.mean(arm, name)) for name in names)) for arm in result.arms)
    return Table("All measures", ("negatives", *names), rows, "The mean over seeds of the test part.")


def _tried(arm: ArmResult) -> str:
    return ", ".join(f"{lr}: {value:.4f}" for lr, value in arm.tried.items())


def _channel(result: Comparison, choices: Sequence[Any], *, turn: int = 1, **legend: Any) -> Spec:
    """What tells arms apart in a chart, such as their colour; it changes every `turn` arms."""
    names = [arm.name for arm in result.arms]
    values = [choices[place // turn % len(choices)] for place in range(len(names))]
    legend = {"title": None, "orient": "bottom", "columns": 4, "labelLimit": 220, **legend}
    return {"field": "arm", "type": "nominal", "scale": {"domain": names, "range": values}, "legend": legend}


def _colour(result: Comparison) -> Spec:
    return _channel(result, [f"var(--{name})" for name in _COLOURS], symbolSize=120)


def _quality_and_time(result: Comparison) -> Chart:
    """Test measure against the time to the best validation measure of the first arm: the review's Figure 1."""
    values, rows, base = [], [], result.arms[0].name
    for arm in result.arms:
        points, found = result.reached(arm), result.mean(arm)
        seconds = float(np.mean([point.processor_seconds for point in points])) if points else float("nan")
        rows.append((arm.name, found.mean, found.low, found.high, seconds, len(points)))
        if points:
            low, high = (found.mean if np.isnan(end) else end for end in (found.low, found.high))
            values.append({"arm": arm.name, "seconds": seconds, "value": found.mean, "low": low, "high": high})
    x = axis("seconds", title=f"processor seconds to the best validation measure of {base}")
    y = axis("value", title=f"{result.measure}, test", scale={"zero": False})
    colour = {"color": _colour(result)}
    shape = {"shape": _channel(result, _SHAPES)}
    bars = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, **colour}
    layers = [
        layer(values, "rule", bars, strokeWidth=1.5),
        layer(values, "point", {"x": x, "y": y, **colour, **shape}, filled=True, size=110, tooltip=True),
    ]
    never = [arm.name for arm in result.arms if not result.reached(arm)]
    words = f"Of {len(result.arms)} arms, {len(values)} reached the best validation measure of {base}."
    words += f" Not shown, because they never did: {', '.join(never)}." if never else ""
    columns = ("negatives", result.measure, "95 % CI from", "to", "seconds", "seeds that reached it")
    table = Table("Quality and time", columns, tuple(rows), "The same as numbers.")
    caption = f"Up and to the left is better. Bars are 95 % CIs over seeds. {words}"
    return Chart(
        f"Quality, and time to reach the best of {base}",
        {"width": 700, "height": 320, "layer": layers},
        words,
        table,
        caption,
    )


def _curves(result: Comparison) -> list[Chart]:
    """Validation by step and by processor seconds, hardness, and false negatives, each the mean over seeds."""
    kinds: tuple[tuple[str, str, str, Callable[[Point], float], str], ...] = (
        ("Learning curves by steps", "step", f"{result.measure}, validation", lambda point: point.value, ""),
        ("Learning curves by time", "seconds", f"{result.measure}, validation", lambda point: point.value, ""),
        (
            "Hardness of the negatives",
            "step",
            "mean sigmoid(negative - positive)",
            lambda point: point.hardness,
            "At 0.5 a negative scores like the positive. It is also the weight of its gradient, for k = 1.",
        ),
        (
            "False negatives",
            "step",
            "share of the drawn negatives",
            lambda point: point.false_share,
            f"{result.settings.get('false negatives', '')} In one batch per point.",
        ),
    )
    return [chart for chart in (_curve(result, *kind) for kind in kinds) if chart is not None]


def _curve(
    result: Comparison, title: str, by: str, heading: str, value: Callable[[Point], float], caption: str
) -> Chart | None:
    """A line for each arm that has values; None if no arm has any."""
    values: list[Spec] = []
    rows: list[tuple[Any, ...]] = []
    for arm in result.arms:
        grid = list(zip(*(run.points for run in arm.runs), strict=True))
        means = np.array([np.mean([value(point) for point in points]) for points in grid])
        seconds = [float(np.mean([point.processor_seconds for point in points])) for points in grid]
        where: list[Any] = [points[0].step for points in grid] if by == "step" else seconds
        found = np.flatnonzero(~np.isnan(means)).tolist()
        if not found:
            continue
        values += [{"arm": arm.name, by: where[at], "value": round(float(means[at]), 6)} for at in found]
        top = int(np.nanargmax(means))
        ends = [float(means[found[at]]) for at in (0, len(found) // 2, -1)]
        rows.append((arm.name, *ends, float(means[top]), where[top]))
    if not rows:
        return None
    x = axis(by, title="gradient steps" if by == "step" else "processor seconds")
    y = axis("value", title=heading, scale={"zero": False})
    styles = {"color": _colour(result), "strokeDash": _channel(result, _DASHES, turn=len(_COLOURS))}
    lines = layer(values, "line", {"x": x, "y": y, **styles}, strokeWidth=2, tooltip=True)
    columns = ("negatives", "first", "middle", "last", "highest", f"at {'step' if by == 'step' else 'second'}")
    table = Table(title, columns, tuple(rows), "The mean over seeds.")
    words = f"{heading} of each arm; for {rows[0][0]} it goes from {number(rows[0][1])} to {number(rows[0][3])}."
    return Chart(title, {"width": 700, "height": 260, **lines}, words, table, f"The mean over seeds. {caption}".strip())


def _cost_of_a_step(result: Comparison) -> Chart:
    """Processor milliseconds of a step."""
    title, heading, base = "Cost of a step", "processor milliseconds per step", result.arms[0]
    costs = {arm.name: arm.milliseconds_per_step for arm in result.arms}
    values = [{"arm": name, "value": round(cost, 3)} for name, cost in costs.items()]
    y = {"field": "arm", "type": "nominal", "title": None, "sort": [*costs]}
    bars = layer(values, "bar", {"x": axis("value", title=heading), "y": y})
    bars["mark"] |= {"color": "var(--kept)", "tooltip": True}
    rows = tuple((name, cost, f"{cost / costs[base.name]:.2f}") for name, cost in costs.items())
    table = Table(title, ("negatives", heading, f"times {base.name}"), rows, "Drawing, loss and update.")
    words = f"{heading}: {costs[base.name]:.1f} with {base.name}, at most {max(costs.values()):.1f}."
    return Chart(title, {"width": 560, "height": {"step": 24}, **bars}, words, table)
