"""Images without labels: a small convolutional encoder learns that two views show the same image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from naysay import losses, pools, samplers
from naysay.arrays import to_numpy, to_torch
from naysay.checks import check_kind, check_one_of, check_whole, public
from naysay.detectors import Incremental, LinearAcceptance
from naysay.evaluate import linear_probe, nearest_labels, ranking
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.tasks._image_arms import MOMENTUM, negative_free
from naysay.tasks._parts import Device, Ids, checked_device, mean_hardness, recorded_device, uses, usual_batch
from naysay.tasks.conv import ConvEncoder, as_floats, view
from naysay.tasks.images import Images
from naysay.types import Negatives, Query

TEMPERATURE = 0.2
CANDIDATES, MARGIN = 16, 0.2
_BANK, _VALIDATED = 3000, 1000  # training images that vote, and images for validation, at most
_NEIGHBOURS, _RENEW = 20, 50
_SAME_CLASS = "Negatives of the anchor's own class; not shown for images without classes."
_SAMPLERS = ("Static", "Dynamic", "SemiHard", "PercentileRange", "Mixed")

Step = Callable[..., tuple[Tensor, Negatives | None]]


@final
@public
class ImageContrast:
    """The task of learning features of images: data, model and measures, the same for all kinds of negatives.

    A step takes a batch of images and two random views of each; the other view is the positive. Losses are of cosines
    at temperature 0.2, in both directions. With classes, the measure is the accuracy of the 20 nearest of at most 3,000
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
    own: Mapping[str, str] = MappingProxyType(
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
            "SimSiam": "sim_siam()",
            "BYOL": "byol()",
            "SwAV": "swav(100)",
            "SwAV with IFND": "swav(100, (10, 30, 100), steps)",
            "Barlow Twins": "barlow_twins()",
            "VICReg": "vicreg()",
        }
    )
    quick_steps = 24
    k = 32
    quick = ("uniform:32", "in-batch", "in-batch debiased", "MoCo", "SimSiam")
    defaults = (
        *("uniform:32", "in-batch", "in-batch debiased", "in-batch hard"),
        *("decoupled", "eliminate", "MoCo", "SimSiam"),
    )

    def __init__(self, data: Images, model: str = "conv", *, batch: int | None = None, device: Device = "cpu") -> None:
        """Choose the images of the measures."""
        check_kind("data", data, Images, "Images")
        check_one_of("model", model, self.models)
        self.data, self.model, self.device = data, model, checked_device(device)
        self.rows = np.flatnonzero(data.parts == 0)
        self.pairs, self.batch = len(self.rows), usual_batch(len(self.rows), 256 if batch is None else batch)
        self.measure = "view recall@1" if data.labels is None else "k-NN accuracy"
        some = np.random.default_rng(0).permutation
        self.bank = some(self.rows)[:_BANK]
        self.asked = {"validation": some(np.flatnonzero(data.parts == 1))[:_VALIDATED]}
        test = np.flatnonzero(data.parts == 2)
        self.asked["test"] = test if data.labels is not None else some(test)[:_VALIDATED]
        validated, tested = (len(self.asked[part]) for part in ("validation", "test"))
        self.test_work = (len(self.bank) + tested) / (len(self.bank) + validated)  # what a test costs, in validations
        self.ranked = f"Validation takes {validated:,} images, the test {tested:,}."

    def settings(self) -> dict[str, Any]:
        """What decides the result, for the record."""
        known = {"task": self.name, "model": self.model, "data": repr(self.data)}
        sizes = {"batch": self.batch, "temperature": TEMPERATURE, "false negatives": _SAME_CLASS}
        return {**known, "fingerprint": self.data.fingerprint(), **sizes, **recorded_device(self.device)}

    def start(self, seed: int) -> ImageLearner:
        """A model before training, the same for equal seeds."""
        return ImageLearner(self, seed)


