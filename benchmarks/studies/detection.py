"""Are false negatives found, and are the estimates of their share right? Planted worlds, and real data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks import readers
from benchmarks.readers import Collection, Floats, Ids, unit
from benchmarks.study import Claim, Found, Job, Settings, Study

K, REVIEWED = 10, 100
DIM, PER_TOPIC, SPREAD = 48, 25, 0.5  # of planted worlds
NOISE = {"strong": 0.25, "medium": 0.45, "weak": 0.7}  # of the encoder, by its quality
TRUSTED = 0.5  # suspicion from which a rule flags a candidate


@dataclass(frozen=True, eq=False)
class World:
    """Unit vectors, one labelled item of each anchor, and all relevant pairs, labelled ones among them."""

    queries: Floats
    items: Floats
    labels: Ids
    relevant: ns.Positives

    @property
    def known(self) -> ns.Positives:
        """The labelled pairs."""
        n = len(self.labels)
        return ns.Positives.from_pairs(np.arange(n), self.labels, n, len(self.items))

    def false_share(self, ids: NDArray[np.int64]) -> float:
        """Of negatives (anchors, k), -1 empty."""
        rows, slots = np.nonzero(ids >= 0)
        return float(self.relevant.contains(rows, ids[rows, slots]).mean()) if len(rows) else 0.0


class Cell(NamedTuple):
    """A kind of world: how many positives an anchor has, which one is labelled, and how good the encoder is."""

    anchors: int
    kind: str = "even"
    labels: str = "random"
    encoder: str = "medium"


def planted(cell: Cell, seed: int) -> World:
    """Each anchor has positives around a centre of its own, near the centres of other anchors of its topic.

    kind     "even": three positives each; "uneven": one, or a number up to 21 drawn from a power law
    labels   "random": one of them by chance; "easiest": the one with the highest score
    """
    rng = np.random.default_rng([seed, cell.anchors, len(cell.kind), len(cell.labels), len(cell.encoder)])

    def around(centres: Any, distance: float) -> Any:
        return centres + distance * unit(rng.normal(size=centres.shape))

    counts = np.full(cell.anchors, 3)
    if cell.kind == "uneven":
        counts = np.where(rng.random(cell.anchors) < 0.5, 1, np.minimum(rng.zipf(1.6, cell.anchors), 20) + 1)
    topics = unit(rng.normal(size=(-(-cell.anchors // PER_TOPIC), DIM)))
    centres = unit(around(topics[np.arange(cell.anchors) // PER_TOPIC], 0.9))
    owner = np.repeat(np.arange(cell.anchors), counts)
    others = unit(around(topics[rng.integers(0, len(topics), max(1000, cell.anchors))], 0.9))
    items = np.concatenate([around(centres[owner], SPREAD), around(others, SPREAD)])
    queries = around(centres, SPREAD)
    queries, items = (unit(around(unit(part), NOISE[cell.encoder])) for part in (queries, items))
    relevant = ns.Positives.from_pairs(owner, np.arange(len(owner)), cell.anchors, len(items))
    return World(queries, items, labelled(queries, items, relevant, cell.labels, rng), relevant)


def labelled(queries: Floats, items: Floats, relevant: ns.Positives, how: str, rng: np.random.Generator) -> Ids:
    """(anchors,) the labelled item of each: a random one, or the one with the highest score."""
    anchors, positives = relevant.pairs()
    scores = (queries[anchors] * items[positives]).sum(axis=1)
    order = np.lexsort((-scores if how == "easiest" else rng.random(len(scores)), anchors))
    return positives[order][np.unique(anchors[order], return_index=True)[1]].astype(np.int64)


def real(folder: Path, name: str, seed: int, most: int) -> World:
    """A collection, or packages of sources of 2 to 20 packages; a query without relevant documents is left out."""
    rng = ns.rng_for(seed, 11)
    data: Collection = {"scifact": readers.scifact, "cranfield": readers.cranfield, "debian": readers.packages}[name](
        folder
    )
    if data.source is None:
        asked, rows = np.unique(data.anchors, return_inverse=True)
        relevant = ns.Positives.from_pairs(rows, data.items, len(asked), len(data.documents))
        queries, items = data.queries[asked], data.documents
    else:
        counts = np.bincount(data.source)
        chosen = rng.permutation(np.flatnonzero((counts >= 2) & (counts <= 20)))[: 3 * most]
        kept = np.flatnonzero(np.isin(data.source, chosen))
        order = rng.permutation(kept)
        asked = order[np.unique(data.source[order], return_index=True)[1]][:most]
        same = data.source[asked][:, None] == data.source[kept]
        relevant = ns.Positives.from_pairs(*np.nonzero(same), *same.shape)
        queries, items = data.queries[asked], data.documents[kept]
    return World(queries, items, labelled(queries, items, relevant, "random", rng), relevant)


# ---- do intervals hold the truth? ------------------------------------------------------------------------------------


def coverage(job: Job) -> Found:
    """Every interval of one world: whether it holds the truth, the truth and the estimate."""
    made = (
        planted(job.arm, job.seed)
        if isinstance(job.arm, Cell)
        else real(job.world, job.arm, job.seed, job.settings["most"])
    )
    found: Found = {}
    vectors = made.queries, made.items
    nearest = ns.mine(*vectors, made.known, K, judge=None, seed=job.seed)
    mined = ns.mine(*vectors, made.known, K, judge="auto", seed=job.seed)
    estimates = {"mine": (mined.false_share, made.false_share(mined.ids))}
    pairs = mined.pairs_to_review(min(REVIEWED, len(made.labels)))
    answers = made.relevant.contains(pairs.anchors, pairs.items)
    again = ns.mine(*vectors, made.known, K, seed=job.seed, reviewed=(pairs.anchors, pairs.items, answers))
    estimates["mine, reviewed"] = again.false_share, made.false_share(again.ids)
    audited = ns.audit(nearest, query_vectors=made.queries, corpus_vectors=made.items, seed=job.seed)
    estimates["audit"] = audited.false_share, made.false_share(nearest.ids)
    for name, (share, truth) in estimates.items():
        if share is None:
            continue
        held = share.low - 1e-9 <= truth <= share.high + 1e-9
        found |= {f"{name}: covered": float(held), f"{name}: truth": truth, f"{name}: estimate": share.estimate}
    return found


CELLS = {
    f"{kind}, {labels}, {encoder}, {anchors} anchors": Cell(anchors, kind, labels, encoder)
    for anchors in (50, 500, 5000)
    for kind in ("even", "uneven")
    for labels in ("random", "easiest")
    for encoder in NOISE
}
COVERED = tuple(
    f"{name}: {what}" for name in ("mine", "mine, reviewed", "audit") for what in ("covered", "truth", "estimate")
)

# ---- which rules return hidden positives? ----------------------------------------------------------------------------


def hidden(folder: Path, seed: int, settings: Settings) -> World:
    """A collection; the labels that rules may see are one of each anchor's."""
    if settings["data"] == "planted":
        return planted(Cell(settings["most"], "uneven"), seed)
    return real(folder, settings["data"], seed, settings["most"])


