"""Mining hard negatives: against sentence-transformers end to end, against hand-written faiss, and how it grows.

    python -m benchmarks.mining.mine --peers DIR [--small] [--only PART ...] [--sizes N ...] [--worlds NAME ...]
        [--out FILE]

--peers   where benchmarks/peers/setup.sh put the environment sentence_transformers_mining
--small   a fiftieth of all sizes, to try the script
--only    measure only these parts and keep the others in the file
--sizes, --worlds   of the part "against", measure only these sizes and these worlds and keep the others

end to end   pairs of texts and a stand-in model of fixed vectors in, a Dataset of (anchor, positive, 10 negatives)
             out, by `relative_margin=0.05`: sentence-transformers with torch and with faiss, and ours, the same call in
             the same environment, each in its own process. Repetitions alternate, the best is kept. Memory is the peak
             resident memory of the call above the level before it. Rows are compared slot by slot.
by hand      vectors in, ids out, in one process: the margin rule with faiss and NumPy, and FlagEmbedding's rank window
against      vectors in, `Mined` out: no judge, "95 % of the positive" and "auto" against the margin rule by hand with
             faiss, 20,000 to 100,000 queries and documents, in clusters, spread out, and labelled by chance; and what
             "auto" adds to no judge
first        the first call of a process against the second, with torch loaded before and not, by judge
growth       `mine` with its default judge over float16 files, each size in its own process
index        the approximate search by setting, on vectors with and without clusters
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch

from benchmarks.harness import RESULTS, ROOT, Peer, write
from benchmarks.mining.against_faiss import WORLDS, against_faiss, first_call
from benchmarks.mining.contenders import (
    TAKEN,
    WIDTH,
    WINDOW,
    World,
    compared,
    margin_by_faiss,
    margin_by_ours,
    window_by_lists,
    window_by_ours,
    world,
)
from benchmarks.mining.index import WAYS, index_part
from benchmarks.peers.memory import peak_extra_bytes
from naysay.kernels.threads import set_threads

K, MARGIN = 10, 0.05
PARTS = ("end_to_end", "by_hand", "against", "first", "growth", "index")
SIZES = {20_000: 3, 50_000: 2, 100_000: 1}  # of the part "against", and how often each is repeated
PEER, CASES = "sentence_transformers_mining", ("torch", "faiss", "ours")
GROWTH = """
import json, sys, time
import numpy as np
import naysay as ns
from naysay.mining import mine
from benchmarks.peers.memory import peak_extra_bytes
queries, documents, positives = sys.argv[1], sys.argv[2], np.load(sys.argv[3])
ns.set_threads(int(sys.argv[4]))
some = np.load(queries)[:1000]
mine(some, np.concatenate([some] * 4), np.arange(len(some)), 10)  # compiled, and torch in memory
found = []
start, busy = time.perf_counter(), time.process_time()
extra = peak_extra_bytes(lambda: found.append(mine(queries, documents, positives, 10)))
seconds, cpu = time.perf_counter() - start, time.process_time() - busy
filled = float((found[0].ids >= 0).mean())
print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, "peak_extra_bytes": extra, "filled": filled}))
"""


def best_of(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """The quickest repetition, with the least memory and processor time of all; `seconds_of_all` is every one."""
    quickest = min(reports, key=lambda report: report["seconds"])
    peaks = [report["peak_extra_bytes"] for report in reports if report["peak_extra_bytes"] is not None]
    everyone = [report["seconds"] for report in reports]
    least = {"cpu_seconds": min(report["cpu_seconds"] for report in reports), "seconds_of_all": everyone}
    return quickest | {"peak_extra_bytes": min(peaks) if peaks else None} | least


def ratios(rows: dict[str, Any], base: str) -> dict[str, Any]:
    """How many times the seconds and the memory of ours each other contender takes."""
    ours = rows[base]
    return {
        name: {
            "seconds": row["seconds"] / ours["seconds"],
            "memory": row["peak_extra_bytes"] / ours["peak_extra_bytes"] if ours["peak_extra_bytes"] else None,
        }
        for name, row in rows.items()
        if name != base and "missing" not in row
    }


def end_to_end(peers: Path, size: int, threads: int, repeats: int, cases: tuple[str, ...]) -> dict[str, Any]:
    """All contenders on pairs of `size` queries and as many documents."""
    data = world(size, size)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pairs.npz")
        arrays = {"queries": data.queries, "documents": data.documents, "positives": data.positives}
        np.savez(file, k=K, margin=MARGIN, folder=folder, **arrays)
        started = {case: Peer(peers, PEER, file, case, threads) for case in cases}
        rows: dict[str, Any] = {case: {"missing": peer.missing} for case, peer in started.items() if peer.missing}
        running = {case: peer for case, peer in started.items() if not peer.missing}
        reports: dict[str, list[dict[str, Any]]] = {case: [] for case in running}
        for _ in range(repeats):
            for case, peer in running.items():
                reports[case].append(peer.repeat())
        versions = {}
        for case, peer in running.items():
            rows[case] = best_of(reports[case])
            versions = {name: value for name, value in peer.greeting.items() if name not in ("ready", "build_seconds")}
            peer.stop()
        found = {"size": size, "width": WIDTH, "k": K, "margin": MARGIN, "threads": threads, "repeats": repeats}
        result: dict[str, Any] = {**found, "versions": versions, "contenders": rows}
        if "ours" in running:
            vectors = np.concatenate([data.queries, data.documents])
            answers = {case: np.load(Path(folder, f"{case}.npy")) for case in running}
            others = [case for case in running if case != "ours"]
            result["equal"] = {case: compared(answers["ours"], answers[case], vectors, MARGIN) for case in others}
            result["times_of_ours"] = ratios(rows, "ours")
    return result


def taken_in_turn(calls: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Seconds and memory of each, best of several in turn, and the last answers."""
    answers: dict[str, Any] = {}
    reports: dict[str, list[dict[str, Any]]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            answers.pop(name, None)
            spent: list[float] = []

            def timed(name: str = name, call: Callable[[], Any] = call, spent: list[float] = spent) -> None:
                start, busy = time.perf_counter(), time.process_time()
                answers[name] = call()
                spent[:] = [time.perf_counter() - start, time.process_time() - busy]

            extra = peak_extra_bytes(timed)
            reports[name].append({"seconds": spent[0], "cpu_seconds": spent[1], "peak_extra_bytes": extra})
    return {name: best_of(found) for name, found in reports.items()}, answers


def alone(measure: Callable[..., dict[str, Any]], *given: Any, **settings: str) -> dict[str, Any]:
    """Measure in a process of its own, with some settings in its environment."""
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            return process.submit(measure, *given).result()
    finally:
        os.environ.clear()
        os.environ.update(before)


def against(kind: str, size: int, threads: int, repeats: int) -> dict[str, Any]:
    """Time and memory, each in a process of its own.

    glibc keeps freed blocks of up to 32 MB for the next call once it has seen such a block, so that resident memory
    depends on what ran before. Memory is measured with that switched off, which costs time.
    """
    found = alone(against_faiss, kind, size, threads, repeats, taken_in_turn)
    memory = alone(against_faiss, kind, size, threads, 1, taken_in_turn, MALLOC_MMAP_THRESHOLD_=str(1 << 20))
    for name, row in memory["contenders"].items():
        own = found["contenders"][name]
        own["peak_extra_bytes"] = row["peak_extra_bytes"]
        if "of_by_hand" in row:
            own["of_by_hand"]["memory_beyond_result"] = row["of_by_hand"]["memory_beyond_result"]
    return found


def by_hand(size: int, threads: int, repeats: int) -> dict[str, Any]:
    """The margin rule and the rank window, ours and written by hand."""
    set_threads(threads)
    faiss.omp_set_num_threads(threads)
    torch.set_num_threads(threads)
    data, small = world(size, size), world(1000, 1000, seed=1)
    calls: dict[str, Callable[[World], Any]] = {
        "margin, faiss": lambda given: margin_by_faiss(given, K, MARGIN),
        "margin, ours": lambda given: margin_by_ours(given, K, MARGIN),
        "window, faiss and lists": window_by_lists,
        "window, ours": window_by_ours,
    }
    for call in calls.values():
        call(small)
    rows, answers = taken_in_turn({name: lambda call=call: call(data) for name, call in calls.items()}, repeats)
    ours, theirs = answers["margin, ours"], answers["margin, faiss"]
    differ = int((ours != theirs).sum())
    inside = np.array([len(np.unique(row)) == TAKEN and (row >= 0).all() for row in answers["window, ours"]])
    pairs = (("margin, faiss", "margin, ours"), ("window, faiss and lists", "window, ours"))
    return {
        "size": size,
        "threads": threads,
        "repeats": repeats,
        "window": WINDOW,
        "taken": TAKEN,
        "contenders": rows,
        "times_of_ours": {name: ratios({name: rows[name], base: rows[base]}, base)[name] for name, base in pairs},
        "margin_slots": int(ours.size),
        "margin_slots_that_differ": differ,
        "window_rows_full": float(inside.mean()),
    }


def growth(n_queries: int, n_documents: int, threads: int) -> dict[str, Any]:
    """One call of `mine` in a process of its own, over files."""
    data = world(min(n_queries, n_documents), n_documents, seed=2)
    asked = np.resize(data.queries, (n_queries, WIDTH))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{name}.npy") for name in ("queries", "documents", "positives")]
        for path, array in zip(paths, (asked, data.documents), strict=False):
            np.save(path, array.astype(np.float16))
        np.save(paths[2], np.resize(data.positives, n_queries))
        command = [sys.executable, "-c", GROWTH, *map(str, paths), str(threads)]
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout)
    return {"queries": n_queries, "documents": n_documents, "file_bytes": 2 * n_documents * WIDTH, **found}


