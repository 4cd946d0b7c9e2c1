"""The part of docs/evidence-images.md about debiased and hard negatives of the batch."""

from __future__ import annotations

from typing import Any

from benchmarks.docs.claims_images import HEADINGS, Seen, Table, over, points

PICTURE = "claims_in_batch.svg"


def in_batch_sections(result: dict[str, Any], table: Table) -> list[str]:
    """Debiased and hard negatives of the batch."""
    return [
        "## Debiased and hard negatives of the batch",
        IN_BATCH.format(**_tried(result["settings"]), minutes=result["processor_minutes"]),
        table(HEADINGS, [seen.cells() for seen in in_batch_claims(result["worlds"])]),
        table(_ARM_HEADINGS, [row for parts, world in result["worlds"].items() for row in _arm_rows(parts, world)]),
        f"![points over plain]({PICTURE})",
        IN_BATCH_WHY,
    ]


IN_BATCH = """\
Yang et al. Does Negative Sampling Matter? A Review with Insights into its Theory and Applications. Its Fig. 7 is from
Robinson, Chuang, Sra, Jegelka. Contrastive Learning with Hard Negative Samples. ICLR 2021.

Pictures, encoder and training of the first study. The temperature of each arm (of {temperatures}), the prior of
debiased (of {priors}) and the beta of hard (of {betas}) are chosen by validation pictures, with a seed that is not
compared; hard has the prior of debiased. All runs took {minutes:.0f} processor minutes.
"""


def _tried(settings: dict[str, Any]) -> dict[str, str]:
    """The values that were tried of each setting."""
    return {name: ", ".join(f"{value:g}" for value in settings[name]) for name in ("temperatures", "priors", "betas")}


_ARM_HEADINGS = ("classes", "arm", "seeds", "accuracy", "over plain", "temperature", "prior", "beta", "seconds")


def in_batch_claims(worlds: dict[str, Any]) -> list[Seen]:
    """The claims of Fig. 7."""
    pairs = (("debiased", "plain"), ("hard", "plain"), ("hard", "debiased"))
    return [
        Seen(f"{arm.capitalize()} is better than {base}, {10 ** int(parts)} classes", "yes", over(arms, arm, base))
        for arm, base in pairs
        for parts, arms in ((parts, world["arms"]) for parts, world in worlds.items())
    ]


def _arm_rows(parts: str, world: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for name, row in world["arms"].items():
        tuned = world["tuning"][name]
        against = row.get("over_plain", {}).get("accuracy")
        chosen = (f"{tuned[key]:g}" for key in ("temperature", "prior", "beta"))
        cost = f"{row['processor_seconds']['mean']:.0f}"
        accuracy = f"{row['accuracy']['mean']:.2f}"
        rows.append((f"{10 ** int(parts)}", name, str(row["seeds"]), accuracy, points(against), *chosen, cost))
    return rows


IN_BATCH_WHY = """\
Why so little is seen: there is little to gain. Debiasing subtracts the expected share of false negatives and does not
know which they are; when exactly these leave the denominator ("oracle eliminate" above), the gain is below two points.
In the paper training is longer and the encoder larger. More weight on hard negatives is also more weight on false ones:
with 10 classes, where a tenth is false, it makes debiased worse.

What was not blind: nothing of these arms was seen before the settings were chosen. The highest temperature was the best
for hard, and for debiased with 10 classes; higher ones were not tried.
"""