def returned(job: Job) -> Found:
    """The ten hardest items that a rule does not flag: how many are relevant, and how hard they are."""
    made = job.world
    scores = (made.queries @ made.items.T).astype(np.float64)
    n = len(made.labels)
    own = scores[np.arange(n), made.labels]
    ids = np.where(np.arange(scores.shape[1]) == made.labels[:, None], -1, np.arange(scores.shape[1]))
    names = {**vars(ns.detectors), "own": own, "scores": scores[ids >= 0], "known": made.known, "items": made.items}
    rule = eval(job.arm, names) if job.arm else None  # text of a declaration
    flagged = np.zeros(scores.shape, bool)
    if rule is not None:
        query = ns.Query(np.arange(n), vectors=made.queries)
        flagged = np.asarray(rule.suspicion(query, ns.Negatives(ids, scores=scores))) >= TRUSTED
    left = (ids >= 0) & ~flagged
    best = np.argsort(-np.where(left, scores, -np.inf), axis=1, kind="stable")[:, :K]
    filled = np.take_along_axis(left, best, axis=1)
    rows, slots = np.nonzero(filled)
    chosen = best[rows, slots]
    anchors, positives = made.relevant.pairs()
    unlabelled = positives != made.labels[anchors]
    anchors, positives = anchors[unlabelled], positives[unlabelled]
    taken = np.zeros(scores.shape, bool)
    taken[rows, chosen] = True
    return {
        "returned_percent": 100 * float(taken[anchors, positives].mean()),
        "missed_percent": 100 * float(left[anchors, positives].mean()),
        "false_percent": 100 * float(made.relevant.contains(rows, chosen).mean()),
        "mean_score": float(scores[rows, chosen].mean()),
        "filled_percent": 100 * float(filled.mean()),
    }


