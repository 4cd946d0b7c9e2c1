"""Does judging mined negatives pay in training? An adapter of text vectors, trained on the negatives of each rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

import naysay as ns
from benchmarks import measures, readers
from benchmarks.readers import Collection, Ids
from benchmarks.study import Claim, Found, Job, Settings, Study

TOP = 10
TRAIN, VALIDATION = 0.5, 0.2  # shares of sources, or of groups of documents; the rest is the test part
MOST_VALIDATED, MOST_TESTED = 1500, 3000  # queries
SIZES = {"deb": (2, 20), "debH": (4, 20), "dose": (6, 20)}  # packages of a source


@dataclass(frozen=True, eq=False)
class Part:
    """Queries and documents of one part, and its relevant pairs as rows of these."""

    queries: Tensor
    documents: Tensor
    relevant: ns.Positives


@dataclass(frozen=True, eq=False)
class World:
    """Three parts that share no document.

    labels    (anchors,) the labelled positive of each training query, one of the relevant documents by chance
    ignored   (anchors, items) pairs that no arm may return, or None
    """

    train: Part
    labels: Ids
    validation: Part
    test: Part
    ignored: tuple[Ids, Ids] | None = None


class Arm(NamedTuple):
    """Where the negatives of an anchor come from.

    source   "mine", "oracle" (the nearest that are not relevant), "random", "in-batch" or "none" (not trained)
    """

    source: str = "mine"
    judge: str | None = None
    first_rank: int = 1
    without_relevant: bool = False


# ---- worlds ----------------------------------------------------------------------------------------------------------


def world(folder: Path, seed: int, settings: Settings) -> World:
    """The parts of a seed."""
    rng = ns.rng_for(seed)
    if settings["data"] == "scifact":
        return by_document(readers.scifact(folder), rng)
    made = by_source(readers.packages(folder), SIZES[settings["data"]], rng, settings["most"])
    return made if settings["dose"] is None else at_dose(made, settings["dose"], settings["k"], seed)


def by_source(texts: Collection, sizes: tuple[int, int], rng: np.random.Generator, most: int | None) -> World:
    """Packages of sources of some sizes, split by source: a short description against the long ones of its source."""
    source = texts.source
    if source is None:
        message = "these texts have no sources"
        raise ValueError(message)
    counts = np.bincount(source)
    chosen = rng.permutation(np.flatnonzero((counts >= sizes[0]) & (counts <= sizes[1])))[:most]
    ends = (np.array([TRAIN, TRAIN + VALIDATION]) * len(chosen)).astype(int)
    rows = [np.flatnonzero(np.isin(source, part)) for part in np.split(chosen, ends)]
    order = rng.permutation(rows[0])
    anchors = np.sort(order[np.unique(source[order], return_index=True)[1]])  # one of each source
    asked = [
        anchors,
        *(np.sort(rng.permutation(part)[:n]) for part, n in zip(rows[1:], (MOST_VALIDATED, MOST_TESTED), strict=True)),
    ]
    parts = []
    for queries, documents in zip(asked, rows, strict=True):
        same = source[queries][:, None] == source[documents]
        relevant = ns.Positives.from_pairs(*np.nonzero(same), *same.shape)
        parts.append(_part(texts, queries, documents, relevant))
    return _labelled(*parts, rng)


def by_document(texts: Collection, rng: np.random.Generator) -> World:
    """Queries split so that no two parts share a document; a document without queries is of one part, by chance."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n, m = len(texts.queries), len(texts.documents)
    graph = coo_matrix((np.ones(len(texts.items)), (texts.anchors, n + texts.items)), shape=(n + m, n + m))
    group = connected_components(graph, directed=False)[1]
    part_of = rng.choice(3, group.max() + 1, p=[TRAIN, VALIDATION, 1 - TRAIN - VALIDATION])[group]
    asked = np.unique(texts.anchors)
    parts = []
    for which in range(3):
        queries, documents = asked[part_of[asked] == which], np.flatnonzero(part_of[n:] == which)
        mine = part_of[texts.anchors] == which
        pairs = np.searchsorted(queries, texts.anchors[mine]), np.searchsorted(documents, texts.items[mine])
        parts.append(_part(texts, queries, documents, ns.Positives.from_pairs(*pairs, len(queries), len(documents))))
    return _labelled(*parts, rng)


def _part(texts: Collection, queries: Ids, documents: Ids, relevant: ns.Positives) -> Part:
    return Part(torch.from_numpy(texts.queries[queries]), torch.from_numpy(texts.documents[documents]), relevant)


def _labelled(train: Part, validation: Part, test: Part, rng: np.random.Generator) -> World:
    """Training and validation know one relevant document of each query; the test part knows all."""
    checked = one_of_each(validation.relevant, rng)
    known = ns.Positives.from_pairs(np.arange(len(checked)), checked, len(checked), validation.relevant.n_items)
    return World(train, one_of_each(train.relevant, rng), replace(validation, relevant=known), test)


