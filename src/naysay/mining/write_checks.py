"""What `write_negatives` refuses before it writes: options that cannot act, missing texts, known pairs, odd scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_one_of, first_bad, refuse
from naysay.mining.formats import FORMATS, Format
from naysay.mining.labels import Labels
from naysay.positives import Positives

OWNER = "write_negatives"
Ids = NDArray[np.int64]
_BLOCK = 1 << 16


def check_options(name: str, short: str | None, corpus_path: str | None, tag: str | None) -> None:
    """Refuse options that cannot act, and one that is missing."""
    if short is not None:
        check_one_of(OWNER, "short", short, ("drop", "raise"))
        if name == "trec" or not FORMATS[name].rectangular:
            refuse(OWNER, "short", f"left out for the format {name!r}, which holds rows of any length", repr(short))
    if corpus_path is not None and name != "nemo":
        refuse(OWNER, "corpus_path", f"left out for the format {name!r}", repr(corpus_path))
    if corpus_path is None and name == "nemo":
        advice = "It is the folder of the corpus that the documents' ids are of."
        refuse(OWNER, "corpus_path", "given for the format 'nemo'", None, advice)
    if tag is not None and name != "trec":
        refuse(OWNER, "tag", f"left out for the format {name!r}", repr(tag))


def check_needs(
    chosen: Format,
    target: Path,
    scores: NDArray[np.float32] | None,
    positive_scores: NDArray[np.float32] | None,
    queries: Labels,
    corpus: Labels,
) -> None:
    """Refuse what the format has no place for, and what it cannot do without."""
    if target.suffix.lower() not in chosen.suffixes:
        rule = f"a file that ends in {' or '.join(chosen.suffixes)} for the format {chosen.name!r}"
        refuse(OWNER, "path", rule, repr(str(target)))
    for side, labels in (("query", queries), ("corpus", corpus)):
        if side in chosen.texts and labels.texts is None:
            refuse(OWNER, f"{side}_texts", f"given for the format {chosen.name!r}", None)
        if target.suffix.lower() in (".parquet", ".hf"):
            labels.check_utf8(OWNER, side)
    if corpus.titles is not None and chosen.name != "tevatron":
        advice = "Join titles and texts first."
        refuse(OWNER, "corpus_titles", f"left out for the format {chosen.name!r}", "titles", advice)
    if chosen.scores == "none" and (scores is not None or positive_scores is not None):
        refuse(OWNER, "scores", f"left out for the format {chosen.name!r}, which has no place for them", "scores")
    if chosen.scores == "both" and (scores is None) != (positive_scores is None):
        missing = "positive_scores" if positive_scores is None else "scores"
        refuse(OWNER, missing, f"given beside its partner for the format {chosen.name!r}", None)


def check_known(positives: Positives, ids: Ids, n_items: int) -> None:
    """Refuse known pairs among the negatives: the last chance to see one."""
    if positives.n_anchors > len(ids):
        refuse(OWNER, "positives", f"of at most {len(ids)} anchors, the rows of ids", positives.n_anchors)
    if positives.n_items > n_items:
        refuse(OWNER, "positives", f"of at most {n_items} items, the size of the corpus", positives.n_items)
    for start in range(0, positives.n_anchors, _BLOCK):
        stop = min(start + _BLOCK, positives.n_anchors)
        block = np.where(ids[start:stop] < positives.n_items, ids[start:stop], -1)
        known = positives.contains(np.arange(start, stop), block, relation="any")
        if known.any():
            rows = np.flatnonzero(known.any(axis=1))
            first = int(block[rows[0]][known[rows[0]]][0])
            got = f"item {first} of anchor {start + int(rows[0])} ({int(known.sum())} such pairs from there on)"
            refuse(OWNER, "ids", "negatives, none of them known to be positive or to be ignored", got)


def score_array(
    parameter: str, given: ArrayLike | None, shape: tuple[int, ...], used: NDArray[np.bool_]
) -> NDArray[np.float32] | None:
    """Scores as float32, finite wherever there is something that they belong to."""
    if given is None:
        return None
    scores = as_array(OWNER, parameter, to_numpy(given))
    if scores.shape != shape or scores.dtype.kind not in "fiu":
        refuse(OWNER, parameter, f"numbers of shape {shape}", f"shape {scores.shape} {scores.dtype}")
    number = scores.astype(np.float32)
    bad = used & ~np.isfinite(number)
    if bad.any():
        refuse(
            OWNER, parameter, "finite", first_bad(np.where(bad, number, 0).sum(axis=1) if bad.ndim > 1 else number, bad)
        )
    return number
