"""The part of the page about integrations that says how fast they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

TRIPLES = """\
Processor time of a negative in nanoseconds, one thread, PyKEEN {pykeen}, {entities:,} entities, {triples:,} triples.
PyKEEN without a filter returns known triples as negatives. Its filters mask them, so that fewer than K are left;
naysay draws another.
"""
EDGES = """\
The same for `torch_geometric` {version}: negatives for all of {edges:,} edges of {nodes:,} nodes in one call, which
indexes the graph, too.
"""


def speed(result: dict[str, Any], table: Table) -> str:
    """Two tables: PyKEEN's samplers by choice, batch and K, and PyG's functions."""
    sizes, versions = result["sizes"], result["versions"]
    names = list(result["pykeen"][0]["nanoseconds"])
    rows = [
        (row["choice"], f"{row['batch']:,}", str(row["k"]), *_cells(row["nanoseconds"])) for row in result["pykeen"]
    ]
    edges = [(f"`{name}`", *_cells(row)) for name, row in result["pyg"].items()]
    return "\n\n".join(
        (
            TRIPLES.format(pykeen=versions["pykeen"], **sizes).strip(),
            table(("choice", "batch", "K", *names), rows),
            EDGES.format(version=versions["torch-geometric"], **sizes).strip(),
            table(("function", *next(iter(result["pyg"].values()))), edges),
        )
    )


def _cells(nanoseconds: dict[str, float]) -> list[str]:
    return [f"{value:,.0f}" for value in nanoseconds.values()]
