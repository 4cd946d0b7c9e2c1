"""Shared by all benchmarks: peers as subprocesses, alternating repetitions, and results as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from naysay.pools._small_draws import use_compiled_loops

use_compiled_loops()  # times are those of a long run; benchmarks.speed.startup times new processes
HERE = Path(__file__).parent
RESULTS = HERE / "results"
ROOT = HERE.parent  # from where `python -m benchmarks...` runs


class Peer:
    """A peer library in its own interpreter; runs one timed repetition at a time."""

    def __init__(self, peers: Path, name: str, data: Path, case: str, threads: int) -> None:
        """Start the worker and wait until it is ready; `missing` is the reason if it cannot run."""
        self.name = name
        self.missing = ""
        self.greeting: dict[str, Any] = {}
        interpreter = peers / name / "bin" / "python"
        if not interpreter.exists():
            self.missing = f"no environment for {name}: run benchmarks/peers/setup.sh"
            return
        command = [str(interpreter), str(HERE / "peers" / f"{name}_worker.py"), str(data), case]
        self.process = subprocess.Popen(
            [*command, "--threads", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},  # a worker may also time naysay
        )
        line = self._read()
        self.greeting = json.loads(line) if line else {}
        if not self.greeting.get("ready"):
            self.missing = f"{name} did not start"

    def repeat(self) -> dict[str, Any]:
        """One repetition, as the worker reports it."""
        if self.process.stdin is None:
            message = f"{self.name} has no input"
            raise RuntimeError(message)
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        report: dict[str, Any] = json.loads(self._read())
        return report

    def stop(self) -> None:
        """Let the worker end."""
        if not self.missing and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()

    def _read(self) -> str:
        return self.process.stdout.readline() if self.process.stdout is not None else ""


def timed(function: Callable[[], int]) -> dict[str, Any]:
    """Seconds, processor seconds and negatives of one repetition of ours."""
    start, own = time.perf_counter(), time.process_time()
    negatives = function()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - own
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "negatives": negatives}


def alternate(ours: dict[str, Callable[[], int]], peers: list[Peer], repeats: int) -> dict[str, dict[str, Any]]:
    """Repetitions in turn, so that a noisy moment hits all alike; the best of each is kept.

    ours      name to a function that runs one repetition and returns how many negatives it made

    Before each timed repetition the same contender runs one that is not timed: the one before it has filled the
    processor's cache with other data, which no training loop does.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    for _ in range(repeats):
        for name, function in ours.items():
            function()
            rows.setdefault(name, []).append(timed(function))
        for peer in peers:
            if not peer.missing:
                peer.repeat()
                rows.setdefault(peer.name, []).append(peer.repeat())
    found: dict[str, dict[str, Any]] = {}
    for name, reports in rows.items():
        best = min(reports, key=lambda report: report["seconds"] / max(report["negatives"], 1))
        found[name] = best | {"per_second": best["negatives"] / best["seconds"], "repeats": repeats}
        if "cpu_seconds" in best:  # less noise than on the wall clock, so it may be lowest in another repetition
            found[name]["cpu_seconds"] = min(report["cpu_seconds"] for report in reports)
    for peer in peers:
        if peer.missing:
            found[peer.name] = {"missing": peer.missing}
        else:
            found[peer.name]["versions"] = {k: v for k, v in peer.greeting.items() if k != "ready"}
    return found


def sleep_while_waiting(module: str) -> None:
    """Start this script again with threads of OpenMP that sleep while they wait, unless the caller chose how.

    The setting is read when torch is loaded, so it cannot be changed later.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        command = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "OMP_WAIT_POLICY": "passive"})


def environment() -> dict[str, Any]:
    """Versions and machine, for the head of every result."""
    packages = {name: version(name) for name in ("naysay", "numpy", "numba", "scipy", "pyarrow")}
    cpu = next((line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")), "unknown")
    return {"python": platform.python_version(), **packages, "cpu": cpu, "cores": len(os.sched_getaffinity(0))}


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def write(name: str, result: dict[str, Any], out: Path | None = None) -> Path:
    """Write results/NAME.json whole or not at all, and say where."""
    target = out or RESULTS / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".draft")
    draft.write_text(json.dumps({"benchmark": name, "environment": environment(), **result}, indent=1) + "\n")
    draft.replace(target)
    print(f"wrote {target.name}", file=sys.stderr)
    return target


def show(title: str, rows: dict[str, dict[str, Any]], base: str) -> None:
    """A line for each contender: negatives per second and the ratio to `base`."""
    print(title)
    reference = rows.get(base, {}).get("per_second")
    for name, row in rows.items():
        if "missing" in row:
            print(f"  {name:34s} {row['missing']}")
            continue
        ratio = f"{row['per_second'] / reference:8.1f} x {base}" if reference else ""
        leaks = f"   leaks {row['leaks']}" if "leaks" in row else ""
        print(f"  {name:34s} {row['per_second'] / 1e6:9.3f} M/s {ratio}{leaks}")
