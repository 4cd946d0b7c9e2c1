"""The stages of `mine` for some anchors: search, and everything up to the judge; then select and backfill.

What comes out for an anchor depends on the task and on that anchor alone, so that a job can be done in any parts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from naysay.mining._collect import collect
from naysay.mining._deepen import deepened
from naysay.mining._finish import finish
from naysay.mining._pipeline import Rows, Task
from naysay.mining._threshold import Line
from naysay.mining.candidates import Candidates
from naysay.mining.judge import lines_of
from naysay.mining.mined import Finish
from naysay.mining.window import floor, window
from naysay.positives import Positives
from naysay.search.exact import search, search_below
from naysay.search.found import Found


def candidates_of(task: Task, rows: Rows, line: Line) -> Candidates:
    """What is searched, joined, excluded, and within the window and the floor: all that a judge is asked about."""

    def look(queries: Any, depth: int, exclude: Positives, tell: Any = None) -> Found:
        if task.index is not None:
            found: Found = task.index.search(queries, depth, exclude=exclude)
            return found
        return search(
            queries,
            task.corpus,
            depth,
            metric=task.metric,
            exclude=exclude,
            engine=task.engine,
            budget=task.budget,
            threads=task.threads,
            on_progress=tell,
        )

    def below(queries: Any, depth: int, highest: Any, exclude: Positives) -> tuple[Found, Any]:
        options: dict[str, Any] = {"metric": task.metric, "exclude": exclude, "engine": task.engine}
        return search_below(queries, task.corpus, depth, highest, **options, budget=task.budget, threads=task.threads)

    known = rows.known
    plain = Positives(known.indptr, known.indices, task.corpus.n, filter=known.filter)
    found, skipped = look(rows.queries, task.depth, plain, task.tell), None
    by_scores = line.detector is not None and task.rescore is None and task.may_deepen
    if by_scores and not np.isnan(lines_of(line.detector, rows.query)).any():
        wanted = np.full(len(found), task.most) if rows.counts is None else rows.counts
        found, skipped = deepened(
            found,
            look,
            rows.queries,
            plain,
            line.detector,
            rows.query,
            wanted,
            line.low,
            task.slots,
            below if task.index is None else None,
        )
    candidates = collect(
        found,
        rows.lists,
        rows.queries,
        task.corpus,
        known,
        rows.known_scores,
        task.metric,
        rows.kinds,
        skipped=skipped,
        same_ids=task.same_ids,
        equal_vectors=task.judges,
        duplicates=task.duplicates,
        query=rows.query,
    )
    if task.ranks is not None:
        candidates = window(candidates, *task.ranks)
    return candidates if line.low is None else floor(candidates, line.low)


def finish_of(task: Task, rows: Rows) -> Finish:
    """The function from judged candidates to negatives, which another verdict calls again."""
    return partial(
        finish,
        counts=rows.counts,
        most=task.most,
        how=task.select,
        temperature=task.temperature,
        groups=task.groups,
        balance=task.balance,
        quotas=task.quotas,
        on_short=task.on_short,
        seed=task.seed,
        queries=rows.queries,
        corpus=task.corpus,
        metric=task.metric,
        known=rows.known,
        query=rows.query,
        rescore=task.rescore,
        batch=task.rescore_batch,
        first=rows.start,
    )
