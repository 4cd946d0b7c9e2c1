"""mine: the best negatives in a corpus. Embeddings in, ids out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, refuse
from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import Calibrated
from naysay.detectors.hold_out import one_per_anchor
from naysay.detectors.slots import LINE
from naysay.mining import requests
from naysay.mining.auto import ALPHA, Background, background, by_shares, calibrated, shares_sentence
from naysay.mining.backfill import ON_SHORT
from naysay.mining.collect import collect
from naysay.mining.deepen import deepened
from naysay.mining.finish import HELD_OUT, SAMPLED, finish
from naysay.mining.found import Found
from naysay.mining.judge import judge as judged
from naysay.mining.judge import lines_of
from naysay.mining.known import kinds_of, known_of, one_each
from naysay.mining.mined import Finish, Mined, notes_of, slots_of
from naysay.mining.pair_scores import pair_scores
from naysay.mining.rescore import ScorePairs
from naysay.mining.rescore import rescore as rescored
from naysay.mining.search import search
from naysay.mining.vectors import open_vectors
from naysay.mining.window import floor as floored
from naysay.mining.window import window
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.types import Query


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
    twins: Any = None,
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
    engine: str = "auto",
    budget: int | None = None,
    threads: int | None = None,
) -> Mined:
    """Find k hard negatives for each query: near, but not known and not likely to be positives.

    queries, corpus   (n, d) and (N, d): NumPy, torch, or files of vectors; any encoder, any modality
    positives         what is known: Positives (anchor = query row, item = corpus row), two arrays (anchors, items), the
                      one positive of each query (n,), -1 none; or None
    k                 a number, (n,) of them, or "auto": as many as lie between the hard floor and the false ceiling of
                      each anchor, at most `most`. The ceiling is the judge's line; the floor is `floor`, the judge's
                      own `low` if it is `Bands`, else the score that 5.1 % of all pairs reach
    metric            "cosine", "dot" or "l2"; higher scores are closer
    judge             "auto", None, a detector, or {name: detector}; see below
    seed              of everything that is drawn
    ignore            pairs that are neither positive nor negative, in the same forms as positives
    same_ids          whether query i is corpus row i, as in pairs of sentences or in a graph: then it is no negative
    twins             a detector such as `Twins`, the texts of the corpus, or (corpus texts, query texts)
    depth             how many candidates are searched for each query; by default the larger of 4 k and 100, and ranks
                      that are skipped on top. Known pairs do not count: the search leaves them out
    sources           {name: (n, m) ids, or what has ids}: candidates of other retrievers, the best first, -1 empty.
                      They are scored by the vectors; their ranks are those in their own list
    ranks             (first, last): the window of ranks, from 1, before anything is dropped; last may be None
    floor             the lowest score of a negative
    rescore           score_pairs(anchors (p,), ids (p,)) -> (p,): a better score, asked for in batches, within
                      `rescore_budget` pairs; one positive of each anchor is scored first
    select            "top", "random", "softmax" (temperature), "spread", "groups" (groups), "mmr" (balance)
    quotas            {source: how many}; the search is called "search". Their sum is k
    on_short          what an anchor with fewer than k gets: "pad", "drop", "relax", "random" or "raise"
    engine, budget, threads   of the search

    What happens, in order; each stage is a function of its own, and counts what it drops:

        search -> join -> exclude -> window, floor -> rescore -> judge -> select -> backfill

    judge="auto" is `Calibrated(alpha=0.05)`, fitted on one known positive of each anchor, if at least 19 anchors have
    one; else `Bands` by the default shares of all pairs. **The bound of Calibrated is about positives that the encoder
    was not trained on.** Where it was trained on these, their scores are too high, so is the line, and more than 5 % of
    unlabelled positives get through: hold some out, and pass judge=Calibrated(0.05).fit(their scores). A `Calibrated`
    that is not fitted is fitted here, at its own alpha. Whatever was chosen is `mined.rule`.

    judge=None takes the nearest: nothing is suspected, and twins are kept. Known positives, ignored pairs and the
    anchor itself stay out all the same. With a judge, candidates whose vector equals that of a positive (or of the
    anchor, with same_ids) are dropped as twins; texts tell more of them.

    A judge by scores, `Calibrated` and `Bands` among them, may suspect all that a search of the default depth finds.
    Then it is searched further for that anchor alone, up to 16,384 deep: its candidates are those that come after the
    suspected ones, which are counted. With `depth`, `ranks`, `rescore` or another judge there is one search at one
    depth. An anchor that is short afterwards is counted, and a note says how deep to search.

    The same arguments give the same bytes, whatever the engine, the budget and the threads.

    >>> vectors = np.array([[1, 0], [0.9, 0.1], [0.8, 0.3], [0, 1]], np.float32)
    >>> mined = mine(vectors[:1], vectors, [0], 2, judge=None)
    >>> mined.ids.tolist(), mined.rank.tolist(), mined.dropped["positive"].tolist()
    ([[1, 2]], [[2, 3]], [1])
    """
    owner = "mine"
    asking, held = open_vectors(owner, "queries", queries), open_vectors(owner, "corpus", corpus)
    requests.check_vectors(owner, asking, held, metric)
    known = known_of(owner, positives, ignore, asking.n, held.n, same_ids=same_ids)
    counts = requests.read_k(owner, k, asking.n, most)
    requests.check_judge(owner, judge, twins, rescore, known, auto_k=counts is None)
    lists = requests.read_sources(owner, sources, asking.n, held.n)
    options: dict[str, Any] = {"temperature": temperature, "groups": groups, "balance": balance}
    names = (requests.SEARCH, *lists)
    requests.check_selection(owner, select, options, quotas, counts, names, held.n)
    labelled = int(np.count_nonzero(known.count()))
    requests.check_stages(owner, ranks, floor, rescore, rescore_budget, rescore_batch, labelled)
    check_one_of(owner, "on_short", on_short, ON_SHORT)
    twin_detector = requests.read_twins(owner, twins, known, same_ids=same_ids)
    width = most if counts is None else int(k if np.ndim(k) == 0 else counts.max(initial=0))
    deep = requests.read_depth(owner, depth, width, held.n, ranks)
    pick = rng_for(seed, HELD_OUT)
    vectors = asking.rows(0, asking.n) if twin_detector is not None or not isinstance(judge, str | None) else None
    query = Query(np.arange(asking.n), positives=one_each(known), vectors=vectors)
    if not (judge is None or isinstance(judge, str) or (isinstance(judge, Calibrated) and judge.n == 0)):
        lines_of(judge, query)  # a judge that lacks an anchor's positive refuses now, not after the search

    def look(rows: Any, deep: int, exclude: Positives) -> Found:
        return search(rows, held, deep, metric=metric, exclude=exclude, engine=engine, budget=budget, threads=threads)

    found = look(asking, deep, Positives(known.indptr, known.indices, held.n, filter=known.filter))
    whose, which = known.pairs()
    known_scores = pair_scores(asking, held, whose, which, metric)
    positive = kinds_of(known, same_ids=same_ids)["positive"]
    one = np.flatnonzero(positive)[one_per_anchor(whose[positive], rng=pick)] if labelled else np.empty(0, np.int64)
    least, sample = floor, None
    by_share = isinstance(judge, str) and rescore is None and calibrated(ALPHA, known_scores[one]) is None
    if by_share or (counts is None and floor is None and not isinstance(judge, Bands)):
        sample = background(asking, held, known, metric, rng_for(seed, SAMPLED))
    if counts is None and floor is None:
        least = judge.low if isinstance(judge, Bands) or sample is None else by_shares(sample).low
    detector, rule, skipped = None, "", None
    if rescore is None:
        detector, rule = _decided(owner, judge, known_scores[one], sample)
        if detector is not None and depth is None and ranks is None and not np.isnan(lines_of(detector, query)).any():
            wanted = np.full(asking.n, most) if counts is None else counts
            found, skipped = deepened(found, look, asking, known, detector, query, wanted, least)
    candidates = collect(
        found,
        lists,
        asking,
        held,
        known,
        known_scores,
        metric,
        skipped=skipped,
        same_ids=same_ids,
        equal_vectors=judge is not None,
        twins=twin_detector,
        query=query,
    )
    if ranks is not None:
        candidates = window(candidates, *ranks)
    if least is not None:
        candidates = floored(candidates, least)
    if rescore is not None:
        pairs = whose[one], which[one]
        candidates = rescored(candidates, rescore, positives=pairs, budget=rescore_budget, batch=rescore_batch)
        detector, rule = _decided(owner, judge, candidates.positive_scores[whose[one]], sample)
    if detector is not None:
        candidates = judged(candidates, detector, query=query)
    ending: Finish = partial(
        finish,
        counts=counts,
        most=most,
        how=select,
        **options,
        quotas=quotas,
        on_short=on_short,
        seed=seed,
        queries=asking,
        corpus=held,
        metric=metric,
        known=known,
        query=query,
        rescore=rescore,
        batch=rescore_batch,
    )
    after, wanted = ending(candidates, detector)
    return Mined(
        **slots_of(after, width if counts is not None else int(wanted.max(initial=0))),
        positive_scores=after.positive_scores,
        thresholds=np.full(asking.n, np.nan) if detector is None else lines_of(detector, query),
        counts=wanted,
        rule=rule,
        judge=detector,
        line=LINE,
        candidates=after,
        known=known,
        known_scores=None if rescore is not None else known_scores,
        depth=deep,
        metric=metric,
        notes=notes_of(after, wanted, deep, held.n),
        query=query,
        _auto_k=counts is None,
        _before=candidates,
        _finish=ending,
    )


def _decided(owner: str, judge: Any, scores: NDArray[np.float32], sample: Background | None) -> tuple[Any, str]:
    """The detector and what it does, in a sentence.

    scores   one known positive of each anchor;  sample  of all pairs, where the line is by shares
    """
    if judge is None:
        return None, "Nothing is suspected: the nearest are taken."
    unfitted = isinstance(judge, Calibrated) and judge.n == 0
    if not isinstance(judge, str) and not unfitted:
        return judge, judge.describe() if isinstance(judge, Calibrated) else f"Suspected by {judge!r}."
    alpha = judge.alpha if isinstance(judge, Calibrated) else ALPHA
    line = calibrated(alpha, scores)
    if line is not None:
        return line, line.describe()
    if unfitted or sample is None:
        refuse(owner, "judge", "another, where all positives score the same", f"{len(scores)} equal scores")
    bands = by_shares(sample)
    return bands, shares_sentence(bands, sample, len(scores), alpha)
