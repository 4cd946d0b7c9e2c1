"""A job that is stopped, killed, damaged or in another's way: it goes on with the same bytes, or says what to do."""

import errno
import gc
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from job_world import Encoder, World, after_parts, in_parts, lines, stopped

import naysay as ns
from naysay.errors import NaysayError
from naysay.jobs.folder import locked

NO_VECTORS = {"query_vectors": None, "corpus_vectors": None}
SHORT = {"judge": "max_score:0.62", "depth": 20, "k": "3"}  # the judge leaves the anchors 4, 5 and 14 short


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, n=24, items=60)


@pytest.fixture
def whole(world):
    """The bytes of the output of a job that nothing disturbs."""
    world.run("whole.jsonl")
    return (world.folder / "whole.jsonl").read_bytes()


def output(world):
    file = world.folder / "out.jsonl"
    return file.read_bytes() if file.exists() else None


def error_of(world, **given):
    """The error of a job, which publishes nothing and says one sentence."""
    before = output(world)
    with pytest.raises(NaysayError) as caught:
        world.run(**given)
    assert output(world) == before
    assert "\n" not in str(caught.value)
    return caught.value


def blamed(world, **given):
    """The option that the error names."""
    return error_of(world, **given).parameter.lstrip("-").replace("-", "_")


