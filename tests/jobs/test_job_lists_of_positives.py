"""Training files go back into `mine`: rows with lists of positives are pairs, and errors say what was expected."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay.errors import NaysayError
from naysay.jobs.command import mine_files

N, ITEMS, K = 40, 120, 4
WORLD = ns.planted_world(N, ITEMS, per_anchor=6, known_share=0.5, noise=0.2)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "queries.npy", WORLD.anchor_vectors)
    np.save(tmp_path / "corpus.npy", WORLD.item_vectors)
    anchors, items = WORLD.known.pairs()
    assert len(np.unique(anchors)) == N
    table = {"anchor": [f"question {row}" for row in anchors], "positive": [f"text {row}" for row in items]}
    pq.write_table(pa.table(table), tmp_path / "pairs.parquet")
    documents = {"id": [f"d{row}" for row in range(ITEMS)], "text": [f"text {row}" for row in range(ITEMS)]}
    pq.write_table(pa.table(documents), tmp_path / "docs.parquet")
    return tmp_path


def run(folder, pairs, output, **options):
    vectors = {"query_vectors": folder / "queries.npy", "corpus_vectors": folder / "corpus.npy"}
    given = {"corpus": folder / "docs.parquet", "k": K, "judge": "share:0.95", **vectors, **options}
    return mine_files(folder / pairs, output=folder / output, **given)


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_the_output_in_the_format_of_flagembedding_is_read_as_pairs(folder, ending):
    first = run(folder, "pairs.parquet", f"first{ending}", format="flagembedding")
    second = run(folder, f"first{ending}", f"second{ending}", format="flagembedding")
    assert (folder / f"first{ending}").read_bytes() == (folder / f"second{ending}").read_bytes()
    assert (second.anchors, second.negatives, second.rule) == (first.anchors, first.negatives, first.rule)


def test_lists_mean_the_same_as_a_row_for_each(folder):
    anchors, items = WORLD.known.pairs()
    rows = [
        {"query": f"question {row}", "pos": [f"text {item}" for item in items[anchors == row]], "neg": ["text 0"]}
        for row in range(N)
    ]
    (folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(folder, "pairs.parquet", "by_pair.jsonl")
    run(folder, "lists.jsonl", "by_list.jsonl")
    assert (folder / "by_pair.jsonl").read_bytes() == (folder / "by_list.jsonl").read_bytes()


def test_the_output_of_ids_is_read_as_pairs(folder):
    run(folder, "pairs.parquet", "first.jsonl", format="ids")
    run(folder, "first.jsonl", "second.jsonl", format="ids")
    assert (folder / "first.jsonl").read_bytes() == (folder / "second.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("positives", "documents", "expected", "other"),
    [
        (["d1", "text 2"], ("id", "text"), "ids", "texts"),
        (["text 1", "d2"], ("id", "text"), "texts", "ids"),
        (["text 1", "d2"], ("text",), "texts", "ids"),
        (["d1", "text 2"], ("id",), "ids", "texts"),
    ],
)
def test_an_error_about_a_positive_says_whether_an_id_or_a_text_was_expected(
    folder, positives, documents, expected, other
):
    table = pq.read_table(folder / "docs.parquet").select(list(documents))
    pq.write_table(table, folder / "docs.parquet")
    rows = [{"anchor": f"question {row}", "positive": positives[row == 7]} for row in range(N)]
    (folder / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(NaysayError) as error:
        run(folder, "mixed.jsonl", "out.jsonl", format="ids")
    assert error.value.parameter == "pairs"
    said = str(error.value).partition(", got")[0]
    assert expected in said
    assert other not in said
    assert repr(positives[1]) in str(error.value)
    assert "row 7" in str(error.value)


def test_where_nothing_matches_both_are_named(folder):
    rows = [{"query": "q", "pos": ["nobody", "nothing"]}, {"query": "r", "pos": []}, {"query": "s", "pos": ["none"]}]
    (folder / "wrong.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    np.save(folder / "queries.npy", WORLD.anchor_vectors[:2])
    with pytest.raises(NaysayError) as error:
        run(folder, "wrong.jsonl", "out.jsonl")
    assert "ids or texts" in str(error.value)
    assert "row 0 (3 such" in str(error.value)


def test_a_positive_that_is_no_name_is_found_by_its_row(folder):
    rows = [{"query": "q", "pos": ["text 1", "text 2"]}, {"query": "r", "pos": ["text 1", 2.5]}]
    (folder / "wrong.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(NaysayError) as error:
        run(folder, "wrong.jsonl", "out.jsonl")
    assert error.value.parameter == "pairs"
    assert "2.5 at row 1" in str(error.value)
