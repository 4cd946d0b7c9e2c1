"""The result of an audit, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from math import isnan
from pathlib import Path
from typing import Any, final

from naysay.audits._training_set import SetScores, TrainingSet
from naysay.audits.false_share import Trade
from naysay.audits.findings import K_MAX, NEGLIGIBLE, GradientShare, KVerdict, Repeats
from naysay.audits.fix import CHANGES, REPEATED, Fixed, fix_file, slots_to_drop
from naysay.audits.review import AuditReview
from naysay.audits.suspects import COPIES, PROVEN, Reasons, Worst
from naysay.checks import public
from naysay.detectors.rate import RateEstimate
from naysay.detectors.thresholds import Thresholds
from naysay.places import Place, as_place, check_target, write_whole
from naysay.text import counted, json_file, percent, short_repr


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
        proven: Slots that are false without doubt: "positive", "anchor" or "same text".
        duplicates: Slots that repeat a negative of the same anchor and positive.
        suspected_by: {reason: slots}: "reviewed", "unchecked", "score", or one of
            `detectors.Duplicates.reason_names`; one reason per slot.
        suspected: Slots with a reason.
        false_share: The estimated share of false negatives (95 % CI): `low` is proven; if `bound` is True, only the
            upper bound `high` is claimed. The estimate is NaN if it is unknown; the last of its notes says why.
        review: What a reviewer found; None without one.
        trade: What it would cost to come within a false share of 5 %; None where the share cannot be estimated.
        rule: How the score threshold was set, in a sentence.
        gradient_share: The share of the InfoNCE gradient by band; None without scores of positives and negatives.
        repeats: Documents that are a negative of many anchors.
        k_verdict: Whether k fits.
        thresholds: {"half false", "calibrated", "low", "high"}: thresholds that the data suggest.
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
    proven: int
    duplicates: int
    suspected_by: Mapping[str, int]
    suspected: int
    false_share: RateEstimate
    review: AuditReview | None
    trade: Trade | None
    rule: str
    gradient_share: GradientShare | None
    repeats: Repeats
    k_verdict: KVerdict
    thresholds: Mapping[str, float]
    worst: tuple[Worst, ...]
    advice: tuple[str, ...]
    commands: tuple[str, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    _set: TrainingSet = field(repr=False)
    _threshold: float = field(repr=False)
    _bands: Thresholds | None = field(repr=False)
    _scores: SetScores | None = field(repr=False)
    _reasons: Reasons = field(repr=False)

    @property
    def summary(self) -> str:
        """The main finding: what is certain, then the number of false negatives estimated."""
        share, total = self.false_share, counted(self.negatives, "negative")
        if self.proven == self.negatives:
            return f"All of {total} are certainly false."
        certain = f"{self.proven:,} of {total} {are(self.proven)} certainly false. " if self.proven else ""
        if self.is_unknown:
            others = "of the others are false is unknown" if self.proven else "are false is unknown"
            return f"{certain or f'None of {total} is certainly false. '}How many {others}."
        return f"{certain}{_sentence(share, self.negatives)}"

    @property
    def is_unknown(self) -> bool:
        """Whether only proven false negatives can be counted."""
        return isnan(self.false_share.estimate)

    def findings(self) -> dict[str, str]:
        """Return {finding: text}, in the order in which they are printed: what is certain first."""
        thresholds = ", ".join(f"{name} {value:.4g}" for name, value in self.thresholds.items())
        easy, gradient = _gradient_texts(self.gradient_share)
        documents = counted(self.documents, "document")
        by_score, reached = self.suspected_by.get("score", 0), f"score {self._threshold:.4g} or higher"
        reviewed = {} if self.review is None else {"reviewed": _review_text(self.review)}
        return {
            "set": f"{counted(self.negatives, 'negative')} of {counted(self.anchors, 'anchor')}, {documents}",
            "certain": _by_reason({name: self.suspected_by.get(name, 0) for name in PROVEN}, self.negatives),
            "copies": _by_reason({name: self.suspected_by.get(name, 0) for name in COPIES}, self.negatives),
            "duplicates": f"{self.duplicates:,}",
            "false": _false_text(self),
            **reviewed,
            "by score": f"{by_score:,} ({percent(by_score / self.negatives)}) {reached}" if by_score else "none",
            "too easy": easy,
            "gradient": gradient,
            "repeated": repeats_text(self.repeats),
            "k": k_text(self.k_verdict),
            "thresholds": thresholds or "none without scores",
        }

    @property
    def changes(self) -> dict[str, int]:
        """{reason: negatives} that `fix` would drop: what it finds, under the words of a change.

        A negative of an anchor with several positives counts once here, and for each of its rows in `Fixed.changes`.
        """
        counts = Counter[str]()
        for name, count in self.suspected_by.items():
            counts[CHANGES[name]] += count
        if self.duplicates:
            counts[REPEATED] += self.duplicates
        return dict(counts)

    def fix(self, path: str | Path, reasons: Collection[str] | None = None, *, false_negatives: str = "drop") -> Fixed:
        r"""Write the training file without the negatives that were found, in its own format, and a list of the changes.

        All else stays as it is: the order of rows, other columns, the names of columns. Where each row must have k
        negatives ("n-tuple", "colbert-nway"), a random document of the set takes the place, or the row goes if it has
        scores. A row whose only negatives went is left out. The audited file is not changed; both new files appear
        whole or not at all.

        Args:
            path: The new file, of the kind of the old one.
            reasons: Which negatives go: of "own text", "known elsewhere" (the set calls it a positive of the same
                anchor), "duplicate" (of a positive or the anchor), "transitive", "reviewed" (a reviewer says that it
                is a positive), "suspected" (by its score) and "repeated". None means all.
            false_negatives: What becomes of the reviewed ones: "drop" removes them, "positive" makes them positives of
                their row, in formats that hold several. The list of changes says which they are.

        Examples:
            >>> from tempfile import mkdtemp
            >>> import naysay as ns
            >>> path = Path(mkdtemp()) / "train.jsonl"
            >>> _ = path.write_text('{"query": "cat", "pos": ["a cat"], "neg": ["Cat.", "a dog"]}\n')
            >>> fixed = ns.audit(path).fix(path.with_name("fixed.jsonl"))
            >>> fixed.changes, fixed.path.read_text()
            ({'own text': 1}, '{"query": "cat", "pos": ["a cat"], "neg": ["a dog"]}\n')
        """
        slots = slots_to_drop(self._set, self._scores, self._reasons)
        return fix_file(self._set, slots, path, reasons, self.settings["seed"], false_negatives)

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

    def write(self, path: str | Place) -> Place:
        """Write the JSON, whole or not at all.

        Args:
            path: The file.
        """
        target = as_place("path", path)
        check_target("path", target)
        write_whole("path", target, self.to_json().encode("utf-8"))
        return target


def are(count: int) -> str:
    """The verb of a count."""
    return "is" if count == 1 else "are"


def _interval(share: RateEstimate) -> str:
    return f"{100 * share.confidence:.0f} % CI {percent(share.low)} to {percent(share.high)}"


def _sentence(share: RateEstimate, negatives: int) -> str:
    """The number of false negatives, or the largest that it can be."""
    total = counted(negatives, "negative")
    if share.bound and share.high >= 1:
        return f"How many of {total} are false cannot be told; at most about {percent(share.estimate)}."
    if share.bound:
        most, level = f"{round(share.high * negatives):,} of {total}", f"{100 * share.confidence:.0f} % confidence"
        return f"At most {most} ({percent(share.high)}) are false, with {level}; how many cannot be told."
    count = round(share.estimate * negatives)
    return f"Estimated false negatives: {count:,} of {total}, {percent(share.estimate)} ({_interval(share)})."


def _false_text(audit: Audit) -> str:
    """The number of slots with the share and its interval, or why it is unknown."""
    share = audit.false_share
    if audit.is_unknown:
        return share.notes[-1]
    count = round(share.estimate * audit.negatives)
    if share.bound and share.high >= 1:
        return f"cannot be told; at most about {count:,} ({percent(share.estimate)})"
    if share.bound:
        return f"at most {round(share.high * audit.negatives):,}, {percent(share.high)}"
    return f"about {count:,}, {percent(share.estimate)} ({_interval(share)})"


def _review_text(review: AuditReview) -> str:
    """How many were reviewed, and what is left after a fix."""
    text = f"{counted(review.reviewed, 'negative')}, {review.false:,} false"
    if review.after is None:
        return text
    after = review.after
    left = f"at most {percent(after.high)}" if after.bound else f"{percent(after.estimate)} ({_interval(after)})"
    return f"{text}; of what --fix leaves, {left} are false"


def _by_reason(counts: Mapping[str, int], negatives: int) -> str:
    """How many, their share, and each reason."""
    found = {name: count for name, count in counts.items() if count}
    total = sum(found.values())
    reasons = ", ".join(f"{name} {count:,}" for name, count in found.items())
    return f"{total:,} ({percent(total / negatives)}): {reasons}" if found else "none"


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
