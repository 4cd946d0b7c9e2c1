"""Write the tables between marks in README.md and docs from results/*.json, and docs/methods.md from the catalogue.

python -m benchmarks.tables          # rewrite all regions
python -m benchmarks.tables --check  # exit 1 if one is out of date

A region starts with `<!-- NAME: made by benchmarks/tables.py -->` and ends with `<!-- end of NAME -->`. Text around the
regions is written by hand. Each region is declared below: its page, its name, the result file, the path of the rows,
the headings, and the cells of a row.

A path is a list of JSON keys with `/` between them. In the path of the rows, `*` stands for any part of a key, and
`a|b` for a list of keys. In a cell, a path starts at the row; `..` is one level up, `.` the row itself, and `/` at the
start the top of the file. `@key` at the end of a path is the key of that place. `@row` and `@title` stand for the key
and the title of the row, anywhere in a cell.

A cell holds fields `{path:format}`. A field may be a calculation, from left to right: `{seconds * 1e3:.1f}`. Formats
are Python's and those of `FORMATS`. `a ?? b` is `a` if all paths of `a` exist, else `b`. Null is `-`.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from html import escape
from itertools import combinations
from typing import Any

from benchmarks.harness import RESULTS, ROOT
from naysay import catalog
from naysay.catalog._filter import DATA, NEEDS, STEPS
from naysay.catalog._table import QUESTIONS


@dataclass(frozen=True)
class Row:
    """One row of a table: its title, and the keys and values from the top of the file down to it."""

    title: str
    keys: tuple[str, ...]
    values: tuple[Any, ...]

    def at(self, path: str) -> Any:
        """The value at a path that starts here; KeyError or IndexError if there is none."""
        keys, values = ((), self.values[:1]) if path.startswith("/") else (self.keys, self.values)
        for step in path.strip("/").split("/"):
            if step == "..":
                keys, values = keys[:-1], values[:-1]
            elif step == "@key":
                return keys[-1]
            elif step != ".":
                value = values[-1]
                values = (*values, value[int(step)] if isinstance(value, list) else value[step])
                keys = (*keys, step)
        return values[-1]

    def calculated(self, text: str) -> Any:
        """The value of a path, or of a calculation such as `seconds / ../peer/seconds`."""
        first, *rest = re.split(r" ([-*/]) ", text)
        value = self._operand(first)
        for sign, other in zip(rest[::2], rest[1::2], strict=True):
            number = self._operand(other)
            if isinstance(value, dict):  # a mean and half its interval
                value = {name: None if value[name] is None else value[name] * number for name in ("mean", "half")}
            elif value is None or number is None:
                value = None
            else:
                value = value * number if sign == "*" else value / number if sign == "/" else value - number
        return value

    def _operand(self, text: str) -> Any:
        return float(text) if re.fullmatch(r"[\d.]*\d(e\d+)?", text) else self.at(text)


@dataclass(frozen=True)
class Table:
    """One region: a table whose rows are those of a result file."""

    page: str
    region: str
    result: str
    rows: str | tuple[str, ...] | dict[str, str]  # one path, several, or {title: path}
    headings: str
    cells: str
    words: dict[str, str] = field(default_factory=dict)  # what to print in place of a text of the file

    def text(self) -> str:
        """The table in Markdown."""
        top = json.loads((RESULTS / f"{self.result}.json").read_text())
        lines = [[self._cell(cell, row) for cell in self.cells.split(" | ")] for row in self._rows(top)]
        return markdown(self.headings.split(" | "), lines)

    def _rows(self, top: Any) -> Iterator[Row]:
        paths = (self.rows,) if isinstance(self.rows, str) else self.rows
        titled = paths.items() if isinstance(paths, dict) else (("", path) for path in paths)
        for title, path in titled:
            yield from followed(Row(title, (), (top,)), path.split("/") if path else [])

    def _cell(self, cell: str, row: Row) -> str:
        """The first alternative whose paths all exist; the last must."""
        *others, last = cell.split("??")
        for text in others:
            try:
                return self._filled(text.strip(), row)
            except (KeyError, IndexError):
                continue
        return self._filled(last.strip(), row)

    def _filled(self, text: str, row: Row) -> str:
        def printed(match: re.Match[str]) -> str:
            calculation, _, form = match[1].partition(":")
            value = row.calculated(calculation)
            if value is None:
                return self.words.get("null", "-")
            return shown(self.words.get(value, value) if isinstance(value, str) else value, form)

        own = text.replace("@title", row.title).replace("@row", row.keys[-1] if row.keys else "")
        return re.sub(r"\{(.+?)\}", printed, own)


def followed(row: Row, steps: list[str]) -> Iterator[Row]:
    """All rows that a path with patterns leads to."""
    if not steps:
        yield row
        return
    step, *rest = steps
    value = row.values[-1]
    children = value if isinstance(value, dict) else {str(place): child for place, child in enumerate(value)}
    patterns = step.split("|")
    keys = [step] if step in children else [key for one in patterns for key in children if fnmatchcase(key, one)]
    for key in keys:
        yield from followed(Row(row.title, (*row.keys, key), (*row.values, children[key])), rest)


def spread(value: dict[str, Any], form: str) -> str:
    """A mean and half its 95 % CI, which one seed does not have."""
    half = "" if value["half"] is None else f" ± {value['half']:{form.lstrip('+')}}"
    return f"{value['mean']:{form}}{half}"


def share(value: dict[str, Any], figures: int) -> str:
    """A percentage and its 95 % CI."""
    percent, low, high = (f"{value[name]:.{figures}f}" for name in ("percent", "low", "high"))
    return f"{percent} ({low} to {high}) %"


def level(value: dict[str, float]) -> str:
    """What is returned at equal hardness, and the difference to the rank window unless it is the rank window's own."""
    own = value["difference"] == value["low"] == value["high"] == 0
    over = "" if own else f", {value['difference']:+.1f} ({value['low']:+.1f} to {value['high']:+.1f})"
    return f"{value['percent']:.1f} %{over}"


