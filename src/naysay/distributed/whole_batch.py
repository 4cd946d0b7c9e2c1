"""WholeBatch: a sampler that draws for the rows of all processes and returns those of this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from naysay._processes import check_same, exchange, rank_and_size
from naysay._slots import PER_SLOT
from naysay.arrays import to_numpy
from naysay.checks import check_generator, public, raise_invalid, shown
from naysay.distributed._rows import joined, joined_query, sent, sent_query
from naysay.distributed.observe_all import observe_all
from naysay.text import described
from naysay.types import Negatives, Query, Sampler, Stateful

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
            how_many = {"one k": shown(k) if alone else "one per row", "k": None if alone else sent("k", k, len(query))}
            return sent_query(query) | how_many | {"rng": str(rng.bit_generator.state)}

        everyone = exchange(own, self.group)
        check_same("k", "the same", [one["one k"] for one in everyone])
        if len({one["rng"] for one in everyone}) > 1:
            raise_invalid("rng", "the same in all processes", "others", _SAME_RNG)
        whole = joined_query(query, everyone)
        drawn = self.sampler.sample(whole, k if alone else joined("k", everyone), rng=rng)
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
