"""Hostile input of the command line: one sentence that names what is wrong, exit code 2, no wait and no traceback."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay import cli
from naysay.errors import NaysayError
from naysay.kernels import threads
from naysay.search.vectors import open_vectors

DEEP = "[" * 100_000 + "]" * 100_000
OPTIONS = [
    "--corpus",
    "docs.jsonl",
    "--query-vectors",
    "q.npy",
    "--corpus-vectors",
    "c.npy",
    "-k",
    "1",
    "-o",
    "out.jsonl",
]


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Good files for each command, some that are broken, and some that are no files."""
    monkeypatch.chdir(tmp_path)
    for name, n in (("q", 3), ("c", 5)):
        np.save(f"{name}.npy", np.random.default_rng(n).random((n, 4), np.float32))
    documents = [json.dumps({"id": f"d{row}", "text": f"text {row}"}) for row in range(5)]
    files = {
        "docs.jsonl": "\n".join(documents),
        "pairs.csv": "anchor,positive\nq0,d0\nq1,d1\nq2,d2\n",
        "train.jsonl": '{"anchor": "q0", "positive": "d0", "negative": "d1"}\n',
        "pairs.jsonl": '{"query": "q0", "positive": "d0"}\n',
        "deep.jsonl": DEEP,
        "deep.json": DEEP,
        "digits.jsonl": f'{{"anchor": {"9" * 5000}, "positive": "d0"}}',
        "digits.json": f"[{'9' * 5000}]",
        "bad.jsonl": '{"id": "d0"}\n{"id": \n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.csv").write_bytes("anch\xe9r,positive\nq0,d0\n".encode("latin-1"))
    (tmp_path / "deep.safetensors").write_bytes(len(DEEP).to_bytes(8, "little") + DEEP.encode())
    (tmp_path / "broken.jsonl").write_bytes(b'{"id": "d0", "text": "caf\xe9"}\n' + "\n".join(documents[1:]).encode())
    broken = pa.array([b"q\xff", b"q1"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"anchor": broken, "positive": ["d0", "d1"], "negative": ["d2", "d3"]}), "broken.parquet")
    for name in ("loop.jsonl", "loop.npy", "loop.html"):
        (tmp_path / name).symlink_to(name)
    for name in ("pipe.jsonl", "pipe.csv", "pipe.parquet", "pipe.npy"):
        os.mkfifo(name)
    return tmp_path


