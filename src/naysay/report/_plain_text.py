"""Users' text on a page: displayed as text, never interpreted.

Every text passes through here on its way to the page. Markup is escaped, characters without a glyph are replaced, long
texts are cut, and each is in a `bdi` element of its own, so that right-to-left marks end with the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from itertools import chain, count
from typing import Any

MAX_LENGTH = 400  # characters of a text that are shown
_MAX_BYTES = 1200  # once escaped, so that a page stays small whatever it shows
# Control characters but tab and newline, halves of surrogate pairs, and code points that no text has.
_NO_GLYPH = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# What could end a script element or a line of JavaScript: JSON may write all of them as \uXXXX.
_IN_SCRIPT = re.compile("[<>&\u2028\u2029\x7f-\x9f\ud800-\udfff]")


def shown_text(text: str, max_length: int = MAX_LENGTH) -> str:
    """Return a text as HTML: cut, with a note of how much is missing, cleaned and escaped."""
    head = _NO_GLYPH.sub("\ufffd", text[:max_length])
    safe = escape(head)
    while len(safe.encode()) > max(_MAX_BYTES, 3 * max_length):
        head = head[: max(1, len(head) * 3 // 4)]
        safe = escape(head)
    missing = len(text) - len(head)
    if not missing:
        return safe
    return f'{safe}<span class="more"> … {missing:,} more character{"s" if missing > 1 else ""}</span>'


def attribute(text: str, max_length: int = MAX_LENGTH) -> str:
    """Return a text for an attribute or a title, without markup: cut with an ellipsis, cleaned and escaped."""
    head = _NO_GLYPH.sub("\ufffd", text[:max_length])
    return escape(head + ("…" if len(text) > max_length else ""))


def short_names(names: Iterable[str], max_length: int = 60) -> list[str]:
    """Return names for the legend of a chart, which are in every row of its data: cut, and all different."""
    short: list[str] = []
    for name in names:
        cut = name if len(name) <= max_length else f"{name[:max_length]}…"
        tries = chain([cut], (f"{cut} ({turn})" for turn in count(2)))
        short.append(next(one for one in tries if one not in short))
    return short


def boxed(text: str, max_length: int = MAX_LENGTH) -> str:
    """Return a text of unknown direction in an element of its own."""
    return f'<bdi dir="auto">{shown_text(text, max_length)}</bdi>'


def script_data(data: Any) -> str:
    """Return JSON for a script element, in ASCII where it matters: it cannot end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _IN_SCRIPT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
