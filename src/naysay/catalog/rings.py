"""Rows for intervals of difficulty, and for rows that several samplers fill."""

from naysay.catalog import memories, scored_triples
from naysay.catalog.rows import Alias, Method

_SCORED = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng({seed})
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def score(anchors, ids):                                      # NumPy or torch in, the same out
    found = np.einsum("bd,bnd->bn", of_user[np.asarray(anchors)], of_item[np.asarray(ids)])
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)


pool = ns.pools.{pool}
sampler = {sampler}
query = ns.Query(users[:64], positives=items[:64]{step})
negatives = sampler.sample(query, {k}, rng=ns.rng_for(seed=0))
"""
_RING = _SCORED.format(
    seed=0,
    pool="Everything(known)",
    sampler="ns.samplers.Ring(pool, score, candidates=100, keep=(0.8, 0.95))       # hard, but not the hardest",
    step="",
    k=4,
)
_HARDEST_OUT = _SCORED.format(
    seed=1,
    pool="Everything(known)",
    sampler="""\
ns.samplers.Ring(
    pool, score, candidates=32, remove=(0.9, 1.0), refill=True, where=lambda query, ids: ids % 7 == 0
)                                                             # of the hardest, those of one class""",
    step="",
    k=32,
)
_CUCO = _SCORED.format(
    seed=2,
    pool="InBatch(known)",
    sampler="""\
ns.samplers.Ring(
    pool, score, candidates=40, keep=(0.0, ns.quantity.Linear(0.25, 1.0, steps=1000))
)                                                             # the easy ones first, all of them in the end""",
    step=", step=300",
    k=4,
)
_XIE = _SCORED.format(
    seed=3,
    pool="Everything(known)",
    sampler="ns.samplers.Ring(pool, score, candidates=100, keep=(0.5, 0.9))        # (0.9, 1) is hard",
    step="",
    k=4,
)
_MIXED = _SCORED.format(
    seed=4,
    pool="Everything(known)",
    sampler="""\
ns.samplers.Mixed(
    {"random": ns.samplers.Static(pool), "hard": ns.samplers.Dynamic(pool, score, candidates=32)}, shares=(0.5, 0.5)
)                                                             # negatives.source says which""",
    step="",
    k=8,
)
_WARM_UP = _SCORED.format(
    seed=5,
    pool="Everything(known)",
    sampler="""\
ns.samplers.Mixed(
    {"random": ns.samplers.Static(pool), "hardest": ns.samplers.Dynamic(pool, score, candidates=64)},
    shares=lambda step: (1, 0) if step < 10 * 16 else (0, 1),  # ten epochs of 16 steps
)""",
    step=", step=160",
    k=4,
)
_HALF = (
    _SCORED.format(
        seed=6,
        pool="Everything(known)",
        sampler="""\
ns.samplers.Mixed(
    {
        "random": ns.samplers.Static(pool),
        "max": ns.samplers.NearPositive(pool, alike, candidates=150),
    },
    shares=(0.5, 0.5),
)""",
        step="",
        k=4,
    )
    .replace("def score(anchors, ids):  ", "def alike(positives, ids):")
    .replace("of_user[np.asarray(anchors)]", "of_item[np.asarray(positives)]")
)
_STAR = _SCORED.format(
    seed=7,
    pool="Everything(known)",
    sampler="""\
ns.samplers.Mixed(                                  # lists of a first model, which stay as they are
    {
        "random": ns.samplers.Static(pool),
        "hard": ns.samplers.Static(ns.pools.Local(np.argsort(-of_user @ of_item.T, axis=1)[:, :50], known)),
    },
    shares=(0.5, 0.5),
)""",
    step="",
    k=8,
)
_VIEWED = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(8)
users, items = rng.integers(0, (50, 300), size=(600, 2)).T    # who bought what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=300)
viewed = [rng.integers(0, 300, 30) for _ in range(50)]        # what each looked at, and did not buy
views = ns.Positives.from_pairs(np.repeat(np.arange(50), 30), np.concatenate(viewed), n_anchors=50, n_items=300)
sampler = ns.samplers.Mixed(
    {
        "viewed": ns.samplers.Static(ns.pools.Local(viewed, known)),
        "unobserved": ns.samplers.Static(ns.pools.Everything(known.union(views))),
    },
    shares=(0.4, 0.6),
)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
"""
_PINSAGE = """\
import numpy as np
import naysay as ns

