"""Rows for negatives that are mixed in embedding space: no item, but between items."""

from naysay.catalog.rows import Alias, Method

_ITEMS = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng({seed})
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, {shape}))


def vectors(table):                                           # NumPy or torch ids in, the same out
    def embed(ids):
        found = table[np.asarray(ids)]
        return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)

    return embed


sampler = {sampler}
query = ns.Query(users[:64], positives=items[:64])            # or with vectors=, instead of embed_anchors
negatives = sampler.sample(query, {k}, rng=ns.rng_for(seed=0))
"""
_MIXGCF = _ITEMS.format(
    seed=0,
    shape="3, 8",
    sampler="""\
ns.samplers.MixGCF(
    ns.pools.Everything(known), vectors(of_item), candidates=16, embed_anchors=vectors(of_user)
)                                                             # of_item: three layers of a graph network""",
    k=1,
)
_PAIRS = _ITEMS.format(
    seed=1,
    shape="8",
    sampler="""\
ns.samplers.MoCHi(
    ns.pools.Everything(known), vectors(of_item), n_hard=16, candidates=64, embed_anchors=vectors(of_user)
)""",
    k=8,
)
_MIXCSE = _ITEMS.format(
    seed=2,
    shape="8",
    sampler="""\
ns.samplers.MixGCF(
    ns.pools.InBatch(known), vectors(of_item), candidates=1, mix=(0.2, 0.2), embed_anchors=vectors(of_user)
)                                                             # then normalise negatives.vectors, and detach them""",
    k=1,
)
_MOCHI = """\
import numpy as np
import naysay as ns

images = np.arange(256)
known = ns.Positives.from_pairs(images, images)               # the other view of an image is its positive
keys = np.random.default_rng(0).standard_normal((256, 16))
keys /= np.linalg.norm(keys, axis=1, keepdims=True)
memory = ns.pools.Memory(192, known)
memory.push(images, vectors=keys)


def embed(ids):                                               # NumPy or torch ids in, the same out
    return keys[ids] if isinstance(ids, np.ndarray) else ids.double().new_tensor(keys[np.asarray(ids)])


mixing = ns.samplers.MoCHi(memory, None, n_hard=32, embed_anchors=embed)
sampler = ns.samplers.Mixed(                                  # the queue's own, and a quarter of mixed ones
    {"queue": ns.samplers.Static(memory), "mixed": mixing},
    shares=lambda step: (3, 1) if step >= 1024 else (1, 0),
)
query = ns.Query(images[:64], positives=images[:64], vectors=keys[:64], step=2048)
negatives = sampler.sample(query, 64, rng=ns.rng_for(seed=0))  # negatives.parents is -1 where nothing was mixed
"""
_MIXKG = """\
import numpy as np
import naysay as ns

triples = np.random.default_rng(0).integers(0, (100, 5, 100), size=(2000, 3))
entities = np.random.default_rng(1).standard_normal((100, 8))
pool = ns.pools.Corruption(triples, sides=("tail",))


def embed(ids):                                               # NumPy or torch ids in, the same out
    return entities[ids] if isinstance(ids, np.ndarray) else ids.double().new_tensor(entities[np.asarray(ids)])


known = pool.known
sampler = ns.samplers.MixKG(pool, None, embed, candidates=32, n_hard=8, by="entity")
query = ns.Query(triples[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # negatives.vectors stand in for the tails
"""

ROWS = (
    Method(
        name="hard-mixing",
        kind="mixed",
        pool="memory",
        summary="New vectors from an anchor's hardest candidates, mixed in pairs or with the anchor.",
        formula="unit(a n_i + (1 - a) n_j), a ~ U(0, 1); unit(b q + (1 - b) n_i), b ~ U(0, 0.5)",
        parts="MoCHi(Memory(size, positives), None, n_hard=1024)",
        paper="Kalantidis et al. Hard Negative Mixing for Contrastive Learning. NeurIPS 2020.",
        cost="The draw, a dot product for each candidate, a partial sort, O(k d) a row.",
        example=_PAIRS,
        aliases=(
            Alias(
                "MoCHi",
                "Kalantidis et al. NeurIPS 2020.",
                "Beside the queue's own negatives, after a warm-up.",
                _MOCHI,
            ),
        ),
    ),
    Method(
        name="MixGCF",
        kind="mixed",
        pool="global",
        summary="The positive mixed into candidates, the hardest of them at each layer, the layers put together.",
        formula="pooling over l of alpha e_pos(l) + (1 - alpha) e_m(l), m = argmax of e_a . e_m(l), alpha ~ U(0, 1)",
        parts="MixGCF(Everything(positives), embed, candidates=32)",
        paper="Huang et al. MixGCF: An Improved Training Method for GNN-based Recommender Systems. KDD 2021.",
        cost="The draw and embed of k M candidates a row, with gradients: O(k M layers d).",
        example=_MIXGCF,
        aliases=(
            Alias(
                "MixCSE",
                "Zhang et al. Unsupervised Sentence Representation via ... Mixing Negatives. AAAI 2022.",
                "A fifth of the positive in one random sentence of the batch; the caller normalises and detaches.",
                _MIXCSE,
            ),
        ),
    ),
    Method(
        name="MixKG",
        kind="mixed",
        pool="global",
        summary="Convex combinations of pairs of hard entities, hard by score or by likeness to the right one.",
        formula="a e_i + (1 - a) e_j, a ~ U(0, 1), i != j among the n_hard",
        parts='MixKG(Corruption(triples, sides=("tail",)), score, embed, candidates=32, n_hard=8)',
        paper="Che et al. MixKG: Mixing for Harder Negative Samples in Knowledge Graph. 2022.",
        cost="The draw, one call of score or embed for (B, candidates), a partial sort, embed of the parents.",
        example=_MIXKG,
    ),
)
