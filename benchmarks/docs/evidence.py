"""The tables of docs/evidence.md: claims with their verdicts, and the arms of the studies behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.docs.training import mean
from benchmarks.training.seed_summaries import spread

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]
Row = dict[str, Any]
PICTURES = ("claims-quantity.svg", "claims-samplers.svg")
REPRODUCED, REVERSED, OPEN, ONE = "reproduced", "not: the opposite", "not shown", "one seed only"
_ON_ALL = {"uniform": "uniform", "DNS(16)": "dynamic"}  # names of the study of judging
_TASKS = {
    "likes": "ml-100k, MF",
    "text": "packages, text",
    "mf": "yelp2018, MF",
    "lightgcn": "yelp2018, LightGCN",
    "mf-all": "all of yelp2018, MF",
    "lightgcn-all": "all of yelp2018, LightGCN",
}


def verdict(difference: Row, sign: int = 1) -> str:
    """Whether a difference is above 0 (sign 1) or below 0 (sign -1) by its 95 % CI."""
    if difference["half"] is None:
        return f"{ONE}, {'as claimed' if sign * difference['mean'] > 0 else 'not as claimed'}"
    if sign * difference["mean"] > difference["half"]:
        return REPRODUCED
    return REVERSED if -sign * difference["mean"] > difference["half"] else OPEN


def quantity_claims(result: Row, table: Table) -> str:
    """The claims about the number of negatives, for each task."""
    rows = []
    for name, task in result["tasks"].items():
        arms = task["arms"]
        later, early = (arms[f"adaptive, turning at {turning}"]["over adaptive"] for turning in ("0.5", "0.02"))
        found = (
            ("K* is better than k = 1", arms["K*"]["over k = 1"], 1),
            ("4 K* is worse than K*", arms["4 K*"]["over K*"], -1),
            ("k = 256 is worse than K*", arms["k = 256"]["over K*"], -1),
            ("k = 4 is worse than K*", arms["k = 4"]["over K*"], -1),
            ("adaptive is better than K*", arms["adaptive"]["over K*"], 1),
            ("turning at 2 % is worse than at 10 %", early, -1),
            ("turning at 50 % is worse than at 10 %", later, -1),
        )
        seeds = str(task["seeds"])
        rows += [
            (claim, _TASKS[name], mean(difference, 4, "+"), verdict(difference, sign), seeds)
            for claim, difference, sign in found
        ]
    return table(("claim", "task", "difference in the test measure", "verdict", "seeds"), rows)


def quantity_arms(result: Row, table: Table) -> str:
    """One row for each arm of each task."""
    rows = []
    for name, task in result["tasks"].items():
        for arm, row in task["arms"].items():
            ks = [k for k in row["k"] if k is not None]
            shown = "" if not ks else str(ks[0]) if len({*ks}) == 1 else f"{min(ks)} to {max(ks)}"
            rows.append(
                (
                    _TASKS[name],
                    arm,
                    shown,
                    mean(row["test"][task["measure"]], 4),
                    "" if arm == "k = 1" else mean(row["over k = 1"], 4, "+"),
                    mean(row["validation"], 4),
                    f"{row['best_step']['mean']:,.0f}",
                    f"{row['milliseconds_a_step']['mean']:.1f}",
                    _held_out(row),
                    str(row["seeds"]),
                )
            )
    headings = ("task", "arm", "k", "test", "minus k = 1", "validation", "best at step", "ms a step")
    return table((*headings, "held-out pairs", "seeds"), rows)


def _held_out(row: Row) -> str:
    """The share of held-out pairs among the negatives, where it is known."""
    return f"{row['false_percent']['mean']:.2f} %" if "false_percent" in row else ""


def estimates(result: Row) -> str:
    """What K* came from, what `Online` said, and what it cost."""
    lines = []
    for name, task in result["tasks"].items():
        said = task["K*"]
        ks, lows, highs = (
            [one[key] if place is None else one[key][place] for one in said]
            for key, place in (("k", None), ("flat", 0), ("flat", 1))
        )
        aucs = [_range([one[key] for one in said], 3) for key in ("training_auc", "validation_auc")]
        edge = sum(one["at_edge"] for one in said)
        parts = (
            f"- {_TASKS[name]}, {task['measure']}: K* by seed is {', '.join(map(str, ks))}",
            f"{edge} of them the largest k that is tried" if edge else "",
            f"from training AUCs of {aucs[0]} and validation AUCs up to {aucs[1]}",
            f"by the formula any k from {max(lows)} to {min(highs)} is within 1 % of the best for every seed",
        )
        cost = f"All runs took {task['processor_minutes']:.0f} processor minutes."
        lines.append(f"{'; '.join(filter(None, parts))}. `Online` in its own run: {_online(task)}. {cost}")
    return "\n".join(lines)


def _online(task: Row) -> str:
    """What the estimates of the online arm were."""
    arm = task["arms"]["online"]
    first = [(one[0][0], one[0][1], one[-1][1]) for one in arm["answers"] if one]
    if not first:
        return f"no estimate with any of {arm['seeds']} seeds"
    steps, ks, lasts = (_range([one[place] for one in first], 0) for place in range(3))
    with_one = f"an estimate with {len(first)} of {arm['seeds']} seeds"
    return f"{with_one}, first at step {steps}, with k = {ks} then and {lasts} in its last one"


def _range(values: list[float], figures: int) -> str:
    low, high = (f"{end:.{figures}f}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _gap(task: Row, arm: str, other: str) -> Row:
    """The difference of two arms in the test measure, over the seeds that both have."""
    values = (task["arms"][name]["test"][task["measure"]]["values"] for name in (arm, other))
    return spread([mine - its for mine, its in zip(*values, strict=False)])


def sampler_claims(result: Row, table: Table) -> str:
    """The review's claims about samplers, for each task."""
    claims = (
        ("1: mixing is better than uniform, by 14 %", "MixGCF(16)", "uniform", 1),
        ("1: DNS(64) is better than uniform", "DNS(64)", "uniform", 1),
        ("1: DNS(64) is slightly worse than mixing", "DNS(64)", "MixGCF(16)", -1),
        ("1: DNS(16) is slightly worse than mixing", "DNS(16)", "MixGCF(16)", -1),
        ("1: popularity^0.75 is worse than uniform, by 24 %", "popularity^0.75", "uniform", -1),
        ("1: a cache is better than uniform", "cache", "uniform", 1),
        ("5a: hard negatives, DNS(16), are better than uniform ones", "DNS(16)", "uniform", 1),
        ("5a: hard negatives, DNS(16), are better than popularity^0.75", "DNS(16)", "popularity^0.75", 1),
        ("5b: 16 candidates are better than 4", "DNS(16)", "DNS(4)", 1),
        ("6: adversarial is better than uniform", "adversarial", "uniform", 1),
    )
    rows = []
    for name, task in result["tasks"].items():
        for claim, arm, other, sign in claims:
            if arm in task["arms"] and other in task["arms"]:
                gap, base = _gap(task, arm, other), task["arms"][other]["test"][task["measure"]]["mean"]
                share = f"{mean(gap, 4, '+')} ({100 * gap['mean'] / base:+.0f} %)"
                rows.append((claim, _TASKS[name], share, verdict(gap, sign), str(len(gap["values"]))))
    return table(("figure and claim", "task", "difference in recall@20", "verdict", "seeds"), rows)


