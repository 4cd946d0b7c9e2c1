"""The command `thresholds`: what it prints, draws and writes, and what it refuses."""

import io
import json
import math

import numpy as np
import pytest
from rich.console import Console

from naysay.detectors.grid_option import read_grid
from naysay.detectors.score_histogram import column_of, draw, histogram
from naysay.detectors.sketch import ScoreSketch
from naysay.detectors.threshold_command import thresholds
from naysay.detectors.threshold_figure import figure
from naysay.detectors.threshold_show import meaning
from naysay.detectors.thresholds import choose_thresholds
from naysay.errors import NaysayError
from naysay.quantity.terminal import BLOCK, PLAIN

SCORES = np.random.default_rng(0).normal(0.2, 0.1, 20_000).astype(np.float32)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    return tmp_path / "scores.npy"


def printed(scores, width=80, encoding="utf-8", **options):
    """The thresholds and the text of a call."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    found = thresholds(scores, **options, console=Console(file=out, width=width))
    out.flush()
    return found, out.buffer.getvalue().decode(encoding)


def refusal(call, *arguments, **options):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def sketch_of(scores):
    sketch = ScoreSketch()
    sketch.update(scores)
    return sketch


# ---- what is printed ------------------------------------------------------------------------------------------------


def test_the_choice_the_tables_what_they_mean_the_scores_and_the_next_line(file):
    found, text = printed(file, positives=100)
    alone = choose_thresholds(SCORES, n_positives=100)
    assert (found.low, found.high) == (alone.low, alone.high)
    lines = text.splitlines()
    assert lines[0].startswith(f"low = {found.low:.6g}, high = {found.high:.6g} for ")
    for line in str(found).splitlines():
        assert line in lines
    joined = " ".join(text.split())
    assert (
        f"Of 20100 pairs, 20 (0.0995 %) score at or above {found.high:.6g}: likely false negatives, to be left out or "
        f"looked at. 1005 (5 %) score from {found.low:.6g} up to there: hard negatives. The other 18975 negatives are "
        "easy."
    ) in joined
    assert f"▲ low = {found.low:.6g} ▲ high = {found.high:.6g}" in joined
    assert "Note: The shares are a guess about the data" in joined
    assert lines[-1] == f"  bands = naysay.detectors.Bands({found.low!r}, {found.high!r})"
    assert max(map(len, lines[1:])) <= 80


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


def test_anchors(tmp_path):
    np.save(tmp_path / "rows.npy", SCORES.reshape(10, 2000))
    found, text = printed(tmp_path / "rows.npy", scope="anchor", json=tmp_path / "out.json", plot=tmp_path / "out.svg")
    assert text.startswith(f"low = {np.median(found.low):.6g}, high = {np.median(found.high):.6g} at the median anchor")
    joined = " ".join(text.split())
    assert "20 (0.1 %) score at or above its anchor's high" in joined
    assert joined.endswith("bands = naysay.detectors.Bands(low, high)")
    kept = json.loads((tmp_path / "out.json").read_text())
    assert kept["low"] == found.low.tolist()
    assert len(kept["table"]["high"]) == 10
    assert "the median anchor" in (tmp_path / "out.svg").read_text()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_plain_terminals_get_plain_characters(tmp_path, encoding):
    file = tmp_path / "\u4f60[b].npy"
    np.save(file, SCORES)
    _, text = printed(file, encoding=encoding, width=200)
    assert "?[b].npy" in text  # names are data, not markup
    assert "^ low" in text
    assert text.isascii()


# ---- the drawing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [1, 7, 60])
def test_the_histogram_counts_as_plain_loops_do(bins):
    shown = histogram(sketch_of(SCORES), bins)
    edges = shown.edges.astype(np.float32)
    for place in range(bins):
        last = place == bins - 1
        expected = sum(edges[place] <= score and (score < edges[place + 1] or last) for score in SCORES)
        assert shown.counts[place] == expected
    assert shown.counts.sum() == len(SCORES)


def test_equal_scores_have_a_histogram_too():
    for value in (0.0, -3.0, 1e30):
        shown = histogram(sketch_of([value, value]), 5)
        assert shown.counts.tolist() == [0, 0, 2, 0, 0]
        assert column_of(shown, value) == 2


@pytest.mark.parametrize("marks", [BLOCK, PLAIN])
def test_bars_and_lines_stand_where_they_belong(marks):
    shown = histogram(sketch_of([0.0] * 1000 + [1.0] * 10 + [4.0]), 4)
    assert shown.counts.tolist() == [1000, 10, 0, 1]
    lines = draw(shown, (1.0, 2.5), height=4, marks=marks)
    assert [line[:4] for line in lines[:4]] == ["1000", "    ", "    ", "    "]
    area = [line[6:].ljust(4) for line in lines[:4]]
    solid = "#" if marks is PLAIN else "█"
    assert [row[0] for row in area] == [solid] * 4  # log 1001 / log 1001 of four rows
    assert [row[1] for row in area] == [marks.side] * 2 + [marks.side if marks is PLAIN else "▃", solid]  # 1.39 of 4
    assert [row[2] for row in area] == [marks.side] * 4  # no score, but the line of the cut
    assert [row[3] for row in area] == [" ", " ", " ", "#" if marks is PLAIN else "▃"]  # 0.40 of 4
    assert lines[4] == " " * 5 + marks.corner + marks.floor * 4
    assert lines[5] == " " * 6 + "0" + "  4"
    assert lines[6] == " " * 7 + marks.best * 2


def test_a_cut_beyond_all_scores_is_drawn_at_the_edge():
    shown = histogram(sketch_of([0.0, 1.0]), 4)
    assert (column_of(shown, -math.inf), column_of(shown, math.inf), column_of(shown, 1.0)) == (0, 3, 3)
    assert draw(shown, (5.0, math.inf))[-1].rstrip().endswith(BLOCK.best)


# ---- what is written ------------------------------------------------------------------------------------------------


def test_json_holds_all_of_it(file, tmp_path):
    found, _ = printed(file, json=tmp_path / "out.json", low_grid="0.3,0.35", high_grid="0.5,0.6", positives=7)
    kept = json.loads((tmp_path / "out.json").read_text(), parse_constant=pytest.fail)
    for name in ("low", "high", "scope", "n_negatives", "n_positives", "false_share", "hard_share", "start_low"):
        assert kept[name] == getattr(found, name)
    assert (kept["rank_error"], kept["scores"]) == (0.0, str(file))
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
    scores, shares = figure("a name", found, sketch_of(SCORES))["hconcat"]
    bars, rules = scores["layer"]
    values = bars["data"]["values"]
    assert sum(value["pairs"] for value in values) == len(SCORES)
    for value in values:
        middle = (value["from"] + value["to"]) / 2
        assert value["band"] == ("false" if middle >= found.high else "hard" if middle >= found.low else "easy")
    assert [value["score"] for value in rules["data"]["values"]] == [found.low, found.high]
    curve, asked, _ = shares["layer"]
    for point in curve["data"]["values"][::40]:
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
    assert read_grid("thresholds", "--low-grid", text) == values


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a", "numbers separated by commas, or first:last:step, got 'a'."),
        ("", "numbers separated by commas, or first:last:step, got ''."),
        ("0.1,,0.2", "numbers separated by commas, or first:last:step, got '0.1,,0.2'."),
        ("0:1", "numbers separated by commas, or first:last:step, got '0:1'."),
        ("nan", "numbers separated by commas, or first:last:step, got 'nan'."),
        ("0:inf:1", "numbers separated by commas, or first:last:step, got '0:inf:1'."),
        ("0:1:0", "a range that rises by a step above 0, got '0:1:0'."),
        ("1:0:0.1", "a range that rises by a step above 0, got '1:0:0.1'."),
        ("0:1:1e-9", "a range of at most 100000 values, got '0:1:1e-9'."),
    ],
)
def test_refused_grids(text, sentence):
    assert refusal(read_grid, "thresholds", "--low-grid", text) == f"thresholds: `--low-grid` must be {sentence}"


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_refusals_come_before_anything_is_printed_or_written(file, tmp_path):
    out = io.StringIO()
    console = Console(file=out)
    for options, sentence in (
        ({"low_grid": "0.1"}, "thresholds: `--high-grid` must be given together with --low-grid, got nothing."),
        ({"high_grid": "0.1"}, "thresholds: `--low-grid` must be given together with --high-grid, got nothing."),
        ({"column": "a"}, "thresholds: `column` must be left out, unless scores is a .parquet file, got 'a'."),
        ({"false_share": 2}, "choose_thresholds: `false_share` must be from 0 to 1, got 2.0."),
        ({"json": tmp_path}, f"thresholds: `--json` must be a file, got the folder {str(tmp_path)!r}."),
    ):
        assert refusal(thresholds, file, **options, console=console) == sentence
    assert "`--plot` must be a file that ends in .svg or .png" in refusal(thresholds, file, plot=tmp_path / "a.html")
    lost = tmp_path / "lost.npy"
    target = tmp_path / "out.json"
    assert refusal(thresholds, lost, json=target, console=console) == (
        f"thresholds: `scores` must be an existing file, got {str(lost)!r}."
    )
    np.save(lost, np.array([0.5, np.nan]))
    assert "`scores` must be finite, got nan at row 1" in refusal(thresholds, lost, json=target, console=console)
    assert out.getvalue() == ""
    assert not target.exists()


def test_a_sentence_for_each_band():
    found = choose_thresholds(np.arange(1000.0))
    assert meaning(found) == (
        "Of 1000 pairs, 1 (0.1 %) score at or above 999: likely false negatives, to be left out or looked at. "
        "50 (5 %) score from 949 up to there: hard negatives. The other 949 negatives are easy."
    )
