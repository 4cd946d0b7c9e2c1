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


DIGITS = "a number of more than 4,300 digits"
UTF8 = "must be a file with text in UTF-8"
CODEC = "'utf-8' codec can't decode byte"
LOOP = "(Too many levels of symbolic links)"
PIPE = "a device or a pipe. Copy it to a file first."
READ = "must be a file that can be read"
END = f"{READ} to its end"
WRITTEN = "must be a file that can be written"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["mine", "latin.csv", *OPTIONS], f"`pairs` {UTF8}, got 'latin.csv' ({CODEC} 0xe9"),
        (["mine", "broken.parquet", *OPTIONS], f"`--positive-column` must be given|`pairs` {UTF8}, got 'broken"),
        (["audit", "broken.parquet"], f"`negatives` {UTF8}, got 'broken.parquet' ({CODEC} 0xff"),
        (["mine", "deep.jsonl", *OPTIONS], "`pairs` must be a file of one JSON value a line, got values nested too"),
        (["audit", "deep.jsonl"], "`negatives` must be a file of one JSON value a line, got values nested too deep in"),
        (["audit", "deep.json"], "`negatives` must be a file of one JSON object, got values nested too deep in deep"),
        (["mine", "digits.jsonl", *OPTIONS], f"`pairs` must be a file of one JSON value a line, got {DIGITS} in line"),
        (["audit", "digits.jsonl"], f"`negatives` must be a file of one JSON value a line, got {DIGITS} in line 1"),
        (["audit", "digits.json"], f"`negatives` must be a file of one JSON object, got {DIGITS} in digits.json"),
        (["mine", "pairs.csv", *OPTIONS, "--query-vectors", "deep.safetensors"],
         "`--query-vectors` must be a readable .safetensors file, got 'deep.safetensors' (values nested too deep)."),
        (["mine", "pairs.csv", *OPTIONS, "--threads", "9" * 400], "`--threads` must be below 2^64, got 9999999"),
        (["mine", "loop.jsonl", *OPTIONS], f"`pairs` {READ}, got 'loop.jsonl' {LOOP}"),
        (["mine", "pairs.csv", *OPTIONS, "-o", "loop.jsonl"], f"`--output` {WRITTEN}, got 'loop"),
        (["mine", "pairs.csv", *OPTIONS, "--report", "loop.html"], f"`--report` {WRITTEN}, got"),
        (["mine", "pairs.csv", *OPTIONS, "--corpus-vectors", "loop.npy"], f"`--corpus-vectors` {READ}, got 'loop.npy'"),
        (["audit", "loop.jsonl"], f"`negatives` {READ}, got 'loop.jsonl' {LOOP}"),
        (["thresholds", "loop.npy"], f"`scores` {READ}, got 'loop.npy' {LOOP}"),
        (["howmany", "--train-auc", "0.7", "--val-auc", "loop.npy"], f"`--val-auc` {READ}, got 'loop.npy' {LOOP}"),
        (["mine", "pipe.csv", *OPTIONS], f"`pairs` must be a file, got 'pipe.csv', {PIPE}"),
        (["mine", "pairs.csv", *OPTIONS, "--corpus", "pipe.jsonl"], "`--corpus` must be a file, got 'pipe.jsonl', a"),
        (["mine", "pairs.csv", *OPTIONS, "--query-vectors", "pipe.npy"], "`--query-vectors` must be a file, got"),
        (["mine", "/dev/zero", *OPTIONS], f"`pairs` must be a file, got '/dev/zero', {PIPE}"),
        (["audit", "pipe.parquet"], f"`negatives` must be a file, got 'pipe.parquet', {PIPE}"),
        (["thresholds", "pipe.npy"], f"`scores` must be a file, got 'pipe.npy', {PIPE}"),
        (["mine", "pairs.csv", *OPTIONS, "-o", "/dev/full"], "`--output` must be a file, got '/dev/full', a device"),
        (["mine", "pairs.csv", *OPTIONS, "--budget", "9" * 400], "`--budget` must be a size below 8EiB, got '999"),
        (["mine", "pairs.csv", *OPTIONS, "-k", "9" * 5000], "`-k` must be a number of at most 9 digits, or auto, got"),
        (["mine", "pairs.csv", *OPTIONS, "--query-prompt", "9" * 5000], "`--query-prompt` must be left out without"),
        (["mine", "pairs.csv", *OPTIONS, "--threads", "5000"], "`--threads` must be at most 1024, got 5000."),
        (["mine", "\udce9.csv", *OPTIONS], f"`pairs` {READ}, got '\\udce9.csv' (No such file"),
        (["mine", "pairs.csv", *OPTIONS, "--corpus", "broken.jsonl", "--source", "bm25"],
         f"`--corpus` {UTF8}, got 'broken.jsonl' ({CODEC} 0xe9"),
        # A malformed input is blamed on its own option, and a set without negatives on nothing else.
        (["mine", "pairs.csv", *OPTIONS, "--corpus", "bad.jsonl"], "`--corpus` must be a file of one JSON value a"),
        (["audit", "train.jsonl", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy", "--query-ids", "bad.jsonl"],
         "`--query-ids` must be a file of one JSON value a line, got Expecting value"),
        (["audit", "pairs.jsonl"], "`negatives` must be a file with negatives, got columns 'query', 'positive' alone"),
    ],
)  # fmt: skip
def test_hostile_input_is_one_sentence_about_the_right_option(words, sentence, world, capsys):
    got = error_of(capsys, *words)
    assert any(got.startswith(each) for each in sentence.split("|")), got
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
