"""observe_all: a part that learns sees the rows of all processes."""

from __future__ import annotations

from typing import Any

from naysay._processes import check_same, exchange, rank_and_size
from naysay._slots import PER_SLOT
from naysay.checks import check_kind, check_lengths, public, raise_invalid
from naysay.distributed._rows import joined, joined_negatives, joined_query, like, sent, sent_query
from naysay.types import Negatives, Query


@public
def observe_all(
    part: Any,
    query: Query,
    negatives: Negatives | None,
    *,
    positive_scores: Any = None,
    vectors: Any = None,
    group: Any = None,
) -> None:
    """Call `part.observe` in every process with the rows of all processes.

    For every part that learns from a step: `pools.Memory`, `detectors.LearnedQuantile`, `samplers.Bank` and others. All
    processes then have the state that one process with the whole batch would have.

    Args:
        part: A pool, sampler or detector with `observe`.
        query: The query of this process.
        negatives: Its negatives, or None for parts that do not use them.
        positive_scores: (B,) as in `part.observe`.
        vectors: (B, d) as in `part.observe`; without gradients.
        group: As in `WholeBatch`.

    Raises:
        NaysayError: In all processes, if the part raises, or what is given differs in step, kind or width.

    Examples:
        >>> import naysay as ns
        >>> memory = ns.pools.Memory(4)
        >>> observe_all(memory, ns.Query([0, 1], positives=[5, 6]), None)
        >>> memory.ids.tolist()
        [5, 6]
    """
    if isinstance(part, type) or not hasattr(part, "observe"):
        raise_invalid("part", "a pool, sampler or detector with a method observe", type(part).__name__)
    if rank_and_size(group)[1] == 1:
        part.observe(query, negatives, positive_scores=positive_scores, vectors=vectors)
        return
    arrays = {"positive_scores": positive_scores, "vectors": vectors}

    def own() -> dict[str, Any]:
        given = sent_query(query) | {f"given {name}": sent(name, value, len(query)) for name, value in arrays.items()}
        if negatives is None:
            return given | {"slots": None}
        check_kind("negatives", negatives, Negatives, "Negatives")
        check_lengths(query=len(query), negatives=negatives.shape[0])
        slots = {f"slot {name}": sent(name, getattr(negatives, name)) for name in PER_SLOT}
        return given | slots | {"slots": negatives.source_names}

    everyone = exchange(own, group)
    whole = joined_query(query, everyone)
    check_same("negatives", "given", ["none" if one["slots"] is None else "negatives" for one in everyone])
    drawn = None if negatives is None else joined_negatives(negatives, everyone)
    rest = {name: like(joined(name, everyone, f"given {name}"), value) for name, value in arrays.items()}
    part.observe(whole, drawn, **rest)
