"""The options of the commands `howmany`, `thresholds` and `audit`, each declared once.

They stand apart from what the commands do, which is slow to load, so that help and completion are fast.
"""

# ruff: noqa: RUF009 (an option is declared by a call, like dataclasses.field)

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from naysay._options import option


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HowmanyOptions:
    """All options of `naysay howmany`."""

    train_auc: float | None = option(None, "Training AUC at convergence, from a run with one uniform negative.")
    val_auc: str = option("", "Validation AUCs of that run: a .csv, .json or .npy file, or 0.52,0.61,0.66.")
    column: str = option("", "Which column of the .csv file, if none is named auc or val_auc.")
    separation: list[float] | None = option(None, "Instead of AUCs: a separation, on a simulated run. Can be repeated.")
    weight: float = option(0.9, "Weight of good and bad samples against easy ones.")
    k_max: int = option(1000, "The largest k to consider.")
    plot: Path | None = option(None, "Draw the paper's figures to this .svg or .png file.")
    json: Path | None = option(None, "Write all results to this file.")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdOptions:
    """All options of `naysay thresholds`."""

    scores: Path = option(help="Scores of negatives, higher is closer: an .npy or .parquet file.", flags=("scores",))
    column: str = option("", "Which column of the .parquet file, if none is named score.")
    positives: int = option(
        0,
        "Number of known positives; they count among all pairs.",
        flags=("--positives", "--n-positives"),
        parameters=("n_positives",),
    )
    false_share: float = option(0.001, "Share of all pairs to treat as false negatives.")
    hard_share: float = option(0.05, "Share of all pairs to treat as hard negatives.")
    low_grid: str = option("", "Low values to choose among: 0.12,0.121 or first:last:step.", parameters=("grid",))
    high_grid: str = option("", "High values to choose among, in the same form.")
    start_low: float = option(0.0, "The low threshold at which the table of high values is counted.")
    scope: str = option("all", "all: one pair of thresholds; anchor: one for each row.")
    plot: Path | None = option(None, "Draw the scores in their bands to this .svg or .png file.")
    json: Path | None = option(None, "Write all results to this file.")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """All options of `naysay audit`."""

    negatives: Path = option(
        help="A training file: .parquet, .jsonl, .json or .hf, in any format.",
        flags=("negatives",),
        parameters=("path",),
    )
    format: str = option("", "triplet, n-tuple, ids, ...; found by the columns if left out.")
    query_vectors: Path | None = option(None, "Vectors of the anchors: .npy, .safetensors or .parquet.")
    corpus_vectors: Path | None = option(None, "Vectors of the documents: .npy, .safetensors or .parquet.")
    query_ids: Path | None = option(None, "Ids of the rows of --query-vectors: .txt, one a line, or a table.")
    corpus_ids: Path | None = option(None, "Ids of the rows of --corpus-vectors.")
    model: str = option("", "Folder of an encoder, in place of vectors.", parameters=("name",))
    query_prompt: str = option("", "Prompt that --model puts before each anchor.")
    corpus_prompt: str = option("", "Prompt that --model puts before each document.")
    encoded: Path | None = option(None, "Folder in which --model keeps its vectors.", parameters=("folder",))
    metric: str = option("cosine", "Score of a pair: cosine, dot or l2.")
    temperature: float = option(0.05, "Temperature of InfoNCE, at which gradients are measured.")
    alpha: float = option(0.05, "Share of unlabelled positives below the suggested threshold.")
    fail_above: str | None = option(None, "Exit with 1 if the share of false negatives may be above: 2%, or 0.02.")
    fail_on: str = option("upper", "What that compares: upper, the upper end of the 95 % CI, or estimate.")
    top: int = option(10, "Number of the worst rows to show.")
    seed: int = option(0, "Seed of all random choices.")
    json: Path | None = option(None, "Write all results to this file.")
    report: Path | None = option(None, "Write the results as one .html file.")
