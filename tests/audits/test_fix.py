"""`Audit.fix`: the set without what was found, in its own format; all else stays, and each change has its reason."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay.formats import FORMATS, read_negatives, write_negatives

QUERIES = ["cat", "dog", "bird"]
CORPUS = ["a cat", "a dog", "a bird", "CAT.", "fish", "cow", "horse", "pig", "A  cat!"]
IDS = np.array([[3, 4, 8], [4, 5, 6], [6, 7, 4]])  # of the cat: its own text, and that of its positive
KNOWN = ns.Positives.from_pairs([0, 1, 2], [0, 1, 2], 3, 9)
OF_TEXTS = [name for name, each in FORMATS.items() if "corpus" in each.texts]


def write(folder, name, suffix=None, **options):
    path = folder / f"train{suffix or FORMATS[name].suffixes[-1]}"
    texts = {"query_texts": QUERIES, "corpus_texts": CORPUS}
    write_negatives(path, name, ids=IDS, positives=KNOWN, **texts, **options)
    return path


def negatives(path, name):
    """{query: its negatives} of a file."""
    read = read_negatives(path, name)
    return {
        query: [read.corpus_texts[item] for item in row if item >= 0]
        for query, row in zip(read.query_texts, read.ids, strict=True)
    }


@pytest.mark.parametrize("name", OF_TEXTS)
def test_every_format_of_texts_loses_what_was_found_and_nothing_else(name, tmp_path):
    path = write(tmp_path, name, ".jsonl")
    before = path.read_bytes()
    found = ns.audit(path)
    assert found.changes == {"own text": 1, "duplicate": 1}
    fixed = found.fix(tmp_path / "fixed.jsonl")
    assert path.read_bytes() == before
    assert fixed.changes == found.changes
    kept = negatives(fixed.path, name)
    assert kept.pop("cat")[-1] not in ("CAT.", "A  cat!")
    assert kept == {"dog": ["fish", "cow", "horse"], "bird": ["horse", "pig", "fish"]}
    again = ns.audit(fixed.path)
    assert (again.changes, again.duplicates) == ({}, 0)
    assert fixed.filled == (2 if FORMATS[name].rectangular else 0)


def test_each_change_has_its_row_and_reason(tmp_path):
    fixed = ns.audit(write(tmp_path, "flagembedding", ".jsonl")).fix(tmp_path / "fixed.jsonl")
    changes = [json.loads(line) for line in fixed.changes_path.read_text().splitlines()]
    assert changes == [
        {"row": 1, "anchor": "cat", "negative": "CAT.", "reason": "own text", "score": None},
        {"row": 1, "anchor": "cat", "negative": "A  cat!", "reason": "duplicate", "score": None},
    ]
    assert (fixed.rows, fixed.kept, fixed.changes_path.name) == (3, 3, "fixed.changes.jsonl")


def test_other_columns_names_and_order_stay(tmp_path):
    rows = [
        {"id": 7, "q": "dog", "answer": "a dog", "negative": "pig"},
        {"id": 3, "q": "cat", "answer": "a cat", "negative": "Cat"},
        {"id": 5, "q": "cat", "answer": "a cat", "negative": "cow"},
    ]
    columns = [{name: row[name] for name in ("q", "answer", "negative")} for row in rows]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, columns)))
    fixed = ns.audit(path).fix(tmp_path / "fixed.jsonl")
    assert [json.loads(line) for line in fixed.path.read_text().splitlines()] == [columns[0], columns[2]]
    listed = {"query": "cat", "pos": ["a cat"], "neg": ["cat.", "cow"], "neg_scores": [0.5, 0.25], "prompt": "find"}
    path.write_text(json.dumps(listed))
    fixed = ns.audit(path).fix(tmp_path / "fixed.jsonl")
    assert json.loads(fixed.path.read_text()) == {**listed, "neg": ["cow"], "neg_scores": [0.25]}


def test_known_elsewhere_transitive_and_repeated(tmp_path):
    path = tmp_path / "train.jsonl"
    rows = [("a", ["p"], ["q", "x", "x"]), ("a", ["q"], ["y"]), ("b", ["q", "r"], ["p", "z"])]
    path.write_text("\n".join(json.dumps(dict(zip(("query", "pos", "neg"), row, strict=True))) for row in rows))
    found = ns.audit(path)
    assert found.changes == {"known elsewhere": 1, "transitive": 1, "repeated": 1}
    fixed = found.fix(tmp_path / "fixed.jsonl")
    assert [json.loads(line)["neg"] for line in fixed.path.read_text().splitlines()] == [["x"], ["y"], ["z"]]
    some = found.fix(tmp_path / "some.jsonl", reasons=["repeated"])
    assert some.changes == {"repeated": 1}
    assert [json.loads(line)["neg"] for line in some.path.read_text().splitlines()] == [["q", "x"], ["y"], ["p", "z"]]


def test_suspected_negatives_go_and_the_share_falls(tmp_path):
    from family_world import families

    world = families(200, sizes=(2,), others=100)
    ns.mine(world.anchor_vectors, world.item_vectors, world.known, 8, judge=None).write(tmp_path / "t.parquet", "ids")
    vectors = {"query_vectors": world.anchor_vectors, "corpus_vectors": world.item_vectors}
    found = ns.audit(tmp_path / "t.parquet", **vectors)
    fixed = found.fix(tmp_path / "fixed.parquet")
    assert fixed.changes["suspected"] == found.suspected_by["score"]
    assert pq.read_schema(fixed.path) == pq.read_schema(tmp_path / "t.parquet")
    before, after = (read_negatives(path).ids for path in (tmp_path / "t.parquet", fixed.path))
    rates = [world.false_negative_rate(np.arange(200), ids) for ids in (before, after)]
    assert (before >= 0).sum() - (after >= 0).sum() == sum(fixed.changes.values())
    assert rates[1] < rates[0] / 1.5


def test_a_row_of_fixed_length_with_scores_goes(tmp_path):
    scores = {"scores": np.ones((3, 3)), "positive_scores": np.ones(3), "with_scores": True}
    path = write(tmp_path, "n-tuple", ".parquet", **scores)
    fixed = ns.audit(path).fix(tmp_path / "fixed.parquet")
    assert (fixed.rows, fixed.kept, fixed.filled) == (3, 2, 0)


@pytest.mark.parametrize(("suffix", "source"), [(".hf", "train.hf"), (".parquet", "parts")])
def test_a_data_set_of_hugging_face_and_a_folder_of_files(suffix, source, tmp_path):
    path = write(tmp_path, "flagembedding", suffix)
    if source == "parts":
        (tmp_path / source).mkdir()
        path.rename(tmp_path / source / "1.parquet")
    fixed = ns.audit(tmp_path / source).fix(tmp_path / f"fixed{suffix}")
    assert negatives(fixed.path, "flagembedding")["cat"] == ["fish"]


def test_the_header_of_nemo_stays(tmp_path):
    ids = {"query_ids": ["a", "b", "c"], "corpus_ids": [str(row) for row in range(9)]}
    path = write(tmp_path, "nemo", ".json", corpus_path="data/wiki", **ids)
    document = json.loads(path.read_text())
    document["data"][0]["neg_doc"].append(document["data"][0]["pos_doc"][0])
    path.write_text(json.dumps(document))
    fixed = ns.audit(path).fix(tmp_path / "fixed.json")
    assert fixed.changes == {"known elsewhere": 1}
    assert json.loads(fixed.path.read_text())["corpus"] == {"path": "data/wiki"}


def listed(path, *rows):
    """A file of JSON lines."""
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("other", ["NaN", "-Infinity", '"\\ud800"'])
def test_values_that_json_cannot_have_stay(other, tmp_path):
    row = f'{{"query": "q", "pos": ["a cat"], "neg": ["A cat.", "x"], "other": {other}}}'
    fixed = ns.audit(listed(tmp_path / "train.jsonl", row)).fix(tmp_path / "fixed.jsonl")
    assert fixed.path.read_text() == row.replace('"A cat.", ', "") + "\n"


def test_half_a_surrogate_pair_in_a_text_is_no_obstacle(tmp_path):
    row = {"query": "q \ud800", "pos": ["a cat"], "neg": ["A cat.", "x"]}
    fixed = ns.audit(listed(tmp_path / "train.jsonl", row)).fix(tmp_path / "fixed.jsonl")
    assert (lines(fixed.path), lines(fixed.changes_path)[0]["anchor"]) == ([{**row, "neg": ["x"]}], row["query"])


def test_the_list_of_changes_never_replaces_the_input(tmp_path):
    path = listed(tmp_path / "fixed.changes.jsonl", {"query": "q", "pos": ["a cat"], "neg": ["A cat.", "x"]})
    before = path.read_bytes()
    with pytest.raises(ns.NaysayError, match="another file"):
        ns.audit(path).fix(tmp_path / "fixed.jsonl")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_a_negative_may_be_both_suspected_and_repeated(tmp_path):
    path = listed(tmp_path / "train.jsonl", {"query": "q", "pos": ["a cat"], "neg": ["A cat.", "A cat.", "x", "x"]})
    found = ns.audit(path)
    expected = {None: ["x"], ("repeated",): ["A cat.", "x"], ("duplicate",): ["x", "x"], (): ["A cat."] * 2 + ["x"] * 2}
    for reasons, kept in expected.items():
        fixed = found.fix(tmp_path / "fixed.jsonl", reasons)
        assert lines(fixed.path)[0]["neg"] == kept
    assert found.fix(tmp_path / "fixed.jsonl").changes == found.changes == {"duplicate": 1, "repeated": 2}


def test_a_repeated_negative_is_found_beside_another_positive(tmp_path):
    rows = [("a cat", "x"), ("a cat", "x"), ("tabby", "x"), ("tabby", "y")]
    names = ("anchor", "positive", "negative")
    path = listed(tmp_path / "train.jsonl", *(dict(zip(names, ("q", *row), strict=True)) for row in rows))
    found = ns.audit(path)
    assert found.duplicates == read_negatives(path).duplicates == 1
    assert found.fix(tmp_path / "fixed.jsonl").changes == found.changes == {"repeated": 1}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".hf"])
def test_a_set_that_loses_all_its_rows_can_be_read(suffix, tmp_path):
    path = tmp_path / f"train{suffix}"
    known = ns.Positives.from_pairs([0], [0], 1, 2)
    texts = {"query_texts": ["q"], "corpus_texts": ["a cat", "A cat."]}
    write_negatives(path, "flagembedding", ids=[[1]], positives=known, **texts)
    fixed = ns.audit(path).fix(tmp_path / f"fixed{suffix}")
    assert (fixed.rows, fixed.kept) == (1, 0)
    assert read_negatives(fixed.path, "flagembedding").rows == 0


@pytest.mark.parametrize(
    ("target", "reasons", "parameter"),
    [
        ("fixed.parquet", None, "path"),
        ("no/fixed.jsonl", None, "path"),
        ("train.jsonl", None, "path"),
        ("fixed.jsonl", ["copy"], "reasons"),
    ],
)
def test_invalid_calls_write_nothing(target, reasons, parameter, tmp_path):
    path = write(tmp_path, "triplet", ".jsonl")
    before = path.read_bytes()
    with pytest.raises(ns.NaysayError) as caught:
        ns.audit(path).fix(tmp_path / target, reasons)
    assert caught.value.parameter == parameter
    assert [file.name for file in tmp_path.iterdir()] == ["train.jsonl"]
    assert path.read_bytes() == before
