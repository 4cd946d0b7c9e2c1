"""Draws in DataLoader workers, forked and spawned, and in many threads at once, are those of the main process."""

import pickle
import threading

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.kernels import corrupt, hops, lists, pagerank, uniform, weighted
from naysay.kernels.threads import _THREADS, threads
from naysay.pools import Corruption, Everything, InBatch, KHop, Local, Memory, PageRank, Walks, popularity
from naysay.pools._small_draws import use_compiled_loops

ROWS, BATCH, SLOTS = 12_000, 4000, 20  # a batch is large enough to be split over threads in the worker too


def world():
    rng = np.random.default_rng(0)
    positives = ns.Positives.from_pairs(rng.integers(0, 300, 6000), rng.integers(0, 700, 6000), 300, 700)
    triples = rng.integers(0, [200, 4, 200], (3000, 3))
    return positives, triples


def pools():
    positives, triples = world()
    return {
        "uniform": Everything(positives),
        "weighted": Everything(positives, popularity(positives), distinct=False),
        "corruption": Corruption(triples, choice="bernoulli"),
    }


class Rows(torch.utils.data.Dataset):
    """Numbers of rows. At module level, like `Collate`, so that a spawned worker can unpickle it."""

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return index


class Collate:
    """Negatives for a batch of rows from every pool, by the batch's own step.

    In a spawned worker it asks for two threads. A forked one has the number from its parent, and must notice by
    itself that the parent's threads are not there.
    """

    def __init__(self, context=None):
        self.pools = pools()
        self.triples = world()[1]
        self.context = context

    def __call__(self, batch):
        if self.context == "spawn":
            ns.set_threads(2)
        rows, step = np.array(batch), batch[0] // BATCH
        out = {"rows": torch.tensor(batch)}
        for name, pool in self.pools.items():
            anchors = self.triples[rows % 3000] if name == "corruption" else rows % 300
            got = pool.draw(ns.Query(anchors), SLOTS, rng=ns.rng_for(0, step))
            out[name] = got.to("cpu").ids
            out[f"{name} log_q"] = torch.as_tensor(np.array(got.log_q))
        return out


@pytest.fixture
def two_threads():
    """Two threads in this process, and its pool of threads in use, as in a trainer that draws before it loads."""
    before = threads()
    ns.set_threads(2)
    Collate()(list(range(BATCH)))
    assert _THREADS.pool is not None
    yield
    ns.set_threads(before)


# Since Python 3.12 a fork from a process with threads warns; that it works here is what is shown.
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.usefixtures("two_threads")
def test_workers_draw_what_the_main_process_draws(context):
    collate = Collate(context)
    loader = torch.utils.data.DataLoader(
        Rows(),
        batch_size=BATCH,
        num_workers=2 if context == "fork" else 1,
        collate_fn=collate,
        multiprocessing_context=context,
        timeout=120,
    )
    batches = list(loader)
    assert len(batches) == 3
    for batch in batches:
        expected = collate(batch["rows"].tolist())
        assert batch.keys() == expected.keys()
        for name, value in expected.items():
            assert torch.equal(batch[name], value), name


def test_a_pool_that_was_pickled_and_any_form_of_ids_need_no_new_compilation():
    """Pickles forget that arrays were read-only, and ids come in slices; each form would cost seconds of compiling."""
    rows = np.arange(8)
    plain, sliced, locked = rows % 300, np.repeat(rows % 300, 2)[::2], rows % 300
    locked.flags.writeable = False
    triples = world()[1][:8]
    use_compiled_loops()
    loops = {"uniform": uniform.draw, "weighted": weighted.draw, "corruption": corrupt.draw}
    for name, pool in pools().items():
        forms = (triples, np.asfortranarray(triples)) if name == "corruption" else (plain, sliced, locked)
        expected = pool.draw(ns.Query(forms[0]), 3, rng=ns.rng_for(0)).ids
        known = len(loops[name].signatures)
        sent = pickle.loads(pickle.dumps(pool))
        for form in forms:
            for n in (3, np.full(8, 3), np.full(16, 3)[::2]):
                for one in (pool, sent):
                    assert (one.draw(ns.Query(form), n, rng=ns.rng_for(0)).ids == expected).all()
        assert len(loops[name].signatures) == known, name


