"""An oracle of Corruption in plain loops, over sets, and worlds to compare with."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from naysay.pools import Corruption

NAMES = ("head", "relation", "tail")
SIDE_SETS = [sides for size in (1, 2, 3) for sides in itertools.combinations(NAMES, size)]


class Oracle:
    """Candidates and side chances by the words of the class, over sets."""

    def __init__(self, train, known, sides, choice, domains, ranges, n_entities, n_relations):
        self.train, self.known = set(train), set(train) | set(known)
        self.sides = [NAMES.index(side) for side in sides]
        self.bernoulli = choice == "bernoulli"
        self.lists = {0: domains, 2: ranges, 1: None}
        self.sizes = (n_entities, n_relations, n_entities)

    def allowed(self, side, relation):
        given = self.lists[side]
        if given is None:
            return range(self.sizes[side])
        if isinstance(given, str):
            return sorted({triple[side] for triple in self.train if triple[1] == relation})
        return sorted(set(given[relation]))

    def candidates(self, triple):
        """{side: free ids}, in the order of the sides."""
        found = {}
        for side in sorted(self.sides):
            found[side] = []
            for item in self.allowed(side, triple[1]):
                changed = (*triple[:side], item, *triple[side + 1 :])
                if changed not in self.known and item != triple[side]:
                    found[side].append(item)
        return found

    def chance(self, relation):
        """{side: chance}."""
        chance = dict.fromkeys(self.sides, 1 / len(self.sides))
        if self.bernoulli:
            mine = [(h, t) for h, r, t in self.train if r == relation]
            head = 0.5
            if mine:
                tph = len(mine) / len({h for h, _ in mine})
                hpt = len(mine) / len({t for _, t in mine})
                head = tph / (tph + hpt)
            chance[0], chance[2] = 2 / len(self.sides) * head, 2 / len(self.sides) * (1 - head)
        return chance

    def probability(self, triple, side, item, earlier=()):
        """P(side, item) given the earlier (side, item) of a distinct row."""
        free = {s: [i for i in items if (s, i) not in earlier] for s, items in self.candidates(triple).items()}
        chance = self.chance(triple[1])
        total = sum(chance[s] for s, items in free.items() if items)
        return chance[side] / total / len(free[side]) if item in free[side] else 0.0


def codes(got):
    """(B, K): 3 * id + side, -1 where empty."""
    return np.where(got.ids >= 0, 3 * got.ids + got.side, -1)


def fits(observed, expected):
    """A chi-square p-value; every cell is expected to be well filled, and probability 0 is seen never."""
    observed, expected = np.asarray(observed, np.float64), np.asarray(expected, np.float64)
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)
    assert (observed[expected == 0] == 0).all()
    observed, expected = observed[expected > 0], expected[expected > 0] * observed.sum()
    assert expected.min() > 4
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), max(len(expected) - 1, 1))


@st.composite
def worlds(draw_from):
    """A small graph, settings, and triples to corrupt that may be known, unknown, or of an unseen relation."""
    n_entities, n_relations = draw_from(st.integers(1, 6)), draw_from(st.integers(1, 3))
    entity, relation = st.integers(0, n_entities - 1), st.integers(0, n_relations - 1)
    triple = st.tuples(entity, relation, entity)
    train, known = draw_from(st.lists(triple, max_size=12)), draw_from(st.lists(triple, max_size=6))
    sides = draw_from(st.sampled_from(SIDE_SETS))
    both = "head" in sides and "tail" in sides
    choice = draw_from(st.sampled_from(["uniform", "bernoulli"])) if both else "uniform"
    lists = st.lists(st.lists(entity, max_size=8), min_size=n_relations, max_size=n_relations)
    kinds = st.none() | st.just("observed") | lists
    domains = draw_from(kinds) if "head" in sides else None
    ranges = draw_from(kinds) if "tail" in sides else None
    asked = draw_from(st.lists(triple, max_size=4))
    return train, known, sides, choice, domains, ranges, n_entities, n_relations, asked


# 24 entities and 4 relations; relation 3 never occurs, relation 1 is one-to-many.
TRAIN = [
    *((0, 1, tail) for tail in range(1, 9)),
    *((9, 1, tail) for tail in range(10, 15)),
    *((head, 0, (head * 7 + 3) % 24) for head in range(0, 24, 2)),
    *((head, 0, 5) for head in range(3, 20, 3)),
    *((head, 2, tail) for head in (1, 2) for tail in range(23) if (head, tail) != (1, 4)),
]
KNOWN = [(0, 1, 9), (0, 1, 10), (4, 0, 5), (0, 3, 1), (0, 2, 8)]
RANGES = [list(range(24)), list(range(1, 24)), [*range(12), 23], [3, 4, 5]]
DOMAINS = [list(range(0, 24, 2)), [0, 9, 11, 12], list(range(24)), list(range(20))]
SETTINGS = {
    "head and tail": {},
    "tail": {"sides": ("tail",)},
    "relation": {"sides": ("relation",)},
    "all three": {"sides": ("head", "relation", "tail")},
    "bernoulli": {"choice": "bernoulli"},
    "bernoulli, all three": {"choice": "bernoulli", "sides": ("tail", "head", "relation")},
    "observed": {"domains": "observed", "ranges": "observed"},
    "given": {"domains": DOMAINS, "ranges": RANGES},
    "given ranges": {"ranges": RANGES, "choice": "bernoulli"},
}
# One-to-many; unseen key; own part not known; a head that knows almost every tail; an unseen relation.
ASKED = [(0, 1, 3), (20, 0, 20), (0, 1, 23), (1, 2, 0), (2, 2, 23), (7, 3, 7)]


def pool_and_oracle(name, distinct):
    chosen = {"sides": ("head", "tail"), "choice": "uniform", "domains": None, "ranges": None, **SETTINGS[name]}
    pool = Corruption(TRAIN, KNOWN, n_entities=24, n_relations=4, distinct=distinct, **chosen)
    return pool, Oracle(TRAIN, KNOWN, n_entities=24, n_relations=4, **chosen)
