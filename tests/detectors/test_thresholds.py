"""Thresholds by shares: the note's own tables, an oracle in plain loops, and every way to hand in scores."""

import math
from array import array
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from naysay.detectors import _scores
from naysay.detectors.bands import Bands
from naysay.detectors.thresholds import choose_thresholds
from naysay.detectors.thresholds import shown_number as in_digits
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


def refusal(*arguments, **options):
    with pytest.raises(NaysayError) as caught:
        choose_thresholds(*arguments, **options)
    return str(caught.value).removeprefix("choose_thresholds: ")


# ---- the note -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given_as",
    [
        lambda: NOTE,
        lambda: NOTE.astype(np.float32),
        lambda: torch.from_numpy(NOTE).float(),
    ],
)
def test_the_tables_of_the_note_give_its_choice_and_are_printed_again(given_as):
    found = choose_thresholds(given_as(), n_positives=11_540, grid=(LOWS, HIGHS))
    assert (found.low, found.high) == (0.121, 0.335)
    high, low = found.table["high"], found.table["low"]
    assert high["value"].tolist() == HIGHS
    assert high["positive"].tolist() == [11_540] * 4
    assert high["false"].tolist() == [1036, 1136, 1165, 1682]
    assert high["hard"].tolist() == [616_191, 616_091, 616_062, 615_545]
    assert high["easy"].tolist() == [546_459] * 4
    assert low["value"].tolist() == LOWS
    assert low["positive"].tolist() == [11_540] * 4
    assert low["false"].tolist() == [1165] * 4
    assert low["hard"].tolist() == [60_705, 59_576, 58_224, 57_079]
    assert low["easy"].tolist() == [1_101_816, 1_102_945, 1_104_297, 1_105_442]
    assert [round(100 * share, 4) for share in high["false_share"]] == [0.0882, 0.0967, 0.0991, 0.1431]
    assert [round(100 * share, 3) for share in low["hard_share"]] == [5.165, 5.069, 4.954, 4.857]
    assert (found.n_negatives, found.n_positives, found.notes) == (1_163_686, 11_540, ())
    assert str(found) == PRINTED


def test_the_bands_of_the_choice_have_the_counts_of_the_table():
    for scores in (NOTE, NOTE.astype(np.float32), torch.from_numpy(NOTE).float()):
        assert Bands(0.121, 0.335).count(scores) == {"easy": 1_102_945, "hard": 59_576, "false": 1165}


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
        assert "must be" in refusal(
            scores, n_positives=1, grid=(lows, highs), false_share=false_share, hard_share=hard_share
        )
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
    assert found.notes == (
        "Equal scores: 0 negatives reach high, where 2 were allowed, so no negative is false.",
        "Equal scores: 3 negatives reach low, where 7 were allowed.",
    )
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


def test_a_value_that_is_reached_or_was_typed_is_shown_as_it_is():
    assert (in_digits(1.0000000000000002), in_digits(1.0000000000000002, 0)) == ("1", "just above 1")
    assert [in_digits(value, 0) for value in (0.6666667, 1.25, math.inf)] == ["0.666667", "1.25", "inf"]
    assert [in_digits(value) for value in (0.12345678, 1234567.5, -7_654_321.0)] == ["0.123457", "1234568", "-7654321"]
    found = choose_thresholds([1.0] * 5 + [1 / 3] * 5 + [0.0] * 90, false_share=0.02, hard_share=0.1)
    assert (found.low, str(found).splitlines()[9].split()) == (1 / 3, ["low", "0.333333*"])  # ten reach it
    grid = choose_thresholds(np.arange(100.0), grid=([90, 99.5], [100, 101]), hard_share=0)
    assert str(grid).splitlines()[1].split() == ["high", "100*", "101"]


def test_a_share_is_read_as_it_is_written():
    scores = np.arange(100.0)
    assert math.floor(0.29 * 100) == 28
    found = choose_thresholds(scores, false_share=0.29, hard_share=0.0)
    assert (found.high, found.low) == (71.0, 71.0)
    assert choose_thresholds(scores, false_share=0.1, hard_share=0.2).low == 70.0


