"""mine: the best negatives in a corpus. Embeddings in, ids out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from naysay.checks import public
from naysay.detectors._slots import SUSPICION_THRESHOLD
from naysay.detectors.calibrated import Calibrated
from naysay.mining import _requests as requests
from naysay.mining._indexed import check_approximate, with_index
from naysay.mining._known import known_of
from naysay.mining._notes import notes_of, tally_of
from naysay.mining._pipeline import task_of
from naysay.mining._rows import candidates_of, finish_of
from naysay.mining._threshold import Line, decide, floor_of, needs_sample, sample_of
from naysay.mining.judge import judge as judged
from naysay.mining.judge import lines_of
from naysay.mining.mined import Mined, slots_of
from naysay.mining.rescore import ScorePairs
from naysay.mining.rescore import rescore as rescored
from naysay.search._pair_scores import pair_scores
from naysay.search.vectors import open_vectors


@public
def mine(
    queries: Any,
    corpus: Any,
    positives: Any,
    k: Any,
    *,
    metric: str = "cosine",
    judge: Any = "auto",
    seed: int = 0,
    ignore: Any = None,
    same_ids: bool = False,
    duplicates: Any = None,
    depth: int | None = None,
    sources: Mapping[str, Any] | None = None,
    ranks: tuple[int, int | None] | None = None,
    floor: float | None = None,
    rescore: ScorePairs | None = None,
    rescore_budget: int | None = None,
    rescore_batch: int = 256,
    select: str = "top",
    temperature: float | None = None,
    groups: Any = None,
    balance: float | None = None,
    quotas: Mapping[str, int] | None = None,
    on_short: str = "pad",
    most: int = 32,
    approximate: str | None = None,
    min_recall: float = 0.9,
    engine: str = "auto",
    budget: int | None = None,
    threads: int | None = None,
) -> Mined:
    """Find k hard negatives for each query: near, but not known and not likely to be positives.

    What happens, in order; each stage is a function of its own, and counts what it drops:

        search -> join -> exclude -> window, floor -> rescore -> judge -> select -> backfill

    judge="auto" is `Calibrated(alpha=0.05)`, fitted on one known positive of each anchor, if at least 19 anchors have
    one; else `Bands` by the default shares of all pairs. **The bound of Calibrated is about positives that the encoder
    was not trained on.** Where it was trained on these, their scores are too high, so is the line, and more than 5 % of
    unlabelled positives get through: hold some out, and pass judge=Calibrated(0.05).fit(their scores). A `Calibrated`
    that is not fitted is fitted here, at its own alpha. Whatever was chosen is `mined.rule`.

    judge=None takes the nearest: nothing is suspected, and duplicates are kept. Known positives, ignored pairs and the
    anchor itself stay out all the same. With a judge, candidates whose vector equals that of a positive (or of the
    anchor, with same_ids) are dropped as duplicates; texts tell more of them.

    A judge by scores, `Calibrated` and `Bands` among them, may suspect all that a search of the default depth finds.
    Then it is searched further for that anchor alone, up to 16,384 deep: its candidates are those that come after the
    suspected ones, which are counted. With `depth`, `ranks`, `rescore` or another judge there is one search at one
    depth. An anchor that is short afterwards is counted, and a note says how deep to search.

    The same arguments give the same bytes, whatever the engine, the budget and the threads.

    Args:
        queries: (n, d) and (N, d): NumPy, torch, or files of vectors; any encoder, any modality.
        corpus: (n, d) and (N, d): NumPy, torch, or files of vectors; any encoder, any modality.
        positives: What is known: Positives (anchor = query row, item = corpus row), two arrays (anchors, items),
            the one positive of each query (n,), -1 none; or None.
        k: A number, (n,) of them, or "auto": as many as lie between the hard floor and the false ceiling of each
            anchor, at most `most`. The ceiling is the judge's line; the floor is `floor`, the judge's own `low` if
            it is `Bands`, else the score that 5.1 % of all pairs reach.
        metric: "cosine", "dot" or "l2"; higher scores are closer.
        judge: "auto", None, a detector, or {name: detector}; see below.
        seed: Of everything that is drawn.
        ignore: Pairs that are neither positive nor negative, in the same forms as positives.
        same_ids: Whether query i is corpus row i, as in pairs of sentences or in a graph: then it is no negative.
        duplicates: A detector such as `Duplicates`, the texts of the corpus, or (corpus texts, query texts).
        depth: How many candidates are searched for each query; by default the larger of 4 k and 100, and ranks that
            are skipped on top. Known pairs do not count: the search leaves them out.
        sources: {name: (n, m) ids, or what has ids}: candidates of other retrievers, the best first, -1 empty. They
            are scored by the vectors; their ranks are those in their own list.
        ranks: (first, last): the window of ranks, from 1, before anything is dropped; last may be None.
        floor: The lowest score of a negative.
        rescore: Score_pairs(anchors (p,), ids (p,)) -> (p,): a better score, asked for in batches, within
            `rescore_budget` pairs; one positive of each anchor is scored first.
        select: "top", "random", "softmax" (temperature), "spread", "groups" (groups), "mmr" (balance).
        quotas: {source: how many}; the search is called "search". Their sum is k.
        on_short: What an anchor with fewer than k gets: "pad", "drop", "relax", "random" or "raise".
        approximate: None: the search is exact. "auto", "ivf" or "hnsw": an index answers, which may miss some
            candidates; its recall is measured on 500 of the queries, is a note, and below `min_recall` the job is
            refused.
        engine: Of the search.
        budget: Of the search.
        threads: Of the search.

    Example:
        >>> vectors = np.array([[1, 0], [0.9, 0.1], [0.8, 0.3], [0, 1]], np.float32)
        >>> mined = mine(vectors[:1], vectors, [0], 2, judge=None)
        >>> mined.ids.tolist(), mined.rank.tolist(), mined.dropped["positive"].tolist()
        ([[1, 2]], [[2, 3]], [1])
    """
    asking, held = open_vectors("queries", queries), open_vectors("corpus", corpus)
    requests.check_vectors(asking, held, metric)
    check_approximate(approximate, min_recall)
    known = known_of(positives, ignore, asking.n, held.n, same_ids=same_ids)
    task = task_of(
        asking,
        held,
        known,
        k,
        requests.read_sources(sources, asking.n, held.n),
        metric=metric,
        judge=judge,
        seed=seed,
        same_ids=same_ids,
        duplicates=duplicates,
        depth=depth,
        ranks=ranks,
        floor=floor,
        rescore=rescore,
        rescore_budget=rescore_budget,
        rescore_batch=rescore_batch,
        select=select,
        temperature=temperature,
        groups=groups,
        balance=balance,
        quotas=quotas,
        on_short=on_short,
        most=most,
        engine=engine,
        budget=budget,
        threads=threads,
    )
    auto_k = task.counts is None
    one = task.held_out()
    whole = task.rows(0, asking.n, np.zeros(len(known), np.float32))
    if not (judge is None or isinstance(judge, str) or (isinstance(judge, Calibrated) and judge.n == 0)):
        lines_of(judge, whole.query)  # a judge that lacks an anchor's positive refuses now, not after the search
    requests.check_numbers(asking, held, metric, threads)
    whose, which = known.pairs()
    known_scores = pair_scores(asking, held, whose, which, metric)
    sample = None
    if needs_sample(judge, known_scores[one], floor, auto_k=auto_k, rescored=rescore is not None):
        sample = sample_of(task)
    low = floor_of(judge, floor, sample, auto_k=auto_k)
    line = Line(None, "", low)
    if rescore is None:
        line = Line(*decide(judge, known_scores[one], sample), low)
    task, notes = with_index(task, approximate, min_recall)
    rows = task.rows(0, asking.n, known_scores)
    candidates = candidates_of(task, rows, line)
    if rescore is not None:
        pairs = whose[one], which[one]
        candidates = rescored(candidates, rescore, positives=pairs, budget=rescore_budget, batch=rescore_batch)
        line = Line(*decide(judge, candidates.positive_scores[whose[one]], sample), low)
    if line.detector is not None:
        candidates = judged(candidates, line.detector, query=rows.query)
    ending = finish_of(task, rows)
    after, wanted = ending(candidates, line.detector)
    return Mined(
        **slots_of(after, int(wanted.max(initial=0)) if auto_k else task.width),
        positive_scores=after.positive_scores,
        thresholds=np.full(asking.n, np.nan) if line.detector is None else lines_of(line.detector, rows.query),
        counts=wanted,
        rule=line.rule,
        judge=line.detector,
        line=SUSPICION_THRESHOLD,
        candidates=after,
        known=known,
        known_scores=None if rescore is not None else known_scores,
        depth=task.depth,
        metric=metric,
        notes=(*notes, *notes_of(tally_of(after, wanted, task.depth), held.n)),
        query=rows.query,
        _auto_k=auto_k,
        _before=candidates,
        _finish=ending,
        _background=partial(sample_of, task) if rescore is None else None,  # of scores of the same kind
    )
