"""Columns of Arrow, Parquet and CSV as ids: what is read, and what is refused before anything is built."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay import tables
from naysay.errors import NaysayError
from naysay.vocabulary import Vocabulary

NAMES = ["cat", "dog", "cat", "eel"]


def encoded(values):
    ids, names = tables.encode("anchors", values)
    return ids.tolist(), None if names is None else names.names(range(len(names)))


# ---- encode ---------------------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3)))
def test_strings_are_numbered_as_they_first_appear(strings):
    order = list(dict.fromkeys(strings))
    expected = [order.index(name) for name in strings], order
    assert encoded(pa.array(strings, pa.string())) == expected
    assert encoded(np.array(strings, object)) == (expected if strings else ([], None))


@pytest.mark.parametrize(
    "values",
    [
        NAMES,
        np.array(NAMES),
        np.array(NAMES, object),
        np.array(NAMES, np.dtypes.StringDType()),
        np.array([np.str_(name) for name in NAMES], object),
        pa.array(NAMES),
        pa.array(NAMES, pa.large_string()),
        pa.array(NAMES, pa.string_view()),
        pa.array(NAMES).dictionary_encode(),
        pa.chunked_array([NAMES[:1], NAMES[1:]]),
        pa.chunked_array([pa.array(NAMES[:1]).dictionary_encode(), pa.array(NAMES[1:]).dictionary_encode()]),
        pa.array(["x", *NAMES])[1:],
    ],
)
def test_strings_of_any_form(values):
    assert encoded(values) == ([0, 1, 0, 2], ["cat", "dog", "eel"])


@pytest.mark.parametrize(
    "values",
    [
        [5, 6],
        np.array([5, 6], np.uint16),
        pa.array([5, 6]),
        pa.chunked_array([[5], [6]]),
        pa.array([5, 6]).dictionary_encode(),
    ],
)
def test_numbers_stay_as_they_are(values):
    assert encoded(values) == ([5, 6], None)


def test_a_dictionary_counts_only_what_is_used():
    column = pa.DictionaryArray.from_arrays(pa.array([2, 1, 2]), pa.array(["unused", "b", "c"]))
    assert encoded(column) == ([0, 1, 0], ["c", "b"])


@pytest.mark.parametrize("values", [[], np.array([]), np.array([], object), pa.array([]), pa.array([], pa.int32())])
def test_nothing_has_no_names(values):
    assert encoded(values) == ([], None)


@pytest.mark.parametrize("values", [np.array([], str), pa.array([], pa.string())])
def test_no_strings_are_an_empty_vocabulary(values):
    assert encoded(values) == ([], [])


def test_a_vocabulary_there_is():
    names = Vocabulary(["a", "b", "c"])
    for form in (list, np.array, pa.array, lambda values: pa.chunked_array([values])):
        ids, same = tables.encode("items", form(["c", "a", "c"]), names)
        assert (same, ids.tolist()) == (names, [2, 0, 2])
    assert tables.encode("items", [1, 2], names)[0].tolist() == [1, 2]
    for values in (["b", "a"], np.array(["b", "a"], object), pa.array(["b", "a"])):
        assert tables.look_up("items", values, names).tolist() == [1, 0]
    assert tables.look_up("items", [1, 0], names).tolist() == [1, 0]
    assert tables.look_up("items", [], names).tolist() == []


# ---- columns and files ----------------------------------------------------------------------------------


def test_columns_come_whole():
    table = pa.concat_tables([pa.table({"u": [1, 2], "name": ["a", "b"]}), pa.table({"u": [3], "name": ["c"]})])
    found = tables.columns(table, anchors="u", items="name", again="u")
    assert found["anchors"].tolist() == found["again"].tolist() == [1, 2, 3]
    assert found["items"].to_pylist() == ["a", "b", "c"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"user.id": [1, 2], "item": ["a", "b"], "other": [0, 0]}
    pq.write_table(pa.table(columns), "pairs.parquet")
    pq.write_table(pa.table({"u": list(range(1000))}), "damaged.parquet", use_dictionary=False)
    whole = bytearray((tmp_path / "damaged.parquet").read_bytes())
    whole[4:200] = b"\xff" * 196
    (tmp_path / "damaged.parquet").write_bytes(whole)
    files = {"pairs.csv": "user.id\titem\tother\n01\ta\t\n2\tb\t\n", "wrong.parquet": "u,i\n1,2\n", "empty.csv": "",
             "long.csv": "u,i\n1,2,3\n", "short.csv": "u,i\n1\n"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)


def test_files_give_only_the_named_columns():
    table = tables.read_parquet("pairs.parquet", anchors="user.id", items="item")
    assert table.to_pydict() == {"user.id": [1, 2], "item": ["a", "b"]}
    assert tables.read_parquet("pairs.parquet", anchors="item", items="item").column_names == ["item"]
    assert tables.read_csv("pairs.csv", "\t", anchors="user.id", items="item").to_pydict() == table.to_pydict()
    texts = tables.read_csv("pairs.csv", "\t", ["user.id"], anchors="user.id", items="item")
    assert texts["user.id"].to_pylist() == ["01", "2"]


NAMES_AB = Vocabulary(["a", "b"])
TWICE = pa.table([[1], [2], [3]], names=["u", "u", "i"])
NULLS = pa.table({"u": pa.chunked_array([[1, 2], [None, 3, None]])})
IN_DICTIONARY = pa.table({"u": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), pa.array(["a", None]))})
MIXED = np.array(["a", 1], object)
U = {"anchors": "u"}


@pytest.mark.parametrize(
    ("call", "arguments", "named", "parameter", "reason"),
    [
        (tables.encode, ("anchors", MIXED), {}, "anchors", "values of type int"),
        (tables.encode, ("anchors", np.array([1, None], object)), {}, "anchors", "NoneType, int"),
        (tables.encode, ("anchors", np.array([b"a"], object)), {}, "anchors", "bytes"),
        (tables.encode, ("anchors", np.array([["a"]])), {}, "anchors", "shape (1, 1)"),
        (tables.encode, ("anchors", [0.5]), {}, "anchors", "float64"),
        (tables.encode, ("anchors", pa.array([True])), {}, "anchors", "bool"),
        (tables.encode, ("anchors", pa.array(["a", None, None])), {}, "anchors", "null at row 1 (2 such rows)"),
        (tables.encode, ("anchors", [[0], [1, 2]]), {}, "anchors", "different lengths"),
        (tables.encode, ("items", ["a", "x", "y"], NAMES_AB), {}, "items", "'x' at row 1 (2 such rows)"),
        (tables.look_up, ("items", ["b"], None), {}, "items", "<U1"),
        (tables.look_up, ("items", ["c"], NAMES_AB), {}, "items", "'c' at row 0"),
        (tables.look_up, ("items", MIXED, NAMES_AB), {}, "items", "values of type int"),
        (tables.columns, (NULLS,), U, "anchors", "null at row 2 (2 such rows)"),
        (tables.columns, (IN_DICTIONARY,), U, "anchors", "null at row 1 (2 such rows)"),
        (tables.columns, (TWICE,), U, "anchors", "'u', 2 times"),
        (tables.columns, (pa.table({"user_id": [1]}),), {"anchors": "usr_id"}, "anchors", "Did you mean 'user_id'?"),
        (tables.columns, ({"u": [1]},), U, "table", "dict"),
        (tables.read_parquet, ("none.parquet",), U, "path", "none.parquet"),
        (tables.read_parquet, ("wrong.parquet",), U, "path", "wrong.parquet"),
        (tables.read_parquet, ("damaged.parquet",), U, "path", "damaged.parquet"),
        (tables.read_parquet, (".",), U, "path", "pairs.parquet"),
        (tables.read_parquet, ("pairs.parquet",), {"anchors": "itm"}, "anchors", "Did you mean 'item'?"),
        (tables.read_parquet, ("pairs.parquet",), {"anchors": 0}, "anchors", "got 0"),
        (tables.read_csv, ("none.csv", ","), U, "path", "none.csv"),
        (tables.read_csv, ("empty.csv", ","), U, "path", "Empty CSV file"),
        (tables.read_csv, ("long.csv", ","), U, "path", "CSV parse error"),
        (tables.read_csv, ("short.csv", ","), U, "path", "CSV parse error"),
        (tables.read_csv, ("pairs.csv", "\t"), {"anchors": None}, "anchors", "got None"),
        (tables.read_csv, ("pairs.csv", ",,"), U, "delimiter", "',,'"),
    ],
)
def test_invalid_tables(call, arguments, named, parameter, reason):
    with pytest.raises(NaysayError) as error:
        call(*arguments, **named)
    assert error.value.parameter == parameter
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
