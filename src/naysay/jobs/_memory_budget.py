"""How a job fits its budget: how many anchors are mined at a time, and what the search may take of it."""

from __future__ import annotations

from dataclasses import replace

from naysay.checks import raise_invalid
from naysay.mining._pipeline import Task

_SLOT = 200  # bytes of a candidate while the stages sort and judge it
_DEEP = 120  # bytes of one while a deeper search looks at it
_FIXED = 112 << 20  # blocks of vectors and texts, and what the libraries take for themselves
_LEAST = 152 << 20
_ROWS, _PARTS = 4096, 16  # anchors that a part has at least, and parts of a large job, if the budget allows both


def within(task: Task, budget: int) -> tuple[Task, int]:
    """The task with its share of the budget, and how many anchors are mined at a time.

    The search comes before the stages, so each may have nearly all. A large job has 16 parts or more: what a kill
    loses, and what progress is told by; 4,096 anchors are worth a look at the corpus. The result is the same for any.
    """
    slots = task.depth + sum(ids.shape[1] for ids in task.lists.values()) + task.width
    room = 6 * task.depth + 256
    searching = task.depth * 12 + room * 12 + task.corpus.width * 24 + 96
    each = max(slots * _SLOT, searching)
    exact = room * task.corpus.width * 24  # one query's open pairs while they are scored
    needed = max(_LEAST, _FIXED + exact * 2 + each)
    if budget < needed:
        raise_invalid("--budget", f"at least {-(-needed // 1_000_000)}MB for this job", f"{budget / 1e6:g}MB")
    free = budget - _FIXED
    rows = max(1, min(int(0.7 * free) // each, max(_ROWS, -(-task.queries.n // _PARTS))))
    return replace(task, budget=int(0.9 * free), slots=max(task.depth, int(0.4 * free) // _DEEP)), rows
