"""Which negatives train the best retriever: an adapter on `scifact`, with seven kinds of negatives.

    python -m benchmarks.training.retrieval DATA [--seeds 3] [--out FILE]

DATA   a folder with scifact and scifact-minilm

The encoder is fixed; a d x d matrix W is trained, starting at 0: a vector x becomes x + W x, normalised, for queries
and documents. Each arm uses the other positives of the batch as negatives, and k of its own. Half of the positives of
anchors with several are hidden, in the training and in the test part; the study counts how many an arm returns as
negatives (those of the test part without training on them). The learning rate and the number of epochs are chosen for
each arm and seed on a fifth of the training queries, by nDCG@10; the test part is evaluated once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import naysay as ns
from benchmarks.harness import write
from benchmarks.hidden_positives.readers import FILES, Ids, check_files, judgements
from benchmarks.training.seed_summaries import spread
from naysay.detectors import Calibrated, ShareOfPositive
from naysay.mining import mine
from naysay.search import search
from naysay.search._scores import lowest_of

K, BATCH, TEMPERATURE, EPOCHS = 10, 64, 0.05, 20
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
BASE = "share 0.95 (sentence-transformers)"
Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Data:
    """Unit vectors of queries and documents, and the pairs of both parts."""

    queries: Vectors
    documents: Vectors
    train: tuple[Ids, Ids]
    test: tuple[Ids, Ids]


def read(folder: Path) -> Data:
    """The stored vectors and judgements."""
    check_files(folder, ["scifact"])
    with np.load(folder / FILES["scifact"][3]) as file:
        queries, documents = (_unit(file[name].astype(np.float32)) for name in ("query", "doc"))
        places = [{name: place for place, name in enumerate(file[key].tolist())} for key in ("query_id", "doc_id")]
    parts = []
    for name in FILES["scifact"][1:3]:
        rows = [row for row in judgements(folder / name) if row[2] > 0]
        codes = np.unique([places[0][row[0]] * len(documents) + places[1][row[1]] for row in rows])
        parts.append((codes // len(documents), codes % len(documents)))
    return Data(queries, documents, parts[0], parts[1])


def _unit(vectors: Vectors) -> Vectors:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def hide(pairs: tuple[Ids, Ids], rng: np.random.Generator) -> tuple[tuple[Ids, Ids], tuple[Ids, Ids]]:
    """Kept and hidden pairs: of an anchor with m positives, m // 2 are hidden, by chance."""
    anchors, items = pairs
    order = np.lexsort((rng.random(len(anchors)), anchors))
    anchors, items = anchors[order], items[order]
    starts = np.searchsorted(anchors, anchors)
    counts = np.bincount(anchors)[anchors]
    away = np.arange(len(anchors)) - starts < counts // 2
    return (anchors[~away], items[~away]), (anchors[away], items[away])


Choose = Callable[[Data, tuple[Ids, Ids], int], Ids]


def _mined(data: Data, kept: tuple[Ids, Ids], seed: int, judge: Any, **how: Any) -> Ids:
    """(n, K) for the anchors of the pairs, in order."""
    asked, rows = np.unique(kept[0], return_inverse=True)
    given = None if judge is None or isinstance(judge, str) else judge(data, rows, kept[1], asked)
    named = given if given is not None else judge
    return mine(data.queries[asked], data.documents, (rows, kept[1]), K, judge=named, seed=seed, **how).ids


def _share(data: Data, rows: Ids, items: Ids, asked: Ids) -> ShareOfPositive:
    scores = np.einsum("pd,pd->p", data.queries[asked][rows], data.documents[items])
    return ShareOfPositive(lowest_of(rows, scores, len(asked)), 0.95)


def _random(data: Data, kept: tuple[Ids, Ids], seed: int) -> Ids:
    asked, rows = np.unique(kept[0], return_inverse=True)
    known = ns.Positives.from_pairs(rows, kept[1], len(asked), len(data.documents))
    drawn = ns.pools.Everything(known).draw(ns.Query(np.arange(len(asked))), K, rng=ns.rng_for(seed))
    return np.asarray(drawn.ids)


