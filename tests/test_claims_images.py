"""The claims about pictures from end to end, on stripes of three kinds, and the parts that decide an arm."""

import json
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stripes import write_stripes

from benchmarks.claims import images_detection as detection
from benchmarks.claims import images_in_batch as batches
from benchmarks.claims import images_percentiles as percentiles
from benchmarks.claims.detection_summary import closed
from benchmarks.claims.picture_worlds import SIDE, composed, cosine_rates, paired, world
from benchmarks.training.image_encoder import Pictures


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_stripes(tmp_path_factory.mktemp("pictures"), {"train": 300, "t10k": 60})


def run_main(module, monkeypatch, data, arguments):
    monkeypatch.setattr(sys, "argv", ["study", str(data), *arguments])
    module.main()


def test_detection_runs_resumes_and_sums_up(data, tmp_path, monkeypatch, capsys):
    out = tmp_path / "found.json"
    small = "--parts 1 --epochs 3 --every 1 --train 96 --validation 30 --batch 32 --width 4 --out"
    small = [*small.split(), str(out)]
    arms = ["plain", "oracle attract", "oracle eliminate", "step to 100 %, wrong labels removed", "constant 100 %"]
    run_main(detection, monkeypatch, data, [*small, "--seeds", "1", "--arms", *arms[:2]])
    first = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=6)[6].split("  ")[0] for line in first] == arms[:2]
    run_main(detection, monkeypatch, data, [*small, "--seeds", "2", "--arms", *arms])
    assert len(capsys.readouterr().out.splitlines()) == 8  # of 10, two were there
    lines = [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]
    values = {(line["arm"], line["seed"]): line["found"] for line in lines}
    found = json.loads(out.read_text())["worlds"]["1"]
    rows = found["arms"]
    assert found["not_run"] == [arm for arm in detection.ARMS if arm not in arms]
    assert list(rows) == [arm for arm in detection.ARMS if arm in arms]
    for arm, row in rows.items():
        mine, plain = (np.array([values[name, seed]["accuracy"] for seed in (0, 1)]) for name in (arm, "plain"))
        assert (row["seeds"], row["accuracy"]["mean"]) == (2, pytest.approx(mine.mean()))
        if arm != "plain":
            assert row["over_plain"]["accuracy"]["mean"] == pytest.approx((mine - plain).mean())
    through = values["constant 100 %", 0]["through"]
    assert [step["epoch"] for step in through] == [1, 2]  # labels after the last epoch would not be used
    recall = sum(step["weight"] * step["recall"][0] for step in through)
    assert rows["constant 100 %"]["recall"]["values"][0] == pytest.approx(recall)
    assert rows["step to 100 %, wrong labels removed"]["precision"]["mean"] == 100
    assert out.with_suffix(".svg").read_text().startswith("<svg")


def test_in_batch_choices_go_by_validation_and_runs_are_kept(data, tmp_path, monkeypatch, capsys):
    out = tmp_path / "found.json"
    small = "--parts 1 --epochs 2 --train 64 --validation 30 --batch 32 --width 4 --seeds 2 --out"
    monkeypatch.setattr(batches, "TEMPERATURES", (0.2, 0.5))
    run_main(batches, monkeypatch, data, [*small.split(), str(out)])
    lines = [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]
    assert len(lines) == 2 * 5 + 2 * 3  # temperatures x (plain, 2 priors, 2 betas), then seeds x arms
    found = json.loads(out.read_text())["worlds"]["1"]
    values = {(one["arm"], one["settings"]["temperature"], one["seed"]): one["found"] for one in lines}
    for name, tuned in found["tuning"].items():
        assert tuned["validation"] == max(one["validation"] for one in tuned["tried"])
        arm = f"prior {tuned['prior']:g}, beta {tuned['beta']:g}"
        accuracies = [values[arm, tuned["temperature"], seed]["accuracy"] for seed in range(2)]
        assert found["arms"][name]["accuracy"]["values"] == pytest.approx(accuracies)
    assert (
        found["tuning"]["hard"]["prior"]
        == found["tuning"]["debiased"]["prior"]
        > 0
        == found["tuning"]["plain"]["prior"]
    )
    assert found["tuning"]["hard"]["beta"] > 0
    capsys.readouterr()
    run_main(batches, monkeypatch, data, [*small.split(), str(out)])
    assert capsys.readouterr().out == ""


def test_the_arms_of_in_batch_have_three_losses():
    z = torch.nn.functional.normalize(torch.randn(8, 4, generator=torch.Generator().manual_seed(0)), dim=1)
    partner, labels = torch.arange(8).roll(4), np.full((1, 8), -1)
    arms = [detection.Arm(None, prior=prior, beta=beta) for prior, beta in ((0, 0), (0.1, 0), (0.1, 1))]
    losses = [float(detection._loss(arm, z, partner, labels, 0.5)) for arm in arms]
    assert losses[1] < losses[0]  # the share of the positive leaves the negatives' sum
    assert losses[2] > losses[1]  # hard ones count more
    gaps = z @ z.T / 0.5
    plain = [
        np.log(sum(np.exp(float(gaps[i, j])) for j in range(8) if j != i)) - float(gaps[i, (i + 4) % 8])
        for i in range(8)
    ]
    assert losses[0] == pytest.approx(np.mean(plain), abs=1e-5)


