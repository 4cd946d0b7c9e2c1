"""batch_sampler: a plan of naysay.batches as what sentence-transformers takes."""

from __future__ import annotations

import inspect
from typing import Any, final

from naysay.batches.loader import BatchSampler
from naysay.batches.plans import Shuffled
from naysay.checks import public, raise_invalid

_EVALUATION = ("get_eval_dataloader", "get_test_dataloader")  # of transformers.Trainer


@public
def batch_sampler(plan: Any) -> Any:
    """Make what `SentenceTransformerTrainingArguments(batch_sampler=...)` takes of a plan of `naysay.batches`.

    The trainer's seed and epoch choose the batches, and its processes share them. The trainer asks the same sampler
    about its evaluation sets: these get random batches.

    Args:
        plan: `Shuffled`, `Grouped`, `RandomWalkBatches` or `ByLoss` of the rows of the training set; its size is
            per_device_train_batch_size.

    Returns:
        A function of (dataset, batch_size, drop_last, ...), which can be pickled. Unless the trainer evaluates, it
        raises NaysayError if the set has not the number of rows of the plan, if the batch size is not the plan's, or
        if drop_last is True. A trainer calls it before its first step.

    Examples:
        >>> import naysay as ns
        >>> sampler = batch_sampler(ns.batches.Shuffled(4, 2, forbid=[0, 0, 1, 1]))
        >>> batches = sampler(range(4), batch_size=2, drop_last=False, seed=3)
        >>> [len(batch) for batch in batches]
        [2, 2]
    """
    if isinstance(plan, type) or not hasattr(plan, "plan") or not hasattr(plan, "n"):
        raise_invalid("plan", "a plan of naysay.batches, such as Shuffled(n, size)", type(plan).__name__)
    return _Planned(plan)


@final
class _Planned:
    """A plan, which waits for the trainer's dataset."""

    def __init__(self, plan: Any) -> None:
        self.plan = plan

    def __call__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool,  # noqa: FBT001
        valid_label_columns: list[str] | None = None,
        generator: Any = None,
        seed: int = 0,
    ) -> BatchSampler:
        if _evaluates():
            return BatchSampler(Shuffled(len(dataset), batch_size), seed)
        if len(dataset) != self.plan.n:
            rule = f"a plan of {len(dataset)} rows, as the training set has"
            raise_invalid("batch_sampler", rule, f"one of {self.plan.n}")
        if batch_size != self.plan.size:
            rule = f"a plan of batches of {batch_size}, as the trainer has"
            raise_invalid("batch_sampler", rule, f"batches of {self.plan.size}")
        if drop_last:
            raise_invalid("dataloader_drop_last", "False with a plan of batches", True)
        if generator is not None:  # seeded by the trainer, which before 6.0 passes no seed
            seed = generator.initial_seed()
        return BatchSampler(self.plan, seed)


def _evaluates() -> bool:
    """Whether a trainer asks for the batches of an evaluation set. It passes the same arguments as for training."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name not in _EVALUATION:
        frame = frame.f_back
    return frame is not None
