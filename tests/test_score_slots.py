"""Arrays with one value per slot: what a score function gets, and what it may return."""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay._slots import score_slots
from naysay.errors import NaysayError

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


def test_a_sum_that_overflows_is_no_error():
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


WRONG = {
    "a list": lambda a, ids: ids.tolist(),
    "nothing": lambda a, ids: None,
    "a number": lambda a, ids: 1.0,
    "one a row": lambda a, ids: (ids * 1.0).sum(1),
    "all pairs": lambda a, ids: (ids * 1.0)[:, :, None],
    "complex": lambda a, ids: ids * 1j,
    "NaN": lambda a, ids: ids * float("nan"),
    "infinity": lambda a, ids: of(ids).where(ids == 2, np.inf, 0.0),
    "minus infinity": lambda a, ids: of(ids).where(ids == 2, -np.inf, 0.0),
    "another array type": lambda a, ids: ids.numpy() * 1.0 if torch.is_tensor(ids) else torch.from_numpy(ids),
    "another device or kind": lambda a, ids: (ids * 1.0).to("meta") if torch.is_tensor(ids) else ids.astype(str),
}


@pytest.mark.parametrize("score", WRONG.values(), ids=WRONG)
def test_wrong_answers_are_rejected(score):
    for query, ids in both():
        with pytest.raises(NaysayError) as caught:
            scored(score, query, ids)
        assert caught.value.parameter == "score"
