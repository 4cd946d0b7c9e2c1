"""Parts: the gaps between finished ones, checksums, and which anchors are sampled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay.errors import NaysayError
from naysay.jobs._folder import opened
from naysay.jobs._parts import Part, above, gaps, read_part, sampled_rows, write_part


@given(st.lists(st.integers(0, 20), unique=True), st.integers(1, 30), st.integers(1, 9))
def test_gaps_as_a_loop(edges, n, size):
    edges = sorted(edge for edge in edges if edge <= n)
    done = [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=False)]
    found = gaps(done, n, size)
    covered = [row for start, stop in done for row in range(start, stop)]
    mined = [row for start, stop in found for row in range(start, stop)]
    assert sorted(covered + mined) == list(range(n))
    assert all(0 < stop - start <= size for start, stop in found)


def test_a_damaged_part_is_noticed(tmp_path):
    arrays = {"ids": np.arange(6).reshape(2, 3), "empty": np.zeros((0, 4), np.float32), "text\n": np.ones(1, np.int8)}
    name = "part-000000000004-000000000006"
    with opened(tmp_path / "job", resume=False, fresh=False) as folder:
        folder.begin({}, resume=False)
        write_part(folder, Part(4, 6, arrays, {"many": 3}))
        part, path = read_part(folder, name), folder.path / name
        data = path.read_bytes()
        for place in range(0, len(data), 7):
            for other in (data[:place] + bytes([data[place] ^ 32]) + data[place + 1 :], data[:place]):
                path.write_bytes(other)
                with pytest.raises(NaysayError, match=r"is damaged\. Run again with --resume: it is mined again\.$"):
                    read_part(folder, name)
    assert (part.start, part.stop, part.totals) == (4, 6, {"many": 3})
    assert {name: (found.dtype, found.tolist()) for name, found in part.arrays.items()} == {
        name: (array.dtype, array.tolist()) for name, array in arrays.items()
    }


def test_above_counts_pairs():
    assert above(np.array([0.5, 0.1], np.float32), np.array([0.0, 0.1, 0.5, 0.6], np.float32)) == 2 + 1
    assert above(np.empty(0, np.float32), np.zeros(3, np.float32)) == 0


@pytest.mark.parametrize(
    ("n", "width", "most"), [(0, 100, 0), (1, 100, 1), (30, 100, 30), (9000, 100, 2000), (9000, 4096, 512)]
)
def test_sampled_rows_are_spread(n, width, most):
    rows = sampled_rows(n, width)
    assert len(rows) == most
    assert (np.diff(rows) > 0).all()
    assert n == 0 or (rows[0], rows[-1]) == (0, n - 1) or n == 1
