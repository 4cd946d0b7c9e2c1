"""Known positives to fit with, and known positives to hide: what is hidden stands for what nobody labelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay import _rows as rows
from naysay.checks import check_number, public, raise_invalid
from naysay.positives import POSITIVE, Positives
from naysay.rng import key_from, rng_for


@final
@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Known pairs in two parts of the same sizes and names.

    Args:
        kept: All that stays known, ignored pairs included: fit, train and exclude with these.
        hidden: Positives that are to be treated as if nobody knew them.
    """

    kept: Positives
    hidden: Positives


@public
def split_known(positives: Positives, share: float = 0.1, *, rng: np.random.Generator) -> Split:
    """Hide a share of the positives of each anchor that has several; every anchor keeps at least one.

    Of c positives floor(c share + u) are hidden, u being uniform in [0, 1) for each anchor: c share on average, each
    of them as likely as the others, at most c - 1. An anchor with one positive keeps it, so what is hidden speaks of
    anchors with several. O(pairs log pairs).

    Args:
        positives: What is known.
        share: How much of it to hide, above 0 and below 1.
        rng: Chooses them.

    Example:
        >>> known = Positives.from_pairs([0, 0, 0, 0, 1], [3, 5, 6, 8, 3])
        >>> split = split_known(known, 0.5, rng=np.random.default_rng(0))
        >>> len(split.kept), len(split.hidden), split.hidden.count().tolist()
        (3, 2, [2, 0])
    """
    if not isinstance(positives, Positives):
        raise_invalid("positives", "a Positives", type(positives).__name__)
    part = check_number("share", share)
    if not 0 < part < 1:
        raise_invalid("share", "above 0 and below 1", part)
    chance = rng_for(int(key_from(rng)))
    counts = positives.count()
    wanted = np.minimum(np.floor(counts * part + chance.random(len(counts))), np.maximum(counts - 1, 0))
    order = chance.random(len(positives))
    if positives.relation is not None:
        order[positives.relation != POSITIVE] = 1.0  # above any random number: ignored pairs come last, and stay
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
        rows.offsets(np.bincount(anchors[chosen], minlength=positives.n_anchors)),
        positives.indices[chosen],
        positives.n_items,
        relation=relation if mixed else None,
        anchor_names=positives.anchor_names,
        item_names=positives.item_names,
    )


def one_of_each(positives: Positives, anchors: NDArray[np.int64], chance: np.random.Generator) -> NDArray[Any]:
    """(B,) one positive of each anchor, all as likely; every anchor has one."""
    items = positives.indices
    starts, counts = positives.indptr[:-1], positives.count()
    if positives.relation is not None:
        items, starts = items[positives.relation == POSITIVE], rows.offsets(counts)[:-1]
    place = (chance.random(len(anchors)) * counts[anchors]).astype(np.int64)
    return np.asarray(items[starts[anchors] + place])
