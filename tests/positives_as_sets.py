"""What the tests of Positives share: making them from pairs, and reading them back as sets."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import naysay as ns

COMPILING = settings(deadline=None, max_examples=40)  # a first call compiles
N_ANCHORS, N_ITEMS = 5, 9
PAIRS = st.lists(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, N_ITEMS - 1)), max_size=60)
ARRAYS = ("indptr", "indices", "filter", "relation")


def build(pairs, n_anchors=N_ANCHORS, n_items=N_ITEMS):
    return ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], n_anchors, n_items)


def with_ignored(pairs, ignored):
    return build(pairs).with_ignored([a for a, _ in ignored], [i for _, i in ignored])


def as_set(known, relation="any"):
    anchors, items = known.pairs()
    kept = known.contains(anchors, items, relation=relation)
    return set(zip(anchors[kept].tolist(), items[kept].tolist(), strict=True))


def same(one, other):
    """Whether two have the same arrays, sizes and names."""
    arrays = all(
        (getattr(one, name) is None) == (getattr(other, name) is None)
        and (getattr(one, name) is None or np.array_equal(getattr(one, name), getattr(other, name)))
        for name in ARRAYS
    )
    rest = ("n_anchors", "n_items", "duplicates", "anchor_names", "item_names")
    return arrays and all(getattr(one, name) == getattr(other, name) for name in rest)
