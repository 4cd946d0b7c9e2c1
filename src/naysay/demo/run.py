"""`naysay demo`: the tutorial over three seeds, printed, with a report."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from naysay.checks import check_whole
from naysay.demo import _show as show
from naysay.demo._place import REPORT, check_place, write_results
from naysay.demo._summary import verdict
from naysay.demo.library import read_library
from naysay.errors import MissingExtraError

if TYPE_CHECKING:
    from naysay.demo.tutorial import Lesson, Split
    from naysay.detectors import Evaluation
    from naysay.quantity import Estimate

SEEDS, STEPS, QUICK_STEPS = 3, 200, 40


@final
@dataclass(frozen=True)
class Demonstration:
    """What a run found: the numbers behind all that it prints.

    Args:
        names: Pairs of the library, and how many of them have a document that another name has too.
        duplicates: Pairs of the library, and how many of them have a document that another name has too.
        fingerprint: Of the corpus: one corpus and one seed print one table.
        quality: {arm: {measure: one number a seed}}, on names that no arm was trained on.
        found: {detector: Evaluation}, against the duplicates among the plain hard negatives.
        howmany: The estimate of k, of random negatives.
        rule: Where a line through the scores would lie.
        let_through: The share of test positives below it.
        verdict: Who won, in sentences made from the numbers.
        report: The place of report.html.
    """

    names: int
    duplicates: int
    fingerprint: str
    quality: dict[str, dict[str, list[float]]]
    found: dict[str, Evaluation]
    howmany: Estimate
    rule: str
    let_through: float
    verdict: str
    report: Path


def run(
    *, quick: bool = False, seed: int = 0, out: str | Path | None = None, console: Console | None = None
) -> Demonstration:
    """Train a text encoder with four kinds of negatives and three seeds, print who won, and write a report.

    The same seed and library give the same numbers. torch runs in one thread meanwhile: two threads add in another
    order, which hundreds of steps later can show in a printed digit.

    Args:
        quick: A quarter of the library and a fifth of the steps: to see it work, not to believe it.
        seed: Another one splits the names anew and trains anew.
        out: ./naysay-demo if None: a new folder, or that of an earlier run; it gets report.html and results.json.
    """
    check_whole("seed", seed, 0)
    folder = check_place(Path("naysay-demo") if out is None else Path(out))
    screen = console or Console()
    started = time.perf_counter()
    with _torch_in_one_thread():
        from naysay.demo import _choices as choices
        from naysay.demo import tutorial

        library = read_library()
        if quick:
            library = library.take(np.flatnonzero(library.text_of % 4 == 0))
        parts = tutorial.split(library, seed)
        show.print_corpus(screen, library, parts)
        howmany, lessons = _taught(screen, parts, QUICK_STEPS if quick else STEPS, seed)
        first = lessons[0]
        line = choices.line_of(first, parts.validation)
        found = choices.detected(first, line, parts.train)
        let_through = choices.let_through(first, line, parts.test)
    quality = {
        arm: {name: [astuple(one.quality[arm])[place] for one in lessons] for place, name in enumerate(show.MEASURES)}
        for arm in tutorial.ARMS
    }
    said = verdict({arm: rows["MRR"] for arm, rows in quality.items()}, "MRR", "judged", show.RIVALS)
    result = Demonstration(
        names=len(library),
        duplicates=library.with_duplicate,
        fingerprint=library.fingerprint,
        quality=quality,
        found=found,
        howmany=howmany,
        rule=line.describe(),
        let_through=let_through,
        verdict=said,
        report=folder / REPORT,
    )
    show.print_quality(screen, quality, parts)
    show.print_found(screen, found)
    show.print_choices(screen, result)
    screen.print(said, style="bold", highlight=False)
    write_results(folder, _plain(result) | {"seed": seed, "quick": quick})
    made_by = f"naysay demo --seed {seed}{' --quick' if quick else ''}"
    _report(result, first, parts, seed, made_by)
    screen.print(f"What was mined, and why: {result.report}", highlight=False, soft_wrap=True)
    screen.print(f"{time.perf_counter() - started:.0f} s in all.", highlight=False)
    return result


def _taught(screen: Console, parts: Split, steps: int, seed: int) -> tuple[Estimate, list[Lesson]]:
    """How many negatives a first run asks for, and the lessons of all seeds; a line says what goes on meanwhile."""
    from naysay.demo import _choices as choices
    from naysay.demo import tutorial

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("how many? a run with one negative (the first time loops are compiled)", total=None)
        howmany = choices.how_many(parts, steps // 2, seed)
        lessons = []
        for place in range(SEEDS):

            def tell(what: str, place: int = place) -> None:
                progress.update(task, description=f"seed {place + 1} of {SEEDS}: {what}")

            lessons.append(tutorial.lesson(parts, steps=steps, seed=SEEDS * seed + place, tell=tell))
    return howmany, lessons


def _report(result: Demonstration, lesson: Lesson, parts: Split, seed: int, made_by: str) -> None:
    """The judged negatives of the first seed at half time, explained."""
    from naysay.mining._report import report_mined

    pairs = parts.train.library
    gained = {f"MRR, {arm}": f"{100 * np.mean(rows['MRR']):.1f} %" for arm, rows in result.quality.items()}
    report_mined(
        lesson.mined,
        result.report,
        title="Negatives for the standard library",
        numbers=gained,
        query_texts=pairs.queries,
        corpus_texts=pairs.documents,
        query_ids=pairs.names,
        corpus_ids=pairs.names,
        provenance={
            "corpus": f"the library of Python {platform.python_version()}, {result.fingerprint}",
            "seed": str(seed),
            "made by": made_by,
        },
        run=result.howmany,
        seed=seed,
    )


def _plain(result: Demonstration) -> dict[str, Any]:
    """The result in what JSON has."""
    found: dict[str, dict[str, float | None]] = {}
    for name, one in result.found.items():
        shares = [None if math.isnan(share) else share for share in (one.precision, one.recall)]
        found[name] = {"negatives": one.slots, "duplicates": one.false_negatives, "flagged": one.flagged}
        found[name] |= dict(zip(("precision", "recall"), shares, strict=True))
    return {
        "python": platform.python_version(),
        "names": result.names,
        "duplicates": result.duplicates,
        "fingerprint": result.fingerprint,
        "quality": result.quality,
        "found": found,
        "k": {"best": result.howmany.k, "flat": list(result.howmany.flat), "at_edge": result.howmany.at_edge},
        "rule": result.rule,
        "let_through": result.let_through,
        "verdict": result.verdict,
    }


@contextmanager
def _torch_in_one_thread() -> Iterator[None]:
    """One thread, and as many as before afterwards; refused where there is no torch."""
    try:
        import torch
    except ImportError as error:
        message = "torch is not installed. Run: pip install 'naysay[demo]'"
        raise MissingExtraError(message) from error
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
