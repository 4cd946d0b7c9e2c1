"""Thresholds by shares: the note's own tables, an oracle in plain loops, and every way to hand in scores."""

import math
import re
from array import array
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from naysay.detectors import _choose, _scores
from naysay.detectors._choose import near_quantiles, quantile
from naysay.detectors._threshold_tables import number as in_digits
from naysay.detectors.bands import Bands
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.thresholds import choose_thresholds
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
        lambda: iter(np.array_split(NOTE, 7)),
        lambda: np.array_split(NOTE.astype(np.float32)[::-1], 7),
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
    assert (found.n_negatives, found.n_positives, found.rank_error, found.notes) == (1_163_686, 11_540, 0.0, ())
    assert str(found) == PRINTED


def test_shares_of_negatives_alone_would_give_the_other_choice():
    found = choose_thresholds(NOTE, grid=(LOWS, HIGHS))
    assert (found.low, found.high) == (0.122, 0.34)


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


@given(many, st.integers(1, 4), st.data())
def test_a_second_pass_makes_the_cuts_of_a_sketch_exact(scores, size, data):
    """Small buffers, so that the sketch is far from exact: the route that large arrays and files take."""
    array = np.array(scores, np.float32)
    sketch = ScoreSketch(size=size)
    sketch.update(array)
    wanted = data.draw(st.lists(st.integers(0, len(scores)), min_size=1, max_size=3))
    values, reached, at_start = near_quantiles(sketch, np.array_split(array, 3), wanted, 0.1)
    assert at_start == sum(score >= np.float32(0.1) for score in array)
    for number in wanted:
        expected = plain_quantile(array.tolist(), number, np.float32)
        reach = sum(score >= expected for score in array.tolist())
        assert quantile(sketch, values, reached, number) == (expected, reach)


def test_a_second_pass_keeps_few_scores_also_where_many_are_equal():
    rng = np.random.default_rng(4)
    scores = np.where(rng.random(40_000) < 0.5, 0.5, rng.random(40_000))
    sketch = ScoreSketch(size=512)
    sketch.update(scores)
    near, reached, _ = near_quantiles(sketch, np.array_split(scores, 40), [12_000], 0.0)
    assert len(near) <= 2 * (sketch.over + sketch.under) + 4 * 40 < 4_000  # of 40,000
    values = np.unique(scores)
    at_least = len(scores) - np.searchsorted(np.sort(scores), values)  # how many scores reach each value
    assert quantile(sketch, near, reached, 12_000)[0] == values[at_least <= 12_000].min()


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
    own = str(choose_thresholds(scores[None], false_share=0.02, hard_share=0.05, scope="anchor")).splitlines()
    assert re.split("  +", own[2]) == ["high", *[f"just above {text}"] * 3]
    assert own[3].split() == ["low", text, text, text]


def test_a_value_that_is_reached_or_was_typed_is_shown_as_it_is():
    assert (in_digits(1.0000000000000002), in_digits(1.0000000000000002, 0)) == ("1", "just above 1")
    assert [in_digits(value, 0) for value in (0.6666667, 1.25, math.inf)] == ["0.666667", "1.25", "inf"]
    assert [in_digits(value) for value in (0.12345678, 1234567.5, -7_654_321.0)] == ["0.123457", "1234568", "-7654321"]
    found = choose_thresholds([1.0] * 5 + [1 / 3] * 5 + [0.0] * 90, false_share=0.02, hard_share=0.1)
    assert (found.low, str(found).splitlines()[9].split()) == (1 / 3, ["low", "0.333333*"])  # ten reach it
    grid = choose_thresholds(np.arange(100.0), grid=([90, 99.5], [100, 101]), hard_share=0)
    assert str(grid).splitlines()[1].split() == ["high", "100*", "101"]


