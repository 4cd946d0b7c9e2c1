"""encode_texts after a kill, a failure or damage; its progress bar and processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from text_model import DISTINCT, TEXTS, Model, expected, names

from naysay.encode import texts as encode
from naysay.encode.texts import encode_texts
from naysay.errors import NaysayError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(encode, "BLOCK", 3)


# ---- killed, cut off, damaged ----------------------------------------------------------------------------------


def test_a_failed_run_is_resumed(tmp_path):
    whole = encode_texts(Model(), TEXTS, folder=tmp_path / "whole")
    model = Model()
    model.fail_at = 2
    with pytest.raises(RuntimeError, match="out of memory"):
        encode_texts(model, TEXTS, folder=tmp_path / "parts")
    assert not list((tmp_path / "parts").glob("*.npy"))  # nothing half made has the name of an answer
    model.fail_at, model.asked = None, []
    path = encode_texts(model, TEXTS, folder=tmp_path / "parts")
    assert model.asked == [DISTINCT[6:]]
    assert path.name == whole.name
    assert path.read_bytes() == whole.read_bytes()
    assert names(tmp_path / "parts") == [path.name]


def test_a_second_run_at_the_same_time_is_refused_and_takes_nothing_from_the_first(tmp_path):
    pytest.importorskip("fcntl")
    model, refused = Model(), []
    encode_one = model.encode

    def meanwhile(texts, **options):
        with pytest.raises(NaysayError, match=r"^encode_texts: `folder` must be used by one run at a time, got '"):
            encode_texts(Model(), TEXTS, folder=tmp_path)
        refused.append(texts)
        encode_texts(Model(2.0), TEXTS, folder=tmp_path)  # another model, whose vectors are another file
        return encode_one(texts, **options)

    model.encode = meanwhile
    path = encode_texts(model, TEXTS, folder=tmp_path)
    assert len(refused) == 3
    assert np.array_equal(np.load(path), expected(TEXTS, model))
    assert names(tmp_path) == sorted([path.name, encode_texts(Model(2.0), TEXTS, folder=tmp_path).name])


def test_without_a_cache_a_failed_run_leaves_nothing(tmp_path):
    model = Model()
    model.fail_at = 2
    with pytest.raises(RuntimeError, match="out of memory"):
        encode_texts(model, TEXTS, folder=tmp_path, cache=False)
    assert names(tmp_path) == []


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
import text_model
from naysay.encode import texts as encode
encode.BLOCK = 3
model = text_model.Model()
answer = model.encode
def once(texts, **options):
    if len(model.asked) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(texts, **options)
model.encode = once
encode.encode_texts(model, text_model.TEXTS, folder=sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_killed_run_is_resumed(tmp_path):
    arguments = [sys.executable, "-c", KILLED, str(tmp_path), str(Path(__file__).parent)]
    finished = subprocess.run(arguments, capture_output=True, timeout=120, check=False)
    assert finished.returncode == -signal.SIGKILL, finished.stderr.decode()
    assert not list(tmp_path.glob("*.npy"))
    model = Model()
    path = encode_texts(model, TEXTS, folder=tmp_path)
    assert model.asked == [DISTINCT[6:]]
    assert (np.load(path) == expected(TEXTS, model)).all()
    assert names(tmp_path) == [path.name]


def flipped(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [flipped, cut, emptied])
def test_a_damaged_answer_is_made_again(tmp_path, damage):
    path = encode_texts(Model(), TEXTS, folder=tmp_path)
    good = path.read_bytes()
    damage(path)
    model = Model()
    assert encode_texts(model, TEXTS, folder=tmp_path) == path
    assert len(model.asked) == 3
    assert path.read_bytes() == good
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("damage", [flipped, cut, emptied])
def test_a_damaged_block_is_made_again(tmp_path, damage):
    model = Model()
    model.fail_at = 2
    with pytest.raises(RuntimeError, match="out of memory"):
        encode_texts(model, TEXTS, folder=tmp_path)
    blocks = sorted(tmp_path.rglob("*.npy"))
    assert len(blocks) == 2
    damage(blocks[0])
    model.fail_at, model.asked = None, []
    path = encode_texts(model, TEXTS, folder=tmp_path)
    assert model.asked == [DISTINCT[:3], DISTINCT[6:]]
    assert (np.load(path) == expected(TEXTS, model)).all()


# ---- the bar, and processes ----------------------------------------------------------------------------------------


def test_a_bar_on_a_terminal(tmp_path, monkeypatch, capsys):
    encode_texts(Model(), TEXTS, folder=tmp_path / "file")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("rich.console.Console.is_terminal", property(lambda self: True))
    monkeypatch.setenv("TERM", "xterm")
    encode_texts(Model(), TEXTS, folder=tmp_path / "terminal")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Encoding" in shown.err
    assert "8/8" in shown.err
    encode_texts(Model(), TEXTS, folder=tmp_path / "quiet", show=False)
    assert capsys.readouterr() == ("", "")


def test_processes_are_started_and_stopped(tmp_path):
    class Many(Model):
        log = ()

        def start_multi_process_pool(self, target_devices=None):
            self.log = (*self.log, ("start", target_devices))
            return {"input": 1}

        def stop_multi_process_pool(self, pool):
            self.log = (*self.log, ("stop", pool))

    model = Many()
    encode_texts(model, TEXTS, folder=tmp_path, processes=["cpu", "cpu"])
    assert model.log == (("start", ["cpu", "cpu"]), ("stop", {"input": 1}))
    assert {str(options["pool"]) for options in model.options} == {"{'input': 1}"}
    encode_texts(model, TEXTS, folder=tmp_path, processes=True)
    assert len(model.log) == 2  # what is kept needs none
    model.fail_at = 0
    with pytest.raises(RuntimeError, match="out of memory"):
        encode_texts(model, ["other"], folder=tmp_path, processes=True)
    assert model.log[2:] == (("start", None), ("stop", {"input": 1}))


def test_only_own_files_are_removed(tmp_path):
    model = Model()
    model.fail_at = 1
    with pytest.raises(RuntimeError, match="out of memory"):
        encode_texts(model, TEXTS, folder=tmp_path)
    (parts,) = tmp_path.iterdir()
    stem = parts.name.removesuffix(".parts")
    others = [parts / "notes.txt", tmp_path / f"{stem}.backup.npy", tmp_path / "vectors-of-mine.npy"]
    for other in others:
        other.write_text("mine")
    model.fail_at = None
    path = encode_texts(model, TEXTS, folder=tmp_path)
    assert names(tmp_path) == sorted([parts.name, path.name, *(str(other.relative_to(tmp_path)) for other in others)])
    assert {other.read_text() for other in others} == {"mine"}
