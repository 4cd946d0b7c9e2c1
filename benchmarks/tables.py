"""Write docs/benchmarks.md and the README's speed table from results/*.json, so that no figure is typed by hand.

python benchmarks/tables.py          # rewrite both
python benchmarks/tables.py --check  # exit 1 if either is out of date
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import difficulty_tables
import distrust_tables
import loss_tables
import mining_tables
import sampler_tables
import study_tables

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parent.parent
PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
SPEED = ("<!-- speed: made by benchmarks/tables.py -->", "<!-- end of speed -->")
DEMO = ("<!-- demo: made by benchmarks/tables.py -->", "<!-- end of demo -->")
PICTURES = ("growth-items.svg", "growth-positives.svg")


PREFACE = """\
# Benchmarks

Every figure here is read from `benchmarks/results/*.json`. The scripts alternate ours and the peer's, each in an
environment of its own, in one run, and keep the best of several. Figures move with the machine; ratios are what to
look at. Machine: {cpu}, {cores} cores, Python {python}, NumPy {numpy}, numba {numba}.
"""
DRAWS = """\
Recommendation: 50,000 users x 40,000 items, 1.9 M positives, batches of 4,096; ours includes exact `log_q`. The plain
loop is a rank shift in numba with neither `log_q` nor checks, always one thread. PyKEEN masks what its filter finds
and returns fewer; ours redraws. RecBole never draws an item that nobody has.
"""
GROWTH = """\
Memory is 5 bytes a known pair and 8 an anchor. A draw does not depend on the number of items as such; it slows where
the tables that it touches at random no longer fit in the processor's cache.
"""


def result(name: str) -> dict[str, Any]:
    """One result file."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def rate(row: dict[str, Any]) -> str:
    """Millions of negatives a second, three figures."""
    if "missing" in row:
        return row["missing"]
    return f"{row['per_second'] / 1e6:.3g} M/s"


def ratio(row: dict[str, Any], other: dict[str, Any]) -> str:
    """How many times as fast."""
    if "missing" in row or "missing" in other:
        return "-"
    return (
        f"{row['per_second'] / other['per_second']:,.0f} x"
        if row["per_second"] > 10 * other["per_second"]
        else (f"{row['per_second'] / other['per_second']:.1f} x")
    )


CASES = (
    ("recommendation", "uniform", "recbole", "Uniform, known positives excluded, K = 16"),
    ("recommendation", "popularity", "recbole", "Popularity^0.75, known positives excluded, K = 16"),
    ("corruption", "bloom", "pykeen", "Filtered corruption, FB15k-237, K = 256"),
    ("graph", "non_edges", "pyg", "4,096 non-edges of 2 M edges"),
)


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def speed(sampling: dict[str, Any], threads: int) -> str:
    """A line for each case: ours, the peer's, the ratio."""
    rows = []
    for folder, case, peer, title in CASES:
        found = sampling[f"threads_{threads}"][folder][case]
        version = found[peer].get("versions", {}).get("version", "")
        theirs = f"{peer} {version}: {rate(found[peer])}"
        rows.append((title, rate(found["naysay"]), theirs, ratio(found["naysay"], found[peer])))
    return table(("job", "naysay", "peer", "ratio"), rows)


def contenders(sampling: dict[str, Any], threads: int) -> str:
    """Every contender of every case."""
    rows = []
    for folder, case, peer, title in CASES:
        found = sampling[f"threads_{threads}"][folder][case]
        for name, row in found.items():
            rows.append((title, name, rate(row), ratio(row, found[peer]), str(row.get("leaks", ""))))
    return table(("job", "contender", "negatives a second", "against the peer", "known returned"), rows)


def growth_table(sizes: list[dict[str, Any]]) -> str:
    """Nanoseconds a draw, bytes and build time by size."""
    ways = ("uniform", "uniform distinct", "weighted", "weighted distinct")
    rows = [
        (
            f"{row['items']:,}",
            f"{row['positives']:,}",
            f"{row['anchors']:,}",
            f"{row['build_seconds']:.2f} s",
            f"{row['bytes_per_positive']:.1f}",
            *(f"{row[way]:.1f}" for way in ways),
        )
        for row in sizes
    ]
    return table(("items", "known pairs", "anchors", "build", "bytes a pair", *(f"{way}, ns" for way in ways)), rows)


def page() -> str:
    """The whole benchmarks page."""
    sampling, growth, leaks, startup, hops = map(result, ("sampling", "growth", "no_leaks", "startup", "hops"))
    build = sampling["threads_1"]["graph"]["build_seconds"]
    returned = [(name, f"{row['draws']:,}", str(row["leaks"])) for name, row in leaks["cases"].items()]
    rows = [(name, f"{row['microseconds_per_row']:.1f}") for name, row in hops["pools"].items()]
    waits = [(name, seconds) for name, seconds in startup.items() if name.endswith("_seconds")]
    parts = [
        PREFACE.format(**sampling["environment"]),
        "## Draws against peers",
        DRAWS,
        "### 1 thread, ours and theirs",
        contenders(sampling, 1),
        "### 2 threads, ours and theirs",
        contenders(sampling, 2),
        f"The index behind the non-edges is built once, in {build:.2f} s.",
        "## Growth",
        GROWTH,
        growth_table(growth["by_items"]),
        growth_table(growth["by_positives"]),
        "\n".join(f"![nanoseconds a draw]({name})" for name in PICTURES),
        "## Known positives returned",
        table(("data and pool", "draws", "known positives among them"), returned),
        "## Near the anchor in a graph",
        "ca-AstroPh, 1,024 anchors, k = 16.",
        table(("pool", "microseconds a row"), rows),
        *sampler_tables.dynamic(result("dynamic"), table),
        *study_tables.recommendation(result("recommendation"), table),
        *distrust_tables.sections(result, table),
        *difficulty_tables.difficulty(result("difficulty"), table),
        *loss_tables.losses(result("losses"), table),
        *loss_tables.estimate(result("estimate"), table),
        *loss_tables.online(result("online"), table),
        *mining_tables.search(result("search"), table),
        *mining_tables.mining(result("mining"), table),
        *mining_tables.jobs(result("jobs"), table),
        *mining_tables.retrieval(result("retrieval"), table),
        "## Starting up",
        table(("what", "seconds"), [(name[:-8].replace("_", " "), f"{seconds:.2f}") for name, seconds in waits]),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def readme() -> str:
    """The README with its two parts made anew."""
    printed = "\n".join(result("demonstration")["printed"])
    text = between(README.read_text(), DEMO, f"```text\n{printed}\n```")
    return between(text, SPEED, speed(result("sampling"), 1))


def between(text: str, marks: tuple[str, str], content: str) -> str:
    """`text` with `content` between two marks."""
    before, rest = text.split(marks[0])
    return f"{before}{marks[0]}\n{content}\n{marks[1]}{rest.split(marks[1])[1]}"


def main() -> None:
    """Rewrite the page and the README's table, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    made = {PAGE: page(), README: readme()}
    if args.check:
        stale = [path.name for path, text in made.items() if path.read_text() != text]
        sys.exit(f"out of date: {', '.join(stale)}; run python benchmarks/tables.py" if stale else 0)
    for path, text in made.items():
        path.write_text(text)
    for name in (*PICTURES, *difficulty_tables.PICTURES):
        shutil.copyfile(RESULTS / name, PAGE.parent / name)


if __name__ == "__main__":
    main()
