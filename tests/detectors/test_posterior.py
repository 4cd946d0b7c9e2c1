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
from naysay.detectors._posterior_alike import balance_of, isotonic
from naysay.detectors._posterior_fit import KNOTS, WIDTH, Cells, curves, hats, knots_of, penalty_of
from naysay.detectors._posterior_lists import backgrounds, read_lists
from naysay.errors import NaysayError

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


@given(st.integers(0, 2**32 - 1))
def test_curves_are_straight_between_their_knots_and_constant_outside(seed):
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(2, 40)).round(1), rng.normal(size=WIDTH)
    knots = np.stack([knots_of(part[5:30]) for part in x])
    assert (np.diff(knots, axis=1) > 0).all()
    dense = np.concatenate([np.ones((40, 1)), *map(hats, x, knots)], axis=1)
    assert dense[:, 1:].min() >= 0
    assert dense[:, 1 : 1 + KNOTS].sum(axis=1) == pytest.approx(1)
    assert curves(list(x), knots, weights) == pytest.approx(dense @ weights)
    for place, part in enumerate(knots):
        assert hats(part, part) == pytest.approx(np.eye(KNOTS), abs=1e-9), place


def test_a_straight_line_costs_only_the_ridge():
    x = np.random.default_rng(0).normal(size=(2, 500))
    knots = np.stack([knots_of(part) for part in x])
    straight, bent = np.zeros(WIDTH), np.zeros(WIDTH)
    straight[1 : 1 + KNOTS] = 3 * knots[0]
    bent[1 : 1 + KNOTS] = np.maximum(3 * knots[0], 0)
    price = penalty_of(list(x), knots)
    ridge = 0.1 * (straight**2).sum()
    assert straight @ price @ straight == pytest.approx(ridge, rel=1e-6)
    assert bent @ price @ bent > 20 * ridge


@pytest.mark.parametrize("c", [1.0, 0.4])
def test_the_regression_is_that_of_plain_optimisation(c):
    """P(labelled) = c P(positive): 300 slots, each in its own cell."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 300))
    labels = rng.random(300) < c / (1 + np.exp(-x[0] + x[1] ** 2))
    order = np.argsort(labels, kind="stable")
    x, labels = x[:, order], labels[order]
    cells = Cells.of(list(x), int(labels.sum()))
    knots = np.stack([knots_of(part) for part in x])
    dense, price = np.concatenate([np.ones((300, 1)), *map(hats, x, knots)], axis=1), penalty_of(list(x), knots)
    cells = replace(cells, design=dense, labelled=labels.astype(float), others=1.0 - labels)

    def plain(weights):
        positive = 1 / (1 + np.exp(-dense @ weights))
        return -np.log(np.where(labels, c * positive, 1 - c * positive)).sum() + weights @ price @ weights / 2

    mine = cells.fit(c)
    theirs = minimize(plain, np.zeros(WIDTH), method="BFGS", options={"gtol": 1e-7}).x
    assert plain(mine) <= plain(theirs) + 1e-6
    assert np.abs(dense @ (mine - theirs)).max() < 1e-2
    assert cells.likelihood(mine, c) == pytest.approx(mine @ price @ mine / 2 - plain(mine))


def test_cells_keep_all_slots():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5000))
    cells = Cells.of(list(x), 100)
    assert cells.labelled.sum() == 100
    assert cells.others.sum() == 4900
    assert len(cells.labelled) < 3000
    assert cells.design.sum(axis=1) == pytest.approx(3)


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
    cells = Cells(design, hits, np.bincount(cell) - hits, np.zeros((2, KNOTS)), np.eye(WIDTH))
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


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 3)), min_size=1, max_size=8))
def test_isotonic_is_the_largest_mean_of_smallest_means(pairs):
    values, weights = np.array(pairs).T
    n = len(values)

    def mean(i, j):
        return float((values[i : j + 1] * weights[i : j + 1]).sum() / weights[i : j + 1].sum())

    wanted = [max(min(mean(i, j) for j in range(place, n)) for i in range(place + 1)) for place in range(n)]
    assert isotonic(values, weights) == pytest.approx(wanted, abs=1e-9)


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


@pytest.mark.parametrize("name", ["weights", "c", "draws", "summary", "knots", "edges"])
def test_a_state_that_does_not_fit_changes_nothing(world, name):
    scores, own, _, alike = world
    detector = Posterior().fit(scores[:100], own[:100], alike=alike[:100])
    before = detector.posterior(scores, own)
    broken = {**detector.state(), name: np.zeros((2, 3))}
    with pytest.raises(NaysayError):
        detector.restore(broken)
    assert np.array_equal(detector.posterior(scores, own), before)
    detector.restore({})
    assert not detector.fitted


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"k": 0}, "k"),
        ({"false_share": 0}, "false_share"),
        ({"depth": 5}, "depth"),
        ({"labelled_share": 1}, "labelled_share"),
        ({"alike": 3}, "alike"),
        ({"positive_scores": "abc"}, "positive_scores"),
    ],
)
def test_settings_are_checked(options, match):
    with pytest.raises(NaysayError, match=f"Posterior: `{match}`"):
        Posterior(**options)


def test_lists_are_checked():
    good = np.zeros((3, 4))
    for scores, own, alike, match in (
        (np.zeros(3), np.zeros(3), None, "scores"),
        (good, np.zeros(2), None, "positive_scores"),
        (good, np.zeros(3), np.zeros((3, 3)), "alike"),
        (np.full((3, 4), np.inf), np.zeros(3), None, "scores"),
    ):
        with pytest.raises(NaysayError, match=f"Posterior.fit: `{match}`"):
            Posterior().fit(scores, own, alike=alike)
    with pytest.raises(NaysayError, match="fitted first"):
        Posterior().posterior(good, np.zeros(3))
    with pytest.raises(NaysayError, match="fitted first"):
        _ = Posterior().threshold


def test_many_anchors_are_judged_in_blocks(world, monkeypatch):
    scores, own, _, _ = world
    detector = Posterior().fit(scores, own)
    whole = detector.posterior(scores, own)
    monkeypatch.setattr("naysay.detectors._posterior_model._BLOCK", 700)
    assert detector.posterior(scores, own).tobytes() == whole.tobytes()
