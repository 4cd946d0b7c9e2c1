"""Texts as numbers: what a reader would call the same text gets the same key.

Texts come from users, so nothing in here assumes that they are clean: broken UTF-8, lone surrogates, lines of a
megabyte, invisible marks and a thousand accents on one letter are all data.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown

# Soft hyphens, zero-width spaces and joiners, direction marks, variation selectors, byte order marks, tags.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]+"
)
# Punctuation that makes another number: a hyphen or short dash as its sign, and a point with no digit before it.
_MINUS = re.compile("(?<!\\w)[-\u2010\u2012\u2013](?=\\.?\\d)")
_POINT = re.compile(r"(?<![\w.])\.(?=\d)")
# Punctuation that says something: C# is not C, 5 % is not 5, a/b is not a b.
_MEANT = frozenset("#%&*/@\\")
# Written without spaces between words: there each character is a word.
_UNSPACED = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_LONG = 512
_BLOCK = 4096


class Folding(dict[int, str | int]):
    """What becomes of each character, for `str.translate`; it grows as characters are met.

    Args:
        punctuation: Whether punctuation becomes a space.
    """

    def __init__(self, *, punctuation: bool) -> None:
        super().__init__()
        self.punctuation = punctuation

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        kind = unicodedata.category(character)
        becomes: str | int = code
        if kind in ("Cc", "Zl", "Zp", "Zs") or (self.punctuation and kind[0] == "P" and character not in _MEANT):
            becomes = " "
        elif code > 0xE00 and unicodedata.name(character, "").startswith(_UNSPACED):
            becomes = f" {character} "
        self[code] = becomes
        return becomes


def fold(text: str, folding: Folding) -> str:
    r"""The text without what does not matter: NFKC, case, invisible marks, runs of space, and punctuation.

    What changes a number or a name stays. A hyphen, en dash or minus right before a number, with no letter or digit
    before it, becomes the minus U+2212, so that -5 is not 5; in "3-5" and "x - 5" it is a dash and becomes a space. A
    point that opens a number gets its zero: .5 is 0.5, and not 5; in "fig.5" it becomes a space, and so it does between
    digits, as a comma does: 1.5 is 1,5. # % & * / @ \ stay as they are. A text of punctuation alone keeps it. What is
    left has words with single spaces between; characters of scripts without spaces are words of their own.

    Example:
        >>> fold("  The Café, in PARIS. ", Folding(punctuation=True))
        'the café in paris'
        >>> fold("a dose of .5 mg", Folding(punctuation=True)) == fold("A dose of 0.5 mg.", Folding(punctuation=True))
        True
    """
    plain = text.casefold() if text.isascii() else _normal(_INVISIBLE.sub("", text))
    if folding.punctuation:
        plain = _POINT.sub("0.", _MINUS.sub("\u2212", plain))
    return _words(plain, folding) or (_words(plain, Folding(punctuation=False)) if folding.punctuation else "")


def _words(text: str, folding: Folding) -> str:
    return " ".join(text.translate(folding).split())


def _normal(text: str) -> str:
    """NFKC without case. Long texts go word by word, and long words in pieces.

    Putting n accents on one letter in order takes Python n^2 steps, so that a line of nothing else would seem to hang.
    """
    if len(text) > _LONG:
        return " ".join("".join(map(_normal_piece, _pieces(word))) for word in text.split())
    return _normal_piece(text)


def _normal_piece(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _pieces(word: str) -> Iterator[str]:
    """Parts of a word, cut before a character that stands by itself if there is one near."""
    start = 0
    while len(word) - start > _LONG:
        stop = start + _LONG
        while stop < min(start + _LONG + 32, len(word)) and unicodedata.combining(word[stop]):
            stop += 1
        yield word[start:stop]
        start = stop
    yield word[start:]


def read_texts(parameter: str, texts: Any) -> list[Any]:
    """A list of strings or bytes from a list, an array, or a column; anything else is refused, missing texts too."""
    if isinstance(texts, str | bytes):
        raise_invalid(parameter, "a sequence of texts", shown(texts), "Pass a list.")
    for convert in ("to_pylist", "tolist"):  # an Arrow column; an array, or a column of pandas
        if hasattr(texts, convert):
            texts = getattr(texts, convert)()
            break
    if not isinstance(texts, Sequence) or isinstance(texts, str | bytes):
        raise_invalid(parameter, "a sequence of texts", type(texts).__name__)
    found = list(texts)
    if not found:
        raise_invalid(parameter, "at least one text", "none")
    bad = [row for row, text in enumerate(found) if not isinstance(text, str | bytes)]
    if bad:
        got = f"{shown(found[bad[0]])} at row {bad[0]} ({len(bad)} such row{'s' if len(bad) > 1 else ''})"
        raise_invalid(parameter, "texts", got, "Put '' where there is none: it matches nothing.")
    return found


def folded_blocks(texts: Sequence[str | bytes], *, punctuation: bool) -> Iterator[list[bytes]]:
    """The folded texts as UTF-8, some thousands at a time; bytes that are no UTF-8 stay what they are."""
    folding = Folding(punctuation=punctuation)
    for start in range(0, len(texts), _BLOCK):
        block = (
            text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
            for text in texts[start : start + _BLOCK]
        )
        yield [fold(text, folding).encode("utf-8", "surrogatepass") for text in block]


def keys_of(block: Sequence[bytes]) -> NDArray[np.uint64]:
    """(n,) 64 bits of each folded text, by BLAKE2b; 0 is an empty text, which matches nothing."""
    digests = b"".join(blake2b(text, digest_size=8).digest() for text in block)
    keys = np.frombuffer(digests, "<u8").astype(np.uint64)
    filled = np.fromiter((len(text) > 0 for text in block), np.bool_, len(block))
    return np.where(filled, np.maximum(keys, np.uint64(1)), np.uint64(0))