def tree(folder):
    """{name: bytes} of all files below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def no_room(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# ---- going on -------------------------------------------------------------------------------------------------------


def test_it_goes_on_with_parts_of_another_size(world, whole, monkeypatch):
    assert stopped(world, monkeypatch, 3) == [0, 5, 10]
    assert output(world) is None
    (sorted(world.job().glob("part-*"))[1]).unlink()  # a hole
    in_parts(monkeypatch, 4)
    mined = after_parts(monkeypatch, None, None)
    world.run(resume=True, budget="700MB", threads=2)
    assert mined == [5, 9, 15, 19, 23]
    assert output(world) == whole
    assert not world.job().exists()


@pytest.mark.parametrize("given", [{"k": "auto", "min_score": 0.2, "on_short": "pad"}])
def test_a_cap_on_items_gives_the_same_bytes_after_a_stop_as_in_memory(world, monkeypatch, given):
    given = {"max_per_item": 4, "judge": "share:0.95", **given}
    world.run("whole.jsonl", **given)
    stopped(world, monkeypatch, 2, **given)
    in_parts(monkeypatch, 7)
    world.run(resume=True, **given)
    assert output(world) == (world.folder / "whole.jsonl").read_bytes()
    in_python = given | {"k": 5} | ({"k": "auto"} if "on_short" in given else {})
    mined = ns.mine(world.queries, world.corpus, world.known, **in_python)
    found = [[int(name[1:]) for name in row["negatives"]] for row in lines(world.folder / "out.jsonl")]
    assert [row for row in found if row] == [row[row >= 0].tolist() for row in mined.ids if (row >= 0).any()]
    assert np.bincount(mined.ids[mined.mask]).max() == 4


def test_an_unfinished_job_is_continued_or_thrown_away_only_if_asked(world, whole, monkeypatch):
    stopped(world, monkeypatch, 1)
    (world.job() / ".job.json.0123456789abcdef").write_text("half")  # what a kill leaves of a draft
    assert blamed(world) == "output"
    assert blamed(world, resume=True, fresh=True) == "fresh"
    world.run(fresh=True)
    assert output(world) == whole
    world.run(resume=True)  # where there is nothing to go on with, it begins
    assert output(world) == whole


def test_what_changed_is_named(world, whole, monkeypatch):
    stopped(world, monkeypatch, 1)
    assert "--metric ('cosine' before, 'dot' now)" in str(error_of(world, resume=True, metric="dot"))
    assert "-k (5 before, 6 now), and 1 more: --seed" in str(error_of(world, resume=True, seed=1, k="6"))
    other = world.corpus.copy()
    other[3, 0] += 1
    np.save(world.folder / "c.npy", other)
    assert "another content of --corpus-vectors" in str(error_of(world, resume=True))
    np.save(world.folder / "c.npy", world.corpus)
    world.run(resume=True)
    assert output(world) == whole


@pytest.mark.parametrize("on_short", ["pad", "random"])
def test_a_job_that_stopped_at_a_short_anchor_goes_on_with_another_policy(world, monkeypatch, on_short):
    in_parts(monkeypatch, 2)
    mined = after_parts(monkeypatch, None, None)
    assert blamed(world, **SHORT, on_short="raise") == "on_short"
    assert mined == [0, 2]
    assert "-k (3 before, 2 now)" in str(error_of(world, **SHORT | {"k": "2"}, on_short=on_short, resume=True))
    done = world.run(**SHORT, on_short=on_short, resume=True)
    assert mined == list(range(0, 24, 2))
    found = output(world)
    world.run(**SHORT, on_short=on_short)
    assert output(world) == found
    if on_short == "pad":
        counts = [len(row["negatives"]) for row in lines(world.folder / "out.jsonl")]
        assert counts == [{4: 0, 5: 2, 14: 0}.get(row, 3) for row in range(24)]
        assert (done.short, done.missing) == (3, 7)


def test_a_cap_on_items_names_the_anchor_that_is_short_whatever_its_part(world, monkeypatch):
    in_parts(monkeypatch, 2)
    assert " for anchor 4 " in str(error_of(world, **SHORT, max_per_item=100, on_short="raise"))


def test_rows_of_a_file_that_are_short(world, monkeypatch):
    given = {**SHORT, "format": "n-tuple", "with_scores": False}
    assert blamed(world, short="raise", **given) == "short"
    mined = after_parts(monkeypatch, None, None)
    world.run(short="drop", resume=True, **given)
    assert mined == []  # all that was left was to write


def test_a_job_that_was_killed_while_it_was_removed_makes_way(world, whole, monkeypatch):
    def stop(self, **_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("naysay.jobs.folder.JobFolder.clear", lambda self, **_: stop(self) if self.parts else None)
        with pytest.raises(KeyboardInterrupt):
            world.run()
    assert output(world) == whole  # it was published before
    for given in ({"resume": True, "k": "3"}, {}):
        world.run(**given)
    assert output(world) == whole


def test_the_vectors_of_a_model_outlive_a_change_of_options(world):
    model = Encoder()
    given = {"model": model, **NO_VECTORS, "depth": 20}
    error_of(world, **given, on_short="raise", judge="max_score:0.1")
    n_encoded = model.seen
    assert n_encoded
    for wrong in ({"budget": "1MB"}, {"judge": "calibrated:0.001"}, {"k": "auto", "judge": "none"}):
        error_of(world, **given | wrong, fresh=True)
    world.run(**given, fresh=True)
    assert model.seen == n_encoded
    assert not world.job().exists()


# ---- damage ---------------------------------------------------------------------------------------------------------


def test_a_flipped_bit_in_any_file_is_noticed(world, monkeypatch):
    """What is damaged is made again; a damaged record is an error that says what to do."""
    stopped(world, monkeypatch, 2, source=["bm25"])
    names = ["corpus.arrow", "known.npz", "fit.npz", "bm25.npy", "part-000000000000-000000000005.npz", "job.json"]
    assert {*names} < {*tree(world.job())}
    shutil.copytree(world.job(), world.folder / "copy")
    world.run("words.jsonl", source=["bm25"])
    for name in names:
        flip(world.job() / name)
        if name != "job.json":
            world.run(resume=True, source=["bm25"])
            assert output(world) == (world.folder / "words.jsonl").read_bytes()
            (world.folder / "out.jsonl").unlink()
        else:
            error = str(error_of(world, resume=True, source=["bm25"]))
            assert name in error
            assert error.endswith("Move that folder away, and run again.")
        shutil.rmtree(world.job(), ignore_errors=True)
        shutil.copytree(world.folder / "copy", world.job())


@pytest.mark.parametrize("name", ["corpus.arrow", "known.npz"])
def test_a_file_that_is_gone_is_made_again(world, whole, monkeypatch, name):
    stopped(world, monkeypatch, 2)
    (world.job() / name).unlink()
    world.run(resume=True)
    assert output(world) == whole


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 100_000], ids=len)
def test_a_damaged_record(world, monkeypatch, content):
    stopped(world, monkeypatch, 1)
    (world.job() / "job.json").write_bytes(content)
    before = tree(world.job())
    for given in ({"resume": True}, {"fresh": True}, {}):
        assert blamed(world, **given) == "job"
    assert tree(world.job()) == before


# ---- files of others ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["{}", '{"naysay": "mine", "format": 2}'])
def test_a_folder_that_is_no_job_stays_as_it_is(world, content):
    folder = world.folder / "project"
    folder.mkdir()
    (folder / "job.json").write_text(content)
    (folder / "thesis.tex").write_text("years of work")
    before = tree(folder)
    for given in ({}, {"fresh": True}, {"resume": True}):
        assert blamed(world, job="project", **given) == "job"
    assert tree(folder) == before


@pytest.mark.parametrize(
    ("name", "given"), [("notes.txt", {"fresh": True}), ("part-000000000000-000000000005.npz~", {"resume": True})]
)
def test_a_file_of_a_user_in_the_folder_of_a_job_stays(world, whole, monkeypatch, name, given):
    stopped(world, monkeypatch, 2)
    (world.job() / name).write_text("mine")
    before = tree(world.job())
    assert name in str(error_of(world, **given))
    assert tree(world.job()) == before
    (world.job() / name).unlink()
    world.run(**given)
    assert output(world) == whole


def test_a_file_that_comes_while_the_job_runs_stays(world, monkeypatch, capsys):
    after_parts(monkeypatch, 0, lambda: (world.job() / "notes.txt").write_text("mine"))
    world.run()
    assert tree(world.job()) == {"notes.txt": b"mine"}
    assert "'notes.txt'" in capsys.readouterr().err


def test_a_folder_that_was_there_stays(world):
    (world.folder / "empty").mkdir()
    world.run(job="empty")
    assert list((world.folder / "empty").iterdir()) == []
    world.run(job="new")
    assert not (world.folder / "new").exists()
    assert blamed(world, job="nowhere/job") == "job"


def test_what_fails_early_leaves_nothing(world):
    before = sorted(world.folder.iterdir())
    assert blamed(world, judge="calibrated:0.001") == "judge"
    assert blamed(world, quotas="search=2,bm25=3") == "quotas"
    assert sorted(world.folder.iterdir()) == before


def test_outputs_are_outside_of_the_folder_of_the_job(world):
    (world.folder / "work").mkdir()
    assert blamed(world, job="work", report="work/r.html") == "report"
    encoded = {"encoded": world.folder / "work/e", "model": object(), **NO_VECTORS}
    assert blamed(world, job="work", **encoded) == "encoded"
    assert blamed(world, job="out.jsonl") == "job"


# ---- inputs that change ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "option"), [("c.npy", "--corpus-vectors"), ("docs.parquet", "--corpus")])
def test_an_input_that_is_replaced_by_one_of_the_same_size(world, whole, monkeypatch, name, option):
    path = world.folder / name
    content = path.read_bytes()
    in_parts(monkeypatch, 5)
    with monkeypatch.context() as patched:
        after_parts(patched, 2, lambda: flip(path))
        assert blamed(world) == option.lstrip("-").replace("-", "_")
    path.write_bytes(content)  # at another time: only the content counts
    world.run(resume=True)
    assert output(world) == whole


# ---- two jobs -------------------------------------------------------------------------------------------------------


def test_two_jobs_with_one_output(world, monkeypatch):
    errors = []

    def second():
        with pytest.raises(NaysayError) as caught:
            world.run(job="second", k="3")
        errors.append(str(caught.value))

    after_parts(monkeypatch, 0, second)
    world.run(job="first")
    assert "another job is writing" in errors[0]
    assert not [file.name for file in world.folder.iterdir() if file.name.startswith(".") or file.is_dir()]


def test_one_process_at_a_time_and_a_lock_ends_with_its_process(world, whole, monkeypatch):
    stopped(world, monkeypatch, 1)
    with locked(world.job(), ""):
        for given in ({"resume": True}, {"fresh": True}):
            assert "another process is working on the job" in str(error_of(world, **given))
    program = (
        "import os, pathlib; from naysay.jobs.folder import locked\n"
        f"with locked(pathlib.Path({str(world.job())!r}), ''): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == -9
    world.run(resume=True)
    assert output(world) == whole


def test_what_is_replaced_is_said(world, capsys):
    world.run(report="r.html")
    assert "already" not in capsys.readouterr().err
    world.run(report="r.html")
    assert capsys.readouterr().err.count("is there already") == 2


# ---- a full disk ----------------------------------------------------------------------------------------------------


def test_a_part_that_does_not_fit(world, whole, monkeypatch):
    in_parts(monkeypatch, 5)
    with monkeypatch.context() as patched:
        sync = os.fsync

        def full(handle):
            if "part-000000000010" in os.readlink(f"/proc/self/fd/{handle}"):
                no_room()
            return sync(handle)

        patched.setattr(os, "fsync", full)
        error = str(error_of(world))
    assert "is full: 'part-000000000010-000000000015.npz' takes " in error
    world.run(resume=True)
    assert output(world) == whole


@pytest.mark.skipif(shutil.which("mount") is None, reason="a disk has to be made")
def test_a_real_disk_that_fills_up(world, whole, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("only root can make a small disk")
    try:
        assert "is full: '" in str(error_of(world, job="disk/job"))
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        world.run(job="disk/job", resume=True)
        assert output(world) == whole
    finally:
        gc.collect()  # mapped files of the job
        subprocess.run(["umount", str(disk)], check=True)
