"""TorchModule: a torch model as generator for `Learned`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from naysay._state import check_state, read_state
from naysay.arrays import for_checkpoints, need_torch, to_numpy
from naysay.checks import public, raise_invalid
from naysay.samplers._generators import Floats, Ids, weights_of
from naysay.text import described


@final
@public
class TorchModule:
    """A torch module as generator: module(anchors, candidates) -> (B, n), trained by your optimiser.

    Args:
        module: Called with tensors of ids.
        optimizer: Of its parameters; each `ascend` is one step of it, downhill in minus the expected reward.

    Examples:
        >>> import torch
        >>> table = torch.nn.Embedding(3, 1)
        >>> made = TorchModule(lambda anchors, ids: table(ids)[..., 0], torch.optim.SGD(table.parameters(), 0.1))
        >>> made.logits(torch.zeros(1).long().numpy(), torch.zeros(1, 2).long().numpy()).shape
        (1, 2)
    """

    def __init__(self, module: Callable[..., Any], optimizer: Any) -> None:
        """Nothing is copied."""
        need_torch()
        if not callable(module):
            raise_invalid("module", "a function of anchors and candidates", type(module).__name__)
        if not hasattr(optimizer, "param_groups"):
            raise_invalid("optimizer", "a torch optimiser", type(optimizer).__name__)
        self.module, self.optimizer = module, optimizer

    def _forward(self, anchors: Ids, candidates: Ids) -> Any:
        torch = need_torch()
        device = self.optimizer.param_groups[0]["params"][0].device
        return self.module(torch.as_tensor(anchors, device=device), torch.as_tensor(candidates, device=device))

    def logits(self, anchors: Ids, candidates: Ids) -> Floats:
        """(B, n), without gradients."""
        with need_torch().no_grad():
            return np.asarray(to_numpy(self._forward(anchors, candidates)), np.float64)

    def ascend(self, anchors: Ids, candidates: Ids, gradient: Floats) -> None:
        """One step of the optimiser up the gradient (B, n) in the logits."""
        torch = need_torch()
        self.optimizer.zero_grad()
        with torch.enable_grad():
            logits = self._forward(anchors, candidates)
            (-(logits * torch.as_tensor(gradient, dtype=logits.dtype, device=logits.device)).sum()).backward()
        self.optimizer.step()

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The parameters. Save the optimiser's moments yourself: optimizer.state_dict()."""
        return saved_parameters(self.optimizer)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        check_state(state, _parameters(self.optimizer), ())
        restore_parameters(self.optimizer, state)

    def __repr__(self) -> str:
        """The settings."""
        return described(self)


def _parameters(optimizer: Any) -> dict[str, Any]:
    """{"groupG_parameterP": parameter} of a torch optimiser."""
    groups = enumerate(optimizer.param_groups)
    return {f"group{g}_parameter{p}": value for g, group in groups for p, value in enumerate(group["params"])}


def saved_parameters(optimizer: Any) -> dict[str, Any]:
    """Copies of what an optimiser trains."""
    return {name: to_numpy(value).copy() for name, value in _parameters(optimizer).items()}


def restore_parameters(optimizer: Any, state: Mapping[str, Any]) -> None:
    """Set what an optimiser trains; other keys of the state are not read."""
    parameters = _parameters(optimizer)
    entries = {name: weights_of(tuple(value.shape)) for name, value in parameters.items()}
    read = read_state(state, entries, others=state if isinstance(state, Mapping) else ())
    with need_torch().no_grad():
        for name, value in parameters.items():
            value.copy_(need_torch().as_tensor(read[name]))
