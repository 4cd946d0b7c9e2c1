"""Scores a submission to the board: `python benchmarks/board/score.py TRACK FOLDER --board DIR [--json FILE]`.

A submission is a folder with a file WORLD-SPLIT.npz for each split. This script imports NumPy and torch only.

    detect   suspicion (n, 50): from 0 to 1, how likely each of `candidates` is a false negative.
             Optional: share (3,), an estimate of the share of false negatives among the nearest 10, and its interval
    mine     ids (n, k), k from 1 to 10: rows of `documents`, -1 where a row is short

Measures of detect: average precision, in per cent (of CoDEx-S only among pairs that people verified); the error of the
stated share, how often its 95 % interval holds the truth, and how wide it is, in points.

Measures of mine: the share of false negatives, in per cent; the mean score; the mean score at 5 % false, for which
random negatives are mixed in until 5 % are left; the share of slots that are filled; nDCG@10 of the test part, after an
adapter x + x W was trained on these negatives by a recipe that never changes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 1
SPLITS = 5
DEPTH = 50  # candidates of a query
NEAREST = 10  # of these, the ones whose false share is stated; also the largest k
ALLOWED_FALSE = 0.05
TOP = 10
# The recipe. It was fixed before anything was scored, and is the same for every submission.
RECIPE = {"steps": 300, "batch": 64, "lr": 1e-3, "temperature": 0.05}
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # quantiles of Student's t for a mean of so many splits
Arrays = dict[str, NDArray[Any]]


def load(board: Path, name: str) -> tuple[Arrays, Arrays]:
    """What a method may read of a split, and the truth."""
    if not (board / f"{name}.npz").exists():
        sys.exit(f"{board} has no {name}.npz. Run: python -m benchmarks.board.worlds --data DIR --board {board}")
    with np.load(board / f"{name}.npz") as visible, np.load(board / f"{name}.truth.npz") as truth:
        return dict(visible), dict(truth)


def are_relevant(ids: NDArray[Any], relevant: NDArray[Any]) -> NDArray[np.bool_]:
    """(n, k) which documents of each query are relevant."""
    width = int(max(ids.max(initial=0), relevant[:, 1].max(initial=0))) + 1
    rows = np.arange(len(ids))[:, None]
    found = np.isin(rows * width + ids, relevant[:, 0].astype(np.int64) * width + relevant[:, 1])
    return np.asarray(found & (ids >= 0))


def average_precision(suspicion: NDArray[Any], is_false: NDArray[np.bool_]) -> float:
    """Of (m,) pairs: the mean precision at each false negative; pairs of equal suspicion share theirs."""
    values, groups = np.unique(-suspicion, return_inverse=True)
    hits = np.bincount(groups, weights=is_false, minlength=len(values))
    sizes = np.bincount(groups, minlength=len(values))
    precision = np.cumsum(hits) / np.cumsum(sizes)
    return float((precision * hits).sum() / hits.sum())


def wrong_suspicion(submitted: Arrays, visible: Arrays) -> str | None:
    """What is wrong with a submission to detect."""
    suspicion = submitted.get("suspicion")
    if suspicion is None or suspicion.shape != visible["candidates"].shape:
        return f"suspicion must have shape {visible['candidates'].shape}"
    if not ((suspicion >= 0) & (suspicion <= 1)).all():
        return "suspicion must be numbers from 0 to 1"
    return None


def score_detect(submitted: Arrays, visible: Arrays, truth: Arrays) -> dict[str, float]:
    """Measures of a split."""
    suspicion = np.asarray(submitted["suspicion"], np.float64)
    is_false = are_relevant(visible["candidates"], truth["relevant"])
    is_verified = np.ones_like(is_false)
    if "verified_negative" in truth:
        is_verified = is_false | are_relevant(visible["candidates"], truth["verified_negative"])
    measures = {"average_precision": 100 * average_precision(suspicion[is_verified], is_false[is_verified])}
    if "share" in submitted:
        estimate, lower, upper = (float(value) for value in submitted["share"])
        true_share = float(is_false[:, :NEAREST].mean())
        measures["share_error"] = 100 * abs(estimate - true_share)
        measures["covered"] = 100 * float(lower <= true_share <= upper)
        measures["width"] = 100 * (upper - lower)
    return measures


def wrong_ids(submitted: Arrays, visible: Arrays) -> str | None:
    """What is wrong with a submission to mine."""
    ids = submitted.get("ids")
    n_queries, n_documents = len(visible["queries"]), len(visible["documents"])
    if ids is None or ids.ndim != 2 or len(ids) != n_queries or not 1 <= ids.shape[1] <= NEAREST:
        return f"ids must have shape ({n_queries}, k), k from 1 to {NEAREST}"
    if ids.dtype.kind not in "iu" or ids.min() < -1 or ids.max() >= n_documents:
        return f"ids must be integers from -1 to {n_documents - 1}, rows of documents"
    if (ids == visible["labelled"][:, None]).any():
        return "ids must not have the labelled positive of their query"
    ordered = np.sort(ids, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        return "ids must differ within a row"
    return None


def score_mine(submitted: Arrays, visible: Arrays, truth: Arrays) -> dict[str, float]:
    """Measures of a split."""
    ids = submitted["ids"].astype(np.int64)
    is_filled = ids >= 0
    queries, documents = visible["queries"], visible["documents"]
    scores = np.einsum("nd,nkd->nk", queries, documents[ids])[is_filled]
    false_share = float(are_relevant(ids, truth["relevant"])[is_filled].mean()) if is_filled.any() else 0.0
    mean_score = float(scores.mean()) if is_filled.any() else 0.0
    random_score = float(queries.mean(axis=0) @ documents.mean(axis=0))
    kept = min(1.0, ALLOWED_FALSE / false_share) if false_share else 1.0
    return {
        "false_percent": 100 * false_share,
        "score": mean_score,
        "score_at_5_percent": kept * mean_score + (1 - kept) * random_score,
        "filled_percent": 100 * float(is_filled.mean()),
        "ndcg": 100 * trained_ndcg(ids, visible, truth),
    }


def trained_ndcg(ids: NDArray[np.int64], visible: Arrays, truth: Arrays) -> float:
    """nDCG@10 of the test part after training x + x W with InfoNCE on these negatives and those of the batch."""
    import torch
    from torch.nn.functional import cross_entropy, normalize

    queries, documents = torch.from_numpy(visible["queries"]), torch.from_numpy(visible["documents"])
    labelled = torch.from_numpy(visible["labelled"].astype(np.int64))
    negatives = torch.from_numpy(ids)
    weights = torch.zeros(queries.shape[1], queries.shape[1], requires_grad=True)
    optimiser = torch.optim.Adam([weights], lr=RECIPE["lr"])
    order = np.random.default_rng(0)

    def adapted(vectors: torch.Tensor) -> torch.Tensor:
        return normalize(vectors + vectors @ weights, dim=-1)

    for _step in range(int(RECIPE["steps"])):
        rows = torch.from_numpy(order.choice(len(queries), min(int(RECIPE["batch"]), len(queries)), replace=False))
        anchors = adapted(queries[rows])
        in_batch = anchors @ adapted(documents[labelled[rows]]).T
        same_positive = labelled[rows][:, None] == labelled[rows]
        in_batch = in_batch.masked_fill(same_positive & ~torch.eye(len(rows), dtype=torch.bool), -torch.inf)
        hard = torch.einsum("bd,bkd->bk", anchors, adapted(documents[negatives[rows].clamp(min=0)]))
        hard = hard.masked_fill(negatives[rows] < 0, -torch.inf)
        logits = torch.cat([in_batch, hard], dim=1) / RECIPE["temperature"]
        loss = cross_entropy(logits, torch.arange(len(rows)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        test_queries, test_documents = (
            adapted(torch.from_numpy(visible[f"test_{side}"])) for side in ("queries", "documents")
        )
        best = (test_queries @ test_documents.T).topk(TOP, dim=1).indices.numpy()
    return ndcg(best, truth["test_relevant"])


def ndcg(ranked: NDArray[Any], relevant: NDArray[Any]) -> float:
    """The mean nDCG of the queries that have relevant documents."""
    counts = np.bincount(relevant[:, 0], minlength=len(ranked))
    gains = 1 / np.log2(np.arange(TOP) + 2)
    ideal = np.cumsum(gains)[np.clip(counts, 1, TOP) - 1]
    found = (are_relevant(ranked, relevant) * gains).sum(axis=1) / ideal
    return float(found[counts > 0].mean())


TRACKS = {"detect": (wrong_suspicion, score_detect), "mine": (wrong_ids, score_mine)}


def score(track: str, folder: Path, board: Path) -> dict[str, dict[str, list[float]]]:
    """{world: {measure: one value a split}} of the splits that the folder has."""
    wrong, measure = TRACKS[track]
    results: dict[str, dict[str, list[float]]] = {}
    for path in sorted(folder.glob("*.npz")):
        world, _, _split = path.stem.rpartition("-")
        visible, truth = load(board, path.stem)
        with np.load(path) as file:
            submitted = dict(file)
        problem = wrong(submitted, visible)
        if problem is not None:
            sys.exit(f"{path}: {problem}")
        for name, value in measure(submitted, visible, truth).items():
            results.setdefault(world, {}).setdefault(name, []).append(value)
    if not results:
        sys.exit(f"{folder} has no file WORLD-SPLIT.npz")
    return results


def summary(values: list[float]) -> dict[str, float]:
    """The mean, and half of its 95 % interval over the splits."""
    n = len(values)
    half = T_95[n] * float(np.std(values, ddof=1)) / n**0.5 if n in T_95 else float("nan")
    return {"mean": float(np.mean(values)), "half": half, "splits": n}


def main() -> None:
    """Score, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("track", help=f"one of {', '.join(sorted(TRACKS))}")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--board", type=Path, required=True, help="the folder of benchmarks.board.worlds")
    parser.add_argument("--json", type=Path, help="write the measures to this file")
    args = parser.parse_args()
    if args.track not in TRACKS:
        sys.exit(f"benchmarks.board.score: TRACK must be one of {', '.join(sorted(TRACKS))}, got {args.track!r}")
    results = score(args.track, args.folder, args.board)
    table = {world: {name: summary(values) for name, values in found.items()} for world, found in results.items()}
    for world, found in table.items():
        cells = (f"{name} {cell['mean']:.2f} +- {cell['half']:.2f}" for name, cell in found.items())
        print(f"{world:16s} {', '.join(cells)}")
    if args.json:
        args.json.write_text(json.dumps({"version": VERSION, "track": args.track, "worlds": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
