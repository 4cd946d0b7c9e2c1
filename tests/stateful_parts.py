"""One of every public class with a state: how it is made, what teaches it, and what it then answers."""

import functools

import numpy as np
import torch

import naysay as ns
from tests.detectors.posterior_worlds import planted

N_ANCHORS, N_ITEMS, WIDTH = 8, 30, 4
RNG = np.random.default_rng(0)
TABLE = RNG.uniform(-0.9, 0.9, (N_ANCHORS, N_ITEMS))
VECTORS = RNG.standard_normal((N_ITEMS, WIDTH))
KNOWN = ns.Positives.from_pairs(np.arange(N_ANCHORS), np.arange(N_ANCHORS), N_ANCHORS, N_ITEMS)
POOL = ns.pools.Everything(KNOWN)
QUERY = ns.Query(np.arange(N_ANCHORS), positives=np.arange(N_ANCHORS), vectors=VECTORS[:N_ANCHORS])
ASKED = np.tile(np.arange(10, 16), (N_ANCHORS, 1))
NEGATIVES = ns.Negatives(ASKED, scores=TABLE[np.arange(N_ANCHORS)[:, None], ASKED], vectors=VECTORS[ASKED])
STEPS = 1000


def score(anchors, ids):
    return TABLE[anchors[:, None], ids]


def of_pairs(anchors, ids):
    return TABLE[anchors, ids]


def learnt_online(online):
    for step in range(0, 601, 50):
        level = 1 - np.exp(-step / 200)
        for split in ("validation", "training"):
            rng = ns.rng_for(1, step, rank=int(split == "training"))
            online.record(step, level + rng.standard_normal(400), rng.standard_normal((400, 2)), split)


def observed(part):
    part.observe(QUERY, NEGATIVES, vectors=VECTORS[:N_ANCHORS])


def judged_step(judged):
    judged.observe(QUERY, judged.sample(QUERY, 4, rng=ns.rng_for(3)), vectors=VECTORS[:N_ANCHORS])


def suspicion(part):
    return part.suspicion(QUERY, NEGATIVES)


def sample(part):
    return part.sample(QUERY, 4, rng=ns.rng_for(1)).ids


def draw(part):
    return part.draw(QUERY, 4, rng=ns.rng_for(1)).ids


def mixture():
    return ns.detectors.Mixture(bounds=(-1, 1))


def quantile():
    return ns.detectors.LearnedQuantile(N_ANCHORS, alpha=0.2)


def combined():
    inner = ns.detectors.Combined({"mixture": mixture(), "groups": ns.detectors.SoftClusters(3)})
    return ns.detectors.Combined({"lines": quantile(), "inner": inner}, "mean")


def taught_parts(both):
    both.detectors["lines"].observe(QUERY, NEGATIVES)
    both.detectors["inner"].detectors["mixture"].update(TABLE)
    both.detectors["inner"].detectors["groups"].update(VECTORS, rng=ns.rng_for(0))
    both.suspicion(QUERY, NEGATIVES)


def judged():
    hard = ns.samplers.Dynamic(POOL, score, candidates=12)
    return ns.samplers.Judged(_Scored(ns.samplers.Bank(POOL, N_ITEMS), hard), {"lines": quantile()})


class _Scored:
    """A sampler that scores, with the state of one that does not."""

    def __init__(self, banked, hard):
        self.banked, self.hard = banked, hard
        self.observe, self.state, self.restore = banked.observe, banked.state, banked.restore

    def sample(self, query, k, *, rng):
        return self.hard.sample(query, k, rng=rng)


def posterior():
    return ns.detectors.Posterior(k=5, depth=20, alike=of_pairs, positive_scores=TABLE[:, 0])


@functools.cache
def posterior_state():
    scores, own, _, alike = planted(0, anchors=60, items=40, depth=25)
    return posterior().fit(scores, own, alike=alike).state()  # a fit does not read what was learnt before it


def oversampling():
    return ns.samplers.AdaptiveOversampling(KNOWN, VECTORS, lambda anchors: VECTORS[anchors], scale=3.0)


def srns():
    return ns.samplers.Cached(POOL, score, 6, 6, choose="top", history=2, bonus=2.0)


def two_epochs(part):
    for _ in range(2):
        observed(part)
        part.update()


def by_item():
    """A generator of one logit for each item, and its optimiser."""
    logits = torch.zeros(N_ITEMS, requires_grad=True)
    return lambda anchors, ids: logits[ids], torch.optim.SGD([logits], 0.1)


def learned():
    return ns.samplers.Learned(POOL, *by_item(), score)


def graph_policy():
    ring = np.arange(N_ITEMS)
    graph = ns.Positives.from_edges(np.r_[ring, ring], np.r_[(ring + 1) % N_ITEMS, (ring + 3) % N_ITEMS])
    return ns.samplers.GraphPolicy(graph, *by_item(), lambda anchors, ids: ids * 1.0)


