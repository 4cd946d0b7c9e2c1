"""Vectors from arrays, tensors, tables and files: the same rows, and one sentence for what is damaged."""

import gc
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from naysay.errors import NaysayError
from naysay.search import _vector_files as vector_files
from naysay.search.exact import search
from naysay.search.vectors import open_vectors

ROWS = np.random.default_rng(0).normal(size=(11, 4))
IDS = np.array([0, 3, 4, 10])


def write_safetensors(path, **tensors):
    """The format in a few lines: length, JSON, bytes."""
    header, body = {"__metadata__": {"made by": "a test"}}, b""
    for name, (kind, array) in tensors.items():
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + array.nbytes],
        }
        body += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


def holds(vectors, expected):
    assert (vectors.n, vectors.width) == expected.shape
    assert vectors.dtype == expected.dtype
    for start, stop in [(0, 11), (0, 3), (5, 11), (4, 4), (8, 99)]:
        rows = vectors.rows(start, stop)
        assert rows.dtype == expected.dtype
        assert rows.tobytes() == expected[start:stop].tobytes()
    assert vectors.take(IDS).tobytes() == expected[IDS].tobytes()


def raises(sentence, given, column=None):
    with pytest.raises(NaysayError, match=sentence):
        open_vectors(given, column)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_source_holds_the_same_rows(dtype, tmp_path):
    rows = ROWS.astype(dtype)
    np.save(tmp_path / "v.npy", rows)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 4)
    table = pa.table({"id": np.arange(11), "vector": lists})
    pq.write_table(table, tmp_path / "v.parquet", row_group_size=4)
    kind = {2: "F16", 4: "F32", 8: "F64"}[rows.itemsize]
    write_safetensors(tmp_path / "v.safetensors", bias=("F32", np.zeros(3, np.float32)), v=(kind, rows))
    sources = [
        rows,
        torch.from_numpy(rows),
        tmp_path / "v.npy",
        str(tmp_path / "v.parquet"),
        tmp_path / "v.safetensors",
    ]
    for source in [*sources, table, table["vector"], lists, rows[::-1][::-1], np.asfortranarray(rows)]:
        holds(open_vectors(source), rows)
    holds(open_vectors(tmp_path / "v.safetensors", "v"), rows)
    holds(open_vectors(tmp_path / "v.parquet", "vector"), rows)
    variable = pa.table({"vector": pa.array(rows.tolist(), pa.list_(pa.from_numpy_dtype(dtype)))})
    pq.write_table(variable, tmp_path / "lists.parquet")
    holds(open_vectors(tmp_path / "lists.parquet"), rows)
    for part in (table, variable):  # a slice begins in the middle of its values
        assert open_vectors(part.slice(2, 5), "vector").rows(0, 5).tolist() == rows[2:7].tolist()


def test_bfloat16_becomes_float32(tmp_path):
    half = torch.from_numpy(ROWS).bfloat16()
    holds(open_vectors(half), half.float().numpy())
    bits = half.view(torch.int16).numpy()
    path = write_safetensors(tmp_path / "v.safetensors", v=("BF16", bits))
    holds(open_vectors(path), half.float().numpy())


def test_what_is_in_memory_is_not_copied():
    assert np.shares_memory(open_vectors(ROWS).rows(2, 5), ROWS)
    assert open_vectors(ROWS).whole is ROWS
    tensor = torch.from_numpy(ROWS)
    assert np.shares_memory(open_vectors(tensor).rows(2, 5), ROWS)
    assert open_vectors(ROWS.astype(np.float16)).whole is None


def test_lists_of_whole_numbers_are_vectors():
    assert open_vectors([[1, 0], [0, 1]]).rows(0, 2).tolist() == [[1, 0], [0, 1]]


def test_the_copy_of_a_column_is_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pq.write_table(pa.table({"v": pa.array(ROWS.tolist(), pa.list_(pa.float32(), 4))}), tmp_path / "v.parquet")
    vectors = open_vectors(tmp_path / "v.parquet")
    assert len(list(tmp_path.glob("naysay-*"))) == 1
    del vectors
    gc.collect()
    assert not list(tmp_path.glob("naysay-*"))
    pq.write_table(pa.table({"v": pa.array([[1.0, 2.0], [1.0]])}), tmp_path / "short.parquet")
    raises("vectors of one width, 2 like the first, got 1 at row 1", tmp_path / "short.parquet")
    assert not list(tmp_path.glob("naysay-*"))


