"""Does judging pay when an encoder is fine-tuned? all-MiniLM-L6-v2 or static word vectors, by sentence-transformers.

The texts are short and long descriptions of Debian packages. Packages of one source are positives of each other, and
only a package's own long description is labelled, as titles and bodies are in practice. So the truth is known.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import naysay as ns
from benchmarks import measures, readers
from benchmarks.readers import Ids
from benchmarks.study import Claim, Found, Job, Settings, Study

TOP = 10
SIZES = {"rich": (3, 20), "natural": (1, 20)}  # packages of a source
PARTS = ("train", "validation", "test")
TOKENS = 48
LAYERS = 6  # of all-MiniLM-L6-v2
SCALE = 20.0  # of cosines in the loss, as sentence-transformers has it
DEPTH = 30  # neighbours that "nearest without duplicates" chooses from
NEAREST = 4  # neighbours whose false negatives "relabelled" turns into positives


@dataclass(frozen=True, eq=False)
class Part:
    """Packages of one part: a short and a long text each, and which are of one source. Row i is labelled with row i."""

    short: list[str]
    long: list[str]
    relevant: ns.Positives


@dataclass(frozen=True, eq=False)
class World:
    """The parts of a seed, and the folder of data, which has the encoder."""

    folder: Path
    train: Part
    validation: Part
    test: Part


@cache
def packages(folder: Path) -> list[dict[str, Any]]:
    """All packages of Debian."""
    return [json.loads(line) for line in readers.lines(folder / "debian-desc/packages.jsonl.xz")]


def world(folder: Path, seed: int, settings: Settings) -> World:
    """Three parts that share no source, of at most so many packages each."""
    rows = packages(folder)
    sources = np.unique([row["source"] for row in rows], return_inverse=True)[1].astype(np.int64)
    smallest, largest = SIZES[settings["data"]]
    counts = np.bincount(sources)
    eligible = np.flatnonzero((counts >= smallest) & (counts <= largest))
    shuffled = ns.rng_for(seed).permutation(eligible)
    # Sources are taken one after another until a part has enough packages.
    ends = np.searchsorted(np.cumsum(counts[shuffled]), np.cumsum([settings[name] for name in PARTS]))
    parts = {}
    for name, chosen in zip(PARTS, np.split(shuffled, ends)[: len(PARTS)], strict=True):
        places = np.flatnonzero(np.isin(sources, chosen))
        same_source = sources[places][:, None] == sources[places]
        parts[name] = Part(
            short=[rows[place]["short"] for place in places],
            long=[rows[place]["long"] for place in places],
            relevant=ns.Positives.from_pairs(*np.nonzero(same_source), *same_source.shape),
        )
    return World(folder, **parts)


# ---- encoders --------------------------------------------------------------------------------------------------------


def encoder(folder: Path, name: str) -> Any:
    """A sentence-transformers model that is not trained yet."""
    from sentence_transformers import SentenceTransformer

    if name == "minilm":
        model = SentenceTransformer(str(folder / "minilm"), device="cpu")
        model.max_seq_length = TOKENS
        return model
    from safetensors.torch import load_file
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer

    table = load_file(folder / "wordllama" / "table.safetensors")
    (weights,) = table.values()
    tokenizer = Tokenizer.from_file(str(folder / "wordllama" / "tokenizer.json"))
    tokenizer.enable_truncation(TOKENS)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights.float())], device="cpu")


def encoded(model: Any, texts: list[str]) -> NDArray[np.float32]:
    """Unit vectors; an empty text of a static encoder gets the mean direction, for it must have one."""
    vectors = model.encode(texts, batch_size=64, show_progress_bar=False)
    has_words = np.abs(vectors).sum(axis=1, keepdims=True) > 0
    return readers.unit(np.where(has_words, vectors, vectors.mean(axis=0)))


# ---- arms ------------------------------------------------------------------------------------------------------------


def negatives_of(job: Job, queries: NDArray[np.float32], documents: NDArray[np.float32]) -> Ids:
    """(anchors, k) the negatives of an arm."""
    part, k = job.world.train, job.settings["k"]
    anchors = np.arange(len(queries))
    labelled = ns.Positives.from_pairs(anchors, anchors, len(anchors), len(anchors))
    uniform = np.asarray(ns.pools.Everything(labelled).draw(ns.Query(anchors), k, rng=ns.rng_for(job.seed)).ids)
    if job.arm == "random":
        return uniform
    if job.arm == "nearest without duplicates":
        near = ns.mine(queries, documents, labelled, DEPTH, judge=None).ids
        texts = np.unique(part.long, return_inverse=True)[1]
        other_text = texts[near] != texts[anchors][:, None]
        first = np.argsort(~other_text, axis=1, kind="stable")[:, :k]
        mined = np.where(np.take_along_axis(other_text, first, 1), np.take_along_axis(near, first, 1), -1)
    elif job.arm in ("oracle", "relabelled"):
        mined = ns.mine(queries, documents, part.relevant, k, judge=None).ids
    elif job.arm == "auto, 100 answers":
        mined = ns.mine(
            queries, documents, labelled, k, judge="auto", seed=job.seed, reviewer=_source_reviewer(part), review=100
        ).ids
    else:
        judge = {"nearest": None, "95 % rule": "share:0.95", "auto": "auto"}[job.arm]
        mined = ns.mine(queries, documents, labelled, k, judge=judge, seed=job.seed).ids
    return np.where(mined >= 0, mined, uniform)  # a row that is short is filled at random


def _source_reviewer(part: Part) -> Any:
    """Answers whether pairs are of one source, and is always right."""

    def answers(pairs: Any) -> Any:
        return part.relevant.contains(pairs.anchors, pairs.items).astype(float)

    return answers


def training_rows(job: Job, queries: NDArray[np.float32], documents: NDArray[np.float32], negatives: Ids) -> Any:
    """(anchor, positive, negatives) of each row; "relabelled" has more rows: its nearest that are relevant."""
    anchors = np.arange(len(queries))
    positives = anchors
    if job.arm == "relabelled":
        labelled = ns.Positives.from_pairs(anchors, anchors, len(anchors), len(anchors))
        near = ns.mine(queries, documents, labelled, NEAREST, judge=None).ids
        is_false = job.world.train.relevant.contains(anchors, near)
        rows, slots = np.nonzero(is_false)
        anchors = np.concatenate([anchors, rows])
        positives = np.concatenate([positives, near[rows, slots]])
    return anchors, positives, negatives[anchors]


def freeze_below(model: Any, layers: int) -> None:
    """Train the last `layers` layers of a transformer only."""
    for name, weights in model.named_parameters():
        place = re.search(r"encoder\.layer\.(\d+)\.", name)
        weights.requires_grad = place is not None and int(place[1]) >= LAYERS - layers


def train(model: Any, job: Job, anchors: Ids, positives: Ids, negatives: Ids) -> None:
    """So many steps of MultipleNegativesRankingLoss, as users of sentence-transformers run it."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.losses import MultipleNegativesRankingLoss
    from sentence_transformers.training_args import BatchSamplers

    part, settings = job.world.train, job.settings
    if "layers" in settings:
        freeze_below(model, settings["layers"])
    columns = {"anchor": [part.short[row] for row in anchors], "positive": [part.long[row] for row in positives]}
    for slot in range(negatives.shape[1]):
        columns[f"negative_{slot + 1}"] = [part.long[row] for row in negatives[:, slot]]
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            max_steps=settings["steps"],
            per_device_train_batch_size=settings["batch"],
            learning_rate=settings["lr"],
            warmup_steps=settings["steps"] // 10,
            batch_sampler=BatchSamplers.NO_DUPLICATES,
            seed=job.seed,
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        loss = MultipleNegativesRankingLoss(model, scale=SCALE)
        SentenceTransformerTrainer(model, arguments, Dataset.from_dict(columns), loss=loss).train()


