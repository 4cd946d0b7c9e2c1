"""Single files: where they may be written, atomic writes, and checksums."""

import hashlib
import os
from pathlib import Path

import pytest

from naysay import files, locations
from naysay.errors import NaysayError
from naysay.jobs._stores import _clear


def message_of(call, *arguments, **named):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_where_a_file_may_be_written(tmp_path):
    files.check_target("path", tmp_path / "new.txt")
    assert os.listdir(tmp_path) == []
    assert "must be a file, got the folder" in message_of(files.check_target, "path", tmp_path)
    assert "a device or a pipe" in message_of(files.check_target, "path", Path(os.devnull))
    assert "in an existing folder" in message_of(files.check_target, "path", tmp_path / "no" / "new.txt")
    assert "a file that can be written" in message_of(files.check_target, "path", tmp_path / ("x" * 300))
    locations.check_page("path", tmp_path / "page.HTML")
    assert "ends in .html" in message_of(locations.check_page, "path", tmp_path / "page.pdf")


def test_files_that_are_written_are_apart(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    locations.check_apart({"out": one, "report": None}, {"in": other, "more": None})
    message = message_of(locations.check_apart, {"out": one}, {"in": tmp_path / "." / "one"})
    assert message == f"`out` must be another file than `in`, got {str(one)!r}."
    assert "another file than `out`" in message_of(locations.check_apart, {"out": one, "report": one}, {})


def test_a_stream_that_fails_leaves_the_file_as_it_was(tmp_path):
    target = tmp_path / "numbers"
    files.write_whole("path", target, b"old")

    def fail():
        with files.durable_stream(target) as stream:
            stream.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert contents(tmp_path) == {"numbers": b"old"}
    with files.durable_stream(target) as stream:
        stream.write(b"new")
    assert contents(tmp_path) == {"numbers": b"new"}


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="a file without a name needs Linux")
def test_a_kill_during_the_check_of_a_target_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "close", lambda handle: kept.append((handle, os.listdir(tmp_path))))
    kept, closed = [], os.close
    files.check_target("out", tmp_path / "numbers")
    monkeypatch.undo()
    closed(kept[0][0])
    assert kept[0][1] == []
    message = message_of(files.check_target, "out", tmp_path / ("n" * 250))  # the draft's name is longer
    assert message.startswith("`out` must be a file that can be written, got ")
    assert message.endswith("(File name too long).")


def test_what_a_killed_process_left_is_removed(tmp_path):
    with pytest.raises(RuntimeError), files.draft_of(tmp_path / "out") as draft:
        raise RuntimeError
    for name in (draft.name, f"{draft.name}.arrow", f"{draft.name}x", "out", draft.name.replace("out", "other")):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / f"{draft.name}.old").mkdir()
    assert [files.is_draft(tmp_path / name) for name in ("out", ".out", draft.name)] == [False, False, True]
    _clear(tmp_path / "out")
    assert {*os.listdir(tmp_path)} == {f"{draft.name}x", draft.name.replace("out", "other")}


def test_errors_of_the_disk_name_the_parameter_if_there_is_one(tmp_path):
    missing = tmp_path / "no" / "numbers"
    rule = f"`out` must be a file that can be written, got {str(missing)!r} (No such file or directory)."

    def write():
        with files.draft_of(missing, "out") as draft:
            draft.write_bytes(b"new")

    assert message_of(write) == rule
    assert message_of(files.write_whole, "out", missing, b"new") == rule
    with pytest.raises(FileNotFoundError), files.draft_of(missing) as draft:
        draft.write_bytes(b"new")


def test_checksums(tmp_path):
    (tmp_path / "data").write_bytes(b"abc" * 100_000)
    assert files.digest_of(tmp_path / "data") == hashlib.sha256(b"abc" * 100_000).hexdigest()
    assert (
        files.digest_of(tmp_path / "data", "blake2b") == hashlib.blake2b(b"abc" * 100_000, digest_size=16).hexdigest()
    )


def test_the_first_line_of_an_error():
    assert files.first_line(ValueError("one\ntwo")) == "one"
    assert files.first_line(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_a_file_whose_name_holds_its_checksum(tmp_path):
    with files.checksummed_stream(tmp_path, "part", ".bin") as (stream, made):
        stream.write(b"abc")
        assert made == []
    digest = hashlib.blake2b(b"abc", digest_size=16).hexdigest()
    assert made == [tmp_path / f"part.{digest}.bin"]
    assert files.find_checksummed(tmp_path, "part", ".bin") == made[0]
    made[0].write_bytes(b"abd")
    assert files.find_checksummed(tmp_path, "part", ".bin") is None
    assert contents(tmp_path) == {}
