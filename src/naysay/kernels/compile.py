"""The two kinds of compiled function: loops that Python calls, and steps that only such loops call."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import event

_P = ParamSpec("_P")
_R = TypeVar("_R")

# numba takes a loop from its cache while the file of that loop is unchanged. Ours are made of steps from several files:
# a loop that still had an older filter of csr.py inside would return known positives. So the name that numba stores a
# loop under has a hash of all files in it.
_SOURCES = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
_VERSION = hashlib.sha256(_SOURCES).hexdigest()[:12]

# Steps of a loop that run in Python first, at about 10 us each. Compiling a loop takes 2 to 10 s, once for an
# installation; loading it from numba's cache takes half a second, once in a process.
_STEPS = 1 << 17
_STEPS_IF_CACHED = 1 << 13


def compiled(function: Callable[_P, _R], *, reorder: bool = False) -> Callable[_P, _R]:
    """A loop that Python calls: compiled at its first call, cached where that can be, run without the GIL.

    With `reorder` sums may be taken in the order that suits the processor: for training, where it is of no account.
    """
    freedom = {"reassoc", "contract"} if reorder else False
    function.__qualname__ += f".{_VERSION}"
    try:
        loop = numba.njit(cache=True, nogil=True, fastmath=freedom)(function)
    except RuntimeError:  # no folder that may be written, as in a sealed container
        loop = numba.njit(nogil=True, fastmath=freedom)(function)
    return cast("Callable[_P, _R]", loop)


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A step that only compiled loops call; LLVM inlines it."""
    return cast("Callable[_P, _R]", numba.njit(nogil=True, forceinline=True)(function))


@cache
def in_python(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The Python function behind a compiled one, with those behind all that it calls: the same bits, much slower.

    What it calls has to be a name of its module: `from naysay.kernels.csr import shifted`. Overflow has to be ignored.
    """
    plain = cast("Any", function).py_func
    names = dict(plain.__globals__)
    for name in plain.__code__.co_names:
        if hasattr(names.get(name), "py_func"):
            names[name] = in_python(names[name])
    return cast("Callable[_P, _R]", FunctionType(plain.__code__, names, plain.__name__))


def _is_cached(loop: Any) -> bool:
    """Whether a loop was compiled before, here or by another process, as far as files tell."""
    folder, function = loop.stats.cache_path, loop.py_func
    if folder is None:
        return False
    return any(Path(folder).glob(f"{function.__module__.split('.')[-1]}.{function.__qualname__}-*.nbi"))


class _FirstCalls:
    """How many steps of each loop this process may still run in plain Python, which a few small draws are faster by.

    Steps are counted, not timed, so that nothing depends on the speed of a machine.
    """

    def __init__(self) -> None:
        self.left: dict[Any, int] = {}
        self.allowed = True  # benchmarks and tests that need compiled loops at once set it to False

    def take(self, loop: Any, steps: int) -> bool:
        """Whether so many steps may run in Python. If not, the loop is compiled, and no later call may either."""
        if not self.allowed:
            return False
        if loop not in self.left:
            self.left[loop] = _STEPS_IF_CACHED if _is_cached(loop) else _STEPS
        self.left[loop] -= steps
        if self.left[loop] < 0:
            self.left[loop] = 0
            return False
        return True


FIRST_CALLS = _FirstCalls()


class _Message(event.Listener):
    """Tells on a terminal that loops are compiled, the first time in a process that one of ours is."""

    shown = False

    def on_start(self, event: Any) -> None:
        """Print the message; numba calls this when it begins to compile anything."""
        loop = event.data["dispatcher"]
        ours = loop.py_func.__module__.split(".")[0] == __name__.split(".")[0]
        # A progress bar stands before the terminal.
        terminal = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
        if self.shown or not ours or terminal is None or not terminal.isatty():
            return
        self.shown = True
        when = "once for this installation"
        if loop.stats.cache_path is None:
            when = "in each process, unless NUMBA_CACHE_DIR is a folder that can be written"
        sys.stderr.write(f"naysay: compiling loops at their first use, {when}: about 10 to 20 s.\n")

    def on_end(self, event: Any) -> None:
        """Do nothing when it is done."""


event.register("numba:compile", _Message())  # type: ignore[no-untyped-call]
