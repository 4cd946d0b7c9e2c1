"""Rows that take what the model scores highest among candidates, or from lists that were made so."""

from naysay.catalog.rows import Alias, Method
from naysay.catalog.scored_triples import scored

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


pool = ns.pools.{pool}
sampler = ns.samplers.Dynamic(pool, score, {settings})
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, {k}, rng=ns.rng_for(seed=0))
"""


_LISTED = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng({seed})
{data}
sampler = ns.samplers.Static(ns.pools.Local({lists}, known))
query = ns.Query({anchors}[:64], positives={positives}[:64])
negatives = sampler.sample(query, {k}, rng=ns.rng_for(seed=0))
"""


def _scored(seed: int, settings: str, k: int, pool: str = "Everything(known, distinct=False)") -> str:
    return _SCORED.format(seed=seed, settings=settings, k=k, pool=pool)


def _listed(seed: int, data: str, lists: str, anchors: str, positives: str, k: int) -> str:
    return _LISTED.format(seed=seed, data=data, lists=lists, anchors=anchors, positives=positives, k=k)


_FOUND = """\
questions, passages = rng.integers(0, (50, 400), size=(600, 2)).T
known = ns.Positives.from_pairs(questions, passages, n_anchors=50, n_items=400)
of_question, of_passage = rng.standard_normal((50, 8)), rng.standard_normal((400, 8))
best = np.argsort(-of_question @ of_passage.T, axis=1)[:, :{n}]   # {what}"""
_LISTS = _listed(0, _FOUND.format(n=50, what="what a search found"), "best", "questions", "passages", k=4)
_ANCE = _listed(
    1, _FOUND.format(n=100, what="made anew by the model now and then"), "best", "questions", "passages", k=8
)
_GILLICK = _listed(
    2,
    """\
mentions, right = np.arange(200), rng.integers(0, 300, 200)   # the entity that each mention means
known = ns.Positives.from_pairs(mentions, right, n_items=300)
scores = rng.standard_normal((200, 8)) @ rng.standard_normal((8, 300))        # by the model as it is now
best = np.argsort(-scores, axis=1)[:, :10]
above = np.take_along_axis(scores, best, axis=1) > scores[mentions, right][:, None]""",
    "np.where(above, best, -1)",
    "mentions",
    "right",
    k=4,
)
_SPANS = _listed(
    3,
    """\
spans = np.arange(2000)                                       # span s stands in sentence s // 20
named = rng.permutation(spans)[:300]                          # those that are labelled as names
known = ns.Positives.from_pairs(named // 20, named, n_anchors=100, n_items=2000)""",
    "spans.reshape(100, 20)",
    "(named // 20)",
    "named",
    k=5,
)
_TIME = _listed(
    4,
    """\
frames = np.arange(400)                                       # ten videos of 40 frames, each seen by two cameras
known = ns.Positives.from_pairs(frames, frames)               # the same moment, seen by the other camera
near = np.abs(frames[:, None] - frames) < 5
far = (frames[:, None] // 40 == frames // 40) & ~near         # other moments of the video, but not the next ones""",
    "[np.flatnonzero(row) for row in far]",
    "frames",
    "frames",
    k=4,
)
_SOCIAL = _listed(
    5,
    """\
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
clicked = np.zeros((50, 200), bool)
clicked[users, items] = True
social = (rng.random((50, 50)) < 0.1) @ clicked               # what friends clicked""",
    "[np.flatnonzero(row) for row in social]",
    "users",
    "items",
    k=2,
)


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
                _scored(2, "candidates=200, top_m=4", 1),
            ),
            Alias(
                "Simo-Serra et al.",
                "Simo-Serra et al. Discriminative Learning of Deep Convolutional Feature Point Descriptors. ICCV 2015.",
                "Many go forward, the hardest eighth of them go back.",
                _scored(6, "candidates=128", 16, "Everything(known)"),
            ),
            Alias(
                "near-miss sampling",
                "Kotnis and Nastase. Analysis of the Impact of Negative Sampling on Link Prediction ... 2017.",
                "Corrupted triples that the model takes for true.",
                scored(1, "candidates=64", 4),
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
        aliases=(
            Alias(
                "Shan et al.",
                "Shan et al. Confidence-Aware Negative Sampling Method for Noisy Knowledge Graph Embedding. ICBK 2018.",
                "Corrupted triples by a softmax of the model's scores; its confidence of triples is not here.",
                scored(2, "candidates=32, temperature=1.0", 1),
            ),
        ),
    ),
    Method(
        name="listed",
        kind="hard",
        pool="local",
        summary="Candidates from a list of the anchor's own: what a search found, what it was shown, what is near.",
        formula="P(i | a) = 1 / |list(a) without what is known|",
        parts="Static(Local(lists, positives))",
        paper="Xiong et al. Approximate Nearest Neighbor Negative Contrastive Learning for ... Retrieval. ICLR 2021.",
        cost="O(1) a draw; 4 bytes a candidate and 8 an anchor. Making the lists is a search, now and then.",
        example=_LISTS,
        aliases=(
            Alias("ANCE", "Xiong et al. ICLR 2021.", "The best by the model, searched anew as it learns.", _ANCE),
            Alias(
                "Gillick et al.",
                "Gillick et al. Learning Dense Representations for Entity Retrieval. CoNLL 2019.",
                "Of the ten nearest entities those that rank above the right one.",
                _GILLICK,
            ),
            Alias(
                "Li et al. (spans)",
                "Li et al. Empirical Analysis of Unlabeled Entity Problem in Named Entity Recognition. ICLR 2021.",
                "A few of a sentence's unlabelled spans.",
                _SPANS,
            ),
            Alias(
                "time-contrastive",
                "Sermanet et al. Time-Contrastive Networks: Self-Supervised Learning from Video. ICRA 2018.",
                "Other moments of the same video.",
                _TIME,
            ),
            Alias(
                "SBPR",
                "Zhao et al. Leveraging Social Connections to Improve Personalized Ranking ... CIKM 2014.",
                "What friends have, below what is one's own; that it stands above the rest is a second query.",
                _SOCIAL,
            ),
        ),
    ),
)
