"""Laws of methods that are compositions: what each paper promises, and what its published code gets wrong."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, hypergeom

import naysay as ns
from naysay.losses import in_batch, info_nce, keep_hardest, mixture_log_q, sampled_bce
from naysay.pools import Everything, Memory
from naysay.samplers import (
    Cached,
    DistanceWeighted,
    Dynamic,
    Generated,
    Learned,
    MarkovChain,
    NearTarget,
    SoftmaxWeights,
    Static,
    Transformed,
    jigsaw,
    shuffled,
)

RNG = np.random.default_rng(0)
KNOWN = ns.Positives.from_pairs(*RNG.integers(0, (8, 20), (40, 2)).T, 8, 20)
VECTORS = RNG.standard_normal((20, 4))
QUERY = ns.Query(np.arange(8), positives=np.arange(8), vectors=RNG.standard_normal((8, 4)))
TABLE = RNG.standard_normal((8, 20))


def score(anchors, ids):
    return TABLE[anchors[:, None], ids]


# ---- learned and generated ----------------------------------------------------------------------------------------


def test_a_generator_of_noise_has_the_mean_and_the_covariance_of_hegan():
    """HeGAN draws from N(e_u M_r, I): a generator that adds its noise to a map of the anchor."""
    relation = torch.from_numpy(RNG.standard_normal((4, 4)))
    table = torch.nn.Embedding.from_pretrained(torch.from_numpy(VECTORS))
    free = torch.nn.Parameter(torch.zeros(1))
    made = Generated(
        Static(Everything(KNOWN, distinct=False)),
        table,
        lambda anchors, positives, negatives, noise: anchors @ relation + noise,
        torch.optim.SGD([free], 0.1),
        lambda anchors, positives, made: made.sum(),
        noise=4,
    )
    one = torch.from_numpy(QUERY.vectors[:1])
    query = ns.Query(torch.zeros(1).long(), positives=torch.zeros(1).long(), vectors=one)
    drawn = made.sample(query, 20_000, rng=ns.rng_for(0)).vectors[0].numpy()
    np.testing.assert_allclose(drawn.mean(axis=0), (one @ relation)[0], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), np.eye(4), atol=0.05)


def test_two_sets_of_a_user_are_independent_and_users_differ():
    """CFGAN's code seeds by the clock before each draw: sets of one second are equal, and users repeat each other."""
    pool, rows = Everything(ns.Positives.from_pairs([], [], 2000, 12)), 2000
    query = ns.Query(np.arange(rows))
    one, two = (pool.draw(query, 4, rng=ns.rng_for(0, step)).ids for step in (0, 1))
    wanted = rows * hypergeom(12, 4, 4).pmf(np.arange(5))
    for other in (two, np.roll(one, 1, axis=0)):
        overlap = (one[:, :, None] == other[:, None, :]).sum(axis=(1, 2))
        assert (
            chisquare(np.bincount(overlap, minlength=5)[:4], wanted[:4] / wanted[:4].sum() * (overlap < 4).sum()).pvalue
            > 1e-5
        )


def by_item(pool):
    """A generator with a logit for each item, and the logits."""
    logits = torch.zeros(20, requires_grad=True)
    return Learned(pool, lambda anchors, ids: logits[ids], torch.optim.SGD([logits], 1.0), score), logits


def test_positives_of_the_future_are_not_known_and_a_stream_goes_on():
    """NMRN: positives grow with time. What is learnt moves to a sampler that knows more, and nothing new comes back."""
    users, items = RNG.integers(0, (8, 20), (60, 2)).T
    now, later = (ns.Positives.from_pairs(users[:n], items[:n], 8, 20) for n in (30, 60))
    many = ns.Query(np.repeat(np.arange(8), 40))
    first, weights = by_item(Everything(now))
    seen = first.sample(many, 8, rng=ns.rng_for(0)).ids
    assert later.contains(many.anchors, seen).any()  # a pair of the future is as free as any other
    for _ in range(5):
        first.observe(QUERY)
    second, others = by_item(Everything(later))
    second.restore(first.state())
    assert torch.equal(weights, others)
    assert not later.contains(many.anchors, second.sample(many, 8, rng=ns.rng_for(0)).ids).any()


def test_weights_of_draws_do_not_depend_on_a_constant_of_the_row_in_log_q():
    """SD-GAR does not renormalise q after rejecting positives, which its weights softmax(f - log q) do not see."""
    few = ns.Positives.from_pairs([0, 0, 0], [1, 2, 3], 2, 20)
    weights = np.random.default_rng(3).random(20) + 0.1
    sampler = SoftmaxWeights(Everything(few, weights, distinct=False), lambda anchors, ids: ids * 0.1, temperature=1.0)
    drawn = sampler.sample(ns.Query([0]), 6, rng=ns.rng_for(0))
    unnormalised = np.log(weights[drawn.ids[0]])
    expected = np.exp(drawn.ids[0] * 0.1 - unnormalised)
    np.testing.assert_allclose(drawn.weights[0] / drawn.weights[0].sum(), expected / expected.sum())
    assert not np.allclose(drawn.log_q[0], unnormalised)