def _none(data: Data, kept: tuple[Ids, Ids], seed: int) -> Ids:
    return np.empty((len(np.unique(kept[0])), 0), np.int64)


ARMS: dict[str, Choose] = {
    "in the batch only": _none,
    "random": _random,
    "nearest, no judge": lambda data, kept, seed: _mined(data, kept, seed, None),
    "ranks 11 to 210, by chance": lambda data, kept, seed: _mined(
        data, kept, seed, None, rank_range=(11, 210), select="random"
    ),
    BASE: lambda data, kept, seed: _mined(data, kept, seed, _share, depth=10 * K),
    "calibrated, alpha 0.05 (auto)": lambda data, kept, seed: _mined(data, kept, seed, "auto"),
    "calibrated, alpha 0.2": lambda data, kept, seed: _mined(data, kept, seed, lambda *_: Calibrated(0.2)),
}


class Adapter:
    """x + W x, of unit length."""

    def __init__(self, width: int, rate: float) -> None:
        """W is 0 at first."""
        self.matrix = torch.zeros(width, width, requires_grad=True)
        self.optimiser = torch.optim.Adam([self.matrix], lr=rate)

    def __call__(self, vectors: Tensor) -> Tensor:
        """The adapted vectors."""
        return torch.nn.functional.normalize(vectors + vectors @ self.matrix, dim=-1)


def train(
    data: Data,
    pairs: tuple[Ids, Ids],
    negatives: Ids,
    rate: float,
    seed: int,
    look: Callable[[Vectors, Vectors], float],
) -> tuple[list[float], list[Tensor]]:
    """What `look` says of the adapted vectors before the first and after each epoch, and W each time."""
    asked = np.unique(pairs[0])
    queries, documents = torch.from_numpy(data.queries), torch.from_numpy(data.documents)
    known = ns.Positives.from_pairs(pairs[0], pairs[1], len(queries), len(documents))
    model, rng = Adapter(queries.shape[1], rate), np.random.default_rng(seed)
    values, kept = [_looked(model, queries, documents, look)], [model.matrix.detach().clone()]
    for _ in range(EPOCHS):
        order = rng.permutation(len(pairs[0]))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            anchors, items = pairs[0][rows], pairs[1][rows]
            own = negatives[np.searchsorted(asked, anchors)]
            shared = np.broadcast_to(items, (len(rows), len(rows)))
            mask = np.concatenate([~known.contains(anchors, shared), own >= 0], axis=1)
            near = model(queries[anchors])
            positive = model(documents[items])
            hard = model(documents[np.maximum(own, 0)])
            scores = torch.cat([near @ positive.T, torch.einsum("bd,bkd->bk", near, hard)], dim=1)
            of_own = (near * positive).sum(dim=1)
            loss = ns.losses.info_nce(of_own, scores, temperature=TEMPERATURE, mask=torch.from_numpy(mask)).mean()
            model.optimiser.zero_grad()
            loss.backward()
            model.optimiser.step()
        values.append(_looked(model, queries, documents, look))
        kept.append(model.matrix.detach().clone())
    return values, kept


def _looked(model: Adapter, queries: Tensor, documents: Tensor, look: Callable[[Vectors, Vectors], float]) -> float:
    with torch.no_grad():
        return look(model(queries).numpy(), model(documents).numpy())


def ndcg(queries: Vectors, documents: Vectors, pairs: tuple[Ids, Ids], top: int = 10) -> float:
    """The mean nDCG@10 of the queries of the pairs, all documents ranked."""
    asked, rows = np.unique(pairs[0], return_inverse=True)
    right = ns.Positives.from_pairs(rows, pairs[1], len(asked), len(documents))
    found = search(queries[asked], documents, top).ids
    gains = 1 / np.log2(np.arange(top) + 2)
    best = np.cumsum(gains)[np.minimum(np.bincount(rows), top) - 1]
    return float(((right.contains(np.arange(len(asked)), found) * gains).sum(axis=1) / best).mean())


