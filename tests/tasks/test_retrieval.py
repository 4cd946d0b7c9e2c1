"""Texts: how pairs are read and split, that both encoders learn, and what the arms draw."""

import json
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import naysay as ns
from naysay.comparing import fitting_methods
from naysay.comparing._run import Run
from naysay.comparing.arms import Arm, read_arms
from naysay.errors import NaysayError
from naysay.tasks import Pieces, Retrieval, SubwordEncoder, TextPairs, read_texts, split_by_document

RNG = np.random.default_rng(0)
WORDS = RNG.permutation([f"{a}{b}{a}" for a in "bcdfghjkl" for b in "aeiouy"])[:48].reshape(8, 2, 3)  # topic, side
TOPIC = np.repeat(np.arange(8), 15)
ASKED, ANSWERS = ([" ".join(RNG.permutation(WORDS[topic, side])[:2]) for topic in TOPIC] for side in range(2))
SIGNAL = RNG.standard_normal((8, 4))[TOPIC]
VECTORS = [np.hstack([SIGNAL, 1.5 * RNG.standard_normal((120, 12))]) for _ in range(2)]  # most coordinates mean nothing
PARTS = split_by_document(ns.Positives.from_pairs(np.arange(120), np.arange(120)))
OF_VECTORS = TextPairs(*PARTS, query_vectors=VECTORS[0], document_vectors=VECTORS[1])
OF_TEXTS = TextPairs(*PARTS, query_texts=ASKED, document_texts=ANSWERS)


@pytest.mark.parametrize(("data", "model", "rate"), [(OF_VECTORS, "adapter", 0.01), (OF_TEXTS, "subwords", 0.05)])
def test_both_encoders_learn(data, model, rate):
    task = Retrieval(data)
    assert task.model == model
    for code, k in (("in_batch()", 1), ("Static(Everything(positives))", 8)):
        run = Run(task, Arm("some", k, code), rate, 0)
        before = run.model.measure(run.model.snapshot(), "test")
        run.train(40)
        after = run.model.measure(run.model.snapshot(), "test")
        assert after["auc"] > before["auc"] + 0.05
        assert after["auc"] > 0.75


def test_every_fitting_method_trains_and_draws_nothing_known():
    task = Retrieval(OF_VECTORS, batch=32)
    parts = task.start(0).parts()
    names = fitting_methods(parts, task.own)
    assert {"in-batch", "nearest", "judged", "in-batch + judged", "dynamic", "mixed-sources", "uniform"} <= {*names}
    assert not {"TransE", "MixGCF", "k-hop", "SimSiam"} & {*names}
    for arm in read_arms([f"{name}:3" for name in names], parts, task.defaults, task.own):
        run = Run(task, arm, 0.01, 0)
        run.train(1)
        ids = run.negatives.numpy().ids
        assert not OF_VECTORS.train.contains(task.queries[run.batch], ids).any(), arm.name
        assert ids.max() >= 0, arm.name
        assert all(torch.isfinite(part).all() for part in run.model.parameters), arm.name


def test_mined_negatives_are_the_nearest_before_training_and_are_made_once(monkeypatch):
    from naysay.tasks import _mined

    calls, mine = [], _mined.mine
    monkeypatch.setattr(_mined, "mine", lambda *given, **options: calls.append(options) or mine(*given, **options))
    task, arm = Retrieval(OF_VECTORS), Arm("mined", 8, "Static(mined(None))")
    runs = [Run(task, arm, rate, seed) for rate, seed in ((0.1, 0), (0.01, 0), (0.1, 1))]
    assert len(calls) == 1
    assert all(run.processor_seconds >= runs[0].model.spared > 0 for run in runs)
    runs[0].train(1)
    drawn = runs[0].negatives.numpy().ids[0]
    query = task.queries[runs[0].batch[0]]
    order = np.argsort(-(OF_VECTORS.query_vectors[query] @ OF_VECTORS.document_vectors.T))
    known = OF_VECTORS.train.contains(np.full(120, query), order)
    assert {*drawn} == {*order[~known][:8]}