def over_nodes(name):
    """The other pools, on the nodes of one graph, and the compiled loops that each draws with."""
    rng = np.random.default_rng(1)
    graph = ns.Positives.from_edges(*rng.integers(0, 60, (2, 150)), 60)
    nodes = np.arange(60)
    memory = Memory(50, graph)
    memory.push(nodes[:40])
    return {
        "local": lambda: (Local(rng.integers(0, 60, (60, 9)), graph), (lists.draw_places,)),
        "positives": lambda: (Local(graph), (lists.draw_places,)),
        "batch": lambda: (InBatch(graph), (lists.draw_entries, lists.all_entries)),
        "bare batch": lambda: (InBatch(), (lists.draw_entries, lists.all_entries)),
        "memory": lambda: (memory, (lists.draw_entries, lists.all_entries)),
        "hops": lambda: (KHop(graph), (hops.draw_at_distance, hops.candidates)),
        "walks": lambda: (Walks(graph), ()),
        "pagerank": lambda: (PageRank(graph, (0.1, 0.9)), (pagerank.draw_ranks, pagerank.pagerank)),
    }[name]()


@pytest.mark.parametrize("name", ["local", "positives", "batch", "bare batch", "memory", "hops", "walks", "pagerank"])
def test_every_other_pool_that_was_pickled_needs_no_new_compilation(name):
    pool, loops = over_nodes(name)
    sent = pickle.loads(pickle.dumps(pool))
    query = ns.Query(np.arange(8), positives=np.arange(8)[::-1].copy())

    def answers(one):
        yield one.draw(query, 3, rng=ns.rng_for(0)).ids
        if name in ("batch", "bare batch", "memory"):
            yield one.draw(query, rng=ns.rng_for(0)).ids
        if name in ("hops", "pagerank"):
            yield one.candidates(0)
        if name == "walks":
            yield one.endpoints([0, 1], 3, rng=ns.rng_for(0))

    expected = list(answers(pool))
    known = [len(loop.signatures) for loop in loops]
    assert all(np.array_equal(*pair) for pair in zip(answers(sent), expected, strict=True))
    assert [len(loop.signatures) for loop in loops] == known


@pytest.mark.usefixtures("two_threads")
def test_eight_threads_at_once_draw_what_one_draws():
    """Each thread draws from all pools, in parts over the shared pool of threads; nothing waits for ever."""
    collate = Collate()
    steps = [list(range(step * BATCH % ROWS, step * BATCH % ROWS + BATCH)) for step in range(8)]
    expected = [collate(batch) for batch in steps]
    answers = [None] * 8
    start = threading.Barrier(8)

    def work(place):
        start.wait()
        for _ in range(3):
            answers[place] = collate(steps[place])

    running = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in running)
    for got, wanted in zip(answers, expected, strict=True):
        for name, value in wanted.items():
            assert torch.equal(got[name], value), name


def test_the_first_draws_may_come_from_many_threads():
    """The pool of threads is made by whoever needs it first, also by several at once."""
    before = threads()
    pool = pools()["uniform"]
    query = ns.Query(np.arange(6000) % 300)
    expected = pool.draw(query, 20, rng=ns.rng_for(0)).ids
    try:
        for _ in range(5):
            ns.set_threads(3)
            answers = []
            start = threading.Barrier(8)

            def work(answers=answers, start=start):
                start.wait()
                answers.append(pool.draw(query, 20, rng=ns.rng_for(0)).ids)

            running = [threading.Thread(target=work, daemon=True) for _ in range(8)]
            for thread in running:
                thread.start()
            for thread in running:
                thread.join(timeout=120)
            assert len(answers) == 8
            assert all((got == expected).all() for got in answers)
    finally:
        ns.set_threads(before)
