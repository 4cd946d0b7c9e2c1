"""A small text encoder: a text is the sum of the vectors of its hashed pieces of words."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

from naysay.arrays import to_numpy
from naysay.checks import public

BUCKETS, WIDTH = 1 << 15, 64
_TOKENS = re.compile(r"[a-z0-9]+|[^\w\s]")
_BLOCK = 1024  # texts that are encoded at a time, without gradients

Rows = NDArray[np.int64]


@final
@public
class Pieces:
    """The hashed pieces of many texts: each word, its runs of 3, 4 and 5 letters, and each punctuation mark.

    A hash must be the same in every process: CRC-32 is, Python's own is not. Pieces in the same bucket share a vector;
    with 32,768 buckets few do.

    Args:
        texts: The texts, of any length; an empty one has the piece 0.

    Attributes:
        ids: (pieces,) int32, from 0 to 32,767, text after text.
        starts: (n + 1,) where each text begins.

    Examples:
        >>> pieces = Pieces(["a cat", "the cat sat"])
        >>> len(pieces), pieces.ids.max() < 32_768
        (2, np.True_)
    """

    def __init__(self, texts: Sequence[str]) -> None:
        hashed = lru_cache(maxsize=None)(_hashed)
        blocks, sizes = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for first in range(0, len(texts), _BLOCK):
            some = texts[first : first + _BLOCK]
            pieces = [
                [piece for word in _TOKENS.findall(text.lower()) for piece in hashed(word)] or [0] for text in some
            ]
            sizes.append(np.fromiter(map(len, pieces), np.int64, len(pieces)))
            blocks.append(np.fromiter((piece for each in pieces for piece in each), np.int32, sizes[-1].sum()))
        self.starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        self.ids = np.concatenate(blocks)

    def of(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return the pieces of some texts, concatenated, and where each text begins."""
        sizes = self.starts[rows + 1] - self.starts[rows]
        begins = np.cumsum(sizes) - sizes
        places = np.arange(sizes.sum()) + np.repeat(self.starts[rows] - begins, sizes)
        return torch.from_numpy(self.ids[places].astype(np.int64)), torch.from_numpy(begins)

    def __len__(self) -> int:
        return len(self.starts) - 1


def _hashed(word: str) -> list[int]:
    """Return the buckets of a word and of its runs of letters; < and > mark its ends."""
    marked = f"<{word}>"
    runs = [marked[at : at + size] for size in (3, 4, 5) if size < len(marked) for at in range(len(marked) - size + 1)]
    return [zlib.crc32(piece.encode()) % BUCKETS for piece in (marked, *runs)]


@final
@public
class SubwordEncoder(torch.nn.Module):
    """A text is the normalised sum of its pieces' vectors; queries and documents share a table of 32,768 x 64 numbers.

    Vectors begin at random, those of rare pieces longer, so that texts that share rare pieces are close at once.

    Args:
        texts: All texts that it will be trained on, for the counts of pieces.
        rng: Of the first vectors.

    Examples:
        >>> import naysay as ns
        >>> texts = Pieces(["a cat", "the cat sat"])
        >>> SubwordEncoder([texts], ns.rng_for(0)).vectors(texts).shape
        (2, 64)
    """

    def __init__(self, texts: Sequence[Pieces], rng: np.random.Generator) -> None:
        super().__init__()
        counts = sum((np.bincount(each.ids, minlength=BUCKETS) for each in texts), np.zeros(BUCKETS, np.int64))
        rarity = np.log((1 + counts.sum()) / (1 + counts)) / np.log(1 + counts.sum())
        table = rng.standard_normal((BUCKETS, WIDTH)) * rarity[:, None]
        self.table = torch.nn.Parameter(torch.from_numpy(table.astype(np.float32)))

    def forward(self, texts: Pieces, rows: Rows) -> Tensor:
        """Return (n, 64) vectors of some texts."""
        pieces, begins = (part.to(self.table.device) for part in texts.of(rows))
        return normalize(embedding_bag(pieces, self.table, begins, mode="sum"), dim=1)

    @torch.no_grad()
    def vectors(self, texts: Pieces) -> NDArray[np.float32]:
        """Return (n, 64) vectors of all texts, as NumPy."""
        blocks = np.array_split(np.arange(len(texts)), 1 + len(texts) // _BLOCK)
        found: NDArray[np.float32] = to_numpy(torch.cat([self(texts, rows) for rows in blocks]))
        return found
