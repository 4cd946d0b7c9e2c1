"""The command `naysay mine`: files in, a training file out, as a job that can be stopped at any time and resumed."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from naysay.checks import raise_invalid, shown, with_option_names
from naysay.files import check_apart, check_page
from naysay.jobs._finalize import check_output, finalize
from naysay.jobs._folder import FORMAT, begun, check_unfinished, digest, folder_of, opened
from naysay.jobs._parts import mine_parts
from naysay.jobs._prepare import check_size, prepare, read_tables
from naysay.jobs._summary import MinedFile
from naysay.jobs.options import JobOptions, recorded
from naysay.mining._threshold import is_detector
from naysay.mining.options import MiningOptions, check_keywords, command_fields, from_command, option_names

STOPPED = "stopped; run again with --resume"
DECLARATIONS = (JobOptions, MiningOptions)


@with_option_names("mine", option_names(MiningOptions, JobOptions))
def mine_files(pairs: Path, *, console: Console | None = None, **options: Any) -> MinedFile:
    """Mine negatives for the anchors of a file of pairs, and write a training file.

    **The same bytes come out for any budget and number of threads, and after any number of kills**: a part of the
    anchors is mined at a time, and kept; `resume` continues after the last part. Files that changed meanwhile raise an
    error. The rule and the notes are printed on standard error; the summary, and what to do next, on standard output.

    Args:
        pairs: .parquet, .jsonl, .csv or .tsv: an anchor and a positive in each row.
        console: Where the summary is printed.
        **options: The options of `naysay mine` with underscores, as values or as text: those of `JobOptions`, and
            those of `mine` that can be written as text.

    Returns:
        What was written.

    Raises:
        NaysayError: If an option or a file is invalid; before the search, if possible.
        TypeError: If a keyword is unknown.
    """
    check_keywords("mine_files", options, [one.name for one in command_fields(*DECLARATIONS)])
    job, mining = from_command(JobOptions, {"pairs": pairs, **options}), from_command(MiningOptions, options)
    if is_detector(mining.judge):
        raise_invalid("judge", "text, such as 'margin:0.05'", shown(mining.judge))
    out, errors = console or Console(), Console(stderr=True)
    check_output(job)
    if job.report is not None:
        check_page("--report", job.report)
    check_apart({"--output": job.output, "--report": job.report}, job.read_files)
    place = job.job if job.job is not None else folder_of(job.output)
    check_unfinished(place, resume=job.resume, fresh=job.fresh)
    with _progress(errors) as progress:
        summary = _run(place, job, mining, progress)
    for sentence in (summary.rule, *summary.notes):
        errors.print(sentence, markup=False, highlight=False, soft_wrap=True)
    out.print(str(summary), markup=False, highlight=False, soft_wrap=True)
    return summary


def _run(place: Path, job: JobOptions, mining: MiningOptions, progress: Progress) -> MinedFile:
    """Do what is left of a job."""
    step = progress.add_task("reading", total=None)
    contents = {option: digest(option, path) for option, path in job.read_files.items()}
    versions = {"naysay": version("naysay"), "numpy": np.__version__, "job format": FORMAT}
    record = versions | recorded(contents, job, mining)

    def check_inputs() -> None:
        for option, content in contents.items():
            check_size(option, job.read_files[option], content["bytes"])

    with opened(place, record, resume=job.resume, fresh=job.fresh) as folder:
        known, queries, corpus = read_tables(folder, job, same_ids=mining.same_ids)
        check_output(job, queries, corpus)
        progress.update(step, description="encoding" if job.model is not None else "scoring known pairs")
        ready = prepare(folder, job, mining, known, queries, corpus)
        begun(folder)
        progress.update(step, description="mining", total=queries.n)
        mine_parts(folder, ready, check_inputs, partial(progress.advance, step))
        progress.reset(step, description="writing", total=queries.n)
        return finalize(folder, ready, job, record, partial(progress.advance, step))


def _progress(errors: Console) -> Progress:
    """A bar with the time left, on standard error, if that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
