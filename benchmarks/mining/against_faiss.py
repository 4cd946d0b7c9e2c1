"""`mine` against the same rule written by hand with faiss; and what the first call of a process costs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import faiss
import numpy as np
import torch

from benchmarks.harness import ROOT
from benchmarks.mining.contenders import WIDTH, World, labelled_by_chance, margin_by_faiss, spread_out, world
from naysay.kernels.threads import set_threads
from naysay.mining import Mined, mine
from naysay.search._multiply import product

K, MARGIN = 10, 0.05
WORLDS: dict[str, Callable[..., World]] = {
    "clustered": world,
    "spread out": spread_out,
    "labelled by chance": labelled_by_chance,
}
PLAIN, AUTO = "mine, no judge", "mine, auto"
JUDGES = {PLAIN: "none", "mine, share 0.95": "share:0.95", AUTO: "auto"}
BY_HAND = "faiss by hand"
FIRST = """
import json, sys, time
import numpy as np
import naysay as ns
if sys.argv[3] == "torch":
    import torch
rng, seconds = np.random.default_rng(0), []
ns.set_threads(1)
judge = None if sys.argv[4] == "none" else sys.argv[4]
documents = rng.standard_normal((int(sys.argv[1]), 384), np.float32)
queries = documents[: int(sys.argv[2])] + rng.standard_normal((int(sys.argv[2]), 384), np.float32)
for _ in range(3):
    start = time.process_time()
    ns.mine(queries, documents, np.arange(len(queries)), 10, judge=judge)
    seconds.append(time.process_time() - start)
print(json.dumps(seconds))
"""


def result_bytes(mined: Mined) -> int:
    """The bytes of all arrays that a result holds, each counted once."""
    seen: dict[int, int] = {}
    for part in (mined, mined.candidates, mined._judged):
        for entry in fields(part):
            value = getattr(part, entry.name)
            if isinstance(value, np.ndarray):
                seen[value.__array_interface__["data"][0]] = value.nbytes
    return sum(seen.values())


def products_alone(size: int) -> float:
    """Processor seconds of the 8-bit products of all pairs: what a search that rounds to 8 bits takes at least.

    In the blocks of the search. 2,048 queries are multiplied, and the time is scaled to all of them.
    """
    rows, columns, some = 128, 8192, min(size, 2048)
    codes = np.random.default_rng(0).integers(-127, 128, (size, WIDTH)).astype(np.int8)
    multiply = product("int8", rows, columns)
    start = time.process_time()
    for first in range(0, size, columns):
        for row in range(0, some, rows):
            multiply(codes[row : row + rows], codes[first : first + columns])
    return (time.process_time() - start) * size / some


def against_faiss(kind: str, size: int, threads: int, repeats: int, taken_in_turn: Any) -> dict[str, Any]:
    """All contenders on `size` queries and as many documents; `taken_in_turn(calls, repeats)` measures them."""
    set_threads(threads)
    faiss.omp_set_num_threads(threads)
    torch.set_num_threads(threads)
    data, small = WORLDS[kind](size, size), WORLDS[kind](1000, 1000, seed=1)

    def by_mine(judge: str, given: World) -> Mined:
        return mine(given.queries, given.documents, given.positives, K, judge=judge)

    calls: dict[str, Callable[[World], Any]] = {BY_HAND: lambda given: margin_by_faiss(given, K, MARGIN)}
    calls |= {name: lambda given, judge=judge: by_mine(judge, given) for name, judge in JUDGES.items()}
    for call in calls.values():
        call(small)
    rows, answers = taken_in_turn({name: lambda call=call: call(data) for name, call in calls.items()}, repeats)
    hand = rows[BY_HAND]
    for name in JUDGES:
        row, held, peak = rows[name], result_bytes(answers[name]), hand["peak_extra_bytes"]
        beyond = max(0, row["peak_extra_bytes"] - held) / peak if peak else None
        row["result_bytes"] = held
        row["of_by_hand"] = {"cpu_seconds": row["cpu_seconds"] / hand["cpu_seconds"], "memory_beyond_result": beyond}
    return {
        "world": kind,
        "size": size,
        "threads": threads,
        "repeats": repeats,
        "contenders": rows,
        "products_alone_cpu_seconds": products_alone(size),
        "auto_adds": rows[AUTO]["cpu_seconds"] / rows[PLAIN]["cpu_seconds"] - 1,
        "auto_judges_by": type(answers[AUTO].judge).__name__,
        "slots": size * K,
        "slots_that_differ": int((answers["mine, share 0.95"].ids != answers[BY_HAND]).sum()),
    }


def first_call(documents: int, queries: int, loaded: str, judge: str) -> dict[str, Any]:
    """Processor seconds of three calls in a process of its own; compiled loops are on disk, where others ran them."""
    command = [sys.executable, "-c", FIRST, str(documents), str(queries), loaded, judge]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds = json.loads(answer.stdout)
    sizes = {"documents": documents, "queries": queries, "loaded": loaded, "judge": judge}
    return {**sizes, "cpu_seconds": seconds, "above": seconds[0] - min(seconds[1:])}
