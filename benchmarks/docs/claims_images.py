"""docs/evidence-images.md: the claims of two papers about negatives of pictures, and what was seen of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.training.seed_summaries import spread

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]
Spread = dict[str, Any]
PICTURES = ("claims_detection.svg", "claims_percentiles.svg")
NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Seen:
    """A claim, what the paper reports, and the paired difference that tests it: above 0 if the claim is true."""

    claim: str
    paper: str
    difference: Spread | None

    @property
    def verdict(self) -> str:
        """By the 95 % CI of the difference over seeds."""
        if self.difference is None:
            return NOT_TRIED
        mean, half = self.difference["mean"], self.difference["half"]
        if half is None:
            return "one seed only"
        if mean > half:
            return "reproduced"
        return "not reproduced, the opposite" if mean < -half else f"not shown, {'same' if mean > 0 else 'other'} sign"

    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        seeds = str(len(self.difference["values"])) if self.difference else "0"
        return self.claim, self.paper, "" if self.difference is None else points(self.difference), seeds, self.verdict


HEADINGS = ("claim", "in the paper", "here, points", "seeds", "verdict")


def points(found: Spread | None, figures: int = 2) -> str:
    """A difference and half its 95 % CI."""
    if found is None:
        return ""
    half = "" if found["half"] is None else f" ± {found['half']:.{figures}f}"
    return f"{found['mean']:+.{figures}f}{half}"


def minus(one: Spread | None, other: Spread | None) -> Spread | None:
    """The difference of two spreads, paired by seed. Every row has its seeds from 0 on."""
    if one is None or other is None:
        return None
    pairs = list(zip(one["values"], other["values"], strict=False))
    return spread([mine - theirs for mine, theirs in pairs])


def of(arms: dict[str, Any], name: str, measure: str = "accuracy") -> Spread | None:
    """A measure of an arm; None if it has not run."""
    found: Spread | None = arms[name][measure] if name in arms else None
    return found


def over(arms: dict[str, Any], name: str, base: str, measure: str = "accuracy") -> Spread | None:
    """An arm against another."""
    return minus(of(arms, name, measure), of(arms, base, measure))


def page(detection: dict[str, Any], percentiles: dict[str, Any], table: Table) -> str:
    """The whole page."""
    parts = [PREFACE, *detection_sections(detection, table), *percentile_sections(percentiles, table)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


PREFACE = """\
# Evidence: claims about negatives of pictures

Two papers say what false negatives and hard negatives do to an encoder of pictures. Their main claims were trained
again here, on a small scale: Fashion-MNIST at 14 x 14, a convolutional encoder that trains in under a minute of one
core. Figures are from `benchmarks/results/claims_detection.json` and `claims_percentiles.json`.