def test_rows_are_taken_from_small_parts_of_a_file(tmp_path, monkeypatch):
    np.save(tmp_path / "v.npy", ROWS)
    for window in (1, 64, 100, 320):
        monkeypatch.setattr(vector_files, "WINDOW", window)
        for ids in (IDS, np.arange(11), np.array([10]), IDS[:0]):
            taken = open_vectors(tmp_path / "v.npy").take(ids)
            assert taken.tolist() == ROWS[ids].tolist()


def test_no_rows(tmp_path):
    pq.write_table(pa.table({"v": pa.array([], pa.list_(pa.float32(), 4))}), tmp_path / "v.parquet")
    np.save(tmp_path / "v.npy", ROWS[:0])
    for source in (tmp_path / "v.parquet", tmp_path / "v.npy", ROWS[:0], torch.zeros(0, 4)):
        vectors = open_vectors(source)
        assert (vectors.n, vectors.width) == (0, 4)
        assert vectors.rows(0, 5).shape == (0, 4)


# ---- errors ---------------------------------------------------------------------------------------------


def test_arrays_that_are_no_vectors():
    raises(r"open_vectors: `vectors` must be of shape \(n, d\), a vector per row, got shape \(4,\)", ROWS[0])
    raises(r"of shape \(n, d\), a vector per row, got shape \(3, 0\)", np.empty((3, 0)))
    raises(r"must be float16, float32 or float64, got dtype int64. Convert them", np.ones((2, 2), int))
    raises("must be float16, float32 or float64, got dtype >f4", ROWS.astype(">f4"))
    raises("must be float16, float32 or float64, got dtype complex64", torch.zeros(2, 2, dtype=torch.complex64))
    raises("must be rows of one length", [[1.0], [1.0, 2.0]])
    raises("`column` must be left out where the vectors are no table, got 'v'", ROWS, "v")


def test_files_that_are_no_vectors(tmp_path):
    raises("`vectors` must be an existing file, got '.*nowhere.npy'", tmp_path / "nowhere.npy")
    (tmp_path / "v.txt").write_text("1 2 3")
    raises("`vectors` must be a file of vectors, got .*v.txt'. NumPy arrays", tmp_path / "v.txt")
    (tmp_path / "bad.npy").write_bytes(b"no header at all")
    raises(r"must be a readable .npy file, got .*bad.npy' \(", tmp_path / "bad.npy")
    np.save(tmp_path / "v.npy", ROWS)
    whole = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "short.npy").write_bytes(whole[:-1])
    raises("at least 480 bytes for 11 x 4 float64, got 479 in .*short.npy'. It seems cut off", tmp_path / "short.npy")
    np.save(tmp_path / "one.npy", ROWS[0])
    raises(r"of shape \(n, d\), a vector per row, got shape \(4,\) in .*one.npy", tmp_path / "one.npy")
    np.save(tmp_path / "whole.npy", np.ones((2, 2), int))
    raises("float16, float32 or float64, got dtype int64 in .*whole.npy", tmp_path / "whole.npy")
    np.save(tmp_path / "columns.npy", np.asfortranarray(ROWS))
    raises("must be stored row by row, got columns first in", tmp_path / "columns.npy")
    raises("`column` must be left out", tmp_path / "v.npy", "v")


def test_a_file_that_shrinks_while_it_is_read(tmp_path):
    np.save(tmp_path / "v.npy", ROWS)
    vectors = open_vectors(tmp_path / "v.npy")
    Path(tmp_path / "v.npy").write_bytes(b"")
    with pytest.raises(NaysayError, match="a file that does not change while it is read"):
        vectors.rows(0, 3)


