"""Rows that look at the positive: between it and the margin, near it, or harder than it."""

from naysay.catalog import scored_triples, violators
from naysay.catalog.rows import Alias, Method
from naysay.catalog.vectors import SETUP as _SETUP

_SEMIHARD = _SETUP.format(
    seed=0,
    sampler="""\
pool = ns.pools.Everything(known)
sampler = ns.samplers.SemiHard(pool, products(of_user), candidates=64, margin=1.0, otherwise="easy")""",
    k=4,
)
_FACENET = """\
import numpy as np
import naysay as ns

people = np.arange(256) % 16                                  # 16 pictures of each person
known = ns.Positives.from_pairs(*np.nonzero(people[:, None] == people))      # none is a negative of another of theirs
rng = np.random.default_rng(0)
faces = 0.5 * rng.standard_normal((16, 32))[people] + rng.standard_normal((256, 32))
faces /= np.linalg.norm(faces, axis=1, keepdims=True)


def closeness(anchors, ids):                                  # the squared distance, turned: NumPy or torch in and out
    found = 2 * np.einsum("bd,bnd->bn", faces[np.asarray(anchors)], faces[np.asarray(ids)]) - 2
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)


sampler = ns.samplers.SemiHard(ns.pools.Everything(known), closeness, candidates=64, margin=0.2, choose="random")
query = ns.Query(np.arange(64), positives=np.arange(64) + 16)
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))   # d_ap < d_an < d_ap + 0.2
"""
_CLOSEST_FARTHER = _SETUP.format(
    seed=1,
    sampler="""\
pool = ns.pools.Everything(known)
sampler = ns.samplers.SemiHard(pool, products(of_user), candidates=64, margin=np.inf)""",
    k=1,
)
_BATCH = _SETUP.format(
    seed=10,
    sampler="""\
pool = ns.pools.InBatch(known)                                # of the batch's own items
sampler = ns.samplers.SemiHard(pool, products(of_user), candidates=63, margin=2.0, choose="random")""",
    k=1,
)
_NEAR = _SETUP.format(
    seed=4,
    sampler="""\
pool = ns.pools.Everything(known)
sampler = ns.samplers.NearPositive(pool, products(of_item), candidates=64, temperature=2.0)""",
    k=4,
)
_MAX = _SETUP.format(
    seed=5,
    sampler="""\
pool = ns.pools.Everything(known)                             # users are questions, items are answers
sampler = ns.samplers.NearPositive(pool, products(of_item), candidates=150)   # the answers most like the right one""",
    k=1,
)
_TWO_STAGE = _SETUP.format(
    seed=6,
    sampler="""\
pool = ns.pools.Everything(known, ns.pools.popularity(known, 0.75))            # stage 1: by popularity
sampler = ns.samplers.NearPositive(pool, products(of_item), candidates=50)     # stage 2: by the positive item""",
    k=4,
)
_TRANSLATIONS = _SETUP.format(
    seed=11,
    sampler="""\
pool = ns.pools.Everything(known)                             # users are sentences, items their translations
sampler = ns.samplers.NearPositive(pool, products(of_item), candidates=180)""",
    k=5,
)
_BOTH = _SETUP.format(
    seed=7,
    sampler="""\
pool = ns.pools.Everything(known)
sampler = ns.samplers.NearPositive(                           # hard for the user, then like the clicked item
    pool, products(of_item), candidates=100, first=products(of_user), shortlist=20, limit=8.0
)""",
    k=4,
)
_SOFTMAX = _SETUP.format(
    seed=8,
    sampler="""\
pool = ns.pools.Everything(known, distinct=False)
sampler = ns.samplers.SoftmaxWeights(pool, products(of_user), rho=1.0)  # losses.bpr(weights=negatives.weights)""",
    k=64,
)
_ADASIR = _SETUP.format(
    seed=9,
    sampler="""\
pool = ns.pools.Everything(known, ns.pools.popularity(known, 1.0), distinct=False)
sampler = ns.samplers.SoftmaxWeights(pool, products(of_user), temperature=1.0)  # likelier items weigh less""",
    k=32,
)
_PRIS = _SETUP.format(
    seed=12,
    sampler="""\
pool = ns.pools.Everything(known, ns.pools.popularity(known, 0.5), distinct=False)
sampler = ns.samplers.SoftmaxWeights(pool, products(of_user), temperature=1.0)  # softmax(s - log q)""",
    k=16,
)

