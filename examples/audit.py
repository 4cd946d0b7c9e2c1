"""Audit two training sets of one world: how good are the negatives that exist already.

The world is generated, so the truth is known. One set holds the nearest unlabelled documents, the other only those
below a threshold. The audit does not know the truth: from the scores of the labelled positives it bounds the share of
false negatives. Scores alone can never exclude that none is false, so the interval starts at what is proven.

Prints:
    nearest  23.1 % truly false; audit: at most about 37.9 % (95 % CI 0.0 % to 64.9 %)
             100.0 % of the gradient comes from suspected negatives
    judged    0.3 % truly false; audit: at most about 0.5 % (95 % CI 0.0 % to 1.9 %)
             0.0 % of the gradient comes from suspected negatives
    worst row: 'question 984' with the negative 'document 1743', score 0.85; truly false: True
    k = 8 is too small: best 173 (AUC 0.993 over uniform negatives)
"""

import tempfile
from pathlib import Path

import numpy as np

import naysay as ns
from naysay.auditing import Audit


def main() -> None:
    """Write two training files, audit both, and show the worst row of the first."""
    world = ns.planted_world(1000, 2000, per_anchor=4, known_share=0.25, noise=0.1, spread=1.0)
    nearest = audited(world, "nearest", None)
    audited(world, "judged", "calibrated")
    worst, k = nearest.worst[0], nearest.k_verdict
    anchor, negative = (int(text.split()[1]) for text in (worst.anchor_text, worst.negative_text))
    false = world.is_false_negative([anchor], [[negative]]).item()
    pair = f"{worst.anchor_text!r} with the negative {worst.negative_text!r}"
    print(f"worst row: {pair}, score {worst.score:.2f}; truly false: {false}")
    print(f"k = {k.k} is {k.verdict}: best {k.best} (AUC {k.auc:.3f} over uniform negatives)")


def audited(world: ns.testing.World, name: str, judge: str | None) -> Audit:
    """Mine, write, read back and audit; print the estimate beside the truth."""
    vectors = world.anchor_vectors, world.item_vectors
    texts = [f"question {row}" for row in range(1000)], [f"document {row}" for row in range(2000)]
    mined = ns.mine(*vectors, world.known, k=8, judge=judge)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        mined.write(path, format="n-tuple", query_texts=texts[0], corpus_texts=texts[1])
        given = dict(
            zip(("query_vectors", "corpus_vectors", "query_ids", "corpus_ids"), (*vectors, *texts), strict=True)
        )
        result = ns.audit(path, **given)
    truth, share = world.false_negative_rate(np.arange(1000), mined.ids), result.false_share
    interval = f"(95 % CI {100 * share.low:.1f} % to {100 * share.high:.1f} %)"
    print(f"{name:8} {100 * truth:4.1f} % truly false; audit: at most about {100 * share.estimate:.1f} % {interval}")
    suspected = result.gradient_share.shares["suspected"]
    print(f"{'':8} {100 * suspected:.1f} % of the gradient comes from suspected negatives")
    return result


if __name__ == "__main__":
    main()
