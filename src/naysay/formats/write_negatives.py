"""write_negatives: mined negatives as a training file of another library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._rows import offsets
from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_kind,
    check_one_of,
    check_range,
    first_bad,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.formats import runs
from naysay.formats._contents import Ids, Labels, labels_of
from naysay.formats._formats import FORMATS, Format, format_called
from naysay.formats._writing import Contents, check_place, write_contents
from naysay.positives import POSITIVE, Positives

_BLOCK = 1 << 16


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What `write_negatives` wrote.

    Args:
        path: The file.
        format: Its format.
        rows: The rows, or lines, of the file.
        dropped: {reason: anchors} that the format has no row for.

    Examples:
        >>> Written(Path("train.jsonl"), "triplet", 3, {"no negative": 1}).dropped
        {'no negative': 1}
    """

    path: Path
    format: str
    rows: int
    dropped: Mapping[str, int] = field(default_factory=dict)


@public
def write_negatives(
    path: str | Path,
    format: str,
    *,
    ids: ArrayLike,
    positives: Positives,
    scores: ArrayLike | None = None,
    positive_scores: ArrayLike | None = None,
    query_ids: Any = None,
    corpus_ids: Any = None,
    query_texts: Any = None,
    corpus_texts: Any = None,
    corpus_titles: Any = None,
    with_scores: bool = False,
    short: str | None = None,
    corpus_path: str | None = None,
    tag: str | None = None,
) -> Written:
    """Write the negatives of each anchor in a format that a trainer reads.

    In the formats whose row is a pair or a triple, an anchor with several positives has a row for each of them, as in
    sentence-transformers. The file appears whole or not at all. Memory of one block.

    Args:
        path: A file in an existing folder. Its ending decides the kind: .parquet, .jsonl or .hf (a data set on disk).
        format: The name of one of `FORMATS`, such as "triplet" or "flagembedding"; or "trec".
        ids: (n, k), the negatives of anchor i in row i, -1 empty.
        positives: The known pairs. No negative may be one of them, or be marked to be ignored.
        scores: (n, k). "trec" needs them, the other formats write them if `with_scores`.
        positive_scores: One for each pair of `positives`, in the order of `positives.pairs()`.
        query_ids: Names of the anchors: a list, an Arrow array or a Vocabulary. Row numbers by default.
        corpus_ids: Names of the documents, likewise.
        query_texts: Texts of the anchors, which most formats need; "ids", "colbert" and "trec" do without.
        corpus_texts: Texts of the documents, likewise.
        corpus_titles: Titles of the documents; only for "tevatron".
        with_scores: Whether scores are written beside the documents. In the labelled formats they replace the labels.
        short: What "n-tuple" and "colbert-nway" do with an anchor that has fewer than k negatives: "drop" (the
            default; counted in `Written.dropped`) or "raise".
        corpus_path: The path of the corpus, for "nemo"; its last part is the corpus_id.
        tag: The name of the run, for "trec"; "naysay" by default.

    Returns:
        The number of rows, and of anchors that were dropped.

    Examples:
        >>> from tempfile import mkdtemp
        >>> known = Positives.from_pairs([0, 1], [2, 0], n_items=4)
        >>> texts = {"query_texts": ["capital?", "river?"], "corpus_texts": ["Seine", "Lyon", "Paris", "Nice"]}
        >>> path = f"{mkdtemp()}/train.jsonl"
        >>> written = write_negatives(path, "triplet", ids=[[1, 3], [2, -1]], positives=known, **texts)
        >>> print(written.path.read_text(), end="")
        {"anchor": "capital?", "positive": "Paris", "negative": "Lyon"}
        {"anchor": "capital?", "positive": "Paris", "negative": "Nice"}
        {"anchor": "river?", "positive": "Seine", "negative": "Paris"}
    """
    name, target = format_called(format, "trec"), Path(path)
    check_place(target)
    negatives = whole_numbers("ids", to_numpy(ids), "(n, k)").astype(np.int64, copy=False)
    if not negatives.shape[1]:
        raise_invalid("ids", "of shape (n, k), k at least 1", f"shape {negatives.shape}")
    check_options(name, short, corpus_path, tag, titles=corpus_titles is not None)
    check_kind("positives", positives, Positives, "a Positives")
    queries = labels_of("query", len(negatives), ids=query_ids, texts=query_texts)
    sized = any(values is not None for values in (corpus_ids, corpus_texts, corpus_titles))
    size = None if sized else max(positives.n_items, int(negatives.max(initial=-1)) + 1)
    corpus_name = "" if corpus_path is None else Path(corpus_path).name
    corpus = labels_of("corpus", size, ids=corpus_ids, texts=corpus_texts, titles=corpus_titles, name=corpus_name)
    check_range("ids", negatives, corpus.n, "documents", least=-1)
    _check_known(positives, negatives, corpus.n)
    used = with_scores or name == "trec"
    number = _score_array("scores", scores, negatives.shape, (negatives >= 0) & used)
    if name == "trec":
        if number is None:
            raise_invalid("scores", "given for the format 'trec'", None)
        rows = runs.write_lines(target, negatives, number, queries, corpus, "naysay" if tag is None else tag)
        return Written(target, "trec", rows)
    chosen = FORMATS[name]
    indptr, items, kept = _pairs(positives, len(negatives))
    beside = _score_array("positive_scores", positive_scores, kept.shape, kept & used)
    number, beside = (number, None if beside is None else beside[kept]) if with_scores else (None, None)
    _check_needs(chosen, target, queries, corpus)
    if with_scores and chosen.scores == "none":
        raise_invalid("with_scores", f"False for the format {name!r}, which has no place for scores", True)
    if with_scores and number is None:
        raise_invalid("scores", "given for a file with scores", None)
    if with_scores and chosen.scores == "both" and beside is None:
        raise_invalid("positive_scores", f"given for a file with scores in the format {name!r}", None)
    contents = Contents(negatives, number, indptr, items, beside, queries, corpus)
    dropped = _dropped(chosen, contents, short)
    rows = write_contents(target, chosen, contents, corpus_path)
    return Written(target, name, rows, dropped)


