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


def refusal(call, *arguments):
    with pytest.raises(NaysayError) as caught:
        call(*arguments)
    return str(caught.value)


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


def test_names_may_be_part_of_an_arrow_array():
    column = pa.array(["other", "cat", "dog", "eel"], pa.large_string())[1:3]
    vocabulary = ns.Vocabulary(column)
    assert vocabulary == ns.Vocabulary(["cat", "dog"])
    assert ns.Vocabulary.from_arrays(vocabulary.arrays("x"), "x") == vocabulary
    assert vocabulary.ids(pa.array(["dog", "cat", "dog"])).tolist() == [1, 0, 1]
    assert "got 'ant' at row 1 (2 such rows)." in refusal(vocabulary.ids, pa.array(["dog", "ant", "ant"]))
    assert refusal(ns.Vocabulary, pa.array(["a", None])).endswith("must be strings, got None at row 1 (1 such row).")


def test_a_bare_string_is_no_sequence_of_names():
    message = "`names` must be a sequence of names, got 'abd'. Pass ['abd']."
    assert refusal(ns.Vocabulary(["a", "b", "d"]).ids, "abd") == f"Vocabulary.ids: {message}"
    assert refusal(ns.Vocabulary, "abd") == f"Vocabulary: {message}"
    for wrong in (5, [["a"]]):
        message = f"Vocabulary.ids: `names` must be a sequence of names, got {wrong!r}."
        assert refusal(ns.Vocabulary(["a"]).ids, wrong) == message


@pytest.mark.parametrize("ids", [[1, 0], np.array([1, 0], np.uint8), torch.tensor([1, 0])])
def test_any_array_of_ids(ids):
    assert ns.Vocabulary(["a", "b"]).names(ids) == ["b", "a"]


@pytest.mark.parametrize("names", [["a", "b"], np.array(["a", "b"]), ("a", "b")])
def test_any_sequence_of_names(names):
    vocabulary = ns.Vocabulary(names)
    assert vocabulary.names([0, 1]) == ["a", "b"]
    assert vocabulary.ids(names).tolist() == [0, 1]


def test_empty_questions():
    assert ns.Vocabulary([]).names([]) == []
    assert ns.Vocabulary([]).ids([]).tolist() == []


def test_names_must_be_distinct_strings():
    assert refusal(ns.Vocabulary, ["a", "b", "a"]) == "Vocabulary: `names` must be distinct, got 'a' more than once."
    assert refusal(ns.Vocabulary, ["a", None]) == "Vocabulary: `names` must be strings, got None at row 1 (1 such row)."
    assert refusal(ns.Vocabulary, ["a", 3]).startswith("Vocabulary: `names` must be strings, got ")
    assert refusal(ns.Vocabulary, ["\ud800"]).startswith("Vocabulary: `names` must be strings, got ")


@pytest.mark.parametrize("kind", [list, np.array])
def test_an_unknown_name_is_shown_with_its_row_and_count(kind):
    vocabulary = ns.Vocabulary([f"item {i}" for i in range(1200)])
    one = "Vocabulary.ids: `names` must be among the 1,200 known names, got 'itm 5' at row 1 (1 such row)."
    assert refusal(vocabulary.ids, kind(["item 5", "itm 5"])) == one
    two = "Vocabulary.ids: `names` must be among the 1,200 known names, got 'x' at row 0 (2 such rows)."
    assert refusal(vocabulary.ids, kind(["x", "item 5", "y"])) == two


def test_an_id_out_of_range_or_of_another_kind_is_rejected():
    vocabulary = ns.Vocabulary(["a", "b"])
    rule = "Vocabulary.names: `ids` must be between 0 and 1 (2 names), got"
    assert refusal(vocabulary.names, [0, 2]) == f"{rule} 2 at row 1 (1 such row)."
    assert refusal(vocabulary.names, [-1]) == f"{rule} -1 at row 0 (1 such row)."
    rule = "Vocabulary.names: `ids` must be"
    assert refusal(vocabulary.names, [0.7]) == f"{rule} whole numbers, got dtype float64. Ids count from 0."
    assert refusal(vocabulary.names, [[0]]) == f"{rule} of shape (n,), got shape (1, 1)."


@pytest.mark.parametrize(
    "damage",
    [
        {"x_offsets": np.array([0, 3, 9])},
        {"x_offsets": np.array([0, 3, -1])},
        {"x_offsets": np.array([0, 3, 1])},
        {"x_offsets": np.empty(0, np.int64)},
        {"x_bytes": np.array([0xFF] * 6, np.uint8)},
    ],
)
def test_damaged_arrays_are_rejected(damage):
    arrays = ns.Vocabulary(["cat", "dog"]).arrays("x")
    message = refusal(ns.Vocabulary.from_arrays, arrays | damage, "x")
    assert message.startswith("Vocabulary.from_arrays: `arrays` must be offsets that fit their UTF-8 bytes, got x: ")


def test_a_missing_half_is_rejected():
    offsets = {"x_offsets": ns.Vocabulary(["cat"]).arrays("x")["x_offsets"]}
    message = refusal(ns.Vocabulary.from_arrays, offsets, "x")
    assert message == "Vocabulary.from_arrays: `arrays` must be offsets that fit their UTF-8 bytes, got x: 'x_bytes'."
