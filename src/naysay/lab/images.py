"""Images without labels: a small convolutional encoder learns that two views show the same image."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import nan
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import affine_grid, grid_sample, normalize

from naysay import losses, pools
from naysay.arrays import to_numpy, to_torch
from naysay.checks import as_array, check_all, public, raise_invalid, whole_numbers
from naysay.detectors import Incremental, LinearAcceptance
from naysay.files import as_path
from naysay.lab._data import PARTS, File, Ids, checksum, first_present, read_npz
from naysay.lab._task import Device, Learner, Loss, Step, Task, in_blocks, row_products, uses
from naysay.lab.probes import linear_probe, nearest_labels
from naysay.lab.ranking import ranking
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.samplers import momentum_update
from naysay.types import Negatives, Query

TEMPERATURE, MOMENTUM = 0.2, 0.99  # of the slow encoder
_BANK, _VALIDATED = 3000, 1000  # training images that vote, and images for validation, at most
_NEIGHBOURS = 20
_RENEW = 50  # steps, at least, between two clusterings
_FEWEST = 30  # images
_SAME_CLASS = "Negatives of the anchor's own class; not shown for images without classes."
_ARRAYS = {
    "images": ("images", "x_train", "train_images", "X"),
    "labels": ("labels", "y_train", "train_labels", "y"),
    "test images": ("test_images", "x_test"),
    "test labels": ("test_labels", "y_test"),
}


# ---- data ------------------------------------------------------------------------------------------------------------


@final
@public
@dataclass(frozen=True, eq=False)
class Images:
    """Images of one size to train on, to validate with and to test on.

    Args:
        images: (n, h, w) or (n, h, w, c) with 1 or 3 colours: whole numbers from 0 to 255, or numbers from 0 to 1.
        labels: (n,) the class of each image, for the measures. Training does not see them. None: there are none.
        parts: (n,) which images are trained on (0), validated (1) and tested on (2). By default eight, one and one
            tenth, at random.
        seed: Of the choice of parts.

    Raises:
        NaysayError: If shapes or values are wrong, or there are fewer than 30 images.

    Examples:
        >>> Images(np.zeros((40, 8, 8)), np.arange(40) % 2)
        Images(40 of 8 x 8 x 1, 2 classes, train 32, validation 4, test 4)
    """

    images: Any
    labels: Any = None
    parts: Any = None
    seed: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        images = _bytes_of(self.images)
        object.__setattr__(self, "images", np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
        object.__setattr__(self, "parts", self._parts(len(images)))
        if self.labels is None:
            return
        labels = whole_numbers("labels", to_numpy(self.labels)).astype(np.int64)
        if len(labels) != len(images):
            raise_invalid("labels", f"of length {len(images)}, one for each image", len(labels))
        if len(np.unique(labels[self.parts == 0])) < 2:
            raise_invalid("labels", "of at least two classes among the images to train on", "one")
        object.__setattr__(self, "labels", labels)

    def _parts(self, size: int) -> Ids:
        """The part of each image."""
        if self.parts is None:
            tenth = np.random.default_rng(self.seed).permutation(size) * 10 // size
            return np.searchsorted([8, 9], tenth, side="right")
        parts = whole_numbers("parts", to_numpy(self.parts)).astype(np.int64)
        if len(parts) != size:
            raise_invalid("parts", f"of length {size}, one for each image", len(parts))
        for part, name in enumerate(PARTS):
            if not (parts == part).any():
                raise_invalid("parts", f"{part} for at least one image, the {name} part", "none")
        return parts

    def fingerprint(self) -> str:
        """A checksum of all images, classes and parts, 16 digits."""
        labels = [] if self.labels is None else [self.labels]
        return checksum(f"{self.images.shape}", self.images, self.parts, *labels)

    def __repr__(self) -> str:
        size = " x ".join(map(str, (*self.images.shape[2:], self.images.shape[1])))
        classes = "no classes" if self.labels is None else f"{len(np.unique(self.labels))} classes"
        parts = ", ".join(f"{name} {int((self.parts == part).sum()):,}" for part, name in enumerate(PARTS))
        return f"Images({len(self.images):,} of {size}, {classes}, {parts})"


def _bytes_of(images: Any) -> Any:
    """(n, h, w, c) images as bytes."""
    pixels = as_array("images", to_numpy(images))
    pixels = pixels[..., None] if pixels.ndim == 3 else pixels
    if pixels.ndim != 4 or pixels.shape[3] not in (1, 3) or min(pixels.shape[1:3]) < 4:
        rule = "of shape (n, h, w) or (n, h, w, c), at least 4 x 4 with 1 or 3 colours"
        raise_invalid("images", rule, f"shape {np.shape(images)}")
    if len(pixels) < _FEWEST:
        raise_invalid("images", f"at least {_FEWEST}", len(pixels))
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind not in "fiub":
        raise_invalid("images", "numbers", f"dtype {pixels.dtype}")
    most = 1 if pixels.dtype.kind in "fb" else 255
    rows = pixels.reshape(len(pixels), -1)
    check_all("images", rows, (rows >= 0) & (rows <= most), f"from 0 to {most}")
    return np.round(np.asarray(pixels, np.float32) * (255 // most)).astype(np.uint8)


@public
def read_images(path: File, *, seed: int = 0) -> Images:
    """Read images of an .npz file.

    Args:
        path: A file with `images` (or x_train), and if there are any `labels` (or y_train), `test_images` (or x_test)
            and `test_labels` (or y_test). Without test images, a tenth of the images is the test; another tenth is for
            validation.
        seed: Of the split.

    Raises:
        NaysayError: If the file is missing, not such a file, or has classes of one part only.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(Path(folder) / "own.npz", images=np.zeros((40, 8, 8)))
        ...     read_images(Path(folder) / "own.npz")
        Images(40 of 8 x 8 x 1, no classes, train 32, validation 4, test 4)
    """
    file = as_path("path", path)
    if file.suffix.lower() != ".npz":
        raise_invalid("path", "a file that ends in .npz", repr(str(file)))
    arrays = read_npz(file)
    images, labels, test, test_labels = (first_present(arrays, names) for names in _ARRAYS.values())
    if images is None:
        raise_invalid("path", "an .npz file with images", ", ".join(arrays) or "nothing")
    if test is None:
        return Images(images, labels, seed=seed)
    if (labels is None) != (test_labels is None):
        raise_invalid("path", "an .npz file with classes of both parts, or of none", "those of one")
    if test.shape[1:] != images.shape[1:]:
        raise_invalid("path", f"test images of shape {images.shape[1:]}, like the others", f"{test.shape[1:]}")
    validated = np.random.default_rng(seed).permutation(len(images)) * 10 // max(1, len(images)) == 0
    parts = np.concatenate([validated.astype(np.int64), np.full(len(test), 2)])
    classes = None if labels is None else np.concatenate([labels.ravel(), test_labels.ravel()])
    return Images(np.concatenate([images, test]), classes, parts)


# ---- model -----------------------------------------------------------------------------------------------------------


class ConvEncoder(nn.Module):
    """Three convolutions of stride 2, features of 256 numbers, and a head to 64 for the loss."""

    def __init__(self, colours: int, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # layers draw first weights, which are drawn again below
            layers: list[nn.Module] = []
            for before, after in pairwise((colours, 16, 32, 64)):
                layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
            self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())
            self.head = nn.Sequential(nn.Linear(256, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
        random = torch.Generator().manual_seed(seed)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=random)
                nn.init.zeros_(layer.bias)

    def features(self, images: Tensor) -> Tensor:
        """(n, 256) of images (n, c, h, w) from 0 to 1: what is measured."""
        features: Tensor = self.body(images - 0.5)
        return features

    def forward(self, images: Tensor) -> Tensor:
        """(n, 64) of length 1: what the loss compares."""
        return normalize(self.head(self.features(images)), dim=1)


def as_floats(images: Any, device: Device) -> Tensor:
    """Bytes as numbers from 0 to 1, on a device."""
    numbers: Tensor = to_torch(np.ascontiguousarray(images), device).float() / 255
    return numbers


def view(images: Tensor, generator: torch.Generator) -> Tensor:
    """A random view of each image: a part of it at another size, perhaps mirrored, in another light, with noise.

    Random numbers are those of the processor, on any device.
    """
    count, device = len(images), images.device

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=generator).to(device)

    scale, mirrored = uniform(0.6, 1.0), torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    moved_x, moved_y = ((1 - scale) * uniform(-1, 1) for _ in range(2))
    zero = torch.zeros(count, device=device)
    transform = [torch.stack([scale * mirrored, zero, moved_x], 1), torch.stack([zero, scale, moved_y], 1)]
    grid = affine_grid(torch.stack(transform, dim=1), list(images.shape), align_corners=False)
    cropped = grid_sample(images, grid, align_corners=False, padding_mode="border")
    contrast, brightness = (uniform(*ends)[:, None, None, None] for ends in ((0.6, 1.4), (-0.2, 0.2)))
    lit = cropped * contrast + brightness
    return (lit + 0.05 * torch.randn(lit.shape, generator=generator).to(device)).clamp(0, 1)


# ---- task ------------------------------------------------------------------------------------------------------------


@final
@public
class ImageContrast(Task):
    """The task of learning features of images: data, model and measures, the same for all kinds of negatives.

    A step takes a batch of images and two random views of each; the other view is the positive. Losses are of cosines
    at temperature 0.2. With classes, the measure is the accuracy of the 20 nearest of at most 3,000
    training images (validation: of 1,000 images at most); the test adds a linear probe. Without, it is how often a view
    is nearest to the other view of its own image, among 1,000 images at most.

    Args:
        data: The images.
        model: "conv".
        batch: Images of a step; by default 256, and at most all.
        device: Where torch encodes and trains, such as "cuda". Draws and measures are made on the processor.

    Examples:
        >>> task = ImageContrast(Images(np.zeros((40, 8, 8)), np.arange(40) % 2))
        >>> task.measure, task.pairs
        ('k-NN accuracy', 32)
    """

    name = "images"
    models = ("conv",)
    methods: Mapping[str, str] = MappingProxyType(
        {
            "uniform": "Static(InBatch())",
            "in-batch": "in_batch()",
            "SimCLR": "in_batch()",
            "in-batch debiased": "in_batch(prior=0.1)",
            "in-batch hard": "in_batch(prior=0.1, beta=1.0)",
            "decoupled": "decoupled()",
            "eliminate": "eliminate((10, 30, 100), steps)",
            "IFND": "eliminate((10, 30, 100), steps)",
            "memory-queue": "queue(4096)",
            "MoCo": "queue(4096)",
        }
    )
    quick_steps = 24
    k = 32
    quick = ("uniform:32", "in-batch", "in-batch debiased", "MoCo")
    defaults = (
        *("uniform:32", "in-batch", "in-batch debiased", "in-batch hard"),
        *("decoupled", "eliminate", "MoCo"),
    )

    def __init__(self, data: Images, model: str = "conv", *, batch: int | None = None, device: Device = "cpu") -> None:
        """Choose the images of the measures."""
        super().__init__(data, Images, model, device)
        self.rows = np.flatnonzero(data.parts == 0)
        self.set_batch(len(self.rows), 256 if batch is None else batch)
        self.measure = "view recall@1" if data.labels is None else "k-NN accuracy"
        shuffled = np.random.default_rng(0).permutation
        self.bank = shuffled(self.rows)[:_BANK]
        validated = shuffled(np.flatnonzero(data.parts == 1))[:_VALIDATED]
        tested = np.flatnonzero(data.parts == 2)
        if data.labels is None:
            tested = shuffled(tested)[:_VALIDATED]
        self.asked = {"validation": validated, "test": tested}
        self.test_work = (len(self.bank) + len(tested)) / (len(self.bank) + len(validated))
        self.ranked = f"Validation takes {len(validated):,} images, the test {len(tested):,}."
        self.sizes = {"temperature": TEMPERATURE, "false negatives": _SAME_CLASS}

    def start(self, seed: int) -> ImageLearner:
        """A model before training, the same for equal seeds."""
        return ImageLearner(self, seed)


@final
class ImageLearner(Learner):
    """A model of `ImageContrast` in training."""

    def __init__(self, task: ImageContrast, seed: int) -> None:
        self.task, self.seed = task, seed
        self.network: ConvEncoder = ConvEncoder(task.data.images.shape[1], seed).to(task.device)
        self._place = np.zeros(len(task.data.images), np.int64)  # of each image in the batch
        self._keys = torch.zeros(0, 64)  # the vectors of its second views

    def views(self, rows: Ids, step: int) -> tuple[Tensor, Tensor]:
        """Two views of some training images, the same for each arm."""
        images = as_floats(self.task.data.images[self.task.rows[rows]], self.task.device)
        random = torch.Generator().manual_seed(int(rng_for(self.seed, step, worker=3).integers(1 << 62)))
        return view(images, random), view(images, random)

    def _query(self, rows: Ids, step: int, vectors: Tensor | None = None) -> Query:
        """The query of some training images, whose places in the batch are kept."""
        ids = self.task.rows[rows]
        self._place[ids] = np.arange(len(ids))
        anchors = to_torch(ids, self.task.device)
        return Query(anchors, positives=anchors, vectors=vectors, step=step)

    def query(self, rows: Ids, step: int) -> Query:
        """See `Learner.query`: the vectors of the first views."""
        first, second = self.views(rows, step)
        vectors, self._keys = self.network(first), self.network(second)
        return self._query(rows, step, vectors)

    def _key_of(self, ids: Tensor) -> Tensor:
        """(..., 64) the vectors of the second views of images of the batch."""
        return self._keys[to_torch(self._place[to_numpy(ids.clamp(min=0))], ids.device)]

    def scores(self, query: Query, negatives: Negatives) -> tuple[Tensor, Tensor]:
        """See `Learner.scores`."""
        positive = (query.vectors * self._keys).sum(dim=1)
        return positive / TEMPERATURE, row_products(query.vectors, self._key_of(negatives.ids)) / TEMPERATURE

    @torch.no_grad()
    def score(self, anchors: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the cosines of images (B, n) and images (B,) of the batch."""
        return row_products(self._key_of(anchors), self._key_of(ids))

    def parts(self) -> dict[str, Any]:
        """See `Learner.parts`."""
        # Only images of the batch have vectors, so no sampler fits that keeps negatives for later; and the catalogue's
        # rows of NearTarget have fewer candidates than the 32 negatives that are usual here.
        left_out = ("Cached", "Learned", "MarkovChain", "NearTarget")
        offered = {name: value for name, value in super().parts().items() if name not in left_out}
        return {
            **offered,
            "pool": pools.InBatch(),
            "score": self.score,
            "candidates": 64,
            "margin": 0.2,
            "network": self.network,
            "views": self.views,
            "in_batch": self._in_batch,
            "decoupled": self._decoupled,
            "eliminate": self._eliminate,
            "queue": self._queue,
        }

    # ---- steps with negatives of the batch, or of earlier batches ----

    def _both_views(self, rows: Ids, step: int) -> tuple[Tensor, Tensor, Negatives]:
        """The vectors of both views, their partners, and all other images as negatives."""
        query = self.query(rows, step)
        z = torch.cat([query.vectors, self._keys])
        others = pools.InBatch().draw(query, rng=rng_for(self.seed, step)).like(query)
        scores = query.vectors @ self._keys.T / TEMPERATURE
        self.note_hardness(scores.diagonal(), scores, others.mask)
        return z, torch.arange(len(z), device=z.device).roll(len(rows)), others

    def _over_batch(self, loss: Loss) -> Step:
        """A step with all other views of the batch: loss(z (2B, d), partner (2B,)) -> (2B,)."""

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            z, partner, others = self._both_views(rows, step)
            return loss(z, partner=partner).mean(), others

        return uses("batch", step_of)

    def _in_batch(self, prior: float = 0.0, beta: float = 0.0) -> Step:
        """SimCLR: all other views of the batch; debiased with a prior, and weighted to hard ones with beta."""
        return self._over_batch(partial(losses.in_batch, temperature=TEMPERATURE, prior=prior, beta=beta))

    def _decoupled(self) -> Step:
        """SimCLR without the positive in the denominator."""

        def loss(z: Tensor, partner: Tensor) -> Tensor:
            itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
            mask = ~itself & ~itself[partner]
            return losses.decoupled((z * z[partner]).sum(dim=1), z @ z.T, mask=mask, temperature=TEMPERATURE)

        return self._over_batch(loss)

    def _eliminate(self, clusters: tuple[int, ...], steps: int) -> Step:
        """SimCLR without images of the same cluster; clusters are made again every epoch, or every 50 steps.

        The share of labels that are accepted grows linearly, from none at the start to all at the last of `steps`.
        """
        counts = tuple(count for count in clusters if count <= self.task.pairs // 4) or (2,)
        detector = Incremental(self.task.pairs, counts, accept=LinearAcceptance(), seed=self.seed % (1 << 31))
        every = max(_RENEW, self.task.pairs // self.task.batch)

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            if step and step % every == 0:
                detector.update(to_numpy(self._features(self.task.rows)), min(1.0, step / steps))
            labels = detector.labels[:, rows]
            z, partner, others = self._both_views(rows, step)
            loss = losses.eliminate(z, partner, np.tile(labels, 2), temperature=TEMPERATURE)
            finest = labels[0]
            same_cluster = to_torch((finest[:, None] == finest) & (finest >= 0)[:, None], z.device)
            return loss.mean(), Negatives(torch.where(same_cluster, -1, others.ids))

        return uses("batch", step_of)

    def _queue(self, size: int) -> Step:
        """MoCo: keys of a slow encoder in a queue of earlier batches."""
        slow, memory = deepcopy(self.network), pools.Memory(min(size, self.task.pairs))

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            momentum_update(self.network, slow, MOMENTUM)
            first, second = self.views(rows, step)
            query = self._query(rows, step)
            with torch.no_grad():
                keys = slow(second)
            memory.push(query.anchors, vectors=keys)
            vectors, drawn = self.network(first), memory.draw(query, rng=rng_for(self.seed, step))
            positive = (vectors * keys).sum(dim=1) / TEMPERATURE
            scores = vectors @ memory.vectors.T / TEMPERATURE
            self.note_hardness(positive, scores, drawn.mask)
            loss = losses.info_nce(positive, scores, mask=drawn.mask)
            return loss.mean(), Negatives(to_torch(drawn.ids, keys.device))

        return uses("queue", step_of)

    # ---- measures ----

    def false_share(self, rows: Ids, negatives: Negatives) -> float:
        """The share of the negatives of some training images that are of the same class; NaN without classes."""
        labels, drawn = self.task.data.labels, negatives.numpy()
        if labels is None or not drawn.mask.any():
            return nan
        same = labels[self.task.rows[rows]][:, None] == labels[np.maximum(drawn.ids, 0)]
        return float(same[drawn.mask].mean())

    @torch.no_grad()
    def _features(self, rows: Ids) -> Tensor:
        """(n, 256) features of many images, as they are after training."""
        images = self.task.data.images
        self.network.eval()
        features = in_blocks(lambda block: self.network.features(as_floats(images[block], self.task.device)), rows)
        self.network.train()
        return features

    def measured(self, part: str) -> dict[str, float]:
        """See `Learner.measured`."""
        data, asked = self.task.data, self.task.asked[part]
        if data.labels is None:
            return self._views_found_again(asked)
        bank, vectors = (to_numpy(self._features(rows)) for rows in (self.task.bank, asked))
        bank_labels = data.labels[self.task.bank]
        predicted = {self.task.measure: nearest_labels(bank, bank_labels, vectors, k=_NEIGHBOURS)}
        if part == "test":
            predicted["linear probe"] = linear_probe(bank, bank_labels, vectors)
        return {name: float((labels == data.labels[asked]).mean()) for name, labels in predicted.items()}

    def _views_found_again(self, asked: Ids) -> dict[str, float]:
        """How often a view is nearest to the other view of its image."""
        images = as_floats(self.task.data.images[asked], self.task.device)
        random = torch.Generator().manual_seed(0)
        self.network.eval()
        first, second = (self.network(view(images, random)) for _ in range(2))
        self.network.train()
        each = np.arange(len(asked))
        ranks = ranking(first, Positives.from_pairs(each, each), items=second)
        return {self.task.measure: ranks.recall(1), "mrr": ranks.mrr}
