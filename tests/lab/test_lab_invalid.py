"""Data, options and calls that are refused: which parameter the error names."""

import numpy as np
import pytest
from lab_worlds import ANSWERS, GRAPH, NODE_CLASSES, OF_TEXTS, OF_VECTORS, PICTURES, TEXT_PARTS, VECTORS, interactions

import naysay as ns
from naysay import lab
from naysay.errors import NaysayError

NO_PAIRS = ns.Positives.from_pairs([], [], 2, 4)
ONE, OTHER, WIDER = (ns.Positives.from_pairs([0], [item], 1, size) for item, size in ((0, 2), (1, 2), (0, 9)))
WANTED = ns.Positives.from_pairs([0, 1], [1, 2], n_items=4)
SCORES = np.zeros((2, 4))
EDGES = {name: getattr(GRAPH, name) for name in ("train", "validation", "test", "n_nodes", "labels")}
TEXTS = dict(zip(("train", "validation", "test"), TEXT_PARTS, strict=True))
TEXTS |= {"query_vectors": VECTORS[0], "document_vectors": VECTORS[1]}
TRAIN, UNSEEN = (ns.Triples(rows, 4, 1) for rows in ([[0, 0, 1]], [[2, 0, 3]]))
DATA = interactions()

INVALID = [
    (lab.Interactions, {"train": ONE, "validation": OTHER, "test": OTHER}, "validation"),
    (lab.Interactions, {"train": ONE, "validation": ONE, "test": ns.Positives.from_pairs([], [], 1, 2)}, "test"),
    (lab.Interactions, {"train": ONE, "validation": WIDER, "test": OTHER}, "validation"),
    (lab.split_by_user, {"users": [0, 0], "items": [0, 1]}, "users"),
    (lab.split_by_time, {"users": [0, 0], "items": [0, 1], "times": [1, 2]}, "users"),
    (lab.KnowledgeGraph, {"train": TRAIN, "validation": UNSEEN, "test": UNSEEN}, "validation"),
    (lab.split_triples, {"triples": [[0, 0, 1]] * 20, "n_entities": 2, "n_relations": 1}, "triples"),
    (lab.Graph, EDGES | {"train": [[0, 99]]}, "train"),
    (lab.Graph, EDGES | {"train": [[0, 0]]}, "train"),
    (lab.Graph, EDGES | {"test": np.zeros((0, 2), int)}, "test"),
    (lab.Graph, EDGES | {"test": [[58, 59]], "train": [[0, 1]]}, "validation"),
    (lab.Graph, EDGES | {"labels": NODE_CLASSES[:5]}, "labels"),
    (lab.Graph, EDGES | {"labels": np.zeros(60, int)}, "labels"),
    (lab.Graph, EDGES | {"labels": None, "parts": np.zeros(60, int)}, "parts"),
    (lab.Graph, EDGES | {"features": np.eye(3)}, "features"),
    (lab.split_edges, {"edges": [[0, 1], [1, 0], [1, 1]]}, "edges"),
    (lab.Images, {"images": np.zeros((40, 8))}, "images"),
    (lab.Images, {"images": np.zeros((9, 8, 8))}, "images"),
    (lab.Images, {"images": np.full((40, 8, 8), 2.5)}, "images"),
    (lab.Images, {"images": PICTURES, "labels": [1, 2]}, "labels"),
    (lab.Images, {"images": PICTURES, "labels": np.zeros(240, int)}, "labels"),
    (lab.Images, {"images": PICTURES, "parts": np.zeros(240, int)}, "parts"),
    (lab.split_by_document, {"pairs": ns.Positives.from_pairs([0, 1, 2], [0, 0, 0])}, "pairs"),
    (lab.TextPairs, TEXTS | {"document_vectors": None}, "document_vectors"),
    (lab.TextPairs, TEXTS | {"document_texts": ANSWERS}, "query_texts"),
    (lab.TextPairs, TEXTS | {"query_vectors": None, "document_vectors": None}, "query_texts"),
    (lab.TextPairs, TEXTS | {"query_vectors": np.eye(5)}, "query_vectors"),
    (lab.TextPairs, TEXTS | {"query_vectors": VECTORS[0][:, :3]}, "query_vectors"),
    (lab.TextPairs, TEXTS | {"query_vectors": np.zeros((120, 16))}, "query_vectors"),
    (lab.TextPairs, TEXTS | {"query_texts": ["a"]}, "query_texts"),
    (lab.TextPairs, TEXTS | {"test": TEXT_PARTS[0]}, "test"),
    (lab.Retrieval, {"data": OF_TEXTS, "model": "adapter"}, "model"),
    (lab.Retrieval, {"data": OF_VECTORS, "model": "subwords"}, "model"),
    (lab.Retrieval, {"data": DATA}, "data"),
    (lab.LinkPrediction, {"data": lab.KnowledgeGraph(TRAIN, TRAIN, TRAIN), "dim": 10**11}, "dim"),
    (lab.ranking, {"scores": np.zeros((3, 4)), "wanted": WANTED}, "scores"),
    (lab.ranking, {"scores": np.zeros((2, 5)), "wanted": WANTED}, "scores"),
    (lab.ranking, {"scores": np.array([[0, 0, 0, 0], [0, np.nan, 0, 0]]), "wanted": WANTED}, "scores"),
    (lab.ranking, {"scores": np.array([["a"] * 4] * 2), "wanted": WANTED}, "scores"),
    (lab.ranking, {"scores": SCORES, "wanted": [1]}, "wanted"),
    (lab.ranking, {"scores": SCORES, "wanted": NO_PAIRS}, "wanted"),
    (lab.ranking, {"scores": SCORES, "wanted": WANTED.with_ignored([0], [0])}, "wanted"),
    (lab.ranking, {"scores": SCORES, "wanted": WANTED, "known": ns.Positives.from_pairs([0], [0], 2, 9)}, "known"),
    (lab.ranking, {"scores": SCORES, "wanted": WANTED, "items": np.zeros((4, 7))}, "items"),
    (lab.ranking, {"scores": lambda rows: rows, "wanted": WANTED, "items": np.zeros(4)}, "items"),
    (lab.ranking, {"scores": SCORES, "wanted": WANTED, "candidates": np.zeros((3, 2), int)}, "candidates"),
    (lab.ranking, {"scores": SCORES, "wanted": WANTED, "candidates": [[4], [0]]}, "candidates"),
    (lab.ranking, {"scores": SCORES, "wanted": WANTED, "ties": "half"}, "ties"),
    (lab.ranking, {"scores": SCORES, "wanted": WANTED, "alone": "no"}, "alone"),
    (lab.ranking(SCORES, WANTED).recall, {"n": 0}, "n"),
    (lab.auc, {"positive": [], "negative": [1.0]}, "positive"),
    (lab.auc, {"positive": [1.0], "negative": [np.nan]}, "negative"),
    (lab.linear_probe, {"vectors": np.eye(2), "labels": [1, 1], "others": np.eye(2)}, "labels"),
    (lab.linear_probe, {"vectors": np.eye(2), "labels": [1], "others": np.eye(2)}, "vectors"),
    (lab.nearest_labels, {"vectors": np.eye(2), "labels": [1, 2], "others": np.eye(3)}, "others"),
    (lab.nearest_labels, {"vectors": np.eye(2), "labels": [1, 2], "others": np.eye(2), "k": 0}, "k"),
    (lab.fitting_methods, {"task": "recommendation"}, "task"),
    (ns.compare, {"data": DATA, "task": "recomendation"}, "task"),
    (ns.compare, {"data": DATA, "task": "text"}, "task"),
    (ns.compare, {"data": DATA, "model": "svd"}, "model"),
    (ns.compare, {"data": DATA, "seeds": 0}, "seeds"),
    (ns.compare, {"data": DATA, "steps": 3}, "steps"),
    (ns.compare, {"data": DATA, "budget": "soon"}, "budget"),
    (ns.compare, {"data": DATA, "budget": 0}, "budget"),
    (ns.compare, {"data": DATA, "split": "time"}, "split"),
    (ns.compare, {"data": DATA, "quick": True}, "data"),
    (ns.compare, {"data": DATA, "out": "missing/folder"}, "out"),
    (ns.compare, {}, "data"),
    (ns.compare, {"quick": True, "budget": "1s"}, "budget"),
    (ns.compare, {"quick": True, "liked": 4.0}, "liked"),
    (ns.compare, {"quick": True, "test": "held.csv"}, "test"),
    *(
        (ns.compare, {"data": DATA, "methods": methods}, "methods")
        for methods in (
            *("dynamc", "SimSiam", "TransE", "DPR", "losses.bpr", "uniform:0", "no_such_module:make", "os:nothing"),
            *("math:pi", ["dynamic", "dynamic"], 7, [], [7], {"mine": lambda parts: 3}),
        )
    ),
]


