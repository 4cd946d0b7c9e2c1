"""How a job shows what it does: lines without markup, and a bar."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}


def progress_bar(errors: Console) -> Progress:
    """A bar with the time left, on standard error, if that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
