"""The line that a reader can move: its controls with the figures at the line as it is, and the data behind them."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.report._plain_text import number, share, shown_text
from naysay.report.moving import Moved, moved
from naysay.report.scores import Sample

STEPS = 1000
_MEANING = {
    "suspected": "suspected candidates",
    "negatives": "negatives",
    "empty": "empty slots",
    "score": "hardness: mean score",
    "percentile": "hardness: mean percentile",
    "let_through": "known positives below the line",
    "false_rate": "false negatives, upper estimate",
}
_COUNTS = ("suspected", "negatives", "empty")
_SHARES = ("percentile", "let_through", "false_rate")


def ends(sample: Sample) -> tuple[float, float]:
    """The lowest and the highest line: from all suspected to nothing suspected."""
    if sample.by == "suspicion":
        return 0.0, 1.0
    known = np.concatenate([sample.values, sample.positives]).astype(np.float64)
    low, high = float(known.min()), float(known.max())
    high += max(high - low, 1e-6) / 100
    return (min(low, sample.line), max(high, sample.line)) if isfinite(sample.line) else (low, high)


def start(sample: Sample) -> float:
    """The line as it is; where nothing is suspected, the highest that there is."""
    low, high = ends(sample)
    return min(max(sample.line, low), high)


def data(sample: Sample) -> dict[str, Any]:
    """What the page's script needs, numbers only. Scores are written so that 32 bits read the same number again."""
    low, high = ends(sample)
    return {
        "sizes": np.bincount(sample.anchors, minlength=len(sample.k)).tolist(),
        "scores": _short(sample.scores),
        "values": None if sample.by == "score" else _short(sample.values),
        "k": sample.k.tolist(),
        "positives": _short(sample.positives),
        "positiveAnchors": sample.positive_anchors.tolist(),
        "listed": sample.listed.astype(int).tolist(),
        "share": sample.share if isfinite(sample.share) else None,
        "scale": sample.of_anchors / len(sample.k),
        "line": start(sample),
        "low": low,
        "high": high,
        "steps": STEPS,
        "byScore": sample.by == "score",
        "command": sample.command,
    }


def _short(values: NDArray[np.float32]) -> list[float]:
    """The shortest decimals that 32 bits tell apart."""
    found: list[float] = values.astype("U24").astype(np.float64).tolist()
    return found


def controls(sample: Sample) -> str:
    """The slider, a box for its exact value, the way back, and the figures, which the script keeps up to date."""
    (low, high), line = ends(sample), start(sample)
    place = round(STEPS * (line - low) / (high - low))
    now = moved(sample, line)
    cells = "".join(_figure(name, now) for name in _MEANING)
    command = shown_text(sample.command.replace("LINE", f"{line:.6g}"), 300)
    lasting = f'<p class="command">To draw it there for good: <code id="command">{command}</code></p>'
    return (
        f'<form class="line"><label for="line">Line, as a {sample.by}</label>'
        f'<input type="range" id="line" min="0" max="{STEPS}" step="1" value="{place}" '
        f'aria-valuetext="{number(line)}"><label for="exact">exactly</label>'
        f'<input type="number" id="exact" step="any" value="{line:.6g}">'
        f'<button type="button" id="back">Back to {number(line)}</button></form>'
        f'<dl class="figures">{cells}</dl>'
        '<p class="unseen" id="told" aria-live="polite"></p>'
        f"{lasting if sample.command else ''}{_told(sample)}"
    )


def _figure(name: str, now: Moved) -> str:
    value = getattr(now, name)
    text = share(value) if name in _SHARES else number(float(round(value)) if name in _COUNTS else value)
    exact = repr(float(value)) if isfinite(value) else ""
    return f'<div><dt>{_MEANING[name]}</dt><dd data-figure="{name}" data-value="{exact}">{text or "none"}</dd></div>'


def _told(sample: Sample) -> str:
    """What the figures rest on."""
    taken = (
        f"{len(sample.k):,} of {sample.of_anchors:,} anchors"
        if len(sample.k) < sample.of_anchors
        else (f"all {sample.of_anchors:,} anchors")
    )
    parts = [
        f"Computed in this page from {len(sample.scores):,} candidates of {taken}"
        + ("; counts are scaled to all." if len(sample.k) < sample.of_anchors else "."),
        "At each line the negatives are the highest scores below it, as many as an anchor asks for. The percentile of "
        "a negative is the share of its anchor's candidates that score below it.",
    ]
    if sample.by == "suspicion":
        parts.append("The line is one of suspicion, so the scores of positives do not say how many are let through.")
    elif not len(sample.positives):
        parts.append("No positives are known, so it is unknown how many unlabelled ones are let through.")
    else:
        parts.append(
            f"Known positives: {len(sample.positives):,}, one of an anchor, of which the search would have found "
            f"{int(np.count_nonzero(sample.listed)):,}. The part of them below the line is the part of unlabelled "
            "positives that is let through, if these are alike."
        )
        parts.append(
            f"False negatives, upper estimate: {share(sample.share)} of the candidates are positives at most; times "
            "the part of the known positives, of those found, that the same rule would take, divided by the part of "
            "the candidates that it takes. It is the estimate of detectors.false_negative_rate, without its interval."
            if isfinite(sample.share)
            else "How many of the negatives are false could not be estimated from these scores."
        )
    return f'<p class="note">{shown_text(" ".join(parts), 2000)}</p>'
