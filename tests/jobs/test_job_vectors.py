"""Vectors of a job: rows by position, and parts that fit the budget."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from naysay.errors import NaysayError
from naysay.jobs import _prepare as job_vectors
from naysay.jobs._prepare import open_steady, within
from naysay.mining._task import Task
from naysay.mining.options import MiningOptions


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
    with pytest.raises(NaysayError, match="`--vectors` must be a file that does not change while it is read"):
        vectors.take(np.array([0, 4000]))
    (tmp_path / "v.npy").unlink()
    with pytest.raises(NaysayError, match=r"`--vectors` must be a file that stays where it is, got .*No such file"):
        vectors.rows(0, 1)


def test_rows_that_lie_close_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    array = np.arange(40_000, dtype=np.float64).reshape(-1, 2)
    np.save(tmp_path / "v.npy", array)
    monkeypatch.setattr(job_vectors, "WINDOW", 16 * 1000)
    sizes = []
    own = job_vectors.as_vectors

    def opened(*given):
        vectors = own(*given)
        return replace(vectors, read=lambda start, stop: (sizes.append(stop - start), vectors.read(start, stop))[1])

    monkeypatch.setattr(job_vectors, "as_vectors", opened)
    vectors = open_steady("--vectors", tmp_path / "v.npy")
    ids = np.arange(0, 20_000, 7)
    assert (vectors.take(ids) == array[ids]).all()
    assert max(sizes) <= 1000
    assert len(sizes) == 20


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
        | {"queries": vectors, "corpus": vectors, "lists": {}, "depth": 100, "width": 8, "options": MiningOptions()}
    )
    made, found = within(task, budget)
    assert found == rows
    assert found * 108 * 200 <= budget
    assert made.options.budget < budget
    assert made.slots * 100 < budget
