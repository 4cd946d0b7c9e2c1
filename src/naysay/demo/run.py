"""`naysay demo`: the tutorial over three seeds, printed, with a report."""

from __future__ import annotations

import json
import math
import platform
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from rich.console import Console
from rich.table import Table

from naysay._console import SafeConsole
from naysay.arrays import torch_in_one_thread
from naysay.checks import check_bool, check_whole, public, raise_invalid
from naysay.demo.library import Library, read_library
from naysay.difficulty.study import Mean, mean_of
from naysay.files import as_path, check_target, is_draft, write_whole
from naysay.text import json_file, percent, short_repr

if TYPE_CHECKING:
    from naysay.demo.tutorial import Lesson, Split
    from naysay.detectors import Evaluation
    from naysay.quantity import Estimate

SEEDS, STEPS, QUICK_STEPS = 3, 100, 20
RESULTS, REPORT = "results.json", "report.html"
RIVALS = ("in-batch", "plain hard")
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
    steps = QUICK_STEPS if quick else STEPS
    with torch_in_one_thread("demo"):
        from naysay.demo import tutorial

        library = read_library()
        if quick:
            library = library.take(np.flatnonzero(library.text_of % 4 == 0))
        parts = tutorial.split(library, seed)
        _print_corpus(screen, library, parts)
        with screen.status("estimating k with one negative (the first time, loops are compiled)") as status:
            estimate = tutorial.how_many(parts, steps // 2, seed)
            lessons = []
            for place in range(SEEDS):
                status.update(f"seed {place + 1} of {SEEDS}: four kinds of negatives")
                lessons.append(tutorial.lesson(parts, steps=steps, seed=SEEDS * seed + place))
        first = lessons[0]
        detection = tutorial.evaluated(first, parts.train)
        plain, judged = (tutorial.false_share(mined, parts.train) for mined in (first.plain, first.mined))
    quality = {
        arm: {measure: [lesson.quality[arm][measure] for lesson in lessons] for measure in tutorial.MEASURES}
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
        summary=_summary(ndcg, "nDCG@10"),
        advice=_advice(ndcg),
        report=folder / REPORT,
    )
    _write_results(folder, result, seed=seed, quick=quick)  # before printing, which a closed pipe ends
    _write_report(result, first, parts, seed, f"naysay demo --seed {seed}{' --quick' if quick else ''}")
    _print_quality(screen, quality, parts)
    _print_detectors(screen, detection)
    _print_choices(screen, result)
    screen.print(result.summary, style="bold", highlight=False)
    screen.print(result.advice, highlight=False)
    screen.print(f"Report of the mined negatives: {result.report}", markup=False, highlight=False, soft_wrap=True)
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
    counts = {"slots": "negatives", "false_negatives": "false", "flagged": "flagged"}
    fields = counts | {"precision": "precision", "recall": "recall"}
    estimate = result.k_estimate
    plain = {
        "python": platform.python_version(),
        **{name: getattr(result, name) for name in ("names", "fingerprint", "quality", "rule", "summary", "advice")},
        "detection": {
            detector: {name: getattr(found, field) for field, name in fields.items()}
            for detector, found in result.detection.items()
        },
        "k": {"best": estimate.k, "flat": list(estimate.flat), "at_edge": estimate.at_edge},
        "false_shares": dict(zip(("plain hard", "judged"), result.false_shares, strict=True)),
    }
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise_invalid("out", "a folder that can be made", f"{str(folder)!r} ({error.strerror})")
    write_whole("out", folder / RESULTS, json_file(_MARK | plain | settings))


def _write_report(result: Demonstration, lesson: Lesson, parts: Split, seed: int, made_by: str) -> None:
    """The report of the judged negatives of the first seed."""
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


# ---- what is printed -------------------------------------------------------------------------------------------------


def _mean_text(found: Mean, sign: str = "") -> str:
    """A mean over seeds in per cent, with half of its 95 % CI: '41.9 ± 0.6'; one seed has no CI."""
    shown = f"{100 * found.mean:{sign}.1f}"
    return shown if math.isnan(found.low) else f"{shown} ± {100 * (found.high - found.mean):.1f}"


def _excludes_zero(found: Mean) -> bool:
    return found.low > 0 or found.high < 0


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> Mean:
    """The mean difference, paired by seed, so that what both arms of a seed share cancels."""
    return mean_of(np.subtract(ours, theirs))


def _summary(values: Mapping[str, Sequence[float]], measure: str) -> str:
    """Which arm has the highest mean, and how "judged" compares with each rival; one number per seed."""
    means = {name: float(np.mean(each)) for name, each in values.items()}
    best = max(means, key=lambda name: means[name])
    gaps = []
    for rival in RIVALS:
        gap = _difference(values["judged"], values[rival])
        points = f"{abs(100 * gap.mean):.1f} points {'above' if gap.mean >= 0 else 'below'} {rival}"
        interval = "one seed: no CI"
        if not math.isnan(gap.low):
            zero = "excludes 0" if _excludes_zero(gap) else "includes 0"
            interval = f"95 % CI {100 * gap.low:.1f} to {100 * gap.high:.1f}, {zero}"
        gaps.append(f"{points} ({interval})")
    return f"Best mean {measure}: {best}, {100 * means[best]:.1f} %. Judged is {gaps[0]} and {gaps[1]}."


def _advice(values: Mapping[str, Sequence[float]]) -> str:
    """What to do, from the same numbers: whether to mine, and whether to judge."""
    mined, judged = (_difference(values["judged"], values[rival]) for rival in RIVALS)
    if not _excludes_zero(mined):
        return "What to do: run more seeds. They do not show yet whether mined negatives are better than in-batch ones."
    if mined.mean < 0:
        return "What to do: train with in-batch negatives. Mined negatives are worse here."
    if not _excludes_zero(judged):
        return "What to do: mine negatives. These seeds do not show that judging them changes the result here."
    return f"What to do: mine negatives{' and judge them' if judged.mean > 0 else '; judging them is worse here'}."


def _print_corpus(screen: Console, library: Library, parts: Split) -> None:
    """Where the texts come from, and how they are split."""
    from naysay.demo.tutorial import ASKED, PASSAGE, STRIDE

    _print_plain(
        screen,
        f"Corpus: {len(library):,} docstrings of the standard library of Python {platform.python_version()}, the long "
        f"ones cut into {parts.passages:,} passages of {PASSAGE} words, one every {STRIDE} words. A question is "
        f"{ASKED} words of a passage; one of the passages that answer it is labelled. Fingerprint "
        f"{library.fingerprint}.",
        f"Split by docstring: {len(parts.train):,} questions to train, {len(parts.validation):,} to validate, "
        f"{len(parts.test):,} to test.",
    )


def _print_quality(screen: Console, quality: Mapping[str, Mapping[str, list[float]]], parts: Split) -> None:
    """The table of arms, and the differences of "judged" to its rivals, paired by seed."""
    from naysay.demo.tutorial import BATCH, MEASURES, K

    title = f"Answers to {len(parts.test):,} test questions among {parts.passages:,} passages, in %"
    table = _table(title, "negatives", "per question", *MEASURES)
    batch = f"{min(BATCH, len(parts.train)) - 1} in-batch"
    kinds = (f"{K} random", batch, f"{batch}, {K} nearest", f"{batch}, {K} judged")
    for (arm, rows), kind in zip(quality.items(), kinds, strict=True):
        table.add_row(arm, kind, *(_mean_text(mean_of(rows[measure])) for measure in MEASURES))
    table.add_section()
    for rival in RIVALS:
        gaps = (_difference(quality["judged"][measure], quality[rival][measure]) for measure in MEASURES)
        table.add_row("judged", f"minus {rival}", *(_mean_text(gap, "+") for gap in gaps))
    screen.print(table)
    _print_plain(
        screen,
        f"Mean over {len(quality['judged']['MRR'])} seeds ± 95 % CI (Student's t); differences are paired by seed. "
        "The last row is what judging was worth.",
    )


def _print_detectors(screen: Console, detection: Mapping[str, Evaluation]) -> None:
    """How well each detector finds the false ones among the plain hard negatives."""
    first = next(iter(detection.values()))
    title = f"{first.false_negatives:,} of {first.slots:,} plain hard negatives are false: they answer the question"
    table = _table(title, "detector", "flagged", "precision", "recall")
    for name, found in detection.items():
        shares = ("none" if math.isnan(share) else percent(share) for share in (found.precision, found.recall))
        table.add_row(name, f"{found.flagged:,}", *shares)
    screen.print(table)


def _print_choices(screen: Console, result: Demonstration) -> None:
    """What the judge did, beside the truth, and k with its reason."""
    from naysay.demo.tutorial import BATCH, K

    estimate, (plain, judged) = result.k_estimate, result.false_shares
    low, high = estimate.flat
    reach = f"{low:,} or more" if high == len(estimate.curve) else f"{low:,} to {high:,}"
    _print_plain(
        screen,
        f"The judge: {result.rule} In truth {percent(plain)} of the nearest are false, and {percent(judged)} of the "
        "judged.",
        f"k: by a run with one random negative per question, the labels have a separation of "
        f"{estimate.separation:.2f} and the encoder reaches {estimate.reached[-1]:.2f} on validation questions. Best: "
        f"{estimate.k:,} random negatives; {reach} are within 1 % of it. A batch of {BATCH} has {BATCH - 1} that need "
        f"no extra encoding, so all are used, plus {K} mined ones.",
        *estimate.notes,
    )


def _table(title: str, *headings: str) -> Table:
    """An empty table: words to the left, numbers to the right."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        is_words = heading in ("negatives", "per question", "detector")
        table.add_column(heading, justify="left" if is_words else "right", no_wrap=True)
    return table


def _print_plain(screen: Console, *sentences: str) -> None:
    """Paragraphs without colours for numbers and without markup in names."""
    for sentence in sentences:
        screen.print(sentence, highlight=False, markup=False)
