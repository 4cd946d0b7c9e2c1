"""The options of the commands `methods`, `howmany`, `thresholds`, `audit` and `compare`, each declared once.

They stand apart from what the commands do, which is slow to load, so that help and completion are fast.
"""

# ruff: noqa: RUF009 (an option is declared by a call, like dataclasses.field)

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from naysay._options import option
from naysay.places import Place


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MethodsOptions:
    """All options of `naysay methods`."""

    name: str = option("", "A method, by any of its names. Default: list all.", flags=("name",))
    data: str = option("", "Only methods for pairs, graph, triples, texts or images.")
    needs: str = option("", "Only methods that need no more than: none, scores, extra, torch, or scores,torch.")
    cost: str = option("", "Only methods whose step costs at most: low, medium or high.")


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
    plot: Path | None = option(None, "Draw v over k, and the schedule, to this .svg or .png file.")
    json: Path | None = option(None, "Write all results to this file.")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdOptions:
    """All options of `naysay thresholds`."""

    scores: Place = option(help="Scores of negatives, higher is closer: an .npy or .parquet file.", flags=("scores",))
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
    json: Place | None = option(None, "Write all results to this file.")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """All options of `naysay audit`."""

    negatives: Place = option(
        help="A training file: .parquet, .jsonl, .json or .hf, in any format.",
        flags=("negatives",),
        parameters=("path",),
    )
    format: str = option("", "triplet, n-tuple, ids, ...; found by the columns if left out.")
    query_vectors: Place | None = option(None, "Vectors of the anchors: .npy, .safetensors or .parquet.")
    corpus_vectors: Place | None = option(None, "Vectors of the documents: .npy, .safetensors or .parquet.")
    query_ids: Place | None = option(None, "Ids of the rows of --query-vectors: .txt, one a line, or a table.")
    corpus_ids: Place | None = option(None, "Ids of the rows of --corpus-vectors.")
    model: str = option(
        "", "Encoder, in place of vectors: its folder, or its name on the Hugging Face hub.", parameters=("name",)
    )
    query_prompt: str = option("", "Prompt that --model puts before each anchor.")
    corpus_prompt: str = option("", "Prompt that --model puts before each document.")
    device: str | None = option(None, "Device of --model: cpu, cuda, ...")
    encoded: Place | None = option(None, "Folder in which --model keeps its vectors.", parameters=("folder",))
    metric: str = option("cosine", "Score of a pair: cosine, dot or l2.")
    temperature: float = option(0.05, "Temperature of InfoNCE, at which gradients are measured.")
    alpha: float = option(0.05, "Share of unlabelled positives below the suggested threshold.")
    fail_above: str | None = option(None, "Exit with 1 if the share of false negatives may be above: 2%, or 0.02.")
    fail_on: str = option("upper", "What --fail-above compares: upper (end of the 95 % CI) or estimate.")
    top: int = option(10, "Number of the worst rows to show.")
    seed: int = option(0, "Seed of all random choices.")
    fix: Path | None = option(None, "Write the set without what was found, in its own format, to this file.")
    fix_reasons: str = option(
        "",
        "Which negatives --fix drops: own text, known elsewhere, duplicate, transitive, reviewed, suspected, repeated; "
        "separated by commas. Default: all.",
        parameters=("reasons",),
    )
    reviewer: str | None = option(
        None, "Who answers about --review negatives: cross-encoder:PATH, encoder:PATH, llm:MODEL@URL or people."
    )
    review: int | None = option(None, "Negatives that --reviewer is asked about; 100 are enough for most sets.")
    answers: Path | None = option(None, "File that keeps the answers of --reviewer. Default: beside the set.")
    review_file: Path | None = option(
        None, "File in which people answer: .csv, .jsonl or .parquet. Default: beside the set."
    )
    false_negatives: str = option("drop", "False negatives that --reviewer finds: --fix makes them drop or positive.")
    json: Place | None = option(None, "Write all results to this file.")
    report: Place | None = option(None, "Write the results as one .html file.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """All options of `compare`.

    Args:
        task: "recommendation", "knowledge-graph", "graph", "text" or "images".
        model: "mf" (matrix factorisation, the default) or "lightgcn"; for a knowledge graph "transe" (the default),
            "distmult", "complex" or "rotate"; for a graph "skip-gram" (the default) or "graphsage"; for texts "adapter"
            (the default where there are vectors) or "subwords"; for images "conv".
        methods: Names of the catalogue that fit the data; module:object of a function that gets {name: part} and
            returns a sampler; NAME:K for K negatives per positive, NAME for as many as the default arms have. As "a,b",
            a list, or {name: function}. By default those of the task. A single one is compared to the first of these.
        seeds: Runs of each arm, which differ in the first vectors, the data order and the draws.
        budget: Processor time of the whole comparison: "30m", "2h", "90s", or seconds. It decides the steps.
        steps: Gradient steps of a run, in place of `budget`; then two runs give the same table, but for times.
        out: The folder of the results. Finished runs are kept there at once, and a second call continues. None keeps
            nothing.
        validation: File of the interactions, triples or pairs for validation.
        test: File of those for the test.
        split: "user", "time" or "auto", if those two are not given; see `lab.read_interactions`.
        liked: The lowest rating that counts as a positive.
        corpus: Table of the documents, with ids and texts; see `lab.read_texts`.
        query_vectors: Vectors of the queries.
        corpus_vectors: Vectors of the documents.
        labels: Table of the nodes' classes.
        seed: The first of the seeds, and that of a split by user.
        quick: Compare on generated data, in less than a minute.
        device: Where torch keeps the models and trains, such as "cuda". Not measured on a GPU.
    """

    task: str = option("recommendation", "The task: recommendation, knowledge-graph, graph, text or images.")
    model: str = option(
        "", "mf, lightgcn; transe, distmult, complex, rotate; skip-gram, graphsage; adapter, subwords; conv."
    )
    methods: Any = option(None, "Names of the catalogue, module:object, NAME:K; separated by commas.")
    seeds: int = option(3, "Number of seeds, one run of each arm for each.")
    budget: Any = option("30m", "Processor time of the whole comparison: 30m, 2h, 90s.")
    steps: int | None = option(None, "Gradient steps of a run, in place of --budget.")
    out: Path | None = option(None, "Folder for the results; a second run continues.", flags=("--out", "-o"))
    validation: Path | None = option(None, "File of the interactions, triples or pairs for validation, if given.")
    test: Path | None = option(None, "The same for the test.")
    split: str = option("auto", "How to split: user, time, or auto (by time if most later users and items are known).")
    liked: float | None = option(None, "The lowest rating that counts as a positive.")
    corpus: Path | None = option(None, "Texts: table of the documents, with ids and texts.")
    query_vectors: Any = option(None, "Texts: vectors of the queries, .npy, .safetensors or .parquet.")
    corpus_vectors: Any = option(None, "Texts: vectors of the documents.", parameters=("document_vectors",))
    labels: Path | None = option(None, "Graphs: table of nodes and their classes.")
    seed: int = option(0, "First seed; also the seed of the split.")
    quick: bool = option(False, "Compare on generated data, in less than a minute.")
    device: Any = option("cpu", "Device of the models: cpu, cuda, ...")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CompareCommandOptions(CompareOptions):
    """All options of `naysay compare`."""

    data: Path | None = option(
        None,
        "Interactions, triples, edges, pairs of texts, or images: a file, or a folder. Not used with --quick.",
        flags=("data",),
        parameters=("path", "users", "items", "triples", "edges", "pairs", "images", "query_texts"),
    )
