"""Runs in TREC's form: in, out, and round; against plain loops."""

import gzip
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay import Vocabulary
from naysay.formats import read_run, write_run
from naysay.search import Found

_ODD = st.lists(st.sampled_from('aB1-_/"\\\u00a0\u2028\u200f\x85'), max_size=5).map("".join)
_ANY = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
NAMES = st.one_of(_ODD, _ANY).filter(lambda name: name and not {*name} & {*" \t\n\r\x0b\x0c"})
RUN = """\
q2 Q0 d3 1 0.5 mine
q1 Q0 d2 7 0.25 mine
q1\tQ0\td1   3 0.75 mine

q1 Q0 d3 9 0.25 mine
"""


def put(tmp_path, text, name="run.trec"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_run_is_ranked_by_its_scores(tmp_path):
    run = read_run(put(tmp_path, RUN), ["q0", "q1", "q2"], ["d3", "d2", "d1"])
    assert run.found.ids.tolist() == [[-1, -1, -1], [2, 0, 1], [0, -1, -1]]
    assert run.found.scores[1].tolist() == [0.75, 0.25, 0.25]
    assert np.isneginf(run.found.scores[0]).all()
    assert (run.tag, run.lines, run.dropped) == ("mine", 4, {})


def test_depth_and_unknown_names_are_counted(tmp_path):
    run = read_run(put(tmp_path, RUN), ["q1"], ["d1", "d2"], depth=1, unknown="drop")
    assert run.found.ids.tolist() == [[0]]
    assert (run.lines, run.dropped) == (4, {"unknown query": 1, "unknown document": 1, "below depth": 1})
    run = read_run(put(tmp_path, RUN), ["q1", "q2"], ["d1", "d2", "d3"], depth=5)
    assert run.found.ids.shape == (2, 5)


def test_compressed_numbered_and_empty_runs(tmp_path):
    path = put(tmp_path, gzip.compress(b"1 Q0 4 1 2.5 x\n"), "run.gz")
    run = read_run(path, 3, 5)
    assert run.found.ids.tolist() == [[-1], [4], [-1]]
    run = read_run(put(tmp_path, ""), Vocabulary(["a"]), ["b"])
    assert (run.found.ids.shape, run.lines, run.tag) == ((1, 0), 0, "")


@st.composite
def candidates(draw):
    queries = draw(st.lists(NAMES, max_size=4, unique=True))
    corpus = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    rows = [draw(st.lists(st.sampled_from(range(len(corpus))), unique=True, max_size=6)) for _ in queries]
    scores = [draw(st.lists(finite, min_size=len(row), max_size=len(row))) for row in rows]
    return queries, corpus, rows, scores


@settings(max_examples=20)
@given(candidates())
def test_what_is_written_is_read_back(world):
    queries, corpus, rows, scores = world
    ids, values = np.full((len(rows), 6), -1, np.int64), np.full((len(rows), 6), -np.inf, np.float32)
    want = []
    for place, (row, numbers) in enumerate(zip(rows, scores, strict=True)):
        ids[place, : len(row)], values[place, : len(row)] = row, numbers
        want.append(
            sorted(zip(row, map(float, np.float32(numbers)), strict=True), key=lambda pair: (-pair[1], pair[0]))
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.trec"
        lines = write_run(path, Found(ids, values), query_ids=queries, corpus_ids=corpus, tag="t\u00e4g")
        assert lines == sum(map(len, rows)) == len(path.read_bytes().splitlines())
        ranks = [int(line.split()[3]) for line in path.read_bytes().split(b"\n")[:-1]]
        assert ranks == [rank for row in rows for rank in range(1, len(row) + 1)]
        run = read_run(path, queries, corpus, depth=6)
    got = [
        [(int(i), float(s)) for i, s in zip(*pair, strict=True) if i >= 0]
        for pair in zip(run.found.ids, run.found.scores, strict=True)
    ]
    assert got == want
    assert run.tag == ("t\u00e4g" if lines else "")


def test_numbers_stand_for_names_that_are_not_given(tmp_path):
    found = Found(np.array([[2, 0]]), np.array([[0.1, 0.1]], np.float32))
    write_run(tmp_path / "run.trec", found)
    assert (tmp_path / "run.trec").read_text() == "0 Q0 0 1 0.1 naysay\n0 Q0 2 2 0.1 naysay\n"
