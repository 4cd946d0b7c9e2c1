"""Mining: against sentence-transformers end to end, against faiss by hand, how it grows, exact search, and jobs.

mining, end_to_end   pairs of texts and a stand-in model of fixed vectors in, a Dataset of (anchor, positive, 10
                     negatives) out, `relative_margin=0.05`: sentence-transformers with torch and with faiss, and ours,
                     the same call in the same environment, each in its own process. Rows are compared slot by slot.
mining, by_hand      vectors in, ids out: the margin rule with faiss and NumPy, and FlagEmbedding's rank window
mining, against      no judge, "95 % of the positive" and "auto" against the margin rule by hand, in three worlds
mining, first        the first call of a process against the second, with torch loaded before and not, by judge
mining, growth       `mine` with its default judge over float16 files, each size in its own process
search               exact search against faiss with about 5 known pairs of each query excluded, and its memory
jobs                 the memory of `naysay mine` as the corpus grows, above that of a tiny job
"""

from __future__ import annotations

import json
import os
import random  # noqa: TID251  # what the rule that is compared with draws by
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import naysay as ns
from benchmarks.speed.harness import Options, Peer, Row, alternate, best_of, child, command
from benchmarks.speed.worlds import DIM, Corpus, clustered, labelled_by_chance, spread_out

K, MARGIN = 10, 0.05
WINDOW, TAKEN, BATCH = (10, 210), 15, 64  # FlagEmbedding's own
DEPTH, EXCLUDED, BUDGET = 100, 5, 500_000_000  # of the exact search
BLOCK = 1 << 14  # documents that a file is written by
LEAST = (20, 20_000)  # anchors and documents of the job that the others are compared with
WORLDS: dict[str, Callable[..., Corpus]] = {
    "clustered": clustered,
    "spread out": spread_out,
    "labelled by chance": labelled_by_chance,
}
PLAIN, AUTO, BY_HAND = "mine, no judge", "mine, auto", "faiss by hand"
JUDGES = {PLAIN: "none", "mine, share 0.95": "share:0.95", AUTO: "auto"}
PEER, CASES = "sentence_transformers_mining", ("torch", "faiss", "ours")
Rows = list[list[int]]
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
GROWTH = """
import json, sys
import numpy as np
import naysay as ns
from benchmarks.speed.harness import timed
queries, documents, positives = sys.argv[1], sys.argv[2], np.load(sys.argv[3])
some = np.load(queries)[:1000]
ns.mine(some, np.concatenate([some] * 4), np.arange(len(some)), 10)  # compiled, and torch in memory
row, mined = timed(lambda: ns.mine(queries, documents, positives, 10), memory=True)
print(json.dumps({**row, "filled": float((mined.ids >= 0).mean())}))
"""
SEARCH = """
import json, sys
import numpy as np
from benchmarks.speed.harness import timed
from naysay.search import search
queries = np.load(sys.argv[2])
search(queries[:64], queries[:1000], 100, metric="dot")  # compiled
row, _ = timed(lambda: search(queries, sys.argv[1], 100, metric="dot", budget=int(sys.argv[3])), memory=True)
print(json.dumps({"growth_mb": row["peak_extra_bytes"] / 1e6}))
"""


def margin_by_faiss(data: Corpus, k: int, margin: float) -> NDArray[np.int64]:
    """(n, k) the margin rule by hand: faiss's exact search, top 10 k + 1, and NumPy; -1 where short."""
    index = faiss.IndexFlatIP(DIM)
    index.add(data.documents)
    scores, ids = index.search(data.queries, 10 * k + 1)
    own = np.einsum("nd,nd->n", data.queries, data.documents[data.positives])
    away = (ids == data.positives[:, None]) | (scores > (own - np.abs(own) * margin)[:, None])
    order = np.argsort(away, axis=1, kind="stable")[:, :k]
    return np.where(np.take_along_axis(away, order, 1), -1, np.take_along_axis(ids, order, 1))


def window_by_lists(data: Corpus) -> Rows:
    """FlagEmbedding's rule, from its description: an exact search in batches of 64, answers as lists, a sample of each.

    Its miner is a script outside its package, so it cannot be installed and called.
    """
    index = faiss.IndexFlatIP(DIM)
    index.add(data.documents)
    listed: Rows = []
    for start in range(0, len(data.queries), BATCH):
        listed.extend(index.search(data.queries[start : start + BATCH], WINDOW[1])[1].tolist())
    chance = random.Random(0)
    taken = []
    for row, own in zip(listed, data.positives.tolist(), strict=True):
        left = [i for i in row[WINDOW[0] : WINDOW[1]] if i not in (-1, own)]
        taken.append(chance.sample(left, TAKEN) if len(left) > TAKEN else left)
    return taken


