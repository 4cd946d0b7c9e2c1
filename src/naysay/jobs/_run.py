"""The parts of a job: mined one after another, each kept when it is done, then put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.checks import raise_invalid
from naysay.detectors._slots import SUSPICION_THRESHOLD
from naysay.errors import NaysayError
from naysay.jobs._files import whole_file
from naysay.jobs._folder import refused
from naysay.jobs._parts import Part, finished, gaps, parts, write_part
from naysay.jobs._prepare import Ready
from naysay.jobs._sample import packed, sampled_rows, unpacked
from naysay.jobs._summary import above
from naysay.mining._notes import added, tally_of
from naysay.mining._pipeline import Task
from naysay.mining._rows import candidates_of, finish_of
from naysay.mining._threshold import Line
from naysay.mining.candidates import Candidates
from naysay.mining.judge import judge as judged
from naysay.mining.judge import lines_of
from naysay.mining.mined import Mined, slots_of
from naysay.positives import Positives
from naysay.types import Query

Ids = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """All parts of a job together.

    Args:
        ids: (n, k), mapped from files of the job's folder.
        scores: (n, k), mapped from files of the job's folder.
        tally: Numbers of all anchors.
        dropped: {reason: candidates}.
        above: See `numbers`.
        sample: The candidates of some anchors, `rows` of all, and their k.
    """

    ids: Ids
    scores: NDArray[np.float32]
    tally: dict[str, int]
    dropped: dict[str, int]
    above: int
    sample: Candidates
    rows: Ids
    counts: Ids


def mine_parts(
    folder: Path,
    ready: Ready,
    size: int,
    before: Callable[[], None],
    done: Callable[[float], None],
) -> None:
    """Mine what is missing, `size` anchors at a time; before() is called ahead of each part.

    done(anchors) is called as they are searched for, in fractions: a part may take as long as the whole job.
    """
    n, told = ready.task.queries.n, [0.0]

    def tell(anchors: float) -> None:
        told[0] += anchors
        done(anchors)

    ready = replace(ready, task=replace(ready.task, tell=tell))
    shown, there = sampled_rows(n, ready.task.depth), finished(folder)
    done(sum(stop - start for start, stop, _ in there))
    for start, stop in gaps(there, n, size):
        before()
        told[0] = 0.0
        here = shown[np.searchsorted(shown, start) : np.searchsorted(shown, stop)] - start
        part = _part(ready, start, stop, here)
        if ready.task.on_short == "raise" and part.totals["tally"]["short"]:
            _refuse_short(folder, part)
        write_part(folder, part)
        done(stop - start - told[0])


def _refuse_short(folder: Path, part: Part) -> NoReturn:
    """Refuse a part with anchors that are short, as --on-short raise asks; the parts before it stay."""
    refused(folder)
    counts, found = part.arrays["counts"], np.count_nonzero(part.arrays["ids"] >= 0, axis=1)
    short = np.flatnonzero(found < counts)
    first = short[0]
    got = f"{found[first]} of {counts[first]} for anchor {part.start + first} ({len(short)} such in its part)"
    advice = "Run again with another --on-short, which goes on from here; or with fewer, or deeper, which starts anew."
    raise_invalid("--on-short", "other than 'raise' unless each anchor has its k negatives", got, advice)


def _part(ready: Ready, start: int, stop: int, shown: Ids) -> Part:
    """Mine the anchors from start to stop, and keep the candidates of those that are shown."""
    task, line = ready.task, ready.line
    rows = task.rows(start, stop, ready.known_scores)
    candidates = candidates_of(task, rows, line)
    if line.detector is not None:
        candidates = judged(candidates, line.detector, query=rows.query)
    how = "pad" if task.on_short == "raise" else task.on_short  # a part that is short is refused once it is counted
    after, wanted = finish_of(replace(task, on_short=how), rows)(candidates, line.detector)
    slots = slots_of(after, task.width if task.counts is not None else int(wanted.max(initial=0)))
    filled = slots["ids"] >= 0
    arrays = {"ids": slots["ids"], "scores": slots["scores"], "counts": wanted}
    arrays |= {f"sample {name}": values for name, values in packed(task, after, shown).items()}
    totals = {
        "tally": tally_of(after, wanted, task.depth),
        "dropped": {reason: int(counts.sum()) for reason, counts in after.dropped.items()},
        "above": above(slots["scores"][filled], ready.background),
    }
    return Part(start, stop, arrays, totals)


def together(folder: Path, task: Task) -> Whole:
    """Put the parts together: ids and scores in files that are mapped, the sample in memory."""
    n, width = task.queries.n, task.width
    if task.counts is None:
        width = max((part.arrays["ids"].shape[1] for part in parts(folder)), default=0)
    width = max(1, width)
    tallies, dropped, pairs, samples, counts = [], dict[str, int](), 0, [], np.zeros(n, np.int64)
    with (
        _matrix(folder / "ids.npy", n, width, np.int64) as ids,
        _matrix(folder / "scores.npy", n, width, np.float32) as scores,
    ):
        for part in parts(folder):
            for stream, name, empty in ((ids, "ids", -1), (scores, "scores", -np.inf)):
                values = part.arrays[name]
                wide = np.full((len(values), width), empty, values.dtype)
                wide[:, : values.shape[1]] = values
                stream.write(wide.data)
            counts[part.start : part.stop] = part.arrays["counts"]
            tallies.append(part.totals["tally"])
            for reason, count in part.totals["dropped"].items():
                dropped[reason] = dropped.get(reason, 0) + count
            pairs += part.totals["above"]
            own = {name[7:]: np.array(values) for name, values in part.arrays.items() if name[:7] == "sample "}
            samples.append(own)
    mapped = [np.load(folder / name, mmap_mode="r", allow_pickle=False) for name in ("ids.npy", "scores.npy")]
    rows = sampled_rows(n, task.depth)
    return Whole(
        mapped[0],
        mapped[1],
        added(tallies),
        dict(sorted(dropped.items())),
        pairs,
        unpacked(task, samples),
        rows,
        counts[rows],
    )


@contextmanager
def _matrix(path: Path, rows: int, columns: int, kind: Any) -> Iterator[BinaryIO]:
    """An .npy file whose rows are written one after another: on a full disk a file that is mapped ends the process."""
    with whole_file(path) as stream:
        header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": (rows, columns)}
        np.lib.format.write_array_header_1_0(stream, header)
        yield stream


def sampled(task: Task, line: Line, whole: Whole, known_scores: NDArray[np.float32], notes: tuple[str, ...]) -> Mined:
    """The sampled anchors as a `Mined`, to be shown and measured; row i is the anchor `whole.rows[i]`."""
    known, rows = task.known, whole.rows
    counts = np.diff(known.indptr)[rows]
    indptr = offsets(counts)
    places = np.repeat(known.indptr[rows] - indptr[:-1], counts) + np.arange(indptr[-1])
    relation = None if known.relation is None else known.relation[places]
    own = Positives(indptr, known.indices[places], known.n_items, relation=relation)
    query = Query(rows, positives=None if task.firsts is None else task.firsts[rows])
    lines = np.full(len(rows), np.nan) if line.detector is None else lines_of(line.detector, query)
    return Mined(
        **slots_of(whole.sample, whole.ids.shape[1]),
        positive_scores=whole.sample.positive_scores,
        thresholds=lines,
        counts=whole.counts,
        rule=line.rule,
        judge=line.detector,
        line=SUSPICION_THRESHOLD,
        candidates=whole.sample,
        known=own,
        known_scores=known_scores[places],
        depth=task.depth,
        metric=task.metric,
        notes=notes,
        query=query,
        _auto_k=task.counts is None,
        _before=whole.sample,
        _finish=_no_more,
    )


def _no_more(candidates: Candidates, judge: Any) -> NoReturn:
    """What a sample answers when it is to be judged anew."""
    message = "Mined.rethreshold: a job on disk keeps no candidates but these. Mine again with another --judge."
    raise NaysayError(message)
