"""`naysay demo`: the tutorial, printed, with a report."""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from naysay._console import SafeConsole
from naysay.arrays import torch_in_one_thread
from naysay.checks import check_bool, check_whole, public, raise_invalid
from naysay.demo.library import Library, read_library
from naysay.files import as_path, check_target, is_draft, write_whole
from naysay.text import json_file, percent, short_repr

if TYPE_CHECKING:
    from naysay.demo.tutorial import Example, Pairs
    from naysay.mining import Mined

RESULTS, REPORT = "results.json", "report.html"
_NEEDED = 10_000_000  # bytes of both files, and to spare
_MARK = {"made_by": "naysay demo"}


@final
@public
@dataclass(frozen=True)
class Demonstration:
    """The numbers behind all that a run prints.

    Args:
        names: Names in the library.
        fingerprint: Fingerprint of the corpus: the same corpus and seed give the same table.
        negatives: {rule: number of negatives}.
        false_shares: {rule: share of them that are false in truth}.
        rule: What the judge did, in sentences.
        advice: What to do, from these numbers.
        examples: Questions with a false negative that the judge dropped.
        report: The path of report.html.

    Example: see `run`.
    """

    names: int
    fingerprint: str
    negatives: dict[str, int]
    false_shares: dict[str, float]
    rule: str
    advice: str
    examples: list[Example]
    report: Path

    __repr__ = short_repr


@public
def run(
    *, quick: bool = False, seed: int = 0, out: str | Path | None = None, console: Console | None = None
) -> Demonstration:
    """Mine negatives for questions to the standard library in four ways, compare them with the truth, and report.

    The same seed and library give the same numbers. torch runs in one thread meanwhile.

    Args:
        quick: Use a quarter of the library: to see it work, not for conclusions.
        seed: Seed of the questions and of the encoder.
        out: The folder for report.html and results.json: a new one, or that of an earlier run; None: ./naysay-demo.
        console: Where to print; the terminal without it.

    Raises:
        NaysayError: If `seed` is negative, or `out` holds other files or cannot be made.
        MissingExtraError: If torch is not installed.

    Examples:
        >>> from naysay.demo import run
        >>> result = run(quick=True, out="naysay-demo")  # doctest: +SKIP
    """
    check_whole("seed", seed, 0)
    check_bool("quick", quick)
    folder = check_folder("naysay-demo" if out is None else out)
    screen = console or SafeConsole()
    started = time.perf_counter()
    with torch_in_one_thread("demo"):
        from naysay.demo import tutorial

        library = read_library()
        if quick:
            library = library.take(np.flatnonzero(library.text_of % 4 == 0))
        pairs = tutorial.Pairs(library.documents, seed)
        _print_corpus(screen, library, pairs)
        with screen.status("mining four ways (the first time, loops are compiled)"):
            mined = tutorial.mined_four_ways(pairs, seed)
    false_shares = {rule: tutorial.false_share(found, pairs) for rule, found in mined.items()}
    result = Demonstration(
        names=len(library),
        fingerprint=library.fingerprint,
        negatives={rule: int(found.mask.sum()) for rule, found in mined.items()},
        false_shares=false_shares,
        rule=mined["judged"].rule,
        advice=_advice(false_shares),
        examples=tutorial.examples(pairs, mined["nearest"], mined["judged"]),
        report=folder / REPORT,
    )
    _write_results(folder, result, seed=seed, quick=quick)  # before printing, which a closed pipe ends
    mined["judged"].report(
        result.report,
        title="Negatives for questions to the standard library",
        numbers={f"false in truth, {rule}": percent(share) for rule, share in false_shares.items()},
        query_texts=pairs.questions,
        corpus_texts=pairs.passages,
        provenance={
            "corpus": f"the standard library of Python {platform.python_version()}, {result.fingerprint}",
            "seed": str(seed),
            "made by": f"naysay demo --seed {seed}{' --quick' if quick else ''}",
        },
        seed=seed,
    )
    _print_examples(screen, result.examples)
    _print_truth(screen, result, mined)
    _print_plain(screen, f"The judge: {result.rule}")
    screen.print(result.advice, style="bold", highlight=False)
    screen.print(f"Report of the judged negatives: {result.report}", markup=False, highlight=False, soft_wrap=True)
    screen.print(f"Took {time.perf_counter() - started:.0f} s.", highlight=False)
    return result


# ---- the folder ------------------------------------------------------------------------------------------------------


