"""The part of the benchmarks page about the models that `naysay compare` trains: their speed, and what a step costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

TEXT = """\
Whole training steps of `naysay compare` against those of libraries: {k} negatives, d = {width}, Adam over all vectors,
one thread, torch {torch}. Start-up and loading are not counted. {timed} steps of each are timed, after as many to warm
up, and scaled to an epoch. Times are processor time; the last column has the ratio on the wall clock. RecBole counts a
pair once for each negative: its usual batch of 2,048 is 128 pairs here. PyKEEN is set to our loss and distance.
"""
PROPAGATION = """\
LightGCN's propagation over {hops} hops and its gradient, {nodes:,} nodes and {edges:,} edges of yelp2018. torch.sparse
transposes the matrix in every backward pass.
"""
STEPS = """\
Processor milliseconds of a step by part. "Other" is the rest of the forward pass: for LightGCN the propagation.
"""
UPDATE = """\
Adam updates all {rows:,} vectors of yelp2018 in every step. `torch.optim.SparseAdam` updates those with a gradient.
It leaves out the momentum and weight decay of all others, so it trains differently, and `naysay compare` does not use
it:
"""
PEERS = {"recbole_train": "RecBole", "pykeen": "PyKEEN", "pykeen, filtered": "PyKEEN, filtered"}
PARTS = ("step", "negatives", "scores", "loss", "backward", "optimiser", "hardness", "rest of the forward pass")


def runners(result: dict[str, Any], table: Table) -> list[str]:
    """Speed against peers, propagation, the parts of a step, and the optimiser."""
    found = result["propagation"]
    lines = [(name, f"{1e3 * row['cpu_seconds']:.0f}", *_ratios(row, name)) for name, row in found["rows"].items()]
    return [
        "## Training steps of `naysay compare`",
        TEXT.format(timed=result["transe"]["timed_steps"], **result),
        table(("model", "trained by", "epochs per minute", "naysay's ratio", "on the wall clock"), _against(result)),
        "What was not equal: " + "; ".join(dict.fromkeys(_unequal(result))) + ".",
        PROPAGATION.format(**found),
        table(("propagation", "ms", "naysay's ratio", "on the wall clock"), lines),
        STEPS.strip(),
        _steps(result["steps"], table),
        *_updates(result["steps"], table),
    ]


def sentence(result: dict[str, Any]) -> str:
    """What the page about `naysay compare` says of its speed."""
    epochs = result["factorisation"]["ours"]["rows"]["recbole_train"]
    triples, sparse = result["transe"]["rows"], result["propagation"]["rows"]["torch.sparse, rows (CSR)"]
    shares = [row["share_of_negatives"] for row in result["steps"].values()]
    ratios = [_ratio(row) for row in (epochs, triples["pykeen"], sparse)]
    return (
        f"The models train at {ratios[0]} the speed of RecBole (matrix factorisation), {ratios[1]} that of PyKEEN "
        f"(TransE, not filtered there) and {ratios[2]} that of torch.sparse (LightGCN's propagation), each with equal "
        f"batches, 16 negatives, width 64 and one thread. Drawing the negatives takes {100 * min(shares):.0f} to "
        f"{100 * max(shares):.0f} % of a step: see [benchmarks](benchmarks.md#training-steps-of-naysay-compare)."
    )


def _ratio(row: dict[str, Any]) -> str:
    return f"{row['naysay_is_faster']['processor']:.1f} x"


def _ratios(row: dict[str, Any], name: str) -> tuple[str, str]:
    """Of processor time and on the wall clock; empty for ours."""
    return ("", "") if name == "naysay" else (_ratio(row), f"{row['naysay_is_faster']['wall']:.1f} x")


def _cases(result: dict[str, Any]) -> dict[str, Any]:
    """{title: comparison} of those with a library."""
    made = {
        f"matrix factorisation, yelp2018, {case['equal']['batch']:,} pairs": case
        for case in result["factorisation"].values()
    }
    return made | {f"TransE, FB15k-237, {result['transe']['equal']['batch']:,} triples": result["transe"]}


def _unequal(result: dict[str, Any]) -> list[str]:
    """Each difference with the name of the peer."""
    named = [("RecBole", case) for case in result["factorisation"].values()] + [("PyKEEN", result["transe"])]
    return [f"{name}: {text}" for name, case in named for text in case["unequal"]]


def _against(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for each contender; a peer that is missing says so."""
    lines = []
    for title, case in _cases(result).items():
        for name, row in case["rows"].items():
            if "missing" in row:
                lines.append((title, PEERS[name], row["missing"], "", ""))
                continue
            label = f"{PEERS[name]} {row['versions']['version']}" if name in PEERS else name
            lines.append((title, label, f"{60 * row['epochs_per_processor_second']:.2f}", *_ratios(row, name)))
    return lines


def _steps(steps: dict[str, Any], table: Table) -> str:
    """The parts of each model's step, and the share of the negatives."""
    rows = [
        (name, *(f"{row[part]:.2f}" for part in PARTS), f"{100 * row['share_of_negatives']:.0f} %")
        for name, row in steps.items()
    ]
    return table(("model", *PARTS[:-1], "other", "share of negatives"), rows)


def _updates(steps: dict[str, Any], table: Table) -> list[str]:
    """Dense and sparse Adam."""
    found = {name: row["update"] for name, row in steps.items() if "update" in row}
    rows = [
        (name, f"{row['touched']:,}", f"{row['dense']:.2f}", f"{row['sparse']:.2f}", f"{steps[name]['step']:.2f}")
        for name, row in found.items()
    ]
    size = next(iter(found.values()))["rows"]
    headings = ("model", "vectors with a gradient", "Adam, ms", "SparseAdam, ms", "whole step, ms")
    return [UPDATE.format(rows=size), table(headings, rows)]
