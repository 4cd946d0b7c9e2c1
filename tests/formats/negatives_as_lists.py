"""The formats in plain loops over lists: what a file must hold, row by row."""

import json

import numpy as np
from hypothesis import strategies as st

from naysay.positives import Positives

_ODD = 'ab"\\\n\r\t\x00\x0b\x85\u00a0\u2028\u2029\u200f\u202e\u0301\ufeff\U0001f600{}[],:'
NASTY = st.one_of(
    st.lists(st.sampled_from(_ODD), max_size=6).map("".join),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
)


@st.composite
def worlds(draw, texts=NASTY):
    """Some anchors and documents with distinct texts, known pairs, and negatives that are not among them."""
    n, size, k = draw(st.integers(0, 5)), draw(st.integers(1, 7)), draw(st.integers(1, 4))
    queries = draw(st.lists(texts, min_size=n, max_size=n, unique=True))
    corpus = draw(st.lists(texts, min_size=size, max_size=size, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    order = [rng.permutation(size).tolist() for _ in range(n)]
    cuts = [int(rng.integers(0, min(4, size + 1))) for _ in range(n)]
    positives = [sorted(row[:cut]) for row, cut in zip(order, cuts, strict=True)]
    negatives = [row[cut : cut + int(rng.integers(0, k + 1))] for row, cut in zip(order, cuts, strict=True)]
    return World(queries, corpus, positives, negatives, k, rng)


class World:
    """Lists of everything, and the arrays that `write_negatives` takes."""

    def __init__(self, queries, corpus, positives, negatives, k, rng):
        self.queries, self.corpus, self.positives, self.negatives, self.k = queries, corpus, positives, negatives, k
        self.scores = [rng.random(len(row)).astype(np.float32).tolist() for row in negatives]
        self.positive_scores = [rng.random(len(row)).astype(np.float32).tolist() for row in positives]
        self.ids = np.full((len(queries), k), -1)
        for row, ids in enumerate(negatives):  # holes stand anywhere
            self.ids[row, sorted(rng.choice(k, len(ids), replace=False))] = ids
        self.score_array = np.full(self.ids.shape, -np.inf, np.float32)
        self.score_array[self.ids >= 0] = [score for row in self.scores for score in row]
        anchors = [row for row, items in enumerate(positives) for _ in items]
        items = [item for row in positives for item in row]
        self.known = Positives.from_pairs(
            np.array(anchors, np.int64), np.array(items, np.int64), len(queries), len(corpus)
        )

    def arguments(self, *, texts=True, scores=False):
        """For `write_negatives`."""
        given = {"ids": self.ids, "positives": self.known}
        if texts:
            given |= {"query_texts": self.queries, "corpus_texts": self.corpus}
        if scores:
            flat = np.array([score for row in self.positive_scores for score in row], np.float32)
            given |= {"scores": self.score_array, "positive_scores": flat, "with_scores": True}
        return given


def expected(world, name, *, scores):
    """The rows of a file, as JSON gives them; the text of each row, or its number for ColBERT and plain ids."""
    rows = []
    for anchor, query in enumerate(world.queries):
        known, found = world.positives[anchor], world.negatives[anchor]
        known_scores, found_scores = world.positive_scores[anchor], world.scores[anchor]
        if name == "labelled-pair":
            for label, items, numbers in ((1, known, known_scores), (0, found, found_scores)):
                for item, number in zip(items, numbers, strict=True):
                    last = {"score": number} if scores else {"label": label}
                    rows.append({"anchor": query, "document": world.corpus[item], **last})
        elif name == "ids":
            row = {"anchor": anchor, "positives": known, "negatives": found}
            rows.append(row | ({"positive_scores": known_scores, "negative_scores": found_scores} if scores else {}))
        elif not known or not found or (name in ("n-tuple", "colbert-nway") and len(found) < world.k):
            continue
        elif name in ("flagembedding", "tevatron", "tevatron-ids", "nemo"):
            rows.append(_of_anchor(world, name, anchor, scores=scores))
        else:
            for item, number in zip(known, known_scores, strict=True):
                rows.extend(_of_pair(world, name, anchor, item, number, scores=scores))
    return rows


def _of_anchor(world, name, anchor, *, scores):
    query, known, found = world.queries[anchor], world.positives[anchor], world.negatives[anchor]
    if name == "flagembedding":
        row = {"query": query, "pos": [world.corpus[i] for i in known], "neg": [world.corpus[i] for i in found]}
        both = {"pos_scores": world.positive_scores[anchor], "neg_scores": world.scores[anchor]}
        return row | (both if scores else {})
    if name == "tevatron":
        known, found = ([{"docid": str(i), "text": world.corpus[i]} for i in items] for items in (known, found))
        row = {"query_id": str(anchor), "query": query}
        return row | {"positive_passages": known, "negative_passages": found}
    if name == "tevatron-ids":
        row = {"query_id": str(anchor), "query_text": query}
        return row | {"positive_document_ids": [*map(str, known)], "negative_document_ids": [*map(str, found)]}
    known, found = ([{"id": str(i)} for i in items] for items in (known, found))
    if scores:
        for documents, numbers in ((known, world.positive_scores[anchor]), (found, world.scores[anchor])):
            for document, number in zip(documents, numbers, strict=True):
                document["score"] = number
    return {"question_id": str(anchor), "question": query, "corpus_id": "wiki", "pos_doc": known, "neg_doc": found}


def _of_pair(world, name, anchor, item, number, *, scores):
    query, found, corpus = world.queries[anchor], world.negatives[anchor], world.corpus
    numbers = [number, *world.scores[anchor]]
    if name == "triplet":
        for negative, score in zip(found, numbers[1:], strict=True):
            row = {"anchor": query, "positive": corpus[item], "negative": corpus[negative]}
            yield row | ({"scores": [number, score]} if scores else {})
    elif name == "n-tuple":
        row = {"anchor": query, "positive": corpus[item]}
        row |= {f"negative_{place}": corpus[negative] for place, negative in enumerate(found, 1)}
        yield row | ({"scores": numbers} if scores else {})
    elif name == "labelled-list":
        row = {"anchor": query, "documents": [corpus[i] for i in (item, *found)]}
        yield row | ({"scores": numbers} if scores else {"labels": [1] + [0] * len(found)})
    elif name == "nemo-inline":
        yield {"query": query, "pos_doc": corpus[item], "neg_doc": [corpus[i] for i in found]}
    elif name == "colbert":
        for negative in found:
            yield [anchor, item, negative]
    else:
        passages = [item, *found]
        yield [anchor, *([*map(list, zip(passages, numbers, strict=True))] if scores else passages)]


def lines_of(path):
    """The rows of a file of JSON, read by the standard library alone."""
    text = path.read_bytes().decode()
    if path.suffix == ".json":
        return json.loads(text)["data"]
    return [json.loads(line) for line in text.splitlines()]  # nothing but the end of a row ends a line
