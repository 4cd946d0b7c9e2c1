"""What a search refuses: each invalid call, and the parameter that its error names."""

import numpy as np
import pytest
from search_world import clustered

import naysay as ns
from naysay.search import Found, Index, Recall, check_recall, open_vectors, search

EYE = np.eye(3)
CORPUS, QUERIES = clustered(1200, 1, width=4), clustered(5, 2, width=4)
KNOWN = ns.Positives.from_pairs
NAN, INF, ZERO = EYE.copy(), EYE.copy(), EYE.copy()
NAN[1, 1], INF[2, 0], ZERO[1] = np.nan, -np.inf, 0
PAIR = {"queries": EYE, "corpus": EYE, "depth": 1}
BUILD, ASK = {"corpus": CORPUS}, {"queries": QUERIES, "depth": 3}
FOUND = {"ids": np.zeros((2, 3), np.int64), "scores": np.zeros((2, 3), np.float32)}
LOW = Recall(0.22, 0.1843, 0.259, 500, 100, "nprobe 8")
WIDE = np.ones((1, 140_000))


def of_index(name, **built):
    """A method of an index that is built when it is called."""
    return lambda **given: getattr(Index.build(CORPUS, **built), name)(**given)


INVALID = [
    (search, {**PAIR, "depth": 0}, "depth"),
    (search, {**PAIR, "depth": 2.5}, "depth"),
    (search, {**PAIR, "depth": 10**19}, "depth"),
    (search, {**PAIR, "metric": "cosin"}, "metric"),
    (search, {**PAIR, "engine": "bfloat16"}, "engine"),
    (search, {**PAIR, "threads": 0}, "threads"),
    (search, {**PAIR, "budget": 0}, "budget"),
    (search, {**PAIR, "budget": 100}, "budget"),
    (search, {**PAIR, "on_progress": 3}, "on_progress"),
    (search, {**PAIR, "device": "nowhere"}, "device"),
    (search, {**PAIR, "device": "meta"}, "device"),
    (search, {**PAIR, "device": "cpu", "engine": "float64"}, "device"),
    (search, {**PAIR, "corpus": np.eye(2)}, "queries"),
    (search, {**PAIR, "exclude": [(0, 1)]}, "exclude"),
    (search, {**PAIR, "exclude": KNOWN([0], [0], 3, 4)}, "exclude"),
    (search, {"queries": WIDE, "corpus": WIDE, "depth": 1, "engine": "int8"}, "engine"),
    (search, {**PAIR, "corpus": NAN}, "corpus"),
    (search, {**PAIR, "queries": INF, "metric": "dot"}, "queries"),
    (search, {**PAIR, "corpus": ZERO}, "corpus"),
    (search, {**PAIR, "queries": EYE * 1e20, "corpus": EYE * 1e20, "metric": "dot"}, "queries"),
    (search, {**PAIR, "queries": EYE * 1e-25, "corpus": EYE * 1e-25, "metric": "dot"}, "queries"),
    (search, {**PAIR, "corpus": EYE * 1e200}, "corpus"),
    (search, {**PAIR, "corpus": EYE * 1e-160}, "corpus"),
    (ns.pools.Nearest, {"vectors": EYE, "depth": 2, "device": "nowhere"}, "device"),
    (ns.pools.Nearest, {"vectors": NAN, "depth": 2}, "vectors"),
    (Index.build, {"corpus": CORPUS[:999]}, "corpus"),
    (Index.build, {"corpus": np.zeros((1000, 2))}, "corpus"),
    (Index.build, {"corpus": np.ones(5)}, "corpus"),
    (Index.build, {**BUILD, "kind": "hsnw"}, "kind"),
    (Index.build, {**BUILD, "metric": "cosin"}, "metric"),
    (Index.build, {**BUILD, "seed": -1}, "seed"),
    (Index.build, {**BUILD, "threads": 0}, "threads"),
    (Index.open, {"path": "absent", "corpus": CORPUS}, "path"),
    (of_index("search"), {**ASK, "depth": 0}, "depth"),
    (of_index("search"), {**ASK, "depth": 10**19}, "depth"),
    (of_index("search"), {**ASK, "queries": QUERIES[:, :3]}, "queries"),
    (of_index("search"), {**ASK, "queries": np.full((2, 4), np.inf)}, "queries"),
    (of_index("search", metric="dot"), {**ASK, "queries": np.full((1, 4), 1e60)}, "queries"),
    (of_index("search"), {**ASK, "exclude": {1: 2}}, "exclude"),
    (of_index("measure"), {**ASK, "queries": QUERIES[:0]}, "queries"),
    (of_index("measure"), {**ASK, "sample": 0}, "sample"),
    (of_index("tune"), {**ASK, "min_recall": 95}, "min_recall"),
    (of_index("tune"), {**ASK, "seed": -1}, "seed"),
    (of_index("save"), {"path": "absent/index"}, "path"),
    (check_recall, {"recall": LOW, "min_recall": 0.9}, "min_recall"),
    (check_recall, {"recall": LOW, "min_recall": 95}, "min_recall"),
    (check_recall, {"recall": 0.9, "min_recall": 0.9}, "recall"),
    (Found, {**FOUND, "ids": FOUND["ids"].astype(np.int32)}, "ids"),
    (Found, {**FOUND, "scores": FOUND["scores"].tolist()}, "scores"),
    (Found, {**FOUND, "scores": FOUND["scores"][:, :2]}, "scores"),
    (open_vectors, {"vectors": np.ones(3)}, "vectors"),
    (open_vectors, {"vectors": np.ones((2, 0))}, "vectors"),
    (open_vectors, {"vectors": np.ones((2, 2), int)}, "vectors"),
    (open_vectors, {"vectors": [[1.0], [1.0, 2.0]]}, "vectors"),
    (open_vectors, {"vectors": EYE, "column": "x"}, "column"),
    (open_vectors, {"vectors": "absent.npy"}, "vectors"),
]


@pytest.mark.parametrize(("call", "given", "parameter"), INVALID)
def test_an_invalid_call_names_its_parameter(call, given, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ns.NaysayError) as error:
        call(**given)
    assert error.value.parameter == parameter
    assert f"`{parameter}` must be " in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_the_first_bad_row_and_their_number_are_named():
    bad = clustered(40, 3, width=3)
    bad[[7, 9], 1] = np.nan
    with pytest.raises(ns.NaysayError, match=r"^search: `corpus` must be finite, got nan at row 7 \(2 such rows\)"):
        search(EYE, bad, 2)
    bad[[7, 9], 1] = 1
    bad[3:5] = 0
    with pytest.raises(ns.NaysayError, match=r"got a zero vector at row 3 \(2 such rows\)"):
        search(EYE, bad, 2)
    assert search(EYE, bad, 2, metric="l2").filled.all()


def test_small_vectors_are_searched_where_their_scores_are_not_too_small():
    for metric, size in (("dot", 1e-13), ("cosine", 1e-25)):
        right = search(QUERIES, CORPUS, 3, metric=metric).ids
        found = search(QUERIES.astype(float) * size, CORPUS.astype(float) * size, 3, metric=metric)
        assert (found.ids == right).all()
