"""Posterior: parts against plain loops, laws, the detector's promises, and its state."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posterior_worlds import planted
from scipy.interpolate import BSpline
from scipy.optimize import minimize

import naysay as ns
from naysay.detectors import Posterior
from naysay.detectors._posterior_alike import isotonic
from naysay.detectors._posterior_fit import cross_fitted
from naysay.detectors._posterior_groups import Prefixes
from naysay.detectors._posterior_pool import candidate_features, pool_of, read_lists
from naysay.detectors._posterior_splines import RIDGE, additive, design_of, fit_logistic, knots_of
from naysay.errors import NaysayError

# ---- parts ----------------------------------------------------------------------------------------------------------


def plain_pool(scores, own, depth):
    """[(score, rank, gap, labelled)] of one anchor; no two scores are equal."""
    listed = [s for s in scores if not math.isnan(s)]
    kept = listed[:depth]
    most = min(depth, len(scores))
    inside = not math.isnan(own) and (sum(s > own for s in kept) < most or len(kept) < most)
    slots = sorted([(s, False) for s in kept] + ([(own, True)] if inside else []), reverse=True)
    ahead = [s for s, _ in slots]
    if len(kept) < len(listed):
        ahead.append(listed[len(kept)])
    rows = []
    for rank, (score, labelled) in enumerate(slots):
        gap = ahead[rank] - ahead[rank + 1] if rank + 1 < len(ahead) else (rows[-1][2] if rows else 0.0)
        rows.append((score, rank, gap, labelled))
    return rows


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 9))
def test_the_pool_is_that_of_plain_loops(seed, depth, width):
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.normal(size=(5, width)), axis=1)
    scores[np.arange(width) >= rng.integers(0, width + 1, 5)[:, None]] = np.nan
    own = np.where(rng.random(5) < 0.3, np.nan, rng.normal(size=5))
    pool = pool_of(read_lists(scores, own)[0], 0, depth)
    for row in range(5):
        wanted = plain_pool(scores[row].tolist(), float(own[row]), depth)
        found = pool.features[:, row, pool.filled[row]]
        assert pool.filled[row].sum() == len(wanted)
        assert np.allclose(found[0], [slot[0] for slot in wanted])
        assert np.allclose(found[1], [math.log(1 + slot[1]) for slot in wanted])
        assert np.allclose(found[2], [slot[2] for slot in wanted])
        assert pool.labelled[row, pool.filled[row]].tolist() == [slot[3] for slot in wanted]
        assert np.allclose(found[3], [slot[0] - plain_background(scores[row], depth) for slot in wanted])
        assert np.allclose(found[4], plain_richness(scores[row], own[row], depth))


def plain_background(scores, depth):
    listed = [s for s in scores.tolist() if not math.isnan(s)][:depth]
    last = listed[int(0.6 * len(listed)) :]
    return sum(last) / len(last) if last else 0.0


def plain_richness(scores, own, depth):
    near = [s for s in scores.tolist() if not math.isnan(s)][:depth][:10]
    near = sorted([*near, *([] if math.isnan(own) else [float(own)])], reverse=True)[:10]
    return (sum(near) / len(near) if near else 0.0) - plain_background(scores, depth)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_candidates_have_the_features_of_their_slots(seed, width):
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.normal(size=(6, width)).round(1), axis=1)
    scores[np.arange(width) >= rng.integers(0, width + 1, 6)[:, None]] = np.nan
    lists, _ = read_lists(scores, np.where(rng.random(6) < 0.3, np.nan, rng.normal(size=6).round(1)))
    pool = pool_of(lists, 3, width)
    features, behind = candidate_features(lists, 3, width)
    assert not behind[:, : width - 1].any()
    for row in range(6):
        slots = pool.filled[row] & ~pool.labelled[row]
        filled = lists.filled[row]
        assert slots.sum() == filled.sum()
        for wanted, found in zip(pool.features[:, row, slots], features, strict=True):
            assert np.array_equal(np.broadcast_to(found[row], width)[filled], wanted)


def test_a_positive_among_equal_scores_has_a_random_place():
    lists, _ = read_lists(np.ones((4000, 3)) + np.arange(4000)[:, None], 1.0 + np.arange(4000))
    places = pool_of(lists, 0, 3).places
    assert np.bincount(places[places >= 0], minlength=3).min() > 850  # 1000 each; a quarter is behind all
    assert (places < 0).sum() > 850


def dense_of(design):
    return design.blocks.reshape(-1, design.width)[: design.n]


@given(st.integers(0, 2**32 - 1))
def test_the_splines_are_those_of_scipy(seed):
    x = np.random.default_rng(seed).normal(size=(2, 40))
    knots = knots_of(x)
    dense = dense_of(design_of(x, knots))
    weights = np.random.default_rng(seed + 1).normal(size=13)
    assert additive(x, knots, weights) == pytest.approx(dense @ weights)
    for place in range(2):
        t = knots[place]
        first, last = t[1] - t[0], t[-1] - t[-2]
        whole = np.concatenate([t[0] - first * np.array([2, 1]), t, t[-1] + last * np.array([1, 2])])
        wanted = BSpline.design_matrix(np.clip(x[place], t[0], t[-1]), whole, 2).toarray()
        assert np.abs(dense[:, 1 + 6 * place : 7 + 6 * place] - wanted).max() < 1e-9


def test_the_logistic_regression_is_that_of_plain_optimisation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 300))
    labels = rng.random(300) < 1 / (1 + np.exp(-x[0] + x[1] ** 2))
    design = design_of(x, knots_of(x))
    dense = dense_of(design)

    def price(weights):
        odds = dense @ weights
        return np.logaddexp(0, np.where(labels, -odds, odds)).sum() + RIDGE / 2 * (weights[1:] ** 2).sum()

    mine = fit_logistic(design, labels)
    start = mine + np.random.default_rng(1).normal(size=design.width)
    assert np.abs(fit_logistic(design, labels, start) - mine).max() < 1e-3
    theirs = minimize(price, np.zeros(design.width), method="BFGS", options={"gtol": 1e-8}).x
    assert np.abs(mine - theirs).max() < 1e-4
    assert price(mine) <= price(theirs) + 1e-9


def test_the_sums_of_a_design_are_those_of_plain_matrices():
    rng = np.random.default_rng(0)
    x, factors = rng.normal(size=(2, 700)), rng.random(700)
    design = design_of(x, knots_of(x))
    dense = dense_of(design)
    assert design.sums(factors) == pytest.approx(factors @ dense)
    factors[:300] = 0
    assert design.squares(factors) == pytest.approx(dense.T @ (factors[:, None] * dense))
    starts = np.array([0, 5, 6, 300])
    wanted = [(factors[a:b, None] * dense[a:b]).sum(axis=0) for a, b in ((0, 5), (5, 6), (6, 300), (300, 700))]
    assert design.sums_by(factors, starts) == pytest.approx(np.array(wanted))
    some, rows = design.thinned(2)
    assert np.array_equal(dense_of(some), dense[rows])


def test_held_out_log_odds_are_close_to_those_of_fits_to_the_other_folds():
    rng = np.random.default_rng(0)
    x, folds = rng.normal(size=(2, 2000)), np.arange(2000) * 4 // 2000
    labels = rng.random(2000) < 1 / (1 + np.exp(-x[0] + x[1] ** 2))
    knots = knots_of(x)
    found, weights, _ = cross_fitted(design_of(x, knots), labels, folds)
    for fold in range(4):
        other = folds != fold
        plain = additive(x, knots, fit_logistic(design_of(x[:, other], knots), labels[other]))
        assert np.abs(found - plain)[~other].mean() < 0.02
    assert np.abs(weights - fit_logistic(design_of(x, knots), labels)).max() < 0.25


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
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 2]))
def test_c_is_that_of_plain_loops(seed, digits):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=150).round(digits + 1)
    labels = rng.random(150) < 1 / (1 + np.exp(-2 * values))
    found = Prefixes.of(values, labels, np.argsort(-values, kind="stable"))
    wanted = plain_c(values.tolist(), labels.tolist())
    assert wanted == 0 if found is None else found.lower_limit(found.labelled, found.slots) == pytest.approx(wanted)


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
    """Folds are drawn by the scores. A monotone map that is not linear also changes the gaps."""
    scores, own, _, _ = world
    moved, mine = scale * scores + shift, scale * own + shift
    one, other = Posterior().fit(scores, own), Posterior().fit(moved, mine)
    assert np.abs(other.posterior(moved, mine) - one.posterior(scores, own)).mean() < 0.02


def test_behind_the_lists_the_last_ten_ranks_count(world):
    scores, own, _, _ = world
    detector = Posterior(depth=30).fit(scores, own)
    found = detector.posterior(scores, np.full_like(own, np.nan))
    assert len(np.unique(found[:, 31:])) == 1
    assert found[0, -1] == pytest.approx(detector.posterior(scores[:, :31], own)[:, 20:30].mean(), abs=1e-7)


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


def test_many_anchors_are_thinned_and_judged_in_blocks(world, monkeypatch):
    scores, own, _, _ = world
    every_third = Posterior().fit(scores[::3], own[::3])
    monkeypatch.setattr("naysay.detectors.posterior.MAX_ANCHORS", 100)
    thinned = Posterior().fit(scores, own)
    whole = thinned.posterior(scores, own)
    assert np.array_equal(whole, every_third.posterior(scores, own))
    monkeypatch.setattr("naysay.detectors._posterior_model._BLOCK", 700)
    assert thinned.posterior(scores, own).tobytes() == whole.tobytes()
