"""The part of the benchmarks page about distrust: which rules keep false negatives out where the truth is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.docs.detectors import Table, coverage, false_negatives, images, incremental, thresholds
from benchmarks.harness import RESULTS

INTRODUCTION = """\
For anchors with several positives, half of them are hidden; the rest is known and excluded. All documents are
candidates, and every rule selects the {k} hardest that it does not flag. 95 % CI over anchors, {seeds} random splits.
"Returned" is the share of hidden positives that became negatives. "Missed" is the share that the rule does not flag
(mean over anchors). "Short" is the share of anchors with fewer than {k} negatives left among their nearest {mined}.
"""
COLLECTION = """\
{documents:,} documents, {queries:,} queries, {anchors_with_several} of them with several positives. Vectors:
{vectors}. Thresholds are fitted to {fitted}.
"""
FITTED = {"single": "the queries with one positive", "half": "a random half of the queries with several"}
EQUAL = """\
At equal hardness: the parameter of each rule is varied until the mean score of its negatives equals that of a rank
window that skips {skips}, here {levels}. Cells: hidden positives returned, and the difference to the rank window in
percentage points with its CI. Absolute, bands, calibrated and mixture use one threshold for all anchors, so they have
the same curve: they differ in their position on it, and by interpolation.
"""
AMONG = """\
The same with hardness averaged over all anchors, including {rest} without hidden positives (thresholds are fitted to
as many others), two splits. If every anchor has hidden positives, skipping the first few ranks is right; if most have
none, it loses their hardest negatives.
"""
PROMISES = """\
The miss rate that `Calibrated` promised, and the observed one for hidden positives in {splits} splits, with the range
over splits.
"""
BOUNDS = """\
Upper bounds of `false_negative_rate` from positives of other anchors, against the known hidden positives (there may
be further false negatives), in per cent, means over {seeds} seeds:
"""
DEBIAN = """\
Debian: {packages:,} packages of {sources:,} sources. {anchors:,} short descriptions, each of another source, are the
queries; long descriptions are the documents. A query's own long description is excluded; it would be among the
{mined} nearest for {own_in_nearest_percent:.0f} %, so the encoder is weak ({vectors}). Of the {mined} nearest,
{false_percent:.1f} % have the anchor's source. Thresholds are fitted to {fitted_to:,} other packages.
"""
TAGS = """\
By equal sets of tags instead ({with_tags:,} packages have tags, {tag_sets:,} sets; slots without tags are left out),
{coarse:.0f} % of the nearest would be false negatives: many sets have one or two tags, which is a class and not a
duplicate. With five tags or more it is {fine:.1f} %, of {slots:,} slots. Cells: MTPR / MTNR / false among the
selected.
"""
OWN = """\
Calibrated thresholds and the anchors' own long descriptions, the only positives that the promise covers:
{rows}.
"""
CODEX = """\
CoDEx-S: {train:,} training triples. {test:,} held-out true triples must be flagged; {test_negatives:,} false ones,
which models scored high and people found false, must be kept. Two models are trained on the training triples alone:
{ComplEx}, {models} runs with an MRR of {mrr}; and *attributes*, ridge regression of each (relation, other end) of an
entity on all its others (ridge {ridge:g}, MRR {solved}). The AUC between true and false is {auc} and {solved_auc},
within a relation {auc_in_relation} and {solved_in_relation}. Thresholds come from {valid:,} validation triples; only
the rows "by both kinds" and "labelled" also use {valid_negatives:,} false ones. A promise is about one positive of
each anchor, here a head and a relation; some have dozens.