def window_by_ours(data: Corpus) -> NDArray[np.int64]:
    """(n, 15) the same window by `mine`; ranks count from 1, after the positive is out."""
    found = ns.mine(
        data.queries,
        data.documents,
        data.positives,
        TAKEN,
        judge=None,
        rank_range=(WINDOW[0] + 1, WINDOW[1]),
        select="random",
    )
    return found.ids


def compared(ours: NDArray[np.int64], theirs: NDArray[np.int64], vectors: NDArray[np.float32], margin: float) -> Row:
    """Rows (anchor, positive, negatives) of two miners side by side, in numbers of texts; one positive an anchor.

    Why a row differs, by scores in float64; float32 sums in another order cannot separate scores within 1e-6:

    tie                each slot that differs has two scores within 1e-6
    at the threshold   a candidate that only one of them has is within 1e-6 of the threshold
    other              neither
    """
    common, one, other = np.intersect1d(ours[:, 0], theirs[:, 0], return_indices=True)
    a, b = ours[one], theirs[other]
    rows = np.flatnonzero((a[:, 2:] != b[:, 2:]).any(axis=1))
    why = {"tie": 0, "at the threshold": 0, "other": 0}
    for left, right in zip(a[rows], b[rows], strict=True):
        asked = vectors[left[0]].astype(np.float64)
        scores = [vectors[side[2:]] @ asked for side in (left, right)]
        own = float(vectors[left[1]] @ asked)
        only = np.setxor1d(left[2:], right[2:])
        near = np.abs(vectors[only] @ asked - (own - abs(own) * margin)) < 1e-6
        tie = bool((np.abs(scores[0] - scores[1])[left[2:] != right[2:]] < 1e-6).all())
        why["tie" if tie else "at the threshold" if near.any() else "other"] += 1
    return {
        "rows_of_ours": len(ours),
        "rows_of_theirs": len(theirs),
        "rows_of_both": len(common),
        "positives_differ": int((a[:, 1] != b[:, 1]).sum()),
        "rows_that_differ": len(rows),
        "why": why,
    }


def ratios(rows: Row, base: str) -> Row:
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


def end_to_end(options: Options) -> list[Row]:
    """All contenders on pairs of texts, by size and threads."""
    plan = ((20_000, 2, 3, CASES), (50_000, 2, 2, CASES), (20_000, 1, 2, CASES), (50_000, 1, 1, ("torch", "ours")))
    found = []
    for full, threads, repeats, cases in plan[: options.size(4, 1)]:
        size = options.size(full, 400)
        data = clustered(size, size)
        vectors = {"queries": data.queries, "documents": data.documents, "positives": data.positives}
        by_case = {
            case: Peer(options.use_threads(threads), PEER, {**vectors, "k": K, "margin": MARGIN}, case)
            for case in cases
        }
        running = {case: peer for case, peer in by_case.items() if not peer.missing}
        reports: dict[str, list[Row]] = {case: [] for case in running}
        for _ in range(1 if options.quick else repeats):
            for case, peer in running.items():
                reports[case].append(peer.repeat())
        rows: Row = {case: {"missing": peer.missing} for case, peer in by_case.items() if peer.missing}
        rows |= {case: best_of(reports[case]) for case in running}
        shape = {"size": size, "width": DIM, "k": K, "margin": MARGIN, "threads": threads, "repeats": repeats}
        result: Row = {**shape, "contenders": rows}
        if "ours" in running:
            answers = {case: np.load(Path(peer.folder.name, f"{case}.npy")) for case, peer in running.items()}
            both = np.concatenate([data.queries, data.documents])
            others = [case for case in running if case != "ours"]
            result["equal"] = {case: compared(answers["ours"], answers[case], both, MARGIN) for case in others}
            result["times_of_ours"] = ratios(rows, "ours")
            result["versions"] = running["ours"].greeting
        for peer in running.values():
            peer.stop()
        found.append(result)
    return found


