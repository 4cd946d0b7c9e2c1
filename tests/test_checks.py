"""Every refusal has one shape: owner, parameter, rule, value got, what to do."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay import checks
from naysay.errors import NaysayError


def sentence(call, *arguments, **named):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **named)
    return str(caught.value)


def test_a_error_is_one_sentence_with_its_advice():
    assert sentence(checks.raise_invalid, "size", "even", 3) == "`size` must be even, got 3."
    assert sentence(checks.raise_invalid, "size", "even", 3, "Add one.") == "`size` must be even, got 3. Add one."


@given(st.lists(st.integers(-3, 8)), st.integers(0, 6), st.integers(-1, 0))
def test_range_against_a_loop(ids, size, least):
    bad = [row for row, value in enumerate(ids) if not least <= value < size]
    array = np.array(ids, np.int64)
    if not bad:
        checks.check_range("ids", array, size, "items", least=least)
        return
    message = sentence(checks.check_range, "ids", array, size, "items", least=least)
    plural = "s" if len(bad) > 1 else ""
    assert message.endswith(f"got {ids[bad[0]]} at row {bad[0]} ({len(bad)} such row{plural}).")


def test_the_first_bad_row_of_any_shape():
    matrix = np.array([[1, 2], [3, -4], [-5, -6]])
    assert checks.first_bad(matrix, matrix < 0) == "-4 at row 1, slot 1 (2 such rows)"
    assert checks.first_bad(matrix, (matrix < 0).any(axis=1), 10) == "[3, -4] at row 11 (2 such rows)"
    assert checks.first_bad(np.array(7), np.array(True)) == "7 at row 0 (1 such row)"
    assert checks.first_bad(np.array([1.5, np.nan]), np.array([False, True])) == "nan at row 1 (1 such row)"
    assert checks.first_bad(np.array(["a", None], object), np.array([False, True])) == "None at row 1 (1 such row)"


INVALID = [
    *((checks.check_whole, ("n", value, 2)) for value in (1, np.int64(-5), 2.0, True, None, [3], 2**64, [10**5000])),
    (checks.check_one_of, ("n", 7, ("pad", "raise"))),
    *((checks.whole_numbers, ("n", values)) for values in ([1.0], [True], ["a"], [2**70], 3, [[1]])),
    (checks.whole_numbers, ("n", [1], "(B, 3)")),
    (checks.whole_numbers, ("n", np.array([0, 2**63], np.uint64))),
    (checks.check_range, ("n", np.array([0, 9]), 5, "items")),
    (checks.check_range, ("n", np.array([0]), 0, "items")),
    (checks.check_bool, ("n", "no")),
    (checks.check_kind, ("n", 3, str, "a text")),
    (checks.as_floats, ("n", ["a"])),
    (checks.as_array, ("n", [[1], [2, 3]])),
]


@pytest.mark.parametrize(("check", "arguments"), INVALID)
def test_an_invalid_value_names_its_parameter(check, arguments):
    with pytest.raises(NaysayError) as error:
        check(*arguments)
    assert error.value.parameter == "n"
    assert str(error.value).startswith("`n` must be ")


@given(st.text())
def test_what_is_shown_is_short(text):
    shown = checks.shown(text)
    assert len(shown) <= 60
    assert shown == repr(text) or (shown.endswith("...") and repr(text).startswith(shown[:57]))


def test_options_take_the_place_of_parameters():
    options = {"metric": "--metric", "name": "--model"}
    for parameter, advice, told in [
        ("metric", "Leave it.", "mine: `--metric` must be good, got x. Leave it."),
        ("other", "Pass `name`.", "mine: `other` must be good, got x. Pass `--model`."),
    ]:
        with pytest.raises(NaysayError) as caught, checks.with_option_names("mine", options):
            checks.raise_invalid(parameter, "good", "x", advice)
        assert str(caught.value) == told
        assert caught.value.parameter == parameter
    with pytest.raises(NaysayError, match=r"^mine: plain words$"), checks.with_option_names("mine", options):
        raise NaysayError("plain words")


@checks.public
class Boundary:
    """Public in every way that a class can be."""

    def __init__(self, size):
        checks.check_whole("size", size, 1)
        self.size = size

    def method(self):
        checks.raise_invalid("size", "good", self.size)

    @classmethod
    def made(cls, size):
        return cls(size)

    @staticmethod
    def plain():
        checks.raise_invalid("x", "good", "y")

    @property
    def value(self):
        return self._private()

    def _private(self):
        checks.raise_invalid("x", "good", "y")


@checks.public
def outer(action):
    return action()


def test_the_innermost_public_caller_is_named_once():
    small = Boundary(1)
    for action, caller in [
        (lambda: Boundary(0), "Boundary"),
        (lambda: Boundary.made(0), "Boundary"),
        (small.method, "Boundary.method"),
        (Boundary.plain, "Boundary.plain"),
        (lambda: small.value, "Boundary.value"),
        (lambda: outer(small.method), "Boundary.method"),
        (lambda: outer(lambda: checks.raise_invalid("x", "good", "y")), "outer"),
    ]:
        with pytest.raises(NaysayError) as caught:
            action()
        assert caught.value.caller == caller
        assert str(caught.value).startswith(f"{caller}: `")


def test_an_error_travels_between_processes():
    with pytest.raises(NaysayError) as caught:
        Boundary(0)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.caller, copy.parameter) == (str(caught.value), "Boundary", "size")


@pytest.mark.parametrize(
    ("bounds", "good", "bad", "rule"),
    [
        ({}, [0, -1.5, np.float32(2), np.array(3), float("inf")], ["1", None, True, float("nan"), [1]], "a number"),
        ({"above": 0}, [1e-9], [0, -1], "a number above 0"),
        ({"at_least": 0, "below": 1}, [0, 0.5], [1, -0.1], "a number at least 0 and below 1"),
        ({"above": 0, "at_most": 1}, [1], [0, 1.1], "a number above 0 and at most 1"),
        ({"finite": True}, [0], [float("inf"), -float("inf")], "a finite number"),
    ],
)
def test_one_number_within_bounds(bounds, good, bad, rule):
    for value in good:
        assert checks.check_number("x", value, **bounds) == float(value)
    for value in bad:
        with pytest.raises(NaysayError) as caught:
            checks.check_number("x", value, **bounds, advice="Try.")
        assert str(caught.value) == f"`x` must be {rule}, got {checks.shown(value)}. Try."


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_whole_number_that_no_float_holds(digits):
    for value in (10**digits, -(10**digits)):
        assert "`x` must be a number of at most 308 digits" in sentence(checks.check_number, "x", value, above=0)
    assert "`x` must be below 2^64" in sentence(checks.check_whole, "x", 10**digits, 1)


def test_a_number_that_no_array_can_have_as_a_size():
    import naysay as ns

    known = ns.Positives.from_pairs([0], [0], 1, 9)
    vectors = np.eye(9, 4)
    calls = [
        (lambda: ns.planted_world(2**62, 9), "n_anchors"),
        (lambda: ns.detectors.LearnedQuantile(2**62, alpha=0.1), "n_anchors"),
        (lambda: ns.detectors.Incremental(2**62, (3,)), "n_samples"),
        (lambda: ns.detectors.lowest_scores([0], [0.5], 2**62), "n_anchors"),
        (lambda: ns.samplers.Bank(ns.pools.Everything(known), 2**62), "n_items"),
        (lambda: ns.mine(vectors[:1], vectors, known, 2**62), "k"),
        (lambda: ns.mine(vectors[:1], vectors, known, [2**62]), "k"),
        (lambda: ns.quantity.realise(2.5, 2**62, ns.rng_for(0)), "size"),
        (lambda: ns.quantity.simulated(2.0, points=2**62), "points"),
        (lambda: ns.Positives.from_pairs([0], [0], n_anchors=2**62), "n_anchors"),
    ]
    for call, parameter in calls:
        with pytest.raises(NaysayError, match="got 4611686018427387904") as error:
            call()
        assert error.value.parameter == parameter
