"""Parts: some anchors of a job are mined at a time, and kept in a file with a checksum.

The candidates of a few anchors, evenly spaced, are kept too: for the report, and for estimates.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.jobs._folder import PART, JobFolder
from naysay.jobs._prepare import Ready, at_once
from naysay.mining._pipeline import mine_rows
from naysay.mining._task import SEARCH, Task
from naysay.mining.backfill import tally_of
from naysay.mining.candidates import EXCLUDED, Candidates
from naysay.mining.explain import slots_of
from naysay.mining.judge import SUSPICIOUS
from naysay.mining.select import NOT_SELECTED

Ids = NDArray[np.int64]
MAX_ROWS, _SLOTS = 2000, 1 << 21
_EMPTY = {"ids": -1, "scores": -np.inf, "rank": 0, "source": -1, "suspicion": 0, "why": 0, "kept_by": -1}
# All that can happen to a candidate of a job, in the order of the stages: a number means the same in every part.
_REASONS = ("repeated", *EXCLUDED, "too near", "too far", "too easy", SUSPICIOUS, NOT_SELECTED, "short anchor")
_KEPT = ("relaxed", "random")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Anchors from start to stop."""

    start: int
    stop: int
    arrays: Mapping[str, NDArray[Any]]
    totals: Mapping[str, Any]  # numbers that add up over parts


def mine_parts(folder: JobFolder, ready: Ready, on_progress: Callable[[float], None]) -> None:
    """Mine what is missing, `ready.size` anchors at a time.

    `on_progress` gets how many more anchors are done, as a fraction: a part may take as long as the whole.
    """
    n, task = ready.task.queries.n, ready.task
    # A part that is short is an error, but only once all of its anchors are counted.
    options = replace(task.options, on_short="pad") if task.options.on_short == "raise" else task.options
    sampled, done = sampled_rows(n, task.depth), finished(folder)

    def mined(ends: tuple[int, int]) -> Part:
        (start, stop), so_far = ends, 0.0

        def searched(anchors: float) -> None:
            nonlocal so_far
            so_far += anchors
            on_progress(anchors)

        here = sampled[np.searchsorted(sampled, start) : np.searchsorted(sampled, stop)] - start
        own = replace(task, options=options, on_progress=searched)
        part = _part(replace(ready, task=own), start, stop, here)
        on_progress(stop - start - so_far)
        return part

    on_progress(sum(stop - start for start, stop in done))
    for part in _ahead(mined, gaps(done, n, ready.size), at_once(task)):
        if task.options.on_short == "raise" and part.totals["tally"]["short"]:
            _raise_short(folder, part)
        write_part(folder, part)


def _ahead(mined: Callable[[tuple[int, int]], Part], ends: list[tuple[int, int]], count: int) -> Iterator[Part]:
    """The parts in order, `count` of them at a time, each in a thread if there are several."""
    if count == 1:
        yield from map(mined, ends)
        return
    with ThreadPoolExecutor(count) as threads:
        waiting = deque[Future[Part]]()
        for both in ends:
            waiting.append(threads.submit(mined, both))
            if len(waiting) == count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _part(ready: Ready, start: int, stop: int, sampled: Ids) -> Part:
    """Mine the anchors from start to stop, and keep the candidates of those that are sampled."""
    task = ready.task
    rows, everyone = task.some(np.arange(start, stop), ready.known_scores), len(sampled) == stop - start
    mined = mine_rows(task, rows, ready.threshold, list_all=everyone)
    shown, places = mined.candidates, sampled
    if not mined.listed_all and len(sampled):
        some = task.some(start + sampled, ready.known_scores)
        shown = mine_rows(replace(task, on_progress=None), some, ready.threshold, list_all=True).candidates
        places = np.arange(len(sampled))
    slots = slots_of(mined.candidates, task.width if task.counts is not None else int(mined.counts.max(initial=0)))
    arrays = {"ids": slots["ids"], "scores": slots["scores"], "counts": mined.counts}
    arrays |= {f"sample {name}": values for name, values in packed(task, shown, places).items()}
    totals = {
        "tally": tally_of(mined.candidates, mined.counts, task.depth),
        "dropped": {reason: int(counts.sum()) for reason, counts in mined.candidates.dropped.items()},
        "above": above(slots["scores"][slots["ids"] >= 0], ready.background),
    }
    return Part(start, stop, arrays, totals)


def above(scores: NDArray[np.float32], background: NDArray[np.float32]) -> int:
    """How many (negative, random pair) there are in which the negative scores higher; `background` is sorted."""
    return int(np.searchsorted(background, scores, side="left").sum())


def _raise_short(folder: JobFolder, part: Part) -> NoReturn:
    """Raise the error for anchors that are short, as --on-short raise asks; the parts before are kept."""
    folder.stop()
    counts, negatives = part.arrays["counts"], np.count_nonzero(part.arrays["ids"] >= 0, axis=1)
    short = np.flatnonzero(negatives < counts)
    first = short[0]
    got = f"{negatives[first]} of {counts[first]} for anchor {part.start + first} ({len(short)} such in its part)"
    advice = "Run again with another --on-short, which continues from here; or with a smaller -k or a larger --depth."
    raise_invalid("--on-short", "other than 'raise' unless each anchor has its k negatives", got, advice)


