"""The tutorial: questions to the standard library, and four ways to mine their negatives.

Read it from top to bottom. It uses only public names of naysay, and needs torch. Everything random comes from
`rng_for(seed, ...)`, so a seed fixes the result.
"""

from __future__ import annotations

import re
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

STRIDE, PASSAGE = 6, 36  # words of a step, and of a passage
FEWEST, MOST = PASSAGE + 2 * STRIDE, 2 * PASSAGE  # words of a docstring: shorter ones are left out, longer ones cut
QUESTIONS = 4  # of a docstring, at most
SHORTEST, LONGEST = 6, 12  # words of a statement: the beginning of a sentence
KEYWORDS = 3  # the fewest words of a question
PLAIN_WORD = re.compile(r"[A-Za-z][a-z'-]*[,;:.]?")
_COMMON = """
    a also an and any are as at be been but by can do does each for from has have if in into is it its may must no
    not of on only or other otherwise should so some such than that the their then there these they this to was when
    which will with would you
"""
COMMON_WORDS = frozenset(_COMMON.split())


@final
class Pairs:
    """Questions and passages. Passages begin every 6 words and have 36, so neighbours share most of their words.

    A statement is the beginning of a sentence; the question about it is its words without common ones, as people type
    into a search box. Every passage that holds the whole statement answers it, also of other docstrings. One of them,
    drawn at random, is labelled; the others are false negatives.
    """

    def __init__(self, documents: Sequence[str], seed: int) -> None:
        rng = rng_for(seed, worker=1)
        self.passages, self.questions, self.statements, labels = list[str](), list[str](), list[str](), list[int]()
        for text in sorted({text for text in documents if len(text.split()) >= FEWEST}):
            words, first_passage = text.split()[:MOST], len(self.passages)
            passages = [" ".join(words[at : at + PASSAGE]) for at in range(0, len(words) - PASSAGE + 1, STRIDE)]
            self.passages += passages
            statements = [one for one in statements_of(words) if any(holds(passage, one) for passage in passages)]
            for chosen in rng.permutation(len(statements))[:QUESTIONS].tolist():
                statement = statements[chosen]
                answers = [first_passage + at for at, passage in enumerate(passages) if holds(passage, statement)]
                labels.append(int(rng.choice(answers)))
                self.statements.append(statement)
                self.questions.append(question_about(statement))
        self.labels = np.array(labels, np.int64)
        size = len(self.questions), len(self.passages)
        self.known = Positives.from_pairs(np.arange(size[0]), self.labels, *size)
        self.relevant = Positives.from_pairs(*self._answers(), *size)  # the truth, which no judge sees

    def _answers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every question with every passage that holds its statement."""
        passages_with: dict[str, list[int]] = {}  # by any words that a statement can begin with
        for at, words in enumerate(passage.split() for passage in self.passages):
            for start in range(PASSAGE - SHORTEST + 1):
                passages_with.setdefault(" ".join(words[start : start + SHORTEST]), []).append(at)
        pairs = [
            (row, at)
            for row, statement in enumerate(self.statements)
            for at in passages_with[" ".join(statement.split()[:SHORTEST])]
            if holds(self.passages[at], statement)
        ]
        questions, passages = np.array(pairs, np.int64).reshape(-1, 2).T
        return questions, passages

    def __len__(self) -> int:
        return len(self.questions)


def holds(passage: str, statement: str) -> bool:
    """Whether a passage holds the words of a statement, whole and in order."""
    return f" {statement} " in f" {passage} "


def statements_of(words: Sequence[str]) -> list[str]:
    """The first words of each sentence, up to 12, if all are plain words and enough of them are not common."""
    ends = [place + 1 for place, word in enumerate(words) if word.endswith((".", "!", "?"))]
    found: dict[str, None] = {}  # in order, without repeats
    for start, end in zip([0, *ends], [*ends, len(words)], strict=True):
        statement = words[start : min(end, start + LONGEST)]
        if len(statement) >= SHORTEST and all(PLAIN_WORD.fullmatch(word) for word in statement):
            text = " ".join(statement)
            if len(question_about(text).split()) >= KEYWORDS:
                found[text] = None
    return list(found)


def question_about(statement: str) -> str:
    """The words of a statement in lower case, without common ones."""
    words = (word.strip(",;:.").lower() for word in statement.split())
    return " ".join(word for word in words if word not in COMMON_WORDS)


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
    """A question, its labelled answer, a near passage that also answers and was dropped, and a negative that stayed.

    `statement` is the words that both answers hold, and no negative that stayed.
    """

    question: str
    statement: str
    labelled: str
    dropped: str
    kept: str


def examples(pairs: Pairs, nearest: mining.Mined, judged: mining.Mined, count: int = 3) -> list[Example]:
    """The first questions, a docstring each, of which the judge dropped a false negative and kept a true one."""
    false_nearest, false_judged = is_false(nearest, pairs), is_false(judged, pairs)
    found: list[Example] = []
    last_label = -PASSAGE  # passages of one docstring are neighbours
    for row, label in enumerate(pairs.labels.tolist()):
        dropped = np.setdiff1d(nearest.ids[row][false_nearest[row]], judged.ids[row])
        kept = judged.ids[row][judged.mask[row] & ~false_judged[row]]
        if len(dropped) and len(kept) and len(found) < count and label - last_label >= PASSAGE:
            passages = (pairs.passages[at] for at in (label, dropped[0], kept[0]))
            found.append(Example(pairs.questions[row], pairs.statements[row], *passages))
            last_label = label
    return found
