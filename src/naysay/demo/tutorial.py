"""The tutorial: a small text encoder learns to find a passage by a few of its words, with four kinds of negatives.

Read it from top to bottom. It uses only public names of naysay, and needs torch. Everything random comes from
`rng_for(seed, ...)`, so a seed fixes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import detectors, losses, mining, pools, quantity, samplers
from naysay.demo.library import Library
from naysay.lab import Pieces, SubwordEncoder
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.types import Detector, Negatives, Query

Rows = NDArray[np.int64]

# ---- 1. The encoder: hashed pieces of words, one vector each ---------------------------------------------------------
#
# `Pieces` are the hashed words of many texts, and their runs of letters. `Encoder` adds up the vectors of a text's
# pieces, and normalises the sum. Vectors begin at random, those of rare pieces longer.

Encoder = SubwordEncoder

# ---- 2. The data: overlapping passages, and questions of which one passage is labelled as the answer ----------------

STRIDE, PASSAGE, ASKED, QUESTIONS = 6, 36, 5, 4  # words of a step, of a passage, of a question; questions of a text
FEWEST, MOST = PASSAGE + 2 * STRIDE, 2 * PASSAGE  # words of a docstring: shorter ones are left out, longer ones cut


@final
class Pairs:
    """Questions and passages. Passages begin every 6 words and have 36, so neighbours share most of their words.

    A question is 5 words of a run of 6. Every passage that holds the whole run answers it, also of other docstrings.
    One of them, drawn at random, is labelled; the others are false negatives.
    """

    def __init__(self, documents: Sequence[str], rng: np.random.Generator, elsewhere: str = "") -> None:
        self.passages, self.questions, self.runs, labels = list[str](), list[str](), list[str](), list[int]()
        for document in documents:
            words, first = document.split()[:MOST], len(self.passages)
            starts = range(0, len(words) - PASSAGE + 1, STRIDE)
            self.passages += [" ".join(words[at : at + PASSAGE]) for at in starts]
            for place in rng.permutation(len(starts) + PASSAGE // STRIDE - 1)[:QUESTIONS].tolist():
                run = words[place * STRIDE : (place + 1) * STRIDE]
                around = np.arange(max(0, place - PASSAGE // STRIDE + 1), min(place + 1, len(starts)))
                label, chosen = first + int(rng.choice(around)), np.sort(rng.permutation(STRIDE)[:ASKED])
                if f" {' '.join(run)} " not in elsewhere:
                    labels.append(label)
                    self.runs.append(" ".join(run))
                    self.questions.append(" ".join(run[word] for word in chosen))
        self.labels = np.array(labels, np.int64)
        self.queries, self.documents = Pieces(self.questions), Pieces(self.passages)
        size = len(self), len(self.passages)
        self.known = Positives.from_pairs(np.arange(len(self)), self.labels, *size)
        holding: dict[str, list[int]] = {}  # the passages of each run of words
        for at, words in enumerate(passage.split() for passage in self.passages):
            for start in range(PASSAGE - STRIDE + 1):
                holding.setdefault(" ".join(words[start : start + STRIDE]), []).append(at)
        found = [(row, at) for row, run in enumerate(self.runs) for at in holding[run]]
        rows, places = np.array(found, np.int64).reshape(-1, 2).T
        self.relevant = Positives.from_pairs(rows, places, *size)

    def __len__(self) -> int:
        return len(self.questions)


@dataclass(frozen=True)
class Split:
    """Three parts by docstring: 70 % to train, 10 % to validate, 20 % to test."""

    train: Pairs
    validation: Pairs
    test: Pairs

    @property
    def passages(self) -> int:
        """The number of passages of all parts."""
        return sum(len(part.passages) for part in (self.train, self.validation, self.test))


def split(library: Library, seed: int) -> Split:
    """Split by docstring. A question to validate or test is left out if a passage of another part answers it."""
    texts = np.array(sorted({text for text in library.documents if len(text.split()) >= FEWEST}))
    part = rng_for(seed, worker=1).permutation(np.arange(len(texts)) % 10)
    chosen = [texts[which].tolist() for which in (part >= 3, part == 2, part < 2)]
    others = [f" {' | '.join(text for far in chosen if far is not near for text in far)} " for near in chosen]
    rngs = (rng_for(seed, place, worker=6) for place in range(3))
    pairs = zip(chosen, rngs, ["", *others[1:]], strict=True)
    return Split(*(Pairs(near, rng, elsewhere) for near, rng, elsewhere in pairs))


# ---- 3. The measure: where the passages that answer a question are found ---------------------------------------------


MEASURES = ("nDCG@10", "recall@10", "MRR")


def quality(encoder: Encoder, test: Pairs, *others: Pairs) -> dict[str, float]:
    """Search all passages, also those of `others`, for each question of `test`: nDCG and recall at 10, and MRR."""
    corpus = np.concatenate([encoder.vectors(pairs.documents) for pairs in (test, *others)])
    order = np.argsort(-(encoder.vectors(test.queries) @ corpus.T), axis=1, kind="stable")
    right = test.relevant.contains(np.arange(len(test)), np.where(order < len(test.passages), order, 0))
    right &= order < len(test.passages)
    most = np.minimum(right.sum(axis=1), 10)
    gains = 1 / np.log2(np.arange(2, 12))
    ndcg = (right[:, :10] * gains).sum(axis=1) / np.cumsum(gains)[most - 1]
    recall, reciprocal_rank = right[:, :10].sum(axis=1) / most, 1 / (1 + right.argmax(axis=1))
    means = (float(values.mean()) for values in (ndcg, recall, reciprocal_rank))
    return dict(zip(MEASURES, means, strict=True))


# ---- 4. Training: the same steps for all arms; only the negatives differ ---------------------------------------------

BATCH, TEMPERATURE, RATE = 256, 0.02, 0.01
ARMS = ("random", "in-batch", "plain hard", "judged")


@final
class Trainer:
    """An encoder in training. The learning rate falls linearly to 0 over `steps`."""

    def __init__(self, pairs: Pairs, steps: int, seed: int) -> None:
        self.pairs, self.steps, self.seed, self.step = pairs, steps, seed, 0
        self.encoder = Encoder([pairs.queries, pairs.documents], rng_for(seed, worker=2))
        self.optimiser = torch.optim.Adam(self.encoder.parameters(), lr=RATE)

    def batch(self) -> Rows:
        """Return the questions of this step; each epoch has its own order."""
        epoch, place = divmod(self.step, max(1, len(self.pairs) // BATCH))
        return rng_for(self.seed, epoch, worker=3).permutation(len(self.pairs))[place * BATCH : (place + 1) * BATCH]

    def train(self, steps: int, loss_of: Callable[[Rows, Tensor, Tensor], Tensor]) -> None:
        """Take some steps; loss_of(rows (B,), questions (B, 64), answers (B, 64)) -> (B,)."""
        for _ in range(steps):
            rows = self.batch()
            answers = self.encoder(self.pairs.documents, self.pairs.labels[rows])
            loss = loss_of(rows, self.encoder(self.pairs.queries, rows), answers)
            self.optimiser.param_groups[0]["lr"] = RATE * (1 - self.step / self.steps)
            self.optimiser.zero_grad()
            loss.mean().backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            self.step += 1

    def in_batch(self, steps: int) -> None:
        """Train with the other answers of the batch: 255 negatives per question, without extra encoding."""
        self.train(steps, lambda rows, asked, own: losses.in_batch(asked, own, temperature=TEMPERATURE))

    def random(self, steps: int, k: int) -> None:
        """Train with k random passages per question; the pool excludes its own."""
        sampler = samplers.Static(pools.Everything(self.pairs.known))

        def loss_of(rows: Rows, asked: Tensor, own: Tensor) -> Tensor:
            drawn = sampler.sample(Query(rows, step=self.step), k, rng=rng_for(self.seed, self.step, worker=4))
            scores = torch.einsum("bd,bkd->bk", asked, self.of_slots(drawn.ids))
            return losses.info_nce((asked * own).sum(dim=1), scores, mask=drawn.mask, temperature=TEMPERATURE)

        self.train(steps, loss_of)

    def mined(self, steps: int, negatives: Negatives) -> None:
        """Train with the other answers of the batch and each question's own mined negatives."""

        def loss_of(rows: Rows, asked: Tensor, own: Tensor) -> Tensor:
            slots, mask = self.of_slots(negatives.ids[rows]), negatives.mask[rows]
            return losses.in_batch(asked, own, negatives=slots, negative_mask=mask, temperature=TEMPERATURE)

        self.train(steps, loss_of)

    def of_slots(self, ids: Rows) -> Tensor:
        """Return (B, K, 64) vectors of the passages in the slots, each encoded once; empty slots hold any."""
        distinct, place = np.unique(np.maximum(ids, 0), return_inverse=True)
        vectors: Tensor = self.encoder(self.pairs.documents, distinct)
        return vectors[torch.from_numpy(place.reshape(ids.shape))]


