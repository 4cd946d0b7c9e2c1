"""Audit two training sets of one world: how good are the negatives that exist already.

The world is generated, so the truth is known. One set holds the nearest unlabelled documents, the other only those
that the judge of `mine` leaves. The audit does not know the truth: from the scores of candidates and labelled positives
it estimates how many negatives are false. Scores can never prove that one is, so the interval starts at what is proven.

Prints:
    nearest  26.7 % truly false; audit: estimated 33.9 % (95 % CI 0.0 % to 46.6 %)
             Mine again with naysay mine: to come within 5 % by dropping alone, 94.4 % of the set would have to go.
    judged    3.4 % truly false; audit: estimated 4.1 % (95 % CI 0.0 % to 9.4 %)
             Nothing need be dropped: the estimate is within 5 %. To be sure, review the worst rows.
    worst row: 'question 477' with the negative 'document 995', score 0.90; truly false: True
"""

import tempfile
from pathlib import Path

import numpy as np

import naysay as ns
from naysay.audits import Audit


def main() -> None:
    """Write two training files, audit both, and show the worst row of the first."""
    world = ns.planted_world(500, 1000, 16, per_anchor=4, known_share=0.25, noise=0.05, spread=2.0)
    nearest = audited(world, "nearest", None)
    audited(world, "judged", "auto")
    worst = nearest.worst[0]
    anchor, negative = (int(text.split()[1]) for text in (worst.anchor_text, worst.negative_text))
    false = world.is_false_negative([anchor], [[negative]]).item()
    pair = f"{worst.anchor_text!r} with the negative {worst.negative_text!r}"
    print(f"worst row: {pair}, score {worst.score:.2f}; truly false: {false}")


def audited(world: ns.testing.World, name: str, judge: str | None) -> Audit:
    """Mine, write, read back and audit; print the estimate beside the truth."""
    vectors = world.anchor_vectors, world.item_vectors
    texts = [f"question {row}" for row in range(500)], [f"document {row}" for row in range(1000)]
    mined = ns.mine(*vectors, world.known, k=8, judge=judge)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        mined.write(path, format="n-tuple", query_texts=texts[0], corpus_texts=texts[1])
        given = dict(
            zip(("query_vectors", "corpus_vectors", "query_ids", "corpus_ids"), (*vectors, *texts), strict=True)
        )
        result = ns.audit(path, **given)
    truth, share = world.false_negative_rate(np.arange(500), mined.ids), result.false_share
    interval = f"(95 % CI {100 * share.low:.1f} % to {100 * share.high:.1f} %)"
    print(f"{name:8} {100 * truth:4.1f} % truly false; audit: estimated {100 * share.estimate:.1f} % {interval}")
    print(f"{'':8} {result.advice[0]}")
    return result


if __name__ == "__main__":
    main()
