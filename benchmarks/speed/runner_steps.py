"""What a step of the models that `naysay compare` trains is made of, and what another optimiser would give."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.harness import alternate, timed
from naysay.lab import knowledge_graph, recommendation
from naysay.lab._run import Run  # what `naysay compare` runs, step by step
from naysay.lab.arms import Arm, read_arms

K, WIDTH, RATE = 16, 64, 1e-2
METHODS = {"mf": f"uniform:{K}", "lightgcn": f"uniform:{K}", "transe": f"corruption:{K}"}


class Clock:
    """Adds up processor seconds by name."""

    def __init__(self) -> None:
        """Empty."""
        self.seconds: dict[str, float] = defaultdict(float)

    def counts(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time counted under a name."""

        def call(*args: Any, **settings: Any) -> Any:
            start = time.process_time()
            answer = function(*args, **settings)
            self.seconds[name] += time.process_time() - start
            return answer

        return call


class Timed:
    """A sampler whose time is counted."""

    def __init__(self, sampler: Any, clock: Clock) -> None:
        """Wrap it."""
        self.sample = clock.counts("negatives", sampler.sample)


def started(task: Any, clock: Clock | None = None) -> Run:
    """A run of a task as `naysay compare` starts it; with a clock, the sampler's time is counted."""
    method = METHODS[task.model]
    [arm] = read_arms(method, task.start(0).parts(), (method,))
    if clock is None:
        return Run(task, arm, RATE, 0)
    return Run(task, Arm(arm.name, arm.k, arm.code, lambda parts: Timed(arm.sampler(parts), clock)), RATE, 0)


def steps_of(run: Run, steps: int) -> Callable[[], int]:
    """A function that trains some steps and returns how many negatives they had."""

    def train() -> int:
        run.train(steps)
        return steps * run.task.batch * run.arm.k

    return train


def split(task: Any, repeats: int, steps: int) -> dict[str, float]:
    """Processor milliseconds of each part of a step, of the fastest of several repetitions, and shares of the step.

    "rest of the forward pass" are look-ups of ids and, for LightGCN, propagation. "backward" has the gradient's memory.
    """
    clock = Clock()
    run = started(task, clock)
    module: Any = knowledge_graph if task.model == "transe" else recommendation
    counted = [(module, "info_nce", "loss"), (module, "mean_hardness", "hardness")]
    counted += (
        [(run.model.network, "scores", "scores")] if task.model == "transe" else [(module, "row_scores", "scores")]
    )
    counted += [(run, "_batch", "order"), (run, "step_of", "forward"), (run.optimiser, "step", "optimiser")]
    with ExitStack() as stack:
        for owner, name, part in counted:
            stack.enter_context(patch.object(owner, name, clock.counts(part, getattr(owner, name))))
        found = []
        for _ in range(repeats + 1):
            clock.seconds.clear()
            whole = timed(steps_of(run, steps))["cpu_seconds"]
            found.append({"step": whole, **clock.seconds})
    best = min(found[1:], key=lambda parts: parts["step"])
    forward = best.pop("forward")
    best["rest of the forward pass"] = forward - sum(best[name] for name in ("negatives", "scores", "loss", "hardness"))
    best["backward"] = best["step"] - forward - best["order"] - best["optimiser"]
    print(f"  {task.model}: " + ", ".join(f"{name} {1e3 * value / steps:.2f}" for name, value in best.items()))
    return {
        "batch": task.batch,
        **{name: 1e3 * value / steps for name, value in best.items()},
        "share_of_negatives": best["negatives"] / best["step"],
    }


def optimisers(rows: int, touched: int, repeats: int) -> dict[str, float]:
    """Processor milliseconds of one update of a table of which a step touches some rows.

    Dense: Adam as the runners have it, in one fused pass. Sparse: torch.optim.SparseAdam on the touched rows.
    """
    rng = torch.Generator().manual_seed(0)
    ids = torch.randperm(rows, generator=rng)[:touched].sort().values
    values = torch.randn(touched, WIDTH, generator=rng)
    sparse = torch.sparse_coo_tensor(ids[None], values, (rows, WIDTH)).coalesce()
    tables = [torch.zeros(rows, WIDTH, requires_grad=True) for _ in range(2)]
    tables[0].grad, tables[1].grad = sparse.to_dense(), sparse
    made = {
        "dense": torch.optim.Adam([tables[0]], lr=RATE, weight_decay=1e-6, fused=True),
        "sparse": torch.optim.SparseAdam([tables[1]], lr=RATE),
    }

    def stepped(optimiser: Any) -> int:
        optimiser.step()
        return 1

    found = alternate({name: partial(stepped, one) for name, one in made.items()}, [], repeats)
    return {"rows": rows, "touched": touched, **{name: 1e3 * row["cpu_seconds"] for name, row in found.items()}}


def touched_rows(task: Any) -> int:
    """How many rows of the table a step has a gradient for."""
    run = started(task)
    run.train(1)
    return int(run.model.parameters[0].grad.any(dim=1).sum())
