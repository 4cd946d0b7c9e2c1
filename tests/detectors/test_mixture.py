"""Mixture: its fit against plain loops, Bayes' rule by SciPy, its turning point, and planted mixtures."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay.detectors import Mixture, TwoComponentMixture

FAMILIES = ("beta", "normal")


def planted(n=4000, share=0.2, low=(3.0, 12.0), high=(12.0, 4.0), seed=0):
    """Scores of two beta components, and which are of the higher."""
    rng = ns.rng_for(seed)
    false = rng.random(n) < share
    return np.where(false, rng.beta(*high, n), rng.beta(*low, n)), false


def posterior(detector, scores):
    """The suspicion of a list of scores."""
    row = np.atleast_2d(scores)
    return detector.suspicion(ns.Query([0]), ns.Negatives(np.arange(row.size)[None], scores=row))[0]


def density(family, part, x):
    first, second = part
    if family == "normal":
        return math.exp(-(((x - first) / second) ** 2) / 2) / (second * math.sqrt(2 * math.pi))
    whole = math.lgamma(first) + math.lgamma(second) - math.lgamma(first + second)
    return math.exp((first - 1) * math.log(x) + (second - 1) * math.log(1 - x) - whole)


def by_loops(family, scores, bounds, false_share, iterations):
    """Expectation and maximisation, score by score: share, lower, higher."""
    xs = [(s - bounds[0]) / (bounds[1] - bounds[0]) for s in scores]
    chances = [x * false_share / (x * false_share + (1 - x) * (1 - false_share)) for x in xs]
    for _ in range(iterations):
        parts, shares = [], []
        for weights in ([1 - c for c in chances], chances):
            total = sum(weights)
            mean = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
            variance = sum(w * (x - mean) ** 2 for w, x in zip(weights, xs, strict=True)) / total
            size = mean * (1 - mean) / variance - 1
            parts.append((mean * size, (1 - mean) * size) if family == "beta" else (mean, math.sqrt(variance)))
            shares.append(total / len(xs))
        chances = []
        for x in xs:
            one, other = (share * density(family, part, x) for share, part in zip(shares, parts, strict=True))
            chances.append(other / (one + other))
    return shares[1], *parts


# ---- the fit --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_the_fit_is_what_loops_give(family, iterations):
    scores = 2 * planted(120)[0] - 1
    detector = Mixture(family, bounds=(-1, 1), false_share=0.1, iterations=iterations)
    detector.update(scores)
    share, lower, higher = by_loops(family, scores.tolist(), (-1, 1), 0.1, iterations)
    assert detector.components.share == pytest.approx(share, rel=1e-9)
    assert detector.components.lower == pytest.approx(lower, rel=1e-9)
    assert detector.components.higher == pytest.approx(higher, rel=1e-9)


def test_planted_components_come_back():
    scores, false = planted(20_000, share=0.2)
    detector = Mixture(bounds=(0, 1), iterations=500)
    detector.update(scores)
    found = detector.components
    assert found.converged
    assert found.share == pytest.approx(0.2, abs=0.01)
    assert found.lower == pytest.approx((3, 12), rel=0.08)
    assert found.higher == pytest.approx((12, 4), rel=0.08)
    flagged = posterior(detector, scores) >= 0.5
    assert flagged[false].mean() > 0.95
    assert false[flagged].mean() > 0.95


def test_the_gain_tells_one_kind_from_two():
    one = ns.rng_for(2).beta(5, 7, 3000)
    for scores, two in ((one, False), (planted(3000)[0], True)):
        detector = Mixture(bounds=(0, 1), iterations=300)
        detector.update(scores)
        assert (detector.components.gain > 0) == two


# ---- the posterior --------------------------------------------------------------------------------------


def made(family, share, lower, higher, low=0.0, high=1.0):
    detector = Mixture(family, monotone=False)
    detector.components = TwoComponentMixture(family, low, high, share, lower, higher, 0.0, converged=True)
    return detector


@pytest.mark.parametrize(
    ("family", "lower", "higher", "kind"),
    [("beta", (3, 12), (12, 4), stats.beta), ("normal", (0.3, 0.1), (0.7, 0.2), stats.norm)],
)
def test_suspicion_is_bayes_rule(family, lower, higher, kind):
    detector = made(family, 0.15, lower, higher, low=-1.0)
    scores = np.linspace(-0.9, 0.9, 21)
    x = (scores + 1) / 2
    one, other = 0.85 * kind.pdf(x, *lower), 0.15 * kind.pdf(x, *higher)
    np.testing.assert_allclose(posterior(detector, scores), other / (one + other), rtol=1e-9)


@given(
    st.sampled_from(FAMILIES),
    st.floats(0.01, 0.99),
    st.tuples(st.floats(0.3, 20), st.floats(0.3, 20)),
    st.tuples(st.floats(0.3, 20), st.floats(0.3, 20)),
)
def test_the_turn_is_where_the_posterior_turns_and_monotone_levels_it(family, share, one, other):
    means = [p[0] / (p[0] + p[1]) for p in (one, other)] if family == "beta" else [one[0] / 20, other[0] / 20]
    assume(abs(means[0] - means[1]) > 1e-6)
    parts = [one, other] if family == "beta" else [(means[0], one[1] / 20), (means[1], other[1] / 20)]
    lower, higher = parts if means[0] < means[1] else parts[::-1]
    detector = made(family, share, lower, higher)
    scores = np.linspace(0.001, 0.999, 999)
    plain = posterior(detector, scores)
    detector.monotone = True
    level = posterior(detector, scores)
    assert (np.diff(level) >= -1e-12).all()
    low, high = detector.components.increasing_range
    inside = (scores >= low) & (scores <= high)
    np.testing.assert_allclose(level[inside], plain[inside])
    beyond = np.flatnonzero(~inside)
    assert (np.diff(plain)[beyond[:-1][np.diff(beyond) == 1]] <= 1e-12).all()  # outside it falls: nothing else is lost
    assert low == -math.inf or high == math.inf


def test_the_plain_posterior_calls_the_easiest_negatives_false_and_monotone_does_not():
    detector = made("beta", 0.1, (6.66, 10.49), (1.59, 1.02))  # a wide component of false negatives, as fits give
    assert posterior(detector, 0.005)[0] > 0.9
    assert detector.components.increasing_range == (pytest.approx(5.07 / (5.07 + 9.47)), math.inf)
    detector.monotone = True
    assert posterior(detector, 0.005)[0] == posterior(detector, 0.1)[0] < 0.05
    top = made("normal", 0.1, (0.3, 0.2), (0.6, 0.05))
    assert posterior(top, 2.0)[0] < 0.01  # a wide component of true ones wins at the top
    top.monotone = True
    assert posterior(top, 2.0)[0] > 0.5
    same = made("normal", 0.1, (0.3, 0.2), (0.6, 0.2))
    assert same.components.increasing_range == (-math.inf, math.inf)


# ---- weights --------------------------------------------------------------------------------------------


def test_the_weights_are_the_paper_s():
    detector = made("beta", 0.1, (3, 12), (12, 4), low=-1.0)
    scores = np.array([[-0.5, 0.1, 0.9, 0.0], [0.2, 0.3, 0.0, 0.0]])
    mask = np.array([[True, True, True, False], [True, False, True, True]])
    expected = []
    for row, counts in zip(scores.tolist(), mask.tolist(), strict=True):
        values = []
        for score, counted in zip(row, counts, strict=True):
            x = (score + 1) / 2
            one, other = 0.9 * density("beta", (3, 12), x), 0.1 * density("beta", (12, 4), x)
            values.append(one / (one + other) * x if counted else 0.0)
        expected.append([value * sum(counts) / sum(values) for value in values])
    found = detector.weights(scores, mask=mask)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    assert found.sum(axis=1).tolist() == pytest.approx([3, 3])  # their mean over what counts is 1
    np.testing.assert_allclose(
        detector.weights(torch.from_numpy(scores), mask=torch.from_numpy(mask)), expected, atol=1e-15
    )
    np.testing.assert_allclose(detector.weights(scores).mean(axis=1), 1)
