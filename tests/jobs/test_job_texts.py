"""Keys and texts on disk, against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay.jobs import _texts as job_texts
from naysay.jobs._texts import Texts, distinct, first_repeat, keys_of, places_of, read_keys, write_keys, write_texts

WORDS = st.lists(st.text(max_size=3), max_size=40)


@given(WORDS)
def test_distinct_as_a_dictionary(words):
    found = distinct(keys_of(words))
    order = list(dict.fromkeys(words))
    assert [words[row] for row in found.first.tolist()] == order
    assert [order[place] for place in found.which.tolist()] == words
    assert (found.keys == keys_of(order)).all()


@given(WORDS, WORDS, st.integers(1, 5))
def test_places_as_a_loop(wanted, words, step):
    wanted = list(dict.fromkeys(wanted))
    blocks = [keys_of(words[start : start + step]) for start in range(0, len(words), step)]
    found = places_of(keys_of(wanted), blocks)
    assert found.tolist() == [words.index(word) if word in words else -1 for word in wanted]


@given(st.lists(st.text("abc", max_size=3), max_size=40), st.integers(1, 9), st.integers(1, 9))
def test_the_first_repeat_as_in_a_loop(tmp_path_factory, words, in_memory, block):
    path = tmp_path_factory.getbasetemp() / "some_keys"
    with path.open("wb") as stream:
        write_keys(stream, [words[:7], [], words[7:]])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job_texts, "_IN_MEMORY", in_memory)
        patched.setattr(job_texts, "_BLOCK", block)
        assert (np.concatenate([keys_of([]), *read_keys(path)]) == keys_of(words)).all()
        found = first_repeat(path)
    again = [(words.index(word), row) for row, word in enumerate(words) if words.index(word) != row]
    assert found == (again[0] if again else None)


@pytest.mark.parametrize("words", [["same"] * 500, [f"w{row}" for row in range(500)], [*"abc"] * 167])
def test_repeats_are_found_in_bounded_memory(tmp_path, monkeypatch, words):
    with (tmp_path / "keys").open("wb") as stream:
        write_keys(stream, [words])
    own, seen = job_texts._repeat, []
    monkeypatch.setattr(job_texts, "_IN_MEMORY", 20)
    monkeypatch.setattr(job_texts, "_BLOCK", 10)
    monkeypatch.setattr(
        job_texts, "_repeat", lambda parts: (seen.append(sum(len(rows) for _, rows in parts)), own(parts))[1]
    )
    assert first_repeat(tmp_path / "keys") == {500: (0, 1) if words[0] == "same" else None, 501: (0, 3)}[len(words)]
    assert max(seen) <= 2 * 20 + 10


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=()), max_size=5), max_size=4), max_size=6), st.data())
def test_texts_come_back(tmp_path_factory, blocks, data):
    path = tmp_path_factory.getbasetemp() / "some_texts"
    with open(f"{path}.bytes", "wb") as run, open(f"{path}.starts", "wb") as starts:
        broken = write_texts(run, starts, blocks)
    flat = [text for block in blocks for text in block]
    texts = Texts(path)
    assert len(texts) == len(flat)
    assert [text for block in texts.blocks() for text in block] == flat
    rows = data.draw(st.lists(st.integers(0, max(0, len(flat) - 1)), max_size=8)) if flat else []
    assert texts.gather(np.array(rows, np.int64)) == [flat[row] for row in rows]
    assert [texts[row] for row in range(-len(flat), len(flat))] == flat + flat
    assert texts.nbytes == sum(len(text.encode("utf-8", "surrogatepass")) for text in flat)
    bad = [row for row, text in enumerate(flat) if any("\ud800" <= letter <= "\udfff" for letter in text)]
    assert broken == (bad[0] if bad else -1)
    with pytest.raises(IndexError):
        texts[len(flat)]


def test_blocks_of_long_texts_are_small(tmp_path, monkeypatch):
    monkeypatch.setattr(job_texts, "_RUN", 100)
    texts = ["é" * 30, "", "a" * 300, "b" * 40, "c", "", "d" * 99, "e" * 101]
    with (tmp_path / "t.bytes").open("wb") as run, (tmp_path / "t.starts").open("wb") as starts:
        write_texts(run, starts, [texts])
    blocks = list(Texts(tmp_path / "t").blocks())
    assert [text for block in blocks for text in block] == texts
    assert all(len(block) == 1 or sum(len(text.encode()) for text in block) <= 100 for block in blocks)
    assert len(blocks) == 5
