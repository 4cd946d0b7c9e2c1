"""What `naysay mine` prints: the last line, for each judge; nothing where the console is quiet; and ids as given."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import Families, World, lines

SHARE = r"[\d.]+ % \(95 % CI [\d.]+ to [\d.]+\)"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return Families(tmp_path_factory.mktemp("families"), n=150, others=500)


@pytest.mark.parametrize(
    ("judge", "line"),
    [
        ("auto", rf"By labels alone, an estimated {SHARE} of .*which leaves {SHARE} for a target of 5 %\..*"),
        ("none", rf"Nothing is suspected: the nearest are taken\. By labels alone, an estimated {SHARE} of .*"),
        ("share:0.95", rf"Suspected: scores above 95 % of that of the anchor's positive\. By labels alone.*{SHARE}.*"),
        ("max_score:0.5", rf"Suspected by MaxScore\(high=0\.5\)\. By labels alone.*The judge leaves {SHARE}\..*"),
    ],
)  # fmt: skip
def test_the_last_line(world, capsys, judge, line):
    said = world.run(judge=judge)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3
    assert shown[1].startswith("Next: ")
    assert re.fullmatch(line, shown[2]), shown[2]
    assert "leaves 0.0 %" not in shown[2]
    assert said.false_negatives.estimate > 0.001


@pytest.mark.parametrize("judge", ["auto", "share:0.95"])
def test_the_last_line_where_it_cannot_tell(tmp_path, capsys, judge):
    small = Families(tmp_path, n=10, others=200)
    small.run(judge=judge)
    last = capsys.readouterr().out.splitlines()[-1]
    assert ("how many of the nearest are false cannot be told: only 10 labelled" in last) == (judge == "auto")
    assert ("The share of false negatives is unknown (only 10 labelled positives" in last) == (judge != "auto")


@pytest.mark.parametrize("judge", ["auto", "share:0.95", "none"])
def test_anchors_without_a_positive_are_ordinary(tmp_path, capsys, judge):
    some = Families(tmp_path, n=150, others=500, unlabelled=3)
    said = some.run(judge=judge)
    last = capsys.readouterr().out.splitlines()[-1]
    assert said.negatives == 5 * 150
    assert ("50 anchors have no positive, to which the 95 % rule does not apply." in last) == (judge == "auto")
    assert ("50 anchors have no positive, and nothing of them is suspected." in last) == (
        judge[:5] in ("share", "margi")
    )


def test_ids_that_only_the_pairs_name(tmp_path):
    rng = np.random.default_rng(0)
    table = {"anchor": [f"q{row}" for row in range(12)], "positive": [f"d{(5 * row) % 12}" for row in range(12)]}
    pq.write_table(pa.table(table), tmp_path / "pairs.parquet")
    for name in ("q.npy", "c.npy"):
        np.save(tmp_path / name, rng.normal(size=(12, 4)).astype(np.float32))
    world = World.__new__(World)
    world.folder = tmp_path
    world.run(corpus=None, judge="none", k="3")
    for row, line in enumerate(lines(tmp_path / "out.jsonl")):
        assert line["anchor"] == f"q{row}"
        assert line["positives"] == [table["positive"][row]]
        assert {*line["negatives"]} <= {*table["positive"]} - {*line["positives"]}