def main() -> None:
    """Measure and write results/mining.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", nargs="+", choices=PARTS)
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    part, parts = 50 if args.small else 1, args.only or PARTS
    target = args.out or RESULTS / "mining.json"
    kept = json.loads(target.read_text()) if target.exists() else {}
    result: dict[str, Any] = {name: kept[name] for name in PARTS if name in kept and name not in parts}
    loads = {name: load for name, load in kept.get("load", {}).items() if name in result}
    cases = [(size, kind) for size in args.sizes for kind in args.worlds]
    steps = {name: _steps(name, args.peers, part, cases) for name in parts}
    for name, measures in steps.items():
        old = kept.get("against", []) if name == "against" else []
        result[name] = [row for row in old if (row["size"] * part, row["world"]) not in cases]
        before = os.getloadavg()[0]
        for measure in measures:
            result[name].append(measure())
            print(json.dumps(result[name][-1]), flush=True)
            if name == "against":
                result[name].sort(key=lambda row: (row["size"], list(WORLDS).index(row["world"])))
            loads[name] = {"before": before, "after": os.getloadavg()[0]}
            packages = {"torch": torch.__version__, "faiss": version("faiss-cpu")}
            write(
                "mining",
                {**packages, "load": loads, **{name: result[name] for name in PARTS if name in result}},
                target,
            )


def _steps(name: str, peers: Path, part: int, cases: list[tuple[int, str]]) -> list[Callable[[], dict[str, Any]]]:
    """What a part measures, one after another; sizes are divided by `part`, and `cases` are those of "against"."""
    if name == "against":
        return [partial(against, kind, n // part, 1, SIZES[n]) for n, kind in cases]
    if name == "end_to_end":
        plan = ((20_000, 2, 3, CASES), (50_000, 2, 2, CASES), (20_000, 1, 2, CASES), (50_000, 1, 1, ("torch", "ours")))
        return [partial(end_to_end, peers, n // part, *rest) for n, *rest in plan]
    if name == "by_hand":
        return [partial(by_hand, 20_000 // part, threads, 2) for threads in (2, 1)]
    if name == "first":
        plan = [(loaded, judge) for loaded in ("torch", "nothing") for judge in ("none", "share:0.95", "auto")]
        return [partial(first_call, 20_000 // part, 4000 // part, *case) for case in plan]
    if name == "growth":
        sizes = ((10_000, 10_000), (10_000, 100_000), (10_000, 1_000_000), (1000, 100_000), (100_000, 100_000))
        return [partial(growth, queries // part, documents // part, 2) for queries, documents in sizes]
    return [partial(index_part, way, 200_000 // part, 5000 // part, 2) for way in WAYS]


if __name__ == "__main__":
    main()
