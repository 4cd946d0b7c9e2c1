"""Examples on triples for rows that look at the model or at the entity that is replaced."""

_SETUP = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng({seed})
triples = rng.integers(0, (100, 5, 100), size=(2000, 3))
entities, relations = rng.standard_normal((100, 8)), rng.standard_normal((5, 8))
{pool}


{score}


sampler = {sampler}
query = ns.Query(triples[:64])
negatives = sampler.sample(query, {k}, rng=ns.rng_for(seed=0))          # ids, and negatives.side says which part
"""
_POOL = """\
pool = ns.pools.Corruption(triples)
known = pool.known"""
_SCORE = """\
def score(triples, corrupted):                                # TransE: NumPy or torch in, the same out
    head, relation, tail = np.moveaxis(np.asarray(corrupted), -1, 0)
    found = -np.linalg.norm(entities[head] + relations[relation] - entities[tail], axis=-1)
    return found if isinstance(corrupted, np.ndarray) else corrupted.double().new_tensor(found)"""
_ALIKE = """\
def alike(replaced, ids):                                     # NumPy or torch in, the same out
    found = {found}
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)"""
_PRODUCT = 'np.einsum("bd,bnd->bn", entities[np.asarray(replaced)], entities[np.asarray(ids)])'


def scored(seed: int, settings: str, k: int) -> str:
    """`Dynamic` on corrupted triples."""
    sampler = f"ns.samplers.Dynamic(pool, score, {settings})"
    return _SETUP.format(seed=seed, pool=_POOL, score=_SCORE, sampler=sampler, k=k)


def near(seed: int, settings: str, k: int) -> str:
    """`NearPositive` on corrupted triples: what is like the entity that is replaced."""
    sampler = f"ns.samplers.NearPositive(pool, alike, {settings})"
    return _SETUP.format(seed=seed, pool=_POOL, score=_ALIKE.format(found=_PRODUCT), sampler=sampler, k=k)


BOOTEA = _SETUP.format(
    seed=0,
    pool="""\
heads, tails = (ns.pools.Corruption(triples, sides=(side,)) for side in ("head", "tail"))
known = tails.known""",
    score=_ALIKE.format(found=_PRODUCT),
    sampler="""\
ns.samplers.Mixed(                                  # epsilon = 0.9 of 100 entities: the 10 nearest
    {
        "head": ns.samplers.NearPositive(heads, alike, candidates=100, top_m=10),
        "tail": ns.samplers.NearPositive(tails, alike, candidates=100, top_m=10),
    },
    shares=(0.5, 0.5),
)""",
    k=4,
)
CLUSTERS = _SETUP.format(
    seed=3,
    pool=_POOL + "\nclusters = rng.integers(0, 8, 100)                            # of k-means over the entities",
    score=_ALIKE.format(found="1.0 * (clusters[np.asarray(replaced)][:, None] == clusters[np.asarray(ids)])"),
    sampler="ns.samplers.NearPositive(pool, alike, candidates=150)   # those of the cluster first, at random",
    k=4,
)
LISTED = """\
import numpy as np
import naysay as ns

triples = np.random.default_rng(4).integers(0, (100, 5, 100), size=(2000, 3))
listed = ns.pools.Corruption(triples, domains="observed", ranges="observed")  # or a list for each relation
known = listed.known
beta = 0.25                                                   # how often an entity comes from the list
sampler = ns.samplers.Mixed(
    {"listed": ns.samplers.Static(listed), "any": ns.samplers.Static(ns.pools.Corruption(triples))},
    shares=(beta, 1 - beta),
)
query = ns.Query(triples[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
"""
