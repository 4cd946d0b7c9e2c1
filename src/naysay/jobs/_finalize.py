"""The end of a job: parts become a training file, a report, and a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.checks import first_bad, raise_invalid
from naysay.formats import _whole_files as whole_files
from naysay.formats import runs
from naysay.formats._blocks import Job
from naysay.formats._labels import Labels
from naysay.formats._table import FORMATS, format_called
from naysay.formats._whole_files import write_blocks
from naysay.formats.write_negatives import check_options
from naysay.jobs._files import clear_drafts, disk_errors, sync_file
from naysay.jobs._folder import stopped_short
from naysay.jobs._inputs import Side
from naysay.jobs._prepare import Ready
from naysay.jobs._summary import MinedFile, as_numbers, next_step, rate_of
from naysay.jobs._whole import Whole, sampled, together
from naysay.jobs.options import JobOptions
from naysay.mining._known import pairs_of
from naysay.mining._task import Task
from naysay.mining.explain import deeper, notes_of
from naysay.mining.mined import Mined
from naysay.positives import POSITIVE

_TAG = "naysay"


def check_output(job: JobOptions, queries: Side | None = None, corpus: Side | None = None) -> None:
    """Raise if the output could not be written at the end of the job.

    Args:
        job: The options of the job.
        queries: The anchors, once they are read: then their texts and ids are checked, too.
        corpus: The documents, the same.
    """
    name, suffix = format_called(job.format, "trec"), job.output.suffix.lower()
    whole_files.check_place(job.output)
    check_options(name, job.short, job.corpus_path, job.tag, titles=False)
    if name == "trec":
        runs.check_fields("--tag", [[job.tag or _TAG]])
    else:
        chosen = FORMATS[name]
        if suffix not in chosen.suffixes:
            rule = f"a file that ends in {' or '.join(chosen.suffixes)} for the format {name!r}"
            raise_invalid("--output", rule, repr(str(job.output)))
        if suffix == ".hf":
            whole_files.need_datasets()
        if job.with_scores and chosen.scores == "none":
            raise_invalid("--with-scores", f"left out for the format {name!r}, which has no place for scores", "it")
    for side, option, given in (("query", "--queries", queries), ("corpus", "--corpus", corpus)):
        if given is None:
            continue
        if name != "trec" and side in FORMATS[name].texts and given.texts is None:
            raise_invalid(option, f"a file with texts for the format {name!r}", "none")
        if name == "trec" and given.ids is not None:
            runs.check_fields(option, given.ids.blocks())
        for part, row in given.broken.items() if suffix in (".parquet", ".hf") else ():
            advice = "Parquet holds UTF-8 only; .jsonl can escape what is broken."
            raise_invalid(option, f"{part} that are valid UTF-8", f"row {row}", advice)


def finalize(
    folder: Path, ready: Ready, job: JobOptions, record: Mapping[str, Any], on_progress: Callable[[int], None]
) -> MinedFile:
    """Write the training file and the report from the parts of a job. Nothing in its folder is changed."""
    whole = together(folder, ready.task)
    for path in (job.output, job.report):
        if path is not None:
            clear_drafts(path)
    if job.short == "raise":
        _check_short(folder, whole)
    cells = 2 * max(1, whole.tally["negatives"])
    with disk_errors(job.output, lambda: cells * _text_bytes(ready)):
        rows = _write(job, whole, ready, on_progress)
    sync_file(job.output)
    notes = (*ready.notes, *notes_of(whole.tally, ready.corpus.n, option="--depth "))
    sample = sampled(ready, whole, notes)
    summary = _summarised(ready, whole, sample, job, rows)
    if job.report is not None:
        with disk_errors(job.report, lambda: 1 << 24):
            _report(job.report, job, record, ready, whole, sample, summary)
    return summary


def _write(job: JobOptions, whole: Whole, ready: Ready, on_progress: Callable[[int], None]) -> int:
    """Write the negatives, a block at a time; return the number of rows of the file."""
    name = format_called(job.format, "trec")
    sides = _labels("query", ready.queries), _labels("corpus", ready.corpus)
    if name == "trec":
        return runs.write_lines(job.output, whole.ids, whole.scores, *sides, job.tag or _TAG)
    known = ready.task.known
    starts, items = offsets(known.count()), pairs_of(known, POSITIVE)[1]
    beside = ready.known_scores[ready.task.kinds["positive"]] if job.with_scores else None
    corpus_id = "" if job.corpus_path is None else Path(job.corpus_path).name
    content = Job(whole.ids, whole.scores if job.with_scores else None, starts, items, beside, *sides, corpus_id)
    return write_blocks(job.output, FORMATS[name], content, job.corpus_path, on_progress)


def _labels(side: str, given: Side) -> Labels:
    """The ids and texts of a side, gathered from disk."""
    labels = Labels(side, given.n)
    labels.names = None if given.ids is None else given.ids.gather
    labels.texts = None if given.texts is None else given.texts.gather
    return labels


def _check_short(folder: Path, whole: Whole) -> None:
    """Raise if an anchor has fewer negatives than a row of the file, as --short raise asks; the parts are kept."""
    negatives, k = np.count_nonzero(whole.ids >= 0, axis=1), whole.ids.shape[1]
    if (negatives < k).any():
        stopped_short(folder)
        advice = "Run again with --short drop, which continues from here."
        got = first_bad(negatives, negatives < k)
        raise_invalid("--short", f"'drop' unless each anchor has {k} negatives", got, advice)


def _summarised(ready: Ready, whole: Whole, sample: Mined, job: JobOptions, rows: int) -> MinedFile:
    task, tally = ready.task, whole.tally
    positive = _one_positive(task, ready.known_scores)[whole.rows]
    rate = rate_of(whole.sample, positive, sample.thresholds, whole.counts, task.depth, task.options.select)
    return MinedFile(
        output=job.output,
        rows=rows,
        anchors=tally["anchors"],
        negatives=tally["negatives"],
        short=tally["short"],
        missing=tally["missing"],
        false_negatives=rate,
        hardness=whole.above / max(1, tally["negatives"] * len(ready.background)),
        rule=ready.threshold.rule,
        notes=sample.notes,
        dropped=whole.dropped,
        recall=task.recall,
        advice=next_step(job.output, tally, rate, depth=deeper(tally, ready.corpus.n), judged=sample.judge is not None),
    )


def _one_positive(task: Task, scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) the score of one positive of each anchor, NaN without one."""
    one = task.held_out()
    found = np.full(task.queries.n, np.nan, np.float32)
    found[task.known.pairs()[0][one]] = scores[one]
    return found


def _report(
    path: Path,
    job: JobOptions,
    record: Mapping[str, Any],
    ready: Ready,
    whole: Whole,
    sample: Mined,
    summary: MinedFile,
) -> None:
    queries, corpus, rows = ready.queries, ready.corpus, whole.rows
    sample.report(
        path,
        title=f"Negatives of {job.pairs.name}",
        numbers=as_numbers(summary),
        query_texts=None if queries.texts is None else queries.texts.gather(rows),
        corpus_texts=corpus.texts,
        query_ids=rows.astype(str).tolist() if queries.ids is None else queries.ids.gather(rows),
        corpus_ids=corpus.ids,
        provenance={
            name: str(value["sha256"]) if isinstance(value, dict) and "sha256" in value else str(value)
            for name, value in record.items()
        },
        background=ready.background,
        one_positive=_one_positive(ready.task, ready.known_scores)[rows],
        of_anchors=ready.task.queries.n,
        seed=ready.task.options.seed,
    )


def _text_bytes(ready: Ready) -> int:
    """The mean size of a document's text, or of its number."""
    return 8 if ready.corpus.texts is None else max(8, ready.corpus.texts.nbytes // max(1, ready.corpus.n))
