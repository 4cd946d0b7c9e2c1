"""A second device that computes on the processor and refuses to mix with it, for machines without a GPU."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

_MIXES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default, torch.ops.aten.index.Tensor)
NAME = "meta"  # tensors call themselves so; inside the mode they have values


class _There(torch.Tensor):
    """A tensor of the device; `held` are its numbers."""

    @staticmethod
    def __new__(cls, held):
        made = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, device=NAME, requires_grad=False, strides=_strides(held)
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError("used outside of PretendDevice")


def _strides(held):
    return held.stride() if held.layout == torch.strided else None


class PretendDevice(TorchDispatchMode):
    """While it is on, `device="meta"` is a device with values. An operation on tensors of both raises."""

    def __init__(self):
        super().__init__()
        self.calls = 0  # operations on the device

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = dict(kwargs or {})
        wanted = given.get("device")
        there = wanted is not None and torch.device(wanted).type == NAME
        tensors = [one for one in tree_leaves((args, given)) if isinstance(one, torch.Tensor)]
        own = [one for one in tensors if isinstance(one, _There)]
        if function is torch.ops.aten.index.Tensor and own and not isinstance(args[0], _There):
            raise RuntimeError(f"{function}: indices of another device")
        if own and function not in _MIXES and any(one.ndim and not isinstance(one, _There) for one in tensors):
            raise RuntimeError(f"{function}: tensors of two devices")
        if wanted is not None:
            given["device"] = "cpu"
        args, given = tree_map(lambda one: one.held if isinstance(one, _There) else one, (args, given))
        found = function(*args, **given)
        self.calls += bool(own)
        if function is torch.ops.aten.copy_.default:
            return own[0] if isinstance(tensors[0], _There) else tensors[0]
        stays = there or (wanted is None and own)
        if not stays:
            return found
        originals = {id(one.held): one for one in own}  # operations in place return what they were given

        def placed(one):
            if not isinstance(one, torch.Tensor):
                return one
            return originals[id(one)] if id(one) in originals else _There(one)

        return tree_map(placed, found)
