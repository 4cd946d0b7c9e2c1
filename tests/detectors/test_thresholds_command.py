"""The command `thresholds`: what it prints, draws and writes, and what it refuses."""

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from naysay._commands import ThresholdOptions
from naysay.detectors import _scores
from naysay.detectors._thresholds_command import figure, meaning, read_grid, thresholds
from naysay.detectors.thresholds import choose_thresholds, count_scores
from naysay.errors import NaysayError

SCORES = np.random.default_rng(0).normal(0.2, 0.1, 20_000).astype(np.float32)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    return tmp_path / "scores.npy"


def run(scores, *, console=None, **options):
    return thresholds(ThresholdOptions(scores=scores, **options), console=console)


def printed(scores, width=80, encoding="utf-8", **options):
    """The thresholds and the text of a call."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    found = run(scores, **options, console=Console(file=out, width=width))
    out.flush()
    return found, out.buffer.getvalue().decode(encoding)


def refusal(call, *arguments, **options):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **options)
    return str(caught.value)


# ---- what is printed ------------------------------------------------------------------------------------------------


def test_the_choice_its_use_the_tables_their_meaning_and_the_scores(file):
    found, text = printed(file, positives=100)
    alone = choose_thresholds(SCORES, n_positives=100)
    assert (found.low, found.high) == (alone.low, alone.high)
    lines = text.splitlines()
    assert lines[0].startswith(f"low = {found.low:.6g}, high = {found.high:.6g} for ")
    for line in str(found).splitlines():
        assert line in lines
    joined = " ".join(text.split())
    assert (
        f"Of 20100 pairs, 20 (0.0995 %) score at or above {found.high:.6g}: likely false negatives, to drop or to "
        f"check. 1005 (5 %) score from {found.low:.6g} up to there: hard negatives. The other 18975 negatives are "
        "easy."
    ) in joined
    assert "Note: The shares are a guess about the data" in joined
    low, high = repr(found.low), repr(found.high)
    assert lines[1] == f"Use: naysay.detectors.Bands({low}, {high}), or naysay mine --judge bands:{low},{high}"
    assert max(map(len, lines[2:])) <= 80


def test_the_grid_of_the_note_from_the_command_line(file):
    found, text = printed(file, low_grid="0.3:0.4:0.01", high_grid="0.5,0.6,0.55")
    assert found.table["high"]["value"].tolist() == [0.5, 0.6, 0.55]
    assert (found.low, found.high) == (0.36, 0.55)
    assert "0.36*" in text
    assert "and 3 other values" in text


def test_notes_are_printed(tmp_path):
    np.save(tmp_path / "few.npy", np.array([0.1, 0.2]))
    _, text = printed(tmp_path / "few.npy")
    assert "Note: The share is less than one of 2 pairs, so no negative is false or hard." in " ".join(text.split())


def test_equal_scores_at_the_top(tmp_path):
    scores = np.linspace(0, 0.9, 10_000)
    scores[:100] = 1.0
    np.save(tmp_path / "tied.npy", scores[None])
    found, text = printed(tmp_path / "tied.npy", plot=tmp_path / "out.svg")
    joined = " ".join(text.split())
    assert "high = 1 " not in joined
    assert text.startswith(f"low = {found.low:.6g}, high = just above 1 for ")
    assert "none reaches high, so none is a likely false negative. 510 (5.1 %)" in joined
    assert "0 negatives reach high, where 10 were allowed, so no negative is false." in joined
    assert f"low = {found.low:.6g}, high = just above 1" in (tmp_path / "out.svg").read_text()


# ---- what is written ------------------------------------------------------------------------------------------------


def test_json_holds_all_of_it(file, tmp_path):
    found, _ = printed(file, json=tmp_path / "out.json", low_grid="0.3,0.35", high_grid="0.5,0.6", positives=7)
    kept = json.loads((tmp_path / "out.json").read_text(), parse_constant=pytest.fail)
    for name in ("low", "high", "n_negatives", "n_positives", "false_share", "hard_share", "start_low"):
        assert kept[name] == getattr(found, name)
    assert kept["scores"] == str(file)
    assert tuple(kept["notes"]) == found.notes
    for side in ("high", "low"):
        for row, expected in zip(kept["table"][side], found.table[side], strict=True):
            assert tuple(row.values()) == expected.tolist()
            assert tuple(row) == expected.dtype.names


def test_json_and_picture_of_a_threshold_without_end(tmp_path):
    np.save(tmp_path / "scores.npy", np.array([0.0, np.finfo(np.float32).max], np.float32))
    printed(tmp_path / "scores.npy", json=tmp_path / "out.json", plot=tmp_path / "out.svg")
    assert json.loads((tmp_path / "out.json").read_text(), parse_constant=pytest.fail)["high"] == "inf"


@pytest.mark.parametrize("name", ["out.svg", "out.PNG"])
def test_the_plot_is_written(file, tmp_path, name):
    printed(file, plot=tmp_path / name)
    data = (tmp_path / name).read_bytes()
    assert data.startswith(b"<svg" if name.endswith("svg") else b"\x89PNG")


def test_the_figure_shows_every_score_in_its_band_and_both_thresholds():
    found = choose_thresholds(SCORES, n_positives=100)
    edges = np.linspace(SCORES.min(), SCORES.max(), 121)
    counts = count_scores(_scores.open_scores(SCORES), edges)
    scores, shares = figure("a name", found, edges, counts)["vconcat"][0]["hconcat"]
    bars, rules = scores["layer"]
    values = bars["data"]["values"]
    assert sum(value["pairs"] for value in values) == len(SCORES)
    for value in values:
        middle = (value["from"] + value["to"]) / 2
        assert value["band"] == ("false" if middle >= found.high else "hard" if middle >= found.low else "easy")
    assert [value["score"] for value in rules["data"]["values"]] == [found.low, found.high]
    curve, asked, _ = shares["layer"]
    for point in curve["data"]["values"][::80]:
        assert point["share"] == sum(score >= np.float32(point["score"]) for score in SCORES) / 20_100
    assert [value["share"] for value in asked["data"]["values"]] == [0.001, 0.051]


# ---- grids on the command line --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.12:0.123:0.001", [0.12, 0.121, 0.122, 0.123]),
        ("-1:1:0.5", [-1.0, -0.5, 0.0, 0.5, 1.0]),
        ("0:1:0.4", [0.0, 0.4, 0.8]),
        ("0.3:0.3:1", [0.3]),
        ("0.35, 0.34,3e-1", [0.35, 0.34, 0.3]),
        ("7", [7.0]),
    ],
)
def test_grids(text, values):
    assert read_grid("--low-grid", text) == values


@pytest.mark.parametrize("text", ["a", "", "0.1,,0.2", "0:1", "nan", "0:inf:1", "0:1:0", "1:0:0.1", "0:1:1e-9"])
def test_rejected_grids(text):
    with pytest.raises(NaysayError) as caught:
        read_grid("--low-grid", text)
    assert caught.value.parameter == "--low-grid"


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_scores_are_not_overwritten_by_another_name(file, tmp_path):
    (tmp_path / "link.json").symlink_to(file)
    for name in (tmp_path / "link.json", tmp_path / ".." / tmp_path.name / "scores.npy"):
        assert "`--json` must be another file than `scores`" in refusal(run, file, json=name)
    assert np.array_equal(np.load(file), SCORES)


@pytest.mark.parametrize("option", ["json", "plot"])
@pytest.mark.parametrize(
    "place",
    [
        pytest.param("/proc/out.svg", marks=pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc")),
        "x" * 240 + ".svg",  # a name that leaves no room for a draft's
    ],
)
def test_what_cannot_be_written_is_refused_before_the_scores_are_read(monkeypatch, tmp_path, option, place):
    monkeypatch.chdir(tmp_path)
    sentence = refusal(run, tmp_path / "lost.npy", **{option: Path(place)})
    assert sentence.startswith(f"thresholds: `--{option}` must be a file that can be written, got ")
    assert [*tmp_path.iterdir()] == []


def test_a_sentence_for_each_band():
    assert meaning(choose_thresholds([0.1, 0.2])) == (
        "Of 2 pairs, none reaches high, so none is a likely false negative. None is a hard negative. All 2 negatives "
        "are easy."
    )
    found = choose_thresholds(np.arange(1000.0))
    assert meaning(found) == (
        "Of 1000 pairs, 1 (0.1 %) score at or above 999: likely false negatives, to drop or to check. "
        "50 (5 %) score from 949 up to there: hard negatives. The other 949 negatives are easy."
    )


# ---- names that are not UTF-8 ---------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_names_that_are_not_utf_8_are_read_drawn_and_written(tmp_path, kind):
    names = (b"s\xff." + kind.encode(), b"p\xff.svg", b"j\xff")
    scores, plot, json_file = (tmp_path / os.fsdecode(name) for name in names)
    if kind == "npy":
        np.save(tmp_path / "plain.npy", SCORES)
    else:
        pq.write_table(pa.table({"score": SCORES}), tmp_path / "plain.parquet")
    (tmp_path / f"plain.{kind}").rename(scores)
    found, text = printed(scores, plot=plot, json=json_file)
    assert found.high == choose_thresholds(SCORES).high
    assert "s?." + kind in text.replace("\n", "")
    assert "s?." + kind in plot.read_text()
    assert json.loads(json_file.read_text())["scores"] == str(scores)


def test_a_parquet_file_of_one_row_group_is_not_held_in_memory(tmp_path):
    path = tmp_path / "scores.parquet"
    scores = np.random.default_rng(0).normal(size=2_000_000)
    pq.write_table(pa.table({"score": scores}), path, row_group_size=len(scores), use_dictionary=False)
    before, most = pa.total_allocated_bytes(), 0
    for _ in _scores._parquet(path, None).read():
        most = max(most, pa.total_allocated_bytes() - before)
    assert 0 < most < scores.nbytes / 2
