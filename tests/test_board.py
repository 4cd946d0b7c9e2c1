"""The score of the board: its measures against plain loops, and what it does not accept."""

import subprocess
import sys

import numpy as np
import pytest

import naysay as ns
from benchmarks.board import sample, score


@pytest.fixture
def board(tmp_path):
    """A board of one split: 12 queries that lie beside their documents."""
    rng = np.random.default_rng(0)
    documents = rng.normal(size=(40, 8)).astype(np.float32)
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    queries = documents[:12]
    scores = queries @ documents.T
    labelled = np.arange(12)
    scores[labelled, labelled] = -np.inf
    nearest = np.argsort(-scores, axis=1)[:, :30]
    relevant = np.array([(row, item) for row in range(12) for item in (row, nearest[row, 1])])
    visible = {"queries": queries, "documents": documents, "labelled": labelled, "candidates": nearest}
    visible |= {"test_queries": queries, "test_documents": documents}
    np.savez(tmp_path / "small-0.npz", **visible)
    np.savez(tmp_path / "small-0.truth.npz", relevant=relevant, test_relevant=relevant)
    return tmp_path


def submit(board, **arrays):
    folder = board / "submission"
    folder.mkdir(exist_ok=True)
    np.savez(folder / "small-0.npz", **arrays)
    return folder


def test_average_precision_is_the_mean_precision_at_each_hit():
    rng = np.random.default_rng(1)
    suspicion, is_false = rng.random(30), rng.random(30) < 0.3
    hits, precisions = 0, []
    for rank, place in enumerate(sorted(range(30), key=lambda place: -suspicion[place]), start=1):
        hits += is_false[place]
        if is_false[place]:
            precisions.append(hits / rank)
    assert score.average_precision(suspicion, is_false) == pytest.approx(np.mean(precisions))
    assert score.average_precision(np.ones(30), is_false) == pytest.approx(is_false.mean())


def test_detect_scores_the_truth_with_100_and_a_stated_share_by_its_interval(board):
    visible, truth = score.load(board, "small-0")
    is_false = score.are_relevant(visible["candidates"], truth["relevant"])
    assert is_false.sum() == 12
    measures = score.score("detect", submit(board, suspicion=is_false.astype(float), share=[0.2, 0.05, 0.3]), board)
    assert measures["small"]["average_precision"] == [100.0]
    assert measures["small"]["covered"] == [100.0]  # one of the nearest 10 is false
    assert measures["small"]["share_error"] == [pytest.approx(10.0)]
    assert measures["small"]["width"] == [pytest.approx(25.0)]


def test_mine_counts_false_negatives_and_mixes_random_ones_until_5_percent_are_left(board):
    visible, _truth = score.load(board, "small-0")
    measures = score.score("mine", submit(board, ids=visible["candidates"][:, :2]), board)["small"]
    assert measures["false_percent"] == [50.0]
    assert measures["filled_percent"] == [100.0]
    scores = [
        float(query @ visible["documents"][item])
        for query, row in zip(visible["queries"], visible["candidates"], strict=True)
        for item in row[:2]
    ]
    at_random = np.mean([query @ document for query in visible["queries"] for document in visible["documents"]])
    assert measures["score"] == [pytest.approx(np.mean(scores), abs=1e-6)]
    assert measures["score_at_5_percent"] == [pytest.approx(0.1 * np.mean(scores) + 0.9 * at_random, abs=1e-5)]
    assert 0 < measures["ndcg"][0] <= 100


@pytest.mark.parametrize(
    ("track", "arrays"),
    [
        ("mine", {"ids": np.zeros((12, 11), int)}),  # too many
        ("mine", {"ids": np.arange(12)[:, None]}),  # the labelled positives
        ("mine", {"ids": np.full((12, 2), 39)}),  # twice in a row
        ("mine", {"ids": np.full((12, 1), 40)}),  # beyond the documents
        ("mine", {"suspicion": np.zeros((12, 30))}),
        ("detect", {"suspicion": np.zeros((12, 29))}),
        ("detect", {"suspicion": np.full((12, 30), np.nan)}),
        ("detect", {"suspicion": np.full((12, 30), 1.5)}),
    ],
)
def test_an_invalid_submission_is_one_sentence_with_its_file(board, track, arrays):
    with pytest.raises(SystemExit, match=r"small-0\.npz: \w+ must"):
        score.score(track, submit(board, **arrays), board)


def test_the_score_imports_nothing_of_naysay(board):
    program = "import sys; import benchmarks.board.score; print([name for name in sys.modules if 'naysay' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_oracle_among_the_samplers_returns_no_held_out_pair_and_no_other_control_sees_them():
    rng = np.random.default_rng(0)
    anchors, items = np.nonzero(rng.random((20, 50)) < 0.3)
    held = rng.random(len(anchors)) < 0.5
    train, test = (ns.Positives.from_pairs(anchors[part], items[part], 20, 50) for part in (~held, held))
    split = sample.Split(train, test, np.zeros(50, np.int64))
    query = ns.Query(np.arange(20), positives=train.indices[train.indptr[:-1]])
    returned = {}
    for name, make in sample.CONTROLS.items():
        sampler = sample.sampler_of(make, split, lambda anchors, ids: np.ones(ids.shape))
        ids = np.asarray(sampler.sample(query, 8, rng=ns.rng_for(0)).ids)
        assert not train.contains(np.arange(20), ids).any(), name
        returned[name] = test.contains(np.arange(20), ids).any()
    assert [name for name, any_held_out in returned.items() if not any_held_out] == ["dynamic, oracle"]
