"""Random command lines and damaged files for `naysay`, drawn from a generator."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from naysay._commands import AuditOptions, HowmanyOptions, ThresholdOptions
from naysay._options import command_fields, flag_of
from naysay.formats import FORMATS
from naysay.jobs.options import JobOptions
from naysay.mining.options import MiningOptions
from tests.fuzz.world import as_table

WRITTEN = ("-o", "--output", "--report", "--json", "--plot", "--out", "--job", "--encoded", "--fix", "--answers")
COMMANDS = {
    "mine": "mine pairs.csv --corpus docs.jsonl --query-vectors q.npy --corpus-vectors c.npy -k 2 -o out/t.jsonl",
    "audit": "audit triplet.jsonl",
    "thresholds": "thresholds scores.npy",
    "howmany": "howmany --train-auc 0.75 --val-auc 0.52,0.61,0.66 --k-max 50",
    "methods": "methods uniform",
    "demo": "demo --seed -1",
}
DECLARED = {
    "mine": (JobOptions, MiningOptions),
    "audit": (AuditOptions,),
    "thresholds": (ThresholdOptions,),
    "howmany": (HowmanyOptions,),
}
OPTIONS = {
    command: [(one, get_type_hints(each)[one.name]) for each in declarations for one in command_fields(each)]
    for command, declarations in DECLARED.items()
}
# Values that fit an option, by its name; all others are drawn for the type of the option.
GOOD = {
    "pairs": ["pairs.csv", "pairs.jsonl", "pairs.parquet", "pairs.tsv"],
    "corpus": ["docs.jsonl", "docs.parquet", "docs.csv", "docs.jsonl.gz"],
    "queries": ["queries.jsonl", "queries.parquet"],
    "query_vectors": ["q.npy", "q.parquet"],
    "corpus_vectors": ["c.npy", "c.parquet"],
    "query_ids": ["query_ids.txt", "query_ids.csv"],
    "corpus_ids": ["corpus_ids.txt", "corpus_ids.jsonl"],
    "ignore": ["pairs.csv"],
    "scores": ["scores.npy", "scores.parquet", "matrix.npy"],
    "val_auc": ["curve.csv", "curve.json", "curve.npy", "0.5,0.6"],
    "output": ["out/t.jsonl", "out/t.parquet", "out/t.json", "out/t.trec"],
    "report": ["out/r.html"],
    "json": ["out/a.json"],
    "plot": ["out/p.svg"],
    "job": ["out/job"],
    "encoded": ["out/vectors"],
    "out": ["out/demo"],
    "format": [*FORMATS, "trec"],
    "judge": ["none", "auto", "margin:0.05", "max_score:0.9", "bands:0.1:0.9", "perc:0.95", "ratio"],
    "select": ["top", "random", "softmax", "mmr", "balanced"],
    "source": ["bm25"],
    "budget": ["200MB", "2GB", "152MiB"],
    "k": ["1", "2", "auto", "3"],
    "on_short": ["pad", "relax", "random", "raise"],
    "short": ["drop", "raise"],
    "metric": ["cosine", "dot", "l2"],
    "scope": ["all", "anchor"],
    "low_grid": ["0.1:0.9:0.1"],
    "high_grid": ["0.95,0.99"],
    "fail_above": ["2%", "0.0", "1"],
}
LONG = "9" * 400
NUMBERS = ["0", "1", "2", "3", "7", "20", "-1", "0.5", "0.1", "1.5", "100000", LONG, "-" + LONG]
NUMBERS += ["1e400", "nan", "inf", "x", "", "²", "1_0"]
TEXTS = [
    "",
    "x",
    "auto",
    "none",
    "é",
    "\udcff",
    "a b",
    "-",
    "--",
    "%s",
    "{0}",
    "[red]",
    "`k`",
    "\x1b[31m",
    LONG,
    "../x",
]
PATHS = [
    "",
    "missing.jsonl",
    "missing/x.jsonl",
    ".",
    "out",
    "fifo.jsonl",
    "fifo.npy",
    "loop.jsonl",
    "loop.html",
    "/dev/null",
]
PATHS += ["/dev/full", "/dev/zero", "notes.txt", "docs.jsonl", "q.npy", "empty.jsonl", "out/\udcff.jsonl", "out/é.html"]
PATHS += [
    f"out/{LONG}.jsonl",
    "docs.jsonl/x.jsonl",
    "~/x.jsonl",
    "http://localhost/x.parquet",
    "out/t.jsonl",
    "--fresh",
]


def command_line(rng: np.random.Generator) -> list[str]:
    """A good command line with up to four changes."""
    command = str(rng.choice(list(COMMANDS), p=[0.4, 0.25, 0.12, 0.12, 0.06, 0.05]))
    words = COMMANDS[command].split()
    options = OPTIONS.get(command, [])
    for _ in range(rng.integers(1, 5)):
        change = rng.integers(0, 10)
        place = int(rng.integers(1, len(words) + 1))
        if change == 0:
            del words[place : place + 1]
        elif change == 1:
            words.insert(place, _pick(rng, [*TEXTS, *PATHS]))
        elif options:
            words += _option(rng, *options[int(rng.integers(len(options)))])
    return [*words, "--seed", "-1"] if command == "demo" else words  # which raises an error: training takes minutes


def _option(rng: np.random.Generator, declared: Any, kind: Any) -> list[str]:
    """An option with a value, most of them good; an argument is its value alone."""
    flags = declared.metadata["flags"] or (flag_of(declared),)
    if kind is bool:
        return [flags[0]]
    pool = GOOD.get(declared.name)
    if pool is None or rng.random() < 0.3:
        is_number, is_path = kind in (int, float, int | None, float | None), kind in (Path, Path | None)
        pool = NUMBERS if is_number else PATHS if is_path else [*TEXTS, *PATHS, *NUMBERS]
    value = _pick(rng, pool)
    return [flags[-1], value] if flags[0].startswith("-") else [value]


def _pick(rng: np.random.Generator, pool: list[str]) -> str:
    return pool[int(rng.integers(len(pool)))]


# What reads a damaged file: {its name without ending: (command line with FILE, endings)}.
_MINE, _TABLES = COMMANDS["mine"], (".csv", ".tsv", ".jsonl", ".parquet", ".jsonl.gz")
_IDS = "audit triplet.jsonl --query-vectors q.npy --corpus-vectors c.npy --corpus-ids corpus_ids.txt --query-ids FILE"
_READERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "pairs": (_MINE.replace("pairs.csv", "FILE"), _TABLES),
    "docs": (_MINE.replace("docs.jsonl", "FILE"), _TABLES),
    "queries": (f"{_MINE} --queries FILE --source bm25", (".jsonl", ".parquet")),
    "q": (_MINE.replace("q.npy", "FILE"), (".npy", ".parquet")),
    "c": (_MINE.replace("c.npy", "FILE"), (".npy", ".parquet")),
    "scores": ("thresholds FILE", (".npy", ".parquet")),
    "curve": ("howmany --train-auc 0.75 --k-max 50 --val-auc FILE", (".csv", ".json", ".npy")),
    "query_ids": (_IDS, (".txt", ".csv", ".jsonl", ".parquet")),
    **{name: ("audit FILE", form.suffixes) for name, form in FORMATS.items()},
}
READS = {
    f"{name}{suffix}": line for name, (line, suffixes) in _READERS.items() for suffix in suffixes if suffix != ".hf"
}


INSERTED = ["\xff", "\x00", '"', "[" * 5000, "{", "\n", "1e999", "-", "\xef\xbb\xbf"]
ENCODINGS = ["utf-16", "latin-1", "utf-8-sig", "utf-32"]
ODD = [None, 1, -1, 1.5, True, [], {}, ["x"], "", "x" * 3000, "\udcff", 10**30, float("nan"), {"id": 1}, [[1]], [None]]


def damaged_file(rng: np.random.Generator, world: Path) -> tuple[str, bytes, list[str]]:
    """(name, bytes, command line): a good file that is damaged, and the command that reads it."""
    name = _pick(rng, list(READS))
    suffix = "".join(Path(name).suffixes)
    data = (world / name).read_bytes()
    if suffix == ".json" and rng.random() < 0.5:
        data = json.dumps(_spoiled(rng, json.loads(data))).encode()
    if suffix in (".jsonl", ".csv", ".tsv", ".parquet") and rng.random() < 0.4:
        data = _other_rows(rng, data, suffix)
    if rng.random() < 0.7:
        data = _other_bytes(rng, data)
    file = f"damaged{suffix}"
    return file, data, [word if word != "FILE" else file for word in READS[name].split()]


def _other_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """Damage without knowledge of the format."""
    place, way = int(rng.integers(len(data) + 1)), rng.integers(0, 9)
    if way == 0:
        return data[:place]
    if way == 1:
        array = np.frombuffer(data, np.uint8).copy()
        for _ in range(rng.integers(1, 9)):
            if len(array):
                array[rng.integers(len(array))] ^= 1 << rng.integers(8)
        return array.tobytes()
    if way == 2:
        return data[:place] + rng.bytes(int(rng.integers(1, 40))) + data[place:]
    if way == 3:
        return data[:place] + _pick(rng, INSERTED).encode("latin-1") + data[place:]
    if way == 4:
        return data[:place] + data[place + int(rng.integers(1, 40)) :]
    if way == 5:
        return data.decode("utf-8", "replace").encode(_pick(rng, ENCODINGS), "replace")
    if way == 6:
        return data + data
    return b"" if way == 7 else rng.bytes(int(rng.integers(1, 200)))


def _other_rows(rng: np.random.Generator, data: bytes, kind: str) -> bytes:
    """Damage of the rows: other names, other types, missing, repeated and swapped values."""
    rows = _rows(data, kind)
    names = list(rows[0])
    way = rng.integers(0, 6)
    if way == 0:  # swapped columns
        rows = [dict(zip(names, [row[name] for name in reversed(names)], strict=True)) for row in rows]
    elif way == 1:  # a column that has another name
        gone = _pick(rng, names)
        rows = [{("other" if name == gone else name): value for name, value in row.items()} for row in rows]
    elif way == 2:  # no rows, or one twice
        rows = [] if rng.random() < 0.3 else [*rows, rows[0]]
    else:  # other values
        for _ in range(rng.integers(1, 4)):
            row = int(rng.integers(len(rows)))
            rows[row] = {**rows[row], **_spoiled(rng, {name: rows[row][name] for name in [_pick(rng, names)]})}
    if not rows:
        return as_table([dict.fromkeys(names)], kind) if kind != ".jsonl" else b""
    return as_table(rows, kind)


def _spoiled(rng: np.random.Generator, value: Any) -> Any:
    """A value with another one somewhere inside; an object stays one."""
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = int(rng.integers(len(value)))
        return [*value[:place], _spoiled(rng, value[place]), *value[place + 1 :]]
    if isinstance(value, dict) and value:
        name = _pick(rng, list(value))
        return {**value, name: _spoiled(rng, value[name])}
    return ODD[int(rng.integers(len(ODD)))]


def _rows(data: bytes, kind: str) -> list[dict[str, Any]]:
    if kind == ".parquet":
        return pq.read_table(pa.BufferReader(data)).to_pylist()
    text = data.decode()
    if kind == ".jsonl":
        rows = [json.loads(line) for line in text.splitlines()]
        return [row if isinstance(row, dict) else {"row": row} for row in rows]
    return list(csv.DictReader(io.StringIO(text), delimiter="," if kind == ".csv" else "\t"))