A difference is paired by seed and given with half its 95 % CI (Student's t). A claim is **reproduced** if the CI of the
difference that it predicts is above 0, **not reproduced** if it is below, and **not shown** if it includes 0; with two
or three seeds the CI is wide, so "not shown" does not mean that the claim is false.
"""


def detection_sections(result: dict[str, Any], table: Table) -> list[str]:
    """Incremental detection of false negatives."""
    settings, ten, hundred = result["settings"], result["worlds"]["1"]["arms"], result["worlds"]["2"]["arms"]
    return [
        "## Incremental detection of false negatives",
        DETECTION.format(**settings),
        table(HEADINGS, [seen.cells() for seen in detection_claims(ten, hundred)]),
        ARMS_NOTE,
        "### 10 classes",
        table(_ARM_HEADINGS, _arm_rows(ten)),
        "### 100 classes",
        table(_ARM_HEADINGS, _arm_rows(hundred)),
        f"![points over plain for each arm, and NMI through training]({PICTURES[0]})",
        DETECTION_WHY,
        table(("labels", "recall", "precision", "over plain"), _precision_rows(ten)),
        DETECTION_CHOICES,
    ]


DETECTION = """\
Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022.

SimCLR on {train:,} pictures of 10 classes, or of 100: a picture of two channels holds two pictures, and its class is
the pair of theirs. {epochs} epochs, batches of {batch}, temperature {temperature}; a clustering every {every} epochs.
The gain of a method is the accuracy of a linear probe minus that of plain SimCLR.
"""
ARMS_NOTE = """\
All arms. Recall and precision are of the flagged pairs, averaged over training with the learning rate as weight. The
share of the gap is that between plain and SupCon (oracle attract), of means over seeds. Oracles use the true classes.
"""
_ARM_HEADINGS = ("arm", "seeds", "accuracy", "over plain", "share of the gap", "recall", "precision", "seconds")


def detection_claims(ten: dict[str, Any], hundred: dict[str, Any]) -> list[Seen]:
    """The claims of Tables 5 and 6 and of Figs. 1 and 6."""
    best, gap = "linear to 100 %", "oracle attract"
    gaps = [over(arms, gap, "plain") for arms in (ten, hundred)]
    coarse = [over(arms, "oracle attract, groups", "plain", "group_accuracy") for arms in (ten, hundred)]
    schemes = ("constant 100 %", "step to 100 %")
    shares = ("25 %", "50 %", "75 %")
    return [
        Seen("False negatives cost accuracy: SupCon is better than SimCLR, 10 classes", "+1.7", gaps[0]),
        Seen("the same, 100 classes", "+4.7", gaps[1]),
        Seen("The gap is larger with 100 classes than with 10", "+3.0", minus(gaps[1], gaps[0])),
        Seen("The gap is larger with 10 classes than with their 4 groups", "+1.0", minus(gaps[0], coarse[0])),
        Seen("Detection improves on SimCLR, 10 classes", "+0.9", over(ten, best, "plain")),
        Seen("the same, 100 classes", "+2.5", over(hundred, best, "plain")),
        Seen("It closes at least half of the gap, 10 classes", "53 %", _beyond_half(ten)),
        Seen("the same, 100 classes", "53 %", _beyond_half(hundred)),
        Seen("Elimination is better than attraction, 10 classes", "", over(ten, best, f"{best}, attract")),
        Seen("the same, 100 classes", "+3.8", over(hundred, best, f"{best}, attract")),
        *(
            Seen(f"Linear acceptance is better than {scheme}, 10 classes", said, over(ten, best, scheme))
            for scheme, said in zip(schemes, ("+2.7", "+0.9"), strict=True)
        ),
        Seen("the same, better than step, 100 classes", "+0.9", over(hundred, best, "step to 100 %")),
        *(
            Seen(f"Accepting up to 100 % is better than up to {share}", said, over(ten, best, f"linear to {share}"))
            for share, said in zip(shares, ("+1.5", "+1.0", "+0.5"), strict=True)
        ),
        Seen("Linear ends with better clusters (NMI) than constant", "yes", over(ten, best, "constant 100 %", "nmi")),
        Seen("Detection is better than plain training that costs more", "", over(ten, best, "plain, 1.3 x the epochs")),
    ]


def _beyond_half(arms: dict[str, Any]) -> Spread | None:
    """The gain minus half the gap, by seed."""
    gain, gap = over(arms, "linear to 100 %", "plain"), over(arms, "oracle attract", "plain")
    return minus(gain, None if gap is None else spread([value / 2 for value in gap["values"]]))


def _arm_rows(arms: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for name, row in arms.items():
        against = row.get("over_plain", {}).get("accuracy")
        share = row.get("closed_percent", {}).get("oracle attract")
        rates = (f"{row[key]['mean']:.0f} %" if key in row else "" for key in ("recall", "precision"))
        closed = "" if share is None else f"{share:.0f} %"
        cost = f"{row['processor_seconds']['mean']:.0f}"
        rows.append((name, str(row["seeds"]), f"{row['accuracy']['mean']:.2f}", points(against), closed, *rates, cost))
    return rows


def _precision_rows(arms: dict[str, Any]) -> list[tuple[str, ...]]:
    names = ("step to 100 %", "step to 100 %, wrong labels removed", "oracle eliminate")
    rows = []
    for name in (name for name in names if name in arms):
        row = arms[name]
        rates = (f"{row[key]['mean']:.0f} %" if key in row else "100 %" for key in ("recall", "precision"))
        rows.append((name, *rates, points(row["over_plain"]["accuracy"])))
    return rows


DETECTION_WHY = """\
Why detection gains less than the oracle: precision. The same clusters of the same schedule, once as they are and once
without the labels of samples whose class is not that of most of their cluster (which needs the true classes):
"""
DETECTION_CHOICES = """\
"""


def percentile_sections(result: dict[str, Any], table: Table) -> list[str]:
    """Percentiles of hardness."""
    studies = {(one["parts"], one["temperature"]): one["arms"] for one in result["studies"]}
    parts = [
        "## Which percentiles of hardness matter",
        PERCENTILES.format(**result["settings"]),
        table(HEADINGS, [seen.cells() for seen in percentile_claims(studies)]),
        PERCENTILE_NOTE,
    ]
    for (channels, temperature), arms in studies.items():
        if arms:
            parts += [
                f"### {10**channels} classes, temperature {temperature:g}",
                table(_LEFT_HEADINGS, _left_rows(arms)),
            ]
    return [*parts, f"![accuracy for each set of negatives]({PICTURES[1]})", PERCENTILES_WHY]


PERCENTILES = """\
Cai, Frankle, Schwab, Morcos. Are all negatives created equal in contrastive instance discrimination? 2020.

MoCo on {train:,} pictures of 100 classes (two pictures as two channels), a queue of {queue:,}, momentum {momentum},
{steps:,} steps of {batch} anchors. Each arm removes percentiles of each anchor's queue by hardness at every step.
"""
PERCENTILE_NOTE = """\
All arms. "Left" is the share of the queue that stays, "same class" the share of those with the anchor's class, in the
second half of training.
"""
_LEFT_HEADINGS = ("negatives", "seeds", "accuracy", "against all", "left", "same class", "seconds")


def percentile_claims(studies: dict[tuple[int, float], dict[str, Any]]) -> list[Seen]:
    """The claims of Figs. 2 and 3 and of Table 1."""
    warm, cold = studies[2, 0.2], studies[2, 0.07]
    hard, most = "only 95-100 %", "all but 99.9-100 %"
    enough = over(warm, hard, "all")
    return [
        Seen(
            "The hardest 5 % are sufficient: at most 1 point is lost",
            "-0.7",
            None if enough is None else spread([value + 1 for value in enough["values"]]),
        ),
        Seen("The hardest 5 % are better than the next 5 %", "+14.8", over(warm, hard, "only 90-95 %")),
        Seen("and than 5 % at random", "", over(warm, hard, "only 5 % at random")),
        Seen("The hardest 5 % are necessary: all others together lose", "+5.4", over(warm, "all", "all but 95-100 %")),
        Seen("Removing the hardest 0.1 % helps, temperature 0.07", "+1.47", over(cold, most, "all")),
        Seen("the same, temperature 0.2", "+0.16", over(warm, most, "all")),
        Seen(
            "The lower the temperature, the more it helps (0.07 against 0.2)",
            "+1.31",
            minus(over(cold, most, "all"), over(warm, most, "all")),
        ),
        Seen("Removing the same class helps, 0.07", "+1.83", over(cold, "all but the same class", "all")),
        Seen(
            "Removing the same class of the hardest 0.1 % helps, 0.07",
            "+1.65",
            over(cold, f"{most}, same class", "all"),
        ),
        Seen(
            "Removing the others of the hardest 0.1 % hurts, 0.07", "+1.09", over(cold, "all", f"{most}, other classes")
        ),
    ]


def _left_rows(arms: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for name, row in arms.items():
        shares = (f"{row[key]['mean']:.1f} %" for key in ("left", "same_class"))
        against = row.get("over_all", {}).get("accuracy")
        cost = f"{row['processor_seconds']['mean']:.0f}"
        rows.append((name, str(row["seeds"]), f"{row['accuracy']['mean']:.2f}", points(against), *shares, cost))
    return rows


PERCENTILES_WHY = """\
"""
