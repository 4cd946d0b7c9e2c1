"""An audit with a reviewer: what a few answers say about all negatives of a file, and what `fix` makes of them."""

import csv
import json
import re

import numpy as np
import pytest
from family_world import families

import naysay as ns
from naysay.detectors import AnswerFile, People
from naysay.formats import read_negatives, write_negatives

N, K = 300, 6


@pytest.fixture(scope="module")
def world():
    return families(N, sizes=(3, 4), near=0.75, others=300)


@pytest.fixture(scope="module")
def mined(world):
    return ns.mine(world.anchor_vectors, world.item_vectors, world.known, K, judge=None)


@pytest.fixture(scope="module")
def texts(world):
    n_items = len(world.item_vectors)
    return {"query_texts": [f"query {n}" for n in range(N)], "corpus_texts": [f"document {n}" for n in range(n_items)]}


@pytest.fixture
def train(mined, texts, tmp_path):
    """A file of texts, without scores or vectors."""
    path = tmp_path / "train.jsonl"
    write_negatives(path, "flagembedding", ids=mined.ids, positives=mined.known, **texts)
    return path


def numbers(names, kind):
    return np.array([int(re.fullmatch(rf"{kind} (\d+)", name).group(1)) for name in names])


def right(world):
    """A reviewer of texts that knows the truth."""
    return lambda pairs: world.truth.contains(numbers(pairs.queries, "query"), numbers(pairs.documents, "document"))


def true_share(world, anchors, ids):
    filled = ids >= 0
    rows = np.broadcast_to(anchors[:, None], ids.shape)
    return world.truth.contains(rows[filled], ids[filled]).mean()


@pytest.mark.parametrize("has_vectors", [True, False])
def test_the_interval_holds_the_truth_before_and_after_a_fix(world, mined, train, has_vectors, tmp_path):
    truth = true_share(world, np.arange(N), mined.ids)
    vectors = {"query_vectors": world.anchor_vectors, "corpus_vectors": world.item_vectors}
    negatives = mined if has_vectors else train
    covered = []
    for seed in range(6):
        reviewer = right(world) if not has_vectors else lambda pairs: world.truth.contains(pairs.anchors, pairs.items)
        found = ns.audit(negatives, **(vectors if has_vectors else {}), reviewer=reviewer, review=150, seed=seed)
        share = found.false_share
        covered.append(share.low <= truth <= share.high)
        assert abs(share.estimate - truth) < 0.12
        assert share.high - share.low < 0.3
        assert not share.bound
        assert found.review.reviewed <= 150
        assert found.suspected_by["reviewed"] == found.review.false
    assert sum(covered) >= 5
    if has_vectors:
        mined.write(tmp_path / "t.jsonl", "ids")
        found = ns.audit(tmp_path / "t.jsonl", **vectors, reviewer=reviewer, review=150)
        fixed = found.fix(tmp_path / "fixed.jsonl")
        assert fixed.changes["reviewed"] == found.review.false
        assert fixed.changes["suspected"] > found.review.false  # the answers say from which score on others are false
        left = true_share(world, np.arange(N), read_negatives(fixed.path).ids)
        assert left < truth / 2
        assert found.review.after.low <= left <= found.review.after.high


def test_a_yes_is_believed_a_no_clears_and_both_are_said(world, train, tmp_path):
    found = ns.audit(train, reviewer=right(world), review=60)
    assert found.changes == {"reviewed": found.review.false}
    assert f"Remove {found.review.false} negatives that a reviewer calls positive." in found.advice
    assert "reviewed" in found.findings()
    assert json.loads(found.to_json())["review"]["reviewed"] == found.review.reviewed
    path = tmp_path / "two.jsonl"  # of two near copies of the positive, the one that is no positive stays
    row = {"query": "cat", "pos": ["a cat on a mat in the sun"], "neg": ["a cat on a mat, in the sun 2", "dog"]}
    path.write_text(json.dumps(row))
    assert ns.audit(path).suspected_by
    cleared = ns.audit(path, reviewer=lambda pairs: [text in row["pos"] for text in pairs.documents], review=5, seed=1)
    assert cleared.review.reviewed == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda pairs: np.zeros(len(pairs)), "at least 30% of labelled positives"),
        (lambda pairs: np.ones(len(pairs)), "one that tells pairs apart, got yes to all"),
    ],
)
def test_a_reviewer_that_says_the_same_to_everything(train, answer, message):
    with pytest.raises(ValueError, match=message) as caught:
        ns.audit(train, reviewer=answer, review=50)
    assert caught.value.parameter == "reviewer"


class Model:
    """A reviewer with a name, whose answers are kept; it errs on some pairs."""

    name = "a model"
    needs_texts = True

    def __init__(self, world):
        self.world, self.asked = world, []

    def review(self, pairs):
        self.asked += zip(pairs.queries, pairs.documents, strict=True)
        queries, documents = numbers(pairs.queries, "query"), numbers(pairs.documents, "document")
        return self.world.truth.contains(queries, documents) | (documents % 10 == 0)


