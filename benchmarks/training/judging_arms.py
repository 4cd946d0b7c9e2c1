"""The arms of the study of judging: the negatives of each, how many are false, and how many are estimated to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.training.judging_worlds import Ids, K, World
from naysay.detectors import Bands, Calibrated, Posterior, choose_thresholds

UNTRAINED = "not trained"
ARMS = (
    *(UNTRAINED, "random", "in-batch only", "nearest", "share 0.95", "margin 0.05", "calibrated 0.05"),
    *("auto, scores only", "auto", "auto, masked", "auto, attract", "oracle"),
)
ALWAYS = "auto, no fallback"
ABLATIONS = ("oracle below share", "oracle, as hard as share", "auto below share", "auto, from rank 21")
BANDS = ("bands", "bands, random")
LISTED, ATTRACTED = 100, 0.5
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Chosen:
    """The negatives of one arm.

    ids        (anchors, k), -1 where a slot is empty
    negative   (anchors, k) bool: pushed away
    positive   (anchors, k) bool: drawn near
    """

    ids: Ids
    negative: Mask
    positive: Mask
    said: dict[str, Any]


def plain(ids: Ids) -> Chosen:
    """All that is there is a negative."""
    return Chosen(ids, ids >= 0, np.zeros(ids.shape, bool), {})


class Judge:
    """All that the arms of one world share: the nearest, and what the posterior says of them."""

    def __init__(self, world: World, seed: int) -> None:
        """Nothing is mined yet."""
        self.world, self.seed = world, seed
        self.queries, self.documents = world.vectors(world.train)
        self._made: dict[str, Any] = {}

    def mined(
        self, judge: Any, k: int = K, *, left_out: tuple[Ids, Ids] | None = None, ranks: tuple[int, None] | None = None
    ) -> ns.mining.Mined:
        """By `naysay.mine`, as a user would call it; `left_out` are pairs that may not be returned."""
        parts = [part for part in (self.world.ignored, left_out) if part is not None]
        ignored = tuple(np.concatenate(side) for side in zip(*parts, strict=True)) if parts else None
        how = {"judge": judge, "seed": self.seed, "ignore": ignored, "rank_range": ranks}
        return ns.mine(self.queries, self.documents, self.world.labels, k, **how)

    @property
    def auto(self) -> ns.mining.Mined:
        """The negatives of the default judge, mined once."""
        if "auto" not in self._made:
            self._made["auto"] = self.mined("auto")
        return self._made["auto"]

    def by_posterior(self, *, vectors: bool, always: bool) -> ns.mining.Mined:
        """The same rule with or without item vectors; `always`: also where it says that it cannot tell."""
        labelled = self.documents[self.world.labels]
        own = np.einsum("nd,nd->n", self.queries, labelled).astype(np.float64)
        near = self.mined(None, LISTED)

        def alike(anchors: Ids, ids: Ids) -> NDArray[np.float64]:
            return np.einsum("pd,pd->p", labelled[anchors], self.documents[ids]).astype(np.float64)

        rows = np.repeat(np.arange(len(own)), near.ids.shape[1])
        cosines = alike(rows, near.ids.ravel()).reshape(near.ids.shape) if vectors else None
        posterior = Posterior(K, positive_scores=own, alike=alike if vectors else None, seed=self.seed)
        posterior.fit(near.scores, own, alike=cosines)
        if posterior.fitted and (always or not posterior.reason):
            return self.mined(posterior)
        return self.mined(Calibrated(0.05))

    def suspicion(self, ids: Ids) -> NDArray[np.float64]:
        """(anchors, k) the posterior of any candidates; of one outside the lists, the mean of the last ranks."""
        found = self.auto.candidates
        rows = np.broadcast_to(np.arange(len(ids))[:, None], ids.shape)
        width = np.int64(len(self.documents))
        listed = np.nonzero(found.ids >= 0)
        codes = listed[0] * width + found.ids[listed]
        values = found.suspicion[listed].astype(np.float64)
        order = np.argsort(codes, kind="stable")
        codes, values = codes[order], values[order]
        asked = rows * width + ids
        place = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
        behind = float(found.suspicion[:, -10:].mean())
        return np.where(codes[place] == asked, values[place], behind)

    def chosen(self, arm: str) -> Chosen:
        """The negatives of an arm."""
        world = self.world
        if arm in ("in-batch only", UNTRAINED):
            return plain(np.empty((len(self.queries), 0), np.int64))
        if arm == "random":
            known = world.train.relevant()
            drawn = ns.pools.Everything(known).draw(
                ns.Query(np.arange(len(self.queries))), K, rng=ns.rng_for(self.seed)
            )
            return plain(np.asarray(drawn.ids))
        if arm == "oracle":
            everything = world.truth
            return plain(ns.mine(self.queries, self.documents, everything, K, judge=None).ids)
        if arm == ABLATIONS[3]:
            return plain(self.mined("auto", ranks=(21, None)).ids)
        if arm in ABLATIONS:
            return plain(self._shifted() if arm == ABLATIONS[1] else self._below_share(arm))
        if arm in BANDS:
            return plain(self._in_band(by_chance=arm == BANDS[1]))
        if arm in ("auto, masked", "auto, attract"):
            return self._in_the_loss(attract=arm == "auto, attract")
        if arm.startswith("auto"):
            mined = self.auto if arm == "auto" else self.by_posterior(vectors=arm == ALWAYS, always=arm == ALWAYS)
            return Chosen(*_slots(mined.ids), said(mined))
        judges = {"nearest": None, "share 0.95": "share:0.95", "margin 0.05": "margin:0.05"}
        return plain(self.mined(judges.get(arm, Calibrated(0.05))).ids)

    def _below_share(self, arm: str) -> Ids:
        """Those below 95 % of the positive's score that the oracle, or `auto`, also leaves; `auto` if it fell back."""
        if arm.startswith("oracle"):
            return self.mined("share:0.95", left_out=self.world.truth.pairs()).ids
        found = self.auto.candidates
        if not isinstance(self.auto.judge, Posterior):
            return self.auto.ids
        rows, slots = np.nonzero((found.ids >= 0) & (found.suspicion >= self.auto.suspicion_threshold))
        return self.mined("share:0.95", left_out=(rows, found.ids[rows, slots])).ids

    def _shifted(self) -> Ids:
        """True negatives of the ranks r to r + k, with r such that they score as high as those of `share 0.95`."""
        wanted = self.mined("share:0.95").scores
        near = ns.mine(self.queries, self.documents, self.world.truth, LISTED + K, judge=None)
        means = [near.scores[:, first : first + K].mean() for first in range(LISTED)]
        first = int(np.abs(np.array(means) - wanted[np.isfinite(wanted)].mean()).argmin())
        return near.ids[:, first : first + K]

    def _in_band(self, *, by_chance: bool) -> Ids:
        """The nearest, or any by chance, of the hard band: below the highest 0.1 % of all pairs, in the next 5 %."""
        scores, known = self.queries @ self.documents.T, self.world.train.relevant()
        if self.world.ignored is not None:
            known = known.union(ns.Positives.from_pairs(*self.world.ignored, *scores.shape))
        scores[known.pairs()] = np.nan
        chosen = choose_thresholds(scores[~np.isnan(scores)], n_positives=len(known))
        bands = Bands(chosen.low, chosen.high)
        if not by_chance:
            return self.mined(bands).ids
        hard = bands.flag(np.nan_to_num(scores, nan=np.inf)) == 1
        order = np.where(hard, ns.rng_for(self.seed).random(hard.shape, np.float32), 2)
        ids = np.argpartition(order, K, axis=1)[:, :K]
        return np.where(np.take_along_axis(hard, ids, axis=1), ids, -1)

    def _in_the_loss(self, *, attract: bool) -> Chosen:
        """The nearest; what the posterior suspects is no negative, and to attract it from 0.5 on a positive."""
        near, judge, limit = self.mined(None).negatives(), self.auto.judge, self.auto.suspicion_threshold
        ids, fitted = np.asarray(near.ids), isinstance(judge, Posterior)
        if fitted:
            suspicion = self.suspicion(ids)
        else:  # its candidates begin after the suspected ones
            suspicion = np.asarray(judge.suspicion(ns.Query(np.arange(len(ids))), near), np.float64)
        negative = (ids >= 0) & (suspicion < limit)
        positive = (ids >= 0) & (suspicion >= max(ATTRACTED, limit)) & (attract and fitted)
        return Chosen(ids, negative, positive, said(self.auto))

    def measured(self, arm: Chosen) -> dict[str, Any]:
        """What is true of the negatives: their false share, and the estimate of it; how hard and how many they are."""
        rows, slots = np.nonzero(arm.negative)
        ids = arm.ids[rows, slots]
        found: dict[str, Any] = {"filled": float(arm.negative.mean()) if arm.negative.size else 0.0, **arm.said}
        if len(rows):
            found["false_share"] = float(self.world.truth.contains(rows, ids).mean())
            found["hardness"] = float(np.einsum("pd,pd->p", self.queries[rows], self.documents[ids]).mean())
            if isinstance(self.auto.judge, Posterior):
                found["estimate"] = float(self.suspicion(arm.ids)[arm.negative].mean())
        if arm.positive.any():
            rows, slots = np.nonzero(arm.positive)
            found["attracted"] = float(arm.positive.mean())
            found["attracted_true"] = float(self.world.truth.contains(rows, arm.ids[rows, slots]).mean())
        return found


def _slots(ids: Ids) -> tuple[Ids, Mask, Mask]:
    return ids, ids >= 0, np.zeros(ids.shape, bool)


def said(mined: ns.mining.Mined) -> dict[str, Any]:
    """What the judge says of itself."""
    judge = mined.judge
    if not isinstance(judge, Posterior):
        return {"fallback": mined.rule}
    summary = judge.summary
    shares = {"before": summary.before, "after": summary.after}
    told = {name: [share.estimate, share.low, share.high] for name, share in shares.items() if share is not None}
    return {**told, "tau": summary.tau, "reason": summary.reason}