# ---- 5. Negatives: the nearest, and the nearest without those that are probably false --------------------------------


def nearest(encoder: Encoder, pairs: Pairs, k: int) -> mining.Mined:
    """Mine the k nearest passages of each question that are not its labelled answer."""
    return mining.mine(encoder.vectors(pairs.queries), encoder.vectors(pairs.documents), pairs.known, k, judge=None)


def judged(encoder: Encoder, pairs: Pairs, k: int) -> mining.Mined:
    """Mine the k nearest of which an estimated 5 % are false."""
    return mining.mine(encoder.vectors(pairs.queries), encoder.vectors(pairs.documents), pairs.known, k, judge="auto")


# ---- 6. A lesson: the four arms, from one start, over the same number of steps ---------------------------------------

K = 4


@dataclass(frozen=True)
class Lesson:
    """The result of one seed.

    Args:
        quality: {arm: {measure: value}} on the test questions.
        start: The encoder before training, with which both mining arms mined.
        plain: The plain hard negatives.
        mined: The judged negatives.
    """

    quality: dict[str, dict[str, float]]
    start: Encoder
    plain: mining.Mined
    mined: mining.Mined


def lesson(parts: Split, *, steps: int, seed: int) -> Lesson:
    """Train the four arms, `steps` each, and evaluate each on the test questions.

    Negatives are mined once, by the encoder before training: it finds passages that share rare words. An encoder that
    was trained on the labels scores them too high, and the judge would take all else for negatives.
    """
    start = Trainer(parts.train, steps, seed).encoder
    mined = {"plain hard": nearest(start, parts.train, K), "judged": judged(start, parts.train, K)}
    found = {}
    for arm in ARMS:
        trainer = Trainer(parts.train, steps, seed)
        if arm == "random":
            trainer.random(steps, K)
        elif arm == "in-batch":
            trainer.in_batch(steps)
        else:
            trainer.mined(steps, mined[arm].negatives())
        found[arm] = quality(trainer.encoder, parts.test, parts.train, parts.validation)
    return Lesson(found, start, mined["plain hard"], mined["judged"])


