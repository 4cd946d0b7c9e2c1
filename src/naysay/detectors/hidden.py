"""Hide known positives, and estimate how many false negatives a detector finds by how many of them it finds."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay._slots import Score, check_score, score_slots, where
from naysay.arrays import is_torch, to_numpy
from naysay.checks import check_bool, check_kind, check_number, public, raise_invalid
from naysay.detectors._pairs import Embed, check_function
from naysay.detectors._slots import (
    check_query_and_negatives,
    query_anchors,
    query_rows,
    suspicion_of,
    threshold_of,
)
from naysay.detectors.evaluate import check_threshold
from naysay.detectors.rate import CONFIDENCE, check_confidence, exact_interval
from naysay.detectors.share import Share
from naysay.errors import NaysayError
from naysay.positives import POSITIVE, Positives
from naysay.rng import key_from, rng_for
from naysay.types import Detector, Negatives, Query, check_query, positive_ids

_ASSUMPTIONS = (
    "unlabelled positives are like the hidden ones: which pairs are known is random, and so is which are hidden",
    "encoder and detector were fitted without the hidden pairs",
    "anchors are independent of each other",
)


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Known pairs in two parts, with the same sizes and names. `split_known` makes it.

    Args:
        kept: The pairs that stay known, ignored pairs included: fit, train and exclude with these.
        hidden: The positives to treat as unknown.
    """

    kept: Positives
    hidden: Positives


@public
def split_known(positives: Positives, share: float = 0.1, *, rng: np.random.Generator, keep_one: bool = False) -> Split:
    """Hide a share of the positives, each with the same probability, whatever else its anchor has.

    Of c positives of an anchor floor(c share + u) are hidden, u uniform in [0, 1): c share on average. So hidden
    positives represent all known ones, and an anchor with one positive may lose it. O(pairs log pairs).

    Args:
        positives: The known positives.
        share: The share to hide, above 0 and below 1.
        rng: The generator of the choice.
        keep_one: Whether every anchor keeps at least one positive, for detectors that need it. Hidden positives then
            represent anchors with several only, which are often easier, and `hidden_positives` promises too much.

    Examples:
        >>> known = Positives.from_pairs([0, 0, 0, 0, 1], [3, 5, 6, 8, 3])
        >>> split = split_known(known, 0.5, rng=np.random.default_rng(0))
        >>> len(split.kept), len(split.hidden), split.hidden.count().tolist()
        (2, 3, [2, 1])
    """
    check_kind("positives", positives, Positives, "a Positives")
    part = check_number("share", share, above=0, below=1)
    generator = rng_for(int(key_from(rng)))
    counts = positives.count()
    most = np.maximum(counts - 1, 0) if check_bool("keep_one", keep_one) else counts
    wanted = np.minimum(np.floor(counts * part + generator.random(len(counts))), most)
    order = generator.random(len(positives))
    if positives.relation is not None:
        order[positives.relation != POSITIVE] = 1.0  # above any random number: ignored pairs come last, and are kept
    anchors = np.repeat(np.arange(positives.n_anchors), np.diff(positives.indptr))
    ranked = np.lexsort((order, anchors))
    hidden = np.zeros(len(positives), bool)
    hidden[ranked] = np.arange(len(positives)) - positives.indptr[anchors] < wanted[anchors]
    return Split(_part(positives, ~hidden, anchors), _part(positives, hidden, anchors))


