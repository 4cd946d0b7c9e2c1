"""The benchmark of the runners on tiny data, without peers: every part runs, and its figures add up."""

import json
import sys

import numpy as np
import pytest

import naysay as ns
from benchmarks.docs import pages
from benchmarks.docs import runners as page
from benchmarks.speed import runner_steps, runners


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of both data sets, tiny."""
    made, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    users, items = np.nonzero(rng.random((40, 60)) < 0.2)
    test = rng.random(len(users)) < 0.2
    parts = {"train": ~test, "test": test}
    (made / "yelp2018").mkdir()
    arrays = {f"{part}_{side}": ids[rows] for part, rows in parts.items() for side, ids in _sides(users, items)}
    np.savez(made / "yelp2018" / "interactions.npz", **arrays)
    triples = np.argwhere(rng.random((20, 3, 20)) < 0.2)
    part = rng.choice(3, len(triples), p=[0.8, 0.1, 0.1])
    (made / "fb15k-237").mkdir()
    names = ("train", "valid", "test")
    np.savez(made / "fb15k-237" / "triples.npz", **{name: triples[part == n] for n, name in enumerate(names)})
    return made


def _sides(users, items):
    return (("user", users), ("item", items))


def test_the_script_runs_without_peers_and_keeps_what_it_does_not_measure(folder, tmp_path, monkeypatch, capsys):
    out = tmp_path / "runners.json"
    monkeypatch.setattr(runners, "BATCHES", {"ours": 64, "RecBole's": 16})
    monkeypatch.setattr(runners, "TRIPLES", 64)
    how = ["runners", str(folder), "--peers", str(tmp_path), "--repeats", "2", "--steps", "2", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", how)
    runners.main()
    found = json.loads(out.read_text())
    assert found.keys() >= {*runners.PARTS}
    for case in (*found["factorisation"].values(), found["transe"]):
        ours, *others = case["rows"].values()
        assert ours["naysay_is_faster"] == {"wall": 1, "processor": 1}
        assert all("setup.sh" in row["missing"] for row in others)
        assert ours["epochs_per_second"] == pytest.approx(2 / case["epoch_steps"] / ours["seconds"])
    for row in found["propagation"]["rows"].values():
        assert row["largest_difference"] < 1e-5
    for row in found["steps"].values():
        parts = [*page.PARTS[1:], "order"]
        assert sum(row[name] for name in parts) == pytest.approx(row["step"])
        assert all(row[name] > 0 for name in parts if name != "order")
    monkeypatch.setattr(sys, "argv", [*how, "--parts", "propagation"])
    runners.main()
    again = json.loads(out.read_text())
    assert all(again[name] == found[name] for name in ("factorisation", "transe", "steps"))
    assert "wrote" in capsys.readouterr().err
    text = "\n\n".join(page.runners(again, pages.table))
    assert "run benchmarks/peers/setup.sh" in text
    assert "share of negatives" in text


def test_the_update_of_touched_rows_is_counted(folder):
    task = ns.tasks.Recommendation(runners.interactions(folder), "mf", width=8, batch=4)
    assert 0 < runner_steps.touched_rows(task) <= 4 + 4 * 17
