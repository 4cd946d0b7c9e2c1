"""Choosing k candidates: the highest in order, noise that makes a softmax of the highest; and taking the chosen."""

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import naysay as ns
from naysay import rng_for
from naysay.errors import NaysayError
from naysay.rng import key_from
from naysay.samplers._top_k import gumbel, pick, take, take_highest, top
from naysay.types import Negatives

SHAPES = st.tuples(st.integers(0, 5), st.integers(1, 12))
# Few different values, so that scores are often equal; -inf marks an empty slot.
SCORES = SHAPES.flatmap(lambda shape: hnp.arrays(np.float32, shape, elements=st.sampled_from([-np.inf, -1.5, 0, 2, 3])))


def highest(row, width):
    """Slots by score, the earlier slot first among equals."""
    return sorted(range(len(row)), key=lambda slot: (-row[slot], slot))[:width]


@given(SCORES, st.data())
def test_the_highest_first_and_the_earlier_slot_among_equals(scores, data):
    width = data.draw(st.integers(0, scores.shape[1]))
    expected = [highest(row, width) for row in scores.tolist()]
    found = top(scores, width)
    assert found.shape == (len(scores), width)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        tensors = top(torch.from_numpy(scores).to(dtype), width)
        assert tensors.dtype == torch.int64
        assert tensors.tolist() == expected


def test_the_highest_of_many():
    scores = np.random.default_rng(0).standard_normal((50, 300)).round(1)  # with ties
    for width in (1, 7, 299, 300):
        assert top(scores, width).tolist() == [highest(row, width) for row in scores.tolist()]


def test_scores_are_left_as_they_were():
    scores = np.random.default_rng(0).standard_normal((5, 9))
    before = scores.copy()
    top(scores, 3)
    top(torch.from_numpy(scores), 3)
    assert (scores == before).all()


def noise_of(seed, shape, like):
    return gumbel(shape, key_from(rng_for(seed)), like)


def test_noise_is_gumbel_and_the_same_in_numpy_and_torch():
    plain = noise_of(0, (200, 100), np.zeros(1))
    assert scipy.stats.kstest(plain.ravel(), "gumbel_r").pvalue > 1e-4
    assert noise_of(0, (200, 100), torch.zeros(1, dtype=torch.float64)).tolist() == plain.tolist()
    single = noise_of(0, (200, 100), np.zeros(1, np.float32))
    assert single.dtype == np.float32
    assert single.tolist() == plain.astype(np.float32).tolist()
    tensors = noise_of(0, (200, 100), torch.zeros(1))
    assert tensors.dtype == torch.float32
    assert tensors.tolist() == single.tolist()
    assert (noise_of(1, (200, 100), np.zeros(1)) != plain).all()
    assert noise_of(0, (0, 4), np.zeros(1)).shape == (0, 4)


def test_noise_is_finite_even_where_chance_is_0(monkeypatch):
    class Zero:
        def __init__(self, bits):
            pass

        def standard_exponential(self, size):
            return np.zeros(size)

    key = key_from(rng_for(0))
    monkeypatch.setattr(np.random, "Generator", Zero)
    assert np.isfinite(gumbel((2, 2), key, np.zeros(1))).all()


