"""Thresholds by shares: the tables of the note, an oracle in plain loops, every kind of scores, and the command."""

import io
import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from naysay._commands import ThresholdOptions
from naysay.detectors import Bands, choose_thresholds
from naysay.detectors._thresholds_command import thresholds
from naysay.errors import NaysayError

# The note's counts: how many negatives lie from each value up to the next.
VALUES = [-0.5, 0.0, 0.12, 0.121, 0.122, 0.123, 0.33, 0.335, 0.34, 0.35]
COUNTS = [546_459, 555_357, 1129, 1352, 1145, 56_562, 517, 29, 100, 1036]
LOWS, HIGHS = [0.12, 0.121, 0.122, 0.123], [0.35, 0.34, 0.335, 0.33]
NOTE = np.repeat(VALUES, COUNTS)
PRINTED = """\
high, counted at low = 0
high           0.35     0.34    0.335*    0.33
positive      11540    11540    11540    11540
false          1036     1136     1165     1682
hard         616191   616091   616062   615545
easy         546459   546459   546459   546459
false share  0.0882%  0.0967%  0.0991%  0.1431%

low, counted at high = 0.335
low            0.12     0.121*    0.122     0.123
positive      11540     11540     11540     11540
false          1165      1165      1165      1165
hard          60705     59576     58224     57079
easy        1101816   1102945   1104297   1105442
hard share   5.1654%   5.0693%   4.9543%   4.8569%"""


def test_the_tables_of_the_note_are_printed():
    for scores in (NOTE, torch.from_numpy(NOTE).float()):
        found = choose_thresholds(scores, n_positives=11_540, grid=(LOWS, HIGHS))
        assert (found.n_negatives, found.n_positives, found.notes) == (1_163_686, 11_540, ())
        assert str(found) == PRINTED
        assert Bands(found.low, found.high).count(scores) == {"easy": 1_102_945, "hard": 59_576, "false": 1165}


# ---- an oracle ------------------------------------------------------------------------------------------------------


def count(scores, low, high):
    """easy, hard and false, one score at a time."""
    found = [0, 0, 0]
    for score in scores:
        found[2 if score >= high else 1 if score >= low else 0] += 1
    return found


def plain_quantile(scores, allowed, dtype=np.float64):
    """The lowest candidate that at most `allowed` scores reach: a score, or what comes after the largest."""
    for candidate in sorted(set(scores)):
        if sum(score >= candidate for score in scores) <= allowed:
            return candidate
    return float(np.nextafter(dtype(max(scores)), dtype(np.inf)))


few_values = st.sampled_from([-1.0, -0.25, 0.0, 0.1, 0.5, 0.75, 1.0])
several = st.lists(few_values, min_size=2, max_size=2, unique=True)  # equal scores throughout are refused
many = st.tuples(several, st.lists(few_values | st.floats(-2, 2), max_size=58)).map(lambda two: two[0] + two[1])
shares = st.sampled_from([0, 0.001, 0.05, 0.1, 0.29, 0.3, 0.4])


@given(many, shares, shares, st.integers(0, 5))
def test_quantiles_are_those_of_plain_loops(scores, false_share, hard_share, n_positives):
    pairs = len(scores) + n_positives
    false, both = Fraction(str(false_share)), Fraction(str(false_share)) + Fraction(str(hard_share))
    if math.floor(both * pairs) > len(scores):
        return
    found = choose_thresholds(scores, n_positives=n_positives, false_share=false_share, hard_share=hard_share)
    assert found.high == plain_quantile(scores, math.floor(false * pairs))
    assert found.low == plain_quantile(scores, math.floor(both * pairs))
    assert found.low <= found.high
    for side, low in (("high", min(0.0, found.high)), ("low", found.low)):
        (row,) = found.table[side]
        assert [row["easy"], row["hard"], row["false"]] == count(scores, low, found.high)
        assert row["false_share"] == row["false"] / pairs
        assert row["hard_share"] == row["hard"] / pairs
        assert row["easy_share"] == row["easy"] / pairs


@given(many, st.lists(few_values, min_size=1, max_size=5), st.lists(few_values, min_size=1, max_size=5), shares, shares)
def test_a_grid_is_searched_as_in_plain_loops(scores, lows, highs, false_share, hard_share):
    pairs = len(scores) + 1
    fitting = [high for high in highs if count(scores, high, high)[2] / pairs <= false_share]
    high = min(fitting, default=None)
    low = max(
        (low for low in lows if fitting and low <= high and count(scores, low, high)[1] / pairs >= hard_share),
        default=None,
    )
    if low is None:
        with pytest.raises(NaysayError):
            choose_thresholds(scores, n_positives=1, grid=(lows, highs), false_share=false_share, hard_share=hard_share)
        return
    found = choose_thresholds(
        scores, n_positives=1, grid=(lows, highs), false_share=false_share, hard_share=hard_share, start_low=0.1
    )
    assert (found.low, found.high) == (low, high)
    for row, value in zip(found.table["high"], highs, strict=True):
        assert [row["easy"], row["hard"], row["false"]] == count(scores, min(0.1, value), value)
    for row, value in zip(found.table["low"], lows, strict=True):
        assert [row["easy"], row["hard"], row["false"]] == count(scores, min(value, high), high)


