"""The study of images from end to end, on pictures that are made here: stripes of three kinds, in MNIST's format."""

import gzip
import json
import sys

import numpy as np
import pytest
import torch
from scipy.stats import t as student
from stripes import write_stripes

from benchmarks.training import images as study
from benchmarks.training.image_encoder import read_idx


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_stripes(tmp_path_factory.mktemp("pictures"), {"train": 250, "t10k": 60})


def test_the_whole_study(data, tmp_path, monkeypatch, capsys):
    out = tmp_path / "images.json"
    small = "--seeds 2 --epochs 2 --train 192 --batch 64 --width 4 --clusters 3 6"
    monkeypatch.setattr(sys, "argv", ["images.py", str(data), *small.split(), "--out", str(out)])
    study.main()
    found = json.loads(out.read_text())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" s, ")[1].split()[1:3] for line in lines] == [["min", "left"]] * 10
    assert (found["seeds"], found["test"], found["settings"]["train"]) == (2, 60, 192)
    assert list(found["arms"]) == list(found["runs"]) == list(study.ARMS)
    accuracy = {arm: np.array([run["accuracy"] for run in runs]) for arm, runs in found["runs"].items()}
    for arm, row in found["arms"].items():
        assert row["accuracy"]["mean"] == pytest.approx(accuracy[arm].mean(), abs=1e-3)
        assert (accuracy[arm] > 50).all()  # chance is a third
        through = [run.get("through") for run in found["runs"][arm]]
        assert ("last_true_positive" in row) == (through[0] is not None) == (arm in ("eliminate", "attract"))
        if through[0] is None:
            continue
        assert [[step["accepted"] for step in run] for run in through] == [[96, 192]] * 2
        wanted = np.mean([run[-1]["true_negative"] for run in through], axis=0)
        assert row["last_true_negative"] == pytest.approx(wanted.tolist(), abs=0.01)
        wanted = np.mean([run[0]["true_positive"] for run in through], axis=0)  # the labels of the second epoch
        assert row["mean_true_positive"] == pytest.approx(wanted.tolist(), abs=0.01)
        over = accuracy[arm] - accuracy["plain"]
        half = student.ppf(0.975, 1) * over.std(ddof=1) / 2**0.5
        assert row["over_plain"]["half_interval"] == pytest.approx(half, abs=1e-3)
        gap = (accuracy["oracle attract"] - accuracy["plain"]).mean()
        share = None if gap <= 0 else pytest.approx(100 * over.mean() / gap, abs=0.1)
        assert row["closed_percent"]["oracle attract"] == share


def test_before_the_first_update_all_arms_but_the_oracles_are_one(data):
    """One epoch: no label is accepted before it ends, so that weights, batches and views have to be the same."""
    train, test = study.pictures(data, "train").first(192), study.pictures(data, "t10k")
    settings = study.Settings(192, 1, 64, 4, 0.2, 4e-3, (3, 6))
    found = {arm: study.run(arm, 0, train, test, settings) for arm in study.ARMS}
    for arm in ("eliminate", "attract"):
        assert found[arm]["nmi"] == pytest.approx(found["plain"]["nmi"], abs=1.0)
        assert found[arm]["accuracy"] == pytest.approx(found["plain"]["accuracy"], abs=2.0)
    again = study.run("plain", 0, train, test, settings)
    assert (again["accuracy"], again["nmi"]) == (found["plain"]["accuracy"], found["plain"]["nmi"])


def test_shares_of_the_way():
    accuracy = {"plain": np.array([70.0, 72.0]), "a": np.array([71.0, 75.0]), "o": np.array([75.0, 77.0])}
    assert study.closed(accuracy, "a", "o") == 40.0
    assert study.closed(accuracy, "a", "plain") is None


def test_views_keep_their_shape_and_their_generator():
    images = torch.rand(5, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    one, other = (study.view(images, torch.Generator().manual_seed(1)) for _ in range(2))
    assert one.shape == images.shape
    assert torch.equal(one, other)
    assert 0 <= one.min() <= one.max() <= 1
    assert not torch.equal(one, study.view(images, torch.Generator().manual_seed(2)))


def test_what_is_no_idx_file_is_rejected(tmp_path):
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(b"\x00\x01\x08\x03" + bytes(12)))
    with pytest.raises(SystemExit, match=r"^train-images-idx3-ubyte\.gz is no IDX file of bytes$"):
        read_idx(path)
