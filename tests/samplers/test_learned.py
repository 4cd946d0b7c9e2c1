"""Learned: draws follow the generator, and a step is the gradient of the expected reward."""

import numpy as np
import pytest
import torch
from by_table import gradient_by_differences

import naysay as ns
from naysay.samplers import Learned

N_ANCHORS, N_ITEMS = 4, 6
KNOWN = ns.Positives.from_pairs([0, 1, 2, 3], [0, 1, 2, 3], N_ANCHORS, N_ITEMS)
POOL = ns.pools.Everything(KNOWN)
REWARDS = np.random.default_rng(0).standard_normal((N_ANCHORS, N_ITEMS))
LOGITS = np.random.default_rng(1).standard_normal((N_ANCHORS, N_ITEMS))
QUERY = ns.Query(np.arange(N_ANCHORS))
TRIPLES = np.array([[0, 0, 1], [2, 1, 3], [4, 0, 5], [1, 1, 0]])


def reward(anchors, ids):
    return REWARDS[anchors[:, None], ids]


def table(rate=1.0, start=LOGITS):
    """A generator with a logit for each pair, and its optimiser."""
    logits = torch.tensor(start, requires_grad=True)
    return (lambda anchors, ids: logits[anchors[:, None], ids]), torch.optim.SGD([logits], rate), logits


def learned(rate=1.0, start=LOGITS, pool=POOL, **settings):
    generator, optimizer, logits = table(rate, start)
    return Learned(pool, generator, optimizer, reward, **settings), logits


def chances(logits, temperature=1.0):
    """{item: probability} of each anchor, by a loop over what is not known."""
    found = []
    for anchor, row in enumerate(logits):
        raised = {item: np.exp(row[item] / temperature) for item in range(N_ITEMS) if item != anchor}
        found.append({item: value / sum(raised.values()) for item, value in raised.items()})
    return found


def expected_reward(logits, temperature=1.0):
    rows = enumerate(chances(logits, temperature))
    return np.mean([sum(p * REWARDS[anchor, item] for item, p in row.items()) for anchor, row in rows])


def test_draws_and_log_q_follow_the_softmax_of_the_generator():
    sampler, _ = learned(temperature=0.5)
    rows = 4000
    drawn = sampler.sample(ns.Query(np.arange(rows) % N_ANCHORS), 2, rng=ns.rng_for(0))
    for anchor, row in enumerate(chances(LOGITS, 0.5)):
        mine = drawn.ids[anchor::N_ANCHORS]
        for item, chance in row.items():
            assert (mine == item).mean() == pytest.approx(chance, abs=0.03)
            assert np.exp(drawn.log_q[anchor::N_ANCHORS][mine == item]) == pytest.approx(chance)
        assert set(np.unique(mine)) <= set(row)


def test_logits_of_known_items_need_not_be_finite():
    known_are_nan = LOGITS.copy()
    known_are_nan[np.arange(N_ANCHORS), np.arange(N_ANCHORS)] = np.nan
    given, wanted = (learned(start=start)[0].sample(QUERY, 5, rng=ns.rng_for(0)) for start in (known_are_nan, LOGITS))
    np.testing.assert_array_equal(given.ids, wanted.ids)


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_an_exact_step_is_the_gradient_of_the_expected_reward(temperature):
    sampler, logits = learned(temperature=temperature)
    sampler.observe(QUERY)
    wanted = gradient_by_differences(lambda at: expected_reward(at, temperature), LOGITS)
    np.testing.assert_allclose(logits.detach().numpy() - LOGITS, wanted, atol=1e-5)


def test_the_entropy_is_added():
    def entropy(at):
        return np.mean([-sum(p * np.log(p) for p in row.values()) for row in chances(at)])

    sampler, logits = learned(entropy=0.7)
    sampler.observe(QUERY)
    wanted = gradient_by_differences(lambda at: expected_reward(at) + 0.7 * entropy(at), LOGITS)
    np.testing.assert_allclose(logits.detach().numpy() - LOGITS, wanted, atol=1e-5)