def test_ties_go_to_the_easier_side():
    scores = [0.9] * 3 + [0.5] * 10 + [0.1] * 87
    found = choose_thresholds(scores, false_share=0.02, hard_share=0.05)
    assert found.high == np.nextafter(0.9, 1)  # three scores are equal and two may be false, so none is
    assert found.low == 0.9  # 13 reach 0.5 where 7 may
    assert Bands(found.low, found.high).count(scores) == {"easy": 97, "hard": 3, "false": 0}
    assert len(found.notes) == 2
    narrow = choose_thresholds(np.array(scores, np.float32), false_share=0.02, hard_share=0.05)
    assert narrow.high == np.nextafter(np.float32(0.9), np.float32(1))
    assert Bands(narrow.low, narrow.high).count(np.array(scores, np.float32))["false"] == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("top", "text"), [(1.0, "1"), (99.0, "99"), (1_234_567.0, "1234567"), (-0.5, "-0.5")])
def test_a_threshold_above_all_scores_is_not_shown_as_the_largest(top, text, dtype):
    scores = np.array([top] * 5 + [top - 1] * 5 + [top - 2] * 90, dtype)
    found = choose_thresholds(scores, false_share=0.02, hard_share=0.05)
    lines = str(found).splitlines()
    assert lines[1] == f"high         just above {text}*"
    assert lines[8] == f"low, counted at high = just above {text}"
    assert lines[9].split() == ["low", f"{text}*"]  # a score, which five reach
    both = choose_thresholds(scores, false_share=0.02, hard_share=0.02)
    assert str(both).splitlines()[9] == f"low         just above {text}*"


def test_a_share_is_read_as_it_is_written():
    scores = np.arange(100.0)
    assert math.floor(0.29 * 100) == 28
    found = choose_thresholds(scores, false_share=0.29, hard_share=0.0)
    assert (found.high, found.low) == (71.0, 71.0)
    assert choose_thresholds(scores, false_share=0.1, hard_share=0.2).low == 70.0


def test_a_long_grid_is_printed_around_the_choice():
    grid = np.arange(0, 101, 1.0)
    text = str(choose_thresholds(np.arange(1000.0) / 10, grid=(grid, grid)))
    assert "and 93 other values" in text
    assert "100*" in text.splitlines()[1]
    assert "95*" in text.splitlines()[10]


# ---- how scores come ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ({"score": [0.1, 0.2, 0.3, 0.4]}, None),
        ({"id": [7, 8, 9, 6], "text": list("abcd"), "score": [0.1, 0.2, 0.3, 0.4]}, None),
        ({"a": [0.1, 0.2, 0.3, 0.4], "b": [9.0, 9, 9, 9]}, "a"),
        ({"text": list("abcd"), "a": [0.1, 0.2, 0.3, 0.4]}, None),
        ({"scores": [[0.1, 0.2], [0.3, 0.4]]}, None),
        ({"scores": [[0.1], [0.2, 0.3, 0.4]]}, None),
        ({"scores": pa.array([[0.1, 0.2], [0.3, 0.4]], pa.list_(pa.float64(), 2))}, None),
        ({"scores": pa.array([[0.1, 0.2], [0.3, 0.4]], pa.large_list(pa.float64()))}, "scores"),
    ],
)
def test_columns_of_parquet(tmp_path, table, column):
    pq.write_table(pa.table(table), tmp_path / "scores.parquet")
    found = choose_thresholds(str(tmp_path / "scores.parquet"), column=column, false_share=0.25, hard_share=0.25)
    assert (found.low, found.high) == (0.3, 0.4)


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.float64(), 10)])
def test_a_bad_score_in_a_column_of_lists_is_named_by_its_row(tmp_path, kind):
    scores = np.arange(50_000.0).reshape(5000, 10)  # more than one block
    scores[4500, 4:6] = np.nan
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"scores": pa.array(scores.tolist(), kind)}), path)
    with pytest.raises(NaysayError, match=r"nan at row 4500, slot 4 \(1 such row\)"):
        choose_thresholds(path)


