"""In-batch losses in blocks against the plain form with its matrix, and NT-Xent with labels against a peer.

Each repetition is one forward and one backward pass of `.mean()`. Memory is the peak resident memory of a pass above
the level before it. Use --threads 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from benchmarks.speed.harness import Options, Peer, Row, alternate, command, timed
from naysay.losses import in_batch, sup_con

FORMS = ("plain", "masked", "eliminated", "debiased", "hardness-weighted")
WIDTH = 256
TEMPERATURE = 0.05
CLUSTERS = 100


def vectors(rows: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Unit vectors that take gradients."""
    values = torch.from_numpy(np.random.default_rng(seed).standard_normal((rows, WIDTH))).to(dtype)
    return normalize(values, dim=1).requires_grad_()


def labels(rows: int) -> Tensor:
    """A cluster for each row."""
    return torch.from_numpy(np.random.default_rng(7).integers(0, CLUSTERS, rows))


def plain(left: Tensor, right: Tensor, form: str) -> Tensor:
    """The losses from the whole matrix, as they are usually written."""
    rows = torch.arange(len(left))
    logits = left @ right.T / TEMPERATURE
    if form in ("masked", "eliminated"):
        cluster = labels(len(left))
        hidden = cluster[:, None] == cluster
        hidden[rows, rows] = False
        logits = logits.masked_fill(hidden, -torch.inf)
    if form in ("plain", "masked", "eliminated"):
        return cross_entropy(logits, rows, reduction="none")
    count, prior, positive = len(left) - 1, 0.1, logits[rows, rows]
    terms = logits.masked_fill(torch.eye(len(left), dtype=torch.bool), -torch.inf).exp()
    if form == "hardness-weighted":
        weights = terms
        total = (weights * terms).sum(dim=1) / weights.sum(dim=1) * count
    else:
        total = terms.sum(dim=1)
    corrected = (total - prior * count * positive.exp()) / (1 - prior)
    push = corrected.clamp_min(count * np.exp(-1 / TEMPERATURE))
    return -(positive - (positive.exp() + push).log())


def ours(left: Tensor, right: Tensor, form: str) -> Tensor:
    """The same in blocks."""
    cluster = labels(len(left))
    options: dict[str, Any] = {
        "plain": {},
        "masked": {"mask": lambda rows: cluster[rows, None] != cluster},
        "eliminated": {"labels": cluster, "key_labels": cluster},
        "debiased": {"prior": 0.1},
        "hardness-weighted": {"prior": 0.1, "beta": 1.0},
    }[form]
    return in_batch(left, right, temperature=TEMPERATURE, **options)


def run(
    loss: Callable[[Tensor, Tensor, str], Tensor], inputs: list[Tensor], form: str, factor: Tensor | None = None
) -> None:
    """One forward and backward pass; with a factor for each row, or the mean."""
    for value in inputs:
        value.grad = None
    losses = loss(inputs[0], inputs[1], form)
    (losses.mean() if factor is None else (losses * factor).sum()).backward()


def best_of(calls: dict[str, Callable[[], None]], repeats: int) -> dict[str, Row]:
    """The best of alternating repetitions, with the memory of one."""
    rows, _ = alternate(calls, repeats)
    for name, call in calls.items():
        rows[name]["peak_extra_bytes"] = timed(call, memory=True)[0]["peak_extra_bytes"]
    return rows


def both(rows: int, form: str, repeats: int, *, uneven: bool = False) -> Row:
    """Ours and the plain form, alternating."""
    inputs = [vectors(rows, 0), vectors(rows, 1)]
    factor = torch.linspace(0.5, 1.5, rows) if uneven else None
    calls = {"blocks": lambda: run(ours, inputs, form, factor), "plain": lambda: run(plain, inputs, form, factor)}
    found = best_of(calls, repeats)
    times = found["blocks"]["seconds"] / found["plain"]["seconds"]
    return {"rows": rows, "form": f"{form}, uneven factors" if uneven else form, "times_of_plain": times, **found}


def gradient_error(form: str, rows: int = 512) -> float:
    """The largest difference between both forms' gradients in float64, next to the largest gradient."""
    inputs = [vectors(rows, 0, torch.float64), vectors(rows, 1, torch.float64)]
    found = []
    for loss in (ours, plain):
        run(loss, inputs, form)
        found.append([value.grad.clone() for value in inputs if value.grad is not None])
    largest = max(float(grad.abs().max()) for grad in found[1])
    return max(float((a - b).abs().max()) for a, b in zip(*found, strict=True)) / largest


def both_fit(options: Options) -> list[Row]:
    """All forms at sizes whose matrix fits."""
    small, large, largest = (options.size(full, 64) for full in (2048, 4096, 8192))
    rows = [both(size, form, options.repeats) for size in (small, large) for form in FORMS]
    rows += [both(size, "plain", options.repeats, uneven=True) for size in (small, large)]
    return [*rows, both(largest, "plain", options.repeats)]


def largest(options: Options) -> list[Row]:
    """Ours at a size where the matrix would not fit."""
    size = options.size(16_384, 128)
    inputs = [vectors(size, 0), vectors(size, 1)]
    found = []
    for form in FORMS:
        row = best_of({"blocks": lambda form=form: run(ours, inputs, form)}, min(2, options.repeats))["blocks"]
        found.append({"rows": size, "form": form, "matrix_bytes": 4 * size * size, **row})
    return found


def nt_xent(options: Options) -> Row:
    """256 vectors of 32 classes: forward and backward, one thread each, against pytorch-metric-learning."""
    options = options.use_threads(1)
    rng = np.random.default_rng(0)
    embeddings = rng.standard_normal((256, 128)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    classes = np.repeat(np.arange(32), 8)
    z = torch.from_numpy(embeddings).requires_grad_()

    def once() -> int:
        z.grad = None
        sup_con(z, classes, temperature=0.5, denominator="negatives").mean().backward()
        return int((classes[:, None] != classes).sum())

    arrays = {"embeddings": embeddings, "labels": classes, "temperature": 0.5}
    rows, _ = alternate({"naysay": once}, options.repeats, [Peer(options, "pml", arrays, "ntxent")])
    rows["naysay"]["peak_extra_bytes"] = timed(once, memory=True)[0]["peak_extra_bytes"]
    rows["naysay"]["loss"] = sup_con(z, classes, temperature=0.5, denominator="negatives").mean().item()
    return rows


RESULTS = {
    "losses": {
        "width": WIDTH,
        "both_fit": both_fit,
        "largest": largest,
        "gradient_error_float64": lambda options: {form: gradient_error(form, options.size(512, 32)) for form in FORMS},
        "nt_xent": nt_xent,
    }
}

if __name__ == "__main__":
    command(__doc__, RESULTS)
