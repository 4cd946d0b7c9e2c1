"""Rows that look at the positive: between it and the margin, past the margin, near it, or harder than it."""

from naysay.catalog.rows import Alias, Method

_SETUP = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng({seed})
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def products(of_owner):                                       # NumPy or torch in, the same out
    def score(owners, ids):
        found = np.einsum("bd,bnd->bn", of_owner[np.asarray(owners)], of_item[np.asarray(ids)])
        return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)

    return score


{sampler}
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, {k}, rng=ns.rng_for(seed=0))
"""
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
_BOOTEA = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(0)
triples = rng.integers(0, (100, 5, 100), size=(2000, 3))
known = ns.Positives.from_triples(triples, 100, 5)            # the tails known of each (head, relation)
entities = rng.standard_normal((100, 8))


def alike(positives, ids):                                    # NumPy or torch in, the same out
    found = np.einsum("bd,bnd->bn", entities[np.asarray(positives)], entities[np.asarray(ids)])
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)


epsilon, n = 0.9, 100
sampler = ns.samplers.NearPositive(ns.pools.Everything(known), alike, n, among=int(np.ceil((1 - epsilon) * n)))
query = ns.Query(triples[:64, 0] * 5 + triples[:64, 1], positives=triples[:64, 2])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))   # uniform over the 10 nearest of the true tail
"""
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
                "closest farther negative",
                "The semihard choice of pytorch-metric-learning's BatchEasyHardMiner.",
                "An endless margin: the highest score below the positive's.",
                _CLOSEST_FARTHER,
            ),
        ),
    ),
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
        ),
    ),
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
                _BOOTEA,
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
                "AdaSIR",
                "Chen et al. Learning Recommenders for Implicit Feedback with Importance Resampling. WWW 2022.",
                "softmax(s / temperature - log q) as weights; the paper resamples by them.",
                _ADASIR,
            ),
        ),
    ),
)