def by_hand(options: Options) -> list[Row]:
    """The margin rule and the rank window, ours and written by hand, with two threads and one."""
    found = []
    for threads in (2, 1):
        options = options.use_threads(threads)
        faiss.omp_set_num_threads(threads)
        size = options.size(20_000, 400)
        data = clustered(size, size)

        def margin_by_ours(data: Corpus = data) -> NDArray[np.int64]:
            return ns.mine(data.queries, data.documents, data.positives, K, judge="share:0.95").ids

        calls = {
            "margin, faiss": partial(margin_by_faiss, data, K, MARGIN),
            "margin, ours": margin_by_ours,
            "window, faiss and lists": partial(window_by_lists, data),
            "window, ours": partial(window_by_ours, data),
        }
        rows, answers = alternate(calls, min(2, options.repeats), memory=True, warm=False)
        pairs = (("margin, faiss", "margin, ours"), ("window, faiss and lists", "window, ours"))
        ours, theirs = answers["margin, ours"], answers["margin, faiss"]
        found.append(
            {
                "size": size,
                "threads": threads,
                "window": WINDOW,
                "taken": TAKEN,
                "contenders": rows,
                "times_of_ours": {
                    name: ratios({name: rows[name], base: rows[base]}, base)[name] for name, base in pairs
                },
                "margin_slots": int(ours.size),
                "margin_slots_that_differ": int((ours != theirs).sum()),
            }
        )
    return found


def result_bytes(mined: Any) -> int:
    """The bytes of all arrays that a result holds, each counted once."""
    seen: dict[int, int] = {}
    for part in (mined, mined.candidates):
        for entry in fields(part):
            value = getattr(part, entry.name)
            if isinstance(value, np.ndarray):
                seen[value.__array_interface__["data"][0]] = value.nbytes
    return sum(seen.values())


def against_faiss(kind: str, size: int, repeats: int) -> Row:
    """All judges on `size` queries and as many documents, against the margin rule by hand; one thread."""
    ns.set_threads(1)
    faiss.omp_set_num_threads(1)
    data, small = WORLDS[kind](size, size), WORLDS[kind](300, 300, seed=1)

    def mined(judge: str, given: Corpus) -> Any:
        return ns.mine(given.queries, given.documents, given.positives, K, judge=judge)

    calls: dict[str, Callable[[Corpus], Any]] = {BY_HAND: lambda given: margin_by_faiss(given, K, MARGIN)}
    calls |= {name: partial(mined, judge) for name, judge in JUDGES.items()}
    for call in calls.values():
        call(small)  # compiled
    rows, answers = alternate(
        {name: partial(call, data) for name, call in calls.items()}, repeats, memory=True, warm=False
    )
    hand = rows[BY_HAND]
    for name in JUDGES:
        row, held, peak = rows[name], result_bytes(answers[name]), hand["peak_extra_bytes"]
        row["result_bytes"] = held
        row["of_by_hand"] = {
            "cpu_seconds": row["cpu_seconds"] / hand["cpu_seconds"],
            "memory_beyond_result": max(0, row["peak_extra_bytes"] - held) / peak if peak else None,
        }
    return {
        "world": kind,
        "size": size,
        "threads": 1,
        "contenders": rows,
        "auto_adds": rows[AUTO]["cpu_seconds"] / rows[PLAIN]["cpu_seconds"] - 1,
        "auto_judges_by": type(answers[AUTO].judge).__name__,
        "slots": size * K,
        "slots_that_differ": int((answers["mine, share 0.95"].ids != answers[BY_HAND]).sum()),
    }


def against(options: Options) -> list[Row]:
    """Each size and world in a process of its own.

    glibc keeps freed blocks of up to 32 MB for the next call once it has seen such a block, so that resident memory
    depends on what ran before. Memory is measured with that switched off, which costs time.
    """
    found = []
    for full, repeats in ((20_000, 3), (50_000, 2), (100_000, 1))[: options.size(3, 1)]:
        for kind in WORLDS:
            size = options.size(full, 400)
            row = in_own_process(against_faiss, kind, size, 1 if options.quick else repeats)
            memory = in_own_process(against_faiss, kind, size, 1, MALLOC_MMAP_THRESHOLD_=str(1 << 20))
            for name, own in row["contenders"].items():
                other = memory["contenders"][name]
                own["peak_extra_bytes"] = other["peak_extra_bytes"]
                if "of_by_hand" in own:
                    own["of_by_hand"]["memory_beyond_result"] = other["of_by_hand"]["memory_beyond_result"]
            found.append(row)
    return found


