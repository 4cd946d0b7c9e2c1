"""A full disk is one sentence with the bytes that are needed; the job stays, and goes on when there is room."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from job_world import World, in_parts

from naysay.errors import NaysayError
from naysay.files import is_draft
from naysay.formats import _writing as whole_files
from naysay.jobs._folder import JobFolder, opened
from naysay.jobs._guards import locked

FULL = r"^mine: the disk of .* is full: '{}' takes [\d,]+ bytes\. Nothing is lost: free some space, and run"


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, n=24, items=60)


def no_room(*parts):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="files are told by /proc")
@pytest.mark.parametrize("part", [0, 2])
def test_a_part_that_does_not_fit(world, monkeypatch, part):
    in_parts(monkeypatch, 5)
    world.run("whole.jsonl")
    own, count = os.fsync, []

    def full(handle):
        name = Path(os.readlink(f"/proc/self/fd/{handle}")).name
        if is_draft(Path(name)) and name.startswith(f".part-{5 * part:012d}"):
            count.append(name)
            no_room()
        return own(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(NaysayError, match=FULL.format(rf"part-{5 * part:012d}-\d+")) as refusal:
            world.run()
    assert count
    size = int(str(refusal.value).split("takes ")[1].split(" bytes")[0].replace(",", ""))
    world.run(resume=True)
    assert size > 1000
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()


def test_an_output_that_does_not_fit(world, monkeypatch):
    in_parts(monkeypatch, 5)
    world.run("whole.jsonl")
    with monkeypatch.context() as patched:
        patched.setattr(whole_files, "json_line", no_room)
        with pytest.raises(NaysayError, match=FULL.format("out.jsonl")):
            world.run()
    assert not (world.folder / "out.jsonl").exists()
    assert len(list(world.job().glob("part-*"))) == 5
    world.run(resume=True)
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()


def test_another_error_of_the_disk_is_not_a_full_one(world, monkeypatch):
    def broken(*parts):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(whole_files, "json_line", broken)
    with pytest.raises(NaysayError, match=r"a file that can be written, got .* \(Input/output error\)"):
        world.run()
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(
        NaysayError, match=r"^mine: '.*job\.json' cannot be written \(Input/output error\)\. Nothing is lost"
    ):
        world.run(fresh=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="a disk has to be made")
def test_a_real_disk_that_fills_up(world, monkeypatch, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("only root can make a small disk")
    try:
        in_parts(monkeypatch, 5)
        world.run("whole.jsonl")
        given = {"job": "disk/job"}
        with pytest.raises(NaysayError, match=r"the disk of .* is full: '.*' takes [\d,]+ bytes"):
            world.run(**given)
        assert not (world.folder / "out.jsonl").exists()
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        world.run(**given, resume=True)
        assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("name", ["corpus_texts.bytes", "corpus_texts.starts", "background.npy", "known_scores.npy"])
def test_a_file_of_the_job_that_was_cut_off_is_noticed(world, monkeypatch, name):
    in_parts(monkeypatch, 5)
    own = JobFolder.file

    def stopped(folder, name):
        if name.startswith("part-") and sum(1 for _ in world.job().glob("part-*")) == 2:
            raise KeyboardInterrupt
        return own(folder, name)

    with monkeypatch.context() as patched:
        patched.setattr(JobFolder, "file", stopped)
        with pytest.raises(KeyboardInterrupt):
            world.run()
    path = world.job() / name
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(
        NaysayError, match=r"^mine: '.*' in the folder of the job is damaged\. Start again with --fresh\.$"
    ):
        world.run(resume=True)
    assert not (world.folder / "out.jsonl").exists()
    world.run(fresh=True)
    assert (world.folder / "out.jsonl").is_file()


def test_a_full_disk_is_said_once_and_of_the_file_that_did_not_fit(tmp_path):
    def write():
        with (
            opened(tmp_path / "job", resume=False, fresh=False) as folder,
            folder.file("outer"),
            folder.file("inner") as stream,
        ):
            stream.write(b"12345")
            no_room()

    with pytest.raises(NaysayError, match=r"^the disk of .* is full: 'inner' takes 5 bytes"):
        write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(7,), (3, 4), (0, 5), (0,)])
@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_an_array_has_the_bytes_that_numpy_writes(tmp_path, shape, kind):
    array = np.arange(np.prod(shape), dtype=kind).reshape(shape)
    np.save(tmp_path / "own.npy", array)
    with opened(tmp_path / "job", resume=False, fresh=False) as folder:
        folder.begin({}, resume=False)
        folder.write_array("array.npy", array)
        assert folder.read("array.npy") == (tmp_path / "own.npy").read_bytes()
        assert folder.array("array.npy", mmap=False).tolist() == array.tolist()


def test_a_lock_that_cannot_be_written_is_one_sentence_and_leaves_nothing(tmp_path):
    resource = pytest.importorskip("resource")
    missing, limits = tmp_path / "no" / "lock", resource.getrlimit(resource.RLIMIT_FSIZE)

    def lock(path):
        with locked("--job", path, "", f"naysay job {'0' * 16}"):
            pass

    with pytest.raises(NaysayError, match=r"^`--job` must be in a folder that can be written, got .*\(No such file"):
        lock(missing)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(NaysayError, match=r"^`--job` must be in a folder that can be written, got .*\(the"):
            lock(tmp_path / "lock")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []
