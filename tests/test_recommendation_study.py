"""The recommendation study: its arms share batches and budget, and it runs from end to end."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.docs import training as training_tables
from benchmarks.training import factorisation, recommendation, recommendation_arms, seed_summaries
from naysay.errors import NaysayError
from naysay.tasks import split_by_user

FOLDER = Path(__file__).parent.parent / "benchmarks"


def sets(pairs):
    return set(zip(*(ids.tolist() for ids in pairs.pairs()), strict=True))


def likes(seed):
    return split_by_user(*np.nonzero(np.random.default_rng(seed).random((30, 60)) < 0.3), 30, 60)


def test_every_arm_sees_the_same_batches_and_draws_no_training_like():
    data = likes(4)
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
    data = likes(5)
    run = recommendation_arms.Run(data, recommendation_arms.ARMS[0], recommendation_arms.Settings(0.01, 0.0), 0, 4)
    validation, test = torch.zeros(30, 60), torch.zeros(30, 60)
    validation[data.validation.pairs()] = 1
    test[data.test.pairs()] = 1
    lists = iter([-validation, 2 * validation + test, 2 * validation - test, -validation])
    monkeypatch.setattr(run, "_scores", lambda: next(lists))
    for _ in range(4):
        run.look()
        run.train(1)
    assert [point.recall for point in run.points] == [0, 1, 1, 0]
    assert run.best is run.points[1]
    assert (run.best.step, run.tested.recall(20), run.tested.ndcg(20)) == (1, 1, 1)
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
    users, items, n_users, n_items = factorisation.read(tmp_path)
    assert (users.tolist(), items.tolist(), n_users, n_items) == ([0, 1], [3, 1], 3, 5)


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


def test_a_small_study_runs_from_end_to_end(tmp_path, capsys):
    rng = np.random.default_rng(0)
    users, items = rng.integers(1, 41, 1600), np.minimum(rng.geometric(0.03, 1600), 120)
    np.savez(tmp_path / "ratings.npz", user=users, item=items, rating=rng.integers(2, 6, 1600))
    out = tmp_path / "found.json"
    sizes = ("--seeds", "2", "--steps", "6", "--every", "3", "--longer", "2")
    recommendation.main([str(tmp_path), *sizes, "--out", str(out)])
    assert "minutes left" in capsys.readouterr().out
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