def quality(model: Any, part: Part) -> dict[str, float]:
    """nDCG@10 by all that is relevant, and MRR@10 of the labelled documents alone, in per cent."""
    queries, documents = (torch.from_numpy(encoded(model, texts)) for texts in (part.short, part.long))
    rows = np.arange(len(queries))
    labelled = ns.Positives.from_pairs(rows, rows, len(rows), len(rows))
    return {
        "ndcg": 100 * measures.ranked(queries, documents, part.relevant, TOP)["ndcg"],
        "labelled_mrr": 100 * measures.ranked(queries, documents, labelled, TOP)["mrr"],
    }


def run(job: Job) -> Found:
    """Mine with the encoder as it is, train it, and test it."""
    model = encoder(job.world.folder, job.settings["encoder"])
    found: Found = {}
    if job.arm != "not trained":
        part = job.world.train
        queries, documents = encoded(model, part.short), encoded(model, part.long)
        negatives = np.empty((len(queries), 0), np.int64)
        if job.arm != "in-batch":
            negatives = negatives_of(job, queries, documents)
            rows = np.repeat(np.arange(len(negatives)), negatives.shape[1])
            found["false_percent"] = 100 * float(part.relevant.contains(rows, negatives.reshape(-1)).mean())
            found["hardness"] = float((queries[rows] * documents[negatives.reshape(-1)]).sum(axis=1).mean())
        train(model, job, *training_rows(job, queries, documents, negatives))
    validated = quality(model, job.world.validation)
    found |= {"validation": validated["labelled_mrr"], "validation_ndcg": validated["ndcg"]}
    return quality(model, job.world.test) | found


