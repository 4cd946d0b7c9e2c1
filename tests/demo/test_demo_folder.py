"""The folder of the demonstration: a new one or its own, never one with other files."""

import json

import pytest

from naysay import NaysayError
from naysay.demo.run import check_folder, write_results


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
