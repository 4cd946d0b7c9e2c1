"""`naysay demo`: what it prints and writes follows from its numbers, a seed fixes them, and the truth is by loops."""

import importlib
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from planted_library import planted_library
from rich.console import Console

from naysay import NaysayError
from naysay.cli import main
from naysay.demo import Demonstration, tutorial
from naysay.errors import MissingExtraError
from naysay.text import percent

MODULE = importlib.import_module("naysay.demo.run")  # the package's `run` is the function


@pytest.fixture(autouse=True)
def a_small_library(monkeypatch):
    monkeypatch.setattr(MODULE, "read_library", planted_library)


def shown(folder, **options):
    text = io.StringIO()
    return MODULE.run(out=folder, console=Console(file=text, width=100), **options), text.getvalue()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One run, for all tests that look at it: what it gave, what it printed, and its folder."""
    folder = tmp_path_factory.mktemp("out") / "demo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "read_library", planted_library)
        before = torch.get_num_threads(), torch.random.get_rng_state()
        result, printed = shown(folder)
        assert torch.get_num_threads() == before[0]
        assert torch.equal(torch.random.get_rng_state(), before[1])
    return result, printed, folder


def test_what_is_printed_is_made_from_the_numbers(finished):
    result, printed, folder = finished
    assert isinstance(result, Demonstration)
    flat = " ".join(printed.split())
    assert "132 docstrings of Python" in flat
    assert f"(fingerprint {planted_library().fingerprint})" in flat
    assert [*result.false_shares] == ["nearest", "95 % rule", "judged", "reviewed"]
    for rule, share in result.false_shares.items():
        line = next(line for line in printed.splitlines() if line.startswith(f"│ {rule} "))
        assert percent(share) in line
    assert result.false_shares["judged"] < result.false_shares["nearest"]
    assert result.advice in flat
    assert f"Report of the judged negatives: {folder / 'report.html'}" in flat
    assert len(printed.splitlines()) < 40  # one screen


def test_the_last_line_is_a_command_that_runs(finished, tmp_path, monkeypatch):
    _, printed, _ = finished
    words = printed.splitlines()[-1].split()
    assert words[:3] == ["naysay", "mine", "pairs.csv"]
    monkeypatch.chdir(tmp_path)
    vectors = np.eye(8, 12)
    corpus = np.eye(12)
    rows = "".join(f"question {row},answer {row}\n" for row in range(8))
    (tmp_path / "pairs.csv").write_text(f"question,answer\n{rows}")
    np.save("q.npy", vectors)
    np.save("c.npy", corpus[:8])
    place = words.index("--model")  # a model of the Hugging Face hub: vectors stand in for it
    words[place : place + 2] = ["--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]
    with pytest.raises(SystemExit) as end:
        main(words[1:])
    assert not end.value.code
    assert (tmp_path / "train.parquet").exists()
    assert (tmp_path / "report.html").exists()


def test_examples_are_what_they_say(finished):
    result, printed, _ = finished
    pairs = tutorial.Pairs(planted_library().documents, 0)
    assert len(result.examples) == 3
    for example in result.examples:
        row = pairs.questions.index(example.question)
        assert example.labelled == pairs.passages[pairs.labels[row]]
        assert example.statement == pairs.statements[row]
        assert example.statement in example.dropped
        assert example.statement not in example.kept
        assert example.dropped != example.labelled
        assert example.question in printed


def test_what_is_written(finished):
    result, _, folder = finished
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "results.json"]
    numbers = json.loads((folder / "results.json").read_text())
    for name in ("names", "false_shares", "negatives", "rule", "advice", "fingerprint"):
        assert numbers[name] == getattr(result, name)
    assert (numbers["made_by"], numbers["seed"], numbers["quick"]) == ("naysay demo", 0, False)
    page = (folder / "report.html").read_text()
    assert "Negatives for questions to the standard library" in page
    assert percent(result.false_shares["judged"]) in page


def test_a_second_run_gives_the_same_and_another_seed_does_not(finished, tmp_path):
    result, printed, folder = finished
    before = (folder / "results.json").read_bytes()
    again, text = shown(folder)  # over the earlier one
    assert again.false_shares == result.false_shares
    assert (folder / "results.json").read_bytes() == before
    assert text == printed
    other, _ = shown(tmp_path / "other", seed=2)
    assert other.false_shares != result.false_shares


def test_the_truth_is_every_passage_that_holds_the_statement():
    pairs = tutorial.Pairs(planted_library().documents, 3)
    for row in range(0, len(pairs), 7):
        statement = pairs.statements[row]
        assert set(pairs.questions[row].split()) <= set(statement.lower().rstrip(".").split())
        assert len(pairs.questions[row].split()) >= 3
        holding = [at for at, passage in enumerate(pairs.passages) if f" {statement} " in f" {passage} "]
        answers = np.flatnonzero(
            pairs.relevant.contains(np.full(len(pairs.passages), row), np.arange(len(pairs.passages)))
        )
        assert holding == answers.tolist()
        assert pairs.labels[row] in holding
    assert all(len(passage.split()) == 36 for passage in pairs.passages)


def test_a_statement_begins_a_sentence_and_its_common_words_are_not_asked_for():
    text = "Return the number of items in the queue. Not (reliable) because of threads! Too short."
    assert tutorial.statements_of(text.split()) == ["Return the number of items in the queue."]
    assert tutorial.question_about("Return the number of items in the queue.") == "return number items queue"


def test_quick_is_a_quarter_of_the_texts_with_all_their_names(tmp_path, monkeypatch):
    seen = []

    def stopped(documents, seed):
        seen.append(documents)
        raise NaysayError("far enough")

    monkeypatch.setattr(tutorial, "Pairs", stopped)
    with pytest.raises(NaysayError, match="far enough"):
        MODULE.run(quick=True, out=tmp_path / "new")
    library = planted_library()
    kept = {*seen[0]}
    assert len(kept) == 120 / 4
    assert len(seen[0]) == sum(document in kept for document in library.documents)
    assert not (tmp_path / "new").exists()


# ---- errors, before anything is read ------------------------------------------------------------------


def full_disk(folder):
    return SimpleNamespace(free=1000)


@pytest.mark.parametrize(
    ("files", "options", "parameter"),
    [
        ({}, {"seed": -1}, "seed"),
        ({}, {"quick": 1}, "quick"),
        ({"mine.txt": ""}, {}, "out"),
        ({"results.json": '{"made_by": "naysay demo"}', "notes.txt": "mine"}, {}, "out"),
        ({"results.json": "[]"}, {}, "out"),
        ({"results.json": '{"made_by": "others"}'}, {}, "out"),
        (None, {"out": "no/folder"}, "out"),
        ("full disk", {}, "out"),
    ],
)
def test_an_invalid_call_is_refused_before_anything_is_read(files, options, parameter, tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE, "read_library", lambda: pytest.fail("work has started"))
    monkeypatch.chdir(tmp_path)
    if isinstance(files, dict) and files:
        (tmp_path / "naysay-demo").mkdir()
        for name, text in files.items():
            (tmp_path / "naysay-demo" / name).write_text(text)
    if files == "full disk":
        monkeypatch.setattr(MODULE.shutil, "disk_usage", full_disk)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(NaysayError) as caught:
        MODULE.run(**options)
    assert caught.value.parameter == parameter
    assert sorted(tmp_path.rglob("*")) == before


def test_without_torch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[demo\]'"):
        MODULE.run(out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_threads_are_put_back_after_an_error(tmp_path, monkeypatch):
    def failing():
        raise NaysayError("no source")

    monkeypatch.setattr(MODULE, "read_library", failing)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(NaysayError, match="no source"):
            MODULE.run(out=tmp_path / "new")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