def test_safetensors_that_do_not_fit(tmp_path):
    path = tmp_path / "v.safetensors"
    rows = ROWS.astype(np.float32)
    write_safetensors(path, a=("F32", rows), b=("F32", rows))
    raises("must be a file with one matrix of floats, got 2 in .*: 'a', 'b'. Choose with `column`", path)
    raises("`column` must be one of 'a', 'b', got 'c'", path, "c")
    assert open_vectors(path, "b").n == 11
    write_safetensors(path, n=("I64", np.ones((2, 2), np.int64)))
    raises("one matrix of floats, got 0 in", path)
    raises(r"`column` must be a matrix of floats, got 'n' of I64 \(2, 2\)", path, "n")
    write_safetensors(path, a=("F64", rows))
    raises("whose tensors have their size, got 'a' of 176 bytes", path)
    write_safetensors(path, a=("F32", rows))
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    raises("It seems cut off", path)
    path.write_bytes(whole[:40])
    raises("must be a readable .safetensors file", path)
    path.write_bytes(b"\xff" * 20)
    raises("must be a readable .safetensors file", path)
    text = json.dumps({"a": {"dtype": "F32", "shape": [2, -2], "data_offsets": [0, 16]}}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(16))
    raises("an entry of its header is damaged", path)
    path.write_bytes((2).to_bytes(8, "little") + b"[]")
    raises("must be a readable .safetensors file", path)


def test_columns_that_do_not_fit(tmp_path):
    vector = pa.array([[1.0, 2.0], [3.0, 4.0]])
    raises("a table with one column of lists of floats, got columns 'n'", pa.table({"n": [1, 2]}))
    raises("one column of lists of floats, got columns 'a', 'b'. Choose", pa.table({"a": vector, "b": vector}))
    table = pa.table({"v": vector, "n": [1, 2]})
    raises("`column` must be one of 'v', 'n', got 'w'", table, "w")
    raises("`column` must be one column of lists of floats, got 'n': int64", table, "n")
    raises("a column of lists of floats, got int64", table["n"])
    raises("`column` must be left out", table["v"], "v")
    raises(r"without nulls, got null at row 1 \(1 such", pa.table({"v": pa.array([[1.0], None])}))
    raises("without nulls, got 1 in rows 0 to 1", pa.table({"v": pa.array([[1.0], [None]])}))
    raises("vectors of one width, 1 like the first, got 2 at row 1", pa.table({"v": pa.array([[1.0], [1.0, 2.0]])}))
    raises("a vector per row, got width 0", pa.table({"v": pa.array([[], []], pa.list_(pa.float32()))}))
    (tmp_path / "v.parquet").write_bytes(b"PAR1 not really")
    raises("must be a readable .parquet file", tmp_path / "v.parquet")
    pq.write_table(table, tmp_path / "t.parquet")
    raises("`column` must be one of 'v', 'n', got 'w'", tmp_path / "t.parquet", "w")


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_rows_near_each_other_and_far_apart(tmp_path, monkeypatch, kind):
    array = np.random.default_rng(0).normal(size=(500, 3)).astype(kind)
    np.save(tmp_path / "v.npy", array)
    vectors = open_vectors(tmp_path / "v.npy")
    ids = np.array([0, 1, 2, 7, 8, 60, 61, 61, 63, 200, 498, 499])
    for gap in (0, 20, 1 << 20):
        for window in (1, 40, 1 << 20):
            monkeypatch.setattr(vector_files, "_GAP", gap)
            monkeypatch.setattr(vector_files, "WINDOW", window)
            assert (vectors.take(ids) == array[ids]).all()
    assert vectors.take(ids[:0]).shape == (0, 3)


def test_a_file_that_shrinks_meanwhile_raises(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((100, 4), np.float32))
    vectors = open_vectors(tmp_path / "v.npy")
    with (tmp_path / "v.npy").open("r+b") as file:
        file.truncate(600)
    for read in (lambda: vectors.take(np.array([1, 90])), lambda: vectors.rows(80, 100)):
        with pytest.raises(NaysayError, match="`vectors` must be a file that does not change while it is read"):
            read()
    with pytest.raises(NaysayError, match="a file that does not change while it is read"):
        search(np.ones((2, 4)), vectors, 3)
    (tmp_path / "v.npy").unlink()
    for read in (lambda: vectors.take(np.array([1, 90])), lambda: vectors.rows(80, 100)):
        with pytest.raises(NaysayError, match=r"`vectors` must be a file that stays where it is, got .*No such file"):
            read()
