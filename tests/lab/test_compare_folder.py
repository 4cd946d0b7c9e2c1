"""The folder of a comparison: nothing comes from a file that changed, one process has it, a full disk is named."""

import errno
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import naysay as ns
from naysay.errors import NaysayError
from naysay.lab import split_by_user
from naysay.lab.recommendation import Recommender

DATA = split_by_user(*np.nonzero(np.random.default_rng(1).random((40, 60)) < 0.2), 40, 60)
OPTIONS = {"methods": "uniform,dynamic", "steps": 4, "seeds": 2}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "out"
    return ns.compare(DATA, **OPTIONS, out=folder), folder


@pytest.fixture
def out(finished, tmp_path):
    shutil.copytree(finished[1], tmp_path / "out")
    return tmp_path / "out"


def values(result):
    return [[run.test for run in arm.runs] for arm in result.arms]


def one_file(out, end):
    return sorted((out / "runs").glob(f"*.{end}.json"))[0]


def without(name):
    """Take an entry out of a JSON file."""

    def edit(path):
        content = json.loads(path.read_text())
        del content[name]
        path.write_text(json.dumps(content))

    return edit


EDITS = {
    "no points": ("seed0", without("points")),
    "no test": ("seed0", without("test")),
    "no rate": ("lr", without("lr")),
    "cut": ("seed0", lambda path: path.write_bytes(path.read_bytes()[:40])),
    "empty": ("seed0", lambda path: path.write_bytes(b"")),
    "a list": ("seed0", lambda path: path.write_text("[]")),
    "deep": ("seed0", lambda path: path.write_text("[" * 100_000 + "]" * 100_000)),
    "huge number": ("seed0", lambda path: path.write_text('{"seed": ' + "9" * 10_000 + "}")),
    "not UTF-8": ("seed0", lambda path: path.write_bytes(b"\xff\xfe{")),
    "no settings": ("comparison", without("settings")),
    "damaged settings": ("comparison", lambda path: path.write_text("{damaged")),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_file_that_was_changed_is_named_and_nothing_is_taken_from_it(name, out):
    end, edit = EDITS[name]
    path = out / "comparison.json" if end == "comparison" else one_file(out, end)
    edit(path)
    with pytest.raises(NaysayError) as caught:
        ns.compare(DATA, **OPTIONS, out=out)
    assert caught.value.parameter == "out"
    assert path.name in str(caught.value)
    assert "elete" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("end", ["seed0", "lr"])
def test_a_run_that_was_deleted_is_made_again(end, finished, out):
    one_file(out, end).unlink()
    assert values(ns.compare(DATA, **OPTIONS, out=out)) == values(finished[0])
    assert one_file(out, end).is_file()


def test_a_test_measure_of_nan_is_nan_after_a_resume(tmp_path, monkeypatch):
    measured = Recommender.measured
    monkeypatch.setattr(Recommender, "measured", lambda *given: measured(*given) | {"auc": math.nan})
    runs = [ns.compare(DATA, **OPTIONS, out=tmp_path / "out").arms[0].runs[0] for _ in range(2)]
    assert [math.isnan(run.test["auc"]) for run in runs] == [True, True]


def test_two_at_once_cannot_write_one_folder(tmp_path):
    out, caught = tmp_path / "out", []

    def second(what, share):
        if not caught:
            with pytest.raises(NaysayError) as error:
                ns.compare(DATA, **OPTIONS, out=out)
            caught.append(error.value)

    ns.compare(DATA, **OPTIONS, out=out, on_progress=second)
    assert caught[0].parameter == "out"
    assert (out / "results.json").is_file()
    assert sorted(path.name for path in out.iterdir()) == ["compare.html", "comparison.json", "results.json", "runs"]


def test_the_lock_holds_between_processes_and_ends_with_a_kill(tmp_path):
    code = (
        "import sys, time, numpy as np, naysay as ns\n"
        "users, items = np.nonzero(np.random.default_rng(1).random((40, 60)) < 0.2)\n"
        "data = ns.lab.split_by_user(users, items, 40, 60)\n"
        "def on_progress(what, share):\n    print('working', flush=True)\n    time.sleep(60)\n"
        f"ns.compare(data, methods='uniform,dynamic', steps=4, seeds=2,\n"
        f"    out={str(tmp_path / 'out')!r}, on_progress=on_progress)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "working\n"
            with pytest.raises(NaysayError) as caught:
                ns.compare(DATA, **OPTIONS, out=tmp_path / "out")
            assert caught.value.parameter == "out"
        finally:
            other.kill()
    assert len(ns.compare(DATA, **OPTIONS, out=tmp_path / "out").arms) == 2


def test_an_error_leaves_no_folder(tmp_path):
    with pytest.raises(NaysayError):
        ns.compare(DATA, methods="nothing of the kind", steps=4, out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def raise_full(path):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.mark.parametrize("name", ["comparison.json", "seed0.json", "results.json", "compare.html"])
def test_a_full_disk_is_named_with_the_file(name, tmp_path, monkeypatch):
    replace = os.replace

    def full(source, target, **settings):
        if Path(target).name.endswith(name):
            raise_full(target)
        return replace(source, target, **settings)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(NaysayError) as caught:
        ns.compare(DATA, **OPTIONS, out=tmp_path / "out")
    assert caught.value.parameter == "out"
    assert "disk" in str(caught.value)
    assert "full" in str(caught.value)
    assert name in str(caught.value)
    assert "`data`" not in str(caught.value)
    monkeypatch.setattr(os, "replace", replace)
    assert len(ns.compare(DATA, **OPTIONS, out=tmp_path / "out").arms) == 2
