"""The benchmarks of mining: both sides of each comparison do the same, and all of it runs at tiny sizes."""

import json
import math
import re
from pathlib import Path

import faiss
import numpy as np
import pytest
import torch

import naysay as ns
from benchmarks.docs import mining as mining_tables
from benchmarks.docs import pages
from benchmarks.mining import against_faiss, contenders, index, mine
from benchmarks.training import retrieval
from naysay.errors import NaysayError
from naysay.kernels.threads import set_threads, threads

FOLDER = Path(__file__).parent.parent / "benchmarks"


def test_a_query_is_near_its_positive_and_the_margin_has_work_to_do():
    data = contenders.world(300, 4000)
    scores = data.queries @ data.documents.T
    own = scores[np.arange(300), data.positives]
    assert len(set(data.positives.tolist())) == 300
    assert np.allclose(np.linalg.norm(data.queries, axis=1), 1, atol=1e-5)
    assert 0.7 < own.mean() < 0.9
    assert 0.02 < ((scores > 0.95 * own[:, None]).sum(axis=1) > 1).mean() < 0.5


def test_the_margin_rule_by_hand_is_ours():
    data = contenders.world(60, 4000)
    by_hand, ours = (way(data, 5, 0.05) for way in (contenders.margin_by_faiss, contenders.margin_by_ours))
    assert by_hand.tolist() == ours.tolist()
    scores = data.queries @ data.documents.T
    for row, taken in enumerate(ours.tolist()):
        line = 0.95 * scores[row, data.positives[row]]
        good = [i for i in range(4000) if i != data.positives[row] and scores[row, i] <= line]
        assert taken == sorted(good, key=lambda i, row=row: (-scores[row, i], i))[:5]


def test_the_rank_window_is_the_same_on_both_sides():
    data = contenders.world(20, 600)
    order = np.argsort(-(data.queries @ data.documents.T), axis=1)
    for way in (contenders.window_by_lists, contenders.window_by_ours):
        for row, taken in enumerate(np.asarray(way(data)).tolist()):
            places = [order[row].tolist().index(i) for i in taken]
            assert len(set(taken)) == 15
            assert data.positives[row] not in taken
            assert min(places) >= 10
            assert max(places) <= 210  # one further than the list's own, if the positive was before it


def test_why_rows_of_two_miners_differ():
    """Anchors 0, 1 and 2 with the positive 3; documents from 4 on, whose scores are their first numbers."""
    scores = [0.5, 0.5, 0.3, 0.95, 0.4, 0.2, 0.1]
    vectors = np.zeros((11, 2), np.float32)
    vectors[:4, 0] = 1
    vectors[4:, 0] = scores
    ours = np.array([[0, 3, 4, 6], [1, 3, 7, 4], [2, 3, 4, 6], [9, 3, 4, 5]])
    theirs = np.array([[2, 3, 4, 8], [0, 3, 5, 6], [1, 3, 4, 8]])
    assert contenders.compared(ours, theirs, vectors, 0.05) == {
        "rows_of_ours": 4,
        "rows_of_theirs": 3,
        "rows_of_both": 3,
        "positives_differ": 0,
        "rows_that_differ": 3,
        "why": {"tie": 1, "at the threshold": 1, "other": 1},
    }
    same = contenders.compared(ours, ours[::-1], vectors, 0.05)
    assert (same["rows_that_differ"], sum(same["why"].values())) == (0, 0)


@pytest.fixture
def threads_as_before():
    """The benchmark sets the threads of its process."""
    before = threads(), faiss.omp_get_max_threads(), torch.get_num_threads()
    yield
    for set_to, count in zip((set_threads, faiss.omp_set_num_threads, torch.set_num_threads), before, strict=True):
        set_to(count)


