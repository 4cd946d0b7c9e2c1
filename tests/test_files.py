"""Files and folders of arrays: where they may be written, whole or not at all, and damage as one sentence."""

import contextlib
import errno
import hashlib
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay import files
from naysay.errors import NaysayError

ARRAYS = {"one": np.arange(5), "two": np.array([[1.5, 2.5]], np.float32), "none": np.empty(0, np.int8)}


def save(path, arrays=ARRAYS, kind="rows", **header):
    files.save_folder(path, kind, header, arrays)


def load(path, **named):
    return files.load_folder(path, "rows", **{"mmap": True} | named)


def refused(call, *arguments, **named):
    """The sentence of an error about `path`."""
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **named)
    assert caught.value.parameter == "path"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ---- Single files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "/dev/null", "no/new.txt", "x" * 300, "n" * 250])
def test_where_no_file_can_be_written(tmp_path, name):
    """A folder, a device, a missing folder, names that are too long for the file or for its draft."""
    refused(files.check_target, "path", tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="a file without a name needs Linux")
def test_a_kill_during_the_check_of_a_target_leaves_no_file(tmp_path, monkeypatch):
    kept, closed = [], os.close
    monkeypatch.setattr(os, "close", lambda handle: kept.append((handle, os.listdir(tmp_path))))
    files.check_target("out", tmp_path / "numbers")
    monkeypatch.undo()
    closed(kept[0][0])
    assert kept[0][1] == []


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    target = tmp_path / "numbers"
    files.write_whole("path", target, b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        assert "the disk is full" in refused(files.write_whole, "path", target, b"new")
    with contextlib.suppress(RuntimeError), files.draft_of(target) as draft:
        draft.write_bytes(b"new")
        raise RuntimeError
    assert contents(tmp_path) == {"numbers": b"old"}
    files.write_whole("path", target, b"new")
    assert contents(tmp_path) == {"numbers": b"new"}


def test_a_draft_that_a_kill_leaves_is_known(tmp_path):
    with files.draft_of(tmp_path / "out") as draft:
        draft.write_bytes(b"")
        assert [files.is_draft(tmp_path / name) for name in ("out", ".out", draft.name)] == [False, False, True]


def test_errors_of_the_disk_without_a_parameter_stay_as_they_are(tmp_path):
    missing = tmp_path / "no" / "numbers"
    assert str(missing) in refused(files.write_whole, "path", missing, b"new")
    with pytest.raises(FileNotFoundError), files.draft_of(missing) as draft:
        draft.write_bytes(b"new")


def test_checksums(tmp_path):
    (tmp_path / "data").write_bytes(b"abc")
    assert files.digest_of(tmp_path / "data") == hashlib.sha256(b"abc").hexdigest()
    with files.checksummed_stream(tmp_path, "part", ".bin") as (stream, made):
        stream.write(b"abc")
        assert made == []
    assert made == [tmp_path / f"part.{hashlib.blake2b(b'abc', digest_size=16).hexdigest()}.bin"]
    assert files.find_checksummed(tmp_path, "part", ".bin") == made[0]
    made[0].write_bytes(b"abd")
    assert files.find_checksummed(tmp_path, "part", ".bin") is None


# ---- Folders of arrays -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [True, False])
def test_what_is_saved_is_loaded(tmp_path, mmap):
    save(tmp_path / "deep" / "er", n=3)
    header, arrays = load(str(tmp_path / "deep" / "er"), mmap=mmap)
    assert header == {"kind": "rows", "format": 1, "arrays": ["none", "one", "two"], "n": 3}
    for name, array in arrays.items():
        assert isinstance(array, np.memmap) == mmap
        assert array.dtype == ARRAYS[name].dtype
        assert array.tolist() == ARRAYS[name].tolist()


def test_the_folder_is_as_readable_as_any_other(tmp_path):
    save(tmp_path / "rows")
    (tmp_path / "other").mkdir()
    assert stat.S_IMODE((tmp_path / "rows").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_saving_again_replaces_everything_also_what_is_mapped(tmp_path):
    save(tmp_path / "rows")
    _, arrays = load(tmp_path / "rows")
    save(tmp_path / "rows", {"one": arrays["one"]}, n=4)
    assert sorted(contents(tmp_path / "rows")) == ["header.json", "one.npy"]
    assert load(tmp_path / "rows")[1]["one"].tolist() == arrays["one"].tolist() == [0, 1, 2, 3, 4]
    assert os.listdir(tmp_path) == ["rows"]


@pytest.mark.parametrize("header", [None, "not json", "[]", '{"title": "mine"}', '{"kind": 1, "format": 2}'])
def test_what_naysay_did_not_write_is_left_alone(tmp_path, header):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    if header is not None:
        (mine / "header.json").write_text(header)
    before = contents(mine)
    refused(save, mine)
    refused(save, mine / "thesis.txt")
    refused(save, mine / "thesis.txt" / "below")
    assert contents(mine) == before
    assert os.listdir(tmp_path) == ["mine"]


def test_a_folder_with_a_file_of_the_user_is_not_replaced(tmp_path):
    """The folder as a whole would be removed, and the file with it."""
    known = ns.Positives.from_pairs([0, 1], [1, 2])
    known.save(tmp_path / "known")
    (tmp_path / "known" / "notes.txt").write_text("mine")
    assert "notes.txt" in refused(known.save, tmp_path / "known")
    assert (tmp_path / "known" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("fails_at", ["first array", "second array", "header", "first rename", "second rename"])
def test_nothing_is_half_written(tmp_path, monkeypatch, exists, fails_at):
    if not exists and fails_at == "second rename":
        pytest.skip("a new folder is renamed once")
    target = tmp_path / "rows"
    if exists:
        save(target, n=1)
    before = contents(target) if exists else None
    places = {"array": (np.lib.format, "write_array"), "header": (json, "dumps"), "rename": (os, "replace")}
    module, name = places[fails_at.split()[-1]]
    real, calls = getattr(module, name), []

    def failing(*arguments, **named):
        calls.append(1)
        if len(calls) == (2 if fails_at.startswith("second") else 1):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **named)

    monkeypatch.setattr(module, name, failing)
    assert "the disk is full" in refused(save, target, {"one": np.zeros(9), "more": np.zeros(9)}, n=2)
    assert os.listdir(tmp_path) == (["rows"] if exists else [])
    if exists:
        assert contents(target) == before


def test_no_pickle_is_written_or_read(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle=False"):
        save(tmp_path / "rows", {"one": np.array([{}], object)})
    assert os.listdir(tmp_path) == []
    save(tmp_path / "rows")
    np.save(tmp_path / "rows" / "one.npy", np.array([{"run": "me"}], object), allow_pickle=True)
    for mmap in (True, False):
        refused(load, tmp_path / "rows", mmap=mmap)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"kind": "rows"}',
        b'{"kind": "rows", "format": 1, "arrays": 5}',
        b'{"kind": "rows", "format": 1, "arrays": [[]]}',
        b'{"kind": "rows", "format": 2, "arrays": []}',
        b'{"kind": "triples", "format": 1, "arrays": []}',
        b"\xff",
    ],
)
def test_a_damaged_header(tmp_path, header):
    save(tmp_path / "rows")
    (tmp_path / "rows" / "header.json").write_bytes(header)
    refused(load, tmp_path / "rows")


