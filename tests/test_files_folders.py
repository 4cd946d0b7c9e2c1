"""Folders of arrays: whole or not at all, no pickle, and one sentence for every kind of damage."""

import contextlib
import errno
import json
import os
import stat

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


def message_of(call, *arguments, **named):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("mmap", [True, False])
def test_what_is_saved_is_loaded(tmp_path, mmap):
    save(tmp_path / "deep" / "er", n=3)
    header, arrays = load(tmp_path / "deep" / "er", mmap=mmap)
    assert header == {"kind": "rows", "format": 1, "arrays": ["none", "one", "two"], "n": 3}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        assert isinstance(array, np.memmap) == mmap
        assert array.dtype == ARRAYS[name].dtype
        assert array.tolist() == ARRAYS[name].tolist()


def test_a_path_may_be_a_string(tmp_path):
    save(str(tmp_path / "rows"))
    assert load(str(tmp_path / "rows"))[1]["one"].tolist() == [0, 1, 2, 3, 4]


def test_the_files_are_plain(tmp_path):
    save(tmp_path / "rows")
    assert sorted(contents(tmp_path / "rows")) == ["header.json", "none.npy", "one.npy", "two.npy"]
    assert json.loads((tmp_path / "rows" / "header.json").read_text())["kind"] == "rows"
    for path in (tmp_path / "rows").glob("*.npy"):
        np.load(path, allow_pickle=False)


def test_the_folder_is_as_readable_as_any_other(tmp_path):
    save(tmp_path / "rows")
    (tmp_path / "other").mkdir()
    assert stat.S_IMODE((tmp_path / "rows").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_saving_again_replaces_everything(tmp_path):
    save(tmp_path / "rows")
    save(tmp_path / "rows", {"three": np.ones(1)}, n=4)
    assert sorted(contents(tmp_path / "rows")) == ["header.json", "three.npy"]
    assert os.listdir(tmp_path) == ["rows"]


def test_what_is_mapped_may_be_saved_over(tmp_path):
    save(tmp_path / "rows")
    _, arrays = load(tmp_path / "rows")
    save(tmp_path / "rows", arrays)
    assert load(tmp_path / "rows")[1]["one"].tolist() == arrays["one"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("header", [None, "not json", "[]", '{"title": "mine"}', '{"kind": 1, "format": 2}'])
def test_a_foreign_folder_is_left_alone(tmp_path, header):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    if header is not None:
        (mine / "header.json").write_text(header)
    before = contents(mine)
    message = f"`path` must be new, or a folder that naysay wrote, got {str(mine)!r}."
    assert message_of(save, mine) == message
    assert contents(mine) == before
    assert os.listdir(tmp_path) == ["mine"]


def test_a_file_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("years of work")
    assert "must be new, or a folder that naysay wrote" in message_of(save, tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "years of work"


@pytest.mark.parametrize("below", ["rows", "deep/er/rows"])
def test_nothing_is_written_below_a_file(tmp_path, below):
    (tmp_path / "mine").write_text("years of work")
    target = tmp_path / "mine" / below
    message = f"`path` must be below folders only, got {str(target)!r}, which is below a file."
    assert message_of(save, target) == message
    assert (tmp_path / "mine").read_text() == "years of work"


@pytest.mark.parametrize(
    ("exists", "fails_at"),
    [
        *((True, at) for at in ("first array", "second array", "header", "first rename", "second rename")),
        *((False, at) for at in ("first array", "second array", "header", "first rename")),
    ],
)
def test_nothing_is_half_written(tmp_path, monkeypatch, exists, fails_at):
    target = tmp_path / "rows"
    if exists:
        save(target, n=1)
    before = contents(target) if exists else None
    kind, place = {"array": (np.lib.format, "write_array"), "header": (json, "dumps"), "rename": (os, "replace")}[
        fails_at.split()[-1]
    ]
    real, calls = getattr(kind, place), []

    def failing(*arguments, **named):
        calls.append(1)
        if len(calls) == (2 if fails_at.startswith("second") else 1):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **named)

    monkeypatch.setattr(kind, place, failing)
    with pytest.raises(NaysayError, match="the disk is full") as refusal:
        save(target, {"one": np.zeros(9), "more": np.zeros(9)}, n=2)
    assert (refusal.value.parameter, str(target) in str(refusal.value)) == ("path", True)
    assert os.listdir(tmp_path) == (["rows"] if exists else [])
    if exists:
        assert contents(target) == before


def test_an_array_of_objects_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="Object arrays cannot be saved when allow_pickle=False"):
        save(tmp_path / "rows", {"one": np.array([{}], object)})
    assert os.listdir(tmp_path) == []


# ---- damage ---------------------------------------------------------------------------------------------


def test_a_folder_that_is_not_there_or_not_ours(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        assert message_of(load, path) == f"`path` must be a folder that naysay wrote, got {str(path)!r}."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "null",
        '{"kind": "rows"}',
        '{"kind": "rows", "format": 1, "arrays": 5}',
        '{"kind": "rows", "format": 1, "arrays": [[]]}',
        "\udcff",
    ],
)
def test_a_damaged_header(tmp_path, text):
    save(tmp_path / "rows")
    header = tmp_path / "rows" / "header.json"
    header.write_bytes(text.encode(errors="surrogateescape"))
    message = f"`path` must be a folder with a sound header, got {str(header)!r}."
    assert message_of(load, tmp_path / "rows") == message


