"""In-batch losses in blocks against the plain form with its matrix, and NT-Xent with labels against a peer.

python -m benchmarks.speed.losses --peers DIR [--threads 2] [--repeats 5] [--largest 16384]

Each repetition is one forward and one backward pass of `.mean()`. Memory is the peak resident memory of a pass above
the level before it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from benchmarks.harness import Peer, alternate, show, write
from benchmarks.peers.memory import peak_extra_bytes
from naysay.losses import in_batch, sup_con

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


def best_of(calls: dict[str, Callable[[], None]], repeats: int) -> dict[str, dict[str, Any]]:
    """The best of alternating repetitions, then the memory of one more."""
    seconds = dict.fromkeys(calls, float("inf"))
    for turn in range(repeats + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:  # the first is for warming up
                seconds[name] = min(seconds[name], time.perf_counter() - start)
    return {
        name: {"seconds": seconds[name], "peak_extra_bytes": peak_extra_bytes(call)} for name, call in calls.items()
    }


def both(rows: int, form: str, repeats: int, *, uneven: bool = False) -> dict[str, Any]:
    """Ours and the plain form, alternating."""
    inputs = [vectors(rows, 0), vectors(rows, 1)]
    factor = torch.linspace(0.5, 1.5, rows) if uneven else None
    found = best_of(
        {
            "blocks": lambda: run(ours, inputs, form, factor),
            "plain": lambda: run(plain, inputs, form, factor),
        },
        repeats,
    )
    times = found["blocks"]["seconds"] / found["plain"]["seconds"]
    name = f"{form}, uneven factors" if uneven else form
    print(f"{name:28s} {rows:6d}: {found['blocks']['seconds']:.3f} s, {times:.2f} of the plain form's", flush=True)
    return {"rows": rows, "form": name, "times_of_plain": times, **found}


def gradient_error(form: str, rows: int = 512) -> float:
    """The largest difference between both forms' gradients in float64, next to the largest gradient."""
    inputs = [vectors(rows, 0, torch.float64), vectors(rows, 1, torch.float64)]
    found = []
    for loss in (ours, plain):
        run(loss, inputs, form)
        found.append([value.grad.clone() for value in inputs if value.grad is not None])
    largest = max(float(grad.abs().max()) for grad in found[1])
    return max(float((a - b).abs().max()) for a, b in zip(*found, strict=True)) / largest


def alone(rows: int, form: str, repeats: int) -> dict[str, Any]:
    """Ours at a size where the matrix would not fit."""
    inputs = [vectors(rows, 0), vectors(rows, 1)]
    found = best_of({"blocks": lambda: run(ours, inputs, form)}, repeats)["blocks"]
    print(f"{form:28s} {rows:6d}: {found['seconds']:.2f} s, {found['peak_extra_bytes'] / 1e6:.0f} MB", flush=True)
    return {"rows": rows, "form": form, "matrix_bytes": 4 * rows * rows, **found}


def nt_xent(peers: Path, repeats: int) -> dict[str, Any]:
    """256 vectors of 32 classes: forward and backward, one thread each, best of several alternating repetitions."""
    rng = np.random.default_rng(0)
    embeddings = rng.standard_normal((256, 128)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    classes = np.repeat(np.arange(32), 8)
    z = torch.from_numpy(embeddings).requires_grad_()

    def once() -> int:
        z.grad = None
        sup_con(z, classes, temperature=0.5, denominator="negatives").mean().backward()
        return int((classes[:, None] != classes).sum())

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "ntxent.npz"
        np.savez(data, embeddings=embeddings, labels=classes, temperature=0.5)
        torch.set_num_threads(1)
        peer = Peer(peers, "pml", data, "ntxent", 1)
        rows = alternate({"naysay": once}, [peer], repeats)
        peer.stop()
    rows["naysay"]["peak_extra_bytes"] = peak_extra_bytes(once)
    rows["naysay"]["loss"] = sup_con(z, classes, temperature=0.5, denominator="negatives").mean().item()
    show("NT-Xent with labels, 256 x 32 classes", rows, "pml")
    return rows


def main() -> None:
    """Measure and write results/losses.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--largest", type=int, default=16_384)
    args = parser.parse_args()
    forms = ("plain", "masked", "eliminated", "debiased", "hardness-weighted")
    torch.set_num_threads(args.threads)
    result = {
        "torch": version("torch"),
        "width": WIDTH,
        "threads": args.threads,
        "both_fit": [
            *(both(rows, form, args.repeats) for rows in (2048, 4096) for form in forms),
            *(both(rows, "plain", args.repeats, uneven=True) for rows in (2048, 4096)),
            both(8192, "plain", args.repeats),
        ],
        "largest": [alone(args.largest, form, 2) for form in forms],
        "gradient_error_float64": {form: gradient_error(form) for form in forms},
        "nt_xent": nt_xent(args.peers, args.repeats),
    }
    print(result["gradient_error_float64"])
    write("losses", result)


if __name__ == "__main__":
    main()
