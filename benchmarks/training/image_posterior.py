"""False negatives of a batch of images by the posterior of their embeddings, for the study of images.

Two views of an image are a labelled pair, and all other images of its class are unlabelled positives. Views of one
image are far more alike than images of one class, so labels are the easiest positives: the share of them cannot be
estimated from scores, and is given (`labelled_share`): one view against the expected number of images of a class.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.training.image_encoder import Encoder, view
from naysay.detectors import Posterior

DEPTH, FITTED = 500, 2000
_BLOCK = 1000


class PosteriorPairs:
    """Which pairs of training images the posterior calls false negatives, made anew after each epoch.

    flagged   (n, n) bool; nothing is flagged before the first update
    """

    def __init__(self, count: int, classes: int, limit: float, seed: int) -> None:
        """Pairs with a posterior of `limit` and more are flagged."""
        share = 1 / (1 + count / classes)
        self.posterior = Posterior(100, labelled_share=share, depth=min(DEPTH, count - 2) // 2, seed=seed)
        self.flagged: NDArray[np.bool_] = np.zeros((count, count), bool)
        self.limit, self.generator = limit, torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def update(self, encoder: Encoder, images: Tensor) -> None:
        """Fit to the features of images and of two views of each."""
        depth = min(DEPTH, len(images) - 2)
        features = normalize(encoder.features(images), dim=1)
        views = [normalize(encoder.features(view(images, self.generator)), dim=1) for _ in range(2)]
        own = (views[0] * views[1]).sum(dim=1).numpy().astype(np.float64)
        scores, ids = (np.zeros((len(images), depth), kind) for kind in (np.float64, np.int64))
        for start in range(0, len(images), _BLOCK):
            rows = torch.arange(start, min(start + _BLOCK, len(images)))
            products = features[rows] @ features.T
            products[torch.arange(len(rows)), rows] = -torch.inf
            best = products.topk(depth, dim=1)
            scores[rows], ids[rows] = best.values.numpy(), best.indices.numpy()
        step = -(-len(images) // FITTED)
        self.posterior.update(scores[::step], own[::step])
        self.flagged = np.zeros_like(self.flagged)
        if self.posterior.fitted:
            rows, slots = np.nonzero(self.posterior.posterior(scores, own) >= self.limit)
            self.flagged[rows, ids[rows, slots]] = True
            self.flagged |= self.flagged.T

    def mask(self, ids: NDArray[np.int64]) -> Tensor:
        """(N, N) True where a row of the batch may be a negative of another."""
        return torch.from_numpy(~self.flagged[np.ix_(ids, ids)])

    def quality(self, classes: NDArray[np.int64]) -> dict[str, float]:
        """Of flagged pairs those of one class, and of pairs of one class those flagged, in per cent."""
        same = classes[:, None] == classes
        found, right = int(self.flagged.sum()), int((self.flagged & same).sum())
        every = int(same.sum()) - len(classes)
        return {"precision": 100 * right / found if found else 0.0, "recall": 100 * right / every}
