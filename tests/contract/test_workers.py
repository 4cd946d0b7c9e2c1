"""Draws in the processes of a DataLoader, forked and spawned, and in threads, are those of the main process."""

import pickle
import threading

import numpy as np
import pytest
import torch

import naysay as ns

ROWS, BATCH, SLOTS = 4000, 2000, 20
KNOWN = ns.Positives.from_pairs(
    np.random.default_rng(0).integers(0, 100, 2000), np.random.default_rng(1).integers(0, 300, 2000), 100, 300
)
TRIPLES = np.random.default_rng(2).integers(0, [90, 4, 90], (1000, 3))


class Rows(torch.utils.data.Dataset):
    """Numbers of rows. At module level, like `Collate`, so that a spawned process can unpickle it."""

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return index


class Collate:
    """Negatives of a batch from three pools, by the batch's own step, with two threads."""

    def __init__(self):
        self.pools = [
            ns.pools.Everything(KNOWN),
            ns.pools.Everything(KNOWN, ns.pools.popularity(KNOWN), distinct=False),
            ns.pools.Corruption(TRIPLES, choice="bernoulli"),
        ]

    def __call__(self, batch):
        ns.set_threads(2)
        rows, step, found = np.array(batch), batch[0] // BATCH, [torch.tensor(batch)]
        for place, pool in enumerate(self.pools):
            anchors = TRIPLES[rows % 1000] if place == 2 else rows % 100
            got = pool.draw(ns.Query(anchors), SLOTS, rng=ns.rng_for(0, step)).to("cpu")
            found += [got.ids, got.log_q.clone()]
        return found


# A fork from a process with threads warns since Python 3.12; that it works is what is shown.
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_forked_and_spawned_workers_draw_what_the_main_process_draws(context):
    collate = Collate()
    collate(list(range(BATCH)))  # the threads of this process are in use before it forks
    loader = torch.utils.data.DataLoader(
        Rows(), BATCH, num_workers=1, collate_fn=collate, multiprocessing_context=context, timeout=120
    )
    batches = list(loader)
    assert len(batches) == 2
    for batch in batches:
        for found, wanted in zip(batch, collate(batch[0].tolist()), strict=True):
            assert torch.equal(found, wanted)


def test_several_threads_at_once_draw_what_one_draws():
    collate = Collate()
    batches = [list(range(start, start + BATCH)) for start in (0, BATCH, 0, BATCH)]
    wanted = [collate(batch) for batch in batches]
    found, start = [None] * len(batches), threading.Barrier(len(batches))

    def work(place):
        start.wait(60)
        found[place] = collate(batches[place])

    running = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(len(batches))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    for one, other in zip(found, wanted, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_pool_that_was_pickled_draws_the_same():
    for pool in Collate().pools:
        query = ns.Query(TRIPLES[:8] if isinstance(pool, ns.pools.Corruption) else np.arange(8))
        again = pickle.loads(pickle.dumps(pool))
        assert (pool.draw(query, 5, rng=ns.rng_for(0)).ids == again.draw(query, 5, rng=ns.rng_for(0)).ids).all()