def candidates(rows, slots, kind, seed):
    """Scores with many ties; some slots are empty, and some rows are empty altogether."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 1000, (rows, slots))
    ids[rng.random((rows, slots)) < 0.2] = -1
    ids[rng.random(rows) < 0.2] = -1
    scores = np.where(ids < 0, -np.inf, rng.integers(-3, 3, (rows, slots))).astype(kind)
    return Negatives(ids), scores, rng.integers(0, slots + 1, rows)


@pytest.mark.parametrize("in_torch", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@given(rows=st.integers(0, 5), slots=st.integers(1, 70), width=st.integers(1, 40), seed=st.integers(0, 99))
def test_it_is_take_after_pick(in_torch, kind, rows, slots, width, seed):
    drawn, scores, counts = candidates(rows, slots, kind, seed)
    values = scores * kind(2)
    if in_torch:
        drawn, scores, values = drawn.to("cpu"), torch.from_numpy(scores), torch.from_numpy(values)
    counts = np.minimum(counts, width)
    found = take_highest(drawn, values, counts, width, "pad", scores)
    wanted = take(drawn, *pick(values, scores > -np.inf, width), counts, width, "pad", scores)
    assert type(found.ids) is type(wanted.ids)
    assert found.ids.tolist() == wanted.ids.tolist()
    assert found.scores.tolist() == wanted.scores.tolist()
    assert found.scores.dtype == wanted.scores.dtype
    assert found.dropped == wanted.dropped
    assert found.log_q is None


def test_a_short_row_is_rejected_if_it_may_not_be():
    drawn, scores = Negatives(np.array([[4, -1, -1, -1]])), np.array([[1.0, -np.inf, -np.inf, -np.inf]])
    with pytest.raises(NaysayError, match="row 0 has 1 candidates left of the 2 requested"):
        take_highest(drawn, scores, np.array([2]), 2, "raise", scores)


def test_scores_that_are_not_in_rows_are_read_right():
    drawn = Negatives(np.arange(12).reshape(2, 6))
    scores = np.asfortranarray(np.array([[1.0, 5, 2, 4, 3, 0], [5, 4, 3, 2, 1, 0]]))
    found = take_highest(drawn, scores, np.array([2, 1]), 2, "pad", scores)
    assert found.ids.tolist() == [[1, 3], [6, -1]]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=5), st.integers(0, 2**31), st.booleans())
def test_what_is_taken_by_loops(rows, seed, tensors):
    """Every field of a slot goes with it; a slot that is not kept is empty throughout."""
    rng = np.random.default_rng(seed)
    b, n, w = len(rows), 5, 4
    good, counts = np.array([g for g, _ in rows], int), np.array([c for _, c in rows], int)
    width = int(counts.max(initial=0))
    drawn = ns.Negatives(
        rng.integers(0, 99, (b, n)),
        side=rng.integers(0, 3, (b, n)).astype(np.int8),
        source=rng.integers(0, 2, (b, n)).astype(np.int8),
        source_names=("one", "two"),
        weights=rng.random((b, n)),
        vectors=rng.random((b, n, 2)),
        parents=rng.integers(0, 99, (b, n, 2)),
        log_q=-rng.random((b, n)),
    )
    order = rng.permuted(np.tile(np.arange(n), (b, 1)), axis=1)[:, :w] if b else np.empty((0, w), int)
    kept, scores = np.arange(w) < good[:, None], rng.random((b, n)).astype(np.float32)
    given = (order, kept, counts, width, "pad", scores)
    if tensors:
        order, kept, scores = map(torch.from_numpy, (order, kept, scores))
        given = (order, kept, counts, width, "pad", scores)
        found = take(drawn.to("cpu"), *given)
        assert isinstance(found.ids, torch.Tensor)
        found, order = found.numpy(), order.numpy()
    else:
        found = take(drawn, *given)
    assert found.shape == (b, width)
    assert found.log_q is None
    assert found.source_names == ("one", "two")
    blank = {"ids": -1, "side": -1, "source": -1, "weights": 0, "vectors": [0, 0], "parents": [-1, -1], "scores": 0}
    assert [getattr(found, name).dtype for name in blank][1:3] == [np.int8, np.int8]
    missing = 0
    for row, slot in np.ndindex(b, width):
        there = slot < min(good[row], counts[row], w)
        missing += slot < counts[row] and not there
        for name, empty in blank.items():
            source = np.asarray(scores) if name == "scores" else getattr(drawn, name)
            expected = source[row, order[row, slot]].tolist() if there else empty
            assert getattr(found, name)[row, slot].tolist() == expected, name
    assert found.dropped == ({"exhausted": missing} if missing else {})


def test_a_short_row_may_be_rejected():
    drawn = ns.Negatives(np.array([[4, 5], [6, -1]]))
    order = np.array([[0, 1], [0, 1]])
    with pytest.raises(NaysayError, match=r"^row 1 has 1 candidates left of the 2 requested \(1 such row\)"):
        take(drawn, order, drawn.ids >= 0, np.array([2, 2]), 2, "raise")
