"""Judged: k that can be trusted, whatever the sampler and the detector, and everything left out counted."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.arrays import to_numpy
from naysay.detectors.learned_quantile import LearnedQuantile
from naysay.errors import NaysayError
from naysay.samplers import Judged
from naysay.testing import planted_world

N_ANCHORS, N_ITEMS = 6, 30
RNG = np.random.default_rng(0)
USERS, ITEMS = RNG.integers(0, (N_ANCHORS, N_ITEMS), (40, 2)).T
# An anchor that knows nearly everything, so that rows run out.
KNOWN = ns.Positives.from_pairs([*USERS, *[5] * 28], [*ITEMS, *range(28)], N_ANCHORS, N_ITEMS)
TABLE = RNG.integers(0, 5, (N_ANCHORS, N_ITEMS)) / 4


class ByTable:
    """Suspicion by anchor and item."""

    def __init__(self, table):
        self.table = table

    def suspicion(self, query, negatives):
        ids = to_numpy(negatives.ids)
        found = np.where(ids >= 0, self.table[to_numpy(query.anchors)[:, None], ids], 0.0)
        return torch.from_numpy(found) if isinstance(negatives.ids, torch.Tensor) else found


class Listed:
    """A sampler that gives each anchor its own list, in order, as far as it goes."""

    distinct = True

    def __init__(self, lists):
        self.lists = lists

    def sample(self, query, k, *, rng):
        counts = np.broadcast_to(k, len(query))
        ids = np.full((len(query), int(np.max(k, initial=0))), -1)
        for row, anchor in enumerate(to_numpy(query.anchors)):
            part = self.lists[anchor][: counts[row]]
            ids[row, : len(part)] = part
        short = int(counts.sum() - (ids >= 0).sum())
        scores = np.where(ids >= 0, ids * 0.5, 0.0)
        return ns.Negatives(ids, scores=scores, dropped={"exhausted": short, "odd": 1} if short else {}).like(query)


POOL = ns.pools.Everything(KNOWN)
SAMPLER = ns.samplers.Static(POOL)


@settings(max_examples=40)
@given(st.data())
def test_drop_as_in_loops(data):
    lists = [data.draw(st.lists(st.integers(0, 9), max_size=9, unique=True)) for _ in range(3)]
    tables = [np.array(data.draw(_table(3, 10))) for _ in range(2)]
    rows = data.draw(st.lists(st.integers(0, 2), max_size=4))
    k = data.draw(st.integers(0, 4) | st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows)))
    refill, line = data.draw(st.sampled_from([1, 1.5, 2])), data.draw(st.sampled_from([0.25, 0.5, 1.0]))
    sampler = Judged(
        Listed(lists), {"a": ByTable(tables[0]), "b": ByTable(tables[1])}, refill=refill, threshold=line, rule="mean"
    )
    query = ns.Query(np.array(rows, np.int64))
    counts = np.broadcast_to(np.array(k, np.int64), len(rows))
    wide = counts if isinstance(k, list) else k
    found = sampler.sample(query, wide, rng=ns.rng_for(0))
    width = max(k, default=0) if isinstance(k, list) else k
    assert found.shape == (len(rows), width)
    blamed, missing, empty = {"a": 0, "b": 0}, 0, 0
    for row, anchor in enumerate(rows):
        candidates = lists[anchor][: int(np.ceil(refill * counts[row]))]
        taken, before = [], {"a": 0, "b": 0}
        for item in candidates:
            if len(taken) == counts[row]:
                break
            pair = [table[anchor, item] for table in tables]
            if sum(pair) / 2 >= line:
                before["a" if pair[0] >= pair[1] else "b"] += 1
            else:
                taken.append(item)
        assert found.ids[row].tolist() == taken + [-1] * (width - len(taken))
        assert found.scores[row, : len(taken)].tolist() == [item / 2 for item in taken]
        suspicion = [(tables[0][anchor, item] + tables[1][anchor, item]) / 2 for item in taken]
        assert found.suspicion[row].tolist() == suspicion + [0] * (width - len(taken))
        blamed = {name: count + before[name] for name, count in blamed.items()}
        missing += max(int(counts[row]) - len(candidates), 0)
        empty += int(counts[row]) - len(taken)
    dropped = dict(found.dropped)
    dropped.pop("odd", None)
    assert dropped == {name: count for name, count in (*blamed.items(), ("exhausted", missing)) if count}
    assert missing <= empty <= sum(dropped.values())
    assert found.log_q is None


def _table(rows, columns):
    grid = st.integers(0, 4).map(lambda value: value / 4)
    return st.lists(st.lists(grid, min_size=columns, max_size=columns), min_size=rows, max_size=rows)


def test_slots_that_are_no_negatives_are_not_judged_again():
    inner = Judged(Listed([[0, 1, 2, 3]]), ByTable(np.eye(1, 10)), "ignore")  # item 0 is to be ignored
    others = ByTable(np.array([[0.9, 0.9, 0.0, 0.9] + [0.0] * 6]))
    found = Judged(inner, others, refill=1).sample(ns.Query([0]), 4, rng=ns.rng_for(0))
    assert found.ids.tolist() == [[0, 2, -1, -1]]
    assert found.relation.tolist() == [[2, 0, 0, 0]]


def test_short_rows_may_be_rejected():
    judged = Judged(Listed([[0, 1, 2]]), ByTable(np.array([[0, 0.9, 0] + [0] * 7])), on_short="raise")
    assert judged.sample(ns.Query([0]), 2, rng=ns.rng_for(0)).ids.tolist() == [[0, 2]]
    with pytest.raises(NaysayError, match=r"^Judged\.sample: row 0 has 2 candidates left of the 3 requested \(1 such"):
        judged.sample(ns.Query([0]), 3, rng=ns.rng_for(0))


class Moving:
    """A sampler and a detector that learn, and refuse a state that is not theirs."""

    def __init__(self):
        self.seen = 0

    def sample(self, query, k, *, rng):
        return replace(SAMPLER.sample(query, k, rng=rng), log_q=None)

    def suspicion(self, query, negatives):
        return np.zeros(negatives.shape)

    def observe(self, query, negatives, *, positive_scores=None, vectors=None):
        self.seen += len(query)

    def state(self):
        return {"seen": self.seen}

    def restore(self, state):
        if state["seen"] < 0:
            message = "Moving: `seen` must be at least 0, got less."
            raise NaysayError(message)
        self.seen = state["seen"]


def test_both_parts_learn_and_are_restored():
    judged = Judged(Moving(), {"m": Moving(), "t": ByTable(TABLE)})
    query = ns.Query([0, 1])
    judged.observe(query, judged.sample(query, 2, rng=ns.rng_for(0)))
    state = judged.state()
    assert state == {"sampler/seen": 2, "detector/m/seen": 2}
    judged.observe(query, judged.sample(query, 2, rng=ns.rng_for(0)))
    judged.restore(state)
    assert judged.state() == state
    with pytest.raises(NaysayError, match=r"^Judged\.restore: Moving: `seen` must be at least 0"):
        judged.restore({"sampler/seen": -1, "detector/m/seen": 7})
    assert judged.state() == state
    rule = r"a dictionary with the states of \['detector', 'sampler'\], as `state` returned, got the key 'detector'"
    with pytest.raises(NaysayError, match=rf"^Judged\.restore: `state` must be {rule}\.$"):
        judged.restore({"detector": {}})
    assert Judged(SAMPLER, ByTable(TABLE)).state() == {}
    Judged(SAMPLER, ByTable(TABLE)).restore({})


# ---- detectors that learn -------------------------------------------------------------------------------


class Scored:
    """Uniform candidates with their scores in a world."""

    def __init__(self, world):
        self.world, self.pool = world, ns.pools.Everything(world.known)

    def sample(self, query, k, *, rng):
        drawn = self.pool.draw(query, k, rng=rng)
        return replace(drawn, scores=self.world.scores(np.asarray(to_numpy(query.anchors)), drawn.ids)).like(query)


def flagged_of_all(world, lines):
    everyone, everything = np.arange(len(lines.thresholds)), np.arange(world.item_vectors.shape[0])
    scores = world.scores(everyone, np.tile(everything, (len(everyone), 1)))
    return float((scores > lines.thresholds[:, None]).mean())


@pytest.mark.parametrize(("policy", "in_torch"), [("drop", False), ("drop", True), ("ignore", False)])
def test_a_learned_quantile_stays_at_its_share_in_a_normal_loop(policy, in_torch):
    """Taught what is left after dropping, its lines sink until everything is flagged."""
    world = planted_world(40, 300, per_anchor=6, noise=0.5)
    lines = LearnedQuantile(40, alpha=0.1)
    judged = Judged(Scored(world), {"lines": lines}, policy)
    anchors = torch.arange(40) if in_torch else np.arange(40)
    for step in range(200):
        query = ns.Query(anchors, step=step)
        negatives = judged.sample(query, 16, rng=ns.rng_for(0, step))
        judged.observe(query, negatives)
    assert lines.seen.tolist() == [200] * 40
    assert 0.07 < flagged_of_all(world, lines) < 0.15
    if policy == "drop":
        assert (to_numpy(negatives.ids) >= 0).all()


class Told(Moving):
    """Remembers what it was told, and suspects even ids."""

    def suspicion(self, query, negatives):
        return np.where(negatives.ids % 2 == 0, 1.0, 0.0)

    def observe(self, query, negatives, *, positive_scores=None, vectors=None):
        self.told = negatives, positive_scores, vectors


def test_parts_are_told_what_was_drawn_before_the_policy():
    sampler, detector = Told(), Told()
    sampler.sample = Listed([[0, 1, 2, 3, 4, 5]] * 2).sample
    judged = Judged(sampler, {"even": detector})
    query = ns.Query([0, 1])
    handed = judged.sample(query, 2, rng=ns.rng_for(0))
    assert handed.ids.tolist() == [[1, 3]] * 2
    for same in (handed, replace(handed, scores=np.ones((2, 2))), handed.to("cpu")):
        judged.observe(ns.Query([0, 1], step=5), same, positive_scores=3, vectors=4)
        for part in (sampler, detector):
            assert part.told[0].ids.tolist() == [[0, 1, 2, 3]] * 2
            assert part.told[0].suspicion is None
            assert part.told[1:] == (3, 4)


def test_a_judged_sampler_is_told_what_it_handed_out_itself():
    inner, outer = Told(), Told()
    outer.suspicion = lambda query, negatives: np.where(negatives.ids % 3 == 0, 1.0, 0.0)
    both = Judged(Judged(Listed([list(range(12))]), {"even": inner}), {"third": outer})
    query = ns.Query([0])
    handed = both.sample(query, 2, rng=ns.rng_for(0))
    assert handed.ids.tolist() == [[1, 5]]
    both.observe(query, handed)
    assert outer.told[0].ids.tolist() == [[1, 3, 5, 7]]
    assert inner.told[0].ids.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7]]


def test_what_was_judged_but_not_last_is_rejected_by_a_detector_that_learns():
    detector, query = Told(), ns.Query([0, 1])
    judged = Judged(Listed([[0, 1, 2, 3], [4, 5, 6, 7], [3, 5, 7, 9]]), {"even": detector})
    earlier = judged.sample(query, 2, rng=ns.rng_for(0))
    judged.sample(ns.Query([2, 1]), 2, rng=ns.rng_for(0))
    rule = r"what the last `sample` returned for these anchors, or candidates without suspicion"
    got = r"got others, without the dropped candidates\. Call observe before the next sample"
    with pytest.raises(NaysayError, match=rf"^Judged\.observe: `negatives` must be {rule}, {got}"):
        judged.observe(query, earlier)
    latest = judged.sample(query, 2, rng=ns.rng_for(0))
    with pytest.raises(NaysayError, match=rf"^Judged\.observe: `negatives` must be {rule}"):
        judged.observe(ns.Query([1, 0]), latest)  # of other anchors
    assert not hasattr(detector, "told")
    raw = judged.sampler.sample(query, 2, rng=ns.rng_for(0))
    judged.observe(query, raw)  # candidates that the caller drew
    assert detector.told[0] is raw
    elsewhere = pickle.loads(pickle.dumps(Judged(judged.sampler, {"even": Told()})))  # as in a worker
    with pytest.raises(NaysayError, match=r"^Judged\.observe: `negatives` must be what the last `sample` returned"):
        elsewhere.observe(query, earlier)


def test_others_are_handed_on_where_nothing_is_lost():
    query = ns.Query([0, 1])
    keeping, learner = Told(), Told()
    ignoring = Judged(SAMPLER, {"even": keeping}, "ignore")
    still = Judged(learner, ByTable(TABLE))  # the sampler learns, no detector does
    for judged, part in ((ignoring, keeping), (still, learner)):
        earlier = judged.sample(query, 2, rng=ns.rng_for(0))
        judged.sample(query, 3, rng=ns.rng_for(1))
        judged.observe(query, earlier)
        assert part.told[0] is earlier
        judged.observe(query, None, vectors=1)
        assert part.told == (None, None, 1)


def test_if_the_sampler_rejects_a_step_the_detector_has_not_learnt_from_it():
    class Refusing(Moving):
        def observe(self, query, negatives, *, positive_scores=None, vectors=None):
            message = "no"
            raise NaysayError(message)

    judged = Judged(Refusing(), {"m": Moving()})
    query = ns.Query([0, 1])
    with pytest.raises(NaysayError, match="no"):
        judged.observe(query, judged.sample(query, 2, rng=ns.rng_for(0)))
    assert judged.state() == {"sampler/seen": 0, "detector/m/seen": 0}