def returned(data: Data, kept: tuple[Ids, Ids], hidden: tuple[Ids, Ids], negatives: Ids) -> float:
    """The share of hidden positives that are among the negatives of their anchor."""
    rows = np.searchsorted(np.unique(kept[0]), hidden[0])
    return float((negatives[rows] == hidden[1][:, None]).any(axis=1).mean())


def one_seed(data: Data, seed: int) -> dict[str, dict[str, float]]:
    """All arms with one split, one hiding and one order of batches."""
    rng = np.random.default_rng(seed)
    kept, hidden = hide(data.train, rng)
    test_kept, test_hidden = hide(data.test, rng)
    held = rng.permutation(np.unique(kept[0]))[: len(np.unique(kept[0])) // 5]
    trained, checked = (tuple(side[np.isin(kept[0], held) == flag] for side in kept) for flag in (False, True))
    rows: dict[str, dict[str, float]] = {}
    for name, choose in ARMS.items():
        start = time.process_time()
        negatives = choose(data, kept, seed)
        own = negatives[~np.isin(np.unique(kept[0]), held)]
        best = (-1.0, 0.0, 0, torch.empty(0))
        for rate in RATES:
            values, matrices = train(data, trained, own, rate, seed, lambda q, d: ndcg(q, d, checked))
            epoch = int(np.argmax(values))
            best = max(best, (values[epoch], rate, epoch, matrices[epoch]), key=lambda found: found[0])
        model = Adapter(data.queries.shape[1], 0.0)
        model.matrix = best[3]
        both = (torch.from_numpy(data.queries), torch.from_numpy(data.documents))
        rows[name] = {
            "ndcg": _looked(model, *both, lambda q, d: ndcg(q, d, data.test)),
            "validation_ndcg": best[0],
            "rate": best[1],
            "epoch": best[2],
            "mean_score": _mean_score(data, kept, negatives),
            "filled": float((negatives >= 0).mean()) if negatives.size else 0.0,
            "hidden_returned": returned(data, kept, hidden, negatives),
            "test_hidden_returned": returned(data, test_kept, test_hidden, choose(data, test_kept, seed)),
            "processor_seconds": time.process_time() - start,
        }
        print(seed, name, rows[name], file=sys.stderr, flush=True)
    rows["not trained"] = {"ndcg": ndcg(data.queries, data.documents, data.test)}
    rows["sizes"] = {"hidden": len(hidden[0]), "test_hidden": len(test_hidden[0]), "trained_pairs": len(trained[0])}
    return rows


def _mean_score(data: Data, kept: tuple[Ids, Ids], negatives: Ids) -> float | None:
    """The mean cosine of the negatives: how hard they are."""
    if not negatives.size:
        return None
    rows, slots = np.nonzero(negatives >= 0)
    pairs = data.queries[np.unique(kept[0])[rows]], data.documents[negatives[rows, slots]]
    return float(np.einsum("pd,pd->p", *pairs).mean())


def summary(seeds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Each arm over seeds, and its nDCG against the base arm of the same seeds."""
    arms: dict[str, Any] = {}
    for name in ARMS:
        rows = [seed[name] for seed in seeds]
        found = {key: spread([row[key] for row in rows]) for key in rows[0] if rows[0][key] is not None}
        pairs = [(seed[name]["ndcg"], seed[BASE]["ndcg"]) for seed in seeds]
        arms[name] = found | {"ndcg_difference": spread([one - other for one, other in pairs])}
    return {"not_trained_ndcg": seeds[0]["not trained"]["ndcg"], "sizes": seeds[0]["sizes"], "base": BASE, "arms": arms}


def main() -> None:
    """Run all seeds and write results/retrieval.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    data = read(args.data)
    settings = {"k": K, "batch": BATCH, "temperature": TEMPERATURE, "epochs": EPOCHS, "rates": RATES}
    shape = {"queries": len(data.queries), "documents": len(data.documents), "width": data.queries.shape[1]}
    pairs = {"train_pairs": len(data.train[0]), "test_pairs": len(data.test[0]), "torch": torch.__version__}
    found = summary([one_seed(data, seed) for seed in range(args.seeds)])
    write("retrieval", {**settings, **shape, **pairs, "seeds": args.seeds, **found}, args.out)


if __name__ == "__main__":
    main()