@pytest.mark.parametrize("grid", [None, ([0.1, 0.2], [0.6, 0.9])])
@pytest.mark.parametrize("stream", [False, True])
def test_equal_scores_throughout_are_rejected(grid, stream):
    scores = np.full(1000, 0.5, np.float16)
    with pytest.raises(NaysayError, match=r"`scores` must be of more than one value, got 1000 times 0\.5\. Is the enc"):
        choose_thresholds(iter(np.split(scores, 10)) if stream else scores, grid=grid)


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


class SmallSketch(ScoreSketch):
    """One that merges its buffers at few scores already."""

    def __init__(self):
        super().__init__(size=1 << 10)


def test_large_arrays_are_exact_in_two_passes(tmp_path, monkeypatch):
    monkeypatch.setattr(_choose, "ScoreSketch", SmallSketch)
    scores = np.random.default_rng(0).standard_normal((110, 100)).astype(np.float32)  # beyond two buffers
    ordered = np.sort(scores.ravel())
    whole = choose_thresholds(scores, n_positives=1000)
    assert (whole.high, whole.low) == (ordered[-12], ordered[-612])
    assert whole.table["low"][["false", "hard"]].tolist() == [(12, 600)]
    assert whole.table["high"]["easy"].tolist() == [int((scores < 0).sum())]
    assert whole.rank_error == 0.0
    np.save(tmp_path / "scores.npy", scores)
    mapped = choose_thresholds(tmp_path / "scores.npy", n_positives=1000)
    assert (mapped.low, mapped.high, mapped.rank_error) == (whole.low, whole.high, 0.0)


def test_a_long_stream_is_answered_by_the_sketch_which_says_so(monkeypatch):
    monkeypatch.setattr(_choose, "ScoreSketch", SmallSketch)
    scores = np.random.default_rng(1).standard_normal(11_000)
    found = choose_thresholds(block for block in np.array_split(scores, 9))
    assert 0 < found.rank_error <= (math.log2(11_000 / 1024) + 2) / (4 * 1024)
    assert found.notes[0].startswith("Thresholds and counts come from a sketch: a count may be wrong by ")
    for cut, allowed in ((found.high, 11), (found.low, 561)):
        assert abs((scores >= cut).sum() - allowed) <= 2 * found.rank_error * len(scores)
    sketch = SmallSketch()
    sketch.update(scores)
    again = choose_thresholds(sketch)
    assert (again.low, again.high, again.rank_error) == (found.low, found.high, found.rank_error)
    none = choose_thresholds((block for block in np.array_split(scores, 9)), false_share=0)
    assert none.high == np.nextafter(scores.max(), np.inf)  # the largest score is known exactly


def test_a_short_stream_is_exact():
    scores = np.random.default_rng(2).standard_normal(5000)
    stream = choose_thresholds(iter(np.array_split(scores, 7)))
    whole = choose_thresholds(scores)
    assert (stream.low, stream.high, stream.rank_error) == (whole.low, whole.high, 0.0)
    assert stream.notes == ()


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
        ({"score": pa.array([Decimal("0.1"), Decimal("0.2"), Decimal("0.3"), Decimal("0.4")])}, None),
        ({"score": pa.array([[Decimal("0.1"), Decimal("0.2")], [Decimal("0.3"), Decimal("0.4")]])}, None),
    ],
)
def test_columns_of_parquet(tmp_path, table, column):
    pq.write_table(pa.table(table), tmp_path / "scores.parquet")
    found = choose_thresholds(str(tmp_path / "scores.parquet"), column=column, false_share=0.25, hard_share=0.25)
    assert (found.low, found.high) == (0.3, 0.4)


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


class OnDisk:
    """Like a data set of HDF5 with more rows than fit into memory: it may be sliced, and not be read whole."""

    def __init__(self, values):
        self.values, self.ndim, self.shape, self.chunks = values, values.ndim, values.shape, True

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        return self.values[rows]

    def __array__(self, dtype=None, copy=None):
        pytest.fail("read whole")


