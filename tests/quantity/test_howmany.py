"""The command: what it prints and writes, and what it refuses; never a traceback."""

import io
import json
import os
import subprocess
import sys

import pytest
from rich.console import Console

from naysay._commands import HowmanyOptions
from naysay.errors import NaysayError
from naysay.files import write_whole
from naysay.quantity import auc, estimate, simulated
from naysay.quantity._command import howmany
from tests.fuzz import rules

FOUND = estimate(0.75, [0.52, 0.61, 0.66, 0.7, 0.72])


def run(*, console=None, **options):
    return howmany(HowmanyOptions(**options), console=console)


def printed(width=80, encoding="utf-8", **arguments):
    """The estimates and the text of a call."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    found = run(**arguments, console=Console(file=file, width=width))
    file.flush()
    return found, file.buffer.getvalue().decode(encoding)


def refusal(call, *arguments, **options):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def naysay(*arguments, **environment):
    command = [sys.executable, "-W", "error", "-m", "naysay.cli", "howmany", *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, timeout=120, env=environment)


# ---- what is printed ------------------------------------------------------------------------------------------------


def test_the_result_on_one_line_and_what_to_do_on_the_next():
    found, text = printed(train_auc=0.75, val_auc="0.52,0.61,0.66,0.7,0.72")
    assert [one.k for one in found] == [4]
    lines = text.splitlines()
    curve = "0.52,0.61,0.66,0.7,0.72"
    assert lines[0] == f"k = 4 negatives per positive, for training AUC 0.75 and validation AUC {curve}"
    schedule = "k_at = naysay.quantity.adaptive(peak=4, steps=STEPS)"
    assert lines[1] == f"Use any k from 3 to 5, or a schedule: {schedule}"
    joined = " ".join(text.split())
    assert f"v is largest at k = 4: {FOUND.curve[3]:.4g}, against {FOUND.curve[0]:.4g} at k = 1" in joined
    assert "within 1 % of its best from k = 3 to 5" in joined
    assert "Note" not in text
    assert max(map(len, lines[2:])) <= 80


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"train_auc": 1, "val_auc": "0.6,0.9"}, "Use as many negatives as you can afford: the labels have no noise."),
        ({"train_auc": 0.75, "val_auc": "0.6,0.7", "k_max": 2}, "Raise --k-max above 2: the best k may be larger."),
        ({"train_auc": 0.52, "val_auc": "0.51,0.52"}, "Improve the labels, or use the cheapest k: with these labels"),
        ({"separation": [0.8], "k_max": 6, "weight": 0.99}, "Use k = 3, or a schedule: k_at = naysay.quantity.adap"),
    ],
)
def test_what_to_do_depends_on_the_result(arguments, advice):
    _, text = printed(**arguments)
    assert text.splitlines()[1].startswith(advice)


def test_notes_are_printed():
    _, text = printed(train_auc=0.75, val_auc="0.4,0.9", k_max=2)
    joined = " ".join(text.split())
    for note in estimate(0.75, [0.4, 0.9], k_max=2).notes:
        assert f"Note: {note}" in joined
    _, text = printed(train_auc=1, val_auc="0.6")
    assert "no noise" in text


def test_separations_are_simulated_one_after_the_other():
    found, text = printed(separation=[1, 2.4])
    assert [one.k for one in found] == [4, 20]
    assert found[1].curve.tolist() == estimate(auc(2.4), auc(simulated(2.4))).curve.tolist()
    assert text.count("k_at = ") == 2
    assert "a simulated run at separation 2.4" in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_plain_terminals_get_plain_characters(tmp_path, monkeypatch, encoding):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "\u4f60[b].csv").write_text("0.6\n0.7\n")
    _, text = printed(train_auc=0.75, val_auc="\u4f60[b].csv", encoding=encoding, width=50)
    assert "?[b].csv" in text  # names are data, not markup
    assert text.isascii()


def test_long_numbers_are_shortened():
    many = ",".join(["0.61"] * 60)
    _, text = printed(train_auc=0.75, val_auc=many, width=200)
    assert f"validation AUC {many[:57]}...\n" in text


# ---- what is written ------------------------------------------------------------------------------------------------


def test_json_holds_all_of_it(tmp_path):
    found, _ = printed(separation=[1, 0.3], json=tmp_path / "out.json", k_max=30)
    kept = json.loads((tmp_path / "out.json").read_text())
    assert [row["run"] for row in kept] == ["a simulated run at separation 1", "a simulated run at separation 0.3"]
    for one, row in zip(found, kept, strict=True):
        assert row["curve"] == one.curve.tolist()
        assert row["reached"] == one.reached.tolist()
        assert (row["k"], row["at_edge"], tuple(row["flat"])) == (one.k, one.at_edge, one.flat)
        assert (row["carried_by_easy"], row["weight"]) == (one.carried_by_easy, one.weight)
        assert row["separation"] == one.separation
        assert tuple(row["notes"]) == one.notes


def test_json_of_separations_without_end(tmp_path):
    printed(train_auc=1, val_auc="0,0.5,1", json=tmp_path / "out.json", k_max=3)
    kept = json.loads((tmp_path / "out.json").read_text(), parse_constant=pytest.fail)
    assert (kept[0]["separation"], kept[0]["reached"]) == ("inf", ["-inf", 0.0, "inf"])


@pytest.mark.parametrize("name", ["out.svg", "out.PNG"])
def test_the_plot_is_written(tmp_path, name):
    printed(separation=[1], plot=tmp_path / name, k_max=50)
    data = (tmp_path / name).read_bytes()
    assert data.startswith(b"<svg" if name.endswith("svg") else b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    target = tmp_path / "out.json"
    target.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    sentence = refusal(write_whole, "json", target, b"new")
    assert sentence.startswith("`json` must be a file that can be written, got '")
    assert "(the disk is full)" in sentence
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


# ---- refusals of the command ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`--train-auc` must be given, got nothing. Or give `--separation` for a simulated run."),
        ({"val_auc": "0.5"}, "`--train-auc` must be given, got nothing. Or give `--separation` for a simulated run."),
        ({"train_auc": 0.7}, "`--val-auc` must be given, got nothing. Or give `--separation` for a simulated run."),
        (
            {"train_auc": 0.7, "separation": [1]},
            "`--separation` must be left out where AUCs are given, got both. Give a run or separations.",
        ),
        (
            {"column": "a", "separation": [1]},
            "`--separation` must be left out where AUCs are given, got both. Give a run or separations.",
        ),
        ({"separation": [1, 0]}, "`--separation` must be a finite number above 0, got 0."),
        ({"separation": [float("nan")]}, "`--separation` must be a finite number above 0, got nan."),
    ],
)
def test_what_does_not_go_together_is_rejected_before_anything_is_printed(arguments, message):
    file = io.StringIO()
    assert refusal(run, **arguments, console=Console(file=file)) == f"howmany: {message}"
    assert file.getvalue() == ""


def test_targets_are_rejected_before_work_starts(tmp_path):
    folder = repr(str(tmp_path))
    assert refusal(run, json=tmp_path) == f"howmany: `--json` must be a file, got the folder {folder}."
    lost = tmp_path / "no" / "a.svg"
    assert refusal(run, plot=lost) == f"howmany: `--plot` must be in an existing folder, got {str(lost)!r}."
    endless = tmp_path / ("x" * 5000)
    assert "`--json` must be a file that can be written" in refusal(run, json=endless)
    one, curve = tmp_path / "one.svg", tmp_path / "curve.csv"
    curve.write_text("auc\n0.6\n0.7\n0.75\n")
    sentence = refusal(run, separation=(1.0,), plot=one, json=one)
    assert sentence.startswith("howmany: `--json` must be another file than `--plot`, got '")
    sentence = refusal(run, train_auc=0.8, val_auc=str(curve), json=curve)
    assert sentence.startswith("howmany: `--json` must be another file than `--val-auc`, got '")
    assert curve.read_text().startswith("auc")
    assert "`--plot` must be a file that ends in .svg or .png" in refusal(run, plot=tmp_path / "a.html")


# ---- from a shell ---------------------------------------------------------------------------------------------------


def test_the_command_runs(tmp_path):
    (tmp_path / "curve.csv").write_text("epoch,val_auc\n1,0.52\n2,0.61\n3,0.66\n4,0.7\n5,0.72\n")
    done = naysay(
        *("--train-auc", "0.75", "--val-auc", str(tmp_path / "curve.csv"), "--json", str(tmp_path / "out.json")),
        PYTHONIOENCODING="utf-8",
        COLUMNS="60",
    )
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert text.startswith("k = 4 ")
    assert max(map(len, text.splitlines()[2:])) <= 60
    assert json.loads((tmp_path / "out.json").read_text())[0]["k"] == 4


def test_separations_from_a_shell_in_ascii():
    done = naysay("--separation", "1", "--separation", "2.4", "--k-max", "50", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert done.stdout.count(b"k_at = ") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--train-auc", "0.4", "--val-auc", "0.5"],
            "`--train-auc` must be a number above 0.5 and at most 1, got 0.4. At 0.5 labels",
        ),
        (["--separation", "1", "--k-max", "0"], "`--k-max` must be at least 1, got 0."),
        (
            ["--separation", "1", "--weight", "1"],
            "`--weight` must be a number above 0 and below 1, got 1.0.",
        ),
        (["--separation", "1", "--plot", "a.html"], "`--plot` must be a file that ends in .svg or"),
    ],
)
def test_a_error_is_one_sentence_and_exit_2(arguments, message):
    done = rules.run(["howmany", *arguments])
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"naysay: howmany: {message}")
    assert done.err.count("\n") == 1


def test_a_missing_extra_is_one_sentence_and_exit_2(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    done = rules.run(["howmany", "--separation", "1", "--plot", "a.svg"])
    message = "naysay: howmany: vl-convert-python is not installed. Run in a clone of naysay: pip install '.[report]'\n"
    assert (done.code, done.out, done.err) == (2, "", message)


def test_files_are_written_before_printing_which_a_closed_pipe_ends(tmp_path):
    class Closed(io.StringIO):
        def write(self, text):
            raise RuntimeError("closed")

    options = HowmanyOptions(separation=[1.0], k_max=50, json=tmp_path / "k.json")
    with pytest.raises(RuntimeError, match="closed"):
        howmany(options, console=Console(file=Closed()))
    assert json.loads((tmp_path / "k.json").read_text())[0]["k"] == 4
