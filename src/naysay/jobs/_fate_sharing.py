"""A process that ends all processes of a Ray once the one that started it has ended, however that ended.

Linux ends Ray's first processes with the driver. Its agents are children of these: they try for a minute to report to a
server that has ended. The guard ends what is left at once. A mark in the environment tells the processes of one Ray
from all others: each process inherits it from the one that started it.

This file is run as a program, with the id of the driver and the mark. It imports nothing of naysay, to start at once.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAME = "NAYSAY_STARTED_BY"  # of the mark in the environment
_LOOK, _AGAIN = 0.5, 0.02  # seconds between two looks at the driver, and at the processes that are ended
_LAST = 30.0  # seconds that a job waits for processes that do not end even so


@contextmanager
def guarded() -> Iterator[subprocess.Popen[bytes] | None]:
    """Start a guard of all processes that are started inside; `end_guarded` ends them. None where Linux is not."""
    if sys.platform != "linux":  # Ray has a process of its own for this elsewhere
        yield None
        return
    mark = secrets.token_hex(16)
    words = [sys.executable, "-I", __file__, str(os.getpid()), mark]
    quiet = subprocess.DEVNULL
    # In a session of its own, so that Ctrl-C in a terminal does not end it first.
    guard = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)
    os.environ[_NAME] = mark
    try:
        yield guard
    except BaseException:
        end_guarded(guard)
        raise
    finally:
        del os.environ[_NAME]


def end_guarded(guard: subprocess.Popen[bytes] | None) -> None:
    """End the processes of a guard, and itself."""
    if guard is None:
        return
    with suppress(OSError, subprocess.TimeoutExpired):
        guard.communicate(timeout=_LAST)


def marked(mark: str) -> list[int]:
    """The processes that have a mark in their environment. One that has ended has no environment."""
    wanted, found = f"{_NAME}={mark}".encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if wanted in file.read_bytes().split(b"\0"):
                found.append(int(file.parent.name))
    return found


def main(driver: int, mark: str) -> None:
    """Wait until standard input is closed or the driver has ended, then end all processes with the mark.

    The parent is looked at, too: a process that the driver forked may hold the input open for longer.
    """
    while os.getppid() == driver and not select.select([sys.stdin], [], [], _LOOK)[0]:
        pass
    while found := marked(mark):  # until there is none: one may have started another meanwhile
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_AGAIN)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
