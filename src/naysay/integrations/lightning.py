"""A callback of Lightning around `difficulty.Monitor`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from naysay._packages import need_package
from naysay.checks import check_kind, public, raise_invalid
from naysay.difficulty.monitor import Monitor
from naysay.errors import MissingExtraError
from naysay.integrations._frameworks import VERSIONS

_PACKAGES = {"lightning": "lightning.pytorch", "pytorch-lightning": "pytorch_lightning"}  # {name for pip: module}
_, _LEAST, _BELOW = VERSIONS["lightning"]


@public
def monitor_callback(monitor: Monitor, key: str = "naysay") -> Any:
    """Make a callback for `Trainer(callbacks=[...])` that observes each training step.

    `training_step` returns a dictionary with "loss" and, under `key`, the arguments of `Monitor.observe`:
    {"query": query, "negatives": negatives, "scores": scores, "positive_scores": positive_scores}. The last two may be
    left out. The numbers go to the log of the monitor, or if it has none, to the loggers of the trainer. The state of
    the monitor is part of Lightning's checkpoints.

    Args:
        monitor: What measures.
        key: The entry of the output of `training_step`.

    Returns:
        A `lightning.pytorch.Callback`.

    Raises:
        MissingExtraError: If neither lightning nor pytorch-lightning is installed, or it is older than 2.4.
    """
    check_kind("monitor", monitor, Monitor, "a Monitor")
    base = _callback_class()

    class MonitorCallback(base):  # type: ignore[valid-type,misc]
        """Observes each training step."""

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            given = outputs.get(key) if isinstance(outputs, Mapping) else None
            if not isinstance(given, Mapping) or not {"query", "negatives"} <= set(given):
                rule = f"a dictionary with 'loss' and {key!r}: {{'query': ..., 'negatives': ..., 'scores': ...}}"
                raise_invalid("training_step", rule, type(outputs).__name__)
            positive = given.get("positive_scores")
            found = monitor.observe(given["query"], given["negatives"], given.get("scores"), positive_scores=positive)
            if found is not None and monitor.log is None:
                for logger in trainer.loggers:
                    logger.log_metrics(found, step=trainer.global_step)

        def on_init_end(self, *args: Any, **given: Any) -> None:
            """Raise: this is what a trainer of transformers calls when it is made."""
            raise_invalid(
                "callbacks", "those of a Lightning Trainer", "another trainer's", "Call monitor.observe there."
            )

        def state_dict(self) -> dict[str, Any]:
            return monitor.state()

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            monitor.restore(state_dict)

    return MonitorCallback()


def _callback_class() -> Any:
    """The class of callbacks, of the package that is imported already, else of the newer name, else of the other."""
    errors = []
    for name in sorted(_PACKAGES, key=lambda name: sys.modules.get(_PACKAGES[name]) is None):
        try:
            return need_package(name, _LEAST, below=_BELOW, module=_PACKAGES[name]).Callback
        except MissingExtraError as error:
            errors.append(error)
    raise next((error for error in errors if error.__cause__ is None), errors[0])  # too old, rather than missing
