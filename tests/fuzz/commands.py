"""Fuzz of the command line: random command lines and damaged files, in one process. Prints what breaks a rule.

python -m tests.fuzz.commands --runs 20000 --seed 1
"""

import argparse
import collections
import faulthandler
import tempfile
import time
from pathlib import Path

from tests.fuzz.rules import command_runs, file_runs, world_in


def main() -> None:
    """Run both kinds, and end with code 1 if a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000, help="Command lines; half as many files.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=["commands", "files"], help="Only one of both.")
    given = parser.parse_args()
    faulthandler.enable()
    broken = 0
    kinds = {"commands": (command_runs, given.runs), "files": (file_runs, given.runs // 2)}
    for kind, (runs_of, runs) in kinds.items():
        if given.kind not in (None, kind):
            continue
        codes, start = collections.Counter(), time.process_time()
        with tempfile.TemporaryDirectory() as folder, world_in(Path(folder, "world").resolve()) as world:
            for number, (done, found) in enumerate(runs_of(world, runs, given.seed)):
                codes[str(done.code)[:40]] += 1
                if found:
                    broken += 1
                    print(f"{kind} {number}: {found}\n  {done.words}\n  {done.err.strip()[-400:]}", flush=True)
        print(f"{kind}: {runs} runs, exit codes {dict(codes)}, {time.process_time() - start:.0f} s")
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()
