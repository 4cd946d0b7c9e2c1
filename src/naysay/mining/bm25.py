"""BM25: candidates that share words with the query. The index is that of bm25s, the extra [text]."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._packages import need_package
from naysay.checks import check_number, check_whole, public, raise_invalid, shown
from naysay.positives import Positives
from naysay.search.exact import Found

Words = Callable[[list[str]], Sequence[Sequence[str]]]
_WORD = re.compile(r"\b\w\w+\b")
_BLOCK = 1 << 14  # texts that are split into words at a time


@public
def bm25(
    query_texts: Any,
    corpus_texts: Any,
    depth: int,
    *,
    exclude: Positives | None = None,
    k1: float = 1.5,
    b: float = 0.75,
    words: Words | None = None,
) -> Found:
    """Find the `depth` best documents of each query by BM25: score descending, row ascending.

        score(q, d) = sum over words w of q: log(1 + (N - n_w + 0.5) / (n_w + 0.5)) f / (f + k1 (1 - b + b |d| / mean))

    with f the frequency of w in d, and n_w the number of documents that contain it: Lucene's form (Kamphuis et al.,
    ECIR 2020), by bm25s (Lù, 2024). A document that shares no word is not a candidate: slots stay empty (-1).

    Args:
        query_texts: A list of strings, or an Arrow array.
        corpus_texts: A list of strings, or an Arrow array.
        depth: Number of documents for each query.
        exclude: Pairs (query, document) to leave out.
        k1: Saturation of the term frequency.
        b: Normalisation by the length of documents, 0 to 1.
        words: A function from texts to their lists of words; by default runs of two or more letters or digits, in lower
            case.

    Returns:
        (n, depth) ids and scores, -1 and -inf where empty.

    Raises:
        MissingExtraError: If bm25s is not installed.

    Examples:
        >>> found = bm25(["do cats eat fish"], ["Birds fly.", "Cats eat fish.", "Fish"], depth=2)
        >>> found.ids.tolist()
        [[1, 2]]
    """
    check_whole("depth", depth, 1)
    check_number("k1", k1, at_least=0)
    check_number("b", b, at_least=0, at_most=1)
    from naysay.formats._contents import strings  # here, because `mine` loads this module and seldom those

    queries, corpus = strings("query_texts", query_texts), strings("corpus_texts", corpus_texts)
    known_starts, known_items = _excluded(exclude, len(queries), len(corpus))
    bm25s = need_package("bm25s", "0.2", extra="text")
    split = _plain_words if words is None else words
    if not callable(split):
        raise_invalid("words", "a function from texts to their lists of words, or None", shown(words))
    result = Found.empty(len(queries), depth)
    vocabulary: dict[str, int] = {}
    listed = [
        [vocabulary.setdefault(word, len(vocabulary)) for word in row]
        for start in range(0, len(corpus), _BLOCK)
        for row in _split(split, "corpus_texts", corpus[start : start + _BLOCK])
    ]
    if not vocabulary:  # bm25s has no index of nothing
        return result
    index = bm25s.BM25(k1=k1, b=b, method="lucene")
    index.index((listed, vocabulary), create_empty_token=False, show_progress=False)
    for start in range(0, len(queries), _BLOCK):
        query_words = _split(split, "query_texts", queries[start : start + _BLOCK])
        for row, words_of_query in enumerate(query_words, start):
            codes = [vocabulary[word] for word in words_of_query if word in vocabulary]
            if not codes:
                continue
            scores = index.get_scores_from_ids(codes)
            if row < len(known_starts) - 1:
                scores[known_items[known_starts[row] : known_starts[row + 1]]] = 0
            best = _best(scores, depth)
            result.ids[row, : len(best)] = best
            result.scores[row, : len(best)] = scores[best]
    return result


def _best(scores: NDArray[np.float32], depth: int) -> NDArray[np.int64]:
    """The documents with the highest scores above 0; of equal scores the lower row first."""
    places = np.flatnonzero(scores > 0)
    if len(places) > depth:
        lowest = np.partition(scores[places], -depth)[-depth]
        places = places[scores[places] >= lowest]
    return places[np.argsort(-scores[places], kind="stable")][:depth]


def _split(split: Words, parameter: str, texts: list[str]) -> list[list[str]]:
    """The words of each text, as lists of strings."""
    words = [list(row) for row in split(texts)]
    if len(words) != len(texts):
        raise_invalid("words", f"a function that gives a list for each of {len(texts)} {parameter}", len(words))
    if not {*map(type, chain.from_iterable(words))} <= {str}:
        other = next(word for word in chain.from_iterable(words) if not isinstance(word, str))
        raise_invalid("words", "a function that gives strings", shown(other))
    return words


def _plain_words(texts: list[str]) -> list[list[str]]:
    """Runs of two or more letters or digits, in lower case."""
    return [_WORD.findall(text.lower()) for text in texts]


def _excluded(exclude: Positives | None, n_queries: int, n_documents: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The pairs to leave out, as CSR rows; there are none for queries beyond its anchors."""
    if exclude is None:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    if not isinstance(exclude, Positives):
        raise_invalid("exclude", "a Positives", type(exclude).__name__)
    if exclude.n_anchors > n_queries or exclude.n_items > n_documents:
        rule = f"of at most {n_queries} queries and {n_documents} documents"
        raise_invalid("exclude", rule, f"{exclude.n_anchors} and {exclude.n_items}")
    return exclude.indptr, exclude.indices
