"""The runs of the study of judging as means over seeds, and as paired differences with intervals."""

from __future__ import annotations

from typing import Any

from benchmarks.training.seed_summaries import spread

Row = dict[str, Any]
NOT_BLIND = (
    "The rule of `auto`, its target of 5 % and its settings come from an earlier study on deb, debH and scifact with "
    "other splits of the same sources. Share 0.95 and margin 0.05 are usual values, and were not chosen here.",
    "Rates were chosen by validation on the tuning split, epochs by validation in each run. But the tuning split is "
    "another split of the same data, so its parts overlap the test parts of the seeds.",
    "The grids of rates and the numbers of epochs were set after trials of four arms of debH, one arm of tokens and "
    "all arms of ml-100k on the tuning split, which also showed test figures of that split. The end of a run after 3 "
    "epochs without a better validation was set to save time.",
    "The arm without a fallback was added to the doses after a look at the sets of `auto` at 40 % on the tuning split.",
    "The guard by held-out likes did not heed the reason of its posterior at first; these runs are the arm that "
    "ignores it now. After a run on yelp2018, which showed test figures, it was made to heed the reason and to state "
    "the labelled share. On the tuning split of ml-100k that raised the validation recall from 0.337 to 0.353.",
    "The arms that tell why share 0.95 is ahead on deb, and the bands, were added after that result had been seen. "
    "Rank 21 is the best of 1, 6, 11, 21 and 41 by validation on the tuning split of deb at T = 0.02.",
    "Rates at the doses are those of 20 %, so an arm at another dose is not tuned to it.",
    "Grids have two or three rates. On deb at T = 0.02 `auto`, the nearest and the oracle take the lowest, and share "
    "0.95 the highest. Lower rates were not tried; whether they would change the order is not known.",
    "The posterior was changed after earlier runs of debH, deb and the doses. The arms that judge were run again with "
    "it, and their rates chosen again. Its constants were set on planted worlds and on estimates of deb, debH and "
    "scifact, not on these training runs. Arms that do not judge keep earlier runs, of which only the chosen rate is "
    "known.",
    "Ten seeds were planned for all tasks. The arms that judge have five at the doses, arms added later have five or "
    "fewer, ml-100k has five, and yelp2018 one or two, from which nothing follows.",
    "On yelp2018 the guards take the rate of `dynamic`. On images (results/judging_images.json) 3,000 pictures and 12 "
    "epochs were chosen to fit the time, before any of its arms had been run at that size.",
    "Seeds are different splits of the same data, not independent data: intervals are too narrow for other data.",
)
BASES = ("nearest", "share 0.95", "oracle", "random", "dynamic")
MEASURES = (
    "ndcg",
    "validation",
    "false_share",
    "estimate",
    "hardness",
    "filled",
    "attracted",
    "attracted_true",
    "acted",
    "recall",
)


def summary(rows: list[Row], tuning_seed: int) -> Row:
    """{task at a temperature: its arms}; seeds that lack an arm are not paired with it."""
    groups: dict[tuple[str, float], dict[str, dict[int, Row]]] = {}
    for row in rows:
        if row["seed"] != tuning_seed:
            arms = groups.setdefault((row["task"], row["temperature"]), {})
            arms.setdefault(row["arm"], {})[row["seed"]] = row
    found: Row = {}
    for (task, temperature), arms in groups.items():
        everyone = {**_steady(task, temperature, groups), **arms}
        found[f"{task}, T = {temperature:g}"] = {
            "task": task,
            "temperature": temperature,
            "arms": {name: _arm(name, everyone) for name in everyone},
            **_against_best(everyone),
        }
    return found


def _against_best(arms: dict[str, dict[int, Row]]) -> Row:
    """The rule of the highest mean over auto, on the seeds of both, that does not know the truth; auto minus it."""
    auto, under = arms.get("auto", {}), {}
    for name, mine in arms.items():
        both = sorted(auto.keys() & mine.keys())
        if both and "oracle" not in name:
            under[name] = [auto[seed]["ndcg"] - mine[seed]["ndcg"] for seed in both]
    best = min(under, key=lambda name: _mean(under[name])) if under else None
    return {"best": best, **({"auto_over_best": spread(under[best])} if best not in (None, "auto") else {})}


def _steady(task: str, temperature: float, groups: dict[tuple[str, float], Any]) -> dict[str, dict[int, Row]]:
    """The arms that are the same at every dose."""
    return groups.get(("dose", temperature), {}) if task.startswith("dose ") else {}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _arm(name: str, arms: dict[str, dict[int, Row]]) -> Row:
    """One arm: its measures, and how far it is above some others of the same seeds."""
    mine = arms[name]
    values = {key: [row[key] for row in mine.values() if row.get(key) is not None] for key in MEASURES}
    found: Row = {"seeds": len(mine), **{key: spread(of_key) for key, of_key in values.items() if of_key}}
    found["at_last_epoch"] = sum(row.get("epoch") == row.get("epochs", -1) for row in mine.values())
    found["rate"] = sorted({row["rate"] for row in mine.values()})
    for base in BASES:
        both = sorted(mine.keys() & arms.get(base, {}).keys())
        if both and base != name:
            found[f"over {base}"] = spread([mine[seed]["ndcg"] - arms[base][seed]["ndcg"] for seed in both])
    fallbacks = sorted({row["fallback"] for row in mine.values() if "fallback" in row})
    return found | ({"fallbacks": fallbacks} if fallbacks else {})
