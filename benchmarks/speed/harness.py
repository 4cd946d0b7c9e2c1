"""Speed: ours and a peer by turns in one run, the best of several, in wall clock and processor seconds.

Every script of this folder is `python -m benchmarks.speed.NAME [RESULT ...] [--parts PART ...] [--peers DIR]
[--data DIR] [--threads N] [--repeats N] [--quick] [--out DIR]`. It writes one or several results, each of several
parts; parts that do not run stay as they are in the file. `--quick` takes tiny sizes and one repetition, and writes to
a temporary folder unless --out is given.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import naysay as ns
from benchmarks.harness import RESULTS, ROOT, read, write
from benchmarks.peers.memory import peak_extra_bytes
from naysay.kernels.compile import FIRST_CALLS

FIRST_CALLS.allowed = False  # times are those of a long run; benchmarks.speed.startup times new processes
Row = dict[str, Any]
PEERS = Path(__file__).parents[1] / "peers"


@dataclass(frozen=True)
class Options:
    """What a part may ask for."""

    repeats: int
    threads: int
    peers: Path | None
    data: Path | None
    quick: bool

    def size(self, full: int, quick: int) -> int:
        """A size, or the tiny one."""
        return quick if self.quick else full

    def use_threads(self, threads: int) -> Options:
        """Set the threads of naysay and torch, and remember them."""
        ns.set_threads(threads)
        torch.set_num_threads(threads)
        return replace(self, threads=threads)


Part = Callable[[Options], Any]


class Peer:
    """A peer library in its own interpreter; runs one timed repetition at a time."""

    def __init__(self, options: Options, name: str, arrays: Mapping[str, Any], case: str) -> None:
        """Start the worker and wait until it is ready; `missing` is the reason if it cannot run."""
        self.name, self.missing, self.greeting = name, "", {}
        interpreter = (options.peers or Path()) / name / "bin" / "python"
        if options.peers is None or not interpreter.exists():
            self.missing = f"no environment for {name}: run benchmarks/peers/setup.sh"
            return
        self.folder = tempfile.TemporaryDirectory()
        data = Path(self.folder.name) / "data.npz"
        np.savez(data, folder=self.folder.name, **arrays)
        self.process = subprocess.Popen(
            [str(interpreter), str(PEERS / f"{name}_worker.py"), str(data), case, "--threads", str(options.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},  # a worker may also time naysay
        )
        line = self.process.stdout.readline() if self.process.stdout else ""
        self.greeting = json.loads(line) if line else {}
        if not self.greeting.get("ready"):
            self.missing = f"{name} did not start"

    def repeat(self) -> Row:
        """One repetition, as the worker reports it."""
        if self.process.stdin is None or self.process.stdout is None:
            message = f"{self.name} has no pipes"
            raise RuntimeError(message)
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        report: Row = json.loads(self.process.stdout.readline())
        return report

    def stop(self) -> None:
        """Let the worker end."""
        if not self.missing and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()
            self.folder.cleanup()


def timed(call: Callable[[], Any], *, memory: bool = False) -> tuple[Row, Any]:
    """Wall clock and processor seconds of one call, its memory if asked for, and its answer."""
    found: Row = {}
    answer: list[Any] = []

    def run() -> None:
        wall, processor = time.perf_counter(), time.process_time()
        answer.append(call())
        found.update(seconds=time.perf_counter() - wall, cpu_seconds=time.process_time() - processor)

    if memory:
        found["peak_extra_bytes"] = peak_extra_bytes(run)
    else:
        run()
    return found, answer[0]


def alternate(
    ours: Mapping[str, Callable[[], Any]],
    repeats: int,
    peers: Sequence[Peer] = (),
    *,
    memory: bool = False,
    warm: bool = True,
) -> tuple[dict[str, Row], dict[str, Any]]:
    """Repetitions by turns, so that a noisy moment hits all alike: the best row of each, and the last answers.

    ours   {name: a call}; if it answers with a whole number, that is how many negatives it made
    warm   whether each contender runs once before it is timed: the one before it has filled the processor's cache with
           other data, which no training loop does
    """
    rows: dict[str, list[Row]] = {}
    answers: dict[str, Any] = {}
    for _ in range(repeats):
        for name, call in ours.items():
            answers.pop(name, None)
            if warm:
                call()
            row, answers[name] = timed(call, memory=memory)
            rows.setdefault(name, []).append(row | _negatives(answers[name]))
        for peer in peers:
            if not peer.missing:
                if warm:
                    peer.repeat()
                rows.setdefault(peer.name, []).append(peer.repeat())
    found = {name: best_of(reports) for name, reports in rows.items()}
    for peer in peers:
        if peer.missing:
            found[peer.name] = {"missing": peer.missing}
        else:
            found[peer.name]["versions"] = {name: value for name, value in peer.greeting.items() if name != "ready"}
        peer.stop()
    return found, answers


def _negatives(answer: Any) -> Row:
    return {"negatives": int(answer)} if isinstance(answer, (int, np.integer)) else {}


def best_of(reports: Sequence[Row]) -> Row:
    """The quickest repetition, with the least processor time and memory of all."""
    best = dict(min(reports, key=lambda report: report["seconds"]))
    for name in ("cpu_seconds", "peak_extra_bytes"):  # less noise than the wall clock: lowest in another repetition
        values = [report[name] for report in reports if report.get(name) is not None]
        best |= {name: min(values)} if values else {}
    if best.get("negatives"):
        best["per_second"] = best["negatives"] / best["seconds"]
    return best | {"repeats": len(reports)}


def child(arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, from the root of the project; it must succeed."""
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True, **options)


