"""Whether losses look at the values of their inputs: a look at a tensor on an accelerator waits for it."""

from __future__ import annotations

import torch
from torch import Tensor

from naysay.checks import public, raise_invalid

_switch: bool | None = None  # None: by device


@public
class check_values:
    """Switch the checks of values on or off, for this process from now on, or inside a `with` block.

    Every loss checks types, shapes and devices. Checks of values (finite scores, labels in range, ...) have to read the
    numbers, which on an accelerator waits for all queued work. So by default values are checked on the CPU only.
    They are never checked while `torch.compile` or `torch.export` traces a loss. Without the checks a NaN in the scores
    gives a NaN in the loss.

    Args:
        enabled: True: always check, to find an error on an accelerator. False: never check. None: the default.

    Examples:
        >>> import torch
        >>> import naysay as ns
        >>> with check_values(False):
        ...     ns.losses.bpr(torch.tensor([torch.nan]), torch.zeros(1, 1))
        tensor([nan])
    """

    def __init__(self, enabled: bool | None) -> None:  # noqa: FBT001
        global _switch
        if enabled is not None and not isinstance(enabled, bool):
            raise_invalid("enabled", "True, False or None", repr(enabled))
        self._before = _switch
        _switch = enabled

    def __enter__(self) -> None:
        """Nothing: the switch was set when this object was made."""

    def __exit__(self, *error: object) -> None:
        """Set the switch back."""
        global _switch
        _switch = self._before


def values_are_checked(values: Tensor) -> bool:
    """Whether the values of this tensor may be read now."""
    if torch.compiler.is_compiling() or values.is_meta:
        return False
    return values.device.type == "cpu" if _switch is None else _switch