def test_percentiles_run_resume_and_sum_up(data, tmp_path, monkeypatch, capsys):
    out = tmp_path / "found.json"
    small = "--parts 2 --temperatures 0.2 --steps 4 --train 64 --validation 20 --batch 16 --queue 40 --width 4 --out"
    small = [*small.split(), str(out)]
    run_main(percentiles, monkeypatch, data, [*small, "--seeds", "1", "--arms", "all"])
    arms = ["all", "only 90-95 %", "all but the same class", "untrained"]
    run_main(percentiles, monkeypatch, data, [*small, "--seeds", "1", "--arms", *arms])
    assert len(capsys.readouterr().out.splitlines()) == 4
    study = json.loads(out.read_text())["studies"][0]
    rows = study["arms"]
    assert (study["parts"], study["temperature"], set(rows)) == (2, 0.2, set(arms))
    assert rows["only 90-95 %"]["left"]["mean"] == pytest.approx(5)  # places 36 to 38 of 40
    assert rows["all but the same class"]["same_class"]["mean"] == 0
    assert rows["all"]["left"]["mean"] > 90
    assert rows["untrained"]["left"]["mean"] == 0  # no step was made
    assert study["not_run"] == [name for name in percentiles.ARMS if name not in arms]
    over = rows["only 90-95 %"]["accuracy"]["mean"] - rows["all"]["accuracy"]["mean"]
    assert rows["only 90-95 %"]["over_all"]["accuracy"]["mean"] == pytest.approx(over)
    assert out.with_suffix(".svg").read_text().startswith("<svg")


shares = st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0])
arms = st.builds(
    percentiles.Arm, shares, shares, st.booleans(), st.sampled_from([None, "same", "other"]), at_random=st.booleans()
)


@given(st.integers(0, 2**32 - 1), arms)
def test_what_an_arm_leaves_is_what_a_sort_of_each_row_leaves(seed, arm):
    rng = np.random.default_rng(seed)
    rows, size = 3, int(rng.integers(1, 60))
    scores = torch.from_numpy(rng.uniform(-1, 1, (rows, size)).astype(np.float32))
    valid, same = (torch.from_numpy(rng.random((rows, size)) < share) for share in (0.9, 0.3))
    found = percentiles.kept_negatives(scores, valid, same, arm, torch.Generator().manual_seed(seed))
    ranked = torch.rand(rows, size, generator=torch.Generator().manual_seed(seed)) if arm.at_random else scores
    for row in range(rows):
        order = sorted(range(size), key=lambda slot: (bool(valid[row, slot]), float(ranked[row, slot])))
        for place, slot in enumerate(order):
            inside = round(arm.low * size) <= place < round(arm.high * size)
            if arm.only is not None:
                inside = inside and bool(same[row, slot]) == (arm.only == "same")
            wanted = bool(valid[row, slot]) and inside != arm.remove
            assert bool(found[row, slot]) == wanted


def test_pictures_of_two_parts_have_the_classes_of_both(data):
    source = Pictures(torch.rand(7, 1, 28, 28), torch.tensor([3, 1, 0, 9, 8, 2, 5]))
    found = composed(source, 2, 3)
    assert found.classes.tolist() == [13, 90, 28]
    assert found.images.shape == (3, 2, SIDE, SIDE)
    wanted = source.images[3, 0].reshape(SIDE, 2, SIDE, 2).mean(dim=(1, 3))
    assert torch.allclose(found.images[1, 1], wanted)
    assert composed(source, 2, 3, last=True).classes.tolist() == [1, 89, 52]
    seen = world(data, 2, 100, 20)
    assert seen.groups(torch.tensor([13, 90, 28])).tolist() == [5, 8, 3]
    assert (len(seen.train.images), len(seen.validation.images), len(seen.test.images)) == (100, 20, 30)


def test_parts_that_overlap_are_rejected(data):
    with pytest.raises(SystemExit, match=r"^2 parts of 160 pictures overlap: there are 300$"):
        world(data, 2, 130, 30)
    with pytest.raises(SystemExit, match=r"^31 pictures of 2 parts need 62 pictures; there are 60$"):
        composed(world(data, 1, 10, 10).test, 2, 31)


def test_rates_rise_fall_and_keep_their_sum():
    rates = cosine_rates(100, 2.0)
    assert (rates.argmax(), rates.max()) == (9, 2.0)
    assert rates[-1] == pytest.approx(0)
    flat = cosine_rates(100, 2.0, flat=True)
    assert flat.min() == flat.max()
    assert flat.sum() == pytest.approx(rates.sum())


def test_quality_by_hand():
    labels, classes = np.array([[0, 0, 0, 1, 1, -1]]), np.array([0, 0, 1, 1, 1, 1])
    found = detection.quality(labels, labels, classes)
    assert found["precision"] == [50.0]  # pairs 01, 02, 12, 34: two of four
    assert found["recall"] == [pytest.approx(100 * (1 + 1 + 0 + 1 / 3 + 1 / 3 + 0) / 6, abs=0.01)]
    assert detection._right(labels, classes).tolist() == [[0, 0, -1, 1, 1, -1]]


def test_shares_of_the_gap_use_the_seeds_of_all():
    def runs(*values):
        return {seed: {"accuracy": value} for seed, value in enumerate(values)}

    of = {"plain": runs(70.0, 72.0, 60.0), "oracle": runs(75.0, 77.0)}
    assert closed(runs(71.0, 75.0, 99.0), of, "oracle") == 40.0
    assert closed(runs(71.0), {"plain": runs(70.0), "oracle": runs(70.0)}, "oracle") is None
    assert paired({0: 3.0, 2: 5.0}, {0: 1.0, 1: 1.0, 2: 2.0}) == [2.0, 3.0]