def test_answers_are_kept_and_people_check_the_yes_answers(world, mined, train, tmp_path):
    answers, review = tmp_path / "answers.jsonl", tmp_path / "review.csv"
    model = Model(world)
    alone = ns.audit(train, reviewer=[model, People(review)], review=120, answers=answers)
    assert alone.false_share.bound
    assert any("review.csv" in note for note in alone.notes)
    assert len(AnswerFile(answers).of("a model")) == len(set(model.asked))
    head, *rows = csv.reader(review.read_text().splitlines())
    yes = [world.truth.contains([int(row[0])], [numbers([row[3]], "document")[0]])[0] for row in rows]
    assert not all(yes)
    with review.open("w", newline="") as stream:
        filled = ([*row[:-1], "yes" if one else "no"] for row, one in zip(rows, yes, strict=True))
        csv.writer(stream).writerows([head, *filled])
    again = Model(world)
    checked = ns.audit(train, reviewer=[again, People(review)], review=120, answers=answers)
    assert again.asked == []
    assert not checked.false_share.bound
    unchecked = checked.suspected_by.get("unchecked", 0)  # at most 50 yes answers are checked
    assert sum(yes) - unchecked <= checked.review.false <= sum(yes)
    truth = true_share(world, np.arange(N), mined.ids)
    assert checked.false_share.low <= truth <= checked.false_share.high


SEVERAL = ["labelled-pair", "labelled-list", "flagembedding", "tevatron", "nemo", "ms-swift", "ids"]


@pytest.mark.parametrize("name", SEVERAL)
def test_found_positives_can_become_positives(name, tmp_path):
    queries, corpus = ["cat", "dog"], ["a cat", "a dog", "kitten", "fish", "puppy", "cow"]
    known = ns.Positives.from_pairs([0, 1], [0, 1], 2, 6)
    path = tmp_path / f"train{ns.formats.FORMATS[name].suffixes[0]}"
    names = {"query_ids": queries, "corpus_ids": corpus} if name in ("nemo", "tevatron", "ids") else {}
    texts = {} if name == "ids" else {"query_texts": queries, "corpus_texts": corpus}
    extra = {"corpus_path": "corpus"} if name == "nemo" else {}
    ids = np.array([[2, 3], [5, 3]])
    write_negatives(path, name, ids=ids, positives=known, **names, **texts, **extra)
    pairs = {("cat", "a cat"), ("dog", "a dog"), ("cat", "kitten")}

    def reviewer(asked):
        keys = asked.names if asked.query_ids else zip(asked.queries, asked.documents, strict=True)
        return [(queries[int(query)] if query.isdigit() else query, text) in pairs for query, text in keys]

    found = next(one for one in (ns.audit(path, reviewer=reviewer, review=9, seed=s) for s in range(20)) if one.changes)
    fixed = found.fix(path.with_stem("fixed"), false_negatives="positive")
    assert fixed.changes == {"reviewed": 1}
    read = read_negatives(fixed.path)
    labels = read.corpus_texts or read.corpus_ids
    anchors, items = read.positives.pairs()
    anchor_labels = read.query_texts or read.query_ids
    now = {(anchor_labels[a], labels[i]) for a, i in zip(anchors.tolist(), items.tolist(), strict=True)}
    assert now == pairs
    rest = {(anchor_labels[row], labels[item]) for row, slot in enumerate(read.ids) for item in slot if item >= 0}
    assert rest == {("cat", "fish"), ("dog", "cow"), ("dog", "fish")}
    (change,) = [json.loads(line) for line in fixed.changes_path.read_text().splitlines()]
    assert (change["reason"], change["now"], change["negative"]) == ("reviewed", "positive", "kitten")


def test_scores_go_with_a_document_that_becomes_a_positive(tmp_path):
    row = {"query": "cat", "pos": ["a cat"], "neg": ["fish", "kitten"], "pos_scores": [0.9], "neg_scores": [0.1, 0.7]}
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps(row))
    reviewer = lambda pairs: [text != "fish" for text in pairs.documents]  # noqa: E731
    found = next(one for one in (ns.audit(path, reviewer=reviewer, review=1, seed=s) for s in range(9)) if one.changes)
    fixed = found.fix(tmp_path / "fixed.jsonl", false_negatives="positive")
    assert json.loads(fixed.path.read_text()) == {
        "query": "cat",
        "pos": ["a cat", "kitten"],
        "neg": ["fish"],
        "pos_scores": [0.9, 0.7],
        "neg_scores": [0.1],
    }
    path.write_text(json.dumps({"anchor": "cat", "positive": "a cat", "negative": "kitten"}))
    found = ns.audit(path, reviewer=reviewer, review=1)
    assert found.changes == {"reviewed": 1}
    with pytest.raises(ValueError, match="hold one positive") as caught:
        found.fix(tmp_path / "fixed.jsonl", false_negatives="positive")
    assert caught.value.parameter == "false_negatives"


INVALID = [
    ({"reviewer": len}, "review"),
    ({"reviewer": len, "review": 0}, "review"),
    ({"review": 10}, "review"),
    ({"answers": "answers.jsonl"}, "answers"),
    ({"reviewer": "someone", "review": 10}, "reviewer"),
    ({"reviewer": [len, len, len], "review": 10}, "reviewer"),
    ({"reviewer": Model(None), "review": 10}, "reviewer"),  # it needs texts
]


@pytest.mark.parametrize(("options", "parameter"), INVALID)
def test_invalid_options(mined, options, parameter):
    with pytest.raises(ValueError, match=parameter) as caught:
        ns.audit(mined, **options)
    assert caught.value.parameter == parameter
