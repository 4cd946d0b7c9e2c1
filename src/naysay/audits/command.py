"""The command `naysay audit`: read, encode, audit, print, write, and decide whether the set passes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import SpinnerColumn, TextColumn
from rich.text import Text

from naysay._commands import AuditOptions
from naysay._console import SafeConsole, progress_on
from naysay._options import option_names
from naysay.audits._training_set import TrainingSet, training_set
from naysay.audits.audit import audit
from naysay.audits.fix import Fixed, changes_beside, check_reasons
from naysay.audits.report import report_audit
from naysay.audits.result import Audit
from naysay.audits.suspects import Worst
from naysay.checks import check_one_of, check_whole, raise_invalid, shown, with_option_names, with_parameter
from naysay.detectors.by_reviewer import reviewer_of_text
from naysay.detectors.reviewer import People
from naysay.formats._rewriting import check_rewritable, check_several_positives
from naysay.places import Place, Url, check_apart, check_page, check_target
from naysay.text import counted, percent

_VECTORS = ("query_vectors", "corpus_vectors", "query_ids", "corpus_ids")
_SETTINGS = ("metric", "temperature", "alpha", "top", "seed")
_ENDS = {"upper": "the upper end of the 95 % CI of the false share", "estimate": "its estimate"}
_SHARE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*")
# Control characters, direction and other invisible marks, surrogate halves, private and unassigned ones, line ends.
_NO_GLYPH = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


@with_option_names("audit", {**option_names(AuditOptions), "folder": "--encoded"})
def audit_command(options: AuditOptions, *, console: Console | None = None) -> bool:
    """Audit a training file, print the result, write it, and return whether the set passes.

    It fails if `fail_above` ("2%" or "0.02") is given and the *upper end* of the interval of the false share is higher,
    or, with fail_on="estimate", the estimate. The upper end is above the truth with 95 % confidence, whatever the
    negatives were chosen by; the estimate is too low if false ones came in at random. If nothing can be estimated,
    `fail_above` is an error.
    """
    out = console or SafeConsole()
    limit = _limit(options.fail_above)
    check_one_of("--fail-on", options.fail_on, tuple(_ENDS))
    vectors: dict[str, Any] = {name: getattr(options, name) for name in _VECTORS}
    _check_files(options, vectors)
    review = _review(options)
    errors = SafeConsole(stderr=True, quiet=out.quiet)
    with progress_on(errors, (SpinnerColumn("line"), TextColumn("{task.description}"))) as progress:
        step = progress.add_task("reading", total=None)
        given = training_set(options.negatives, options.format or None)
        if options.model:
            progress.stop()
            vectors = _encoded(given, options, show=not out.quiet)
            progress.start()
        progress.update(step, description="auditing")
        result = audit(given, **vectors, **review, **{name: getattr(options, name) for name in _SETTINGS})
    if options.json is not None:  # before printing, which a closed pipe ends
        with with_option_names("audit", {"path": "--json"}):
            result.write(options.json)
    fixed = None
    if options.fix is not None:
        with with_option_names("audit", {"path": "--fix"}):
            fixed = result.fix(options.fix, _reasons(options), false_negatives=options.false_negatives)
    if options.report is not None:
        files = {name: file for name, file in vectors.items() if file is not None}
        with with_option_names("audit", {"path": "--report"}):
            report_audit(result, options.report, files=files)
    print_audit(result, out)
    if fixed is not None or isinstance(options.negatives, Path):
        _print_changes(result, fixed, out, false_negatives=options.false_negatives)
    has_scores = any(value is not None for value in vectors.values())
    return _passes(result, limit, options.fail_on, out, has_scores=has_scores)


def _check_files(options: AuditOptions, vectors: Mapping[str, Place | None]) -> None:
    """Raise for files that cannot be written, and for options that do not go together."""
    if options.json is not None:
        check_target("json", options.json)
    if options.report is not None:
        check_page("report", options.report)
    outputs = {"json": options.json, "report": options.report, "answers": options.answers}
    outputs["review_file"] = options.review_file
    for fixed in (None,) if options.fix is None else (options.fix, changes_beside(options.fix)):
        check_apart({**outputs, "fix": fixed}, {"negatives": options.negatives, **vectors})
    if options.fix_reasons and options.fix is None:
        raise_invalid("fix_reasons", "left out without --fix", repr(options.fix_reasons))
    check_reasons(_reasons(options) or ())
    check_one_of("false_negatives", options.false_negatives, ("drop", "positive"))
    if options.false_negatives == "positive" and (options.fix is None or options.reviewer is None):
        raise_invalid("false_negatives", "'drop' without --fix and --reviewer", "'positive'")
    if options.fix is not None and isinstance(options.negatives, Path):
        with with_parameter("fix", instead_of="path"):
            check_rewritable(options.negatives, options.fix)
        if options.false_negatives == "positive":
            check_several_positives(options.negatives, options.format or None)
    if options.model and any(value is not None for value in vectors.values()):
        raise_invalid("model", "left out where vectors are given", repr(options.model))
    if isinstance(options.encoded, Url):
        raise_invalid("encoded", "a folder on this machine", repr(options.encoded))
    for name in ("query_prompt", "corpus_prompt", "device", "encoded"):
        value = getattr(options, name)
        if value and not options.model:
            raise_invalid(name, "left out without --model", repr(str(value)))


def _review(options: AuditOptions) -> dict[str, Any]:
    """The keywords of `audit` for a reviewer: people, or a model whose yes answers people can check in a file."""
    if options.reviewer is None:
        for name in ("review", "answers", "review_file"):
            if getattr(options, name) is not None:
                raise_invalid(name, "left out without --reviewer", shown(str(getattr(options, name))))
        return {}
    if options.review is None:
        raise_invalid("review", "given with --reviewer, such as --review 100", "nothing")
    check_whole("review", options.review, 1)
    home = options.negatives if isinstance(options.negatives, Path) else Path(options.negatives.name)
    stem = home.name.partition(".")[0]
    with with_parameter("review_file", instead_of="path"):
        reviewer: Any = People(options.review_file or home.with_name(f"{stem}.review.csv"))
    if options.reviewer != "people":
        reviewer = [reviewer_of_text("reviewer", options.reviewer), reviewer]
    answers = options.answers or home.with_name(f"{stem}.answers.jsonl")
    return {"reviewer": reviewer, "review": options.review, "answers": answers}


def _reasons(options: AuditOptions) -> list[str] | None:
    """For which reasons --fix drops negatives; None for all."""
    return [reason.strip() for reason in options.fix_reasons.split(",")] if options.fix_reasons else None


def _limit(text: str | None) -> float | None:
    """Return the largest share that passes, from "2%" or "0.02"; None without one."""
    if text is None:
        return None
    read = _SHARE.fullmatch(text)
    share = float(read[1]) / (100 if read[2] else 1) if read else -1.0
    if not 0 <= share <= 1:
        raise_invalid("--fail-above", "a share from 0 to 1, or 0% to 100%", repr(text))
    return share


def _passes(result: Audit, limit: float | None, fail_on: str, out: Console, *, has_scores: bool) -> bool:
    """Print and return whether one end of the interval, or the estimate, is within the limit."""
    if limit is None:
        return True
    share = result.false_share
    numbers = {"upper": share.high, "estimate": share.estimate}
    if result.is_unknown:
        if share.low <= limit:
            why = share.notes[-1].removeprefix("unknown: ")
            advice = "" if has_scores else "Pass vectors, or a model."
            rule = "left out where the share of false negatives is unknown"
            raise_invalid("--fail-above", rule, f"{percent(limit)} ({why})", advice)
        text, passes = f"{percent(share.low)} are certainly false", False
    else:
        other = next(name for name in _ENDS if name != fail_on)
        passes = numbers[fail_on] <= limit
        text = f"{_ENDS[fail_on]} is {percent(numbers[fail_on])}; {_ENDS[other]} is {percent(numbers[other])}"
    out.print()
    out.print(f"The set {'passes' if passes else 'fails'} --fail-above {percent(limit)}: {text}.", highlight=False)
    return passes


def _encoded(given: TrainingSet, options: AuditOptions, *, show: bool) -> dict[str, Any]:
    """Encode all texts of the set, in its order, and keep the vectors in a folder for the next time."""
    from naysay.encode.model import load_model
    from naysay.encode.texts import encode_texts

    texts = {"queries": given.query_texts, "documents": given.corpus_texts}
    for name, each in texts.items():
        if each is None:
            rule = f"left out where the set has no texts of {name}"
            raise_invalid("model", rule, repr(options.model), "Pass vectors.")
    encoder = load_model(options.model, device=options.device)
    home = options.negatives if isinstance(options.negatives, Path) else Path(options.negatives.name)
    folder = options.encoded if isinstance(options.encoded, Path) else home.with_name(f".{home.name}.vectors")
    paths = [
        encode_texts(encoder, each, folder=folder, prompt=prompt or None, show=show)
        for each, prompt in zip(texts.values(), (options.query_prompt, options.corpus_prompt), strict=True)
    ]
    return {"query_vectors": paths[0], "corpus_vectors": paths[1]}


def print_audit(result: Audit, console: Console) -> None:
    """Print the main finding, what to do, all findings, the worst rows, notes and commands."""
    width, encoding = max(console.width, 40), console.encoding
    findings = (f"{name:<12} {text}" for name, text in result.findings().items())
    lines = [*result.advice, "", terminal_safe(result.name, width, encoding), *findings, result.rule]
    if result.worst:
        lines += ["", f"The {counted(len(result.worst), 'worst row')}:"]
    console.print(Text(result.summary, style="bold"))
    for line in lines:
        console.print(Text(line.encode(encoding, "replace").decode(encoding)))
    for place, each in enumerate(result.worst, 1):
        _print_row(place, each, console, width, encoding)
    console.print()
    for note in result.notes:
        console.print(Text(f"Note: {note}"))
    if result.commands:
        console.print("\nNext:")
        for command in result.commands:
            console.print(Text(f"  {command}".encode(encoding, "replace").decode(encoding)), soft_wrap=True)


def _print_changes(result: Audit, fixed: Fixed | None, console: Console, *, false_negatives: str) -> None:
    """Print how many negatives were dropped for which reason, or would be."""
    changes = result.changes if fixed is None else fixed.changes
    if fixed is not None:
        name = terminal_safe(str(fixed.path), console.width, console.encoding)
        dropped = "Dropped negatives:" if changes else "No negative was dropped."
        title = f"{name} has {fixed.kept:,} of {fixed.rows:,} rows. {dropped}"
    else:
        title = "--fix OUT would drop these negatives:" if changes else "--fix OUT would change nothing."
    console.print()
    console.print(Text(title))
    for reason, count in changes.items():
        now = ", positives now" if reason == "reviewed" and false_negatives == "positive" else ""
        console.print(Text(f"  {reason:<16} {count:>10,}{now}"))
    if fixed is not None:
        console.print(Text(f"Each with its reason: {fixed.changes_path}"), soft_wrap=True)


def _print_row(place: int, each: Worst, console: Console, width: int, encoding: str) -> None:
    """Print the scores and the reason, then a line for each text."""
    score, positive = ("unknown" if isnan(value) else f"{value:.4g}" for value in (each.score, each.positive_score))
    why = "" if each.reason == "none" else f", suspected: {each.reason}"
    console.print(Text(f"{place}. score {score}, its positive {positive}{why}"))
    for name in ("anchor", "positive", "negative"):
        text = terminal_safe(getattr(each, f"{name}_text"), width - 13, encoding)
        console.print(Text(f"   {name:<9} {text}", no_wrap=True, overflow="ignore"), crop=False)


def terminal_safe(text: str, width: int, encoding: str = "utf-8") -> str:
    """Return a text as one line of at most `width` cells, in which escape sequences and direction marks do nothing.

    Spaces and line ends become one space, characters without a glyph become U+FFFD, those that `encoding` lacks a
    question mark. A longer text is cut and ends in three dots.
    """
    head = text[: 4 * width + 4]  # a text of a megabyte costs no more than a short one
    clean = "".join("\ufffd" if unicodedata.category(c) in _NO_GLYPH else c for c in " ".join(head.split()))
    safe = clean.encode(encoding, "replace").decode(encoding)
    if len(head) == len(text) and cell_len(safe) <= width:
        return safe
    more = "…" if encoding.lower().startswith("utf") else "..."
    return set_cell_size(safe, max(0, width - cell_len(more))).rstrip() + more