@pytest.mark.usefixtures("threads_as_before")
def test_a_peer_that_is_absent_is_said_to_be(tmp_path):
    run = mine.end_to_end(tmp_path, 50, 1, 1, mine.CASES)
    message = "no environment for sentence_transformers_mining: run benchmarks/peers/setup.sh"
    assert run["contenders"] == {case: {"missing": message} for case in ("torch", "faiss", "ours")}
    assert "equal" not in run
    shown = "\n".join(mining_tables.mining(tiny_result(run), pages.table))
    assert f"| 50 | 1 | sentence-transformers, torch | {message} |" in shown
    assert "| 40 | spread out | mine, auto |" in shown
    assert re.search(r"mine, auto \|.*\| -?\d+ %, by (Posterior|Calibrated|Bands) \|", shown)
    assert "| nothing | auto | " in shown


def test_a_result_counts_each_array_once():
    data = contenders.spread_out(20, 40)
    mined = ns.mine(data.queries, data.documents, data.positives, 3, judge=None)
    slots = mined.candidates.ids.size * (8 + 4 + 4 + 1 + 4 + 1 + 1 + 1 + 1)  # why and kept_by were replaced once
    own = mined.ids.size * (8 + 4 + 4 + 4 + 1 + 1)
    assert against_faiss.result_bytes(mined) == slots + own + 20 * (4 + 8 + 8 + 4)


def tiny_result(run):
    return {
        "end_to_end": [run],
        "by_hand": [mine.by_hand(40, 1, 1)],
        "against": [mine.against("spread out", 40, 1, 1)],
        "first": [against_faiss.first_call(60, 30, "nothing", "auto")],
        "growth": [mine.growth(30, 60, 1)],
        "index": [index.index_part(way, 1600, 20, 1) for way in index.WAYS],
    }


def test_tables_show_what_was_measured():
    row = {"seconds": 2.0, "cpu_seconds": 3.0, "peak_extra_bytes": 2_000_000, "rows": 9, "negatives": 90}
    ours = row | {"seconds": 0.5, "peak_extra_bytes": 1_000_000}
    rows = {"torch": row, "ours": ours}
    equal = {"rows_of_both": 9, "rows_that_differ": 2, "why": {"tie": 2, "at the threshold": 0}}
    run = {"size": 9, "threads": 2, "contenders": rows, "times_of_ours": mine.ratios(rows, "ours")}
    shown = mining_tables._end_rows(run | {"equal": {"torch": equal}})
    assert shown == [
        ("9", "2", "sentence-transformers, torch", "2.0 s", "2 MB", "4.0 x", "2.0 x", "2 of 9", "2 tie"),
        ("9", "2", "ours", "0.5 s", "1 MB", "", "", "", ""),
    ]
    assert mine.best_of([row, ours])["seconds_of_all"] == [2.0, 0.5]


def test_the_table_of_the_search_is_made_from_its_result():
    result = json.loads((FOLDER / "results" / "search.json").read_text())
    shown = "\n".join(mining_tables.search(result, pages.table))
    found = result["speed"][1]["best"]["auto"]
    assert f"| 20,000 | auto | {found['seconds']:.2f} s | {found['cpu_seconds']:.1f} s |" in shown
    assert shown.count("\n|") >= 2 + 6 + 2 + 2


# ---- the study ------------------------------------------------------------------------------------------


def collection(seed=0):
    """40 queries, the first 30 of them for training; each is near its two or three documents."""
    rng = np.random.default_rng(seed)
    queries = retrieval._unit(rng.standard_normal((40, 16)).astype(np.float32))
    anchors = np.repeat(np.arange(40), 2 + np.arange(40) % 2)
    documents = retrieval._unit(
        np.concatenate([queries[anchors], np.zeros((50, 16))]) + 0.3 * rng.standard_normal((len(anchors) + 50, 16))
    ).astype(np.float32)
    items = np.arange(len(anchors))
    train = anchors < 30
    return retrieval.Data(queries, documents, (anchors[train], items[train]), (anchors[~train], items[~train]))


