"""The command `naysay mine`: files in, a training file out, as a job that can be stopped at any time and resumed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from naysay._console import PLAIN, SafeConsole, progress_on
from naysay._options import check_keywords, command_fields, from_command, option_names
from naysay.checks import raise_invalid, shown, with_option_names, with_parameter
from naysay.detectors.by_reviewer import reviewer_of_text
from naysay.detectors.reviewer import People
from naysay.jobs import parts
from naysay.jobs.folder import FORMAT, JobFolder, locked, opened
from naysay.jobs.options import JobOptions, recorded
from naysay.jobs.outputs import (
    REVIEW_FILE,
    MinedFile,
    check_new_review,
    check_output,
    check_review_file,
    published,
    read_review,
    write_outputs,
)
from naysay.jobs.prepare import prepare, read_tables, version_of, with_copies
from naysay.mining.judge import is_detector
from naysay.mining.options import MiningOptions
from naysay.mining.problem import check_corpus_size
from naysay.places import Place, Remote, Url, check_apart, check_page, check_target, find, is_there, named_as

if TYPE_CHECKING:
    from naysay.jobs.on_ray import Cluster

STOPPED = "stopped. Run the same command with --resume to continue."
DEFAULT_REVIEW = 100  # answers of a reviewer
DECLARATIONS = (JobOptions, MiningOptions)


@with_option_names("mine", option_names(MiningOptions, JobOptions))
def mine_files(pairs: Path, *, console: Console | None = None, **options: Any) -> MinedFile:
    """Mine negatives for the anchors of a file of pairs, and write a training file.

    **The same bytes come out for any budget and number of threads, and after any number of kills**: a part of the
    anchors is mined at a time, and kept; `resume` continues after the last part. Files that changed meanwhile raise an
    error. Notes are printed on standard error; the summary, what to do next, and the estimate of false negatives on
    standard output.

    Args:
        pairs: .parquet, .jsonl, .csv or .tsv: an anchor and a positive in each row.
        console: Where the summary is printed. A quiet one prints nothing, and no progress.
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
    mining = _with_reviewer(mining, job)
    if is_detector(mining.judge):
        raise_invalid("judge", "text, such as 'margin:0.05'", shown(mining.judge))
    out = console or SafeConsole()
    errors = SafeConsole(stderr=True, quiet=out.quiet)
    job_path = _checked_job_path(job)
    busy = f"another job is writing {str(job.output)!r}. Wait for it, or stop it."
    output_lock = job.output if isinstance(job.output, Path) else Path(str(job.output))
    with progress_on(errors) as progress, locked(output_lock, busy):
        summary = _run(job_path, job, mining, progress)
    left = sorted(file.name for file in job_path.iterdir()) if job_path.is_dir() else []
    if left:
        errors.print(f"{job_path} is kept: it holds {left[0]!r}, which the job did not make.", **PLAIN)
    for sentence in summary.notes:
        errors.print(sentence, **PLAIN)
    out.print(str(summary), **PLAIN)
    return summary


def _with_reviewer(mining: MiningOptions, job: JobOptions) -> MiningOptions:
    """The options of mining with the reviewer of a job: people, or a model whose yes answers people can check."""
    if job.reviewer is None:
        return mining
    beside = Path(job.output.name).with_suffix("") if isinstance(job.output, Url) else job.output.with_suffix("")
    review_file = job.review_file or beside.with_name(f"{beside.name}.review.csv")
    if isinstance(review_file, Url):
        raise_invalid("review_file", "a file on this machine with `reviewer`", shown(str(review_file)))
    with with_parameter("review_file", instead_of="path"):
        people = People(review_file)
    reviewer: Any = people
    if job.reviewer != "people":
        reviewer = [reviewer_of_text("reviewer", job.reviewer), people]
    answers = job.answers or beside.with_name(f"{beside.name}.answers.jsonl")
    return replace(mining, reviewer=reviewer, review=job.review or DEFAULT_REVIEW, answers=answers)


