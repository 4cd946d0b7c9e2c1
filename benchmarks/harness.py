"""Shared by all benchmarks: the environment, result files, and intervals over seeds."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

ROOT = Path(__file__).parent.parent  # from where `python -m benchmarks...` runs
RESULTS = ROOT / "benchmarks" / "results"
LEVEL = 0.95  # of all intervals


def environment() -> dict[str, Any]:
    """Versions and machine, for the head of every result."""
    packages = {name: version(name) for name in ("naysay", "numpy", "numba", "scipy", "pyarrow")}
    cores = len(os.sched_getaffinity(0))
    return {"python": platform.python_version(), **packages, "cpu": _processor(), "cores": cores}


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def read(name: str, out: Path = RESULTS) -> dict[str, Any]:
    """An earlier result; empty if there is none."""
    path = out / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def write(name: str, result: dict[str, Any], out: Path = RESULTS) -> Path:
    """Write OUT/NAME.json whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{name}.json"
    draft = target.with_suffix(".draft")
    draft.write_text(json.dumps({"benchmark": name, "environment": environment(), **result}, indent=1) + "\n")
    draft.replace(target)
    print(f"wrote {target.name}", file=sys.stderr)
    return target


def spread(values: Sequence[float]) -> dict[str, Any]:
    """The mean, and half the width of its t interval at 95 %: t s / sqrt(n); None for one value."""
    array = np.asarray(values, np.float64)
    half = None
    if len(array) > 1:
        half = float(t.ppf((1 + LEVEL) / 2, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array)))
    return {"mean": float(array.mean()), "half": half, "values": array.tolist()}
