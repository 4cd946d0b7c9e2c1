"""Which negatives for images: a small convolutional encoder learns from pairs of views, without labels.

Images are stripes of four directions, with noise. uniform:32 takes 32 other images of the batch, in-batch takes all.
MoCo takes a queue of earlier batches. The measure is the class of the 20 nearest images.

Prints:
    uniform:32        k-NN accuracy 0.70
    in-batch          k-NN accuracy 0.65
    MoCo              k-NN accuracy 0.35
"""

import numpy as np

import naysay as ns

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    classes, at = rng.integers(0, 4, 400), np.arange(12)
    angle = np.pi / 4 * classes[:, None, None]
    waves = np.sin(1.2 * (np.cos(angle) * at + np.sin(angle) * at[:, None]) + rng.uniform(0, 7, (400, 1, 1)))
    images = np.clip(0.5 + 0.15 * waves + 0.25 * rng.standard_normal(waves.shape), 0, 1)
    data = ns.lab.Images(images, classes)
    found = ns.compare(data, task="images", methods="uniform:32,in-batch,MoCo", steps=12, seeds=1)
    for arm in found.arms:
        print(f"{arm.name:17} k-NN accuracy {found.mean(arm).mean:.2f}")
