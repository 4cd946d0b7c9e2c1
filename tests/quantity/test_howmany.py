"""The command `naysay howmany`: the curves it reads, what it prints, writes and draws, and invalid calls."""

import io
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from rich.console import Console

from naysay._commands import HowmanyOptions
from naysay.errors import NaysayError
from naysay.quantity import auc, estimate, simulated
from naysay.quantity._command import howmany
from tests.fuzz import rules

SCORES = [0.52, 0.61, 0.66, 0.7, 0.72]
CURVE = "0.52,0.61,0.66,0.7,0.72"
FOUND = estimate(0.75, SCORES)


def printed(width=80, encoding="utf-8", **options):
    """The estimates and the text of a call."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    found = howmany(HowmanyOptions(**options), console=Console(file=file, width=width))
    file.flush()
    return found, file.buffer.getvalue().decode(encoding)


def invalid(**options):
    """(parameter, sentence) of the error; nothing is printed."""
    file = io.StringIO()
    with pytest.raises(NaysayError) as caught:
        howmany(HowmanyOptions(**options), console=Console(file=file))
    assert file.getvalue() == ""
    assert "\n" not in str(caught.value)
    return caught.value.parameter, str(caught.value)


def separations(val_auc, column=""):
    """The model's separations of a run whose AUCs are given as text or by a file."""
    (found,), _ = printed(train_auc=0.75, val_auc=str(val_auc), column=column)
    return found.reached.tolist()


# ---- curves ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("a.csv", "0.52\n0.61\n0.66\n0.7\n0.72\n", ""),
        ("a.csv", "anything\n0.52\n0.61\n0.66\n0.7\n0.72\n", ""),
        ("a.csv", "step, AUC ,loss\n1,0.52,9\n2,0.61,9\n3,0.66,9\n4,0.7,9\n5,0.72,9\n", ""),
        ("a.csv", "auc,val_auc\n.9,0.52\n.9,0.61\n.9,0.66\n.9,0.7\n.9,0.72\n", ""),
        ("a.csv", '\ufeff"step","val_auc"\n1,"0.52"\n2,0.61\n3,6.6e-1\n4,0.7\n5,0.72\n', ""),
        ("a.txt", "step,auc,test\n1,1,0.52\n2,1,0.61\n3,1,0.66\n4,1,0.7\n5,1,0.72\n", "test"),
        ("a.txt", "1,0.52\n2,0.61\n3,0.66\n4,0.7\n5,0.72\n", "2"),
        ("a.JSON", json.dumps(SCORES), ""),
    ],
)
def test_a_curve_in_a_file(tmp_path, name, text, column):
    (tmp_path / name).write_text(text, newline="")
    assert separations(tmp_path / name, column) == FOUND.reached.tolist()


def test_a_curve_as_numbers_and_as_an_array(tmp_path):
    np.save(tmp_path / "curve.npy", np.array(SCORES))
    assert separations(tmp_path / "curve.npy") == separations(CURVE) == FOUND.reached.tolist()
    assert len(separations("0.6")) == 1


@pytest.mark.parametrize(
    ("name", "content", "column", "parameter"),
    [
        ("a.csv", b"", "", "val_auc"),
        ("a.csv", b"auc\n\n", "", "val_auc"),
        ("a.csv", b"step,train,test\n1,2,3\n", "", "val_auc"),
        ("a.csv", b"auc,AUC\n0.5,0.6\n", "", "val_auc"),
        ("a.csv", b"step,test\n1,0.5\n", "tset", "column"),
        ("a.csv", b"a,a\n1,0.5\n", "a", "column"),
        ("a.csv", b"step,auc\n1,0.5\n2\n", "", "val_auc"),
        ("a.csv", b"0.5\n52\n", "", "val_auc"),
        ("a.csv", b"\xff\xfe0", "", "val_auc"),
        ("a.csv", b"auc\n" + b"9" * 200_000, "", "val_auc"),
        ("a.json", b"{", "", "val_auc"),
        ("a.json", b"[" * 100_000, "", "val_auc"),
        ("a.json", b"{}", "", "val_auc"),
        ("a.json", b'["0.5"]', "", "val_auc"),
        ("a.json", b"[0.5]", "auc", "column"),
        ("a.npy", b"no", "", "val_auc"),
        ("other.csv", b"", "", "val_auc"),
    ],
)
def test_an_invalid_curve_is_named(tmp_path, monkeypatch, name, content, column, parameter):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    assert invalid(train_auc=0.75, val_auc="a" + name[-4:] if name[0] == "o" else name, column=column)[0] == parameter


def test_the_error_of_a_curve_has_the_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("auc\n0.5\n\nhigh\n0.6\nlow\n")
    assert "'high' at line 4" in invalid(train_auc=0.75, val_auc="a.csv")[1]


# ---- what is printed ------------------------------------------------------------------------------------------------


