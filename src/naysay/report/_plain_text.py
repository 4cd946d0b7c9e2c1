"""Other people's text on a page: shown, never obeyed.

Every text passes through here on its way to the page. Markup is escaped, what has no glyph is replaced, long texts are
cut, and each stands in a box of its own, so that marks for writing from right to left end with the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from itertools import chain, count
from math import isnan
from typing import Any

LONGEST = 400  # characters of a text that are shown
_BYTES = 1200  # that they may take once escaped, so that a page stays small whatever it shows
# Control characters but tab and newline, halves of surrogate pairs, and code points that no text has.
_NO_GLYPH = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# What could end a script element or a line of JavaScript: JSON may write all of them as \uXXXX.
_IN_SCRIPT = re.compile("[<>&\u2028\u2029\x7f-\x9f\ud800-\udfff]")


def shown_text(text: str, longest: int = LONGEST) -> str:
    """A text as HTML: cut, with a note of how much is missing, clean and escaped."""
    head = _NO_GLYPH.sub("\ufffd", text[:longest])
    safe = escape(head)
    while len(safe.encode()) > max(_BYTES, 3 * longest):
        head = head[: max(1, len(head) * 3 // 4)]
        safe = escape(head)
    missing = len(text) - len(head)
    if not missing:
        return safe
    return f'{safe}<span class="more"> … {missing:,} more character{"s" if missing > 1 else ""}</span>'


def attribute(text: str, longest: int = LONGEST) -> str:
    """A text for an attribute or a title, which can hold no markup of ours: cut with an ellipsis, clean and escaped."""
    head = _NO_GLYPH.sub("\ufffd", text[:longest])
    return escape(head + ("…" if len(text) > longest else ""))


def short_names(names: Iterable[str], longest: int = 60) -> list[str]:
    """Names for the legend of a chart, where each stands in every row of the data: cut, and no two alike."""
    found: list[str] = []
    for name in names:
        cut = name if len(name) <= longest else f"{name[:longest]}…"
        tries = chain([cut], (f"{cut} ({turn})" for turn in count(2)))
        found.append(next(one for one in tries if one not in found))
    return found


def boxed(text: str, longest: int = LONGEST) -> str:
    """A text of unknown direction in a box of its own."""
    return f'<bdi dir="auto">{shown_text(text, longest)}</bdi>'


def number(value: float) -> str:
    """A number for people: whole ones with commas, others in four digits; nothing for NaN."""
    if isinstance(value, float) and isnan(value):
        return ""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def share(value: float) -> str:
    """A share as per cent, with two digits that say something; "unknown" for NaN."""
    if isnan(value):
        return "unknown"
    part = 100 * value
    return f"{part:.1f} %" if part >= 1 or part == 0 else f"{part:.2g} %"


def script_data(data: Any) -> str:
    """JSON for a script element of type application/json, in ASCII where it matters: it cannot end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _IN_SCRIPT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