BANDS = "Bands(*(lambda found: (found.low, found.high))(choose_thresholds(scores)))"
RULES = {
    "naive": "",
    "rank window, 10": "RankWindow(10)",
    "margin, 0.05": "Margin(0.05, own)",
    "95 % of the positive": "ShareOfPositive(own, 0.95)",
    "bands, 0.1 %": BANDS,
    "calibrated, 0.05": "Calibrated(0.05).fit(own)",
    "calibrated, 0.1": "Calibrated(0.1).fit(own)",
    "near a positive, 0.98": "Duplicates(item_vectors=items, positives=known, cosine=0.98)",
}

STUDIES = (
    Study(
        name="detection-coverage",
        protocol="""\
Do the intervals of `mine` and `audit` hold the true share of false negatives? Planted worlds with a known truth,
and scifact, cranfield and packages of Debian with one label of each query. Intervals are 95 %: of what
`judge="auto"` returns, of the same after a review of 100 pairs, and of an audit of the nearest 10. An estimate that
is not given is not counted. Covered is the share of worlds whose interval holds the truth; 0.95 is promised.""",
        data=("scifact", "scifact-minilm", "cranfield", "debian-desc"),
        world=lambda folder, seed, settings: folder,
        run=coverage,
        arms={**CELLS, "scifact": "scifact", "cranfield": "cranfield", "debian": "debian"},
        seeds=tuple(range(5)),
        measures=COVERED,
        settings={"most": 1000},
        quick={"most": 100},
    ),
    *(
        Study(
            name=f"detection-rules-{data}",
            protocol="""\
Which rules keep false negatives out? One relevant item of each anchor is labelled, by chance; the others are
hidden. Every rule takes the ten hardest items that it does not flag. Returned: the share of hidden positives among
them; missed: the share that is not flagged. A rule that takes easier negatives returns fewer without being better:
the mean score says how hard they are.""",
            data={"planted": (), "scifact": ("scifact", "scifact-minilm"), "cranfield": ("cranfield",)}[data],
            world=hidden,
            run=returned,
            arms=RULES,
            seeds=tuple(range(5)),
            measures=("returned_percent", "missed_percent", "false_percent", "mean_score", "filled_percent"),
            claims=(
                Claim("the calibrated rule misses at most 5 %", "calibrated, 0.05", "naive", "missed_percent", -1, 95),
                Claim(
                    "and returns fewer than the 95 % rule",
                    "calibrated, 0.05",
                    "95 % of the positive",
                    "returned_percent",
                    -1,
                ),
            ),
            settings={"data": data, "most": 1000},
            quick={"most": 100},
        )
        for data in ("planted", "scifact", "cranfield")
    ),
)
