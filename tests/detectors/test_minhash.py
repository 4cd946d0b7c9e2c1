"""MinHash: the compiled signature is that of plain loops, and estimates what it should."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay._rows import frozen
from naysay.detectors._text_hash import signatures
from naysay.kernels.duplicates import largest_jaccard

WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(value):
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & WORD
    return value ^ (value >> 31)


def chain(start, values):
    for value in values:
        start = mix(((start ^ value) + GOLDEN) & WORD)
    return start


def in_loops(text, shingle, size):
    """The signature of a folded text, in Python's own numbers."""
    words = [chain(0, word) for word in text.split(b" ")] if text else []
    width = min(shingle, len(words))
    runs = {chain(width, words[i : i + width]) for i in range(len(words) - width + 1)} if words else set()
    found = []
    for place in range(size):
        factor, term = mix((place + 1) * GOLDEN & WORD) | 1, mix((size + place + 1) * GOLDEN & WORD)
        found.append(min((((factor * run + term) & WORD) >> 32 for run in runs), default=0xFFFFFFFF))
    return found


WORDS = st.lists(st.sampled_from([b"a", b"bb", b"ccc", "é".encode(), b"d4"]), max_size=9).map(b" ".join)


@given(st.lists(WORDS, max_size=5), st.integers(1, 4), st.integers(1, 9))
def test_it_is_the_signature_of_the_loops(texts, shingle, size):
    found = signatures(texts, shingle, size)
    assert found.shape == (len(texts), size)
    assert found.tolist() == [in_loops(text, shingle, size) for text in texts]


def test_signatures_are_the_same_on_every_machine():
    golden = [299070805, 797884129, 2371452388, 1796895289]
    assert signatures([b"the quick brown fox jumps"], 3, 4).tolist() == [golden]


def test_the_share_of_equal_places_is_the_jaccard_similarity():
    rng = np.random.default_rng(0)
    size, errors = 256, []
    for shared in (0, 5, 20, 60, 100, 150):
        for _ in range(8):
            both = rng.permutation(10_000)
            one, other = both[:200], np.concatenate([both[:shared], both[200 : 400 - shared]])
            texts = [b" ".join(b"w%d" % word for word in part) for part in (one, other)]
            first, second = signatures(texts, 1, size)
            true = shared / (400 - shared)
            errors.append((np.mean(first == second) - true) / np.sqrt(max(true * (1 - true), 1 / size) / size))
    assert np.abs(errors).max() < 5
    assert abs(np.mean(errors)) < 5 / np.sqrt(len(errors))


@settings(max_examples=30)
@given(st.data())
def test_the_nearest_reference_is_that_of_the_loops(data):
    n, rows, slots, size = 4, data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3)), 5
    signed = data.draw(st.lists(st.lists(st.integers(0, 2), min_size=size, max_size=size), min_size=n, max_size=n))
    keys = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    ids = np.array(data.draw(_matrix(rows, slots, -1, n - 1)), np.int64).reshape(rows, slots)
    own = np.array(data.draw(st.lists(st.integers(-1, n - 1), min_size=rows, max_size=rows)), np.int64)
    lists = [data.draw(st.lists(st.integers(0, n - 1), max_size=3)) for _ in range(rows)]
    indptr = np.concatenate([[0], np.cumsum([len(part) for part in lists])]).astype(np.int64)
    flat = np.array([item for part in lists for item in part], np.int64)
    table, numbers = np.array(signed, np.uint32), np.array(keys, np.uint64)
    out = np.full((rows, slots), -1.0)
    largest_jaccard(0, rows, *map(frozen, (ids, own, indptr, flat, numbers, table)), out)
    for b in range(rows):
        for j in range(slots):
            best = 0.0
            for other in [*lists[b], own[b]]:
                if ids[b, j] >= 0 and other >= 0 and keys[ids[b, j]] and keys[other]:
                    best = max(best, np.mean(table[ids[b, j]] == table[other]))
            assert out[b, j] == best


def _matrix(rows, slots, low, high):
    row = st.lists(st.integers(low, high), min_size=slots, max_size=slots)
    return st.lists(row, min_size=rows, max_size=rows)
