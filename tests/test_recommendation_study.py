"""The recommendation study: its split leaks nothing, its measures are the plain ones, and it runs from end to end."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.docs import training as training_tables
from benchmarks.training import factorisation, recommendation, recommendation_arms, seed_summaries
from benchmarks.training.factorisation import Pairs
from naysay.errors import NaysayError

FOLDER = Path(__file__).parent.parent / "benchmarks"


def sets(pairs):
    return set(zip(pairs.users.tolist(), pairs.items.tolist(), strict=True))


def pairs_of(matrix):
    return Pairs(*np.nonzero(matrix))


def world(seed, n_users=12, n_items=30, share=0.3):
    rng = np.random.default_rng(seed)
    part = rng.choice(3, (n_users, n_items), p=[1 - share, share / 2, share / 2])
    scores = torch.from_numpy(rng.integers(-4, 4, (n_users, n_items)).astype(np.float32))
    return scores, pairs_of(part == 1), pairs_of(part == 2)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([1, 5, 20, 40]))
def test_recall_and_ndcg_are_those_of_plain_loops(seed, n_users, top):
    scores, known, wanted = world(seed, n_users)
    scores += torch.from_numpy(np.random.default_rng(seed).permutation(scores.numel()).reshape(scores.shape) / 1e4)
    if not len(wanted):
        return
    recalls, gains = [], []
    for user in range(n_users):
        mine = {item for owner, item in sets(wanted) if owner == user}
        closed = {item for owner, item in sets(known) if owner == user}
        if not mine:
            continue
        best = sorted((-float(scores[user, item]), item) for item in range(scores.shape[1]) if item not in closed)
        found = [item in mine for _, item in best[:top]]
        recalls.append(sum(found) / len(mine))
        ideal = sum(1 / math.log2(place + 2) for place in range(min(len(mine), top)))
        gains.append(sum(1 / math.log2(place + 2) for place, hit in enumerate(found) if hit) / ideal)
    measured = factorisation.ranking(scores, known, wanted, top)
    assert measured.recall == pytest.approx(sum(recalls) / len(recalls), abs=1e-12)
    assert measured.ndcg == pytest.approx(sum(gains) / len(gains), abs=1e-12)


def test_a_known_example_of_recall_and_ndcg():
    scores = torch.tensor([[9.0, 8.0, 7.0, 6.0, 5.0]])
    known, wanted = Pairs(np.array([0]), np.array([0])), Pairs(np.array([0, 0]), np.array([2, 4]))
    measured = factorisation.ranking(scores, known, wanted, 2)
    assert measured.recall == 0.5
    assert measured.ndcg == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_auc_is_the_share_of_unknown_items_below_with_ties_half(seed):
    scores, known, wanted = world(seed)
    total, rows, closed = 0.0, scores.tolist(), sets(known + wanted)
    for user, item in sets(wanted):
        others = [score for other, score in enumerate(rows[user]) if (user, other) not in closed]
        below = sum(score < rows[user][item] for score in others)
        total += (below + 0.5 * others.count(rows[user][item])) / len(others)
    assert factorisation.auc(scores, known + wanted, wanted) == pytest.approx(total / len(wanted), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.02, 0.9))
def test_a_split_leaks_nothing_and_loses_nothing(seed, share):
    pairs = pairs_of(np.random.default_rng(seed).random((20, 45)) < share)
    made = factorisation.split(pairs, 20, 45, seed)
    train, validation, test = sets(made.train), sets(made.validation), sets(made.test)
    assert len(made.train) + len(made.validation) + len(made.test) == len(pairs)
    assert train | validation | test == sets(pairs)
    assert not train & validation
    assert not (train | validation) & test
    for user in range(20):
        n = sum(owner == user for owner, _ in sets(pairs))
        held = max(1, n // 10) if n >= 3 else 0
        assert sum(owner == user for owner, _ in validation) == held
        assert sum(owner == user for owner, _ in test) == held


def test_splits_differ_by_seed_alone():
    pairs = pairs_of(np.random.default_rng(0).random((20, 45)) < 0.5)
    first, again, other = (factorisation.split(pairs, 20, 45, seed) for seed in (0, 0, 1))
    assert sets(first.test) == sets(again.test)
    assert sets(first.test) != sets(other.test)


def test_the_encoder_passes_vectors_along_training_edges_only():
    pairs = pairs_of(np.random.default_rng(3).random((8, 15)) < 0.5)
    data = factorisation.split(pairs, 8, 15, 0)
    model = factorisation.LightGCN(data, 0, width=4, hops=2)
    matrix = np.zeros((23, 23))
    for user, item in sets(data.train):
        matrix[user, 8 + item] = matrix[8 + item, user] = 1
    degree = np.maximum(matrix.sum(axis=1), 1)
    matrix /= np.sqrt(degree[:, None] * degree)
    own = model.vectors.detach().double().numpy()
    expected = np.stack([own, matrix @ own, matrix @ matrix @ own], axis=1)
    np.testing.assert_allclose(model.layers().detach().numpy(), expected, atol=1e-6)
    weights = torch.from_numpy(np.random.default_rng(0).random((23, 3, 4)).astype(np.float32))
    (model.layers() * weights).sum().backward()
    back = weights.double().numpy()
    gradient = back[:, 0] + matrix.T @ back[:, 1] + matrix.T @ matrix.T @ back[:, 2]
    np.testing.assert_allclose(model.vectors.grad.numpy(), gradient, atol=1e-5)


def test_every_arm_sees_the_same_batches_and_draws_no_training_like():
    pairs = pairs_of(np.random.default_rng(4).random((30, 60)) < 0.3)
    data = factorisation.split(pairs, 30, 60, 0)
    known, seen = sets(data.train), []
    for arm in recommendation_arms.ARMS:
        run = recommendation_arms.Run(data, arm, recommendation_arms.Settings(0.01, 0.0), 0, 21, best_k=3)
        ask, drawn = run.sampler.sample, []

        def sample(query, k, *, rng, ask=ask, drawn=drawn):
            found = ask(query, k, rng=rng)
            drawn.append((query.anchors, query.positives, found, k))
            return found

        run.sampler.sample = sample
        run.train(3)
        seen.append([(users.tolist(), items.tolist()) for users, items, _, _ in drawn])
        schedule = [1, 1 + 2 * 1 / 2.1, 1 + 2 * 2 / 2.1]  # up to 3 at a tenth of 21 steps
        wanted = {"1": [1, 1, 1], "best": [3, 3, 3], "scheduled": schedule}[arm.amount]
        assert [k for *_, k in drawn] == pytest.approx(wanted)
        for users, items, found, _ in drawn:
            assert set(zip(users.tolist(), items.tolist(), strict=True)) <= known
            rows, slots = np.nonzero(found.mask.numpy())
            ids = found.ids.numpy()[rows, slots]
            assert len(ids) >= len(users)
            assert not known & set(zip(users.numpy()[rows].tolist(), ids.tolist(), strict=True))
    assert all(batches == seen[0] for batches in seen)


def test_the_best_point_is_the_first_highest_and_the_test_part_is_read_there(monkeypatch):
    data = factorisation.split(pairs_of(np.random.default_rng(5).random((30, 60)) < 0.3), 30, 60, 0)
    run = recommendation_arms.Run(data, recommendation_arms.ARMS[0], recommendation_arms.Settings(0.01, 0.0), 0, 4)
    validation, test = torch.zeros(30, 60), torch.zeros(30, 60)
    validation[data.validation.users, data.validation.items] = 1
    test[data.test.users, data.test.items] = 1
    lists = iter([-validation, 2 * validation + test, 2 * validation - test, -validation])
    monkeypatch.setattr(run.model, "scores", lambda: next(lists))
    for _ in range(4):
        run.look()
        run.train(1)
    assert [point.recall for point in run.points] == [0, 1, 1, 0]
    assert run.best is run.points[1]
    assert (run.best.step, run.tested) == (1, factorisation.Ranking(1, 1))
    assert run.first_at(1) is run.best
    assert run.first_at(1.1) is None


def test_an_interval_is_that_of_student():
    found = seed_summaries.spread([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found["mean"] == 3
    assert found["half"] == pytest.approx(2.7764451 * math.sqrt(2.5 / 5))  # t of 4 degrees at 97.5 %
    assert seed_summaries.spread([1.0])["half"] is None


def test_differences_are_paired_and_seeds_that_never_arrive_are_counted():
    base = [{"recall": r, "ndcg": r, "steps_to_goal": 5} for r in (0.1, 0.3)]
    mine = [{"recall": r, "ndcg": r, "steps_to_goal": s} for r, s in ((0.2, None), (0.4, 7))]
    clocks = {"processor_seconds_to_goal": None, "seconds_to_goal": None}
    row = seed_summaries.row([run | clocks for run in mine], [run | clocks for run in base])
    assert row["recall_difference"]["mean"] == pytest.approx(0.1)
    assert row["recall_difference"]["half"] == pytest.approx(0, abs=1e-12)
    assert (row["reached"], row["steps_to_goal"]["mean"], row["seconds_to_goal"]) == (1, 7, None)


def test_likes_are_read_once_each_from_1(tmp_path):
    columns = {"user": [1, 1, 2, 2, 3], "item": [4, 4, 1, 2, 5], "rating": [5, 4, 3, 4, 1]}
    np.savez(tmp_path / "ratings.npz", **columns)
    pairs, n_users, n_items = factorisation.read(tmp_path)
    assert (sets(pairs), len(pairs), n_users, n_items) == ({(0, 3), (1, 1)}, 2, 3, 5)


def test_data_that_cannot_be_read_is_rejected(tmp_path):
    with pytest.raises(NaysayError, match=r"`DATA` must be a folder with a file ratings\.npz, got '.*'\. It holds"):
        factorisation.read(tmp_path)
    np.savez(tmp_path / "ratings.npz", user=[1], item=[1])
    with pytest.raises(
        NaysayError, match=r"`DATA` must be a ratings\.npz with user, item, rating, got none named rating"
    ):
        factorisation.read(tmp_path)
    np.savez(tmp_path / "ratings.npz", user=[1, 0], item=[1, 1], rating=[5, 5])
    with pytest.raises(NaysayError, match=r"`user` must be counted from 1, got 0 at row 1 \(1 such row\)"):
        factorisation.read(tmp_path)


def test_a_folder_without_ratings_ends_in_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        recommendation.main([str(tmp_path)])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("recommendation: `DATA` must be a folder with a file ratings.npz")


def test_a_small_study_runs_from_end_to_end(tmp_path):
    rng = np.random.default_rng(0)
    users, items = rng.integers(1, 41, 1600), np.minimum(rng.geometric(0.03, 1600), 120)
    np.savez(tmp_path / "ratings.npz", user=users, item=items, rating=rng.integers(2, 6, 1600))
    out = tmp_path / "found.json"
    sizes = ("--seeds", "2", "--steps", "6", "--every", "3", "--longer", "2")
    command = [sys.executable, "-m", "benchmarks.training.recommendation", tmp_path, *sizes, "--out", out]
    done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "minutes left" in done.stdout
    found = json.loads(out.read_text())
    arms = {"uniform", "popularity", "popularity, restored", "dynamic", "mixing", "uniform, K*", "uniform, scheduled"}
    assert set(found["tuning"]["settings"]) == arms
    assert arms | {"uniform, longer"} <= set(found["rows"])
    assert (found["seeds"], len(found["quantity"])) == (2, 2)
    for row in found["rows"].values():
        assert len(row["recall"]["values"]) == 2
        assert all(0 <= value <= 1 for value in row["recall"]["values"] + row["ndcg"]["values"])
    base = found["rows"]["uniform"]
    assert base["reached"] == 2
    assert base["recall_difference"]["values"] == [0, 0]
    assert base["steps_to_goal"]["values"] == base["best_step"]["values"]
    parts = training_tables.recommendation(found, lambda headings, rows: json.dumps([headings, *rows]))
    tables = [json.loads(part) for part in parts if part.startswith("[[")]
    assert [len(rows) for rows in tables] == [8, 9]
    assert all(len(cells) == len(rows[0]) for rows in tables for cells in rows)


def test_published_arms_had_the_same_budget():
    path = FOLDER / "results" / "recommendation.json"
    found = json.loads(path.read_text())
    assert found["seeds"] >= 5
    lengths = {len(curve) for curve in found["validation_recall_curves"].values()}
    assert lengths == {found["steps"] // found["every"] + 1}
