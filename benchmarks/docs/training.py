"""The parts of the benchmarks page about what negatives do to a model: recommendation, and judging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

RECOMMENDATION = """\
Seven kinds of negatives, {seeds} seeds, {steps:,} gradient steps of {batch:,} pairs each: {likes:,} likes (ratings of
{liked_from} and 5) of {users:,} users among {items:,} items; a tenth of each user's likes is for validation and a
tenth for the test. LightGCN with two hops, d = 64; `info_nce`, which is BPR for k = 1. Recall and NDCG at {top} are
of the test part at the step of the best validation recall. Values are means with 95 % CI (Student's t) over seeds;
differences are paired by seed. Dynamic and mixing select from {candidates} candidates; popularity has the power
{power}. "Uniform's best" is the highest validation recall of uniform with k = 1 in the first table, same seed. Times
are processor seconds of training on {threads} thread{s}, without evaluation.
"""
SHARED = """\
All with the learning rate and weight decay that are best for uniform, {rate:g} and {decay:g}, chosen on a separate
split:
"""
TUNED = """\
Each with its own best learning rate, of {rates}, chosen on that split; and uniform with {longer} times the steps at
the lowest rate, to distinguish slow from worse:
"""
QUANTITY = """\
K* by seed is {ks}, from training AUCs of {train} and validation AUCs up to {validation} in a run with one uniform
negative, which costs {cost:.1f} s and is not in the times above. By the formula, any k from {low} to {high} is within
1 % of the best v for every seed.
"""
JUDGING = """\
Models trained on the negatives of several rules, from `benchmarks.training.judging`. nDCG@10 of the test part, which
shares no document with training, in per cent; k = {k} negatives for each anchor, batches of {batch}. The rate is chosen
by validation on a split of its own, the epoch by validation in each run. ± is half a 95 % CI over seeds, differences
are paired by seed. "False" is the true share of false negatives in the arm's set, "estimate" what the posterior says of
that set. `auto` is `mine(judge="auto")` with its defaults.
"""
GOALS = """\
`auto` against the best rule that does not know the truth (the one of the highest mean over `auto` on the same seeds, so
chosen after the fact; some rules have five seeds),
against 95 % of the positive's score, against the nearest and against the oracle. The last column counts the runs of
`auto` that were still improving at the end:
"""
VERDICT = """\
The goals were set before: `auto` within noise of the best rule (its 95 % CI reaches 0): {near_best} of {tasks} tasks. A
wide CI of few seeds reaches 0 easily, so this does not show that two rules are equal.
Better than 95 % of the positive's score where more than 5 % of the nearest are false: above 0 on average in {above} of
{false_rich}, by more than the CI in {surely}. At least 3 points over the nearest on debH at T = 0.02: {gain}.
"""
REASON = """\
Why is "below 95 % of the positive's score" ahead of `auto` on deb and at small doses at T = 0.02? Not because of false
negatives: on deb it is ahead of the oracle, too. Four arms were added to find the reason. nDCG in points over `share
0.95`:

{rows}

`oracle below share` has true negatives only and also leaves out what scores above 95 % of the positive. `oracle, as
hard as share` has true negatives, and skips the same first ranks for all anchors until the mean score is that of
`share 0.95`. Both are level with `share 0.95`, so the reason is how hard the negatives are, not which anchor they are
of: on deb at T = 0.02 skipping the first ranks is worth {deb} to the oracle, at T = 0.05 {warmer}. At a dose of 5 % it
is {dose}, which is not clear. deb has only 5 epochs; whether longer training would change this is not known. `auto,
from rank 21` is `mine(judge="auto", rank_range=(21, None))`: few false negatives, and none of the first ranks.
"""
_REASON_ARMS = (
    *("nearest", "oracle", "oracle below share", "oracle, as hard as share"),
    *("auto", "auto below share", "auto, from rank 21"),
)
_REASON_TASKS = (
    *("deb, T = 0.02", "dose 5 %, T = 0.02", "dose 10 %, T = 0.02", "dose 20 %, T = 0.02"),
    *("debH, T = 0.02", "deb, T = 0.05", "debH, T = 0.05"),
)
_FALSE_RICH = 0.051  # more than 5 %, and more than the dose of 5 %
TASK_NOTES = {
    "debH": "Packages from sources of 4 to 20, short description against long ones; an adapter of wordllama vectors.",
    "deb": "The same with sources of 2 to 20.",
    "scifact": "Claims against abstracts, split so that no two parts share a document; an adapter of MiniLM vectors.",
    "tokens": "As debH, but wordllama's token table is trained in place of the adapter.",
    "ml-100k": "Matrix factorisation, NDCG@20; the false share counts held-out likes.",
    "yelp2018": "The same with 31,668 users and 38,048 items, and the published test part.",
}
DOSE_NOTE = """\
The dose: sources of 6 to 20 packages, of which some may be returned by no arm, so that a given share of the nearest is
false. nDCG@10 in per cent, and the true false share of the arm's set in brackets where it is not 0.
"""
_NAMES = {
    "uniform": "uniform, k = 1",
    "popularity": "popularity, k = 1",
    "popularity, restored": "popularity, k = 1, log q added to the scores",
    "dynamic": "dynamic, k = 1",
    "mixing": "mixing, k = 1",
    "uniform, K*": "uniform, k = K*",
    "uniform, scheduled": "uniform, k scheduled to K*",
    "uniform, longer": "uniform, k = 1, {longer} x the steps",
}
_HEADINGS = (
    "negatives",
    "rate",
    "recall@{top}",
    "NDCG@{top}",
    "recall against uniform",
    "best at step",
    "uniform's best in steps",
    "in processor seconds",
    "ms a step",
    "held-out likes among the negatives",
)


def mean(spread: dict[str, Any], figures: int, sign: str = "") -> str:
    """A mean and half its interval."""
    half = "" if spread["half"] is None else f" ± {spread['half']:.{figures}f}"
    return f"{spread['mean']:{sign}.{figures}f}{half}"


def to_goal(row: dict[str, Any], name: str, figures: int, seeds: int) -> str:
    """The mean over the seeds that reached uniform's best, and how many did if not all."""
    if not row["reached"]:
        return "never"
    some = "" if row["reached"] == seeds else f" ({row['reached']} of {seeds} seeds)"
    return f"{row[name]['mean']:,.{figures}f}{some}"


def recommendation(result: dict[str, Any], table: Table) -> list[str]:
    """The two tables, with what they were made by."""
    settings, rows, seeds = result["tuning"]["settings"], result["rows"], result["seeds"]
    shared = settings["uniform"]

    def cells(name: str, title: str, rate: float) -> tuple[str, ...]:
        row = rows[name]
        return (
            title.format(**result),
            f"{rate:g}",
            mean(row["recall"], 4),
            mean(row["ndcg"], 4),
            "" if name == "uniform" else mean(row["recall_difference"], 4, "+"),
            f"{row['best_step']['mean']:,.0f}",
            to_goal(row, "steps_to_goal", 0, seeds),
            to_goal(row, "processor_seconds_to_goal", 1, seeds),
            f"{row['milliseconds_a_step']['mean']:.1f}",
            f"{row['false_percent']['mean']:.1f} %",
        )

    first = [cells(name, _NAMES[name], shared["rate"]) for name in settings]
    own = [
        cells(f"{name}, tuned" if f"{name}, tuned" in rows else name, _NAMES[name], settings[name]["rate"])
        for name in settings
    ]
    rates = sorted({float(tried.split(",")[0]) for tried in result["tuning"]["validation_recall"]["uniform"]})
    found = result["quantity"]
    words = {
        "ks": ", ".join(str(one["k"]) for one in found),
        "train": _range([one["training_auc"] for one in found]),
        "validation": _range([one["validation_auc"] for one in found]),
        "cost": sum(one["first_run_processor_seconds"] for one in found) / len(found),
        "low": max(one["k_flat"][0] for one in found),
        "high": min(one["k_flat"][1] for one in found),
    }
    headings = tuple(heading.format(**result) for heading in _HEADINGS)
    return [
        "## Which and how many negatives for recommendation",
        RECOMMENDATION.format(**result, s="" if result["threads"] == 1 else "s"),
        SHARED.format(**shared),
        table(headings, first),
        TUNED.format(rates=", ".join(f"{rate:g}" for rate in rates), longer=result["longer"]),
        table(headings, [*own, cells("uniform, longer", _NAMES["uniform, longer"], min(rates))]),
        QUANTITY.format(**words),
    ]


def _range(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def judging(result: dict[str, Any], table: Table) -> list[str]:
    """All tasks of the study of judging, and what was not blind."""
    tasks, parts = result["tasks"], ["## Does judging pay in training", JUDGING.format(**result)]
    parts += [GOALS, table(*_goals(tasks)), VERDICT.format(**_verdict(tasks))]
    parts += [REASON.format(rows=table(*_reasons(tasks)), **_skipped(tasks))]
    for name, note in TASK_NOTES.items():
        mine = {key: found for key, found in tasks.items() if found["task"] == name}
        if mine:
            parts += [f"### {name}", note, table(*_arms(mine))]
    doses = sorted({found["temperature"] for found in tasks.values() if found["task"].startswith("dose ")})
    for temperature in doses:
        parts += [f"### Dose, T = {temperature:g}", DOSE_NOTE, table(*_doses(tasks, temperature))]
    return [*parts, "What was not blind, and what is left out:", "\n".join(f"- {line}" for line in result["not_blind"])]


def _reasons(tasks: dict[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """One row per arm that tells why, one column per task: over 95 % of the positive's score."""
    names = [name for name in _REASON_TASKS if name in tasks]
    arms = {name: tasks[name]["arms"] for name in names}
    over = {arm: [arms[name].get(arm, {}).get("over share 0.95") for name in names] for arm in _REASON_ARMS}
    return ("arm", *names), [(arm, *(_percent(one, "+") for one in found)) for arm, found in over.items()]


def _skipped(tasks: dict[str, Any]) -> dict[str, str]:
    """What true negatives gain without the first ranks."""
    names = {"deb": "deb, T = 0.02", "warmer": "deb, T = 0.05", "dose": "dose 5 %, T = 0.02"}
    arms = {key: tasks.get(name, {"arms": {}})["arms"].get(_REASON_ARMS[3], {}) for key, name in names.items()}
    return {key: _percent(arm.get("over oracle"), "+") or "not run" for key, arm in arms.items()}


def _percent(spread: dict[str, Any] | None, sign: str = "", figures: int = 1) -> str:
    """A mean and half its interval, in per cent."""
    if spread is None:
        return ""
    half = None if spread["half"] is None else 100 * spread["half"]
    return mean({"mean": 100 * spread["mean"], "half": half}, figures, sign)


def _goals(tasks: dict[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """One row per task: auto against some others."""
    headings = ("task", "seeds", "false, nearest", "best rule", "auto - best", "- share 0.95", "- nearest", "- oracle")
    headings = (*headings, "best at the last epoch")
    rows = []
    for key, found in tasks.items():
        if "auto" not in found["arms"]:
            continue
        auto, near = found["arms"]["auto"], found["arms"].get("nearest", {})
        false = f"{100 * near['false_share']['mean']:.1f} %" if "false_share" in near else ""
        others = (auto.get(f"over {name}") for name in ("share 0.95", "nearest", "oracle"))
        over = found.get("auto_over_best")
        best = "auto" if over is None else found["best"]
        last = f"{auto['at_last_epoch']} of {auto['seeds']}"
        over_all = (_percent(one, "+") for one in (over, *others))
        rows.append((key, str(auto["seeds"]), false, best, *over_all, last))
    return headings, rows


def _verdict(tasks: dict[str, Any]) -> dict[str, Any]:
    """How often each goal is reached."""
    judged = [found for found in tasks.values() if "auto" in found["arms"]]
    overs = [found.get("auto_over_best") for found in judged]
    rich = [found["arms"] for found in judged if found["arms"]["nearest"]["false_share"]["mean"] > _FALSE_RICH]
    shares = [arms["auto"]["over share 0.95"] for arms in rich]
    main = tasks.get("debH, T = 0.02")
    return {
        "tasks": len(judged),
        "near_best": sum(over is None or over["mean"] + (over["half"] or 0) >= 0 for over in overs),
        "false_rich": len(rich),
        "above": sum(one["mean"] > 0 for one in shares),
        "surely": sum(one["mean"] > (one["half"] or 0) for one in shares),
        "gain": "not run" if main is None else _percent(main["arms"]["auto"]["over nearest"], "+"),
    }


def _arms(tasks: dict[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """One row per arm; quality at each temperature."""
    by_temperature = sorted(tasks.values(), key=lambda found: float(found["temperature"]))
    base = "dynamic" if "dynamic" in by_temperature[0]["arms"] else "nearest"
    headings = ["arm", "seeds", "false", "estimate", "mean score"]
    for found in by_temperature:
        headings += [f"nDCG, T = {found['temperature']:g}", f"over {base}"]
    rows = []
    for name, arm in by_temperature[0]["arms"].items():
        shares = (f"{100 * arm[key]['mean']:.1f} %" if key in arm else "" for key in ("false_share", "estimate"))
        score = f"{arm['hardness']['mean']:.3f}" if "hardness" in arm else ""
        cells = [name, str(arm["seeds"]), *shares, score]
        for found in by_temperature:
            here = found["arms"].get(name, {})
            cells += [_percent(here.get("ndcg")), _percent(here.get(f"over {base}"), "+")]
        rows.append(tuple(cells))
    return tuple(headings), rows


def _doses(tasks: dict[str, Any], temperature: float) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """One row per arm, one column per dose."""
    mine = [one for one in tasks.values() if one["task"].startswith("dose ") and one["temperature"] == temperature]
    mine.sort(key=lambda found: float(found["task"].split()[1]))
    names = list(dict.fromkeys(name for found in mine for name in found["arms"]))
    rows = []
    for name in names:
        cells = []
        for found in mine:
            arm = found["arms"].get(name)
            false = arm["false_share"]["mean"] if arm and "false_share" in arm else 0
            cells.append("" if arm is None else _percent(arm["ndcg"]) + (f" ({100 * false:.1f} %)" if false else ""))
        rows.append((name, *cells))
    return ("arm", *(found["task"] for found in mine)), rows
