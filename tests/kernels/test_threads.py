"""Our own threads: the same answer for any number of them, in threads of others, and after a fork."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import naysay as ns
from naysay.errors import NaysayError
from naysay.kernels import threads
from naysay.kernels.threads import in_rows, set_threads
from naysay.pools._small_draws import use_compiled_loops

LARGE = 10**9  # steps enough to split over any number of threads


@pytest.fixture(autouse=True)
def _restored():
    before = threads.threads()
    yield
    set_threads(before)


def parts(rows, steps, count):
    """The (start, stop) that a loop is called with."""
    set_threads(count)
    seen = []
    in_rows(lambda start, stop: seen.append((start, stop)), rows, steps)
    return sorted(seen)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("rows", [1, 2, 3, 10, 1001])
def test_the_parts_cover_all_rows_once(rows, count):
    found = parts(rows, LARGE, count)
    assert len(found) == (1 if count == 1 else min(rows, 4 * count))
    assert [row for start, stop in found for row in range(start, stop)] == list(range(rows))


def test_a_small_call_stays_with_the_caller():
    assert parts(1000, 100, 4) == [(0, 1000)]
    assert parts(0, 0, 4) == [(0, 0)]
    assert parts(0, LARGE, 4) == [(0, 0)]


@pytest.mark.parametrize("weights", [None, np.arange(1, 3001)])
@pytest.mark.parametrize("distinct", [True, False])
def test_draws_do_not_depend_on_the_number(weights, distinct):
    rng = np.random.default_rng(0)
    known = ns.Positives.from_pairs(rng.integers(0, 500, 20_000), rng.integers(0, 3000, 20_000), 500, 3000)
    pool = ns.pools.Everything(known, weights, distinct=distinct)
    query = ns.Query(rng.integers(0, 500, 3000))
    use_compiled_loops()
    drawn = []
    for count in (1, 2, 4):
        set_threads(count)
        drawn.append(pool.draw(query, 20, rng=ns.rng_for(0)))
    for other in drawn[1:]:
        assert np.array_equal(drawn[0].ids, other.ids)
        assert np.array_equal(drawn[0].log_q, other.log_q)


@pytest.mark.parametrize("bad", [0, 1, 3])
def test_an_exception_reaches_the_caller(bad):
    set_threads(4)

    def loop(start, stop):
        if start == bad * 25:
            message = f"row {start}"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match=f"row {bad * 25}"):
        in_rows(loop, 100, LARGE)
    assert parts(4, LARGE, 4) == [(0, 1), (1, 2), (2, 3), (3, 4)]  # and the threads live on


def test_a_thread_that_is_held_up_holds_nobody_up():
    """Whoever is done takes the next part: a slow one does less, and one that never comes does nothing."""
    set_threads(2)
    begun, caller, seen = threading.Event(), threading.get_ident(), []

    def loop(start, stop):
        seen.append((threading.get_ident() == caller, start, stop))
        if threading.get_ident() != caller:
            begun.set()
            done.wait(60)

    done = threading.Event()
    busy = threads._THREADS.executor().submit(done.wait, 60)  # the other thread has something else to do
    in_rows(loop, 80, LARGE)
    assert [place for *_, place in sorted(seen)] == list(range(10, 81, 10))
    assert all(here for here, *_ in seen)
    assert not begun.is_set()
    done.set()
    assert busy.result()


@pytest.mark.parametrize(
    ("count", "rule"),
    [
        (0, "at least 1, got 0"),
        (-2, "at least 1, got -2"),
        (1.5, "a whole number, got 1.5"),
        (None, "a whole number, got None"),
    ],
)
def test_set_threads_rejects(count, rule):
    before = threads.threads()
    with pytest.raises(NaysayError) as caught:
        set_threads(count)
    assert str(caught.value) == f"set_threads: `count` must be {rule}."
    assert threads.threads() == before


def run(code, **environment):
    inherited = {name: value for name, value in os.environ.items() if name != "NAYSAY_THREADS"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


COUNT = "from naysay.kernels.threads import threads; print(threads())"


def test_the_environment_is_heard():
    assert run(COUNT, NAYSAY_THREADS="3").stdout.strip() == "3"
    assert run(COUNT).stdout.strip() == str(len(os.sched_getaffinity(0)))
    assert run(COUNT, NAYSAY_THREADS="").stdout.strip() == str(len(os.sched_getaffinity(0)))
    chosen = "import naysay; naysay.set_threads(2); " + COUNT
    assert run(chosen, NAYSAY_THREADS="3").stdout.strip() == "2"


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", " 2"])
def test_a_bad_environment_is_rejected(value):
    finished = run(COUNT, NAYSAY_THREADS=value)
    assert finished.returncode == 1
    rule = f"`NAYSAY_THREADS` must be a whole number from 1 to 1024, got {value!r}."
    assert finished.stderr.strip().endswith(rule)


def test_a_system_that_cannot_say_or_fork(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "register_at_fork")
    monkeypatch.delenv("NAYSAY_THREADS", raising=False)
    monkeypatch.setattr(threads, "_THREADS", threads._Threads())
    assert threads.threads() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.setattr(threads, "_THREADS", threads._Threads())
    assert threads.threads() == 1


def drawing():
    known = ns.Positives.from_pairs([0, 1, 2], [1, 2, 0], n_items=1000)
    pool, query = ns.pools.Everything(known), ns.Query(np.arange(6000) % 3)
    return lambda seed: pool.draw(query, 20, rng=ns.rng_for(seed)).ids


def test_from_several_python_threads_at_once():
    set_threads(4)
    draw = drawing()
    expected = [draw(seed) for seed in range(8)]
    threads._THREADS.pool = None  # so that they race for the first pool as well
    with ThreadPoolExecutor(8) as callers:
        found = list(callers.map(draw, [*range(8)] * 4))
    for seed, ids in zip([*range(8)] * 4, found, strict=True):
        assert np.array_equal(ids, expected[seed])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork():
    set_threads(4)
    draw = drawing()
    expected = draw(0)  # the parent's threads are up: the child has none of them
    assert threads._THREADS.pool is not None
    child = os.fork()
    if child == 0:
        try:
            fine = threads._THREADS.pool is None and np.array_equal(draw(0), expected)
            fine = fine and threads._THREADS.pool is not None
        except BaseException:
            fine = False
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert np.array_equal(draw(0), expected)
