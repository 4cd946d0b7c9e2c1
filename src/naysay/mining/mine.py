"""mine: the best negatives in a corpus. Embeddings in, ids out."""

from __future__ import annotations

from typing import Any

from naysay._options import takes_options
from naysay.checks import public
from naysay.mining.auto import choose_judge
from naysay.mining.mined import Mined
from naysay.mining.options import MiningOptions
from naysay.mining.pipeline import mine_blocks, rescore_all, take_negatives
from naysay.mining.problem import Problem
from naysay.mining.reviewing import choose_reviewed_judge


@public
@takes_options(MiningOptions)
def mine(queries: Any, corpus: Any, positives: Any, k: Any, options: MiningOptions) -> Mined:
    """Find k hard negatives for each query: near, but neither known nor likely positives.

    The stages run in this order, and each counts what it drops:

        search -> exclude -> (rescore) -> judge -> across anchors -> select -> backfill

    judge="auto" leaves at most an estimated `false_share` of false negatives, by a `Posterior` and the rule that drops
    scores above 95 % of the anchor's positive. Where the data do not allow it, a fallback takes its place; `mined.rule`
    says which, why, and what it leaves. judge=None takes the nearest, copies of positives included. Known positives,
    ignored pairs and the anchor itself are always left out. The same arguments give the same bytes, whatever the
    engine, the budget and the threads. See the page on mining for the policies of "auto" and the depth of the search.

    Args:
        queries: (n, d) vectors of any encoder: NumPy, torch, Arrow, or a .npy, .safetensors or .parquet file.
        corpus: (N, d) vectors, the same.
        positives: Known positives: `Positives` (anchor = query row, item = corpus row), two arrays (anchors, items),
            (n,) the one positive of each query with -1 for none, or None.
        k: Number of negatives: one for all, (n,) one for each, or "auto": as many as the judge does not drop and reach
            the lowest useful score, at most `max_k`.
        options: All other keywords are the fields of `MiningOptions`.

    Returns:
        The negatives, as `Mined`.

    Raises:
        NaysayError: If an argument is invalid, before anything is searched. TypeError for an unknown keyword.

    Examples:
        >>> import numpy as np
        >>> vectors = np.array([[1, 0], [0.9, 0.1], [0.8, 0.3], [0, 1]], np.float32)
        >>> mined = mine(vectors[:1], vectors, [0], 2, judge=None)
        >>> mined.ids.tolist(), mined.rank.tolist(), mined.dropped["positive"].tolist()
        ([[1, 2]], [[1, 2]], [1])
    """
    problem = Problem.of(queries, corpus, positives, k, options)  # the only checks
    rescored = None
    if options.rescore is None:
        judge = choose_judge(problem) if options.reviewer is None else choose_reviewed_judge(problem)
        lists = mine_blocks(problem, judge)  # search, exclude, judge: each anchor by itself
    else:
        rescored = rescore_all(problem)  # search, exclude, rescore
        judge = choose_judge(problem, rescored=rescored.positive_scores)
        lists = judge.apply(rescored, problem.query(problem.anchors))
    problem.release()
    chosen, counts = take_negatives(problem, judge, lists)  # across anchors, select, backfill
    return Mined(problem, judge, chosen, counts, rescored=rescored)  # rule, estimate and notes are of what was chosen
