"""`naysay demo`: the tutorial over three seeds, printed, with a report."""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from naysay._console import SafeConsole
from naysay.arrays import torch_in_one_thread
from naysay.checks import check_bool, check_whole, public, raise_invalid
from naysay.demo import _show as show
from naysay.demo.library import read_library
from naysay.files import as_path, check_target, is_draft, write_whole
from naysay.text import json_file, short_repr

if TYPE_CHECKING:
    from naysay.demo.tutorial import Lesson, Split
    from naysay.detectors import Evaluation
    from naysay.quantity import Estimate

SEEDS, STEPS, QUICK_STEPS = 3, 100, 20
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
        quality: {arm: {measure: one number per seed}}, on test questions.
        detection: {detector: Evaluation} on the plain hard negatives of the first seed.
        k_estimate: The estimate of the number of random negatives.
        rule: What the judge did, in sentences.
        false_shares: The true share of false negatives among the plain hard and the judged ones.
        summary: The result, in sentences made from the numbers.
        advice: What to do, from the same numbers.
        report: The path of report.html.

    Example: see `run`.
    """

    names: int
    fingerprint: str
    quality: dict[str, dict[str, list[float]]]
    detection: dict[str, Evaluation]
    k_estimate: Estimate
    rule: str
    false_shares: tuple[float, float]
    summary: str
    advice: str
    report: Path

    __repr__ = short_repr


@public
def run(
    *, quick: bool = False, seed: int = 0, out: str | Path | None = None, console: Console | None = None
) -> Demonstration:
    """Train a text encoder with four kinds of negatives and three seeds, print the comparison, and write a report.

    The same seed and library give the same numbers. torch runs in one thread meanwhile: two threads add in another
    order, which after hundreds of steps can change a printed digit.

    Args:
        quick: Use a quarter of the library and a fifth of the steps: to see it work, not for conclusions.
        seed: Seed of the split and of the training.
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
        from naysay.demo import choices, tutorial

        library = read_library()
        if quick:
            library = library.take(np.flatnonzero(library.text_of % 4 == 0))
        parts = tutorial.split(library, seed)
        show.print_corpus(screen, library, parts)
        estimate, lessons = _trained(screen, parts, QUICK_STEPS if quick else STEPS, seed)
        first = lessons[0]
        detection = choices.evaluated(first, parts.train)
        plain, judged = (choices.false_share(mined, parts.train) for mined in (first.plain, first.mined))
    quality = {
        arm: {name: [astuple(one.quality[arm])[place] for one in lessons] for place, name in enumerate(show.MEASURES)}
        for arm in tutorial.ARMS
    }
    ndcg = {arm: rows["nDCG@10"] for arm, rows in quality.items()}
    result = Demonstration(
        names=len(library),
        fingerprint=library.fingerprint,
        quality=quality,
        detection=detection,
        k_estimate=estimate,
        rule=first.mined.rule,
        false_shares=(plain, judged),
        summary=show.result_sentence(ndcg, "nDCG@10"),
        advice=show.advice_sentence(ndcg),
        report=folder / REPORT,
    )
    write_results(folder, _plain(result) | {"seed": seed, "quick": quick})  # before printing, which a closed pipe ends
    _report(result, first, parts, seed, f"naysay demo --seed {seed}{' --quick' if quick else ''}")
    show.print_quality(screen, quality, parts)
    show.print_detectors(screen, detection)
    show.print_choices(screen, result)
    screen.print(result.summary, style="bold", highlight=False)
    screen.print(result.advice, highlight=False)
    screen.print(f"Report of the mined negatives: {result.report}", markup=False, highlight=False, soft_wrap=True)
    screen.print(f"Took {time.perf_counter() - started:.0f} s.", highlight=False)
    return result


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


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """Make the folder and write the numbers, with the mark that identifies the folder later."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise_invalid("out", "a folder that can be made", f"{str(folder)!r} ({error.strerror})")
    write_whole("out", folder / RESULTS, json_file(_MARK | results))


def _is_ours(path: Path) -> bool:
    """Return whether a file of results has our mark."""
    try:
        return bool(json.loads(path.read_bytes()).get("made_by") == _MARK["made_by"])
    except (OSError, ValueError, AttributeError):
        return False


def _trained(screen: Console, parts: Split, steps: int, seed: int) -> tuple[Estimate, list[Lesson]]:
    """Return the estimate of k by a first run, and the lessons of all seeds, with a progress line."""
    from naysay.demo import choices, tutorial

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("estimating k with one negative (the first time, loops are compiled)", total=None)
        estimate = choices.how_many(parts, steps // 2, seed)
        lessons = []
        for place in range(SEEDS):

            def on_progress(what: str, place: int = place) -> None:
                progress.update(task, description=f"seed {place + 1} of {SEEDS}: {what}")

            one_seed = SEEDS * seed + place
            lessons.append(tutorial.lesson(parts, steps=steps, seed=one_seed, on_progress=on_progress))
    return estimate, lessons


def _report(result: Demonstration, lesson: Lesson, parts: Split, seed: int, made_by: str) -> None:
    """Write the report of the judged negatives of the first seed."""
    lesson.mined.report(
        result.report,
        title="Negatives for questions to the standard library",
        numbers={f"nDCG@10, {arm}": f"{100 * np.mean(rows['nDCG@10']):.1f} %" for arm, rows in result.quality.items()},
        query_texts=parts.train.questions,
        corpus_texts=parts.train.passages,
        provenance={
            "corpus": f"the standard library of Python {platform.python_version()}, {result.fingerprint}",
            "seed": str(seed),
            "made by": made_by,
        },
        run=result.k_estimate,
        seed=seed,
    )


def _plain(result: Demonstration) -> dict[str, Any]:
    """Return the result as JSON has it."""
    names = {"slots": "negatives", "false_negatives": "false", "flagged": "flagged"}
    names |= {"precision": "precision", "recall": "recall"}
    detection = {
        detector: {name: getattr(one, field) for field, name in names.items()}
        for detector, one in result.detection.items()
    }
    k = result.k_estimate
    return {
        "python": platform.python_version(),
        **{name: getattr(result, name) for name in ("names", "fingerprint", "quality")},
        "detection": detection,
        "k": {"best": k.k, "flat": list(k.flat), "at_edge": k.at_edge},
        "false_shares": dict(zip(("plain hard", "judged"), result.false_shares, strict=True)),
        **{name: getattr(result, name) for name in ("rule", "summary", "advice")},
    }
