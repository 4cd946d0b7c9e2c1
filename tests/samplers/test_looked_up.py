"""Products with looked-up rows and steps added to them, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import Factors, _looked_up


@given(
    rows=st.integers(0, 6), n=st.integers(0, 5), size=st.integers(1, 7), d=st.integers(1, 9), seed=st.integers(0, 99)
)
def test_products_sums_and_steps_are_those_of_plain_loops(rows, n, size, d, seed):
    rng = np.random.default_rng(seed)
    table, left, weights = (rng.standard_normal(shape) for shape in ((size, d), (rows, d), (rows, n)))
    ids = rng.integers(0, size, (rows, n))
    one, two = table.copy(), table.copy()
    dots, sums, moved = np.zeros((rows, n)), np.zeros((rows, d)), table.copy()
    for b in range(rows):
        for j in range(n):
            dots[b, j] = sum(left[b, i] * table[ids[b, j], i] for i in range(d))
            sums[b] += weights[b, j] * table[ids[b, j]]
            moved[ids[b, j]] += 0.3 * weights[b, j] * left[b]
    _looked_up.add(one, ids, 0.3, weights, left)
    _looked_up.add(two, ids, 0.3, weights[:, :, None] * left[:, None])
    for found, wanted in (
        (_looked_up.dots(left, table, ids), dots),
        (_looked_up.sums(weights, table, ids), sums),
        (one, moved),
        (two, moved),
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_table_of_one_dimension_takes_numbers():
    table = np.zeros(3)
    _looked_up.add(table, np.array([[0, 2], [2, 2]]), 0.5, np.ones((2, 2)))
    assert table.tolist() == [0.5, 0.0, 1.5]


def test_ids_outside_the_table_are_an_error():
    with pytest.raises(NaysayError, match=r"`ids` must be between 0 and 4 \(5 rows\), got 7"):
        Factors(3, 5).logits(np.array([0]), np.array([[1, 7]]))


def test_a_step_after_a_restore_of_columns_is_kept():
    """A state in column order must not be moved in a copy."""
    factors, other = Factors(4, 6, 3), Factors(4, 6, 3, seed=1)
    other.restore({name: np.asfortranarray(table) for name, table in factors.state().items()})
    for one in (factors, other):
        one.ascend(np.array([0, 1]), np.array([[2, 3], [3, 3]]), np.ones((2, 2)))
    for name, table in factors.state().items():
        assert (other.state()[name] == table).all()


def test_the_number_of_threads_changes_nothing():
    rng = np.random.default_rng(0)
    table, left, ids = rng.standard_normal((50, 16)), rng.standard_normal((900, 16)), rng.integers(0, 50, (900, 40))
    found = []
    for threads in (1, 4):
        ns.set_threads(threads)
        found.append(_looked_up.dots(left, table, ids))
    assert (found[0] == found[1]).all()
