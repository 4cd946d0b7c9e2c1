"""The command `naysay mine`: files in, a training file out, as a job that can be stopped at any time and resumed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from naysay._console import PLAIN, SafeConsole, progress_on
from naysay._options import check_keywords, command_fields, from_command, option_names
from naysay._rows import offsets
from naysay.checks import first_bad, raise_invalid, shown, with_option_names
from naysay.files import digest_of
from naysay.formats import _writing as writing
from naysay.formats import runs
from naysay.formats._formats import FORMATS, format_called
from naysay.formats._labels import Labels
from naysay.formats.write_negatives import check_options
from naysay.jobs import _stores as stores
from naysay.jobs._folder import FORMAT, JobFolder, opened
from naysay.jobs._guards import disk_errors, locked
from naysay.jobs._inputs import Side
from naysay.jobs._parts import mine_parts
from naysay.jobs._plan import Plan, show_plan
from naysay.jobs._prepare import Ready, prepare, read_tables
from naysay.jobs._ray import cluster_of
from naysay.jobs._results import MinedFile, Whole, as_numbers, sampled, summarised, to_be_reviewed, together
from naysay.jobs._review import check_new_review, check_review_file, read_review, write_review
from naysay.jobs.options import JobOptions, recorded
from naysay.mining._task import check_corpus_size, pairs_of
from naysay.mining.backfill import notes_of
from naysay.mining.judge import is_detector
from naysay.mining.mined import Mined
from naysay.mining.options import MiningOptions
from naysay.places import Place, Url, check_apart, check_page, check_target, find, is_there, named_as
from naysay.positives import POSITIVE

STOPPED = "stopped. Run the same command with --resume to continue."
_REVIEW_FILE = "review file"  # the step of a job whose record is the checksum of that file
DECLARATIONS = (JobOptions, MiningOptions)
_TAG = "naysay"


@with_option_names("mine", option_names(MiningOptions, JobOptions))
def mine_files(pairs: Path, *, console: Console | None = None, **options: Any) -> MinedFile | Plan:
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
        What was written; with `dry_run`, what would be done.

    Raises:
        NaysayError: If an option or a file is invalid; before the search, if possible.
        TypeError: If a keyword is unknown.
    """
    check_keywords("mine_files", options, [one.name for one in command_fields(*DECLARATIONS)])
    job, mining = from_command(JobOptions, {"pairs": pairs, **options}), from_command(MiningOptions, options)
    if is_detector(mining.judge):
        raise_invalid("judge", "text, such as 'margin:0.05'", shown(mining.judge))
    out = console or SafeConsole()
    errors = SafeConsole(stderr=True, quiet=out.quiet)
    place = _checked_place(job)
    if job.dry_run:
        return show_plan(job, mining, partial(errors.print, **PLAIN), partial(out.print, **PLAIN))
    writing = f"another job is writing {str(job.output)!r}. Wait for it, or stop it."
    lock = _beside(job.output, "naysay-lock")
    with progress_on(errors) as progress, locked("--output", lock, writing, f"naysay job {secrets.token_hex(8)}"):
        summary = _run(place, job, mining, progress)
    left = sorted(file.name for file in place.iterdir()) if place.is_dir() else []
    if left:
        errors.print(f"{place} is kept: it holds {left[0]!r}, which the job did not make.", **PLAIN)
    for sentence in summary.notes:
        errors.print(sentence, **PLAIN)
    out.print(str(summary), **PLAIN)
    return summary


