"""Collections of queries: every rule at its usual setting and at equal hardness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.hidden_positives.hardness import Curve, compared, rounded, share_of
from benchmarks.hidden_positives.hide import Flags, Task, bench, hardest, hide
from benchmarks.hidden_positives.promises import bounds, promises
from benchmarks.hidden_positives.readers import Collection, Floats, Ids
from benchmarks.hidden_positives.rules import Bench, clusterings, rules, text_duplicates

K, MINED = 10, 100
BASE, LEVELS = "rank window", (5, 20, 50)
AMONG_ALL = ("rank window", "absolute", "margin", "calibrated, by anchor", "near a positive")


class Tally:
    """What a rule did at one setting, by anchor, over seeds."""

    def __init__(self, n_anchors: int) -> None:
        """Nothing yet."""
        names = (
            "hidden",
            "returned",
            "share_passed",
            "counted",
            "evaluated",
            "taken",
            "score",
            "deviations",
            "rank",
            "short",
        )
        self.sums = {name: np.zeros(n_anchors) for name in names}

    def add(self, seen: Bench, standard: Floats, ranks: Ids, task: Task, flagged: Flags) -> None:
        """One seed."""
        left = ~task.known & ~flagged
        taken = hardest(seen.scores, left, K)
        hidden = task.hidden.sum(axis=1)
        rows = {
            "hidden": hidden,
            "returned": (task.hidden & taken).sum(axis=1),
            "share_passed": (task.hidden & left).sum(axis=1) / np.maximum(hidden, 1),
            "counted": hidden > 0,
            "evaluated": np.ones(len(hidden)),
            "taken": taken.sum(axis=1),
            "score": np.where(taken, seen.scores, 0).sum(axis=1),
            "deviations": np.where(taken, standard, 0).sum(axis=1),
            "rank": np.where(taken, ranks, 0).sum(axis=1),
            "short": (left & (ranks <= MINED)).sum(axis=1) < K,
        }
        for name, values in rows.items():
            self.sums[name][task.evaluated] += values

    def row(self, distinct: int) -> dict[str, Any]:
        """The measures of the rule."""
        s = self.sums
        taken, evaluated = max(s["taken"].sum(), 1), s["evaluated"].sum()
        return {
            "returned": share_of(s["returned"], s["hidden"], distinct),
            "let_through": share_of(s["share_passed"], s["counted"], int((s["counted"] > 0).sum())),
            "false_of_taken_percent": rounded(100 * s["returned"].sum() / taken),
            "mean_score": rounded(s["score"].sum() / taken, 4),
            "mean_deviations": rounded(s["deviations"].sum() / taken, 4),
            "mean_rank": rounded(s["rank"].sum() / taken, 1),
            "filled_percent": rounded(100 * taken / (K * evaluated)),
            "short_percent": rounded(100 * s["short"].sum() / evaluated),
        }


def ranks_of(scores: Floats, known: Flags) -> Ids:
    """(B, n) the place of each candidate in its row, from 1; known positives come last."""
    return (-np.where(known, -np.inf, scores)).argsort(axis=1).argsort(axis=1) + 1


def mined(
    data: Collection, whole: Floats, seeds: int, by: str, only: tuple[str, ...], say: Callable[[str], None]
) -> Any:
    """A tally for each rule and setting, over seeds; and for duplicates of texts, which have nothing to move."""
    groups = clusterings(data.documents)
    made = {name: rule for name, rule in rules(groups).items() if not only or name in only}
    tallies = {name: {setting: Tally(len(whole)) for setting in rule.settings} for name, rule in made.items()}
    duplicates = Tally(len(whole))
    for seed in range(seeds):
        task = hide(data, seed, by=by)
        seen = bench(data, whole, task, seed, groups)
        ranks = ranks_of(seen.scores, task.known)
        standard = (seen.scores - seen.mean[:, None]) / seen.deviation[:, None]
        for name, rule in made.items():
            move = rule.make(seen)
            for setting, tally in tallies[name].items():
                tally.add(seen, standard, ranks, task, move(setting))
        if not only:
            duplicates.add(seen, standard, ranks, task, text_duplicates(seen))
        say(f"hidden by seed {seed}, thresholds by {by}")
    return made, tallies, duplicates


def levels(tallies: dict[str, dict[float, Tally]], anchors: Flags, hardness: str) -> dict[str, Any]:
    """All rules at the hardness of rank windows; settings that select nothing are left out."""
    curves = {}
    for name, places in tallies.items():
        full = {setting: tally.sums for setting, tally in places.items() if tally.sums["taken"].sum() > 0}
        parts = [np.stack([s[key][anchors] for s in full.values()]) for key in ("returned", hardness, "taken")]
        hidden = next(iter(full.values()))["hidden"][anchors]
        curves[name] = Curve(list(full), parts[0], hidden, parts[1], parts[2])
    hard = curves[BASE].points()[0]
    wanted = np.array([hard[curves[BASE].settings.index(skip)] for skip in LEVELS])
    points = {
        name: [[p, rounded(h, 4), rounded(100 * s)] for p, h, s in zip(c.settings, *c.points(), strict=True)]
        for name, c in curves.items()
    }
    return {
        "skips": list(LEVELS),
        "levels": wanted.round(4).tolist(),
        "base": BASE,
        "rules": compared(curves, BASE, wanted, np.random.default_rng(0)),
        "curves": points,
    }


def study(data: Collection, seeds: int, *, by: str, say: Callable[[str], None]) -> dict[str, Any]:
    """All rules over all seeds; promised and observed miss rates.

    by   how thresholds are fitted, see `hide`. Where that is "single", most anchors have nothing hidden: then some
         rules mine for all anchors once more, so that hardness counts where there is nothing to avoid, too
    """
    whole = data.queries @ data.documents.T
    made, tallies, duplicates = mined(data, whole, seeds, by, (), say)
    counts, distinct = data.per_anchor(), len(data.anchors)
    rows = {}
    for name, rule in made.items():
        for title, setting in rule.usual.items():
            rows[title] = tallies[name][setting].row(distinct) | {"rule": name, "setting": setting}
    rows["text duplicates of a positive"] = duplicates.row(distinct) | {"rule": "text duplicates", "setting": 0.8}
    found = {
        "queries": len(data.queries),
        "documents": len(data.documents),
        "positives": distinct,
        "anchors_with_several": int((counts > 1).sum()),
        "vectors": data.vectors,
        "fitted_by": by,
        "seeds": seeds,
        "k": K,
        "mined": MINED,
        "rules": rows,
        "equal_hardness": {name: levels(tallies, counts > 1, name) for name in ("score", "deviations")},
        "promises": promises(data, whole, seeds),
        "bounds": bounds(data, whole, seeds, by, K),
    }
    if by == "single":
        among = mined(data, whole, min(seeds, 2), "everyone", AMONG_ALL, say)[1]
        found["equal_hardness"]["score, all anchors"] = levels(among, counts > 0, "score")
    return found
