"""What to do about a training set: sentences, the most pressing first, and shell commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from naysay.auditing._training_set import TrainingSet
from naysay.auditing.findings import KVerdict
from naysay.auditing.result import Audit
from naysay.auditing.suspects import PROVEN
from naysay.text import counted, percent

_MIN_SUSPECTED, _MANY_EASY, _OVER_CHANCE = 0.01, 0.5, 3  # above these there is something to do


def advice_on(audit: Audit, threshold: float) -> tuple[str, ...]:
    """Return a sentence for each thing to do.

    Args:
        audit: The findings; its own `advice` is not read.
        threshold: The score from which a negative is suspected; infinity: none.
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


@final
@dataclass(frozen=True, slots=True)
class InputFiles:
    """The set and its vectors, as far as they are files: a path each, or None."""

    given: TrainingSet
    metric: str
    query_vectors: Any
    corpus_vectors: Any
    query_ids: Any
    corpus_ids: Any

    def path(self, name: str) -> Path | None:
        """Return one of the inputs if it is a file."""
        value = getattr(self, name)
        return Path(value) if isinstance(value, str | Path) else None

    @property
    def tables(self) -> list[str] | None:
        """The files that `naysay mine` needs beside the vectors; None if it cannot read the set as pairs."""
        given, names = self.given, (self.path("query_ids"), self.path("corpus_ids"))
        kinds = [".parquet", ".jsonl"]
        if given.path is None or given.path.suffix.lower() not in kinds or given.format not in ("triplet", "n-tuple"):
            return None
        if given.corpus_names is None:  # row numbers
            return []
        if names[0] is None or names[1] is None or ".txt" in (name.suffix.lower() for name in names if name):
            return None  # it reads tables only
        return ["--queries", str(names[0]), "--corpus", str(names[1])]


def commands_for(files: InputFiles, k: KVerdict) -> tuple[str, ...]:
    """Return shell commands, quoted: mine again, audit the result, plot effectiveness over k."""
    commands: list[Sequence[str]] = []
    path, queries, corpus = files.given.path, files.path("query_vectors"), files.path("corpus_vectors")
    if path is not None and queries is not None and corpus is not None and (tables := files.tables) is not None:
        vectors = ["--query-vectors", str(queries), "--corpus-vectors", str(corpus)]
        vectors += [] if files.metric == "cosine" else ["--metric", files.metric]
        mined = path.with_name(f"{path.name.partition('.')[0]}-mined.parquet")
        new_k = k.k if k.verdict != "too large" or k.best is None else k.best
        commands.append(["naysay", "mine", str(path), *tables, *vectors, "-k", str(new_k), "-o", str(mined)])
        names = ["--query-ids", tables[1], "--corpus-ids", tables[3]] if tables else []
        commands.append(["naysay", "audit", str(mined), *vectors, *names])
    if k.separation is not None:
        commands.append(["naysay", "howmany", "--separation", f"{k.separation:.4g}"])
    # A path with control characters could do something else than it shows.
    return tuple(shlex.join(words) for words in commands if all(map(str.isprintable, words)))
