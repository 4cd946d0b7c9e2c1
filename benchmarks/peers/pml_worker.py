"""Time pytorch-metric-learning's ``NTXentLoss`` with labels: one forward and backward pass, and its peak memory."""

import time
from typing import Any

import torch
from memory import peak_extra_bytes
from protocol import Data, Repeat, serve
from pytorch_metric_learning.losses import NTXentLoss


def prepare(data: Data, _case: str) -> tuple[float, Repeat]:
    """Take the vectors as they are; the loss keeps nothing between calls, so nothing is built."""
    embeddings = torch.from_numpy(data["embeddings"]).requires_grad_()
    labels = torch.from_numpy(data["labels"])
    loss = NTXentLoss(temperature=float(data["temperature"]))
    negatives = int((labels[:, None] != labels).sum())
    value = torch.zeros(())

    def both_passes() -> None:
        nonlocal value
        embeddings.grad = None
        value = loss(embeddings, labels)
        value.backward()

    def repeat() -> dict[str, Any]:
        start = time.perf_counter()
        both_passes()
        seconds = time.perf_counter() - start
        # A second call, so that reading the memory is no part of the timing.
        extra = peak_extra_bytes(both_passes)
        return {"seconds": seconds, "negatives": negatives, "peak_extra_bytes": extra, "loss": value.item()}

    return 0.0, repeat


if __name__ == "__main__":
    serve("pml", "pytorch-metric-learning", ["ntxent"], prepare)
