"""Rows split over threads: every row once, no thread waits for another, and settings from the environment."""

import os
import threading

import pytest

from naysay.errors import NaysayError
from naysay.kernels import threads
from naysay.kernels.threads import in_rows, set_threads

LARGE = 10**9  # steps enough to split over any number of threads


def parts(rows, steps, count):
    """The (start, stop) that a loop is called with."""
    set_threads(count)
    seen = []
    in_rows(lambda start, stop: seen.append((start, stop)), rows, steps)
    return sorted(seen)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [1, 2, 3, 10, 1001])
def test_the_parts_cover_all_rows_once(rows, count):
    found = parts(rows, LARGE, count)
    workers = min(rows, count)
    assert len(found) == (1 if count == 1 else workers * min(4, rows // workers))  # as many for each thread
    assert [row for start, stop in found for row in range(start, stop)] == list(range(rows))


def test_a_small_call_stays_with_the_caller():
    assert parts(1000, 100, 4) == [(0, 1000)]
    assert parts(0, 0, 4) == [(0, 0)]
    assert parts(0, LARGE, 4) == [(0, 0)]


@pytest.mark.parametrize("bad", [0, 3])
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
    caller, seen, done = threading.get_ident(), [], threading.Event()
    busy = threads._THREADS.executor().submit(done.wait, 60)  # the other thread has something else to do
    in_rows(lambda start, stop: seen.append((threading.get_ident() == caller, stop)), 80, LARGE)
    assert sorted(seen) == [(True, stop) for stop in range(10, 81, 10)]
    done.set()
    assert busy.result()


@pytest.mark.parametrize("count", [0, -2, 1.5, None, 1025])
def test_a_wrong_number_is_refused(count):
    before = threads.threads()
    with pytest.raises(NaysayError) as caught:
        set_threads(count)
    assert caught.value.parameter == "count"
    assert threads.threads() == before


@pytest.fixture
def of_a_new_process(monkeypatch):
    """The number of threads that a new process finds with this in its environment."""

    def found(value):
        monkeypatch.setenv("NAYSAY_THREADS", value)
        monkeypatch.setattr(threads, "_THREADS", threads._Threads())
        return threads.threads()

    return found


def test_the_environment_is_heard(of_a_new_process):
    assert of_a_new_process("3") == 3
    assert of_a_new_process("") == len(os.sched_getaffinity(0))
    of_a_new_process("3")
    set_threads(2)
    assert threads.threads() == 2
    for value in ("0", "-1", "many", "1.5", " 2"):
        with pytest.raises(NaysayError) as caught:
            of_a_new_process(value)
        assert caught.value.parameter == "NAYSAY_THREADS"


def test_a_system_that_cannot_say_or_fork(of_a_new_process, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "register_at_fork")
    assert of_a_new_process("") == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert of_a_new_process("") == 1
