"""The beginning of examples whose scores are products of vectors."""

SETUP = """\
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