def generated():
    net = torch.nn.Linear(WIDTH, WIDTH, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.eye(WIDTH))
    vectors = torch.from_numpy(VECTORS).float()

    def loss(anchors, positives, made):
        return ns.losses.bpr((anchors * positives).sum(-1), (anchors[:, None] * made).sum(-1))

    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    return ns.samplers.Generated(
        ns.samplers.Static(POOL), lambda ids: vectors[ids], lambda a, p, n, z: net(n), optimizer, loss
    )


def torch_query():
    anchors = torch.arange(N_ANCHORS)
    return ns.Query(anchors, positives=anchors, vectors=torch.from_numpy(VECTORS[:N_ANCHORS]).float())


def generated_step(part):
    part.observe(torch_query(), part.sample(torch_query(), 4, rng=ns.rng_for(2)))


# How a part is made, what teaches it, and an answer that depends on what it was taught.
PARTS = {
    "Calibrated": (
        lambda: ns.detectors.Calibrated(0.1),
        lambda part: part.fit(TABLE.reshape(-1)[:40]),
        suspicion,
    ),
    "Combined": (combined, taught_parts, suspicion),
    "Incremental": (
        lambda: ns.detectors.Incremental(N_ITEMS, (3, 5)),
        lambda part: part.update(VECTORS, 0.9),
        suspicion,
    ),
    "Judged": (judged, judged_step, sample),
    "Labelled": (
        ns.detectors.Labelled,
        lambda part: part.fit(QUERY, NEGATIVES, lambda anchors, ids: score(anchors, ids) > 0.1),
        suspicion,
    ),
    "LearnedQuantile": (quantile, observed, suspicion),
    "Mixture": (mixture, lambda part: part.update(TABLE), suspicion),
    "Mixture, normal": (lambda: ns.detectors.Mixture("normal"), lambda part: part.update(TABLE), suspicion),
    "Posterior": (posterior, lambda part: part.restore(posterior_state()), suspicion),
    "SoftClusters": (
        lambda: ns.detectors.SoftClusters(3),
        lambda part: part.update(VECTORS, rng=ns.rng_for(0)),
        suspicion,
    ),
    "Memory": (lambda: ns.pools.Memory(16, KNOWN), lambda part: part.push([3, 9, 4], [0, 1, 2], VECTORS[:3]), draw),
    "Memory without vectors": (lambda: ns.pools.Memory(16, KNOWN), lambda part: part.push([3, 9], [0, 1]), draw),
    "Nearest": (
        lambda: ns.pools.Nearest(VECTORS[::-1], 9, KNOWN, queries=VECTORS[:N_ANCHORS]),
        lambda part: part.update(VECTORS, age=3),
        draw,
    ),
    "StreamingFrequency": (
        lambda: ns.pools.StreamingFrequency(N_ITEMS, rate=0.5, unseen=2.0),
        lambda part: part.observe(
            ns.Query(ASKED[0], positives=ASKED[0], step=int(max(-1, part.state()["last"].max())) + 2)
        ),
        lambda part: np.exp(part.log_q(ASKED)),
    ),
    "Bank": (
        lambda: ns.samplers.Bank(POOL, N_ITEMS),
        observed,
        lambda part: part.sample(QUERY, 20, rng=ns.rng_for(1)).vectors,
    ),
    "Cached": (lambda: ns.samplers.Cached(POOL, score, 6, 6), observed, sample),
    "Cached with a history": (srns, two_epochs, sample),
    "AdaptiveOversampling": (oversampling, lambda part: part.update(-(VECTORS[::-1] ** 3)), sample),
    "Learned": (learned, observed, sample),
    "GraphPolicy": (graph_policy, observed, sample),
    "Generated": (
        generated,
        generated_step,
        lambda part: part.sample(torch_query(), 4, rng=ns.rng_for(1)).vectors.detach().numpy(),
    ),
    "MarkovChain": (
        lambda: ns.samplers.MarkovChain(KNOWN, lambda anchors, ids: ids * 1.0 + 1.0),
        observed,
        sample,
    ),
    "ByLoss": (
        lambda: ns.batches.ByLoss(ASKED.size, 6),
        lambda part: part.observe(np.arange(ASKED.size), np.sin(np.arange(ASKED.size))),
        lambda part: part.chances(0).reshape(ASKED.shape),
    ),
    "RandomWalkBatches": (
        lambda: ns.batches.RandomWalkBatches(ASKED.size, ASKED.shape[1], neighbours=4, candidates=9),
        lambda part: part.update(np.resize(VECTORS, (ASKED.size, WIDTH)), rng=ns.rng_for(0)),
        lambda part: part.plan(0, rng=ns.rng_for(1)) / ASKED.size,
    ),
    "Online": (lambda: ns.quantity.Online(STEPS), learnt_online, lambda part: part.k_at(700)),
}


def same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert np.asarray(value).dtype == np.asarray(other[name]).dtype, name
        np.testing.assert_array_equal(value, other[name], err_msg=name)
