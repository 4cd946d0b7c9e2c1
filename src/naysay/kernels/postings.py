"""The best documents of each query by the sum of their words' weights, from lists of documents per word."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined


@inlined
def _worse(scores: Any, ids: Any, one: Any, other: Any) -> Any:
    """Whether the candidate at place `one` of the heap is worse than that at `other`: lower, or equal and later."""
    return scores[one] < scores[other] or (scores[one] == scores[other] and ids[one] > ids[other])


@inlined
def _sink(scores: Any, ids: Any, place: Any, size: Any) -> None:
    """Move a candidate down until none below it is worse: the worst stays on top."""
    while True:
        least = place
        for below in (2 * place + 1, 2 * place + 2):
            if below < size and _worse(scores, ids, below, least):
                least = below
        if least == place:
            return
        scores[place], scores[least] = scores[least], scores[place]
        ids[place], ids[least] = ids[least], ids[place]
        place = least


@compiled
def best_documents(
    start: Any,
    stop: Any,
    word_starts: Any,
    words: Any,
    list_starts: Any,
    documents: Any,
    weights: Any,
    n_documents: Any,
    known_starts: Any,
    known: Any,
    ids: Any,
    scores: Any,
) -> None:
    """ids[row], scores[row] = the documents with the highest sums, best first; of equal sums the lower id first.

    Sums are float32, in the order of the query's words: the same for any number of threads. A document without any
    of the words is not a candidate. Work: the lists of the query's words; a heap keeps the best.

    Args:
        word_starts: The first word of each query, in CSR form.
        words: The words of the queries; a word that comes twice counts twice.
        list_starts: The first document of each word, in CSR form.
        documents: The documents of the words.
        weights: Their weights, all above 0.
        known_starts: The first excluded document of each query, in CSR form; empty if there are none.
        known: The excluded documents.
    """
    depth = ids.shape[1]
    sums, touched = np.zeros(n_documents, np.float32), np.empty(n_documents, np.int64)
    for row in range(start, stop):
        count = 0
        for at in range(word_starts[row], word_starts[row + 1]):
            word = words[at]
            for entry in range(list_starts[word], list_starts[word + 1]):
                document = documents[entry]
                if sums[document] == 0:
                    touched[count] = document
                    count += 1
                sums[document] += weights[entry]
        if row + 1 < len(known_starts):
            for at in range(known_starts[row], known_starts[row + 1]):
                sums[known[at]] = np.float32(-1)
        best, names, size = scores[row], ids[row], 0
        for at in range(count):
            document = touched[at]
            value = sums[document]
            sums[document] = np.float32(0)
            if value <= 0:
                continue
            if size < depth:
                best[size], names[size] = value, document
                size += 1
                if size == depth:
                    for place in range(depth // 2 - 1, -1, -1):
                        _sink(best, names, place, depth)
            elif value > best[0] or (value == best[0] and document < names[0]):
                best[0], names[0] = value, document
                _sink(best, names, 0, depth)
        if row + 1 < len(known_starts):  # also those that no word touched
            for at in range(known_starts[row], known_starts[row + 1]):
                sums[known[at]] = np.float32(0)
        if size < depth:
            for place in range(size // 2 - 1, -1, -1):
                _sink(best, names, place, size)
        for last in range(size - 1, 0, -1):  # the worst goes to the end, again and again
            best[0], best[last] = best[last], best[0]
            names[0], names[last] = names[last], names[0]
            _sink(best, names, 0, last)
