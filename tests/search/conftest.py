"""Fixtures of the tests of search."""

import pytest
from search_world import clustered

from naysay.search import Index


@pytest.fixture(scope="session")
def built():
    """An index of each kind by cosine, of `clustered(3000, 1)`."""
    return {kind: Index.build(clustered(3000, 1), kind=kind, seed=3) for kind in ("ivf", "hnsw")}
