"""Columns of Arrow, Parquet and CSV as ids: what is read, and what is refused before anything is built."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay import _tables as tables
from naysay.errors import NaysayError
from naysay.vocabulary import Vocabulary

NAMES = ["cat", "dog", "cat", "eel"]


def refusal(call, *arguments, **named):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array(["a", 1], object), "whole numbers, or strings throughout, got values of type int."),
        (np.array([1, None], object), "whole numbers, or strings throughout, got values of type NoneType, int."),
        (np.array([b"a"], object), "whole numbers, or strings throughout, got values of type bytes."),
        (np.array([["a"]]), "of shape (n,), got shape (1, 1)."),
        ([0.5], "whole numbers, got dtype float64. Ids count from 0."),
        (pa.array([0.5]), "whole numbers, got dtype float64. Ids count from 0."),
        (pa.array([True]), "whole numbers, got dtype bool. Ids count from 0."),
        (pa.array(["a", None, None]), "without nulls, got null at row 1 (2 such rows)."),
        (pa.array([None, 1]), "without nulls, got null at row 0 (1 such row)."),
        ([[0], [1, 2]], "rows of one length, got rows of different lengths."),
    ],
)
def test_encode_rejects(values, message):
    assert refusal(tables.encode, "anchors", values) == f"`anchors` must be {message}"


def test_look_up_uses_the_vocabulary_there_is():
    names = Vocabulary(["a", "b"])
    for values in (["b", "a"], np.array(["b", "a"]), np.array(["b", "a"], object), pa.array(["b", "a"])):
        assert tables.look_up("items", values, names).tolist() == [1, 0]
    assert tables.look_up("items", [1, 0], names).tolist() == [1, 0]
    assert tables.look_up("items", [], names).tolist() == []
    assert "must be whole numbers, got dtype <U1" in refusal(tables.look_up, "items", ["b"], None)
    message = "`items` must be among the 2 known names, got 'c' at row 0 (1 such row)."
    assert refusal(tables.look_up, "items", ["c"], names) == message
    message = "`items` must be whole numbers, or strings throughout, got values of type int."
    assert refusal(tables.look_up, "items", np.array(["a", 1], object), names) == message
    assert "of shape (n,), got shape (1, 1)" in refusal(tables.look_up, "items", [["a"]], names)
    assert "rows of one length" in refusal(tables.look_up, "items", [[1], [2, 3]], names)


@pytest.mark.parametrize("form", [list, np.array, pa.array, lambda names: pa.chunked_array([names])])
def test_encode_by_a_vocabulary_there_is(form):
    names = Vocabulary(["a", "b", "c"])
    ids, same = tables.encode("items", form(["c", "a", "c"]), names)
    assert same is names
    assert ids.tolist() == [2, 0, 2]
    message = "`items` must be among the 3 known names, got 'x' at row 1 (2 such rows)."
    assert refusal(tables.encode, "items", form(["a", "x", "y"]), names) == message
    assert tables.encode("items", [1, 2], names)[0].tolist() == [1, 2]


# ---- columns --------------------------------------------------------------------------------------------


def test_columns_come_whole():
    table = pa.concat_tables([pa.table({"u": [1, 2], "name": ["a", "b"]}), pa.table({"u": [3], "name": ["c"]})])
    found = tables.columns(table, anchors="u", items="name")
    assert found["anchors"].tolist() == [1, 2, 3]
    assert found["items"].to_pylist() == ["a", "b", "c"]
    assert isinstance(found["items"], pa.Array)


def test_one_column_may_be_both():
    found = tables.columns(pa.table({"u": [1, 2]}), anchors="u", items="u")
    assert found["anchors"].tolist() == found["items"].tolist() == [1, 2]


def test_nulls_are_rejected_with_row_and_count():
    table = pa.table({"u": pa.chunked_array([[1, 2], [None, 3, None]]), "i": ["a", None, "b", "c", "d"]})
    rule = "`anchors` must be a column without nulls ('u'), got null at row 2 (2 such rows)."
    assert refusal(tables.columns, table, anchors="u", items="i") == rule
    rule = "`anchors` must be a column without nulls ('i'), got null at row 1 (1 such row)."
    assert refusal(tables.columns, table, anchors="i", items="u") == rule


def test_a_null_inside_a_dictionary_is_a_null():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), pa.array(["a", None]))
    message = refusal(tables.columns, pa.table({"u": column}), anchors="u")
    assert message.endswith("got null at row 1 (2 such rows).")


def test_a_misspelt_column_is_rejected_with_the_nearest():
    table = pa.table({"user_id": [1], "item_id": [2]})
    message = "`items` must be one of the columns 'user_id', 'item_id', got 'itme_id'. Did you mean 'item_id'?"
    assert refusal(tables.columns, table, anchors="user_id", items="itme_id") == message
    message = "`items` must be one of the columns 'user_id', 'item_id', got 'zzz'."
    assert refusal(tables.columns, table, anchors="user_id", items="zzz") == message


def test_a_column_that_is_there_twice_is_rejected():
    table = pa.table([[1], [2], [3]], names=["u", "u", "i"])
    assert tables.columns(table, items="i")["items"].tolist() == [3]
    message = "`anchors` must be the name of exactly one column, got 'u', 2 times."
    assert refusal(tables.columns, table, anchors="u") == message


def test_only_tables_have_columns():
    assert refusal(tables.columns, {"u": [1]}, anchors="u") == (
        "`table` must be a pyarrow.Table, or another table with __arrow_c_stream__, got dict."
    )


# ---- files ----------------------------------------------------------------------------------------------


def test_parquet_reads_only_the_named_columns(tmp_path):
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"user.id": [1, 2], "item": ["a", "b"], "other": [0, 0]}), path)
    table = tables.read_parquet(path, anchors="user.id", items="item")
    assert table.to_pydict() == {"user.id": [1, 2], "item": ["a", "b"]}
    assert tables.read_parquet(str(path), anchors="item", items="item").column_names == ["item"]


def test_parquet_that_cannot_be_read(tmp_path):
    path = tmp_path / "pairs.parquet"
    message = f"`path` must be an existing file, got {str(path)!r}."
    assert refusal(tables.read_parquet, path, anchors="u", items="i") == message
    path.write_text("u,i\n1,2\n")
    message = f"`path` must be a file of that format, got {str(path)!r} ("
    assert refusal(tables.read_parquet, path, anchors="u", items="i").startswith(message)
    assert "a file of that format" in refusal(tables.read_parquet, tmp_path, anchors="u", items="i")


def test_a_parquet_file_with_a_damaged_page(tmp_path):
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"u": list(range(1000)), "i": list(range(1000))}), path, use_dictionary=False)
    whole = bytearray(path.read_bytes())
    whole[4:200] = b"\xff" * 196
    path.write_bytes(whole)
    assert "a file of that format" in refusal(tables.read_parquet, path, anchors="u", items="i")


def test_a_misspelt_column_of_a_file(tmp_path):
    pq.write_table(pa.table({"user": [1], "item": [2]}), tmp_path / "pairs.parquet")
    (tmp_path / "pairs.csv").write_text("user,item\n1,2\n")
    message = "`anchors` must be one of the columns 'user', 'item', got 'usr'. Did you mean 'user'?"
    assert refusal(tables.read_parquet, tmp_path / "pairs.parquet", anchors="usr", items="item") == message
    assert refusal(tables.read_csv, tmp_path / "pairs.csv", ",", anchors="usr", items="item") == message


def test_csv_reads_only_the_named_columns(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("user\titem\tother\n1\ta\t\n2\tb\t\n")
    assert tables.read_csv(path, "\t", anchors="user", items="item").to_pydict() == {
        "user": [1, 2],
        "item": ["a", "b"],
    }


@pytest.mark.parametrize(
    ("text", "got"),
    [("", "Empty CSV file"), ("u,i\n1,2,3\n", "CSV parse error"), ("u,i\n1\n", "CSV parse error")],
)
def test_csv_that_cannot_be_read(tmp_path, text, got):
    path = tmp_path / "pairs.csv"
    message = f"`path` must be an existing file, got {str(path)!r}."
    assert refusal(tables.read_csv, path, ",", anchors="u", items="i") == message
    path.write_text(text)
    message = refusal(tables.read_csv, path, ",", anchors="u", items="i")
    assert message.startswith(f"`path` must be a file of that format, got {str(path)!r} (")
    assert got in message


@pytest.mark.parametrize("wrong", [0, None])
def test_a_column_goes_by_its_name(tmp_path, wrong):
    pq.write_table(pa.table({"user": [1], "item": [2]}), tmp_path / "pairs.parquet")
    (tmp_path / "pairs.csv").write_text("user,item\n1,2\n")
    message = f"`anchors` must be one of the columns 'user', 'item', got {wrong!r}."
    assert refusal(tables.read_parquet, tmp_path / "pairs.parquet", anchors=wrong, items="item") == message
    assert refusal(tables.read_csv, tmp_path / "pairs.csv", ",", anchors=wrong, items="item") == message


def test_csv_may_read_numbers_as_text(tmp_path):
    (tmp_path / "pairs.csv").write_text("user,item\n01,2\n")
    table = tables.read_csv(tmp_path / "pairs.csv", ",", ["user"], anchors="user", items="item")
    assert table.to_pydict() == {"user": ["01"], "item": [2]}


@pytest.mark.parametrize("delimiter", ["", "||", None])
def test_a_delimiter_is_one_character(tmp_path, delimiter):
    message = f"`delimiter` must be one character, got {delimiter!r}."
    assert refusal(tables.read_csv, tmp_path / "pairs.csv", delimiter, anchors="u", items="i") == message
