"""A job that was stopped goes on where it was; one that is not the same is refused with what changed."""

import json
import subprocess
import sys

import numpy as np
import pytest
from job_world import World, in_parts, stopped

from naysay.errors import NaysayError
from naysay.jobs import _parts as job_run
from naysay.jobs._guards import locked


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, n=24, items=60)


def test_it_goes_on_with_parts_of_another_size(world, monkeypatch):
    world.run("whole.jsonl")
    assert stopped(world, monkeypatch, 3) == [0, 5, 10]
    assert not (world.folder / "out.jsonl").exists()
    names = sorted(file.name for file in world.job().glob("part-*"))
    assert names == [f"part-{start:012d}-{start + 5:012d}" for start in (0, 5, 10)]
    (world.job() / names[1]).unlink()  # a hole
    in_parts(monkeypatch, 4)
    mined = []
    own = job_run.write_part
    monkeypatch.setattr(
        job_run,
        "write_part",
        lambda folder, part: (mined.append((part.start, part.stop)), own(folder, part)),
    )
    world.run(resume=True, budget="700MB", threads=2)
    assert mined == [(5, 9), (9, 10), (15, 19), (19, 23), (23, 24)]
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()
    assert not world.job().exists()


@pytest.mark.parametrize("how", ["cut", "flipped", "empty", "gone"])
def test_a_damaged_part_is_mined_again(world, monkeypatch, how):
    world.run("whole.jsonl")
    stopped(world, monkeypatch, 4)
    part = sorted(world.job().glob("part-*"))[1]
    data = bytearray(part.read_bytes())
    if how == "cut":
        part.write_bytes(data[:-3])
    elif how == "flipped":
        data[-20] ^= 1
        part.write_bytes(data)
    elif how == "empty":
        part.write_bytes(b"")
    else:
        part.unlink()
    world.run(resume=True)
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()


def test_an_unfinished_job_is_not_overrun(world, monkeypatch):
    stopped(world, monkeypatch, 1)
    with pytest.raises(
        NaysayError, match=r"^mine: `--output` must be one without an unfinished job, got the job in .*"
    ):
        world.run()
    world.run("whole.jsonl")
    world.run(fresh=True)
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()
    world.run(resume=True)  # where there is nothing to go on with, it begins
    with pytest.raises(NaysayError, match=r"^mine: `--fresh` must be left out with `--resume`, got both\.$"):
        world.run(resume=True, fresh=True)


def test_what_changed_is_named(world, monkeypatch):
    stopped(world, monkeypatch, 1)
    changed = r"^mine: `--resume` must be given for the same job, got another "
    with pytest.raises(NaysayError, match=changed + r"--metric \('cosine' before, 'dot' now\)\. Undo the change"):
        world.run(resume=True, metric="dot")
    with pytest.raises(NaysayError, match=changed + r"-k \(5 before, 6 now\), and 1 more: --seed\. Undo"):
        world.run(resume=True, seed=1, k="6")
    other = world.corpus.copy()
    other[3, 0] += 1
    np.save(world.folder / "c.npy", other)
    with pytest.raises(NaysayError, match=r"got another content of --corpus-vectors \(3,968 bytes before, 3,968 now\)"):
        world.run(resume=True)
    np.save(world.folder / "c.npy", world.corpus)
    world.run(resume=True)


def test_a_file_that_shrinks_while_the_job_runs(world, monkeypatch):
    in_parts(monkeypatch, 5)
    own, path = job_run.write_part, world.folder / "c.npy"
    whole = path.read_bytes()

    def write(folder, part):
        own(folder, part)
        if part.start == 5:
            path.write_bytes(whole[:-100])

    with monkeypatch.context() as patched:
        patched.setattr(job_run, "write_part", write)
        rule = (
            r"^mine: `--corpus-vectors` must be (the same file until the job is done|a file that does not change while)"
        )
        with pytest.raises(NaysayError, match=rule):
            world.run()
    assert len(list(world.job().glob("part-*"))) == 2
    assert not (world.folder / "out.jsonl").exists()
    path.write_bytes(whole)
    world.run(resume=True)
    in_parts(monkeypatch, 24)
    world.run("whole.jsonl")
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()


def test_one_process_at_a_time(world, monkeypatch):
    stopped(world, monkeypatch, 1)
    with locked("--job", world.job() / "lock", "", f"naysay job {'0' * 16}"):
        with pytest.raises(
            NaysayError, match=r"^mine: another process is working on the job in .* Wait for it, or stop it\.$"
        ):
            world.run(resume=True)
        with pytest.raises(NaysayError, match="another process is working"):
            world.run(fresh=True)
    world.run(resume=True)


def test_the_lock_ends_with_its_process(world, monkeypatch):
    stopped(world, monkeypatch, 1)
    file = str(world.job() / "lock")
    lock = f"import fcntl, os; fcntl.flock(open({file!r}, 'wb'), fcntl.LOCK_EX); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", lock]).returncode == -9
    world.run(resume=True)


def test_a_folder_that_is_no_job(world):
    (world.folder / "mine").mkdir()
    (world.folder / "mine" / "thesis.tex").write_text("years of work")
    for given in ({}, {"fresh": True}, {"resume": True}):
        rule = (
            r"^mine: `--job` must be a new folder, or one of a job, got '.*mine', which holds 'thesis.tex'\. Move it "
            r"away, or pass another --job\.$"
        )
        with pytest.raises(NaysayError, match=rule):
            world.run(job="mine", **given)
    assert [file.name for file in (world.folder / "mine").iterdir()] == ["thesis.tex"]
    assert (world.folder / "mine" / "thesis.tex").read_text() == "years of work"
    with pytest.raises(NaysayError, match=r"^mine: `--job` must be in an existing folder, got '.*nowhere/job'\.$"):
        world.run(job="nowhere/job")
    world.run(job="another")
    assert not (world.folder / "another").exists()


def test_what_is_refused_early_leaves_nothing(world):
    before = sorted(world.folder.iterdir())
    with pytest.raises(NaysayError, match="`--judge` must be fitted, or 999 anchors"):
        world.run(judge="calibrated:0.001")
    with pytest.raises(NaysayError, match="`--quotas` must be one of 'search', got 'bm25'"):
        world.run(quotas="search=2,bm25=3")
    assert sorted(world.folder.iterdir()) == before


def test_drafts_of_a_killed_process_go(world, monkeypatch):
    stopped(world, monkeypatch, 1)
    name = json.loads((world.job() / "job.json").read_text())["job"]
    (world.job() / f".known.{name}").write_bytes(b"half")
    for draft in (f".naysay-{name}.jsonl", f"..naysay-{name}.jsonl.0123456789abcdef"):
        (world.folder / draft).write_bytes(b"half")
    others = [".naysay-fedcba9876543210.jsonl", ".out.jsonl.0123456789abcdef", ".out.jsonl.mine"]
    for other in others:
        (world.folder / other).write_bytes(b"of another job, or of a user")
    world.run(resume=True)
    assert not world.job().exists()
    assert sorted(file.name for file in world.folder.iterdir() if file.name.startswith(".")) == others
