"""Every format, written and read back; golden rows; runs and BEIR."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import naysay as ns

# Two queries; the first has two positives and two negatives, the second one of each.
IDS = np.array([[3, 0], [2, -1]])
KNOWN = ns.Positives.from_pairs([0, 0, 1], [1, 2, 3], 2, 4)
QUERIES = ["what is a cat", "\u05de\u05d4 \u202e\u05db\u05dc\u05d1"]
CORPUS = ["a fish", 'a "cat"', "a pet\nthat purrs", "a dog"]
GIVEN = {
    "ids": IDS,
    "positives": KNOWN,
    "query_ids": ["q1", "q2"],
    "query_texts": QUERIES,
    "corpus_ids": ["d0", "d1", "d2", "d3"],
    "corpus_texts": CORPUS,
}
SCORES = np.array([[0.75, 0.5], [0.25, -np.inf]], np.float32)
POSITIVE_SCORES = [1.0, 0.875, 0.625]
FISH, CAT, PET, DOG = CORPUS
ONE, TWO = QUERIES

GOLDEN = {
    "triplet": [
        {"anchor": ONE, "positive": CAT, "negative": DOG},
        {"anchor": ONE, "positive": CAT, "negative": FISH},
        {"anchor": ONE, "positive": PET, "negative": DOG},
        {"anchor": ONE, "positive": PET, "negative": FISH},
        {"anchor": TWO, "positive": DOG, "negative": PET},
    ],
    "n-tuple": [
        {"anchor": ONE, "positive": CAT, "negative_1": DOG, "negative_2": FISH},
        {"anchor": ONE, "positive": PET, "negative_1": DOG, "negative_2": FISH},
    ],
    "labelled-pair": [
        {"anchor": ONE, "document": CAT, "label": 1},
        {"anchor": ONE, "document": PET, "label": 1},
        {"anchor": ONE, "document": DOG, "label": 0},
        {"anchor": ONE, "document": FISH, "label": 0},
        {"anchor": TWO, "document": DOG, "label": 1},
        {"anchor": TWO, "document": PET, "label": 0},
    ],
    "labelled-list": [
        {"anchor": ONE, "documents": [CAT, DOG, FISH], "labels": [1, 0, 0]},
        {"anchor": ONE, "documents": [PET, DOG, FISH], "labels": [1, 0, 0]},
        {"anchor": TWO, "documents": [DOG, PET], "labels": [1, 0]},
    ],
    "flagembedding": [
        {"query": ONE, "pos": [CAT, PET], "neg": [DOG, FISH]},
        {"query": TWO, "pos": [DOG], "neg": [PET]},
    ],
    "tevatron": [
        {
            "query_id": "q1",
            "query": ONE,
            "positive_passages": [{"docid": "d1", "text": CAT}, {"docid": "d2", "text": PET}],
            "negative_passages": [{"docid": "d3", "text": DOG}, {"docid": "d0", "text": FISH}],
        },
        {
            "query_id": "q2",
            "query": TWO,
            "positive_passages": [{"docid": "d3", "text": DOG}],
            "negative_passages": [{"docid": "d2", "text": PET}],
        },
    ],
    "tevatron-ids": [
        {
            "query_id": "q1",
            "query_text": ONE,
            "positive_document_ids": ["d1", "d2"],
            "negative_document_ids": ["d3", "d0"],
        },
        {"query_id": "q2", "query_text": TWO, "positive_document_ids": ["d3"], "negative_document_ids": ["d2"]},
    ],
    "nemo": [
        {
            "question_id": "q1",
            "question": ONE,
            "corpus_id": "wiki",
            "pos_doc": [{"id": "d1"}, {"id": "d2"}],
            "neg_doc": [{"id": "d3"}, {"id": "d0"}],
        },
        {
            "question_id": "q2",
            "question": TWO,
            "corpus_id": "wiki",
            "pos_doc": [{"id": "d3"}],
            "neg_doc": [{"id": "d2"}],
        },
    ],
    "nemo-inline": [
        {"query": ONE, "pos_doc": CAT, "neg_doc": [DOG, FISH]},
        {"query": ONE, "pos_doc": PET, "neg_doc": [DOG, FISH]},
        {"query": TWO, "pos_doc": DOG, "neg_doc": [PET]},
    ],
    "ms-swift": [
        {
            "messages": [{"role": "user", "content": ONE}],
            "positive_messages": [[{"role": "user", "content": CAT}], [{"role": "user", "content": PET}]],
            "negative_messages": [[{"role": "user", "content": DOG}], [{"role": "user", "content": FISH}]],
        },
        {
            "messages": [{"role": "user", "content": TWO}],
            "positive_messages": [[{"role": "user", "content": DOG}]],
            "negative_messages": [[{"role": "user", "content": PET}]],
        },
    ],
    "colbert": [[0, 1, 3], [0, 1, 0], [0, 2, 3], [0, 2, 0], [1, 3, 2]],
    "colbert-nway": [[0, 1, 3, 0], [0, 2, 3, 0]],
    "ids": [
        {"anchor": "q1", "positives": ["d1", "d2"], "negatives": ["d3", "d0"]},
        {"anchor": "q2", "positives": ["d3"], "negatives": ["d2"]},
    ],
}
RECTANGULAR = ("n-tuple", "colbert-nway")  # an anchor with fewer than k negatives has no row
WITH_SCORES = ("triplet", "n-tuple", "labelled-list", "flagembedding", "nemo", "colbert-nway", "ids")
TABLES = ("triplet", "n-tuple", "labelled-pair", "labelled-list", "flagembedding", "tevatron", "tevatron-ids", "ids")


def write(folder, name, suffix=".jsonl", **options):
    path = folder / f"train{'.json' if name == 'nemo' else suffix}"
    if name == "nemo":
        options["corpus_path"] = "data/wiki"
    return path, ns.formats.write_negatives(path, name, **GIVEN, **options)


def rows_of(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    text = path.read_text(encoding="utf-8")
    return json.loads(text)["data"] if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


def contents(read, name):
    """{query: (positives, negatives)} of a file that was read, in the names that the format has."""
    found = {}
    for row in range(len(read.ids)):
        query = read.query_texts[row] if read.query_texts else read.query_ids[row] if read.query_ids else row
        items = read.corpus_texts or read.corpus_ids or range(10)
        anchors, positives = read.positives.pairs()
        own = sorted(str(items[item]) for item in positives[anchors == row])
        negatives = [str(items[item]) for item in read.ids[row] if item >= 0]
        if own or negatives:
            found[str(query)] = (own, negatives)
    return found


def test_the_list_of_formats_is_the_list_of_golden_rows():
    assert set(ns.formats.FORMATS) - {"trec"} == set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_file_has_the_golden_rows(name, tmp_path):
    path, written = write(tmp_path, name)
    assert rows_of(path) == GOLDEN[name]
    assert (written.path, written.format, written.rows) == (path, name, len(GOLDEN[name]))
    assert sum(written.dropped.values()) == (1 if name in RECTANGULAR else 0)


@pytest.mark.parametrize("name", TABLES)
def test_parquet_has_the_same_rows(name, tmp_path):
    path, _ = write(tmp_path, name, ".parquet")
    assert rows_of(path) == GOLDEN[name]


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_what_is_written_is_read_back(name, suffix, tmp_path):
    if suffix == ".parquet" and name not in TABLES:
        with pytest.raises(ns.NaysayError) as caught:
            write(tmp_path, "colbert" if name == "nemo" else name, suffix)
        assert caught.value.parameter in ("path", "format")
        return
    path, _ = write(tmp_path, name, suffix)
    read = ns.formats.read_negatives(path, name)
    assert read.format == name
    by_text = read.corpus_texts is not None
    queries = QUERIES if read.query_texts else ["q1", "q2"] if read.query_ids else ["0", "1"]
    items = CORPUS if by_text else GIVEN["corpus_ids"] if read.corpus_ids else ["0", "1", "2", "3"]
    wanted = {}
    for row in range(1 if name in RECTANGULAR else 2):
        known = [[1, 2], [3]][row]
        found = [item for item in IDS[row] if item >= 0]
        wanted[queries[row]] = (sorted(items[item] for item in known), [items[item] for item in found])
    assert contents(read, name) == wanted


@pytest.mark.parametrize("name", WITH_SCORES)
def test_scores_are_written_and_read_back(name, tmp_path):
    path, _ = write(tmp_path, name, scores=SCORES, positive_scores=POSITIVE_SCORES, with_scores=True)
    read = ns.formats.read_negatives(path, name)
    assert read.scores[read.ids >= 0].tolist() == ([0.75, 0.5] if name in RECTANGULAR else [0.75, 0.5, 0.25])
    assert read.positive_scores.tolist() == (POSITIVE_SCORES[:2] if name in RECTANGULAR else POSITIVE_SCORES)


@pytest.mark.parametrize("name", ["labelled-pair", "labelled-list", "flagembedding", "tevatron", "nemo-inline", "ids"])
def test_a_format_is_told_by_its_columns(name, tmp_path):
    path, _ = write(tmp_path, name)
    assert ns.formats.read_negatives(path).format == name


def test_a_file_without_an_anchor_is_written_and_half_a_file_never(tmp_path):
    nothing = {**GIVEN, "ids": np.full((2, 2), -1)}
    ns.formats.write_negatives(tmp_path / "none.jsonl", "ids", **nothing)
    assert all(row["negatives"] == [] for row in rows_of(tmp_path / "none.jsonl"))
    with pytest.raises(ns.NaysayError):
        ns.formats.write_negatives(tmp_path / "bad.jsonl", "triplet", **{**GIVEN, "ids": np.array([[3, 0], [99, -1]])})
    assert [path.name for path in tmp_path.iterdir()] == ["none.jsonl"]


def test_datasets_of_hugging_face(tmp_path):
    import datasets

    path, _ = write(tmp_path, "triplet", ".hf")
    assert datasets.load_from_disk(str(path)).to_list() == GOLDEN["triplet"]
    assert ns.formats.read_negatives(path).rows == 5


def test_runs_of_trec_are_written_and_read_back(tmp_path):
    ids, scores = np.array([[3, 0], [2, -1]]), SCORES
    ns.formats.write_negatives(tmp_path / "mined.trec", "trec", **GIVEN, scores=scores, tag="mine")
    lines = ["q1 Q0 d3 1 0.75 mine", "q1 Q0 d0 2 0.5 mine", "q2 Q0 d2 1 0.25 mine"]
    assert (tmp_path / "mined.trec").read_text().splitlines() == lines
    run = ns.formats.read_run(tmp_path / "mined.trec", ["q1", "q2"], GIVEN["corpus_ids"])
    assert run.found.ids.tolist() == ids.tolist()
    assert run.found.scores[ids >= 0].tolist() == [0.75, 0.5, 0.25]
    assert run.tag == "mine"
    ns.formats.write_run(
        tmp_path / "again.trec", run.found, query_ids=["q1", "q2"], corpus_ids=GIVEN["corpus_ids"], tag="mine"
    )
    assert (tmp_path / "again.trec").read_text().splitlines() == lines


def test_beir_folders_are_read(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "cat"}\n{"_id": "q2", "text": "dog"}\n')
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Cats", "text": "purr"}\n{"_id": "d2", "title": "", "text": "bark"}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\nq2\td1\t0\n")
    beir = ns.formats.read_beir(tmp_path)
    assert (beir.query_ids, beir.corpus_ids) == (["q1", "q2"], ["d1", "d2"])
    assert beir.corpus_titles == ["Cats", ""]
    pairs = set(zip(*(part.tolist() for part in beir.positives.pairs()), strict=True))
    assert pairs >= {(0, 0), (1, 1)}
    assert not beir.positives.contains([1], [0])[0]
    strict = ns.formats.read_beir(tmp_path, min_grade=2).positives
    assert strict.contains([0, 1], [0, 1]).tolist() == [True, False]
