"""How commands print: text in which control characters do nothing, a bar on a terminal, and plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment

from naysay.text import duration, printable

PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}
_BAR = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
FIRST_LINE, NEXT_LINES = 5.0, 30.0  # seconds until the first plain line, and between two
_LOOK = 0.5  # seconds between two looks at how much is done


class SafeConsole(Console):
    """Rich's console, which escapes control characters in all text: a file name cannot move the cursor."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The parts of a text, with control characters escaped. Rich's own codes are no text."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(printable(part.text), part.style)


@contextmanager
def progress_on(
    console: Console, columns: tuple[ProgressColumn, ...] = _BAR, *, transient: bool = True
) -> Iterator[Progress]:
    """Show the progress of a task: as a bar on a terminal, elsewhere as a plain line from time to time.

    Lines come after `FIRST_LINE`, then every `NEXT_LINES`, also while no progress is made: a log shows that work goes
    on.
    Of progress within progress, only the inner one is printed. A quiet console gets nothing.
    """
    shown_as_bar = console.is_terminal
    with Progress(*columns, console=console, transient=transient, disable=not shown_as_bar) as progress:
        if shown_as_bar or console.quiet:
            yield progress
            return
        lines = _Lines(progress)
        _PRINTING.append(lines)
        lines.thread.start()
        try:
            yield progress
        finally:
            lines.ended.set()
            lines.thread.join()
            _PRINTING.remove(lines)


@final
@dataclass(frozen=True, slots=True)
class _Start:
    """The beginning of a phase, from which its speed is measured. What was kept of another run came before."""

    description: str
    seconds: float
    completed: float


@final
class _Lines:
    """A thread that prints what a task does, how much is done, and how long is left."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.ended = progress, threading.Event()
        self.thread = threading.Thread(target=self._run, name="naysay-progress", daemon=True)

    def _run(self) -> None:
        began = time.monotonic()
        next_line = began + FIRST_LINE
        phase: _Start | None = None
        while not self.ended.wait(_LOOK):
            task = next(iter(self.progress.tasks), None)
            if task is None:
                continue
            now = time.monotonic()
            if phase is None or phase.description != task.description or task.completed < phase.completed:
                phase = _Start(task.description, now, task.completed)
            if now < next_line:
                continue
            next_line = now + NEXT_LINES
            if _PRINTING[-1] is self:
                self.progress.console.print(_line(phase, task.completed, task.total, now, now - began), **PLAIN)


_PRINTING: list[_Lines] = []  # the innermost is the last


def _line(phase: _Start, completed: float, total: float | None, now: float, so_far: float) -> str:
    """'mining: 1,200 of 8,000, 2 min so far, about 9 min left'."""
    parts = [f"{duration(so_far)} so far"]
    if total:
        parts.insert(0, f"{int(completed):,} of {int(total):,}")
        done = completed - phase.completed
        if done > 0:
            parts.append(f"about {duration((now - phase.seconds) * (total - completed) / done)} left")
    return f"{phase.description}: {', '.join(parts)}"