def _run(place: Path, job: JobOptions, mining: MiningOptions, progress: Progress) -> MinedFile:
    """Do what is left of a job."""
    step, log = progress.add_task("reading", total=None), partial(progress.console.print, **PLAIN)
    with cluster_of(job, mining, log) as cluster, opened(place, resume=job.resume, fresh=job.fresh) as folder:
        if job.review_path is not None:
            check_new_review(job.review_path, folder.done.get(_REVIEW_FILE))
        remote = {option: find(option, url) for option, url in job.read_files.items() if isinstance(url, Url)}
        here = {option: path for option, path in job.read_files.items() if isinstance(path, Path)}
        contents = {option: folder.inputs.watch(option, path) for option, path in here.items()}
        contents |= {option: stores.recorded(one) for option, one in remote.items()}
        versions = {"naysay": version("naysay"), "numpy": np.__version__, "job format": FORMAT}
        record = versions | recorded(contents, job, mining)
        folder.begin(record, resume=job.resume)
        inputs, names = stores.with_copies(folder, job, remote, log)
        with named_as(names):
            tables = read_tables(folder, inputs, keep_own_text=mining.keep_own_text)
            queries = tables.queries
            check_corpus_size(job.k, mining, tables.corpus.n)  # before anything is encoded or searched
            _check_output(job, queries, tables.corpus)
            if isinstance(inputs.reviewed, Path):
                mining = replace(mining, reviewed=read_review(inputs.reviewed, queries, tables.corpus))
            progress.update(step, description="encoding" if job.model is not None else "scoring known pairs")
            ready = prepare(folder, inputs, replace(mining, device=job.device), tables, cluster)
        for option, path in (("--output", job.output), ("--report", job.report)):
            if path is not None and is_there(option, path):
                log(f"{path} is there already: it is replaced when the job is done.")
        progress.update(step, description="mining", total=queries.n)
        mine_parts(folder, ready, partial(progress.advance, step))
        progress.reset(step, description="writing", total=queries.n)
        with stores.published(folder, job) as drafts:
            return _finalize(folder, ready, job, record, drafts, partial(progress.advance, step))


def _checked_place(job: JobOptions) -> Path:
    """The folder of the job; raise if it, the output or the report cannot be where they are to be."""
    _check_output(job)
    place = job.job if isinstance(job.job, Path) else _beside(job.output, "naysay-job")
    if place.name in ("", ".."):
        raise_invalid("--job", "a folder of its own", repr(str(place)))
    if job.report is not None:
        check_page("--report", job.report)
    if job.review_path is not None:
        check_review_file(job.review_path)
    written = {"--output": job.output, "--report": job.report, "--review-file": job.review_path}
    check_apart({**written, "--job": place}, job.read_files)
    for option, path in {**written, "--encoded": job.encoded}.items():
        if isinstance(path, Path) and path.resolve().is_relative_to(place.resolve()):
            raise_invalid(option, "outside of the folder of the job", repr(str(path)))
    return place


def _beside(output: Place, ending: str) -> Path:
    """A hidden name beside the output, in the working folder if that is a URL."""
    home = output if isinstance(output, Path) else Path(output.name)
    return home.with_name(f".{home.name}.{ending}")


def _check_output(job: JobOptions, queries: Side | None = None, corpus: Side | None = None) -> None:
    """Raise if the output could not be written at the end; once queries and documents are read, of these."""
    name, suffix = format_called(job.format, "trec"), job.output.suffix.lower()
    with with_option_names("mine", {"path": "--output"}):
        if isinstance(job.output, Path):
            writing.check_place(job.output)
        elif suffix == ".hf":
            raise_invalid("path", "a file, not a data set of several files, where it is a URL", repr(str(job.output)))
        else:
            check_target("path", job.output)
    check_options(name, job.short, job.corpus_path, job.tag, titles=False)
    if name == "trec":
        runs.check_fields("--tag", [[job.tag or _TAG]])
    else:
        chosen = FORMATS[name]
        if suffix not in chosen.suffixes:
            rule = f"a file that ends in {' or '.join(chosen.suffixes)} for the format {name!r}"
            raise_invalid("--output", rule, repr(str(job.output)))
        if suffix == ".hf":
            writing.need_datasets()
        if job.with_scores and chosen.scores == "none":
            raise_invalid("--with-scores", f"left out for the format {name!r}, which has no place for scores", "it")
    for side, option, given in (("query", "--queries", queries), ("corpus", "--corpus", corpus)):
        if given is None:
            continue
        if name != "trec" and side in FORMATS[name].texts and given.texts is None:
            advice = f"Pass {option} with a column of texts, or --format ids, which holds row numbers and ids."
            raise_invalid(option, f"a file with texts for the format {name!r}", "none", advice)
        if name == "trec" and given.ids is not None:
            runs.check_fields(option, given.ids.blocks())
        for part, row in given.broken.items():
            raise_invalid(option, f"a file with {part} that are valid UTF-8", f"row {row}")


