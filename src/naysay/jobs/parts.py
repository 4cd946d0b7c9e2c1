"""Parts: some anchors of a job are mined at a time, and kept in a file. `negatives` puts all parts together.

With `max_per_item` the negatives of an anchor depend on the others. A part then keeps the judged candidates of all of
its anchors, and the negatives are taken once all parts are there.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.jobs.folder import PART, JobFolder
from naysay.jobs.prepare import Ready
from naysay.mining.candidates import SLOTS, Candidates, Mask, Reason
from naysay.mining.pipeline import mine_blocks, take_negatives
from naysay.mining.problem import Problem
from naysay.mining.take import added, slots_of, tally_of, too_frequent

Ids = NDArray[np.int64]
SAMPLED_ANCHORS = 2000  # whose candidates are kept for the report
_SAMPLED_SLOTS = 1 << 21  # fewer anchors are sampled where their lists are very long
_LEAST_SAMPLED = 100


# ---- mining ---------------------------------------------------------------------------------------------------------


def mine_parts(folder: JobFolder, ready: Ready, on_progress: Callable[[float], None], *, at_once: int) -> None:
    """Mine the anchors that are missing, a part at a time; with two at once, workers search for one meanwhile.

    `on_progress` gets the number of further anchors done, which need not be whole.
    """
    n_anchors = ready.problem.queries.n
    options = ready.problem.options
    parts_hold_negatives = options.max_per_item is None
    done = finished(folder)
    on_progress(sum(stop - start for start, stop in done))

    def mine_part(limits: tuple[int, int]) -> tuple[int, int, dict[str, NDArray[Any]]]:
        n_searched = 0.0

        def searched(anchors: float) -> None:
            nonlocal n_searched
            n_searched += anchors
            on_progress(anchors)

        start, stop = limits
        searches_exactly = options.approximate is None  # an index reports no progress
        problem = replace(ready.problem, on_progress=searched if searches_exactly else None)
        part_ready, anchors = replace(ready, problem=problem), np.arange(start, stop)
        lists = mine_blocks(problem, ready.judge, anchors)
        arrays = _negatives_of(part_ready, anchors, lists) if parts_hold_negatives else packed(lists)
        on_progress(stop - start - n_searched)
        return start, stop, arrays

    for start, stop, arrays in _in_order(mine_part, gaps(done, n_anchors, ready.part_rows), at_once):
        if options.on_short == "raise" and parts_hold_negatives:
            check_none_short(arrays["counts"], arrays["ids"], first=start)  # another policy may fill this part
        write_part(folder, start, stop, arrays)


def write_part(folder: JobFolder, start: int, stop: int, arrays: dict[str, NDArray[Any]]) -> None:
    """Write a part."""
    folder.write_arrays(f"{PART}{start:012d}-{stop:012d}.npz", arrays)


def _in_order(mine: Callable[[Any], Any], limits: list[tuple[int, int]], at_once: int) -> Iterator[Any]:
    """The parts in order; with several at once, each in a thread."""
    if at_once == 1:
        yield from map(mine, limits)
        return
    with ThreadPoolExecutor(at_once) as threads:
        waiting = deque[Future[Any]]()
        for each in limits:
            waiting.append(threads.submit(mine, each))
            if len(waiting) == at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _negatives_of(
    ready: Ready, anchors: Ids, lists: Candidates, too_frequent: Mask | None = None
) -> dict[str, NDArray[Any]]:
    """Take the negatives of a part: their ids and scores, the candidates of sampled anchors, and what adds up.

    `too_frequent` are the candidates of the part that `max_per_item` drops.
    """
    problem = ready.problem
    # A part that is short is an error, but only once all of its anchors are counted.
    on_short = "pad" if problem.options.on_short == "raise" else problem.options.on_short
    padded = replace(problem, options=replace(problem.options, on_short=on_short))
    chosen, counts = take_negatives(padded, ready.judge, lists, anchors, too_frequent)
    width = problem.largest_k if problem.counts is not None else int(counts.max(initial=0))
    slots = slots_of(chosen, width)
    has_own_vector = chosen.dropped.get(Reason.OWN_TEXT, np.zeros(len(anchors), np.int64)) > 0
    totals = {
        "own_text": int(np.count_nonzero(has_own_vector & ~np.isin(anchors, ready.tables.same_text))),
        "tally": tally_of(chosen, counts, problem.advised_depth),
        "dropped": {str(reason): int(count.sum()) for reason, count in chosen.dropped.items()},
        "above": n_above(slots["scores"][slots["ids"] >= 0], ready.background),
    }
    sampled = np.intersect1d(sampled_anchors(problem), anchors)
    sample = packed(chosen.take(sampled - anchors[0])) if len(sampled) else {}
    return {
        "ids": slots["ids"],
        "scores": slots["scores"],
        "counts": counts,
        "totals": np.array(json.dumps(totals)),
        **{f"sample/{name}": array for name, array in sample.items()},
    }


def n_above(scores: NDArray[np.float32], background: NDArray[np.float32]) -> int:
    """How many (negative, random pair) there are in which the negative scores higher; `background` is sorted."""
    return int(np.searchsorted(background, scores, side="left").sum())


def sampled_anchors(problem: Problem) -> Ids:
    """At most 2,000 anchors at even distances, fewer where they have very many candidates."""
    n_anchors = problem.queries.n
    most = max(_LEAST_SAMPLED, _SAMPLED_SLOTS // problem.first_depth)
    count = min(n_anchors, SAMPLED_ANCHORS, most)
    return np.unique(np.linspace(0, max(0, n_anchors - 1), count).astype(np.int64)) if n_anchors else np.arange(0)


def finished(folder: JobFolder) -> list[tuple[int, int]]:
    """(start, stop) of the parts that are there, in order."""
    limits = (name.removeprefix(PART).removesuffix(".npz").split("-") for name in folder.parts)
    return [(int(start), int(stop)) for start, stop in limits]


def gaps(done: list[tuple[int, int]], n: int, size: int) -> list[tuple[int, int]]:
    """(start, stop) of what is missing to n anchors, at most `size` of them at a time."""
    edges = [0, *(edge for start, stop in done for edge in (start, stop)), n]
    return [
        (start, min(start + size, last))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        for start in range(first, last, size)
    ]


# ---- candidates in a file -------------------------------------------------------------------------------------------


def packed(candidates: Candidates) -> dict[str, NDArray[Any]]:
    """Candidates as arrays."""
    arrays = {name: getattr(candidates, name) for name in (*SLOTS, "positive_scores")}
    arrays["source_names"] = np.array(candidates.source_names)
    arrays["kept_names"] = np.array(candidates.kept_names)
    for reason, counts in candidates.outside.items():
        arrays[f"outside/{reason}"] = counts
    return arrays


def unpacked(arrays: dict[str, NDArray[Any]]) -> Candidates:
    """What was packed."""
    prefix = "outside/"
    slots: dict[str, Any] = {name: arrays[name] for name in (*SLOTS, "positive_scores")}
    first, second, third = arrays["kept_names"].tolist()
    return Candidates(
        **slots,
        source_names=tuple(arrays["source_names"].tolist()),
        kept_names=(first, second, third),
        outside={Reason(name.removeprefix(prefix)): arrays[name] for name in arrays if name.startswith(prefix)},
    )


# ---- all parts together ---------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class JobNegatives:
    """The negatives of a job."""

    ids: Ids  # (n, k), mapped from a file in the job's folder, like the scores
    scores: NDArray[np.float32]
    tally: dict[str, int]
    dropped: dict[str, int]
    above: int  # see `n_above`
    own_text: int  # anchors whose own text or vector is in the corpus under another id
    sample: Candidates  # of some anchors
    sampled: Ids  # which these are
    sampled_counts: Ids  # k of these


def negatives(folder: JobFolder, ready: Ready) -> JobNegatives:
    """Put all parts together: ids and scores in files that are mapped, the sample in memory."""
    problem = ready.problem
    n_anchors = problem.queries.n
    width = problem.largest_k
    if problem.counts is None:
        width = max((part["ids"].shape[1] for part in _parts_with_negatives(folder, ready)), default=0)
    width = max(1, width)
    tallies, samples = [], []
    counts: list[Ids] = []
    dropped: dict[str, int] = {}
    above = 0
    own_text = len(ready.tables.same_text)
    with (
        folder.array_stream("ids.npy", (n_anchors, width), np.dtype(np.int64)) as ids,
        folder.array_stream("scores.npy", (n_anchors, width), np.dtype(np.float32)) as scores,
    ):
        for part in _parts_with_negatives(folder, ready):
            if problem.options.on_short == "raise":
                check_none_short(part["counts"], part["ids"], first=sum(len(before) for before in counts))
            for stream, name in ((ids, "ids"), (scores, "scores")):
                stream.write(_widened(part[name], width, SLOTS[name][1]).data)
            totals = json.loads(str(part["totals"]))
            tallies.append(totals["tally"])
            counts.append(part["counts"])
            above += totals["above"]
            own_text += totals["own_text"]
            for reason, count in totals["dropped"].items():
                dropped[reason] = dropped.get(reason, 0) + count
            sample = {name.removeprefix("sample/"): part[name] for name in part if name.startswith("sample/")}
            samples += [unpacked(sample)] if sample else []
    sampled = sampled_anchors(problem)
    return JobNegatives(
        ids=folder.array("ids.npy"),
        scores=folder.array("scores.npy"),
        tally=added(tallies),
        dropped=dict(sorted(dropped.items())),
        above=above,
        own_text=own_text,
        sample=Candidates.stacked(samples),
        sampled=sampled,
        sampled_counts=np.concatenate(counts)[sampled],
    )


def _parts_with_negatives(folder: JobFolder, ready: Ready) -> Iterator[dict[str, NDArray[Any]]]:
    """The negatives of all parts in order, one part in memory at a time."""
    if ready.problem.options.max_per_item is None:
        for name in folder.parts:
            yield folder.arrays(name)
        return
    dropped = _too_frequent(folder, ready.problem)
    for name, (start, stop) in zip(folder.parts, finished(folder), strict=True):
        lists = unpacked(folder.arrays(name))
        yield _negatives_of(ready, np.arange(start, stop), lists, dropped[start:stop, : lists.ids.shape[1]])


def _too_frequent(folder: JobFolder, problem: Problem) -> Mask:
    """(n, m): the candidates that `max_per_item` drops. The ids and scores of all candidates are in memory."""
    ids, scores, kept = [], [], []
    for name in folder.parts:
        part = folder.arrays(name)
        ids.append(part["ids"])
        scores.append(part["scores"])
        kept.append((part["ids"] >= 0) & (part["why"] == 0))
    width = max(part.shape[1] for part in ids)
    all_ids = np.concatenate([_widened(part, width, -1) for part in ids])
    all_scores = np.concatenate([_widened(part, width, -np.inf) for part in scores])
    all_kept = np.concatenate([_widened(part, width, 0) for part in kept])
    counts = problem.counts_of(problem.anchors)
    if problem.counts is None:
        counts = np.minimum(np.count_nonzero(all_kept, axis=1), problem.options.max_k)
    most = problem.options.max_per_item or len(all_ids)
    return too_frequent(all_ids, all_scores, all_kept, counts, most)


def _widened(values: NDArray[Any], width: int, empty: float) -> NDArray[Any]:
    wide = np.full((len(values), width), empty, values.dtype)
    wide[:, : values.shape[1]] = values
    return wide


def check_none_short(counts: Ids, ids: Ids, first: int = 0) -> None:
    """Raise if an anchor has fewer negatives than its count, as --on-short raise asks; `first` is the first anchor."""
    n_negatives = np.count_nonzero(ids >= 0, axis=1)
    short = np.flatnonzero(n_negatives < counts)
    if not len(short):
        return
    row = int(short[0])
    got = f"{n_negatives[row]} of {counts[row]} for anchor {first + row} ({len(short)} such among those that are done)"
    advice = "Run again with --resume and another --on-short, or start over with a smaller -k or a larger --depth."
    raise_invalid("--on-short", "other than 'raise' unless each anchor has its k negatives", got, advice)
