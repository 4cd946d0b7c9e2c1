"""Formats of texts are written with texts or not at all, and what the README writes can be trained on."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay.errors import NaysayError
from naysay.jobs.command import mine_files

README = Path(__file__).parents[2] / "README.md"
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


def test_ids_are_no_texts(tmp_path):
    with pytest.raises(NaysayError) as error:
        MINED.write(tmp_path / "train.jsonl", "triplet", query_ids=QUESTIONS, corpus_ids=DOCUMENTS)
    assert error.value.parameter == "query_texts"


@pytest.mark.parametrize("name", ["ids", "trec"])
def test_formats_of_ids_need_none(tmp_path, name):
    path = tmp_path / ("train.jsonl" if name == "ids" else "run.trec")
    assert MINED.write(path, name).rows > 0


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


def test_the_file_of_the_readme_trains_a_sentence_transformer(tmp_path, monkeypatch):
    pytest.importorskip("sentence_transformers")
    datasets = pytest.importorskip("datasets")
    monkeypatch.chdir(tmp_path)
    code = re.search(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)[1]
    exec(compile(code, str(README), "exec"), {})
    read = datasets.load_dataset(
        "parquet", data_files="train.parquet", split="train", cache_dir=str(tmp_path / "cache")
    )
    assert read.column_names == ["anchor", "positive", "negative"]
    assert all(isinstance(text, str) for text in read[0].values())
    before, after = _trained_one_step(read.select(range(32)), tmp_path)
    assert not np.array_equal(before, after)


def _trained_one_step(dataset, folder):
    """The vectors of a tiny model before and after a step of MultipleNegativesRankingLoss."""
    import tokenizers
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    words = sorted({word for row in dataset for text in row.values() for word in text.split()})
    places = {"[UNK]": 0} | {word: place for place, word in enumerate(words, 1)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(places, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    table = np.random.default_rng(0).normal(size=(len(places), 8)).astype(np.float32)
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=table)], device="cpu")
    arguments = SentenceTransformerTrainingArguments(
        str(folder / "run"),
        max_steps=1,
        per_device_train_batch_size=8,
        learning_rate=0.3,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    before = model[0].embedding.weight.detach().numpy().copy()
    loss = losses.MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model=model, args=arguments, train_dataset=dataset, loss=loss).train()
    return before, model[0].embedding.weight.detach().numpy()
