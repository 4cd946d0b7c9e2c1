"""Curves of AUCs from files and from the command line itself, and what is refused with its line."""

import json

import numpy as np
import pytest

from naysay.errors import NaysayError
from naysay.quantity._command import read_curve

SCORES = [0.52, 0.61, 0.66, 0.7, 0.72]


def refusal(text, column=""):
    with pytest.raises(NaysayError) as caught:
        read_curve(text, column)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "0.52\n0.61\n0.66\n0.7\n0.72\n",
        "0.52\n0.61\n0.66\n0.7\n0.72",
        "\n0.52\r\n0.61\r\n\r\n 0.66 \r\n0.7\r\n0.72\r\n\r\n",
        "anything\n0.52\n0.61\n0.66\n0.7\n0.72\n",
        "step,auc\n1,0.52\n2,0.61\n3,0.66\n4,0.7\n5,0.72\n",
        "step, AUC ,loss\n1,0.52,9\n2,0.61,9\n3,0.66,9\n4,0.7,9\n5,0.72,9\n",
        "auc,val_auc\n.9,0.52\n.9,0.61\n.9,0.66\n.9,0.7\n.9,0.72\n",
        ",val_auc\n0,0.52\n1,0.61\n2,0.66\n3,0.7\n4,0.72\n",
        '\ufeff"step","val_auc"\n1,"0.52"\n2,0.61\n3,6.6e-1\n4,0.7\n5,0.72\n',
    ],
)
def test_curves_in_csv(tmp_path, text):
    (tmp_path / "curve.csv").write_text(text, newline="")
    assert read_curve(str(tmp_path / "curve.csv")).tolist() == SCORES


def test_a_column_is_chosen(tmp_path):
    path = tmp_path / "curve.txt"
    path.write_text("step,auc,test\n1,0.9,0.5\n2,0.9,0.6\n")
    assert read_curve(str(path), "test").tolist() == [0.5, 0.6]
    path.write_text("1,0.9\n2,0.8\n")
    assert read_curve(str(path), "2").tolist() == [0.9, 0.8]


