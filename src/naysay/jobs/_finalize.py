"""The end of a job: parts become a training file, a report, and one line of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import first_bad, raise_invalid
from naysay.jobs._files import clear_drafts, room, sync_file
from naysay.jobs._folder import refused
from naysay.jobs._prepare import Ready
from naysay.jobs._run import Whole, sampled, together
from naysay.jobs._summary import MinedFile, as_numbers, rate_of
from naysay.jobs._write import write_output
from naysay.mining._notes import notes_of
from naysay.mining._pipeline import Task
from naysay.mining.mined import Mined


def end(
    folder: Path,
    ready: Ready,
    output: Path,
    format: str,
    options: Mapping[str, Any],
    *,
    with_scores: bool,
    report: Path | None,
    title: str,
    provenance: Mapping[str, Any],
    wrote: Callable[[int], None],
) -> MinedFile:
    """Write what the parts of a job hold. Nothing in its folder is changed but by adding to it."""
    whole = together(folder, ready.task)
    for path in (output, report):
        if path is not None:
            clear_drafts(path)
    if options["short"] == "raise":
        _check_short(folder, whole)
    cells = 2 * max(1, whole.tally["negatives"])
    with room(output, lambda: cells * _text_bytes(ready)):
        rows = write_output(
            output, format, whole.ids, whole.scores, ready, options, with_scores=with_scores, wrote=wrote
        )
    sync_file(output)
    notes = (*ready.notes, *notes_of(whole.tally, ready.corpus.n, option="--depth "))
    sample = sampled(ready.task, ready.line, whole, ready.known_scores, notes)
    found = _numbers(ready, whole, sample, output, rows)
    if report is not None:
        with room(report, lambda: 1 << 24):
            _report(report, title, provenance, ready, whole, sample, found)
    return found


def _check_short(folder: Path, whole: Whole) -> None:
    """Refuse anchors with fewer negatives than a row of the file has, as --short raise asks; the parts stay."""
    found, k = np.count_nonzero(whole.ids >= 0, axis=1), whole.ids.shape[1]
    if (found < k).any():
        refused(folder)
        advice = "Run again with --short drop, which goes on from here."
        raise_invalid("--short", f"'drop' unless each anchor has {k} negatives", first_bad(found, found < k), advice)


def _numbers(ready: Ready, whole: Whole, sample: Mined, output: Path, rows: int) -> MinedFile:
    task, tally = ready.task, whole.tally
    positive = _one_positive(task, ready.known_scores)[whole.rows]
    return MinedFile(
        output=output,
        rows=rows,
        anchors=tally["anchors"],
        negatives=tally["negatives"],
        short=tally["short"],
        missing=tally["missing"],
        false_negatives=rate_of(whole.sample, positive, sample.thresholds, whole.counts, task.depth, task.select),
        hardness=whole.above / max(1, tally["negatives"] * len(ready.background)),
        rule=ready.line.rule,
        notes=sample.notes,
        dropped=whole.dropped,
        recall=task.recall,
    )


def _one_positive(task: Task, scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) the score of one positive of each anchor, NaN without one."""
    one = task.held_out()
    found = np.full(task.queries.n, np.nan, np.float32)
    found[task.known.pairs()[0][one]] = scores[one]
    return found


def _report(
    path: Path, title: str, provenance: Mapping[str, Any], ready: Ready, whole: Whole, sample: Mined, found: MinedFile
) -> None:
    queries, corpus, rows = ready.queries, ready.corpus, whole.rows
    sample.report(
        path,
        title=title,
        numbers=as_numbers(found),
        query_texts=None if queries.texts is None else queries.texts.gather(rows),
        corpus_texts=corpus.texts,
        query_ids=rows.astype(str).tolist() if queries.ids is None else queries.ids.gather(rows),
        corpus_ids=corpus.ids,
        provenance={name: _short(value) for name, value in provenance.items()},
        background=ready.background,
        one_positive=_one_positive(ready.task, ready.known_scores)[rows],
        of_anchors=ready.task.queries.n,
        seed=ready.task.seed,
    )


def _short(value: Any) -> str:
    """A setting as a report shows it; of a file its SHA-256."""
    return str(value["sha256"]) if isinstance(value, dict) and "sha256" in value else str(value)


def _text_bytes(ready: Ready) -> int:
    """The mean size of a document's text, or of its number."""
    return 8 if ready.corpus.texts is None else max(8, ready.corpus.texts.nbytes // max(1, ready.corpus.n))
