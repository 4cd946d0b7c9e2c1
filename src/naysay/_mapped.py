"""Objects mapped from a folder are sent to other processes of the machine as its path: all share one copy in memory."""

from __future__ import annotations

import os
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from naysay.checks import raise_invalid

Mapped = tuple[str, tuple[Any, ...]]


def stamped(path: str | Path) -> Mapped:
    """The absolute path of a folder, and its files with their numbers, sizes and times; none if it is gone.

    These change if a file is replaced.
    """
    folder = os.path.abspath(path)
    try:
        with os.scandir(folder) as files:
            found = [(file.name, file.stat()) for file in files]
    except OSError:
        return folder, ()
    return folder, tuple(sorted((name, at.st_ino, at.st_size, at.st_mtime_ns) for name, at in found))


def send_by_path(kind: type[Any]) -> None:
    """Send mapped objects of a class to other processes by their path, as long as the folder is the same.

    The class has `_loaded(path, mmap, check)` and `_mapped`: what `stamped` returned as it was mapped, or None. Only
    multiprocessing uses this (spawned workers, queues): a pickle in a file has the arrays themselves.
    """
    ForkingPickler.register(kind, _by_path)


def _by_path(mapped: Any) -> Any:
    if mapped._mapped is None or stamped(mapped._mapped[0]) != mapped._mapped:
        return mapped.__reduce_ex__(2)
    return _mapped_again, (type(mapped), *mapped._mapped)


def _mapped_again(kind: Any, path: str, files: tuple[Any, ...]) -> Any:
    if stamped(path) != (path, files):
        raise_invalid(
            "path", "the folder that was mapped", f"{path!r}, which is gone or was replaced", "Load it again."
        )
    return kind._loaded(path, mmap=True, check=False)
