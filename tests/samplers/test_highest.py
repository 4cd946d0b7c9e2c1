"""Choice and answer in one pass, against the choice and the answer one after the other."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from naysay.errors import NaysayError
from naysay.samplers._top_k import pick, take, take_highest
from naysay.types import Negatives


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


def test_a_short_row_is_refused_if_it_may_not_be():
    drawn, scores = Negatives(np.array([[4, -1, -1, -1]])), np.array([[1.0, -np.inf, -np.inf, -np.inf]])
    with pytest.raises(NaysayError, match="row 0 has 1 candidates left of the 2 asked for"):
        take_highest(drawn, scores, np.array([2]), 2, "raise", scores)


def test_scores_that_are_not_in_rows_are_read_right():
    drawn = Negatives(np.arange(12).reshape(2, 6))
    scores = np.asfortranarray(np.array([[1.0, 5, 2, 4, 3, 0], [5, 4, 3, 2, 1, 0]]))
    found = take_highest(drawn, scores, np.array([2, 1]), 2, "pad", scores)
    assert found.ids.tolist() == [[1, 3], [6, -1]]
