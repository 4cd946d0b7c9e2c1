"""What the study of judging trains: an adapter of fixed vectors, or the table of token vectors; InfoNCE; nDCG@10."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

import naysay as ns
from benchmarks.training.judging_arms import Chosen
from benchmarks.training.judging_worlds import Part, Texts, World

BATCH, TOP, PATIENCE = 64, 10, 3  # epochs without a better validation end a run


class Model(Protocol):
    """Unit vectors of queries and documents, by their rows in `Texts`."""

    weights: Tensor

    def queries(self, rows: NDArray[np.int64]) -> Tensor:
        """(n, d)."""

    def documents(self, rows: NDArray[np.int64]) -> Tensor:
        """(n, d)."""


class Adapter:
    """x + x W, of unit length; W is 0 at first."""

    def __init__(self, texts: Texts) -> None:
        """The vectors stay as they are."""
        self.sides = torch.from_numpy(texts.queries), torch.from_numpy(texts.documents)
        self.weights = torch.zeros(texts.queries.shape[1], texts.queries.shape[1], requires_grad=True)

    def _of(self, vectors: Tensor) -> Tensor:
        return normalize(torch.addmm(vectors, vectors, self.weights), dim=-1)

    def queries(self, rows: NDArray[np.int64]) -> Tensor:
        """Adapted."""
        return self._of(self.sides[0][torch.from_numpy(rows)])

    def documents(self, rows: NDArray[np.int64]) -> Tensor:
        """Adapted."""
        return self._of(self.sides[1][torch.from_numpy(rows)])


class Tokens:
    """The mean of trained token vectors, of unit length; the first `most` tokens of a text count."""

    def __init__(self, bags: Bags) -> None:
        """The table starts as the encoder's."""
        self.bags = bags
        self.weights = bags.table.clone().requires_grad_()

    def _of(self, side: int, rows: NDArray[np.int64]) -> Tensor:
        flat, starts = self.bags.sides[side]
        lengths = starts[rows + 1] - starts[rows]
        first = np.cumsum(lengths) - lengths
        places = np.repeat(starts[rows] - first, lengths) + np.arange(lengths.sum())
        ids, offsets = torch.from_numpy(flat[places]), torch.from_numpy(first)
        return normalize(embedding_bag(ids, self.weights, offsets, mode="mean"), dim=-1)

    def queries(self, rows: NDArray[np.int64]) -> Tensor:
        """Encoded."""
        return self._of(0, rows)

    def documents(self, rows: NDArray[np.int64]) -> Tensor:
        """Encoded."""
        return self._of(1, rows)


class Bags:
    """The token ids of all texts, and the table of an encoder's vectors."""

    def __init__(self, table: Tensor, *sides: list[list[int]]) -> None:
        """A text without a token has the first one."""
        self.table = table
        self.sides = []
        for texts in sides:
            lengths = np.array([max(len(text), 1) for text in texts])
            flat = np.concatenate([np.asarray(text or [0], np.int64) for text in texts])
            self.sides.append((flat, np.concatenate([[0], np.cumsum(lengths)])))


def wordllama_bags(texts: Texts, most: int) -> Bags:
    """Those of wordllama, at most `most` tokens of a text."""
    import wordllama

    place = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=place, disable_download=True)
    model.tokenizer.no_padding()
    model.tokenizer.enable_truncation(most)
    if texts.read is None:
        message = "texts without words have no tokens"
        raise ValueError(message)
    sides = [
        [one.ids for one in model.tokenizer.encode_batch(part, add_special_tokens=False)]
        for part in (texts.read.short, texts.read.long)
    ]
    return Bags(torch.from_numpy(np.asarray(model.embedding, np.float32)), *sides)


def loss_of(model: Model, world: World, arm: Chosen, rows: NDArray[np.int64], temperature: float) -> Tensor:
    """InfoNCE of a batch of anchors: against the other positives of the batch, and each against its own negatives.

    An anchor with several positives, one labelled and some drawn near, has the mean of their losses.
    """
    part, ids = world.train, arm.ids[rows]
    near = model.queries(part.queries[rows])
    positive = model.documents(part.documents[world.labels[rows]])
    scores, mask = near @ positive.T, ~torch.eye(len(rows), dtype=torch.bool)
    own = torch.diagonal(scores)
    if not ids.shape[1]:
        return ns.losses.info_nce(own, scores, temperature=temperature, mask=mask).mean()
    used = arm.negative[rows] | arm.positive[rows]
    flat = np.zeros(ids.shape, np.int64)
    flat[used] = np.arange(used.sum())
    if used.any():
        hard = model.documents(part.documents[ids[used]])
        anchors = near.repeat_interleave(torch.from_numpy(used.sum(axis=1)), dim=0)
        products = (anchors * hard).sum(dim=1)
        slots = products[torch.from_numpy(flat)]
    else:
        slots = scores.new_zeros(ids.shape)
    scores = torch.cat([scores, slots], dim=1)
    mask = torch.cat([mask, torch.from_numpy(arm.negative[rows])], dim=1)
    attracted = torch.from_numpy(arm.positive[rows])
    weights = 1 / (1 + attracted.sum(dim=1))
    losses = ns.losses.info_nce(own, scores, temperature=temperature, mask=mask) * weights
    if attracted.any():
        which, slot = attracted.nonzero(as_tuple=True)
        more = ns.losses.info_nce(slots[which, slot], scores[which], temperature=temperature, mask=mask[which])
        losses = losses.index_add(0, which, more * weights[which])
    return losses.mean()


@torch.no_grad()
def ndcg(model: Model, part: Part, block: int = 1024) -> float:
    """The mean nDCG@10 of the queries of a part, all its documents ranked."""
    documents = torch.cat([model.documents(rows) for rows in _blocks(part.documents, 4096)])
    gains, found, start = 1 / np.log2(np.arange(TOP) + 2), [], 0
    relevant, counts = part.relevant(), np.bincount(part.pairs[0], minlength=len(part.queries))
    for rows in _blocks(part.queries, block):
        best = (model.queries(rows) @ documents.T).topk(min(TOP, len(documents)), dim=1).indices.numpy()
        here = np.arange(start, start + len(rows))
        hits = relevant.contains(np.repeat(here, best.shape[1]), best.ravel()).reshape(best.shape)
        ideal = np.cumsum(gains)[np.minimum(counts[here], TOP) - 1]
        found.append((hits * gains[: best.shape[1]]).sum(axis=1) / ideal)
        start += len(rows)
    return float(np.concatenate(found).mean())


def _blocks(rows: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def trained(model: Model, world: World, arm: Chosen, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train with Adam, evaluate validation pairs after every epoch, and test the model of the best one.

    The model before training is among them. An arm that never improves is tested as it started.
    """
    optimiser = torch.optim.Adam([model.weights], lr=settings["rate"], fused=True)
    rng, anchors = np.random.default_rng(seed), len(world.train.queries)
    best, values = (-1.0, 0, model.weights.detach().clone()), []
    for epoch in range(settings["epochs"] + 1):
        order = rng.permutation(anchors) if epoch else np.zeros(0, np.int64)
        for start in range(0, len(order), BATCH):
            loss = loss_of(model, world, arm, order[start : start + BATCH], settings["temperature"])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        values.append(ndcg(model, world.validation))
        if values[-1] > best[0]:
            best = values[-1], epoch, model.weights.detach().clone()
        if epoch == best[1] + PATIENCE:
            break
    with torch.no_grad():
        model.weights.copy_(best[2])
    return {"ndcg": ndcg(model, world.test), "validation": best[0], "epoch": best[1], "first_validation": values[0]}