def test_the_vectors_of_nearest_are_renewed_every_epoch():
    task = Retrieval(OF_VECTORS, batch=48)
    run = Run(task, Arm("nearest", 2, task.own["nearest"]), 0.1, 0)
    (pool,) = run.model._stored
    before = pool.vectors.copy()
    run.train(2)
    np.testing.assert_array_equal(pool.vectors, before)
    run.train(1)
    assert not np.array_equal(pool.vectors, before)


def test_the_share_of_false_negatives_is_that_of_the_judge():
    known = ns.planted_world(400, 600, per_anchor=4, known_share=0.5, noise=0.1, spread=0.5)
    parts = split_by_document(ns.Positives.from_pairs(np.arange(400), np.arange(400), 400, 600))
    data = TextPairs(parts[0], *parts[1:], query_vectors=known.anchor_vectors, document_vectors=known.item_vectors)
    model = Retrieval(data).start(0)
    rows = np.arange(32)
    queries = model.task.queries[rows]
    nearest = np.argsort(-(data.query_vectors[queries] @ data.document_vectors.T), axis=1)[:, :3]
    far = np.argsort(data.query_vectors[queries] @ data.document_vectors.T, axis=1)[:, :3]
    shares = [model.false_share(rows, ns.Negatives(ids)) for ids in (nearest, far)]
    assert np.isnan(shares).all() or shares[0] > shares[1] == 0


def test_pieces_are_the_same_in_every_process_and_an_empty_text_has_one():
    pieces = Pieces(["The cat", "", "the CAT"])
    assert len(pieces) == 3
    assert pieces.ids[:3].tolist() == [zlib.crc32(piece) % 32_768 for piece in (b"<the>", b"<th", b"the")]
    assert np.diff(pieces.starts)[1] == 1
    vectors = SubwordEncoder([pieces], ns.rng_for(0)).vectors(pieces)
    np.testing.assert_array_equal(vectors[0], vectors[2])


def test_parts_share_no_document():
    queries, documents = np.arange(200), RNG.integers(0, 150, 200)
    parts = split_by_document(ns.Positives.from_pairs(queries, documents, 200, 150))
    sets = [{*part.pairs()[1].tolist()} for part in parts]
    assert len(set.union(*sets)) == sum(map(len, sets))
    assert sum(map(len, parts)) == 200
    assert all(10 <= len(part) <= 30 for part in parts[1:])
    with pytest.raises(NaysayError, match=r"`pairs` must be at least three groups of queries that share no document"):
        split_by_document(ns.Positives.from_pairs([0, 1, 2], [0, 0, 0]))


def test_tables_of_pairs_and_a_corpus(tmp_path):
    (tmp_path / "pairs.tsv").write_text("query\tdoc_id\n" + "".join(f"what {n}\td{n}\n" for n in range(20)))
    lines = [json.dumps({"_id": f"d{n}", "text": f"it is {n}"}) for n in reversed(range(25))]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    read = read_texts(tmp_path / "pairs.tsv", corpus=tmp_path / "docs.jsonl")
    assert (read.n_queries, read.n_documents, read.document_texts[0]) == (20, 25, "it is 24")
    queries, documents = read.train.pairs()
    assert all(read.query_texts[q][5:] == read.document_texts[d][6:] for q, d in zip(queries, documents, strict=True))
    np.save(tmp_path / "q.npy", np.eye(20, 8) + 1)
    vectors = {"query_vectors": tmp_path / "q.npy", "corpus_vectors": tmp_path / "q.npy"}
    with pytest.raises(NaysayError, match=r"`document_vectors` must be of 25 rows, one for each text or id, got 20"):
        read_texts(tmp_path / "pairs.tsv", corpus=tmp_path / "docs.jsonl", **vectors)
    (tmp_path / "other.tsv").write_text("query\tdoc_id\nwhat\td99\n")
    with pytest.raises(NaysayError, match=r"`path` must be"):
        read_texts(tmp_path / "other.tsv", corpus=tmp_path / "docs.jsonl")


