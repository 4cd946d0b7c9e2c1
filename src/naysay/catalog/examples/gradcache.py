"""GradCache: the loss of a large batch, with the activations of a few rows at a time."""

import torch

import naysay as ns

start = torch.Generator().manual_seed(0)
encoder = torch.nn.Linear(32, 16)
queries, documents = torch.randn(2, 512, 32, generator=start)


def contrast(anchors, keys):
    return ns.losses.in_batch(anchors, keys, temperature=0.05).mean()


value = ns.losses.cached_step(encoder, (queries, documents), contrast, chunk=64)  # fills the gradients
