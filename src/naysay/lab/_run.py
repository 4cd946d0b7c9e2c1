"""One arm from one start: its steps on the clock, and a measure off the clock every few steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import torch

from naysay.lab._domain import Task
from naysay.lab.arms import Arm
from naysay.lab.result import LEAST_STEPS, Point, RunResult

# After a quarter of the steps the best three learning rates go on, after half of them the best two.
ROUNDS = ((4, 3), (2, 2), (1, 1))  # (what the steps are divided by, how many go on)
POINTS = 20  # validations of a run
TIMED_STEPS, TIMED_SECONDS = 8, 0.2  # an arm is timed for so many steps at most, or until so many seconds have passed
LONG_VALIDATION = 10.0  # seconds; compiling what ranks takes less
TUNING = 1_000_003  # added to the seed, so that learning rates are chosen on runs that are not compared

OnSteps = Callable[[int], None]  # on_steps(steps): so many more steps are done


class Run:
    """An arm of a task with a learning rate: start, data order and randomness are those of the seed.

    `steps` is the length of the whole run, which an arm may name: some methods change over a run.
    """

    def __init__(self, task: Task, arm: Arm, lr: float, seed: int, steps: int = LEAST_STEPS) -> None:
        """Nothing is trained yet."""
        self.task, self.arm, self.lr, self.seed, self.done = task, arm, lr, seed, 0
        self.model = task.start(seed)
        wall, processor = time.perf_counter(), time.process_time()
        sampler = arm.sampler({**self.model.parts(), "steps": steps})
        self.seconds = time.perf_counter() - wall
        # What an earlier run has made for this one, too, counts as if it had been made here.
        self.processor_seconds = max(time.process_time() - processor, self.model.spared)
        self.step_of = partial(self.model.loss, sampler=sampler) if hasattr(sampler, "sample") else sampler
        fused = True if task.device.type == "cpu" else None  # elsewhere torch chooses: not every device has it
        self.optimiser = torch.optim.Adam(self.model.parameters, lr=lr, weight_decay=task.decay, fused=fused)
        self.order, self.rows = np.random.default_rng(seed), np.zeros(0, np.int64)
        self.steps_per_second = 1
        self.points: list[Point] = []
        self.best: Any = None  # the parameters at the best point
        self.best_value = -1.0

    def _batch(self) -> Any:
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
            self.batch = self._batch()
            loss, self.negatives = self.step_of(self.batch, k=self.arm.k, step=self.done)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            self.done += 1
            self.hardness += self.model.hardness / steps
        self.seconds += time.perf_counter() - wall
        self.processor_seconds += time.process_time() - processor

    def validate(self) -> None:
        """Add a point, off the clock; the model is kept where validation is best so far."""
        state = self.model.snapshot()
        value = self.model.measure(state)[self.task.measure]
        if value > self.best_value:
            self.best, self.best_value = state, value
        false_share = nan if self.negatives is None else self.model.false_share(self.batch, self.negatives)
        self.points.append(Point(self.done, self.seconds, self.processor_seconds, value, self.hardness, false_share))

    def to(self, step: int, every: int, on_steps: OnSteps) -> None:
        """Train up to a step, and validate every so many; report about once a second."""
        while self.done < step:
            planned = min(every, step - self.done)
            left, hardness = planned, 0.0
            while left:
                steps = min(left, self.steps_per_second)
                began = time.perf_counter()
                self.train(steps)
                hardness += self.hardness * steps
                left -= steps
                speed = int(steps / max(time.perf_counter() - began, 1e-9))
                self.steps_per_second = max(1, min(2 * steps, speed))
                on_steps(steps)
            self.hardness = hardness / planned
            self.validate()

    def result(self) -> RunResult:
        """The run with the test measures of its best point."""
        return RunResult(self.seed, tuple(self.points), self.model.measure(self.best, "test"), _peak_bytes())


def _forget_peak() -> None:
    """Let the highest memory of this process be counted from now on; on Linux only."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> float:
    """The highest resident memory since `_forget_peak`; NaN where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return nan
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), nan)


def steps_between_points(steps: int) -> int:
    """Steps between two validations."""
    return max(1, -(-steps // POINTS))


def choose_lr(task: Task, arm: Arm, steps: int, seed: int, on_steps: OnSteps) -> tuple[float, dict[str, float]]:
    """The best learning rate by successive halving, and {learning rate: best validation} of all that were tried.

    A rate that learns slowly needs the later rounds: after a quarter of the steps a high rate looks best.
    """
    runs = [Run(task, arm, lr, seed + TUNING, steps) for lr in task.learning_rates]
    tried: dict[str, float] = {}
    for divisor, kept in ROUNDS:
        for run in runs:
            run.to(max(1, steps // divisor), steps_between_points(steps), on_steps)
        tried |= {f"{run.lr:g}": run.best_value for run in runs}
        runs = sorted(runs, key=lambda run: -run.best_value)[:kept]
    return runs[0].lr, tried


def train_arm(task: Task, arm: Arm, lr: float, steps: int, seed: int, on_steps: OnSteps) -> RunResult:
    """A whole run."""
    _forget_peak()
    run = Run(task, arm, lr, seed, steps)
    run.to(steps, steps_between_points(steps), on_steps)
    return run.result()


def step_seconds(task: Task, arm: Arm, seed: int) -> tuple[float, Run]:
    """Processor seconds of a step, after one that is not timed because it may compile; and the run, to go on with."""
    run = Run(task, arm, task.learning_rates[0], seed + TUNING)
    run.train(1)
    run.processor_seconds = 0.0
    while run.done <= TIMED_STEPS and run.processor_seconds < TIMED_SECONDS:
        run.train(1)
    return run.processor_seconds / (run.done - 1), run


def validation_seconds(run: Run) -> float:
    """Processor seconds of a validation. The second is timed, because the first may compile, unless that took long."""
    seconds = 0.0
    for _ in range(2):
        if seconds < LONG_VALIDATION:
            start = time.process_time()
            run.validate()
            seconds = time.process_time() - start
    return seconds