@pytest.mark.parametrize("positive", ["id", "text", "row", "text without ids"])
def test_positives_are_ids_texts_or_rows_of_the_corpus(positive, tmp_path):
    """As `mine` reads them. The corpus has five more documents than the pairs, and one text twice."""
    texts = [f"it is number {place}" for place in range(35)]
    texts[34] = texts[33]
    named = {"id": [f"d{place}" for place in range(35)], "text": texts}
    columns = {"text": texts} if positive in ("row", "text without ids") else named
    pq.write_table(pa.table(columns), tmp_path / "corpus.parquet")
    wanted = {"id": named["id"], "row": [str(place) for place in range(35)]}.get(positive, texts)
    rows = [f"what is {place}\t{wanted[place]}\n" for place in range(30)]
    (tmp_path / "pairs.tsv").write_text("query\tpositive\n" + "".join(rows))
    found = read_texts(tmp_path / "pairs.tsv", corpus=tmp_path / "corpus.parquet")
    assert found.n_documents == 35
    assert list(found.document_texts) == texts
    pairs = sorted(
        pair for part in (found.train, found.validation, found.test) for pair in zip(*part.pairs(), strict=True)
    )
    assert pairs == [(place, place) for place in range(30)]


def test_a_positive_that_is_not_in_the_corpus_is_an_error(tmp_path):
    pq.write_table(pa.table({"id": ["a", "b"], "text": ["A", "B"]}), tmp_path / "corpus.parquet")
    (tmp_path / "pairs.tsv").write_text("query\tpositive\n1\tA\n2\tC\n")
    with pytest.raises(NaysayError) as caught:
        read_texts(tmp_path / "pairs.tsv", corpus=tmp_path / "corpus.parquet")
    assert "C" in str(caught.value)


def test_a_folder_of_beir(tmp_path):
    (tmp_path / "corpus.jsonl").write_text("\n".join(json.dumps({"_id": f"d{n}", "text": f"{n}"}) for n in range(30)))
    (tmp_path / "queries.jsonl").write_text("\n".join(json.dumps({"_id": f"q{n}", "text": f"{n}"}) for n in range(30)))
    (tmp_path / "qrels").mkdir()
    for name, rows in (("train", range(20)), ("test", range(20, 30))):
        text = "".join(f"q{n}\td{n}\t1\n" for n in rows)
        (tmp_path / "qrels" / f"{name}.tsv").write_text("query-id\tcorpus-id\tscore\n" + text)
    read = read_texts(tmp_path)
    assert [len(part) for part in (read.train, read.validation, read.test)] == [18, 2, 10]
    assert read.query_texts == [f"{n}" for n in range(30)]
    with pytest.raises(NaysayError, match=r"`corpus` must be left out for a folder of BEIR"):
        read_texts(tmp_path, corpus=tmp_path / "corpus.jsonl")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"document_vectors": None}, "`document_vectors` must be given along with `query_vectors`, got nothing."),
        ({"document_texts": ANSWERS}, "`query_texts` must be given along with `document_texts`, got nothing."),
        ({"query_vectors": None, "document_vectors": None}, "`query_texts` must be given with `document_texts`, or"),
        ({"query_vectors": np.eye(5)}, "`query_vectors` must be of 120 rows, one for each text or id, got 5."),
        ({"query_vectors": VECTORS[0][:, :3]}, "`query_vectors` must be of width 16, like `document_vectors`, got 3."),
        ({"query_vectors": np.zeros((120, 16))}, "`query_vectors` must be of a length above 0"),
        ({"query_texts": ["a"]}, "`query_texts` must be of length 120, the number of them in `train`, got 1."),
        ({"test": PARTS[0]}, "`test` must be at least one pair that is in no earlier part, got none of 96."),
    ],
)
def test_data_that_does_not_fit_is_explained(change, message):
    given = dict(zip(("train", "validation", "test"), PARTS, strict=True))
    given |= {"query_vectors": VECTORS[0], "document_vectors": VECTORS[1]}
    with pytest.raises(NaysayError) as caught:
        TextPairs(**given | change)
    assert str(caught.value).startswith(f"TextPairs: {message}")


def test_a_model_that_the_data_does_not_allow_is_an_error():
    with pytest.raises(NaysayError, match=r"`model` must be 'subwords' for data without vectors, got 'adapter'"):
        Retrieval(OF_TEXTS, "adapter")
    with pytest.raises(NaysayError, match=r"`model` must be 'adapter' for data without texts, got 'subwords'"):
        Retrieval(OF_VECTORS, "subwords")