@pytest.mark.parametrize("value", [None, "3", 2.5, -1, True, [1]])
def test_numbers_of_the_header_are_whole_and_arrays_that_are_needed_are_there(tmp_path, value):
    save(tmp_path / "rows", n=value)
    refused(load, tmp_path / "rows", numbers=("n",))
    refused(load, tmp_path / "rows", numbers=("m",))
    refused(load, tmp_path / "rows", needed=("three",))
    load(tmp_path / "rows", needed=("one", "two"))


@pytest.mark.parametrize("mmap", [True, False])
def test_a_file_that_ends_early_is_missing_or_is_an_archive(tmp_path, mmap):
    refused(load, tmp_path / "nowhere")
    save(tmp_path / "rows")
    file = tmp_path / "rows" / "one.npy"
    whole = file.read_bytes()
    for length in [*range(0, 140, 7), len(whole) - 1]:
        file.write_bytes(whole[:length])
        refused(load, tmp_path / "rows", mmap=mmap)
    with file.open("wb") as stream:
        np.savez(stream, one=np.arange(5))
    refused(load, tmp_path / "rows", mmap=mmap)
    file.unlink()
    refused(load, tmp_path / "rows", mmap=mmap)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.integers(0, 127), st.integers(0, 255), min_size=1, max_size=4), st.booleans())
@pytest.mark.filterwarnings("ignore")
def test_a_scribbled_array_header_raises_or_is_harmless(tmp_path, changes, mmap):
    save(tmp_path / "rows", {"one": np.arange(5)})
    file = Path(tmp_path / "rows" / "one.npy")
    scribbled = bytearray(file.read_bytes())
    for place, byte in changes.items():
        scribbled[place] = byte
    file.write_bytes(scribbled)
    with contextlib.suppress(NaysayError):
        found = load(tmp_path / "rows", mmap=mmap)[1]["one"]
        assert type(found) in (np.ndarray, np.memmap)
        assert found.nbytes <= 40
