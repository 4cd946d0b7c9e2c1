"""How good are the negatives that exist already: two training sets of one world, audited.

The world is generated, so that the truth is known. One set holds the nearest documents that are not labelled, the other
only those below the line of a judge. The audit knows nothing of the truth: it goes by the scores of the labelled
positives, and says at most how many negatives are false. From scores alone it can never be excluded that none is, so
the interval begins at what is proven.

Prints:
    nearest  23.1 % false in truth; audited: at most about 37.9 % (0.0 % to 64.9 %)
             suspected negatives have 100.0 % of the pull
    judged    0.3 % false in truth; audited: at most about 0.5 % (0.0 % to 1.9 %)
             suspected negatives have 0.0 % of the pull
    the worst row: 'question 984' and not 'document 1743', score 0.85; false in truth: True
    k = 8 is too small: best 173 (AUC 0.993 over uniform negatives)
"""

import tempfile
from pathlib import Path

import numpy as np

import naysay as ns
from naysay.auditing import Audit, audit


def main() -> None:
    """Write two training files, audit both, and look at the worst row of the first."""
    world = ns.planted_world(1000, 2000, per_anchor=4, known_share=0.25, noise=0.1, spread=1.0)
    nearest = audited(world, "nearest", None)
    audited(world, "judged", "auto")
    worst, k = nearest.worst[0], nearest.quantity
    anchor, negative = (int(text.split()[1]) for text in (worst.anchor_text, worst.negative_text))
    false = world.is_false_negative([anchor], [[negative]]).item()
    pair = f"{worst.anchor_text!r} and not {worst.negative_text!r}"
    print(f"the worst row: {pair}, score {worst.score:.2f}; false in truth: {false}")
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
        found = audit(path, **given)
    truth, share = world.false_negative_rate(np.arange(1000), mined.ids), found.false
    interval = f"at most about {100 * share.estimate:.1f} % ({100 * share.low:.1f} % to {100 * share.high:.1f} %)"
    print(f"{name:8} {100 * truth:4.1f} % false in truth; audited: {interval}")
    print(f"{'':8} suspected negatives have {100 * found.pulls.masses['suspected']:.1f} % of the pull")
    return found


if __name__ == "__main__":
    main()
