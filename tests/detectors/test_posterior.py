"""Posterior: parts against plain loops, laws, the detector's promises, and its state."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posterior_worlds import planted
from scipy.optimize import minimize

import naysay as ns
from naysay.detectors import Posterior
from naysay.detectors._posterior_fit import KNOTS, WIDTH, _Cells, _hats, _knots_of, _penalty_of, backgrounds, read_lists
from naysay.detectors._posterior_model import balance_of

# ---- parts ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
def test_backgrounds_are_those_of_plain_loops(seed, width, known):
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.normal(size=(6, width)), axis=1)
    scores[np.arange(width) >= rng.integers(0, width + 1, 6)[:, None]] = np.nan
    expected = rng.uniform(0, width, 6) if known else None
    for row, found in enumerate(backgrounds(scores, expected)):
        listed = [s for s in scores[row].tolist() if not math.isnan(s)]
        length = max(1, int(0.4 * len(listed)))
        start = max(0, len(listed) - length)
        if known:
            start = min(start, int(0.2 * len(listed) + expected[row]))
        part = listed[start : start + length]
        assert found == pytest.approx(sum(part) / length if part else 0.0)


@pytest.mark.parametrize("c", [1.0, 0.4])
def test_the_regression_is_that_of_plain_optimisation(c):
    """P(labelled) = c P(positive): 300 slots, each in its own cell."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 300))
    labels = rng.random(300) < c / (1 + np.exp(-x[0] + x[1] ** 2))
    order = np.argsort(labels, kind="stable")
    x, labels = x[:, order], labels[order]
    cells = _Cells.of(list(x), int(labels.sum()))
    knots = np.stack([_knots_of(part) for part in x])
    dense, price = np.concatenate([np.ones((300, 1)), *map(_hats, x, knots)], axis=1), _penalty_of(list(x), knots)
    cells = replace(cells, design=dense, labelled=labels.astype(float), others=1.0 - labels)

    def plain(weights):
        positive = 1 / (1 + np.exp(-dense @ weights))
        return -np.log(np.where(labels, c * positive, 1 - c * positive)).sum() + weights @ price @ weights / 2

    mine = cells.fit(c)
    theirs = minimize(plain, np.zeros(WIDTH), method="BFGS", options={"gtol": 1e-7}).x
    assert plain(mine) <= plain(theirs) + 1e-6
    assert np.abs(dense @ (mine - theirs)).max() < 1e-2
    assert cells.likelihood(mine, c) == pytest.approx(mine @ price @ mine / 2 - plain(mine))


def plain_c(values, labels):
    """The largest lower limit over prefixes, equal values together."""
    from scipy.stats import beta

    total, best = sum(labels), 0.0
    for limit in sorted(set(values)):
        inside = [label for value, label in zip(values, labels, strict=True) if value >= limit]
        hits = sum(inside)
        if max(15, 0.2 * total) <= hits <= 0.9 * total:
            best = max(best, float(beta.ppf(0.05, hits, len(inside) - hits + 1)))
    return best


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1]))
def test_c_is_that_of_plain_loops(seed, digits):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=150).round(digits + 1)
    labels = rng.random(150) < 1 / (1 + np.exp(-2 * values))
    distinct, cell = np.unique(values, return_inverse=True)
    hits = np.bincount(cell, labels)
    design = np.zeros((len(distinct), WIDTH))
    design[:, 0] = distinct
    cells = _Cells(design, hits, np.bincount(cell) - hits, np.zeros((2, KNOTS)), np.eye(WIDTH))
    found, wanted = cells.lower_limit(np.eye(WIDTH)[0]), plain_c(values.tolist(), labels.tolist())
    assert found == pytest.approx(min(0.98, wanted))


def test_the_balance_is_that_of_plain_loops():
    rng = np.random.default_rng(0)
    scores, own, p = (
        -np.sort(-rng.normal(size=(20, 8)).round(1), axis=1),
        rng.normal(size=20).round(1),
        rng.random((20, 8)),
    )
    found, _ = balance_of(read_lists(scores, own)[0], p, 6)
    above = below = total = 0.0
    for row in range(20):
        if own[row] < scores[row, 5]:
            continue
        above += sum(p[row, slot] for slot in range(6) if scores[row, slot] > own[row])
        below += sum(p[row, slot] for slot in range(6) if scores[row, slot] < own[row])
        total += p[row, :6].sum()
    assert found == pytest.approx(1 + (above - below) / total)


# ---- laws -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    return planted(0)


