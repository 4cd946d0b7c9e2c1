"""The parts of the benchmarks page about search and mining."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.docs.faiss_by_hand import against_faiss, first_calls

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

SEARCH = """\
The top {depth} of {corpus:,} vectors, d = {width}, in clusters, with {excluded_each} known pairs of each query
excluded; {threads} threads, faiss {faiss}. faiss fetches more and is filtered in NumPy. Best of several alternating
repetitions. "Shared" is the share of faiss's results that naysay returns: faiss sums in float32, naysay is certified
in float64.
"""
MEMORY = """\
Memory of a search in a float16 file, above the level before the call, with a budget of {budget_mb:,.0f} MB:
"""
END = """\
`mine_hard_negatives` of sentence-transformers {version} and of naysay, the same call in the same environment. Input:
pairs of texts and a stand-in model with fixed vectors, d = {width}; output: a Dataset with {k} negatives per row, by
a relative margin of {margin:g}. There are as many documents as queries. Each runs in its own process, alternating,
best of up to three; memory is the peak of the call above the level before it. Rows are compared slot by slot. A tie
is two scores within 1e-6 of each other; "on the line" is a score within 1e-6 of the margin: float32 sums in
another order cannot separate them.
"""
HAND = """\
Vectors in, ids out, in one process: the same margin rule written by hand with faiss and NumPy, and FlagEmbedding's
rule, {taken} at random from ranks {first} to {last}, with faiss and Python lists. FlagEmbedding's miner is a script
outside its package, so the rule is written from its description.
"""
GROWTH = """\
`mine` with its default judge over float16 files, d = {width}, k = 10, 2 threads:
"""
JOBS = """\
`naysay mine --budget {budget}` over float16 files, d = {width}: the peak resident memory of the process, above the
{least} of a job of 20 anchors, which is what the libraries need.
"""
INDEX = """\
`Index`, the approximate search, on {documents:,} vectors, d = {width}, {queries:,} queries, top {depth}, {threads}
threads: the same settings on clustered vectors and on one Gaussian. Recall is measured on 500 queries against the
exact search, with 95 % CI. "Of exact" is its time as a share of the exact search's.
"""
RETRIEVAL = """\
An adapter over fixed sentence vectors, x + W x, trained on {trained_pairs} of the {train_pairs} pairs of `scifact`
with `info_nce`, {k} negatives of its own besides those of the batch; {seeds} seeds, learning rate and epochs chosen
for each arm on a fifth of the training queries. nDCG@10 on the test part; {not_trained_ndcg:.3f} without training.
Half of the positives of anchors with several were hidden: the last two columns are how many of them were returned as
negatives, of {hidden} in the training part and {test_hidden} in the test part. 95 % CI by Student's t over seeds;
differences are paired by seed.
"""


def _bytes(size: float | None) -> str:
    return "-" if size is None else f"{size / 1e6:,.0f} MB"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} x"


def search(result: dict[str, Any], table: Table) -> list[str]:
    """Exact search against faiss, and its memory."""
    shape = result["speed"][0] | {"threads": result["threads"], "faiss": result["faiss"]}
    rows = [
        (
            f"{row['queries']:,}",
            name,
            f"{found['seconds']:.2f} s",
            f"{found['cpu_seconds']:.1f} s",
            f"{found['cpu_seconds'] / row['best']['faiss']['cpu_seconds']:.2f}",
            f"{100 * row['shared_with_faiss']:.4f} %" if name == "auto" else "",
        )
        for row in result["speed"]
        for name, found in row["best"].items()
    ]
    headings = ("queries", "engine", "time", "processor time", "of faiss's", "shared")
    held = [(f"{row['corpus']:,}", f"{row['queries']:,}", f"{row['growth_mb']:,.0f} MB") for row in result["memory"]]
    return [
        "## Exact search",
        SEARCH.format(**shape),
        table(headings, rows),
        MEMORY.format(**result["memory"][0]),
        table(("vectors", "queries", "memory"), held),
    ]


def jobs(result: dict[str, Any], table: Table) -> list[str]:
    """The memory of jobs on disk."""
    least, *others = result["rows"]
    rows = [(f"{row['documents']:,}", f"{row['queries']:,}", _bytes(row["above_the_least_bytes"])) for row in others]
    return [
        JOBS.format(**result, least=_bytes(least["peak_bytes"])),
        table(("documents", "anchors", "memory above the smallest job"), rows),
    ]


def mining(result: dict[str, Any], table: Table) -> list[str]:
    """End to end, by hand, growth, and the index."""
    runs = result["end_to_end"]
    version = runs[0]["versions"].get("version", "(not installed)")
    parts = ["## Mining against sentence-transformers", END.format(**runs[0] | {"version": version})]
    parts += [table(_END, [cells for run in runs for cells in _end_rows(run)])]
    hands = result["by_hand"]
    first, last = hands[0]["window"]
    words = {"taken": hands[0]["taken"], "first": first + 1, "last": last}
    rows = [
        (
            f"{run['size']:,}",
            str(run["threads"]),
            name,
            f"{row['seconds']:.2f} s",
            _bytes(row["peak_extra_bytes"]),
            _times(run["times_of_ours"][name]["seconds"]) if name in run["times_of_ours"] else "",
            _times(run["times_of_ours"][name]["memory"]) if name in run["times_of_ours"] else "",
        )
        for run in hands
        for name, row in run["contenders"].items()
    ]
    parts += ["### Against hand-written code", HAND.format(**words)]
    parts += [table(("queries", "threads", "method", "time", "memory", "time / ours", "memory / ours"), rows)]
    grown = [
        (
            f"{row['queries']:,}",
            f"{row['documents']:,}",
            _bytes(row["file_bytes"]),
            f"{row['seconds']:.1f} s",
            _bytes(row["peak_extra_bytes"]),
            f"{100 * row['filled']:.0f} %",
        )
        for row in result["growth"]
    ]
    parts += against_faiss(result.get("against", []), table) + first_calls(result.get("first", []), table)
    parts += ["### Growth", GROWTH.format(width=runs[0]["width"])]
    parts += [table(("queries", "documents", "file", "time", "memory", "slots filled"), grown)]
    return parts + _index(result["index"], table)


_END = (
    "pairs",
    "threads",
    "miner",
    "time",
    "memory",
    "time / ours",
    "memory / ours",
    "rows that differ",
    "why",
)


def _end_rows(run: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for each miner of one size."""
    found = []
    for name, row in run["contenders"].items():
        title = "ours" if name == "ours" else f"sentence-transformers, {name}"
        if "missing" in row:
            found.append((f"{run['size']:,}", str(run["threads"]), title, row["missing"], "", "", "", "", ""))
            continue
        times = run.get("times_of_ours", {}).get(name, {})
        equal = run.get("equal", {}).get(name)
        found.append(
            (
                f"{run['size']:,}",
                str(run["threads"]),
                title,
                f"{row['seconds']:.1f} s",
                _bytes(row["peak_extra_bytes"]),
                _times(times["seconds"]) if times else "",
                _times(times["memory"]) if times else "",
                f"{equal['rows_that_differ']:,} of {equal['rows_of_both']:,}" if equal else "",
                ", ".join(f"{count} {name}" for name, count in equal["why"].items() if count) if equal else "",
            )
        )
    return found


