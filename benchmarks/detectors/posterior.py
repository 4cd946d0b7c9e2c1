"""Is the posterior right on real data? Estimated shares of false negatives against known ones.

    python -m benchmarks.detectors.posterior --data FOLDER [--seeds 3] [--only WORLD ...] [--vectors FILE] [--out FILE]

FOLDER   a folder with scifact/ and scifact-minilm/, cranfield/ and debian-desc/; a world without its data is left out

**scifact, cranfield.** The label is one relevant document of each query, by chance; the others are false negatives.

**debian.** The short description of a package against the long ones. All packages of its source are relevant. Half of
the sources are drawn by the seed, with one package of each as an anchor; the corpus is the packages of that half. `deb`
has sources of 2 to 20 packages, `debH` of 4 to 20. The label is a random package of the source, or biased: the package
itself (`own`), the best or the lowest scoring of the source (`easiest`, `hardest`). `other, own` is the other half of
the sources. Vectors are those of wordllama (pip install wordllama), or TF-IDF and 256 singular vectors without it.

For each world and seed: the share of false negatives among the nearest 10 in truth, by scores (S), by scores and item
vectors (D), and after the check of the labels; the true share after a cut at 5 %; the mean score of what is returned;
posteriors against truth in bins; and the estimate after 100 labelled candidates. Each world is written when it is done,
and a world in the file is not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.harness import RESULTS, write
from benchmarks.hidden_positives.hardness import auc, rounded
from benchmarks.hidden_positives.readers import (
    FILES,
    Collection,
    Packages,
    cranfield,
    latent_vectors,
    packages,
    scifact,
)
from naysay.detectors import Posterior
from naysay.detectors._posterior_fit import Lists, fit_scores, read_lists
from naysay.detectors._posterior_model import Model, Similar, check_labels, with_evidence
from naysay.detectors.posterior_summary import cut_at

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
K, TARGET, DEPTH, LISTED, LABELS, RESAMPLES = 10, 0.05, 50, 101, 100, 20
BINS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9, 1.0)
SIZES = {"deb": (2, 20), "debH": (4, 20)}
WORLDS = (
    *("scifact", "cranfield", "deb", "debH", "deb, own", "debH, own"),
    *("other, own", "deb, easiest", "deb, hardest", "deb, 400 anchors", "debH, own, 400 anchors"),
)


@dataclass(frozen=True, eq=False)
class World:
    """Lists of candidates, nearest first, without the label.

    scores     (A, M) of the candidates
    own        (A,) of the label
    alike      (A, M) cosines of the candidates to the label
    truth      (A, M) whether a candidate is relevant
    """

    scores: Floats
    own: Floats
    alike: Floats
    truth: NDArray[np.bool_]


def listed(queries: Floats, items: Floats, labels: Ids, relevant: Callable[[Ids, Ids], NDArray[np.bool_]]) -> World:
    """The nearest items of each query but its label; relevant(rows (n,), ids (n, m)) is the truth."""
    size, parts = min(LISTED, len(items) - 1), []
    for start in range(0, len(queries), 512):
        rows = np.arange(start, min(start + 512, len(queries)))
        block = queries[rows] @ items.T
        own = block[np.arange(len(rows)), labels[rows]].copy()
        block[np.arange(len(rows)), labels[rows]] = -np.inf
        ids = np.argpartition(-block, size - 1, axis=1)[:, :size]
        scores = np.take_along_axis(block, ids, axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")
        ids, scores = np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)
        alike = np.einsum("nkd,nd->nk", items[ids], items[labels[rows]])
        parts.append((scores, own, alike, relevant(rows, ids)))
    return World(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def of_collection(data: Collection, seed: int) -> World:
    """One relevant document of each query as its label, by chance."""
    rng = ns.rng_for(seed)
    order = np.lexsort((rng.random(len(data.anchors)), data.anchors))
    asked, first = np.unique(data.anchors[order], return_index=True)
    known = ns.Positives.from_pairs(data.anchors, data.items, len(data.queries), len(data.documents))
    return listed(
        *(data.queries[asked], data.documents, data.items[order][first]),
        lambda rows, ids: known.contains(np.repeat(asked[rows], ids.shape[1]), ids.ravel()).reshape(ids.shape),
    )


def of_packages(name: str, data: Packages, short: Floats, long: Floats, seed: int) -> World:
    """One package of each source, in half of the sources; `name` says which sources and which label."""
    kind, _, rest = name.partition(", ")
    low, high = SIZES.get(kind, SIZES["deb"])
    rng = ns.rng_for(seed)
    counts = np.bincount(data.source)
    chosen = rng.permutation(np.flatnonzero((counts >= low) & (counts <= high)))
    half = len(chosen) // 2
    chosen = chosen[half:] if kind == "other" else chosen[:half]
    kept = np.flatnonzero(np.isin(data.source, chosen))
    source, short, long = data.source[kept], short[kept], long[kept]
    order = rng.permutation(len(source))
    rows = np.sort(order[np.unique(source[order], return_index=True)[1]])
    if "400" in rest:
        rows = np.sort(rng.choice(rows, 400, replace=False))
    labels = rows.copy()
    for place, row in enumerate(rows.tolist() if "own" not in rest else []):
        members = np.flatnonzero(source == source[row])
        scores = long[members] @ short[row]
        best = {"easiest": int(scores.argmax()), "hardest": int(scores.argmin())}
        labels[place] = members[best.get(rest, int(rng.integers(len(members))))]
    return listed(short[rows], long, labels, lambda part, ids: source[ids] == source[rows[part]][:, None])


def measured(world: World, seed: int) -> dict[str, Any]:
    """All numbers of one world."""
    start = time.perf_counter()
    lists, _ = read_lists(world.scores, world.own, world.alike)
    near = lists.nearest(K)
    found = {"anchors": len(world.own), "truth": rounded(world.truth[near].mean(), 4)}
    fit = fit_scores(lists, DEPTH, seed)
    found |= {"labelled": fit.labelled, "gain": rounded(fit.gain)}
    found["true_c"] = rounded(fit.labelled / (fit.labelled + world.truth[:, :DEPTH].sum()))
    models: dict[str, tuple[Model, Lists]] = {}
    if not fit.code:
        model = Model.of(fit, lists, DEPTH)
        odds, similar = model.log_odds(lists), Similar.of(lists, DEPTH)
        models["S"] = model, replace(lists, alike=None)
        if similar is not None:
            models["D"] = with_evidence(model, similar, odds), lists
        shifted, _, check = check_labels(model, lists, odds, K, TARGET)
        models["checked"] = shifted, lists
        if check is not None:
            numbers = {name: getattr(check, name) for name in check.__slots__}
            known = {name: None if np.isnan(value) else rounded(value, 4) for name, value in numbers.items()}
            found["check"] = {**known, "verdict": check.verdict}
    for name, (model, given) in models.items():
        found[name] = _judged(model, given, world, near)
    public = Posterior(K, TARGET, seed=seed).fit(world.scores, world.own, alike=world.alike)
    found |= {"reason": public.reason, "seconds": rounded(time.perf_counter() - start, 1)}
    if public.fitted:
        for name, share in (("interval", public.summary.before), ("interval_after", public.summary.after)):
            found[name] = [rounded(share.low, 4), rounded(share.high, 4)] if share else None
        found["by_labels"] = _asked(world, seed)
    return found


def _judged(model: Model, lists: Lists, world: World, near: NDArray[np.bool_]) -> dict[str, Any]:
    """The estimate, the cut and the calibration of one model."""
    posterior = model.of_lists(lists)
    cut = cut_at(np.where(lists.filled, posterior, 2.0), K, TARGET, lists.scores)
    p, truth = posterior[near], world.truth[near]
    places = np.clip(np.searchsorted(BINS, p, side="right") - 1, 0, len(BINS) - 2)
    bins = [
        {"slots": int(inside.sum()), "posterior": rounded(p[inside].mean()), "truth": rounded(truth[inside].mean())}
        for inside in (places == place for place in range(len(BINS) - 1))
        if inside.any()
    ]
    kept = world.truth[cut.kept]
    return {
        "c": rounded(model.c),
        "estimate": rounded(p.mean(), 4),
        "auc": rounded(auc(p[truth], p[~truth])),
        "tau": rounded(cut.tau, 4),
        "true_after": rounded(kept.mean(), 4) if len(kept) else None,
        "hardness": [rounded(cut.hardness_before), rounded(cut.hardness_after)],
        "short": cut.short,
        "bins": bins,
    }


def _asked(world: World, seed: int) -> dict[str, Any]:
    """The estimate without item vectors after 100 labelled candidates, in 20 resamples."""
    share, fitted = world.truth[:, :K].mean(), Posterior(K, TARGET, seed=seed).fit(world.scores, world.own)
    state, estimates, plain = fitted.state(), [], []
    for sample in range(RESAMPLES):
        asked = ns.rng_for(seed, 1 + sample).choice(world.own.size * K, LABELS, replace=False)
        known = np.full(world.truth.shape, -1)
        known[asked // K, asked % K] = world.truth[asked // K, asked % K]
        again = Posterior(K, TARGET, seed=seed)
        again.restore(state)
        model = again.correct(world.scores, world.own, known).summary
        estimates.append(model.before.estimate if model.before else np.nan)
        plain.append((known == 1).sum() / LABELS)
    within = [int(sum(share / 1.5 <= value <= 1.5 * share for value in values)) for values in (estimates, plain)]
    return {"mean": rounded(np.mean(estimates), 4), "within_1.5": within[0], "share_of_yes_within_1.5": within[1]}


def package_vectors(data: Packages, cache: Path | None) -> tuple[Floats, Floats, str]:
    """Vectors of the short and the long descriptions, and where they come from; kept in a file if one is named."""
    if cache is not None and cache.is_file():
        with np.load(cache, allow_pickle=False) as file:
            return file["short"].astype(np.float64), file["long"].astype(np.float64), str(file["encoder"])
    try:
        import wordllama
    except ImportError:
        long, short = latent_vectors(data.long, data.short, width=256)
        made = "TF-IDF, 256 singular vectors"
    else:
        place = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(cache_dir=place, disable_download=True)
        short, long = (np.asarray(model.embed(part, norm=True), np.float64) for part in (data.short, data.long))
        made = "wordllama, 256 wide"
    if cache is not None:
        np.savez(cache, short=short.astype(np.float32), long=long.astype(np.float32), encoder=made)
    return short, long, made


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is not in the file yet, and write results/posterior.json after each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--vectors", type=Path, help="an .npz file to keep the vectors of packages in")
    parser.add_argument("--out", type=Path, help="where to write; results/posterior.json by default")
    args = parser.parse_args(arguments)
    target = args.out or RESULTS / "posterior.json"
    earlier = json.loads(target.read_text()) if target.is_file() else {}
    result = {"k": K, "false_share": TARGET, "encoder": earlier.get("encoder", ""), "worlds": earlier.get("worlds", {})}
    readers: dict[str, Callable[[Path], Collection]] = {"scifact": scifact, "cranfield": cranfield}
    texts: tuple[Packages, Floats, Floats] | None = None
    for name in args.only:
        part = name if name in readers else "debian"
        if not all((args.data / file).is_file() for file in FILES[part]):
            print(f"{name}: no data", file=sys.stderr)
            continue
        data = None
        for seed in range(args.seeds):
            done = result["worlds"].setdefault(name, {})
            if str(seed) in done:
                continue
            if part == "debian":
                if texts is None:
                    read = packages(args.data)
                    short, long, result["encoder"] = package_vectors(read, args.vectors)
                    texts = read, short, long
                world = of_packages(name, *texts, seed)
            else:
                data = data or readers[name](args.data)
                world = of_collection(data, seed)
            done[str(seed)] = measured(world, seed)
            write("posterior", result, args.out)
            print(f"{name}, seed {seed}: {done[str(seed)]}", flush=True)


if __name__ == "__main__":
    main()
