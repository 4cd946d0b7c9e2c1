"""Rows that look for the first candidate past the margin."""

from naysay.catalog.rows import Alias, Method
from naysay.catalog.vectors import SETUP as _SETUP

_WARP = _SETUP.format(
    seed=2,
    sampler="""\
pool = ns.pools.Everything(known, distinct=False)
sampler = ns.samplers.Warp(pool, products(of_user), trials=50)""",
    k=1,
)
_WSABIE = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(0)
images = np.arange(400)
labels = rng.integers(0, 150, 400)                            # one of many labels for each image
known = ns.Positives.from_pairs(images, labels, n_items=150)
of_image, of_label = rng.standard_normal((400, 8)), rng.standard_normal((150, 8))


def score(anchors, ids):                                      # NumPy or torch in, the same out
    found = np.einsum("bd,bnd->bn", of_image[np.asarray(anchors)], of_label[np.asarray(ids)])
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)


sampler = ns.samplers.Warp(ns.pools.Everything(known, distinct=False), score, trials=149, margin=1.0)
query = ns.Query(images[:16], positives=labels[:16])
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))   # negatives.weights: 1 + 1/2 + ... + 1/rank
"""
_LIGHTFM = _SETUP.format(
    seed=3,
    sampler="""\
pool = ns.pools.Everything(known, distinct=False)
sampler = ns.samplers.Warp(pool, products(of_user), trials=10, margin=1.0, mode="lightfm")""",
    k=1,
)
_PROJECTED = _SETUP.format(
    seed=13,
    sampler="""\
pool = ns.pools.Everything(known, distinct=False)             # products of projected features, in the paper
sampler = ns.samplers.Warp(pool, products(of_user), trials=100, margin=1.0)""",
    k=1,
)
_WORDS = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(0)
text = rng.zipf(1.3, 5_000) % 300                             # a text as word ids
words, contexts = text[:-1], text[1:]                         # skip-gram pairs, window 1
known = ns.Positives.from_pairs(words, contexts, 300, 300)
table = rng.standard_normal((300, 8)) @ rng.standard_normal((8, 300))


def score(anchors, ids):                                      # NumPy or torch in, the same out
    found = table[np.asarray(anchors)[:, None], np.asarray(ids)]
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)


weights = ns.pools.popularity(np.bincount(text, minlength=300), 0.75)
sampler = ns.samplers.Warp(ns.pools.Everything(known, weights, distinct=False), score, trials=50, margin=0.0)
query = ns.Query(words[:64], positives=contexts[:64])
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))
"""

ROWS = (
    Method(
        name="warp",
        kind="hard",
        pool="global",
        summary="The first candidate that violates the margin, weighed by how few trials it took.",
        formula="first n with s_n > s_p - margin, after t trials; weight 1 + 1/2 + ... + 1/r, r = (n_items - 1) // t",
        parts="Warp(Everything(positives, distinct=False), score, trials)",
        paper="Weston et al. WSABIE. IJCAI 2011.",
        cost="The draw and a score for each of the trials, which are made at once.",
        example=_WARP,
        aliases=(
            Alias(
                "WSABIE",
                "Weston, Bengio, Usunier. WSABIE. IJCAI 2011.",
                "Up to n - 1 trials, weight by harmonic numbers.",
                _WSABIE,
            ),
            Alias(
                "LightFM",
                "Kula. Metadata Embeddings for User and Item Cold-start Recommendations. 2015.",
                "Ten trials, weight log(max(1, floor((n - 1) / t))), at most 10.",
                _LIGHTFM,
            ),
            Alias(
                "Zhao et al.",
                "Zhao et al. Improving Latent Factor Models via Personalized Feature Projection ... CIKM 2015.",
                "Uniform items, rejected until one violates the margin.",
                _PROJECTED,
            ),
            Alias(
                "Guo et al. (words)",
                "Guo et al. Approximating Word Ranking and Negative Sampling for Word Embedding. IJCAI 2018.",
                "Words that score higher than the positive: no margin.",
                _WORDS,
            ),
        ),
    ),
)
