"""A disk that takes no more bytes: one sentence that says so, and names the option and the file."""

import errno
import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest

import naysay as ns
from naysay import cli

LOG = '{"naysay": "run", "format": 1}\n{"step": 1, "scalars": {"repeats": 0.5}}\n'
COMMANDS = {
    "report": (["report", "run.jsonl", "-o", "out/run.html"], "--output"),
    "audit, report": (["audit", "train.jsonl", "--report", "out/audit.html"], "--report"),
    "audit, json": (["audit", "train.jsonl", "--json", "out/audit.json"], "--json"),
    "howmany": (["howmany", "--separation", "1.5", "--json", "out/howmany.json"], "--json"),
    "thresholds": (["thresholds", "scores.npy", "--json", "out/thresholds.json"], "--json"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "run.jsonl").write_text(LOG)
    rows = ({"anchor": f"q{row}", "positive": f"d{row}", "negative": f"d{row + 1}"} for row in range(30))
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    np.save("scores.npy", np.random.default_rng(0).normal(size=(50, 20)))
    return tmp_path


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("words", "option"), COMMANDS.values(), ids=list(COMMANDS))
def test_a_full_disk_is_blamed_on_the_file_that_does_not_fit(folder, monkeypatch, capsys, words, option):
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.count("\n") == 1
    assert f"`{option}`" in said
    assert "the disk is full" in said
    assert words[-1] in said
    assert os.listdir("out") == []


def test_the_whole_path_is_named_however_long_it_is(folder, monkeypatch, capsys):
    deep = "/".join(["out", *["a-rather-long-name-of-a-folder"] * 5])
    os.makedirs(deep)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SystemExit):
        cli.main(["report", "run.jsonl", "-o", f"{deep}/run.html"])
    assert f"{deep}/run.html" in capsys.readouterr().err


@pytest.fixture
def small_files():
    """Set a limit of 1,000 bytes to the size of a file."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("name", ["report", "audit, report", "audit, json"])
def test_a_limit_of_the_size_of_files_is_named_with_the_file(folder, small_files, capfd, name):
    words, option = COMMANDS[name]
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    said = capfd.readouterr().err
    assert ended.value.code == 2
    assert f"`{option}`" in said
    assert words[-1] in said
    assert os.listdir("out") == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_standard_output_is_one_sentence(folder):
    command = f"{sys.executable} -m naysay audit train.jsonl > /dev/full"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the disk is full" in done.stderr


def test_vectors_that_do_not_fit_name_their_folder(folder, monkeypatch):
    class Lengths:
        cache_key = "lengths"

        def encode(self, texts, **_):
            return np.array([[len(text), 1.0] for text in texts])

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ns.NaysayError, match="the disk is full") as error:
        ns.encode.encode_texts(Lengths(), ["a", "ab"], folder=folder / "vectors")
    assert error.value.parameter == "folder"
    assert str(folder / "vectors") in str(error.value)


def test_positives_that_do_not_fit_name_their_folder(folder, small_files):
    known = ns.Positives.from_pairs(np.arange(9000), np.arange(9000))
    with pytest.raises(ns.NaysayError) as error:
        known.save("out/known")
    assert error.value.parameter == "path"
    assert "'out/known' (" in str(error.value)
    assert os.listdir("out") == []