def _pairs(positives: Positives, n: int) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """(indptr, items, kept): the positives of n anchors, and which of the known pairs they are."""
    kept = np.ones(len(positives), bool) if positives.relation is None else positives.relation == POSITIVE
    counts = np.zeros(n, np.int64)
    counts[: positives.n_anchors] = positives.count()
    return offsets(counts), positives.indices[kept].astype(np.int64), kept


def _dropped(chosen: Format, contents: Contents, short: str | None) -> dict[str, int]:
    """{reason: anchors} that have no row; raises for an anchor short of negatives if short="raise"."""
    found, k = (contents.ids >= 0).sum(axis=1), contents.ids.shape[1]
    if short == "raise" and (found < k).any():
        rule = f"{k} negatives for each anchor, because `short` is 'raise'"
        raise_invalid("ids", rule, first_bad(found, found < k))
    if chosen.keeps:
        return {}
    without = np.diff(contents.indptr) == 0
    reasons = {"no positive": without, "no negative": ~without & (found == 0)}
    if chosen.rectangular:
        reasons[f"fewer than {k} negatives"] = ~without & (found > 0) & (found < k)
    return {reason: int(anchors.sum()) for reason, anchors in reasons.items() if anchors.any()}


def check_options(name: str, short: str | None, corpus_path: str | None, tag: str | None, *, titles: bool) -> None:
    """Raise for options that have no effect on the format, and for one that is missing."""
    if titles and name != "tevatron":
        advice = "Join titles and texts first."
        raise_invalid("corpus_titles", f"left out for the format {name!r}", "titles", advice)
    if short is not None:
        check_one_of("short", short, ("drop", "raise"))
        if name == "trec" or not FORMATS[name].rectangular:
            raise_invalid("short", f"left out for the format {name!r}, which holds rows of any length", repr(short))
    for parameter, given, only in (("corpus_path", corpus_path, "nemo"), ("tag", tag, "trec")):
        if given is not None and name != only:
            raise_invalid(parameter, f"left out for the format {name!r}", repr(given))
    if corpus_path is None and name == "nemo":
        advice = "It is the folder of the corpus that the documents' ids are of."
        raise_invalid("corpus_path", "given for the format 'nemo'", None, advice)


def _check_needs(chosen: Format, target: Path, queries: Labels, corpus: Labels) -> None:
    """Raise if the format has another kind of file, or needs texts that are missing."""
    if target.suffix.lower() not in chosen.suffixes:
        rule = f"a file that ends in {' or '.join(chosen.suffixes)} for the format {chosen.name!r}"
        raise_invalid("path", rule, repr(str(target)))
    for side, labels in (("query", queries), ("corpus", corpus)):
        if side in chosen.texts and labels.texts_of is None:
            advice = "Pass query_texts and corpus_texts, or write row numbers and names with format='ids'."
            raise_invalid(f"{side}_texts", f"given for the format {chosen.name!r}", None, advice)


def _check_known(positives: Positives, ids: Ids, n_items: int) -> None:
    """Raise if a negative is a known pair."""
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


def _score_array(
    parameter: str, given: ArrayLike | None, shape: tuple[int, ...], used: NDArray[np.bool_]
) -> NDArray[np.float32] | None:
    """Return scores as float32; raise unless they are finite where `used`."""
    if given is None:
        return None
    scores = as_array(parameter, to_numpy(given))
    if scores.shape != shape or scores.dtype.kind not in "fiu":
        raise_invalid(parameter, f"numbers of shape {shape}", f"shape {scores.shape} {scores.dtype}")
    with np.errstate(over="ignore"):  # too large for float32 raises below
        number = scores.astype(np.float32)
    check_all(parameter, number, np.isfinite(number) | ~used, "finite")
    return number
