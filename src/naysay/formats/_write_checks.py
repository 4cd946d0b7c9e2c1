"""What `write_negatives` refuses before it writes: options that cannot act, missing texts, known pairs, odd scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_one_of, first_bad, raise_invalid
from naysay.formats._labels import Labels
from naysay.formats._table import FORMATS, Format
from naysay.positives import Positives

Ids = NDArray[np.int64]
_BLOCK = 1 << 16


def check_options(name: str, short: str | None, corpus_path: str | None, tag: str | None, *, titles: bool) -> None:
    """Refuse options that cannot act, and one that is missing."""
    if titles and name != "tevatron":
        advice = "Join titles and texts first."
        raise_invalid("corpus_titles", f"left out for the format {name!r}", "titles", advice)
    if short is not None:
        check_one_of("short", short, ("drop", "raise"))
        if name == "trec" or not FORMATS[name].rectangular:
            raise_invalid("short", f"left out for the format {name!r}, which holds rows of any length", repr(short))
    if corpus_path is not None and name != "nemo":
        raise_invalid("corpus_path", f"left out for the format {name!r}", repr(corpus_path))
    if corpus_path is None and name == "nemo":
        advice = "It is the folder of the corpus that the documents' ids are of."
        raise_invalid("corpus_path", "given for the format 'nemo'", None, advice)
    if tag is not None and name != "trec":
        raise_invalid("tag", f"left out for the format {name!r}", repr(tag))


def check_needs(chosen: Format, target: Path, queries: Labels, corpus: Labels) -> None:
    """Refuse what the format has no place for, and what it cannot do without."""
    if target.suffix.lower() not in chosen.suffixes:
        rule = f"a file that ends in {' or '.join(chosen.suffixes)} for the format {chosen.name!r}"
        raise_invalid("path", rule, repr(str(target)))
    for side, labels in (("query", queries), ("corpus", corpus)):
        if side in chosen.texts and labels.texts is None:
            raise_invalid(f"{side}_texts", f"given for the format {chosen.name!r}", None)
        if target.suffix.lower() in (".parquet", ".hf"):
            labels.check_utf8(side)


def check_scores(
    chosen: Format, scores: NDArray[np.float32] | None, positive_scores: NDArray[np.float32] | None
) -> None:
    """Refuse scores that the format has no place for, and a file with scores that lacks some."""
    if chosen.scores == "none":
        raise_invalid("with_scores", f"False for the format {chosen.name!r}, which has no place for scores", True)
    if scores is None:
        raise_invalid("scores", "given for a file with scores", None)
    if chosen.scores == "both" and positive_scores is None:
        raise_invalid("positive_scores", f"given for a file with scores in the format {chosen.name!r}", None)


def check_known(positives: Positives, ids: Ids, n_items: int) -> None:
    """Refuse known pairs among the negatives: the last chance to see one."""
    if positives.n_anchors > len(ids):
        raise_invalid("positives", f"of at most {len(ids)} anchors, the rows of ids", positives.n_anchors)
    if positives.n_items > n_items:
        raise_invalid("positives", f"of at most {n_items} items, the size of the corpus", positives.n_items)
    first, count = "", 0
    for start in range(0, positives.n_anchors, _BLOCK):
        stop = min(start + _BLOCK, positives.n_anchors)
        block = np.where(ids[start:stop] < positives.n_items, ids[start:stop], -1)
        rows, places = np.nonzero(positives.contains(np.arange(start, stop), block, relation="any"))
        if len(rows):
            first = first or f"item {block[rows[0], places[0]]} of anchor {start + rows[0]}"
            count += len(rows)
    if count:
        rule = "negatives, none of them known to be a positive or to be ignored"
        raise_invalid("ids", rule, f"{first} ({count} such pair{'s' if count > 1 else ''})")


def score_array(
    parameter: str, given: ArrayLike | None, shape: tuple[int, ...], used: NDArray[np.bool_]
) -> NDArray[np.float32] | None:
    """Scores as float32, finite wherever there is something that they belong to."""
    if given is None:
        return None
    scores = as_array(parameter, to_numpy(given))
    if scores.shape != shape or scores.dtype.kind not in "fiu":
        raise_invalid(parameter, f"numbers of shape {shape}", f"shape {scores.shape} {scores.dtype}")
    with np.errstate(over="ignore"):  # too large for float32 is refused below
        number = scores.astype(np.float32)
    bad = used & ~np.isfinite(number)
    if bad.any():
        raise_invalid(parameter, "finite", first_bad(number, bad))
    return number