@public
def hidden_positives(
    detector: Detector,
    query: Query,
    hidden: Positives,
    *,
    rng: np.random.Generator,
    negatives: Negatives | None = None,
    score: Score | None = None,
    embed: Embed | None = None,
    threshold: float | None = None,
    confidence: float = CONFIDENCE,
) -> Share:
    """Estimate the share of unlabelled positives that a detector flags, from known positives alone.

    **One hidden positive per anchor**, in a slot of its own, so that observations are independent. It counts as often
    as its anchor has hidden positives, because an anchor with twice as many known ones has about twice as many unknown
    ones. The interval is that of Clopper and Pearson at the effective number of observations, (sum w)^2 / sum w^2 of
    these weights: exact where every anchor has as many hidden, also for few anchors and near 0 and 1.

    The hidden positives must be a random part of all positives: `split_known` without `keep_one`. It does not measure
    false alarms: a detector that flags everything scores 1. Cost: one call of the detector with B rows.

    Args:
        detector: A detector that was fitted to `Split.kept`. Neither it nor the encoder may have seen the hidden pairs.
        query: The anchors. Anchors without a hidden positive, and repeated anchors, are left out.
        hidden: The hidden positives, `Split.hidden`.
        rng: The generator that chooses one positive of each anchor. It is unchanged after an error.
        negatives: What a sampler returned for this query, to judge together with the hidden positive, for detectors
            that use the whole row. Ids, scores and vectors are used. None: the hidden positive alone.
        score: score(anchors (B,), ids (B, n)) -> (B, n), for detectors that use scores. It scores all slots.
        embed: embed(ids (B, n)) -> (B, n, d), for detectors that use vectors.
        threshold: A slot is flagged if its suspicion is at least this; by default the detector's own, 0.5 for most.
        confidence: The confidence of the interval.

    Returns:
        The share of hidden positives that are flagged, with its interval.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=300, n_items=200, noise=0.3)
        >>> split = ns.detectors.split_known(world.known, 0.2, rng=ns.rng_for(0))
        >>> class Close:
        ...     def suspicion(self, query, negatives):
        ...         return np.clip(negatives.scores, 0, 1).astype(float)
        >>> query = ns.Query(np.arange(300))
        >>> rate = hidden_positives(Close(), query, split.hidden, rng=ns.rng_for(1), score=world.scores)
        >>> rate.n, round(rate.estimate, 2), round(rate.low, 2), round(rate.high, 2)
        (300, 0.98, 0.96, 0.99)
    """
    check_query(query)
    check_kind("hidden", hidden, Positives, "a Positives", "Pass split_known(positives, rng=rng).hidden.")
    level = check_confidence(confidence)
    limit = threshold_of(detector) if threshold is None else check_threshold(threshold)
    _check_functions(query, negatives, score, embed)
    anchors = query_anchors(query, hidden.n_anchors)
    n_hidden = 0 if query.positives is None else int(hidden.contains(anchors, positive_ids(query)).sum())
    if n_hidden:
        raise_invalid("query.positives", "pairs that are not hidden", f"{n_hidden} hidden", "Use those of Split.kept.")
    chosen = np.sort(np.unique(anchors, return_index=True)[1])
    chosen = chosen[hidden.count(anchors[chosen]) > 0]
    if len(chosen) == 0:
        raise_invalid("hidden", "positives of at least one anchor of the query", "none")
    moved = deepcopy(rng)
    ids = one_of_each(hidden, anchors[chosen], rng_for(int(key_from(moved)))).astype(np.int64)[:, None]
    if negatives is not None:
        ids = np.concatenate([ids, np.asarray(to_numpy(negatives.ids))[chosen]], axis=1)
    rows = query_rows(query, chosen)
    candidates = _candidates(rows, ids, score, embed)
    try:
        suspicion = suspicion_of("detector", detector, rows, candidates)
    except NaysayError as error:
        if error.parameter != "negatives.scores" or candidates.scores is not None:
            raise
        # This function made the negatives, so the detector's own advice does not help.
        raise_invalid("score", "given for a detector that uses scores", None, "Pass a function score(anchors, ids).")
    rng.bit_generator.state = moved.bit_generator.state
    n, weights = len(chosen), hidden.count(anchors[chosen]).astype(np.float64)
    share = float((weights * (suspicion[:, 0] >= limit)).sum() / weights.sum())
    size = float(weights.sum() ** 2 / (weights**2).sum())
    left = f"{len(anchors) - n:,} of {len(anchors):,} rows have no hidden positive, or repeat an anchor: left out"
    notes = (left,) if n < len(anchors) else ()
    interval = exact_interval(share * size, size, level)
    return Share("hidden positives that are flagged", share, *interval, level, n, _ASSUMPTIONS, notes)


def _check_functions(query: Query, negatives: Negatives | None, score: Any, embed: Any) -> None:
    """Raise if negatives have scores or vectors, and no function gives those of the hidden slot."""
    if score is not None:
        check_score(score)
    check_function("embed", embed, "a function embed(ids)")
    if negatives is None:
        return
    check_query_and_negatives(query, negatives)
    for parameter, name, function in (("score", "scores", score), ("embed", "vectors", embed)):
        if getattr(negatives, name) is not None and function is None:
            raise_invalid(parameter, f"given if `negatives` have {name}", None, "The hidden slot needs its own.")


def _candidates(query: Query, ids: NDArray[np.int64], score: Score | None, embed: Embed | None) -> Negatives:
    """The candidates (B, n) of each row, with scores and vectors if there are functions for them."""
    made = Negatives(ids).like(query)
    if score is not None:
        made = replace(made, scores=where(made.ids >= 0, score_slots(score, query, made.ids), 0.0))
    if embed is None:
        return made
    vectors = embed(made.ids.clamp(min=0) if is_torch(made.ids) else np.maximum(made.ids, 0))
    shape = tuple(getattr(vectors, "shape", ()))
    if shape[:2] != made.shape or len(shape) != 3:
        raise_invalid("embed", f"a function that returns shape {(*made.shape, 'd')}", f"shape {shape}")
    return replace(made, vectors=vectors)


def _part(positives: Positives, chosen: NDArray[np.bool_], anchors: NDArray[np.int64]) -> Positives:
    """The chosen pairs, as `Positives` of the same sizes and names."""
    relation = None if positives.relation is None else positives.relation[chosen]
    return Positives(
        offsets(np.bincount(anchors[chosen], minlength=positives.n_anchors)),
        positives.indices[chosen],
        positives.n_items,
        relation=None if relation is None or (relation == POSITIVE).all() else relation,
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