def verdict(value: dict[str, float]) -> str:
    """Whether a difference is above 0 by its 95 % CI."""
    if abs(value["mean"]) <= value["half"]:
        return "not shown"
    return "reproduced" if value["mean"] > 0 else "not: the opposite"


def posterior_bin(value: list[float]) -> str:
    """The mean posterior of a bin and the share that is false, if it has enough slots."""
    slots, posterior, false = value
    return f"{posterior / slots:.2f} -> {false / slots:.2f}" if slots >= 30 else "-"


FORMATS: dict[str, Callable[[Any], str]] = {
    "%": lambda percent: f"{percent:.1f} %",
    "percent": lambda value: f"{value['percent']:.1f} %",
    "level": level,
    "verdict": verdict,
    "bin": posterior_bin,
    "times": lambda ratio: f"{ratio:,.0f} x" if ratio > 10 else f"{ratio:.1f} x",
    "times, unless 1": lambda ratio: "" if ratio == 1 else f"{ratio:.1f} x",
    "share": lambda value: share(value, 1),
    "fine share": lambda value: share(value, 2),
    "difference": lambda value: "" if value["mean"] == value["half"] == 0 else spread(value, "+.4f"),
    "brackets": lambda percent: f" ({percent:.1f} %)" if percent else "",
    "MB": lambda size: f"{size / 1e6:,.0f} MB",
    "MB.1": lambda size: f"{size / 1e6:,.1f} MB",
    "words": lambda name: name.removesuffix("_seconds").replace("_", " "),
    "if there": lambda _: "",
}


def shown(value: Any, form: str) -> str:
    """One value as text."""
    if form in FORMATS:
        return FORMATS[form](value)
    if form.startswith("±"):
        return spread(value, form[1:])
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value:{form}}"


