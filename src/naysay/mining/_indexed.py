"""An index in place of the exact search: built once, its recall measured, and refused where it finds too little."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from naysay.checks import check_number, check_one_of, raise_invalid
from naysay.mining._pipeline import Task

KINDS = ("auto", "ivf", "hnsw")
_LOOKED_AT = 500  # queries whose exact answer is compared
_WANTED = 0.95  # the recall that its effort is set for, on other queries than it is measured on


def check_approximate(approximate: Any, min_recall: float) -> None:
    """Refuse a kind of index that there is not, and a recall that is no share."""
    if approximate is not None:
        check_one_of("approximate", approximate, KINDS)
    if not 0 <= check_number("min_recall", min_recall) <= 1:
        raise_invalid("min_recall", "from 0 to 1", min_recall)


def with_index(
    task: Task, approximate: str | None, min_recall: float, path: Path | None = None
) -> tuple[Task, tuple[str, ...]]:
    """The task with an index, and a note on its recall; the same task and no note where the search is exact.

    Args:
        path: Where the index is kept: opened if it is there, else built and saved, so that a job that goes on has
            the same.
    """
    if approximate is None:
        return task, ()
    from naysay.search.index import Index

    if path is not None and path.exists():
        index = Index.open(path, task.corpus, budget=task.budget, threads=task.threads)
    else:
        index = Index.build(
            task.corpus,
            metric=task.metric,
            kind=approximate,
            seed=task.seed,
            budget=task.budget,
            threads=task.threads,
        )
        index.tune(task.queries, task.depth, min_recall=max(min_recall, _WANTED), sample=_LOOKED_AT, seed=task.seed + 1)
        if path is not None:
            index.save(path)
    recall = index.measure(task.queries, task.depth, sample=_LOOKED_AT, seed=task.seed)
    if recall.value < min_recall:
        advice = "Leave `approximate` out for an exact search, or pass a lower `min_recall`."
        rule = f"an index that finds at least {min_recall:.1%} of the nearest"
        raise_invalid("approximate", rule, f"{recall.value:.1%} of {recall.n:,} queries' nearest", advice)
    note = (
        f"The search was approximate: it finds {recall.value:.1%} of the nearest "
        f"({recall.low:.1%} to {recall.high:.1%} by {recall.n:,} queries)."
    )
    return replace(task, index=index, recall=recall.value), (note,)
