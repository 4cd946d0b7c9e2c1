"""Rows that take what the model scores highest among candidates."""

from naysay.catalog.rows import Alias, Method

_SCORED = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng({seed})
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T              # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
table = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 200))     # a model's scores


def score(anchors, ids):                                                 # NumPy or torch in, the same out
    found = table[np.asarray(anchors)[:, None], np.asarray(ids)]
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)


pool = ns.pools.Everything(known, distinct=False)
sampler = ns.samplers.Dynamic(pool, score, {settings})
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, {k}, rng=ns.rng_for(seed=0))
"""


def _scored(seed: int, settings: str, k: int) -> str:
    return _SCORED.format(seed=seed, settings=settings, k=k)


ROWS = (
    Method(
        name="dynamic",
        kind="hard",
        pool="global",
        summary="Of some candidates, those that the model scores highest now.",
        formula="the item of rank r among m free ones: ((m - r + 1)^N - (m - r)^N) / m^N for k = 1 of N candidates",
        parts="Dynamic(Everything(positives, distinct=False), score, candidates=32)",
        paper="Zhang et al. Optimizing Top-N Collaborative Filtering via Dynamic Negative Item Sampling. SIGIR 2013.",
        cost="a draw and a score for each candidate, and a partial sort.",
        example=_scored(0, "candidates=32", 4),
        aliases=(
            Alias(
                "DNS",
                "Zhang et al. SIGIR 2013.",
                "One negative, the highest of a few candidates.",
                _scored(1, "candidates=5", 1),
            ),
            Alias(
                "DNS(M, N)",
                "Shi et al. On the Theories Behind Hard Negative Sampling for Recommendation. WWW 2023.",
                "One of the M highest of N, each as likely; the published code sums the loss over all M.",
                _scored(2, "candidates=200, among=4", 1),
            ),
        ),
    ),
    Method(
        name="dynamic-softmax",
        kind="hard",
        pool="global",
        summary="Of some candidates, any: the higher the model scores one, the likelier it is.",
        formula="k without repeats from softmax(score / temperature) over N candidates",
        parts="Dynamic(Everything(positives, distinct=False), score, candidates=32, temperature=0.5)",
        paper="Kool et al. Stochastic Beams and Where to Find Them. ICML 2019 (Gumbel top-k).",
        cost="a draw, a score and a random number for each candidate, and a partial sort.",
        example=_scored(3, "candidates=32, temperature=0.5", 4),
    ),
)
