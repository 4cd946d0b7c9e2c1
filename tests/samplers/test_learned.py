"""Learned: golden gradients, estimators by enumeration on six items, generators that learn, state, promises."""

from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import Factors, Learned, Perceptron, TorchModule, TripleFactors, _policy

L = np.array([0.0, 0.5, 1.0, -1.0, 2.0, 0.3])
R = np.array([1.0, 0.0, 2.0, -1.0, 0.5, 0.0])
P = _policy.softmax(L[None])[0]
EXACT = np.array([0.022486, -0.076838, 0.248930, -0.042562, -0.089107, -0.062909])
TWO = np.array([0.04216, -0.20060, 0.48499, -0.11344, -0.04527, -0.16784])


# ---- the gradient -----------------------------------------------------------------------------------------------


def test_golden_values():
    np.testing.assert_allclose(P, [0.069090, 0.113911, 0.187807, 0.025417, 0.510513, 0.093262], atol=5e-7)
    assert pytest.approx(0.674544, abs=5e-7) == P @ R
    np.testing.assert_allclose(_policy.exact_gradient(P[None], R[None])[0], EXACT, atol=5e-7)


def one_draw(baseline):
    """[(probability, estimate)] of all outcomes of one slot."""
    every = np.arange(6)[:, None]
    made = _policy.drawn_gradient(np.tile(P, (6, 1)), every, R[every] - baseline)
    return list(zip(P, made, strict=True))


@pytest.mark.parametrize("baseline", [0.0, 0.674544, -3.0, R[4]])  # R[4] is that of the likeliest: "greedy"
def test_one_slot_is_unbiased_for_every_baseline(baseline):
    mean = sum(chance * made for chance, made in one_draw(baseline))
    np.testing.assert_allclose(mean, _policy.exact_gradient(P[None], R[None])[0], atol=1e-12)


@pytest.mark.parametrize("baseline", [0.0, 0.674544])
def test_draws_from_positives_are_unbiased_by_their_ratio(baseline):
    """IRGAN: (1 - e) p + e U(positives); the ratio p / q is 1 on average, and 0 where p is."""
    positives = np.array([[0, 0, 0.5, 0.5, 0, 0], [0.0] * 6, [0, 0, 0, 0, 0, 1.0]])
    chance = np.stack([P, P, np.where(np.arange(6) == 5, 0, P) / (1 - P[5])])
    proposal = _policy.mixed(chance, positives, 0.2)
    np.testing.assert_allclose(proposal.sum(axis=1), 1.0)
    np.testing.assert_array_equal(proposal[1], P)
    for p, q in zip(chance, proposal, strict=True):
        every, rows = np.arange(6)[:, None], (np.tile(p, (6, 1)), np.tile(q, (6, 1)))
        ratio = _policy.ratios(*rows, every)
        assert q @ ratio[:, 0] == pytest.approx(1.0, abs=1e-12)
        mean = q @ _policy.drawn_gradient(rows[0], every, ratio * (R[every] - baseline))
        np.testing.assert_allclose(mean, _policy.exact_gradient(p[None], R[None])[0], atol=1e-12)


def test_golden_variance():
    exact = _policy.exact_gradient(P[None], R[None])[0]
    for baseline, trace in ((0.0, 0.7823), (P @ R, 0.4395)):
        spread = sum(chance * ((made - exact) ** 2).sum() for chance, made in one_draw(baseline))
        assert spread == pytest.approx(trace, abs=5e-5)


def test_the_mean_of_the_other_slots_is_unbiased():
    places = np.array([(a, b, c) for a in range(6) for b in range(6) for c in range(6)])
    reward = R[places]
    others = (reward.sum(axis=1, keepdims=True) - reward) / 2
    made = _policy.drawn_gradient(np.tile(P, (216, 1)), places, reward - others)
    mean = (P[places].prod(axis=1)[:, None] * made).sum(axis=0)
    np.testing.assert_allclose(mean, _policy.exact_gradient(P[None], R[None])[0], atol=1e-12)
    within = _policy.drawn_gradient(np.tile(P, (216, 1)), places, reward - reward.mean(axis=1, keepdims=True))
    biased = (P[places].prod(axis=1)[:, None] * within).sum(axis=0)
    assert np.abs(biased - EXACT).max() > 0.05  # a mean that contains the slot itself


