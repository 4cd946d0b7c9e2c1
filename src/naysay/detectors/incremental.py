"""Incremental: samples of one cluster are false negatives of each other, and more are accepted as training goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.detectors import _clusters as kmeans
from naysay.detectors._slots import as_suspicion, check_asked
from naysay.detectors._states import check_state, whole_of_state
from naysay.detectors.acceptance import Accept, LinearAcceptance, accepted
from naysay.rng import rng_for
from naysay.types import Array, Negatives, Query, anchor_ids

_NUMBERS = ("n_samples", "seed", "updates")
_ARRAYS = ("clusters", "assigned", "confidence", "labels")


@final
@public
class Incremental:
    """Cluster the model's features into pseudo-labels, and accept the most confident ones.

    Once an epoch, or every few, `update(features, progress)` clusters all samples again, for each k:

        y_i = argmin_j |v_i - c_j|                                     the nearest centroid, by Euclidean distance
        confidence_i = e^{cos(v_i, c_{y_i}) / t} / sum_j e^{cos(v_i, c_j) / t}

    The floor(r n) most confident samples keep y_i (ties: the lower id); the others get no label, -1. r is the value of
    `accept` at the current progress. A higher r accepts a superset.

    Pass `labels` (G, n_samples) to the losses: `eliminate(z, partner, found.labels[:, ids], temperature=...)`. Look up
    the labels of a queue when you use them, so that old entries get new labels: key_labels=found.labels[:, queue.ids].

    suspicion = the mean over granularities of [same label, not -1]. It is at least 0.5 where half of them agree.

    Features are clustered as given: normalise them first for k-means on the sphere. Use the output of the encoder or of
    its projection. No centroid is carried over from one update to the next. Features of a collapsed encoder, all within
    1e-5 of their norm, raise an error: they would put all samples in one class.

    Cost of an update: n k d for each iteration and k, on one thread for each k, as many k in parallel as there are
    threads. Memory: the features in float32 (not copied if they are), a block of them against the centroids, and 24
    bytes for each sample and k, never (n, k). suspicion: G look-ups per slot.

    Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022.

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

    Raises:
        NaysayError: If a number is out of range, or k is larger than n_samples.

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
        """Start without labels."""
        self.n_samples = check_whole("n_samples", n_samples, 1)
        self.clusters = _clusters(clusters, self.n_samples)
        self.temperature = check_number("temperature", temperature, above=0, finite=True)
        self.accept: Accept = LinearAcceptance() if accept is None else accept
        if not callable(self.accept):
            self.accept = check_number("accept", accept, at_least=0, at_most=1)
        check_one_of("confidence", confidence, kmeans.CONFIDENCES)
        self.measure = confidence
        self.iterations = check_whole("iterations", iterations, 1)
        self.restarts = check_whole("restarts", restarts, 1)
        self.seed = check_whole("seed", seed, 0)
        rng_for(self.seed)  # raises if it is too large
        self.updates = 0
        shape = (len(self.clusters), self.n_samples)
        self._assigned, self._labels = np.full(shape, -1, np.int64), np.full(shape, -1, np.int64)
        self._confidence = np.zeros(shape)

    @property
    def labels(self) -> NDArray[np.int64]:
        """(G, n_samples) the accepted pseudo-labels, -1 none; read-only."""
        return frozen(self._labels)

    @property
    def assigned(self) -> NDArray[np.int64]:
        """(G, n_samples) the cluster of every sample, accepted or not, -1 before the first update; read-only."""
        return frozen(self._assigned)

    @property
    def confidence(self) -> NDArray[np.float64]:
        """(G, n_samples) in [0, 1], 0 before the first update; read-only."""
        return frozen(self._confidence)

    def update(self, features: Any, progress: float, *, on_progress: Callable[[int], object] | None = None) -> None:
        """Cluster all samples again, and accept the share of labels for this progress.

        Ctrl-C ends it within an iteration of k-means. After an interruption or an error nothing has changed.

        Args:
            features: (n_samples, d) floating-point numbers, in NumPy, torch, or memory-mapped. Row i is sample i.
            progress: The share of training that is done, in [0, 1]: epoch / epochs.
            on_progress: Called with 1 as each of the G clusterings ends, in the caller's thread: the update of a
                progress bar with total=G.

        Raises:
            NaysayError: If the features are not finite, have zero rows, or are all equal.
        """
        advice = "It is the share of training that is done."
        share = check_number("progress", progress, at_least=0, at_most=1, advice=advice)
        rate = self.accept(share) if callable(self.accept) else self.accept
        rate = check_number("accept", rate, at_least=0, at_most=1)
        if on_progress is not None and not callable(on_progress):
            raise_invalid("on_progress", "a function, or left out", shown(on_progress))
        vectors = kmeans.as_features(features, self.n_samples)

        def granularity(place: int, stopped: kmeans.Stopped) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            draw = rng_for(self.seed, step=self.updates, worker=place).integers(1 << 31)
            settings = {"iterations": self.iterations, "restarts": self.restarts, "seed": int(draw)}
            means = kmeans.centroids(vectors, self.clusters[place], **settings, stopped=stopped)
            assigned = kmeans.nearest(vectors, means)
            if self.measure == "cluster":
                return assigned, kmeans.cluster_confidence(vectors, means, assigned)
            return assigned, kmeans.sample_confidence(vectors, means, assigned, self.temperature)

        results = kmeans.run_alone(granularity, self.clusters, on_progress)
        assigned, confidence = (np.stack(part) for part in zip(*results, strict=True))
        labels = np.where([accepted(row, rate) for row in confidence], assigned, -1)
        self._assigned, self._confidence, self._labels = assigned, confidence, labels
        self.updates += 1

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) the mean over granularities of [same label, not -1].

        A slot that holds the anchor itself is flagged like any other of its label; pools exclude it.

        Raises:
            NaysayError: If an anchor or id is not a sample.
        """
        check_asked(query, negatives)
        anchors = anchor_ids(query)
        if anchors.ndim != 1:
            raise_invalid("query.anchors", "of shape (B,), ids of samples", "triples")
        check_range("anchors", anchors, self.n_samples, "samples")
        ids = np.asarray(to_numpy(negatives.ids))
        check_range("negatives.ids", ids, self.n_samples, "samples", least=-1)
        agreed = np.zeros(ids.shape, np.int64)
        for labels in self._labels:
            mine = labels[anchors][:, None]
            agreed += (labels[ids] == mine) & (mine >= 0)
        return as_suspicion(agreed / len(self._labels), negatives)

    def state(self) -> dict[str, Any]:
        """Return labels, clusters and confidence, and the settings that they must fit."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        arrays = {name: getattr(self, f"_{name}").copy() for name in _ARRAYS[1:]}
        return {**numbers, "clusters": np.array(self.clusters), **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned.

        Raises:
            NaysayError: If the state is of other samples, clusters or seed, or invalid; nothing changes then.
        """
        check_state(state, (*_NUMBERS, *_ARRAYS))
        samples, seed, updates = (whole_of_state(name, state[name], 0) for name in _NUMBERS)
        clusters = tuple(whole_numbers("clusters", to_numpy(state["clusters"])).tolist())
        for name, own, given in (
            ("n_samples", self.n_samples, samples),
            ("clusters", self.clusters, clusters),
            ("seed", self.seed, seed),
        ):
            if own != given:
                raise_invalid("state", f"of {name} {own}", given, f"Create an Incremental with {name} {given} for it.")
        shape = self._labels.shape
        assigned, labels = (_ids(name, state[name], shape, self.clusters) for name in ("assigned", "labels"))
        if ((labels != assigned) & (labels >= 0)).any() or ((assigned < 0).any() if updates else (assigned >= 0).any()):
            raise_invalid("state", "one whose labels match its clusters", "others", "It was changed.")
        confidence = as_array("confidence", to_numpy(state["confidence"]))
        if (
            confidence.shape != shape
            or confidence.dtype.kind != "f"
            or not ((confidence >= 0) & (confidence <= 1)).all()
        ):
            raise_invalid("confidence", f"of shape {shape}, from 0 to 1", f"{confidence.dtype} {confidence.shape}")
        self._assigned, self._labels, self.updates = assigned, labels, updates
        self._confidence = confidence.astype(np.float64)

    def __repr__(self) -> str:
        """The settings and the number of labels."""
        labels = f"{np.count_nonzero(self._labels >= 0, axis=1).tolist()} labels after {self.updates} updates"
        return f"Incremental({self.n_samples:,} samples, clusters={self.clusters}, {labels}, accept={self.accept!r})"


def _clusters(clusters: Any, n_samples: int) -> tuple[int, ...]:
    """Check the granularities: one or several whole numbers from 1 to n_samples."""
    given = [clusters] if isinstance(clusters, int | np.integer) else clusters
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) == 0:
        raise_invalid("clusters", "one whole number or several", shown(clusters))
    found = tuple(check_whole("clusters", k, 1) for k in given)
    if max(found) > n_samples:
        raise_invalid("clusters", f"at most n_samples, {n_samples}", max(found), "A cluster needs a sample.")
    return found


def _ids(name: str, values: Any, shape: tuple[int, ...], clusters: tuple[int, ...]) -> NDArray[np.int64]:
    """Check (G, n_samples) labels of a state, each -1 or below its number of clusters; returns a copy."""
    found = whole_numbers(name, to_numpy(values), "(G, n)").astype(np.int64)
    if found.shape != shape:
        raise_invalid(name, f"of shape {shape}", f"shape {found.shape}")
    for k, row in zip(clusters, found, strict=True):
        check_range(name, row, k, "clusters", least=-1)
    return found
