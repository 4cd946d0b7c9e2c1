"""Sets the ids that a `Cached` sampler holds, through its state."""

import numpy as np


def put(sampler, rows, ids):
    """Replace the cached ids of some rows by (B, m) ids, m at most the size."""
    state = sampler.state()
    table = np.asarray(state["table"]).copy()
    given = np.asarray(ids)
    table[list(rows)] = -1
    table[list(rows), : given.shape[1]] = given
    sampler.restore({**state, "table": table})
