"""Our own threads. numba's parallel layer dies in a forked DataLoader worker; this pool is rebuilt there.

How many: `set_threads(n)`, else the environment's NAYSAY_THREADS, else the cores this process may use. A small
call runs in the caller's thread, because waking another costs more than the work. Results never depend on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from naysay.checks import check_whole, public, raise_invalid

# Below this many elementary steps (about 5 ns each) a second thread costs more than it brings.
_WORTH_A_THREAD = 16_384
# Parts for each thread. Whoever is done takes the next: torch's threads wait for work by spinning, for milliseconds
# after each of its calls, and one of ours that shares a core with them gets half as far.
_PARTS = 4


class _Threads:
    """The pool of this process: made when first needed, forgotten after a fork."""

    def __init__(self) -> None:
        self.count: int | None = None
        self.pool: ThreadPoolExecutor | None = None
        if hasattr(os, "register_at_fork"):  # Windows does not fork
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Drop the pool: after a fork its threads exist in the parent only."""
        self.pool = None

    def executor(self) -> ThreadPoolExecutor:
        """The pool, one thread fewer than the count: the caller works too."""
        pool = self.pool
        if pool is None:
            # Two threads may both come here; each then uses a whole pool and one of the two is kept.
            pool = ThreadPoolExecutor(max(1, threads() - 1), thread_name_prefix="naysay")
            self.pool = pool
        return pool


_THREADS = _Threads()


def threads() -> int:
    """How many threads a large call is split over."""
    if _THREADS.count is None:
        asked = os.environ.get("NAYSAY_THREADS", "")
        if asked and not (asked.isdecimal() and int(asked) >= 1):
            raise_invalid("NAYSAY_THREADS", "a whole number of at least 1", repr(asked))
        _THREADS.count = int(asked) if asked else _cores()
    return _THREADS.count


def _cores() -> int:
    """The cores this process may use; where the system does not say (macOS, Windows), all of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@public
def set_threads(count: int) -> None:
    """Split large calls over `count` threads from now on; 1 works in the caller's thread alone."""
    _THREADS.count = check_whole("count", count, 1)
    _THREADS.pool = None


def in_rows(loop: Callable[..., Any], rows: int, steps: int, *arguments: Any) -> None:
    """Run `loop(start, stop, *arguments)` over all rows, in parts if `steps` of work are worth it.

    Args:
        loop: A compiled loop that touches only its own rows of its outputs.
        rows: How many rows there are.
        steps: The elementary steps of the whole call, for the decision to split.
    """
    most = min(max(1, steps // _WORTH_A_THREAD), max(1, rows))
    workers = min(threads(), most)
    if workers == 1:
        loop(0, rows, *arguments)
        return
    parts = min(_PARTS * workers, most)
    left = iter([(rows * part // parts, rows * (part + 1) // parts) for part in range(parts)])

    def work() -> None:
        for start, stop in left:  # each part is given out once: taking the next is one step of the interpreter
            loop(start, stop, *arguments)

    pool = _THREADS.executor()
    others = [pool.submit(work) for _ in range(workers - 1)]
    try:
        work()
    finally:
        late = [other for other in others if not other.cancel()]  # one that never began has nothing left to do
        for other in late:
            other.result()