ROWS = (
    Method(
        name="semi-hard",
        kind="hard",
        pool="local",
        summary="Candidates that score below the positive, but by less than the margin.",
        formula="{n : s_p - margin < s_n < s_p}, the k highest or any k; d_ap < d_an < d_ap + margin in distances",
        parts="SemiHard(pool, score, candidates, margin)",
        paper="Schroff et al. FaceNet. CVPR 2015.",
        cost="The draw, a score for each candidate and each positive, a partial sort.",
        example=_SEMIHARD,
        aliases=(
            Alias(
                "FaceNet",
                "Schroff et al. FaceNet. CVPR 2015.",
                "Any of the band, in squared distances of unit vectors, margin 0.2.",
                _FACENET,
            ),
            Alias(
                "Mao et al.",
                "Mao et al. Metric Learning for Adversarial Robustness. NeurIPS 2019.",
                "Of the mini-batch, not of the whole set.",
                _BATCH,
            ),
            Alias(
                "closest farther negative",
                "The semihard choice of pytorch-metric-learning's BatchEasyHardMiner.",
                "An endless margin: the highest score below the positive's.",
                _CLOSEST_FARTHER,
            ),
        ),
    ),
    *violators.ROWS,
    Method(
        name="near-positive",
        kind="hard",
        pool="local",
        summary="Candidates that are like the positive, whatever the anchor says of them.",
        formula="k without repeats from softmax(s(p, n) / temperature); the k highest at 0; any k of the M highest",
        parts="NearPositive(pool, score, candidates)",
        paper="Positive-based sampling in the review's framework (Yang et al., TPAMI 2024).",
        cost="The draw, a score for each candidate, a partial sort.",
        example=_NEAR,
        aliases=(
            Alias(
                "Max Sampling",
                "Rao et al. Noise-Contrastive Estimation for Answer Selection. CIKM 2016.",
                "The answer that is most like the right one.",
                _MAX,
            ),
            Alias(
                "two-stage",
                "Tran et al. Improving Collaborative Metric Learning with Efficient Negative Sampling. SIGIR 2019.",
                "Candidates by popularity, then by their likeness to the positive item.",
                _TWO_STAGE,
            ),
            Alias(
                "BootEA",
                "Sun et al. Bootstrapping Entity Alignment with Knowledge Graph Embedding. IJCAI 2018.",
                "Epsilon-truncated: uniform over the ceil((1 - epsilon) N) nearest of the true entity.",
                scored_triples.BOOTEA,
            ),
            Alias(
                "nearest-neighbour sampling",
                "Kotnis and Nastase. Analysis of the Impact of Negative Sampling on Link Prediction ... 2017.",
                "Entities near the one that is replaced, by a model that was trained before.",
                scored_triples.near(5, "candidates=150", 4),
            ),
            Alias(
                "SNS",
                "Islam et al. Simple Negative Sampling for Link Prediction in Knowledge Graphs. 2021.",
                "Of a few random entities the nearest to the one that is replaced.",
                scored_triples.near(6, "candidates=16", 1),
            ),
            Alias(
                "ANS (clusters)",
                "Qin et al. Knowledge Graph Embedding Based on Adaptive Negative Sampling. 2019.",
                "Entities of the same cluster as the one that is replaced, each as likely.",
                scored_triples.CLUSTERS,
            ),
            Alias(
                "Guo et al. (translations)",
                "Guo et al. Effective Parallel Corpus Mining using Bilingual Sentence Embeddings. WMT 2018.",
                "Sentences near the right translation (the review's reading).",
                _TRANSLATIONS,
            ),
            Alias(
                "anchor, then positive",
                "Both of the review's bases of hardness, one after the other.",
                "A shortlist by the anchor, of it the nearest to the positive, none nearer than a limit.",
                _BOTH,
            ),
        ),
    ),
    Method(
        name="softmax-weights",
        also=("Softmax(rho, N)",),
        kind="hard",
        pool="global",
        summary="Every candidate is taken; the hard ones weigh more, by a softmax whose sharpness fits the row.",
        formula="w = softmax(Z / tau - log q), Z = -log sigmoid(s_p - s_n), tau = sqrt(Var(Z) / (2 rho))",
        parts="SoftmaxWeights(Everything(positives, distinct=False), score, rho)",
        paper="Shi et al. On the Theories Behind Hard Negative Sampling for Recommendation. WWW 2023.",
        cost="The draw and a score for each of the k candidates and each positive.",
        example=_SOFTMAX,
        aliases=(
            Alias(
                "PRIS",
                "Lian et al. Personalized Ranking with Importance Sampling. WWW 2020.",
                "Drawn by popularity, weighed by softmax(s - log q); its draw by clusters is not here.",
                _PRIS,
            ),
            Alias(
                "AdaSIR",
                "Chen et al. Learning Recommenders for Implicit Feedback with Importance Resampling. WWW 2022.",
                "softmax(s / temperature - log q) as weights; the paper resamples by them.",
                _ADASIR,
            ),
        ),
    ),
)
