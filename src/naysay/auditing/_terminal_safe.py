"""Other people's text on a terminal: shown, never obeyed."""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len, set_cell_size

# Control characters, direction and other invisible marks, halves of surrogate pairs, what has no meaning, line ends.
_NO_GLYPH = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_MISSING, _MORE = "\ufffd", "…"


def harmless(text: str, width: int, encoding: str = "utf-8") -> str:
    """A text in one line of at most `width` cells: an escape sequence or a direction mark in it does nothing.

    Spaces and line ends become one space, what has no glyph becomes U+FFFD, and so does what `encoding` cannot show,
    as a question mark. A text that is longer is cut, and ends in three dots.
    """
    head = text[: 4 * width + 4]  # a line of a megabyte costs no more than a short one
    clean = "".join(_MISSING if _hidden(each) else each for each in " ".join(head.split()))
    shown = clean.encode(encoding, "replace").decode(encoding)
    if len(head) == len(text) and cell_len(shown) <= width:
        return shown
    more = _MORE if encoding.lower().startswith("utf") else "..."
    return set_cell_size(shown, max(0, width - cell_len(more))).rstrip() + more


def _hidden(character: str) -> bool:
    return unicodedata.category(character) in _NO_GLYPH
