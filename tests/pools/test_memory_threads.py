"""Pools that learn, under threads: one thread changes the entries while another draws, and no draw sees half of it."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest
from in_threads import in_threads

import naysay as ns
from naysay._lock import Lock
from naysay.pools import Memory

ANCHORS, SIZE = 64, 512
QUERY = ns.Query(np.repeat(np.arange(ANCHORS), 16))


def raced(change, draw, rounds):
    """The answers of `rounds` draws, while another thread makes one change after another."""
    done, answers = threading.Event(), []

    def work():
        number = 0
        while not done.is_set():
            number += 1
            change(number)

    def draws():
        try:
            answers.extend(draw(step) for step in range(rounds))
        finally:
            done.set()

    in_threads(draws, work)
    return answers


def own_entries(negatives):
    return int((negatives.ids == QUERY.anchors[:, None]).sum())


@pytest.mark.parametrize("n", [4, None])
def test_a_push_during_a_draw_returns_no_excluded_entry(n):
    """All entries of a push are item a of anchor a, so a is never a negative of a. Half a push would say otherwise."""
    memory = Memory(SIZE)
    memory.push(np.zeros(SIZE, np.int64))

    def change(number):
        memory.push(np.full(SIZE, number % ANCHORS))

    answers = raced(change, lambda step: memory.draw(QUERY, n, rng=ns.rng_for(0, step)), 20)
    assert sum(map(own_entries, answers)) == 0


def test_vectors_belong_to_their_ids():
    memory = Memory(64)
    memory.push(np.zeros(64, np.int64), vectors=np.zeros((64, 32), np.float32))

    def change(number):
        memory.push(np.full(64, number), vectors=np.full((64, 32), number, np.float32))

    query = ns.Query(np.full(8, 1 << 40))
    for answer in raced(change, lambda step: memory.draw(query, 4, rng=ns.rng_for(0, step)), 50):
        filled = answer.ids >= 0
        assert (answer.vectors[filled] == answer.ids[filled][:, None]).all()


def test_a_state_is_of_one_moment_and_restores_at_once():
    memory = Memory(SIZE)
    states = []
    for number in range(2):
        memory.push(np.full(SIZE, number))
        states.append(memory.state())
    taken = raced(lambda number: memory.restore(states[number % 2]), lambda _: memory.state(), 50)
    assert all((state["ids"] == state["owners"]).all() and len(set(state["ids"].tolist())) == 1 for state in taken)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_has_a_free_lock_of_its_own(copied):
    memory = Memory(3)
    memory.push([1, 2])
    with memory._lock:
        other = copied(memory)
    answers = []
    with memory._lock:
        thread = threading.Thread(target=lambda: answers.append(other.draw(ns.Query([0]), 2, rng=ns.rng_for(0))))
        thread.start()
        thread.join(60)
    assert sorted(answers[0].ids[0].tolist()) == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_the_change_and_frees_the_lock():
    lock, entered, leave, state = Lock(), threading.Event(), threading.Event(), [0, 0]

    def change():
        with lock:
            state[0] = 1
            entered.set()
            leave.wait(60)
            state[1] = 1

    writer = threading.Thread(target=change)
    writer.start()
    entered.wait(60)
    threading.Timer(0.05, leave.set).start()
    child = os.fork()
    if child == 0:
        with lock:
            os._exit(0 if state == [1, 1] else 1)
    writer.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with lock:
        pass
