"""What a job writes: the training file, the pairs to review, the positives that were found, the report, the summary.

Each is made as a draft, and published once all of them are made. A file in a store is made in the folder of the job,
and uploaded from there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from naysay._packages import need_datasets
from naysay._rows import offsets
from naysay.checks import first_bad, raise_invalid, shown, with_option_names, with_parameter
from naysay.detectors.asking import review_notes
from naysay.detectors.posterior import Posterior
from naysay.detectors.rate import RateEstimate
from naysay.detectors.reviewer import ENDINGS, FALSE_NEGATIVE, Pairs, read_review_file, write_review_file
from naysay.errors import NaysayError
from naysay.files import digest_of, is_draft, sync
from naysay.formats import runs
from naysay.formats._contents import Labels
from naysay.formats._formats import FORMATS, format_called
from naysay.formats.write_negatives import Contents, check_options, check_place, json_line, write_contents
from naysay.jobs.card import card_text, is_file
from naysay.jobs.config import config_text, options_used
from naysay.jobs.folder import OUTPUTS, JobFolder, KeptJobError, disk_errors
from naysay.jobs.options import JobOptions
from naysay.jobs.parts import JobNegatives
from naysay.jobs.prepare import Ready
from naysay.jobs.tables import STRING, Side, first_rows
from naysay.mining.estimate import SetEstimate, stated, trade_of_set
from naysay.mining.mine import Mined, own_text_note
from naysay.mining.problem import is_auto
from naysay.mining.review import drawn_pairs
from naysay.mining.reviewing import found_positives, positives_to_write
from naysay.mining.take import deeper, notes_of
from naysay.places import Place, Url, check_target, is_there, local, upload
from naysay.positives import POSITIVE

Ids = NDArray[np.int64]
REVIEW_FILE = "review file"  # the step of a job whose record is the checksum of that file
_TAG = "naysay"
_HIGH_RATE = 0.05  # a false-negative rate to look into before training
_CLEARLY_ABOVE = 1.2  # times that rate
_UNSURE = 0.25  # an upper limit of the rate above which more labels are needed to know


# ---- checks before work starts --------------------------------------------------------------------------------------


def check_output(job: JobOptions, queries: Side | None = None, corpus: Side | None = None) -> None:
    """Raise if the output could not be written at the end; once queries and documents are read, of these."""
    name, suffix = format_called(job.format, "trec"), job.output.suffix.lower()
    with with_parameter("--output", instead_of="path"):
        if isinstance(job.output, Path):
            check_place(job.output)
        elif suffix == ".hf":
            raise_invalid("path", "a file, not a data set of several files, where it is a URL", repr(str(job.output)))
        else:
            check_target("path", job.output)
        check_options(name, job.output, job.short, job.corpus_path, job.tag, with_scores=job.with_scores)
    if name == "trec":
        runs.check_fields("--tag", [[job.tag or _TAG]])
    elif suffix == ".hf":
        need_datasets()
    for side, option, given in (("query", "--queries", queries), ("corpus", "--corpus", corpus)):
        if given is None:
            continue
        if name != "trec" and side in FORMATS[name].texts and given.texts is None:
            advice = f"Pass {option} with a column of texts, or --format ids, which holds row numbers and ids."
            raise_invalid(option, f"a file with texts for the format {name!r}", "none", advice)
        if name == "trec" and given.ids is not None:
            runs.check_fields(option, (chunk.to_pylist() for chunk in given.ids.column.chunks))


def check_review_file(path: Place) -> None:
    """Raise if pairs to review cannot be written there."""
    if path.suffix.lower() not in ENDINGS:
        raise_invalid("--review-file", f"a file that ends in {', '.join(ENDINGS[:-1])} or .parquet", repr(str(path)))
    check_target("--review-file", path)


def check_new_review(path: Place, written: str | None) -> None:
    """Raise if there is a file, which a person may have filled in.

    The file that this job wrote before it was killed is accepted: it has the checksum `written`.
    """
    if not is_there("--review-file", path):
        return
    if written is not None:
        with local("--review-file", path) as copy:
            if digest_of(copy) == written:
                return
    advice = "Move it away, or pass another --review-file."
    raise_invalid("--review-file", "a new file, since a filled one would be lost", repr(str(path)), advice)


# ---- drafts ---------------------------------------------------------------------------------------------------------


@contextmanager
def published(folder: JobFolder, targets: Mapping[str, Place]) -> Iterator[dict[str, Path]]:
    """Give names for drafts of {option: target}, which carry the id of the job; publish them at the end.

    A draft that was not made is not published, and none is if an input changed.
    """
    drafts = {option: _draft(folder, option, target) for option, target in targets.items()}
    output = targets["--output"]
    old = drafts["--output"].with_name(f".naysay-{folder.id}.old")
    _clear(*drafts.values())
    try:
        yield drafts
        folder.inputs.check()
        for option, target in targets.items():
            draft = drafts[option]
            if not draft.exists():
                continue
            if isinstance(target, Url):
                _upload(option, draft, target)
                continue
            with disk_errors(target):
                sync(draft)
                if target.is_dir():  # a data set, which cannot be replaced in one step
                    os.replace(target, old)
                os.replace(draft, target)
                sync(target.parent)
    finally:
        if old.exists() and isinstance(output, Path) and not output.exists():
            os.replace(old, output)
        _clear(*drafts.values(), old)


def _draft(folder: JobFolder, option: str, target: Place) -> Path:
    """Where a file is made before it is published: beside its target, or in the folder of the job if that is a URL."""
    name = option.strip("-")
    if isinstance(target, Path):
        of_output = "" if option in ("--output", "--report") else f"-{name}"  # others may have the ending of the output
        return target.with_name(f".naysay-{folder.id}{of_output}{target.suffix}")
    place = folder.path / OUTPUTS
    place.mkdir(exist_ok=True)
    return place / f"{name}-000000{target.suffix}"


def _clear(*drafts: Path) -> None:
    """Remove drafts of the job, and the drafts that their writers left."""
    for draft in drafts:
        shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)
        for left in draft.parent.iterdir():
            if is_draft(left) and left.name.startswith(f".{draft.name}."):
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)


def _upload(option: str, draft: Path, url: Url) -> None:
    """Upload a file of the job. If that fails, the job is kept, and --resume uploads again."""
    try:
        upload(option, draft, url)
    except NaysayError as error:
        message = f"{error.args[0]} Nothing is lost: run again with --resume."
    else:
        return
    raise KeptJobError(message)


# ---- files ----------------------------------------------------------------------------------------------------------


def write_outputs(
    folder: JobFolder,
    ready: Ready,
    job: JobOptions,
    record: Mapping[str, Any],
    negatives: JobNegatives,
    drafts: Mapping[str, Path],
    on_progress: Callable[[int], None],
) -> MinedFile:
    """Write drafts of the training file, of the pairs to review and of the report from the parts of a job."""
    if job.short == "raise":
        _check_short(negatives)
    targets = job.targets
    on_disk = {option: path if isinstance(path, Path) else drafts[option] for option, path in targets.items()}
    n_bytes = _output_bytes(negatives, ready.tables.corpus)
    with with_option_names("mine", {"path": "--output"}), disk_errors(on_disk["--output"], lambda: n_bytes):
        rows = write_training_file(drafts["--output"], job, negatives, ready, on_progress)
    if "--found-file" in targets and ready.problem.options.false_negatives == "positive":
        with disk_errors(on_disk["--found-file"]):
            _write_found(drafts["--found-file"], ready)
    sample = Mined(
        ready.problem,
        ready.judge,
        negatives.sample,
        negatives.sampled_counts,
        anchors=negatives.sampled,
        whole=(negatives.ids, negatives.scores),  # the rule and the estimate are those of all negatives
    )
    summary = _summarised(ready, negatives, sample, job.output, rows)
    if job.review_path is not None and job.review is not None:
        check_new_review(job.review_path, folder.steps.get(REVIEW_FILE))
        with disk_errors(on_disk["--review-file"]):
            n_pairs = _write_review(drafts["--review-file"], ready, job.review)
            folder.finish(REVIEW_FILE, digest_of(drafts["--review-file"]))
        advice = (
            f"Next: write yes (a false negative) or no in the column false_negative of {job.review_path}, for some or "
            f"all of its {n_pairs:,} pairs from the first on; then mine again with --reviewed {job.review_path}."
        )
        summary = replace(summary, advice=advice, review=job.review_path)
    if job.report is not None:
        with with_option_names("mine", {"path": "--report"}), disk_errors(on_disk["--report"]):
            _report(drafts["--report"], job, record, ready, sample, negatives.sampled, summary)
    if job.card is not None or job.record is not None:
        digest = "" if drafts["--output"].is_dir() else digest_of(drafts["--output"])
        _write_descriptions(job, ready, record, summary, digest, drafts)
    return summary


def _write_descriptions(
    job: JobOptions,
    ready: Ready,
    record: Mapping[str, Any],
    summary: MinedFile,
    digest: str,
    drafts: Mapping[str, Path],
) -> None:
    """Write the dataset card and the record; `digest` is the checksum of the training file, empty for a folder."""
    if job.card is not None:
        text = card_text(summary, format_called(job.format, "trec"), job.card, digest, record)
        with disk_errors(drafts["--card"]):
            drafts["--card"].write_text(text, encoding="utf-8")
    if job.record is not None:
        files = {name.lstrip("-"): str(value["sha256"]) for name, value in record.items() if is_file(value)}
        versions = {name: str(record[name]) for name in ("naysay", "numpy")}
        made = versions | files | ({"output": digest} if digest else {})
        with disk_errors(drafts["--record"]):
            text = config_text(options_used(job, ready.problem.options), made)
            drafts["--record"].write_text(text, encoding="utf-8")


def _check_short(negatives: JobNegatives) -> None:
    """Raise if an anchor has fewer negatives than a row of the file, as --short raise asks; the parts are kept."""
    n_negatives = np.count_nonzero(negatives.ids >= 0, axis=1)
    k = negatives.ids.shape[1]
    if (n_negatives < k).any():
        advice = "Run again with --resume --short drop, which continues from here."
        got = first_bad(n_negatives, n_negatives < k)
        raise_invalid("--short", f"'drop' unless each anchor has {k} negatives", got, advice)


def _output_bytes(negatives: JobNegatives, corpus: Side) -> int:
    """About how large a training file is: two texts, or ids, for each negative."""
    text_bytes = 8 if corpus.texts is None else max(8, corpus.texts.column.nbytes // max(1, len(corpus.texts)))
    return 2 * max(1, negatives.tally["negatives"]) * text_bytes


def write_training_file(
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
    contents = Contents(
        negatives.ids,
        negatives.scores if job.with_scores else None,
        offsets(known.count()),
        known.pairs()[1][is_positive],
        known_scores[is_positive] if job.with_scores else None,
        queries,
        corpus,
    )
    return write_contents(output, FORMATS[name], contents, job.corpus_path, on_progress)


def _labels(given: Side, name: str, *, by_text: bool) -> Labels:
    """The ids and texts of a side, gathered from disk. `by_text`: whether rows that the pairs name are called so."""
    ids = given.texts if given.named and by_text else given.ids
    texts_of = None if given.texts is None else given.texts.gather
    return Labels(given.n, None if ids is None else ids.gather, texts_of, name=name)


def _write_found(draft: Path, ready: Ready) -> None:
    """Write the positives that a reviewer found, which the training file holds beside labelled ones; or nothing."""
    anchors, items = found_positives(ready.judge)
    if not len(anchors):
        return
    columns = {}
    sides = (("anchor", ready.tables.queries, anchors), ("positive", ready.tables.corpus, items))
    for name, side, rows in sides:
        labels = side.ids or side.texts
        columns[name] = rows.tolist() if labels is None else labels.gather(rows)
    columns["score"] = np.round(ready.problem.score(anchors, items).astype(np.float64), 6).tolist()
    lines = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    draft.write_bytes(b"".join(json_line(line) + b"\n" for line in lines))


def _write_review(draft: Path, ready: Ready, count: int) -> int:
    """Write the pairs to review with their texts, and an empty column for the answers; return how many there are."""
    problem, fitted = ready.problem, ready.fitted
    pairs = drawn_pairs(fitted, problem.counts_of(fitted.lists.anchors), count, problem.reviewed)
    sides = ((ready.tables.queries, pairs.anchors), (ready.tables.corpus, pairs.items))
    texts = [None if side.texts is None else side.texts.gather(rows) for side, rows in sides]
    ids = [None if side.ids is None else side.ids.gather(rows) for side, rows in sides]
    asked = Pairs(pairs.anchors, pairs.items, texts[0], texts[1], query_ids=ids[0], document_ids=ids[1])
    write_review_file("--review-file", draft, [asked], pairs.scores, pairs.posterior)
    return len(pairs.anchors)


def read_review(path: Path, queries: Side, corpus: Side) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """(anchors, documents, whether they are false negatives) of the rows of a file that have an answer."""
    option = "--reviewed"
    answers = read_review_file(option, path)
    if not answers:
        rule = f"a file with yes or no in {FALSE_NEGATIVE!r}"
        raise_invalid(option, rule, f"{path.name!r}, in which all rows are blank")
    sides = []
    whats = ("query_id that are among the {:,} anchors", "document_id that are among the {:,} documents")
    truth, numbers = zip(*answers.values(), strict=True)
    for names, side, what in zip(zip(*answers, strict=True), (queries, corpus), whats, strict=True):
        rows = _rows_of(list(names), side)
        if (rows < 0).any():
            place = int((rows < 0).argmax())
            got = f"{shown(names[place])} at row {numbers[place]} of {path.name!r}"
            raise_invalid(option, f"a file with {what.format(side.n)}", got)
        sides.append(rows)
    return sides[0], sides[1], np.array(truth)


def _rows_of(names: list[str], side: Side) -> Ids:
    """The rows with these ids, or these row numbers where a side has no ids; -1 for others."""
    if side.ids is None:
        whole = [int(name) if name.isdecimal() and len(name) < 19 else -1 for name in names]
        return np.array([row if row < side.n else -1 for row in whole], np.int64)
    encoded = pa.array(names, STRING).dictionary_encode()
    rows: Ids = first_rows(encoded.dictionary, side.ids)[np.asarray(encoded.indices)]
    return rows


def _report(
    path: Path, job: JobOptions, record: Mapping[str, Any], ready: Ready, sample: Mined, rows: Ids, summary: MinedFile
) -> None:
    """Write the report; `rows` are the anchors of the sample."""
    queries, corpus = ready.tables.queries, ready.tables.corpus
    digests = {
        name: str(value["sha256"]) if isinstance(value, dict) and "sha256" in value else str(value)
        for name, value in record.items()
    }
    share = summary.false_negatives
    numbers = {
        "anchors": f"{summary.anchors:,}",
        "k": f"{summary.k}",
        "negatives": f"{summary.negatives:,}",
        "estimated false negatives": share if isinstance(share, str) else stated(share),
        "hardness": f"{summary.hardness:.3f}",
        "short anchors": f"{summary.short:,}",
        "rows written": f"{summary.rows:,}",
    }
    sample.report(
        path,
        title=f"Negatives of {job.pairs.name}",
        numbers=numbers,
        query_texts=None if queries.texts is None else queries.texts.gather(rows),
        corpus_texts=corpus.texts,
        query_ids=rows.astype(str).tolist() if queries.ids is None else queries.ids.gather(rows),
        corpus_ids=corpus.ids,
        provenance=digests,
        notes=summary.notes,
        command="naysay mine ... --false-share TARGET",
        seed=ready.problem.options.seed,
    )


# ---- the summary ----------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class MinedFile:
    """What a job wrote. str() is three lines: what it did, what to do next, and what is known of false negatives.

    Args:
        output: The file.
        rows: Its rows.
        anchors: How many anchors.
        k: Negatives for each anchor, or "auto".
        negatives: How many negatives.
        short: How many anchors have fewer than k negatives.
        missing: How many negatives they lack in all.
        false_negatives: The estimated false-negative rate with its interval, or why there is none.
        hardness: The mean over all negatives of the share of random pairs that score below it: 0.5 for random
            negatives, 1 for negatives that score above every random pair.
        rule: The judge, in a sentence.
        notes: What else to know.
        dropped: {reason: number of candidates}.
        recall: The recall of the index, None if the search was exact.
        advice: What to do next, in a sentence.
        trade: The estimate of false negatives before and after the judge, what the judge cost, and what it rests on.
        review: The file of pairs to review, or None.
        own_text: How many anchors have their own text or vector in the corpus under another id, which is left out.
    """

    output: Place
    rows: int
    anchors: int
    k: int | str
    negatives: int
    short: int
    missing: int
    false_negatives: RateEstimate | str
    hardness: float
    rule: str
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    recall: float | None = None
    advice: str = ""
    trade: str = ""
    review: Place | None = None
    own_text: int = 0

    def __str__(self) -> str:
        """One line each, as far as there is something to say."""
        rate = self.false_negatives
        if isinstance(rate, RateEstimate):
            rate = stated(rate)
        hardness = f"hardness {self.hardness:.3f}" if self.negatives else "no hardness"
        short = f"{self.short:,} anchors short by {self.missing:,}" if self.short else "no anchor short"
        recall = "" if self.recall is None else f", recall {self.recall:.3f}"
        counts = f"{self.anchors:,} anchors, k = {self.k}, {self.negatives:,} negatives, false negatives {rate}"
        own = f", own text of {self.own_text:,} anchors left out" if self.own_text else ""
        line = f"{self.output}: {counts}, {hardness}, {short}{own}{recall}"
        return "\n".join(part for part in (line, self.advice, self.trade) if part)


def _summarised(ready: Ready, negatives: JobNegatives, sample: Mined, output: Place, rows: int) -> MinedFile:
    """The summary of a training file with so many rows."""
    problem, tally, estimate = ready.problem, negatives.tally, sample.estimate
    notes = own_text_note(negatives.own_text, "--keep-own-text", "text or vector")
    notes += (problem.search_note,) if problem.search_note else ()
    if problem.options.reviewer is not None:
        notes += review_notes(problem.reviewers, "mine again")
    notes += notes_of(tally, problem.n_items, option="--depth ")
    rate: RateEstimate | str = f"unknown ({estimate.reason})" if estimate.share is None else estimate.share
    return MinedFile(
        output=output,
        rows=rows,
        anchors=tally["anchors"],
        k="auto" if problem.counts is None else problem.largest_k,
        negatives=tally["negatives"],
        short=tally["short"],
        missing=tally["missing"],
        false_negatives=rate,
        hardness=negatives.above / max(1, tally["negatives"] * len(ready.background)),
        rule=sample.rule,
        notes=notes,
        dropped=negatives.dropped,
        recall=problem.recall,
        trade=_trade(ready, sample.rule, estimate),
        own_text=negatives.own_text,
        advice=_next_step(
            output,
            tally,
            rate,
            depth=deeper(tally, problem.n_items),
            judge=sample.judge,
            target=problem.options.false_share,
        ),
    )


def _trade(ready: Ready, rule: str, estimate: SetEstimate) -> str:
    """The judge, what it leaves of the false negatives, and what that costs; or why this cannot be told."""
    if is_auto(ready.problem.options):
        return rule
    if estimate.share is None:
        return f"{rule} The share of false negatives is unknown ({estimate.reason})."
    return f"{rule} {trade_of_set(ready.problem, ready.fitted, estimate)}"


def _next_step(
    output: Place, tally: Mapping[str, int], rate: RateEstimate | str, *, depth: int, judge: Any, target: float
) -> str:
    """What to do next, by what is most wrong with the negatives.

    `depth` is how deep to search for anchors that are short, 0 if that cannot help. `judge` is the detector, or None,
    and `target` the share of false negatives that was asked for.
    """
    if not tally["negatives"]:
        return "Next: mine again with a larger --depth, another --judge or a lower --min-score: there are no negatives."
    if tally["short"] and depth:
        return f"Next: mine again with --depth {depth}, or train with fewer negatives for the anchors that are short."
    if isinstance(rate, RateEstimate) and rate.estimate > _CLEARLY_ABOVE * max(_HIGH_RATE, target):
        how = "--judge auto" if judge is None else "a stricter --judge"
        how = "a smaller --false-share" if isinstance(judge, Posterior) else how
        return f"Next: mine again with {how} (see --report for the scores); too many negatives may be false."
    if isinstance(rate, str) or rate.high > _UNSURE:
        reason = "is unknown" if isinstance(rate, str) else "is uncertain"
        return f"Next: read some negatives before you train (see --report); the false-negative rate {reason}."
    return f"Next: train on {output}."