@pytest.mark.parametrize("baseline", [0.0, 1.4, 7.0])
def test_distinct_rows_need_the_probability_of_the_ordered_row(baseline):
    """IRGAN's code for answers takes the gradient of independent draws, which is biased."""
    places = np.array(list(permutations(range(6), 2)))
    chance = P[places[:, 0]] * P[places[:, 1]] / (1 - P[places[:, 0]])
    assert chance.sum() == pytest.approx(1.0)
    assert chance @ R[places].sum(axis=1) == pytest.approx(1.400250, abs=5e-7)
    made = _policy.ordered_gradient(np.tile(P, (30, 1)), places, R[places], baseline)
    np.testing.assert_allclose(chance @ made, TWO, atol=5e-6)
    naive = 2 * chance @ _policy.drawn_gradient(np.tile(P, (30, 1)), places, R[places])
    np.testing.assert_allclose(naive, [0.07817, -0.15950, 0.62898, -0.10116, -0.31589, -0.13059], atol=5e-6)


def test_the_gradient_of_the_entropy():
    step = 1e-6
    for i in range(6):
        moved = L + step * np.eye(6)[i]
        slope = (_policy.entropy(_policy.softmax(moved[None])) - _policy.entropy(P[None]))[0, 0] / step
        assert _policy.entropy_gradient(P[None])[0, i] == pytest.approx(slope, abs=1e-5)


def test_a_softmax_of_large_logits():
    """SRNS takes no maximum off: e^1000 is infinite."""
    np.testing.assert_allclose(_policy.softmax(np.array([[1000.0, 1000.0, -np.inf]])), [[0.5, 0.5, 0.0]])
    assert _policy.softmax(np.full((1, 3), -np.inf)).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("chance", [[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.9, 0.0, 0.1]])
def test_draws_follow_the_probabilities(chance):
    """Three items: with the noise of the wrong sign, as in DSKReG, the first would come with 0.5328."""
    rows, wanted = np.tile(chance, (30_000, 1)), 30_000 * np.array(chance)
    with np.errstate(divide="ignore"):
        ways = _policy.draw_independent(rows, 1, ns.rng_for(0)), _policy.draw_distinct(np.log(rows), 1, ns.rng_for(1))
    for drawn in ways:
        seen = np.bincount(drawn[:, 0], minlength=3)
        assert (seen[wanted == 0] == 0).all()
        if (wanted > 0).sum() > 1:
            assert chisquare(seen[wanted > 0], wanted[wanted > 0]).pvalue > 1e-5


# ---- the sampler ------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
KNOWN = ns.Positives.from_pairs(*RNG.integers(0, (20, 30), (120, 2)).T, 20, 30)
POOL = ns.pools.Everything(KNOWN)
TABLE = RNG.standard_normal((20, 4)) @ RNG.standard_normal((4, 30))
EVERYONE = ns.Query(np.arange(20))


def score(anchors, ids):
    table = TABLE if isinstance(ids, np.ndarray) else torch.from_numpy(TABLE)
    return table[anchors[:, None], ids]


def embed(anchors):
    return np.eye(20)[anchors]


def torch_factors():
    one, two = torch.nn.Embedding(20, 8), torch.nn.Embedding(30, 8)
    for table in (one, two):
        table.weight.data = 0.3 * torch.from_numpy(np.random.default_rng(1).standard_normal(table.weight.shape)).float()
    parameters = [*one.parameters(), *two.parameters()]
    return TorchModule(lambda a, i: (one(a)[:, None] * two(i)).sum(-1), torch.optim.Adam(parameters, 0.05))


GENERATORS = {
    "factors": lambda: Factors(20, 30, 8, rate=1.0),
    "perceptron": lambda: Perceptron(embed, 20, 30, 16, rate=1.0),
    "module": torch_factors,
}


