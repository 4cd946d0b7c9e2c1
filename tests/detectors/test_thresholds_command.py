"""The command `thresholds`: what it prints, draws and writes, and what it refuses."""

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from naysay._commands import ThresholdOptions
from naysay.detectors import _scores
from naysay.detectors._thresholds_command import read_grid, thresholds
from naysay.detectors._thresholds_show import column_of, draw, figure, histogram, meaning
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.thresholds import choose_thresholds
from naysay.errors import NaysayError
from naysay.plots import BLOCK, PLAIN

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


def sketch_of(scores):
    sketch = ScoreSketch()
    sketch.update(scores)
    return sketch


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
    assert f"▲ low = {found.low:.6g} ▲ high = {found.high:.6g}" in joined
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


@pytest.mark.parametrize("scope", ["all", "anchor"])
def test_equal_scores_at_the_top(tmp_path, scope):
    scores = np.linspace(0, 0.9, 10_000)
    scores[:100] = 1.0
    np.save(tmp_path / "tied.npy", scores[None])
    found, text = printed(tmp_path / "tied.npy", scope=scope, plot=tmp_path / "out.svg")
    joined = " ".join(text.split())
    assert "high = 1 " not in joined
    low = f"{float(np.median(found.low)):.6g}"
    assert text.startswith(f"low = {low}, high = just above 1{' at the median anchor' * (scope == 'anchor')} for ")
    where = low if scope == "all" else "its anchor's low"
    assert (
        f"Of 10000 pairs, none reaches high, so none is a likely false negative. 510 (5.1 %) score from {where} on: "
        "hard negatives. The other 9490 negatives are easy."
    ) in joined
    assert f"▲ low = {low} ▲ high = just above 1" in joined
    assert "0 negatives reach high, where 10 were allowed, so no negative is false." in joined
    assert f"low = {low}, high = just above 1" in (tmp_path / "out.svg").read_text()


def test_nothing_is_red_that_is_not_false(tmp_path):
    for tied, red in ((20, False), (5, True)):
        np.save(tmp_path / "scores.npy", np.concatenate([np.linspace(0, 0.9, 10_000), np.ones(tied)]))
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        run(tmp_path / "scores.npy", console=Console(file=out, width=80, force_terminal=True))
        out.flush()
        assert (b"\x1b[31m" in out.buffer.getvalue()) is red


