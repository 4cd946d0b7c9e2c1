"""Fixtures of the tests of search."""

import pytest
from index_world import CORPUS, KINDS

from naysay.search import Index


@pytest.fixture(scope="session")
def built():
    """An index of each kind by cosine."""
    return {kind: Index.build(CORPUS, kind=kind, seed=3) for kind in KINDS}