The ridge and the features of `Labelled` were chosen by hand by cross-validation on validation triples. The form of
ComplEx's score and its steps were chosen earlier, after seeing the test results of one model, so this choice is
not blind. Attributes scores 0 for every tail without information: some anchors have no standard deviation, so the
standardised rule is missing there, and its mixture is fitted to the scores that are not 0.
"""
LABELLED = """\
`Labelled` with the scores of both models in both directions, ComplEx's raw score, and the numbers of known tails and
heads as features, with weights for each relation:
"""
WHERE = """\
At cost 1 its accuracy is {right:.1f} % (standard error {error:.1f}). The authors of the data publish 84.3 % for the
best of their five models, also with validation triples of both kinds (Safavi and Koutra. CoDEx: A Comprehensive
Knowledge Graph Completion Benchmark. EMNLP 2020). Half of the errors are in {half} of {relations} relations:
"""
SECTIONS: dict[str, Callable[[dict[str, Any], Table], list[str]]]


def percent(share: dict[str, Any] | None, figures: int = 1) -> str:
    """A share with its interval."""
    if share is None:
        return "-"
    return f"{share['percent']:.{figures}f} ({share['low']:.{figures}f} to {share['high']:.{figures}f}) %"


def collection(title: str, part: dict[str, Any], table: Table) -> list[str]:
    """One collection: rules as they are usually set, at equal hardness, promises and bounds."""
    rows = [
        (
            name,
            percent(row["returned"]),
            percent(row["let_through"]),
            f"{row['false_of_taken_percent']:.2f} %",
            f"{row['mean_score']:.3f}",
            f"{row['mean_rank']:.0f}",
            f"{row['short_percent']:.0f} %",
        )
        for name, row in part["rules"].items()
    ]
    headings = ("rule", "returned", "missed", "false of selected", "mean score", "mean rank", "short")
    words = part | {"fitted": FITTED[part["fitted_by"]]}
    promised = [
        (
            f"{'one positive' if row['fitted_to'] == 'single' else 'several'}, {row['positives']:,} of them",
            row["scores"],
            f"{row['promised_percent']:.1f} %",
            percent(row["let_through"]),
            "{:.1f} to {:.1f} %".format(*row["range_percent"]),
        )
        for row in part["promises"]
    ]
    bounds = [
        (name, *(f"{row[f'{key}_percent']:.3g}" for key in ("known", "estimate", "high")), str(row["seeds_above"]))
        for name, row in part["bounds"].items()
    ]
    found = [f"### {title}", COLLECTION.format(**words), table(headings, rows), *equal(part, "score", EQUAL, table)]
    if "score, all anchors" in part["equal_hardness"]:
        found += equal(part, "score, all anchors", AMONG, table)
    return [
        *found,
        PROMISES.format(splits=part["promises"][0]["splits"]),
        table(("fitted to anchors with", "scores", "promised", "missed", "range"), promised),
        BOUNDS.format(**part),
        table(("kept", "known", "estimate", "upper bound", "seeds above"), bounds),
    ]


def equal(part: dict[str, Any], hardness: str, words: str, table: Table) -> list[str]:
    """One comparison at equal hardness."""
    found = part["equal_hardness"][hardness]
    rest = (part["queries"] - part["anchors_with_several"]) // 2
    shown = {name: ", ".join(f"{value:g}" for value in found[name]) for name in ("skips", "levels")}
    rows = [(name, *(_level(level) for level in levels)) for name, levels in found["rules"].items()]
    headings = ("rule", *(f"as hard as skipping {skip}" for skip in found["skips"]))
    return [words.format(rest=f"{rest:,}", **shown), table(headings, rows)]


def _level(level: dict[str, float] | None) -> str:
    if level is None:
        return "not reached"
    if level["difference"] == level["low"] == level["high"] == 0:
        return f"{level['percent']:.1f} %"
    return f"{level['percent']:.1f} %, {level['difference']:+.1f} ({level['low']:+.1f} to {level['high']:+.1f})"


def packages(part: dict[str, Any], table: Table) -> list[str]:
    """Packages by source, and by tags."""
    truths, found = part["truths"], part["detectors"]
    rows = [
        (
            name,
            *(percent(row[key]) for key in ("mtpr", "mtnr", "precision")),
            f"{row['auc']:.2f}",
            percent(row["false_of_taken"], 2),
            "-" if row["mean_score"] is None else f"{row['mean_score']:.3f}",
            f"{row['filled_percent']:.0f} %",
        )
        for name, row in found["source"].items()
    ]
    tags = [
        (name, *("{} / {} / {}".format(*_short(found[truth][name])) for truth in ("tags", "five tags or more")))
        for name in found["source"]
    ]
    own = ", ".join(
        f"{name} misses {percent(row['own_let_through'])}"
        for name, row in found["source"].items()
        if "own_let_through" in row
    )
    words = {
        "coarse": truths["tags"]["false_percent"],
        "fine": truths["five tags or more"]["false_percent"],
        "slots": truths["five tags or more"]["judged"],
    }
    headings = ("detector", "MTPR", "MTNR", "precision", "AUC", "false of selected", "mean score", "filled")
    return [
        "### Packages of one source",
        DEBIAN.format(**part, false_percent=truths["source"]["false_percent"]),
        table(headings, rows),
        OWN.format(rows=own),
        TAGS.format(**part, **words),
        table(("detector", "tags", "five tags or more"), tags),
    ]


def _short(row: dict[str, Any]) -> list[str]:
    keys = ("mtpr", "mtnr", "false_of_taken")
    return ["-" if row[key] is None else f"{row[key]['percent']:.1f} %" for key in keys]


def triples(part: dict[str, Any], table: Table) -> list[str]:
    """Held-out true triples, and verified false ones."""
    first, second = (
        {name: f"{sum(values) / len(values):.3f}" for name, values in measures.items()}
        for measures in part["measures"].values()
    )
    solved = {"solved": second["mrr"], "solved_auc": second["auc"], "solved_in_relation": second["auc_in_relation"]}
    headings = (
        "detector",
        "promised to flag",
        "flagged, mean over anchors",
        "true triples flagged",
        "false triples kept",
    )
    parts = ["### Verified false triples", CODEX.format(**part, **first, **solved)]
    for name in ("ComplEx", "attributes"):
        parts += [f"Scores of {name}:", table(headings, [_flags(*row) for row in part["flagged"][name].items()])]
    both = part["flagged"]["both"]
    parts += [
        LABELLED,
        table((headings[0], *headings[2:]), [_flags(*row)[:1] + _flags(*row)[2:] for row in both.items()]),
    ]
    return parts + _where(part, table)


def _flags(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    """One detector of triples."""
    promised, false = row["promised_percent"], row["test_negatives"]
    kept = {"percent": 100 - false["percent"], "low": 100 - false["high"], "high": 100 - false["low"]}
    return (
        name,
        "-" if promised is None else f"{100 - promised:.1f} %",
        f"{row['test_by_anchor_percent']:.1f} %",
        percent(row["test"]),
        percent(kept),
    )


def _where(part: dict[str, Any], table: Table) -> list[str]:
    """In which relations the mistakes are: those with the most, until they are half of all."""
    wrong = sorted(part["by_relation"], key=lambda one: -(one["true_wrong"] + one["false_wrong"]))
    total, shown, so_far = sum(one["true_wrong"] + one["false_wrong"] for one in wrong), [], 0.0
    for one in wrong:
        if so_far >= total / 2:
            break
        so_far += one["true_wrong"] + one["false_wrong"]
        shown.append(one)
    rest = wrong[len(shown) :]
    others = {key: sum(one[key] for one in rest) for key in ("true", "false", "true_wrong", "false_wrong")}
    rows = [(one["relation"], *_rates(one)) for one in shown] + [("all others", *_rates(others))]
    right = 100 * (1 - total / (part["test"] + part["test_negatives"]))
    error = (right * (100 - right) / (part["test"] + part["test_negatives"])) ** 0.5
    words = WHERE.format(right=right, error=error, half=len(shown), relations=len(wrong))
    return [words, table(("relation", "true", "flagged", "false", "kept"), rows)]


def _rates(one: dict[str, Any]) -> tuple[str, ...]:
    """How many there are of each kind, and how many of them are right."""
    cells: list[str] = []
    for kind in ("true", "false"):
        share = f"{100 * (1 - one[f'{kind}_wrong'] / one[kind]):.1f} %" if one[kind] else "-"
        cells += [f"{one[kind]:,}", share]
    return tuple(cells)


def distrust(result: dict[str, Any], table: Table) -> list[str]:
    """The whole section, of the parts that were run."""
    parts = ["## Hidden positives"]
    titles = {"scifact": "SciFact", "cranfield": "Cranfield"}
    there = [name for name in titles if name in result]
    if there:
        parts.append(INTRODUCTION.format(**result[there[0]]))
    for name in there:
        parts += collection(titles[name], result[name], table)
    if "debian" in result:
        parts += packages(result["debian"], table)
    if "codex" in result:
        parts += triples(result["codex"], table)
    return parts


SECTIONS = {
    "distrust": distrust,
    "false_negatives": false_negatives,
    "coverage": coverage,
    "thresholds": thresholds,
    "incremental": incremental,
    "images": images,
}


def sections(result: Callable[[str], dict[str, Any]], table: Table) -> list[str]:
    """All sections about detectors whose results are there; `result` and `table` are those of pages.py."""
    folder = RESULTS
    there = [name for name in SECTIONS if (folder / f"{name}.json").exists()]
    return [part for name in there for part in SECTIONS[name](result(name), table)]
