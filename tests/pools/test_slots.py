"""What all pools check alike."""

import numpy as np
import pytest

import naysay as ns
from naysay import NaysayError
from naysay.pools import Corruption, Everything, InBatch, KHop, Local, Memory, PageRank, Walks

GRAPH = ns.Positives.from_edges([0, 1], [1, 2])
POOLS = {
    "Everything": lambda distinct: Everything(GRAPH, distinct=distinct),
    "Local": lambda distinct: Local([[1]], distinct=distinct),
    "InBatch": lambda distinct: InBatch(distinct=distinct),
    "Memory": lambda distinct: Memory(3, distinct=distinct),
    "KHop": lambda distinct: KHop(GRAPH, distinct=distinct),
    "Walks": lambda distinct: Walks(GRAPH, distinct=distinct),
    "PageRank": lambda distinct: PageRank(GRAPH, (0, 2), distinct=distinct),
    "Corruption": lambda distinct: Corruption([[0, 0, 1]], distinct=distinct),
}


@pytest.mark.parametrize("name", POOLS)
def test_distinct_is_yes_or_no(name):
    for distinct in (True, np.False_):
        assert POOLS[name](distinct).distinct is bool(distinct)
    for distinct in ("no", 0, None):
        with pytest.raises(NaysayError) as caught:
            POOLS[name](distinct)
        assert str(caught.value) == f"{name}: `distinct` must be True or False, got {distinct!r}."
