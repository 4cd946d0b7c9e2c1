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

from naysay.comparing.arms import Arm
from naysay.comparing.result import LEAST_STEPS, Point, RunResult

RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
RUNGS = ((4, 3), (2, 2), (1, 1))  # after a quarter of the steps the best three go on, after half of them the best two
POINTS = 20  # validations of a run
TIMED_STEPS, TIMED_SECONDS = 8, 0.2  # an arm is timed for so many steps at most, or until so many seconds have passed
LONG_VALIDATION = 10.0  # seconds; compiling what ranks takes less
DECAY = 1e-6
TUNING = 1_000_003  # added to the seed, so that rates are chosen on runs that are not compared

Told = Callable[[int], None]  # told(steps): so many more steps are done


class Run:
    """An arm of a task with a learning rate: start, data order and randomness are those of the seed.

    `steps` is the length of the whole run, which an arm may name: some methods change over a run.
    """

    def __init__(self, task: Any, arm: Arm, rate: float, seed: int, steps: int = LEAST_STEPS) -> None:
        """Nothing is trained yet."""
        self.task, self.arm, self.rate, self.seed, self.done = task, arm, rate, seed, 0
        self.model = task.start(seed)
        wall, own = time.perf_counter(), time.process_time()
        sampler = arm.sampler({**self.model.parts(), "steps": steps})
        spared = getattr(self.model, "spared", 0.0)  # what an earlier run has made for this one, too
        self.seconds, self.processor_seconds = time.perf_counter() - wall, time.process_time() - own
        self.processor_seconds = max(self.processor_seconds, spared)
        self.step_of = partial(self.model.loss, sampler=sampler) if hasattr(sampler, "sample") else sampler
        fused = True if task.device.type == "cpu" else None  # elsewhere torch chooses: not every device has it
        self.optimiser = torch.optim.Adam(self.model.parameters, lr=rate, weight_decay=decay_of(task), fused=fused)
        self.order, self.rows = np.random.default_rng(seed), np.zeros(0, np.int64)
        self.together = 1  # steps of about a second
        self.points: list[Point] = []
        self.best: Any = None
        self.top = -1.0  # its validation measure

    def _batch(self) -> Any:
        """The next rows of a shuffled epoch; what does not fill a batch at its end is left out."""
        if len(self.rows) < self.task.batch:
            self.rows = self.order.permutation(self.task.pairs)
        now, self.rows = self.rows[: self.task.batch], self.rows[self.task.batch :]
        return now

    def train(self, steps: int) -> None:
        """Some steps, on the clock."""
        wall, own = time.perf_counter(), time.process_time()
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
        self.processor_seconds += time.process_time() - own

    def look(self) -> None:
        """Add a point, off the clock; the model is kept where validation is best so far."""
        state = self.model.snapshot()
        value = self.model.measure(state)[self.task.measure]
        if value > self.top:
            self.best, self.top = state, value
        false_share = nan if self.negatives is None else self.model.false_share(self.batch, self.negatives)
        self.points.append(Point(self.done, self.seconds, self.processor_seconds, value, self.hardness, false_share))

    def to(self, step: int, every: int, told: Told) -> None:
        """Train up to a step, and look every so many; tell more often if steps are slow."""
        while self.done < step:
            left = min(every, step - self.done)
            hardness, whole = 0.0, left
            while left:
                steps = min(left, self.together)
                began = time.perf_counter()
                self.train(steps)
                hardness, left = hardness + self.hardness * steps, left - steps
                self.together = max(1, min(2 * steps, int(steps / max(time.perf_counter() - began, 1e-9))))
                told(steps)
            self.hardness = hardness / whole
            self.look()

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


def rates_of(task: Any) -> tuple[float, ...]:
    """The learning rates that are tried: those of the task, or the usual ones."""
    rates: tuple[float, ...] = getattr(task, "rates", RATES)
    return rates


def decay_of(task: Any) -> float:
    """The weight decay: that of the task, or the usual one."""
    decay: float = getattr(task, "decay", DECAY)
    return decay


def every_of(steps: int) -> int:
    """Steps between two points."""
    return max(1, -(-steps // POINTS))


def choose_rate(task: Any, arm: Arm, steps: int, seed: int, told: Told) -> tuple[float, dict[str, float]]:
    """The best learning rate by successive halving, and {rate: best validation} of all that were tried.

    A rate that learns slowly needs the later rungs: after a quarter of the steps a high rate looks best.
    """
    runs = [Run(task, arm, rate, seed + TUNING, steps) for rate in rates_of(task)]
    tried: dict[str, float] = {}
    for part, kept in RUNGS:
        for run in runs:
            run.to(max(1, steps // part), every_of(steps), told)
        tried |= {f"{run.rate:g}": run.top for run in runs}
        runs = sorted(runs, key=lambda run: -run.top)[:kept]
    return runs[0].rate, tried


def train_arm(task: Any, arm: Arm, rate: float, steps: int, seed: int, told: Told) -> RunResult:
    """A whole run."""
    _forget_peak()
    run = Run(task, arm, rate, seed, steps)
    run.to(steps, every_of(steps), told)
    return run.result()


def step_seconds(task: Any, arm: Arm, seed: int) -> tuple[float, Run]:
    """Processor seconds of a step, after one that is not timed because it may compile; and the run, to go on with."""
    run = Run(task, arm, rates_of(task)[0], seed + TUNING)
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
            run.look()
            seconds = time.process_time() - start
    return seconds
