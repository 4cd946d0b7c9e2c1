"""The result of an audit, as text and as JSON, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, final

from naysay.auditing._training_set import SetScores, TrainingSet
from naysay.auditing.findings import K_MAX, NEGLIGIBLE, GradientShare, KVerdict, Repeats
from naysay.auditing.suspects import PROVEN, Reasons, Worst
from naysay.checks import public
from naysay.detectors.share import Share
from naysay.detectors.thresholds import Thresholds
from naysay.files import as_path, check_target, write_whole
from naysay.text import counted, json_file, percent, short_repr

_MIN_SUSPECTED, _MANY_EASY, _OVER_CHANCE = 0.01, 0.5, 3  # above these there is something to do


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """How good the negatives of a training set are. `str` gives the summary, what to do, and a line per finding.

    It keeps the scores and reasons of all slots, for `report_audit`.

    Args:
        name: The set.
        anchors: Anchors with a negative.
        negatives: Slots with a negative.
        documents: Documents in the corpus.
        false_share: The share of false negatives: `low` is proven, `estimate` and `high` are upper figures (95 % CI).
        suspected: Slots that score like a positive or are a copy of one.
        suspected_by: {reason: slots}: "score", or one of `detectors.Duplicates.reason_names`; one reason per slot.
        proven: Slots that are false without doubt: "positive", "anchor" or "same text".
        rule: How the score threshold was set, in a sentence.
        gradient_share: The share of the InfoNCE gradient by band; None without scores of positives and negatives.
        duplicates: Slots that repeat a negative of the same anchor and positive; None if unknown.
        repeats: Documents that are a negative of many anchors.
        k_verdict: Whether k fits.
        thresholds: {"calibrated", "low", "high"}: thresholds that the data suggest.
        worst: The negatives to review first.
        advice: What to do, the most pressing first.
        commands: Shell commands for it.
        notes: Assumptions and limits.
        settings: Metric, temperature, alpha, seed.

    Example: see `audit`.
    """

    name: str
    anchors: int
    negatives: int
    documents: int
    false_share: Share
    suspected: int
    suspected_by: Mapping[str, int]
    proven: int
    rule: str
    gradient_share: GradientShare | None
    duplicates: int | None
    repeats: Repeats
    k_verdict: KVerdict
    thresholds: Mapping[str, float]
    worst: tuple[Worst, ...]
    advice: tuple[str, ...]
    commands: tuple[str, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    _bands: Thresholds | None = field(repr=False)
    _scores: SetScores | None = field(repr=False)
    _reasons: Reasons = field(repr=False)

    @property
    def summary(self) -> str:
        """The main finding in a sentence."""
        share, total = self.false_share, counted(self.negatives, "negative")
        if share.high >= 1 and share.estimate == share.low:
            if not self.proven:
                return f"None of {total} is certainly false; how many are false is unknown."
            rest = "" if self.proven == self.negatives else "; how many of the others are false is unknown"
            return f"{self.proven:,} of {total} ({percent(share.low)}) certainly false{rest}."
        return f"At most about {percent(share.estimate)} of {total} are false ({_interval(share)})."

    def findings(self) -> dict[str, str]:
        """Return {finding: text}, in the order in which they are printed."""
        thresholds = ", ".join(f"{name} {value:.4g}" for name, value in self.thresholds.items())
        reasons = ", ".join(f"{name} {count:,}" for name, count in self.suspected_by.items()) or "none"
        easy, gradient = _gradient_texts(self.gradient_share)
        documents = counted(self.documents, "document")
        return {
            "set": f"{counted(self.negatives, 'negative')} of {counted(self.anchors, 'anchor')}, {documents}",
            "false": _false_text(self.false_share, self.negatives),
            "suspected": f"{self.suspected:,} ({percent(self.suspected / self.negatives)}): {reasons}",
            "too easy": easy,
            "gradient": gradient,
            "duplicates": "unknown" if self.duplicates is None else f"{self.duplicates:,}",
            "repeated": repeats_text(self.repeats),
            "k": k_text(self.k_verdict),
            "thresholds": thresholds or "none without scores",
        }

    def __repr__(self) -> str:
        """Return the settings, the numbers and the summary."""
        return short_repr(self, "summary")

    def __str__(self) -> str:
        """Return the summary, what to do, and a line for each finding."""
        table = (f"{name:<12} {text}" for name, text in self.findings().items())
        return "\n".join([self.summary, *self.advice, *table])

    def to_json(self) -> str:
        """Return all public fields as JSON; NaN and infinity become null."""
        names = [each.name for each in fields(self) if not each.name.startswith("_")]
        return json_file({"summary": self.summary} | {name: getattr(self, name) for name in names}).decode()

    def write(self, path: str | Path) -> Path:
        """Write the JSON, whole or not at all.

        Args:
            path: The file.
        """
        target = as_path("path", path)
        check_target("path", target)
        write_whole("path", target, self.to_json().encode("utf-8"))
        return target


def _interval(share: Share) -> str:
    return f"{100 * share.confidence:.0f} % CI {percent(share.low)} to {percent(share.high)}"


def _false_text(share: Share, negatives: int) -> str:
    """The share with its interval, and the number of slots."""
    if share.high >= 1 and share.estimate == share.low:
        return f"{percent(share.low)} proven; {share.notes[0]}" if share.notes else f"{percent(share.low)}, all proven"
    count = counted(round(share.estimate * negatives), "negative")
    return f"at most about {percent(share.estimate)}, {count} ({_interval(share)})"


def _gradient_texts(share: GradientShare | None) -> tuple[str, str]:
    """Which negatives are too easy, and the gradient share of each band."""
    if share is None:
        return ("unknown without scores of positives and negatives",) * 2
    idle = f"; all negatives together in {percent(share.idle_rows)} of the rows" if share.idle_rows else ""
    return (
        f"{share.counts['easy']:,} ({percent(share.easy_share)}) have a softmax weight below {NEGLIGIBLE:g} at "
        f"temperature {share.temperature:g}{idle}",
        ", ".join(f"{band} {percent(part)}" for band, part in share.shares.items()),
    )


def repeats_text(repeats: Repeats) -> str:
    """The slots of the most frequent documents, against chance."""
    first = repeats.most_frequent[0][1] if repeats.most_frequent else 0
    top = f"; the most frequent is a negative of {counted(first, 'anchor')}" if first else ""
    return (
        f"the most frequent 1 % of {repeats.documents:,} documents fill {percent(repeats.top_share)} of the slots "
        f"({percent(repeats.expected_share)} by chance){top}"
    )


def k_text(k: KVerdict) -> str:
    """Whether k fits."""
    if k.best is None:
        return f"{k.k}: {k.verdict}; {k.basis}"
    verb = "fits" if k.verdict == "fits" else f"is {k.verdict}"
    high = f"{K_MAX} or more" if k.high == K_MAX else f"{k.high}"
    return f"{k.k} {verb}: best {k.best}, {k.low} to {high} within 1 % of it (AUC {k.auc:.4g})"


def advice_on(audit: Audit, threshold: float) -> tuple[str, ...]:
    """Return a sentence for each thing to do, the most pressing first, from the other findings.

    A negative is suspected from the score `threshold` on.
    """
    sentences = []
    unproven = audit.suspected - audit.proven
    if audit.proven:
        what = counted(audit.proven, "negative")
        sentences.append(f"Remove {what} equal to the anchor or to a known positive: certainly false.")
    if unproven >= max(1, _MIN_SUSPECTED * audit.negatives):
        reasons = [name for name in audit.suspected_by if name not in PROVEN]
        why = ", ".join(f"score {threshold:.4g} or higher" if name == "score" else name for name in reasons)
        sentences.append(f"Review the worst rows, then drop or ignore {counted(unproven, 'negative')} ({why}).")
    share, k, repeats = audit.gradient_share, audit.k_verdict, audit.repeats
    if share is not None and share.easy_share > _MANY_EASY:
        sentences.append(
            f"Mine harder negatives, or fewer: {percent(share.easy_share)} of them have no gradient at temperature "
            f"{share.temperature:g}."
        )
    if audit.duplicates:
        sentences.append(f"Remove {counted(audit.duplicates, 'duplicate')}: the same negative counts twice in its row.")
    if repeats.above_limit and repeats.top_share > _OVER_CHANCE * repeats.expected_share:
        sentences.append(
            f"Review {counted(repeats.above_limit, 'document')} with more than {counted(repeats.limit, 'anchor')} each "
            "(more than chance explains): hubs of the encoder, or boilerplate."
        )
    if k.verdict in ("too small", "too large"):
        sentences.append(f"Use {k.best} negatives per row, in-batch ones included: k = {k.k} is {k.verdict}.")
    if not sentences and share is None:
        sentences.append("No copies or repeated documents found. Pass vectors or scores to check the rest.")
    return tuple(sentences) or ("No problem found: train on it.",)


def commands_for(given: TrainingSet, metric: str, inputs: Mapping[str, Any], k: KVerdict) -> tuple[str, ...]:
    """Return shell commands, quoted: mine again, audit the result, plot effectiveness over k.

    `inputs` are the vectors and their names, by parameter of `audit`; only files can be named in a command.
    """
    commands: list[Sequence[str]] = []
    files = {name: str(value) for name, value in inputs.items() if isinstance(value, str | Path)}
    tables = _tables(given, files)
    if given.path is not None and tables is not None and {"query_vectors", "corpus_vectors"} <= files.keys():
        vectors = ["--query-vectors", files["query_vectors"], "--corpus-vectors", files["corpus_vectors"]]
        vectors += [] if metric == "cosine" else ["--metric", metric]
        mined = given.path.with_name(f"{given.path.name.partition('.')[0]}-mined.parquet")
        new_k = k.k if k.verdict != "too large" or k.best is None else k.best
        commands.append(["naysay", "mine", str(given.path), *tables, *vectors, "-k", str(new_k), "-o", str(mined)])
        names = ["--query-ids", tables[1], "--corpus-ids", tables[3]] if tables else []
        commands.append(["naysay", "audit", str(mined), *vectors, *names])
    if k.separation is not None:
        commands.append(["naysay", "howmany", "--separation", f"{k.separation:.4g}"])
    # A path with control characters could do something else than it shows.
    return tuple(shlex.join(words) for words in commands if all(map(str.isprintable, words)))


def _tables(given: TrainingSet, files: Mapping[str, str]) -> list[str] | None:
    """Return the files that `naysay mine` needs beside the vectors; None if it cannot read the set as pairs."""
    is_table = given.path is not None and given.path.suffix.lower() in (".parquet", ".jsonl")
    if not is_table or given.format not in ("triplet", "n-tuple"):
        return None
    if given.corpus_names is None:  # row numbers
        return []
    names = [files.get(name, "none.txt") for name in ("query_ids", "corpus_ids")]
    if any(name.lower().endswith(".txt") for name in names):
        return None  # it reads tables only
    return ["--queries", names[0], "--corpus", names[1]]
