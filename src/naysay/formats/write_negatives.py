"""Writing mined negatives as the training file of a library: streamed in blocks, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._rows import offsets
from naysay.arrays import to_numpy
from naysay.checks import check_range, first_bad, raise_invalid, whole_numbers
from naysay.formats import _whole_files as whole_files
from naysay.formats import _write_checks as write_checks
from naysay.formats import runs
from naysay.formats._blocks import Ids, Job
from naysay.formats._labels import Labels
from naysay.formats._table import FORMATS, Format, format_called
from naysay.formats._write_blocks import write_blocks
from naysay.positives import POSITIVE, Positives


@final
@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What was written.

    Args:
        rows: The rows, or lines, of the file.
        dropped: {"reason": anchors}: those that the format has no row for.
    """

    path: Path
    format: str
    rows: int
    dropped: Mapping[str, int] = field(default_factory=dict)


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

    An anchor with several positives has a row for each of them in the formats whose row is a pair or a triple, in
    order, and its negatives are repeated, as sentence-transformers does. O(written cells), memory of one block.

    Args:
        path: A file in an existing folder; .parquet, .jsonl or .hf (a data set on disk) decides its kind.
        format: "triplet", "n-tuple", "labelled-pair", "labelled-list", "flagembedding", "tevatron", "tevatron-ids",
            "nemo", "nemo-inline", "colbert", "colbert-nway", "ids" or "trec".
        ids: (n, k), the negatives of anchor i in row i, -1 empty.
        positives: The known pairs; a negative that is one of them is refused, and so is one to ignore.
        scores: (n, k): a run in "trec" needs them, the others write them if `with_scores`.
        positive_scores: One for each pair of `positives`, in the order of `positives.pairs()`.
        query_ids: What rows are called: lists, Arrow arrays or a Vocabulary; None calls them by number.
        corpus_ids: What rows are called: lists, Arrow arrays or a Vocabulary; None calls them by number.
        query_texts: Their texts; without them the formats that can hold ids hold ids.
        corpus_texts: Their texts; without them the formats that can hold ids hold ids.
        corpus_titles: Titles of documents, which "tevatron" keeps apart.
        with_scores: Whether scores are written beside the documents; in the formats of sentence-transformers they
            take the place of labels.
        short: What "n-tuple" and "colbert-nway" do with an anchor that has fewer than k negatives: "drop" it (the
            default), which is counted, or "raise".
        corpus_path: Where the corpus of "nemo" lies; its last part is the corpus_id.
        tag: The name of the run in "trec"; "naysay" if none is given.

    Example:
        >>> from tempfile import mkdtemp
        >>> known = Positives.from_pairs([0, 1], [2, 0], n_items=4)
        >>> written = write_negatives(f"{mkdtemp()}/train.jsonl", "triplet", ids=[[0, 3], [1, -1]], positives=known)
        >>> print(written.path.read_text(), end="")
        {"anchor": 0, "positive": 2, "negative": 0}
        {"anchor": 0, "positive": 2, "negative": 3}
        {"anchor": 1, "positive": 0, "negative": 1}
    """
    name, target = format_called(format, "trec"), Path(path)
    whole_files.check_place(target)
    negatives = whole_numbers("ids", to_numpy(ids), "(n, k)").astype(np.int64, copy=False)
    if not negatives.shape[1]:
        raise_invalid("ids", "of shape (n, k), k at least 1", f"shape {negatives.shape}")
    write_checks.check_options(name, short, corpus_path, tag, titles=corpus_titles is not None)
    if not isinstance(positives, Positives):
        raise_invalid("positives", "a Positives", type(positives).__name__)
    queries = Labels("query", len(negatives), ids=query_ids, texts=query_texts)
    sized = any(values is not None for values in (corpus_ids, corpus_texts, corpus_titles))
    size = None if sized else max(positives.n_items, int(negatives.max(initial=-1)) + 1)
    corpus = Labels("corpus", size, ids=corpus_ids, texts=corpus_texts, titles=corpus_titles)
    check_range("ids", negatives, corpus.n, "documents", least=-1)
    write_checks.check_known(positives, negatives, corpus.n)
    used = with_scores or name == "trec"
    number = write_checks.score_array("scores", scores, negatives.shape, (negatives >= 0) & used)
    if name == "trec":
        return _run(target, negatives, number, queries, corpus, tag)
    chosen = FORMATS[name]
    indptr, items, kept = _pairs(positives, len(negatives))
    beside = write_checks.score_array("positive_scores", positive_scores, kept.shape, kept & used)
    number, beside = (number, None if beside is None else beside[kept]) if with_scores else (None, None)
    write_checks.check_needs(chosen, target, queries, corpus)
    if with_scores:
        write_checks.check_scores(chosen, number, beside)
    corpus_id = "" if corpus_path is None else Path(corpus_path).name
    job = Job(negatives, number, indptr, items, beside, queries, corpus, corpus_id)
    dropped = _dropped(chosen, job, short)
    rows = write_blocks(target, chosen, job, corpus_path)
    return Written(target, name, rows, dropped)


def _run(
    target: Path, ids: Ids, scores: NDArray[np.float32] | None, queries: Labels, corpus: Labels, tag: str | None
) -> Written:
    if scores is None:
        raise_invalid("scores", "given for the format 'trec'", None)
    rows = runs.write_lines(target, ids, scores, queries, corpus, "naysay" if tag is None else tag)
    return Written(target, "trec", rows)


def _pairs(positives: Positives, n: int) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """The positives of n anchors as rows, and which of the known pairs they are."""
    kept = np.ones(len(positives), bool) if positives.relation is None else positives.relation == POSITIVE
    counts = np.zeros(n, np.int64)
    counts[: positives.n_anchors] = positives.count()
    return offsets(counts), positives.indices[kept].astype(np.int64), kept


def _dropped(chosen: Format, job: Job, short: str | None) -> dict[str, int]:
    """{"reason": anchors} that have no row; with short="raise" the first one short of negatives is refused."""
    found, k = (job.ids >= 0).sum(axis=1), job.ids.shape[1]
    if short == "raise" and (found < k).any():
        rule = f"{k} negatives for each anchor, because of short='raise'"
        raise_invalid("ids", rule, first_bad(found, found < k))
    if chosen.keeps:
        return {}
    without = np.diff(job.indptr) == 0
    reasons = {"no positive": without, "no negative": ~without & (found == 0)}
    if chosen.rectangular:
        reasons[f"fewer than {k} negatives"] = ~without & (found > 0) & (found < k)
    return {reason: int(anchors.sum()) for reason, anchors in reasons.items() if anchors.any()}
