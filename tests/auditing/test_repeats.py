"""Repeated negatives: counts in plain loops, and chance against draws."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay.auditing.repeats import repeats


@given(st.lists(st.lists(st.integers(-1, 40), min_size=3, max_size=3, unique=True), min_size=1, max_size=30))
def test_counts_agree_with_plain_loops(rows):
    ids = np.array(rows)
    counts = Counter(item for row in rows for item in row if item >= 0)
    if not counts:
        return
    found = repeats(ids, 150, str)
    ordered = sorted(counts.values(), reverse=True)
    assert (found.documents, found.used) == (150, len(counts))
    assert found.top_share == pytest.approx(sum(ordered[:2]) / sum(ordered))  # 1 % of 150, rounded
    expected = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:10]
    assert found.most == tuple((row, count, str(row)) for row, count in expected)
    assert found.beyond == sum(count > found.limit for count in counts.values())


@pytest.mark.parametrize(("slots", "documents"), [(20_000, 5_000), (3_000, 50), (500, 20_000)])
def test_chance_is_what_draws_give(slots, documents):
    rng = np.random.default_rng(0)
    shares, beyond = [], 0
    for _ in range(100):
        found = repeats(rng.integers(0, documents, (slots, 1)), documents, str)
        shares.append(found.top_share)
        beyond += found.beyond > 0
    assert np.mean(shares) == pytest.approx(found.by_chance, rel=0.05)
    assert beyond <= 15  # about one in twenty, at most


def test_one_document_for_all():
    found = repeats(np.zeros((1000, 1), np.int64), 100, str)
    assert (found.top_share, found.used, found.beyond, found.most) == (1.0, 1, 1, ((0, 1000, "0"),))
    assert found.by_chance < 0.02
