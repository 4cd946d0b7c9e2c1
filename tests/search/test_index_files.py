"""An index on disk: the same results after opening, and an error for every damage."""

import json
import shutil

import faiss
import numpy as np
import pytest
from index_world import CORPUS, KINDS, QUERIES, clustered, same

from naysay.errors import NaysayError
from naysay.files import digest_of
from naysay.search.index import Index


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_opened_it_answers_the_same(built, kind, tmp_path):
    built[kind].save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", CORPUS)
    same(opened.search(QUERIES, 11), built[kind].search(QUERIES, 11))
    assert repr(opened) == repr(built[kind]) == f"Index({kind}, 3000 x 16, cosine, {built[kind].setting})"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


def test_the_setting_is_saved_and_a_folder_of_ours_is_replaced(tmp_path):
    index = Index.build(clustered(1000, 19), metric="dot")
    index.save(tmp_path / "index")
    index.effort = 12
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", clustered(1000, 19))
    assert opened.effort == 12
    same(opened.search(QUERIES, 3), index.search(QUERIES, 3))


def test_a_save_that_fails_leaves_what_was_there(built, tmp_path, monkeypatch):
    built["ivf"].save(tmp_path / "index")
    before = (tmp_path / "index" / "header.json").read_bytes()

    def full(index, path):
        message = "Error\nwrite error"
        raise RuntimeError(message)

    monkeypatch.setattr(faiss, "write_index", full)
    with pytest.raises(NaysayError, match=r"`path` must be a place that can be written to, got .*\. write error$"):
        built["ivf"].save(tmp_path / "index")
    assert (tmp_path / "index" / "header.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


def test_another_corpus_raises(built, tmp_path):
    built["ivf"].save(tmp_path / "index")
    with pytest.raises(
        NaysayError, match=r"^Index\.open: `corpus` must be the one of the index, 3000 x 16, got 2 x 16"
    ):
        Index.open(tmp_path / "index", CORPUS[:2])
    with pytest.raises(NaysayError, match=r"the one of the index, 3000 x 16, got 3000 x 15\.$"):
        Index.open(tmp_path / "index", CORPUS[:, :15])
    message = r"^Index\.open: `corpus` must be the one of the index, got other values, or another dtype\. Build a new"
    for other in (CORPUS * 2, CORPUS.astype(np.float64), CORPUS[::-1]):
        with pytest.raises(NaysayError, match=message):
            Index.open(tmp_path / "index", other)


def test_a_damaged_folder_raises(built, tmp_path):
    kept = tmp_path / "index"
    built["ivf"].save(kept)
    with pytest.raises(NaysayError, match=r"^Index\.open: `path` must be an index that naysay wrote, got '.*none'\.$"):
        Index.open(tmp_path / "none", CORPUS)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "header.json").write_text("[]")
    with pytest.raises(NaysayError, match="must be an index that naysay wrote"):
        Index.open(tmp_path / "theirs", CORPUS)
    with pytest.raises(NaysayError, match=r"^Index\.save: `path` must be new, or a folder that naysay wrote, got "):
        built["ivf"].save(tmp_path / "theirs")
    with pytest.raises(NaysayError, match=r"^Index\.save: `path` must be in an existing folder, got "):
        built["ivf"].save(tmp_path / "no" / "index")
    header = json.loads((kept / "header.json").read_text())
    for change in ({"effort": 0}, {"kind": "auto"}, {"metric": "cos"}, {"n": "3000"}, {"largest": 1}, {"more": 1}):
        (kept / "header.json").write_text(json.dumps({**header, "about": {**header["about"], **change}}))
        with pytest.raises(NaysayError, match="must be an index with a sound header of format 1, got"):
            Index.open(kept, CORPUS)
    (kept / "header.json").write_text(json.dumps({**header, "format": 2}))
    with pytest.raises(NaysayError, match="must be an index with a sound header of format 1, got"):
        Index.open(kept, CORPUS)
    (kept / "header.json").write_text(json.dumps(header))
    file = kept / "index.faiss"
    data = file.read_bytes()
    file.write_bytes(data[:-9])
    with pytest.raises(
        NaysayError, match=r"must be a folder as it was written, got index\.faiss, missing or changed\.$"
    ):
        Index.open(kept, CORPUS)
    shutil.copy(file, tmp_path / "copy")
    file.unlink()
    with pytest.raises(NaysayError, match=r"index\.faiss, missing or changed"):
        Index.open(kept, CORPUS)


def test_a_file_of_another_index_raises(built, tmp_path):
    built["ivf"].save(tmp_path / "index")
    faiss.write_index(faiss.IndexFlatL2(16), str(tmp_path / "index" / "index.faiss"))
    header = json.loads((tmp_path / "index" / "header.json").read_text())
    header["file"] = digest_of(tmp_path / "index" / "index.faiss")
    (tmp_path / "index" / "header.json").write_text(json.dumps(header))
    with pytest.raises(NaysayError, match=r"must be a folder as it was written, got index\.faiss of 0 x 16\.$"):
        Index.open(tmp_path / "index", CORPUS)
