"""The momentum encoder of a memory: parameters that slowly follow those of the trained one."""

from __future__ import annotations

from typing import Any

from naysay.arrays import need_torch
from naysay.checks import check_number, public, raise_invalid, shown


@public
def momentum_update(online: Any, target: Any, momentum: float = 0.999) -> None:
    """Move each parameter of `target` towards `online`, in place: slow <- momentum * slow + (1 - momentum) * fast.

    Buffers (running means, counters) are copied. MoCo's code does not touch the buffers and lets the slow encoder
    collect its own. No gradient is recorded, and `target` needs none. Call it once a step, before the slow encoder is
    used. Cost: one pass over the parameters.

    He, Fan, Wu, Xie, Girshick. Momentum Contrast for Unsupervised Visual Representation Learning. CVPR 2020.

    Args:
        online: The torch module that is trained.
        target: A module of the same shapes, made once by copy.deepcopy(online). Its vectors go into the `Memory`.
        momentum: 0 copies the parameters, 1 keeps the old ones; 0.999 in MoCo.

    Examples:
        >>> import torch
        >>> fast, slow = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
        >>> for module, value in ((fast, 1.0), (slow, 0.0)):
        ...     _ = torch.nn.init.constant_(module.weight, value)
        >>> momentum_update(fast, slow, momentum=0.75)
        >>> slow.weight.item()
        0.25
    """
    torch = need_torch()
    for name, module in (("online", online), ("target", target)):
        if not isinstance(module, torch.nn.Module):
            raise_invalid(name, "a torch module", type(module).__name__)
    check_number("momentum", momentum, at_least=0, at_most=1)
    if online is target:
        raise_invalid("target", "another module than online", "the same", "Make it by copy.deepcopy(online).")
    fast, slow = dict(online.state_dict(keep_vars=True)), dict(target.state_dict(keep_vars=True))
    shapes = [{name: tuple(value.shape) for name, value in module.items()} for module in (fast, slow)]
    unequal = [name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name)]
    if unequal:
        got = f"{shown(unequal[0])} of shape {shapes[1].get(unequal[0])}"
        raise_invalid("target", f"of the shapes of online, which has {shapes[0].get(unequal[0])}", got)
    learnt = dict(target.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for name, value in slow.items():
            if name not in learnt:
                value.copy_(fast[name])
        for name, value in target.named_parameters():  # shared ones once
            value.lerp_(fast[name].to(value), 1 - momentum)