def error_of(capsys, *words):
    """The sentence of a command that is refused."""
    with pytest.raises(SystemExit) as stop:
        cli.main(list(words))
    printed = capsys.readouterr()
    assert (stop.value.code, printed.out) == (2, "")
    assert printed.err.startswith(f"naysay: {words[0]}: ")
    assert printed.err.count("\n") == 1
    return printed.err.removeprefix(f"naysay: {words[0]}: ")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["mine", "latin.csv", *OPTIONS], "pairs"),
        (["mine", "broken.parquet", *OPTIONS], "--positive-column|pairs"),
        (["audit", "broken.parquet"], "negatives"),
        (["mine", "deep.jsonl", *OPTIONS], "pairs"),
        (["audit", "deep.jsonl"], "negatives"),
        (["audit", "deep.json"], "negatives"),
        (["mine", "digits.jsonl", *OPTIONS], "pairs"),
        (["audit", "digits.jsonl"], "negatives"),
        (["audit", "digits.json"], "negatives"),
        (["mine", "pairs.csv", *OPTIONS, "--query-vectors", "deep.safetensors"], "--query-vectors"),
        (["mine", "pairs.csv", *OPTIONS, "--threads", "9" * 400], "--threads"),
        (["mine", "loop.jsonl", *OPTIONS], "pairs"),
        (["mine", "pairs.csv", *OPTIONS, "-o", "loop.jsonl"], "--output"),
        (["mine", "pairs.csv", *OPTIONS, "--report", "loop.html"], "--report"),
        (["mine", "pairs.csv", *OPTIONS, "--corpus-vectors", "loop.npy"], "--corpus-vectors"),
        (["audit", "loop.jsonl"], "negatives"),
        (["thresholds", "loop.npy"], "scores"),
        (["howmany", "--train-auc", "0.7", "--val-auc", "loop.npy"], "--val-auc"),
        (["mine", "pipe.csv", *OPTIONS], "pairs"),
        (["mine", "pairs.csv", *OPTIONS, "--corpus", "pipe.jsonl"], "--corpus"),
        (["mine", "pairs.csv", *OPTIONS, "--query-vectors", "pipe.npy"], "--query-vectors"),
        (["mine", "/dev/zero", *OPTIONS], "pairs"),
        (["audit", "pipe.parquet"], "negatives"),
        (["thresholds", "pipe.npy"], "scores"),
        (["mine", "pairs.csv", *OPTIONS, "-o", "/dev/full"], "--output"),
        (["mine", "pairs.csv", *OPTIONS, "--budget", "9" * 400], "--budget"),
        (["mine", "pairs.csv", *OPTIONS, "-k", "9" * 5000], "-k"),
        (["mine", "pairs.csv", *OPTIONS, "--query-prompt", "9" * 5000], "--query-prompt"),
        (["mine", "pairs.csv", *OPTIONS, "--threads", "5000"], "--threads"),
        (["mine", "\udce9.csv", *OPTIONS], "pairs"),
        (["mine", "pairs.csv", *OPTIONS, "--corpus", "broken.jsonl", "--source", "bm25"], "--corpus"),
        # A malformed input is blamed on its own option, and a set without negatives on nothing else.
        (["mine", "pairs.csv", *OPTIONS, "--corpus", "bad.jsonl"], "--corpus"),
        (["audit", "train.jsonl", *OPTIONS[2:6], "--query-ids", "bad.jsonl"], "--query-ids"),
        (["audit", "pairs.jsonl"], "negatives"),
    ],
)
def test_hostile_input_is_one_sentence_about_the_right_option(words, option, world, capsys):
    got = error_of(capsys, *words)
    assert got.startswith(tuple(f"`{each}` must be " for each in option.split("|"))), got
    assert not any(name.startswith(".") or name == "out.jsonl" for name in os.listdir())


@pytest.mark.parametrize("count", ["5000", "x", "9" * 5000, "0"])
def test_a_bad_number_of_threads_in_the_environment(count, world, capsys, monkeypatch):
    monkeypatch.setenv("NAYSAY_THREADS", count)
    monkeypatch.setattr(threads._THREADS, "count", None)
    sentence = error_of(capsys, "mine", "pairs.csv", *OPTIONS)
    assert sentence.startswith("`NAYSAY_THREADS` must be a whole number from 1 to 1024, got '")
    monkeypatch.delenv("NAYSAY_THREADS")


def test_a_full_disk_for_temporary_files_is_not_blamed_on_the_input(world, monkeypatch):
    pq.write_table(pa.table({"vector": [[1.0, 2.0], [3.0, 4.0]]}), "c.parquet")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    message = r"the folder for temporary files, .* cannot be written \(the disk is full\). Set TMPDIR to a folder"
    with pytest.raises(NaysayError, match=message):
        open_vectors("c.parquet")


def test_names_that_the_terminal_cannot_show_are_escaped(world):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "naysay", "mine", "pairs.csv", *OPTIONS, "-o", "\u00e9.jsonl"]
    done = subprocess.run(command, text=True, capture_output=True, env=environment)
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "\\xe9.jsonl")
    assert os.path.exists("\u00e9.jsonl")


def test_a_reader_that_went_away_is_not_a_failed_gate(world):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "naysay", "audit", "train.jsonl"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_closed_standard_output_is_no_traceback(world):
    command = f"{sys.executable} -m naysay audit train.jsonl >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", ["pipe.csv", "/dev/zero", "loop.jsonl"])
@pytest.mark.parametrize("read", [ns.Triples.from_tsv, ns.Positives.from_csv, ns.Positives.from_parquet])
def test_only_files_are_read(path, read, world):
    with pytest.raises(NaysayError, match="`path` must be a file"):
        read(path)


def test_a_header_that_is_not_utf_8(world):
    with pytest.raises(
        NaysayError, match=r"^Positives\.from_csv: `path` must be a file with text in UTF-8, got 'latin.csv'"
    ):
        ns.Positives.from_csv("latin.csv", "anchor", "positive")
