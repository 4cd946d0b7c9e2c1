"""How many negatives are false, by looking at a few of them."""

from __future__ import annotations

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import public
from naysay.detectors._intervals import CONFIDENCE, check_confidence, exact_interval
from naysay.detectors.judge_some import Judge, verdicts
from naysay.detectors.share import Share
from naysay.types import Negatives, Query


@public
def spot_check(
    query: Query,
    negatives: Negatives,
    judge: Judge,
    m: int = 100,
    *,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> Share:
    """The share of false negatives among `negatives`, from m of them that somebody judges.

    The interval is that of Clopper and Pearson: exact for independent draws, and a little too wide for draws without
    replacement. It speaks of these negatives, whatever they are and however alike those of one anchor are, and needs
    none of the assumptions of `false_negative_rate`. To show a rate below 1 % takes some 300 judgements without a
    single false negative: (1 - 0.01)^300 < 0.05. `judge_some` gives the verdicts themselves, to learn from.

    Args:
        query: A sampler's question and answer, or what is left of it after a policy: slots of `mask` count.
        negatives: A sampler's question and answer, or what is left of it after a policy: slots of `mask` count.
        judge: Judge(anchors (m,), ids (m,)) -> (m,) bool, True for a false negative: a person, a cross-encoder, a
            language model. It is asked once, in NumPy. Of triples it gets (m, 3) and (m, 3), as they are and as
            they are corrupted.
        m: How many to judge, drawn without replacement, all slots as likely. All of them if there are fewer.
        rng: Draws them; a refusal leaves it where it was, so that the same are drawn when it is mended.
        confidence: Of the interval.

    Example:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=200, n_items=100)
        >>> query = ns.Query(np.arange(200))
        >>> drawn = ns.pools.Everything(world.known).draw(query, 10, rng=ns.rng_for(0))
        >>> found = spot_check(query, drawn, lambda anchors, ids: world.is_false_negative(anchors, ids), rng=ns.rng_for(1))
        >>> found.n, found.low < world.false_negative_rate(query.anchors, drawn.ids) < found.high
        (100, True)
    """
    level = check_confidence(confidence)
    found = verdicts(query, negatives, judge, m, rng)
    n, hits = found.n, int(found.truth.sum())
    everything = n == np.count_nonzero(to_numpy(negatives.mask))
    low, high = (hits / n, hits / n) if everything else exact_interval(hits, n, level)
    notes = ("all negatives were judged, so the share is no estimate",) if everything else ()
    return Share("false negatives", hits / n, low, high, level, n, ("the judge is right",), notes)
