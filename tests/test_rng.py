"""A generator is a function of (seed, step, rank, worker), and a call takes one key from it."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.rng import generator_of, key_from

NAMES = ("seed", "step", "rank", "worker")
NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 3) | st.sampled_from([2**32 - 1, 2**32, 2**64 - 1])
TUPLES = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS)


def first_numbers(arguments):
    return ns.rng_for(*arguments).integers(0, 2**63, 4).tolist()


@given(TUPLES, TUPLES)
def test_any_other_argument_gives_another_stream(one, other):
    assume(one != other)
    assert first_numbers(one) != first_numbers(other)


def test_a_number_does_not_spill_into_its_neighbour():
    # (1, 0) and (0, 1) as 32-bit words would be the same list if widths were not fixed
    streams = [(2**32, 0), (0, 1), (1, 0), (0, 2**32), (2**32 + 1, 0), (1, 1), (0, 0)]
    seen = {tuple(first_numbers(arguments)) for arguments in streams}
    assert len(seen) == len(streams)


def test_the_defaults_are_zero():
    assert first_numbers((5,)) == first_numbers((5, 0, 0, 0))


def test_numpy_numbers_are_numbers():
    assert first_numbers((np.uint64(2**64 - 1), np.int8(3))) == first_numbers((2**64 - 1, 3))


def test_streams_stay_the_same_on_every_machine():
    # a resumed run or another machine must draw what this one drew
    assert ns.rng_for(0).integers(0, 2**32, 3).tolist() == [1209672367, 2645122835, 1545404107]
    assert int(key_from(ns.rng_for(7, step=3, rank=1, worker=2))) == 1601787323415573022


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (-1, "at least 0, got -1"),
        (1.0, "a whole number, got 1.0"),
        (True, "a whole number, got True"),
        (None, "a whole number, got None"),
        ("1", "a whole number, got '1'"),
        (2**64, "below 2^64, got 18446744073709551616"),
    ],
)
def test_bad_numbers_are_rejected_by_name(name, value, rule):
    with pytest.raises(NaysayError) as caught:
        ns.rng_for(**{"seed": 0, name: value})
    assert str(caught.value) == f"rng_for: `{name}` must be {rule}."


def test_a_key_is_one_64_bit_number_and_no_more():
    taken, counted = ns.rng_for(3), ns.rng_for(3)
    key = key_from(taken)
    assert key.dtype == np.uint64
    assert key == counted.bit_generator.random_raw()
    assert taken.bit_generator.random_raw(5).tolist() == counted.bit_generator.random_raw(5).tolist()


def test_keys_reach_the_ends_of_their_range():
    rng = ns.rng_for(0)
    keys = [int(key_from(rng)) for _ in range(2000)]
    assert min(keys) < 2**56
    assert max(keys) > 2**64 - 2**56
    assert len(set(keys)) == len(keys)


def test_a_key_needs_a_generator():
    with pytest.raises(NaysayError, match=r"^`rng` must be a numpy Generator, got 5\. Pass rng=naysay.rng_for"):
        key_from(5)


@given(NUMBERS)
def test_the_generator_of_a_key_is_philox_with_that_key(key):
    plain = np.random.Generator(np.random.Philox(key=key))
    made = generator_of(np.uint64(key))
    expected = plain.integers(0, 2**63, 4).tolist()
    assert pickle.loads(pickle.dumps(made)).integers(0, 2**63, 4).tolist() == expected
    assert made.integers(0, 2**63, 4).tolist() == expected