def expected(sampler):
    """(20,) E r of each anchor, over all that is free."""
    free = np.where(KNOWN.contains(np.arange(20), np.tile(np.arange(30), (20, 1))), -np.inf, 0.0)
    logits = sampler.generator.logits(np.arange(20), np.tile(np.arange(30), (20, 1)))
    return (_policy.softmax(logits + free) * TABLE).sum(axis=1)


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("how", [{}, {"candidates": 10}], ids=["all", "ten"])
def test_generators_learn_in_500_steps(make, how):
    """The expected reward is higher afterwards, with a 95 % interval over anchors that excludes 0."""
    sampler = Learned(POOL, GENERATORS[make](), score, **how)
    before = expected(sampler)
    for step in range(500):
        sampler.observe(ns.Query(np.arange(20), step=step))
    gain = expected(sampler) - before
    assert gain.mean() - 2.1 * gain.std(ddof=1) / np.sqrt(20) > 0
    assert not KNOWN.contains(np.arange(20), sampler.sample(EVERYONE, 20, rng=ns.rng_for(0)).ids).any()


@pytest.mark.parametrize(
    "how",
    [
        {"baseline": "none", "slots": 8},
        {"baseline": "running", "slots": 4},
        {"baseline": "others", "slots": 4},
        {"baseline": "greedy", "slots": 4},
        {"baseline": "running", "slots": 3, "distinct": True},
        {"baseline": "greedy", "slots": 3, "distinct": True},
        {"baseline": "running", "slots": 8, "explore": 0.2},
        {"entropy": 0.1},
    ],
)
def test_every_baseline_learns(how):
    sampler = Learned(POOL, Factors(20, 30, 8, rate=1.0), ("sigmoid", score), **how)
    before = expected(sampler).mean()
    for step in range(300):
        sampler.observe(EVERYONE)
        if step % 50 == 49:
            sampler.update()
    assert expected(sampler).mean() > before + 0.3
    assert -1 <= sampler.mean_reward <= 1


class Recorded:
    """A generator of fixed logits that keeps the gradient it gets."""

    def logits(self, anchors, candidates):
        return L[candidates]

    def ascend(self, anchors, candidates, gradient):
        self.gradient = gradient

    def state(self):
        return {}

    def restore(self, state):
        pass


@pytest.mark.parametrize("explore", [0.2, 0.6])
def test_many_draws_of_a_step_have_the_gradient_over_all_items(explore):
    """Item 2 is known and rewarded: it counts by its probability, however often it is drawn."""
    made, known = Recorded(), ns.Positives.from_pairs([0], [2], 1, 6)
    settings = {"baseline": "none", "slots": 40_000, "explore": explore}
    Learned(ns.pools.Everything(known), made, lambda anchors, ids: R[ids], **settings).observe(ns.Query([0]))
    np.testing.assert_allclose(made.gradient[0], EXACT, atol=0.02)


def test_ignored_pairs_are_not_explored():
    """Item 4 is ignored: it neither competes nor is drawn as a positive."""
    made, known, asked = Recorded(), ns.Positives.from_pairs([0], [2], 1, 6).with_ignored([0], [4]), set()

    def reward(anchors, ids):
        asked.update(ids.ravel().tolist())
        return R[ids]

    settings = {"baseline": "none", "slots": 40_000, "explore": 0.5}
    Learned(ns.pools.Everything(known), made, reward, **settings).observe(ns.Query([0]))
    left = np.where(np.arange(6) == 4, 0.0, P) / (1 - P[4])
    np.testing.assert_allclose(made.gradient[0], _policy.exact_gradient(left[None], R[None])[0], atol=0.02)
    assert made.gradient[0, 4] == 0
    assert asked == {0, 1, 2, 3, 5}