def markdown(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(headings), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# ---- tables of which there are several -------------------------------------------------------------------------------
PAGE = "docs/benchmarks.md"
DRAWS = {
    "Uniform, known positives excluded, K = 16": "recommendation/uniform",
    "Popularity^0.75, known positives excluded, K = 16": "recommendation/popularity",
    "Filtered corruption, FB15k-237, K = 256": "corruption/bloom",
    "4,096 non-edges of 2 M edges": "graph/non_edges",
}
RATIO_OF_DRAWS = " ?? ".join(f"{{per_second / ../{peer}/per_second:times}}" for peer in ("recbole", "pykeen", "pyg"))
PEER_OF_DRAWS = " ?? ".join(
    f"{peer} {{../{peer}/versions/version}}: {{../{peer}/per_second / 1e6:.3g}} M/s"
    for peer in ("recbole", "pykeen", "pyg")
)


SAMPLE_BANDS = ("all", "head", "middle", "tail")
BOARD_WORLDS = ("debian-dense", "debian-natural", "cranfield", "fashion-mnist", "codex-s")


def each(cell: str, names: Iterable[str]) -> str:
    """One cell for each name, which takes the place of `#`."""
    return " | ".join(cell.replace("#", name) for name in names)


def board(track: str, cell: str) -> Table:
    """The controls of a track of the board, a column for each world."""
    headings = f"control | {' | '.join(BOARD_WORLDS)}"
    return Table(
        "docs/board.md",
        f"board-{track}",
        "board",
        f"tracks/{track}/*",
        headings,
        f"{{@key}} | {each(cell, BOARD_WORLDS)}",
    )


def draws(threads: int) -> Table:
    """Every contender of the draws against peers."""
    rows = {title: f"threads_{threads}/{path}/*" for title, path in DRAWS.items()}
    cells = f"@title | {{@key}} | {{per_second / 1e6:.3g}} M/s ?? {{missing}} | {RATIO_OF_DRAWS} ?? - | {{leaks}} ??"
    headings = "job | contender | negatives per second | ratio to the peer | known positives returned"
    return Table(PAGE, f"draws, {threads} threads", "sampling", rows, headings, cells)


def growth(by: str) -> Table:
    """Time of a draw and memory by size."""
    ways = ("uniform", "uniform distinct", "weighted", "weighted distinct")
    headings = f"items | known pairs | anchors | build | bytes per pair | {each('#, ns', ways)}"
    cells = "{items:,} | {positives:,} | {anchors:,} | {build_seconds:.2f} s | {bytes_per_positive:.1f}"
    return Table(PAGE, f"growth {by}", "growth", f"{by}/*", headings, f"{cells} | {each('{#:.1f}', ways)}")


def gains(page: str, tasks: tuple[str, ...], arm: str = "auto") -> Table:
    """nDCG@10 of an arm beside everything that it must be compared with."""
    headings = f"data | false among the nearest | in-batch | random | nearest | 95 % rule | {each('`#`', [arm])}"
    quality = each("{#/ndcg/mean * 100:.1f}", ("in-batch only", "random", "nearest", "share 0.95", arm))
    over = each(f"{{{arm}/over # * 100:±+.1f}}", ("nearest", "share 0.95"))
    return Table(
        page,
        "gains",
        "judging",
        {task: f"tasks/{task}/arms" for task in tasks},
        f"{headings} | `{arm}` - nearest | `{arm}` - 95 % rule",
        f"@title | {{nearest/false_share/mean * 100:.1f}} % | {quality} | {over}",
    )


def judged(task: str, temperatures: tuple[str, ...], base: str = "nearest") -> Table:
    """All arms of a task at each temperature."""
    arm = f"/tasks/{task}, T = #/arms/@row"
    quality = each(f"{{{arm}/ndcg * 100:±.1f}} ?? | {{{arm}/over {base} * 100:±+.1f}} ??", temperatures)
    shares = "{false_share/mean * 100:.1f} % ?? | {estimate/mean * 100:.1f} % ?? | {hardness/mean:.3f} ??"
    return Table(
        PAGE,
        f"judging {task}",
        "judging",
        f"tasks/{task}, T = {temperatures[0]}/arms/*",
        f"arm | seeds | false | estimate | mean score | {each(f'nDCG, T = # | over {base}', temperatures)}",
        f"{{@key}} | {{seeds}} | {shares} | {quality}",
    )


def doses(temperature: str, *arms: str) -> Table:
    """All arms by the share of the nearest that is false."""
    names = ("0 %", "5 %", "10 %", "20 %", "40 %")
    arm = f"/tasks/dose #, T = {temperature}/arms/@row"
    quality = f"{{{arm}/ndcg * 100:±.1f}}"
    cell = f"{quality}{{{arm}/false_share/mean * 100:brackets}} ?? {quality} ??"
    rows = tuple(f"tasks/dose {path}" for path in arms)
    cells = f"{{@key}} | {each(cell, names)}"
    return Table(PAGE, f"doses, T = {temperature}", "judging", rows, f"arm | {each('dose #', names)}", cells)


def study_arms(page: str, name: str, measures: dict[str, str]) -> Table:
    """The arms of a study of `benchmarks.study`; measures are {name: format}, such as {"ndcg": ".3f"}."""
    cells = " | ".join(f"{{{measure}:±{form}}} ??" for measure, form in measures.items())
    return Table(page, name, name, "arms/*", f"arm | seeds | {' | '.join(measures)}", f"{{@key}} | {{seeds}} | {cells}")


def encoder(page: str, region: str, data: str) -> Table:
    """All arms of the study of a fine-tuned static encoder: what is false, and the quality by both measures."""
    cells = "{false_percent/mean:.1f} % ?? | {ndcg/mean:.1f} | {over_base:±+.1f} ?? | {labelled_mrr/mean:.1f}"
    return Table(
        page,
        region,
        f"encoder-static-{data}-300",
        "arms/*",
        "negatives | false | nDCG@10 | minus nearest | MRR@10, labels alone",
        f"{{@key}} | {cells}",
    )


def review(page: str, region: str, result: str, *more: str) -> Table:
    """All arms of a study of reviewers: what is false, whether the interval holds it, and what it costs.

    `more` are columns that some studies have: "worst kind" of world, "verified negatives" that are returned.
    """
    columns = {
        "negatives": "{@key}",
        "answers": "{answers/mean:,.0f}",
        "false": "{true_share/mean * 100:.1f} %",
        "above 7 %": "{too_many/mean * 100:.0f} %",
        "covered": "{covered/mean * 100:.0f} % ??",
        "worst kind": "{least/covered * 100:.0f} % ??",
        "states an interval": "{told/mean * 100:.0f} % ??",
        "half width": "{half_width/mean * 100:.1f} ??",
        "mean score lost": "{hardness_lost/mean * 100:.1f} %",
        "verified negatives": "{verified/mean:.0f}",
    }
    shown = {name: cell for name, cell in columns.items() if name in more or name not in _SOME_REVIEWS}
    return Table(page, region, result, "arms/*", " | ".join(shown), " | ".join(shown.values()))


_SOME_REVIEWS = ("worst kind", "verified negatives")


def study_claims(page: str, name: str, form: str) -> Table:
    """The claims of a study with their verdicts."""
    cells = f"{{text}} | {{arm}} - {{base}} | {{measure}} | {{difference:±+{form}}} | {{verdict}} | {{seeds}}"
    return Table(
        page, f"{name}, claims", name, "claims/*", "claim | arms | measure | difference | verdict | seeds", cells
    )


# ---- all tables: where, headings, cells ------------------------------------------------------------------------------
IN_BATCH_TASKS = ("debH, T = 0.02", "debH, T = 0.05", "deb, T = 0.02", "deb, T = 0.05")
REASON_TASKS = (
    *("deb, T = 0.02", "dose 5 %, T = 0.02", "dose 10 %, T = 0.02", "dose 20 %, T = 0.02"),
    *("debH, T = 0.02", "deb, T = 0.05", "debH, T = 0.05"),
)
REASON_ARMS = (
    *("nearest", "oracle", "oracle below share", "oracle, as hard as share"),
    *("auto", "auto below share", "auto, from rank 21"),
)
RULES = ("naive", "95 % of the positive", "calibrated", "calibrated, by anchor")
COVERED = (
    *("mine, nearest", "mine, returned", "mine, reviewed", "audit"),
    *("unlabelled_share", "false_negative_rate", "hidden_positives"),
)
BANDS = {
    "over random": "bands are better than random negatives",
    "over nearest": "bands are better than the nearest",
    "over share 0.95": "bands are better than the nearest below 0.95 of the positive",
}
ESTIMATED = {
    "hidden": "hidden positives flagged",
    "unlabelled": "unlabelled among candidates",
    "below_line": "false negatives below the threshold",
    "taken": "false negatives among the selected",
}
SAID = "{truth_percent:.3g} | {estimate_percent:.3g} | {high_percent:.3g}"
KEPT = "{100 - test_negatives/percent:.1f} ({100 - test_negatives/high:.1f} to {100 - test_negatives/low:.1f}) %"
FASTER = "{naysay_is_faster/processor:times, unless 1} | {naysay_is_faster/wall:times, unless 1}"


# fmt: off
TABLES = [
    board("mine", "{#/false_percent/mean:.1f} %, {#/score_at_5_percent/mean:.3f}, {#/ndcg:±.1f}"),
    board("detect", "{#/average_precision:±.1f}"),
    Table("docs/board.md", "board-sample", "board", "tracks/sample/*",
          f"control | {each('#, equal steps', SAMPLE_BANDS)} | all, equal seconds | times the cost of uniform",
          f"{{@key}} | {each('{#, equal steps:±.1f}', SAMPLE_BANDS)} | {{all, equal seconds:±.1f}} | "
          "{times the cost of uniform/mean:.1f} x"),
    draws(1),
    draws(2),
    Table("README.md", "speed", "sampling", {title: f"threads_1/{path}/naysay" for title, path in DRAWS.items()},
          "job | naysay | peer | ratio",
          f"@title | {{per_second / 1e6:.3g}} M/s | {PEER_OF_DRAWS} | {RATIO_OF_DRAWS}"),
    growth("by_items"),
    growth("by_positives"),
    Table(PAGE, "leaks", "no_leaks", "cases/*",
          "data and pool | draws | known positives among them",
          "{@key} | {draws:,} | {leaks}"),
    Table(PAGE, "hops", "hops", "pools/*",
          "pool | microseconds per row",
          "{@key} | {microseconds_per_row:.1f}"),
    *(Table(PAGE, f"hard steps, {n} threads", "dynamic", f"threads_{n}/cost/*",
            "sampler | step | scoring | draw | selection | loss | share",
            "{@key} | {step:.1f} | {scoring:.1f} | {draw:.1f} | {choice:.1f} | {loss:.1f} | {share * 100:.1f} %")
      for n in (1, 2)),
    *(Table(PAGE, f"against RecBole, {n} threads", "dynamic", f"threads_{n}/against_recbole/*",
            " | steps per second | ratio to RecBole",
            "RecBole {versions/version}, dynamic ?? {@key} | {steps_per_second:.1f} | "
            "{steps_per_second / ../recbole_train/steps_per_second:times, unless 1}")
      for n in (1, 2)),
    Table(PAGE, "costs", "costs", "methods/*",
          "method | data | batch | ms | ratio to Dynamic | class",
          "{@key} | {data} | {batch:,} ?? {/batch:,} | {seconds * 1e3:.1f} | {ratio:.2f} x | {class}"),
    Table(PAGE, "goals of judging", "judging", "tasks/*/arms/auto",
          "task | seeds | false, nearest | best rule | auto - best | - share 0.95 | - nearest | - oracle | "
          "best at the last epoch",
          "{../../@key} | {seeds} | {../nearest/false_share/mean * 100:.1f} % ?? | "
          "{../../auto_over_best:if there}{../../best} ?? auto | {../../auto_over_best * 100:±+.1f} ?? | "
          "{over share 0.95 * 100:±+.1f} ?? | {over nearest * 100:±+.1f} ?? | {over oracle * 100:±+.1f} ?? | "
          "{at_last_epoch} of {seeds}"),
    Table(PAGE, "reasons", "judging", dict.fromkeys(REASON_ARMS, ""),
          f"arm | {each('#', REASON_TASKS)}",
          f"@title | {each('{tasks/#/arms/@title/over share 0.95 * 100:±+.1f} ??', REASON_TASKS)}"),
    judged("debH", ("0.02", "0.05", "0.1")),
    judged("deb", ("0.02", "0.05", "0.1")),
    judged("scifact", ("0.02", "0.05")),
    judged("tokens", ("0.02", "0.05")),
    judged("ml-100k", ("1",), "dynamic"),
    judged("yelp2018", ("1",), "dynamic"),
    doses("0.02", "5 %, T = 0.02/arms/*", "20 %, T = 0.02/arms/auto, no fallback"),
    doses("0.05", "20 %, T = 0.05/arms/*"),
    encoder("README.md", "gains", "rich"),
    encoder("docs/evidence.md", "encoder, rich", "rich"),
    study_claims("docs/evidence.md", "encoder-static-rich-300", ".2f"),
    encoder("docs/evidence.md", "encoder, natural", "natural"),
    study_claims("docs/evidence.md", "encoder-static-natural-300", ".2f"),
    review("docs/evidence.md", "reviewers, CoDEx-S", "review-codex", "verified negatives"),
    study_claims("docs/evidence.md", "review-codex", ".3f"),
    gains("docs/choosing.md",
          (*IN_BATCH_TASKS, "dose 20 %, T = 0.02", "dose 5 %, T = 0.02", "tokens, T = 0.05", "scifact, T = 0.05")),
    gains("docs/thresholds.md", IN_BATCH_TASKS, "bands"),
    Table("docs/evidence.md", "claims about bands", "judging", f"tasks/*/arms/bands/{'|'.join(BANDS)}",
          "claim | task | difference in nDCG@10, points | verdict | seeds",
          "{@key} | {../../../@key} | {. * 100:±+.1f} | {.:verdict} | {../seeds}",
          BANDS),
    *(Table(PAGE, f"{name} rules", "distrust", f"{name}/rules/*",
            "rule | returned | missed | false of selected | mean score | mean rank | short",
            "{@key} | {returned:share} | {let_through:share} | {false_of_taken_percent:.2f} % | {mean_score:.3f} | "
            "{mean_rank:.0f} | {short_percent:.0f} %")
      for name in ("scifact", "cranfield")),
    *(Table(PAGE, f"{name} bounds", "distrust", f"{name}/bounds/*",
            "kept | known | estimate | upper bound | seeds above",
            "{@key} | {known_percent:.3g} | {estimate_percent:.3g} | {high_percent:.3g} | {seeds_above}")
      for name in ("scifact", "cranfield")),
    *(Table(PAGE, f"{name} at equal hardness", "distrust", f"{path}/rules/*",
            f"rule | {each('as hard as skipping #', ('5', '20', '50'))}",
            f"{{@key}} | {each('{./#:level}', '012')}",
            {"null": "not reached"})
      for name, path in (("scifact", "scifact/equal_hardness/score"), ("cranfield", "cranfield/equal_hardness/score"),
                         ("all of scifact", "scifact/equal_hardness/score, all anchors"))),
    *(Table(PAGE, f"{name} promises", "distrust", f"{name}/promises/*",
            "fitted to anchors with | scores | promised | missed | range",
            "{fitted_to}, {positives:,} of them | {scores} | {promised_percent:%} | {let_through:share} | "
            "{range_percent/0:.1f} to {range_percent/1:.1f} %",
            {"single": "one positive", "half": "several"})
      for name in ("scifact", "cranfield")),
    Table(PAGE, "packages by tags", "distrust", "debian/detectors/source/*",
          "detector | tags | five tags or more",
          "{@key} | " + each("{/debian/detectors/#/@row/mtpr:percent} / {/debian/detectors/#/@row/mtnr:percent} / "
                             "{/debian/detectors/#/@row/false_of_taken:percent}", ("tags", "five tags or more"))),
    Table(PAGE, "packages", "distrust", "debian/detectors/source/*",
          "detector | MTPR | MTNR | precision | AUC | false of selected | mean score | filled",
          "{@key} | {mtpr:share} | {mtnr:share} | {precision:share} | {auc:.2f} | {false_of_taken:fine share} | "
          "{mean_score:.3f} | {filled_percent:.0f} %"),
    *(Table(PAGE, f"triples by {name}", "distrust", f"codex/flagged/{name}/*",
            "detector | promised to flag | flagged, mean over anchors | true triples flagged | false triples kept",
            "{@key} | {100 - promised_percent:%} | {test_by_anchor_percent:.1f} % | {test:share} | " + KEPT)
      for name in ("ComplEx", "attributes")),
    Table(PAGE, "triples by both", "distrust", "codex/flagged/both/*",
          "detector | flagged, mean over anchors | true triples flagged | false triples kept",
          "{@key} | {test_by_anchor_percent:.1f} % | {test:share} | " + KEPT),
    Table(PAGE, "planted rules", "false_negatives", "rules/*",
          f"encoder | {each('#', RULES)}",
          "{encoder} | " + each("{rules/#/let_through_percent:.1f} % / {rules/#/false_of_taken_percent:.1f} % / "
                                "{rules/#/mean_score_taken:.3f}", RULES)),
    Table(PAGE, "few positives", "false_negatives", "rules/*/few_positives",
          "encoder | positives | promised | miss rate, ± standard error | 80 % of the thresholds",
          "{../encoder} | {positives} | {promised_percent:.1f} % | "
          "{let_through_percent:.2f} ± {let_through_error:.2f} % | "
          "{let_through_10_90/0:.1f} to {let_through_10_90/1:.1f} %"),
    Table(PAGE, "estimates", "false_negatives", f"estimates/*/{'|'.join(ESTIMATED)}",
          "encoder | of what | CI covers | truth, % | estimate, % | upper bound, %",
          "{../encoder} | {@key} | {covered_percent:.0f} % | " + SAID,
          ESTIMATED),
    Table(PAGE, "mixtures", "false_negatives", "mixtures/*",
          "anchors | candidates | false negatives each | deviations apart | deviation by anchor | positives | "
          "CI covers | truth, % | estimate, % | upper bound, %",
          "{anchors:g} | {candidates:g} | {false_negatives_each:g} | {deviations_apart:g} | "
          "{deviation_by_anchor:g} | {positives:g} | {covered_percent:.1f} % | " + SAID),
    Table(PAGE, "coverage", "coverage", "cells/*",
          f"world | worlds | {each('#: truth -> estimate', ('nearest', 'returned'))} | {each('#', COVERED)}",
          "{@key} | {worlds} | " + each("{truth/# * 100:.1f} -> {estimate/# * 100:.1f} ({low/# * 100:.1f} to "
                                        "{high/# * 100:.1f}) ?? -", COVERED[:2])
          + " | " + each("{held/#} / {told/#} ?? -", COVERED)),
    Table(PAGE, "calibration", "coverage", "cells/*/bins",
          "world | 0 to 0.02 | 0.02 to 0.05 | 0.05 to 0.1 | 0.1 to 0.2 | 0.2 to 0.4 | 0.4 to 0.7 | 0.7 to 0.9 | "
          "0.9 to 1",
          f"{{../@key}} | {each('{./#:bin}', '01234567')}"),
    Table(PAGE, "thresholds", "thresholds", "growth/*/grid|sketch",
          "scores | by | time | scores per second | memory",
          "{../scores:,} | {@key} | {seconds:.2f} s | {per_second / 1e6:.0f} M/s | {peak_extra_bytes:MB.1}"),
    Table(PAGE, "errors of the sketch", "thresholds", "errors/streams/*",
          "stream | one sketch | merged | stated",
          "{@key} | {whole/rank_error:.1e} | {merged/rank_error:.1e} | {whole/stated_rank_error:.1e}"),
    Table(PAGE, "incremental", "incremental", ("paper", "by_samples/*", "by_clusters/*"),
          "samples | clusters | update | ratio to k-means | memory | samples x clusters",
          "{samples:,} | {clusters} | {update_seconds:.1f} s | {times_of_kmeans:.2f} | "
          "{update_peak_extra_bytes:MB.1} | {samples_by_clusters_bytes:MB.1}"),
    Table(PAGE, "claims about difficulty", "difficulty", "seen/*",
          "claim | confirmed",
          "{@key} | {.}"),
    Table(PAGE, "cost of a study", "difficulty", "speed/rows/*",
          "study of | processor seconds | seconds | MB besides the vectors",
          "{@key} | {processor_seconds:.1f} | {seconds:.1f} | {peak_megabytes_beside_the_vectors:.0f}"),
    Table(PAGE, "losses", "losses", "both_fit/*",
          "form | batch | in blocks | plain | ratio | memory in blocks | memory, plain",
          "{form} | {rows:,} | {blocks/seconds:.3f} s | {plain/seconds:.3f} s | {times_of_plain:.2f} | "
          "{blocks/peak_extra_bytes:MB} | {plain/peak_extra_bytes:MB}"),
    Table(PAGE, "largest losses", "losses", "largest/*",
          "form | batch | in blocks | memory in blocks",
          "{form} | {rows:,} | {seconds:.2f} s | {peak_extra_bytes:MB}"),
    Table(PAGE, "memory of search", "search", "memory/*",
          "vectors | queries | memory",
          "{corpus:,} | {queries:,} | {growth_mb:,.0f} MB"),
    Table(PAGE, "mining by hand", "mining", "by_hand/*/contenders/*",
          "queries | threads | method | time | memory | time / ours | memory / ours",
          "{../../size:,} | {../../threads} | {@key} | {seconds:.2f} s | {peak_extra_bytes:MB} | "
          "{../../times_of_ours/@row/seconds:.1f} x ?? | {../../times_of_ours/@row/memory:.1f} x ??"),
    Table(PAGE, "first calls", "mining", "first/*",
          "loaded before | judge | first | second | above",
          "{loaded} | {judge} | {cpu_seconds/0:.2f} s | {cpu_seconds/1:.2f} s | {above:.2f} s"),
    Table(PAGE, "growth of mining", "mining", "growth/*",
          "queries | documents | file | time | memory | slots filled",
          "{queries:,} | {documents:,} | {file_bytes:MB} | {seconds:.1f} s | {peak_extra_bytes:MB} | "
          "{filled * 100:.0f} %"),
    Table(PAGE, "index", "mining", "index/*/rungs/*",
          "vectors | setting | recall | time | of exact",
          "{../../vectors} | {setting} | {recall:.3f} ({low:.3f} to {high:.3f}) | {seconds:.2f} s | {of_exact:.2f}"),
    Table(PAGE, "jobs", "jobs", "rows/1|2|3",
          "documents | anchors | memory above the smallest job",
          "{documents:,} | {queries:,} | {above_the_least_bytes:MB}"),
    Table(PAGE, "retrieval", "retrieval", "arms/*",
          "negatives | nDCG@10 | against share 0.95 (sentence-transformers) | mean score | slots filled | "
          "hidden returned | hidden returned, test part",
          "{@key} | {ndcg:±.4f} | {ndcg_difference:difference} | {mean_score/mean:.2f} ?? | "
          "{filled/mean * 100:.0f} % | {hidden_returned/mean * 100:.1f} % | {test_hidden_returned/mean * 100:.1f} %"),
    Table(PAGE, "start", "startup", "*_seconds",
          "what | seconds",
          "{@key:words} | {.:.2f}"),
    Table("docs/integrations.md", "speed with PyKEEN", "integrations", "pykeen/*",
          "choice | batch | K | naysay | PyKEEN, not filtered | PyKEEN, Bloom filter | PyKEEN, set of triples",
          "{choice} | {batch:,} | {k} | {nanoseconds/naysay:,.0f} | {nanoseconds/PyKEEN, not filtered:,.0f} | "
          "{nanoseconds/PyKEEN, Bloom filter:,.0f} | {nanoseconds/PyKEEN, set of triples:,.0f}"),
    Table("docs/integrations.md", "speed with PyG", "integrations", "pyg/*",
          "function | naysay | PyG",
          "`{@key}` | {naysay:,.0f} | {PyG:,.0f}"),
    Table("docs/scale.md", "ray-memory", "ray", "memory/*",
          "documents | peak of the driver, MB | above the smallest, MB",
          "{documents:,} | {peak_own_bytes / 1e6:,.0f} | {peak_own_bytes - ../0/peak_own_bytes / 1e6:+,.0f}"),
]
# fmt: on


# ---- the page of methods ---------------------------------------------------------------------------------------------


def methods() -> dict[str, str]:
    """{name of a region of docs/methods.md: its content}, from the catalogue."""
    samplers = [one for question in ("where", "which") for one in catalog.methods(question)]
    rows = [
        [*_named(one), one.question, ", ".join(one.data), ", ".join(one.needs) or "none", one.step, *_made(one)]
        for one in samplers
    ]
    headings = ["name", "other names", "what", "parts", "leaves out", "paper"]
    others = {
        question: markdown(headings, [[*_named(one), *_made(one)] for one in catalog.methods(question)])
        for question in QUESTIONS
        if question not in ("where", "which")
    }
    filtered = ["question", "data", "needs", "step"]
    return {"filter": _filter(), "methods": markdown([*headings[:3], *filtered, *headings[3:]], rows), **others}


def _named(one: catalog.Method) -> list[str]:
    """Name, other names, and what it does."""
    formula = f"`{one.formula.replace('`', '')}`" if one.formula else ""
    script = f"Script: `{one.example}`." if one.example else ""
    said = " ".join(filter(None, (one.note or one.summary, formula, one.cost, script)))
    return [_escaped(part) for part in (f"**{one.name}**", ", ".join(one.also), said)]


def _made(one: catalog.Method) -> list[str]:
    """Parts, what they leave out, and the paper."""
    codes = [f"`{ast.unparse(ast.parse(code, mode='eval'))}`" for code in (one.parts, one.loss, one.batch_loss) if code]
    k = f"k = `{one.k}`" if one.question in ("where", "which", "how_many") and one.parts and not one.over else ""
    see = f"see {one.see}" if one.see else ""
    return [_escaped(part) for part in (", ".join(filter(None, (*codes, k, see))), one.leaves_out, one.cited)]


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|")


def _filter() -> str:
    """Three lists of choices; the script below them on the page shows them, and hides rows."""
    some = (",".join(given) for size in range(1, len(NEEDS)) for given in combinations(NEEDS, size))
    needs = ("none", *some)
    lists = (("data", "any data", DATA), ("needs", "may need anything", needs), ("cost", "any cost", STEPS[:-1]))
    made = [
        f'<select data-filter="{name}"><option value="">{any_of_them}</option>'
        + "".join(f"<option>{escape(value)}</option>" for value in values)
        + "</select>"
        for name, any_of_them, values in lists
    ]
    return "\n".join(['<form id="filter" hidden>', *made, "<output></output>", "</form>"])


# ---- writing ---------------------------------------------------------------------------------------------------------


def regions() -> dict[str, dict[str, str]]:
    """{page: {region: its content}}."""
    found = {"docs/methods.md": methods()}
    for table in TABLES:
        found.setdefault(table.page, {})[table.region] = table.text()
    return found


def written(text: str, contents: dict[str, str]) -> str:
    """A page with its regions filled; ValueError if it lacks one."""
    for name, content in contents.items():
        start, end = f"<!-- {name}: made by benchmarks/tables.py -->", f"<!-- end of {name} -->"
        before, rest = text.split(start)
        text = f"{before}{start}\n{content}\n{end}{rest.split(end)[1]}"
    return text


def main() -> None:
    """Rewrite the regions, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    check = parser.parse_args().check
    pages = {ROOT / page: contents for page, contents in regions().items()}
    made = {path: written(path.read_text(), contents) for path, contents in pages.items()}
    if check:
        stale = [path.name for path, text in made.items() if path.read_text() != text]
        sys.exit(f"out of date: {', '.join(stale)}; run python -m benchmarks.tables" if stale else 0)
    for path, text in made.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