def sweeps(result: Row, judging: Row) -> str:
    """Recall by the power of popularity, by the candidates of DNS and by k, on all users, and what the study cost."""
    task = result["tasks"]["mf"]
    swept = {
        "power of popularity": {"0": "uniform"}
        | {f"{beta:g}": f"popularity^{beta:g}" for beta in (0.25, 0.5, 0.75, 1)},
        "number of candidates of DNS": {"1": "uniform"} | {str(n): f"DNS({n})" for n in (4, 16, 64)},
        "number of uniform negatives": {"1": "uniform"} | {str(k): f"uniform, k = {k}" for k in (4, 8, 64)},
    }
    lines = []
    for what, names in swept.items():
        arms = {at: task["arms"][arm] for at, arm in names.items() if arm in task["arms"]}
        shown = (
            f"{at}: {row['test'][task['measure']]['mean']:.4f} ({row['validation']['mean']:.4f})"
            for at, row in arms.items()
        )
        lines.append(f"- Mean recall@20 of the test part (of validation) by the {what}: {', '.join(shown)}.")
    whole = judging["tasks"]["yelp2018, T = 1"]["arms"]
    seen = (f"{name} {whole[arm]['recall']['mean']:.4f} ({whole[arm]['seeds']})" for name, arm in _ON_ALL.items())
    lines.append(f"- On all users, trained longer (`judging.json`), recall@20 and number of seeds: {', '.join(seen)}.")
    cost = ", ".join(f"{_TASKS[name]} {one['processor_minutes']:.0f}" for name, one in result["tasks"].items())
    return "\n".join([*lines, f"- Processor minutes of all runs: {cost}."])


