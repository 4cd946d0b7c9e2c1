"""Monitor: what the negatives of a training run are like, step by step, for any logger."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import as_array, check_kind, check_whole, public, raise_invalid, shown
from naysay.detectors._suspicion import threshold_of
from naysay.difficulty.bands import (
    BANDS,
    TEMPERATURE,
    Floats,
    Mask,
    as_scores,
    band_edges,
    check_shares,
    check_temperature,
    rank_pairs,
    softmax_shares,
)
from naysay.files import as_path, check_target
from naysay.text import described, first_line, plain
from naysay.types import Detector, Negatives, Query, anchor_ids, check_query

Scalars = dict[str, float]
Histograms = dict[str, tuple[NDArray[np.int64], Floats]]  # {name: (counts, ends)}
Write = Callable[[int, Scalars, Histograms], None]

HEADER = {"naysay": "run", "format": 1}  # the first line of a .jsonl log
_HARD, _HARDEST = 0.5, 0.125  # of 8 negatives: one hardest, three hard, four easy
_MEMORY = 1 << 20
_BARS = 30
_ODD_WORD = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses no bit


@final
@public
class Monitor:
    """Measure the negatives of each training step, and pass numbers and histograms to a logger.

    Call `observe` once a step. The numbers of a step, means over its negatives or rows:

    | name | meaning |
    |---|---|
    | `score/negatives`, `score/positives` | the mean scores |
    | `above_positive` | the share of negatives with a higher score than the positive of their row |
    | `gradient/easy`, `/hard`, `/hardest` | the share of InfoNCE's gradient in each band of a row (`bands`) |
    | `effective_negatives` | 1 / sum of w_j^2 for w = softmax(scores / t): k if all count alike, 1 if one has it all |
    | `false_share`, `suspected` | the mean suspicion, and the share from the detector's threshold (0.5) on |
    | `repeats` | the share of pairs (anchor, negative) that came in an earlier step |
    | `negatives` | the mean number of negatives of a row |
    | `empty_rows` | the share of rows without any |
    | `exhausted`, `dropped/REASON` | slots that could not be filled, and others that were left out: counts |
    | `not_finite` | the share of scores that are NaN or infinite; they count in nothing else |
    | `monitor/cost` | the time of `observe` as a share of the time since the call before |

    A measure that cannot be computed is left out. The suspicion is that of the detector, or else of the negatives.
    Cost: a copy of the scores to the CPU, a sort of each row, and 4 bytes for each remembered pair.

    Args:
        log: Where to write: a path that ends in .jsonl (`naysay report` draws it), a SummaryWriter of TensorBoard, a
            run of Weights & Biases, a logger of Lightning, or a function of a dictionary. None: nowhere.
        every: Measure each so many steps; the others cost nothing.
        histograms: Add histograms of the scores each so many steps; 0 for none.
        temperature: t of the gradient, above 0.
        hard: The share of hard negatives in a row, with the hardest.
        hardest: The share of the hardest.
        detector: Gives the suspicion of each slot.
        memory: The number of pairs that `repeats` remembers; 0 leaves it out.

    Examples:
        >>> import numpy as np
        >>> import naysay as ns
        >>> monitor = Monitor(temperature=1.0)
        >>> negatives = ns.Negatives(np.array([[4, 2], [5, 3]]), scores=np.array([[0.5, 0.5], [0.9, 0.1]]))
        >>> found = monitor.observe(ns.Query([0, 1]), negatives, positive_scores=[0.8, 0.8])
        >>> found["score/negatives"], found["above_positive"], round(found["effective_negatives"], 3)
        (0.5, 0.25, 1.874)
    """

    def __init__(
        self,
        log: Any = None,
        *,
        every: int = 1,
        histograms: int = 100,
        temperature: float = TEMPERATURE,
        hard: float = _HARD,
        hardest: float = _HARDEST,
        detector: Detector | None = None,
        memory: int = _MEMORY,
    ) -> None:
        """Check the settings, and open the log."""
        self.every = check_whole("every", every, 1)
        self.histograms = check_whole("histograms", histograms, 0)
        self.temperature = check_temperature(temperature)
        self.hard, self.hardest = check_shares(hard, hardest)
        if detector is not None and (isinstance(detector, type) or not hasattr(detector, "suspicion")):
            raise_invalid("detector", "a detector, with a method suspicion", type(detector).__name__)
        self.detector = detector
        self.memory = check_whole("memory", memory, 0, 1 << 32)
        self.log = log
        self.calls = 0
        self.seconds = 0.0  # in `observe`
        self.elapsed = 0.0  # between the first and the last measured step
        self._seen = np.zeros(self.memory, np.uint32)
        self._last_start: float | None = None
        self._write = writer(log)

    @property
    def cost(self) -> float:
        """The time in `observe` as a share of the time of the run, from the first call on; NaN before the second."""
        return self.seconds / self.elapsed if self.elapsed else float("nan")

    def observe(
        self, query: Query, negatives: Negatives, scores: Any = None, *, positive_scores: Any = None
    ) -> dict[str, float] | None:
        """Measure a step, and log it under `query.step`.

        Args:
            query: The anchors, with the step.
            negatives: Their negatives.
            scores: (B, K) the model's scores; by default `negatives.scores`.
            positive_scores: (B,) the scores of the positives.

        Returns:
            {name: number}, or None for a step that is not measured.
        """
        start = perf_counter()
        check_query(query)
        check_kind("negatives", negatives, Negatives, "Negatives")
        call = self.calls
        self.calls += 1
        if call % self.every:
            return None
        scores = negatives.scores if scores is None else scores
        if scores is None:
            raise_invalid("scores", "given, or in `negatives`", None)
        values = _read_scores("scores", scores, negatives.shape)
        positive = None
        if positive_scores is not None:
            positive = _read_scores("positive_scores", positive_scores, (len(query),))
        suspicion = negatives.suspicion if self.detector is None else self.detector.suspicion(query, negatives)
        if suspicion is not None:
            suspicion = _read_scores("suspicion", suspicion, negatives.shape)
        mask = np.asarray(to_numpy(negatives.mask))
        kept = mask & np.isfinite(values)

        numbers = {
            **hardness(values, kept, positive),
            **_gradient(values, kept, self.temperature, self.hard, self.hardest),
            **_counts(negatives.dropped, mask, values),
        }
        if suspicion is not None:
            numbers["false_share"] = _mean(suspicion[mask])
            numbers["suspected"] = _mean(suspicion[mask] >= threshold_of(self.detector))
        if self.memory:
            ids = np.asarray(to_numpy(negatives.ids))
            numbers["repeats"] = _mean(_remember(self._seen, anchor_ids(query), ids, mask))
        numbers = {name: value for name, value in numbers.items() if not np.isnan(value)}

        histograms: Histograms = {}
        if self.histograms and (call // self.every) % self.histograms == 0:
            histograms = _histograms(values[kept], positive, None if suspicion is None else suspicion[mask])
        if self._last_start is not None:
            since_last = start - self._last_start
            self.elapsed += since_last
            numbers["monitor/cost"] = (perf_counter() - start) / max(since_last, 1e-9)
        self._last_start = start
        if self._write is not None:
            self._write(query.step, numbers, histograms)
        self.seconds += perf_counter() - start
        return numbers

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The number of calls and the remembered pairs, as arrays and numbers."""
        return {"calls": self.calls, "seen": self._seen.view(np.int32).copy()}  # not every torch has uint32

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state. Raises NaysayError if it does not fit, and changes nothing."""
        read = read_state(state, {"calls": Entry(whole=True), "seen": Entry((self.memory,), whole=True)})
        self.calls = int(read["calls"])
        self._seen = read["seen"].astype(np.int32).view(np.uint32)
        self._last_start = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the open log, which a copy opens again, and the time of the last call in this process."""
        return {**self.__dict__, "_write": None, "_last_start": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._write = writer(self.log)

    def __repr__(self) -> str:
        """The settings."""
        return described(self, f"{self.calls:,} calls")


# ---- the numbers of a step ------------------------------------------------------------------------------------------


def hardness(scores: NDArray[Any], kept: Mask, positive: NDArray[Any] | None) -> Scalars:
    """The mean score of the negatives that are kept, and how many are above the positive of their row."""
    numbers = {"score/negatives": _mean(scores[kept])}
    if positive is not None:
        is_finite = np.isfinite(positive)
        is_above = scores > positive[:, None]
        numbers["score/positives"] = _mean(positive[is_finite])
        numbers["above_positive"] = _mean(is_above[kept & is_finite[:, None]])
    return numbers


def _gradient(scores: NDArray[Any], kept: Mask, temperature: float, hard: float, hardest: float) -> Scalars:
    """The share of the gradient in each band, and the effective number of negatives: means over rows."""
    pairs = rank_pairs(scores, kept)
    shares = softmax_shares(pairs, temperature)
    has_negatives = pairs.sizes > 0
    by_band, _ = pairs.sum_by_interval(band_edges(hard, hardest), shares)
    effective = 1.0 / pairs.sum_by_anchor(shares * shares)[has_negatives]
    found = {f"gradient/{band}": _mean(by_band[has_negatives, i]) for i, band in enumerate(BANDS)}
    return {**found, "effective_negatives": _mean(effective)}


def _counts(dropped: Mapping[str, int], mask: Mask, scores: NDArray[Any]) -> Scalars:
    """How many negatives there are, and how many are missing."""
    of_row = mask.sum(axis=1)
    numbers = {
        "negatives": _mean(of_row),
        "empty_rows": _mean(of_row == 0),
        "not_finite": _mean(~np.isfinite(scores[mask])),
        "exhausted": 0.0,
    }
    for reason, count in dropped.items():
        numbers["exhausted" if reason == "exhausted" else f"dropped/{reason}"] = float(count)
    return numbers


def _histograms(scores: NDArray[Any], positive: NDArray[Any] | None, suspicion: NDArray[Any] | None) -> Histograms:
    values = {"score/negatives": scores, "score/positives": positive, "suspicion": suspicion}
    found: Histograms = {}
    for name, given in values.items():
        if given is not None:
            counts, ends = np.histogram(given[np.isfinite(given)].astype(np.float64), _BARS)
            found[name] = counts.astype(np.int64), ends
    return found


def _remember(seen: NDArray[np.uint32], anchors: NDArray[np.int64], ids: NDArray[np.int64], mask: Mask) -> Mask:
    """Whether each pair (anchor, negative) was in the table of seen pairs, to which all are added.

    The place in the table and 32 bits more stand for a pair, so a new pair counts as seen in a share of 2^-32 at most.
    A later pair replaces an earlier one of the same place.
    """
    columns = np.atleast_2d(anchors.T).astype(np.uint64)  # one, or three for triples
    anchor_words = np.zeros(len(anchors), np.uint64)
    for column in columns:
        anchor_words = _mixed(anchor_words ^ column)
    words = _mixed(anchor_words[:, None] ^ _mixed(ids.astype(np.uint64) + np.uint64(1)))[mask]
    places = (words % np.uint64(len(seen))).astype(np.int64)
    marks = (words >> np.uint64(32)).astype(np.uint32) | np.uint32(1)  # never 0, which is an empty place
    known = seen[places] == marks
    seen[places] = marks
    return np.asarray(known)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits of 64-bit words, one to one."""
    words = (words + _ODD_WORD) * _ODD_WORD
    words = (words ^ (words >> np.uint64(32))) * _ODD_WORD
    return np.asarray(words ^ (words >> np.uint64(29)))


def _mean(values: NDArray[Any]) -> float:
    """The mean, or NaN of nothing."""
    return float(np.mean(values, dtype=np.float64)) if values.size else float("nan")


def _read_scores(parameter: str, values: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return scores of a shape as float32 or float64; they may be NaN or infinite."""
    array = as_array(parameter, to_numpy(values))
    if array.shape != shape:
        raise_invalid(parameter, f"of shape {shape}", f"shape {array.shape}")
    return as_scores(parameter, array)


# ---- loggers: known by their methods, so that none of these packages is imported ------------------------------------


def writer(log: Any) -> Write | None:
    """write(step, scalars, histograms) for a logger; None writes nothing."""
    if log is None:
        return None
    if isinstance(log, str | os.PathLike):
        return _to_file(as_path("log", log))
    if isinstance(log, type):
        raise_invalid("log", "a logger, not its class", log.__name__)
    if hasattr(log, "add_scalar"):
        return _to_tensorboard(log)
    if hasattr(log, "log_metrics"):
        return lambda step, scalars, _: log.log_metrics(dict(scalars), step=step)
    if callable(getattr(log, "log", None)):
        return _to_weights_and_biases(log)
    if callable(log):
        return lambda step, scalars, histograms: log(_record(step, scalars, histograms))
    advice = "Pass a path ending in .jsonl, a SummaryWriter, a run of Weights & Biases, or a function."
    raise_invalid("log", "a logger", shown(log), advice)


def _record(step: int, scalars: Scalars, histograms: Histograms) -> dict[str, Any]:
    """One step as plain data; NaN and infinity are left out, because JSON has neither."""
    found: dict[str, Any] = {"step": step, "scalars": {name: one for name, one in scalars.items() if isfinite(one)}}
    if histograms:
        found["histograms"] = plain(
            {name: {"counts": counts, "ends": ends} for name, (counts, ends) in histograms.items()}
        )
    return found


def _to_tensorboard(log: Any) -> Write:
    """By add_scalar(name, value, step) and add_histogram(name, values, step) of a SummaryWriter."""

    def write(step: int, scalars: Scalars, histograms: Histograms) -> None:
        for name, value in scalars.items():
            log.add_scalar(name, value, step)
        for name, (counts, ends) in histograms.items():
            middles = (ends[:-1] + ends[1:]) / 2
            log.add_histogram(name, np.repeat(middles, counts), step)

    return write


def _to_weights_and_biases(log: Any) -> Write:
    """By log({name: value}, step=step) of a run; histograms if the run's package has them."""
    package = sys.modules.get(type(log).__module__.partition(".")[0])
    histogram_class = getattr(package, "Histogram", None)

    def write(step: int, scalars: Scalars, histograms: Histograms) -> None:
        found: dict[str, Any] = dict(scalars)
        if histogram_class is not None:
            for name, pair in histograms.items():
                found[f"histogram/{name}"] = histogram_class(np_histogram=pair)  # a name has one kind of value there
        log.log(found, step=step)

    return write


def _to_file(path: Path) -> Write:
    """Append to a .jsonl file: a header line, then a line for each step."""
    check_target("log", path)
    if path.suffix.lower() != ".jsonl":
        raise_invalid("log", "a file that ends in .jsonl", repr(str(path)))
    try:
        with path.open("a+b") as file:
            _begin_or_continue(path, file)
    except OSError as error:
        raise_invalid("log", "a file that can be written", f"{str(path)!r}: {first_line(error)}")

    def write(step: int, scalars: Scalars, histograms: Histograms) -> None:
        line = (json.dumps(_record(step, scalars, histograms), allow_nan=False) + "\n").encode()
        with path.open("ab", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            written = file.write(line)
            if written < len(line):  # the disk is full: half a line would damage the next one
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    return write


def _begin_or_continue(path: Path, file: BinaryIO) -> None:
    """Write the header of a new file. Check that of an old one, and remove the half line of a run that was killed."""
    file.seek(0)
    header = file.readline(1 << 12)
    if not header:
        file.write((json.dumps(HEADER) + "\n").encode())
        return
    try:
        is_ours = header.endswith(b"\n") and json.loads(header) == HEADER
    except ValueError:
        is_ours = False
    if not is_ours:
        raise_invalid("log", "a new file, or one that a Monitor wrote", repr(str(path)))
    file.seek(0)
    end_of_whole_lines = sum(len(line) for line in file if line.endswith(b"\n"))
    file.truncate(end_of_whole_lines)