def in_own_process(measure: Callable[..., Row], *given: Any, **settings: str) -> Row:
    """Measure in a new process, with some settings in its environment."""
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            return process.submit(measure, *given).result()
    finally:
        os.environ.clear()
        os.environ.update(before)


def first(options: Options) -> list[Row]:
    """Processor seconds of three calls in a new process; compiled loops are on disk, where others ran them."""
    found = []
    for loaded in ("torch", "nothing"):
        for judge in ("none", "share:0.95", "auto"):
            sizes = options.size(20_000, 400), options.size(4000, 200)
            seconds = json.loads(child(["-c", FIRST, *map(str, sizes), loaded, judge]).stdout)
            row = {"documents": sizes[0], "queries": sizes[1], "loaded": loaded, "judge": judge}
            found.append({**row, "cpu_seconds": seconds, "above": seconds[0] - min(seconds[1:])})
    return found


def growth(options: Options) -> list[Row]:
    """One call of `mine` in a process of its own, over files."""
    sizes = ((10_000, 10_000), (10_000, 100_000), (10_000, 1_000_000), (1000, 100_000), (100_000, 100_000))
    found = []
    for n_queries, n_documents in sizes[: options.size(5, 1)]:
        n_queries, n_documents = options.size(n_queries, 1000), options.size(n_documents, 1000)
        data = clustered(min(n_queries, n_documents), n_documents, seed=2)
        arrays = np.resize(data.queries, (n_queries, DIM)).astype(np.float16), data.documents.astype(np.float16)
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, f"{name}.npy") for name in ("queries", "documents", "positives")]
            for path, array in zip(paths, (*arrays, np.resize(data.positives, n_queries)), strict=True):
                np.save(path, array)
            row = json.loads(child(["-c", GROWTH, *map(str, paths)]).stdout)
        found.append({"queries": n_queries, "documents": n_documents, "file_bytes": 2 * n_documents * DIM, **row})
    return found


# ---- exact search ----------------------------------------------------------------------------------------------------


def search_by_faiss(queries: Any, corpus: Any, known: ns.Positives) -> Any:
    """The ids of faiss: fetch more, by the maximum number of known pairs, then filter all rows at once."""
    index = faiss.IndexFlatIP(DIM)
    index.add(corpus)
    _, ids = index.search(queries, DEPTH + int(known.count().max(initial=0)))
    keys, pairs = ids + np.arange(len(ids))[:, None] * len(corpus), known.pairs()
    out = np.isin(keys, pairs[0].astype(np.int64) * len(corpus) + pairs[1])
    order = np.argsort(out, axis=1, kind="stable")
    return np.take_along_axis(ids, order, 1)[:, :DEPTH]


def search_speed(options: Options) -> list[Row]:
    """Ours and faiss on clustered vectors, for few and for many queries."""
    found = []
    for full, repeats in ((2000, 3), (20_000, 2)):
        n_queries, n_corpus = options.size(full, 100), options.size(200_000, 2000)
        data = clustered(n_queries, n_corpus)
        anchors = np.repeat(np.arange(n_queries), EXCLUDED)
        others = np.random.default_rng(0).integers(0, n_corpus, len(anchors))
        known = ns.Positives.from_pairs(anchors, others, n_queries, n_corpus)
        exclude: Row = {"metric": "dot", "exclude": known}
        calls = {
            "auto": lambda data=data, how=exclude: ns.search.search(data.queries, data.documents, DEPTH, **how).ids,
            "faiss": lambda data=data, known=known: search_by_faiss(data.queries, data.documents, known),
        }
        best, answers = alternate(calls, min(repeats, options.repeats), warm=False)
        shared = [len(np.intersect1d(a, b)) / DEPTH for a, b in zip(answers["auto"], answers["faiss"], strict=True)]
        shape = {"queries": n_queries, "corpus": n_corpus, "width": DIM, "depth": DEPTH, "excluded_each": EXCLUDED}
        ratio = {"auto": best["auto"]["cpu_seconds"] / best["faiss"]["cpu_seconds"]}
        found.append({**shape, "best": best, "cpu_of_faiss": ratio, "shared_with_faiss": float(np.mean(shared))})
    return found


