"""The line protocol between a peer worker and the benchmark that started it.

A worker answers on standard output with one JSON object per line: a greeting once it is ready,
then one report for every ``go`` it reads from standard input. ``quit`` or the end of the input
stops it.
"""

import argparse
import json
import os
import platform
import random
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

Data = dict[str, np.ndarray]
Repeat = Callable[[], dict[str, Any]]
Prepare = Callable[[Data, str], tuple[float, Repeat]]


def serve(peer: str, package: str, cases: Sequence[str], prepare: Prepare) -> None:
    """Run one worker from its command line to the end of its input.

    ``prepare(data, case)`` builds the peer's sampler or loss and returns the seconds that took, with a
    function that runs one timed repetition and returns its report.
    """
    parser = argparse.ArgumentParser(description=f"Time the part of {package} that the case names.")
    parser.add_argument("data", type=Path, help="npz file with the arrays of the case")
    parser.add_argument("case", choices=cases)
    parser.add_argument("--threads", type=int, help="torch threads; torch's own default if absent")
    args = parser.parse_args()

    answers = _claim_stdout()
    _seed_everything(0)
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    with np.load(args.data) as archive:
        data = dict(archive)

    build_seconds, repeat = prepare(data, args.case)
    repeat()
    greeting = {
        "ready": True,
        "peer": peer,
        "version": version(package),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "build_seconds": build_seconds,
    }
    _send(answers, greeting)
    for line in sys.stdin:
        command = line.strip()
        if command == "quit":
            break
        if command != "go":
            raise SystemExit(f"unknown command {command!r}; expected 'go' or 'quit'")
        _send(answers, repeat())


def _claim_stdout() -> TextIO:
    """Keep the real standard output for answers and send everything else to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _seed_everything(seed: int) -> None:
    """Seed the three global generators, since each peer draws from a different one."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def _send(answers: TextIO, message: dict[str, Any]) -> None:
    """Write one message as one line, at once."""
    answers.write(json.dumps(message) + "\n")
    answers.flush()
