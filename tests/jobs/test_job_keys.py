"""Keys, texts on disk, vectors by position, options: each against plain Python."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay.errors import NaysayError
from naysay.jobs import _keys as job_keys
from naysay.jobs import _options as job_options
from naysay.jobs import _vectors as job_vectors
from naysay.jobs._keys import distinct, first_repeat, keys_of, places_of, read_keys, write_keys
from naysay.jobs._memory_budget import within
from naysay.jobs._parts import Part, gaps, read_part, write_part
from naysay.jobs._texts import Texts, write_texts
from naysay.jobs._vectors import open_steady
from naysay.mining._pipeline import Task

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
def test_the_first_repeat_as_in_a_loop(tmp_path_factory, words, held, block):
    path = tmp_path_factory.getbasetemp() / "some_keys"
    write_keys(path, [words[:7], [], words[7:]])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job_keys, "_HELD", held)
        patched.setattr(job_keys, "_BLOCK", block)
        assert (np.concatenate([keys_of([]), *read_keys(path)]) == keys_of(words)).all()
        found = first_repeat(path)
    again = [(words.index(word), row) for row, word in enumerate(words) if words.index(word) != row]
    assert found == (again[0] if again else None)


@pytest.mark.parametrize("words", [["same"] * 500, [f"w{row}" for row in range(500)], [*"abc"] * 167])
def test_repeats_are_looked_for_in_bounded_memory(tmp_path, monkeypatch, words):
    write_keys(tmp_path / "keys", [words])
    own, seen = job_keys._repeat, []
    monkeypatch.setattr(job_keys, "_HELD", 20)
    monkeypatch.setattr(job_keys, "_BLOCK", 10)
    monkeypatch.setattr(
        job_keys, "_repeat", lambda parts: (seen.append(sum(len(rows) for _, rows in parts)), own(parts))[1]
    )
    assert first_repeat(tmp_path / "keys") == {500: (0, 1) if words[0] == "same" else None, 501: (0, 3)}[len(words)]
    assert max(seen) <= 2 * 20 + 10


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=()), max_size=5), max_size=4), max_size=6), st.data())
def test_texts_come_back(tmp_path_factory, blocks, data):
    path = tmp_path_factory.getbasetemp() / "some_texts"
    broken = write_texts(path, blocks)
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


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_rows_of_a_file_by_position(tmp_path, kind):
    rng = np.random.default_rng(0)
    array = rng.normal(size=(5000, 8)).astype(kind)
    np.save(tmp_path / "v.npy", array)
    vectors = open_steady("--vectors", tmp_path / "v.npy")
    for ids in ([], [0], [4999], [0, 4999], np.arange(5000), np.unique(rng.integers(0, 5000, 40))):
        found = vectors.take(np.array(ids, np.int64))
        assert found.dtype == kind
        assert (found == array[np.array(ids, np.int64)]).all()
    data = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "v.npy").write_bytes(data[: len(data) // 2])  # mapped, this would end the process
    with pytest.raises(NaysayError, match="`--vectors` must be a file that nobody changes meanwhile"):
        vectors.take(np.array([0, 4000]))
    (tmp_path / "v.npy").unlink()
    with pytest.raises(
        NaysayError, match=r"^mine: `--vectors` must be a file that stays where it is, got .*No such file"
    ):
        vectors.rows(0, 1)


def test_rows_that_lie_close_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    array = np.arange(40_000, dtype=np.float64).reshape(-1, 2)
    np.save(tmp_path / "v.npy", array)
    monkeypatch.setattr(job_vectors, "WINDOW", 16 * 1000)
    sizes = []
    own = job_vectors.open_vectors

    def opened(*given):
        vectors = own(*given)
        return replace(vectors, read=lambda start, stop: (sizes.append(stop - start), vectors.read(start, stop))[1])

    monkeypatch.setattr(job_vectors, "open_vectors", opened)
    vectors = open_steady("--vectors", tmp_path / "v.npy")
    ids = np.arange(0, 20_000, 7)
    assert (vectors.take(ids) == array[ids]).all()
    assert max(sizes) <= 1000
    assert len(sizes) == 20


@given(st.lists(st.integers(0, 20), unique=True), st.integers(1, 30), st.integers(1, 9))
def test_gaps_as_a_loop(edges, n, size):
    edges = sorted(edge for edge in edges if edge <= n)
    done = [(start, stop, None) for start, stop in zip(edges[::2], edges[1::2], strict=False)]
    found = gaps(done, n, size)
    covered = [row for start, stop, _ in done for row in range(start, stop)]
    mined = [row for start, stop in found for row in range(start, stop)]
    assert sorted(covered + mined) == list(range(n))
    assert all(0 < stop - start <= size for start, stop in found)


def test_parts_prove_themselves(tmp_path):
    arrays = {"ids": np.arange(6).reshape(2, 3), "empty": np.zeros((0, 4), np.float32), "text\n": np.ones(1, np.int8)}
    write_part(tmp_path, Part(4, 6, arrays, {"many": 3}))
    path = tmp_path / "part-000000000004-000000000006"
    part = read_part(path)
    assert (part.start, part.stop, part.totals) == (4, 6, {"many": 3})
    assert {name: (found.dtype, found.tolist()) for name, found in part.arrays.items()} == {
        name: (array.dtype, array.tolist()) for name, array in arrays.items()
    }
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 32]) + data[place + 1 :])
        assert read_part(path) is None
        path.write_bytes(data[:place])
        assert read_part(path) is None


@pytest.mark.parametrize(
    ("text", "bytes_"), [("2GB", 2 * 10**9), ("500mb", 5 * 10**8), ("1.5GiB", 3 << 29), ("12", 12), ("3 K", 3000)]
)
def test_sizes(text, bytes_):
    assert job_options.read_bytes("--budget", text) == bytes_


def test_options():
    assert job_options.read_count("-k", "12") == 12
    assert job_options.read_count("-k", "auto") == "auto"
    assert job_options.read_ranks("--ranks", "10-100") == (10, 100)
    assert job_options.read_ranks("--ranks", "10-") == (10, None)
    assert job_options.read_ranks("--ranks", "") is None
    assert job_options.read_quotas("--quotas", "search=4, bm25=2") == {"search": 4, "bm25": 2}
    assert job_options.read_quotas("--quotas", "") is None


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        ("read_count", "0", r"^mine: `--it` must be at least 1, got 0\.$"),
        ("read_count", "-3", r"^mine: `--it` must be a whole number, or auto, got '-3'\.$"),
        ("read_bytes", "2 GBs", r"^mine: `--it` must be a size such as 2GB or 500MB, got '2 GBs'\.$"),
        ("read_ranks", "10", r"^mine: `--it` must be two ranks such as 10-100, or 10-, got '10'\.$"),
        ("read_ranks", "-5", r"^mine: `--it` must be two ranks"),
        ("read_quotas", "search", r"^mine: `--it` must be sources and counts such as search=4,bm25=2, got 'search'\.$"),
        ("read_quotas", "a=1,a=2", r"^mine: `--it` must be sources and counts"),
        ("read_judge", "auto:1", r"^mine: `--it` must be auto by itself, got 'auto:1'\.$"),
        ("read_judge", "margin", r"^mine: `--it` must be margin and a number, such as margin:0\.05, got 'margin'\.$"),
        ("read_judge", "margin:wide", r"^mine: `--it` must be margin and a number"),
        ("read_judge", "bands:1", r"^mine: `--it` must be bands:LOW,HIGH, got 'bands:1'\.$"),
        (
            "read_judge",
            "calibrated:2",
            r"^mine: `--it` must be a judge with numbers that it can have, got 'calibrated:2'",
        ),
    ],
)
def test_options_that_are_refused(read, text, message):
    with pytest.raises(NaysayError, match=message):
        getattr(job_options, read)("mine", "--it", text)


@pytest.mark.parametrize(
    ("n", "budget", "rows"),
    [
        (100, 10**9, 4096),
        (20_000, 10**10, 4096),
        (160_000, 10**10, 10_000),
        (160_000, 3 * 10**8, 5916),
        (9, 160 * 10**6, 1379),
    ],
)
def test_parts_fit_the_budget(n, budget, rows):
    vectors = SimpleNamespace(n=n, width=384)
    task = Task(
        **dict.fromkeys((field.name for field in fields(Task)), None)
        | {"queries": vectors, "corpus": vectors, "lists": {}, "depth": 100, "width": 8}
    )
    made, found = within(task, budget)
    assert found == rows
    assert found * 108 * 200 <= budget
    assert made.budget < budget
    assert made.slots * 100 < budget
