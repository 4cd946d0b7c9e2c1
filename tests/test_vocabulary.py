"""Names to ids and back, as two plain arrays on disk."""

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError

NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), unique=True, max_size=20)


@given(NAMES, st.data())
def test_ids_and_names_are_inverse(names, data):
    vocabulary = ns.Vocabulary(names)
    assert len(vocabulary) == len(names)
    places = data.draw(st.lists(st.integers(0, len(names) - 1)) if names else st.just([]))
    assert vocabulary.names(places) == [names[place] for place in places]
    ids = vocabulary.ids([names[place] for place in places])
    assert ids.dtype == np.int64
    assert ids.tolist() == places


@given(NAMES)
def test_it_goes_through_its_arrays(names):
    vocabulary = ns.Vocabulary(names)
    arrays = vocabulary.arrays("item_names")
    assert {name: array.dtype for name, array in arrays.items()} == {
        "item_names_offsets": np.int64,
        "item_names_bytes": np.uint8,
    }
    assert arrays["item_names_bytes"].tobytes().decode() == "".join(names)
    back = ns.Vocabulary.from_arrays({**arrays, "other": np.zeros(1)}, "item_names")
    assert back == vocabulary
    assert back.names(range(len(names))) == names
    assert back.ids(names).tolist() == list(range(len(names)))
    assert ns.Vocabulary.from_arrays(arrays, "anchor_names") is None


@given(NAMES, NAMES)
def test_equal_names_in_equal_order_are_equal(one, other):
    assert (ns.Vocabulary(one) == ns.Vocabulary(other)) == (one == other)
    assert ns.Vocabulary(one) != one
    with pytest.raises(TypeError, match="unhashable"):
        hash(ns.Vocabulary(one))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_it_travels_to_other_processes(copied):
    vocabulary = ns.Vocabulary(["cat", "", "\N{SNOWMAN}"])
    assert copied(vocabulary) == vocabulary
    assert copied(vocabulary).ids(["\N{SNOWMAN}"]).tolist() == [2]
    loaded = ns.Vocabulary.from_arrays(vocabulary.arrays("x"), "x")
    assert copied(loaded) == vocabulary


def test_names_are_indexed_by_the_first_question_and_travel_as_arrays():
    names = [f"item {i}" for i in range(1000)]
    vocabulary = ns.Vocabulary(names)
    loaded = ns.Vocabulary.from_arrays(vocabulary.arrays("x"), "x")
    for one in (vocabulary, loaded):
        assert "_index" not in vars(one)
        assert one.ids(["item 7"]).tolist() == [7]
        assert "_index" in vars(one)
        made, arguments = one.__reduce__()
        assert {array.dtype for array in arguments[0].values()} == {np.dtype(np.int64), np.dtype(np.uint8)}
        assert made(*arguments) == vocabulary
        assert "_index" not in vars(pickle.loads(pickle.dumps(one)))


@pytest.mark.parametrize("ids", [[1, 0], np.array([1, 0], np.uint8), torch.tensor([1, 0])])
def test_any_array_of_ids(ids):
    assert ns.Vocabulary(["a", "b"]).names(ids) == ["b", "a"]


@pytest.mark.parametrize("names", [["a", "b"], np.array(["a", "b"]), ("a", "b")])
def test_any_sequence_of_names(names):
    vocabulary = ns.Vocabulary(names)
    assert vocabulary.names([0, 1]) == ["a", "b"]
    assert vocabulary.ids(names).tolist() == [0, 1]


def test_names_may_be_part_of_an_arrow_array():
    vocabulary = ns.Vocabulary(pa.array(["other", "cat", "dog", "eel"], pa.large_string())[1:3])
    assert vocabulary == ns.Vocabulary(["cat", "dog"])
    assert ns.Vocabulary.from_arrays(vocabulary.arrays("x"), "x") == vocabulary
    assert vocabulary.ids(pa.array(["dog", "cat", "dog"])).tolist() == [1, 0, 1]


CATS = ns.Vocabulary(["cat", "dog"])
ARRAYS = CATS.arrays("x")
DAMAGE = [
    {"x_offsets": np.array([0, 3, 9])},
    {"x_offsets": np.array([0, 3, -1])},
    {"x_offsets": np.array([0, 3, 1])},
    {"x_offsets": np.empty(0, np.int64)},
    {"x_bytes": np.array([0xFF] * 6, np.uint8)},
]


@pytest.mark.parametrize(
    ("call", "arguments", "parameter"),
    [
        (ns.Vocabulary, ("abd",), "names"),  # its letters are not names
        (ns.Vocabulary, (["a", "b", "a"],), "names"),
        (ns.Vocabulary, (["a", None],), "names"),
        (ns.Vocabulary, (["a", 3],), "names"),
        (ns.Vocabulary, (["\ud800"],), "names"),
        (ns.Vocabulary, (pa.array(["a", None]),), "names"),
        (CATS.ids, ("cat",), "names"),
        (CATS.ids, (5,), "names"),
        (CATS.ids, ([["cat"]],), "names"),
        (CATS.ids, (["cat", "ant"],), "names"),
        (CATS.ids, (pa.array(["cat", "ant"]),), "names"),
        (CATS.names, ([0, 2],), "ids"),
        (CATS.names, ([-1],), "ids"),
        (CATS.names, ([0.7],), "ids"),
        (CATS.names, ([[0]],), "ids"),
        *((ns.Vocabulary.from_arrays, (ARRAYS | damage, "x"), "arrays") for damage in DAMAGE),
        (ns.Vocabulary.from_arrays, ({"x_offsets": ARRAYS["x_offsets"]}, "x"), "arrays"),
    ],
)
def test_invalid_calls(call, arguments, parameter):
    with pytest.raises(NaysayError) as error:
        call(*arguments)
    assert error.value.parameter == parameter
    assert str(error.value).startswith("Vocabulary")
