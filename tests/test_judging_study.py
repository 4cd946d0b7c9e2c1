"""The study of judging: its splits share nothing, its loss and measures are the plain ones, and a rerun continues."""

import json
import lzma
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import naysay as ns
from benchmarks.docs import training as training_tables
from benchmarks.training import (
    image_posterior,
    judging,
    judging_models,
    judging_recommendation,
    judging_summary,
    judging_worlds,
    judging_yelp,
)
from benchmarks.training.judging_arms import ABLATIONS, ARMS, BANDS, Chosen, Judge
from benchmarks.training.judging_worlds import K, Part, Texts
from naysay.tasks import split_by_user


def unit(values):
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


def loss_of(*args):
    return float(judging_models.loss_of(*args).detach())


def planted(sources=80, width=16, seed=0):
    """Packages of sources of 6 to 8, near their source's centre."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(sources), rng.integers(6, 9, sources))
    centres = rng.normal(size=(sources, width))
    short, long = (unit(centres[source] + 0.8 * rng.normal(size=(len(source), width))) for _ in range(2))
    none = np.zeros(0, np.int64)
    return Texts(short, long, none, none, source, "planted")


@pytest.fixture(scope="module")
def world():
    return judging_worlds.made("debH", planted(), 3)


def pairs_of(part):
    return set(zip(*(side.tolist() for side in part.pairs), strict=True))


def test_parts_of_packages_share_no_source(world):
    source = world.texts.source
    parts = (world.train, world.validation, world.test)
    held = [set(source[np.concatenate([part.queries, part.documents])].tolist()) for part in parts]
    assert not held[0] & held[1]
    assert not (held[0] | held[1]) & held[2]
    assert len(set(source[world.train.queries].tolist())) == len(world.train.queries)
    for part in (world.train, world.validation):
        assert part.pairs[0].tolist() == list(range(len(part.queries)))
    for part in parts:
        alike = source[part.queries][:, None] == source[part.documents]
        assert pairs_of(part) <= set(zip(*(side.tolist() for side in np.nonzero(alike)), strict=True))
        if part is world.test:
            assert len(part.pairs[0]) == alike.sum()
    truth = source[world.train.queries][:, None] == source[world.train.documents]
    assert len(world.truth.pairs()[0]) == truth.sum()


def test_parts_of_claims_share_no_document():
    rng = np.random.default_rng(0)
    anchors = np.repeat(np.arange(40), 2)
    items = rng.integers(0, 90, 80)
    texts = Texts(unit(rng.normal(size=(41, 8))), unit(rng.normal(size=(90, 8))), anchors, items, anchors[:0], "")
    made = judging_worlds.made("scifact", texts, 1)
    parts = (made.train, made.validation, made.test)
    documents = [set(part.documents.tolist()) for part in parts]
    assert set().union(*documents) == set(range(90))
    assert sum(map(len, documents)) == 90
    assert sorted(np.concatenate([part.queries for part in parts]).tolist()) == list(range(40))
    relevant = set(zip(anchors.tolist(), items.tolist(), strict=True))
    found = [(int(made.test.queries[row]), int(made.test.documents[item])) for row, item in pairs_of(made.test)]
    assert set(found) == {pair for pair in relevant if pair[0] in made.test.queries}


@pytest.mark.parametrize("dose", [0.0, 0.1, 0.2])
def test_a_dose_is_the_false_share_of_the_nearest(world, dose):
    dosed = judging_worlds.at_dose(world, dose, 5)
    queries, documents = dosed.vectors(dosed.train)
    gone = set(zip(*(side.tolist() for side in dosed.ignored), strict=True))
    truth = set(zip(*(side.tolist() for side in dosed.truth.pairs()), strict=True))
    assert gone <= truth
    assert not gone & pairs_of(dosed.train)
    false = total = 0
    for row, scores in enumerate((queries @ documents.T).tolist()):
        ranked = sorted(range(len(scores)), key=lambda item: -scores[item])
        near = [item for item in ranked if item != dosed.labels[row] and (row, item) not in gone][:K]
        false, total = false + sum((row, item) in truth for item in near), total + len(near)
    assert false / total == pytest.approx(dose, abs=0.01)
    found = Judge(dosed, 0)
    assert found.measured(found.chosen("nearest"))["false_share"] == pytest.approx(false / total)


def test_arms_are_what_they_say(world):
    judge = Judge(world, 0)
    arms = {name: judge.chosen(name) for name in ARMS}
    rows = {name: judge.measured(arm) for name, arm in arms.items()}
    assert rows["oracle"]["false_share"] == 0
    assert rows["nearest"]["false_share"] > 0.2
    assert rows["nearest"]["hardness"] > rows["oracle"]["hardness"] > rows["random"]["hardness"]
    assert "false_share" not in rows["in-batch only"]
    for name, arm in arms.items():
        assert not (arm.negative & arm.positive).any(), name
        assert not (arm.ids == world.labels[:, None])[arm.negative].any(), name
    assert (arms["auto, masked"].ids == arms["nearest"].ids).all()
    masked = rows["auto, masked"]
    assert masked["filled"] < 1
    assert masked.get("false_share", 0) < 0.5 * rows["nearest"]["false_share"]


def test_arms_below_a_share_of_the_positive_and_in_a_band(world):
    judge = Judge(judging_worlds.at_dose(world, 0.1, 5), 0)
    own = np.einsum("nd,nd->n", judge.queries, judge.documents[world.labels])
    truth = set(zip(*(side.tolist() for side in world.truth.pairs()), strict=True))
    left, auto = judge.chosen(ABLATIONS[0]).ids.tolist(), judge.chosen(ABLATIONS[2]).ids
    for row, scores in enumerate((judge.queries @ judge.documents.T).tolist()):
        ranked = sorted(range(len(scores)), key=lambda item: -scores[item])
        below = [item for item in ranked if scores[item] <= own[row] - 0.05 * abs(own[row])]
        assert left[row] == [item for item in below if (row, item) not in truth][:K]
        assert set(auto[row].tolist()) <= {-1, *below}
    assert (judge.suspicion(auto)[auto >= 0] < judge.auto.suspicion_threshold).all()
    found = {name: judge.measured(judge.chosen(name)) for name in ("share 0.95", *ABLATIONS, *BANDS)}
    assert found[ABLATIONS[1]]["hardness"] == pytest.approx(found["share 0.95"]["hardness"], abs=0.02)
    assert found[ABLATIONS[1]]["false_share"] == 0
    assert found[ABLATIONS[3]]["hardness"] < found["share 0.95"]["hardness"]
    every = judge.queries @ judge.documents.T
    gone = pairs_of(world.train) | set(zip(*(side.tolist() for side in judge.world.ignored), strict=True))
    free = sorted((float(score) for pair, score in np.ndenumerate(every) if pair not in gone), reverse=True)
    hard = free[every.size // 1000 : 51 * every.size // 1000]
    for name in BANDS:
        rows, slots = np.nonzero(judge.chosen(name).negative)
        scores = every[rows, judge.chosen(name).ids[rows, slots]]
        assert scores.max() <= hard[0]
        assert name == "bands" or scores.min() >= hard[-1]
    assert found["bands"]["hardness"] > found["bands, random"]["hardness"]


def test_the_loss_is_that_of_plain_loops(world):
    rng = np.random.default_rng(1)
    n = len(world.train.queries)
    ids = rng.integers(0, len(world.train.documents), (n, 3))
    state = rng.integers(0, 3, (n, 3))
    arm = Chosen(ids, state == 1, state == 2, {})
    model = judging_models.Adapter(world.texts)
    rows, t = np.array([4, 0, 7, 2]), 0.3
    near, documents = world.texts.queries[world.train.queries], world.texts.documents[world.train.documents]
    losses = []
    for row in rows:
        others = [near[row] @ documents[world.labels[other]] for other in rows if other != row]
        others += [near[row] @ documents[ids[row, slot]] for slot in range(3) if state[row, slot] == 1]
        own = [near[row] @ documents[world.labels[row]]]
        own += [near[row] @ documents[ids[row, slot]] for slot in range(3) if state[row, slot] == 2]
        each = [-p / t + math.log(math.exp(p / t) + sum(math.exp(s / t) for s in others)) for p in own]
        losses.append(sum(each) / len(each))
    assert loss_of(model, world, arm, rows, t) == pytest.approx(np.mean(losses), rel=1e-5)
    none = Chosen(np.empty((n, 0), np.int64), np.empty((n, 0), bool), np.empty((n, 0), bool), {})
    assert loss_of(model, world, none, rows, t) > 0


def test_ndcg_is_that_of_plain_loops(world):
    part, model = world.test, judging_models.Adapter(world.texts)
    queries, documents = world.vectors(part)
    truth, found = pairs_of(part), []
    for row, scores in enumerate((queries @ documents.T).tolist()):
        best = sorted(range(len(scores)), key=lambda item: -scores[item])[:10]
        wanted = sum(pair[0] == row for pair in truth)
        gain = sum(1 / math.log2(place + 2) for place, item in enumerate(best) if (row, item) in truth)
        found.append(gain / sum(1 / math.log2(place + 2) for place in range(min(wanted, 10))))
    assert judging_models.ndcg(model, part, block=7) == pytest.approx(np.mean(found), abs=1e-6)


def test_tokens_are_averaged():
    table = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]])
    model = judging_models.Tokens(judging_models.Bags(table, [[0], [2, 2], []], [[0, 1], [2]]))
    assert model.queries(np.array([1, 2, 0])).tolist() == pytest.approx(np.array([[0.6, 0.8], [1, 0], [1, 0]]))
    half = math.sqrt(0.5)
    assert model.documents(np.array([0])).tolist()[0] == pytest.approx([half, half])


def test_training_returns_the_best_epoch(world):
    arm = Judge(world, 0).chosen("oracle")
    settings = {"rate": 1e-3, "epochs": 2, "temperature": 0.05}
    found, again = (
        judging_models.trained(judging_models.Adapter(world.texts), world, arm, settings, 0) for _ in range(2)
    )
    assert found == again
    assert found["validation"] >= found["first_validation"]


def test_a_guard_changes_the_negatives():
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 90))
    data = split_by_user(*np.nonzero(taste > 1.5), 60, 90)
    row = {"arm": "dynamic, oracle", "seed": 0, "rate": 0.01, "epochs": 3}
    assert judging_recommendation.one_run(data, row)["false_share"] == 0
    assert judging_recommendation.one_run(data, {**row, "arm": "dynamic"})["false_share"] > 0
    for arm in (judging_recommendation.GUARDS[3], judging_recommendation.IGNORING):
        guard = judging_recommendation.Guarded(data, arm, judging_recommendation.Settings(0.01, 0), 0, 25)
        guard.train(2 * guard.epoch)
        assert guard.fits == 2
    looked = judging_recommendation.Table(np.eye(3, dtype=np.float32))
    said = looked.suspicion(ns.Query([1, 2]), ns.Negatives(np.array([[1, 0], [-1, 2]])))
    assert said.tolist() == [[1, 0], [0, 1]]


@pytest.fixture
def folder(tmp_path):
    """A folder of data, with the vectors of its packages beside the runs."""
    texts = planted(60)
    (tmp_path / "debian-desc").mkdir()
    with lzma.open(tmp_path / "debian-desc" / "packages.jsonl.xz", "wt") as file:
        for number in texts.source.tolist():
            file.write(json.dumps({"source": f"{number:03d}", "short": "a", "long": "b", "tags": []}) + "\n")
    np.savez(tmp_path / "judging.vectors.npz", short=texts.queries, long=texts.documents, encoder="planted")
    return tmp_path


def test_a_rerun_continues_and_a_line_cut_short_is_run_again(folder, monkeypatch, capsys):
    arms = ("nearest", "share 0.95", "auto", "oracle")
    tiny = judging.Task("debH", "debH", arms, (0.05,), (1e-3, 3e-3), 1)
    monkeypatch.setattr(judging, "TASKS", (tiny, judging.Task("ml-100k", "ml-100k", ("dynamic",), (1.0,), (0.01,), 1)))
    count, trained = [], judging_models.trained

    def counted(*args):
        count.append(args[3]["arm"])
        return trained(*args)

    monkeypatch.setattr(judging_models, "trained", counted)
    command = [str(folder), "--seeds", "2", "--out", str(folder / "judging.json")]
    judging.main(command)
    assert "ml-100k: no data" in capsys.readouterr().err
    assert len(count) == 4 * (2 + 2)
    first = json.loads((folder / "judging.json").read_text())
    judging.main(command)
    assert len(count) == 16
    lines = (folder / "judging.jsonl").read_text()
    (folder / "judging.jsonl").write_text(lines[: lines.rindex('"ndcg"')])
    judging.main(command)
    assert count[16:] == ["oracle"]
    assert json.loads((folder / "judging.json").read_text())["tasks"] == first["tasks"]
    judging.main([*command[:2], "3", *command[3:]])
    assert len(count) == 17 + 4
    task = first["tasks"]["debH, T = 0.05"]
    assert set(task["arms"]) == set(arms)
    assert task["arms"]["oracle"]["false_share"]["mean"] == 0


def test_lists_return_the_suspicion_of_a_pair():
    lists = judging_yelp.Lists(10)
    asked = ns.Query([2, 0]), ns.Negatives(np.array([[4, -1, 7], [4, 5, 9]]))
    assert not lists.suspicion(*asked).any()
    lists.set(np.array([0, 2]), np.array([[5, 4], [7, 1]]), np.array([[0.1, 0.2], [0.3, 0.4]]))
    assert lists.suspicion(*asked) == pytest.approx(np.array([[0, 0, 0.3], [0.2, 0.1, 0]]))
    lists.set(np.array([0]), np.array([[5]]), np.array([[0.1]]), ns.Positives.from_pairs([2], [4], 3, 10))
    assert lists.suspicion(*asked)[0].tolist() == [1, 0, 0]


def test_a_guard_of_lists_is_that_of_all_scores():
    """Likes of one group of users and items: the guard flags the items of a user's own group."""
    users = np.repeat(np.arange(60), 12)
    items = 40 * (users % 3) + np.random.default_rng(0).integers(0, 40, len(users))
    test = np.arange(len(users)) % 4 == 0
    data = judging_yelp.split((users[~test], items[~test], users[test], items[test]), 0)
    assert len(data.train) + len(data.validation) <= (~test).sum()
    group = torch.cat([torch.arange(60) % 3, torch.arange(120) // 40])
    noise = torch.from_numpy(np.random.default_rng(1).normal(0, 0.3, (180, 3)).astype(np.float32))
    vectors = torch.eye(3)[group] + noise
    calibration = judging_recommendation.calibration_half(data.validation)[0]
    made = judging_recommendation.guard_of(judging_recommendation.GUARDS[3], data, calibration, 0)
    assert made[1].labelled_share == len(data.validation) / (len(data.validation) + len(data.test))
    doubtful = SimpleNamespace(fitted=True, reason="no cut", threshold=0.1, summary=SimpleNamespace(before=None))
    doubtful.update, doubtful.posterior = (lambda *lists, n_labelled: None), (lambda lists, own: np.ones(lists.shape))
    careful = judging_yelp.Guard(data, judging_recommendation.GUARDS[3], calibration, doubtful, 0)
    assert (careful.fit(vectors), careful.acted, len(careful.lists.codes)) == (0.5, 0, len(calibration))
    made = judging_recommendation.guard_of(judging_recommendation.IGNORING, data, calibration, 0)
    guard = judging_yelp.Guard(data, judging_recommendation.IGNORING, *made, 0)
    guard.fit(vectors)
    codes = guard.lists.codes
    listed = {(int(code) // 120, int(code) % 120) for code in codes}
    known = set(zip(*(side.tolist() for side in guard.labels.pairs()), strict=True))
    left_out = set(zip(*(side.tolist() for side in guard.left_out.pairs()), strict=True))
    assert known <= listed
    assert not (listed - known) & left_out
    scores = vectors[:60] @ vectors[60:].T
    for user in (0, 17):
        mine = sorted((item for one, item in listed - known if one == user), key=lambda item: -scores[user, item])
        best = [item for item in scores[user].argsort(descending=True).tolist() if (user, item) not in left_out]
        assert mine == best[: len(mine)]


def test_pairs_of_one_image_class_are_flagged(monkeypatch):
    class Features:
        def features(self, images):
            return images.flatten(1)

    def noisy(images, generator):
        return images + 0.2 * torch.randn(images.shape, generator=generator)

    monkeypatch.setattr(image_posterior, "view", noisy)
    classes = np.repeat(np.arange(10), 30)
    centres = torch.randn((10, 1, 8, 8), generator=torch.Generator().manual_seed(0))
    pairs = image_posterior.PosteriorPairs(300, 10, 0.5, 0)
    assert pairs.mask(np.arange(6)).all()
    pairs.update(Features(), noisy(noisy(centres[classes], torch.Generator().manual_seed(1)), pairs.generator))
    assert pairs.quality(classes)["precision"] > 90
    assert pairs.quality(classes)["recall"] > 20
    assert (pairs.mask(np.arange(300)).numpy() == ~pairs.flagged).all()


def test_differences_are_paired_by_seed():
    def row(arm, seed, ndcg):
        same = {"task": "a", "temperature": 1.0, "rate": 0.1, "validation": 0.5, "epochs": 2, "epoch": min(seed + 1, 2)}
        return {**same, "arm": arm, "seed": seed, "ndcg": ndcg}

    rows = [row("nearest", 0, 0.1), row("nearest", 1, 0.5), row("auto", 0, 0.2), row("auto", 1, 0.7), row("auto", 2, 9)]
    rows.append(row("auto", 1000, 99))
    rows.append(row("share 0.95", 0, 0.25))
    task = judging_summary.summary(rows, 1000)["a, T = 1"]
    assert (task["best"], task["auto_over_best"]["mean"]) == ("share 0.95", pytest.approx(-0.05))
    found = task["arms"]["auto"]
    assert found["over nearest"]["mean"] == pytest.approx(0.15)
    assert found["over nearest"]["half"] == pytest.approx(12.706 * 0.05, rel=1e-3)
    assert (found["seeds"], found["at_last_epoch"]) == (3, 2)


def test_steady_arms_stand_in_every_dose():
    same = {"temperature": 0.05, "seed": 0, "rate": 0.1, "validation": 0.5}
    rows = [
        {**same, "task": "dose", "arm": "oracle", "ndcg": 0.7},
        {**same, "task": "dose 5 %", "arm": "auto", "ndcg": 0.6},
    ]
    found = judging_summary.summary(rows, 1000)["dose 5 %, T = 0.05"]["arms"]
    assert found["oracle"]["ndcg"]["mean"] == 0.7
    assert found["auto"]["over oracle"]["mean"] == pytest.approx(-0.1)


def test_the_part_of_a_world_is_a_table():
    part = Part(np.arange(2), np.arange(3), (np.array([0, 1]), np.array([2, 0])))
    assert part.relevant().contains([0, 1, 1], [2, 0, 2]).tolist() == [True, True, False]


def test_published_tables_have_equal_rows():
    path = judging.RESULTS / "judging.json"
    parts = training_tables.judging(json.loads(path.read_text()), lambda headings, rows: json.dumps([headings, *rows]))
    tables = [json.loads(part) for part in parts if part.startswith("[[")]
    assert tables
    assert all(len(cells) == len(rows[0]) for rows in tables for cells in rows)


def test_goals_are_counted():
    def task(best, share, false):
        near = {"seeds": 2, "false_share": {"mean": false}}
        auto = {
            "seeds": 2,
            "over share 0.95": {"mean": share, "half": 0.01},
            "over nearest": {"mean": 0.02, "half": None},
        }
        return {"arms": {"auto": auto, "nearest": near}, "auto_over_best": {"mean": best, "half": 0.01}}

    tasks = {"debH, T = 0.02": task(-0.005, 0.02, 0.3), "b": task(-0.02, -0.02, 0.3), "c": task(-0.02, 0.005, 0.01)}
    said = training_tables._verdict(tasks)
    assert (said["near_best"], said["tasks"], said["false_rich"]) == (1, 3, 2)
    assert (said["above"], said["surely"], said["gain"]) == (1, 1, "+2.0")


def test_reasons_are_those_of_each_arm():
    def over(mean):
        return {"over share 0.95": {"mean": mean, "half": 0.001}}

    tasks = {"deb, T = 0.02": {"arms": {"nearest": over(-0.02), "auto, from rank 21": over(0.003)}}}
    headings, rows = training_tables._reasons(tasks)
    assert headings == ("arm", "deb, T = 0.02")
    assert rows[0] == ("nearest", "-2.0 ± 0.1")
    assert rows[1] == ("oracle", "")
    assert rows[-1] == ("auto, from rank 21", "+0.3 ± 0.1")