def search_memory(options: Options) -> list[Row]:
    """The growth of the peak memory in a new process, by the size of a float16 corpus on disk."""
    found = []
    for full in (100_000, 1_000_000):
        n_corpus, n_queries = options.size(full, 2000), options.size(4000, 1000)
        with tempfile.TemporaryDirectory() as folder:
            corpus, queries = Path(folder, "corpus.npy"), Path(folder, "queries.npy")
            vectors(corpus, n_corpus, 1)
            np.save(queries, np.random.default_rng(1).standard_normal((n_queries, DIM), np.float32))
            row = json.loads(child(["-c", SEARCH, str(corpus), str(queries), str(BUDGET)]).stdout)
        found.append({"queries": n_queries, "corpus": n_corpus, "budget_mb": BUDGET / 1e6, **row})
    return found


# ---- jobs ------------------------------------------------------------------------------------------------------------


def vectors(path: Path, rows: int, seed: int) -> None:
    """Random unit vectors in float16, a block at a time."""
    rng = np.random.default_rng(seed)
    mapped = np.lib.format.open_memmap(path, "w+", np.float16, (rows, DIM))
    for start in range(0, rows, BLOCK):
        block = rng.standard_normal((min(BLOCK, rows - start), DIM), np.float32)
        mapped[start : start + BLOCK] = block / np.linalg.norm(block, axis=1, keepdims=True)
    mapped.flush()


def files(folder: Path, queries: int, documents: int) -> None:
    """Pairs, documents and their vectors."""
    vectors(folder / "c.npy", documents, 2)
    rng = np.random.default_rng(3)
    positives = rng.integers(0, documents, queries)
    near = np.load(folder / "c.npy", mmap_mode="r")[positives] + rng.normal(0, DIM**-0.5, (queries, DIM))
    np.save(folder / "q.npy", near.astype(np.float16))
    pairs = {"anchor": [f"question {row}" for row in range(queries)], "positive": [f"d{row}" for row in positives]}
    pq.write_table(pa.table(pairs), folder / "pairs.parquet")
    with pq.ParquetWriter(folder / "docs.parquet", pa.schema([("id", pa.string()), ("text", pa.string())])) as file:
        for start in range(0, documents, BLOCK):
            rows = range(start, min(start + BLOCK, documents))
            block = {"id": [f"d{row}" for row in rows], "text": [f"document {row} of some length" for row in rows]}
            file.write_table(pa.table(block))


def job(folder: Path, *more: str) -> Row:
    """Run `naysay mine -k 8` on the files of a folder; its seconds and its peak memory."""
    arguments = [sys.executable, "-m", "naysay", "mine", "pairs.parquet", "--corpus", "docs.parquet"]
    arguments += ["--query-vectors", "q.npy", "--corpus-vectors", "c.npy", "-k", "8", "-o", "out.parquet", *more]
    start = time.perf_counter()
    process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        message = f"the job ended with {status}"
        raise SystemExit(message)
    spent = {"seconds": time.perf_counter() - start, "processor_seconds": used.ru_utime + used.ru_stime}
    return {**spent, "peak_bytes": used.ru_maxrss * 1024}


def jobs(options: Options) -> list[Row]:
    """The peak memory of a job by the number of documents, with a budget of 500 MB."""
    rows: list[Row] = []
    sizes = ((2000, 100_000), (2000, 1_000_000))
    for queries, documents in [LEAST, *sizes[: options.size(2, 1)]]:
        queries, documents = options.size(queries, 20), options.size(documents, 500)
        with tempfile.TemporaryDirectory() as folder:
            # Elsewhere: a process begins with the highest size of the one that started it.
            maker = get_context("spawn").Process(target=files, args=(Path(folder), queries, documents))
            maker.start()
            maker.join()
            rows.append({"documents": documents, "queries": queries, **job(Path(folder), "--budget", "500MB")})
        rows[-1]["above_the_least_bytes"] = rows[-1]["peak_bytes"] - rows[0]["peak_bytes"]
    return rows


RESULTS = {
    "mining": {
        "faiss": faiss.__version__,
        "end_to_end": end_to_end,
        "by_hand": by_hand,
        "against": against,
        "first": first,
        "growth": growth,
    },
    "search": {"faiss": faiss.__version__, "speed": search_speed, "memory": search_memory},
    "jobs": {"width": DIM, "k": 8, "budget": "500MB", "rows": jobs},
}

if __name__ == "__main__":
    command(__doc__, RESULTS)
