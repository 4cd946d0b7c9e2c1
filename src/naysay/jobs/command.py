"""The command `naysay mine`: files in, a training file out, as a job that can be stopped at any time and resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from naysay._console import PLAIN, SafeConsole, progress_on
from naysay._options import check_keywords, command_fields, from_command, option_names
from naysay._rows import offsets
from naysay.checks import first_bad, raise_invalid, shown, with_option_names, with_parameter
from naysay.detectors.asking import review_notes
from naysay.detectors.by_reviewer import reviewer_of_text
from naysay.detectors.reviewer import People
from naysay.files import digest_of
from naysay.formats import _writing as writing
from naysay.formats import runs
from naysay.formats._contents import Labels
from naysay.formats._formats import FORMATS, format_called
from naysay.formats.write_negatives import check_options
from naysay.jobs import parts, stores
from naysay.jobs.folder import FORMAT, JobFolder, opened
from naysay.jobs.guards import disk_errors, locked
from naysay.jobs.on_ray import cluster_of
from naysay.jobs.options import JobOptions, recorded
from naysay.jobs.parts import JobNegatives
from naysay.jobs.prepare import Ready, prepare, read_tables
from naysay.jobs.results import MinedFile, as_numbers, sampled_mined, summarised, to_be_reviewed
from naysay.jobs.review import check_new_review, check_review_file, read_review, write_review
from naysay.jobs.tables import Side
from naysay.mining.judge import is_detector
from naysay.mining.mined import Mined, own_text_note
from naysay.mining.options import MiningOptions
from naysay.mining.problem import check_corpus_size
from naysay.mining.review import drawn_pairs
from naysay.mining.reviewing import positives_to_write
from naysay.mining.take import notes_of
from naysay.places import (
    Place,
    Remote,
    Url,
    check_apart,
    check_page,
    check_target,
    find,
    is_there,
    named_as,
)
from naysay.positives import POSITIVE

STOPPED = "stopped. Run the same command with --resume to continue."
DEFAULT_REVIEW = 100  # answers of a reviewer
_REVIEW_FILE = "review file"  # the step of a job whose record is the checksum of that file
DECLARATIONS = (JobOptions, MiningOptions)
_TAG = "naysay"


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
    place = _checked_place(job)
    busy = f"another job is writing {str(job.output)!r}. Wait for it, or stop it."
    output_lock = job.output if isinstance(job.output, Path) else Path(str(job.output))
    with progress_on(errors) as progress, locked(output_lock, busy):
        summary = _run(place, job, mining, progress)
    left = sorted(file.name for file in place.iterdir()) if place.is_dir() else []
    if left:
        errors.print(f"{place} is kept: it holds {left[0]!r}, which the job did not make.", **PLAIN)
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


def _run(place: Path, job: JobOptions, mining: MiningOptions, progress: Progress) -> MinedFile:
    """Do what is left of a job."""
    step = progress.add_task("reading", total=None)
    log = partial(progress.console.print, **PLAIN)
    with opened(place, resume=job.resume, fresh=job.fresh) as folder, cluster_of(job, mining) as cluster:
        if job.review_path is not None:
            check_new_review(job.review_path, folder.steps.get(_REVIEW_FILE))
        remotes = {option: find(option, url) for option, url in job.read_files.items() if isinstance(url, Url)}
        record = _record(folder, job, mining, remotes)
        folder.begin(record)
        local_job, names = stores.with_copies(folder, job, remotes, log)
        with named_as(names):
            tables = read_tables(folder, local_job, keep_own_text=mining.keep_own_text)
            check_corpus_size(job.k, mining, tables.corpus.n)  # before anything is encoded or searched
            _check_output(job, tables.queries, tables.corpus)
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
        with stores.published(folder, job) as drafts:
            return _finalize(folder, ready, job, record, drafts, partial(progress.advance, step))


def _record(folder: JobFolder, job: JobOptions, mining: MiningOptions, remotes: Mapping[str, Remote]) -> dict[str, Any]:
    """Everything that decides the result: versions, options, and the contents of files."""
    contents = {
        option: folder.inputs.watch(option, path) for option, path in job.read_files.items() if isinstance(path, Path)
    }
    contents |= {option: stores.version_of(one) for option, one in remotes.items()}
    versions = {"naysay": version("naysay"), "numpy": np.__version__, "job format": FORMAT}
    return versions | recorded(contents, job, mining)


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
            runs.check_fields(option, (chunk.to_pylist() for chunk in given.ids.chunks()))


def _finalize(
    folder: JobFolder,
    ready: Ready,
    job: JobOptions,
    record: Mapping[str, Any],
    drafts: Mapping[str, Path],
    on_progress: Callable[[int], None],
) -> MinedFile:
    """Write drafts of the training file, of the pairs to review and of the report from the parts of a job."""
    negatives = parts.negatives(folder, ready)
    if job.short == "raise":
        _check_short(negatives)
    on_disk = {part: stores.on_disk(target, drafts[part]) for part, target in stores.targets_of(job).items()}
    n_bytes = _output_bytes(negatives, ready.tables.corpus)
    with with_option_names("mine", {"path": "--output"}), disk_errors(on_disk["output"], lambda: n_bytes):
        rows = _write(drafts["output"], job, negatives, ready, on_progress)
    notes = _notes(ready, negatives)
    sample = sampled_mined(ready, negatives)
    summary = summarised(ready, negatives, sample, job.output, rows, notes)
    if job.review_path is not None:
        with disk_errors(on_disk["review"]):
            count = _write_review(folder, ready, job, drafts["review"])
        summary = to_be_reviewed(summary, job.review_path, count)
    if job.report is not None:
        with with_option_names("mine", {"path": "--report"}), disk_errors(on_disk["report"]):
            _report(drafts["report"], job, record, ready, sample, negatives.sampled, summary)
    return summary


def _output_bytes(negatives: JobNegatives, corpus: Side) -> int:
    """About how large a training file is: two texts, or ids, for each negative."""
    text_bytes = 8 if corpus.texts is None else max(8, corpus.texts.nbytes // max(1, len(corpus.texts)))
    return 2 * max(1, negatives.tally["negatives"]) * text_bytes


def _notes(ready: Ready, negatives: JobNegatives) -> tuple[str, ...]:
    """A sentence for each thing to know about the result."""
    problem = ready.problem
    notes = own_text_note(negatives.own_text, "--keep-own-text", "text or vector")
    notes += (problem.search_note,) if problem.search_note else ()
    if problem.options.reviewer is not None:
        notes += review_notes(problem.reviewers, "mine again")
    return (*notes, *notes_of(negatives.tally, problem.n_items, option="--depth "))


def _write(
    output: Path, job: JobOptions, negatives: JobNegatives, ready: Ready, on_progress: Callable[[int], None]
) -> int:
    """Write the negatives, a block at a time; return the number of rows of the file."""
    name = format_called(job.format, "trec")
    by_text = name == "ids"  # rows that the pairs name have no other id
    corpus_name = "" if job.corpus_path is None else Path(job.corpus_path).name
    queries = _labels(ready.tables.queries, "", by_text=by_text)
    corpus = _labels(ready.tables.corpus, corpus_name, by_text=by_text)
    if name == "trec":
        n_lines = runs.write_lines(output, negatives.ids, negatives.scores, queries, corpus, job.tag or _TAG)
        on_progress(len(negatives.ids))
        return n_lines
    known, known_scores = ready.problem.known, ready.problem.known_scores
    if ready.problem.options.false_negatives == "positive":
        known, known_scores = positives_to_write(ready.problem, ready.judge)
    is_positive = np.ones(len(known_scores), np.bool_) if known.relation is None else known.relation == POSITIVE
    contents = writing.Contents(
        negatives.ids,
        negatives.scores if job.with_scores else None,
        offsets(known.count()),
        known.pairs()[1][is_positive],
        known_scores[is_positive] if job.with_scores else None,
        queries,
        corpus,
    )
    return writing.write_contents(output, FORMATS[name], contents, job.corpus_path, on_progress)


def _write_review(folder: JobFolder, ready: Ready, job: JobOptions, draft: Path) -> int:
    """Write the pairs to review; return how many there are."""
    fitted, problem = ready.fitted, ready.problem
    if job.review is None or job.review_path is None:
        return 0
    check_new_review(job.review_path, folder.steps.get(_REVIEW_FILE))
    counts = problem.counts_of(fitted.lists.anchors)
    pairs = drawn_pairs(fitted, counts, job.review, problem.reviewed)
    write_review(draft, pairs, ready.tables.queries, ready.tables.corpus)
    folder.finish(_REVIEW_FILE, digest_of(draft))
    return len(pairs.anchors)


def _labels(given: Side, name: str, *, by_text: bool) -> Labels:
    """The ids and texts of a side, gathered from disk. `by_text`: whether rows that the pairs name are called so."""
    ids = given.texts if given.named and by_text else given.ids
    texts_of = None if given.texts is None else given.texts.gather
    return Labels(given.n, None if ids is None else ids.gather, texts_of, name=name)


def _check_short(negatives: JobNegatives) -> None:
    """Raise if an anchor has fewer negatives than a row of the file, as --short raise asks; the parts are kept."""
    n_negatives = np.count_nonzero(negatives.ids >= 0, axis=1)
    k = negatives.ids.shape[1]
    if (n_negatives < k).any():
        advice = "Run again with --resume --short drop, which continues from here."
        got = first_bad(n_negatives, n_negatives < k)
        raise_invalid("--short", f"'drop' unless each anchor has {k} negatives", got, advice)


def _report(
    path: Path,
    job: JobOptions,
    record: Mapping[str, Any],
    ready: Ready,
    sample: Mined,
    rows: NDArray[np.int64],
    summary: MinedFile,
) -> None:
    """Write the report; `rows` are the anchors of the sample."""
    queries, corpus = ready.tables.queries, ready.tables.corpus
    digests = {
        name: str(value["sha256"]) if isinstance(value, dict) and "sha256" in value else str(value)
        for name, value in record.items()
    }
    sample.report(
        path,
        title=f"Negatives of {job.pairs.name}",
        numbers=as_numbers(summary),
        query_texts=None if queries.texts is None else queries.texts.gather(rows),
        corpus_texts=corpus.texts,
        query_ids=rows.astype(str).tolist() if queries.ids is None else queries.ids.gather(rows),
        corpus_ids=corpus.ids,
        provenance=digests,
        notes=summary.notes,
        command="naysay mine ... --false-share TARGET",
        seed=ready.problem.options.seed,
    )