def test_a_chain_reaches_its_law_on_200_nodes():
    """MCNS: at most 0.02 in total variation from score^0.25, with neighbours among the proposals."""
    rng = np.random.default_rng(1)
    known = ns.Positives.from_pairs([0] * 10, rng.permutation(200)[:10], 1, 200)
    s = rng.gamma(1.0, size=200) + 0.05
    chain = MarkovChain(known, lambda anchors, ids: s[ids], rng.integers(0, 200, (200, 5)), steps=12)
    drawn = chain.sample(ns.Query(np.zeros(120_000, int)), 1, rng=ns.rng_for(0)).ids[:, 0]
    law = np.where(known.contains([0], np.arange(200)[None])[0], 0.0, s**0.25)
    assert 0.5 * np.abs(np.bincount(drawn, minlength=200) / len(drawn) - law / law.sum()).sum() < 0.02


@pytest.mark.parametrize("keep", ["softmax", "top"])
def test_a_cache_of_large_scores(keep):
    """SRNS's code overflows once a score over its temperature is above 709."""
    sampler = Cached(Everything(KNOWN), lambda anchors, ids: 1e6 * ids, 2, 18, keep=keep, choose="softmax")
    for _ in range(3):
        sampler.observe(QUERY)
    drawn = sampler.sample(QUERY, 2, rng=ns.rng_for(0))
    free = [[item for item in range(20) if not KNOWN.contains([a], [item])[0]] for a in range(8)]
    assert drawn.ids.tolist() == [row[-1:-3:-1] for row in free]


# ---- made from inputs ---------------------------------------------------------------------------------------------


def test_a_batch_of_one_ends_and_parents_are_recorded():
    """NDA's code waits for ever for another order of one row."""
    assert shuffled(np.ones((1, 3)), rng=ns.rng_for(0)).tolist() == [[1.0, 1.0, 1.0]]
    image = np.arange(16).reshape(1, 4, 4)
    assert all((jigsaw(image, 2, rng=ns.rng_for(seed)) != image).any() for seed in range(50))
    drawn = Transformed(Static(Everything(KNOWN)), lambda query, ids, rng: VECTORS[ids]).sample(
        QUERY, 3, rng=ns.rng_for(0)
    )
    np.testing.assert_array_equal(drawn.parents, np.repeat(drawn.ids[:, :, None], 2, axis=2))


# ---- graphs -------------------------------------------------------------------------------------------------------


def test_nearer_nodes_are_likelier_and_neighbours_never_come():
    """Robust-NS: by distance, over what is no neighbour."""
    graph = ns.Positives.from_edges([0, 0], [1, 2], 8)
    cosines = np.linspace(0.85, 0.05, 8)  # of the nodes with node 0
    sampler = DistanceWeighted(Everything(graph), lambda anchors, ids: cosines[ids], 7, 8)
    drawn = sampler.sample(ns.Query(np.zeros(4000, int)), 1, rng=ns.rng_for(0)).ids[:, 0]
    seen = np.bincount(drawn, minlength=8)
    assert seen[:3].tolist() == [0, 0, 0]
    assert (np.diff(seen[3:]) < 0).all()


# ---- losses over a batch ------------------------------------------------------------------------------------------

UNITS = torch.nn.functional.normalize(torch.from_numpy(RNG.standard_normal((8, 4))), dim=1)
OTHERS = torch.nn.functional.normalize(UNITS + 0.3 * torch.from_numpy(RNG.standard_normal((8, 4))), dim=1)


def test_what_is_masked_leaves_nothing_in_the_denominator():
    """DCLR's code multiplies the logit by 0, so that e^0 stays. VaSCL with all as neighbours is the plain loss."""
    plain = in_batch(UNITS, OTHERS, temperature=0.05)
    assert torch.allclose(in_batch(UNITS, OTHERS, temperature=0.05, mask=torch.ones(8, 8, dtype=torch.bool)), plain)
    every = torch.zeros(8, 8, dtype=torch.bool).scatter_(1, (UNITS @ OTHERS.T).topk(8, dim=1).indices, True)
    assert torch.allclose(in_batch(UNITS, OTHERS, temperature=0.05, mask=every), plain)
    none = in_batch(UNITS, OTHERS, temperature=0.05, mask=torch.zeros(8, 8, dtype=torch.bool))
    assert none.tolist() == [0.0] * 8  # the positive is never masked, and nothing else is left


def test_two_unrelated_sentences_of_cline_cost_2_log_2():
    assert sampled_bce(torch.zeros(1), torch.zeros(1, 1)).item() == pytest.approx(2 * np.log(2))


