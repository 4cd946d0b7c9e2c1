"""Plans of batches: which rows come, which never meet, and what a DataLoader gets."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay.batches import BatchSampler, ByLoss, Grouped, RandomWalkBatches, Shuffled
from naysay.kernels import threads
from naysay.rng import key_from

LOSSES = np.array([0.3, 0.1, 0.5, 0.2, 0.4])


def rows_of(plan):
    return [[row for row in batch if row >= 0] for batch in plan.tolist()]


def left_filled(plan):
    return all((batch >= 0).sum() == np.argmin(np.append(batch, -1) >= 0) for batch in plan)


# ---- shuffled -------------------------------------------------------------------------------------------


def placed_by_loops(order, size, meets, n_batches):
    """Each row to the first batch with room where it meets nobody it must not."""
    batches, left = [[] for _ in range(n_batches)], []
    for row in order:
        for batch in batches:
            if len(batch) < size and not any(meets(row, other) for other in batch):
                batch.append(row)
                break
        else:
            left.append(row)
    return batches, left


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=15), st.integers(1, 5), st.integers(0, 99))
def test_linked_rows_are_placed_as_loops_do(pairs, size, seed):
    forbid = ns.Positives.from_pairs([a for a, _ in pairs], [b for _, b in pairs], 12, 12)
    linked = {*pairs, *((b, a) for a, b in pairs)}
    batches = Shuffled(12, size, forbid)
    plan = batches.plan(0, rng=ns.rng_for(seed))
    expected, left = placed_by_loops(
        ns.rng_for(seed).permutation(12).tolist(), size, lambda a, b: (a, b) in linked, len(batches)
    )
    assert rows_of(plan) == expected
    assert batches.dropped == ({"forbidden": len(left)} if left else {})


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=20), st.integers(1, 5), st.integers(0, 99))
def test_rows_of_one_label_never_meet(labels, size, seed):
    batches = Shuffled(len(labels), size, forbid=labels)
    plan = batches.plan(0, rng=ns.rng_for(seed))
    assert plan.shape == (len(batches), size)
    assert left_filled(plan)
    placed = sorted(row for batch in rows_of(plan) for row in batch)
    assert len(set(placed)) == len(placed)
    assert batches.dropped.get("forbidden", 0) == len(labels) - len(placed)
    for batch in rows_of(plan):
        found = [labels[row] for row in batch if labels[row] >= 0]
        assert len(set(found)) == len(found)
    for label in set(labels) - {
        -1
    }:  # a label that has a batch for each row loses none to the order alone, but for room
        if labels.count(label) > len(batches):
            assert batches.dropped["forbidden"] >= labels.count(label) - len(batches)


def test_without_forbidden_rows_an_epoch_is_a_permutation():
    batches = Shuffled(10, 4)
    plans = [batches.plan(epoch, rng=ns.rng_for(0, epoch)) for epoch in range(2)]
    for plan in plans:
        assert plan.shape == (3, 4)
        assert sorted(plan.ravel().tolist()) == [-1, -1, *range(10)]
        assert (plan[2, 2:] == -1).all()
    assert not np.array_equal(*plans)


# ---- grouped --------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=30), st.sampled_from([(3, 1), (4, 2), (6, 3)]), st.integers(0, 9)
)
def test_a_batch_is_of_few_groups_and_every_row_comes_once(groups, how, seed):
    size, per_batch = how
    batches = Grouped(groups, size, per_batch=per_batch)
    plan = batches.plan(0, rng=ns.rng_for(seed))
    assert plan.shape == (len(batches), size)
    assert left_filled(plan)
    assert sorted(row for batch in rows_of(plan) for row in batch) == list(range(len(groups)))
    part = size // per_batch
    assert len(batches) == -(-sum(-(-groups.count(group) // part) for group in set(groups)) // per_batch)
    for batch in rows_of(plan):
        assert batch
        assert len({groups[row] for row in batch}) <= per_batch


# ---- by loss --------------------------------------------------------------------------------------------


def test_golden_chances_and_their_frequencies():
    batches = ByLoss(5, 4)
    batches.observe(np.arange(5), torch.tensor(LOSSES, requires_grad=True))
    by_rank = [0.607973, 0.242038, 0.096357, 0.038360, 0.015272]  # of the specification: pressure 100, five rows
    chances = batches.chances(0)
    np.testing.assert_allclose(chances[np.argsort(-LOSSES)], by_rank, atol=5e-7)
    assert chances.max() / chances.min() == pytest.approx(100 ** (4 / 5))
    seen = np.zeros(5)
    for epoch in range(400):
        plan = batches.plan(epoch, rng=ns.rng_for(0, epoch))
        assert plan.shape == (2, 4)
        seen += np.bincount(plan[plan >= 0], minlength=5)
    assert chisquare(seen, seen.sum() * chances).pvalue > 1e-5
    assert (chances * batches.weights(0)) @ LOSSES == pytest.approx(LOSSES.mean())


def test_no_pressure_is_uniform_it_may_change_and_new_rows_rank_first():
    batches = ByLoss(4, 2, pressure=lambda epoch: 100.0 if epoch == 0 else 1.0)
    batches.observe([0, 1, 3], [3.0, 2.0, 9.0])
    assert np.argsort(-batches.chances(0)).tolist() == [2, 3, 0, 1]
    np.testing.assert_allclose(batches.chances(1), 0.25)


# ---- walk -----------------------------------------------------------------------------------------------


def mixed(value):
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % 2**64
    return value ^ (value >> 31)


def bits(key, batch, slot):
    """The random bits of a batch's slot, as kernels.random has them, in whole numbers of Python."""
    state = mixed(int(key) ^ mixed((batch + 0x9E3779B97F4A7C15) % 2**64))
    return mixed((state + slot * 0x9E3779B97F4A7C15) % 2**64)


