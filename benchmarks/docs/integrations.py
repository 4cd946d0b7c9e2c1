"""The part of the page about integrations that says how fast they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

TRIPLES = """\
Processor time of a negative in nanoseconds, one thread, PyKEEN {pykeen}, {entities:,} entities, {triples:,} triples.
Exactness costs most where K = 1: what is known of both sides of a triple is looked up for one draw.
"""
EDGES = """\
The same for `torch_geometric` {version}: negatives for all of {edges:,} edges of {nodes:,} nodes in one call, which
indexes the graph, too.
"""


def speed(result: dict[str, Any], table: Table) -> str:
    """Two tables: PyKEEN's samplers by batch and K, and PyG's functions."""
    sizes, versions = result["sizes"], result["versions"]
    names = list(result["pykeen"][0]["nanoseconds"])
    rows = [(f"{row['batch']:,}", str(row["k"]), *_cells(row["nanoseconds"])) for row in result["pykeen"]]
    edges = [(f"`{name}`", *_cells(row)) for name, row in result["pyg"].items()]
    return "\n\n".join(
        (
            TRIPLES.format(pykeen=versions["pykeen"], **sizes).strip(),
            table(("batch", "K", *names), rows),
            EDGES.format(version=versions["torch-geometric"], **sizes).strip(),
            table(("function", *next(iter(result["pyg"].values()))), edges),
        )
    )


def _cells(nanoseconds: dict[str, float]) -> list[str]:
    return [f"{value:,.0f}" for value in nanoseconds.values()]
