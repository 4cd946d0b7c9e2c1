"""Rows that look at the anchor's vector: its distances, or the factors that matter to it."""

from naysay.catalog.rows import Alias, Method

_DISTANCE = """\
import numpy as np
import naysay as ns

pictures = np.arange(400)
known = ns.Positives.from_edges(pictures[::2], pictures[1::2])               # two views of each picture
vectors = np.random.default_rng(0).standard_normal((400, 16))
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)


def cosine(anchors, ids):                                     # NumPy or torch in, the same out
    found = np.einsum("bd,bnd->bn", vectors[np.asarray(anchors)], vectors[np.asarray(ids)])
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)


sampler = ns.samplers.DistanceWeighted(ns.pools.Everything(known), cosine, candidates=128, dim=16)
query = ns.Query(pictures[:64:2], positives=pictures[1:64:2])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))   # from all distances between 0.5 and 1.4 alike
"""
_SETUP = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng({seed})
{data}


def embed(anchors):                                           # NumPy or torch in, the same out
    found = {owners}[np.asarray(anchors)]
    return found if isinstance(anchors, np.ndarray) else anchors.double().new_tensor(found)


{sampler}
negatives = sampler.sample(query, {k}, rng=ns.rng_for(seed=0))
if sampler.due:                                               # after n log n draws
    sampler.update({items})
"""
_USERS = """\
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))"""
_OVERSAMPLED = _SETUP.format(
    seed=0,
    data=_USERS,
    owners="of_user",
    items="of_item",
    sampler="""\
sampler = ns.samplers.AdaptiveOversampling(known, of_item, embed, scale=20.0)
query = ns.Query(users[:64], positives=items[:64])""",
    k=4,
)
_AOBPR = _SETUP.format(
    seed=1,
    data=_USERS,
    owners="of_user",
    items="of_item",
    sampler="""\
sampler = ns.samplers.AdaptiveOversampling(known, of_item, embed, scale=0.1 * 200)
query = ns.Query(users[:256], positives=items[:256])          # one negative a click, for losses.bpr""",
    k=1,
)
_SGA = _SETUP.format(
    seed=2,
    data="""\
text = rng.zipf(1.3, 5_000) % 300                             # a text as word ids
words, contexts = text[:-1], text[1:]                         # skip-gram pairs, window 1
known = ns.Positives.from_pairs(words, contexts, 300, 300)
of_word, of_context = rng.standard_normal((300, 8)), rng.standard_normal((300, 8))""",
    owners="of_word",
    items="of_context",
    sampler="""\
sampler = ns.samplers.AdaptiveOversampling(known, of_context, embed, scale=30.0)
query = ns.Query(words[:64], positives=contexts[:64])""",
    k=5,
)

ROWS = (
    Method(
        name="distance-weighted",
        kind="hard",
        pool="local",
        summary="Candidates from every distance alike, where uniform draws nearly all lie at the square root of 2.",
        formula="P(n | a) ~ 1 / q(D), log 1/q = (2 - d) log D - (d - 3)/2 log(1 - D^2/4), 0.5 <= D < 1.4",
        parts="DistanceWeighted(pool, score, candidates, dim)",
        paper="Wu et al. Sampling Matters in Deep Embedding Learning. ICCV 2017.",
        cost="The draw, a score for each candidate, a partial sort.",
        example=_DISTANCE,
    ),
    Method(
        name="adaptive-oversampling",
        kind="hard",
        pool="global",
        summary="Items that rank high on a factor that is large for the anchor; no item is scored.",
        formula="P(j | a) = sum_f p(f | a) p(rank_f(j)), p(f | a) ~ |v_f| sigma_f, p(r) ~ exp(-r / scale)",
        parts="AdaptiveOversampling(positives, item_factors, embed, scale)",
        paper="Rendle and Freudenthaler. Improving Pairwise Learning for Item Recommendation. WSDM 2014.",
        cost="O(d) a draw; O(d n log n) an update; 4 bytes an item and factor.",
        example=_OVERSAMPLED,
        aliases=(
            Alias("AOBPR", "Rendle and Freudenthaler. WSDM 2014.", "One item per click, for BPR.", _AOBPR),
            Alias(
                "SGA",
                "Chen et al. Improving Negative Sampling for Word Representation. WSDM 2018.",
                "Skip-gram: context words that rank high on the word's own factors, in the place of popular ones.",
                _SGA,
            ),
        ),
    ),
)
