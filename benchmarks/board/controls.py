"""Fills the tables of the board: `python -m benchmarks.board.controls --board DIR [--data DIR] [--controls NAME ...]`.

Writes the submission of every control to DIR/controls/TRACK/NAME, scores it as any other one, and writes
results/board.json. A control that is scored already is not run again. The samplers of the track "sample" are trained
where --data is given, the folder of `benchmarks.data`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.board import sample, score
from benchmarks.board.score import NEAREST, SPLITS, VERSION, Arrays, are_relevant
from benchmarks.board.worlds import WORLDS
from benchmarks.harness import read, write

K = 8
ANSWERS = 100  # of the reviewer
SHARE = 0.95  # of the positive's score
FAR_RANKS = (10, 210)

Ids = NDArray[np.int64]
Control = Callable[[Arrays, Arrays, int], Arrays]


def labelled(visible: Arrays) -> ns.Positives:
    """The labelled positive of each query."""
    items = visible["labelled"].astype(np.int64)
    return ns.Positives.from_pairs(np.arange(len(items)), items, len(items), len(visible["documents"]))


def mined(visible: Arrays, **options: Any) -> ns.Mined:
    """Negatives by `ns.mine`."""
    return ns.mine(visible["queries"], visible["documents"], labelled(visible), K, **options)


def truth_as_reviewer(truth: Arrays, n_documents: int) -> Callable[[Any], NDArray[np.float64]]:
    """A reviewer who knows all relevant pairs."""
    codes = truth["relevant"][:, 0].astype(np.int64) * n_documents + truth["relevant"][:, 1]

    def review(pairs: Any) -> NDArray[np.float64]:
        return np.isin(np.asarray(pairs.anchors) * n_documents + np.asarray(pairs.items), codes).astype(np.float64)

    return review


# ---- mine ------------------------------------------------------------------------------------------------------------


def mine_random(visible: Arrays, _truth: Arrays, split: int) -> Arrays:
    """Uniform documents."""
    query = ns.Query(np.arange(len(visible["queries"])))
    return {"ids": np.asarray(ns.pools.Everything(labelled(visible)).draw(query, K, rng=ns.rng_for(split)).ids)}


def mine_far(visible: Arrays, _truth: Arrays, split: int) -> Arrays:
    """At random among ranks 10 to 210, as FlagEmbedding does."""
    return {"ids": mined(visible, judge=None, rank_range=FAR_RANKS, select="random", seed=split).ids}


def mine_by(judge: str | None) -> Control:
    """The hardest that a judge keeps."""

    def control(visible: Arrays, _truth: Arrays, split: int) -> Arrays:
        return {"ids": mined(visible, judge=judge, seed=split).ids}

    return control


def mine_reviewed(visible: Arrays, truth: Arrays, split: int) -> Arrays:
    """`auto` with 100 answers of somebody who knows."""
    reviewer = truth_as_reviewer(truth, len(visible["documents"]))
    return {"ids": mined(visible, reviewer=reviewer, review=ANSWERS, seed=split).ids}


def mine_oracle(visible: Arrays, truth: Arrays, _split: int) -> Arrays:
    """The nearest that are not relevant."""
    rows, items = truth["relevant"].T.astype(np.int64)
    known = ns.Positives.from_pairs(rows, items, len(visible["queries"]), len(visible["documents"]))
    return {"ids": ns.mine(visible["queries"], visible["documents"], known, K, judge=None).ids}


def mine_sentence_transformers(visible: Arrays, _truth: Arrays, _split: int) -> Arrays:
    """The miner of sentence-transformers itself, with its rule of 95 %; its model looks up the vectors of the board."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import mine_hard_negatives
    from torch.nn import Identity

    class Stored(SentenceTransformer):
        """A model that looks its vectors up; a text is "q" or "d" and a row."""

        def __init__(self) -> None:
            super().__init__(modules=[Identity()], device="cpu")

        def encode(self, sentences: Any, **_options: Any) -> NDArray[Any]:
            tables = {"q": visible["queries"], "d": visible["documents"]}
            return np.stack([tables[text[0]][int(text[1:])] for text in sentences])

        encode_query = encode_document = encode

    pairs = {
        "query": [f"q{row}" for row in range(len(visible["queries"]))],
        "answer": [f"d{row}" for row in visible["labelled"]],
    }
    corpus = [f"d{row}" for row in range(len(visible["documents"]))]
    rows = mine_hard_negatives(
        Dataset.from_dict(pairs),
        Stored(),
        corpus=corpus,
        num_negatives=K,
        relative_margin=1 - SHARE,
        range_max=10 * NEAREST,
        output_format="triplet",
        verbose=False,
    )
    ids = np.full((len(visible["queries"]), K), -1)
    filled = np.zeros(len(ids), int)
    for query, negative in zip(rows["query"], rows["negative"], strict=True):
        row = int(query[1:])
        ids[row, filled[row]] = int(negative[1:])
        filled[row] += 1
    return {"ids": ids}