def visited_by_loops(links, start, key, number, restart, steps):
    """The rows that a walk visits, one step at a time; -1 at a missing link, after which it is at its start."""
    node = start
    for step in range(steps):
        if (bits(key, number, 2 * step) >> 11) * 2.0**-53 < restart:
            node = start
        node = int(links[node, (bits(key, number, 2 * step + 1) * links.shape[1]) >> 64])
        yield node
        node = start if node < 0 else node


def walked_by_loops(links, order, key, size, restart, cover, n_batches):
    """The same plan one step at a time, with the same random numbers."""
    n, batches, used, begin, filled = len(links), [], set(), 0, 0
    for number in range(n_batches):
        used = used if cover else set()
        wanted = min(size, n - number * size) if cover else size
        while order[begin] in used:
            begin = (begin + 1) % n
        start = order[begin]
        begin = (begin + 1) % n
        batch = [start]
        used.add(start)
        for node in visited_by_loops(links, start, key, number, restart, 16 * size):
            if len(batch) == wanted:
                break
            if node >= 0 and node not in used:
                used.add(node)
                batch.append(node)
        spare = begin
        while len(batch) < wanted:
            while order[spare] in used:
                spare = (spare + 1) % n
            used.add(order[spare])
            batch.append(order[spare])
            filled += 1
        begin = spare if cover else begin
        batches.append(batch)
    return batches, filled


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 14),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.booleans(),
    st.integers(0, 99),
)
def test_a_walk_is_what_loops_say(n, size, degree, restart, cover, seed):
    size = min(size, n)
    links = np.random.default_rng(seed).integers(-1, n, (n, degree))
    batches = RandomWalkBatches(n, size, neighbours=degree, candidates=degree, restart=restart, cover=cover)
    batches.restore({"links": links})
    plan = batches.plan(0, rng=ns.rng_for(seed))
    rng = ns.rng_for(seed)
    order, key = rng.permutation(n).tolist(), key_from(rng)
    expected, filled = walked_by_loops(links, order, key, size, restart, cover, len(batches))
    assert rows_of(plan) == expected
    assert batches.dropped == ({"filled at random": filled} if filled else {})
    if cover:
        assert sorted(row for batch in expected for row in batch) == list(range(n))


