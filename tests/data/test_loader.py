"""The loader: the same batches for any workers, in any process, after a restart; each pair once over all ranks."""

import multiprocessing
import pickle
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch

import naysay as ns

RNG = np.random.default_rng(0)
KNOWN = ns.Positives.from_pairs(RNG.integers(0, 40, 300), RNG.integers(0, 90, 300), 40, 90)
SAMPLER = ns.samplers.Static(ns.pools.Everything(KNOWN))


def load(batch_size=32, known=KNOWN, sampler=SAMPLER, **options):
    return ns.data.loader(known, sampler, batch_size, **({"k": 3} | options))


def content(batches):
    """Everything in the batches that a training step uses, as plain lists."""
    return [
        (one.query.step, one.query.anchors.tolist(), one.query.positives.tolist(), one.negatives.ids.tolist())
        for one in batches
    ]


def pairs(batches):
    return [pair for _, anchors, items, _ in content(batches) for pair in zip(anchors, items, strict=True)]


ALL = sorted(zip(*(part.tolist() for part in KNOWN.pairs()), strict=True))
ONE = content(load())


# ---- what a batch is ------------------------------------------------------------------------------------


def test_an_epoch_has_each_pair_once_and_its_negatives_are_those_of_the_sampler():
    loader = load(seed=5, ranks=2, rank=1)
    for batch in loader:
        again = SAMPLER.sample(batch.query, 3, rng=ns.rng_for(5, batch.query.step, 1))
        assert torch.equal(batch.negatives.ids, again.ids)
        assert not KNOWN.contains(batch.query.anchors, batch.negatives.ids).any()
    assert sorted(pairs(load())) == ALL
    assert isinstance(batch.query.anchors, torch.Tensor)


def test_epochs_and_seeds_have_their_own_order_and_draws():
    loader = load()
    first, second, third = content(loader), content(loader), content(load(seed=1))
    assert first == ONE
    assert sorted(pair[:3] for pair in first) != sorted(pair[:3] for pair in second)
    assert [batch[1:] for batch in first] != [batch[1:] for batch in third]
    assert [batch[0] for batch in second] == [batch[0] + len(loader) for batch in first]
    loader.set_epoch(0)
    assert (loader.epoch, content(loader)) == (0, ONE)


def test_ignored_pairs_are_not_trained_on():
    ignored = KNOWN.with_ignored([0, 1], [7, 8])
    assert sorted(pairs(load(known=ignored))) == ALL


@pytest.mark.parametrize("dated", [False, True])
def test_negatives_are_what_was_not_known_at_the_time_of_the_pair(dated):
    """In plain loops: each pair has its first time, and what its anchor gets later may be a negative."""
    rng = np.random.default_rng(3)
    users, items, days = rng.integers(0, 6, 80), rng.integers(0, 12, 80), rng.integers(0, 9, 80)
    known = ns.Positives.from_pairs(users, items, 6, 12)
    rows = (users, items, np.datetime64("2024-01-01") + days if dated else days)
    first = {}
    for user, item, day in zip(users.tolist(), items.tolist(), days.tolist(), strict=True):
        first[user, item] = min(day, first.get((user, item), day))
    sampler = ns.samplers.Static(ns.pools.Everything(known, times=rows))
    later = 0
    for batch in load(16, known, sampler, k=4, times=rows):
        asked = batch.to("cpu").query
        assert isinstance(asked.times, np.ndarray) is dated
        at = (asked.times - np.datetime64("2024-01-01")) // np.timedelta64(1, "D") if dated else asked.times
        rows_of_batch = zip(asked.anchors.tolist(), asked.positives.tolist(), at.tolist(), strict=True)
        for (user, item, day), drawn in zip(rows_of_batch, batch.negatives.ids.tolist(), strict=True):
            assert day == first[user, item]
            found = [other for other in drawn if other >= 0]
            assert all(first.get((user, other), 99) > day for other in found)
            later += sum((user, other) in first for other in found)
    assert later > 0


def test_triples_are_anchors_of_three():
    triples = ns.Triples([[0, 0, 1], [2, 1, 3], [1, 1, 0]])
    sampler = ns.samplers.Static(ns.pools.Corruption(triples))
    batches = list(load(2, triples, sampler, shuffle=False))
    assert torch.cat([batch.query.anchors for batch in batches]).tolist() == triples.array.tolist()
    assert [batch.negatives.shape for batch in batches] == [(2, 3), (1, 3)]


