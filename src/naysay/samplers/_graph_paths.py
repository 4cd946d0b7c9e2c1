"""Paths of `GraphPolicy`: which nodes they pass, how likely each end is, and the gradient of the expected reward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import repeated
from naysay.samplers import _policy as policy
from naysay.samplers._generators import Generator

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Step = tuple[Ids, Ids, Floats]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """All paths over some neighbours of each node: level h has m = width^h nodes a row, -1 for none.

    nodes     level h: (B, m)
    options   level h but the last: (B m, n) where a path may go from each node: to its children, and back to its parent
              if that is how paths end
    chances   level h: (B, m, width + 1) of each child, and of ending here; of the last level (B, m, 1)
    """

    nodes: list[Ids]
    options: list[Ids]
    chances: list[Floats]

    def reached(self) -> list[Floats]:
        """(B, m) of each level: the probability that a path gets there."""
        found = [np.ones(self.nodes[0].shape)]
        for nodes, chance in zip(self.nodes[1:], self.chances[:-1], strict=True):
            found.append((found[-1][:, :, None] * chance[:, :, :-1]).reshape(nodes.shape))
        return found

    def ends(self) -> tuple[Ids, Floats]:
        """(B, all nodes) the nodes, and the probability that a path ends there."""
        pairs = zip(self.reached(), self.chances, strict=True)
        return np.concatenate(self.nodes, axis=1), np.concatenate([at * chance[:, :, -1] for at, chance in pairs], 1)

    def gradients(self, reward: Floats) -> Iterator[Step]:
        """Nodes, where a path may go from there, and the gradient in the logits, from the last level to the first.

        Of node x, reached with probability pi, and its option y it is pi p(y) (E[r | y] - E[r | x]).
        """
        sizes = [nodes.shape[1] for nodes in self.nodes]
        here, reached = np.split(reward, np.cumsum(sizes)[:-1], axis=1), self.reached()
        value = self.chances[-1][:, :, 0] * here[-1]
        for level in range(len(self.nodes) - 2, -1, -1):
            chance = self.chances[level]
            children = value.reshape(*chance.shape[:2], chance.shape[2] - 1)
            below = np.concatenate([children, here[level][:, :, None]], axis=2)
            value = (chance * below).sum(axis=2)
            by_logit = reached[level][:, :, None] * chance * (below - value[:, :, None])
            wide = self.options[level].shape[1]
            yield self.nodes[level].ravel(), self.options[level], by_logit.reshape(-1, chance.shape[2])[:, :wide]


def chances_of(nodes: list[Ids], allowed: list[Any], generator: Generator, *, back: bool) -> Paths:
    """The paths over some levels of nodes; where no allowed end can be reached, the probability is 0.

    allowed   of each level (B, m), whether a path may end there
    back      whether a path ends by going back to the parent, whose logit counts, or at the last level alone
    """
    options: list[Ids] = []
    chances = [allowed[-1][:, :, None] * 1.0]
    open_ = allowed[-1]
    for level in range(len(nodes) - 2, -1, -1):
        wide = nodes[level + 1].shape[1] // nodes[level].shape[1]
        children = nodes[level + 1].reshape(-1, wide)
        if back:
            parents = np.repeat(nodes[max(level - 1, 0)], wide if level else 1, axis=1)
            children = np.concatenate([children, parents.reshape(-1, 1)], axis=1)
        logits = np.asarray(generator.logits(np.maximum(nodes[level].ravel(), 0), np.maximum(children, 0)), np.float64)
        may_end = allowed[level].reshape(-1, 1) & back
        logits = logits if back else np.concatenate([logits, np.zeros((len(logits), 1))], axis=1)
        ways = np.concatenate([open_.reshape(-1, wide), may_end], axis=1)
        chances.insert(0, policy.softmax(np.where(ways, logits, -np.inf)).reshape(*nodes[level].shape, wide + 1))
        options.insert(0, np.maximum(children, 0))
        open_ = ways.any(axis=1).reshape(nodes[level].shape)
    return Paths(nodes, options, chances)


def only_new(earlier: list[Ids], found: Ids) -> Ids:
    """(B, m) without nodes of earlier levels and repeats: what is left is a breadth-first tree."""
    before = np.concatenate(earlier, axis=1)
    return np.where(repeated(np.concatenate([before, found], axis=1))[:, before.shape[1] :], -1, found)