@pytest.fixture(scope="module")
def fitted(world):
    scores, own, _, alike = world
    return Posterior(positive_scores=own).fit(scores, own), Posterior(k=5).fit(scores, own, alike=alike)


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300), st.integers(1, 80), st.floats(-1, 1))
def test_a_posterior_is_a_probability_for_any_list(fitted, score, gap, width, alike):
    scores = np.clip(score - gap * np.arange(width), -1e300, None)[None]
    for detector in fitted:
        found = detector.posterior(scores, [score / 2], alike=np.full((1, width), alike))
        assert ((found >= 0) & (found < 1)).all()
        assert np.array_equal(found, found.astype(np.float32))


def test_the_order_of_anchors_and_of_slots_does_not_matter(world):
    scores, own, _, alike = world
    rng = np.random.default_rng(1)
    rows, slots = rng.permutation(len(own)), rng.permutation(scores.shape[1])
    one = Posterior().fit(scores, own, alike=alike)
    other = Posterior().fit(scores[rows][:, slots], own[rows], alike=alike[rows][:, slots])
    assert one.posterior(scores, own, alike=alike)[rows][:, slots] == pytest.approx(
        other.posterior(scores[rows][:, slots], own[rows], alike=alike[rows][:, slots]), abs=1e-6
    )
    assert one.summary.tau == pytest.approx(other.summary.tau, abs=1e-6)


@pytest.mark.parametrize(("scale", "shift"), [(0.01, 0.5), (100, -50)])
def test_the_unit_of_scores_matters_no_more_than_the_seed(world, scale, shift):
    """Quantiles and deviations move with the scores; rounding and draws remain."""
    scores, own, _, _ = world
    moved, mine = scale * scores + shift, scale * own + shift
    one, other = Posterior().fit(scores, own), Posterior().fit(moved, mine)
    assert np.abs(other.posterior(moved, mine) - one.posterior(scores, own)).mean() < 0.02


def test_behind_the_lists_the_last_ten_ranks_count(world):
    scores, own, _, _ = world
    detector = Posterior(depth=30).fit(scores, own)
    found = detector.posterior(scores, np.full_like(own, np.nan))
    assert len(np.unique(found[:, 30:])) == 1
    assert found[0, -1] == pytest.approx(detector.posterior(scores[:, :30], own)[:, 20:30].mean(), abs=1e-7)


def test_suspicion_is_the_posterior_and_keeps_the_promises_of_a_detector(world):
    scores, own, _, alike = world
    ids = np.tile(np.arange(scores.shape[1]), (len(own), 1))
    detector = Posterior(positive_scores=own, alike=lambda anchors, items: alike[anchors, items])
    detector.fit(scores, own, alike=alike)
    query, negatives = ns.Query(np.arange(len(own))), ns.Negatives(ids, scores=scores)
    ns.check_detector(detector, query, negatives)
    ns.check_detector(detector, query, negatives.to("cpu"))
    assert np.array_equal(detector.suspicion(query, negatives), detector.posterior(scores, own, alike=alike))
    part = detector.suspicion(ns.Query(np.arange(7, 9)), ns.Negatives(ids[7:9], scores=scores[7:9]))
    assert np.array_equal(part, detector.suspicion(query, negatives)[7:9])


# ---- state ----------------------------------------------------------------------------------------------------------


def test_a_restored_detector_answers_alike_byte_for_byte(world, tmp_path):
    scores, own, _, alike = world
    one = Posterior(k=5).fit(scores, own, alike=alike)
    np.savez(tmp_path / "state.npz", **one.state())
    as_json = json.loads(json.dumps({name: np.asarray(part).tolist() for name, part in one.state().items()}))
    with np.load(tmp_path / "state.npz", allow_pickle=False) as file:
        states = [one.state(), dict(file), as_json]
    for state in states:
        other = Posterior(k=5)
        other.restore(state)
        assert other.posterior(scores, own, alike=alike).tobytes() == one.posterior(scores, own, alike=alike).tobytes()
        assert other.summary == one.summary
        assert other.describe() == one.describe()
        assert all(np.array_equal(other.state()[name], part, equal_nan=True) for name, part in one.state().items())


def test_two_fits_are_equal_byte_for_byte_and_another_seed_is_close(world):
    scores, own, _, _ = world
    one, same = (Posterior().fit(scores, own).posterior(scores, own) for _ in range(2))
    assert one.tobytes() == same.tobytes()
    assert np.abs(Posterior(seed=5).fit(scores, own).posterior(scores, own) - one).mean() < 0.02


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_many_anchors_are_judged_in_blocks(world, monkeypatch):
    scores, own, _, _ = world
    detector = Posterior().fit(scores, own)
    whole = detector.posterior(scores, own)
    monkeypatch.setattr("naysay.detectors._posterior_model._BLOCK", 700)
    assert detector.posterior(scores, own).tobytes() == whole.tobytes()
