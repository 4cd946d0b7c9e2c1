"""Laws of all formats, with texts that no one would wish for: what is written is read back, in any kind of file."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.formats import FORMATS, read_negatives, write_negatives

_ODD = 'ab"\\\n\r\t\x00\x0b\x85\u00a0\u2028\u2029\u200f\u202e\u0301\ufeff\U0001f600{}[],:'
TEXTS = st.one_of(
    st.lists(st.sampled_from(_ODD), max_size=6).map("".join),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
)
TIMES = settings(max_examples=8)


@st.composite
def worlds(draw):
    """Arguments of `write_negatives`: distinct texts, known pairs, negatives that are not among them, and scores."""
    n, size, k = draw(st.integers(0, 5)), draw(st.integers(1, 7)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ids = np.full((n, k), -1)
    pairs = []
    for row in range(n):
        items = rng.permutation(size)
        cut = int(rng.integers(0, min(4, size + 1)))
        pairs += [(row, item) for item in sorted(items[:cut])]
        negatives = items[cut : cut + int(rng.integers(0, k + 1))]
        ids[row, sorted(rng.choice(k, len(negatives), replace=False))] = negatives  # holes stand anywhere
    anchors, items = np.array(pairs, np.int64).reshape(-1, 2).T
    return {
        "ids": ids,
        "positives": ns.Positives.from_pairs(anchors, items, n, size),
        "query_texts": draw(st.lists(TEXTS, min_size=n, max_size=n, unique=True)),
        "corpus_texts": draw(st.lists(TEXTS, min_size=size, max_size=size, unique=True)),
        "scores": np.where(ids >= 0, rng.random(ids.shape), -np.inf).astype(np.float32),
        "positive_scores": rng.random(len(pairs)).astype(np.float32),
    }


def wanted(world, chosen):
    """{anchor: {document: score}} of positives and of negatives, of the anchors that the format has rows for."""
    found = {}
    ids, known = world["ids"], world["positives"]
    anchors, items = known.pairs()
    for row, query in enumerate(world["query_texts"]):
        own = np.flatnonzero(anchors == row)
        positives = {world["corpus_texts"][items[place]]: world["positive_scores"][place] for place in own}
        slots = np.flatnonzero(ids[row] >= 0)
        negatives = {world["corpus_texts"][ids[row, slot]]: world["scores"][row, slot] for slot in slots}
        is_short = chosen.rectangular and len(slots) < ids.shape[1]
        if chosen.keeps or (positives and negatives and not is_short):
            found[query] = (positives, negatives)
    return {query: both for query, both in found.items() if both != ({}, {})}


def contents(read, world):
    """The same of a file that was read; names and row numbers are put back to texts."""
    queries = texts_of(read.query_ids, read.query_texts, world["query_texts"], len(read.ids))
    corpus = texts_of(read.corpus_ids, read.corpus_texts, world["corpus_texts"], read.positives.n_items)
    anchors, items = read.positives.pairs()
    found = {}
    for row, query in enumerate(queries):
        own = np.flatnonzero(anchors == row)
        slots = np.flatnonzero(read.ids[row] >= 0)
        beside = read.positive_scores if read.positive_scores is not None else np.zeros(len(items))
        scores = read.scores if read.scores is not None else np.zeros(read.ids.shape)
        positives = {corpus[items[place]]: beside[place] for place in own}
        found[query] = (positives, {corpus[read.ids[row, slot]]: scores[row, slot] for slot in slots})
    return {query: both for query, both in found.items() if both != ({}, {})}


def texts_of(ids, texts, known, size):
    if ids is not None:
        named = [known[int(name)] for name in ids]
        assert texts is None or texts == named
        return named
    return known[:size] if texts is None else texts


def write(folder, name, world, suffix=None, *, scores=False):
    path = Path(folder) / f"train{suffix or FORMATS[name].suffixes[0]}"
    options = {"corpus_path": "data/wiki"} if name == "nemo" else {}
    return path, write_negatives(path, name, **world, **options, with_scores=scores)


@pytest.mark.parametrize("name", FORMATS)
@TIMES
@given(world=worlds())
def test_what_is_written_is_read_back_from_every_kind_of_file(name, world):
    chosen = FORMATS[name]
    has_scores = chosen.scores != "none" and name != "labelled-pair"  # which has scores in place of labels
    for suffix in (suffix for suffix in chosen.suffixes if suffix != ".hf"):
        with tempfile.TemporaryDirectory() as folder:
            path, written = write(folder, name, world, suffix, scores=has_scores)
            assert [file.name for file in Path(folder).iterdir()] == [path.name]
            read = read_negatives(path, name)
            assert (written.rows, written.format) == (read.rows, name)
            found, expected = contents(read, world), wanted(world, chosen)
            if has_scores:
                assert found == expected
            else:
                assert {query: tuple(map(set, both)) for query, both in found.items()} == {
                    query: tuple(map(set, both)) for query, both in expected.items()
                }
            if suffix == ".jsonl":  # nothing but the end of a row ends a line
                assert len(path.read_bytes().decode().splitlines()) == written.rows


@pytest.mark.parametrize("name", ["labelled-pair", "nemo", "colbert"])
def test_blocks_do_not_show(name, tmp_path, monkeypatch):
    """One anchor a block, or all of them in one: the same bytes."""
    rng = np.random.default_rng(0)
    ids = rng.permuted(np.tile(np.arange(20, 60), (50, 1)), axis=1)[:, :3]
    ids[rng.random(ids.shape) < 0.3] = -1
    known = ns.Positives.from_pairs(rng.integers(0, 50, 90), rng.integers(0, 20, 90), 50, 60)
    texts = {"query_texts": [f"q{i}" for i in range(50)], "corpus_texts": [f"d{i}" for i in range(60)]}
    path, whole = write(tmp_path, name, {"ids": ids, "positives": known, **texts})
    data = path.read_bytes()
    module = sys.modules["naysay.formats.write_negatives"]
    monkeypatch.setattr(module, "_FIRST_BLOCK", 1)
    monkeypatch.setattr(module, "_MOST_CELLS", 1)
    path, parts = write(tmp_path, name, {"ids": ids, "positives": known, **texts})
    assert (whole.rows, whole.dropped) == (parts.rows, parts.dropped)
    assert whole.rows > 30
    assert path.suffix == ".parquet" or path.read_bytes() == data


def test_names_and_texts_come_as_lists_arrays_arrow_or_a_vocabulary(tmp_path):
    known = ns.Positives.from_pairs([0], [0], 1, 3)
    path = tmp_path / "train.jsonl"
    makers = (tuple, np.array, pa.array, lambda each: pa.chunked_array([each[:1], each[1:]]), ns.Vocabulary)
    for make in makers:
        given = {"query_ids": make(["q"]), "corpus_ids": make(["a", "b", "c"])}
        write_negatives(path, "ids", ids=[[2]], positives=known, **given)
        assert json.loads(path.read_text()) == {"anchor": "q", "positives": ["a"], "negatives": ["c"]}
    write_negatives(path, "ids", ids=[[1]], positives=known)  # without names, row numbers
    assert json.loads(path.read_text()) == {"anchor": 0, "positives": [0], "negatives": [1]}


def test_pairs_to_ignore_are_no_positives(tmp_path):
    known = ns.Positives.from_pairs([0, 1], [1, 1], 2, 4).with_ignored([0, 1], [0, 0])
    scores = np.array([np.nan, 0.5, np.nan, 0.25], np.float32)
    path = tmp_path / "train.jsonl"
    given = {"scores": [[0.125], [0.75]], "positive_scores": scores, "with_scores": True}
    write_negatives(path, "ids", ids=[[2], [3]], positives=known, **given)
    first, second = map(json.loads, path.read_text().splitlines())
    assert (first["positives"], first["positive_scores"], second["positive_scores"]) == ([1], [0.5], [0.25])


def test_anchors_without_a_row_are_counted(tmp_path):
    known = ns.Positives.from_pairs([0, 2], [0, 0], 3)
    texts = {"query_texts": list("qrs"), "corpus_texts": list("abcd")}
    written = write_negatives(tmp_path / "a.jsonl", "triplet", ids=[[2], [3], [-1]], positives=known, **texts)
    assert (written.rows, written.dropped) == (1, {"no positive": 1, "no negative": 1})


def test_a_score_is_written_with_as_few_digits_as_say_it(tmp_path):
    known = ns.Positives.from_pairs([0], [0], 1, 3)
    path = tmp_path / "train.jsonl"
    given = {"scores": np.array([[0.1, 1e-30]], np.float32), "positive_scores": [1 / 3], "with_scores": True}
    write_negatives(path, "ids", ids=[[1, 2]], positives=known, **given)
    assert json.loads(path.read_text())["negative_scores"] == [0.1, 1e-30]
    assert json.loads(path.read_text())["positive_scores"] == [0.33333334]
