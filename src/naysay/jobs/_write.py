"""The output of a job, streamed from its folder by the writers of all formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.checks import raise_invalid
from naysay.formats import _whole_files as whole_files
from naysay.formats import runs
from naysay.formats._blocks import Job
from naysay.formats._labels import Labels
from naysay.formats._table import FORMATS, format_called
from naysay.formats._whole_files import write_blocks
from naysay.formats.write_negatives import check_options
from naysay.jobs._inputs import Side
from naysay.jobs._prepare import Ready
from naysay.mining._known import pairs_of
from naysay.positives import POSITIVE

Ids = NDArray[np.int64]
_TAG = "naysay"


def check_output(
    output: Path,
    format: str,
    options: Mapping[str, Any],
    *,
    with_scores: bool,
    texts: tuple[bool, bool] | None,
) -> None:
    """Refuse an output that could not be written at the end of the job.

    Args:
        texts: Whether there are texts of the queries, and of the documents; None: not known yet.
    """
    name = format_called(format, "trec")
    whole_files.check_place(output)
    check_options(name, options["short"], options["corpus_path"], options["tag"], titles=False)
    if name == "trec":
        runs.check_fields("--tag", [[options["tag"] or _TAG]])
        return
    chosen = FORMATS[name]
    if output.suffix.lower() not in chosen.suffixes:
        rule = f"a file that ends in {' or '.join(chosen.suffixes)} for the format {name!r}"
        raise_invalid("--output", rule, repr(str(output)))
    if output.suffix.lower() == ".hf":
        whole_files.need_datasets()
    if with_scores and chosen.scores == "none":
        raise_invalid("--with-scores", f"left out for the format {name!r}, which has no place for scores", "it")
    for side, there in zip(("query", "corpus"), texts or (True, True), strict=True):
        if side in chosen.texts and not there:
            option = "--queries" if side == "query" else "--corpus"
            raise_invalid(option, f"a file with texts for the format {name!r}", "none")


def write_output(
    output: Path,
    format: str,
    ids: Ids,
    scores: NDArray[np.float32],
    ready: Ready,
    options: Mapping[str, Any],
    *,
    with_scores: bool,
    wrote: Callable[[int], None],
) -> int:
    """Write the negatives; the number of rows of the file comes back. wrote(anchors) is called for each block."""
    name = format_called(format, "trec")
    sides = _labels("query", ready.queries), _labels("corpus", ready.corpus)
    if name == "trec":
        return runs.write_lines(output, ids, scores, *sides, options["tag"] or _TAG)
    chosen, known = FORMATS[name], ready.task.known
    starts = offsets(known.count())
    beside = ready.known_scores[ready.task.kinds["positive"]] if with_scores else None
    corpus_path = options["corpus_path"]
    corpus_id = "" if corpus_path is None else Path(corpus_path).name
    items = pairs_of(known, POSITIVE)[1]
    job = Job(ids, scores if with_scores else None, starts, items, beside, *sides, corpus_id)
    return write_blocks(output, chosen, job, corpus_path, wrote)


def _labels(side: str, given: Side) -> Labels:
    """What the rows of a side are called; strings are gathered from disk, a block at a time."""
    labels = Labels(side, given.n)
    labels.names = None if given.ids is None else given.ids.gather
    labels.texts = None if given.texts is None else given.texts.gather
    return labels
