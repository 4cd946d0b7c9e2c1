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
from naysay.jobs._prepare import PARTS_ON_WORKERS, Ready
from naysay.jobs._sharded import Sharded
from naysay.mining.candidates import RANDOM_SOURCE, SEARCH, SLOTS, Candidates, Reason
from naysay.mining.pipeline import mine_block, take_negatives
from naysay.mining.problem import Problem
from naysay.mining.take import slots_of, tally_of

Ids = NDArray[np.int64]
MAX_ROWS, _SLOTS = 2000, 1 << 21
_LEFT = ("ids", "scores")  # of all candidates that are left, where items have a limit


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
    n, problem = ready.problem.queries.n, ready.problem
    # A part that is short is an error, but only once all of its anchors are counted.
    raises = problem.options.on_short == "raise"
    options = replace(problem.options, on_short="pad") if raises else problem.options
    sampled, done = sampled_rows(n, problem.first_depth), finished(folder)
    at_once = PARTS_ON_WORKERS if isinstance(problem.searcher, Sharded) else 1

    def mined(ends: tuple[int, int]) -> Part:
        (start, stop), so_far = ends, 0.0

        def searched(anchors: float) -> None:
            nonlocal so_far
            so_far += anchors
            on_progress(anchors)

        here = sampled[np.searchsorted(sampled, start) : np.searchsorted(sampled, stop)] - start
        told = None if problem.recall is not None else searched
        part = _part(replace(ready, problem=replace(problem, options=options, on_progress=told)), start, stop, here)
        on_progress(stop - start - so_far)
        return part

    on_progress(sum(stop - start for start, stop in done))
    for part in _ahead(mined, gaps(done, n, ready.size), at_once):
        if raises and part.totals["tally"]["short"]:
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
    problem, anchors = ready.problem, np.arange(start, stop)
    blocks = problem.blocks(anchors, problem.first_depth)
    lists = Candidates.stacked([mine_block(problem, ready.judge, block) for block in blocks])
    chosen, counts = take_negatives(without_cap(problem), ready.judge, lists, anchors)
    slots = slots_of(chosen, problem.width if problem.counts is not None else int(counts.max(initial=0)))
    arrays = {"ids": slots["ids"], "scores": slots["scores"], "counts": counts}
    if problem.options.max_per_item is not None:  # all that are left: `together` chooses among all anchors
        left = replace(lists, kept_by=np.where(lists.kept, np.int8(0), np.int8(-1)))
        arrays |= {f"left {name}": part for name, part in slots_of(left, left.ids.shape[1]).items() if name in _LEFT}
    arrays["own_text"] = chosen.dropped.get(Reason.OWN_TEXT, np.zeros(len(anchors), np.int64)) > 0
    arrays |= {f"sample {name}": values for name, values in packed(chosen, sampled).items()}
    totals = {
        "tally": tally_of(chosen, counts, searched_depth(problem)),
        "dropped": {str(reason): int(each.sum()) for reason, each in chosen.dropped.items()},
        "above": above(slots["scores"][slots["ids"] >= 0], ready.background),
    }
    return Part(start, stop, arrays, totals)


def without_cap(problem: Problem) -> Problem:
    """The same without what needs all anchors."""
    return replace(problem, options=replace(problem.options, max_per_item=None))


def searched_depth(problem: Problem) -> int | None:
    """How deep anchors were searched, None where short ones were searched to the end."""
    return None if problem.may_deepen else problem.first_depth


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


def packed(candidates: Candidates, rows: Ids) -> dict[str, NDArray[Any]]:
    """The candidates of some rows as arrays."""
    found = {name: getattr(candidates, name)[rows] for name in (*SLOTS, "positive_scores")}
    none = np.zeros(len(candidates), np.int64)
    return found | {f"outside {reason}": candidates.outside.get(reason, none)[rows] for reason in Reason}


def unpacked(problem: Problem, parts: Sequence[dict[str, NDArray[Any]]]) -> Candidates:
    """What was packed, as one; rows have as many slots as the widest part."""
    width = max((part["ids"].shape[1] for part in parts), default=0)
    found: dict[str, Any] = {"positive_scores": np.concatenate([part["positive_scores"] for part in parts])}
    for name, (_, empty) in SLOTS.items():
        found[name] = np.concatenate([widened(part[name], width, empty) for part in parts])
    outside = {reason: np.concatenate([part[f"outside {reason}"] for part in parts]) for reason in Reason}
    sources = (SEARCH, *problem.sources)
    if (found["source"] == len(sources)).any():
        sources = (*sources, RANDOM_SOURCE)
    return Candidates(
        **found,
        source_names=sources,
        kept_names=(problem.options.select, "relaxed", "random"),
        outside={reason: counts for reason, counts in outside.items() if counts.any()},
    )


def widened(values: NDArray[Any], width: int, empty: float) -> NDArray[Any]:
    """The rows with `empty` added at their ends, up to `width` columns."""
    wide = np.full((len(values), width), empty, values.dtype)
    wide[:, : values.shape[1]] = values
    return wide
