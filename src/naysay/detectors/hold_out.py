"""Hide a share of the known positives, to see whether they are found among the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.checks import check_number, public, raise_invalid
from naysay.positives import POSITIVE, Positives
from naysay.rng import key_from, rng_for


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Known pairs in two parts, with the same sizes and names. `split_known` makes it.

    Args:
        kept: The pairs that stay known, ignored pairs included: fit, train and exclude with these.
        hidden: The positives to treat as unknown.

    Examples:
        >>> known = Positives.from_pairs([0, 0, 1], [3, 5, 3])
        >>> len(Split(known, known).hidden)
        3
    """

    kept: Positives
    hidden: Positives


@public
def split_known(positives: Positives, share: float = 0.1, *, rng: np.random.Generator) -> Split:
    """Hide a share of the positives of each anchor that has several. Every anchor keeps at least one.

    Of c positives floor(c share + u) are hidden, u uniform in [0, 1) for each anchor, at most c - 1: c share on
    average, all equally likely. An anchor with one positive keeps it, so hidden positives represent anchors with
    several. O(pairs log pairs).

    Args:
        positives: The known positives.
        share: The share to hide, above 0 and below 1.
        rng: The generator of the choice.

    Returns:
        The two parts.

    Examples:
        >>> known = Positives.from_pairs([0, 0, 0, 0, 1], [3, 5, 6, 8, 3])
        >>> split = split_known(known, 0.5, rng=np.random.default_rng(0))
        >>> len(split.kept), len(split.hidden), split.hidden.count().tolist()
        (3, 2, [2, 0])
    """
    if not isinstance(positives, Positives):
        raise_invalid("positives", "a Positives", type(positives).__name__)
    part = check_number("share", share, above=0, below=1)
    generator = rng_for(int(key_from(rng)))
    counts = positives.count()
    wanted = np.minimum(np.floor(counts * part + generator.random(len(counts))), np.maximum(counts - 1, 0))
    order = generator.random(len(positives))
    if positives.relation is not None:
        order[positives.relation != POSITIVE] = 1.0  # above any random number: ignored pairs come last, and are kept
    anchors = np.repeat(np.arange(positives.n_anchors), np.diff(positives.indptr))
    ranked = np.lexsort((order, anchors))
    hidden = np.zeros(len(positives), bool)
    hidden[ranked] = np.arange(len(positives)) - positives.indptr[anchors] < wanted[anchors]
    return Split(_part(positives, ~hidden, anchors), _part(positives, hidden, anchors))


def _part(positives: Positives, chosen: NDArray[np.bool_], anchors: NDArray[np.int64]) -> Positives:
    """The chosen pairs, as `Positives` of the same sizes and names."""
    relation = None if positives.relation is None else positives.relation[chosen]
    mixed = relation is not None and bool((relation != POSITIVE).any())
    return Positives(
        offsets(np.bincount(anchors[chosen], minlength=positives.n_anchors)),
        positives.indices[chosen],
        positives.n_items,
        relation=relation if mixed else None,
        anchor_names=positives.anchor_names,
        item_names=positives.item_names,
    )


def one_of_each(positives: Positives, anchors: NDArray[np.int64], generator: np.random.Generator) -> NDArray[Any]:
    """(B,) one positive of each anchor, all equally likely. Every anchor must have one."""
    items = positives.indices
    starts, counts = positives.indptr[:-1], positives.count()
    if positives.relation is not None:
        items, starts = items[positives.relation == POSITIVE], offsets(counts)[:-1]
    place = (generator.random(len(anchors)) * counts[anchors]).astype(np.int64)
    return np.asarray(items[starts[anchors] + place])
