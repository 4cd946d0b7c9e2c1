"""The dataset card of a job: a README.md beside the training file, which the Hugging Face Hub shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from naysay.detectors.rate import RateEstimate
from naysay.formats._formats import FORMATS
from naysay.mining.estimate import stated
from naysay.places import Place

# Sizes as the Hub names them: below the number, the category.
_SIZES = (
    *((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")),
    *((10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B")),
)
_LARGEST_SIZE = "n>1B"
_SHOWN_BY_HUB = (".parquet", ".jsonl", ".json")  # files from which the Hub shows rows


def card_text(summary: Any, format: str, card: Place, digest: str, record: Mapping[str, Any]) -> str:
    """The card of a training file.

    Args:
        summary: The `MinedFile` of the job.
        format: The name of its format.
        card: Where the card is written: the header names the file relative to it.
        digest: The SHA-256 of the training file; empty for a folder.
        record: What decided the result: {option: value}, files as {"bytes", "sha256"}.
    """
    output = summary.output
    share = summary.false_negatives
    facts = {
        "rows": f"{summary.rows:,}",
        "format": format,
        "anchors": f"{summary.anchors:,}",
        "negatives": f"{summary.negatives:,}, k = {summary.k}",
        "estimated share of false negatives": stated(share) if isinstance(share, RateEstimate) else share,
        "hardness (0.5 random, 1 above all random pairs)": f"{summary.hardness:.3f}",
        "anchors with fewer negatives": f"{summary.short:,}",
    }
    dropped = {str(reason): f"{count:,}" for reason, count in summary.dropped.items() if count}
    hashes = {f"{output.name} (this file)": digest} if digest else {}
    hashes |= {name: value["sha256"] for name, value in record.items() if is_file(value)}
    options = {name: value for name, value in record.items() if not is_file(value) and value not in (None, False, "")}
    title = f"Hard negatives of {PurePosixPath(output.name).stem}"
    parts = [
        _header(title, summary.rows, output, card, has_texts=format != "trec" and bool(FORMATS[format].texts)),
        f"# {title}\n",
        f"Training data with mined negatives, made by naysay {record['naysay']}.\n",
        _table(("", ""), facts),
        f"## How they were chosen\n\n{_prose(summary.rule)}\n",
        *(f"- {_prose(note)}" for note in summary.notes),
        *(("\n## Candidates that were left out\n", _table(("reason", "candidates"), dropped)) if dropped else ()),
        "## Options\n",
        _table(("option", "value"), {name: _value(value) for name, value in options.items()}),
        "## Checksums (SHA-256)\n",
        _table(("file", "SHA-256"), hashes),
    ]
    return "\n".join(parts).rstrip() + "\n"


def is_file(value: Any) -> bool:
    """Whether a value of a job's record stands for a file."""
    return isinstance(value, Mapping) and "sha256" in value


def _header(title: str, rows: int, output: Place, card: Place, *, has_texts: bool) -> str:
    """The YAML header that the Hub reads. JSON strings are YAML strings."""
    size = next((name for below, name in _SIZES if rows < below), _LARGEST_SIZE)
    lines = [f"pretty_name: {json.dumps(title)}", "size_categories:", f"- {size}"]
    if has_texts:
        lines += ["task_categories:", "- text-retrieval", "- sentence-similarity"]
    lines += ["tags:", "- hard-negatives", "- naysay"]
    beside = type(output) is type(card) and output.with_name(card.name) == card
    if beside and output.suffix.lower() in _SHOWN_BY_HUB:
        lines += ["configs:", "- config_name: default", "  data_files:", "  - split: train"]
        lines += [f"    path: {json.dumps(output.name)}"]
    return "\n".join(("---", *lines, "---\n"))


def _table(headings: Sequence[str], rows: Mapping[str, str]) -> str:
    lines = [f"| {' | '.join(headings)} |", "|---|---|"]
    return "\n".join([*lines, *(f"| {_cell(name)} | {_cell(value)} |" for name, value in rows.items())]) + "\n"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _cell(text: str) -> str:
    """Text in one cell: nothing of it is Markdown or HTML."""
    return _prose(text).replace("|", "\\|")


def _prose(text: str) -> str:
    """Text in one paragraph: nothing of it is Markdown or HTML."""
    line = " ".join(text.split())
    for sign in "\\`*_[]":
        line = line.replace(sign, f"\\{sign}")
    return line.replace("&", "&amp;").replace("<", "&lt;")
