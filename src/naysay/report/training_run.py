"""The log of a `difficulty.Monitor` as a report: one chart for each kind of measure, over the training steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from naysay.checks import public
from naysay.files import as_path, check_file, digest_of
from naysay.places import check_apart, check_page
from naysay.plots import Spec, axis, layer
from naysay.report.charts import named_series, short_names
from naysay.report.contents import Chart, Contents, Table
from naysay.report.html import write_page
from naysay.report.run_log import TrainingRun, read_run
from naysay.text import counted, number, percent, versions

_POINTS, _TIMES, _TAIL = 200, 40, 0.1  # points of a curve, columns of a histogram; the end of a run, as a share
_FEW, _MANY_FALSE, _OFTEN = 2.0, 0.05, 0.5  # measures that the advice points out
_STYLES = ("first", "kept", "second", "third", "fourth")
_CHARTS = {
    "Scores": (("score/positives", "score/negatives"), "mean score", "Near positives and far negatives: it learns."),
    "Negatives above their positive": (("above_positive",), "share", "A row with none teaches a ranking loss little."),
    "False negatives": (("false_share", "suspected"), "share", "Mean suspicion, and the share of 0.5 or more."),
    "Gradient by difficulty": (
        ("gradient/easy", "gradient/hard", "gradient/hardest"),
        "share of the gradient",
        "The share of InfoNCE's gradient that each band of a row's negatives has.",
    ),
    "How many negatives count": (
        ("negatives", "effective_negatives"),
        "per row",
        "The effective number is 1 / sum of squared softmax weights.",
    ),
    "Repeats": (("repeats",), "share", "Pairs of anchor and negative that came in an earlier step."),
    "Rows without negatives": (("empty_rows",), "share", "Anchors for which there was none."),
    "Empty slots": (("exhausted",), "slots per step", "Slots that could not be filled."),
    "Refreshed negatives": (
        ("drift", "random"),
        "share",
        "Drift: negatives that the anchor did not have before. Random: those that the judge left to fill.",
    ),
    "Cost": (("monitor/cost",), "share of a step", "The time of the monitor."),
}


@public
def report_run(path: str | Path, output: str | Path | None = None, *, title: str = "") -> Path:
    """Draw the log of a training run as one HTML file; see `write_report`.

    Args:
        path: The .jsonl file that a `difficulty.Monitor` wrote.
        output: The file to write, which ends in .html; by default it is beside the log and has its name.
        title: The title of the page; by default the name of the file.

    Returns:
        The path of the page.

    Raises:
        NaysayError: If the log is damaged, or the page cannot be written.
    """
    log = as_path("path", path)
    check_file("path", log)
    target = log.with_suffix(".html") if output is None else as_path("output", output)
    check_page("output", target)
    check_apart({"output": target}, {"path": log})
    run = read_run(log)
    contents = Contents(
        title=title or f"Negatives of the run {log.stem}",
        advice=_advice(run),
        numbers=_numbers(run),
        charts=tuple(_charts(run)),
        tables=(_table(run),),
        provenance=versions("naysay") | {"log": str(log), "sha256 of the log": digest_of(log)},
        notes=run.notes,
    )
    write_page("output", target, contents)
    return target


def _ends(run: TrainingRun, name: str) -> tuple[float, float] | None:
    """The means of a measure over the first and the last tenth of the steps that have it."""
    if name not in run.scalars:
        return None
    known = run.scalars[name][~np.isnan(run.scalars[name])]
    size = max(1, int(len(known) * _TAIL))
    return float(known[:size].mean()), float(known[-size:].mean())


def _advice(run: TrainingRun) -> tuple[str, ...]:
    """What the run shows: where it began and ended, and what to look into."""
    above, score = _ends(run, "above_positive"), _ends(run, "score/negatives")
    first = f"{counted(len(run.steps), 'step')} from {run.steps[0]:,} to {run.steps[-1]:,}."
    if above is not None:
        first = f"The share of negatives above their positive went from {percent(above[0])} to {percent(above[1])}."
    elif score is not None:
        first = f"The mean score of the negatives went from {number(score[0])} to {number(score[1])}."
    others = []
    count, width = _ends(run, "effective_negatives"), _ends(run, "negatives")
    if count is not None and width is not None and count[1] < _FEW < width[1]:
        text = f"At the end {number(count[1])} of {number(width[1])} negatives have the gradient of a row"
        others.append(f"{text}: raise the temperature, or sample fewer and harder ones.")
    false = _ends(run, "false_share")
    if false is not None and false[1] > _MANY_FALSE:
        others.append(f"At the end {percent(false[1])} of the negatives are likely false: drop or weigh them.")
    repeats = _ends(run, "repeats")
    if repeats is not None and repeats[1] > _OFTEN:
        others.append(f"At the end {percent(repeats[1])} of the pairs are repeats: a larger pool has more variety.")
    slots = int(np.nansum(run.scalars.get("exhausted", 0)))
    if slots:
        others.append(f"{counted(slots, 'slot')} could not be filled: the pool is too small for some anchors.")
    failed_at = run.steps[run.scalars["failed"] > 0] if "failed" in run.scalars else []
    if len(failed_at):
        text = f"A refresh failed {counted(len(failed_at), 'time')}, first at step {failed_at[0]:,}"
        others.append(f"{text}: the negatives stayed as they were.")
    if "not_finite" in run.scalars and (run.scalars["not_finite"] > 0).any():
        step = run.steps[np.argmax(run.scalars["not_finite"] > 0)]
        others.append(f"Scores are NaN or infinite, first at step {step:,}.")
    return (first, *others)


def _numbers(run: TrainingRun) -> dict[str, str]:
    wanted = {"effective negatives at the end": "effective_negatives", "false share at the end": "false_share"}
    found = {"steps measured": f"{len(run.steps):,}", "last step": f"{run.steps[-1]:,}"}
    for label, name in wanted.items():
        if (ends := _ends(run, name)) is not None:
            found[label] = percent(ends[1]) if "share" in name else number(ends[1])
    return found


def _charts(run: TrainingRun) -> list[Chart]:
    """One chart for each kind of measure that the log has, then the histograms."""
    drawn = []
    named = {name for names, _, _ in _CHARTS.values() for name in names}
    kinds = dict(_CHARTS)
    dropped = tuple(name for name in run.scalars if name.startswith("dropped/"))[: len(_STYLES)]
    if dropped:
        kinds["Left out"] = (dropped, "slots per step", "Slots that were left out, by reason.")
    for title, (names, unit, caption) in kinds.items():
        present = [name for name in names if name in run.scalars]
        if present:
            drawn.append(_curves(run, title, present, unit, caption))
    drawn += [_heat(name, times) for name, times in run.histograms.items() if name in named | {"suspicion"}]
    return drawn


def _curves(run: TrainingRun, title: str, names: list[str], unit: str, caption: str) -> Chart:
    """Measures over steps; of a long run the means of up to 200 parts of equal size."""
    parts = np.array_split(np.arange(len(run.steps)), min(_POINTS, len(run.steps)))
    values: list[Spec] = []
    shown_names = short_names(names)
    for shown_name, name in zip(shown_names, names, strict=True):
        for part in parts:
            known = run.scalars[name][part]
            if not np.isnan(known).all():
                middle = float(run.steps[part].mean())
                values.append({"step": middle, "value": float(np.nanmean(known)), "of": shown_name})
    series = named_series("of", shown_names, _STYLES, columns=3, limit=300)
    x, y = axis("step", title="step", scale={"nice": False}), axis("value", title=unit, scale={"zero": False})
    spec = {"width": "container", "height": 220, **layer(values, "line", {"x": x, "y": y, **series}, strokeWidth=2)}
    spec["mark"]["point"] = len(parts) == 1
    rows = tuple((name, *(_ends(run, name) or (float("nan"),) * 2)) for name in names)
    words = "; ".join(f"{name} goes from {number(start)} to {number(end)}" for name, start, end in rows)
    table = Table(title, ("measure", "first tenth", "last tenth"), rows, "Means over the first and the last steps.")
    return Chart(title, spec, f"{title} over the steps: {words}.", table, caption)


def _heat(name: str, times: list[tuple[int, Any, Any]]) -> Chart:
    """A histogram over steps, as shades; each column adds up to 1."""
    every = -(-len(times) // _TIMES)
    values: list[Spec] = []
    rows = []
    for step, counts, ends in times[::every]:
        whole = max(1.0, float(counts.sum(dtype=np.float64)))  # whole numbers could overflow
        cells = zip(counts.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        values += [
            {"step": f"{step:,}", "low": low, "high": high, "share": count / whole}
            for count, low, high in cells
            if count
        ]
        middles = (ends[:-1] + ends[1:]) / 2
        rows.append((step, float((counts * middles).sum() / whole), float(ends[0]), float(ends[-1])))
    order = [f"{step:,}" for step, _, _ in times[::every]]
    encoding = {
        "x": {"field": "step", "type": "ordinal", "sort": order, "title": "step", "axis": {"labelOverlap": True}},
        "y": axis("low", title=name, scale={"zero": False}),
        "y2": {"field": "high"},
        "opacity": axis("share", title="share", scale={"range": [0.05, 1]}, legend=None),
    }
    spec = {"width": "container", "height": 220, **layer(values, "rect", encoding, color="var(--accent)")}
    table = Table(f"Distribution of {name}", ("step", "mean", "lowest", "highest"), tuple(rows), "From histograms.")
    words = (
        f"The mean goes from {number(rows[0][1])} at step {rows[0][0]:,} to {number(rows[-1][1])} at {rows[-1][0]:,}."
    )
    return Chart(f"Distribution of {name}", spec, words, table, "Darker is more frequent; each column adds up to 1.")


def _table(run: TrainingRun) -> Table:
    """All measures, also those without a chart."""
    rows = tuple((name, *(_ends(run, name) or (float("nan"),) * 2)) for name in run.scalars)
    caption = "Means over the first and the last tenth of the steps."
    return Table("All measures", ("measure", "first tenth", "last tenth"), rows, caption)