@pytest.mark.parametrize("scope", ["all", "anchor"])
def test_arrays_on_disk_are_read_in_blocks(scope, monkeypatch):
    monkeypatch.setattr(_scores, "BLOCK", 1 << 13)
    scores = np.random.default_rng(5).random((60, 1000)).astype(np.float32)
    whole, found = choose_thresholds(scores, scope=scope), choose_thresholds(OnDisk(scores), scope=scope)
    assert np.array_equal(found.low, whole.low)
    assert np.array_equal(found.high, whole.high)
    assert (found.n_negatives, found.rank_error) == (60_000, 0.0)


@pytest.mark.parametrize(
    "scores",
    [
        [1, 2, 3, 4],
        range(1, 5),
        memoryview(np.array([1.0, 2, 3, 4])),
        array("f", [1, 2, 3, 4]),
        pa.array([1.0, 2, 3, 4]),
        pa.chunked_array([[1.0, 2], [3.0, 4]]),
        [pa.array([1.0, 2]), pa.array([3.0, 4])],
        iter([pa.array([1.0, 2]), pa.chunked_array([[3.0, 4]])]),
        Series([1.0, 2, 3, 4]),
        [Series([1.0, 2, 3]), Series([4.0])],
        [np.float64(1), np.float64(2), np.float64(3), np.float64(4)],
        [torch.tensor(1.0), torch.tensor(2.0), torch.tensor(3.0), torch.tensor(4.0)],
        np.ma.masked_array([1.0, 2, 3, 4], [False] * 4),
        np.array([[1, 2], [3, 4]], ">f4"),
        np.array([1, 2, 3, 4], np.longdouble),
        np.array([1, 2, 3, 4], np.uint8),
        torch.tensor([1, 2, 3, 4], dtype=torch.bfloat16, requires_grad=True),
        torch.tensor([[1.0, 2], [3, 4]]).T,
        (np.array([1.0]), np.array([[2.0, 3], [4, 1]])[:, :1], np.array([3.0])),
        {"a": np.array([1.0, 2]), "b": np.array([3.0, 4])}.values(),
    ],
)
def test_kinds_of_arrays(scores):
    found = choose_thresholds(scores, false_share=0.25, hard_share=0.25)
    assert (found.low, found.high) == (3.0, 4.0)


# ---- anchors --------------------------------------------------------------------------------------------------------

rows_of_few = st.integers(0, 10).flatmap(
    lambda n: st.lists(
        st.tuples(several, st.lists(few_values, min_size=n, max_size=n)).map(lambda two: two[0] + two[1]),
        min_size=1,
        max_size=6,
    )
)


@given(rows_of_few, shares, shares, st.data())
def test_each_anchor_gets_the_thresholds_of_its_own_row(rows, false_share, hard_share, data):
    known = data.draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
    try:
        single = [
            choose_thresholds(row, n_positives=more, false_share=false_share, hard_share=hard_share)
            for row, more in zip(rows, known, strict=True)
        ]
    except NaysayError:
        with pytest.raises(NaysayError, match="`hard_share` must be at most what the"):
            choose_thresholds(rows, n_positives=known, false_share=false_share, hard_share=hard_share, scope="anchor")
        return
    found = choose_thresholds(rows, n_positives=known, false_share=false_share, hard_share=hard_share, scope="anchor")
    assert found.low.tolist() == [one.low for one in single]
    assert found.high.tolist() == [one.high for one in single]
    for side in ("high", "low"):
        assert found.table[side].tolist() == [one.table[side].tolist()[0] for one in single]
    assert (found.n_negatives, found.n_positives) == (sum(map(len, rows)), sum(known))


def test_anchors_come_in_files_and_streams_too(tmp_path, monkeypatch):
    monkeypatch.setattr(_scores, "BLOCK", 1 << 13)
    scores = np.random.default_rng(3).random((30, 1000)).astype(np.float32)  # more rows than a block holds
    whole = choose_thresholds(scores, scope="anchor")
    assert whole.high.tolist() == np.sort(scores, axis=1)[:, -1].tolist()
    assert whole.low.tolist() == np.sort(scores, axis=1)[:, -51].tolist()
    np.save(tmp_path / "scores.npy", np.asfortranarray(scores))
    pq.write_table(pa.table({"scores": scores.tolist()}), tmp_path / "scores.parquet")
    for given_as in (tmp_path / "scores.npy", (block for block in np.split(scores, 3))):
        assert choose_thresholds(given_as, scope="anchor").low.tolist() == whole.low.tolist()
    assert choose_thresholds(tmp_path / "scores.parquet", scope="anchor").low.tolist() == whole.low.tolist()
    assert str(whole).startswith("thresholds of 30 anchors, each by its own scores\nof the anchors")
    assert "false            30   0.1000%" in str(whole)