@pytest.mark.parametrize(("call", "kwargs", "parameter"), INVALID)
def test_an_invalid_call_names_its_parameter_before_any_work(call, kwargs, parameter, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("naysay.lab._run.Run.train", None)
    with pytest.raises(NaysayError) as caught:
        call(**kwargs)
    assert caught.value.parameter == parameter
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


LINES = "".join(f"u{n % 6},i{n // 6}\n" for n in range(60))
FILES = [
    (lab.read_interactions, "a.csv", "customer,product\na,b\n", {}, "path"),
    (lab.read_interactions, "a.csv", "user,item\n", {}, "path"),
    (lab.read_interactions, "a.csv", "user,item\na,b\n", {"liked": 3}, "liked"),
    (lab.read_interactions, "a.csv", "user,item,rating\na,b,1\n", {"liked": 3}, "liked"),
    (lab.read_interactions, "a.csv", "user,item\na,b\n", {"split": "time"}, "split"),
    (lab.read_interactions, "a.csv", "user,item\na,b\n", {"split": "tiem"}, "split"),
    (lab.read_interactions, "a.csv", "user,item\na,b\n", {"validation": "x.csv"}, "test"),
    (lab.read_interactions, "a.csv", "user,item\na,b\na,c\n", {}, "users"),
    (lab.read_interactions, "a.csv", "user,item,time\na,b,x\na,c,y\n", {}, "time"),
    (lab.read_interactions, "a.xlsx", "", {}, "path"),
    (lab.read_interactions, "a.csv", None, {}, "path"),
    (lab.read_triples, "few.tsv", "a\tr\tb\n", {}, "triples"),
    (lab.read_triples, "few.tsv", None, {}, "path"),
    (lab.read_triples, "few.tsv", "a\tr\tb\n", {"validation": "few.tsv"}, "test"),
    (lab.read_triples, "", None, {}, "path"),
    (lab.read_graph, "one.txt", "alone\n", {}, "path"),
    (lab.read_graph, "one.txt", "a b\n", {"test": "one.txt"}, "validation"),
    (lab.read_images, "none.png", "", {}, "path"),
    (lab.read_images, "none.npz", None, {}, "path"),
    (lab.read_images, "bad.npz", "no zip", {}, "path"),
    (lab.read_texts, "pairs.csv", "query,document\n", {}, "path"),
    (lab.read_texts, "pairs.csv", "a,b,c\n1,2,3\n", {}, "path"),
    (lab.read_texts, "pairs.csv", "query,document\n1,2\n", {"validation": "x.csv"}, "test"),
    (lab.read_texts, "", None, {"corpus": "docs.csv"}, "corpus"),
]


@pytest.mark.parametrize(("read", "name", "text", "options", "parameter"), FILES)
def test_a_file_that_cannot_be_used_names_its_parameter(read, name, text, options, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(NaysayError) as caught:
        read(tmp_path / name, **options)
    assert caught.value.parameter == parameter


def test_names_that_are_not_there_are_errors(tmp_path):
    (tmp_path / "pairs.tsv").write_text("query\tpositive\n1\tA\n2\tC\n")
    (tmp_path / "corpus.tsv").write_text("id\ttext\na\tA\nb\tB\n")
    with pytest.raises(NaysayError, match="C"):
        lab.read_texts(tmp_path / "pairs.tsv", corpus=tmp_path / "corpus.tsv")
    (tmp_path / "edges.txt").write_text("".join(f"n{a} n{b}\n" for a in range(6) for b in range(a)))
    (tmp_path / "classes.csv").write_text("nobody,x\n")
    with pytest.raises(NaysayError) as caught:
        lab.read_graph(tmp_path / "edges.txt", labels=tmp_path / "classes.csv")
    assert caught.value.parameter == "labels"
