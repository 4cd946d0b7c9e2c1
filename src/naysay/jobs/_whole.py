"""All parts of a job together: ids and scores in files that are mapped, and the sampled anchors as a `Mined`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.detectors._slots import SUSPICION_THRESHOLD
from naysay.errors import NaysayError
from naysay.jobs._files import whole_file
from naysay.jobs._parts import parts, sampled_rows, unpacked
from naysay.jobs._prepare import Ready
from naysay.mining._task import Task
from naysay.mining.candidates import Candidates
from naysay.mining.explain import added
from naysay.mining.judge import score_thresholds
from naysay.mining.mined import Mined, slots_of
from naysay.positives import Positives
from naysay.types import Query

Ids = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """All parts of a job together.

    Args:
        ids: (n, k), mapped from a file in the job's folder.
        scores: (n, k), mapped likewise.
        tally: Numbers of all anchors.
        dropped: {reason: candidates}.
        above: See `_summary.above`.
        sample: The candidates of some anchors.
        rows: Which anchors these are.
        counts: k of these.
    """

    ids: Ids
    scores: NDArray[np.float32]
    tally: dict[str, int]
    dropped: dict[str, int]
    above: int
    sample: Candidates
    rows: Ids
    counts: Ids


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
    """Open an .npy file whose rows are written one after another: on a full disk, a mapped file ends the process."""
    with whole_file(path) as stream:
        header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": (rows, columns)}
        np.lib.format.write_array_header_1_0(stream, header)
        yield stream


def sampled(ready: Ready, whole: Whole, notes: tuple[str, ...]) -> Mined:
    """The sampled anchors as a `Mined`, to be shown and measured; row i is the anchor `whole.rows[i]`."""
    task, rows, detector = ready.task, whole.rows, ready.threshold.detector
    known = task.known
    counts = np.diff(known.indptr)[rows]
    indptr = offsets(counts)
    places = np.repeat(known.indptr[rows] - indptr[:-1], counts) + np.arange(indptr[-1])
    relation = None if known.relation is None else known.relation[places]
    query = Query(rows, positives=None if task.firsts is None else task.firsts[rows])
    return Mined(
        **slots_of(whole.sample, whole.ids.shape[1]),
        positive_scores=whole.sample.positive_scores,
        thresholds=np.full(len(rows), np.nan) if detector is None else score_thresholds(detector, query),
        counts=whole.counts,
        rule=ready.threshold.rule,
        judge=detector,
        suspicion_threshold=SUSPICION_THRESHOLD,
        candidates=whole.sample,
        known=Positives(indptr, known.indices[places], known.n_items, relation=relation),
        known_scores=ready.known_scores[places],
        depth=task.depth,
        metric=task.options.metric,
        notes=notes,
        query=query,
        _auto_k=task.counts is None,
        _judged=whole.sample,
        _finish=_no_more,
    )


def _no_more(candidates: Candidates, detector: Any) -> NoReturn:
    """Raise: a job keeps too few candidates to be judged again."""
    message = "a job on disk keeps the candidates of a sample only. Mine again with another --judge."
    raise NaysayError(message)
