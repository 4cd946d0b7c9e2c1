"""`naysay demo`: what it prints and writes follows from its numbers, and a seed fixes them."""

import importlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from naysay import NaysayError
from naysay.demo import Demonstration, tutorial
from naysay.demo._show import advice_sentence, mean_of, mean_text, result_sentence
from naysay.errors import MissingExtraError
from naysay.lab import retrieval as subwords
from naysay.text import percent

sys.path.append(str(Path(__file__).parent / "demo"))
from planted_library import planted_library

MODULE = importlib.import_module("naysay.demo.run")  # the package's `run` is the function


@pytest.fixture(autouse=True)
def a_small_library(monkeypatch):
    monkeypatch.setattr(MODULE, "read_library", planted_library)
    monkeypatch.setattr(subwords, "BUCKETS", 64)
    monkeypatch.setattr(tutorial, "BATCH", 32)
    monkeypatch.setattr(MODULE, "STEPS", 20)
    monkeypatch.setattr(MODULE, "SEEDS", 2)


def shown(folder, **options):
    text = io.StringIO()
    return MODULE.run(out=folder, console=Console(file=text, width=100), **options), text.getvalue()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One run, for all tests that look at it: what it gave, what it printed, and its folder."""
    folder = tmp_path_factory.mktemp("out") / "demo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "read_library", planted_library)
        patch.setattr(subwords, "BUCKETS", 64)
        patch.setattr(tutorial, "BATCH", 32)
        patch.setattr(MODULE, "STEPS", 20)
        patch.setattr(MODULE, "SEEDS", 2)
        before = torch.get_num_threads(), torch.random.get_rng_state()
        result, printed = shown(folder)
        assert torch.get_num_threads() == before[0]
        assert torch.equal(torch.random.get_rng_state(), before[1])
    return result, printed, folder


def test_the_table_is_made_from_the_numbers(finished):
    result, printed, _ = finished
    assert isinstance(result, Demonstration)
    assert tuple(result.quality) == tutorial.ARMS
    for arm, rows in result.quality.items():
        assert set(rows) == {"nDCG@10", "recall@10", "MRR"}
        for values in rows.values():
            assert len(values) == 2
            assert all(0 <= value <= 1 for value in values)
        line = next(line for line in printed.splitlines() if line.startswith(f"│ {arm} "))
        for values in rows.values():
            assert mean_text(mean_of(values)) in line


def test_the_result_is_computed_and_followed_by_what_to_do(finished):
    result, printed, _ = finished
    scores = {arm: rows["nDCG@10"] for arm, rows in result.quality.items()}
    assert (result.summary, result.advice) == (result_sentence(scores, "nDCG@10"), advice_sentence(scores))
    assert f"{result.summary} {result.advice}" in " ".join(printed.split())


def test_what_else_is_printed(finished):
    result, printed, folder = finished
    flat = " ".join(printed.split())
    library = planted_library()
    assert "132 docstrings of the standard library" in flat
    assert "into 480 passages of 36 words, one every 6 words" in flat
    assert f"Fingerprint {library.fingerprint}." in flat
    assert (result.names, result.fingerprint) == (132, library.fingerprint)
    for name, found in result.detection.items():
        line = next(line for line in printed.splitlines() if line.startswith(f"│ {name} "))
        assert percent(found.recall) in line
        assert ("none" if np.isnan(found.precision) else percent(found.precision)) in line
    assert result.rule in flat
    plain, judged = result.false_shares
    assert f"In truth {percent(plain)} of the nearest are false, and {percent(judged)} of the judged." in flat
    assert judged < plain
    assert f"Best: {result.k_estimate.k:,} random negatives" in flat
    assert f"Report of the mined negatives: {folder / 'report.html'}" in flat
    assert printed.splitlines()[-1].startswith("Took ")


def test_what_is_written(finished):
    result, _, folder = finished
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "results.json"]
    numbers = json.loads((folder / "results.json").read_text())
    assert numbers["quality"] == result.quality
    assert (numbers["summary"], numbers["advice"]) == (result.summary, result.advice)
    assert (numbers["seed"], numbers["quick"], numbers["names"]) == (0, False, result.names)
    assert numbers["detection"]["judge auto"]["recall"] == result.detection["judge auto"].recall
    page = (folder / "report.html").read_text()
    assert "Negatives for questions to the standard library" in page
    assert f"{100 * np.mean(result.quality['judged']['nDCG@10']):.1f} %" in page


def test_a_second_run_gives_the_same_and_another_seed_does_not(finished, tmp_path, monkeypatch):
    result, printed, folder = finished
    before = (folder / "results.json").read_bytes()
    again, text = shown(folder)  # over the earlier one
    assert again.quality == result.quality
    assert (folder / "results.json").read_bytes() == before
    assert text.splitlines()[:-1] == printed.splitlines()[:-1]  # the last line is the time
    monkeypatch.setattr(MODULE, "SEEDS", 1)
    other, _ = shown(tmp_path / "other", seed=2)
    assert all(rows["nDCG@10"][0] not in result.quality[arm]["nDCG@10"] for arm, rows in other.quality.items())


def test_quick_is_a_quarter_of_the_texts_with_all_their_names(tmp_path, monkeypatch):
    seen = []

    def stopped(library, seed):
        seen.append(library)
        raise NaysayError("far enough")

    monkeypatch.setattr(tutorial, "split", stopped)
    with pytest.raises(NaysayError, match="far enough"):
        MODULE.run(quick=True, out=tmp_path / "new")
    assert len(set(seen[0].documents)) == 120 / 4
    kept = set(seen[0].documents)
    assert set(seen[0].names) == {n for n, d in zip(*parts_of(planted_library()), strict=True) if d in kept}
    assert not (tmp_path / "new").exists()


def parts_of(library):
    return library.names, library.documents


# ---- errors, before anything is read ------------------------------------------------------------------


@pytest.fixture
def nothing_is_read(monkeypatch):
    monkeypatch.setattr(MODULE, "read_library", lambda: pytest.fail("work has started"))


@pytest.mark.usefixtures("nothing_is_read")
def test_a_bad_seed(tmp_path):
    with pytest.raises(NaysayError, match=r"run: `seed` must be at least 0, got -1\."):
        MODULE.run(seed=-1, out=tmp_path / "new")


@pytest.mark.usefixtures("nothing_is_read")
def test_a_folder_of_other_things(tmp_path, monkeypatch):
    (tmp_path / "naysay-demo").mkdir()
    (tmp_path / "naysay-demo" / "mine.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        NaysayError, match=r"run: `out` must be a new folder, or that of an earlier demo, got 'naysay-demo'"
    ):
        MODULE.run()


@pytest.mark.usefixtures("nothing_is_read")
def test_without_torch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtraError, match=r"run: torch is not installed\. Run in a clone of naysay: pip install '\.\[demo\]'"
    ):
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
