"""The results of a job: the sampled anchors as a `Mined`, the summary, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from naysay.detectors.posterior import Posterior
from naysay.detectors.rate import RateEstimate
from naysay.jobs.parts import JobNegatives
from naysay.jobs.prepare import Ready
from naysay.mining.estimate import SetEstimate, stated, trade_of_set
from naysay.mining.mined import Mined
from naysay.mining.problem import is_auto
from naysay.mining.take import deeper
from naysay.places import Place

_HIGH_RATE = 0.05  # a false-negative rate to look into before training
_CLEARLY_ABOVE = 1.2  # times that rate
_UNSURE = 0.25  # an upper limit of the rate above which more labels are needed to know


def sampled_mined(ready: Ready, negatives: JobNegatives) -> Mined:
    """The sampled anchors as a `Mined`, to be shown; its rule and its estimate are those of all negatives."""
    return Mined(
        ready.problem,
        ready.judge,
        negatives.sample,
        negatives.sampled_counts,
        anchors=negatives.sampled,
        whole=(negatives.ids, negatives.scores),
    )


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


def summarised(
    ready: Ready, negatives: JobNegatives, sample: Mined, output: Place, rows: int, notes: tuple[str, ...]
) -> MinedFile:
    """The summary of a training file with so many rows."""
    problem, tally, estimate = ready.problem, negatives.tally, sample.estimate
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
        advice=next_step(
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


def to_be_reviewed(summary: MinedFile, path: Place, pairs: int) -> MinedFile:
    """The summary with what to do with the pairs to review."""
    advice = (
        f"Next: write yes (a false negative) or no in the column false_negative of {path}, for some or all of its "
        f"{pairs:,} pairs from the first on; then mine again with --reviewed {path}."
    )
    return replace(summary, advice=advice, review=path)


def next_step(
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


def as_numbers(summary: MinedFile) -> dict[str, str]:
    """{what: figure}, as a report shows it."""
    share = summary.false_negatives
    rate = share if isinstance(share, str) else stated(share)
    return {
        "anchors": f"{summary.anchors:,}",
        "k": f"{summary.k}",
        "negatives": f"{summary.negatives:,}",
        "estimated false negatives": rate,
        "hardness": f"{summary.hardness:.3f}",
        "short anchors": f"{summary.short:,}",
        "rows written": f"{summary.rows:,}",
    }
