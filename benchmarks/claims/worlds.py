"""The data of the claims: likes, interactions of yelp2018, and short descriptions of packages with their long ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import naysay as ns
from benchmarks.hidden_positives.readers import packages
from benchmarks.training.factorisation import read
from benchmarks.training.judging_yelp import read_yelp, split
from naysay.checks import raise_invalid
from naysay.lab import Recommendation, Retrieval, TextPairs, split_by_user
from naysay.lab._domain import some_anchors

PACKAGES, WORDS, HELD = 2500, 12, 500  # packages, words of a long description, pairs of validation and of test
VALIDATED = 500  # users of yelp2018 that are ranked for validation
Make = Callable[[int], Any]  # the task of a seed


def likes(folder: Path) -> Make:
    """Matrix factorisation of the likes of ml-100k, split by the seed."""
    known = read(folder / "ml-100k")
    return lambda seed: Recommendation(split_by_user(*known, seed=seed))


def descriptions(folder: Path) -> Make:
    """A text encoder of hashed pieces of words, trained from random vectors; one package of a source, by the seed."""
    known = packages(folder)

    def make(seed: int) -> Retrieval:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(known.source))
        rows = rng.permutation(order[np.unique(known.source[order], return_index=True)[1]])[:PACKAGES]
        ids, held = np.arange(len(rows)), min(HELD, len(rows) // 4)
        ends = (ids[2 * held :], ids[:held], ids[held : 2 * held])
        parts = (ns.Positives.from_pairs(part, part, len(rows), len(rows)) for part in ends)
        texts = [known.short[row] for row in rows], [" ".join(known.long[row].split()[:WORDS]) for row in rows]
        return Retrieval(TextPairs(*parts, *texts), "subwords", batch=128)

    return make


def yelp(folder: Path, model: str = "mf", share: int = 1, batch: int | None = None) -> Make:
    """Matrix factorisation or LightGCN of yelp2018 with its published test part, or of one in `share` users."""
    known = read_yelp(folder / "yelp2018")
    if known is None:
        raise_invalid("DATA", "a folder with yelp2018/interactions.npz", repr(str(folder)))
    users, items, test_users, test_items = known
    some = np.flatnonzero(np.random.default_rng(0).permutation(users.max() + 1) % share == 0)
    new = np.full(users.max() + 1, -1)
    new[some] = np.arange(len(some))
    mine, its = new[users] >= 0, new[test_users] >= 0
    pairs = (new[users[mine]], items[mine], new[test_users[its]], test_items[its])

    def make(seed: int) -> Recommendation:
        task = Recommendation(split(pairs, seed), model, batch=batch)
        task.validated = some_anchors(task.data.validation, VALIDATED)
        return task

    return make
