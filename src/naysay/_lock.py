"""The lock of a part that learns: one thread can draw while another pushes, and no draw sees a partial change.

    self._lock = Lock()            # in __init__
    with self._lock:               # around every read and every change of the state
        ...

While it holds its lock, a part reads and writes its own arrays, also in compiled loops. A part that is made of others
may call their methods, too. Those were made earlier, so locks are always taken from the newest to the oldest, and no
two threads wait for each other.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from typing import Any, final


@final
class Lock:
    """A reentrant lock. A copy, a pickle and a forked process get a new lock that is free."""

    def __init__(self) -> None:
        self._lock, self._number = threading.RLock(), next(_NUMBERS)
        with _REGISTRY:
            _ALL.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return Lock, ()


_ALL: weakref.WeakSet[Lock] = weakref.WeakSet()
_REGISTRY = threading.RLock()
_HELD: list[Lock] = []
_NUMBERS = itertools.count()


def _hold_all() -> None:
    """Take every lock before a fork: the child then has complete states, and no lock of a thread that it lacks."""
    _REGISTRY.acquire()
    _HELD[:] = sorted(_ALL, key=lambda lock: -lock._number)  # the order in which threads take them
    for lock in _HELD:
        lock.__enter__()


def _free_all() -> None:
    for lock in _HELD:
        lock.__exit__()
    _HELD.clear()
    _REGISTRY.release()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_hold_all, after_in_parent=_free_all, after_in_child=_free_all)
