"""The tutorial: questions to the standard library, and four ways to mine their negatives.

Read it from top to bottom. It uses only public names of naysay, and needs torch. Everything random comes from
`rng_for(seed, ...)`, so a seed fixes the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay import detectors, mining
from naysay.lab import Pieces, SubwordEncoder
from naysay.positives import Positives
from naysay.rng import rng_for

K = 4  # negatives of a question
REVIEWED = 100  # pairs that a person would label

# ---- 1. The data: overlapping passages, and questions of which one passage is labelled as the answer ----------------

STRIDE, PASSAGE, ASKED, QUESTIONS = 6, 36, 5, 4  # words of a step, of a passage, of a question; questions of a text
FEWEST, MOST = PASSAGE + 2 * STRIDE, 2 * PASSAGE  # words of a docstring: shorter ones are left out, longer ones cut


@final
class Pairs:
    """Questions and passages. Passages begin every 6 words and have 36, so neighbours share most of their words.

    A question is 5 words of a run of 6. Every passage that holds the whole run answers it, also of other docstrings.
    One of them, drawn at random, is labelled; the others are false negatives.
    """

    def __init__(self, documents: Sequence[str], seed: int) -> None:
        rng = rng_for(seed, worker=1)
        texts = sorted({text for text in documents if len(text.split()) >= FEWEST})
        self.passages, self.questions, self.runs, labels = list[str](), list[str](), list[str](), list[int]()
        for text in texts:
            words, first_passage = text.split()[:MOST], len(self.passages)
            starts = range(0, len(words) - PASSAGE + 1, STRIDE)
            self.passages += [" ".join(words[at : at + PASSAGE]) for at in starts]
            for place in rng.permutation(len(starts) + PASSAGE // STRIDE - 1)[:QUESTIONS].tolist():
                run = words[place * STRIDE : (place + 1) * STRIDE]
                holding_run = np.arange(max(0, place - PASSAGE // STRIDE + 1), min(place + 1, len(starts)))
                labels.append(first_passage + int(rng.choice(holding_run)))
                chosen = np.sort(rng.permutation(STRIDE)[:ASKED])
                self.runs.append(" ".join(run))
                self.questions.append(" ".join(run[word] for word in chosen))
        self.labels = np.array(labels, np.int64)
        size = len(self.questions), len(self.passages)
        self.known = Positives.from_pairs(np.arange(size[0]), self.labels, *size)
        self.relevant = Positives.from_pairs(*self._answers(), *size)  # the truth, which no judge sees

    def _answers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every question with every passage that holds its run of words."""
        passages_with: dict[str, list[int]] = {}
        for at, words in enumerate(passage.split() for passage in self.passages):
            for start in range(PASSAGE - STRIDE + 1):
                passages_with.setdefault(" ".join(words[start : start + STRIDE]), []).append(at)
        pairs = [(row, at) for row, run in enumerate(self.runs) for at in passages_with[run]]
        questions, passages = np.array(pairs, np.int64).reshape(-1, 2).T
        return questions, passages

    def __len__(self) -> int:
        return len(self.questions)


# ---- 2. The encoder: hashed pieces of words, one vector each; rare pieces have longer ones ---------------------------


def encoded(pairs: Pairs, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The vectors of all questions and passages, without training: texts that share rare words are close."""
    questions, passages = Pieces(pairs.questions), Pieces(pairs.passages)
    encoder = SubwordEncoder([questions, passages], rng_for(seed, worker=2))
    return encoder.vectors(questions), encoder.vectors(passages)


# ---- 3. Negatives: the nearest, two rules that leave out what is probably false, and a review ------------------------


def mined_four_ways(pairs: Pairs, seed: int) -> dict[str, mining.Mined]:
    """The 4 negatives of each question by each rule."""
    questions, passages = encoded(pairs, seed)

    def person(asked: detectors.Pairs) -> NDArray[np.bool_]:
        """Says which passages answer their question."""
        return pairs.relevant.contains(asked.anchors, asked.items)

    return {
        "nearest": mining.mine(questions, passages, pairs.known, K, judge=None),
        "95 % rule": mining.mine(questions, passages, pairs.known, K, judge="share:0.95"),
        "judged": mining.mine(questions, passages, pairs.known, K, judge="auto"),
        "reviewed": mining.mine(questions, passages, pairs.known, K, reviewer=person, review=REVIEWED),
    }


# ---- 4. The truth, which this corpus knows ---------------------------------------------------------------------------


def is_false(mined: mining.Mined, pairs: Pairs) -> NDArray[np.bool_]:
    """(n, k) which of the negatives are false: they answer the question."""
    return pairs.relevant.contains(np.arange(len(pairs)), np.maximum(mined.ids, 0)) & mined.mask


def false_share(mined: mining.Mined, pairs: Pairs) -> float:
    """The share of the negatives that are false in truth."""
    return float(is_false(mined, pairs).sum() / mined.mask.sum())


@dataclass(frozen=True)
class Example:
    """A question, its labelled answer, a near passage that also answers and was dropped, and a negative that stayed."""

    question: str
    labelled: str
    dropped: str
    kept: str


def examples(pairs: Pairs, nearest: mining.Mined, judged: mining.Mined, count: int = 3) -> list[Example]:
    """The first questions of which the judge dropped a false negative, and kept a true one; one of a docstring."""
    false_nearest, false_judged = is_false(nearest, pairs), is_false(judged, pairs)
    found: list[Example] = []
    for row in range(0, len(pairs), QUESTIONS):
        dropped = np.setdiff1d(nearest.ids[row][false_nearest[row]], judged.ids[row])
        kept = judged.ids[row][judged.mask[row] & ~false_judged[row]]
        if len(dropped) and len(kept) and len(found) < count:
            passages = (pairs.passages[at] for at in (pairs.labels[row], dropped[0], kept[0]))
            found.append(Example(pairs.questions[row], *passages))
    return found
