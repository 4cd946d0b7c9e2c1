"""The part of the benchmarks page about samplers that use model scores: their cost in a training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

COST = """\
Matrix factorisation, d = {width}, batches of {batch:,} from {pairs:,} pairs of {users:,} users and {items:,} items,
dense Adam, torch {torch}: {candidates} candidates per row are drawn and scored, {k} selected, BPR over them.
Milliseconds per step, best of several repetitions. "Share" is the share of the step that draw, selection and loss
with its gradient take; scoring, forward, backward and the optimiser belong to the model. `in_blocks` makes the same
scoring several times faster, so the share is larger.
"""
RECBOLE = """\
Whole training steps with one negative of {candidates} candidates, alternating in the same run:
"""


def dynamic(result: dict[str, Any], table: Table) -> list[str]:
    """The cost of a step by way of choosing, and the peer."""
    parts = ["## Samplers that use model scores", COST.format(**result)]
    for threads in (1, 2):
        found = result[f"threads_{threads}"]
        rows = [
            (
                name,
                *(f"{row[part]:.1f}" for part in ("step", "scoring", "draw", "choice", "loss")),
                f"{100 * row['share']:.1f} %",
            )
            for name, row in found["cost"].items()
        ]
        headings = ("sampler", "step", "scoring", "draw", "selection", "loss", "share")
        parts += [f"### Training step, {threads} thread{'s' if threads > 1 else ''}", table(headings, rows)]
        parts += [RECBOLE.format(**result), _against(found["against_recbole"], table)]
    return parts


def _against(rows: dict[str, Any], table: Table) -> str:
    """Steps a second, ours and the peer's."""
    peer = rows["recbole_train"]
    if "missing" in peer:
        return f"RecBole: {peer['missing']}."
    lines = [
        (name, f"{row['steps_per_second']:.1f}", f"{row['steps_per_second'] / peer['steps_per_second']:.1f} x")
        for name, row in rows.items()
        if name != "recbole_train"
    ]
    theirs = (f"RecBole {peer['versions']['version']}, dynamic", f"{peer['steps_per_second']:.1f}", "")
    return table(("", "steps per second", "ratio to RecBole"), [*lines, theirs])
