"""Guide: asked in batches, about the slots that matter, once each, and never about an empty one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.arrays import to_numpy
from naysay.detectors.guide import Guide
from naysay.errors import NaysayError

TABLE = np.random.default_rng(0).integers(-6, 7, (5, 9)) / 2.0


class Teacher:
    """A guide by a table; it remembers what it was asked."""

    def __init__(self, table=TABLE):
        self.table, self.calls = table, []

    def __call__(self, anchors, ids):
        self.calls.append([(int(a), int(i)) for a, i in zip(anchors, ids, strict=True)])
        assert all(i >= 0 for _, i in self.calls[-1])
        found = self.table[to_numpy(anchors), to_numpy(ids)]
        return torch.from_numpy(found) if isinstance(ids, torch.Tensor) else found

    @property
    def pairs(self):
        return [pair for call in self.calls for pair in call]


class Fixed:
    """A first opinion with numbers of its own."""

    def __init__(self, values):
        self.values = np.asarray(values, float)

    def suspicion(self, query, negatives):
        found = np.where(to_numpy(negatives.ids) >= 0, self.values[: len(query)], 0.0)
        return torch.from_numpy(found) if isinstance(negatives.ids, torch.Tensor) else found


def logistic(value):
    return 1 / (1 + np.exp(-value))


# ---- what the peers get wrong ---------------------------------------------------------------------------


def test_one_call_for_many_queries_and_none_for_an_empty_slot():
    """sentence-transformers 6.2.0 calls the cross-encoder query by query, on index -1 too, and only with a margin."""
    teacher = Teacher()
    ids = np.array([[0, -1, 3], [-1, -1, -1], [8, 8, 1], [0, 2, -1]])
    query = ns.Query([0, 1, 2, 0])
    found = Guide(teacher, 0.5).suspicion(query, ns.Negatives(ids))
    assert len(teacher.calls) == 1
    assert sorted(teacher.pairs) == [(0, 0), (0, 2), (0, 3), (2, 1), (2, 8)]
    filled = ids >= 0
    expected = np.where(filled, logistic(TABLE[query.anchors[:, None], ids] - 0.5), 0)
    assert np.allclose(found, expected, rtol=0, atol=1e-7)
    assert np.array_equal(found >= 0.5, filled & (TABLE[query.anchors[:, None], ids] >= 0.5))


# ---- as in loops ----------------------------------------------------------------------------------------


@given(st.data())
def test_it_asks_and_answers_as_loops_do(data):
    rows = data.draw(st.integers(0, 4))
    anchors = np.array([data.draw(st.integers(0, 4)) for _ in range(rows)], np.int64)
    positives = np.array([data.draw(st.integers(0, 8)) for _ in range(rows)], np.int64)
    ids = np.array([[data.draw(st.integers(-1, 8)) for _ in range(3)] for _ in range(rows)], np.int64).reshape(rows, 3)
    scores = np.array([[data.draw(st.integers(0, 6)) / 4 for _ in range(3)] for _ in range(rows)]).reshape(rows, 3)
    first = data.draw(st.sampled_from([None, 0.5, 1.0]))
    near = data.draw(st.sampled_from([None, 0.25, 0.5])) if first is not None else None
    budget = data.draw(st.none() | st.integers(0, 6)) if first is not None else None
    margin, relative = data.draw(st.sampled_from([(None, False), (0.0, False), (0.5, False), (0.25, True)]))
    batch, in_torch = data.draw(st.integers(1, 5)), data.draw(st.booleans())
    teacher = Teacher()
    guide = Guide(
        teacher,
        None if margin is not None else 1.0,
        margin=margin,
        relative=relative,
        first=first,
        max_distance=near,
        budget=budget,
        batch_size=batch,
        scale=2.0,
    )
    query, negatives = ns.Query(anchors, positives=positives), ns.Negatives(ids, scores=scores)
    if in_torch:
        query = ns.Query(torch.from_numpy(anchors), positives=torch.from_numpy(positives))
        negatives = negatives.to("cpu")
    found = guide.suspicion(query, negatives)
    assert isinstance(found, torch.Tensor) is in_torch

    open_slots = [(b, j) for b in range(rows) for j in range(3) if ids[b, j] >= 0]
    if first is not None:
        open_slots = [s for s in open_slots if near is None or abs(scores[s] - first) <= near]
        open_slots.sort(key=lambda slot: abs(scores[slot] - first))
    spent = []
    for slot in open_slots:
        needed = [(anchors[slot[0]], ids[slot])]
        if margin is not None:
            needed.append((anchors[slot[0]], positives[slot[0]]))
        fresh = [pair for pair in dict.fromkeys(needed) if pair not in spent]
        if budget is not None and len(spent) + len(fresh) > budget:
            break
        spent += fresh
    assert teacher.pairs == spent
    assert [len(call) for call in teacher.calls] == [len(spent[i : i + batch]) for i in range(0, len(spent), batch)]
    assert guide.n_scored == len(spent)
    changed = 0
    for b in range(rows):
        for j in range(3):
            opinion = 0.0 if first is None or ids[b, j] < 0 else logistic(scores[b, j] - first)
            needed = [(anchors[b], ids[b, j])] + ([(anchors[b], positives[b])] if margin is not None else [])
            if (b, j) not in open_slots or not all(pair in spent for pair in needed):
                assert float(found[b, j]) == pytest.approx(opinion, abs=1e-7)
                continue
            g, p = TABLE[anchors[b], ids[b, j]], TABLE[anchors[b], positives[b]]
            line = 1.0 if margin is None else p - margin * (abs(p) if relative else 1)
            assert float(found[b, j]) == pytest.approx(logistic((g - line) / 2), abs=1e-7)
            flagged = g >= line if margin is None else g > line
            assert (float(found[b, j]) >= 0.5) == flagged
            changed += first is not None and flagged != (scores[b, j] >= first)
    assert guide.n_changed == changed


def test_the_nearest_to_the_line_are_asked_first():
    teacher = Teacher()
    negatives = ns.Negatives(np.array([[0, 1, 2, 3]]), scores=np.array([[0.1, 0.52, 0.9, 0.45]]))
    guide = Guide(teacher, 0.0, first=0.5, budget=2)
    found = guide.suspicion(ns.Query([0]), negatives)
    assert teacher.pairs == [(0, 1), (0, 3)]
    assert np.allclose(found[0, [0, 2]], logistic(np.array([-0.4, 0.4])))


def test_a_detector_may_be_the_first_opinion():
    teacher = Teacher()
    values = [[0.1, 0.45, 0.95, 0.7]]
    guide = Guide(teacher, 0.0, first=Fixed(values), max_distance=0.2, budget=9)
    found = guide.suspicion(ns.Query([0]), ns.Negatives(np.array([[0, 1, 2, 3]])))
    assert teacher.pairs == [(0, 1), (0, 3)]
    assert found[0, [0, 2]].tolist() == [0.1, 0.95]


@given(st.floats(0, 1), st.floats(0.01, 0.99))
def test_probabilities(chance, line):
    guide = Guide(lambda anchors, ids: np.full(len(ids), chance), line, output="probabilities")
    found = float(guide.suspicion(ns.Query([0]), ns.Negatives(np.array([[1]])))[0, 0])
    odds = chance * (1 - line)
    assert found == pytest.approx(odds / (odds + (1 - chance) * line), abs=1e-7)
    assert (found >= 0.5) == (chance >= line)


def test_gist_agrees_with_the_guided_loss():
    rng = np.random.default_rng(0)
    anchors, ids = np.array([0, 1, 2, 3]), rng.integers(0, 9, (4, 5))
    positives = np.array([1, 2, 3, 4])
    for relative in (False, True):
        guide = Guide(Teacher(), margin=0.25, relative=relative)
        found = guide.suspicion(ns.Query(anchors, positives=positives), ns.Negatives(ids))
        g, p = TABLE[anchors[:, None], ids], TABLE[anchors, positives]
        scores = torch.from_numpy(rng.random((4, 5)))
        loss = ns.losses.gist(
            scores[:, 0],
            scores,
            guide_positive=p,
            guide_negatives=g,
            margin=0.25,
            relative=relative,
            temperature=1.0,
        )
        kept = torch.from_numpy(found < 0.5)
        assert torch.allclose(ns.losses.info_nce(scores[:, 0], scores, mask=kept), loss)


def test_triples_are_asked_about_as_triples():
    seen = []

    def score(triples, corrupted):
        seen.append((triples.tolist(), corrupted.tolist()))
        return corrupted.sum(axis=1)

    negatives = ns.Negatives(np.array([[7, -1, 4]]), side=np.array([[0, -1, 2]], np.int8))
    query = ns.Query([[1, 2, 3]])
    found = Guide(score, 10.0).suspicion(query, negatives)
    assert seen == [([[1, 2, 3], [1, 2, 3]], [[1, 2, 4], [7, 2, 3]])] or seen == [
        ([[1, 2, 3], [1, 2, 3]], [[7, 2, 3], [1, 2, 4]])
    ]
    assert np.allclose(found, [[logistic(2), 0, logistic(-3)]])
    relative = Guide(lambda triples, corrupted: corrupted.sum(axis=1), margin=0.0).suspicion(query, negatives)
    assert np.allclose(relative, [[logistic(6), 0, logistic(1)]])
    with pytest.raises(NaysayError, match=r"^Guide\.suspicion: `negatives.side` must be given with triples, got None"):
        Guide(score, 10.0).suspicion(query, replace(negatives, side=None))


# ---- budgets and memory ---------------------------------------------------------------------------------


def question(rows=5, slots=4, seed=0):
    rng = np.random.default_rng(seed)
    negatives = ns.Negatives(rng.integers(-1, 9, (rows, slots)), scores=rng.random((rows, slots)))
    return ns.Query(np.arange(rows) % 5, positives=rng.integers(0, 9, rows)), negatives


def test_a_total_runs_out_and_says_what_is_left():
    teacher = Teacher()
    guide = Guide(teacher, 0.0, first=0.5, budget=4, total_budget=10)
    assert guide.remaining == 10
    for left in (6, 2, 0, 0):
        guide.suspicion(*question(seed=left + 3))
        assert guide.remaining == left
    assert guide.n_scored == len(teacher.pairs) == 10
    query, negatives = question()
    untouched = np.where(negatives.ids >= 0, logistic(negatives.scores - 0.5), 0)
    assert np.allclose(guide.suspicion(query, negatives), untouched, rtol=0, atol=1e-7)
    assert Guide(teacher, 0.0).remaining is None


def test_a_cache_answers_again_for_nothing():
    teacher = Teacher()
    guide = Guide(teacher, 0.0, first=0.5, budget=5, cache_size=100)
    query, negatives = question()
    guide.suspicion(query, negatives)
    assert guide.n_scored == 5
    guide.suspicion(query, negatives)  # the next five, and the first five for nothing
    assert guide.n_scored == len(set(teacher.pairs)) == len(teacher.pairs) == 10
    without = Guide(Teacher(), 0.0)
    while guide.n_scored < len(
        {(a, i) for a, row in zip(query.anchors, negatives.ids, strict=True) for i in row if i >= 0}
    ):
        found = guide.suspicion(query, negatives)
    assert np.array_equal(found, without.suspicion(query, negatives))


def test_a_cache_is_bounded_and_keeps_the_newest():
    teacher = Teacher()
    guide = Guide(teacher, 0.0, cache_size=2)
    guide.suspicion(ns.Query([0]), ns.Negatives(np.array([[1, 2, 3, 4]])))
    guide.suspicion(ns.Query([0]), ns.Negatives(np.array([[3, 4, 1]])))
    assert teacher.pairs == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 1)]
    assert len(guide.state()["scores"]) == 2
    fresh = Guide(teacher, 0.0)
    fresh.suspicion(ns.Query([0]), ns.Negatives(np.array([[1]])))
    assert len(fresh.state()["scores"]) == 0


def test_answers_before_a_failure_are_not_lost():
    query, negatives = question()
    calls = []

    def flaky(anchors, ids):
        calls.append(len(ids))
        if len(calls) == 3:
            message = "rate limit"
            raise TimeoutError(message)
        return TABLE[anchors, ids]

    guide = Guide(flaky, 0.0, batch_size=4)
    with pytest.raises(
        NaysayError,
        match=r"^Guide\.suspicion: `score_pairs` must be a function that returns 4 finite numbers for 4 pairs, "
        r"got TimeoutError: rate limit, from anchor \d, id \d to anchor \d, id \d\.$",
    ) as caught:
        guide.suspicion(query, negatives)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert guide.n_scored == 8
    found = guide.suspicion(query, negatives)
    distinct = {(a, i) for a, row in zip(query.anchors, negatives.ids, strict=True) for i in row if i >= 0}
    assert sum(calls) - 4 == guide.n_scored == len(distinct)
    assert np.array_equal(found, Guide(Teacher(), 0.0).suspicion(query, negatives))
    assert len(guide.state()["scores"]) == 0  # kept for the one call after, no longer


# ---- answers that are none ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n: np.full(n + 1, 0.5), r"got shape \(3,\), from anchor 0, id 4 on\.$"),
        (lambda n: np.array([0.5, np.nan]), r"got nan for anchor 0, id 7 \(1 such\)\.$"),
        (lambda n: np.array([np.inf, np.nan]), r"got inf for anchor 0, id 4 \(2 such\)\.$"),
        (lambda n: None, r"got None, from anchor 0, id 4 on\.$"),
        (lambda n: ["yes", "no"], r"got \['yes', 'no'\], from anchor 0, id 4 on\.$"),
        (lambda n: 1 / 0, r"got ZeroDivisionError: division by zero, from anchor 0, id 4 to anchor 0, id 7\.$"),
    ],
)
def test_an_answer_that_is_none_is_rejected_with_its_pair(answer, message):
    guide = Guide(lambda anchors, ids: answer(len(ids)), 0.0)
    start = r"^Guide\.suspicion: `score_pairs` must be a function that returns 2 finite numbers for 2 pairs, "
    with pytest.raises(NaysayError, match=start + message):
        guide.suspicion(ns.Query([0]), ns.Negatives(np.array([[4, -1, 7]])))
    assert guide.n_scored == 0


def test_it_runs_without_gradients_on_the_querys_arrays():
    weight = torch.ones(9, requires_grad=True)
    seen = []

    def score(anchors, ids):
        seen.append((type(anchors), torch.is_grad_enabled()))
        return weight[ids]

    negatives = ns.Negatives(torch.tensor([[1, 2]]))
    assert not Guide(score, 0.0).suspicion(ns.Query(torch.tensor([0])), negatives).requires_grad
    assert seen == [(torch.Tensor, False)]


# ---- the contract ---------------------------------------------------------------------------------------


class Learner(Fixed):
    """A first opinion that has a state."""

    def state(self):
        return {"values": self.values.copy()}

    def restore(self, state):
        self.values = np.asarray(state["values"])


def test_the_state_of_the_first_opinion_goes_along():
    guide = Guide(Teacher(), 0.0, first=Learner([[0.1, 0.2]]))
    state = guide.state()
    assert state["first/values"].tolist() == [[0.1, 0.2]]
    guide.first.values = guide.first.values * 2
    guide.restore(state)
    assert guide.first.values.tolist() == [[0.1, 0.2]]
