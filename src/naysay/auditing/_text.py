"""An audit in words: a line for each finding."""

from __future__ import annotations

from collections.abc import Mapping

from naysay.auditing.gradient_share import NEGLIGIBLE, Pulls
from naysay.auditing.k_verdict import K_MAX, Quantity
from naysay.auditing.repeats import Repeats
from naysay.detectors.share import Share

_WIDE = 12


def percent(share: float) -> str:
    """A share with two figures that say something: 12.3 %, 1.2 %, 0.012 %."""
    return f"{100 * share:.1f} %" if share >= 0.01 or share == 0 else f"{100 * share:.2g} %"


def counted(count: int, what: str) -> str:
    """'1 negative', '2,000 negatives'."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def entry(name: str, text: str) -> str:
    """A name to the left, and what is said about it."""
    return f"{name:<{_WIDE}} {text}"


def false_text(found: Share, negatives: int) -> str:
    """The share with its interval, and how many slots that is."""
    if found.high >= 1 and found.estimate == found.low:
        return f"{percent(found.low)} proven; {found.notes[0]}" if found.notes else f"{percent(found.low)}, all proven"
    count = round(found.estimate * negatives)
    interval = f"{found.confidence:.0%} interval {percent(found.low)} to {percent(found.high)}"
    return f"at most about {percent(found.estimate)}, {counted(count, 'negative')} ({interval})"


def suspected_text(suspected: int, negatives: int, by: Mapping[str, int]) -> str:
    """How many, and for which reasons."""
    reasons = ", ".join(f"{name} {count:,}" for name, count in by.items())
    return f"{suspected:,} ({percent(suspected / negatives)}){': ' if reasons else ''}{reasons}"


def pulls_texts(found: Pulls | None) -> tuple[str, str]:
    """What is too easy to teach, and the share of the pull of each band."""
    if found is None:
        return ("cannot be told without scores of positives and negatives",) * 2
    easy, whole = found.counts["easy"], sum(found.counts.values())
    rows = f"; in {percent(found.idle)} of the rows all negatives together do" if found.idle else ""
    return (
        f"{easy:,} ({percent(easy / whole)}) pull less than {NEGLIGIBLE:g} at temperature {found.temperature:g}{rows}",
        ", ".join(f"{band} {percent(share)}" for band, share in found.masses.items()),
    )


def repeats_text(found: Repeats) -> str:
    """How much the most common documents take, against chance."""
    most = f"; the most common is a negative of {counted(found.most[0][1], 'anchor')}" if found.most else ""
    return (
        f"the most common 1 % of {found.documents:,} documents take {percent(found.top_share)} of the slots "
        f"({percent(found.by_chance)} by chance){most}"
    )


def quantity_text(found: Quantity) -> str:
    """The verdict on k."""
    if found.best is None:
        return f"{found.k}: {found.verdict}; {found.rests_on}"
    high = f"{K_MAX} and more" if found.high == K_MAX else f"{found.high}"
    return f"{found.k} is {found.verdict}: best {found.best}, as good from {found.low} to {high} (AUC {found.auc:.4g})"


def thresholds_text(found: Mapping[str, float]) -> str:
    """Those that the data suggest."""
    return ", ".join(f"{name} {value:.4g}" for name, value in found.items()) or "none without scores"