def test_the_result_on_one_line_and_what_to_do_on_the_next():
    found, text = printed(train_auc=0.75, val_auc=CURVE)
    assert [one.k for one in found] == [4]
    lines = text.splitlines()
    assert lines[0] == f"k = 4 negatives per positive, for training AUC 0.75 and validation AUC {CURVE}"
    assert lines[1] == "Use any k from 3 to 5, or a schedule: k_at = naysay.quantity.adaptive(peak=4, steps=STEPS)"
    joined = " ".join(text.split())
    assert f"v is largest at k = 4: {FOUND.curve[3]:.4g}, against {FOUND.curve[0]:.4g} at k = 1" in joined
    assert "Note" not in text
    assert max(map(len, lines[2:])) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"train_auc": 1, "val_auc": "0.6,0.9"}, "Use as many negatives as you can afford"),
        ({"train_auc": 0.75, "val_auc": "0.6,0.7", "k_max": 2}, "Raise --k-max above 2"),
        ({"train_auc": 0.52, "val_auc": "0.51,0.52"}, "Improve the labels"),
        ({"separation": [0.8], "k_max": 6, "weight": 0.99}, "Use k = 3, or a schedule"),
    ],
)
def test_what_to_do_depends_on_the_result_and_notes_are_printed(arguments, words):
    (found,), text = printed(**arguments)
    assert text.splitlines()[1].startswith(words)
    for note in found.notes:
        assert f"Note: {note}" in " ".join(text.split())


def test_separations_are_simulated_one_after_the_other():
    found, text = printed(separation=[1, 2.4])
    assert [one.k for one in found] == [4, 20]
    assert found[1].curve.tolist() == estimate(auc(2.4), auc(simulated(2.4))).curve.tolist()
    assert text.count("k_at = ") == 2


# ---- what is written ------------------------------------------------------------------------------------------------


def test_json_holds_all_of_it(tmp_path):
    found, _ = printed(separation=[1, 0.3], json=tmp_path / "out.json", k_max=30)
    kept = json.loads((tmp_path / "out.json").read_text())
    assert [row["run"] for row in kept] == ["a simulated run at separation 1", "a simulated run at separation 0.3"]
    for one, row in zip(found, kept, strict=True):
        assert (row["curve"], row["reached"]) == (one.curve.tolist(), one.reached.tolist())
        assert (row["k"], row["at_edge"], tuple(row["flat"])) == (one.k, one.at_edge, one.flat)
        assert (row["weight"], row["separation"], tuple(row["notes"])) == (one.weight, one.separation, one.notes)


def test_the_plot_shows_v_the_schedule_and_names_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = """<b>&"it's" $x [0] {"signal": "1+1"}.csv"""
    (tmp_path / name).write_text(CURVE.replace(",", "\n"))
    printed(train_auc=0.75, val_auc=name, plot=tmp_path / "out.svg")
    svg = (tmp_path / "out.svg").read_bytes()
    texts = ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert f"k = 4 for training AUC 0.75 and validation AUC {name}" in texts
    for text in ("k, negatives per positive", "weight", "0.95", "dashed: the best k, 4, at weight 0.9"):
        assert text in texts
    assert b"NaN" not in svg


def test_files_are_written_before_printing_which_a_closed_pipe_ends(tmp_path):
    class Closed(io.StringIO):
        def write(self, text):
            raise RuntimeError("closed")

    options = HowmanyOptions(separation=[1.0], k_max=50, json=tmp_path / "k.json")
    with pytest.raises(RuntimeError, match="closed"):
        howmany(options, console=Console(file=Closed()))
    assert json.loads((tmp_path / "k.json").read_text())[0]["k"] == 4


# ---- invalid calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({}, "train_auc"),
        ({"val_auc": "0.5"}, "train_auc"),
        ({"train_auc": 0.7}, "val_auc"),
        ({"train_auc": 0.7, "val_auc": "0.5,x,7"}, "val_auc"),
        ({"train_auc": 0.7, "val_auc": "0.5", "column": "a"}, "column"),
        ({"train_auc": 0.7, "val_auc": "nowhere.csv"}, "val_auc"),
        ({"train_auc": 0.7, "val_auc": "x" * 5000}, "val_auc"),
        ({"train_auc": 0.7, "separation": [1]}, "separation"),
        ({"column": "a", "separation": [1]}, "separation"),
        ({"separation": [1, 0]}, "separation"),
        ({"separation": [float("nan")]}, "separation"),
    ],
)
def test_what_does_not_go_together_is_invalid(arguments, parameter):
    assert invalid(**arguments)[0] == parameter


def test_targets_are_checked_before_work_starts(tmp_path):
    curve = tmp_path / "curve.csv"
    curve.write_text("auc\n0.6\n0.7\n0.75\n")
    one = tmp_path / "one.svg"
    assert invalid(json=tmp_path)[0] == "json"
    assert invalid(plot=tmp_path / "no" / "a.svg")[0] == "plot"
    assert invalid(plot=tmp_path / "a.html")[0] == "plot"
    assert invalid(separation=(1.0,), plot=one, json=one)[0] == "json"
    assert invalid(train_auc=0.8, val_auc=str(curve), json=curve)[0] == "json"
    assert curve.read_text().startswith("auc")


def test_an_error_is_one_sentence_with_the_options_and_exit_2():
    done = rules.run(["howmany", "--train-auc", "0.4", "--val-auc", "0.5"])
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("naysay: howmany: `--train-auc` must be a number above 0.5 and at most 1, got 0.4.")