def sleep_while_waiting() -> None:
    """Start this script again with threads of OpenMP that sleep while they wait, unless the caller chose how.

    By default torch's threads spin, which on a shared machine counts as time of whoever makes more calls of torch.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        module = sys.modules["__main__"].__spec__
        command = [sys.executable, "-m", str(module.name if module else ""), *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "OMP_WAIT_POLICY": "passive"})


def command(text: str | None, results: Mapping[str, Mapping[str, Any]], arguments: Sequence[str] | None = None) -> None:
    """Run the parts of some results.

    results   {result: {part: a function of Options, or a value that is written as it is}}; what the part "" finds is
              written at the top of the file
    """
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", metavar="RESULT", help=f"some of {', '.join(results)}")
    parser.add_argument("--parts", nargs="+")
    parser.add_argument("--peers", type=Path, help="where benchmarks/peers/setup.sh put the peers' environments")
    parser.add_argument("--data", type=Path, help="where benchmarks.data put the data")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that the script works")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    unknown = [name for name in args.results if name not in results]
    if unknown:
        sys.exit(f"benchmarks.speed: RESULT must be some of {', '.join(results)}, got {unknown[0]!r}")
    sleep_while_waiting()
    repeats = 1 if args.quick else args.repeats
    options = Options(repeats, args.threads, args.peers, args.data, args.quick).use_threads(args.threads)
    out = args.out or (Path(tempfile.mkdtemp()) if args.quick else RESULTS)
    for name in args.results or results:
        fixed = {key: value for key, value in results[name].items() if not callable(value)}
        for part, measure in results[name].items():
            if not callable(measure) or (args.parts and part not in args.parts):
                continue
            print(f"--- {name}, {part}", flush=True)
            before = os.getloadavg()[0]
            found = measure(options)
            kept = {key: value for key, value in read(name, out).items() if key not in ("benchmark", "environment")}
            loads = {**kept.get("load_by_part", {}), part: [before, os.getloadavg()[0]]}
            about = {**kept, **fixed, "torch": torch.__version__, "load_by_part": loads}
            write(name, {**about, **({part: found} if part else found)}, out)
            show(found)


def show(found: Any, indent: int = 1) -> None:
    """Print the numbers of a part, rows of nested objects under their names."""
    rows = dict(enumerate(found)) if isinstance(found, list) else found
    if not isinstance(rows, dict):
        return
    for name, value in rows.items():
        if isinstance(value, dict):
            print(f"{'  ' * indent}{name}: {_numbers(value)}")
        if isinstance(value, (dict, list)):
            show(value, indent + 1)


def _numbers(row: Row) -> str:
    shown = {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in row.items()}
    return ", ".join(f"{name} {shown[name]}" for name, value in row.items() if isinstance(value, (int, float, str)))
