"""The catalogue: one table of what runs. The command line, the documentation and the conformance tests read it.

Every example is a program of its own that leaves three names behind: `known` (what must never come back), `sampler` and
`query`. The tests run each one and hand its sampler to `naysay.check_sampler`.
"""

from __future__ import annotations

import difflib

from naysay.catalog import graphs, items, triples
from naysay.catalog.rows import Alias, Method
from naysay.errors import NaysayError

__all__ = ["Alias", "Method", "find", "methods"]


def methods() -> tuple[Method, ...]:
    """All rows, in the order of the documentation."""
    return (*items.ROWS, *triples.ROWS, *graphs.ROWS)


def find(name: str) -> tuple[Method, Alias | None]:
    """The row of a name, and the alias if it is one; case does not matter."""
    wanted = name.casefold()
    for method in methods():
        if wanted in (own.casefold() for own in (method.name, *method.also)):
            return method, None
        for alias in method.aliases:
            if alias.name.casefold() == wanted:
                return method, alias
    names = sorted({own for method in methods() for own in method.names}, key=str.casefold)
    folded = {own.casefold(): own for own in names}
    near = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.5)
    advice = f" Did you mean {folded[near[0]]!r}?" if near else ""
    message = f"methods: `name` must be one of {', '.join(names)}, got {name!r}.{advice}"
    raise NaysayError(message)
