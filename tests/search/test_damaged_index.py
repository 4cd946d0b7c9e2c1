"""A damaged folder of an index gives one sentence: no crash, and no wrong neighbours."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("faiss")

from naysay.errors import NaysayError
from naysay.search import Index

CORPUS = np.random.default_rng(0).normal(size=(1000, 6)).astype(np.float32)
QUERIES = CORPUS[:5] + np.float32(0.1)


@pytest.fixture(scope="module", params=["ivf", "hnsw"])
def saved(request, tmp_path_factory):
    """A folder that is not changed, and what its index finds."""
    folder = tmp_path_factory.mktemp("indices") / "index"
    index = Index.build(CORPUS, kind=request.param)
    index.save(folder)
    return folder, index.search(QUERIES, 4)


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved[0], tmp_path / "copy")


def refused(folder):
    with pytest.raises(NaysayError, match=r"^Index\.open: `(path|corpus)` must be "):
        Index.open(folder, CORPUS)


def header_of(folder):
    return next(path for path in folder.iterdir() if path.suffix == ".json")


def test_the_copy_itself_is_sound(copy, saved):
    found = Index.open(copy, CORPUS).search(QUERIES, 4)
    assert found.ids.tobytes() == saved[1].ids.tobytes()
    assert found.scores.tobytes() == saved[1].scores.tobytes()


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.999])
def test_a_file_that_is_cut_off(copy, share):
    file = copy / "index.faiss"
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    refused(copy)


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.9999])
def test_a_byte_that_is_flipped(copy, share):
    file = copy / "index.faiss"
    data = bytearray(file.read_bytes())
    data[int(share * len(data))] ^= 0x40
    file.write_bytes(data)
    refused(copy)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 200_000, '{"a":' * 200_000, "null", '"x"', "{}", "\x00"])
def test_a_header_that_is_no_header(copy, text):
    header_of(copy).write_text(text)
    refused(copy)


@pytest.mark.parametrize(
    "value", [None, [], {}, "x", -1, 10**40, 1.5, True, [1], {"a": []}, float("nan"), float("inf")]
)
def test_an_entry_of_another_type(copy, value):
    path = header_of(copy)
    header = json.loads(path.read_text())
    entries = [(header, name) for name in header] + [(header["about"], name) for name in header["about"]]
    for place, name in entries:
        if name == "seed" and type(value) is int:  # any seed is sound
            continue
        before, place[name] = place[name], value
        path.write_text(json.dumps(header))
        refused(copy)
        place[name] = before
    path.write_text(json.dumps({**header, "about": header["about"] | {"more": value}}))
    refused(copy)


@pytest.mark.parametrize("entry", [("n", 999), ("width", 5), ("kind", "other"), ("metric", "l1"), ("effort", 0)])
def test_numbers_that_do_not_fit(copy, entry):
    path = header_of(copy)
    header = json.loads(path.read_text())
    header["about"][entry[0]] = entry[1]
    path.write_text(json.dumps(header))
    refused(copy)


def test_an_index_of_another_shape_under_this_header(copy, tmp_path):
    from naysay.files import digest_of

    other = np.random.default_rng(1).normal(size=(1200, 6)).astype(np.float32)
    Index.build(other).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "index.faiss", copy / "index.faiss")
    refused(copy)
    path = header_of(copy)
    header = json.loads(path.read_text()) | {"file": digest_of(copy / "index.faiss")}
    path.write_text(json.dumps(header))
    refused(copy)
    (copy / "index.faiss").write_bytes(b"no index")
    path.write_text(json.dumps(header | {"file": digest_of(copy / "index.faiss")}))
    refused(copy)


def test_a_row_beyond_the_corpus_is_never_returned(copy, monkeypatch):
    from naysay.search import _index_faiss

    index = Index.open(copy, CORPUS)
    beyond = np.full((5, 20), 1000)
    monkeypatch.setattr(_index_faiss, "fetch_lists", lambda index, queries, count, lists: beyond)
    monkeypatch.setattr(_index_faiss, "fetch_graph", lambda index, queries, count, effort: beyond)
    message = r"^Index\.search: `path` must be an index of this corpus, got row 1000 of 1000"
    with pytest.raises(NaysayError, match=message):
        index.search(QUERIES, 4)
