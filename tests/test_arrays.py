"""The crossing between NumPy and torch."""

import sys

import numpy as np
import pytest
import torch

from naysay.arrays import dtype_for, is_torch, need_torch, to_numpy, to_torch
from naysay.errors import MissingExtraError


def test_tensors_are_told_from_everything_else():
    assert is_torch(torch.zeros(2))
    assert is_torch(torch.nn.Parameter(torch.zeros(2)))
    for value in (np.zeros(2), [1, 2], None, 3, torch.float32):
        assert not is_torch(value)


def test_torch_that_nobody_imported_is_not_asked_for(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    assert not is_torch(np.zeros(2))
    assert "torch" not in sys.modules


def test_to_numpy_shares_memory_and_leaves_others_alone():
    tensor = torch.arange(3)
    array = to_numpy(tensor)
    array[0] = 7
    assert tensor.tolist() == [7, 1, 2]
    for value in ([1, 2], None, array):
        assert to_numpy(value) is value


def test_to_numpy_lets_go_of_gradients():
    assert to_numpy(torch.ones(2, requires_grad=True) * 2).tolist() == [2.0, 2.0]


def test_to_numpy_knows_bfloat16():
    array = to_numpy(torch.tensor([1.5, -2.0], dtype=torch.bfloat16))
    assert array.dtype == np.float32
    assert array.tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.broadcast_to(np.arange(2.0)[:, None], (2, 3)),
        np.arange(6).reshape(2, 3)[::-1],
        np.arange(6)[::-2],
        np.arange(6).reshape(2, 3).T,
        np.empty((0, 3)),
        np.array(3.5),
        np.array([True, False]),
        np.zeros((2, 0), np.int8),
    ],
)
def test_to_torch_takes_any_layout(array):
    tensor = to_torch(array)
    assert tensor.numpy().dtype == array.dtype
    assert tensor.tolist() == array.tolist()


def test_to_torch_never_writes_through_a_read_only_array():
    array = np.arange(3)
    array.flags.writeable = False
    tensor = to_torch(array)
    tensor[0] = 9
    assert array.tolist() == [0, 1, 2]


def test_to_torch_shares_what_may_be_written():
    array = np.arange(3)
    to_torch(array)[0] = 9
    assert array.tolist() == [9, 1, 2]


def test_to_torch_goes_to_the_device():
    assert to_torch(np.arange(3), "meta").device.type == "meta"
    assert to_torch(torch.arange(3), "meta").device.type == "meta"
    tensor = torch.arange(3)
    assert to_torch(tensor) is tensor


@pytest.mark.parametrize("device", ["mps", "mps:0", torch.device("mps")])
def test_mps_has_no_float64(device, monkeypatch):
    assert dtype_for(device, torch.float64) == torch.float32
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.int8):
        assert dtype_for(device, dtype) == dtype
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *where: where)  # the device is not here
    for values in (np.zeros(2), torch.zeros(2, dtype=torch.float64)):
        assert to_torch(values, device) == (device, torch.float32)


def test_other_devices_hold_float64():
    for device in ("cpu", "cuda:1", torch.device("cuda"), 0):
        assert dtype_for(device, torch.float64) == torch.float64
    assert to_torch(np.zeros(2), "meta").dtype == torch.float64


def test_a_missing_torch_is_named_with_its_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtraError, match=r"^torch is not installed. Run in a clone of naysay: pip install '\.\[torch\]'$"
    ):
        need_torch()
