"""A first line of headings in a file of edges or triples is no edge and no triple."""

from pathlib import Path

import numpy as np
import pytest

import naysay as ns

EDGES = [(f"p{a}", f"p{b}") for a in range(7) for b in range(a)]
TRIPLES = [(f"p{a}", "knows", f"p{b}") for a in range(6) for b in range(6) if a != b]


def written(path, rows, delimiter="\t"):
    Path(path).write_text("".join(f"{delimiter.join(row)}\n" for row in rows))
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("header", [("Source", "Target"), ("user", "item")])
@pytest.mark.parametrize("delimiter", ["\t", " "])
def test_the_header_of_an_edge_list_is_no_edge(header, delimiter):
    plain = ns.lab.read_graph(written("plain.txt", EDGES, delimiter))
    with pytest.warns(ns.NaysayWarning, match="header"):
        found = ns.lab.read_graph(written("edges.txt", [header, *EDGES], delimiter))
    assert found.n_nodes == plain.n_nodes == 7
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(found, part), getattr(plain, part))


def test_the_header_of_labels_is_no_node():
    labels = [("node", "label"), *((f"p{node}", f"c{node % 2}") for node in range(7))]
    with pytest.warns(ns.NaysayWarning, match="header"):
        found = ns.lab.read_graph(written("edges.txt", EDGES), labels=written("labels.txt", labels))
    assert sorted(np.unique(found.labels)) == [0, 1]


@pytest.mark.parametrize("header", [("head", "relation", "tail"), ("subject", "predicate", "object")])
def test_the_header_of_triples_is_no_triple(header):
    file = written("triples.tsv", [header, *TRIPLES])
    with pytest.warns(ns.NaysayWarning, match="header"):
        found = ns.Triples.from_tsv(file)
    assert (len(found), found.n_entities, found.n_relations) == (30, 6, 1)
    with pytest.warns(ns.NaysayWarning, match="header"):
        graph = ns.lab.read_triples(file)
    assert (graph.train.n_entities, graph.train.n_relations) == (6, 1)


def test_a_name_that_other_lines_have_is_no_heading():
    rows = [("head", "relation", "tail"), ("head", "knows", "p1"), *TRIPLES]
    found = ns.Triples.from_tsv(written("triples.tsv", rows))
    assert len(found) == len(rows)
