"""`naysay demo`: the tutorial, printed, with a report."""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
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
NEXT = "naysay mine pairs.csv --model all-MiniLM-L6-v2 -o train.parquet --report report.html"
_CHOSEN_BY = {
    "nearest": "score alone",
    "95 % rule": "below 95 % of the label's",
    "judged": 'judge="auto"',
    "reviewed": "auto, and 100 answers",
}
_FIRST_WORDS = 3  # of a passage, which show where it begins
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
        advice=_advice(false_shares, mined),
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
    screen.print(result.advice, style="bold", highlight=False)
    screen.print(f"Report of the judged negatives: {result.report}", markup=False, highlight=False, soft_wrap=True)
    screen.print("Next, with a file of your own, two columns of texts:", highlight=False)
    screen.print(f"  {NEXT}", markup=False, highlight=False, soft_wrap=True)
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


def _advice(false_shares: Mapping[str, float], mined: Mapping[str, Mined]) -> str:
    """What to do, from the true shares of false negatives and the mean scores."""
    nearest, judged, reviewed = (percent(false_shares[rule]) for rule in ("nearest", "judged", "reviewed"))
    if false_shares["judged"] >= false_shares["nearest"]:
        return f"What to do: review some pairs. {nearest} of the nearest are false, {judged} of the judged."
    advice = f'What to do: mine with judge="auto": {judged} are false, in place of {nearest}.'
    scores = {rule: _mean_score(one) for rule, one in mined.items()}
    if scores["reviewed"] > scores["judged"] and false_shares["reviewed"] < false_shares["nearest"]:
        advice += f" A review keeps harder negatives, of which {reviewed} are false."
    return advice


def _mean_score(mined: Mined) -> float:
    return float(mined.scores[mined.mask].mean())


def _print_corpus(screen: Console, library: Library, pairs: Pairs) -> None:
    """Where the texts come from, and what the questions are."""
    _print_plain(
        screen,
        f"{len(library):,} docstrings of Python {platform.python_version()} (fingerprint {library.fingerprint}) make "
        f"{len(pairs.passages):,} passages and {len(pairs):,} questions. Passages overlap, so more than one answers a "
        "question, but only one is labelled. The others are false negatives.",
    )
    screen.print()


def _print_examples(screen: Console, examples: Sequence[Example]) -> None:
    """Questions with a false negative that the judge dropped; a passage is one line, cut at the width of the screen."""
    for example in examples:
        lines = {
            "question": Text(example.question),
            "labelled answer": _shown_passage(example.labelled, example.statement),
            "dropped, also answers": _shown_passage(example.dropped, example.statement),
            "kept as a negative": Text(example.kept),
        }
        for heading, text in lines.items():
            screen.print(Text(f"{heading:<22} ") + text, no_wrap=True, overflow="ellipsis")
        screen.print()


def _shown_passage(passage: str, statement: str) -> Text:
    """The first words of a passage, and what it has from the statement on, with the statement in bold."""
    before, _, after = passage.partition(statement)
    first_words = before.split()
    dots = "… " if len(first_words) > _FIRST_WORDS else ""
    shown_before = " ".join(first_words[:_FIRST_WORDS])
    return Text.assemble(shown_before, " " if shown_before else "", dots, (statement, "bold"), after)


def _print_truth(screen: Console, result: Demonstration, mined: Mapping[str, Mined]) -> None:
    """How each rule chooses, how near its negatives are, and how many of them are false."""
    table = Table(title="Four ways to choose 4 negatives a question", title_justify="left")
    for heading in ("negatives", "chosen by", "mean score", "false in truth"):
        table.add_column(heading, justify="left" if heading in ("negatives", "chosen by") else "right", no_wrap=True)
    for rule, found in mined.items():
        table.add_row(rule, _CHOSEN_BY[rule], f"{_mean_score(found):.3f}", percent(result.false_shares[rule]))
    screen.print(table)
    _print_plain(screen, "Higher scores are harder. Judged and reviewed aim at no more than 5 % false.")


def _print_plain(screen: Console, *sentences: str) -> None:
    """Paragraphs without colours for numbers and without markup in names."""
    for sentence in sentences:
        screen.print(sentence, highlight=False, markup=False)
