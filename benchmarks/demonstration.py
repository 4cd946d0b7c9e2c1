"""What `naysay demo` prints, kept as a result, so that the README shows a run that took place.

python benchmarks/demonstration.py
"""

from __future__ import annotations

import io
from dataclasses import asdict

from harness import write
from rich.console import Console

from naysay import demo


def main() -> None:
    """Run it once for the compiler, once for the record, and write results/demonstration.json."""
    demo.run(quick=True, console=Console(file=io.StringIO()))
    printed = io.StringIO()
    lines = demo.run(console=Console(file=printed, width=80))
    text = [line.rstrip() for line in printed.getvalue().splitlines()]
    write("demonstration", {"lines": [asdict(line) for line in lines], "printed": text})


if __name__ == "__main__":
    main()