def write_part(folder: JobFolder, part: Part) -> None:
    """One file: a header in JSON, and the bytes of the arrays."""
    stored = {name: np.ascontiguousarray(array) for name, array in part.arrays.items()}
    shapes = {name: [array.dtype.str, list(array.shape)] for name, array in stored.items()}
    header = json.dumps({"start": part.start, "stop": part.stop, "arrays": shapes, "totals": dict(part.totals)})
    with folder.file(f"{PART}{part.start:012d}-{part.stop:012d}") as stream:
        stream.write(header.encode() + b"\n")
        for array in stored.values():
            stream.write(array.data)


def read_part(folder: JobFolder, name: str) -> Part:
    """Read what `write_part` wrote; raise if it is damaged."""
    line, _, content = folder.read(name).partition(b"\n")
    header = json.loads(line)
    arrays, place = {}, 0
    for name, (kind, shape) in header["arrays"].items():
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(content, np.dtype(kind), count, place).reshape(shape)
        place += arrays[name].nbytes
    return Part(header["start"], header["stop"], arrays, header["totals"])


def finished(folder: JobFolder) -> list[tuple[int, int]]:
    """(start, stop) of the parts that are there, in order."""
    names = (name.removeprefix(PART).split("-") for name in sorted(folder.files) if name.startswith(PART))
    return [(int(start), int(stop)) for start, stop in names]


def gaps(done: list[tuple[int, int]], n: int, size: int) -> list[tuple[int, int]]:
    """(start, stop) of what is missing to n anchors, at most `size` of them at a time."""
    edges = [0, *(edge for start, stop in done for edge in (start, stop)), n]
    return [
        (start, min(start + size, last))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        for start in range(first, last, size)
    ]


def parts(folder: JobFolder) -> Iterator[Part]:
    """All parts in order, one in memory at a time."""
    return (read_part(folder, name) for name in sorted(folder.files) if name.startswith(PART))


def sampled_rows(n: int, width: int) -> Ids:
    """At most 2,000 of n anchors at even distances, fewer where they have very many candidates."""
    count = min(n, MAX_ROWS, max(100, _SLOTS // max(1, width)))
    return np.unique(np.linspace(0, max(0, n - 1), count).astype(np.int64)) if n else np.empty(0, np.int64)


def packed(task: Task, candidates: Candidates, rows: Ids) -> dict[str, NDArray[Any]]:
    """The candidates of some rows as arrays, with numbers for names that hold for all parts."""
    found = {name: getattr(candidates, name)[rows] for name in (*_EMPTY, "positive_scores")}
    reasons = np.array([0, *(_REASONS.index(reason) + 1 for reason in candidates.reasons)], np.int8)
    sources, kept = _names(task)
    found["why"] = reasons[found["why"]]
    for name, own, every in (("source", candidates.source_names, sources), ("kept_by", candidates.kept_names, kept)):
        codes = np.array([*map(every.index, own), -1], np.int8)
        found[name] = codes[found[name]]
    for reason in (*EXCLUDED, SUSPICIOUS):
        counts = candidates.outside.get(reason)
        found[f"outside {reason}"] = np.zeros(len(rows), np.int64) if counts is None else counts[rows]
    return found


def unpacked(task: Task, parts: Sequence[dict[str, NDArray[Any]]]) -> Candidates:
    """What was packed, as one; rows have as many slots as the widest part."""
    width = max((part["ids"].shape[1] for part in parts), default=0)
    found: dict[str, Any] = {}
    for name in (*_EMPTY, "positive_scores"):
        columns = [part[name] for part in parts]
        if name in _EMPTY:
            columns = [widened(column, width, _EMPTY[name]) for column in columns]
        found[name] = np.concatenate(columns)
    counts = {
        reason: np.concatenate([part[f"outside {reason}"] for part in parts]) for reason in (*EXCLUDED, SUSPICIOUS)
    }
    sources, kept = _names(task)
    if not (found["source"] == len(sources) - 1).any():
        sources = sources[:-1]
    return Candidates(
        **found,
        source_names=sources,
        kept_names=kept,
        reasons=_REASONS,
        outside={reason: given for reason, given in counts.items() if given.any()},
    )


def _names(task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of sources, and of rules that keep, in a job."""
    select = task.options.select
    return (SEARCH, *task.lists, "random"), (select, *(name for name in _KEPT if name != select))


def widened(values: NDArray[Any], width: int, empty: float) -> NDArray[Any]:
    """The rows with `empty` added at their ends, up to `width` columns."""
    wide = np.full((len(values), width), empty, values.dtype)
    wide[:, : values.shape[1]] = values
    return wide
