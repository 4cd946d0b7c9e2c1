"""Write the tables between marks on pages: from results/*.json, from the catalogue, and from the commands.

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

import typer

from benchmarks.harness import RESULTS, ROOT
from naysay import catalog
from naysay.catalog._filter import DATA, NEEDS, STEPS
from naysay.catalog._table import QUESTIONS
from naysay.cli import app


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


def verdict(value: dict[str, float]) -> str:
    """Whether a difference is above 0 by its 95 % CI."""
    if abs(value["mean"]) <= value["half"]:
        return "not shown"
    return "reproduced" if value["mean"] > 0 else "not: the opposite"


FORMATS: dict[str, Callable[[Any], str]] = {
    "verdict": verdict,
    "times": lambda ratio: f"{ratio:,.0f} x" if ratio > 10 else f"{ratio:.1f} x",
    "times, unless 1": lambda ratio: "" if ratio == 1 else f"{ratio:.1f} x",
    "difference": lambda value: "" if value["mean"] == value["half"] == 0 else spread(value, "+.4f"),
    "MB": lambda size: f"{size / 1e6:,.0f} MB",
    "words": lambda name: name.removesuffix("_seconds").replace("_", " "),
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
CHOOSE, FALSE, RESULTS_PAGE, SPEED = (
    f"docs/{name}.md" for name in ("choose-negatives", "false-negatives", "results", "speed")
)
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


def draws() -> Table:
    """Every contender of the draws against peers, on one thread."""
    rows = {title: f"threads_1/{path}/*" for title, path in DRAWS.items()}
    cells = f"@title | {{@key}} | {{per_second / 1e6:.3g}} M/s ?? {{missing}} | {RATIO_OF_DRAWS} ?? - | {{leaks}} ??"
    headings = "job | contender | negatives per second | ratio to the peer | known positives returned"
    return Table(SPEED, "draws, 1 threads", "sampling", rows, headings, cells)


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


def quantity(name: str) -> Table:
    """All arms of a study of the number of negatives, at the last step."""
    cells = "{k/mean:.1f} | {last:±.4f} | {last_ndcg:±.4f}"
    return Table(RESULTS_PAGE, name, name, "arms/*", "arm | mean peak k | AUC | nDCG@10", f"{{@key}} | {cells}")


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
COVERED = (
    *("mine, nearest", "mine, returned", "mine, reviewed", "audit"),
    *("unlabelled_share", "false_negative_rate", "hidden_positives"),
)
WAYS = ("uniform", "uniform distinct", "weighted", "weighted distinct")
BANDS = {
    "over random": "bands are better than random negatives",
    "over nearest": "bands are better than the nearest",
    "over share 0.95": "bands are better than the nearest below 0.95 of the positive",
}


# fmt: off
TABLES = [
    board("mine", "{#/false_percent/mean:.1f} %, {#/score_at_5_percent/mean:.3f}, {#/ndcg:±.1f}"),
    board("detect", "{#/average_precision:±.1f}"),
    Table("docs/board.md", "board-sample", "board", "tracks/sample/*",
          f"control | {each('#, equal steps', SAMPLE_BANDS)} | all, equal seconds | times the cost of uniform",
          f"{{@key}} | {each('{#, equal steps:±.1f}', SAMPLE_BANDS)} | {{all, equal seconds:±.1f}} | "
          "{times the cost of uniform/mean:.1f} x"),
    draws(),
    Table("README.md", "speed", "sampling", {title: f"threads_1/{path}/naysay" for title, path in DRAWS.items()},
          "job | naysay | peer | ratio",
          f"@title | {{per_second / 1e6:.3g}} M/s | {PEER_OF_DRAWS} | {RATIO_OF_DRAWS}"),
    Table(SPEED, "leaks", "no_leaks", "cases/*",
          "data and pool | draws | known positives among them",
          "{@key} | {draws:,} | {leaks}"),
    Table(SPEED, "growth by_positives", "growth", "by_positives/*",
          f"items | known pairs | anchors | build | bytes per pair | {each('#, ns', WAYS)}",
          "{items:,} | {positives:,} | {anchors:,} | {build_seconds:.2f} s | {bytes_per_positive:.1f} | "
          + each("{#:.1f}", WAYS)),
    Table(SPEED, "against RecBole, 1 threads", "dynamic", "threads_1/against_recbole/*",
          " | steps per second | ratio to RecBole",
          "RecBole {versions/version}, dynamic ?? {@key} | {steps_per_second:.1f} | "
          "{steps_per_second / ../recbole_train/steps_per_second:times, unless 1}"),
    Table(RESULTS_PAGE, "reasons", "judging", dict.fromkeys(REASON_ARMS, ""),
          f"arm | {each('#', REASON_TASKS)}",
          f"@title | {each('{tasks/#/arms/@title/over share 0.95 * 100:±+.1f} ??', REASON_TASKS)}"),
    encoder("README.md", "gains", "rich"),
    encoder(RESULTS_PAGE, "encoder, rich", "rich"),
    study_claims(RESULTS_PAGE, "encoder-static-rich-300", ".2f"),
    encoder(RESULTS_PAGE, "encoder, natural", "natural"),
    study_claims(RESULTS_PAGE, "encoder-static-natural-300", ".2f"),
    Table(RESULTS_PAGE, "reference runs", "reference-codex-rotate", "arms/*",
          "run | MRR | hits@10 | hits@1 | validation MRR | best step",
          "RotatE on CoDEx-S | {mrr/mean:.3f} | {hits@10/mean:.3f} | {hits@1/mean:.3f} | {validation/mean:.3f} | "
          "{best_step/mean:,.0f}"),
    quantity("quantity-disliked"),
    study_claims(RESULTS_PAGE, "quantity-disliked", ".4f"),
    quantity("quantity-disliked-schedule"),
    study_claims(RESULTS_PAGE, "quantity-disliked-schedule", ".4f"),
    review(RESULTS_PAGE, "reviewers, CoDEx-S", "review-codex", "verified negatives"),
    study_claims(RESULTS_PAGE, "review-codex", ".3f"),
    review(RESULTS_PAGE, "reviewers, planted worlds", "review-planted", "worst kind"),
    study_claims(RESULTS_PAGE, "review-planted", ".3f"),
    review(RESULTS_PAGE, "reviewers, natural groups", "review-debian-natural"),
    review(RESULTS_PAGE, "reviewers, rich groups", "review-debian-rich"),
    gains(CHOOSE,
          (*IN_BATCH_TASKS, "dose 20 %, T = 0.02", "dose 5 %, T = 0.02", "tokens, T = 0.05", "scifact, T = 0.05")),
    gains(FALSE, IN_BATCH_TASKS, "bands"),
    Table(RESULTS_PAGE, "claims about bands", "judging", f"tasks/*/arms/bands/{'|'.join(BANDS)}",
          "claim | task | difference in nDCG@10, points | verdict | seeds",
          "{@key} | {../../../@key} | {. * 100:±+.1f} | {.:verdict} | {../seeds}",
          BANDS),
    Table(SPEED, "losses", "losses", "both_fit/*",
          "form | batch | in blocks | plain | ratio | memory in blocks | memory, plain",
          "{form} | {rows:,} | {blocks/seconds:.3f} s | {plain/seconds:.3f} s | {times_of_plain:.2f} | "
          "{blocks/peak_extra_bytes:MB} | {plain/peak_extra_bytes:MB}"),
    Table(SPEED, "mining by hand", "mining", "by_hand/*/contenders/*",
          "queries | threads | method | time | memory | time / ours | memory / ours",
          "{../../size:,} | {../../threads} | {@key} | {seconds:.2f} s | {peak_extra_bytes:MB} | "
          "{../../times_of_ours/@row/seconds:.1f} x ?? | {../../times_of_ours/@row/memory:.1f} x ??"),
    Table(SPEED, "growth of mining", "mining", "growth/*",
          "queries | documents | file | time | memory | slots filled",
          "{queries:,} | {documents:,} | {file_bytes:MB} | {seconds:.1f} s | {peak_extra_bytes:MB} | "
          "{filled * 100:.0f} %"),
    Table(SPEED, "index", "mining", "index/*/rungs/*",
          "vectors | setting | recall | time | of exact",
          "{../../vectors} | {setting} | {recall:.3f} ({low:.3f} to {high:.3f}) | {seconds:.2f} s | {of_exact:.2f}"),
    Table(SPEED, "jobs", "jobs", "rows/1|2|3",
          "documents | anchors | memory above the smallest job",
          "{documents:,} | {queries:,} | {above_the_least_bytes:MB}"),
    Table(RESULTS_PAGE, "retrieval", "retrieval", "arms/*",
          "negatives | nDCG@10 | against share 0.95 (sentence-transformers) | mean score | slots filled | "
          "hidden returned | hidden returned, test part",
          "{@key} | {ndcg:±.4f} | {ndcg_difference:difference} | {mean_score/mean:.2f} ?? | "
          "{filled/mean * 100:.0f} % | {hidden_returned/mean * 100:.1f} % | {test_hidden_returned/mean * 100:.1f} %"),
    Table(SPEED, "start", "startup", "*_seconds",
          "what | seconds",
          "{@key:words} | {.:.2f}"),
    Table(SPEED, "speed with PyKEEN", "integrations", "pykeen/*",
          "choice | batch | K | naysay | PyKEEN, not filtered | PyKEEN, Bloom filter | PyKEEN, set of triples",
          "{choice} | {batch:,} | {k} | {nanoseconds/naysay:,.0f} | {nanoseconds/PyKEEN, not filtered:,.0f} | "
          "{nanoseconds/PyKEEN, Bloom filter:,.0f} | {nanoseconds/PyKEEN, set of triples:,.0f}"),
    Table(SPEED, "speed with PyG", "integrations", "pyg/*",
          "function | naysay | PyG",
          "`{@key}` | {naysay:,.0f} | {PyG:,.0f}"),
    Table(SPEED, "ray-memory", "ray", "memory/*",
          "documents | peak of the driver, MB | above the smallest, MB",
          "{documents:,} | {peak_own_bytes / 1e6:,.0f} | {peak_own_bytes - ../0/peak_own_bytes / 1e6:+,.0f}"),
]
# fmt: on


# ---- the page of methods ---------------------------------------------------------------------------------------------


def methods() -> dict[str, str]:
    """{name of a region of docs/methods.md: its content}, from the catalogue."""
    headings = ["name", "parts", "paper", "leaves out", "other names"]
    filtered = ["data", "needs", "step"]
    samplers = [one for question in ("where", "which") for one in catalog.methods(question)]
    rows = [[_named(one), *_filters(one), *_made(one)] for one in samplers]
    others = {
        question: markdown(headings, [[_named(one), *_made(one)] for one in catalog.methods(question)])
        for question in QUESTIONS
        if question not in ("where", "which")
    }
    return {"filter": _filter(), "methods": markdown([headings[0], *filtered, *headings[1:]], rows), **others}


def _named(one: catalog.Method) -> str:
    return f"**{_escaped(one.name)}**"


def _filters(one: catalog.Method) -> list[str]:
    """What the three lists of choices look at."""
    return [", ".join(one.data), ", ".join(one.needs) or "none", one.step]


def _made(one: catalog.Method) -> list[str]:
    """Parts, the paper, what the parts leave out of it, and other names."""
    codes = [f"`{ast.unparse(ast.parse(code, mode='eval'))}`" for code in (one.parts, one.loss, one.batch_loss) if code]
    k = f"k = `{one.k}`" if one.question in ("where", "which", "how_many") and one.parts and not one.over else ""
    see = f"see {one.see}" if one.see else ""
    parts = ", ".join(filter(None, (*codes, k, see)))
    return [_escaped(cell) for cell in (parts, one.cited, one.leaves_out, ", ".join(one.also))]


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


# ---- the page of the command line ------------------------------------------------------------------------------------


def commands() -> str:
    """A section for each command of `naysay`, with all arguments and options."""
    group: Any = typer.main.get_command(app)
    context = typer.Context(group)
    sections = []
    for name in sorted(group.commands):
        _, command, _ = group.resolve_command(context, [name])
        given = [one for one in command.params if one.param_type_name == "argument"]
        options = [one for one in command.params if one.param_type_name == "option"]
        usage = " ".join([name, *(one.name.upper() if one.required else f"[{one.name.upper()}]" for one in given)])
        rows = [[f"`{one.name.upper()}`", "", _escaped(one.help)] for one in given]
        rows += [[_flags(one), _default(one), _escaped(one.help or "")] for one in options]
        table = markdown(["argument or option", "default", "meaning"], rows)
        sections.append(f"## naysay {name}\n\n    naysay {usage} [OPTIONS]\n\n{command.help}\n\n{table}")
    return "\n\n".join(sections)


def _flags(option: Any) -> str:
    return ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))


def _default(option: Any) -> str:
    if option.required:
        return "required"
    return "" if option.default in (None, "", False) else f"`{option.default}`"


# ---- writing ---------------------------------------------------------------------------------------------------------


def regions() -> dict[str, dict[str, str]]:
    """{page: {region: its content}}."""
    found = {"docs/methods.md": methods(), "docs/cli.md": {"commands": commands()}}
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
