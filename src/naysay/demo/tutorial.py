"""The tutorial: a small text encoder learns to find a docstring by its name, with four kinds of negatives.

Read it from top to bottom. It uses only public names of naysay, and needs torch. Everything random comes from
`rng_for(seed, ...)`, so a seed fixes the result.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

from naysay import detectors, losses, mining, pools, samplers
from naysay.demo.library import Library
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.types import Negatives, Query

Rows = NDArray[np.int64]

# ---- 1. The encoder: hashed pieces of words, one vector each ---------------------------------------------------------

BUCKETS, WIDTH = 1 << 15, 64
_TOKENS = re.compile(r"[a-z0-9]+|[^\w\s]")


@final
class Pieces:
    """The hashed pieces of many texts: each word, its runs of 3, 4 and 5 letters, and each punctuation mark.

    A hash must be the same in every process: CRC-32 is, Python's own is not. Pieces in the same bucket share a vector;
    with 32,768 buckets few do.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        hashed = lru_cache(maxsize=None)(_hashed)
        pieces = [[piece for word in _TOKENS.findall(text.lower()) for piece in hashed(word)] or [0] for text in texts]
        self.starts = np.cumsum([0, *map(len, pieces)])
        self.ids = np.fromiter((piece for each in pieces for piece in each), np.int64, self.starts[-1])

    def of(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return the pieces of some texts, concatenated, and where each text begins."""
        sizes = self.starts[rows + 1] - self.starts[rows]
        begins = np.cumsum(sizes) - sizes
        places = np.arange(sizes.sum()) + np.repeat(self.starts[rows] - begins, sizes)
        return torch.from_numpy(self.ids[places]), torch.from_numpy(begins)

    def __len__(self) -> int:
        return len(self.starts) - 1


def _hashed(word: str) -> list[int]:
    """Return the buckets of a word and of its runs of letters; < and > mark its ends."""
    marked = f"<{word}>"
    runs = [marked[at : at + size] for size in (3, 4, 5) if size < len(marked) for at in range(len(marked) - size + 1)]
    return [zlib.crc32(piece.encode()) % BUCKETS for piece in (marked, *runs)]


@final
class Encoder(torch.nn.Module):
    """A text is the normalised sum of its pieces' vectors; names and docstrings share the table of 32,768 x 64 numbers.

    Vectors are initialised at random, those of rare pieces longer, so that texts that share rare pieces are close even
    before training.
    """

    def __init__(self, pairs: Pairs, rng: np.random.Generator) -> None:
        super().__init__()
        counts = np.bincount(np.r_[pairs.queries.ids, pairs.documents.ids], minlength=BUCKETS)
        rarity = np.log((1 + counts.sum()) / (1 + counts)) / np.log(1 + counts.sum())
        table = rng.standard_normal((BUCKETS, WIDTH)) * rarity[:, None]
        self.table = torch.nn.Parameter(torch.from_numpy(table.astype(np.float32)))

    def forward(self, texts: Pieces, rows: Rows) -> Tensor:
        """Return (n, 64) vectors of some texts."""
        pieces, begins = texts.of(rows)
        return normalize(embedding_bag(pieces, self.table, begins, mode="sum"), dim=1)

    @torch.no_grad()
    def vectors(self, texts: Pieces) -> NDArray[np.float32]:
        """Return (n, 64) vectors of all texts, as NumPy."""
        blocks = np.array_split(np.arange(len(texts)), 1 + len(texts) // 1024)
        return torch.cat([self(texts, rows) for rows in blocks]).numpy()


# ---- 2. The data: names to train, to validate and to test ------------------------------------------------------------


@final
class Pairs:
    """Names and docstrings as pieces: query i belongs to document i."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.queries, self.documents = Pieces(library.queries), Pieces(library.documents)
        self.known = Positives.from_pairs(np.arange(len(library)), np.arange(len(library)))

    def __len__(self) -> int:
        return len(self.library)


@dataclass(frozen=True)
class Split:
    """Three parts that share no document: 70 % to train, 10 % to validate and calibrate, 20 % to test."""

    train: Pairs
    validation: Pairs
    test: Pairs


def split(library: Library, seed: int) -> Split:
    """Split by docstring: names that share one go to the same part, or a test document would have been trained on."""
    part = rng_for(seed, worker=1).permutation(np.arange(library.text_of.max() + 1) % 10)[library.text_of]
    chosen = (np.flatnonzero(which) for which in (part >= 3, part == 2, part < 2))
    return Split(*(Pairs(library.take(rows)) for rows in chosen))


# ---- 3. The measure: the rank of the right document ------------------------------------------------------------------


@dataclass(frozen=True)
class Quality:
    """Recall at 1 and at 10, and the mean reciprocal rank."""

    recall_at_1: float
    recall_at_10: float
    mrr: float


def quality(encoder: Encoder, test: Pairs, *others: Pairs) -> Quality:
    """Search all documents, also those of `others`, for each name of `test`.

    The rank is one more than the number of other documents that score as high or higher. Duplicates of the right
    document are right, too.
    """
    texts = [text for pairs in (test, *others) for text in pairs.library.documents]
    text_of = np.unique(np.asarray(texts, np.str_), return_inverse=True)[1]
    corpus = np.concatenate([encoder.vectors(pairs.documents) for pairs in (test, *others)])
    scores = encoder.vectors(test.queries) @ corpus.T
    other = text_of[: len(test), None] != text_of
    best = np.where(other, -np.inf, scores).max(axis=1, keepdims=True)
    rank = 1 + np.count_nonzero(other & (scores >= best), axis=1)
    return Quality(float((rank == 1).mean()), float((rank <= 10).mean()), float((1 / rank).mean()))


# ---- 4. Training: the same steps for all arms; only the negatives differ ---------------------------------------------

BATCH, TEMPERATURE, RATE = 256, 0.1, 0.1
ARMS = ("random", "in-batch", "plain hard", "judged")


@final
class Trainer:
    """An encoder in training. The learning rate falls linearly to 0 over `steps`."""

    def __init__(self, pairs: Pairs, steps: int, seed: int) -> None:
        self.pairs, self.steps, self.seed, self.step = pairs, steps, seed, 0
        self.encoder = Encoder(pairs, rng_for(seed, worker=2))
        self.optimiser = torch.optim.Adam(self.encoder.parameters(), lr=RATE)

    def batch(self) -> Rows:
        """Return the names of this step; each epoch has its own order."""
        epoch, place = divmod(self.step, max(1, len(self.pairs) // BATCH))
        return rng_for(self.seed, epoch, worker=3).permutation(len(self.pairs))[place * BATCH : (place + 1) * BATCH]

    def train(self, steps: int, loss_of: Callable[[Rows, Tensor, Tensor], Tensor]) -> None:
        """Take some steps; loss_of(rows (B,), names (B, 64), documents (B, 64)) -> (B,)."""
        for _ in range(steps):
            rows = self.batch()
            loss = loss_of(rows, self.encoder(self.pairs.queries, rows), self.encoder(self.pairs.documents, rows))
            self.optimiser.param_groups[0]["lr"] = RATE * (1 - self.step / self.steps)
            self.optimiser.zero_grad()
            loss.mean().backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            self.step += 1

    def in_batch(self, steps: int) -> None:
        """Train with the other documents of the batch: 255 negatives per name, without extra encoding."""
        self.train(steps, lambda rows, names, own: losses.in_batch(names, own, temperature=TEMPERATURE))

    def random(self, steps: int, k: int) -> None:
        """Train with k random documents per name; the pool excludes its own."""
        sampler = samplers.Static(pools.Everything(self.pairs.known))

        def loss_of(rows: Rows, names: Tensor, own: Tensor) -> Tensor:
            drawn = sampler.sample(Query(rows, step=self.step), k, rng=rng_for(self.seed, self.step, worker=4))
            scores = torch.einsum("bd,bkd->bk", names, self.of_slots(drawn.ids))
            return losses.info_nce((names * own).sum(dim=1), scores, mask=drawn.mask, temperature=TEMPERATURE)

        self.train(steps, loss_of)

    def mined(self, steps: int, negatives: Negatives) -> None:
        """Train with the other documents of the batch and each name's own mined negatives."""

        def loss_of(rows: Rows, names: Tensor, own: Tensor) -> Tensor:
            slots, mask = self.of_slots(negatives.ids[rows]), negatives.mask[rows]
            return losses.in_batch(names, own, negatives=slots, negative_mask=mask, temperature=TEMPERATURE)

        self.train(steps, loss_of)

    def of_slots(self, ids: Rows) -> Tensor:
        """Return (B, K, 64) vectors of the documents in the slots, each encoded once; empty slots hold any."""
        distinct, place = np.unique(np.maximum(ids, 0), return_inverse=True)
        vectors: Tensor = self.encoder(self.pairs.documents, distinct)
        return vectors[torch.from_numpy(place.reshape(ids.shape))]

    def copy(self) -> Trainer:
        """Return another trainer in the same state, so that arms can share their first half."""
        return deepcopy(self, {id(self.pairs): self.pairs})  # the texts are shared


# ---- 5. Negatives: the nearest, and the nearest without duplicates ---------------------------------------------------


def duplicates_of(pairs: Pairs) -> detectors.Duplicates:
    """Detect documents equal to the name's own. Punctuation counts: "Same as a + b." is not "Same as a - b."."""
    return detectors.Duplicates(item_texts=pairs.library.documents, positives=pairs.known, punctuation=False)


def nearest(encoder: Encoder, pairs: Pairs, k: int) -> mining.Mined:
    """Mine the k nearest documents of each name that are not its own."""
    return mining.mine(encoder.vectors(pairs.queries), encoder.vectors(pairs.documents), pairs.known, k, judge=None)


def judged(encoder: Encoder, pairs: Pairs, k: int) -> mining.Mined:
    """Mine the k nearest that are not duplicates of the name's own, by their texts."""
    vectors = encoder.vectors(pairs.queries), encoder.vectors(pairs.documents)
    return mining.mine(*vectors, pairs.known, k, judge=duplicates_of(pairs))


# ---- 6. A lesson: the four arms, from one start, over the same number of steps ---------------------------------------

K, REFRESHES = 4, 2


@dataclass(frozen=True)
class Lesson:
    """The result of one seed.

    Args:
        quality: {arm: quality on the test names}.
        halfway: The encoder at half time, with which both mining arms mined first.
        plain: The plain hard negatives mined then.
        mined: The judged negatives mined then.
    """

    quality: dict[str, Quality]
    halfway: Encoder
    plain: mining.Mined
    mined: mining.Mined


def lesson(parts: Split, *, steps: int, seed: int, on_progress: Callable[[str], None] = lambda what: None) -> Lesson:
    """Train the four arms, `steps` each, and evaluate each on the test names.

    The first half is in-batch for all but "random": mining needs a trained encoder. In the second half negatives are
    mined twice, because hard negatives do not stay hard.
    """
    half, stage = steps // 2, steps // 2 // REFRESHES
    trainers = {"random": Trainer(parts.train, steps, seed), "in-batch": Trainer(parts.train, steps, seed)}
    on_progress("random negatives")
    trainers["random"].random(steps, K)
    on_progress("in-batch negatives")
    trainers["in-batch"].in_batch(half)
    halfway = trainers["in-batch"].copy()
    plain, judging = halfway.copy(), halfway.copy()
    trainers["in-batch"].in_batch(steps - half)
    mined = []
    for _ in range(REFRESHES):
        on_progress("plain hard negatives")
        mined.append(nearest(plain.encoder, parts.train, K))
        plain.mined(stage, mined[-1].negatives())
        on_progress("judged negatives")
        mined.append(judged(judging.encoder, parts.train, K))
        judging.mined(stage, mined[-1].negatives())
    on_progress("evaluating on the test names")
    trainers |= {"plain hard": plain, "judged": judging}
    corpus = parts.train, parts.validation
    result = {arm: quality(trainers[arm].encoder, parts.test, *corpus) for arm in ARMS}
    return Lesson(result, halfway.encoder, mined[0], mined[1])