def test_drawn_steps_have_the_same_mean_with_and_without_a_baseline():
    wanted = gradient_by_differences(expected_reward, LOGITS)
    for epochs in (0, 1):
        sampler, logits = learned(rate=0.0, baseline="running", slots=4000)
        for _ in range(epochs):
            sampler.observe(QUERY)
            sampler.update()
        assert (sampler.mean_reward != 0) == bool(epochs)
        sampler.observe(QUERY)
        np.testing.assert_allclose(-logits.grad.numpy(), wanted, atol=0.02)


def test_the_running_baseline_is_the_mean_reward_of_the_epoch_before():
    sampler, _ = learned(rate=0.0)
    for _ in range(3):
        sampler.observe(QUERY)
    assert sampler.mean_reward == 0
    sampler.update()
    assert sampler.mean_reward == pytest.approx(expected_reward(LOGITS))
    sampler.update()  # an epoch without steps changes nothing
    assert sampler.mean_reward == pytest.approx(expected_reward(LOGITS))


def test_a_row_that_knows_everything_stays_empty_and_teaches_nothing():
    known = ns.Positives.from_pairs([0] * N_ITEMS + [1], [*range(N_ITEMS), 0], 2, N_ITEMS)
    sampler, logits = learned(pool=ns.pools.Everything(known), entropy=0.1)
    sampler.observe(ns.Query([0, 1]))
    assert logits.isfinite().all()
    assert (logits.detach().numpy()[0] == LOGITS[0]).all()
    drawn = sampler.sample(ns.Query([0, 1]), 2, rng=ns.rng_for(0))
    assert (drawn.ids[0] == -1).all()
    assert (drawn.ids[1] > 0).all()
    assert drawn.dropped == {"exhausted": 2}
    assert (drawn.log_q[0] == 0).all()
    sampler.observe(ns.Query([]))


# ---- triples ----


def triple_sampler(pool, **settings):
    entities = torch.zeros(6, requires_grad=True, dtype=torch.float64)

    def generator(triples, corrupted):
        assert corrupted.shape[-1] == 3
        return entities[corrupted[..., 0]] + entities[corrupted[..., 2]]

    def rewards(triples, corrupted):
        return (corrupted[..., 0] + corrupted[..., 2]) * 1.0

    return Learned(pool, generator, torch.optim.SGD([entities], 0.1), rewards, **settings), entities


@pytest.mark.parametrize("settings", [{}, {"candidates": 4}, {"candidates": 4, "baseline": "running"}])
@pytest.mark.parametrize("sides", [("tail",), ("head", "tail")])
def test_triples_learn_and_known_ones_never_come(settings, sides):
    pool = ns.pools.Corruption(TRIPLES, sides=sides)
    sampler, entities = triple_sampler(pool, **settings)
    query = ns.Query(np.tile(TRIPLES, (8, 1)))
    for _ in range(40):
        sampler.observe(query)
    assert entities[5] > entities[0]
    drawn = sampler.sample(query, 3, rng=ns.rng_for(0))
    assert set(np.unique(drawn.side)) <= {0, 2}
    assert (drawn.side == drawn.side[:, :1]).all()  # all candidates of a triple replace one side
    corrupted = pool.corrupted(query, drawn)
    assert not pool.known.contains(corrupted[drawn.ids >= 0]).any()
    exact = not settings and len(sides) == 1
    assert (drawn.log_q is not None) == exact


def test_all_entities_compete_for_a_triple():
    sampler, entities = triple_sampler(ns.pools.Corruption(TRIPLES, sides=("tail",)))
    with torch.no_grad():
        entities.copy_(torch.linspace(-1, 1, 6))
    rows = 4000
    drawn = sampler.sample(ns.Query(np.tile(TRIPLES[:1], (rows, 1))), 1, rng=ns.rng_for(0)).ids[:, 0]
    raised = np.exp(np.linspace(-1, 1, 6)) * (np.arange(6) != 1)
    for item in range(6):
        assert (drawn == item).mean() == pytest.approx(raised[item] / raised.sum(), abs=0.03)
