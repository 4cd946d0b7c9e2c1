"""Incremental detection of false negatives (IFND) from end to end: clusters of the vectors say whom to leave out.

400 samples of eight classes; a view is a sample with noise. One in eight of the other samples of a batch is of the same
class: a false negative. Every 20 steps `Incremental` clusters all vectors and accepts the most confident labels, more
of them as training goes on; `losses.eliminate` leaves those pairs out. Accuracy is that of the nearest of 50 labelled
samples. Classes are compact here, so that clusters find them; where they are not, there is little to gain
(docs/choose-negatives.md, Images).

Prints:
    plain        84 %
    detected     91 %, 0.99 of the flagged pairs are false negatives
    true labels  99 %
"""

import numpy as np
import torch
from torch.nn.functional import normalize

import naysay as ns

SAMPLES, CLASSES, WIDTH, BATCH, STEPS = 400, 8, 32, 32, 100
rng = np.random.default_rng(0)
classes = rng.integers(0, CLASSES, SAMPLES)
inputs = torch.from_numpy(rng.standard_normal((CLASSES, WIDTH))[classes] + 1.2 * rng.standard_normal((SAMPLES, WIDTH)))
partner = torch.arange(2 * BATCH).roll(BATCH)


def run(kind: str) -> str:
    """Train, and say how accurate the encoder is."""
    random = torch.Generator().manual_seed(0)  # not the global one
    first = (0.2 * torch.randn(WIDTH, 64, generator=random, dtype=torch.float64)).requires_grad_()
    second = (0.2 * torch.randn(64, 16, generator=random, dtype=torch.float64)).requires_grad_()
    optimiser = torch.optim.Adam([first, second], lr=0.005)
    detector = ns.detectors.Incremental(SAMPLES, clusters=CLASSES)
    for step in range(STEPS):
        if kind == "detected" and step % 20 == 0 and step:
            with torch.no_grad():
                features = normalize((inputs @ first).relu() @ second, dim=1)
            detector.update(features.numpy(), progress=step / STEPS)
        rows = torch.randperm(SAMPLES, generator=random)[:BATCH].repeat(2)
        noise = 0.8 * torch.randn(2 * BATCH, WIDTH, generator=random, dtype=torch.float64)
        z = normalize(((inputs[rows] + noise) @ first).relu() @ second, dim=1)
        if kind == "true labels":
            loss = ns.losses.eliminate(z, partner, torch.from_numpy(classes)[rows], temperature=0.2)
        elif kind == "detected" and step >= 20:
            loss = ns.losses.eliminate(z, partner, detector.labels[:, rows], temperature=0.2)
        else:
            loss = ns.losses.in_batch(z, partner=partner, temperature=0.2)
        optimiser.zero_grad()
        loss.mean().backward()
        optimiser.step()
    with torch.no_grad():
        found = normalize((inputs @ first).relu() @ second, dim=1)
    nearest = (found[50:] @ found[:50].T).argmax(dim=1).numpy()
    said = f"{100 * (classes[nearest] == classes[50:]).mean():.0f} %"
    if kind == "detected":
        labels = detector.labels[0]
        same = (labels[:, None] == labels) & (labels[:, None] >= 0) & ~np.eye(SAMPLES, dtype=bool)
        right = (classes[:, None] == classes)[same].mean()
        said += f", {right:.2f} of the flagged pairs are false negatives"
    return said


if __name__ == "__main__":
    for kind in ("plain", "detected", "true labels"):
        print(f"{kind:12s} {run(kind)}")