def test_times_need_a_pool_that_excludes_by_time():
    with pytest.raises(
        ns.NaysayError, match=r"`query.times` must be left out here, got times\. Only Everything\(posit"
    ):
        list(load(times=(*KNOWN.pairs(), np.arange(len(KNOWN)))))


def test_no_global_generator_is_moved():
    before = torch.get_rng_state()
    list(load())
    assert torch.equal(before, torch.get_rng_state())


# ---- workers, restarts, ranks ---------------------------------------------------------------------------


@pytest.fixture
def start_method():
    """A function that chooses how processes start, until the end of the test."""
    before = multiprocessing.get_start_method(allow_none=True)
    yield lambda name: multiprocessing.set_start_method(name, force=True)
    multiprocessing.set_start_method(before, force=True)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.parametrize(("workers", "context"), [(2, "fork"), (1, "spawn")])
def test_workers_give_the_same_batches(workers, context, tmp_path, start_method):
    """Spawned ones also with known pairs that they map, and none gets a copy of the pairs to train on."""
    start_method(context)
    known = KNOWN if context == "fork" else KNOWN.shared(tmp_path / "known")
    loader = load(known=known, sampler=ns.samplers.Static(ns.pools.Everything(known)), workers=workers)
    assert content(loader) == ONE
    if context == "spawn":
        assert len(ForkingPickler.dumps(loader._draws)) < 2000


def test_a_loop_that_was_left_goes_on_where_it_was():
    loader = load()
    begun = []
    for batch in loader:
        begun.append(batch)
        if len(begun) == 4:
            break
    assert content([*begun, *loader]) == ONE
    assert (loader.step, loader.epoch) == (len(ONE), 1)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_state_saved_in_mid_epoch_is_resumed_after_its_batch():
    """Workers are ahead of the loop; the state counts what the loop has had."""
    loader = load(workers=2, prefetch=3)
    seen = []
    for batch in loader:
        seen.append(batch)
        if batch.query.step == 3:
            saved = pickle.loads(pickle.dumps(loader.state()))
            break
    again = load()
    again.restore(saved)
    assert again.step == 4
    assert content([*seen, *again]) == ONE


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_share_each_epoch_and_have_equally_many_steps(ranks):
    loaders = [load(30, rank=rank, ranks=ranks) for rank in range(ranks)]
    epochs = [list(loader) for loader in loaders]
    assert {len(batches) for batches in epochs} == {len(loaders[0])}
    assert min(len(batch) for batches in epochs for batch in batches) > 0
    assert loaders[0].left_out == 0
    assert sorted(pairs(batch for batches in epochs for batch in batches)) == ALL
    assert not torch.equal(epochs[0][0].negatives.ids, epochs[1][0].negatives.ids)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_have_the_pairs_of_one_process_with_a_larger_batch(ranks):
    together = zip(*(list(load(30, rank=rank, ranks=ranks)) for rank in range(ranks)), strict=True)
    assert [pairs(step) for step in together] == [pairs([step]) for step in load(30 * ranks)]


@pytest.mark.parametrize("n", [3, 4, 8, 9, 19])
def test_fewer_pairs_than_ranks_at_the_end_are_left_out(n):
    known = ns.Positives.from_pairs(np.arange(n), np.arange(n), n, 30)
    sampler = ns.samplers.Static(ns.pools.Everything(known))
    loaders = [load(2, known, sampler, rank=rank, ranks=3) for rank in range(3)]
    seen = pairs(batch for loader in loaders for batch in loader)
    assert len(set(seen)) == len(seen) == n - loaders[0].left_out
    assert loaders[0].left_out == (n % 6 if n % 6 < 3 else 0)


def test_the_place_of_torch_distributed_is_the_default(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda group=None: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda group=None: 2)
    found = load()
    assert (found.rank, found.ranks) == (1, 2)
    assert content(found) == content(load(rank=1, ranks=2))


# ---- errors ---------------------------------------------------------------------------------------------

KNOWN_SIX = ns.Positives.from_pairs([0, 1], [0, 1], n_items=3)
SHORT = ns.samplers.Static(ns.pools.Everything(KNOWN_SIX, on_short="raise"))


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("options", [{}, {"workers": 2}])
def test_an_error_of_the_sampler_is_one_sentence_also_from_a_worker(options):
    with pytest.raises(ns.NaysayError, match=r"^Everything\.draw: .*") as raised:
        list(load(2, KNOWN_SIX, SHORT, k=3, **options))
    assert "\n" not in str(raised.value)
