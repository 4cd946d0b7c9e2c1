"""One arm from one start: its steps on the clock, and a measure off the clock every few steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from math import nan
from typing import Any, NoReturn

import numpy as np
import torch

from naysay.checks import raise_invalid
from naysay.lab._task import Task
from naysay.lab.arms import Arm
from naysay.lab.result import LEAST_STEPS, Point, RunResult

# After a quarter of the steps the best three learning rates go on, after half of them the best two.
_ROUNDS = ((4, 3), (2, 2), (1, 1))  # (what the steps are divided by, how many go on)
POINTS = 20  # validations of a run
_TIMED_STEPS, _TIMED_SECONDS = 8, 0.2  # an arm is timed for so many steps, or until so many seconds have passed
_LONG_VALIDATION = 10.0  # seconds; compiling what ranks takes less
TUNING = 1_000_003  # added to the seed, so that learning rates are chosen on runs that are not compared

OnSteps = Callable[[int], None]  # on_steps(steps): so many more steps are done


class Run:
    """An arm of a task with a learning rate: start, data order and randomness are those of the seed.

    `steps` is the length of the whole run, which an arm may name: some methods change over a run.
    """

    def __init__(self, task: Task, arm: Arm, lr: float, seed: int, steps: int = LEAST_STEPS) -> None:
        self.task, self.arm, self.lr, self.seed = task, arm, lr, seed
        self.model = task.start(seed)
        wall, processor = time.perf_counter(), time.process_time()
        sampler = arm.sampler({**self.model.parts(), "steps": steps})
        self.seconds = time.perf_counter() - wall
        # What an earlier run has made for this one, too, counts as if it had been made here.
        self.processor_seconds = max(time.process_time() - processor, self.model.processor_seconds_spared)
        self.step_of = partial(self.model.loss, sampler=sampler) if hasattr(sampler, "sample") else sampler
        fused = True if task.device.type == "cpu" else None  # elsewhere torch chooses: not every device has it
        self.optimiser = torch.optim.Adam(self.model.network.parameters(), lr=lr, weight_decay=task.decay, fused=fused)
        self.order, self.rows = np.random.default_rng(seed), np.zeros(0, np.int64)
        self.done = 0  # steps
        self.hardness = nan  # the mean of the last steps
        self.points: list[Point] = []
        self.best: Any = None  # the parameters at the best point
        self.best_value = -1.0
        self.diverged = False  # whether parameters became NaN or infinite; then the run is over

    def _next_batch(self) -> Any:
        """The next rows of a shuffled epoch; what does not fill a batch at its end is left out."""
        if len(self.rows) < self.task.batch:
            self.rows = self.order.permutation(self.task.pairs)
        batch, self.rows = self.rows[: self.task.batch], self.rows[self.task.batch :]
        return batch

    def train(self, steps: int) -> None:
        """Some steps, on the clock."""
        wall, processor = time.perf_counter(), time.process_time()
        self.hardness = 0.0
        for _ in range(steps):
            self.batch = self._next_batch()
            loss, self.negatives = self.step_of(self.batch, k=self.arm.k, step=self.done)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            self.model.after_step(epoch_ends=len(self.rows) < self.task.batch)
            self.done += 1
            self.hardness += self.model.hardness / steps
        self.seconds += time.perf_counter() - wall
        self.processor_seconds += time.process_time() - processor

    def validate(self) -> None:
        """Add a point, off the clock; the model is kept where validation is best so far."""
        self.diverged = not all(bool(torch.isfinite(each).all()) for each in self.model.network.parameters())
        if self.diverged:
            return
        state = self.model.snapshot()
        value = self.model.measure(state)[self.task.measure]
        if value > self.best_value:
            self.best, self.best_value = state, value
        false_share = nan if self.negatives is None else self.model.false_share(self.batch, self.negatives)
        self.points.append(Point(self.done, self.seconds, self.processor_seconds, value, self.hardness, false_share))

    def to(self, step: int, every: int, on_steps: OnSteps) -> None:
        """Train up to a step, and validate every so many."""
        while self.done < step and not self.diverged:
            steps = min(every, step - self.done)
            self.train(steps)
            self.validate()
            on_steps(steps)

    def result(self) -> RunResult:
        """The run with the test measures of its best point."""
        return RunResult(self.seed, tuple(self.points), self.model.measure(self.best, "test"))


def _steps_between_points(steps: int) -> int:
    return max(1, -(-steps // POINTS))


def choose_lr(task: Task, arm: Arm, steps: int, seed: int, on_steps: OnSteps) -> tuple[float, dict[str, float]]:
    """The best learning rate by successive halving, and {learning rate: best validation, or NaN if it diverged}.

    A rate that learns slowly needs the later rounds: after a quarter of the steps a high rate looks best.
    """
    runs = [Run(task, arm, lr, seed + TUNING, steps) for lr in task.learning_rates]
    tried: dict[str, float] = {}
    for divisor, kept in _ROUNDS:
        for run in runs:
            run.to(max(1, steps // divisor), _steps_between_points(steps), on_steps)
        tried |= {f"{run.lr:g}": nan if run.diverged else run.best_value for run in runs}
        finite = [run for run in runs if not run.diverged]
        if not finite:
            _raise_diverged(runs[0])
        runs = sorted(finite, key=lambda run: -run.best_value)[:kept]
    return runs[0].lr, tried


def train_arm(task: Task, arm: Arm, lr: float, steps: int, seed: int, on_steps: OnSteps) -> RunResult:
    """A whole run."""
    run = Run(task, arm, lr, seed, steps)
    run.to(steps, _steps_between_points(steps), on_steps)
    if run.diverged:
        _raise_diverged(run)
    return run.result()


def _raise_diverged(run: Run) -> NoReturn:
    got = (
        f"{run.arm.name!r}, whose parameters are NaN or infinite at step {run.done} with a learning rate of {run.lr:g}"
    )
    raise_invalid("methods", "methods whose training stays finite", got)


def step_seconds(task: Task, arm: Arm, seed: int) -> tuple[float, Run]:
    """Processor seconds of a step, after one that is not timed because it may compile; and the run, to go on with."""
    run = Run(task, arm, task.learning_rates[0], seed + TUNING)
    run.train(1)
    run.processor_seconds = 0.0
    while run.done <= _TIMED_STEPS and run.processor_seconds < _TIMED_SECONDS:
        run.train(1)
    return run.processor_seconds / (run.done - 1), run


def validation_seconds(run: Run) -> float:
    """Processor seconds of a validation. The second is timed, because the first may compile, unless that took long."""
    seconds = 0.0
    for _ in range(2):
        if seconds < _LONG_VALIDATION:
            start = time.process_time()
            run.validate()
            seconds = time.process_time() - start
    return seconds