def test_a_lower_temperature_punishes_fewer_negatives_and_the_sum_is_that_of_the_positive():
    """Wang and Liu: relative penalties are a softmax, and all of them together are as large as the positive's."""
    entropies = []
    for temperature in (0.03, 0.1, 0.3, 1.0):
        positive = torch.full((1,), 0.5, dtype=torch.float64, requires_grad=True)
        negatives = torch.linspace(-0.8, 0.8, 9, dtype=torch.float64)[None].requires_grad_()
        info_nce(positive, negatives, temperature=temperature).sum().backward()
        assert negatives.grad.sum().item() == pytest.approx(-positive.grad.item())
        share = negatives.grad[0] / negatives.grad.sum()
        torch.testing.assert_close(share, torch.softmax(negatives.detach()[0] / temperature, dim=0))
        entropies.append(-(share * share.log()).sum().item())
    assert (np.diff(entropies) > 0).all()


def test_a_target_at_the_positive_and_one_far_below_it():
    """Li et al.: alpha = 0 takes the nearest to the positive, a large alpha the lowest."""
    scores, own = np.array([0.9, 0.1, 0.55, -0.4]), 0.6
    known = ns.Positives.from_pairs([0], [4], 1, 5)

    def given(anchors, ids):
        return np.append(scores, own)[ids]

    for alpha, wanted in ((0.0, 2), (0.45, 1), (9.0, 3)):
        sampler = NearTarget(Everything(known), given, 4, lambda own, step, alpha=alpha: own - alpha)
        assert sampler.sample(ns.Query([0], positives=[4]), 1, rng=ns.rng_for(0)).ids.tolist() == [[wanted]]


def test_heads_of_growing_depth_keep_fewer_pairs():
    """HDC: shares 1, 0.5 and 0.2 of the positive pairs and of the negative ones, by each head's own loss."""
    for share, count in ((1.0, 23), (0.5, 11), (0.2, 4)):
        pairs = torch.from_numpy(np.random.default_rng(0).random(23))
        kept = keep_hardest(pairs, share)
        assert int((kept > 0).sum()) == count
        assert pairs[kept > 0].min() >= pairs[kept == 0].max() if count < 23 else kept.tolist() == [1.0] * 23


def minus_log_sigmoid(value):
    return np.log1p(np.exp(-value))


def test_shuffled_vectors_are_the_negatives_of_dhcn_and_mhcn():
    u, e = UNITS.numpy(), OTHERS.numpy()  # two encodings; for MHCN users and their hyperedges
    mixed, others = (shuffled(part, rows=True, columns=True, rng=ns.rng_for(0)) for part in (u, e))
    u_r = shuffled(u, rng=ns.rng_for(1))
    own, wrong, far, near = (torch.from_numpy((a * b).sum(1)) for a, b in ((u, e), (mixed, e), (u, others), (u_r, e)))
    wanted = [minus_log_sigmoid(u[i] @ e[i]) + minus_log_sigmoid(-mixed[i] @ e[i]) for i in range(8)]
    np.testing.assert_allclose(sampled_bce(own, wrong[:, None]), wanted)
    steps = [(u[i] @ e[i] - u_r[i] @ e[i], u_r[i] @ e[i] - u[i] @ others[i]) for i in range(8)]
    wanted = [minus_log_sigmoid(one) + minus_log_sigmoid(two) for one, two in steps]
    np.testing.assert_allclose(ns.losses.bpr(own, near[:, None]) + ns.losses.bpr(near, far[:, None]), wanted)


def test_a_draw_from_a_queue_is_one_of_its_softmax():
    """The negative cache: with n by softmax over the queue, (1 - P_p) (s_n - s_p) has the gradient of the softmax."""
    scores, memory = np.array([-0.2, 0.9, 0.1]), Memory(3)
    memory.push(np.arange(3), vectors=torch.eye(3))
    sampler = Dynamic(memory, lambda anchors, ids: scores[ids], 3, temperature=1.0)
    drawn = sampler.sample(ns.Query(np.full(6000, 9)), 1, rng=ns.rng_for(0)).ids[:, 0]
    assert chisquare(np.bincount(drawn, minlength=3), 6000 * np.exp(scores) / np.exp(scores).sum()).pvalue > 1e-5


def test_a_queue_of_id_0_is_full_and_keeps_no_gradient():
    """XBM's code takes a queue for full when its last label is not 0."""
    memory = Memory(3)
    memory.push(np.zeros(3, np.int64), np.full(3, -1), vectors=torch.eye(3).requires_grad_() * 2)
    assert len(memory) == 3
    query = ns.Query(torch.tensor([9]))
    for kept in (memory.vectors, memory.draw(query, rng=ns.rng_for(0)).vectors):
        assert not kept.requires_grad
        assert kept.sum() == 6


def test_without_uniform_items_the_mixture_is_that_of_the_batch():
    """Mixed negative sampling with no corpus items is Yi et al."""
    batch, uniform = torch.log(torch.tensor([0.2, 0.05])), torch.log(torch.tensor([0.01, 0.01]))
    torch.testing.assert_close(mixture_log_q([batch, uniform], [8, 0]), batch)
    both = mixture_log_q([batch, uniform], [8, 4])
    torch.testing.assert_close(both.exp(), (8 * batch.exp() + 4 * uniform.exp()) / 12)
