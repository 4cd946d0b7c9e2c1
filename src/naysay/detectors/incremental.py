"""Incremental: samples of one cluster are false negatives of each other, and more are accepted as training goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._rows import frozen
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import MOST_ROWS, check_number, check_one_of, check_range, check_whole, public, raise_invalid, shown
from naysay.detectors import _clusters as kmeans
from naysay.detectors._slots import as_suspicion, check_query_and_negatives, query_anchors
from naysay.detectors.acceptance import Accept, LinearAcceptance, accepted
from naysay.rng import rng_for
from naysay.text import described
from naysay.types import Array, Negatives, Query


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

    Features are clustered as given, and each update starts anew. Features of a collapsed encoder, all within 1e-5 of
    their norm, raise an error: they would put all samples in one class.

    Cost of an update: n k d for each iteration and k, on one thread for each k. Memory: the features in float32, a
    block of them against the centroids, and 24 bytes for each sample and k. suspicion: G look-ups per slot.

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

    def update(self, features: Any, progress: float, *, on_progress: Callable[[int], object] | None = None) -> None:
        """Cluster all samples again, and accept the share of labels for this progress.

        Ctrl-C ends it within an iteration of k-means. After an interruption or an error nothing has changed.

        Args:
            features: (n_samples, d) floating-point numbers, in NumPy, torch, or memory-mapped. Row i is sample i.
            progress: The share of training that is done, in [0, 1]: epoch / epochs.
            on_progress: Called with 1 as each of the G clusterings ends, in the caller's thread: the update of a
                progress bar with total=G.
        """
        advice = "It is the share of training that is done."
        share = check_number("progress", progress, at_least=0, at_most=1, advice=advice)
        rate = self.accept(share) if callable(self.accept) else self.accept
        rate = check_number("accept", rate, at_least=0, at_most=1)
        if on_progress is not None and not callable(on_progress):
            raise_invalid("on_progress", "a function, or left out", shown(on_progress))
        vectors, updates = kmeans.as_features(features, self.n_samples), self.updates

        def granularity(place: int, stopped: kmeans.Stopped) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            draw = rng_for(self.seed, step=updates, worker=place).integers(1 << 31)
            settings = {"iterations": self.iterations, "restarts": self.restarts, "seed": int(draw)}
            means = kmeans.centroids(vectors, self.clusters[place], **settings, stopped=stopped)
            assigned = kmeans.nearest(vectors, means)
            if self.measure == "cluster":
                return assigned, kmeans.cluster_confidence(vectors, means, assigned)
            return assigned, kmeans.sample_confidence(vectors, means, assigned, self.temperature)

        results = kmeans.run_alone(granularity, self.clusters, on_progress)
        assigned, confidence = (np.stack(part) for part in zip(*results, strict=True))
        labels = np.where([accepted(row, rate) for row in confidence], assigned, -1)
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
        whole = {name: Entry(whole=True) for name in ("n_samples", "seed", "updates")}
        settings = whole | {"clusters": Entry(("G",), whole=True)}
        arrays = {name: Entry(shape, whole=True) for name in ("assigned", "labels")}
        arrays["confidence"] = Entry(shape)
        given = {name: part.tolist() for name, part in read_state(state, settings, arrays).items()}
        for name, own in (("n_samples", self.n_samples), ("clusters", list(self.clusters)), ("seed", self.seed)):
            if own != given[name]:
                advice = f"Create an Incremental with {name} {given[name]} for it."
                raise_invalid("state", f"of {name} {own}", given[name], advice)
        assigned, labels, confidence = read_state(state, arrays, settings).values()
        for k, row in zip(self.clusters, assigned, strict=True):
            check_range("assigned", row, k, "clusters", least=-1)
        without = (assigned < 0).any() if given["updates"] else (assigned >= 0).any()
        if without or ((labels != assigned) & (labels >= 0)).any():
            raise_invalid("state", "one whose labels match its clusters", "others", "It was changed.")
        with self._lock:
            self._found = _Found(given["updates"], assigned, confidence, labels)

    def __repr__(self) -> str:
        counts = np.count_nonzero(self._found.labels >= 0, axis=1).tolist()
        return described(self, f"{counts} labels after {self.updates} updates", confidence=self.measure)


class _Found(NamedTuple):
    """The result of `update`. It is replaced as a whole, so that other threads never see parts of two updates."""

    updates: int
    assigned: NDArray[np.int64]
    confidence: NDArray[np.float64]
    labels: NDArray[np.int64]


def _clusters(clusters: Any, n_samples: int) -> tuple[int, ...]:
    """Check the granularities: one or several whole numbers from 1 to n_samples."""
    given = [clusters] if isinstance(clusters, int | np.integer) else clusters
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) == 0:
        raise_invalid("clusters", "one whole number or several", shown(clusters))
    found = tuple(check_whole("clusters", k, 1) for k in given)
    if max(found) > n_samples:
        raise_invalid("clusters", f"at most n_samples, {n_samples}", max(found), "A cluster needs a sample.")
    return found
