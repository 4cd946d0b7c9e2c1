"""Incremental: samples of one cluster are false negatives of each other, and more are accepted as training goes on.

Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._rows import frozen
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import (
    MOST_ROWS,
    as_array,
    check_all,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    shown,
)
from naysay.detectors import _clusters
from naysay.detectors._suspicion import as_suspicion, check_query_and_negatives, query_anchors
from naysay.rng import rng_for
from naysay.text import described
from naysay.types import Array, Negatives, Query

Accept = float | Callable[[float], float]  # the share of labels to accept, by progress
CONFIDENCES = ("sample", "cluster")
_MIN_NORM, _MAX_NORM = 1e-15, 1e15  # squares of norms between them neither overflow nor vanish in float32
_SAME = 1e-5  # vectors within this share of their norm differ by rounding only
_ROUNDING = 1e-14  # 0.29 * 100 counts as 29, not 28.999..., and a third of 300 as 100


@final
@public
@dataclass(frozen=True, slots=True)
class LinearAcceptance:
    """A share that grows linearly from `initial` to `final` over training: the schedule of the paper.

    The paper's Table 6 compares finals of 0.25, 0.5, 0.75 and 1, of which 1 was best.

    Args:
        final: The share at the end of training, from 0 to 1.
        initial: The share at its start, from 0 to 1.

    Examples:
        >>> accept = LinearAcceptance(final=0.5)
        >>> accept(0.0), accept(0.5), accept(1.0)
        (0.0, 0.25, 0.5)
    """

    final: float = 1.0
    initial: float = 0.0

    def __post_init__(self) -> None:
        _check_shares(self)

    def __call__(self, progress: float) -> float:
        """Return the share at a progress in [0, 1]."""
        return (1.0 - progress) * self.initial + progress * self.final  # exact at both ends


@final
@public
@dataclass(frozen=True, slots=True)
class StepAcceptance:
    """No labels before `start`, then a constant share `rate`: a warm-up, then all labels, as in PCL.

    Args:
        start: The progress from which labels are accepted, from 0 to 1.
        rate: The share from there on, from 0 to 1.

    Examples:
        >>> accept = StepAcceptance()
        >>> accept(0.09), accept(0.1), accept(1.0)
        (0.0, 1.0, 1.0)
    """

    start: float = 0.1
    rate: float = 1.0

    def __post_init__(self) -> None:
        _check_shares(self)

    def __call__(self, progress: float) -> float:
        """Return the share at a progress in [0, 1]."""
        return self.rate if progress >= self.start else 0.0


@final
@public
class Incremental:
    """Cluster the model's features into pseudo-labels, and accept the most confident ones.

    Once an epoch, or every few, `update(features, progress)` clusters all samples again, for each k:

        y_i = argmin_j |v_i - c_j|                                     the nearest centroid, by Euclidean distance
        confidence_i = e^{cos(v_i, c_{y_i}) / t} / sum_j e^{cos(v_i, c_j) / t}

    The floor(r n) most confident samples keep y_i (ties: the lower id); the others get no label, -1. r is the value of
    `accept` at the current progress. A higher r accepts a superset.

    suspicion = the mean over granularities of [same label, not -1]. `labels` (G, n_samples) are for the losses:
    `eliminate(z, partner, found.labels[:, ids], temperature=...)`.

    Each update starts anew.

    Args:
        n_samples: The number of samples. Anchors and candidates are sample ids, 0 ... n_samples - 1.
        clusters: k of k-means, one or several. Each is a granularity, and all are used together. The paper uses
            (1000, 3000, 10000) for ImageNet, (100, 300, 1000) for CIFAR-100 and (10, 30, 100) for CIFAR-10.
        temperature: t of the confidence. The paper uses one t for loss and confidence without printing it; 0.2 is that
            of the set-up it follows (MoCo v2, PCL).
        accept: The share of labels to accept: a number, or a function of progress. LinearAcceptance(), from 0 to 1, is
            the paper's; it compares with StepAcceptance() and with a number.
        confidence: "sample": Eq. 2, above. "cluster": PCL's concentration, one number per cluster, for comparison.
        iterations: Iterations of k-means; 20 as in PCL's code.
        restarts: Restarts of k-means from other random rows, of which the best is kept; PCL's code has 5.
        seed: The seed of k-means. Equal seeds and features give equal labels, for any number of threads.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> features = np.array([[9, 1], [9, 2], [9, 9], [1, 9], [2, 9]], np.float32)
        >>> detector = Incremental(5, clusters=2)
        >>> detector.update(features, progress=0.8)          # accepts 4 of 5, not the one in the middle
        >>> detector.labels.tolist() in ([[0, 0, -1, 1, 1]], [[1, 1, -1, 0, 0]])
        True
        >>> detector.suspicion(ns.Query([0, 2]), ns.Negatives(np.array([[1, 3], [1, 3]]))).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        n_samples: int,
        clusters: int | Sequence[int],
        temperature: float = 0.2,
        *,
        accept: Accept | None = None,
        confidence: str = "sample",
        iterations: int = 20,
        restarts: int = 1,
        seed: int = 0,
    ) -> None:
        self.n_samples = check_whole("n_samples", n_samples, 1, MOST_ROWS)
        self.clusters = _granularities(clusters, self.n_samples)
        self.temperature = check_number("temperature", temperature, above=0, finite=True)
        self.accept: Accept = LinearAcceptance() if accept is None else accept
        if not callable(self.accept):
            self.accept = check_number("accept", accept, at_least=0, at_most=1)
        check_one_of("confidence", confidence, CONFIDENCES)
        self.measure = confidence
        self.iterations = check_whole("iterations", iterations, 1)
        self.restarts = check_whole("restarts", restarts, 1)
        self.seed = check_whole("seed", seed, 0)
        rng_for(self.seed)  # raises if it is too large
        none = np.full((len(self.clusters), self.n_samples), -1, np.int64)
        self._found = _Found(0, none, np.zeros(none.shape), none)
        self._lock = Lock()

    @property
    def updates(self) -> int:
        """The number of updates so far."""
        return self._found.updates

    @property
    def labels(self) -> NDArray[np.int64]:
        """(G, n_samples) the accepted pseudo-labels, -1 none; read-only."""
        return frozen(self._found.labels)

    @property
    def assigned(self) -> NDArray[np.int64]:
        """(G, n_samples) the cluster of every sample, accepted or not, -1 before the first update; read-only."""
        return frozen(self._found.assigned)

    @property
    def confidence(self) -> NDArray[np.float64]:
        """(G, n_samples) in [0, 1], 0 before the first update; read-only."""
        return frozen(self._found.confidence)

    def update(self, features: Any, progress: float) -> None:
        """Cluster all samples again, and accept the share of labels for this progress.

        After an error nothing has changed. Features that are all within 1e-5 of their norm, of a collapsed encoder,
        are an error.

        Args:
            features: (n_samples, d) floating-point numbers, in NumPy, torch, or memory-mapped. Row i is sample i.
            progress: The share of training that is done, in [0, 1]: epoch / epochs.
        """
        advice = "It is the share of training that is done."
        done = check_number("progress", progress, at_least=0, at_most=1, advice=advice)
        rate = self.accept(done) if callable(self.accept) else self.accept
        rate = check_number("accept", rate, at_least=0, at_most=1)
        vectors, updates = _as_features(features, self.n_samples), self.updates

        def granularity(place: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            seed = int(rng_for(self.seed, step=updates, worker=place).integers(1 << 31))
            settings = {"iterations": self.iterations, "restarts": self.restarts, "seed": seed}
            centroids = _clusters.kmeans(vectors, self.clusters[place], **settings)
            assigned = _clusters.nearest(vectors, centroids)
            if self.measure == "cluster":
                return assigned, _clusters.cluster_confidence(vectors, centroids, assigned)
            return assigned, _clusters.sample_confidence(vectors, centroids, assigned, self.temperature)

        results = _clusters.in_parallel(granularity, self.clusters)
        assigned, confidence = (np.stack(part) for part in zip(*results, strict=True))
        labels = np.where([_accepted(row, rate) for row in confidence], assigned, -1)
        with self._lock:
            self._found = _Found(self.updates + 1, assigned, confidence, labels)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) the mean over granularities of [same label, not -1].

        A slot that holds the anchor itself is flagged like any other of its label; pools exclude it.
        """
        check_query_and_negatives(query, negatives)
        anchors = query_anchors(query, self.n_samples, "samples")
        ids = np.asarray(to_numpy(negatives.ids))
        check_range("negatives.ids", ids, self.n_samples, "samples", least=-1)
        agreed, granularities = np.zeros(ids.shape, np.int64), self._found.labels
        for labels in granularities:
            mine = labels[anchors][:, None]
            agreed += (labels[ids] == mine) & (mine >= 0)
        return as_suspicion(agreed / len(granularities), negatives)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Return labels, clusters and confidence, and the settings that they must fit."""
        found = self._found
        arrays = {name: getattr(found, name).copy() for name in ("assigned", "confidence", "labels")}
        numbers = {"n_samples": self.n_samples, "seed": self.seed, "updates": found.updates}
        return {**numbers, "clusters": np.array(self.clusters), **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Nothing changes if it is of other samples, clusters or seed, or invalid."""
        shape = self._found.labels.shape
        whole, table = Entry(whole=True), Entry(shape, whole=True)
        entries = {"n_samples": whole, "seed": whole, "updates": whole, "clusters": Entry(("G",), whole=True)}
        parts = read_state(state, {**entries, "assigned": table, "confidence": Entry(shape), "labels": table})
        for name, own in (("n_samples", self.n_samples), ("clusters", list(self.clusters)), ("seed", self.seed)):
            given = parts[name].tolist()
            if own != given:
                raise_invalid("state", f"of {name} {own}", given, f"Create an Incremental with {name} {given} for it.")
        with self._lock:
            self._found = _Found(int(parts["updates"]), parts["assigned"], parts["confidence"], parts["labels"])

    def __repr__(self) -> str:
        counts = np.count_nonzero(self._found.labels >= 0, axis=1).tolist()
        return described(self, f"{counts} labels after {self.updates} updates", confidence=self.measure)


class _Found(NamedTuple):
    """The result of `update`. It is replaced as a whole, so that other threads never see parts of two updates."""

    updates: int
    assigned: NDArray[np.int64]
    confidence: NDArray[np.float64]
    labels: NDArray[np.int64]


def _granularities(clusters: Any, n_samples: int) -> tuple[int, ...]:
    """Check the granularities: one or several whole numbers from 1 to n_samples."""
    given = [clusters] if isinstance(clusters, int | np.integer) else clusters
    is_list = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes | bytearray)
    if not is_list or getattr(given, "ndim", 1) == 0 or len(given) == 0:
        raise_invalid("clusters", "one whole number or several", shown(clusters))
    found = tuple(check_whole("clusters", k, 1) for k in given)
    if max(found) > n_samples:
        raise_invalid("clusters", f"at most n_samples, {n_samples}", max(found), "A cluster needs a sample.")
    return found


def _as_features(features: Any, rows: int) -> _clusters.Vectors:
    """Check (rows, d) features and return them as float32, without a copy if they are float32 already.

    Features of a collapsed encoder, all the same up to rounding, are an error: k-means would put them in one class.
    """
    given = as_array("features", to_numpy(features))
    if given.ndim != 2 or len(given) != rows:
        raise_invalid("features", f"of shape ({rows}, d), a row for each sample", f"shape {given.shape}")
    if given.dtype.kind != "f":
        raise_invalid("features", "floating-point numbers", f"dtype {given.dtype}")
    lengths = _clusters.norms(given)
    check_all("features", lengths, np.isfinite(lengths), "finite")
    bad = (lengths < _MIN_NORM) | (lengths > _MAX_NORM)
    if bad.any():
        advice = "A zero vector has no direction: leave the sample out, or check the encoder."
        raise_invalid("features", f"of a norm between {_MIN_NORM:g} and {_MAX_NORM:g}", first_bad(lengths, bad), advice)
    vectors = np.ascontiguousarray(given, np.float32)
    near = _SAME * lengths[0]
    if rows > 1 and all(
        (_clusters.norms(vectors[part] - vectors[0]) <= near).all() for part in _clusters.blocks(*vectors.shape)
    ):
        got = f"{rows} rows within {_SAME:g} of their norm"
        raise_invalid("features", "different vectors", got, "Is the encoder trained?")
    return vectors


def _check_shares(schedule: LinearAcceptance | StepAcceptance) -> None:
    """Raise unless all numbers are from 0 to 1."""
    for field in fields(schedule):
        share = check_number(field.name, getattr(schedule, field.name), at_least=0, at_most=1)
        object.__setattr__(schedule, field.name, share)


def _accepted(confidence: NDArray[np.float64], rate: float) -> NDArray[np.bool_]:
    """(n,) True for the floor(rate n) most confident; ties go to the lower id. A higher rate accepts a superset."""
    chosen = np.zeros(len(confidence), np.bool_)
    count = math.floor((rate + _ROUNDING) * len(confidence))
    chosen[np.argsort(-confidence, kind="stable")[:count]] = True
    return chosen