def _run(job_path: Path, job: JobOptions, mining: MiningOptions, progress: Progress) -> MinedFile:
    """Do what is left of a job."""
    step = progress.add_task("reading", total=None)
    log = partial(progress.console.print, **PLAIN)
    with opened(job_path, resume=job.resume, fresh=job.fresh) as folder, _cluster(job, mining) as cluster:
        if job.review_path is not None:
            check_new_review(job.review_path, folder.steps.get(REVIEW_FILE))
        remotes = {option: find(option, url) for option, url in job.read_files.items() if isinstance(url, Url)}
        record = _record(folder, job, mining, remotes)
        folder.begin(record)
        local_job, names = with_copies(folder, job, remotes, log)
        with named_as(names):
            tables = read_tables(folder, local_job, keep_own_text=mining.keep_own_text)
            check_corpus_size(job.k, mining, tables.corpus.n)  # before anything is encoded or searched
            check_output(job, tables.queries, tables.corpus)
            if isinstance(local_job.reviewed, Path):
                mining = replace(mining, reviewed=read_review(local_job.reviewed, tables.queries, tables.corpus))
            progress.update(step, description="encoding" if job.model is not None else "scoring known pairs")
            ready = prepare(folder, local_job, replace(mining, device=job.device), tables, cluster)
        for option, path in (("--output", job.output), ("--report", job.report)):
            if path is not None and is_there(option, path):
                log(f"{path} is there already: it is replaced when the job is done.")
        n_anchors = ready.problem.queries.n
        progress.update(step, description="mining", total=n_anchors)
        parts.mine_parts(folder, ready, partial(progress.advance, step), at_once=1 if cluster is None else 2)
        progress.reset(step, description="writing", total=n_anchors)
        negatives = parts.negatives(folder, ready)
        with published(folder, job.targets) as drafts:
            return write_outputs(folder, ready, job, record, negatives, drafts, partial(progress.advance, step))


def _cluster(job: JobOptions, mining: MiningOptions) -> AbstractContextManager[Cluster | None]:
    """The Ray of a job; None for the local engine, which does not load it."""
    if job.engine == "local":
        return nullcontext()
    from naysay.jobs.on_ray import cluster_of

    return cluster_of(job, mining)


def _record(folder: JobFolder, job: JobOptions, mining: MiningOptions, remotes: Mapping[str, Remote]) -> dict[str, Any]:
    """Everything that decides the result: versions, options, and the contents of files."""
    contents = {
        option: folder.inputs.watch(option, path) for option, path in job.read_files.items() if isinstance(path, Path)
    }
    contents |= {option: version_of(one) for option, one in remotes.items()}
    versions = {"naysay": version("naysay"), "numpy": np.__version__, "job format": FORMAT}
    return versions | recorded(contents, job, mining)


def _checked_job_path(job: JobOptions) -> Path:
    """The folder of the job; raise if it, the output or the report cannot be where they are to be."""
    check_output(job)
    job_path = job.job if isinstance(job.job, Path) else _beside(job.output, "naysay-job")
    if job_path.name in ("", ".."):
        raise_invalid("--job", "a folder of its own", repr(str(job_path)))
    if job.report is not None:
        check_page("--report", job.report)
    if job.review_path is not None:
        check_review_file(job.review_path)
    for option, target in (("--card", job.card), ("--record", job.record)):
        if target is not None:
            check_target(option, target)
    check_apart({**job.targets, "--job": job_path}, job.read_files)
    for option, path in {**job.targets, "--encoded": job.encoded}.items():
        if isinstance(path, Path) and path.resolve().is_relative_to(job_path.resolve()):
            raise_invalid(option, "outside of the folder of the job", repr(str(path)))
    return job_path


def _beside(output: Place, ending: str) -> Path:
    """A hidden name beside the output, in the working folder if that is a URL."""
    home = output if isinstance(output, Path) else Path(output.name)
    return home.with_name(f".{home.name}.{ending}")
