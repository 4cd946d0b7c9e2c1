"""Guide: asked in batches, about the slots that matter, once each, and never about an empty one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.arrays import to_numpy
from naysay.detectors._pairs import ScoreCache
from naysay.detectors.guide import Guide
from naysay.errors import NaysayError
from naysay.testing import check_detector, planted_world

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


def test_a_probability_is_its_own_suspicion_at_one_half():
    guide = Guide(lambda anchors, ids: np.array([0.2, 0.9]), 0.5, output="probabilities")
    found = guide.suspicion(ns.Query([0]), ns.Negatives(np.array([[1, 2]])))
    assert np.allclose(found, [[0.2, 0.9]])


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


def test_without_a_cache_a_guide_in_training_is_heard_anew():
    table = TABLE.copy()
    guide = Guide(Teacher(table), 0.0)
    asked = ns.Query([0]), ns.Negatives(np.array([[1]]))
    before = guide.suspicion(*asked)
    table += 1.0
    assert guide.suspicion(*asked) > before


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


def test_answers_are_put_together_once_a_call(monkeypatch):
    """Joining them batch by batch would be quadratic in the pairs of a call."""
    added = []
    monkeypatch.setattr(ScoreCache, "add", lambda self, pairs, scores: added.append((len(pairs), len(scores))))
    guide = Guide(lambda anchors, ids: 0.0 * ids, 1.0, batch_size=2)
    guide.suspicion(ns.Query([0, 1]), ns.Negatives(np.arange(50).reshape(2, 25)))
    assert added == [(50, 50)]


def test_answers_before_an_interruption_are_kept_too():
    calls = []

    def interrupted(anchors, ids):
        calls.append(len(ids))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return TABLE[anchors, ids]

    guide = Guide(interrupted, 0.0, batch_size=2)
    asked = ns.Query([0]), ns.Negatives(np.array([[1, 2, 3, 4, 5, 6, 7]]))
    with pytest.raises(KeyboardInterrupt):
        guide.suspicion(*asked)
    assert guide.n_scored == len(guide.state()["scores"]) == 4
    guide.suspicion(*asked)
    assert calls == [2, 2, 2, 2, 1]
    assert guide.n_scored == 7


@pytest.mark.parametrize("more", [{"cache_size": 100}, {"total_budget": 7}])
def test_with_a_budget_and_a_cache_or_with_a_total_asking_again_may_change_the_answer(more):
    query, negatives = question()
    guide, forgetful = (Guide(Teacher(), 0.0, first=0.5, budget=5, **given) for given in (more, {}))
    assert not np.array_equal(guide.suspicion(query, negatives), guide.suspicion(query, negatives))
    assert np.array_equal(forgetful.suspicion(query, negatives), forgetful.suspicion(query, negatives))


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


def test_a_probability_beyond_one_is_rejected():
    guide = Guide(lambda anchors, ids: 2.0 * ids, 0.5, output="probabilities")
    with pytest.raises(NaysayError, match=r"returns 2 probabilities for 2 pairs, got 8\.0 for anchor 0, id 4 \(2 s"):
        guide.suspicion(ns.Query([0]), ns.Negatives(np.array([[4, 7]])))


def test_lists_columns_and_half_precision_are_answers():
    asked = ns.Query([0]), ns.Negatives(np.array([[4, 7]]))
    for answer in ([1, 2], [[1.0], [2.0]], torch.tensor([1.0, 2.0]).bfloat16(), np.array([1, 2], np.float16)):
        found = Guide(lambda anchors, ids, answer=answer: answer, 1.5).suspicion(*asked)
        assert np.allclose(found, [logistic(np.array([-0.5, 0.5]))])


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


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": 0.0},
        {"margin": 0.5},
        {"threshold": 0.0, "first": 0.5, "budget": 3},
        {"threshold": 0.0, "first": 0.5, "max_distance": 0.2, "cache_size": 50},
        {"threshold": 0.0, "first": Fixed(np.random.default_rng(0).random((5, 4)))},
    ],
)
def test_it_is_a_detector(settings):
    query, negatives = question()
    check_detector(Guide(Teacher(), **settings), query, negatives)
    in_torch = ns.Query(torch.from_numpy(query.anchors), positives=torch.from_numpy(query.positives))
    check_detector(Guide(Teacher(), **settings), in_torch, negatives.to("cpu"))


def test_a_guide_that_knows_the_truth_finds_what_the_first_opinion_misses():
    world = planted_world(60, 80, per_anchor=8, known_share=0.5, seed=1)
    query = ns.Query(np.arange(60))
    ids = ns.pools.Everything(world.known).draw(query, 40, rng=ns.rng_for(0)).ids
    truth = world.is_false_negative(query.anchors, ids)
    scores = world.scores(query.anchors, ids)
    line = float(np.quantile(scores, 0.9))
    negatives = ns.Negatives(ids, scores=scores)

    def oracle(anchors, items):
        return world.truth.contains(anchors, items) * 2.0 - 1.0

    wrong = [int(((scores >= line) != truth).sum())]
    for budget in (200, 600, None):
        guide = Guide(oracle, 0.0, first=line, budget=budget)
        found = guide.suspicion(query, negatives) >= 0.5
        wrong.append(int((found != truth).sum()))
        assert wrong[0] - wrong[-1] == guide.n_changed
    assert wrong == sorted(wrong, reverse=True)
    assert wrong[-1] == 0
    # The nearest to the line are worth more than as many at random.
    assert (wrong[0] - wrong[1]) / 200 > 1.5 * wrong[0] / ids.size


def test_state_is_all_of_it():
    query, negatives = question()
    guide = Guide(Teacher(), 0.0, first=0.5, budget=4, total_budget=9, cache_size=50)
    guide.suspicion(query, negatives)
    state = guide.state()
    other = Guide(Teacher(), 0.0, first=0.5, budget=4, total_budget=9, cache_size=50)
    other.restore(state)
    assert (other.n_scored, other.n_changed, other.remaining) == (guide.n_scored, guide.n_changed, guide.remaining)
    other.suspicion(query, negatives)
    guide.suspicion(query, negatives)
    assert np.array_equal(other.score_pairs.pairs, guide.score_pairs.pairs[4:])


def test_a_state_that_does_not_fit_changes_nothing():
    guide = Guide(Teacher(), 0.0, cache_size=5)
    guide.suspicion(ns.Query([0]), ns.Negatives(np.array([[1, 2]])))
    good = guide.state()
    for bad, message in (
        ([1], r"`state` must be what `state` returned, got list"),
        ({"n_scored": 1}, r"`state` must be .* got no 'n_changed' in \['n_scored'\]"),
        (good | {"n_scored": -1}, r"`n_scored` must be at least 0, got -1"),
        (good | {"n_scored": np.array([1, 2])}, r"`n_scored` must be a whole number, got array\(\[1, 2\]\)"),
        (good | {"n_scored": None}, r"`n_scored` must be a whole number, got None"),
        (good | {"odd": 1}, r"`state` must be what `state` returned, got the unknown key 'odd'"),
        (good | {"first/values": 1}, r"`state` must be .* got the key 'first/values'"),
        (good | {"pairs": np.zeros((2, 3), np.int64)}, r"`pairs` must be of shape \(n, 2\), or \(n, 6\) for triples"),
        (
            good | {"pairs": np.zeros(2, np.int64)},
            r"`pairs` must be whole numbers of shape \(n, w\), got int64 of shape \(2,\)",
        ),
        (good | {"scores": np.zeros(3)}, r"`scores` must be numbers of shape \(2,\), got float64 of shape \(3,\)"),
        (good | {"scores": np.array([np.nan, 0])}, r"`scores` must be finite, got nan at row 0"),
    ):
        with pytest.raises(NaysayError, match=rf"^Guide\.restore: {message}"):
            guide.restore(bad)
        assert guide.n_scored == 2
        assert np.array_equal(guide.state()["pairs"], good["pairs"])


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


# ---- refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"score_pairs": 3, "threshold": 0}, r"`score_pairs` must be a function score_pairs\(anchors, ids\), got int"),
        ({}, r"`threshold` must be given, or `margin` in its place, got neither"),
        ({"threshold": 0, "margin": 0}, r"`threshold` must be given, or `margin` in its place, got both"),
        ({"threshold": np.nan}, r"`threshold` must be a finite number, got nan"),
        (
            {"threshold": 1.0, "output": "probabilities"},
            r"`threshold` must be a number above 0 and below 1, got 1\.0",
        ),
        ({"threshold": 0.5, "output": "logits"}, r"`output` must be one of 'scores', 'probabilities', got 'logits'"),
        ({"margin": -1}, r"`margin` must be a finite number at least 0, got -1"),
        ({"margin": 0.1, "output": "probabilities"}, r"`output` must be 'scores' with a margin, got probabilities"),
        ({"threshold": 0, "relative": True}, r"`relative` must be False without a margin, got True"),
        ({"threshold": 0, "relative": "no"}, r"`relative` must be True or False, got 'no'"),
        ({"threshold": 0, "scale": 0}, r"`scale` must be a finite number above 0, got 0"),
        ({"threshold": 0, "first": "0.5"}, r"`first` must be a finite number, or a detector, got '0\.5'"),
        ({"threshold": 0, "first": Fixed}, r"`first` must be a finite number, or a detector, got <class"),
        (
            {"threshold": 0, "max_distance": 0.1},
            r"`first` must be given with `max_distance`, for the slots that are not rescored, got None",
        ),
        ({"threshold": 0, "budget": 3}, r"`first` must be given with `budget`, for the slots"),
        ({"threshold": 0, "total_budget": 3}, r"`first` must be given with `total_budget`, for the slots"),
        ({"threshold": 0, "first": 0, "max_distance": -1}, r"`max_distance` must be a number at least 0, got -1"),
        ({"threshold": 0, "first": 0, "budget": 1.5}, r"`budget` must be a whole number, got 1\.5"),
        ({"threshold": 0, "first": 0, "total_budget": -1}, r"`total_budget` must be at least 0, got -1"),
        ({"threshold": 0, "batch_size": 0}, r"`batch_size` must be at least 1, got 0"),
        ({"threshold": 0, "cache_size": -1}, r"`cache_size` must be at least 0, got -1"),
    ],
)
def test_settings_that_are_rejected(arguments, message):
    with pytest.raises(NaysayError, match=f"^Guide: {message}"):
        Guide(**({"score_pairs": Teacher()} | arguments))


def test_questions_that_are_rejected():
    negatives = ns.Negatives(np.array([[1, 2]]))
    with pytest.raises(NaysayError, match=r"^Guide\.suspicion: `negatives.scores` must be given, got None\. Use a sam"):
        Guide(Teacher(), 0.0, first=0.5).suspicion(ns.Query([0]), negatives)
    with pytest.raises(NaysayError, match=r"`query.positives` must be given, got None\. Pass Query"):
        Guide(Teacher(), margin=0.5).suspicion(ns.Query([0]), negatives)
    with pytest.raises(NaysayError, match=r"^Guide\.suspicion: `negatives` must be of 2 rows, like the query, got 1 r"):
        Guide(Teacher(), 0.0).suspicion(ns.Query([0, 1]), negatives)
