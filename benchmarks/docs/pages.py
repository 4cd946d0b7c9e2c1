"""Write docs/benchmarks.md and the figures of other pages from results/*.json, so that no figure is typed by hand.

python -m benchmarks.docs.pages          # rewrite all
python -m benchmarks.docs.pages --check  # exit 1 if one is out of date
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import Any

from benchmarks.docs import (
    claims_detection,
    claims_images,
    claims_in_batch,
    claims_percentiles,
    difficulty,
    evidence,
    gains,
    hidden_positives,
    integrations,
    losses,
    methods,
    mining,
    processes,
    runners,
    samplers,
    scale,
    training,
)
from benchmarks.harness import RESULTS, ROOT

PAGE, METHODS, README = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "methods.md", ROOT / "README.md"
CHOOSING = ROOT / "docs" / "choosing.md"
THRESHOLDS = ROOT / "docs" / "thresholds.md"
COMPARE = ROOT / "docs" / "compare.md"
DISTRIBUTED = ROOT / "docs" / "distributed.md"
EVIDENCE_IMAGES = ROOT / "docs" / "evidence-images.md"
INTEGRATIONS = ROOT / "docs" / "integrations.md"
EVIDENCE = ROOT / "docs" / "evidence.md"
SCALE = ROOT / "docs" / "scale.md"
PICTURES = ("growth-items.svg", "growth-positives.svg")


PREFACE = """\
# Benchmarks

Every number here is read from `benchmarks/results/*.json`. The scripts alternate naysay and the peer in one run, each
in its own environment, and keep the best of several repetitions. Absolute numbers depend on the machine; compare the
ratios. Machine: {cpu}, {cores} cores, Python {python}, NumPy {numpy}, numba {numba}. Names are quoted as the
results have them: "twins" are duplicates, a "line" is a threshold.
"""
DRAWS = """\
Recommendation: 50,000 users x 40,000 items, 1.9 M positives, batches of 4,096. naysay also computes exact `log_q`.
The plain loop is a rank shift in numba without `log_q` and without checks, always on one thread. PyKEEN masks what
its filter finds and returns fewer negatives; naysay draws again. RecBole never draws an item without interactions.
"""
GROWTH = """\
Memory is 5 bytes per known pair and 8 per anchor. The time of a draw does not depend on the number of items as such.
It grows when the tables no longer fit in the processor's cache.
"""


def result(name: str) -> dict[str, Any]:
    """One result file, as it was written."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def rate(row: dict[str, Any]) -> str:
    """Millions of negatives per second, three digits."""
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
    """One row per case: ours, the peer's, the ratio."""
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
    return table(("job", "contender", "negatives per second", "ratio to the peer", "known positives returned"), rows)


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
    return table(("items", "known pairs", "anchors", "build", "bytes per pair", *(f"{way}, ns" for way in ways)), rows)


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
        "### 1 thread",
        contenders(sampling, 1),
        "### 2 threads",
        contenders(sampling, 2),
        f"The index of the non-edges is built once, in {build:.2f} s.",
        "## Growth",
        GROWTH,
        growth_table(growth["by_items"]),
        growth_table(growth["by_positives"]),
        "\n".join(f"![nanoseconds per draw]({name})" for name in PICTURES),
        "## Known positives returned",
        table(("data and pool", "draws", "known positives among them"), returned),
        "## Neighbours in a graph",
        "ca-AstroPh, 1,024 anchors, k = 16.",
        table(("pool", "microseconds per row"), rows),
        *samplers.dynamic(result("dynamic"), table),
        *samplers.hard_sources(result("hard_sources"), table),
        *samplers.costs(result("costs"), table),
        *runners.runners(result("runners"), table),
        *training.recommendation(result("recommendation"), table),
        *training.judging(result("judging"), table),
        *hidden_positives.sections(result, table),
        *difficulty.difficulty(result("difficulty"), table),
        *losses.losses(result("losses"), table),
        *losses.estimate(result("estimate"), table),
        *losses.online(result("online"), table),
        *mining.search(result("search"), table),
        *mining.mining(result("mining"), table),
        *mining.jobs(result("jobs"), table),
        *mining.retrieval(result("retrieval"), table),
        "## Start-up time",
        table(("what", "seconds"), [(name[:-8].replace("_", " "), f"{seconds:.2f}") for name, seconds in waits]),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def readme() -> str:
    """The README with its generated blocks."""
    printed = "\n".join(result("demonstration")["printed"])
    text = between(README.read_text(), marks("demo"), f"```text\n{printed}\n```")
    text = between(text, marks("gains"), gains.gains(result("judging"), gains.IN_README, table))
    return between(text, marks("speed"), speed(result("sampling"), 1))