# ---- declarations ----------------------------------------------------------------------------------------------------
ARMS = (
    "not trained",
    "in-batch",
    "random",
    "nearest",
    "nearest without duplicates",
    "95 % rule",
    "auto",
    "auto, 100 answers",
    "oracle",
    "relabelled",
)
PROTOCOL = """\
Does judging pay for a fine-tuned encoder? {encoder}, fine-tuned by SentenceTransformerTrainer with
MultipleNegativesRankingLoss (scale 20), {steps} steps of 32 anchors, 48 tokens, 32-bit floats, k = 2 negatives an
anchor, mined once by the encoder before training. The short description of a Debian package is an anchor, its own long
description its labelled positive; all packages of its source are relevant. Sources of {smallest} to {largest} packages,
split by source, another split for each seed: 6,000 packages to train, 1,000 to validate, 3,000 to test. A row with
fewer negatives than k is filled at random. The learning rate is chosen on a split of its own, by MRR@10 of labelled
validation pairs of "in-batch", and is the same for all arms. Main measure: nDCG@10 of the test part by all that is
relevant, after the last step. MRR@10 of labelled pairs is reported beside it, to show what validation on labels alone
would prefer. "nearest without duplicates" drops documents whose text is that of the labelled positive; "oracle" the
relevant ones; "relabelled" is the oracle, and turns those of the 4 nearest that are relevant into positives."""
CLAIMS = (
    Claim("judged negatives are better than the nearest", "auto", "nearest", "ndcg"),
    Claim("judged negatives are better than the 95 % rule", "auto", "95 % rule", "ndcg"),
    Claim("judged negatives are better than in-batch only", "auto", "in-batch", "ndcg"),
    Claim("more than duplicates are dropped", "auto", "nearest without duplicates", "ndcg"),
    Claim("an oracle is not better than judged negatives", "oracle", "auto", "ndcg", 0, 0.5),
    Claim("100 answers are better than none", "auto, 100 answers", "auto", "ndcg"),
    Claim("labels alone prefer the nearest to judged negatives", "nearest", "auto", "labelled_mrr"),
)
SETTINGS = {"k": 2, "batch": 32, "train": 6000, "validation": 1000, "test": 3000}
QUICK = {"steps": 2, "batch": 8, "train": 60, "validation": 30, "test": 30}
ENCODERS = {
    "minilm": ("all-MiniLM-L6-v2", (2e-5, 5e-5)),
    "static": ("The static word vectors of wordllama (256 dimensions, a table that is trained)", (5e-3, 2e-2)),
}


def declared(encoder: str, data: str, steps: int, seeds: int) -> Study:
    """One encoder on one kind of data."""
    text, rates = ENCODERS[encoder]
    smallest, largest = SIZES[data]
    return Study(
        name=f"encoder-{encoder}-{data}-{steps}",
        protocol=PROTOCOL.format(encoder=text, steps=steps, smallest=smallest, largest=largest),
        data=("debian-desc", "minilm" if encoder == "minilm" else "wordllama"),
        world=world,
        run=run,
        arms={arm: arm for arm in ARMS},
        seeds=tuple(range(seeds)),
        measures=("ndcg", "labelled_mrr", "validation", "validation_ndcg", "false_percent", "hardness"),
        claims=CLAIMS,
        settings={**SETTINGS, "encoder": encoder, "data": data, "steps": steps},
        quick=QUICK,
        grid=tuple({"lr": rate} for rate in rates),
        tuned_like=dict.fromkeys(ARMS, "in-batch"),
        base="nearest",
    )


SMALL = {"train": 2000, "validation": 300, "test": 1500, "steps": 60, "layers": 2}
SMALL_PROTOCOL = """
The last two of its six layers are trained, for 60 steps, on 2,000 packages; 300 validate and 1,500 test. So the
study is small: it shows the order of the arms early in training, not what a full fine-tuning reaches. A pilot of one
seed with another split was seen before."""


def declared_small(data: str) -> Study:
    """MiniLM at a cost that one core can pay: two minutes a run."""
    full = declared("minilm", data, SMALL["steps"], 3)
    sizes = "6,000 packages to train, 1,000 to validate, 3,000 to test"
    return replace(
        full,
        name=f"encoder-minilm-{data}-60-two-layers",
        protocol=full.protocol.replace(f": {sizes}", "") + SMALL_PROTOCOL,
        settings={**full.settings, **SMALL},
        grid=({"lr": 5e-5}, {"lr": 2e-4}),
    )


STUDIES = (
    *(declared_small(data) for data in SIZES),
    *(declared("minilm", data, 300, 3) for data in SIZES),
    *(declared("static", data, steps, 5) for data in SIZES for steps in (300, 1000)),
)
