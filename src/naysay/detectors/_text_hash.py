"""Texts as numbers: equal keys for texts that a reader would call the same, and MinHash signatures.

Texts come from users: broken UTF-8, lone surrogates, megabytes without a space, invisible marks and a thousand accents
on one letter are all valid input.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen, offsets
from naysay.checks import at_row, raise_invalid, shown
from naysay.kernels import duplicates as kernels
from naysay.kernels.compile import in_python
from naysay.kernels.random import GOLDEN, mixed
from naysay.kernels.threads import in_rows

# Soft hyphens, zero-width spaces and joiners, direction marks, variation selectors, byte order marks, tags.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]+"
)
# Punctuation that changes a number: a hyphen or short dash as its sign, and a point without a digit before it.
_MINUS = re.compile("(?<!\\w)[-\u2010\u2012\u2013](?=\\.?\\d)")
_POINT = re.compile(r"(?<![\w.])\.(?=\d)")
# Punctuation with a meaning: C# is not C, 5 % is not 5, a/b is not a b.
_MEANINGFUL = frozenset("#%&*/@\\")
# Scripts without spaces between words: each character is a word.
_UNSPACED = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_LONG = 512
_BLOCK = 4096


class Folding(dict[int, str | int]):
    """The replacement of each character, for `str.translate`, computed at first use."""

    def __init__(self, *, punctuation: bool) -> None:
        super().__init__()
        self.punctuation = punctuation

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        kind = unicodedata.category(character)
        becomes: str | int = code
        if kind in ("Cc", "Zl", "Zp", "Zs") or (self.punctuation and kind[0] == "P" and character not in _MEANINGFUL):
            becomes = " "
        elif code > 0xE00 and unicodedata.name(character, "").startswith(_UNSPACED):
            becomes = f" {character} "
        self[code] = becomes
        return becomes


def fold(text: str, folding: Folding) -> str:
    r"""Normalise a text: NFKC, case, invisible marks, whitespace, and punctuation. Words are joined by single spaces.

    Punctuation that changes a number or a name stays. A hyphen, en dash or minus right before a number, with no letter
    or digit before it, becomes the minus U+2212, so -5 is not 5; in "3-5" and "x - 5" it is a dash and becomes a space.
    A point that starts a number gets a zero: .5 is 0.5, and not 5. In "fig.5" and between digits it becomes a space, as
    a comma does: 1.5 is 1,5. # % & * / @ \ stay. A text of punctuation alone keeps it. In scripts without spaces each
    character is a word.
    """
    plain = text.casefold() if text.isascii() else _normal(_INVISIBLE.sub("", text))
    if folding.punctuation:
        plain = _POINT.sub("0.", _MINUS.sub("\u2212", plain))
    return _words(plain, folding) or (_words(plain, Folding(punctuation=False)) if folding.punctuation else "")


def _words(text: str, folding: Folding) -> str:
    return " ".join(text.translate(folding).split())


def _normal(text: str) -> str:
    """NFKC and case folding, of long texts word by word, and of long words in pieces.

    Sorting n accents on one letter takes Python n^2 steps, so a megabyte of accents would take hours.
    """
    if len(text) > _LONG:
        return " ".join("".join(map(_normal_piece, _pieces(word))) for word in text.split())
    return _normal_piece(text)


def _normal_piece(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _pieces(word: str) -> Iterator[str]:
    """Parts of a word, cut before a character that is no combining mark if there is one within reach."""
    start = 0
    while len(word) - start > _LONG:
        stop = start + _LONG
        while stop < min(start + _LONG + 32, len(word)) and unicodedata.combining(word[stop]):
            stop += 1
        yield word[start:stop]
        start = stop
    yield word[start:]


def read_texts(parameter: str, texts: Any) -> list[Any]:
    """A list of strings or bytes from a list, an array, or a column. Raises for others, and for missing texts."""
    if isinstance(texts, str | bytes):
        raise_invalid(parameter, "a sequence of texts", shown(texts), "Pass a list.")
    for convert in ("to_pylist", "tolist"):  # an Arrow column; an array, or a column of pandas
        if hasattr(texts, convert):
            texts = getattr(texts, convert)()
            break
    if not isinstance(texts, Sequence) or isinstance(texts, str | bytes):
        raise_invalid(parameter, "a sequence of texts", type(texts).__name__)
    given = list(texts)
    if not given:
        raise_invalid(parameter, "at least one text", "none")
    bad = [row for row, text in enumerate(given) if not isinstance(text, str | bytes)]
    if bad:
        got = at_row(shown(given[bad[0]]), bad[0], len(bad))
        raise_invalid(parameter, "texts", got, "Put '' where there is none: it matches nothing.")
    return given


def folded_blocks(texts: Sequence[str | bytes], *, punctuation: bool) -> Iterator[list[bytes]]:
    """The folded texts as UTF-8, some thousands at a time. Bytes that are not UTF-8 stay as they are."""
    folding = Folding(punctuation=punctuation)
    for start in range(0, len(texts), _BLOCK):
        block = (
            text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
            for text in texts[start : start + _BLOCK]
        )
        yield [fold(text, folding).encode("utf-8", "surrogatepass") for text in block]


def keys_of(block: Sequence[bytes]) -> NDArray[np.uint64]:
    """(n,) a 64-bit BLAKE2b key of each folded text; 0 for an empty text, which matches nothing."""
    digests = b"".join(blake2b(text, digest_size=8).digest() for text in block)
    keys = np.frombuffer(digests, "<u8").astype(np.uint64)
    filled = np.fromiter((len(text) > 0 for text in block), np.bool_, len(block))
    return np.where(filled, np.maximum(keys, np.uint64(1)), np.uint64(0))


def signatures(texts: Sequence[bytes], shingle: int, size: int) -> NDArray[np.uint32]:
    """(n, size) MinHash signatures of folded texts, the same on every machine.

    A text becomes the set of its runs of `shingle` words; a shorter text is one run. For each of `size` hash functions
    the signature keeps the smallest hash of the set. Two sets have the same smallest hash with probability
    J = |A and B| / |A or B|, their Jaccard similarity, so the share of equal places estimates J, with a standard
    deviation of sqrt(J (1 - J) / size). An empty text has a row of 2^32 - 1, and must not be compared.

    Broder. On the Resemblance and Containment of Documents. 1997.
    """
    buffer = np.frombuffer(b"".join(texts), np.uint8)
    starts = offsets(np.fromiter(map(len, texts), np.int64, len(texts)))
    signed = np.full((len(texts), size), np.uint32(0xFFFFFFFF), np.uint32)
    random = in_python(mixed)(np.arange(1, 2 * size + 1, dtype=np.uint64) * GOLDEN)
    factors, terms = frozen(random[:size] | np.uint64(1)), frozen(random[size:])  # of the hash functions
    steps = buffer.size * max(1, size // 4)
    in_rows(kernels.sign, len(texts), steps, frozen(buffer), frozen(starts), shingle, factors, terms, signed)
    return signed
