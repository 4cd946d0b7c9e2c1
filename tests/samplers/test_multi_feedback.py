"""MultiFeedback: the marginal by enumeration on six items and three levels, exact log_q, pairs, and errors."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

import naysay as ns
from naysay.samplers import MultiFeedback

PAIRS = {
    "bought": [(0, 0), (1, 3)],
    "clicked": [(0, 0), (0, 1), (1, 3), (2, 2)],
    "viewed": [(0, 1), (0, 2), (0, 3), (2, 0), (2, 2)],
}
LEVELS = {name: ns.Positives.from_pairs(*zip(*pairs, strict=True), 4, 6) for name, pairs in PAIRS.items()}
EVERY = LEVELS["bought"].union(LEVELS["clicked"]).union(LEVELS["viewed"])
REST = ns.pools.Everything(EVERY, distinct=False)
WEIGHTS = {"bought": 1.0, "clicked": 3.0, "viewed": 0.5}


def sampler(share, pool=REST):
    return MultiFeedback(LEVELS, list(WEIGHTS.values()), pool, share)


def exact(anchor, positive, share):
    """{item: probability}, in loops over the definition."""
    strongest = {}
    for name in reversed(PAIRS):
        strongest |= {item: name for one, item in PAIRS[name] if one == anchor}
    names = list(PAIRS)
    own = names.index(strongest.get(positive, "bought"))
    lower = {item: WEIGHTS[name] for item, name in strongest.items() if names.index(name) > own}
    free = [item for item in range(6) if item not in strongest]
    if not lower:
        share = 1.0
    chance = {item: (1 - share) * weight / sum(lower.values()) for item, weight in lower.items()}
    return chance | dict.fromkeys(free, share / len(free))


@pytest.mark.parametrize(("anchor", "positive"), [(0, 0), (0, 1), (0, 2), (1, 3), (2, 2), (3, 5)])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_marginal_on_six_items(anchor, positive, share):
    rows = 4000
    query = ns.Query(np.full(rows, anchor), positives=np.full(rows, positive))
    drawn = sampler(share).sample(query, 2, rng=ns.rng_for(0))
    wanted = {item: chance for item, chance in exact(anchor, positive, share).items() if chance}
    seen = Counter(drawn.ids.ravel().tolist())
    assert set(seen) == set(wanted)
    assert sum(wanted.values()) == pytest.approx(1.0)
    if len(wanted) > 1:
        assert (
            chisquare([seen[item] for item in wanted], [2 * rows * chance for chance in wanted.values()]).pvalue > 1e-5
        )
    for item, chance in wanted.items():
        assert np.exp(drawn.log_q[drawn.ids == item]) == pytest.approx(chance)
    names = np.array(drawn.source_names)[drawn.source]
    lower = {item for item in wanted if EVERY.contains([anchor], [item])[0]}
    assert ((names != "unobserved") == np.isin(drawn.ids, list(lower))).all()


def test_a_pool_that_does_not_know_the_levels_loses_them_and_log_q():
    blind = ns.pools.Everything(LEVELS["bought"], distinct=False)
    drawn = sampler(1.0, blind).sample(ns.Query([0] * 50, positives=[0] * 50), 4, rng=ns.rng_for(0))
    assert drawn.log_q is None
    assert not EVERY.contains([0] * 50, drawn.ids).any()
    assert drawn.dropped["observed"] == int((drawn.ids < 0).sum()) > 0


def test_pairs_by_weight_and_size():
    drawn = Counter(zip(*(part.tolist() for part in sampler(0.5).draw_pairs(20_000, rng=ns.rng_for(0))), strict=True))
    weights = {}
    for name in reversed(PAIRS):
        weights |= dict.fromkeys(PAIRS[name], WEIGHTS[name])
    total = sum(weights.values())
    assert set(drawn) == set(weights)
    assert (
        chisquare([drawn[pair] for pair in weights], [20_000 * one / total for one in weights.values()]).pvalue > 1e-5
    )
