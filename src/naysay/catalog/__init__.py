"""The catalogue: one table of what runs. The command line, the documentation and the conformance tests read it.

Every example is a program of its own. That of a method leaves `known` (what must never come back), `sampler`, `query`
and `negatives` behind, that of a loss `loss` and `values`, that of a detector `detector`, `query`, `negatives` and
`suspicion`. The tests run each one and hand what it made to `naysay.check_sampler`, `check_loss` or `check_detector`.
"""

from __future__ import annotations

import difflib

from naysay.catalog import (
    by_anchor,
    by_positive,
    dynamic,
    graphs,
    in_batch,
    items,
    judged,
    mixing,
    rings,
    suspects_by_agreement,
    suspects_by_clusters,
    suspects_by_opinion,
    suspects_by_scores,
    suspects_by_shares,
    triples,
)
from naysay.catalog.losses import ROWS as LOSSES
from naysay.catalog.rows import Alias, Loss, Method, Suspect
from naysay.errors import NaysayError

__all__ = ["Alias", "Loss", "Method", "Suspect", "detectors", "find", "losses", "methods"]


def methods() -> tuple[Method, ...]:
    """All methods, in the order of the documentation."""
    parts = (items, triples, graphs, dynamic, by_anchor, by_positive, rings, mixing, in_batch, judged)
    return tuple(row for part in parts for row in part.ROWS)


def losses() -> tuple[Loss, ...]:
    """All losses, in the order of the documentation."""
    return LOSSES


def detectors() -> tuple[Suspect, ...]:
    """All that find false negatives, in the order of the documentation."""
    parts = (
        suspects_by_shares,
        suspects_by_scores,
        suspects_by_clusters,
        suspects_by_agreement,
        suspects_by_opinion,
    )
    return tuple(row for part in parts for row in part.ROWS)


def find(name: str) -> tuple[Method | Loss | Suspect, Alias | None]:
    """The row of a name, and the alias if it is one; case does not matter, nor a folder: `losses.`, `detectors.`."""
    wanted = name.casefold()
    for method in methods():
        if wanted in (own.casefold() for own in (method.name, *method.also)):
            return method, None
        for alias in method.aliases:
            if alias.name.casefold() == wanted:
                return method, alias
    others: tuple[Loss | Suspect, ...] = (*losses(), *detectors())
    for row in others:
        if wanted in (own.casefold() for own in (*row.names, row.name.partition(".")[2])):
            return row, None
    rows: tuple[Method | Loss | Suspect, ...] = (*methods(), *others)
    folded = {own.casefold(): own for one in rows for own in one.names}
    near = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.5)
    advice = f" Did you mean {folded[near[0]]!r}?" if near else ""
    message = f"methods: `name` must be a name of the catalogue, got {name!r}.{advice} `naysay methods` lists them all."
    raise NaysayError(message)