@pytest.mark.parametrize(
    "scores",
    [
        [1, 2, 3, 4],
        pa.chunked_array([[1.0, 2], [3.0, 4]]),
        np.ma.masked_array([1.0, 2, 3, 4], [False] * 4),
        np.array([[1, 2], [3, 4]], ">f4"),
        np.array([1, 2, 3, 4], np.longdouble),
        torch.tensor([1, 2, 3, 4], dtype=torch.bfloat16, requires_grad=True),
    ],
)
def test_kinds_of_arrays(scores):
    found = choose_thresholds(scores, false_share=0.25, hard_share=0.25)
    assert (found.low, found.high) == (3.0, 4.0)


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_errors_of_files(tmp_path):
    npy, parquet = tmp_path / "scores.npy", tmp_path / "scores.parquet"

    def parameter(path, **options):
        with pytest.raises(NaysayError) as caught:
            choose_thresholds(path, **options)
        return caught.value.parameter

    npy.write_bytes(b"\x93NUMPY")
    assert parameter(npy) == "scores"
    np.save(npy, np.zeros((1, 1, 1)))
    assert parameter(npy) == "scores"
    np.save(npy, np.array([{}]), allow_pickle=True)
    assert parameter(npy) == "scores"
    np.save(npy, np.arange(3.0))
    assert parameter(npy, column="a") == "column"
    parquet.write_bytes(b"PAR1")
    assert parameter(parquet) == "scores"
    pq.write_table(pa.table({"a": [1.0, None], "b": [2, 3], "text": ["x", "y"]}), parquet)
    assert parameter(parquet) == "scores"
    for column in ("bb", "text", "a"):
        assert parameter(parquet, column=column) == "column"
    pq.write_table(pa.table({"a": [[1.0, None], [2.0, 3.0]]}), parquet)
    assert parameter(parquet) == "column"
    pq.write_table(pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]), parquet)
    assert parameter(parquet, column="a") == "column"


def test_files_of_several_blocks_give_the_same_as_the_array(tmp_path):
    scores = np.random.default_rng(0).normal(size=(2000, 300)).astype(np.float32)
    expected = choose_thresholds(scores, false_share=0.01, hard_share=0.1)
    np.save(tmp_path / "scores.npy", scores)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(scores.ravel()), 300)
    pq.write_table(pa.table({"score": scores.ravel()}), tmp_path / "scores.parquet")
    pq.write_table(pa.table({"score": lists}), tmp_path / "lists.parquet")
    for name in ("scores.npy", "scores.parquet", "lists.parquet"):
        found = choose_thresholds(tmp_path / name, false_share=0.01, hard_share=0.1)
        assert (found.low, found.high) == (expected.low, expected.high)
        assert found.table["low"].tolist() == expected.table["low"].tolist()


# ---- the command ----------------------------------------------------------------------------------------------------

SCORES = np.random.default_rng(0).normal(0.2, 0.1, 20_000).astype(np.float32)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    return tmp_path / "scores.npy"


def printed(scores, **options):
    """The thresholds and the text of a call."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    found = thresholds(ThresholdOptions(scores=scores, **options), console=Console(file=out, width=80))
    out.flush()
    return found, out.buffer.getvalue().decode()


def test_the_command_prints_the_choice_its_use_and_the_tables(file):
    found, text = printed(file, positives=100)
    alone = choose_thresholds(SCORES, n_positives=100)
    assert (found.low, found.high) == (alone.low, alone.high)
    lines = text.splitlines()
    assert lines[0].startswith(f"low = {found.low:.6g}, high = {found.high:.6g} for ")
    low, high = repr(found.low), repr(found.high)
    assert lines[1] == f"Use: naysay.detectors.Bands({low}, {high}), or naysay mine --judge bands:{low},{high}"
    assert str(found) in text
    joined = " ".join(text.split())
    assert "Of 20100 pairs, 20 (0.0995 %) score at or above" in joined
    assert "1005 (5 %) score from" in joined
    assert "The other 18975 negatives are easy." in joined
    assert max(map(len, lines[2:])) <= 80


def test_json_holds_all_of_it(file, tmp_path):
    grids = {"low_grid": "0.3:0.4:0.01", "high_grid": "0.5, 0.6,0.55"}
    found, _ = printed(file, json=tmp_path / "out.json", positives=7, **grids)
    assert (found.low, found.high) == (0.36, 0.55)
    assert found.table["low"]["value"].tolist() == [0.3, 0.31, 0.32, 0.33, 0.34, 0.35, 0.36, 0.37, 0.38, 0.39, 0.4]
    written = json.loads((tmp_path / "out.json").read_text(), parse_constant=pytest.fail)
    for name in ("low", "high", "n_negatives", "n_positives", "false_share", "hard_share", "start_low"):
        assert written[name] == getattr(found, name)
    assert written["scores"] == str(file)
    assert tuple(written["notes"]) == found.notes
    for side in ("high", "low"):
        for row, expected in zip(written["table"][side], found.table[side], strict=True):
            assert tuple(row.values()) == expected.tolist()
            assert tuple(row) == expected.dtype.names


@pytest.mark.parametrize("grid", ["a", "0.1,,0.2", "0:1", "nan", "0:inf:1", "0:1:0", "1:0:0.1", "0:1:1e-9", ""])
def test_rejected_grids(file, grid):
    with pytest.raises(NaysayError) as caught:
        thresholds(ThresholdOptions(scores=file, low_grid=grid, high_grid="0.5"))
    assert caught.value.parameter == "--low-grid"


def test_scores_are_not_overwritten_by_another_name(file, tmp_path):
    (tmp_path / "link.json").symlink_to(file)
    for name in (tmp_path / "link.json", tmp_path / ".." / tmp_path.name / "scores.npy"):
        with pytest.raises(NaysayError) as caught:
            thresholds(ThresholdOptions(scores=file, json=name))
        assert caught.value.parameter == "json"
    assert np.array_equal(np.load(file), SCORES)
