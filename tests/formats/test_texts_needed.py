"""Formats of texts are written with texts or not at all."""

import pytest

import naysay as ns
from naysay.errors import NaysayError

WORLD = ns.planted_world(40, 90, per_anchor=3, noise=0.2)
MINED = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 3, judge=None)
QUESTIONS, DOCUMENTS = [f"question {row}" for row in range(40)], [f"document {row}" for row in range(90)]
OF_TEXTS = ["triplet", "labeled-list", "flagembedding", "tevatron"]


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