def test_notes_of_anchors():
    none = choose_thresholds(np.arange(12.0).reshape(2, 6), scope="anchor")
    assert none.notes == (
        "The shares are less than one pair of any anchor, so all negatives are easy: score more pairs.",
    )
    few = choose_thresholds(np.arange(120.0).reshape(2, 60), scope="anchor")
    assert few.notes == ("The false share is less than one pair of any anchor, so no negative is false.",)


def test_notes_of_anchors_with_equal_scores():
    rows = np.tile(np.arange(5000.0), (3, 1))
    assert choose_thresholds(rows, scope="anchor").notes == ()
    rows[1:, -50:] = 5000.0  # 5 may be false, 255 false or hard
    tied = choose_thresholds(rows, scope="anchor")
    assert tied.table["low"]["false"].tolist() == [5, 0, 0]
    assert tied.notes == ("Equal scores in 2 of 3 anchors: 5 negatives reach high, where 15 were allowed.",)
    rows[:, -300:] = 5000.0
    none = choose_thresholds(rows, scope="anchor")
    assert none.table["low"][["false", "hard"]].tolist() == [(0, 0)] * 3
    assert none.notes == (
        "Equal scores in 3 of 3 anchors: 0 negatives reach high, where 15 were allowed, so no negative is false.",
        "Equal scores in 3 of 3 anchors: 0 negatives reach low, where 765 were allowed, so no negative is false or "
        "hard.",
    )
    small = choose_thresholds(np.tile([0.0, 1, 1, 1, 1], (2, 20)), scope="anchor")  # 0 may be false, 5 hard
    assert small.notes == (
        "The false share is less than one pair of any anchor, so no negative is false.",
        "Equal scores in 2 of 2 anchors: 0 negatives reach low, where 10 were allowed, so no negative is false or "
        "hard.",
    )


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "options", "sentence"),
    [
        ([], {}, "`scores` must be at least one score, got none."),
        ([], {"grid": ([0], [1])}, "`scores` must be at least one score, got none."),
        (iter([]), {}, "`scores` must be at least one score, got none."),
        (np.zeros((0, 3)), {"scope": "anchor"}, "`scores` must be at least one score, got none."),
        (
            [0.1, math.nan, 0.2, math.nan],
            {},
            "`scores` must be finite, got nan at row 1 (2 such rows). Leave out pairs that have no score.",
        ),
        (
            iter([np.zeros(5), np.array([0, -math.inf])]),
            {},
            "`scores` must be finite, got -inf at row 6 (1 such row in its block). Leave out pairs that have no score.",
        ),
        (
            np.array([[0.0] * 40, [0.0] * 39 + [math.nan], [math.inf] * 40]),
            {"scope": "anchor"},
            "`scores` must be finite, got nan at row 1, slot 39 (2 such rows). Leave out pairs that have no score.",
        ),
        (
            iter([np.zeros((2, 3)), np.array([[0, 0, 0], [0, math.inf, 0]])]),
            {},
            "`scores` must be finite, got inf at row 3, slot 1 (1 such row in its block). Leave out pairs that have no "
            "score.",
        ),
        ([[1, 2], [3]], {}, "`scores` must be rows of one length, got rows of different lengths."),
        (np.zeros((2, 2, 2)), {}, "`scores` must be of shape (n,) or (anchors, n), got shape (2, 2, 2)."),
        (np.float64(3), {}, "`scores` must be an array, a list, a file or an iterable of arrays, got a float64."),
        (
            iter([0.5]),
            {},
            "`scores` must be of shape (n,) or (anchors, n), got shape (). Pass numbers as a list; a stream gives "
            "arrays.",
        ),
        (pa.array(["a"]), {}, "`scores` must be numbers, got dtype object."),
        (
            pa.array([0.5, None]),
            {},
            "`scores` must be finite, got nan at row 1 (1 such row). Leave out pairs that have no score.",
        ),
        (["a"], {}, "`scores` must be numbers, got dtype <U1."),
        (
            iter([np.zeros(2), np.zeros(2, np.float32)]),
            {},
            "`scores` must be of one dtype, float64 like the first block, got float32. Convert all blocks to one.",
        ),
        ([1.0], {"n_positives": -1}, "`n_positives` must be at least 0, got -1."),
        ([1.0], {"n_positives": 1.5}, "`n_positives` must be a whole number, got 1.5."),
        ([1.0], {"false_share": 1.5}, "`false_share` must be a number at least 0 and at most 1, got 1.5."),
        ([1.0], {"hard_share": math.nan}, "`hard_share` must be a number at least 0 and at most 1, got nan."),
        (
            [1.0],
            {"false_share": 0.5, "hard_share": 0.6},
            "`hard_share` must be at most 0.5, what `false_share` leaves, got 0.6.",
        ),
        ([1.0], {"start_low": "a"}, "`start_low` must be a number, got 'a'."),
        ([1.0], {"scope": "anchors"}, "`scope` must be one of 'all', 'anchor', got 'anchors'. Did you mean 'anchor'?"),
        ([1.0], {"column": "a"}, "`column` must be left out, unless scores is a .parquet file, got 'a'."),
        ([1.0], {"grid": 3}, "`grid` must be (low values, high values), got 3."),
        ([1.0], {"grid": ([1], [2], [3])}, "`grid` must be (low values, high values), got ([1], [2], [3])."),
        (
            [1.0],
            {"grid": ([], [1])},
            "`grid` must be (low values, high values), each (n,) with n of at least 1, got shape (0,).",
        ),
        ([1.0], {"grid": ([0], [math.nan])}, "`grid` must be a number, got nan at row 0 (1 such row)."),
        ([1.0], {"grid": ([0], [1, math.inf])}, "`grid` must be finite, got inf at row 1 (1 such row)."),
        (
            [[1.0]],
            {"grid": ([0], [1]), "scope": "anchor"},
            "`grid` must be left out with scope 'anchor', got a grid. Anchors get quantiles of their scores.",
        ),
        (
            np.arange(10.0),
            {"grid": ([0], [5, 7])},
            "`false_share` must be at least 0.3, the share at the largest high value 7, got 0.001. Add higher values "
            "to the grid.",
        ),
        (
            np.arange(10.0),
            {"grid": ([8, 9], [10]), "hard_share": 0.5},
            "`hard_share` must be at most 0.2, the share at the smallest low value 8, got 0.5. Add lower values to "
            "the grid.",
        ),
        (
            np.arange(10.0),
            {"grid": ([11], [10])},
            "`grid` must be a grid with a low value at or below the chosen high, 10, got low values from 11.",
        ),
        (
            np.arange(10.0),
            {"n_positives": 990},
            "`hard_share` must be at most 0.01 with `false_share`, as negatives are 10 of 1000 pairs, got 0.051.",
        ),
        (
            [1.0, 2.0],
            {"scope": "anchor"},
            "`scores` must be of shape (anchors, n) with n of at least 1, for scope 'anchor', got shape (2,).",
        ),
        (
            np.ones((2, 3)),
            {"scope": "anchor", "n_positives": [0, 3000]},
            "`hard_share` must be at most what the 3 negatives of an anchor are of its pairs, got a count of 153 "
            "at row 1 (1 such row). Lower the shares or `n_positives`.",
        ),
        (
            np.ones((2, 3)),
            {"scope": "anchor", "n_positives": [0]},
            "`n_positives` must be a number, or one for each of 2 rows, got 1 numbers.",
        ),
        (
            iter([np.ones((2, 3))]),
            {"scope": "anchor", "n_positives": [0]},
            "`n_positives` must be a number, or one for each row of scores, got 1 for more rows.",
        ),
        (
            iter([np.ones((2, 3))]),
            {"scope": "anchor", "n_positives": [0, 0, 0]},
            "`n_positives` must be a number, or one for each of 2 rows, got 3 numbers.",
        ),
        (
            ScoreSketch(),
            {"scope": "anchor"},
            "`scores` must be an array, a file or a stream, for a grid or scope 'anchor', got a ScoreSketch. A sketch "
            "serves quantiles of all scores.",
        ),
        (ScoreSketch(), {"column": "a"}, "`column` must be left out, unless scores is a .parquet file, got 'a'."),
        (ScoreSketch(), {}, "`scores` must be at least one score, got none."),
        ("scores.csv", {}, "`scores` must be a file that ends in .npy or .parquet, got 'scores.csv'."),
        ("x" * 5000 + ".npy", {}, f"`scores` must be an existing file, got '{'x' * 5000}.npy'."),
        ("no/scores.npy", {}, "`scores` must be an existing file, got 'no/scores.npy'."),
    ],
)
def test_errors(scores, options, sentence):
    assert refusal(scores, **options) == sentence


