"""Incremental: samples of one cluster are false negatives of each other, more of them as training goes on."""

from __future__ import annotations

import math
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
from naysay.detectors._clusters import Stopped, alone, as_features, centroids, nearest
from naysay.detectors._confidence import CONFIDENCES, of_clusters, of_samples
from naysay.detectors._part_states import whole_of_state
from naysay.detectors._slots import as_suspicion, check_asked
from naysay.detectors.acceptance import Accept, LinearAcceptance, accepted, as_rate
from naysay.rng import rng_for
from naysay.types import Array, Negatives, Query, anchor_ids

_NUMBERS = ("n_samples", "seed", "updates")
_ARRAYS = ("clusters", "assigned", "confidence", "labels")


@final
@public
class Incremental:
    """Clusters of the model's own features as pseudo-labels, of which the most confident are believed.

    Once an epoch, or every few, `update(features, progress)` clusters all samples anew, for each k:

        y_i = argmin_j |v_i - c_j|                                     the nearest centroid, by Euclidean distance
        confidence_i = e^{cos(v_i, c_{y_i}) / t} / sum_j e^{cos(v_i, c_j) / t}

    and the floor(r n) most confident keep y_i, of equal ones those of the lower id; the others have no label, -1. r is
    what `accept` says of progress, the share of training that is done. A higher r accepts the same samples and more.

    `labels` (G, n_samples) go to the losses: `eliminate(z, partner, found.labels[:, ids], temperature=...)`. Those of a
    queue are looked up when they are used, so that old entries carry new labels: key_labels=found.labels[:, queue.ids].

    suspicion = the mean over granularities of [same label, not -1]. The line of 0.5 is: half of them, or more, agree.

    Features are clustered as they are: normalise them first for k-means on the sphere, and take those of the encoder or
    of its projection, whichever you trust. Confidence is measured where the centroids live. No centroid is carried from
    one update to the next: features have moved on. Features of a collapsed encoder, all within 1e-5 of their length,
    are refused: they would make all samples one class.

    Cost of an update: n k d for each iteration and k, on one thread for each k, as many k at once as there are threads;
    the features in float32 (not copied if they are), a block of them against the centroids, and 24 bytes for each
    sample and k; never (n, k). suspicion: G look-ups a slot.

    Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022.

    Args:
        n_samples: How many samples there are; anchors and candidates are their ids, 0 ... n_samples - 1.
        clusters: K of k-means, one or several: each is a granularity, and all are used at once. The paper takes
            (1000, 3000, 10000) for ImageNet, (100, 300, 1000) for CIFAR-100 and (10, 30, 100) for CIFAR-10.
        temperature: T of the confidence. The paper has one t for loss and confidence and does not print it; 0.2 is
            that of the set-up it says it follows (MoCo v2, PCL).
        accept: The share of labels that is believed: a number, or a function of progress. LinearAcceptance(), from
            0 to 1, is the paper's; StepAcceptance() and a number are what it is compared with.
        confidence: "sample": Eq. 2, below. "cluster": PCL's concentration, one number for a whole cluster; for
            comparison.
        iterations: Of k-means; 20 as in PCL's code.
        restarts: Of k-means, from other random rows, the best kept; PCL's code has 5.
        seed: Of k-means: equal seeds and features give equal labels, for any number of threads.

    Example:
        >>> import numpy as np, naysay as ns
        >>> features = np.array([[9, 1], [9, 2], [9, 9], [1, 9], [2, 9]], np.float32)
        >>> found = Incremental(5, clusters=2)
        >>> found.update(features, progress=0.8)          # 4 of 5: the one in between stays without
        >>> found.labels.tolist() in ([[0, 0, -1, 1, 1]], [[1, 1, -1, 0, 0]])
        True
        >>> found.suspicion(ns.Query([0, 2]), ns.Negatives(np.array([[1, 3], [1, 3]]))).tolist()
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
        """No label yet."""
        self.n_samples = check_whole("n_samples", n_samples, 1)
        self.clusters = _clusters(clusters, self.n_samples)
        self.temperature = check_number("temperature", temperature)
        if not 0 < self.temperature < math.inf:
            raise_invalid("temperature", "a number above 0", shown(temperature))
        self.accept: Accept = LinearAcceptance() if accept is None else accept
        if not callable(accept) and accept is not None:
            self.accept = as_rate("accept", accept)
        check_one_of("confidence", confidence, CONFIDENCES)
        self.measure = confidence
        self.iterations = check_whole("iterations", iterations, 1)
        self.restarts = check_whole("restarts", restarts, 1)
        self.seed = check_whole("seed", seed, 0)
        rng_for(self.seed)  # refuses one that is too large
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

    def update(self, features: Any, progress: float, *, tell: Callable[[int], object] | None = None) -> None:
        """Cluster all samples anew, and believe what the progress allows.

        Ctrl-C ends it within a step of k-means; then, as after a refusal, nothing has changed.

        Args:
            features: (n_samples, d) floating, row i that of sample i: NumPy, torch, or mapped from disk.
            progress: The share of training that is done, in [0, 1]: epoch / epochs.
            tell: Called with 1 as each of the G clusterings is done, in the caller's thread: the update of a
                progress bar with total=G.
        """
        share = check_number("progress", progress)
        if not 0 <= share <= 1:
            raise_invalid("progress", "between 0 and 1", share, "It is the share of training that is done.")
        rate = as_rate("accept", self.accept(share) if callable(self.accept) else self.accept)
        if tell is not None and not callable(tell):
            raise_invalid("tell", "a function, or None", shown(tell))
        vectors = as_features(features, self.n_samples)

        def granularity(place: int, stopped: Stopped) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            draw = rng_for(self.seed, step=self.updates, worker=place).integers(1 << 31)
            settings = {"iterations": self.iterations, "restarts": self.restarts, "seed": int(draw)}
            means = centroids(vectors, self.clusters[place], **settings, stopped=stopped)
            near = nearest(vectors, means)
            if self.measure == "cluster":
                return near, of_clusters(vectors, means, near)
            return near, of_samples(vectors, means, near, self.temperature)

        found = alone(granularity, self.clusters, tell)
        assigned, confidence = (np.stack(part) for part in zip(*found, strict=True))
        labels = np.where([accepted(sure, rate) for sure in confidence], assigned, -1)
        self._assigned, self._confidence, self._labels = assigned, confidence, labels
        self.updates += 1

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) the mean over granularities of [same label, not -1]; anchors and ids are samples.

        A slot that holds the anchor itself is flagged as any other of its label: pools leave it out.
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
        """Everything that the next answer and update depend on but the settings, and what those have to fit."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        arrays = {name: getattr(self, f"_{name}").copy() for name in _ARRAYS[1:]}
        return {**numbers, "clusters": np.array(self.clusters), **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; refused, with nothing changed, if it is of other samples, clusters or seed."""
        if not isinstance(state, Mapping):
            raise_invalid("state", "what Incremental.state gave", type(state).__name__)
        missing = [name for name in (*_NUMBERS, *_ARRAYS) if name not in state]
        if missing:
            raise_invalid("state", "what Incremental.state gave", f"no {missing[0]!r} in {shown(list(state))}")
        samples, seed, updates = (whole_of_state(name, state[name], 0) for name in _NUMBERS)
        clusters = tuple(whole_numbers("clusters", to_numpy(state["clusters"])).tolist())
        for name, held, given in (
            ("n_samples", self.n_samples, samples),
            ("clusters", self.clusters, clusters),
            ("seed", self.seed, seed),
        ):
            if held != given:
                raise_invalid("state", f"of {name} {held}", given, f"Make an Incremental with {name} {given} for it.")
        shape = self._labels.shape
        assigned, labels = (_ids(name, state[name], shape, self.clusters) for name in ("assigned", "labels"))
        if ((labels != assigned) & (labels >= 0)).any() or ((assigned < 0).any() if updates else (assigned >= 0).any()):
            raise_invalid("state", "of labels that belong to their clusters", "others", "It was changed.")
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
        """The settings in one line."""
        believed = f"{np.count_nonzero(self._labels >= 0, axis=1).tolist()} labels after {self.updates} updates"
        return f"Incremental({self.n_samples:,} samples, clusters={self.clusters}, {believed}, accept={self.accept!r})"


def _clusters(clusters: Any, n_samples: int) -> tuple[int, ...]:
    """The granularities: whole numbers from 1 to n_samples, at least one."""
    given = [clusters] if isinstance(clusters, int | np.integer) else clusters
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) == 0:
        raise_invalid("clusters", "one whole number or several", shown(clusters))
    found = tuple(check_whole("clusters", k, 1) for k in given)
    if max(found) > n_samples:
        raise_invalid("clusters", f"at most n_samples, {n_samples}", max(found), "A cluster needs a sample.")
    return found


def _ids(name: str, values: Any, shape: tuple[int, ...], clusters: tuple[int, ...]) -> NDArray[np.int64]:
    """(G, n_samples) labels of a state, each -1 or below its number of clusters, as a copy."""
    found = whole_numbers(name, to_numpy(values), "(G, n)").astype(np.int64)
    if found.shape != shape:
        raise_invalid(name, f"of shape {shape}", f"shape {found.shape}")
    for k, row in zip(clusters, found, strict=True):
        check_range(name, row, k, "clusters", least=-1)
    return found
