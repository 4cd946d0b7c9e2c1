"""The coverage benchmark: worlds, truths, and the table; the published result keeps what the documentation says."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.detectors import coverage
from benchmarks.detectors.coverage_worlds import planted
from benchmarks.docs.detectors import coverage as page

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def test_planted_worlds_have_the_positives_and_the_labels_that_they_say():
    even, uneven = (planted(60, kind, "random", "strong", 0) for kind in ("even", "uneven"))
    assert (np.bincount(even.true[0]) == 3).all()
    assert len(set(np.bincount(uneven.true[0]).tolist())) > 2
    easiest = planted(60, "even", "easiest", "strong", 0)
    for anchor in range(60):
        own = easiest.true[1][easiest.true[0] == anchor]
        scores = easiest.items[own] @ easiest.queries[anchor]
        assert easiest.labels[anchor] == own[scores.argmax()]
    assert even.is_true(np.arange(60), even.labels[:, None]).all()
    ids = np.array([[int(even.true[1][0]), 199]])
    assert even.is_true(np.array([0]), ids).tolist() == [[True, False]]


def test_a_run_keeps_finished_worlds_and_gathers_them(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "REPEATS", {50: 1})
    files = {"--cells": tmp_path / "cells.jsonl", "--out": tmp_path / "coverage.json"}
    given = [str(part) for pair in files.items() for part in pair]
    only = ["--sizes", "50", "--only", "even, random, strong"]
    coverage.main([*given, *only])
    first = files["--cells"].read_text()
    monkeypatch.setattr(coverage, "measured", lambda *_: pytest.fail("measured again"))
    coverage.main([*given, *only])
    assert files["--cells"].read_text() == first
    found = json.loads(files["--out"].read_text())["cells"]["even, random, strong, 50 anchors"]
    assert found["worlds"] == 1
    assert found["told"]["audit"] == 1
    line = json.loads(first.splitlines()[0])["audit"]
    assert line["held"] == (line["low"] <= line["truth"] <= line["high"])


def test_the_table_counts_what_was_told():
    said = {"estimate": 0.2, "low": 0.1, "high": 0.25}
    line = {"cell": "even, random, strong, 50 anchors", "audit": {"held": True, "truth": 0.1, **said}}
    other = {"cell": "even, random, strong, 50 anchors", "audit": {"held": False, "truth": 0.3, **said}}
    made = coverage.gathered([line, other, {"cell": "scifact"}])
    cell = made["cells"]["even, random, strong, 50 anchors"]
    assert (cell["worlds"], cell["told"], cell["held"]) == (2, {"audit": 2}, {"audit": 1})
    assert cell["truth"] == {"audit": 0.2}
    text = "\n".join(page(made, lambda head, rows: "\n".join(" | ".join(row) for row in [head, *rows])))
    assert "1 / 2" in text


def test_published_intervals_contain_the_truth_where_their_assumptions_hold():
    cells = json.loads((RESULTS / "coverage.json").read_text())["cells"]
    held = [cell for name, cell in cells.items() if ", random, " in name and "anchors" in name]
    for method in ("mine, nearest", "audit", "unlabelled_share", "false_negative_rate", "hidden_positives"):
        told = sum(cell["told"].get(method, 0) for cell in held)
        assert told >= 80
        assert sum(cell["held"].get(method, 0) for cell in held) >= 0.9 * told