def catalogue() -> str:
    """The page of methods with its tables."""
    text = METHODS.read_text()
    for name, content in methods.blocks().items():
        text = between(text, marks(name), content)
    return text


def choosing() -> str:
    """The page of questions with its tables of gains and costs."""
    text = between(CHOOSING.read_text(), marks("gains"), gains.gains(result("judging"), gains.IN_CHOOSING, table))
    return between(text, marks("costs"), samplers.cost_classes(result("costs"), table))


def thresholds() -> str:
    """The page about thresholds with its table of gains."""
    made = gains.gains(result("judging"), gains.OF_BANDS, table, "bands")
    return between(THRESHOLDS.read_text(), marks("gains"), made)


def compare() -> str:
    """The page about `naysay compare` with its sentence of speed."""
    return between(COMPARE.read_text(), marks("runners"), runners.sentence(result("runners")))


def distributed() -> str:
    """The page about several processes with its table of memory."""
    return between(DISTRIBUTED.read_text(), marks("shared"), processes.shared(result("shared_positives"), table))


def frameworks() -> str:
    """The page about integrations with its tables of speed."""
    return between(INTEGRATIONS.read_text(), marks("speed"), integrations.speed(result("integrations"), table))


def evidence_images() -> str:
    """The page about claims of papers, for pictures."""
    parts = [
        claims_images.PREFACE,
        *claims_detection.detection_sections(result("claims_detection"), table),
        *claims_percentiles.percentile_sections(result("claims_percentiles"), table),
    ]
    if (RESULTS / "claims_in_batch.json").is_file():
        parts += claims_in_batch.in_batch_sections(result("claims_in_batch"), table)
    return "\n\n".join(part.strip() for part in parts) + "\n"


def claims() -> str:
    """The page of evidence with its tables."""
    text = EVIDENCE.read_text()
    results = map(result, ("claims_quantity", "claims_samplers", "judging"))
    for name, content in evidence.blocks(*results, table).items():
        text = between(text, marks(name), content)
    return text


def scaling() -> str:
    """The page about Ray with its tables."""
    text = SCALE.read_text()
    for name, content in scale.blocks(result("ray"), table).items():
        text = between(text, marks(name), content)
    return text


def marks(name: str) -> tuple[str, str]:
    """The comments before and after a block that this script writes."""
    return f"<!-- {name}: made by benchmarks/docs/pages.py -->", f"<!-- end of {name} -->"


def between(text: str, ends: tuple[str, str], content: str) -> str:
    """`text` with `content` between two marks."""
    before, rest = text.split(ends[0])
    return f"{before}{ends[0]}\n{content}\n{ends[1]}{rest.split(ends[1])[1]}"


def main() -> None:
    """Rewrite the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    made = {PAGE: page(), README: readme(), METHODS: catalogue(), CHOOSING: choosing(), COMPARE: compare()}
    made[THRESHOLDS] = thresholds()
    made[DISTRIBUTED] = distributed()
    made[EVIDENCE_IMAGES] = evidence_images()
    made[EVIDENCE] = claims()
    made[INTEGRATIONS] = frameworks()
    made[SCALE] = scaling()
    if args.check:
        stale = [path.name for path, text in made.items() if path.read_text() != text]
        sys.exit(f"out of date: {', '.join(stale)}; run python -m benchmarks.docs.pages" if stale else 0)
    for path, text in made.items():
        path.write_text(text)
    claimed = (claims_detection.PICTURE, claims_percentiles.PICTURE, *evidence.PICTURES)
    some = (claims_in_batch.PICTURE,) if (RESULTS / claims_in_batch.PICTURE).is_file() else ()
    for name in (*PICTURES, *difficulty.PICTURES, *claimed, *some):
        shutil.copyfile(RESULTS / name, PAGE.parent / name)


if __name__ == "__main__":
    main()
