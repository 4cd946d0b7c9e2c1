"""Reports: one HTML file that needs no network, with every text escaped."""

import re

import numpy as np
import pytest

import naysay as ns
from tests.contract.command import run
from tests.contract.mined_world import Families

WORLD = Families(n=40, others=120)
EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>&\"'"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    mined = ns.mine(WORLD.queries, WORLD.corpus, WORLD.labelled, 4)
    mined.report(
        path,
        title=f"Title {EVIL}",
        query_texts=[f"question {row} {EVIL}" for row in range(40)],
        corpus_texts=[f"document {row} {EVIL}" for row in range(WORLD.n_items)],
    )
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


def test_the_page_needs_no_network(page):
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert not re.search(r"@import|url\(\s*['\"]?(?:https?:)?//", page)
    assert page.lower().lstrip().startswith("<!doctype html")


def test_texts_are_escaped(page):
    assert EVIL not in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert" in page or "\\u003cscript" in page


def test_the_page_shows_the_rule_and_the_texts(page):
    assert "question " in page
    assert "document " in page


def test_a_training_run_is_drawn_from_its_log(tmp_path):
    monitor = ns.difficulty.Monitor(tmp_path / "run.jsonl", every=1)
    for step in range(4):
        scores = np.array([[0.1, 0.5], [0.2, 0.9]])
        negatives = ns.Negatives(np.array([[4, 5], [6, 7]]))
        monitor.observe(ns.Query([0, 1], step=step), negatives, scores, positive_scores=np.array([0.6, 0.7]))
    done = run("report", "run.jsonl", "--title", EVIL, folder=tmp_path)
    assert done.code == 0, done.err
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert EVIL not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
