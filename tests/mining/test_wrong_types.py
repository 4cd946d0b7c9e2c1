"""A value of a wrong type raises a NaysayError that names its parameter, never a TypeError from inside."""

import inspect
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest

import naysay as ns
from naysay.errors import NaysayError
from naysay.integrations.sentence_transformers import mine_hard_negatives
from naysay.mining._report import ReportOptions
from naysay.mining.options import MiningOptions
from naysay.search import Index, Recall, check_recall, open_vectors, search

RNG = np.random.default_rng(0)
QUERIES = RNG.normal(size=(24, 4)).astype(np.float32)
CORPUS = RNG.normal(size=(1000, 4)).astype(np.float32)
MINED = ns.mine(QUERIES, CORPUS[:60], np.arange(24), 3)
FOUND = search(QUERIES, CORPUS[:60], 8)
CANDIDATES = ns.mining.Candidates.of(FOUND)
WRONG = {
    "none": None,
    "text": "8",
    "empty text": "",
    "bytes": b"x",
    "number": 1.5,
    "below": -1,
    "huge": 10**20,
    "nan": float("nan"),
    "true": True,
    "object": object(),
    "list": [],
    "tuple": (1, 2, 3),
    "names": ("a", "b"),
    "dictionary": {"a": 1},
    "ragged": [[1], [1, 2]],
    "no dimensions": np.array(3),
    "text array": np.array("a"),
    "cube": np.zeros((2, 2, 2)),
    "objects": np.array([None]),
    "complex": 1j,
    "set": {1},
    "type": int,
    "date": np.datetime64("2020-01-01"),
    "floats": np.full(24, 1.5),
    "range": range(3),
    "slice": slice(1),
}
ROWS = {"q": [f"q{row}" for row in range(24)], "p": [f"p{row}" for row in range(24)]}
MODEL = SimpleNamespace(encode=lambda texts, **options: RNG.normal(size=(len(texts), 4)).astype(np.float32))
CALLS = {
    "mine": (ns.mine, {"queries": QUERIES, "corpus": CORPUS[:60], "positives": np.arange(24), "k": 3}),
    "search": (search, {"queries": QUERIES, "corpus": CORPUS[:60], "depth": 3}),
    "open_vectors": (open_vectors, {"vectors": CORPUS}),
    "check_recall": (check_recall, {"recall": Recall(0.9, 0.8, 1.0, 9, 3, ""), "min_recall": 0.5}),
    "mine_hard_negatives": (mine_hard_negatives, {"dataset": ROWS, "model": MODEL, "verbose": False}),
    "explain": (MINED.explain, {"anchor": 0}),
    "rethreshold": (MINED.rethreshold, {}),
    "select": (ns.mining.select, {"candidates": CANDIDATES, "k": 2}),
    "backfill": (ns.mining.backfill, {"candidates": CANDIDATES, "k": 2}),
    "exclude": (ns.mining.exclude, {"candidates": CANDIDATES}),
    "window": (ns.mining.window, {"candidates": CANDIDATES}),
    "drop_below": (ns.mining.drop_below, {"candidates": CANDIDATES, "min_score": 0.1}),
    "judge": (ns.mining.judge, {"candidates": CANDIDATES, "detector": ns.detectors.MaxScore(0.5)}),
    "rescore": (ns.mining.rescore, {"candidates": CANDIDATES, "score_pairs": lambda anchors, ids: ids * 1.0}),
    "merge": (ns.mining.merge, {"sources": {"a": FOUND}, "depth": 3}),
    "bm25": (ns.mining.bm25, {"query_texts": ["a b"], "corpus_texts": ["aa bb"], "depth": 2}),
}


def parameters():
    """(function, parameter) for all of them."""
    names = {name: [*inspect.signature(function).parameters] for name, (function, _) in CALLS.items()}
    names["mine"] = ["queries", "corpus", "positives", "k", *(field.name for field in fields(MiningOptions))]
    return [(name, parameter) for name, found in names.items() for parameter in found]


def check(function, parameter, options):
    """Either the value is taken, or the error names the parameter."""
    raised = []
    try:
        function(**options)
    except NaysayError as error:
        raised.append(error)
    for error in raised:
        nothing = options[parameter] is None and error.parameter == "threshold"  # one of three must be given
        assert f"`{parameter}" in str(error) or nothing, str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "parameter"), parameters())
def test_a_wrong_type_raises_an_error_that_names_it(name, parameter, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # a text may be a path
    function, options = CALLS[name]
    for value in WRONG.values():
        if not (parameter == "words" and value is int):  # a function of the caller's, which raises as it likes
            check(function, parameter, options | {parameter: value})


@pytest.mark.parametrize("parameter", ["path", *(field.name for field in fields(ReportOptions))])
def test_a_wrong_type_for_a_report(parameter, monkeypatch, tmp_path):
    monkeypatch.setattr("naysay.mining._report.write_report", lambda path, contents: path)
    for value in WRONG.values():
        check(MINED.report, parameter, {"path": tmp_path / "page.html"} | {parameter: value})


def test_a_wrong_type_for_an_index(monkeypatch, tmp_path):
    pytest.importorskip("faiss")
    monkeypatch.chdir(tmp_path)
    index = Index.build(CORPUS)
    index.save("index")
    calls = [
        (index.search, {"queries": QUERIES, "depth": 3, "exclude": None}),
        (index.measure, {"queries": QUERIES, "depth": 3, "sample": 5, "seed": 0}),
        (Index.open, {"path": "index", "corpus": CORPUS, "budget": None, "threads": None}),
        (index.save, {"path": "other"}),
    ]
    for function, options in calls:
        for parameter in options:
            for value in WRONG.values():
                check(function, parameter, options | {parameter: value})


def test_too_many_threads_and_a_depth_beyond_memory():
    with pytest.raises(NaysayError, match=r"`threads` must be at most 1024, got 100000"):
        ns.mine(QUERIES, CORPUS, None, 3, judge=None, threads=100_000)
    with pytest.raises(NaysayError, match=r"^search: `depth` must be at most 1000, the rows of the corpus"):
        search(QUERIES, CORPUS, 10**9)
    most = search(QUERIES, CORPUS, 3, threads=1000, budget=50_000_000)  # as many threads as fit
    assert most.ids.shape == (24, 3)
