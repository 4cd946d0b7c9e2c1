"""An audit on a terminal: what to do, the findings, the worst rows, and lines to paste."""

from __future__ import annotations

from math import isnan

from rich.console import Console
from rich.text import Text

from naysay.auditing._terminal_safe import harmless
from naysay.auditing.result import Audit
from naysay.auditing.worst import Worst


def print_audit(found: Audit, console: Console) -> None:
    """All that the command says."""
    width, encoding = max(console.width, 40), console.encoding
    findings, advice = str(found).splitlines()[: -len(found.advice)], found.advice
    console.print(Text(advice[0], style="bold"))
    for sentence in advice[1:]:
        console.print(Text(sentence))
    console.print()
    console.print(Text(harmless(found.name, width, encoding)))
    for line in findings:
        console.print(Text(line.encode(encoding, "replace").decode(encoding)))
    console.print(Text(found.rule))
    if found.worst:
        console.print()
        console.print(Text(f"The {len(found.worst)} worst rows:"))
        for place, each in enumerate(found.worst, 1):
            _print_row(place, each, console, width, encoding)
    console.print()
    for note in found.notes:
        console.print(Text(f"Note: {note}"))
    if found.commands:
        console.print()
        console.print(Text("Next:"))
        for command in found.commands:
            console.print(Text(f"  {command}".encode(encoding, "replace").decode(encoding)), soft_wrap=True)


def _print_row(place: int, each: Worst, console: Console, width: int, encoding: str) -> None:
    """Three lines of text under one that says why."""
    why = "" if each.reason == "none" else f", suspected: {each.reason}"
    console.print(Text(f"{place}. score {_number(each.score)}, its positive {_number(each.positive_score)}{why}"))
    for name in ("anchor", "positive", "negative"):
        text = harmless(getattr(each, f"{name}_text"), width - 13, encoding)
        console.print(Text(f"   {name:<9} {text}", no_wrap=True, overflow="ignore"), crop=False)


def _number(score: float) -> str:
    return "unknown" if isnan(score) else f"{score:.4g}"