def test_anchors(tmp_path):
    np.save(tmp_path / "rows.npy", SCORES.reshape(10, 2000))
    found, text = printed(tmp_path / "rows.npy", scope="anchor", json=tmp_path / "out.json", plot=tmp_path / "out.svg")
    assert text.startswith(f"low = {np.median(found.low):.6g}, high = {np.median(found.high):.6g} at the median anchor")
    joined = " ".join(text.split())
    assert "20 (0.1 %) score at or above its anchor's high" in joined
    assert text.splitlines()[1] == "Use: naysay.detectors.Bands(low, high) with the two arrays that --json writes"
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
    scores = SCORES[:1000]
    shown = histogram(sketch_of(scores), bins)
    edges = shown.edges.astype(np.float32)
    for place in range(bins):
        last = place == bins - 1
        expected = sum(edges[place] <= score and (score < edges[place + 1] or last) for score in scores)
        assert shown.counts[place] == expected
    assert shown.counts.sum() == len(scores)


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
    scores, shares = figure("a name", found, sketch_of(SCORES))["vconcat"][0]["hconcat"]
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
def test_rejected_grids(text, sentence):
    assert refusal(read_grid, "--low-grid", text) == f"`--low-grid` must be {sentence}"


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_errors_come_before_anything_is_printed_or_written(file, tmp_path):
    out = io.StringIO()
    console, both = Console(file=out), tmp_path / "both.svg"
    for options, sentence in (
        ({"low_grid": "0.1"}, "thresholds: `--high-grid` must be given together with --low-grid, got nothing."),
        ({"high_grid": "0.1"}, "thresholds: `--low-grid` must be given together with --high-grid, got nothing."),
        ({"false_share": 2}, "thresholds: `--false-share` must be a number at least 0 and at most 1, got 2."),
        ({"json": tmp_path}, f"thresholds: `--json` must be a file, got the folder {str(tmp_path)!r}."),
        ({"json": file}, f"thresholds: `--json` must be another file than `scores`, got {str(file)!r}."),
        ({"plot": both, "json": both}, f"thresholds: `--json` must be another file than `--plot`, got {str(both)!r}."),
    ):
        assert refusal(run, file, **options, console=console) == sentence
    assert "`--plot` must be a file that ends in .svg or .png" in refusal(run, file, plot=tmp_path / "a.html")
    lost = tmp_path / "lost.npy"
    target = tmp_path / "out.json"
    assert refusal(run, lost, json=target, console=console) == (
        f"thresholds: `scores` must be an existing file, got {str(lost)!r}."
    )
    np.save(lost, np.array([0.5, np.nan]))
    assert "`scores` must be finite, got nan at row 1" in refusal(run, lost, json=target, console=console)
    assert out.getvalue() == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lost.npy", "scores.npy"]
    assert np.array_equal(np.load(file), SCORES)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_a_pipe_or_a_device_is_not_replaced(file, tmp_path):
    """A pipe of our own: were a device of the system named here, a broken check would put a file in its place."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    sentence = f"thresholds: `--json` must be a file, got {str(pipe)!r}, a device or a pipe."
    assert refusal(run, file, json=pipe) == sentence
    assert pipe.is_fifo()


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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"positives": -1}, "`--positives` must be at least 0, got -1."),
        ({"column": "a"}, "`--column` must be left out, unless scores is a .parquet file, got 'a'."),
        (
            {"column": "n_positives"},
            "`--column` must be left out, unless scores is a .parquet file, got 'n_positives'.",
        ),
        ({"start_low": math.nan}, "`--start-low` must be a number, got nan."),
        ({"scope": "rows"}, "`--scope` must be one of 'all', 'anchor', got 'rows'."),
        (
            {"false_share": 0.5, "hard_share": 0.6},
            "`--hard-share` must be at most 0.5, what `--false-share` leaves, got 0.6.",
        ),
        (
            {"positives": 10_000_000},
            "`--hard-share` must be at most 0.001996 with `--false-share`, as negatives are 20000 of 10020000 pairs, "
            "got 0.051.",
        ),
        (
            {"low_grid": "7", "high_grid": "0"},
            "`--false-share` must be at least 0.9781, the share at the largest high value 0, got 0.001. Add higher "
            "values to the grid.",
        ),
        (
            {"low_grid": "8", "high_grid": "7"},
            "`--low-grid` must be a grid with a low value at or below the chosen high, 7, got low values from 8.",
        ),
        (
            {"low_grid": "1", "high_grid": "1", "scope": "anchor"},
            "`--low-grid` must be left out with scope 'anchor', got a grid. Anchors get quantiles of their scores.",
        ),
    ],
)
def test_refusals_name_what_was_typed(file, options, sentence):
    assert refusal(run, file, **options) == f"thresholds: {sentence}"


def test_refusals_of_columns_name_the_option_and_leave_names_as_they_are(tmp_path):
    file = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"n_positives": [1.0, None], "grid": [2.0, 3.0]}), file)
    assert refusal(run, file) == (
        "thresholds: `scores` must be a file with one column of numbers, or with one of them named score, got "
        "'n_positives' of double, 'grid' of double. Choose with `--column`."
    )
    assert refusal(run, file, column="n_positives") == (
        "thresholds: `--column` must be a column without nulls ('n_positives'), got null at row 1 (the first of 1 in "
        "its block)."
    )
    rows = tmp_path / "rows.npy"
    np.save(rows, np.arange(6.0).reshape(2, 3))
    assert refusal(run, rows, scope="anchor", positives=3000).endswith("Lower the shares or `--positives`.")


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["thresholds", "scores.npy", "--json", "out.json"], ["--version"], ["--help"]])
def test_a_full_disk_below_what_is_printed_is_one_sentence(file, arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "naysay.cli", *arguments],
            cwd=file.parent,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    assert done.returncode == 2
    assert (done.stderr.count("\n"), "the disk is full" in done.stderr) == (1, True)
    assert [path.name for path in file.parent.iterdir()] == ["scores.npy"]


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


def test_a_grid_beyond_all_measure_is_rejected():
    for text in ("1:2:1e-999999999", "-1e999999:1e999999:1e-999999", "0:1:0.1:x", "1e9999999999999999999"):
        assert refusal(read_grid, "--low-grid", text).startswith("`--low-grid` must be ")


def test_a_name_with_a_null_byte_is_no_file():
    assert refusal(choose_thresholds, "a\0b.npy").startswith("choose_thresholds: `scores` must be ")


def test_a_parquet_file_of_one_row_group_is_not_held_in_memory(tmp_path):
    path = tmp_path / "scores.parquet"
    scores = np.random.default_rng(0).normal(size=2_000_000)
    pq.write_table(pa.table({"score": scores}), path, row_group_size=len(scores), use_dictionary=False)
    before, most = pa.total_allocated_bytes(), 0
    for _ in _scores._parquet(path, None).read():
        most = max(most, pa.total_allocated_bytes() - before)
    assert 0 < most < scores.nbytes / 2
