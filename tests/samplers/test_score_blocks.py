"""in_blocks: the same scores, fewer rows at a time."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from naysay.samplers import in_blocks

TABLE = np.random.default_rng(0).standard_normal((5, 9))


@given(st.integers(0, 12), st.integers(1, 7), st.integers(1, 60), st.booleans())
def test_the_same_scores_from_no_more_than_were_allowed(rows, n, candidates, tensors):
    rng = np.random.default_rng(rows)
    anchors, ids = rng.integers(0, 5, rows), rng.integers(0, 9, (rows, n))
    expected = TABLE[anchors[:, None], ids]
    seen = []

    def score(anchors, ids):
        seen.append(ids.shape)
        assert len(anchors) == len(ids)
        return (torch.from_numpy(TABLE) if tensors else TABLE)[anchors[:, None], ids]

    given = (torch.from_numpy(anchors), torch.from_numpy(ids)) if tensors else (anchors, ids)
    found = in_blocks(score, candidates)(*given)
    assert isinstance(found, torch.Tensor if tensors else np.ndarray)
    assert found.tolist() == expected.tolist()
    most = max(1, candidates // n)
    assert [size for size, _ in seen] == ([most] * (rows // most) + [rows % most] * (rows % most > 0) or [0])