def test_what_positives_are_like_is_learnt_from_them_alone():
    """With explore the positives' own logits rise, and they still never come; without, they stay where they were."""
    liked = KNOWN.contains(np.arange(20), np.tile(np.arange(30), (20, 1)))
    rises = []
    for explore in (0.0, 0.3):
        made = Learned(
            POOL,
            Factors(20, 30, 8, rate=4.0),
            lambda anchors, ids: liked[anchors[:, None], ids] * 1.0,
            baseline="running",
            slots=8,
            explore=explore,
        )
        before = made.generator.logits(np.arange(20), np.tile(np.arange(30), (20, 1)))
        for step in range(100):
            made.observe(EVERYONE)
            if step % 20 == 19:
                made.update()
        rises.append((made.generator.logits(np.arange(20), np.tile(np.arange(30), (20, 1))) - before)[liked].mean())
        assert not KNOWN.contains(np.arange(20), made.sample(EVERYONE, 20, rng=ns.rng_for(0)).ids).any()
    assert rises[0] == 0.0
    assert rises[1] > 0.5


@pytest.mark.parametrize("distinct", [True, False])
def test_one_step_is_the_gradient_by_enumeration(distinct):
    """Factors of one anchor, by finite differences of E r over all free items."""
    known = ns.Positives.from_pairs([0], [2], 1, 6)
    factors = Factors(1, 6, 3, rate=1e-6, bias=False)
    sampler = Learned(ns.pools.Everything(known), factors, lambda anchors, ids: R[ids], temperature=0.7)
    start = factors.state()
    sampler.observe(ns.Query([0]))
    moved = (factors.state()["items"] - start["items"]) / 1e-6

    def value(items):
        logits = items @ start["anchors"][0] / 0.7
        logits[2] = -np.inf
        return _policy.softmax(logits[None])[0] @ np.where(np.arange(6) == 2, 0.0, R)

    for i in range(6):
        for j in range(3):
            change = np.zeros((6, 3))
            change[i, j] = 1e-5
            slope = (value(start["items"] + change) - value(start["items"] - change)) / 2e-5
            assert moved[i, j] == pytest.approx(slope, abs=1e-5)


def test_the_floor_holds_the_entropy_up():
    """Below log c the entropy is raised, above it is left alone. ReinforceNS has the sign the wrong way round."""
    free, held = (Learned(POOL, Factors(20, 30, 8, rate=5.0), score, entropy_floor=floor) for floor in (None, 8))
    for _ in range(300):
        free.observe(EVERYONE)
        held.observe(EVERYONE)

    def mean_entropy(sampler):
        logits = sampler.generator.logits(np.arange(20), np.tile(np.arange(30), (20, 1)))
        return _policy.entropy(_policy.softmax(logits)).mean()

    assert mean_entropy(held) > mean_entropy(free) + 0.2


def high_entities(triples, corrupted):
    return (corrupted[..., 0] + corrupted[..., 2]) / 10.0


def test_triples_learn_and_known_ones_never_come():
    """KBGAN: 20 corruptions of which one is drawn; a reward for entities of a high id."""
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers(0, (25, 3, 25), (80, 3)), axis=0)
    for kind in ("distmult", "complex"):
        pool = ns.pools.Corruption(triples, n_entities=25)
        made = TripleFactors(25, 3, 8, kind=kind, rate=2.0)
        sampler = Learned(pool, made, ("score", high_entities), candidates=20)
        query = ns.Query(triples)

        def mean(sampler=sampler, pool=pool, query=query):
            drawn = sampler.sample(query, 8, rng=ns.rng_for(5))
            corrupted = pool.corrupted(query, drawn)
            assert not pool.known.contains(corrupted[drawn.mask]).any()
            return corrupted[drawn.mask][:, [0, 2]].mean()

        before = mean()
        for _ in range(200):
            sampler.observe(query)
        assert mean() > before + 1.0


def test_all_candidates_of_a_triple_are_of_one_side():
    """KBGAN: the side by Bernoulli, once for each triple. PyKEEN's choice by the place in the batch is D4."""
    triples = np.unique(np.random.default_rng(0).integers(0, (25, 3, 25), (80, 3)), axis=0)
    pool = ns.pools.Corruption(triples, n_entities=25, choice="bernoulli")
    sampler = Learned(pool, TripleFactors(25, 3, 8), ("score", high_entities), candidates=20)
    query = ns.Query(np.tile(triples, (20, 1)))
    found = sampler._from.draw(query, 20, ns.rng_for(0))
    assert (found.side == found.side[:, :1]).all()
    heads, chance = (found.side[:, 0] == 0).sum(), pool.chance[query.anchors[:, 1], 0]
    assert abs(heads - chance.sum()) < 4.5 * np.sqrt((chance * (1 - chance)).sum())
    assert not pool.known.contains(pool.corrupted(query, found).reshape(-1, 3)).any()


