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
from rich.text import Text

from naysay._commands import AuditOptions
from naysay._options import option_names
from naysay.auditing._training_set import TrainingSet, training_set
from naysay.auditing.audit import audit
from naysay.auditing.report import report_audit
from naysay.auditing.result import Audit
from naysay.auditing.suspects import Worst
from naysay.checks import raise_invalid, with_option_names
from naysay.files import check_apart, check_page, check_target
from naysay.text import percent

_VECTORS = ("query_vectors", "corpus_vectors", "query_ids", "corpus_ids")
_SETTINGS = ("metric", "temperature", "alpha", "top", "seed")
_SHARE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*")
# Control characters, direction and other invisible marks, surrogate halves, private and unassigned ones, line ends.
_NO_GLYPH = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


@with_option_names("audit", {**option_names(AuditOptions), "folder": "--encoded"})
def audit_command(options: AuditOptions, *, console: Console | None = None) -> bool:
    """Audit a training file, print the result, write it, and return whether the set passes.

    It fails if `fail_above` ("2%" or "0.02") is given and the *estimate* of the false share is higher. The lower end of
    the interval would not do: it counts only what is proven, and would be the same for a set mined without a judge. The
    estimate is an upper one, so the check may fail although few negatives are false: choose the limit from a run you
    have reviewed. If nothing can be estimated, `fail_above` is an error, because every set would pass.
    """
    out = console or Console()
    limit = _limit(options.fail_above)
    vectors: dict[str, Any] = {name: getattr(options, name) for name in _VECTORS}
    _check_files(options, vectors)
    with Console(stderr=True).status("reading", spinner="line") as status:
        given = training_set(options.negatives, options.format or None)
        if options.model:
            status.stop()
            vectors = _encoded(given, options)
            status.start()
        status.update("auditing")
        result = audit(given, **vectors, **{name: getattr(options, name) for name in _SETTINGS})
    if options.json is not None:  # before printing, which a closed pipe ends
        result.write(options.json)
    if options.report is not None:
        files = {name: file for name, file in vectors.items() if file is not None}
        report_audit(result, options.report, files=files)
    print_audit(result, out)
    return _passes(result, limit, out)


def _check_files(options: AuditOptions, vectors: Mapping[str, Path | None]) -> None:
    """Raise for files that cannot be written, and for options that do not go together."""
    if options.json is not None:
        check_target("json", options.json)
    if options.report is not None:
        check_page("report", options.report)
    check_apart({"json": options.json, "report": options.report}, {"negatives": options.negatives, **vectors})
    if options.model and any(value is not None for value in vectors.values()):
        raise_invalid("model", "left out where vectors are given", repr(options.model))
    for name in ("query_prompt", "corpus_prompt", "encoded"):
        value = getattr(options, name)
        if value and not options.model:
            raise_invalid(name, "left out without --model", repr(str(value)))


def _limit(text: str | None) -> float | None:
    """Return the largest share that passes, from "2%" or "0.02"; None without one."""
    if text is None:
        return None
    read = _SHARE.fullmatch(text)
    share = float(read[1]) / (100 if read[2] else 1) if read else -1.0
    if not 0 <= share <= 1:
        raise_invalid("--fail-above", "a share from 0 to 1, or 0% to 100%", repr(text))
    return share


def _passes(result: Audit, limit: float | None, out: Console) -> bool:
    """Print and return whether the estimate is within the limit."""
    if limit is None:
        return True
    share = result.false_share
    passes = share.estimate <= limit
    known = share.estimate > share.low or share.high < 1
    if passes and not known:
        rule = "left out where only proven false negatives can be counted"
        raise_invalid("--fail-above", rule, percent(limit), "Pass vectors, a model, or a set with scores.")
    verb, only = "passes" if passes else "fails", "" if known else " Only proven ones could be counted."
    out.print()
    out.print(f"The set {verb}: {percent(share.estimate)} false, limit --fail-above {percent(limit)}.{only}")
    return passes


def _encoded(given: TrainingSet, options: AuditOptions) -> dict[str, Any]:
    """Encode all texts of the set, in its order, and keep the vectors in a folder for the next time."""
    from naysay.encode.model import load_model
    from naysay.encode.texts import encode_texts

    texts = {"queries": given.query_texts, "documents": given.corpus_texts}
    for name, each in texts.items():
        if each is None:
            rule = f"left out where the set has no texts of {name}"
            raise_invalid("model", rule, repr(options.model), "Pass vectors.")
    encoder = load_model(options.model)
    folder = options.encoded or options.negatives.parent / f".{options.negatives.name}.vectors"
    paths = [
        encode_texts(encoder, each, folder=folder, prompt=prompt or None)
        for each, prompt in zip(texts.values(), (options.query_prompt, options.corpus_prompt), strict=True)
    ]
    return {"query_vectors": paths[0], "corpus_vectors": paths[1]}


def print_audit(result: Audit, console: Console) -> None:
    """Print the main finding, what to do, all findings, the worst rows, notes and commands."""
    width, encoding = max(console.width, 40), console.encoding
    console.print(Text(result.summary, style="bold"))
    for sentence in result.advice:
        console.print(Text(sentence))
    console.print()
    console.print(Text(terminal_safe(result.name, width, encoding)))
    for name, text in result.findings().items():
        console.print(Text(f"{name:<12} {text}".encode(encoding, "replace").decode(encoding)))
    console.print(Text(result.rule))
    if result.worst:
        console.print()
        console.print(Text(f"The {len(result.worst)} worst rows:"))
        for place, each in enumerate(result.worst, 1):
            _print_row(place, each, console, width, encoding)
    console.print()
    for note in result.notes:
        console.print(Text(f"Note: {note}"))
    if result.commands:
        console.print()
        console.print(Text("Next:"))
        for command in result.commands:
            console.print(Text(f"  {command}".encode(encoding, "replace").decode(encoding)), soft_wrap=True)


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
