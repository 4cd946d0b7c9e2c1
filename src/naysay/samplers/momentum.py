"""The slow encoder of a memory: parameters that follow those of the trained one."""

from __future__ import annotations

from typing import Any

from naysay.arrays import need_torch
from naysay.checks import public, raise_invalid, shown


@public
def momentum_update(online: Any, target: Any, momentum: float = 0.999) -> None:
    """Move each parameter of `target` towards `online`, in place: slow <- momentum * slow + (1 - momentum) * fast.

    Buffers (running means, counters) are copied: half of a counter has no meaning. MoCo's code leaves the buffers alone
    and lets the slow encoder gather its own. No gradient is recorded, and `target` needs none. Call it once a step,
    before the slow encoder is used. Cost: one pass over the parameters.

    He, Fan, Wu, Xie, Girshick. Momentum Contrast for Unsupervised Visual Representation Learning. CVPR 2020.

    Args:
        online: The torch module that is trained.
        target: A module of the same shapes, made once by copy.deepcopy(online): what fills the `Memory`.
        momentum: 0 copies, 1 leaves the parameters alone; 0.999 in MoCo.
    """
    torch = need_torch()
    for name, module in (("online", online), ("target", target)):
        if not isinstance(module, torch.nn.Module):
            raise_invalid(name, "a torch module", type(module).__name__)
    if isinstance(momentum, bool) or not isinstance(momentum, int | float) or not 0 <= momentum <= 1:
        raise_invalid("momentum", "a number between 0.0 and 1.0", shown(momentum))
    if online is target:
        raise_invalid("target", "another module than online", "the same", "Make it by copy.deepcopy(online).")
    fast, slow = dict(online.state_dict(keep_vars=True)), dict(target.state_dict(keep_vars=True))
    shapes = [{name: tuple(value.shape) for name, value in module.items()} for module in (fast, slow)]
    unlike = [name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name)]
    if unlike:
        got = f"{shown(unlike[0])} of shape {shapes[1].get(unlike[0])}"
        raise_invalid("target", f"of the shapes of online, which has {shapes[0].get(unlike[0])}", got)
    learnt = dict(target.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for name, value in slow.items():
            if name not in learnt:
                value.copy_(fast[name])
        for name, value in target.named_parameters():  # shared ones once
            value.lerp_(fast[name].to(value), 1 - momentum)