# ---- detect ----------------------------------------------------------------------------------------------------------


def candidate_scores(visible: Arrays) -> NDArray[np.float32]:
    """(n, 50) of the candidates."""
    return np.einsum("nd,nkd->nk", visible["queries"], visible["documents"][visible["candidates"]])


def detect_random(visible: Arrays, _truth: Arrays, split: int) -> Arrays:
    """Any suspicion."""
    return {"suspicion": np.random.default_rng(split).random(visible["candidates"].shape)}


def detect_by_score(visible: Arrays, _truth: Arrays, _split: int) -> Arrays:
    """The score itself."""
    return {"suspicion": np.clip((1 + candidate_scores(visible)) / 2, 0, 1)}


def detect_by_share(visible: Arrays, _truth: Arrays, _split: int) -> Arrays:
    """The score as a share of the positive's, the quantity of the 95 % rule."""
    positive = np.einsum("nd,nd->n", visible["queries"], visible["documents"][visible["labelled"]])
    ratio = candidate_scores(visible) / np.maximum(positive, 1e-6)[:, None]
    return {"suspicion": np.clip(ratio / 2, 0, 1)}


def detect_posterior(visible: Arrays, truth: Arrays, split: int) -> Arrays:
    """The posterior of `naysay.detectors`, by scores and vectors, and its estimate; where it cannot tell, the share."""
    documents, own = visible["documents"], visible["documents"][visible["labelled"]]
    scores = candidate_scores(visible)
    positive = np.einsum("nd,nd->n", visible["queries"], own)

    def alike(anchors: Any, ids: Any) -> NDArray[np.float32]:
        return np.einsum("nd,nd->n", own[anchors], documents[ids])

    cosines = np.einsum("nd,nkd->nk", own, documents[visible["candidates"]])
    detector = ns.detectors.Posterior(NEAREST, positive_scores=positive, alike=alike, seed=split)
    detector.fit(scores, positive, alike=cosines)
    if not detector.fitted:
        return detect_by_share(visible, truth, split)
    negatives = ns.Negatives(visible["candidates"].astype(np.int64), scores=scores)
    suspicion = np.asarray(detector.suspicion(ns.Query(np.arange(len(scores))), negatives))
    before = detector.summary.before
    return {"suspicion": suspicion, "share": np.array([before.estimate, before.low, before.high])}


def detect_oracle(visible: Arrays, truth: Arrays, _split: int) -> Arrays:
    """The truth."""
    is_false = are_relevant(visible["candidates"], truth["relevant"])
    share = is_false[:, :NEAREST].mean()
    return {"suspicion": is_false.astype(np.float64), "share": np.array([share, share, share])}


CONTROLS: dict[str, dict[str, Control]] = {
    "mine": {
        "random": mine_random,
        "nearest": mine_by(None),
        "ranks 10 to 210": mine_far,
        "95 % rule": mine_by(f"share:{SHARE}"),
        "sentence-transformers": mine_sentence_transformers,
        "auto": mine_by("auto"),
        "auto, 100 answers": mine_reviewed,
        "oracle": mine_oracle,
    },
    "detect": {
        "random": detect_random,
        "score": detect_by_score,
        "share of the positive's score": detect_by_share,
        "posterior": detect_posterior,
        "oracle": detect_oracle,
    },
}


def submit(folder: Path, board: Path, control: Control) -> None:
    """Write the files of a control that are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for world in WORLDS:
        for split in range(SPLITS):
            path = folder / f"{world}-{split}.npz"
            if not path.exists():
                visible, truth = score.load(board, path.stem)
                np.savez_compressed(path, **control(visible, truth, split))


def main() -> None:
    """Run what is not in the result yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", type=Path, required=True, help="the folder of benchmarks.board.worlds")
    parser.add_argument("--data", type=Path, help="the folder of benchmarks.data, for the track sample")
    parser.add_argument("--controls", nargs="+", help="only these")
    args = parser.parse_args()
    tracks: dict[str, Any] = read("board").get("tracks", {})

    def missing(track: str, controls: Iterable[str]) -> list[str]:
        asked = args.controls or controls
        return [name for name in controls if name in asked and name not in tracks.setdefault(track, {})]

    def keep(track: str, name: str, measured: Any) -> None:
        tracks[track][name] = measured
        print(f"{track}, {name}: done", flush=True)
        write("board", {"version": VERSION, "k": K, "recipe": score.RECIPE, "tracks": tracks})

    for track, controls in CONTROLS.items():
        for name in missing(track, controls):
            folder = args.board / "controls" / track / name
            submit(folder, args.board, controls[name])
            worlds = score.score(track, folder, args.board)
            keep(
                track,
                name,
                {
                    world: {measure: score.summary(values) for measure, values in found.items()}
                    for world, found in worlds.items()
                },
            )
    if args.data:
        for name in missing("sample", sample.CONTROLS):
            keep("sample", name, sample.scored(sample.CONTROLS[name], args.data))


if __name__ == "__main__":
    main()
