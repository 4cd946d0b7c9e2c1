"""The studies of claims: runs are those of `compare`, schedules act, a rerun continues, and differences are paired."""

import json
import lzma
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks.claims import pictures, quantity, samplers, study, summaries, worlds
from benchmarks.claims.training import Settings, Watched, best_k, trained, uniform
from benchmarks.docs import evidence
from naysay.comparing._run import Run
from naysay.quantity import adaptive, estimate
from naysay.quantity.online import Online

SETTINGS = Settings("likes", 6, 3, 0.01, 1e-6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small data of all three kinds."""
    made, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for name in ("ml-100k", "yelp2018", "debian-desc"):
        (made / name).mkdir()
    users, items = rng.integers(1, 31, 900), np.minimum(rng.geometric(0.03, 900), 80)
    np.savez(made / "ml-100k" / "ratings.npz", user=users, item=items, rating=rng.integers(2, 6, 900))
    who, what = np.nonzero(rng.random((40, 60)) < 0.3)
    test = rng.random(len(who)) < 0.2
    parts = {"train_user": who[~test], "train_item": what[~test], "test_user": who[test], "test_item": what[test]}
    np.savez(made / "yelp2018" / "interactions.npz", **parts)
    words = [f"word{n}" for n in range(50)]
    with lzma.open(made / "debian-desc" / "packages.jsonl.xz", "wt") as file:
        for n in range(80):
            about = rng.choice(words, 8).tolist()
            row = {"package": f"p{n}", "source": f"s{n // 2}", "section": "x", "tags": [], "short": " ".join(about[:4])}
            file.write(json.dumps(row | {"long": " ".join(about)}) + "\n")
    return made


@pytest.fixture(scope="module")
def task(folder):
    return worlds.likes(folder)(0)


def test_a_run_is_that_of_compare_and_probes_do_not_change_it(task):
    plain = Run(task, uniform("k = 2", 2), 0.01, 0)
    plain.to(6, 3, lambda _: None)
    for probes in (None, Online(6)):
        run = Watched(task, uniform("k = 2", 2), SETTINGS, 0, probes)
        run.to(6, 3, lambda _: None)
        assert [point.value for point in run.points] == [point.value for point in plain.points]
        assert run.model.snapshot().tolist() == plain.model.snapshot().tolist()
    decayed = Watched(task, uniform("k = 2", 2), replace(SETTINGS, decay=0.1), 0)
    decayed.to(6, 3, lambda _: None)
    assert decayed.model.snapshot().norm() < plain.model.snapshot().norm()


def test_a_schedule_decides_k(task):
    schedule = adaptive(9, 6, 0.5)
    run, seen = Watched(task, uniform("to 9", 1, schedule), SETTINGS, 0), []
    ask = run.step_of

    def step_of(rows, k, *, step):
        loss, negatives = ask(rows, k=k, step=step)
        seen.append(negatives.mask.sum(dim=1).float().mean().item())
        return loss, negatives

    run.step_of = step_of
    run.to(6, 3, lambda _: None)
    assert seen == pytest.approx([schedule(step) for step in range(6)], abs=0.25)  # a fraction is drawn for each row
    assert max(seen) > 6


def test_k_is_estimated_up_to_the_highest_validation_auc():
    found = {"validation_auc": [0.5, 0.7, 0.9, 0.85], "training_auc": [0.5, 0.8, 0.93, 0.99]}
    assert best_k(found).k == estimate(0.93, [0.5, 0.7, 0.9]).k


def test_differences_are_paired_and_a_goal_is_reached_at_its_first_point():
    def run(value, validation):
        same = {"k": 1, "rate": 1.0, "decay": 0.0, "best_step": 1, "last": 0, "processor_seconds": 1.0}
        same |= {"milliseconds_a_step": 1.0, "false_percent": 0.0, "step": [5, 10], "seconds": [0.1, 0.2]}
        return {**same, "test": {"recall@20": value}, "validation": validation, "value": [validation / 2, validation]}

    seeds = [{"uniform": run(0.1, 0.2), "hard": run(0.2, 0.5)}, {"uniform": run(0.3, 0.4), "hard": run(0.4, 0.3)}]
    found = summaries.of_samplers(seeds, "uniform")["arms"]["hard"]
    assert found["over uniform"]["values"] == pytest.approx([0.1, 0.1])
    assert (found["reached"], found["steps_to_goal"]["values"]) == (1, [5])
    assert evidence.verdict({"mean": 0.1, "half": 0.05}) == evidence.REPRODUCED
    assert evidence.verdict({"mean": 0.1, "half": 0.05}, -1) == evidence.REVERSED
    assert evidence.verdict({"mean": -0.1, "half": 0.2}, -1) == evidence.OPEN
    assert evidence.verdict({"mean": -0.1, "half": None}, -1).endswith(", as claimed")


def tiny(world, **changes):
    return replace(world, steps=6, every=3, rates=(0.1,), decays=(0.0,), **changes)


CASES = {
    "quantity": replace(quantity.CLAIMS, worlds=tuple(map(tiny, quantity.WORLDS))),
    "samplers": replace(
        samplers.CLAIMS,
        worlds=tuple(
            tiny(world, read=partial(worlds.yelp, model=world.name, share=2)) for world in samplers.WORLDS[:2]
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_small_study_runs_from_end_to_end_and_continues(name, folder, tmp_path, monkeypatch, capsys):
    out, claims = tmp_path / f"claims_{name}.json", CASES[name]
    seeds = {world.name: count for world, count in zip(claims.worlds, (2, 1), strict=True)}

    def all_tasks(data):
        for task, count in seeds.items():
            study.command(claims, [str(data), "--task", task, "--seeds", str(count), "--out", str(out)])
        return json.loads(out.read_text())

    def never(*_):
        raise AssertionError

    found, kept = all_tasks(folder), out.with_suffix(".jsonl").read_text()
    assert set(found["tasks"]) == set(seeds)
    for name_of, task in found["tasks"].items():
        for arm in task["arms"].values():
            assert len(arm["test"][task["measure"]]["values"]) == arm["seeds"] == seeds[name_of]
            assert len(arm["curve"]["value"]) == 2
    monkeypatch.setattr(study, "trained", never)
    assert all_tasks(folder / "nowhere") == found
    assert out.with_suffix(".jsonl").read_text() == kept
    out.with_suffix(".jsonl").write_text(kept[: kept.rindex("\n", 0, -1) + 1])  # the last run is lost
    with pytest.raises(AssertionError):
        all_tasks(folder)
    last = json.loads(kept.splitlines()[-1])["arm"]
    study.command(claims, [str(folder), "--task", claims.worlds[1].name, "--arms", "--out", str(out)])
    left = json.loads(out.read_text())["tasks"][claims.worlds[1].name]
    assert last not in left["arms"] if name == "samplers" else left == found["tasks"]["text"]  # no seed is whole
    made = pictures.by_k(found) if name == "quantity" else pictures.by_time(found)
    assert len(made["vconcat"][0]["hconcat"]) == 2
    capsys.readouterr()


def test_data_that_is_missing_ends_in_one_sentence(tmp_path, capsys):
    for name, missing in (("samplers", "yelp2018/interactions.npz"), ("quantity", "ratings.npz")):
        with pytest.raises(SystemExit, match="2"):
            study.command(CASES[name], [str(tmp_path), "--out", str(tmp_path / "found.json")])
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1
        assert missing in printed


def test_the_test_part_is_not_measured_where_settings_are_chosen(task):
    assert "test" not in trained(task, uniform("k = 1", 1), replace(SETTINGS, tested=False), 0)
