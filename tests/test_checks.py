"""Every refusal has one shape: owner, parameter, rule, value got, what to do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay import checks
from naysay.errors import MissingExtraError, NaysayError


def sentence(call, *arguments, **named):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **named)
    return str(caught.value)


def test_a_refusal_is_one_sentence_with_its_advice():
    assert sentence(checks.refuse, "Owner", "size", "even", 3) == "Owner: `size` must be even, got 3."
    assert (
        sentence(checks.refuse, "Owner", "size", "even", 3, "Add one.") == "Owner: `size` must be even, got 3. Add one."
    )


def test_a_refusal_is_a_value_error_and_a_missing_extra_an_import_error():
    assert issubclass(NaysayError, ValueError)
    assert issubclass(MissingExtraError, ImportError)


@pytest.mark.parametrize("value", [0, 0.0, 1.5, np.float32(2), np.int8(3), float("inf")])
def test_at_least_takes_numbers(value):
    checks.check_at_least("Owner", "x", value, 0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, "Owner: `x` must be at least 0, got -1."),
        (float("nan"), "Owner: `x` must be at least 0, got nan."),
        (True, "Owner: `x` must be a number, got True."),
        (np.True_, "Owner: `x` must be a number, got np.True_."),
        ("1", "Owner: `x` must be a number, got '1'."),
        (None, "Owner: `x` must be a number, got None."),
    ],
)
def test_at_least_refuses(value, message):
    assert sentence(checks.check_at_least, "Owner", "x", value, 0) == message


@pytest.mark.parametrize("value", [2, np.int32(7), np.uint64(2**64 - 1)])
def test_whole_gives_a_plain_int(value):
    found = checks.check_whole("Owner", "n", value, 2)
    assert type(found) is int
    assert found == int(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, "Owner: `n` must be at least 2, got 1."),
        (np.int64(-5), "Owner: `n` must be at least 2, got -5."),
        (2.0, "Owner: `n` must be a whole number, got 2.0."),
        (True, "Owner: `n` must be a whole number, got True."),
        (None, "Owner: `n` must be a whole number, got None."),
        ([3], "Owner: `n` must be a whole number, got [3]."),
    ],
)
def test_whole_refuses(value, message):
    assert sentence(checks.check_whole, "Owner", "n", value, 2) == message


def test_one_of_offers_the_nearest_name():
    checks.check_one_of("Owner", "on_short", "pad", ("pad", "raise"))
    near = "Owner: `on_short` must be one of 'pad', 'raise', got 'rais'. Did you mean 'raise'?"
    assert sentence(checks.check_one_of, "Owner", "on_short", "rais", ("pad", "raise")) == near
    far = "Owner: `on_short` must be one of 'pad', 'raise', got 7."
    assert sentence(checks.check_one_of, "Owner", "on_short", 7, ("pad", "raise")) == far


@pytest.mark.parametrize("rng", [None, 0, np.random.RandomState(0), np.random.Philox(0)])
def test_only_a_generator_is_a_source_of_randomness(rng):
    checks.check_generator("Owner", np.random.default_rng(0))
    message = sentence(checks.check_generator, "Owner", rng)
    assert message.startswith("Owner: `rng` must be a numpy Generator, got ")
    assert message.endswith("Pass rng=naysay.rng_for(seed, step).")


def test_whole_numbers_are_not_copied():
    given_ids = np.arange(3, dtype=np.int16)
    assert checks.whole_numbers("Owner", "ids", given_ids) is given_ids


@pytest.mark.parametrize("empty", [[], np.array([]), np.array([], np.float32), np.array([], object)])
def test_nothing_is_an_empty_array_of_ids(empty):
    found = checks.whole_numbers("Owner", "ids", empty)
    assert found.dtype == np.int64
    assert found.shape == (0,)


def test_empty_triples_keep_their_shape():
    assert checks.whole_numbers("Owner", "ids", np.empty((0, 3)), "(B, 3)").shape == (0, 3)


def test_ids_of_the_other_byte_order_are_turned():
    found = checks.whole_numbers("Owner", "ids", np.array([1, 258], ">i4"))
    assert found.dtype.isnative
    assert found.tolist() == [1, 258]


@pytest.mark.parametrize(
    ("values", "shape", "message"),
    [
        ([1.0], "(n,)", "Owner: `ids` must be whole numbers, got dtype float64. Ids count from 0."),
        ([True], "(n,)", "Owner: `ids` must be whole numbers, got dtype bool. Ids count from 0."),
        (["a"], "(n,)", "Owner: `ids` must be whole numbers, got dtype <U1. Ids count from 0."),
        ([2**70], "(n,)", "Owner: `ids` must be whole numbers, got dtype object. Ids count from 0."),
        (3, "(n,)", "Owner: `ids` must be of shape (n,), got shape ()."),
        ([[1]], "(n,)", "Owner: `ids` must be of shape (n,), got shape (1, 1)."),
        ([1], "(B, 3)", "Owner: `ids` must be of shape (B, 3), got shape (1,)."),
        (
            np.array([0, 2**63], np.uint64),
            "(n,)",
            "Owner: `ids` must be below 2^63, got 9223372036854775808 at row 1 (1 such row).",
        ),
    ],
)
def test_whole_numbers_refuse(values, shape, message):
    assert sentence(checks.whole_numbers, "Owner", "ids", values, shape) == message


def test_unsigned_64_bit_ids_become_signed():
    found = checks.whole_numbers("Owner", "ids", np.array([2**63 - 1], np.uint64))
    assert found.dtype == np.int64
    assert found.tolist() == [2**63 - 1]


@given(st.lists(st.integers(-3, 8)), st.integers(0, 6), st.integers(-1, 0))
def test_range_against_a_loop(ids, size, least):
    bad = [row for row, value in enumerate(ids) if not least <= value < size]
    array = np.array(ids, np.int64)
    if not bad:
        checks.check_range("Owner", "ids", array, size, "items", least=least)
        return
    message = sentence(checks.check_range, "Owner", "ids", array, size, "items", least=least)
    plural = "s" if len(bad) > 1 else ""
    assert message.endswith(f"got {ids[bad[0]]} at row {bad[0]} ({len(bad)} such row{plural}).")


def test_range_names_its_rule():
    ids = np.array([0, 9, 9])
    one = "Owner: `ids` must be between 0 and 4 (5 items), got 9 at row 1 (2 such rows)."
    assert sentence(checks.check_range, "Owner", "ids", ids, 5, "items") == one
    none = "Owner: `ids` must be empty (there are 0 items), got 0 at row 0 (3 such rows)."
    assert sentence(checks.check_range, "Owner", "ids", ids, 0, "items") == none
    lower = "Owner: `ids` must be between -1 and 4 (5 items), got 9 at row 1 (2 such rows)."
    assert sentence(checks.check_range, "Owner", "ids", ids, 5, "items", least=-1) == lower


def test_lengths():
    checks.check_lengths("Owner", a=2, b=2)
    assert (
        sentence(checks.check_lengths, "Owner", a=2, b=3) == "Owner: `a` must be as long as its partners, got a 2, b 3."
    )


def test_the_first_bad_row_of_any_shape():
    matrix = np.array([[1, 2], [3, -4], [-5, -6]])
    assert checks.first_bad(matrix, matrix < 0) == "[3, -4] at row 1 (2 such rows)"
    assert checks.first_bad(np.array(7), np.array(True)) == "7 at row 0 (1 such row)"
    assert checks.first_bad(np.array([1.5, np.nan]), np.array([False, True])) == "nan at row 1 (1 such row)"
    assert checks.first_bad(np.array(["a", None], object), np.array([False, True])) == "None at row 1 (1 such row)"


def test_a_long_row_is_shortened():
    wide = np.zeros((1, 1000), np.int64)
    assert len(checks.first_bad(wide, wide == 0)) < 100


@given(st.text())
def test_what_is_shown_is_short(text):
    shown = checks.shown(text)
    assert len(shown) <= 60
    assert shown == repr(text) or (shown.endswith("...") and repr(text).startswith(shown[:57]))


def test_in_the_words_of_a_shell():
    options, words = {"mine": {"metric": "--metric"}, "load": {"name": "--model"}}, {"None for": "left out for"}
    for owner, parameter, rule, got, told in [
        ("mine", "metric", "None for texts", "x", "mine: `--metric` must be left out for texts, got x. Leave it."),
        ("load", "name", "a folder", None, "mine: `--model` must be a folder, got nothing. Leave it."),
        ("load", "other", "None for texts", None, "load: `other` must be None for texts, got None. Leave it."),
        ("Else", "name", "a folder", 3, "Else: `name` must be a folder, got 3. Leave it."),
    ]:
        with pytest.raises(NaysayError) as caught, checks.as_typed("mine", options, words):
            checks.refuse(owner, parameter, rule, got, "Leave it.")
        assert str(caught.value) == told
    with pytest.raises(NaysayError, match=r"^plain words$"), checks.as_typed("mine", options, words):
        raise NaysayError("plain words")
