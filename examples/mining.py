"""Embeddings in, a training set out: the best negatives of a corpus, each with its reason.

The world is generated, so that the truth is known: every query has ten documents that belong to it, and two of them are
labelled. The nearest that are not labelled are mostly good negatives, but one in five is a positive that nobody
labelled. The judge, calibrated on the labelled ones, leaves those out that score like a positive.

Prints:
    nearest   18.7 % false, mean score 0.80, 0 slots empty
    judged     4.2 % false, mean score 0.50, 0 slots empty
    Threshold 0.5917 (50th lowest of 1,000 labelled positives): expected miss rate at most
    5.00 % per anchor, if unlabelled positives score like labelled ones.
    of anchor 0: {'positive': 2, 'suspicious': 44}
    16000 triplets written
"""

import tempfile
import textwrap
from pathlib import Path

import numpy as np

import naysay as ns


def main() -> None:
    """Mine with and without a judge, explain an anchor, and write triplets."""
    world = ns.planted_world(1000, 2000, per_anchor=10, known_share=0.2, noise=0.6, spread=0.2)
    vectors = world.anchor_vectors, world.item_vectors
    for name, judge in (("nearest", None), ("judged", "calibrated")):
        mined = ns.mine(*vectors, world.known, k=8, judge=judge)
        false = world.false_negative_rate(np.arange(1000), mined.ids)
        score = mined.scores[mined.mask].mean()
        print(f"{name:8} {100 * false:5.1f} % false, mean score {score:.2f}, {mined.missing.sum()} slots empty")
    print(textwrap.fill(mined.rule, 90))
    print(f"of anchor 0: {mined.explain(0).dropped}")
    with tempfile.TemporaryDirectory() as folder:
        texts = [f"question {row}" for row in range(1000)], [f"document {row}" for row in range(2000)]
        path = Path(folder) / "train.parquet"
        written = mined.write(path, format="triplet", query_texts=texts[0], corpus_texts=texts[1])
        print(f"{written.rows} triplets written")


if __name__ == "__main__":
    main()