def test_a_full_restart_is_a_row_and_its_neighbours():
    """And a component that is smaller than a batch does not walk for ever, as the published code does."""
    links = (np.arange(12) // 3 * 3)[:, None] + np.array([[0, 1, 2]])
    batches = RandomWalkBatches(12, 3, neighbours=3, candidates=3, restart=1.0)
    batches.restore({"links": links})
    assert sorted(map(sorted, batches.plan(0, rng=ns.rng_for(0)).tolist())) == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
        [9, 10, 11],
    ]
    assert batches.dropped == {}
    wide = RandomWalkBatches(12, 6, neighbours=3, candidates=3, restart=0.0)
    wide.restore({"links": links})
    assert sorted(wide.plan(0, rng=ns.rng_for(0)).ravel().tolist()) == list(range(12))
    assert wide.dropped == {"filled at random": 6}


def test_links_are_the_nearest_of_random_others_and_never_the_row_itself():
    vectors = np.random.default_rng(0).standard_normal((30, 4))
    batches = RandomWalkBatches(30, 5, neighbours=6, candidates=4000)  # so many that every other row is among them
    answers = []
    before = threads.threads()
    try:
        for count in (1, 2, 4):
            ns.set_threads(count)
            batches.update(torch.from_numpy(vectors), rng=ns.rng_for(0))
            answers.append(batches.state()["links"])
    finally:
        ns.set_threads(before)
    assert all(np.array_equal(answers[0], other) for other in answers[1:])
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -2)
    assert np.array_equal(answers[0], np.argsort(-cosines, axis=1)[:, :6])
    few = RandomWalkBatches(30, 5, neighbours=6, candidates=6)
    few.update(vectors, rng=ns.rng_for(0))
    links = few.state()["links"]
    assert (links != np.arange(30)[:, None]).all()
    assert all(len(set(row) - {-1}) == sum(item >= 0 for item in row) for row in links.tolist())


def test_before_an_update_batches_are_random():
    walks = RandomWalkBatches(20, 4, neighbours=3, candidates=9)
    assert sorted(walks.plan(0, rng=ns.rng_for(0)).ravel().tolist()) == list(range(20))
    assert walks.dropped == {}


# ---- the loader -----------------------------------------------------------------------------------------


def test_a_dataloader_takes_it_and_epochs_differ():
    data = torch.utils.data.TensorDataset(torch.arange(10))
    sampler = BatchSampler(Shuffled(10, 4), seed=3)
    loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
    assert len(loader) == 3
    epochs = [[batch.tolist() for (batch,) in loader] for _ in range(2)]
    for epoch in epochs:
        assert [len(batch) for batch in epoch] == [4, 4, 2]
        assert sorted(row for batch in epoch for row in batch) == list(range(10))
    assert epochs[0] != epochs[1]
    sampler.set_epoch(0)
    assert [batch.tolist() for (batch,) in loader] == epochs[0]


def test_processes_share_the_batches_of_an_epoch():
    parts = [BatchSampler(Shuffled(22, 3), 1, rank=rank, ranks=3) for rank in range(3)]
    assert [len(part) for part in parts] == [2, 2, 2]
    batches = [list(part) for part in parts]
    rows = [row for part in batches for batch in part for row in batch]
    assert len(set(rows)) == len(rows) == 18


def test_a_query_of_one_pair_and_a_small_cluster_are_not_left_out():
    """TAS-B's code draws clusters without epochs, so a query may never come."""
    groups = np.array([0] * 40 + [1])
    for epoch in range(5):
        assert 40 in Grouped(groups, 8).plan(epoch, rng=ns.rng_for(0, epoch))