sources, targets = np.random.default_rng(0).integers(0, 400, size=(2, 800))
known = ns.Positives.from_edges(sources, targets, 400)
steps_an_epoch = 100
sampler = ns.samplers.Mixed(
    {
        "random": ns.samplers.Static(ns.pools.Everything(known)),
        "hard": ns.samplers.Static(ns.pools.PageRank(known, ranks=(0.1, 0.5))),   # ranks=(2000, 5000) in the paper
    },
    shares=lambda step: (4, step // steps_an_epoch),          # epoch e has e - 1 hard ones
)
epoch = 3
query = ns.Query(sources[:64], positives=targets[:64], step=(epoch - 1) * steps_an_epoch)
negatives = sampler.sample(query, 4 + epoch - 1, rng=ns.rng_for(seed=0))
"""
_MOCORING = memories.QUEUE.format(
    n=384,
    seed=4,
    size=320,
    fill=memories.BATCHES
    + """


def score(anchors, ids):                                      # NumPy or torch in, the same out
    found = np.einsum("bd,bnd->bn", keys[np.asarray(anchors)], keys[np.asarray(ids)]).astype(float)
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)

""",
    sampler="""\
ns.samplers.Ring(
    memory, score, candidates=200, keep=(ns.quantity.Linear(0.0, 0.9, steps=10_000), 0.99)
)                                                             # the ring closes in from outside""",
    last="close, but not too close",
)

ROWS = (
    Method(
        name="ring",
        also=("percentile interval",),
        kind="hard",
        pool="local",
        summary="Keep or remove an interval of difficulty among an anchor's candidates; k of what is left.",
        formula="of m candidates, the hardest at place 0: keep places floor((1 - high) m) to floor((1 - low) m)",
        parts="Ring(Everything(positives), score, candidates=100, keep=(0.8, 0.95))",
        paper="Wu et al. Conditional Negative Sampling for Contrastive Learning of Visual Representations. ICLR 2021.",
        cost="A draw, one call of score for (B, candidates), and a sort of each row.",
        example=_RING,
        aliases=(
            Alias(
                "MoCoRing",
                "Wu et al. ICLR 2021.",
                "A ring over a memory, which closes in as training goes on.",
                _MOCORING,
            ),
            Alias(
                "Cai et al.",
                "Cai et al. Are All Negatives Created Equal in Contrastive Instance Discrimination? 2020.",
                "Remove the very hardest, all or those of one class, and refill, or keep the hardest 5 %.",
                _HARDEST_OUT,
            ),
            Alias(
                "CuCo",
                "Chu et al. CuCo: Graph Representation with Curriculum Contrastive Learning. IJCAI 2021.",
                "From easy to hard: the interval grows with the step.",
                _CUCO,
            ),
            Alias(
                "Xie et al.",
                "Xie et al. Delving into Inter-Image Invariance for Unsupervised Visual Representations. IJCV 2022.",
                "Hard, semi-hard, random and semi-easy are four intervals.",
                _XIE,
            ),
        ),
    ),
    Method(
        name="mixed-sources",
        kind="hard",
        pool="local",
        summary="A row's slots from several samplers, by shares that may move with the step.",
        formula="part p gets floor(S_p k + u) - floor(S_(p-1) k + u) slots, S running sums of the shares, u ~ U(0, 1)",
        parts='Mixed({"random": Static(pool), "hard": Dynamic(pool, score, 32)}, shares=(0.5, 0.5))',
        paper="Ying et al. Graph Convolutional Neural Networks for Web-Scale Recommender Systems. KDD 2018.",
        cost="The parts', and a sort of K ids a row.",
        example=_MIXED,
        aliases=(
            Alias("PinSage", "Ying et al. KDD 2018.", "In epoch e, e - 1 hard ones from a PageRank window.", _PINSAGE),
            Alias(
                "Wang and Gupta",
                "Wang and Gupta. Unsupervised Learning of Visual Representations using Videos. ICCV 2015.",
                "Random for ten epochs, then the hardest.",
                _WARM_UP,
            ),
            Alias(
                "Mix Sampling",
                "Rao et al. Noise-Contrastive Estimation for Answer Selection. CIKM 2016.",
                "Half at random, half by Max Sampling.",
                _HALF,
            ),
            Alias(
                "STAR",
                "Zhan et al. Optimizing Dense Retrieval Model Training with Hard Negatives. SIGIR 2021.",
                "A fixed list of hard ones, and random ones beside them that keep training stable.",
                _STAR,
            ),
            Alias(
                "View-aware NS",
                "Ding et al. An Improved Sampler for Bayesian Personalized Ranking by Leveraging View Data. WWW 2018.",
                "What was viewed and what was not, by shares; the first above the second is another query.",
                _VIEWED,
            ),
            Alias(
                "Kanojia et al.",
                "Kanojia et al. Enhancing Knowledge Graph Embedding with Probabilistic Negative Sampling. WWW 2017.",
                "Corruptions from a list of possible entities with probability beta, any otherwise.",
                scored_triples.LISTED,
            ),
        ),
    ),
    *memories.ROWS,
)
