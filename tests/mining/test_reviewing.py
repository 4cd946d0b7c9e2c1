"""Mining with a reviewer: what it asks, what it returns, what it claims, and reviewers that cannot be used."""

import csv
import json

import numpy as np
import pytest

import naysay as ns
from naysay.detectors import LLM, People

K = 4


class Planted:
    """Queries with three positives each, of which one is labelled, and an encoder that ranks other items among them."""

    def __init__(self, n=300, hidden=2, noise=0.55, seed=0, dim=24):
        rng = np.random.default_rng(seed)

        def unit(vectors):
            return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

        def near(vectors, distance):
            return unit(vectors + distance * unit(rng.normal(size=vectors.shape)))

        centres = unit(rng.normal(size=(n // 10, dim)))
        topics = near(centres[np.arange(n) % len(centres)], 0.8)
        self.owner = np.repeat(np.arange(n), 1 + hidden)
        others = near(near(centres[rng.integers(0, len(centres), 2 * n)], 0.8), noise)
        self.queries = near(topics, noise).astype(np.float32)
        self.corpus = np.concatenate([near(topics[self.owner], noise), others]).astype(np.float32)
        self.labels = np.arange(n) * (1 + hidden)
        self.asked = []

    def is_positive(self, anchors, items):
        owner = np.append(self.owner, -1)[np.minimum(items, len(self.owner))]
        return owner == anchors

    def review(self, pairs):
        self.asked += list(zip(pairs.anchors.tolist(), pairs.items.tolist(), strict=True))
        return self.is_positive(pairs.anchors, pairs.items).astype(float)

    def mine(self, **options):
        return ns.mine(self.queries, self.corpus, self.labels, K, **options)

    def share(self, mined):
        rows, slots = np.nonzero(mined.ids >= 0)
        return float(self.is_positive(rows, mined.ids[rows, slots]).mean())


@pytest.fixture(scope="module")
def world():
    return Planted()


@pytest.fixture(scope="module")
def mined(world):
    world.asked.clear()
    return world.mine(reviewer=world.review, review=100)


def test_the_interval_is_about_what_is_returned(world, mined):
    share = mined.false_share
    assert share.low <= world.share(mined) <= share.high
    assert share.high - share.low < 0.2
    assert world.share(mined) < world.share(world.mine(judge=None)) / 2
    assert mined.short == 0
    assert not mined.rule.startswith("By labels")
    assert "100 reviewed pairs" in mined.rule


def test_the_budget_is_kept_and_no_pair_is_asked_about_twice(world, mined):
    assert len(world.asked) == len(set(world.asked)) == len(mined.reviewed) <= 100 + 15
    assert (mined.reviewed.kind == 0).sum() <= 100
    truth = world.is_positive(mined.reviewed.anchors, mined.reviewed.items)
    np.testing.assert_array_equal(mined.reviewed.answers >= 0.5, truth)


def test_what_was_found_is_left_out_or_kept(world, mined):
    found = (mined.reviewed.kind == 0) & (mined.reviewed.answers == 1)
    pairs = list(zip(mined.reviewed.anchors[found], mined.reviewed.items[found], strict=True))
    assert pairs
    assert not any(item in mined.ids[anchor] for anchor, item in pairs)
    assert mined.dropped["reviewed"].sum() == len(pairs)
    kept = world.mine(reviewer=world.review, review=100, false_negatives="keep")
    assert "reviewed" not in kept.dropped
    assert any(item in kept.ids[anchor] for anchor, item in pairs)
    assert "left out" in mined.rule
    assert "left out" not in kept.rule


def test_found_ones_become_positives_of_the_file(world, tmp_path):
    mined = world.mine(reviewer=world.review, review=100, false_negatives="positive")
    texts = {"query_texts": [f"q{n}" for n in range(300)], "corpus_texts": [f"d{n}" for n in range(len(world.corpus))]}
    mined.write(tmp_path / "train.jsonl", format="flagembedding", **texts)
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    found = (mined.reviewed.kind == 0) & (mined.reviewed.answers == 1)
    several = {row["query"]: set(row["pos"]) for row in rows if len(row["pos"]) > 1}
    wanted = zip(mined.reviewed.anchors[found], mined.reviewed.items[found], strict=True)
    assert several == {f"q{anchor}": {f"d{world.labels[anchor]}", f"d{item}"} for anchor, item in wanted}


def test_complete_labels_lose_no_hardness():
    """Scores and labels alone cannot tell that nothing is missing."""
    world = Planted(hidden=0, noise=0.9)
    mined = world.mine(reviewer=world.review, review=100)
    assert world.share(mined) == 0
    assert mined.false_share.high < 0.07
    np.testing.assert_array_equal(mined.ids, world.mine(judge=None).ids)


def test_the_same_arguments_give_the_same_result(world, mined):
    again = world.mine(reviewer=world.review, review=100, threads=1)
    np.testing.assert_array_equal(again.ids, mined.ids)
    assert again.rule == mined.rule


def test_a_trusted_reviewer_checks_the_yes_answers(world):
    rng = np.random.default_rng(0)
    checked = []

    def cheap(pairs):
        return np.where(rng.random(len(pairs)) < 0.1, 1 - world.review(pairs), world.review(pairs))

    def trusted(pairs):
        checked.append(len(pairs))
        return world.review(pairs)

    mined = world.mine(reviewer=[cheap, trusted], review=100)
    share = mined.false_share
    assert share.low <= world.share(mined) <= share.high
    by_trusted = mined.reviewed.by == 1
    assert 0 < by_trusted.sum() == sum(checked) <= 50
    said_yes = (mined.reviewed.by == 0) & (mined.reviewed.kind == 0) & (mined.reviewed.answers >= 0.5)
    assert by_trusted.sum() <= said_yes.sum()


def test_a_model_alone_claims_the_upper_end_only(world):
    class Model:
        def review(self, pairs):
            return world.review(pairs)

    mined = world.mine(reviewer=Model(), review=100)
    assert mined.false_share.bound
    assert mined.false_share.low == 0
    assert "at most" in mined.rule


def test_where_no_cut_reaches_the_target_labels_decide(world):
    def says_yes_too_often(pairs):
        is_wrong = (7 * pairs.anchors + 13 * pairs.items) % 10 < 4  # whatever the score
        return np.maximum(world.review(pairs), is_wrong)

    mined, by_labels = world.mine(reviewer=says_yes_too_often, review=100), world.mine()
    assert mined.false_share.low > 0.05  # what it says of any candidate
    found = mined.reviewed.answers >= 0.5
    pairs = mined.reviewed.anchors[found], mined.reviewed.items[found]
    assert not (mined.ids[pairs[0]] == pairs[1][:, None]).any()
    assert abs(mined.scores.mean() - by_labels.scores.mean()) < 0.01  # no search for what it would call negatives
    assert "by labels alone" in mined.rule


def test_texts_and_vectors_reach_the_reviewer(world):
    seen = []

    def review(pairs):
        seen.append(pairs)
        return world.review(pairs)

    texts = [f"q{n}" for n in range(300)], [f"d{n}" for n in range(len(world.corpus))]
    world.mine(reviewer=review, review=20, texts=texts)
    for pairs in seen:
        assert pairs.queries == [f"q{n}" for n in pairs.anchors]
        assert pairs.documents == [f"d{n}" for n in pairs.items]
        np.testing.assert_array_equal(pairs.document_vectors, world.corpus[pairs.items])


def test_people_answer_between_two_runs(world, tmp_path):
    path = tmp_path / "review.csv"
    first = world.mine(reviewer=People(path), review=80)
    assert first.reviewed is None
    assert "review.csv" in " ".join(first.notes)
    head, *rows = csv.reader(path.read_text().splitlines())
    assert len(rows) == 80
    truth = [world.is_positive(np.array([int(row[0])]), np.array([int(row[2])]))[0] for row in rows]
    with path.open("w", newline="") as stream:
        filled = ([*row[:-1], "yes" if one else "no"] for row, one in zip(rows, truth, strict=True))
        csv.writer(stream).writerows([head, *filled])
    second = world.mine(reviewer=People(path), review=80)
    assert (second.reviewed.answers == np.array(truth)).all()
    assert second.false_share.low <= world.share(second) <= second.false_share.high
    assert "80 reviewed pairs" in second.rule


def test_anchors_without_positives_and_no_posterior_are_reviewed_too(world):
    few = np.where(np.arange(300) < 5, world.labels, -1)
    mined = ns.mine(world.queries, world.corpus, few, K, reviewer=world.review, review=200)
    assert mined.false_share is not None
    assert "reviewed pairs" in mined.rule


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"reviewer": 3, "review": 10}, "reviewer"),
        ({"reviewer": "someone", "review": 10}, "reviewer"),
        ({"reviewer": lambda pairs: np.zeros(len(pairs))}, "review"),
        ({"reviewer": lambda pairs: np.zeros(len(pairs)), "review": 0}, "review"),
        ({"review": 10}, "review"),
        ({"reviewer": lambda pairs: np.zeros(len(pairs)), "review": 10, "judge": "share:0.95"}, "reviewer"),
        ({"reviewer": lambda pairs: np.zeros(len(pairs) + 1), "review": 10}, "reviewer"),
        ({"reviewer": lambda pairs: np.full(len(pairs), np.nan), "review": 10}, "reviewer"),
        ({"reviewer": lambda pairs: np.full(len(pairs), 7.0), "review": 10}, "reviewer"),
        ({"reviewer": lambda pairs: np.zeros(len(pairs)), "review": 40}, "reviewer"),  # no to everything
        ({"reviewer": lambda pairs: np.ones(len(pairs)), "review": 40}, "reviewer"),  # yes to everything
        ({"reviewer": lambda pairs: 1 / 0, "review": 10}, None),
        ({"reviewer": LLM("m", "http://127.0.0.1:9/v1"), "review": 10}, "reviewer"),  # it needs texts
        ({"reviewer": lambda pairs: np.zeros(len(pairs)), "review": 10, "texts": (["a"], ["b"])}, "texts"),
        ({"false_negatives": "attract"}, "false_negatives"),
    ],
)
def test_a_reviewer_that_cannot_be_used_is_one_sentence(world, options, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        world.mine(**options)
    assert caught.value.parameter == parameter


def test_no_server_is_known_before_anything_is_searched(world, monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.setattr("naysay.search.exact.Exact.search", lambda *_: pytest.fail("searched"))
    texts = ["q"] * 300, ["d"] * len(world.corpus)
    with pytest.raises(ns.NaysayError) as caught:
        world.mine(reviewer=LLM("m", "http://127.0.0.1:9/v1", timeout=1), review=10, texts=texts)
    assert caught.value.parameter == "reviewer"


def test_another_target_after_a_review_needs_another_run(mined):
    with pytest.raises(ns.NaysayError) as caught:
        mined.rethreshold(false_share=0.1)
    assert caught.value.parameter == "false_share"
