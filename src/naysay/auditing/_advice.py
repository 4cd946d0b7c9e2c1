"""What to do about a training set: sentences, the most pressing first, and the same for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from naysay.auditing._text import counted, percent
from naysay.auditing.gradient_share import Pulls
from naysay.auditing.k_verdict import Quantity
from naysay.auditing.repeats import Repeats
from naysay.detectors.share import Share

_SOME, _HALF, _TIMES = 0.01, 0.5, 3  # suspected negatives, easy ones, and how often chance a repetition is worth a word


@final
@dataclass(frozen=True, slots=True)
class Inputs:
    """Where the set and its vectors lie, as far as they are files.

    Args:
        path: Of the set.
        format: Of the set.
        named: Whether it has ids or texts, not row numbers.
        queries: Files of vectors.
        corpus: Files of vectors.
        query_names: Files with the names of their rows.
        corpus_names: Files with the names of their rows.
    """

    path: Path | None
    format: str | None
    named: bool
    queries: Path | None
    corpus: Path | None
    query_names: Path | None
    corpus_names: Path | None
    metric: str

    @property
    def tables(self) -> list[str] | None:
        """The files that `naysay mine` needs beside the vectors; None where the set cannot be its pairs."""
        kinds = [".parquet", ".jsonl"]
        if self.path is None or self.path.suffix.lower() not in kinds or self.format not in ("triplet", "n-tuple"):
            return None
        if not self.named:
            return []
        if self.query_names is None or self.corpus_names is None:
            return None
        if ".txt" in (self.query_names.suffix.lower(), self.corpus_names.suffix.lower()):
            return None  # it reads tables
        return ["--queries", str(self.query_names), "--corpus", str(self.corpus_names)]


def advice(
    negatives: int,
    false: Share,
    proven: int,
    suspected: int,
    high: float,
    pulls: Pulls | None,
    duplicates: int | None,
    repeats: Repeats,
    quantity: Quantity,
) -> tuple[str, ...]:
    """A sentence for each thing to do."""
    found = []
    if proven:
        found.append(f"Take out {counted(proven, 'negative')}, the anchor or a known positive: false for sure.")
    if suspected - proven >= max(1, _SOME * negatives):
        line = f": a score of {high:.4g} or more, or a copy" if high < float("inf") else ": copies"
        found.append(
            f"Look at the worst rows, then drop or ignore {counted(suspected - proven, 'negative')}{line}; at most "
            f"about {percent(false.estimate)} of all are false."
        )
    if pulls is not None and pulls.counts["easy"] > _HALF * sum(pulls.counts.values()):
        easy = pulls.counts["easy"] / sum(pulls.counts.values())
        found.append(
            f"{percent(easy)} of the negatives teach nothing at temperature {pulls.temperature:g}: mine harder ones, "
            "or fewer."
        )
    if duplicates:
        found.append(f"Take out {counted(duplicates, 'duplicate')}: a negative that weighs twice.")
    if repeats.beyond and repeats.top_share > _TIMES * repeats.by_chance:
        found.append(
            f"Look at {counted(repeats.beyond, 'document')} with more than {counted(repeats.limit, 'anchor')} each, "
            "which chance does not give: hubs of the encoder, or boilerplate."
        )
    if quantity.verdict in ("too small", "too large"):
        found.append(
            f"k = {quantity.k} is {quantity.verdict} for labels as clean as these: {quantity.best} is best, negatives "
            "of the batch included."
        )
    if not found and pulls is None:
        found.append("Nothing stands out among copies and repetitions. Vectors, or scores, would show the rest.")
    return tuple(found) or ("Nothing stands out: train on it.",)


def commands(inputs: Inputs, quantity: Quantity) -> tuple[str, ...]:
    """Lines to paste into a shell, each word quoted where it must be: mine again, look at k, audit the result."""
    found: list[Sequence[str]] = []
    vectors: list[str] = []
    if inputs.queries is not None and inputs.corpus is not None:
        vectors = ["--query-vectors", str(inputs.queries), "--corpus-vectors", str(inputs.corpus)]
        vectors += [] if inputs.metric == "cosine" else ["--metric", inputs.metric]
    if inputs.path is not None and vectors and (tables := inputs.tables) is not None:
        mined = inputs.path.with_name(f"{inputs.path.name.partition('.')[0]}-mined.parquet")
        k = quantity.k if quantity.verdict != "too large" or quantity.best is None else quantity.best
        found.append(["naysay", "mine", str(inputs.path), *tables, *vectors, "-k", str(k), "-o", str(mined)])
        names = ["--query-ids", tables[1], "--corpus-ids", tables[3]] if tables else []
        found.append(["naysay", "audit", str(mined), *vectors, *names])
    if quantity.separation is not None:
        found.append(["naysay", "howmany", "--separation", f"{quantity.separation:.4g}"])
    # What a terminal would obey and not show does not belong into a line to paste.
    return tuple(shlex.join(words) for words in found if all(map(str.isprintable, words)))
