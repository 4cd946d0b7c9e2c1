"""Records what `naysay demo` prints, for the README: python -m benchmarks.demonstration."""

from __future__ import annotations

import io
import json
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from benchmarks.harness import write
from naysay.demo import run


def main() -> None:
    """Run it once for the compiler, once for the record, and write results/demonstration.json."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        run(quick=True, out=out, console=Console(file=io.StringIO()))
        printed, started = io.StringIO(), time.perf_counter()
        run(out=out, console=Console(file=printed, width=80))
        seconds = time.perf_counter() - started
        numbers = json.loads((out / "results.json").read_text())
        text = [line.rstrip().replace(folder + "/", "") for line in printed.getvalue().splitlines()]
    write("demonstration", {"torch": version("torch"), "seconds": seconds, **numbers, "printed": text})


if __name__ == "__main__":
    main()