def _index(runs: list[dict[str, Any]], table: Table) -> list[str]:
    """Recall and time by setting, for both kinds of vectors."""
    rows = [
        (
            run["vectors"],
            rung["setting"],
            f"{rung['recall']:.3f} ({rung['low']:.3f} to {rung['high']:.3f})",
            f"{rung['seconds']:.2f} s",
            f"{rung['of_exact']:.2f}",
        )
        for run in runs
        for rung in run["rungs"]
    ]
    built = "; ".join(
        f"{run['vectors']}: built in {run['build_seconds']:.1f} s, exact search {run['exact_seconds']:.2f} s"
        for run in runs
    )
    headings = ("vectors", "setting", "recall", "time", "of exact")
    return ["### The index", INDEX.format(**runs[0]), table(headings, rows), f"{built[0].upper()}{built[1:]}."]


def retrieval(result: dict[str, Any], table: Table) -> list[str]:
    """The study on scifact."""
    rows = [
        (
            name,
            _mean(row["ndcg"], 4),
            "" if name == result["base"] else _mean(row["ndcg_difference"], 4, "+"),
            f"{row['mean_score']['mean']:.2f}" if "mean_score" in row else "",
            f"{100 * row['filled']['mean']:.0f} %",
            f"{100 * row['hidden_returned']['mean']:.1f} %",
            f"{100 * row['test_hidden_returned']['mean']:.1f} %",
        )
        for name, row in result["arms"].items()
    ]
    headings = (
        "negatives",
        "nDCG@10",
        f"against {result['base']}",
        "mean score",
        "slots filled",
        "hidden returned",
        "hidden returned, test part",
    )
    return [
        "## Which negatives for retrieval",
        RETRIEVAL.format(**result, **result["sizes"]),
        table(headings, rows),
    ]


def _mean(spread: dict[str, Any], figures: int, sign: str = "") -> str:
    half = "" if spread["half"] is None else f" ± {spread['half']:.{figures}f}"
    return f"{spread['mean']:{sign}.{figures}f}{half}"
