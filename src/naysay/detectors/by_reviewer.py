"""ByReviewer: a reviewer as a detector; and reviewers as users give them, as objects or as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay.checks import public, raise_invalid, shown, with_parameter
from naysay.detectors._suspicion import (
    SUSPICION_THRESHOLD,
    as_suspicion,
    check_query_and_negatives,
    filled_slots,
    slot_pairs,
)
from naysay.detectors.llm import LLM
from naysay.detectors.reviewer import AnswerFile, CrossEncoder, Encoder, Function, Pairs, People, Reviewer, ask
from naysay.text import described
from naysay.types import Array, Negatives, Query

KINDS = "cross-encoder:PATH, encoder:PATH, llm:MODEL@URL, people or people:FILE"


def read_reviewers(given: Any, parameter: str = "reviewer") -> tuple[Reviewer, Reviewer | None]:
    """(first, trusted) from one reviewer, or a list of two: the second checks the yes answers of the first."""
    parts = list(given) if isinstance(given, list | tuple) else [given]
    if len(parts) not in (1, 2):
        raise_invalid(parameter, "one reviewer, or a list [cheap, trusted]", f"{len(parts)}")
    found = [reviewer_of_text(parameter, part) if isinstance(part, str) else part for part in parts]
    for part in found:
        if isinstance(part, type) or not (isinstance(part, Reviewer) or callable(part)):
            raise_invalid(parameter, "a function of pairs, or an object with a method review(pairs)", shown(part))
    reviewers = [part if isinstance(part, Reviewer) else Function(part) for part in found]
    return reviewers[0], reviewers[1] if len(reviewers) == 2 else None


def reviewer_of_text(parameter: str, text: str) -> Reviewer:
    """A reviewer as the command line names it."""
    kind, _, rest = text.partition(":")
    if kind == "people":
        return People(rest or "review.csv")
    if not rest or kind not in ("cross-encoder", "encoder", "llm"):
        raise_invalid(parameter, KINDS, shown(text))
    if kind == "cross-encoder":
        return CrossEncoder(rest)
    if kind == "encoder":
        return Encoder(rest)
    model, _, url = rest.partition("@http")
    return LLM(model, f"http{url}" if url else None)


def check_reviewers(reviewers: Iterable[Reviewer | None], *, has_texts: bool) -> None:
    """Raise if a reviewer cannot be asked: texts are missing, or its server does not answer."""
    for reviewer in reviewers:
        if getattr(reviewer, "needs_texts", False) and not has_texts:
            raise_invalid("reviewer", "given with texts, which it reads", f"{type(reviewer).__name__} without them")
        if isinstance(reviewer, LLM):
            reviewer.check()


@final
@public
class ByReviewer:
    """Suspicion is the answer of a reviewer: a cross-encoder, a language model, any function of pairs.

    It is asked about every filled slot, each distinct pair once a call. Of a list [cheap, trusted] the second is asked
    where the first says yes, and its answer counts. To ask about few of many candidates, use mine(..., reviewer=...).

    Qu et al. RocketQA: An Optimized Training Approach to Dense Passage Retrieval. NAACL 2021: denoising. Thakur et al.
    Fixing Data That Hurts Performance: Cascading LLMs to Relabel Hard Negatives. 2025.

    Args:
        reviewer: A reviewer, or a list of two.
        queries: (n,) texts by anchor, if it needs them.
        documents: (N,) texts by item.
        answers: A file of answers, so that no pair is asked about twice.

    Examples:
        >>> import naysay as ns
        >>> detector = ByReviewer(lambda pairs: np.where(pairs.items == 7, 0.9, 0.1))
        >>> detector.suspicion(ns.Query([0]), ns.Negatives(np.array([[7, 4, -1]])))
        array([[0.9, 0.1, 0. ]])
    """

    needs_main_process = True  # a copy would not know what was asked before

    def __init__(
        self,
        reviewer: Any,
        *,
        queries: Sequence[str] | None = None,
        documents: Sequence[str] | None = None,
        answers: str | Path | None = None,
    ) -> None:
        self.reviewer = reviewer
        self._first, self._trusted = read_reviewers(reviewer)
        self.queries, self.documents = queries, documents
        with with_parameter("answers", instead_of="path"):
            self.answers = None if answers is None else AnswerFile(answers)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) in [0, 1]; an empty slot has 0, and so has a pair without an answer."""
        check_query_and_negatives(query, negatives)
        rows, slots = np.nonzero(filled_slots(negatives))
        asked = np.stack(slot_pairs(query, negatives, rows, slots), axis=1)  # (n, 2), or (n, 2, 3) of triples
        distinct, places = np.unique(asked, axis=0, return_inverse=True)
        anchors, items = distinct[:, 0], distinct[:, 1]
        pairs = Pairs(
            anchors,
            items,
            None if self.queries is None else [self.queries[row] for row in anchors.tolist()],
            None if self.documents is None else [self.documents[row] for row in items.tolist()],
        )
        found = ask(self._first, pairs, self.answers)
        if self._trusted is not None:
            yes = np.flatnonzero(found >= SUSPICION_THRESHOLD)
            found[yes] = ask(self._trusted, pairs.take(yes), self.answers)
        suspicion = np.zeros(negatives.shape)
        suspicion[rows, slots] = np.nan_to_num(found)[places.reshape(-1)]
        return as_suspicion(suspicion, negatives)

    def __repr__(self) -> str:
        return described(self)