def test_few_scores_leave_no_room_for_small_shares():
    found = choose_thresholds([0.1, 0.2, 0.3])
    assert found.notes == (
        "The share is less than one of 3 pairs, so no negative is false.",
        "The share is less than one of 3 pairs, so no negative is false or hard.",
    )
    assert found.low == found.high == np.nextafter(0.3, 1)


def test_all_negatives_may_be_hard_or_false():
    found = choose_thresholds([0.1, 0.2, 0.3, 0.4], false_share=0.25, hard_share=0.75)
    assert (found.low, found.high) == (0.1, 0.4)
    assert found.table["low"][["easy", "hard", "false"]].tolist() == [(0, 3, 1)]


def test_a_choice_at_the_edge_of_its_grid_is_noted():
    found = choose_thresholds(np.arange(100.0), grid=([50, 60], [99, 99.5, 100.0]), false_share=0.01)
    assert (found.low, found.high) == (60.0, 99.0)
    assert found.notes == (
        "high is the smallest value of its grid (99): a smaller one may fit the false share too.",
        "low is the largest value of its grid (60): a larger one may fit the hard share too.",
    )


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
def test_a_row_of_a_list_column_is_one_row(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(_scores, "_LISTS", 2)
    scores = np.arange(50.0).reshape(5, 10)
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"scores": pa.array(scores.tolist(), kind)}), path)
    rows = []
    blocks = replace(_scores.open_scores(path), on_rows=rows.append)
    assert np.concatenate(list(blocks.flat())).tolist() == scores.ravel().tolist()
    assert (blocks.rows, rows) == (5, [2, 2, 1])
    scores[3, 4:6] = np.nan
    pq.write_table(pa.table({"scores": pa.array(scores.tolist(), kind)}), path)
    with pytest.raises(NaysayError, match=r"nan at row 3, slot 4 \(1 such row\)"):
        choose_thresholds(path)


class Series:
    """Like a column of a data frame: iterates over its numbers, is indexed by labels, and NumPy can read it."""

    ndim = 1

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def __getitem__(self, label):
        raise KeyError(label)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


@pytest.mark.parametrize(
    "scores",
    [
        [1, 2, 3, 4],
        range(1, 5),
        memoryview(np.array([1.0, 2, 3, 4])),
        array("f", [1, 2, 3, 4]),
        pa.array([1.0, 2, 3, 4]),
        pa.chunked_array([[1.0, 2], [3.0, 4]]),
        Series([1.0, 2, 3, 4]),
        [np.float64(1), np.float64(2), np.float64(3), np.float64(4)],
        [torch.tensor(1.0), torch.tensor(2.0), torch.tensor(3.0), torch.tensor(4.0)],
        np.ma.masked_array([1.0, 2, 3, 4], [False] * 4),
        np.array([[1, 2], [3, 4]], ">f4"),
        np.array([1, 2, 3, 4], np.longdouble),
        np.array([1, 2, 3, 4], np.uint8),
        torch.tensor([1, 2, 3, 4], dtype=torch.bfloat16, requires_grad=True),
        torch.tensor([[1.0, 2], [3, 4]]).T,
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


def test_files_are_read_in_blocks_and_give_the_same_as_the_array(tmp_path, monkeypatch):
    monkeypatch.setattr(_scores, "BLOCK", 64)
    scores = np.random.default_rng(0).normal(size=(50, 30)).astype(np.float32).round(2)
    wanted = choose_thresholds(np.sort(scores.ravel()), false_share=0.01)
    np.save(tmp_path / "scores.npy", scores)
    pq.write_table(pa.table({"scores": list(scores)}), tmp_path / "scores.parquet")
    for given_as in (scores, tmp_path / "scores.npy", tmp_path / "scores.parquet"):
        found = choose_thresholds(given_as, false_share=0.01)
        assert (found.low, found.high, found.counts) == (wanted.low, wanted.high, wanted.counts)
        assert found.table["high"].tolist() == wanted.table["high"].tolist()


def test_a_damaged_page_is_one_sentence(tmp_path):
    file = tmp_path / "scores.parquet"
    scores = np.random.default_rng(0).random(50_000)
    pq.write_table(pa.table({"score": scores}), file, compression="snappy", write_page_checksum=True)
    data = bytearray(file.read_bytes())
    data[1000:9000] = bytes(8000)
    file.write_bytes(bytes(data))
    assert refusal(file).startswith("`scores` must be a readable .parquet file, got ")
