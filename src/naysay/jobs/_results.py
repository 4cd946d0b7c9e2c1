"""The results of a job: all parts together, the sampled anchors as a `Mined`, and the summary of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._urls import Place
from naysay.detectors.posterior import Posterior
from naysay.detectors.share import Share
from naysay.jobs._folder import JobFolder
from naysay.jobs._parts import above, parts, sampled_rows, unpacked, widened, without_cap
from naysay.jobs._prepare import Ready
from naysay.mining.candidates import Candidates, Reason
from naysay.mining.estimate import SetEstimate, trade_of_set
from naysay.mining.mined import Mined
from naysay.mining.pipeline import take_negatives
from naysay.mining.problem import is_auto
from naysay.mining.take import added, deeper, slots_of, tally_of, too_frequent
from naysay.text import with_interval

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]
_HIGH_RATE, _ABOVE = 0.05, 1.2  # a false-negative rate to look into before training, if it is clearly above
_UNSURE = 0.25  # an upper limit of the rate above which more labels are needed to know


@final
@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """All parts of a job together."""

    ids: Ids  # (n, k), mapped from a file in the job's folder, like the scores
    scores: Floats
    tally: dict[str, int]
    dropped: dict[str, int]
    above: int  # see `_parts.above`
    sample: Candidates  # of some anchors
    rows: Ids  # which these are
    counts: Ids  # k of these
    own_text: Ids  # anchors whose own vector is in the corpus


def together(folder: JobFolder, ready: Ready) -> Whole:
    """Put the parts together: ids and scores in files that are mapped, the sample in memory."""
    problem = ready.problem
    n, width = problem.queries.n, problem.width
    if problem.counts is None:
        width = max((part.arrays["ids"].shape[1] for part in parts(folder)), default=0)
    width = max(1, width)
    tallies, dropped, pairs, samples, counts = [], dict[str, int](), 0, [], np.zeros(n, np.int64)
    own_text = np.zeros(n, np.bool_)
    with (
        folder.array_file("ids.npy", (n, width), np.dtype(np.int64)) as ids,
        folder.array_file("scores.npy", (n, width), np.dtype(np.float32)) as scores,
    ):
        for part in parts(folder):
            for stream, name, empty in ((ids, "ids", -1), (scores, "scores", -np.inf)):
                stream.write(widened(part.arrays[name], width, empty).data)
            counts[part.start : part.stop] = part.arrays["counts"]
            own_text[part.start : part.stop] = part.arrays["own_text"]
            tallies.append(part.totals["tally"])
            for reason, count in part.totals["dropped"].items():
                dropped[reason] = dropped.get(reason, 0) + count
            pairs += part.totals["above"]
            own = {name[7:]: np.array(values) for name, values in part.arrays.items() if name[:7] == "sample "}
            samples.append(own)
    rows = sampled_rows(n, problem.first_depth)
    whole = Whole(
        folder.array("ids.npy"),
        folder.array("scores.npy"),
        added(tallies),
        dict(sorted(dropped.items())),
        pairs,
        unpacked(problem, samples),
        rows,
        counts[rows],
        np.flatnonzero(own_text),
    )
    return whole if problem.options.max_per_item is None else _capped(folder, ready, whole, counts)


def _capped(folder: JobFolder, ready: Ready, whole: Whole, counts: Ids) -> Whole:
    """The same with at most `max_per_item` anchors for each item: the stage of mining that sees all anchors."""
    problem = ready.problem
    columns = [(part.arrays["left ids"], part.arrays["left scores"]) for part in parts(folder)]
    ids, scores = (np.concatenate(column) for column in zip(*columns, strict=True))
    lists = Candidates.listed(ids, scores)
    limit = int(problem.options.max_per_item or 0)
    over = too_frequent(ids, scores, lists.kept, counts, limit)
    chosen, counts = take_negatives(replace(problem, counts=counts), ready.judge, lists)
    slots = slots_of(chosen, whole.ids.shape[1])
    passed_over = np.where(over, ids, -2)[whole.rows]
    sample = whole.sample.unselected()
    sample = sample.drop((sample.ids[:, :, None] == passed_over[:, None]).any(axis=2), Reason.TOO_FREQUENT)
    sample, _ = take_negatives(without_cap(replace(problem, counts=counts)), ready.judge, sample, whole.rows)
    tally = tally_of(chosen, counts, None) | {"searched": whole.tally["searched"]}
    later = (Reason.TOO_FREQUENT, Reason.NOT_SELECTED, Reason.SHORT_ANCHOR)
    left = whole.tally["negatives"] + sum(whole.dropped.get(reason, 0) for reason in later)
    dropped = {reason: count for reason, count in whole.dropped.items() if reason not in later}
    dropped |= {str(reason): int(each.sum()) for reason, each in chosen.dropped.items()}
    dropped[str(Reason.NOT_SELECTED)] = 0  # lists of short anchors are cut: what is neither taken nor dropped
    dropped[str(Reason.NOT_SELECTED)] = left - tally["negatives"] - sum(dropped.get(reason, 0) for reason in later)
    return replace(
        whole,
        ids=slots["ids"],
        scores=slots["scores"],
        tally=tally,
        dropped={reason: count for reason, count in sorted(dropped.items()) if count},
        above=above(slots["scores"][slots["ids"] >= 0], ready.background),
        sample=sample,
    )


def sampled(ready: Ready, whole: Whole) -> Mined:
    """The sampled anchors as a `Mined`, to be shown and measured; row i is the anchor `whole.rows[i]`.

    Its rule and its estimate are those of all negatives of the job, as `mine` gives them.
    """
    everything = whole.ids, whole.scores
    return Mined(ready.problem, ready.judge, whole.sample, whole.counts, whole.rows, everything)


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
    false_negatives: Share | str
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
        if isinstance(rate, Share):
            rate = with_interval(rate.estimate, rate.low, rate.high)
        hardness = f"hardness {self.hardness:.3f}" if self.negatives else "no hardness"
        short = f"{self.short:,} anchors short by {self.missing:,}" if self.short else "no anchor short"
        recall = "" if self.recall is None else f", recall {self.recall:.3f}"
        counts = f"{self.anchors:,} anchors, k = {self.k}, {self.negatives:,} negatives, false negatives {rate}"
        own = f", own text of {self.own_text:,} anchors left out" if self.own_text else ""
        line = f"{self.output}: {counts}, {hardness}, {short}{own}{recall}"
        return "\n".join(part for part in (line, self.advice, self.trade) if part)


def summarised(
    ready: Ready, whole: Whole, sample: Mined, notes: tuple[str, ...], output: Place, rows: int
) -> MinedFile:
    """The summary of a training file with so many rows."""
    problem, tally, estimate = ready.problem, whole.tally, sample.estimate
    rate: Share | str = f"unknown ({estimate.reason})" if estimate.share is None else estimate.share
    return MinedFile(
        output=output,
        rows=rows,
        anchors=tally["anchors"],
        k="auto" if problem.counts is None else problem.width,
        negatives=tally["negatives"],
        short=tally["short"],
        missing=tally["missing"],
        false_negatives=rate,
        hardness=whole.above / max(1, tally["negatives"] * len(ready.background)),
        rule=sample.rule,
        notes=notes,
        dropped=whole.dropped,
        recall=problem.recall,
        trade=_trade(ready, sample.rule, estimate),
        own_text=len(np.union1d(ready.own_text, whole.own_text)),
        advice=next_step(
            output,
            tally,
            rate,
            depth=deeper(tally, ready.corpus.n),
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
    return f"{rule} {trade_of_set(ready.problem, ready.fit, estimate)}"


def to_be_reviewed(summary: MinedFile, path: Place, pairs: int) -> MinedFile:
    """The summary with what to do with the pairs to review."""
    advice = (
        f"Next: write yes (a false negative) or no in the column false_negative of {path}, for some or all of its "
        f"{pairs:,} pairs from the first on; then mine again with --reviewed {path}."
    )
    return replace(summary, advice=advice, review=path)


def next_step(
    output: Place, tally: Mapping[str, int], rate: Share | str, *, depth: int, judge: Any, target: float
) -> str:
    """What to do next, by what is most wrong with the negatives.

    `depth` is how deep to search for anchors that are short, 0 if that cannot help. `judge` is the detector, or None,
    and `target` the share of false negatives that was asked for.
    """
    if not tally["negatives"]:
        return "Next: mine again with a larger --depth, another --judge or a lower --min-score: there are no negatives."
    if tally["short"] and depth:
        return f"Next: mine again with --depth {depth}, or train with fewer negatives for the anchors that are short."
    if isinstance(rate, Share) and rate.estimate > _ABOVE * max(_HIGH_RATE, target):
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
    rate = share if isinstance(share, str) else with_interval(share.estimate, share.low, share.high)
    return {
        "anchors": f"{summary.anchors:,}",
        "k": f"{summary.k}",
        "negatives": f"{summary.negatives:,}",
        "estimated false negatives": rate,
        "hardness": f"{summary.hardness:.3f}",
        "short anchors": f"{summary.short:,}",
        "rows written": f"{summary.rows:,}",
    }
