"""How many false negatives a detector finds, without labels of them: hide known positives among the candidates."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy
from naysay.checks import check_range, public, raise_invalid
from naysay.detectors._intervals import CONFIDENCE, check_confidence, exact_interval
from naysay.detectors._slot_truth import answered
from naysay.detectors._slots import LINE, check_asked, query_rows
from naysay.detectors.evaluate import check_line
from naysay.detectors.share import Share
from naysay.detectors.split_known import one_of_each
from naysay.errors import NaysayError
from naysay.positives import Positives
from naysay.rng import key_from, rng_for
from naysay.samplers._scored import Score, check_score, score_slots
from naysay.types import Array, Detector, Negatives, Query, anchor_ids, check_query, positive_ids

_ASSUMPTIONS = (
    "unlabelled positives are like the hidden ones: which pairs are known is chance",
    "encoder and detector were fitted without the hidden pairs",
    "anchors are independent of each other",
)


@public
def hidden_positives(
    detector: Detector,
    query: Query,
    hidden: Positives,
    *,
    rng: np.random.Generator,
    negatives: Negatives | None = None,
    score: Score | None = None,
    embed: Callable[[Array], Array] | None = None,
    line: float = LINE,
    confidence: float = CONFIDENCE,
) -> Share:
    """An estimate of the mean true positive rate (MTPR) that needs no label but those there are.

    **One hidden positive for each anchor**, in a slot of its own. The looks are then independent, each a hit with the
    anchor's own rate, and the mean rate over anchors is the MTPR: so the interval of Clopper and Pearson is exact, also
    for few anchors and near 0 and 1, where a bootstrap over anchors with several hidden positives each is not.

    What it cannot see is the other half: a detector that flags everything scores 1. Look at how many candidates it
    flags, or at `false_negative_rate` of what is left. Cost: one question of B rows.

    Args:
        detector: Fitted on what `split_known` kept, never on what it hid; nor may the encoder have seen these
            pairs.
        query: The anchors to ask about; those without a hidden positive are left out, as is an anchor's second row.
        hidden: The hidden positives, `Split.hidden`.
        rng: Chooses one of each anchor; a refusal leaves it where it was.
        negatives: What a sampler gave for this query, to be asked about along with the hidden one: for detectors
            that look at the row as a whole. Their ids, scores and vectors are shown. None: the hidden one is alone.
        score: Score(anchors (B,), ids (B, n)) -> (B, n), for detectors that look at scores; scores all slots.
        embed: Embed(ids (B, n)) -> (B, n, d), for detectors that look at vectors.
        line: A slot is flagged where its suspicion is at least this.
        confidence: Of the interval.

    Example:
        >>> import naysay as ns
        >>> from naysay.detectors.split_known import split_known
        >>> world = ns.planted_world(n_anchors=300, n_items=200, noise=0.3)
        >>> split = split_known(world.known, 0.2, rng=ns.rng_for(0))
        >>> class Close:
        ...     def suspicion(self, query, negatives):
        ...         return np.clip(negatives.scores, 0, 1).astype(float)
        >>> query = ns.Query(np.arange(300))
        >>> found = hidden_positives(Close(), query, split.hidden, rng=ns.rng_for(1), score=world.scores)
        >>> found.n, round(found.estimate, 2), round(found.low, 2), round(found.high, 2)
        (300, 0.98, 0.96, 0.99)
    """
    check_query(query)
    if not isinstance(hidden, Positives):
        raise_invalid("hidden", "a Positives", type(hidden).__name__, "Pass split_known(positives, rng=rng).hidden.")
    level, limit = check_confidence(confidence), check_line(line)
    _check_shown(query, negatives, score, embed)
    anchors = anchor_ids(query)
    if anchors.ndim != 1:
        raise_invalid("query.anchors", "of shape (B,)", f"shape {anchors.shape}")
    check_range("query.anchors", anchors, hidden.n_anchors, "anchors")
    if query.positives is not None and hidden.contains(anchors, positive_ids(query)).any():
        told = int(hidden.contains(anchors, positive_ids(query)).sum())
        raise_invalid("query.positives", "pairs that are not hidden", f"{told} hidden", "Take them from Split.kept.")
    chosen = np.sort(np.unique(anchors, return_index=True)[1])
    chosen = chosen[hidden.count(anchors[chosen]) > 0]
    if len(chosen) == 0:
        raise_invalid("hidden", "positives of at least one anchor of the query", "none")
    moved = deepcopy(rng)
    items = one_of_each(hidden, anchors[chosen], rng_for(int(key_from(moved))))
    asked = query_rows(query, chosen)
    shown = _shown(asked, items, chosen, negatives, score, embed)
    try:
        suspicion = answered(detector, asked, shown)
    except NaysayError as refusal:
        if "`negatives.scores` must be given" not in str(refusal):
            raise
        # It is this function that made the negatives, so the detector's own advice is of no use.
        raise_invalid("score", "given for a detector that looks at scores", None, "Pass score=score(anchors, ids).")
    rng.bit_generator.state = moved.bit_generator.state
    flagged = int((suspicion[:, 0] >= limit).sum())
    n = len(chosen)
    low, high = exact_interval(flagged, n, level)
    left = f"{len(anchors) - n:,} of {len(anchors):,} rows have no hidden positive, or repeat an anchor: left out"
    notes = (left,) if n < len(anchors) else ()
    return Share("hidden positives that are flagged", flagged / n, low, high, level, n, _ASSUMPTIONS, notes)


def _check_shown(query: Query, negatives: Negatives | None, score: Any, embed: Any) -> None:
    """Refuse negatives with scores or vectors that the hidden slot could not have."""
    for name, function in (("score", score), ("embed", embed)):
        if function is not None and name == "score":
            check_score(function)
        elif function is not None and not callable(function):
            raise_invalid(name, "a function embed(ids)", type(function).__name__)
    if negatives is None:
        return
    check_asked(query, negatives)
    for name, function in (("scores", score), ("vectors", embed)):
        if getattr(negatives, name) is not None and function is None:
            parameter = "score" if name == "scores" else "embed"
            raise_invalid(parameter, f"given where negatives have {name}", None, "The hidden slot needs its own.")


def _shown(
    asked: Query,
    items: NDArray[Any],
    chosen: NDArray[Any],
    negatives: Negatives | None,
    score: Score | None,
    embed: Callable[[Array], Array] | None,
) -> Negatives:
    """The candidates of each row: the hidden positive first, then what the sampler gave."""
    ids = items.astype(np.int64)[:, None]
    if negatives is not None:
        ids = np.concatenate([ids, np.asarray(to_numpy(negatives.ids))[chosen]], axis=1)
    shown = Negatives(ids).like(asked)
    empty = shown.ids < 0
    if score is not None:
        scores = score_slots(score, asked, shown.ids)
        shown = replace(shown, scores=scores.masked_fill(empty, 0) if is_torch(scores) else np.where(empty, 0, scores))
    if embed is None:
        return shown
    vectors = embed(shown.ids.clamp(min=0) if is_torch(shown.ids) else np.maximum(shown.ids, 0))
    if tuple(getattr(vectors, "shape", ()))[:2] != shown.shape or vectors.ndim != 3:
        got = f"shape {tuple(getattr(vectors, 'shape', ()))}"
        raise_invalid("embed", f"a function that answers with shape {(*shown.shape, 'd')}", got)
    return replace(shown, vectors=vectors)