def test_errors_of_files(tmp_path):
    damaged = tmp_path / "damaged.npy"
    damaged.write_bytes(b"\x93NUMPY")
    assert refusal(damaged).startswith("`scores` must be a readable .npy file, got ")
    deep = tmp_path / "deep.npy"
    np.save(deep, np.zeros((1, 1, 1)))
    assert refusal(deep).startswith("`scores` must be of shape (n,) or (anchors, n), got shape (1, 1, 1) in ")
    np.save(damaged, np.array([{}]), allow_pickle=True)
    assert refusal(damaged).startswith("`scores` must be a readable .npy file, got ")

    file = tmp_path / "scores.parquet"
    file.write_bytes(b"PAR1")
    assert refusal(file).startswith("`scores` must be a readable .parquet file, got ")
    pq.write_table(pa.table({"a": [1.0, None], "b": [2, 3], "text": ["x", "y"]}), file)
    rule = "`scores` must be a file with one column of numbers, or with one of them named score"
    assert refusal(file) == f"{rule}, got 'a' of double, 'b' of int64, 'text' of string. Choose with `column`."
    assert refusal(file, column="bb") == "`column` must be one of 'a', 'b', 'text', got 'bb'. Did you mean 'b'?"
    assert refusal(file, column="text") == "`column` must be a column of numbers, got 'text' of string."
    assert refusal(file, column="a") == (
        "`column` must be a column without nulls ('a'), got null at row 1 (the first of 1 in its block)."
    )
    pq.write_table(pa.table({"score": ["x", "y"]}), file)
    assert refusal(file) == f"{rule}, got 'score' of string."
    pq.write_table(pa.table({f"c{place}": ["x"] for place in range(12)}), file)
    assert refusal(file).endswith(", 'c9' of string and 2 others.")
    pq.write_table(pa.table({"a": [[1.0, None], [2.0, 3.0]]}), file)
    assert refusal(file) == "`column` must be a column without nulls ('a'), got 1 nulls in lists of rows 0 to 1."
    twice = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    pq.write_table(twice, file)
    assert refusal(file, column="a") == "`column` must be the name of exactly one column, got 'a', 2 times."


def test_a_damaged_page_is_one_sentence(tmp_path):
    file = tmp_path / "scores.parquet"
    scores = np.random.default_rng(0).random(50_000)
    pq.write_table(pa.table({"score": scores}), file, compression="snappy", write_page_checksum=True)
    data = bytearray(file.read_bytes())
    data[1000:9000] = bytes(8000)
    file.write_bytes(bytes(data))
    assert refusal(file).startswith("`scores` must be a readable .parquet file, got ")
