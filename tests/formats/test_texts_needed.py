"""Formats of texts are written with texts or not at all."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay.errors import NaysayError
from naysay.jobs.command import mine_files

WORLD = ns.planted_world(40, 90, per_anchor=3, noise=0.2)
MINED = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 3, judge=None)
QUESTIONS, DOCUMENTS = [f"question {row}" for row in range(40)], [f"document {row}" for row in range(90)]
OF_TEXTS = ["triplet", "n-tuple", "labelled-pair", "labeled-list", "flagembedding", "tevatron", "nemo-inline"]


@pytest.mark.parametrize("name", OF_TEXTS)
def test_a_format_of_texts_needs_both_sides(tmp_path, name):
    path = tmp_path / "train.jsonl"
    for given, missing in (
        ({}, "query"),
        ({"query_texts": QUESTIONS}, "corpus"),
        ({"corpus_texts": DOCUMENTS}, "query"),
    ):
        with pytest.raises(NaysayError) as error:
            MINED.write(path, name, **given)
        assert error.value.parameter == f"{missing}_texts"
        assert "ids" in str(error.value)
        assert not path.exists()
    assert MINED.write(path, name, query_texts=QUESTIONS, corpus_texts=DOCUMENTS).rows > 0


def test_a_job_without_texts_stops_before_it_searches(tmp_path):
    np.save(tmp_path / "queries.npy", WORLD.anchor_vectors)
    np.save(tmp_path / "corpus.npy", WORLD.item_vectors)
    anchors, items = WORLD.known.pairs()
    pq.write_table(pa.table({"anchor": anchors, "positive": items}), tmp_path / "pairs.parquet")
    before = sorted(tmp_path.iterdir())
    vectors = {"query_vectors": tmp_path / "queries.npy", "corpus_vectors": tmp_path / "corpus.npy"}
    with pytest.raises(NaysayError) as error:
        mine_files(tmp_path / "pairs.parquet", output=tmp_path / "train.parquet", **vectors)
    assert error.value.parameter == "--queries"
    assert "--format ids" in str(error.value)
    assert sorted(tmp_path.iterdir()) == before
    mine_files(tmp_path / "pairs.parquet", output=tmp_path / "train.parquet", format="ids", **vectors)
