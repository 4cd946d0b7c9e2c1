"""What to do about the findings of an audit: sentences, and commands for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from naysay.audits._training_set import TrainingSet
from naysay.audits.findings import KVerdict
from naysay.audits.result import Audit, are
from naysay.audits.suspects import NEAR
from naysay.detectors.rate import RateEstimate
from naysay.places import Url, as_place
from naysay.text import counted, percent

_MANY_EASY, _OVER_CHANCE, _TOO_MANY = 0.5, 3, 0.3  # above these there is something to do


def advice_on(audit: Audit) -> tuple[str, ...]:
    """Return a sentence for each thing to do: what is certain, copies, the estimate, then the others."""
    sentences = _on_copies(audit)
    if (sentence := _on_estimate(audit)) is not None:
        sentences.append(sentence)
    share, k, repeats = audit.gradient_share, audit.k_verdict, audit.repeats
    if share is not None and share.easy_share > _MANY_EASY:
        sentences.append(
            f"Mine harder negatives, or fewer: {percent(share.easy_share)} of them have no gradient at temperature "
            f"{share.temperature:g}."
        )
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


def _on_copies(audit: Audit) -> list[str]:
    """What to do about negatives that are certainly false, copies of positives, and repeated negatives."""
    sentences, by = [], audit.suspected_by
    if audit.proven:
        what = counted(audit.proven, "negative")
        sentences.append(f"Remove {what} equal to the anchor or to a known positive: certainly false.")
    if reviewed := by.get("reviewed", 0):
        sentences.append(f"Remove {counted(reviewed, 'negative')} that a reviewer calls positive.")
    if near := sum(by.get(name, 0) for name in NEAR):
        what = counted(near, "negative")
        sentences.append(
            f"Remove {what} with nearly the text or vector of a positive or the anchor: most likely false."
        )
    if shared := by.get("transitive", 0):
        sentence = (
            f"Review {counted(shared, 'negative')} that {are(shared)} a positive of another anchor which shares a "
            "positive (transitive): false if relevance carries over, as between duplicates."
        )
        if not audit.is_unknown and shared > audit.false_share.high * audit.negatives:
            sentence += " More than can be false by estimate: here it often does not."
        sentences.append(sentence)
    if audit.duplicates:
        sentences.append(f"Remove {counted(audit.duplicates, 'duplicate')}: the same negative counts twice in its row.")
    return sentences


def _on_estimate(audit: Audit) -> str | None:
    """What to do about false negatives by estimate."""
    trade, share = audit.trade, audit.false_share
    if trade is None:
        return None if audit.gradient_share is None else "Review the worst rows."
    target = f"{100 * trade.target:g} %"
    if not trade.dropped and share.high <= trade.target:
        return f"Nothing need be dropped: even the upper end of the interval is within {target}."
    if not trade.dropped:
        return f"Nothing need be dropped: the estimate is within {target}. To be sure, review the worst rows."
    many, part = counted(trade.dropped, "negative"), f"{percent(trade.dropped / audit.negatives)} of the set"
    if trade.dropped > _TOO_MANY * audit.negatives:
        return f"Mine again with naysay mine: to come within {target} by dropping alone, {part} would have to go."
    return (
        f"Mine again with naysay mine, or drop the {many} most likely to be false ({part}): this brings their share "
        f"within {target}, and lowers the mean score from {trade.hardness_before:.3f} to {trade.hardness_after:.3f}."
    )


def notes_on(share: RateEstimate) -> tuple[str, ...]:
    """Return what the estimate rests on and assumes, as sentences."""
    said = (f"How many are false is {note}" if note.startswith("unknown") else note for note in share.notes)
    assumed = (f"The estimate assumes that {each}." for each in share.assumptions)
    return (*(f"{note[0].upper()}{note[1:]}." for note in said), *assumed)


def commands_for(given: TrainingSet, metric: str, inputs: Mapping[str, Any], k: KVerdict) -> tuple[str, ...]:
    """Return shell commands, quoted: mine again, audit the result; for random negatives also the curve over k.

    `inputs` are the vectors and their names, by parameter of `audit`; only files can be named in a command.
    """
    commands: list[Sequence[str]] = []
    files = {name: str(as_place(name, one)) for name, one in inputs.items() if isinstance(one, str | Path | Url)}
    tables = _tables(given, files)
    if given.path is not None and tables is not None and {"query_vectors", "corpus_vectors"} <= files.keys():
        vectors = ["--query-vectors", files["query_vectors"], "--corpus-vectors", files["corpus_vectors"]]
        vectors += [] if metric == "cosine" else ["--metric", metric]
        mined = given.path.with_name(f"{given.path.name.partition('.')[0]}-mined.parquet")
        new_k = k.k if k.verdict != "too large" or k.best is None else k.best
        has_texts = given.query_texts is not None and given.corpus_texts is not None
        written = [] if has_texts else ["--format", "ids"]
        words = [*tables, *vectors, "-k", str(new_k), *written, "-o", str(mined)]
        commands.append(["naysay", "mine", str(given.path), *words])
        names = ["--query-ids", tables[1], "--corpus-ids", tables[3]] if tables else []
        commands.append(["naysay", "audit", str(mined), *vectors, *names])
    if k.separation is not None:
        commands.append(["naysay", "howmany", "--separation", f"{k.separation:.4g}"])
    # A path with control characters could do something else than it shows.
    return tuple(shlex.join(words) for words in commands if all(map(str.isprintable, words)))


def _tables(given: TrainingSet, files: Mapping[str, str]) -> list[str] | None:
    """Return the files that `naysay mine` needs beside the vectors; None if it cannot read the set as pairs."""
    is_table = given.path is not None and given.path.suffix.lower() in (".parquet", ".jsonl")
    if not is_table or given.format not in ("triplet", "n-tuple", "flagembedding", "ids"):
        return None
    if given.corpus_names is None:  # row numbers
        return []
    names = [files.get(name, "none.txt") for name in ("query_ids", "corpus_ids")]
    if any(name.lower().endswith(".txt") for name in names):
        return None  # it reads tables only
    return ["--queries", names[0], "--corpus", names[1]]
