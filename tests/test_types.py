"""Query and Negatives: shapes, conversion, identity. The protocols: any object with the method will do."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.types import Detector, Pool, Sampler, Stateful, anchor_ids, positive_ids

IDS = np.array([[3, -1], [0, 7]])
FULL = {
    "relation": np.array([[0, 0], [1, 2]], np.int8),
    "scores": np.ones((2, 2), np.float32),
    "suspicion": np.zeros((2, 2)),
    "weights": np.full((2, 2), 0.5),
    "vectors": np.arange(12.0).reshape(2, 2, 3),
    "parents": np.zeros((2, 2, 2), np.int64),
    "side": np.zeros((2, 2), np.int8),
    "source": np.ones((2, 2), np.int8),
    "log_q": np.broadcast_to(np.array([-1.0, -2.0])[:, None], (2, 2)),
}


def refusal(call, *arguments, **named):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **named)
    return str(caught.value)


# ---- Query ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("anchors", "shape"),
    [
        ([], (0,)),
        ([4], (1,)),
        (range(3), (3,)),
        (np.empty((0, 3), np.int64), (0, 3)),
        (np.empty((0, 3)), (0, 3)),
        ([[1, 2, 3]], (1, 3)),
        (torch.tensor([1, 2]), (2,)),
        (torch.tensor([]), (0,)),
        (torch.zeros((4, 3), dtype=torch.int32), (4, 3)),
        (np.array([1, 2], np.uint8), (2,)),
    ],
)
def test_query_ids_are_numpy_int64_of_the_same_shape(anchors, shape):
    query = ns.Query(anchors)
    ids = anchor_ids(query)
    assert type(ids) is np.ndarray
    assert ids.dtype == np.int64
    assert ids.shape == shape
    assert len(query) == shape[0]


def test_query_keeps_tensors_and_their_device():
    anchors = torch.tensor([1, 2])
    assert ns.Query(anchors).anchors is anchors
    assert ns.Query(anchors).device == torch.device("cpu")
    assert ns.Query([1, 2]).device is None
    assert type(ns.Query([1, 2]).anchors) is np.ndarray


@pytest.mark.parametrize(
    ("given_fields", "parameter"),
    [
        *[({"anchors": anchors}, "anchors") for anchors in (3, [[1, 2]], np.zeros((2, 3, 1)), torch.zeros((2, 4)))],
        *[({"positives": values}, "positives") for values in ([1], [[1], [2]], 1, torch.tensor([1, 2, 3]))],
        *[({"vectors": values}, "vectors") for values in (np.zeros((3, 5)), 3, [1.0, 2.0], np.zeros((2, 5, 1)))],
        *[({name: [[1, 2, 3], [4]]}, name) for name in ("anchors", "positives", "vectors")],
        ({"times": [1.0]}, "times"),
        ({"step": -1}, "step"),
        ({"step": 0.5}, "step"),
        *[({name: [1.5, 2.0]}, name) for name in ("anchors", "positives")],
        *[({name: torch.tensor([True, False])}, name) for name in ("anchors", "positives")],
    ],
)
def test_an_invalid_query_names_its_parameter(given_fields, parameter):
    with pytest.raises(NaysayError) as caught:
        ns.Query(**{"anchors": [0, 1]} | given_fields)
    assert caught.value.parameter == parameter


def test_query_takes_vectors_in_numpy_torch_and_lists():
    tensor = torch.zeros((2, 5), requires_grad=True)
    assert ns.Query([0, 1], vectors=tensor).vectors is tensor
    assert ns.Query([0, 1], vectors=[[1.0, 2.0], [3.0, 4.0]]).vectors.shape == (2, 2)
    assert ns.Query([], vectors=np.zeros((0, 5))).vectors.shape == (0, 5)


def test_names_are_rejected_with_the_way_to_their_ids():
    positives = ns.Positives.from_pairs(["ann", "bob"], ["x", "y"])
    rule = "must be whole numbers, got dtype <U3. The ids of names are positives."
    message = refusal(anchor_ids, ns.Query(["bob"]))
    assert message == f"`anchors` {rule}anchor_names.ids(names)."
    message = refusal(positive_ids, ns.Query([0], positives=["abc"]))
    assert message == f"`positives` {rule}item_names.ids(names)."
    assert "got dtype object. The ids of names" in refusal(anchor_ids, ns.Query(np.array(["bob"], object)))
    assert anchor_ids(ns.Query(positives.anchor_names.ids(["bob"]))).tolist() == [1]
    assert anchor_ids(ns.Query(np.array([], object))).tolist() == []


def test_query_positives_as_ids():
    for positives in ([4, 5], np.array([4, 5], np.int16), torch.tensor([4, 5])):
        found = positive_ids(ns.Query([0, 1], positives=positives))
        assert found.dtype == np.int64
        assert found.tolist() == [4, 5]
    message = refusal(positive_ids, ns.Query([0]))
    assert message == "`query.positives` must be given, got None. Pass Query(anchors, positives=items)."


# ---- Negatives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids", [[[1]], np.zeros(3, np.int64), np.zeros((2, 2), np.int32), torch.zeros((2, 2)), np.zeros((2, 2))]
)
def test_other_ids_are_invalid(ids):
    with pytest.raises(NaysayError) as caught:
        ns.Negatives(ids)
    assert caught.value.parameter == "ids"


@pytest.mark.parametrize("name", sorted(FULL))
def test_partners_of_another_shape_are_invalid(name):
    for wrong in (FULL[name][:1], np.zeros(2), [[1.0, 2.0]] * 2, np.ma.masked_less(FULL[name], 100)):
        with pytest.raises(NaysayError) as caught:
            ns.Negatives(IDS, **{name: wrong})
        assert caught.value.parameter == name


def test_every_field_of_the_contract_is_there():
    names = [field.name for field in dataclasses.fields(ns.Negatives)]
    assert sorted(names) == sorted(["ids", "source_names", "dropped", *FULL])


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (1, 0), (1, 1)])
def test_negatives_of_no_rows_or_slots(shape):
    negatives = ns.Negatives(np.empty(shape, np.int64))
    assert negatives.shape == shape
    assert negatives.mask.shape == shape
    assert negatives.to("cpu").numpy().shape == shape


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 2)), min_size=1, max_size=12), st.booleans())
def test_the_mask_is_filled_and_negative(slots, in_torch):
    ids = np.array([[item for item, _ in slots]])
    relation = np.array([[kind for _, kind in slots]], np.int8)
    negatives, plain = ns.Negatives(ids, relation=relation), ns.Negatives(ids)
    if in_torch:
        negatives, plain = negatives.to("cpu"), plain.to("cpu")
    assert negatives.mask.tolist() == [[item >= 0 and kind == 0 for item, kind in slots]]
    assert plain.mask.tolist() == [[item >= 0 for item, _ in slots]]


def test_there_and_back_again():
    negatives = ns.Negatives(IDS, **FULL, source_names=("a", "b"), dropped={"exhausted": 1})
    tensors = negatives.to("cpu")
    back = tensors.numpy()
    for name in ("ids", *FULL):
        assert isinstance(getattr(tensors, name), torch.Tensor)
        assert type(getattr(back, name)) is np.ndarray
        given_array, returned = getattr(negatives, name), getattr(back, name)
        assert returned.dtype == given_array.dtype
        assert returned.tolist() == given_array.tolist()
    assert (back.source_names, back.dropped) == (("a", "b"), {"exhausted": 1})
    assert tensors.mask.tolist() == negatives.mask.tolist() == [[True, False], [False, False]]


def test_a_read_only_log_q_is_copied_and_not_written_through():
    assert not FULL["log_q"].flags.writeable
    tensors = ns.Negatives(IDS, log_q=FULL["log_q"]).to("cpu")
    tensors.log_q[0, 0] = 5.0
    assert tensors.log_q.tolist() == [[5.0, -1.0], [-2.0, -2.0]]
    assert FULL["log_q"].tolist() == [[-1.0, -1.0], [-2.0, -2.0]]


def test_a_data_loader_pins_every_array(monkeypatch):
    """By its own hook. Pinning itself needs an accelerator, so a mark stands for it."""
    pinned = []

    def pin(tensor, *_):
        pinned.append(tensor)
        return tensor + 1

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    negatives = ns.Negatives(IDS, **FULL, source_names=("a", "b"), dropped={"exhausted": 1})
    for given_negatives in (negatives, negatives.to("cpu")):
        pinned.clear()
        batch = torch.utils.data._utils.pin_memory.pin_memory({"negatives": given_negatives})
        found = batch["negatives"]
        assert len(pinned) == 1 + len(FULL)
        for name in ("ids", *FULL):
            assert getattr(found, name).tolist() == (getattr(negatives, name) + 1).tolist()
        assert (found.source_names, found.dropped) == (("a", "b"), {"exhausted": 1})
    assert ns.Negatives(IDS).pin_memory().scores is None


def test_like_answers_in_the_array_type_of_the_query():
    negatives = ns.Negatives(IDS, **FULL)
    assert negatives.like(ns.Query([0, 1])) is negatives
    tensors = negatives.like(ns.Query(torch.tensor([0, 1])))
    assert all(isinstance(getattr(tensors, name), torch.Tensor) for name in ("ids", *FULL))
    assert type(tensors.like(ns.Query([0, 1])).ids) is np.ndarray
    assert negatives.like(ns.Query(torch.zeros(2, dtype=torch.int64, device="meta"))).ids.device.type == "meta"


def test_both_are_frozen_and_compared_by_identity():
    for make in (lambda: ns.Query([0, 1]), lambda: ns.Negatives(IDS)):
        one, other = make(), make()
        assert one == one
        assert one != other
        assert len({one, other}) == 2
        for field in dataclasses.fields(one):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(one, field.name, None)
        assert not hasattr(one, "__dict__")  # slots: nothing else can be hung on it


def test_a_changed_copy_leaves_the_first_alone():
    first = ns.Negatives(IDS)
    changed = dataclasses.replace(first, weights=FULL["weights"])
    assert first.weights is None
    assert changed.ids is first.ids
    with pytest.raises(NaysayError, match="`weights` must be of shape"):
        dataclasses.replace(first, weights=np.zeros(3))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_both_travel_to_other_processes(copied):
    query = copied(ns.Query([0, 1], positives=[2, 3], vectors=np.eye(2), step=4))
    assert (query.anchors.tolist(), query.positives.tolist(), query.step) == ([0, 1], [2, 3], 4)
    negatives = copied(ns.Negatives(IDS, log_q=FULL["log_q"], dropped={"exhausted": 1}))
    assert negatives.log_q.tolist() == FULL["log_q"].tolist()
    assert negatives.dropped == {"exhausted": 1}


# ---- the protocols --------------------------------------------------------------------------------------


def test_the_methods_make_the_part():
    class Mine:
        def draw(self, query, n, *, rng): ...
        def sample(self, query, k, *, rng): ...
        def suspicion(self, query, negatives): ...
        def state(self): ...
        def restore(self, state): ...

    for protocol in (Pool, Sampler, Detector, Stateful):
        assert isinstance(Mine(), protocol)
        assert not isinstance(object(), protocol)


@pytest.mark.parametrize("make", [np.array, torch.tensor, list])
def test_an_empty_query_may_have_any_type(make):
    assert len(ns.Query(make([]), positives=make([]))) == 0
    assert len(ns.Query(np.zeros((0, 3)))) == 0
