"""Samplers that learn, under threads: no draw sees half of a change, and none is lost or taken for another."""

import contextlib
import threading

import numpy as np
from in_threads import in_threads

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import AdaptiveOversampling, Bank, Dynamic, Judged

N_ITEMS, WIDTH = 400, 64
KNOWN = ns.Positives.from_pairs(np.arange(8), np.arange(8), n_items=N_ITEMS)
POOL = ns.pools.Everything(KNOWN)
QUERY = ns.Query(np.arange(8), positives=np.arange(8))


def test_a_bank_gives_whole_vectors_and_counts_what_was_unseen():
    """Everything is observed at once, in one direction or another, and forgotten at once: half of that is wrong."""
    bank = Bank(ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=9)), 9, momentum=0.0)
    query, everything = ns.Query([0]), ns.Query(np.zeros(9, int), positives=np.arange(9))
    empty, directions = bank.state(), np.repeat(np.eye(4, dtype=np.float32)[:, None], 9, axis=1)

    def change():
        for step in range(400):
            bank.observe(everything, None, vectors=directions[step % 4])
            bank.restore(empty)

    def sample():
        for step in range(200):
            drawn = bank.sample(query, 4, rng=ns.rng_for(0, step))
            filled = drawn.ids >= 0
            assert filled.all() or not filled.any()
            assert drawn.vectors[filled].shape in ((4, 4), (0, 4), (0, 0))
            assert len(np.unique(drawn.vectors[filled], axis=0)) <= 1

    def save():
        for _ in range(200):
            state = bank.state()
            assert state["seen"].all() == (state["vectors"].shape == (9, 4))

    in_threads(change, sample, save)


def test_no_draw_is_lost_and_ranks_fit_the_anchors():
    """Ranks of 3 and of 5 factors take turns: a draw uses those that its vectors fit, or says that they do not."""
    items = np.random.default_rng(0).standard_normal((N_ITEMS, 5))
    sampler = AdaptiveOversampling(KNOWN, items, lambda anchors: items[anchors], scale=3.0)

    def sample():
        for step in range(100):
            sampler.sample(QUERY, 2, rng=ns.rng_for(0, step))

    in_threads(sample, sample, sample)
    assert sampler.state()["draws"] == 3 * 100 * len(QUERY) * 2

    def update():
        for step in range(80):
            sampler.update(items[:, : 5 - 2 * (step % 2)])

    def sample_changing():
        for step in range(80):
            with contextlib.suppress(NaysayError):  # not an IndexError, if ranks change in the middle
                assert (sampler.sample(QUERY, 4, rng=ns.rng_for(0, step)).ids >= 0).all()

    in_threads(update, sample_changing, sample_changing)


class Remembers:
    """A detector that keeps the candidates it was taught with."""

    learns = True

    def __init__(self):
        self.seen = []

    def suspicion(self, query, negatives):
        return (negatives.ids % 2 == 0) * 1.0

    def observe(self, query, negatives, *, positive_scores=None, vectors=None):
        self.seen.append((query.step, negatives.shape[1], set(negatives.ids[0].tolist())))


def test_each_thread_observes_the_candidates_of_its_own_draw():
    detector = Remembers()
    table = np.random.default_rng(0).standard_normal((8, N_ITEMS))
    judged = Judged(Dynamic(POOL, lambda anchors, ids: table[anchors[:, None], ids], 64), {"even": detector})

    def work(worker):
        def steps():
            for step in range(25):
                query = ns.Query(np.arange(8), positives=np.arange(8), step=100 * worker + step)
                drawn = judged.sample(query, 4, rng=ns.rng_for(worker, step))
                judged.observe(query, drawn)

        return steps

    in_threads(*(work(worker) for worker in range(4)))
    assert len(detector.seen) == 4 * 25
    assert {width for _, width, _ in detector.seen} == {8}  # twice as many candidates as slots: before the policy
    for step, _, ids in detector.seen:
        alone = judged.sampler.sample(ns.Query(np.arange(8), step=step), 8, rng=ns.rng_for(step // 100, step % 100))
        assert ids == set(alone.ids[0].tolist())


def test_negatives_of_another_thread_are_recognised():
    judged = Judged(ns.samplers.Static(POOL), {"even": Remembers()})
    answers = []
    thread = threading.Thread(target=lambda: answers.append(judged.sample(QUERY, 4, rng=ns.rng_for(0))))
    thread.start()
    thread.join()
    judged.observe(QUERY, answers[0])
    assert judged.detector.detectors["even"].seen[0][1] == 8
