"""The fitted curve: exact without noise, the largest likelihood with it, and errors that repetition confirms."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr

from naysay.quantity._fit import MAX_SEPARATION, _climb, _deviance, end_of, fit, reached

STEPS = np.arange(0, 101, 5.0)


def curve(start, end, tau, steps=STEPS):
    return start + (end - start) * (1 - np.exp(-steps / tau))


def auc_of(separations):
    return ndtr(np.asarray(separations) / np.sqrt(2))


def tossed(rng, separations, comparisons):
    return rng.binomial(comparisons, auc_of(separations)) / comparisons


def fitted(auc, comparisons=3000.0, steps=STEPS, **options):
    return fit(steps, np.asarray(auc), np.full(len(steps), float(comparisons)), **options)


@pytest.mark.parametrize("tau", [8, 33, 60, 200])
@pytest.mark.parametrize(("start", "end"), [(0, 0.75), (0, 2.4), (0, 4), (1, 2), (0.3, 3)])
def test_without_noise_it_is_exact(start, end, tau):
    found = fitted(auc_of(curve(start, end, tau)), 1e6)
    assert (found.start, found.end, found.tau) == pytest.approx((start, end, tau), rel=1e-6, abs=1e-6)
    assert (found.scatter, found.bend, found.last) == (1.0, 0.0, 100.0)


def lost(numbers, steps, auc, comparisons):
    """The deviance, one probe after the other."""
    start, rise, rate = numbers
    total = 0.0
    for step, seen in zip(steps, auc, strict=True):
        share = step / steps[-1]
        growth = share if rate == 0 else (1 - math.exp(-rate * share)) / (1 - math.exp(-rate))
        chance = 0.5 * math.erfc(-(start + rise * growth) / 2)
        for part, model in ((seen, chance), (1 - seen, 1 - chance)):
            total += 2 * comparisons * part * math.log(part / model) if part else 0.0
    return total


@pytest.mark.parametrize("columns", [[1, 2], [0, 1, 2]])
def test_the_search_does_not_stop_on_a_hill(columns):
    """Curves of all kinds, rising late, falling and flat: no start among many finds one that is clearly better."""
    rng = np.random.default_rng(9)
    worse = 0
    for trial in range(50):
        shape = curve(rng.choice([0, 1]), rng.uniform(-0.5, 4), math.exp(rng.uniform(1, 6)))
        auc = tossed(rng, shape if trial % 4 else 2 / (1 + np.exp(4 - STEPS / 10)), 500)
        probes = (STEPS / 100, auc, np.full(21, 500.0))
        numbers = _climb(probes, columns)
        best = float(_deviance(numbers, probes))
        for rate in (-3, 2, 30):
            numbers = np.array([0.1, 1, rate])
            found = minimize(_loss, numbers[columns], (columns, probes), "Nelder-Mead", options={"maxiter": 300})
            worse += found.fun < best - 0.05
    assert worse <= 1


def _loss(some, columns, probes):
    numbers = np.zeros(3)
    numbers[columns] = some
    return float(_deviance(numbers, probes))


@pytest.mark.parametrize("seed", range(6))
def test_no_other_curve_is_likelier(seed):
    """Against a search without derivatives, over start = 0 and over all three; the choice between the two is stated."""
    rng = np.random.default_rng(seed)
    start = 0.4 * (seed % 2)
    auc = tossed(rng, curve(start, rng.uniform(1, 3), rng.uniform(20, 60)), 2000)
    found = fitted(auc, 2000)
    options = {"xatol": 1e-9, "fatol": 1e-10, "maxiter": 4000}
    at = (STEPS, auc, 2000)
    zero = minimize(lambda two: lost((0, *two), *at), [1, 2], method="Nelder-Mead", options=options)
    free = minimize(lambda three: lost(three, *at), [0.2, 1, 2], method="Nelder-Mead", options=options)
    rising = zero.fun - free.fun > 6.63 * max(1, free.fun / (len(STEPS) - 3)) and free.x[0] > 0
    assert rising == bool(seed % 2)
    assert found.numbers == pytest.approx(free.x if rising else [0, *zero.x], rel=1e-3, abs=1e-4)
    assert found.scatter == pytest.approx(max(1, free.fun / 18 if rising else zero.fun / 19), rel=1e-6)


def test_the_covariance_is_that_of_repetition():
    rng = np.random.default_rng(0)
    truth = curve(0, 1.7, 40)
    found = [fitted(tossed(rng, truth, 1500), 1500) for _ in range(120)]
    found = [one for one in found if one.start == 0]
    assert len(found) > 114
    spread = np.cov(np.array([one.numbers for one in found]).T)
    claimed = np.mean([one.covariance / one.scatter for one in found], axis=0)
    for row, column in ((1, 1), (2, 2), (1, 2)):
        assert claimed[row, column] == pytest.approx(spread[row, column], rel=0.35)
    assert np.mean([one.end for one in found]) == pytest.approx(1.7, rel=0.01)
    assert claimed[0].tolist() == [0, 0, 0]


def test_a_start_is_fitted_only_where_probes_ask_for_it():
    rng = np.random.default_rng(1)
    chance = [fitted(tossed(rng, curve(0, 2, 40), 1000), 1000).start for _ in range(60)]
    trained = [fitted(tossed(rng, curve(0.5, 2, 40), 1000), 1000).start for _ in range(20)]
    assert np.count_nonzero(chance) <= 4
    assert min(trained) > 0
    assert np.mean(trained) == pytest.approx(0.5, abs=0.02)
    below = fitted(auc_of(curve(-0.5, 2, 40)), 1000)  # worse than chance at first: no start below 0
    assert below.start == 0


def test_perfect_probes_have_a_finite_curve():
    rng = np.random.default_rng(2)
    auc = tossed(rng, curve(0, 4, 20), 100)
    assert (auc == 1).sum() > 5
    found = fitted(auc, 100)
    assert 3 < found.end < 6
    assert np.isfinite(found.covariance).all()
    silent = fitted(np.ones(21), 100)
    assert np.isfinite(silent.numbers).all()
    assert not silent.is_above(2, 1, 1.28)


def test_a_straight_line_has_no_end():
    found = fitted(auc_of(0.02 * STEPS))
    assert found.numbers[2] == pytest.approx(0, abs=1e-6)
    assert found.numbers[1] == pytest.approx(2)
    assert found.is_above(1, 0, 3)
    assert not found.is_above(2, 0, 0.1)
    assert end_of(np.array([0.0, 2.0, 1e-3])) == MAX_SEPARATION


def test_probes_that_jump_widen_the_error_and_bend_nothing():
    rng = np.random.default_rng(3)
    found = [fitted(auc_of(curve(0, 2, 40) + 0.1 * rng.standard_normal(21)), 5000) for _ in range(40)]
    assert min(one.scatter for one in found) > 3
    assert sum(one.bend > 0 for one in found) <= 3
    quiet = fitted(auc_of(curve(0, 2, 40)), 5000)
    for one in found[:5]:
        assert one.covariance[2, 2] > 2 * quiet.covariance[2, 2]


def test_another_shape_is_seen():
    share = STEPS / 100
    twice = 1 - np.exp(-40 * share) + 0.5 * np.maximum(share - 0.5, 0)
    assert fitted(auc_of(1.5 * twice), 10_000).bend > 0.05
    power = fitted(auc_of(2.5 * (1 - 1 / (1 + 5 * share))), 20_000)
    assert 0.01 < power.bend < 0.05


def after(wait, start, end, tau, steps=STEPS):
    """A curve that stays at its start up to a step."""
    return curve(start, end, tau, np.maximum(steps - wait, 0))


@pytest.mark.parametrize("wait", [10, 25, 50])
@pytest.mark.parametrize(("start", "end", "tau"), [(0, 2.4, 12), (0, 1, 20), (0.5, 2, 12)])
def test_a_curve_that_rises_late_is_exact_too(wait, start, end, tau):
    found = fitted(auc_of(after(wait, start, end, tau)), 1e6)
    assert found.wait == wait
    assert (found.start, found.end, found.tau) == pytest.approx((start, end, tau), rel=1e-6, abs=1e-6)
    assert (found.scatter, found.bend) == (1.0, 0.0)
    assert found.shares(np.array([0, wait, 100])).tolist() == [0, 0, 1]


def test_no_other_wait_is_likelier():
    """Against a search without derivatives at every step of a probe that leaves five after it."""
    auc = tossed(np.random.default_rng(11), after(30, 0, 2, 15), 2000)
    found = fitted(auc, 2000)

    def least(wait):
        probes = (np.maximum(STEPS - wait, 0) / (100 - wait), auc, np.full(21, 2000.0))
        return minimize(_loss, [1, 2], ([1, 2], probes), "Nelder-Mead", options={"maxiter": 400}).fun

    lost = {wait: least(wait) for wait in STEPS[:-5].tolist()}
    assert found.wait == min(lost, key=lambda wait: lost[wait])
    assert found.scatter == pytest.approx(max(1, lost[found.wait] / 18), rel=1e-4)  # 21 - 2 - 1


def test_a_wait_is_fitted_only_where_probes_ask_for_it():
    rng = np.random.default_rng(12)
    waits = [fitted(tossed(rng, curve(0, 2, 40), 60), 60).wait for _ in range(50)]
    assert np.count_nonzero(waits) <= 2
    late = [fitted(tossed(rng, after(30, 0, 2, 15), 1000), 1000).wait for _ in range(10)]
    assert np.isin(late, [25, 30, 35]).all()
    flat_to_the_end = fitted(auc_of(after(85, 0, 2, 5)), 1000)
    assert flat_to_the_end.wait <= 75  # five steps with a probe are left to fit


def test_the_same_pairs_add_a_common_shift():
    rng = np.random.default_rng(4)
    truth = curve(0, 2, 40)
    one, same = (fitted(tossed(np.random.default_rng(5), truth, 500), 500, same_pairs=same) for same in (False, True))
    assert one.numbers.tolist() == same.numbers.tolist()
    added = same.covariance - one.covariance
    assert np.linalg.matrix_rank(added, tol=1e-9) == 1
    moved = np.sqrt(added[1, 1])
    assert moved > np.sqrt(one.covariance[1, 1])
    # all probes a standard error too high is what it has to hold
    n, m = 400, 1
    ends = []
    for _ in range(80):
        positive, negatives = rng.standard_normal(n), rng.standard_normal((n, m))
        auc = [(positive + mu > negatives[:, 0]).mean() for mu in truth]
        ends.append(fitted(auc, n, same_pairs=True))
    normals = [(one.numbers[1] - truth[-1]) / np.sqrt(one.covariance[1, 1]) for one in ends]
    assert 0.75 < np.std(normals) < 1.15


def test_draws_have_the_covariance_and_an_end():
    found = fitted(tossed(np.random.default_rng(6), curve(0.5, 2, 30), 2000), 2000)
    normals = np.random.default_rng(7).standard_normal((20_000, 3))
    drawn = found.drawn(normals)
    assert drawn[0].tolist() == found.numbers.tolist()
    assert np.cov(drawn[1:].T) == pytest.approx(found.covariance, rel=0.05, abs=1e-4)
    wide = fitted(auc_of(0.02 * STEPS)).drawn(normals[:100])
    assert (end_of(wide) <= MAX_SEPARATION).all()
    assert (wide[:, 2] > 0).all()


def test_curves_are_computed_together():
    numbers = np.array([[0, 1, 2], [0.5, 1, 0], [0, 2, 1e-12]], float)
    shares = np.array([[0, 0.5, 1], [0, 0.5, 2], [0, 0.5, 1]])
    for row, (one, share) in enumerate(zip(numbers, shares, strict=True)):
        assert reached(numbers, shares)[row] == pytest.approx(reached(one, share), abs=1e-12)
    assert reached(numbers, shares)[1] == pytest.approx([0.5, 1, 2.5])
    assert reached(numbers, shares)[0] == pytest.approx([0, (1 - np.exp(-1)) / (1 - np.exp(-2)), 1])