@final
@public
class ImageLearner:
    """A model of `ImageContrast` that is being trained: what samplers ask, the loss of a step, and the measures.

    Args:
        task: The task.
        seed: Of the first parameters, the views and the draws.

    Examples:
        >>> task = ImageContrast(Images(np.zeros((40, 8, 8))))
        >>> sampler = samplers.Static(pools.InBatch())
        >>> task.start(0).loss(np.arange(4), sampler, 2, step=0)[1].shape
        (4, 2)
    """

    def __init__(self, task: ImageContrast, seed: int) -> None:
        """Make the encoder."""
        self.task, self.seed, self.hardness = task, seed, float("nan")
        self.network = ConvEncoder(task.data.images.shape[1], seed).to(task.device)
        self.parameters = list(self.network.parameters())
        self._place = np.zeros(len(task.data.images), np.int64)  # of each image in the batch
        self._batch = torch.zeros(0, 64)  # the vectors of its second views

    def _views(self, rows: Ids, step: int) -> tuple[Query, Tensor, Tensor]:
        """The query of some training images, and two views of each."""
        ids = self.task.rows[rows]
        images = as_floats(self.task.data.images[ids], self.task.device)
        random = torch.Generator().manual_seed(int(rng_for(self.seed, step, worker=3).integers(1 << 62)))
        self._place[ids] = np.arange(len(ids))
        asked = to_torch(ids, self.task.device)
        return Query(asked, positives=asked, step=step), view(images, random), view(images, random)

    def _places(self, ids: Tensor) -> Tensor:
        """Where images stand in the batch."""
        found: Tensor = to_torch(self._place[to_numpy(ids)], ids.device)
        return found

    def score(self, anchors: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the cosines of images (B, n) and images (B,) of the batch, without gradients."""
        own, others = (self._batch[self._places(part)] for part in (anchors, ids))
        return torch.einsum("bd,bnd->bn", own, others)

    def parts(self) -> Mapping[str, Any]:
        """{name: value}: what the code of an arm may name. Arms that name anything else do not fit."""
        offered: dict[str, Any] = {name: getattr(samplers, name) for name in _SAMPLERS}
        steps = {"in_batch": self._in_batch, "decoupled": self._decoupled, "eliminate": self._eliminate}
        steps |= {"queue": self._queue, **negative_free(self)}
        own = {"np": np, "InBatch": pools.InBatch, "pool": pools.InBatch(), "score": self.score}
        # The length of the run is known to who runs it, who puts it in the place of None.
        return offered | steps | own | {"candidates": CANDIDATES, "margin": MARGIN, "steps": None}

    def loss(self, rows: Ids, sampler: Any, k: int, *, step: int) -> tuple[Tensor, Negatives]:
        """The mean loss of some training images with k negatives each, and the negatives."""
        query, first, second = self._views(rows, step)
        a, b = self.network(first), self.network(second)
        self._batch = b.detach()
        negatives: Negatives = sampler.sample(query, k, rng=rng_for(self.seed, step))
        places = self._places(negatives.ids.clamp(min=0))
        positive, found = (a * b).sum(dim=1), []
        for one, other in ((a, b), (b, a)):
            scores = torch.einsum("bd,bkd->bk", one, other[places])
            settings = {"mask": negatives.mask, "weights": negatives.weights, "temperature": TEMPERATURE}
            found.append(losses.info_nce(positive, scores, **settings).mean())
        self.hardness = mean_hardness(positive / TEMPERATURE, scores / TEMPERATURE, negatives.mask)
        return (found[0] + found[1]) / 2, negatives

    def _both(self, rows: Ids, step: int) -> tuple[Query, Tensor, Tensor, Negatives]:
        """The query, the vectors of both views, their partners, and all other images as negatives."""
        query, first, second = self._views(rows, step)
        z = torch.cat([self.network(first), self.network(second)])
        others = pools.InBatch().draw(query, rng=rng_for(self.seed, step)).like(query)
        scores = z.detach()[: len(rows)] @ z.detach()[len(rows) :].T / TEMPERATURE
        self.hardness = mean_hardness(scores.diagonal(), scores, others.mask)
        return query, z, torch.arange(len(z), device=z.device).roll(len(rows)), others

    def _in_batch(self, prior: float = 0.0, beta: float = 0.0) -> Step:
        """SimCLR: all other views of the batch; debiased with a prior, and weighted to hard ones with beta."""

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            _, z, partner, others = self._both(rows, step)
            found = losses.in_batch(z, partner=partner, temperature=TEMPERATURE, prior=prior, beta=beta)
            return found.mean(), others

        return uses("batch", step_of)

    def _decoupled(self) -> Step:
        """SimCLR without the positive in the denominator."""

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            _, z, partner, others = self._both(rows, step)
            own = torch.eye(len(z), dtype=torch.bool, device=z.device)
            mask = ~own & ~own[partner]
            found = losses.decoupled((z * z[partner]).sum(dim=1), z @ z.T, mask=mask, temperature=TEMPERATURE)
            return found.mean(), others

        return uses("batch", step_of)

    def pseudo_labels(self, clusters: tuple[int, ...], steps: int | None) -> Callable[[Ids, int], Ids]:
        """labels(rows, step) -> (len(clusters), B): clusters of images, made again every epoch, or every 50 steps.

        The share of labels that are accepted grows linearly, from none at the start to all at the last of `steps`.
        """
        run_length = check_whole("steps", steps, 1)
        counts = tuple(count for count in clusters if count <= self.task.pairs // 4) or (2,)
        detector = Incremental(self.task.pairs, counts, accept=LinearAcceptance(), seed=self.seed % (1 << 31))
        every = max(_RENEW, self.task.pairs // self.task.batch)

        def labels(rows: Ids, step: int) -> Ids:
            if step and step % every == 0:
                features = to_numpy(self.network.all_features(self.task.data.images[self.task.rows]))
                detector.update(features, min(1.0, step / run_length))
            return np.asarray(detector.labels[:, rows])

        return labels

    def _eliminate(self, clusters: tuple[int, ...], steps: int | None) -> Step:
        """SimCLR without images of the same cluster, of which more are accepted as the run of `steps` goes on."""
        labels_of = self.pseudo_labels(clusters, steps)

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            labels = labels_of(rows, step)
            _, z, partner, others = self._both(rows, step)
            found = losses.eliminate(z, partner, np.tile(labels, 2), temperature=TEMPERATURE)
            own = labels[0]
            gone = to_torch((own[:, None] == own) & (own >= 0)[:, None], z.device)
            return found.mean(), Negatives(torch.where(gone, -1, others.ids))

        return uses("batch", step_of)

    def _queue(self, size: int) -> Step:
        """MoCo: keys of a slow encoder in a queue of earlier batches."""
        slow, memory = deepcopy(self.network), pools.Memory(min(size, self.task.pairs))

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            samplers.momentum_update(self.network, slow, MOMENTUM)
            query, first, second = self._views(rows, step)
            with torch.no_grad():
                keys = slow(second)
            memory.push(query.anchors, vectors=keys)
            asked, drawn = self.network(first), memory.draw(query, rng=rng_for(self.seed, step))
            positive, scores = (asked * keys).sum(dim=1), asked @ memory.vectors.T
            found = losses.info_nce(positive, scores, mask=drawn.mask, temperature=TEMPERATURE).mean()
            self.hardness = mean_hardness(positive / TEMPERATURE, scores / TEMPERATURE, drawn.mask)
            return found, Negatives(to_torch(drawn.ids, keys.device))

        return uses("queue", step_of)

    def false_share(self, rows: Ids, negatives: Negatives) -> float:
        """The share of the negatives of some training images that are of the same class; NaN without classes."""
        labels, drawn = self.task.data.labels, negatives.numpy()
        if labels is None or not drawn.mask.any():
            return float("nan")
        same = labels[self.task.rows[rows]][:, None] == labels[np.maximum(drawn.ids, 0)]
        return float(same[drawn.mask].mean())

    def snapshot(self) -> dict[str, Tensor]:
        """All parameters and running means, for `measure`."""
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    @torch.no_grad()
    def measure(self, state: dict[str, Tensor], part: str = "validation") -> dict[str, float]:
        """Measure the "validation" or the "test" part by the parameters of a `snapshot`."""
        check_one_of("part", part, ("validation", "test"))
        network = deepcopy(self.network)
        network.load_state_dict(state)
        data, asked = self.task.data, self.task.asked[part]
        if data.labels is None:
            return self._found_again(network.eval(), asked)
        bank = to_numpy(network.all_features(data.images[self.task.bank]))
        vectors, classes = to_numpy(network.all_features(data.images[asked])), data.labels[self.task.bank]
        found = {self.task.measure: nearest_labels(bank, classes, vectors, k=_NEIGHBOURS)}
        if part == "test":
            found["linear probe"] = linear_probe(bank, classes, vectors)
        return {name: float((labels == data.labels[asked]).mean()) for name, labels in found.items()}

    def _found_again(self, network: ConvEncoder, asked: Ids) -> dict[str, float]:
        """How often a view is nearest to the other view of its image."""
        images = as_floats(self.task.data.images[asked], self.task.device)
        random = torch.Generator().manual_seed(0)
        views = [network(view(images, random)) for _ in range(2)]
        each = np.arange(len(asked))
        found = ranking(views[0], Positives.from_pairs(each, each), items=views[1])
        return {self.task.measure: found.recall(1), "mrr": found.mrr}
