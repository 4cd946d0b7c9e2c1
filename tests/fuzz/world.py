"""A folder of small good files of every kind that `naysay` reads, and some entries that are no files."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from naysay.formats import FORMATS, write_negatives, write_run
from naysay.positives import Positives
from naysay.search import Found

ANCHORS, DOCUMENTS, WIDTH = 8, 24, 4
OUT = "out"


def make_world(folder: Path) -> None:
    """Write good files of every kind into a folder, and some that are no files."""
    rng = np.random.default_rng(0)
    queries, documents = rng.standard_normal((ANCHORS, WIDTH)), rng.standard_normal((DOCUMENTS, WIDTH))
    tables = {
        "pairs": [{"anchor": f"q{row}", "positive": f"d{row}"} for row in range(ANCHORS)],
        "docs": [{"id": f"d{row}", "text": f"text é {row}"} for row in range(DOCUMENTS)],
        "queries": [{"id": f"q{row}", "text": f"word {row}"} for row in range(ANCHORS)],
        "query_ids": [{"id": f"q{row}"} for row in range(ANCHORS)],
        "corpus_ids": [{"id": f"d{row}"} for row in range(DOCUMENTS)],
    }
    for name, rows in tables.items():
        for kind in ("jsonl", "csv", "tsv", "parquet", "jsonl.gz"):
            (folder / f"{name}.{kind}").write_bytes(as_table(rows, f".{kind}"))
    for name, prefix, count in (("query_ids", "q", ANCHORS), ("corpus_ids", "d", DOCUMENTS)):
        (folder / f"{name}.txt").write_text("".join(f"{prefix}{row}\n" for row in range(count)))
    scores = rng.random(200)
    for name, array in (("q", queries), ("c", documents), ("scores", scores), ("matrix", scores.reshape(20, 10))):
        np.save(folder / f"{name}.npy", array.astype(np.float32))
        column = array.astype(np.float32).tolist()
        pq.write_table(pa.table({"score" if name == "scores" else "vector": column}), folder / f"{name}.parquet")
    curve = [0.52, 0.61, 0.66]
    (folder / "curve.csv").write_text("epoch,auc\n" + "".join(f"{row},{auc}\n" for row, auc in enumerate(curve)))
    (folder / "curve.json").write_text(json.dumps(curve))
    np.save(folder / "curve.npy", np.array(curve))
    _write_training_files(folder)
    (folder / "notes.txt").write_text("some notes\n")
    (folder / "empty.jsonl").touch()
    for name in ("fifo.jsonl", "fifo.npy"):
        os.mkfifo(folder / name)
    for name in ("loop.jsonl", "loop.html"):
        (folder / name).symlink_to(name)
    (folder / OUT).mkdir()


def _write_training_files(folder: Path) -> None:
    """A training file of every format, and a run."""
    ids = np.arange(2 * ANCHORS).reshape(ANCHORS, 2) % 8 + ANCHORS
    known = Positives.from_pairs(np.arange(ANCHORS), np.arange(ANCHORS), ANCHORS, DOCUMENTS)
    texts = {
        "query_texts": [f"q{row}" for row in range(ANCHORS)],
        "corpus_texts": [f"d{row}" for row in range(DOCUMENTS)],
    }
    for name, form in FORMATS.items():
        given: dict[str, Any] = {"corpus_path": "corpus"} if name == "nemo" else {}
        for suffix in form.suffixes:
            if suffix != ".hf":
                write_negatives(folder / f"{name}{suffix}", name, ids=ids, positives=known, **texts, **given)
    write_run(folder / "run.trec", Found(ids, np.ones(ids.shape, np.float32)))


def as_table(rows: list[dict[str, Any]], kind: str) -> bytes:
    """Rows as the bytes of a table; what a kind of file cannot hold becomes text."""
    if kind.startswith(".jsonl"):
        values = [row["row"] if [*row] == ["row"] else row for row in rows]  # lines that are arrays
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in values).encode("utf-8", "surrogateescape")
        return gzip.compress(lines, mtime=0) if kind.endswith(".gz") else lines
    names = list(dict.fromkeys(name for row in rows for name in row))
    if kind == ".parquet":
        columns = {}
        for name in names:
            values = [row.get(name) for row in rows]
            try:
                columns[name] = pa.array(values)
            except (pa.ArrowException, UnicodeError, OverflowError):
                columns[name] = pa.array([repr(value) for value in values])
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns), sink)
        return bytes(sink.getvalue())
    text = io.StringIO()
    writer = csv.writer(text, delimiter="," if kind == ".csv" else "\t")
    writer.writerows([names, *([row.get(name) for name in names] for row in rows)])
    return text.getvalue().encode("utf-8", "surrogateescape")
