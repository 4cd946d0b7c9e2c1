"""What a job cannot do: the error names the option that was typed, in one sentence, and nothing is left behind."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import World

from naysay.errors import NaysayError


def rows(name, *given):
    """A file of JSON lines, as the value of an option."""

    def write(folder):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in given))
        return name

    return write


NO_VECTORS = {"query_vectors": None, "corpus_vectors": None}
ONE_QUERY = {"query_vectors": "1.npy"}
PAIR = {"anchor": "question 0", "positive": "d1"}
ANSWER = {"query_id": "0", "document_id": "d5", "false_negative": "yes"}
INVALID = [
    # options of mining
    ({"metric": "cosin"}, "--metric"),
    ({"select": "groups"}, "--select"),
    ({"select": "softmax"}, "--temperature"),
    ({"temperature": 0.1}, "--temperature"),
    ({"select": "mmr", "mmr_lambda": 2.0}, "--mmr-lambda"),
    ({"quotas": "search=4"}, "--quotas"),
    ({"k": "auto", "judge": "none"}, "-k"),
    ({"k": "few"}, "-k"),
    ({"judge": "calibrated:0.001"}, "--judge"),
    ({"false_share": 1.5}, "--false-share"),
    ({"labelled_share": 1.5}, "--labelled-share"),
    ({"depth": 0}, "--depth"),
    ({"rank_range": "9-3"}, "--rank-range"),
    ({"min_score": float("nan")}, "--min-score"),
    ({"max_k": 0}, "--max-k"),
    ({"on_short": "fill"}, "--on-short"),
    ({"threads": 0}, "--threads"),
    ({"approximate": "ifv"}, "--approximate"),
    ({"approximate": "ivf"}, "--corpus-vectors"),  # too few for an index
    ({"min_recall": 90}, "--min-recall"),
    # options of the job
    ({"budget": "50MB"}, "--budget"),
    ({"budget": "2 GBs"}, "--budget"),
    ({"source": ["bm52"]}, "--source"),
    ({"format": "tripplet"}, "--format"),
    ({"format": "tevatron"}, "--with-scores"),
    ({"format": "n-tuple", "short": "rise"}, "--short"),
    ({"short": "drop"}, "--short"),
    ({"corpus_path": "c"}, "--corpus-path"),
    ({"format": "nemo"}, "--corpus-path"),
    ({"format": "trec", "tag": "a b"}, "--tag"),
    ({"output": "nowhere/out.jsonl"}, "--output"),
    ({"report": "nowhere/report.html"}, "--report"),
    ({"same_ids": True}, "--same-ids"),
    ({"model": "./nowhere", **NO_VECTORS}, "--model"),
    ({"model": "somewhere"}, "--model"),
    ({"query_vectors": None}, "--model"),
    ({"query_prompt": "q"}, "--query-prompt"),
    ({"query_id_column": "id"}, "--query-id-column"),
    ({"query_text_column": "text"}, "--query-text-column"),
    ({"device": "nowhere"}, "--device"),
    ({"batch_size": 0}, "--batch-size"),
    ({"engine": "spark"}, "--engine"),
    ({"review": 0}, "--review"),
    ({"review_file": "r.csv"}, "--review-file"),
    ({"review": 5, "review_file": "r.txt"}, "--review-file"),
    ({"review": 5, "review_file": "no/r.csv"}, "--review-file"),
    ({"review": 5, "review_file": "out.jsonl"}, "--review-file"),
    ({"reviewed": "none.csv"}, "--reviewed"),
    ({"answers": "a.jsonl"}, "--answers"),
    # files
    ({"pairs": "no.parquet"}, "pairs"),
    ({"corpus": "no.parquet"}, "--corpus"),
    ({"query_vectors": "no.npy"}, "--query-vectors"),
    ({"query_vectors": "narrow.npy"}, "--query-vectors"),
    ({"query_vectors": "short.npy"}, "--query-vectors"),
    ({"query_vectors": "bad.npy"}, "--query-vectors"),
    ({"query_vectors": "huge.npy", "metric": "l2"}, "--query-vectors"),
    ({"format": "trec", "corpus": "spaced.parquet", "pairs": rows("b.jsonl", PAIR), **ONE_QUERY}, "--corpus"),
    ({"pairs": rows("b.jsonl")}, "--anchor-column"),
    ({"pairs": rows("b.jsonl", [1, 2])}, "pairs"),
    ({"pairs": rows("b.jsonl", PAIR, {"anchor": "question 0"})}, "pairs"),
    ({"pairs": rows("b.jsonl", {"anchor": "question 0", "positive": 0.5})}, "pairs"),
    ({"pairs": rows("b.jsonl", {"left": 1, "right": 2, "date": 3})}, "--anchor-column"),
    ({"pairs": rows("b.jsonl", PAIR), "anchor_column": "anker"}, "--anchor-column"),
    ({"pairs": rows("b.jsonl", PAIR), "positive_column": "anchor"}, "--positive-column"),
    ({"corpus": rows("d.jsonl", {"id": "d1", "text": 5})}, "--corpus"),
    ({"corpus": rows("d.jsonl", {"id": "d1", "text": "\ud800 broken"})}, "--corpus"),
    ({"corpus": rows("d.jsonl", {"key": "d1"})}, "--corpus"),
    ({"title_column": "hed"}, "--title-column"),
    ({"reviewed": rows("r.jsonl", ANSWER, ANSWER | {"query_id": "999"})}, "--reviewed"),
    ({"reviewed": rows("r.jsonl", ANSWER | {"document_id": "x"})}, "--reviewed"),
    ({"reviewed": rows("r.jsonl", ANSWER | {"false_negative": "maybe"})}, "--reviewed"),
    ({"reviewed": rows("r.jsonl", ANSWER | {"false_negative": ""})}, "--reviewed"),
    ({"reviewed": rows("r.jsonl", ANSWER, ANSWER | {"false_negative": "no"})}, "--reviewed"),
    ({"reviewed": rows("r.jsonl", {"query_id": "1"})}, "--reviewed"),
]  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("world"), n=24, items=60)
    bad = made.queries.copy()
    bad[3, 1] = np.nan
    vectors = {"narrow": made.queries[:, :3], "short": made.queries[:-1], "1": made.queries[:1], "bad": bad}
    for name, values in {**vectors, "huge": made.queries.astype(np.float64) * 1e39}.items():
        np.save(made.folder / f"{name}.npy", values)
    names = [f"d{' ' * (row == 3)}{row}" for row in range(60)]
    pq.write_table(pa.table({"id": names, "text": made.texts}), made.folder / "spaced.parquet")
    return made


@pytest.mark.parametrize(("given", "option"), INVALID)
def test_the_option_is_named(world, given, option):
    given = {name: value(world.folder) if callable(value) else value for name, value in given.items()}
    paths = {name: world.folder / given[name] for name in ("review_file", "reviewed", "answers") if name in given}
    with pytest.raises(NaysayError) as caught:
        world.run(**given | paths)
    message = str(caught.value)
    assert message.startswith(f"mine: `{option}` must be ")
    assert "\n" not in message
    assert not [path for path in world.folder.iterdir() if path.name.startswith(".")]
    assert not (world.folder / "out.jsonl").exists()


@pytest.mark.parametrize("twice", [1, 7])
def test_an_id_in_two_rows(world, twice):
    documents = [{"id": f"d{row}", "text": world.texts[row]} for row in range(60)]
    documents[9]["id"] = f"d{twice}"
    rows("twice.jsonl", *documents)(world.folder)
    with pytest.raises(NaysayError, match=rf"each id of 'id' once, got 'd{twice}' at rows {twice} and 9\.$") as caught:
        world.run(corpus="twice.jsonl")
    assert caught.value.parameter == "--corpus"


def test_the_first_bad_row_and_how_many_there_are(world):
    pairs = [{"anchor": f"question {row}", "positive": "nobody" if row in (4, 9) else "d1"} for row in range(24)]
    rows("b.jsonl", *pairs)(world.folder)
    with pytest.raises(NaysayError, match=r"holds .* of the 60 docum.*, got 'nobody' at row 4 \(2 such rows"):
        world.run(pairs="b.jsonl")


@pytest.mark.parametrize("name", ["pairs.parquet", "docs.parquet", "c.npy"])
def test_a_file_that_is_cut_off(tmp_path, name):
    world = World(tmp_path, n=24, items=60)
    path = world.folder / name
    path.write_bytes(path.read_bytes()[:-37])
    with pytest.raises(NaysayError, match=r"must be a file (that can be read|of at least)"):
        world.run()
    assert not world.job().exists()