def test_half_of_several_positives_are_hidden():
    anchors, items = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3]), np.arange(10)
    kept, hidden = retrieval.hide((anchors, items), np.random.default_rng(0))
    assert np.bincount(kept[0]).tolist() == [1, 1, 2, 2]
    assert np.bincount(hidden[0], minlength=4).tolist() == [0, 1, 1, 2]
    assert sorted([*kept[1], *hidden[1]]) == list(range(10))
    assert all(anchors[i] == a for a, i in zip(*hidden, strict=True))


def test_ndcg_is_that_of_plain_loops():
    data = collection()
    total = 0.0
    for query in sorted(set(data.test[0].tolist())):
        right = {i for a, i in zip(*data.test, strict=True) if a == query}
        scores = data.documents.astype(np.float64) @ data.queries[query].astype(np.float64)
        ranked = sorted(range(len(scores)), key=lambda i, scores=scores: -scores[i])[:10]
        gain = sum(1 / math.log2(place + 2) for place, i in enumerate(ranked) if i in right)
        total += gain / sum(1 / math.log2(place + 2) for place in range(min(10, len(right))))
    assert retrieval.ndcg(data.queries, data.documents, data.test) == pytest.approx(total / 10, abs=1e-9)


def test_hidden_positives_among_negatives_are_counted():
    kept, hidden = (np.array([3, 5]), np.array([0, 1])), (np.array([5, 3, 3]), np.array([7, 8, 9]))
    negatives = np.array([[8, 2], [4, 4]])  # of the anchors 3 and 5
    assert retrieval.returned(collection(), kept, hidden, negatives) == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", list(retrieval.ARMS))
def test_no_arm_returns_what_is_known(name):
    data = collection()
    kept, _ = retrieval.hide(data.train, np.random.default_rng(1))
    found = retrieval.ARMS[name](data, kept, 0)
    asked = np.unique(kept[0])
    assert found.shape == (len(asked), 0 if name == "in the batch only" else 10)
    known = ns.Positives.from_pairs(*kept, 40, len(data.documents))
    assert not known.contains(asked, found).any()
    if name == retrieval.BASE:
        for row, anchor in enumerate(asked.tolist()):
            scores = data.documents @ data.queries[anchor]
            lowest = min(scores[i] for a, i in zip(*kept, strict=True) if a == anchor)
            assert all(scores[i] <= lowest - abs(lowest) * 0.05 + 1e-6 for i in found[row] if i >= 0)


def test_the_study_runs_and_training_helps(monkeypatch):
    monkeypatch.setattr(retrieval, "EPOCHS", 3)
    monkeypatch.setattr(retrieval, "RATES", (1e-2,))
    found = retrieval.summary([retrieval.one_seed(collection(), seed) for seed in range(2)])
    assert set(found["arms"]) == set(retrieval.ARMS)
    nearest, careful = (found["arms"][name] for name in ("nearest, no judge", "calibrated, alpha 0.05 (auto)"))
    assert nearest["hidden_returned"]["mean"] > careful["hidden_returned"]["mean"]
    result = {**found, "train_pairs": 70, "k": 10, "seeds": 2}
    shown = "\n".join(mining_tables.retrieval(result, pages.table))
    assert f"| random | {found['arms']['random']['ndcg']['mean']:.4f} ±" in shown


def test_training_lowers_the_loss_of_what_it_is_trained_on():
    data = collection()
    values, matrices = retrieval.train(
        data,
        data.train,
        retrieval.ARMS["random"](data, data.train, 0),
        3e-3,
        0,
        lambda q, d: retrieval.ndcg(q, d, data.train),
    )
    assert len(values) == len(matrices) == retrieval.EPOCHS + 1
    assert values[-1] > values[0]
    assert float(matrices[0].abs().sum()) == 0


def test_a_folder_without_the_data_is_rejected(tmp_path):
    with pytest.raises(NaysayError, match="must be a folder with the data of scifact, got"):
        retrieval.read(tmp_path)
