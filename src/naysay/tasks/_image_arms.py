"""Arms of `ImageContrast` without negatives: their extra parts, and a step of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from naysay.arrays import to_torch
from naysay.samplers import momentum_update
from naysay.tasks._negative_free import barlow_twins, mean_of_label, minus_cosine, swav, vicreg
from naysay.tasks._parts import uses

Step = Callable[..., tuple[Tensor, None]]
MOMENTUM = 0.99  # of slow encoders; the papers raise it during training


def negative_free(learner: Any) -> Mapping[str, Callable[..., Any]]:
    """{name: function that returns a step} of an `ImageLearner`."""
    network = learner.network

    def step_of(loss: Callable[[Tensor, Tensor], Tensor]) -> Step:
        """A step on two views of each image."""

        def step(rows: Any, k: int, *, step: int) -> tuple[Tensor, None]:
            _, first, second = learner._views(rows, step)
            return loss(first, second), None

        return uses("none", step)

    def projected(loss: Callable[[Tensor, Tensor], Tensor]) -> Step:
        """A loss of what the head makes of both views, of any length."""
        return step_of(lambda *views: loss(*(network.head(network.features(one)) for one in views)))

    def predicted(slow: Any) -> Step:
        """A predictor of one view is compared with the other, read by a slow encoder, or by the encoder itself."""

        def loss(first: Tensor, second: Tensor) -> Tensor:
            own = network(first), network(second)
            if slow is not None:
                momentum_update(network, slow, MOMENTUM)
                with torch.no_grad():
                    targets = slow(second), slow(first)
            else:
                targets = own[1], own[0]
            ways = [minus_cosine(network.predictor(a), b) for a, b in zip(own, targets, strict=True)]
            return (ways[0] + ways[1]) / 2

        return step_of(loss)

    def prototypes(count: int, clusters: tuple[int, ...] = (), steps: int | None = None) -> Step:
        """SwAV: a learned direction for each of some clusters, trained from the first step.

        With pseudo-labels of `clusters`, images of one label share a code, and the loss is the mean over granularities.
        The share of accepted labels grows over the `steps` of the run.
        """
        start = torch.Generator().manual_seed(learner.seed % (1 << 62))
        drawn = torch.randn(min(count, learner.task.batch), 64, generator=start)
        table = drawn.to(learner.task.device).requires_grad_()
        learner.parameters.append(table)
        labels_of = learner.pseudo_labels(clusters, steps) if clusters else None

        def step(rows: Any, k: int, *, step: int) -> tuple[Tensor, None]:
            _, *images = learner._views(rows, step)
            views, columns = [network(one) for one in images], normalize(table, dim=1).T
            scores = [one @ columns for one in views]
            labels: Any = () if labels_of is None else to_torch(labels_of(rows, step), table.device)
            means = [[mean_of_label(one.detach(), own) @ columns for one in views] for own in labels]
            return torch.stack([swav(*scores, coded=coded) for coded in means or [scores]]).mean(), None

        return uses("none", step)

    return {
        "sim_siam": lambda: predicted(None),
        "byol": lambda: predicted(deepcopy(network)),
        "swav": prototypes,
        "barlow_twins": lambda: projected(barlow_twins),
        "vicreg": lambda: projected(vicreg),
    }