def sampler_arms(result: Row, table: Table) -> str:
    """One row for each arm of each task, the best first."""
    rows = []
    for name, task in result["tasks"].items():
        measure = task["measure"]
        for arm, row in sorted(task["arms"].items(), key=lambda one: -one[1]["test"][measure]["mean"]):
            rows.append(
                (
                    _TASKS[name],
                    arm,
                    mean(row["test"][measure], 4),
                    "" if arm == task["base"] else mean(row[f"over {task['base']}"], 4, "+"),
                    mean(row["validation"], 4),
                    _goal(row, "steps_to_goal", 0),
                    _goal(row, "seconds_to_goal", 1),
                    f"{row['best_step']['mean']:,.0f}",
                    f"{row['milliseconds_a_step']['mean']:.1f}",
                    _held_out(row),
                    str(row["seeds"]),
                )
            )
    headings = ("task", "arm", "recall@20", "minus uniform", "validation", "uniform's best in steps", "in seconds")
    return table((*headings, "best at step", "ms a step", "held-out pairs", "seeds"), rows)


def _goal(row: Row, name: str, figures: int) -> str:
    """When the arm reached uniform's best validation recall, and with how many seeds if not with all."""
    if not row["reached"]:
        return "never"
    some = "" if row["reached"] == row["seeds"] else f" ({row['reached']} of {row['seeds']})"
    return f"{row[name]['mean']:,.{figures}f}{some}"


def band_claims(judging: Row, table: Table) -> str:
    """Whether mining between two thresholds changes the model, against other ways to choose negatives."""
    rows = []
    for name, task in judging["tasks"].items():
        found = task["arms"].get("bands")
        for base in ("random", "nearest", "share 0.95") if found else ():
            gap = {key: 100 * value for key, value in found[f"over {base}"].items() if key in ("mean", "half")}
            claim = f"bands are better than {_OTHERS[base]}"
            rows.append((claim, name, mean(gap, 1, "+"), verdict(gap), str(found["seeds"])))
    return table(("claim", "task", "difference in nDCG@10, points", "verdict", "seeds"), rows)


_OTHERS = {
    "random": "random negatives",
    "nearest": "the nearest",
    "share 0.95": "the nearest below 0.95 of the positive",
}


def not_blind(*results: Row) -> str:
    """What was chosen after something had been seen."""
    return "\n".join(f"- {line}" for result in results for line in result["not_blind"])


def blocks(quantity: Row, samplers: Row, judging: Row, table: Table) -> dict[str, str]:
    """All that the page has between marks."""
    return {
        "claims about quantity": quantity_claims(quantity, table),
        "arms of quantity": quantity_arms(quantity, table),
        "estimates of quantity": estimates(quantity),
        "claims about samplers": sampler_claims(samplers, table),
        "arms of samplers": sampler_arms(samplers, table),
        "sweeps of samplers": sweeps(samplers, judging),
        "claims about bands": band_claims(judging, table),
        "not blind": not_blind(quantity, samplers),
    }