def _finalize(
    folder: JobFolder,
    ready: Ready,
    job: JobOptions,
    record: Mapping[str, Any],
    drafts: Mapping[str, Path],
    on_progress: Callable[[int], None],
) -> MinedFile:
    """Write drafts of the training file, of the pairs to review and of the report from the parts of a job."""
    whole = together(folder, ready.task)
    if job.short == "raise":
        _check_short(folder, whole)
    texts = ready.corpus.texts
    cell = 8 if texts is None else max(8, texts.nbytes // max(1, len(texts)))  # the mean size of a text, or a number
    needed = 2 * max(1, whole.tally["negatives"]) * cell
    places = {part: stores.on_disk(target, drafts[part]) for part, target in stores.targets_of(job).items()}
    with with_option_names("mine", {"path": "--output"}), disk_errors(places["output"], lambda: needed):
        rows = _write(drafts["output"], job, whole, ready, on_progress)
    notes = (*ready.notes, *notes_of(whole.tally, ready.corpus.n, option="--depth "))
    sample = sampled(ready, whole, notes)
    summary = summarised(ready, whole, sample, job.output, rows)
    review, report = job.review_path, job.report
    if review is not None:
        check_new_review(review, folder.done.get(_REVIEW_FILE))
        with disk_errors(places["review"], lambda: 1 << 24):
            write_review(drafts["review"], folder.done["review"], ready.queries, ready.corpus)
        folder.finish(_REVIEW_FILE, digest_of(drafts["review"]))
        summary = to_be_reviewed(summary, review, len(folder.done["review"]["anchors"]))
    if report is not None:
        with with_option_names("mine", {"path": "--report"}), disk_errors(places["report"], lambda: 1 << 24):
            _report(drafts["report"], job, record, ready, whole, sample, summary)
    return summary


def _write(output: Path, job: JobOptions, whole: Whole, ready: Ready, on_progress: Callable[[int], None]) -> int:
    """Write the negatives, a block at a time; return the number of rows of the file."""
    name = format_called(job.format, "trec")
    by_text = name == "ids"  # rows that the pairs name have no other id
    corpus_name = "" if job.corpus_path is None else Path(job.corpus_path).name
    queries = _labels("query", ready.queries, "", by_text=by_text)
    sides = queries, _labels("corpus", ready.corpus, corpus_name, by_text=by_text)
    if name == "trec":
        return runs.write_lines(output, whole.ids, whole.scores, *sides, job.tag or _TAG)
    known = ready.task.known
    starts, items = offsets(known.count()), pairs_of(known, POSITIVE)[1]
    beside = ready.known_scores[ready.task.kinds["positive"]] if job.with_scores else None
    scores = whole.scores if job.with_scores else None
    contents = writing.Contents(whole.ids, scores, starts, items, beside, *sides)
    return writing.write_contents(output, FORMATS[name], contents, job.corpus_path, on_progress)


def _labels(side: str, given: Side, name: str, *, by_text: bool) -> Labels:
    """The ids and texts of a side, gathered from disk. `by_text`: whether rows that the pairs name are called so."""
    ids = given.texts if given.named and by_text else given.ids
    return Labels(
        side,
        given.n,
        ids=None if ids is None else ids.gather,
        texts=None if given.texts is None else given.texts.gather,
        name=name,
    )


def _check_short(folder: JobFolder, whole: Whole) -> None:
    """Raise if an anchor has fewer negatives than a row of the file, as --short raise asks; the parts are kept."""
    negatives, k = np.count_nonzero(whole.ids >= 0, axis=1), whole.ids.shape[1]
    if (negatives < k).any():
        folder.stop()
        advice = "Run again with --short drop, which continues from here."
        got = first_bad(negatives, negatives < k)
        raise_invalid("--short", f"'drop' unless each anchor has {k} negatives", got, advice)


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
        command="naysay mine ... --false-share TARGET",
        of_anchors=ready.task.queries.n,
        seed=ready.task.options.seed,
    )
