"""Arms of `NodeEmbedding` on two views of the graph: GRACE, with negatives in the batch, and BGRL, with none.

A view is the graph without some of its edges and some coordinates of its features, the same in all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import elu, normalize

from naysay.arrays import to_numpy, to_torch
from naysay.losses import in_batch
from naysay.rng import rng_for
from naysay.tasks._negative_free import minus_cosine
from naysay.tasks._parts import mean_hardness, uses
from naysay.tasks.graph_sage import GraphSage
from naysay.types import Negatives

EDGES, FEATURES = 0.3, 0.3  # shares that a view leaves out
TEMPERATURE, NODES, MOMENTUM = 0.5, 512, 0.99

Step = Callable[..., tuple[Tensor, Negatives | None]]


def two_views(learner: Any) -> Mapping[str, Callable[[GraphSage], Step]]:
    """{name: function that returns a step} of a `NodeEmbedder`."""

    def views(network: GraphSage, step: int) -> list[Any]:
        rng = rng_for(learner.seed, step)
        return [network.view(rng, edges=EDGES, features=FEATURES) for _ in range(2)]

    def layers(width: int) -> Callable[[Tensor], Tensor]:
        """Two layers after the network, trained with it."""
        start = torch.Generator().manual_seed(learner.seed)
        drawn = [torch.randn(width, width, generator=start) / width**0.5 for _ in range(2)]
        made = [part.to(learner.task.device).requires_grad_() for part in drawn]
        learner.parameters = [*learner.parameters, *made]
        return lambda vectors: elu(vectors @ made[0]) @ made[1]

    def grace(network: GraphSage) -> Step:
        """Zhu et al. Deep Graph Contrastive Representation Learning. 2020. Some nodes at a step, there all."""
        project = layers(network.width)

        def step_of(rows: Any, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            asked = learner.task.ends(rows)[0]
            nodes = to_torch(np.array(list(dict.fromkeys(to_numpy(asked).tolist()))[:NODES]), asked.device)
            ways = [normalize(project(network.vectors(view)[nodes]), dim=1) for view in views(network, step)]
            z, partner = torch.cat(ways), torch.arange(2 * len(nodes), device=asked.device).roll(len(nodes))
            scores, others = (
                ways[0].detach() @ ways[1].detach().T / TEMPERATURE,
                ~torch.eye(len(nodes), dtype=torch.bool, device=asked.device),
            )
            learner.hardness = mean_hardness(scores.diagonal(), scores, others)
            found = in_batch(z, partner=partner, temperature=TEMPERATURE)
            return found.mean(), Negatives(torch.where(nodes == asked[:, None], -1, nodes))

        return uses("batch", step_of)

    def bgrl(network: GraphSage) -> Step:
        """Thakoor et al. Large-Scale Representation Learning on Graphs via Bootstrapping. ICLR 2022. All nodes."""
        predict, slow = layers(network.width), copy(network)
        slow.parameters = [part.detach().clone() for part in network.parameters]

        def step_of(rows: Any, k: int, *, step: int) -> tuple[Tensor, None]:
            both = views(network, step)
            with torch.no_grad():
                for target, part in zip(slow.parameters, network.parameters, strict=True):
                    target.lerp_(part, 1 - MOMENTUM)
                targets = [slow.vectors(view) for view in reversed(both)]
            made = [predict(network.vectors(view)) for view in both]
            return 2 + minus_cosine(made[0], targets[0]) + minus_cosine(made[1], targets[1]), None

        return uses("none", step_of)

    return {"grace": grace, "bgrl": bgrl}
