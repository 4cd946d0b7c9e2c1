"""Candidates and their scores: what a score function sees, what it may answer, and what is kept."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay._slots import check_score, score_slots
from naysay.errors import NaysayError
from naysay.samplers._candidates import candidates_of, wanted_slots
from naysay.samplers._top_k import take

IDS = np.array([[3, -1, 0], [2, 1, -1]])
EMPTY = IDS < 0
TABLE = np.random.default_rng(0).standard_normal((2, 4))


def both(ids=IDS, anchors=(0, 1)):
    """The same question in NumPy and in torch."""
    yield ns.Query(np.array(anchors)), ids
    yield ns.Query(torch.tensor(anchors)), torch.from_numpy(ids)


def scored(score, query, ids):
    return score_slots(score, query, ids)


def by_table(anchors, ids):
    """TABLE[anchor, id], in the array type of the ids."""
    table = TABLE if isinstance(ids, np.ndarray) else torch.from_numpy(TABLE)
    return table[anchors[:, None], ids]


def watched(score):
    """A score function, and the list of what it is asked."""
    seen = []

    def asked(anchors, ids):
        seen.append((anchors, ids))
        return score(anchors, ids)

    return asked, seen


def of(ids):
    """NumPy or torch, as the ids are."""
    return np if isinstance(ids, np.ndarray) else torch


def test_scores_stand_in_filled_slots_and_no_function_sees_an_empty_one():
    for query, ids in both():
        score, seen = watched(by_table)
        found = scored(score, query, ids)
        assert type(found) is type(ids)
        assert seen[0][1].min() == 0
        expected = [[-np.inf if i < 0 else TABLE[row, i] for i in line] for row, line in enumerate(IDS.tolist())]
        assert found.tolist() == expected
    assert IDS[0].tolist() == [3, -1, 0]  # left as they were


def test_full_rows_and_no_rows():
    for ids in (np.array([[3, 1], [2, 0]]), np.empty((0, 2), np.int64), np.full((2, 2), -1)):
        for query, asked in both(ids, (0, 1)[: len(ids)]):  # anchors of no rows are floats, and come as ids
            found = scored(by_table, query, asked)
            expected = [[-np.inf if i < 0 else TABLE[row, i] for i in line] for row, line in enumerate(ids.tolist())]
            assert found.tolist() == expected


def test_scoring_takes_no_gradients():
    weight = torch.ones(4, 3, requires_grad=True)
    modes = []

    def score(anchors, ids):
        modes.append(torch.is_grad_enabled())
        return (weight[anchors][:, None] * weight[ids]).sum(dim=2)

    found = scored(score, ns.Query(torch.tensor([0, 1])), torch.from_numpy(IDS))
    assert modes == [False]
    assert torch.is_grad_enabled()
    assert not found.requires_grad
    kept = weight[:2] * 2  # made with gradients before, and handed over as it is
    assert kept.requires_grad
    assert not scored(lambda anchors, ids: kept, ns.Query(torch.tensor([0, 1])), torch.from_numpy(IDS)).requires_grad


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "int32", "bool"])
def test_numbers_of_any_type_are_alike_in_numpy_and_torch(dtype):
    answers = []
    for query, ids in both(np.array([[3, 2, 0], [2, 1, 1]])):
        found = scored(lambda a, ids: of(ids).asarray(ids, dtype=getattr(of(ids), dtype)), query, ids)
        answers.append(found.tolist())
        assert str(found.dtype).removeprefix("torch.") in (
            ("float64",) if dtype == "float64" else ("float32", "float64")
        )
    assert answers[0] == answers[1]


def test_large_whole_numbers_keep_their_order():
    for query, ids in both(np.array([[0, 1], [1, 0]])):
        assert scored(lambda a, ids: ids + (1 << 40), query, ids).tolist() == [[2**40, 2**40 + 1], [2**40 + 1, 2**40]]
    found = scored(lambda a, ids: ids.bfloat16(), ns.Query(torch.tensor([0, 1])), torch.from_numpy(IDS))
    assert found.dtype == torch.float32


def test_a_sum_that_overflows_is_no_refusal():
    for query, ids in both():
        found = scored(lambda a, ids: ids * np.float32(0) + np.float32(3e38), query, ids)
        assert (to_list := np.asarray(found))[~EMPTY].tolist() == [float(np.float32(3e38))] * 4
        assert (to_list[EMPTY] == -np.inf).all()


def test_what_a_function_says_of_an_empty_slot_is_of_no_account():
    for query, ids in both(np.array([[3, -1, 2], [2, 1, -1]])):
        found = scored(lambda a, ids: of(ids).where(ids > 0, 1.0, np.nan), query, ids)
        assert np.asarray(found).tolist() == [[1, -np.inf, 1], [1, 1, -np.inf]]


TRIPLES = np.array([[5, 1, 6], [7, 0, 8]])
SIDE = np.array([[0, -1, 1], [2, 2, -1]], np.int8)
CORRUPTED = [[[3, 1, 6], [0, 1, 6], [5, 0, 6]], [[7, 0, 2], [7, 0, 1], [0, 0, 8]]]


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_of_triples_the_function_sees_the_corrupted_ones(dtype):
    side = (SIDE, torch.from_numpy(SIDE))
    for (query, ids), sides in zip(both(anchors=TRIPLES.astype(dtype)), side, strict=True):
        score, seen = watched(lambda anchors, triples: triples.sum(-1) * 1.0)
        score_slots(score, query, ids, sides)
        anchors, triples = seen[0]
        assert anchors.tolist() == TRIPLES.tolist()
        assert triples.tolist() == CORRUPTED
        assert str(triples.dtype).removeprefix("torch.") == "int64"
    assert SIDE[0].tolist() == [0, -1, 1]


def test_of_triples_without_a_side_it_sees_the_ids():
    for query, ids in both(anchors=TRIPLES):
        score, seen = watched(lambda anchors, ids: ids * 1.0)
        scored(score, query, ids)
        assert seen[0][0].tolist() == TRIPLES.tolist()
        assert seen[0][1].tolist() == np.maximum(IDS, 0).tolist()


ANSWERS = "^`score` must be a function that returns "
WRONG = {
    "a list": (lambda a, ids: ids.tolist(), "a (tensor|NumPy array), like the query, got a list"),
    "nothing": (lambda a, ids: None, "a (tensor|NumPy array), like the query, got a NoneType"),
    "a number": (lambda a, ids: 1.0, "a (tensor|NumPy array), like the query, got a float"),
    "one a row": (lambda a, ids: (ids * 1.0).sum(1), r"shape \(2, 3\), got shape \(2,\)"),
    "all pairs": (lambda a, ids: (ids * 1.0)[:, :, None], r"shape \(2, 3\), got shape \(2, 3, 1\)"),
    "complex": (lambda a, ids: ids * 1j, r"real numbers, got dtype (torch\.)?complex"),
    "NaN": (lambda a, ids: ids * float("nan"), r"finite numbers, got \[nan, nan, nan\] at row 0 \(2 such rows\)"),
    "infinity": (
        lambda a, ids: of(ids).where(ids == 2, np.inf, 0.0),
        r"finite numbers, got \[inf, 0\.0, 0\.0\] at row 1 \(1 such row\)",
    ),
}


@pytest.mark.parametrize(("score", "rule"), WRONG.values(), ids=WRONG)
def test_wrong_answers_are_refused(score, rule):
    for query, ids in both():
        with pytest.raises(NaysayError, match=ANSWERS + rule):
            scored(score, query, ids)


def test_minus_infinity_and_one_bad_row_are_refused_by_row():
    for query, ids in both(np.array([[3, 2, 1], [2, 0, 1]])):
        for bad in (-np.inf, np.inf, np.nan):
            with pytest.raises(NaysayError, match=rf"numbers, got .*{bad}.* at row 1 \(1 such row\)\.$"):
                scored(lambda a, ids, bad=bad: of(ids).where(ids == 0, bad, 1.0), query, ids)


def test_answers_of_another_world_are_refused():
    query = ns.Query(torch.tensor([0, 1]))
    with pytest.raises(NaysayError, match=ANSWERS + "a tensor, like the query, got a ndarray"):
        scored(lambda a, ids: ids.numpy() * 1.0, query, torch.from_numpy(IDS))
    with pytest.raises(NaysayError, match=ANSWERS + "a NumPy array, like the query, got a Tensor"):
        scored(lambda a, ids: torch.from_numpy(ids), ns.Query([0, 1]), IDS)
    with pytest.raises(NaysayError, match=ANSWERS + "a tensor on cpu, like the query, got one on meta"):
        scored(lambda a, ids: (ids * 1.0).to("meta"), query, torch.from_numpy(IDS))
    with pytest.raises(NaysayError, match=ANSWERS + "real numbers, got dtype <U1"):
        scored(lambda a, ids: np.full(ids.shape, "a"), ns.Query([0, 1]), IDS)
    with pytest.raises(NaysayError, match=r"^`score` must be a function score\(anchors, ids\), got Positives\.$"):
        check_score(ns.Positives.from_pairs([0], [0]))


def test_candidates_come_in_the_querys_type():
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=5))
    assert type(candidates_of(pool, ns.Query([0]), 3, ns.rng_for(0)).ids) is np.ndarray
    assert isinstance(candidates_of(pool, ns.Query(torch.tensor([0])), 3, ns.rng_for(0)).ids, torch.Tensor)
    with pytest.raises(NaysayError, match=r"^`candidates` must be at least 1, got 0\.$"):
        candidates_of(pool, ns.Query([0]), 0, ns.rng_for(0))
    with pytest.raises(NaysayError, match=r"^`query` must be a Query, got list\. Write naysay"):
        candidates_of(pool, [0], 3, ns.rng_for(0))


def test_the_slots_of_each_row():
    asked = [(3, 2, [3, 3], 3), (0, 0, [], 0), (2, 0, [], 2), ([1, 4], 2, [1, 4], 4), (2.0, 1, [2], 2)]
    for k, rows, counts, width in asked:
        found, widest = wanted_slots(k, rows, ns.rng_for(0))
        assert (found.tolist(), widest) == (counts, width)
    assert wanted_slots(2.5, 0, ns.rng_for(0))[1] == 3
    seen = {tuple(wanted_slots(torch.tensor(0.5), 1, ns.rng_for(seed))[0]) for seed in range(30)}
    assert seen == {(0,), (1,)}


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=5), st.integers(0, 2**31), st.booleans())
def test_what_is_taken_by_loops(rows, seed, tensors):
    """Every field of a slot goes with it; a slot that is not kept is empty throughout."""
    rng = np.random.default_rng(seed)
    b, n, w = len(rows), 5, 4
    good, counts = np.array([g for g, _ in rows], int), np.array([c for _, c in rows], int)
    width = int(counts.max(initial=0))
    drawn = ns.Negatives(
        rng.integers(0, 99, (b, n)),
        side=rng.integers(0, 3, (b, n)).astype(np.int8),
        source=rng.integers(0, 2, (b, n)).astype(np.int8),
        source_names=("one", "two"),
        weights=rng.random((b, n)),
        vectors=rng.random((b, n, 2)),
        parents=rng.integers(0, 99, (b, n, 2)),
        log_q=-rng.random((b, n)),
    )
    order = rng.permuted(np.tile(np.arange(n), (b, 1)), axis=1)[:, :w] if b else np.empty((0, w), int)
    kept, scores = np.arange(w) < good[:, None], rng.random((b, n)).astype(np.float32)
    given = (order, kept, counts, width, "pad", scores)
    if tensors:
        order, kept, scores = map(torch.from_numpy, (order, kept, scores))
        given = (order, kept, counts, width, "pad", scores)
        found = take(drawn.to("cpu"), *given)
        assert isinstance(found.ids, torch.Tensor)
        found, order = found.numpy(), order.numpy()
    else:
        found = take(drawn, *given)
    assert found.shape == (b, width)
    assert found.log_q is None
    assert found.source_names == ("one", "two")
    blank = {"ids": -1, "side": -1, "source": -1, "weights": 0, "vectors": [0, 0], "parents": [-1, -1], "scores": 0}
    assert [getattr(found, name).dtype for name in blank][1:3] == [np.int8, np.int8]
    missing = 0
    for row, slot in np.ndindex(b, width):
        there = slot < min(good[row], counts[row], w)
        missing += slot < counts[row] and not there
        for name, empty in blank.items():
            source = np.asarray(scores) if name == "scores" else getattr(drawn, name)
            expected = source[row, order[row, slot]].tolist() if there else empty
            assert getattr(found, name)[row, slot].tolist() == expected, name
    assert found.dropped == ({"exhausted": missing} if missing else {})


def test_a_short_row_may_be_refused():
    drawn = ns.Negatives(np.array([[4, 5], [6, -1]]))
    order = np.array([[0, 1], [0, 1]])
    with pytest.raises(NaysayError, match=r"^row 1 has 1 candidates left of the 2 asked for \(1 such row\)"):
        take(drawn, order, drawn.ids >= 0, np.array([2, 2]), 2, "raise")