def test_curves_in_other_forms(tmp_path):
    (tmp_path / "curve.JSON").write_text(json.dumps(SCORES))
    np.save(tmp_path / "curve.npy", np.array(SCORES))
    np.save(tmp_path / "whole.npy", np.array([0, 1]))
    assert read_curve(str(tmp_path / "curve.JSON")).tolist() == SCORES
    assert read_curve(str(tmp_path / "curve.npy")).tolist() == SCORES
    assert read_curve(str(tmp_path / "whole.npy")).tolist() == [0, 1]
    assert read_curve("0.52,0.61, 0.66,0.7,0.72").tolist() == SCORES
    assert read_curve("0.6").tolist() == [0.6]


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "", "", "`val_auc` must be a file with at least one AUC, got PATH, which is empty."),
        ("a.csv", "\n , \n\n", "", "`val_auc` must be a file with at least one AUC, got PATH, which is empty."),
        (
            "a.csv",
            "auc\n\n",
            "",
            "`val_auc` must be a file with at least one AUC, got PATH, which has a header only.",
        ),
        (
            "a.csv",
            "step,train,test\n1,2,3\n",
            "",
            "`val_auc` must be one column, or one that is named auc or val_auc, got columns 'step', 'train', 'test'. "
            "Choose one with `column`.",
        ),
        (
            "a.csv",
            "1,0.5\n2,0.6\n",
            "",
            "`val_auc` must be one column, or one that is named auc or val_auc, got columns '1', '2'. "
            "Choose one with `column`.",
        ),
        (
            "a.csv",
            "auc,AUC\n0.5,0.6\n",
            "",
            "`val_auc` must be one column, or one that is named auc or val_auc, got columns 'auc', 'AUC'. "
            "Choose one with `column`.",
        ),
        (
            "a.csv",
            "step,test\n1,0.5\n",
            "tset",
            "`column` must be one of 'step', 'test', got 'tset'. Did you mean 'test'?",
        ),
        ("a.csv", "a,a\n1,0.5\n", "a", "`column` must be the name of exactly one column, got 'a', 2 times."),
        (
            "a.csv",
            "auc\n0.5\n\nhigh\n0.6\nlow\n",
            "",
            "`val_auc` must be numbers between 0 and 1, got 'high' at line 4 (2 such lines).",
        ),
        (
            "a.csv",
            "step,auc\n1,0.5\n2\n",
            "",
            "`val_auc` must be numbers between 0 and 1, got '' at line 3 (1 such line).",
        ),
        ("a.csv", "0.5\n52\n", "", "`val_auc` must be numbers between 0 and 1, got '52' at line 2 (1 such line)."),
        ("a.csv", "0.5\nnan\n", "", "`val_auc` must be numbers between 0 and 1, got 'nan' at line 2 (1 such line)."),
        ("a.csv", b"\xff\xfe0", "", "`val_auc` must be a readable CSV file, got PATH ('utf-8' codec can't decode"),
        ("a.csv", b"0.5,\x000\n", "", "`val_auc` must be "),
        (
            "a.csv",
            b"auc\n" + b"9" * 200_000,
            "",
            "`val_auc` must be a readable CSV file, got PATH (field larger than",
        ),
        ("a.json", "{", "", "`val_auc` must be a readable JSON file, got PATH (Expecting property name"),
        ("a.json", "[" * 100_000, "", "`val_auc` must be a readable JSON file, got PATH ("),
        ("a.json", "{}", "", "`val_auc` must be a JSON list of at least one AUC, got {}."),
        ("a.json", "[]", "", "`val_auc` must be a JSON list of at least one AUC, got []."),
        ("a.json", '["0.5"]', "", "`val_auc` must be a JSON list of numbers, got ['0.5']."),
        ("a.json", "[true]", "", "`val_auc` must be a JSON list of numbers, got [True]."),
        (
            "a.json",
            "[0.5, NaN]",
            "",
            "`val_auc` must be numbers between 0 and 1, got 'nan' at place 2 (1 such place).",
        ),
        ("a.json", "[0.5]", "auc", "`column` must be left out, unless `val_auc` is a CSV file, got 'auc'."),
        ("a.npy", "no", "", "`val_auc` must be a readable NumPy file, got PATH ("),
    ],
)
def test_bad_files_are_rejected(tmp_path, monkeypatch, name, content, column, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    sentence = refusal(name, column)
    assert sentence.startswith(message.replace("PATH", repr(name)))
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("array", "got"),
    [
        (np.array([[0.5]]), "shape (1, 1) of float64"),
        (np.array([]), "shape (0,) of float64"),
        (np.array(["a"]), "shape (1,) of <U1"),
        (np.array([True]), "shape (1,) of bool"),
    ],
)
def test_arrays_of_other_shapes_are_rejected(tmp_path, array, got):
    np.save(tmp_path / "a.npy", array)
    message = f"`val_auc` must be an array (T,) of at least one number, got {got}."
    assert refusal(str(tmp_path / "a.npy")) == message


def test_pickled_arrays_are_rejected(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    assert "`val_auc` must be a readable NumPy file" in refusal(str(tmp_path / "a.npy"))


@pytest.mark.parametrize("text", ["nowhere.csv", ".", "x" * 5000, "high,0.5"])
def test_what_is_no_file_is_rejected(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    message = "`val_auc` must be an existing file, or numbers separated by commas, got "
    assert refusal(text).startswith(message)


def test_bad_numbers_are_rejected():
    message = "`val_auc` must be numbers between 0 and 1, got 'x' at place 2 (2 such places)."
    assert refusal("0.5,x,7") == message
    message = "`column` must be left out, unless `val_auc` is a CSV file, got 'a'."
    assert refusal("0.5", "a") == message
