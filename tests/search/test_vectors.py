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
from naysay.search import open_vectors, search

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
    with pytest.raises(NaysayError, match="vectors of one width, 2 like the first, got 1 at row 1"):
        open_vectors(tmp_path / "short.parquet")
    assert not list(tmp_path.glob("naysay-*"))


def test_no_rows(tmp_path):
    pq.write_table(pa.table({"v": pa.array([], pa.list_(pa.float32(), 4))}), tmp_path / "v.parquet")
    np.save(tmp_path / "v.npy", ROWS[:0])
    for source in (tmp_path / "v.parquet", tmp_path / "v.npy", ROWS[:0], torch.zeros(0, 4)):
        vectors = open_vectors(source)
        assert (vectors.n, vectors.width) == (0, 4)
        assert vectors.rows(0, 5).shape == (0, 4)


# ---- invalid sources ------------------------------------------------------------------------------------


def bytes_of(name, array):
    np.save(name, array)
    return name


def written(name, content):
    Path(name).write_bytes(content)
    return name


def with_header(header):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return written("v.safetensors", len(text).to_bytes(8, "little") + text + bytes(16))


def cut(name, count):
    return written(name, Path(name).read_bytes()[:count])


def tensors(**given):
    return write_safetensors(Path("v.safetensors"), **given)


def parquet(table):
    pq.write_table(table, "v.parquet")
    return "v.parquet"


SINGLE = ROWS.astype(np.float32)
VECTOR = pa.array([[1.0, 2.0], [3.0, 4.0]])
TABLE = pa.table({"v": VECTOR, "n": [1, 2]})
INVALID = [  # (source, made in an empty folder; column; parameter)
    (lambda: ROWS.astype(">f4"), None, "vectors"),
    (lambda: torch.zeros(2, 2, dtype=torch.complex64), None, "vectors"),
    (lambda: "nowhere.npy", None, "vectors"),
    (lambda: written("v.txt", b"1 2 3"), None, "vectors"),
    (lambda: written("v.npy", b"no header at all"), None, "vectors"),
    (lambda: cut(bytes_of("v.npy", ROWS), -1), None, "vectors"),
    (lambda: bytes_of("v.npy", ROWS[0]), None, "vectors"),
    (lambda: bytes_of("v.npy", np.ones((2, 2), int)), None, "vectors"),
    (lambda: bytes_of("v.npy", np.asfortranarray(ROWS)), None, "vectors"),
    (lambda: bytes_of("v.npy", ROWS), "v", "column"),
    (lambda: tensors(a=("F32", SINGLE), b=("F32", SINGLE)), None, "vectors"),
    (lambda: tensors(a=("F32", SINGLE), b=("F32", SINGLE)), "c", "column"),
    (lambda: tensors(n=("I64", np.ones((2, 2), np.int64))), None, "vectors"),
    (lambda: tensors(n=("I64", np.ones((2, 2), np.int64))), "n", "column"),
    (lambda: tensors(a=("F64", SINGLE)), None, "vectors"),
    (lambda: cut(tensors(a=("F32", SINGLE)), -4), None, "vectors"),
    (lambda: cut(tensors(a=("F32", SINGLE)), 40), None, "vectors"),
    (lambda: written("v.safetensors", b"\xff" * 20), None, "vectors"),
    (lambda: with_header({"a": {"dtype": "F32", "shape": [2, -2], "data_offsets": [0, 16]}}), None, "vectors"),
    (lambda: with_header(b"[]"), None, "vectors"),
    (lambda: pa.table({"n": [1, 2]}), None, "vectors"),
    (lambda: pa.table({"a": VECTOR, "b": VECTOR}), None, "vectors"),
    (lambda: TABLE, "w", "column"),
    (lambda: TABLE, "n", "column"),
    (lambda: TABLE["n"], None, "vectors"),
    (lambda: TABLE["v"], "v", "column"),
    (lambda: pa.table({"v": pa.array([[1.0], None])}), None, "vectors"),
    (lambda: pa.table({"v": pa.array([[1.0], [None]])}), None, "vectors"),
    (lambda: pa.table({"v": pa.array([[1.0], [1.0, 2.0]])}), None, "vectors"),
    (lambda: pa.table({"v": pa.array([[], []], pa.list_(pa.float32()))}), None, "vectors"),
    (lambda: written("v.parquet", b"PAR1 not really"), None, "vectors"),
    (lambda: parquet(TABLE), "w", "column"),
]


@pytest.mark.parametrize(("source", "column", "parameter"), INVALID)
def test_an_invalid_source_names_its_parameter(source, column, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NaysayError) as error:
        open_vectors(source(), column)
    assert error.value.parameter == parameter
    assert f"`{parameter}` must be " in str(error.value)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_rows_near_each_other_and_far_apart(tmp_path, monkeypatch, kind):
    array = np.random.default_rng(0).normal(size=(500, 3)).astype(kind)
    np.save(tmp_path / "v.npy", array)
    vectors = open_vectors(tmp_path / "v.npy")
    ids = np.array([0, 1, 2, 7, 8, 60, 61, 61, 63, 200, 498, 499])
    for gap in (0, 20, 1 << 20):
        for window in (1, 40, 1 << 20):
            monkeypatch.setattr("naysay.search.vectors._GAP", gap)
            monkeypatch.setattr("naysay.search.vectors.WINDOW", window)
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