@pytest.mark.parametrize("value", [None, "3", 2.5, -1, True, [1]])
def test_numbers_of_the_header_are_whole(tmp_path, value):
    save(tmp_path / "rows", n=value)
    assert "a folder with a sound header" in message_of(load, tmp_path / "rows", numbers=("n",))


def test_what_must_be_there(tmp_path):
    save(tmp_path / "rows", n=3)
    load(tmp_path / "rows", numbers=("n",), needed=("one", "two"))
    assert "a folder with a sound header" in message_of(load, tmp_path / "rows", numbers=("m",))
    assert "a folder with a sound header" in message_of(load, tmp_path / "rows", needed=("three",))


def test_another_kind_or_format(tmp_path):
    save(tmp_path / "rows", kind="triples")
    assert message_of(load, tmp_path / "rows") == "`path` must be rows of format 1, got triples of format 1."
    save(tmp_path / "later", format=2)
    assert message_of(load, tmp_path / "later") == "`path` must be rows of format 1, got rows of format 2."


@pytest.mark.parametrize("mmap", [True, False])
def test_a_missing_file(tmp_path, mmap):
    save(tmp_path / "rows")
    (tmp_path / "rows" / "one.npy").unlink()
    assert message_of(load, tmp_path / "rows", mmap=mmap).startswith(
        "`path` must be a complete folder, got one.npy: [Errno 2] No such file or directory"
    )


@pytest.mark.parametrize("mmap", [True, False])
def test_a_file_that_ends_early_anywhere(tmp_path, mmap):
    save(tmp_path / "rows")
    file = tmp_path / "rows" / "one.npy"
    whole = file.read_bytes()
    for length in [*range(0, 140, 3), len(whole) - 1]:
        file.write_bytes(whole[:length])
        message = message_of(load, tmp_path / "rows", mmap=mmap)
        assert message.startswith("`path` must be a complete folder, got one.npy: ")


@pytest.mark.parametrize("mmap", [True, False])
def test_pickles_raise(tmp_path, mmap):
    save(tmp_path / "rows")
    np.save(tmp_path / "rows" / "one.npy", np.array([{"run": "me"}], object), allow_pickle=True)
    assert message_of(load, tmp_path / "rows", mmap=mmap).startswith("`path` must be a complete folder, got one")


def test_an_archive_is_not_an_array(tmp_path):
    save(tmp_path / "rows")
    with open(tmp_path / "rows" / "one.npy", "wb") as file:
        np.savez(file, one=np.arange(5))
    assert message_of(load, tmp_path / "rows").startswith("`path` must be a complete folder, got one.npy: ")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.integers(0, 127), st.integers(0, 255), min_size=1, max_size=4), st.booleans())
@pytest.mark.filterwarnings("ignore")
def test_a_scribbled_array_header_raises_or_harmless(tmp_path, changes, mmap):
    save(tmp_path / "rows", {"one": np.arange(5)})
    file = tmp_path / "rows" / "one.npy"
    scribbled = bytearray(file.read_bytes())
    for place, byte in changes.items():
        scribbled[place] = byte
    file.write_bytes(scribbled)
    with contextlib.suppress(NaysayError):
        found = load(tmp_path / "rows", mmap=mmap)[1]["one"]
        assert type(found) in (np.ndarray, np.memmap)
        assert found.nbytes <= 40


def test_a_folder_with_a_file_of_the_user_is_not_replaced(tmp_path):
    """The folder as a whole would be removed, and the file with it."""
    path = tmp_path / "known"
    known = ns.Positives.from_pairs([0, 1], [1, 2])
    known.save(path)
    known.save(path)
    note = path / "notes.txt"
    note.write_text("mine")
    message = r"^Positives\.save: `path` must be a folder that holds only what naysay wrote, got 'notes.txt' in "
    with pytest.raises(ns.NaysayError, match=message):
        known.save(path)
    assert note.read_text() == "mine"
    assert len(ns.Positives.load(path)) == 2
