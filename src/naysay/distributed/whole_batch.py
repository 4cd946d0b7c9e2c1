"""The global batch: draws for the rows of all processes, parts that learn from all of them, and shared scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from naysay._processes import check_same, exchange, rank_and_size
from naysay._slots import PER_SLOT, Score, check_score
from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import as_array, check_generator, check_kind, check_lengths, public, raise_invalid, shown
from naysay.text import described
from naysay.types import OF_ROWS, Array, Negatives, Query, Sampler, Stateful, check_query

_SAME_RNG = "Pass rng_for(seed, step), without a rank. `data.loader` draws by rank: give it the sampler itself."


@final
@public
class WholeBatch:
    """Draw for the whole batch, and return the rows of this process: the negatives that one process would draw.

    The queries of all processes are gathered, without gradients, and every process draws for all of them with the same
    rng. So a pool such as `InBatch` has the candidates of the whole batch, and a sampler that changes as it draws
    (`Cached`, `Learned`) changes in every process as in one. `observe` gathers, too. `dropped` counts the whole batch.

    The sampler must be equal in all processes, its score function, too: with DistributedDataParallel it is. To score
    each row in one process only, wrap the function: `Dynamic(pool, in_shares(score), candidates=64)`.

    Cost: the draws of the whole batch in every process, and the exchange of ids. If you do not need the negatives of
    one process, let each draw for its rows with rng_for(seed, step, rank), which exchanges nothing.

    Args:
        sampler: Any sampler.
        group: A process group of torch.distributed; None is all processes. Without torch.distributed, or in a group of
            one, it is the sampler as it is.

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [1, 0], n_items=5))
        >>> sampler = WholeBatch(ns.samplers.Static(pool))
        >>> sampler.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(seed=0, step=7)).shape
        (2, 3)
    """

    def __init__(self, sampler: Sampler, group: Any = None) -> None:
        if isinstance(sampler, type) or not isinstance(sampler, Sampler):
            raise_invalid("sampler", "a sampler, with a method sample(query, k, *, rng)", type(sampler).__name__)
        self.sampler, self.group = sampler, group
        self.distinct = getattr(sampler, "distinct", None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives for the rows of this process. `k` is one number, or (B,) numbers, in all processes.

        Raises:
            NaysayError: In all processes, if the sampler raises, or step, k, rng or the parts of the query differ.
        """
        rank, size = rank_and_size(self.group)
        if size == 1:
            return self.sampler.sample(query, k, rng=rng)
        alone = np.ndim(to_numpy(k)) == 0

        def own() -> dict[str, Any]:
            check_generator(rng)
            how_many = {
                "one k": shown(k) if alone else "one per row",
                "k": None if alone else _sent("k", k, len(query)),
            }
            return _sent_query(query) | how_many | {"rng": str(rng.bit_generator.state)}

        everyone = exchange(own, self.group)
        check_same("k", "the same", [one["one k"] for one in everyone])
        if len({one["rng"] for one in everyone}) > 1:
            raise_invalid("rng", "the same in all processes", "others", _SAME_RNG)
        whole = _joined_query(query, everyone)
        drawn = self.sampler.sample(whole, k if alone else _joined("k", everyone), rng=rng)
        first = sum(one["rows"] for one in everyone[:rank])
        own_rows = slice(first, first + len(query))
        arrays = {name: getattr(drawn, name) for name in PER_SLOT}
        return replace(drawn, **{name: array[own_rows] for name, array in arrays.items() if array is not None})

    def observe(self, query: Query, negatives: Any, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """`observe_all` of the sampler, if it learns."""
        if hasattr(self.sampler, "observe"):
            observe_all(
                self.sampler, query, negatives, positive_scores=positive_scores, vectors=vectors, group=self.group
            )

    def state(self) -> dict[str, Any]:
        """The sampler's state, the same in all processes; empty if it has none."""
        return self.sampler.state() if isinstance(self.sampler, Stateful) else {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, for any number of processes."""
        if isinstance(self.sampler, Stateful):
            self.sampler.restore(state)
        elif state:
            raise_invalid("state", f"empty for {type(self.sampler).__name__}, which has none", shown(list(state)))

    def __repr__(self) -> str:
        return described(self)


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
        given = _sent_query(query) | {f"given {name}": _sent(name, value, len(query)) for name, value in arrays.items()}
        if negatives is None:
            return given | {"slots": None}
        check_kind("negatives", negatives, Negatives, "Negatives")
        check_lengths(query=len(query), negatives=negatives.shape[0])
        slots = {f"slot {name}": _sent(name, getattr(negatives, name)) for name in PER_SLOT}
        return given | slots | {"slots": negatives.source_names}

    everyone = exchange(own, group)
    whole = _joined_query(query, everyone)
    check_same("negatives", "given", ["none" if one["slots"] is None else "negatives" for one in everyone])
    drawn = None if negatives is None else _joined_negatives(negatives, everyone)
    rest = {name: _like(_joined(name, everyone, f"given {name}"), value) for name, value in arrays.items()}
    part.observe(whole, drawn, **rest)


@public
def in_shares(score: Score, group: Any = None) -> Score:
    """Make a score function that scores each row in one process and gathers the scores.

    For samplers inside `WholeBatch`, which call it with the same rows in all processes: each scores an equal share of
    them. A matrix product may round differently for another number of rows, so that scores may differ from those of one
    process in the last bits, and candidates with equal scores may change places.

    Args:
        score: score(anchors (B,), ids (B, n)) -> (B, n), whose rows do not depend on each other.
        group: As in `WholeBatch`.

    Returns:
        A function with the same arguments and results, without gradients.

    Raises:
        NaysayError: In all processes, if they call it with different numbers of rows.

    Examples:
        >>> import numpy as np
        >>> score = in_shares(lambda anchors, ids: ids * 0.5)    # one process
        >>> score(np.array([0]), np.array([[1, 2]]))
        array([[0.5, 1. ]])
    """
    check_score(score)

    def shared(anchors: Array, ids: Array) -> Array:
        rank, size = rank_and_size(group)
        if size == 1:
            return score(anchors, ids)
        start, stop = (len(ids) * end // size for end in (rank, rank + 1))
        everyone = exchange(lambda: _share(score, anchors, ids, start, stop), group)
        check_same("ids", "of one shape", [one["shape"] for one in everyone], "Use it inside WholeBatch.")
        return _like(_joined("scores", everyone), ids)

    return shared


def _share(score: Score, anchors: Array, ids: Array, start: int, stop: int) -> dict[str, Any]:
    """The scores of some rows, and the shape of all."""
    shape = tuple(ids.shape)
    if start == stop:
        return {"shape": shape, "scores": np.empty((0, *shape[1:2]))}
    return {"shape": shape, "scores": _sent("score", score(anchors[start:stop], ids[start:stop]))}


# ---- what processes send each other, and the arrays that they make together ----


def _sent(name: str, values: Any, rows: int | None = None) -> Any:
    """An array of rows in NumPy, which travels as it is; None for None."""
    if values is None:
        return None
    array = as_array(name, to_numpy(values))
    if rows is not None and (array.ndim == 0 or len(array) != rows):
        raise_invalid(name, f"a row for each of the {rows} of the query", f"shape {array.shape}")
    return array


def _sent_query(query: Query) -> dict[str, Any]:
    """The parts of a query."""
    check_query(query)
    return {"rows": len(query), "step": query.step} | {name: _sent(name, getattr(query, name)) for name in OF_ROWS}


def _joined(name: str, everyone: list[dict[str, Any]], key: str | None = None) -> Any:
    """The rows of all processes, which must be there and as wide in all or in none. Empty arrays have no type."""
    parts = [one[key or name] for one in everyone]
    check_same(name, "given", ["None" if part is None else "an array" for part in parts])
    if parts[0] is None:
        return None
    full = [part for part in parts if len(part)] or parts[:1]
    check_same(name, "of one width", [part.shape[1:] for part in full])
    return np.concatenate(full)


def _like(array: Any, like: Any) -> Any:
    """A joined array in the array type, on the device and, for floating-point tensors, in the type of `like`."""
    if array is None or not is_torch(like):
        return array
    tensor = to_torch(array, like.device)
    return tensor.to(like.dtype) if like.is_floating_point() and tensor.is_floating_point() else tensor


def _joined_query(query: Query, everyone: list[dict[str, Any]]) -> Query:
    """The query of all processes, in the array type of this one."""
    check_same("query", "of one step", [one["step"] for one in everyone])
    arrays = {name: _like(_joined(name, everyone), getattr(query, name)) for name in OF_ROWS}
    return Query(step=query.step, **arrays)


def _joined_negatives(negatives: Negatives, everyone: list[dict[str, Any]]) -> Negatives:
    """The negatives of all processes, in the array type of this one, without what was dropped."""
    names = [one["slots"] for one in everyone]
    check_same("negatives", "of the same source_names", names)
    arrays = {name: _like(_joined(name, everyone, f"slot {name}"), getattr(negatives, name)) for name in PER_SLOT}
    return Negatives(**arrays, source_names=names[0])