def test_all_entities_compete_for_a_triple():
    """IGAN: every free entity of a side, with log_q that sums to 1."""
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers(0, (6, 2, 6), (12, 3)), axis=0)
    pool = ns.pools.Corruption(triples, n_entities=6, sides=("tail",), distinct=False)
    sampler = Learned(
        pool, Perceptron(lambda given: np.eye(6)[given[:, 0]], 6, 6, 4), lambda given, made: made[..., 2] * 1.0
    )
    drawn = sampler.sample(ns.Query(triples), 400, rng=ns.rng_for(0))
    assert not pool.known.contains(pool.corrupted(ns.Query(triples), drawn).reshape(-1, 3)).any()
    for ids, log_q in zip(drawn.ids, drawn.log_q, strict=True):
        chances = {int(i): float(np.exp(q)) for i, q in zip(ids, log_q, strict=True)}
        assert sum(chances.values()) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"baseline": "running", "candidates": 6},
        {"baseline": "none", "distinct": True},
        {"baseline": "none", "explore": 0.2},
    ],
)
def test_a_run_goes_on_from_its_state(how):
    def steps(sampler, start, stop):
        for step in range(start, stop):
            sampler.observe(ns.Query(np.arange(20), step=step))
            if step % 3 == 2:
                sampler.update()

    whole, first, second = (Learned(POOL, Factors(20, 30, 4), score, **how) for _ in range(3))
    steps(whole, 0, 10)
    steps(first, 0, 5)
    second.restore({name: np.array(value) for name, value in first.state().items()})
    steps(second, 5, 10)
    drawn = [sampler.sample(EVERYONE, 3, rng=ns.rng_for(0)).ids.tolist() for sampler in (whole, second)]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("how", [{}, {"distinct": True, "baseline": "none"}, {"candidates": 8}])
def test_promises(how):
    rng = np.random.default_rng(0)
    known = ns.Positives.from_pairs(*rng.integers(0, (5, 9), (18, 2)).T, 5, 9)
    sampler = Learned(ns.pools.Everything(known), Factors(5, 9, 3), lambda anchors, ids: ids * 1.0, **how)
    ns.check_sampler(sampler, known, k=3)


def test_errors():
    pool = ns.pools.InBatch()
    for how, sentence in (
        ({"baseline": "mean"}, "`baseline` must be one of 'exact', 'none', 'running', 'others', 'greedy', got 'mean'"),
        ({"baseline": "others"}, "`slots` must be at least 2, got 1."),
        ({"distinct": True}, '`baseline` must be "none", "running" or "greedy" for distinct rows, got'),
        ({"reward": ("squared", score)}, "`reward` must be one of 'score', 'sigmoid', 'softplus', 'sigmoid_log', got"),
        ({"reward": 3}, "`score` must be a function score(anchors, ids)"),
        ({"pool": pool}, "`candidates` must be a number unless the pool has `positives`, got None."),
        ({"temperature": 0}, "`temperature` must be"),
        ({"entropy_floor": 0.5}, "`entropy_floor` must be"),
        ({"explore": 1.0}, "`explore` must be"),
        ({"explore": 0.2}, '`explore` must be 0 for distinct rows and the baseline "exact", got baseline='),
        ({"explore": 0.2, "candidates": 5}, "`explore` must be 0 unless all items of a pool with `positives` compete"),
    ):
        arguments = {"pool": POOL, "generator": Factors(20, 30), "reward": score, **how}
        with pytest.raises(NaysayError) as caught:
            Learned(**arguments)
        assert str(caught.value).startswith(f"Learned: {sentence}")