# ---- 7. How many negatives, and which detector finds the false ones ---------------------------------------------------


def auc(encoder: Encoder, pairs: Pairs, seed: int) -> float:
    """Return how often a question is closer to its answer than to a random passage; 20 random ones per question."""
    drawn = pools.Everything(pairs.known).draw(Query(np.arange(len(pairs))), 20, rng=rng_for(seed, worker=5))
    asked, passages = encoder.vectors(pairs.queries), encoder.vectors(pairs.documents)
    others = np.einsum("bd,bkd->bk", asked, passages[drawn.ids])
    return float((others < (asked * passages[pairs.labels]).sum(axis=1, keepdims=True))[drawn.mask].mean())


def how_many(parts: Split, steps: int, seed: int) -> quantity.Estimate:
    """Estimate the best number of random negatives from a run with one, with its validation AUC measured ten times."""
    trainer, curve = Trainer(parts.train, steps, seed), []
    for _ in range(10):
        trainer.random(steps // 10, 1)
        curve.append(auc(trainer.encoder, parts.validation, seed))
    return quantity.estimate(auc(trainer.encoder, parts.train, seed), curve, k_max=10_000)


def evaluated(lesson: Lesson, pairs: Pairs) -> dict[str, detectors.Evaluation]:
    """Evaluate detectors on the plain hard negatives: all passages that answer the question are false negatives."""
    query, negatives = Query(np.arange(len(pairs)), positives=pairs.labels), lesson.plain.negatives()
    judge: Detector = lesson.mined.judge
    at = lesson.mined.suspicion_threshold
    others: dict[str, Detector] = {
        "share 0.95": detectors.ShareOfPositive(lesson.plain.positive_scores, 0.95),
        "Duplicates, by text": detectors.Duplicates(item_texts=pairs.passages, positives=pairs.known),
    }
    truth = is_false(lesson.plain, pairs)
    found = {"judge auto": detectors.evaluate(judge, query, negatives, truth, threshold=at)}
    return found | {name: detectors.evaluate(one, query, negatives, truth) for name, one in others.items()}


def is_false(mined: mining.Mined, pairs: Pairs) -> NDArray[np.bool_]:
    """Return (n, k) which of the negatives are false: they answer the question."""
    return pairs.relevant.contains(np.arange(len(pairs)), np.maximum(mined.ids, 0)) & mined.mask


def false_share(mined: mining.Mined, pairs: Pairs) -> float:
    """Return the share of the negatives that are false in truth."""
    return float(is_false(mined, pairs).sum() / mined.mask.sum())
