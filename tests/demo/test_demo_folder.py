"""The folder of the demonstration: a new one or its own, never one with other files."""

import json
import re
import shutil
from pathlib import Path

import pytest

from naysay import NaysayError
from naysay.demo.run import check_folder, run, write_results


def test_a_new_one_is_not_made_before_there_is_something_to_put_in(tmp_path):
    assert check_folder(tmp_path / "new") == tmp_path / "new"
    assert not (tmp_path / "new").exists()


def test_an_empty_one_and_an_earlier_one_are_taken(tmp_path):
    check_folder(tmp_path)
    write_results(tmp_path, {"names": 3})
    (tmp_path / "report.html").write_text("a report")
    check_folder(tmp_path)
    assert json.loads((tmp_path / "results.json").read_text()) == {"made_by": "naysay demo", "names": 3}
    write_results(tmp_path, {"names": 4})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "results.json"]


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.tex": "years of work"},
        {"report.html": "somebody's"},
        {"results.json": "[1, 2]"},
        {"results.json": "no json", "report.html": ""},
        {"results.json": '{"made_by": "naysay demo"}', "notes.txt": "mine"},
    ],
)
def test_a_folder_with_other_files_is_left_alone(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(
        NaysayError, match=r"`out` must be a new folder, or that of an earlier demo, got .* Pass another `out`\."
    ):
        check_folder(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_a_file_and_a_missing_parent(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NaysayError, match=r"`out` must be a folder that can be made, got '.*file' \(Not a directory\)"):
        check_folder(tmp_path / "file")
    with pytest.raises(NaysayError, match=r"`out` must be in an existing folder, got '.*below'"):
        check_folder(tmp_path / "nowhere" / "below")


def test_a_folder_that_cannot_be_made_or_written_is_refused_before_the_run(tmp_path, monkeypatch):
    """Root may write anywhere, so the disk itself refuses here: names that are too long, and a failing system call."""
    with pytest.raises(
        NaysayError, match=r"^run: `out` must be a folder that can be made, got .* \(File name too long\)"
    ):
        run(out=tmp_path / ("x" * 300))
    empty = tmp_path / "empty"
    empty.mkdir()

    def refuse(*arguments, **options):
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr("os.mkdir", refuse)
        with pytest.raises(NaysayError, match=r"`out` must be a folder that can be made.*Read-only file system"):
            run(out=tmp_path / "new")
    monkeypatch.setattr("naysay.files._made_without_name", lambda folder: False)
    monkeypatch.setattr("pathlib.Path.touch", refuse)
    with pytest.raises(NaysayError, match=r"`out` must be a file that can be written.*Read-only file system"):
        run(out=empty)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"]


def test_a_draft_of_a_killed_run_and_a_folder_in_the_way(tmp_path):
    (tmp_path / f".report.html.{'0' * 16}").write_text("half a report")
    check_folder(tmp_path)
    write_results(tmp_path, {})
    (tmp_path / "report.html").mkdir()
    with pytest.raises(NaysayError, match=r"`out` must be a file, got the folder '.*report\.html'"):
        check_folder(tmp_path)


@pytest.mark.parametrize("out", [3, b"x", object()])
def test_a_folder_is_a_path(out):
    with pytest.raises(NaysayError, match=r"^run: `out` must be a path, got "):
        run(out=out)


def test_a_full_disk_is_found_before_the_run(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=9_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(NaysayError, match=r"`out` must be on a disk with 10 MB free, for the report, got '.*' with 9"):
        run(quick=True, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_readme_names_the_page_that_make_demo_writes():
    root = Path(__file__).parents[2]
    folder = re.search(r"naysay demo --out (\S+)", (root / "Makefile").read_text())[1]
    assert f"Report of the mined negatives: {folder}/report.html\n" in (root / "README.md").read_text()
