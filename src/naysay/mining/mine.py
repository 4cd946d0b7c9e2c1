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

    judge="auto" takes the first of these that the data allow; `mined.rule` says which, why, and what it leaves:

    1. the nearest, nothing dropped, where the estimate of false negatives is above `false_share` and cannot be told
       from a weak encoder with complete labels;
    2. the cut of a `Posterior`, fitted to the nearest candidates and one known positive of each of at most 2,000
       anchors, that leaves an estimated share of false negatives of `false_share` at most; and candidates that score
       above 95 % of their anchor's positive are dropped, too;
    3. the 95 % rule alone, where there is no posterior, as with `rescore`;
    4. `Bands` with the default shares of all pairs, where there are no positives.

    By labels alone the first three cannot be certain: a review of some 100 pairs settles it (`reviewed`). A
    `Calibrated` that is not fitted is fitted here, with its own alpha; its guarantee is about positives that the
    encoder was not trained on.

    judge=None takes the nearest: nothing is suspected, and duplicates are kept. Known positives, ignored pairs and the
    anchor itself are left out all the same. With a judge, candidates whose vector equals that of a positive (or of the
    anchor, with same_ids) are dropped as duplicates; with texts (`duplicates`) more of them are found.

    The search finds k + 2 candidates of each anchor without a judge, max(4 k, 52) with one, and max(4 k, 100) where
    something other than the highest scores decides. Anchors that are short are searched again, four times as deep each
    time, until they have k negatives or the corpus ends. With `depth` there is one search, to that depth; an anchor
    that is short afterwards is counted, and a note says how deep to search.

    The same arguments give the same bytes, whatever the engine, the budget and the threads.

    Args:
        queries: (n, d) vectors of any encoder: NumPy, torch, Arrow, or a .npy, .safetensors or .parquet file.
        corpus: (N, d) vectors, the same.
        positives: Known positives: `Positives` (anchor = query row, item = corpus row), two arrays (anchors, items),
            (n,) the one positive of each query with -1 for none, or None.
        k: Number of negatives: one for all, (n,) one for each, or "auto": as many as the judge does not drop and reach
            the lowest useful score, at most `max_k`. The lowest useful score is `min_score`, the judge's own
            `low` if it is `Bands`, else the score that 5.1 % of all pairs reach.
        options: All other keywords are the fields of `MiningOptions`.

    Returns:
        The negatives, as `Mined`.

    Raises:
        NaysayError: If an argument is invalid; before anything is searched.
        TypeError: If a keyword is unknown.

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