def one_of_each(relevant: ns.Positives, rng: np.random.Generator) -> Ids:
    """(anchors,) one item of each anchor, by chance; every anchor has one."""
    anchors, items = relevant.pairs()
    order = np.lexsort((rng.random(len(anchors)), anchors))
    return items[order][np.unique(anchors[order], return_index=True)[1]].astype(np.int64)


def at_dose(made: World, dose: float, k: int, seed: int) -> World:
    """The same world with so many false negatives among the nearest k that their share is `dose`.

    Every unlabelled relevant pair has a random number; those above a limit may be returned by no arm, as if somebody
    had found them. The limit is found by bisection. All else is as before: anchors, labels, documents, test.
    """
    rows, items = (ids.astype(np.int64) for ids in made.train.relevant.pairs())
    hidden = items != made.labels[rows]
    rows, items = rows[hidden], items[hidden]
    chance = ns.rng_for(seed, 1).random(len(rows))
    near = ns.mine(made.train.queries.numpy(), made.train.documents.numpy(), made.labels, k + 20, judge=None).ids
    not_relevant = 2.0
    table = np.full((len(near), len(made.train.documents)), not_relevant, np.float32)
    table[rows, items] = chance
    of_near = np.take_along_axis(table, near, axis=1)

    def share(limit: float) -> float:
        left = (of_near == not_relevant) | (of_near < limit)
        taken = left & (left.cumsum(axis=1) <= k)
        return float((of_near[taken] < not_relevant).mean())

    low, high = 0.0, 1.0
    for _ in range(30 if dose else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < dose else (low, middle)
    away = chance >= (high if dose else 0.0)
    return replace(made, ignored=(rows[away], items[away]))


# ---- arms ------------------------------------------------------------------------------------------------------------


def negatives_of(job: Job) -> NDArray[np.int64]:
    """(anchors, k) the negatives of an arm, -1 where a slot is empty."""
    made, arm, k = job.world, job.arm, job.settings["k"]
    vectors = made.train.queries.numpy(), made.train.documents.numpy()
    n = len(made.labels)
    if arm.source in ("in-batch", "none"):
        return np.empty((n, 0), np.int64)
    known = ns.Positives.from_pairs(np.arange(n), made.labels, n, len(vectors[1]))
    if arm.source == "random":
        return np.asarray(ns.pools.Everything(known).draw(ns.Query(np.arange(n)), k, rng=ns.rng_for(job.seed)).ids)
    if arm.source == "oracle":
        known = made.train.relevant
    ignored = [
        pairs for pairs in (made.ignored, made.train.relevant.pairs() if arm.without_relevant else None) if pairs
    ]
    ignore = tuple(np.concatenate(side) for side in zip(*ignored, strict=True)) if ignored else None
    ranks = (arm.first_rank, None) if arm.first_rank > 1 else None
    mined = ns.mine(*vectors, known, k, judge=arm.judge, ignore=ignore, rank_range=ranks, seed=job.seed)
    return mined.ids


def loss_of(made: World, adapted: Any, negatives: NDArray[np.int64], rows: Ids, temperature: float) -> Tensor:
    """InfoNCE of a batch of anchors: against the other positives of the batch, and each against its own negatives."""
    queries, positives = adapted(made.train.queries[rows]), adapted(made.train.documents[made.labels[rows]])
    scores, mask = queries @ positives.T, ~torch.eye(len(rows), dtype=torch.bool)
    own = torch.diagonal(scores)
    ids = torch.from_numpy(negatives[rows])
    if ids.shape[1]:
        hard = adapted(made.train.documents[ids.clamp(min=0)])
        scores = torch.cat([scores, torch.einsum("bd,bkd->bk", queries, hard)], dim=1)
        mask = torch.cat([mask, ids >= 0], dim=1)
    return ns.losses.info_nce(own, scores, temperature=temperature, mask=mask).mean()


def run(job: Job) -> Found:
    """Train x + x W with the negatives of an arm, and test the epoch that is best on labelled validation pairs."""
    made, settings = job.world, job.settings
    negatives = negatives_of(job)
    filled = negatives >= 0
    found: Found = {"filled": float(filled.mean()) if filled.size else 0.0}
    if filled.any():
        rows, slots = np.nonzero(filled)
        ids = negatives[rows, slots]
        found["false_percent"] = 100 * float(made.train.relevant.contains(rows, ids).mean())
        pairs = made.train.queries[rows] * made.train.documents[ids]
        found["hardness"] = float(pairs.sum(dim=1).mean())
    weights = torch.zeros(made.train.queries.shape[1], made.train.queries.shape[1], requires_grad=True)

    def adapted(vectors: Tensor) -> Tensor:
        return normalize(vectors + vectors @ weights, dim=-1)

    def quality(part: Part) -> float:
        with torch.no_grad():
            return measures.ranked(adapted(part.queries), adapted(part.documents), part.relevant, TOP)["ndcg"]

    optimiser = torch.optim.Adam([weights], lr=settings["lr"])
    order = np.random.default_rng(job.seed)
    best, kept, epochs = quality(made.validation), weights.detach().clone(), settings["epochs"]
    best_epoch = 0
    for epoch in range(1, epochs + 1) if job.arm.source != "none" else ():
        for rows in np.array_split(order.permutation(len(made.labels)), max(1, len(made.labels) // settings["batch"])):
            optimiser.zero_grad()
            loss_of(made, adapted, negatives, rows, settings["temperature"]).backward()
            optimiser.step()
        value = quality(made.validation)
        if value > best:
            best, best_epoch, kept = value, epoch, weights.detach().clone()
        elif epoch >= best_epoch + settings["patience"]:
            break
    with torch.no_grad():
        weights.copy_(kept)
    return {"ndcg": quality(made.test), "validation": best, "epoch": best_epoch, **found}


# ---- declarations ----------------------------------------------------------------------------------------------------
ARMS = {
    "not trained": Arm("none"),
    "in-batch only": Arm("in-batch"),
    "random": Arm("random"),
    "nearest": Arm(),
    "share 0.95": Arm(judge="share:0.95"),
    "margin 0.05": Arm(judge="margin:0.05"),
    "auto": Arm(judge="auto"),
    "auto, from rank 21": Arm(judge="auto", first_rank=21),
    "oracle": Arm("oracle"),
    "oracle below share": Arm(judge="share:0.95", without_relevant=True),
}
SETTINGS = {"k": 10, "batch": 64, "epochs": 12, "patience": 3, "dose": None, "most": None}
QUICK = {"epochs": 1, "most": 60, "k": 4}
PROTOCOL = """\
Does judging pay? {data} An adapter x + x W of fixed vectors is trained with InfoNCE in batches of 64, with k = 10
negatives of its own for each anchor, at temperature {temperature:g}. One relevant document of each query is
labelled, by chance. The learning rate is chosen for each arm on a split of its own, the epoch in each run, both by
nDCG@10 of labelled validation pairs. The test part is evaluated once a run, by all that is relevant."""
PACKAGES = (
    "The short description of a Debian package against the long ones; packages of one source, of {} to {} packages, "
    "are relevant to each other. TF-IDF and singular vectors. Sources are split 50 / 20 / 30."
)
TEXTS = {
    **{name: PACKAGES.format(*sizes) for name, sizes in SIZES.items()},
    "scifact": "Claims against abstracts by all-MiniLM-L6-v2; no two parts share a document.",
}
CLAIMS = (
    Claim("judged negatives are better than the nearest", "auto", "nearest", "ndcg"),
    Claim("judged negatives are better than the 95 % rule", "auto", "share 0.95", "ndcg"),
    Claim("judged negatives are better than in-batch only", "auto", "in-batch only", "ndcg"),
    Claim("an oracle is not better than judged negatives", "oracle", "auto", "ndcg", 0, 0.005),
)


def declared(data: str, temperature: float, dose: float | None = None) -> Study:
    """One data set at one temperature, at a dose of false negatives if one is given."""
    at = "" if dose is None else f"-{100 * dose:g}"
    text = TEXTS[data]
    if dose is not None:
        text += (
            f" Some unlabelled relevant pairs are known to all arms, so that {100 * dose:g} % of the nearest are false."
        )
    return Study(
        name=f"text-{data}{at}-{temperature:g}",
        protocol=PROTOCOL.format(data=text, temperature=temperature),
        data=("scifact", "scifact-minilm") if data == "scifact" else ("debian-desc",),
        world=world,
        run=run,
        arms=ARMS,
        seeds=tuple(range(10)),
        measures=("ndcg", "validation", "false_percent", "hardness", "filled", "epoch"),
        claims=CLAIMS,
        settings={**SETTINGS, "data": data, "temperature": temperature, "dose": dose},
        quick=QUICK,
        grid=tuple({"lr": lr} for lr in ((3e-4, 1e-3, 3e-3) if data == "scifact" else (3e-4, 1e-3))),
    )


STUDIES = (
    *(declared(data, temperature) for data in ("debH", "deb") for temperature in (0.02, 0.05)),
    *(declared("scifact", temperature) for temperature in (0.02, 0.05)),
    *(declared("dose", 0.02, dose) for dose in (0.0, 0.05, 0.1, 0.2, 0.4)),
)
