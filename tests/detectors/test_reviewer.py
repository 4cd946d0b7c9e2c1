"""Reviewers: pairs, the file of answers, models of sentence-transformers, people, and a reviewer as a detector."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import AnswerFile, ByReviewer, CrossEncoder, Encoder, Pairs, People, Reviewer
from naysay.detectors.reviewer import ask, read_review_file, write_review_file

QUERY = ns.Query(np.arange(3))
NEGATIVES = ns.Negatives(np.array([[4, 7, -1], [4, 4, 2], [-1, -1, -1]]))


class Named:
    """A reviewer whose answers are kept; it remembers what it was asked."""

    name = "named"

    def __init__(self):
        self.asked = []

    def review(self, pairs):
        self.asked += list(zip(pairs.anchors.tolist(), pairs.items.tolist(), strict=True))
        return pairs.items / 10


def pairs_of(anchors, items):
    return Pairs(np.array(anchors), np.array(items), [f"q{a}" for a in anchors], [f"d{i}" for i in items])


def test_a_detector_asks_about_each_distinct_pair_once():
    named = Named()
    found = ByReviewer(named).suspicion(QUERY, NEGATIVES)
    np.testing.assert_allclose(found, [[0.4, 0.7, 0], [0.4, 0.4, 0.2], [0, 0, 0]])
    assert sorted(named.asked) == [(0, 4), (0, 7), (1, 2), (1, 4)]


def test_the_second_of_a_cascade_is_asked_where_the_first_says_yes():
    cheap, trusted = Named(), Named()
    found = ByReviewer([cheap, lambda pairs: trusted.review(pairs) * 0]).suspicion(QUERY, NEGATIVES)
    assert trusted.asked == [(0, 7)]
    np.testing.assert_allclose(found, [[0.4, 0, 0], [0.4, 0.4, 0.2], [0, 0, 0]])


def test_triples_are_asked_about_as_triples():
    query = ns.Query(np.array([[0, 1, 2]]))
    negatives = ns.Negatives(np.array([[5, 6]]), side=np.array([[0, 2]], np.int8))
    seen = []

    def review(pairs):
        seen.append((pairs.anchors.tolist(), pairs.items.tolist()))
        return np.zeros(len(pairs))

    ByReviewer(review).suspicion(query, negatives)
    assert sorted(seen[0][1]) == [[0, 1, 6], [5, 1, 2]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=12), st.integers(0, 12))
@settings(max_examples=30, deadline=None)
def test_answers_are_asked_for_once_whatever_the_order(tmp_path_factory, wanted, split):
    path = tmp_path_factory.mktemp("answers") / "answers.jsonl"
    named = Named()
    for part in (wanted[:split], wanted[split:], wanted):
        pairs = pairs_of([a for a, _ in part], [i for _, i in part])
        np.testing.assert_allclose(ask(named, pairs, AnswerFile(path)), [i / 10 for _, i in part])
    assert sorted(named.asked) == sorted(set(wanted))


def test_answers_belong_to_texts_and_to_a_reviewer(tmp_path):
    file, named = AnswerFile(tmp_path / "a.jsonl"), Named()
    ask(named, pairs_of([0], [3]), file)
    other = Named()
    other.name = "other"
    ask(other, pairs_of([0], [3]), file)
    moved = Pairs(np.array([8]), np.array([9]), ["q0"], ["d3"])  # the same texts in other rows
    assert ask(named, moved, file).tolist() == [0.3]
    assert len(named.asked) == len(other.asked) == 1
    by_vectors = Pairs(np.array([0]), np.array([3]), query_vectors=np.ones((1, 2)), document_vectors=np.ones((1, 2)))
    assert by_vectors.hashes() != Pairs(np.array([0]), np.array([3])).hashes()
    assert "q0" not in file.path.read_text()


def test_a_file_with_something_else_is_an_error(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"query": "a", "document": "b", "reviewer": "c", "answer": 1}\n["no answer"]\n')
    with pytest.raises(ns.NaysayError) as caught:
        AnswerFile(path)
    assert caught.value.parameter == "path"
    assert "in line 2 of a.jsonl" in str(caught.value)


# ---- models ----


@pytest.fixture(scope="module")
def texts():
    return pairs_of([1, 2, 3, 4], [5, 6, 7, 8])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders with a tiny cross-encoder and a tiny embedding model, with random weights."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("models")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"q{n}" for n in range(9)), *(f"d{n}" for n in range(9))]
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: n for n, word in enumerate(words)}, "[UNK]"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, **special)
    settings_of_bert = {"vocab_size": len(words), "hidden_size": 16, "num_hidden_layers": 1}
    settings_of_bert |= {"num_attention_heads": 2, "intermediate_size": 16, "num_labels": 1}
    with torch.random.fork_rng():
        torch.random.default_generator.manual_seed(0)
        model = transformers.BertForSequenceClassification(transformers.BertConfig(**settings_of_bert))
    model.save_pretrained(folder / "cross")
    tokenizer.save_pretrained(folder / "cross")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    table = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
    encoder = package.SentenceTransformer(
        modules=[modules.StaticEmbedding(plain, embedding_weights=table)], device="cpu"
    )
    encoder.save(str(folder / "encoder"))
    return folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_cross_encoder_says_yes_from_its_threshold_on(folders, texts):
    reviewer = CrossEncoder(folders / "cross", device="cpu", batch=3)
    assert isinstance(reviewer, Reviewer)
    answers = reviewer.review(texts)
    logits = np.log(answers / (1 - answers))
    assert np.ptp(logits) > 0
    moved = CrossEncoder(folders / "cross", device="cpu", threshold=float(np.median(logits)))
    assert (moved.review(texts) >= 0.5).sum() == 2
    np.testing.assert_allclose(moved.review(texts), 1 / (1 + np.exp(np.median(logits) - logits)), atol=1e-5)
    assert moved.name != reviewer.name


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_an_encoder_takes_its_threshold_from_labelled_positives(folders, texts):
    encoder = Encoder(folders / "encoder", device="cpu")
    with pytest.raises(ns.NaysayError) as caught:
        encoder.review(texts)
    assert caught.value.parameter == "threshold"
    encoder.fit(texts)
    assert (encoder.review(texts) >= 0.5).sum() == 3  # of the 4 that it was fitted to
    given = Encoder(folders / "encoder", device="cpu", threshold=-1.0)
    given.fit(texts)
    assert (given.review(texts) >= 0.5).all()


def test_a_model_without_texts_is_refused_before_it_is_asked():
    class Reads(Named):
        needs_texts = True

    with pytest.raises(ns.NaysayError) as caught:
        ask(Reads(), Pairs(np.array([0]), np.array([1])))
    assert caught.value.parameter == "reviewer"


# ---- people ----


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_people_answer_in_a_file(tmp_path, ending):
    path = tmp_path / f"review.{ending}"
    pairs = Pairs(np.array([0, 1, 2]), np.array([5, 6, 7]), ["=q", "q1", "q2"], ["d5", "d6", "d7"])
    people = People(path)
    assert np.isnan(people.review(pairs)).all()
    assert [len(part) for part in people.pending] == [3]
    write_review_file("path", path, people.pending, np.array([0.9, 0.8, 0.7]), np.array([0.1, np.nan, 0.3]))
    assert read_review_file("path", path) == {}
    fill(path, ["yes", "", "No"])
    again = People(path)
    np.testing.assert_array_equal(again.review(pairs), [1.0, np.nan, 0.0])
    assert again.pending[0].items.tolist() == [6]


def fill(path, answers):
    """Write answers into the last column."""
    if path.suffix == ".csv":
        head, *rows = csv.reader(path.read_text().splitlines())
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([head, *([*row[:-1], one] for row, one in zip(rows, answers, strict=True))])
    elif path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        lines = [json.dumps({**row, "false_negative": one}) for row, one in zip(rows, answers, strict=True)]
        path.write_text("\n".join(lines) + "\n")
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pq.read_table(path).drop_columns("false_negative")
        pq.write_table(table.append_column("false_negative", pa.array(answers)), path)


@pytest.mark.parametrize(
    "text",
    [
        "query_id,document_id\n1,2\n",
        "query_id,document_id,false_negative\n1,2,perhaps\n",
        "query_id,document_id,false_negative\n1,2,yes\n1,2,no\n",
    ],
)
def test_a_file_that_is_not_a_review_is_an_error(tmp_path, text):
    path = tmp_path / "review.csv"
    path.write_text(text)
    with pytest.raises(ns.NaysayError) as caught:
        People(path)
    assert caught.value.parameter == "path"