def check_folder(out: str | Path) -> Path:
    """Return the folder if it is new, empty, or that of an earlier run, and can be written; it is not made yet."""
    folder = as_path("out", out)
    try:
        names = {path.name for path in folder.iterdir() if not is_draft(path)} if folder.exists() else set()
        if folder.parent.is_dir() and not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name[:100]}."):
                pass  # permissions are not enough: a file system may be read-only
    except OSError as error:
        raise_invalid("out", "a folder that can be made", f"{str(folder)!r} ({error.strerror})")
    if not folder.parent.is_dir():
        raise_invalid("out", "in an existing folder", repr(str(folder)))
    free = shutil.disk_usage(folder.parent).free
    if free < _NEEDED:
        rule = f"on a disk with {_NEEDED / 1e6:g} MB free, for the report"
        raise_invalid("out", rule, f"{str(folder)!r} with {free / 1e6:.1f} MB")
    if names and not (names <= {RESULTS, REPORT} and _is_ours(folder / RESULTS)):
        raise_invalid("out", "a new folder, or that of an earlier demo", repr(str(folder)), "Pass another `out`.")
    if folder.exists():
        check_target("out", folder / RESULTS)
        check_target("out", folder / REPORT)
    return folder


def _is_ours(path: Path) -> bool:
    """Whether a file of results has our mark."""
    try:
        return bool(json.loads(path.read_bytes()).get("made_by") == _MARK["made_by"])
    except (OSError, ValueError, AttributeError):
        return False


def _write_results(folder: Path, result: Demonstration, **settings: Any) -> None:
    """Make the folder and write the numbers, with the mark that identifies the folder later."""
    numbers = {one.name: getattr(result, one.name) for one in fields(result) if one.name != "report"}
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise_invalid("out", "a folder that can be made", f"{str(folder)!r} ({error.strerror})")
    python = {"python": platform.python_version()}
    write_whole("out", folder / RESULTS, json_file(_MARK | python | numbers | settings))


# ---- what is printed -------------------------------------------------------------------------------------------------


def _advice(false_shares: Mapping[str, float]) -> str:
    """What to do, from the true shares of false negatives."""
    nearest, judged = false_shares["nearest"], false_shares["judged"]
    shares = f"{percent(nearest)} of the nearest are false in truth, and {percent(judged)} of the judged"
    if judged < nearest:
        return f'What to do: mine with judge="auto". {shares}.'
    return f"What to do: review some pairs. {shares}: the judge did not help here."


def _print_corpus(screen: Console, library: Library, pairs: Pairs) -> None:
    """Where the texts come from, and what the questions are."""
    from naysay.demo.tutorial import ASKED, PASSAGE, STRIDE

    _print_plain(
        screen,
        f"Corpus: {len(library):,} docstrings of the standard library of Python {platform.python_version()}, the long "
        f"ones cut into {len(pairs.passages):,} passages of {PASSAGE} words, one every {STRIDE} words. "
        f"{len(pairs):,} questions, each {ASKED} words of a passage; one of the passages that answer it is labelled. "
        f"Fingerprint {library.fingerprint}.",
    )


def _print_examples(screen: Console, examples: Sequence[Example]) -> None:
    """Questions with a false negative that the judge dropped; a passage is one line, cut at the width of the screen."""
    for example in examples:
        lines = {
            "question": example.question,
            "labelled answer": example.labelled,
            "dropped, also answers": example.dropped,
            "kept as a negative": example.kept,
        }
        for heading, text in lines.items():
            screen.print(Text(f"{heading:<22} {text}"), no_wrap=True, overflow="ellipsis")
        screen.print()


def _print_truth(screen: Console, result: Demonstration, mined: Mapping[str, Mined]) -> None:
    """How many negatives each rule gives, how near they are, and how many of them are false."""
    table = Table(title="Four ways to choose negatives, and the truth", title_justify="left")
    for heading in ("negatives", "number", "mean score", "false in truth"):
        table.add_column(heading, justify="left" if heading == "negatives" else "right", no_wrap=True)
    for rule, found in mined.items():
        score = float(found.scores[found.mask].mean())
        table.add_row(rule, f"{result.negatives[rule]:,}", f"{score:.3f}", percent(result.false_shares[rule]))
    screen.print(table)


def _print_plain(screen: Console, *sentences: str) -> None:
    """Paragraphs without colours for numbers and without markup in names."""
    for sentence in sentences:
        screen.print(sentence, highlight=False, markup=False)
