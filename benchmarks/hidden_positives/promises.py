"""The promises of `Calibrated` and `false_negative_rate` against hidden positives."""

from __future__ import annotations

from typing import Any

import numpy as np

import naysay as ns
from benchmarks.hidden_positives.hardness import rounded, share_of
from benchmarks.hidden_positives.hide import Task, calibration, hardest, hide, row_moments
from benchmarks.hidden_positives.readers import Collection, Floats
from naysay.detectors.calibrated import least_positives
from naysay.detectors.rate import false_negative_rate

ALPHAS = (0.05, 0.1, 0.2)
SPLITS_PER_SEED = 4


def promises(data: Collection, whole: Floats, seeds: int) -> list[dict[str, Any]]:
    """The share of hidden positives below the threshold (mean over anchors) against the promised share.

    Thresholds are fitted to anchors with one positive, who may be of another kind, and to a random half of those with
    several, who are not. The interval is over anchors; the variation by what thresholds are fitted to is in the range
    over splits.
    """
    rows = []
    for by in ("single", "half"):
        tasks = [hide(data, seed, by=by) for seed in range(SPLITS_PER_SEED * seeds)]
        if len(tasks[0].fitted) < least_positives(min(ALPHAS)):
            continue
        for standardised in (False, True):
            thresholds = [_fitted(whole, task, standardised=standardised) for task in tasks]
            for alpha in ALPHAS:
                rows.append(_kept(len(data.queries), tasks, thresholds, alpha) | {"fitted_to": by})
                rows[-1]["scores"] = "by anchor" if standardised else "raw"
    return rows


def _fitted(whole: Floats, task: Task, *, standardised: bool) -> tuple[Floats, Floats]:
    """(m,) scores to fit to, and (B, n) scores to judge."""
    own, standard = calibration(whole, task)
    scores = whole[task.evaluated]
    if not standardised:
        return own, scores
    mean, deviation = row_moments(scores, task.known)
    return standard, (scores - mean[:, None]) / deviation[:, None]


def _kept(n_anchors: int, tasks: list[Task], thresholds: list[tuple[Floats, Floats]], alpha: float) -> dict[str, Any]:
    part, whole, means = np.zeros(n_anchors), np.zeros(n_anchors), []
    for task, (own, scores) in zip(tasks, thresholds, strict=True):
        judge = ns.detectors.Calibrated(alpha).fit(own)
        share = (task.hidden & (scores < judge.high)).sum(axis=1) / task.hidden.sum(axis=1)
        part[task.evaluated] += share
        whole[task.evaluated] += 1
        means.append(100 * share.mean())
    return {
        "alpha": alpha,
        "positives": judge.n,
        "promised_percent": rounded(100 * judge.bound),
        "splits": len(tasks),
        "let_through": share_of(part, whole, int((whole > 0).sum())),
        "range_percent": [rounded(min(means)), rounded(max(means))],
    }


def bounded(whole: Floats, task: Task, k: int) -> dict[str, tuple[float, float, float]]:
    """(hidden positives among the kept, estimate, upper bound) of thresholds for all, and of the k taken below them."""
    others, scores = whole[task.fitted], whole[task.evaluated]
    fit = calibration(whole, task)[0]
    own = np.arange(len(others)), task.fitted_item
    free, rest = ~task.known, ~task.fitted_known
    rest[own] = True
    thresholds = {"naive": np.inf}
    thresholds |= {f"calibrated, {alpha:g}": ns.detectors.Calibrated(alpha).fit(fit).high for alpha in ALPHAS[:2]}
    found = {}
    for name, threshold in thresholds.items():
        below = free & (scores < threshold)
        passed = hardest(others, rest & (others < threshold), k)[own]  # would the positive have been taken itself?
        parts = [(f"{name}, taken", hardest(scores, below, k), passed)]
        if np.isfinite(threshold):
            parts.append((f"{name}, all below", below, fit < threshold))
        for title, kept, which in parts:
            said = false_negative_rate(scores, fit, kept, kept_positives=which, mask=free)
            found[title] = (float(task.hidden[kept].mean()), said.estimate, said.high)
    return found


def bounds(data: Collection, whole: Floats, seeds: int, by: str, k: int) -> dict[str, Any]:
    """Means over seeds in per cent, and in how many seeds the bound was above what is known to be there."""
    runs = [bounded(whole, hide(data, seed, by=by), k) for seed in range(seeds)]
    found: dict[str, Any] = {}
    for name in runs[0]:
        known, estimate, high = np.array([run[name] for run in runs]).T
        means = {"known_percent": known, "estimate_percent": estimate, "high_percent": high}
        found[name] = {key: rounded(100 * values.mean(), 4) for key, values in means.items()}
        found[name]["seeds_above"] = int((high >= known).sum())
    return found
