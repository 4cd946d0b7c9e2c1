"""Gradients of a large batch in the memory of a small one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from naysay.checks import check_whole, public, raise_invalid


@public
def cached_step(encode: Callable[[Any], Tensor], inputs: Any, loss: Callable[..., Tensor], *, chunk: int) -> Tensor:
    """Add the gradients of `loss` over a whole batch to the parameters, with one chunk of activations in memory.

    Every chunk is encoded without gradients; the loss and its gradients in the vectors are computed at once; then every
    chunk is encoded again with gradients, with the same dropout. The result equals one backward pass over the whole
    batch. Cost: one more forward pass. With DistributedDataParallel, call it under `no_sync()` and add up the gradients
    afterwards. Gao et al. GradCache. RepL4NLP 2021.

    Args:
        encode: encode(chunk of an input) -> (n, d), without batch normalisation in training.
        inputs: What to encode, with a length and slices; or a tuple of several, such as (queries, documents).
        loss: loss(*vectors, one (B, d) for each input) -> one number, such as `in_batch(a, b).mean()`.
        chunk: How many rows to encode at a time.

    Returns:
        The loss, without gradients. Parameters have theirs in `.grad`, as after `backward()`.

    Examples:
        >>> import torch
        >>> layer = torch.nn.Linear(3, 2)
        >>> rows = torch.arange(12.0).reshape(4, 3)
        >>> _ = cached_step(layer, rows, lambda vectors: vectors.square().mean(), chunk=3)
        >>> tuple(layer.weight.grad.shape)
        (2, 3)
    """
    check_whole("chunk", chunk, 1)
    for name, function in (("encode", encode), ("loss", loss)):
        if not callable(function):
            raise_invalid(name, "a function", f"a {type(function).__name__}")
    if isinstance(encode, torch.nn.Module):
        for name, module in encode.named_modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.training:
                raise_invalid("encode", "without batch normalisation in training", name, "Its statistics would differ.")
    parts = inputs if isinstance(inputs, tuple) else (inputs,)
    pieces = [[part[start : start + chunk] for start in range(0, len(part), chunk)] for part in parts]
    states: list[list[Any]] = []
    vectors = []
    for piece in pieces:
        states.append([])
        with torch.no_grad():
            made = []
            for rows in piece:
                states[-1].append(_random_state())
                made.append(encode(rows))
        vectors.append(torch.cat(made).requires_grad_())
    value = loss(*vectors)
    if value.ndim:
        raise_invalid("loss", "one number", f"shape {tuple(value.shape)}", "Take its mean.")
    value.backward()  # type: ignore[no-untyped-call]
    after = _random_state()
    for piece, recorded, vector in zip(pieces, states, vectors, strict=True):
        if vector.grad is None:
            continue
        gradients = torch.split(vector.grad, chunk)
        for rows, state, gradient in zip(piece, recorded, gradients, strict=True):
            _set_random_state(state)
            again = encode(rows)
            if again.requires_grad:
                again.backward(gradient)  # type: ignore[no-untyped-call]
    _set_random_state(after)
    return value.detach()


def _random_state() -> tuple[Tensor, list[Tensor]]:
    """Torch's own generators: dropout reads these."""
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


def _set_random_state(state: tuple[Tensor, list[Tensor]]) -> None:
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])
