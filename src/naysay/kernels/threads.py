"""A thread pool that works after a fork, unlike numba's parallel layer, which fails in forked DataLoader workers.

The number of threads: `set_threads(n)`, else the environment variable NAYSAY_THREADS, else the cores of this process. A
small call runs in the caller's thread, because starting another costs more than the work. Results never depend on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from naysay.checks import check_whole, public, raise_invalid, shown
from naysay.kernels.compile import FIRST_CALLS, in_python

# Below this many elementary steps (about 5 ns each) a second thread costs more than it saves.
_WORTH_A_THREAD = 16_384
# Parts per thread. A thread that is done takes the next part: torch's threads spin for milliseconds after each call,
# and a thread that shares a core with them is half as fast.
_PARTS = 4
_MOST = 1024  # threads; more than that is a mistake, and each takes memory


class _Threads:
    """The pool of this process: made at its first use, discarded after a fork."""

    def __init__(self) -> None:
        self.count: int | None = None
        self.pool: ThreadPoolExecutor | None = None
        if hasattr(os, "register_at_fork"):  # Windows does not fork
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Discard the pool: after a fork its threads exist in the parent only."""
        self.pool = None

    def executor(self) -> ThreadPoolExecutor:
        """The pool, with one thread fewer than the count, because the caller works, too."""
        pool = self.pool
        if pool is None:
            # Two threads may both get here; then each uses its own pool, and one of the two is kept.
            pool = ThreadPoolExecutor(max(1, threads() - 1), thread_name_prefix="naysay")
            self.pool = pool
        return pool


_THREADS = _Threads()


def threads() -> int:
    """The number of threads of a large call."""
    if _THREADS.count is None:
        given = os.environ.get("NAYSAY_THREADS", "")
        if given and not (given.isdecimal() and len(given) < 9 and 1 <= int(given) <= _MOST):
            raise_invalid("NAYSAY_THREADS", f"a whole number from 1 to {_MOST}", shown(given))
        _THREADS.count = int(given) if given else _cores()
    return _THREADS.count


def check_threads(parameter: str, count: object) -> int:
    """Return a number of threads, or raise if it is not a whole number from 1 to 1024."""
    number = check_whole(parameter, count, 1)
    if number > _MOST:
        raise_invalid(parameter, f"at most {_MOST}", shown(number))
    return number


def _cores() -> int:
    """The cores that this process may use; on macOS and Windows all cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@public
def set_threads(count: int) -> None:
    """Set the number of threads for large calls. Results do not depend on it.

    Args:
        count: From 1 to 1024; 1 works in the caller's thread alone.

    Raises:
        NaysayError: If `count` is not a whole number from 1 to 1024.

    Examples:
        >>> set_threads(2)
    """
    _THREADS.count = check_threads("count", count)
    _THREADS.pool = None


def in_rows(loop: Callable[..., Any], rows: int, steps: int, *arguments: Any) -> None:
    """Run `loop(start, stop, *arguments)` over all rows, in parts if there are enough `steps` of work.

    Args:
        loop: A compiled loop that writes only its own rows of its outputs.
        rows: The number of rows.
        steps: The elementary steps of the whole call, which decide on splitting.
        *arguments: Passed on to the loop.
    """
    max_parts = min(max(1, steps // _WORTH_A_THREAD), max(1, rows))
    workers = min(threads(), max_parts)
    if workers == 1:
        loop(0, rows, *arguments)
        return
    parts = workers * min(_PARTS, max_parts // workers)  # as many for each thread: the last to finish decides
    left = iter([(rows * part // parts, rows * (part + 1) // parts) for part in range(parts)])

    def work() -> None:
        for start, stop in left:  # the iterator gives each part once: next() is atomic
            loop(start, stop, *arguments)

    pool = _THREADS.executor()
    others = [pool.submit(work) for _ in range(workers - 1)]
    try:
        work()
    finally:
        late = [other for other in others if not other.cancel()]  # a cancelled one never began
        for other in late:
            other.result()


def draw_in_rows(draw: Callable[..., Any], rows: int, steps: int, *arguments: Any) -> None:
    """`in_rows` for draws. The first small ones of a process run in plain Python: compiling takes seconds."""
    if FIRST_CALLS.take(draw, steps):
        with np.errstate(over="ignore"):
            in_python(draw)(0, rows, *arguments)
    else:
        in_rows(draw, rows, steps, *arguments)
