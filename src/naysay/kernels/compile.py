"""The two kinds of compiled function: loops that Python calls, and steps that only such loops call."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
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


def in_python(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The Python function behind a compiled one, to be called without compiling it.

    A step without loops and calls of other steps also works on whole arrays then.
    """
    return cast("Callable[_P, _R]", cast("Any", function).py_func)


def is_cached(loop: Callable[..., Any]) -> bool:
    """Whether a loop was compiled before, here or by another process, as far as files tell."""
    folder, function = cast("Any", loop).stats.cache_path, in_python(loop)
    if folder is None:
        return False
    return any(Path(folder).glob(f"{function.__module__.split('.')[-1]}.{function.__qualname__}-*.nbi"))


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
