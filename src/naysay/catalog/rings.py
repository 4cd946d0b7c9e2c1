"""Rows for intervals of difficulty, for rows that several samplers fill, and for queues of earlier batches."""

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
    pool, score, candidates=40, keep=(0.0, ns.samplers.Linear(0.25, 1.0, steps=1000))
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
_QUEUE = """\
import numpy as np
import naysay as ns

images = np.arange({n})
known = ns.Positives.from_pairs(images, images)               # the other view of an image is its positive
rng = np.random.default_rng({seed})
keys = rng.standard_normal(({n}, 16)).astype(np.float32)       # what the slow encoder makes of them
keys /= np.linalg.norm(keys, axis=1, keepdims=True)
memory = ns.pools.Memory({size}, known)
{fill}
sampler = {sampler}
query = ns.Query(images[:64], positives=images[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))  # {last}
"""
_BATCHES = """\
for batch in np.split(images[64:], 4):                        # earlier steps
    memory.push(batch, vectors=keys[batch])"""
_MOCO_FILL = """\
for batch in np.split(rng.permutation(images), 4):            # once a step, after the loss
    memory.observe(ns.Query(batch, positives=batch), None, vectors=keys[batch])
# fast and slow being two torch modules: ns.samplers.momentum_update(fast, slow, momentum=0.999)"""
_STATIC = "ns.samplers.Static(memory)"
_MEMORY = _QUEUE.format(n=320, seed=0, size=256, fill=_BATCHES, sampler=_STATIC, last="with negatives.vectors")
_MOCO = _QUEUE.format(n=256, seed=1, size=192, fill=_MOCO_FILL, sampler=_STATIC, last="never the image itself")
_SENTENCES = _QUEUE.format(n=192, seed=2, size=160, fill=_BATCHES, sampler=_STATIC, last="sentences of earlier batches")
_GRAPHS = _QUEUE.format(n=448, seed=3, size=384, fill=_BATCHES, sampler=_STATIC, last="subgraphs of earlier batches")
_BANKED = """\
import numpy as np
import naysay as ns

images = np.arange({n})
known = ns.Positives.from_pairs(images, images)               # each image is a class of its own
features = np.random.default_rng({seed}).standard_normal(({n}, 16)).astype(np.float32)
sampler = ns.samplers.Bank(ns.pools.Everything(known), n_items={n}{options})
for batch in np.split(images, 4):                             # once a step, after the loss
    sampler.observe(ns.Query(batch, positives=batch), None, vectors=features[batch])
query = ns.Query(images[:64], positives=images[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))  # with negatives.vectors
"""
_BANK = _BANKED.format(n=200, seed=0, options="")
_INSTANCES = _BANKED.format(n=240, seed=1, options=", momentum=0.5")
_MOCORING = _QUEUE.format(
    n=384,
    seed=4,
    size=320,
    fill=_BATCHES
    + """


def score(anchors, ids):                                      # NumPy or torch in, the same out
    found = np.einsum("bd,bnd->bn", keys[np.asarray(anchors)], keys[np.asarray(ids)]).astype(float)
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)

""",
    sampler="""\
ns.samplers.Ring(
    memory, score, candidates=200, keep=(ns.samplers.Linear(0.0, 0.9, steps=10_000), 0.99)
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
        ),
    ),
    Method(
        name="memory-queue",
        kind="auxiliary",
        pool="memory",
        summary="Items of earlier batches, first in, first out, with the vectors that they had.",
        formula="uniform over the entries that are neither the anchor's own nor known of it",
        parts="Static(Memory(65_536, positives))",
        paper="He et al. Momentum Contrast for Unsupervised Visual Representation Learning. CVPR 2020.",
        cost="O(1) a draw and the copy of its vector; 16 bytes an entry and its vector.",
        example=_MEMORY,
        aliases=(
            Alias("MoCo", "He et al. CVPR 2020.", "Keys of a slow encoder: momentum_update.", _MOCO),
            Alias("ESimCSE", "Wu et al. ESimCSE. COLING 2022.", "A queue of sentences.", _SENTENCES),
            Alias("GCC", "Qiu et al. GCC. KDD 2020.", "A queue of subgraphs.", _GRAPHS),
        ),
    ),
    Method(
        name="memory-bank",
        kind="auxiliary",
        pool="memory",
        summary="Any other item, with the vector that it had when it was last seen.",
        formula="i as the pool draws; v_i <- unit(m v_i + (1 - m) f_i) when i is seen",
        parts="Bank(Everything(positives), n_items)",
        paper="Wu et al. Unsupervised Feature Learning via Non-Parametric Instance Discrimination. CVPR 2018.",
        cost="As the pool, and the copy of the vectors; n_items x d numbers.",
        example=_BANK,
        aliases=(
            Alias("instance discrimination", "Wu et al. CVPR 2018.", "Each image is a class of its own.", _INSTANCES),
        ),
    ),
)
