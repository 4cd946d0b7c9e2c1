"""Images: how they are read and split, that the encoder learns with every arm, and what the arms draw."""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.comparing import fitting_methods
from naysay.comparing._run import Run
from naysay.comparing.arms import Arm, read_arms
from naysay.errors import NaysayError
from naysay.tasks import ConvEncoder, ImageContrast, Images, read_images
from naysay.tasks.conv import view

RNG = np.random.default_rng(0)
LABELS = np.arange(240) % 2
AT = np.sin(np.arange(12) * 1.6 + RNG.uniform(0, 7, (240, 1)))
STRIPES = np.where((LABELS == 0)[:, None, None], AT[:, :, None], AT[:, None, :])
PICTURES = np.clip(0.5 + 0.3 * STRIPES + 0.15 * RNG.standard_normal((240, 12, 12)), 0, 1)
DATA = Images(PICTURES, LABELS)
NEGATIVE_FREE = ("SimSiam", "BYOL", "SwAV", "SwAV with IFND", "Barlow Twins", "VICReg")


def test_the_encoder_learns_to_find_the_other_view():
    task = ImageContrast(Images(PICTURES), batch=64)
    assert task.measure == "view recall@1"
    run = Run(task, Arm("in-batch", 1, "in_batch()"), 0.01, 0)
    before = run.model.measure(run.model.snapshot())
    run.train(25)
    after = run.model.measure(run.model.snapshot())
    assert after["mrr"] > before["mrr"] + 0.05


@pytest.mark.parametrize("name", [*ImageContrast.own])
def test_every_arm_lowers_its_loss(name):
    task = ImageContrast(DATA, batch=96)
    run = Run(task, Arm(name, 16, task.own[name]), 0.003, 0)

    def losses():
        return [run.step_of(run._batch(), k=16, step=0)[0].item() for _ in range(2)]

    run.train(4)  # the queue is full
    before = losses()
    run.train(12)
    after = losses()
    assert np.mean(after) < np.mean(before)
    assert all(torch.isfinite(part).all() for part in run.model.parameters)
    assert (run.negatives is None) == (name in NEGATIVE_FREE)


@pytest.mark.parametrize("method", ["IFND", "SwAV with IFND"])
def test_the_share_of_accepted_labels_grows_linearly_over_a_run(method, monkeypatch):
    """Labels are made every 5 steps here; of 40 steps, the update at step 10 accepts a quarter of them."""
    monkeypatch.setattr("naysay.tasks.image_contrast._RENEW", 5)
    update, shares = ns.detectors.Incremental.update, []

    def noted(self, features, progress):
        update(self, features, progress)
        shares.append((self.labels >= 0).mean())

    monkeypatch.setattr(ns.detectors.Incremental, "update", noted)
    small = Images(PICTURES[:60, :4, :4], LABELS[:60])
    ns.compare(small, task="images", methods=["in-batch", method], steps=40, seeds=1)
    of_run = shares[-7:]  # those of the seed; the others are of the learning rates
    assert of_run == pytest.approx([step / 40 for step in range(5, 40, 5)], abs=0.03)


def test_what_fits_and_what_is_drawn():
    task = ImageContrast(DATA, batch=64)
    parts = task.start(0).parts()
    names = fitting_methods(parts, task.own)
    assert {"semi-hard", "mixed-sources"} <= {*names} - {*task.own}
    assert not {"TransE", "MixGCF", "dynamic", "popularity"} & {*names}
    for arm in read_arms([f"{name}:4" for name in names if name not in task.own], parts, task.defaults, task.own):
        run = Run(task, arm, 0.01, 0)
        run.train(1)
        own, ids = task.rows[run.batch][:, None], run.negatives.numpy().ids
        assert not (ids == own).any(), arm.name
        assert np.isin(ids[ids >= 0], own).all(), arm.name


def test_false_negatives_are_of_the_same_class():
    model = ImageContrast(DATA).start(0)
    rows = np.arange(20)
    own = LABELS[model.task.rows[rows]]
    same = np.array([np.flatnonzero(own[row] == LABELS)[:3] for row in rows])
    other = np.array([np.flatnonzero(own[row] != LABELS)[:3] for row in rows])
    assert model.false_share(rows, ns.Negatives(same)) == 1
    assert model.false_share(rows, ns.Negatives(np.hstack([same, other]))) == 0.5
    assert np.isnan(ImageContrast(Images(PICTURES)).start(0).false_share(rows, ns.Negatives(same)))


def test_elimination_leaves_out_the_images_of_a_cluster(monkeypatch):
    monkeypatch.setattr("naysay.tasks.image_contrast._RENEW", 2)
    task = ImageContrast(DATA, batch=192)
    run = Run(task, Arm("eliminate", 1, "eliminate((2,), steps)"), 0.003, 0, steps=4)  # half of the labels at step 2
    run.train(1)
    assert (run.negatives.numpy().ids < 0).sum() == 192  # the image itself
    run.train(2)
    assert (run.negatives.numpy().ids < 0).sum() > 192 + 1000


def test_the_queue_grows_and_never_has_the_image_itself():
    task = ImageContrast(DATA, batch=64)
    run = Run(task, Arm("MoCo", 1, "queue(150)"), 0.003, 0)
    for size in (64, 128, 150):
        run.train(1)
        ids = run.negatives.numpy().ids
        assert ids.shape == (64, size)
        assert not (ids == task.rows[run.batch][:, None]).any()


def test_views_depend_on_the_generator_alone_and_stay_in_range():
    images = torch.rand(5, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    one, two, other = (view(images, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert one.min() >= 0
    assert one.max() <= 1
    before = torch.random.get_rng_state()
    first, second = ConvEncoder(1, seed=3), ConvEncoder(1, seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first.head[0].weight, second.head[0].weight)


def test_files_of_images(tmp_path):
    np.savez(tmp_path / "keras.npz", x_train=(PICTURES * 255).astype(np.uint8), y_train=LABELS[:, None],
             x_test=np.zeros((9, 12, 12), np.uint8), y_test=np.zeros(9, int))  # fmt: skip
    read = read_images(tmp_path / "keras.npz")
    assert repr(read) == "Images(249 of 12 x 12 x 1, 2 classes, train 216, validation 24, test 9)"
    np.savez(tmp_path / "one.npz", images=PICTURES, labels=LABELS, test_images=PICTURES)
    for name, message in (
        ("one.npz", "`path` must be an .npz file with classes of both parts, or of none, got those of one."),
        ("none.png", "`path` must be a file that ends in .npz"),
        ("none.npz", "`path` must be an existing file"),
    ):
        with pytest.raises(NaysayError) as caught:
            read_images(tmp_path / name)
        assert str(caught.value).startswith(f"read_images: {message}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"images": np.zeros((40, 8))}, "`images` must be of shape (n, h, w) or (n, h, w, c), at least 4 x 4 with 1 o"),
        ({"images": np.zeros((9, 8, 8))}, "`images` must be at least 30, got 9."),
        ({"images": np.full((40, 8, 8), 2.5)}, "`images` must be from 0 to 1, got 2.5 at row 0"),
        ({"labels": [1, 2]}, "`labels` must be of length 240, one for each image, got 2."),
        ({"labels": np.zeros(240, int)}, "`labels` must be of at least two classes among the images to train on"),
        ({"parts": np.zeros(240, int)}, "`parts` must be 1 for at least one image, the validation part, got none."),
    ],
)
def test_data_that_does_not_fit_is_explained(given, message):
    with pytest.raises(NaysayError) as caught:
        Images(**{"images": PICTURES} | given)
    assert str(caught.value).startswith(f"Images: {message}")
