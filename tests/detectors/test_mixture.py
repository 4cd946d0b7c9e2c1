"""Mixture: its fit against loops, what each round keeps, Bayes' rule by SciPy, its turn, planted mixtures, refusals."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay.detectors.mixture import Mixture
from naysay.detectors.two_component_mixture import TwoComponentMixture
from naysay.testing import check_detector, planted_world

FAMILIES = ("beta", "normal")


def planted(n=4000, share=0.2, low=(3.0, 12.0), high=(12.0, 4.0), seed=0):
    """Scores of two beta components, and which are of the higher."""
    rng = ns.rng_for(seed)
    false = rng.random(n) < share
    return np.where(false, rng.beta(*high, n), rng.beta(*low, n)), false


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
    assert detector.components.iterations == iterations


@pytest.mark.parametrize("family", FAMILIES)
def test_every_round_keeps_the_mean_and_the_variance_of_the_scores(family):
    scores, _ = planted()
    for iterations in (1, 3, 50):
        detector = Mixture(family, bounds=(0, 1), iterations=iterations)
        detector.update(scores)
        found = detector.components
        parts = [stats.beta(*p) if family == "beta" else stats.norm(*p) for p in (found.lower, found.higher)]
        weights = (1 - found.share, found.share)
        mean = sum(w * part.mean() for w, part in zip(weights, parts, strict=True))
        square = sum(w * (part.var() + part.mean() ** 2) for w, part in zip(weights, parts, strict=True))
        assert mean == pytest.approx(scores.mean(), rel=1e-9)
        assert square - mean**2 == pytest.approx(scores.var(), rel=1e-9)


def likelihoods(family, scores, iterations, **settings):
    found = []
    for count in range(1, iterations + 1):
        detector = Mixture(family, iterations=count, tolerance=1e-300, **settings)
        detector.update(scores)
        found.append(detector.components.log_likelihood)
    return np.array(found)


@pytest.mark.parametrize("seed", range(4))
def test_for_normal_the_likelihood_never_falls(seed):
    rng = ns.rng_for(seed)
    scores = np.concatenate([rng.normal(0, 1, 300), rng.normal(rng.uniform(0.5, 4), rng.uniform(0.3, 2), 60)])
    assert (np.diff(likelihoods("normal", scores, 15)) >= -1e-12).all()


def test_for_beta_it_may_fall_and_does():
    """The method of moments is not the likeliest component: the reason why no such promise is made."""
    falls = [np.diff(likelihoods("beta", planted(n, share)[0], 40)).min() for n, share in ((400, 0.02), (400, 0.5))]
    assert min(falls) < -1e-9


def test_the_likelihood_is_that_of_the_mixture():
    scores, _ = planted(500)
    detector = Mixture(bounds=(0, 1), iterations=5)
    detector.update(scores)
    found = detector.components
    both = (1 - found.share) * stats.beta.pdf(scores, *found.lower) + found.share * stats.beta.pdf(
        scores, *found.higher
    )
    assert found.log_likelihood == pytest.approx(np.log(both).mean(), rel=1e-9)
    mean, variance = scores.mean(), scores.var()
    size = mean * (1 - mean) / variance - 1
    alone = stats.beta.logpdf(scores, mean * size, (1 - mean) * size).mean()
    assert found.gain == pytest.approx(2 * 500 * (np.log(both).mean() - alone) - 3 * math.log(500), rel=1e-9)


def test_planted_components_come_back():
    scores, false = planted(20_000, share=0.2)
    detector = Mixture(bounds=(0, 1), iterations=500)
    detector.update(scores)
    found = detector.components
    assert found.converged
    assert found.share == pytest.approx(0.2, abs=0.01)
    assert found.lower == pytest.approx((3, 12), rel=0.08)
    assert found.higher == pytest.approx((12, 4), rel=0.08)
    flagged = detector.posterior(scores) >= 0.5
    assert flagged[false].mean() > 0.95
    assert false[flagged].mean() > 0.95


def test_planted_normal_components_come_back():
    rng = ns.rng_for(1)
    scores = np.concatenate([rng.normal(-3, 1, 9000), rng.normal(2, 0.5, 1000)])
    detector = Mixture("normal", iterations=500)
    detector.update(scores)
    found = detector.components
    width = found.high - found.low
    assert found.share == pytest.approx(0.1, abs=0.01)
    assert [found.low + width * found.lower[0], width * found.lower[1]] == pytest.approx([-3, 1], abs=0.05)
    assert [found.low + width * found.higher[0], width * found.higher[1]] == pytest.approx([2, 0.5], abs=0.05)


def test_the_gain_tells_one_kind_from_two():
    one = ns.rng_for(2).beta(5, 7, 3000)
    for scores, two in ((one, False), (planted(3000)[0], True)):
        detector = Mixture(bounds=(0, 1), iterations=300)
        detector.update(scores)
        assert (detector.components.gain > 0) == two


@pytest.mark.parametrize("family", FAMILIES)
def test_the_higher_component_is_the_false_one_also_if_the_two_change_places(family):
    rng = np.random.default_rng(17)
    scores = np.concatenate([rng.normal(0.5, 0.02, 40), rng.normal(0.45, 0.2, 60)])  # one inside the other
    detector = Mixture(family, bounds=(-0.5, 1.5), false_share=0.5, iterations=60, tolerance=1e-300)
    detector.update(scores)
    share, first, second = by_loops(family, scores.tolist(), (-0.5, 1.5), 0.5, 60)
    means = [p[0] if family == "normal" else p[0] / sum(p) for p in (first, second)]
    assert means[0] > means[1]
    assert detector.components.share == pytest.approx(1 - share, rel=1e-9)
    assert detector.components.higher == pytest.approx(first, rel=1e-9)
    assert detector.components.lower == pytest.approx(second, rel=1e-9)


def test_it_stops_where_nothing_changes():
    scores, _ = planted()
    long, short = Mixture(iterations=1000), Mixture(iterations=3)
    long.update(scores)
    short.update(scores)
    assert long.components.converged
    assert long.components.iterations < 1000
    assert not short.components.converged
    assert short.components.iterations == 3


# ---- the posterior --------------------------------------------------------------------------------------


def made(family, share, lower, higher, low=0.0, high=1.0):
    detector = Mixture(family, monotone=False)
    detector.components = TwoComponentMixture(family, low, high, share, lower, higher, 0.0, 0.0, 1, converged=True)
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
    negatives = ns.Negatives(np.arange(21)[None], scores=scores[None])
    expected = other / (one + other)
    np.testing.assert_allclose(detector.suspicion(ns.Query([0]), negatives)[0], expected, rtol=1e-9)
    np.testing.assert_allclose(detector.posterior(scores), expected, rtol=1e-9)


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
    plain = detector.posterior(scores)
    detector.monotone = True
    level = detector.posterior(scores)
    assert (np.diff(level) >= -1e-12).all()
    low, high = detector.components.increasing_range
    inside = (scores >= low) & (scores <= high)
    np.testing.assert_allclose(level[inside], plain[inside])
    beyond = np.flatnonzero(~inside)
    assert (np.diff(plain)[beyond[:-1][np.diff(beyond) == 1]] <= 1e-12).all()  # outside it falls: nothing else is lost
    assert low == -math.inf or high == math.inf


def test_the_plain_posterior_calls_the_easiest_negatives_false_and_monotone_does_not():
    detector = made("beta", 0.1, (6.66, 10.49), (1.59, 1.02))  # a wide component of false negatives, as fits give
    assert detector.posterior(0.005)[0] > 0.9
    assert detector.components.increasing_range == (pytest.approx(5.07 / (5.07 + 9.47)), math.inf)
    detector.monotone = True
    assert detector.posterior(0.005)[0] == detector.posterior(0.1)[0] < 0.05
    top = made("normal", 0.1, (0.3, 0.2), (0.6, 0.05))
    assert top.posterior(2.0)[0] < 0.01  # a wide component of true ones wins at the top
    top.monotone = True
    assert top.posterior(2.0)[0] > 0.5
    same = made("normal", 0.1, (0.3, 0.2), (0.6, 0.2))
    assert same.components.increasing_range == (-math.inf, math.inf)


def test_scores_beyond_the_fitted_range_are_answered():
    scores, _ = planted()
    detector = Mixture()
    detector.update(scores)
    low, high = detector.posterior([-5.0, 5.0])
    assert low < 0.5 < high


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


def test_weights_rise_with_hardness_and_fall_where_negatives_are_likely_false():
    detector = made("beta", 0.1, (3, 12), (12, 4))
    weights = detector.weights(np.linspace(0.01, 0.99, 99)[None])[0]
    hardest = int(weights.argmax())
    assert 20 < hardest < 70
    assert (np.diff(weights[:hardest]) > 0).all()
    assert weights[-1] < 1e-3 < weights[0]


def test_weights_of_rows_with_nothing_left():
    detector = made("normal", 0.5, (0.1, 0.01), (0.9, 0.01))
    assert detector.weights([[0.9, 0.95]]).tolist() == [[0.0, 0.0]]
    assert detector.weights([[math.inf, 0.1]], mask=[[False, True]]).tolist() == [[0.0, 1.0]]
    assert detector.weights([[-0.5, 0.1]]).tolist() == [[0.0, 2.0]]  # below the fitted range: not hard at all
    assert detector.weights(np.zeros((0, 3))).shape == (0, 3)
    assert detector.weights(np.zeros((2, 0))).shape == (2, 0)


# ---- the contract ---------------------------------------------------------------------------------------


def detector_state():
    detector = Mixture(bounds=(0, 1))
    detector.update(planted()[0])
    return detector.state()


@pytest.mark.parametrize("family", FAMILIES)
def test_it_keeps_the_promises_of_a_detector(family):
    scores, _ = planted(60)
    negatives = ns.Negatives(np.arange(60).reshape(6, 10) - 2, scores=scores.reshape(6, 10))
    detector = Mixture(family)
    detector.update(negatives.scores, mask=negatives.mask)
    check_detector(detector, ns.Query(np.arange(6)), negatives)
    check_detector(detector, ns.Query(torch.arange(6)), negatives.to("cpu"))
    found = detector.suspicion(ns.Query(torch.arange(6)), negatives.to("cpu"))
    assert torch.is_tensor(found)
    np.testing.assert_array_equal(found.numpy(), detector.suspicion(ns.Query(np.arange(6)), negatives))


def test_what_is_masked_has_no_say():
    scores, _ = planted(200)
    mask = np.ones(200, bool)
    mask[::3] = False
    one, other = Mixture(), Mixture()
    one.update(np.where(mask, scores, math.nan), mask=mask)
    other.update(torch.from_numpy(scores[mask].reshape(-1, 7)))
    assert one.components == other.components


@pytest.mark.parametrize("family", FAMILIES)
def test_the_state_is_all_of_it(family):
    first, second = Mixture(family), Mixture(family)
    assert first.state() == {}
    first.update(planted()[0])
    second.restore(first.state())
    assert second.components == first.components
    settings = f"family={family!r}, bounds=None, false_share=0.05, iterations=10, tolerance=1e-06, monotone=True"
    assert repr(first).startswith(f"Mixture({settings}; share=0.")
    assert first.state()["family"] == FAMILIES.index(family)
    second.restore({})
    assert second.components is None
    assert repr(second) == f"Mixture({settings}; not fitted)"


# ---- a world with a known answer ------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "noise"), list(itertools.product(FAMILIES, (0, 0.5))))
def test_in_a_planted_world_most_false_negatives_are_found(family, noise):
    world = planted_world(400, 600, per_anchor=12, known_share=0.5, noise=noise, seed=1)
    query = ns.Query(np.arange(400))
    negatives = ns.pools.Everything(world.known).draw(query, 200, rng=ns.rng_for(0))
    negatives = replace(negatives, scores=world.scores(query.anchors, negatives.ids))
    detector = Mixture(family, bounds=(-1, 1))
    detector.update(negatives.scores)
    truth, flagged = world.is_false_negative(query.anchors, negatives.ids), detector.suspicion(query, negatives) >= 0.5
    assert detector.components.gain > 0
    assert flagged[truth].mean() > 0.9
    assert truth[flagged].mean() > 8 * truth.mean()  # of the anchor's cluster, which is a twelfth, a tenth is false


# ---- refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"family": "gamma"}, r"Mixture: `family` must be one of 'beta', 'normal', got 'gamma'"),
        ({"bounds": 1}, r"`bounds` must be two finite numbers, the lower first, got 1"),
        ({"bounds": (0, "one")}, r"`bounds` must be two finite numbers, the lower first, got \(0, 'one'\)"),
        ({"bounds": (1, 1)}, r"`bounds` must be two finite numbers, the lower first, got \(1, 1\)"),
        ({"bounds": (0, math.inf)}, r"`bounds` must be two finite numbers, the lower first, got \(0, inf\)"),
        ({"false_share": 0}, r"`false_share` must be a number above 0 and below 1, got 0"),
        ({"false_share": 1.0}, r"`false_share` must be a number above 0 and below 1, got 1.0"),
        ({"tolerance": 0}, r"`tolerance` must be a finite number above 0, got 0"),
        ({"tolerance": math.nan}, r"`tolerance` must be a finite number above 0, got nan"),
        ({"iterations": 0}, r"`iterations` must be at least 1, got 0"),
        ({"monotone": "yes"}, r"`monotone` must be True or False, got 'yes'"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ns.NaysayError, match=message):
        Mixture(**settings)


GOOD = np.linspace(0, 1, 20) ** 2


@pytest.mark.parametrize(
    ("settings", "scores", "mask", "message"),
    [
        ({}, GOOD[:9], None, r"Mixture.update: `scores` must be at least 10, got 9. Use those of more anchors"),
        ({}, [], None, r"`scores` must be at least 10, got 0"),
        ({}, np.full(20, 0.3), None, r"`scores` must be of more than one value, got 20 of 0.3"),
        ({}, [*GOOD, math.nan], None, r"`scores` must be finite, got nan at row 20 \(1 such row\)"),
        ({}, [GOOD, [*GOOD[1:], math.inf]], None, r"`scores` must be finite, got inf at row 1, slot 19 \(1 such row\)"),
        (
            {"bounds": (0, 1)},
            [[9.0, *GOOD], [*GOOD, 2.0]],
            [[False] + [True] * 20, [True] * 21],
            r"`scores` must be within the bounds \(0, 1\), got 2.0 at row 1, slot 20 \(1 such row\)",
        ),
        ({}, ["high"] * 20, None, r"`scores` must be numbers, got dtype <U4"),
        ({}, GOOD, GOOD, r"`mask` must be True or False of shape \(20,\), got float64 of shape \(20,\)"),
        ({}, GOOD, [True], r"`mask` must be True or False of shape \(20,\), got bool of shape \(1,\)"),
        ({"bounds": (0, 0.5)}, GOOD, None, r"`scores` must be within the bounds \(0, 0.5\), got 0.5.* at row 14 \(6 s"),
        (
            {"family": "normal"},
            [0.0] * 30 + [1.0],
            None,
            r"`scores` must be of two components, got a component of less than on",
        ),
        (
            {},
            [0.0] * 20 + [1.0] * 10,
            None,
            r"`scores` must be of two components with a variance, got one component at 1 of the ran",
        ),
        (
            {"iterations": 99},
            [*np.linspace(0, 0.3, 40), *[0.9] * 10],
            None,
            r"`scores` must be of two components, got a component Beta\(2",
        ),
    ],
)
def test_scores_that_cannot_be_fitted(settings, scores, mask, message):
    detector = Mixture(**settings)
    with pytest.raises(ns.NaysayError, match=message):
        detector.update(scores, mask=mask)
    assert detector.components is None


def test_a_rounded_cosine_is_within_its_bounds():
    detector = Mixture(bounds=(0, 1))
    detector.update([*GOOD, 1 + 1e-6])
    assert detector.components.high == 1


def test_nothing_is_answered_before_a_fit():
    negatives = ns.Negatives(np.zeros((1, 2), np.int64), scores=np.zeros((1, 2)))
    detector = Mixture()
    asked = (lambda: detector.suspicion(ns.Query([0]), negatives), lambda: detector.weights([[0.5]]))
    for ask, name in zip(
        (*asked, lambda: detector.posterior([0.5])), ("suspicion", "weights", "posterior"), strict=True
    ):
        with pytest.raises(
            ns.NaysayError, match=rf"Mixture.{name}: `scores` must be fitted before, got no update. Call"
        ):
            ask()


def test_questions_that_cannot_be_answered():
    detector = Mixture()
    detector.restore(detector_state())
    with pytest.raises(ns.NaysayError, match=r"Mixture.suspicion: `negatives.scores` must be given, got None"):
        detector.suspicion(ns.Query([0]), ns.Negatives(np.zeros((1, 2), np.int64)))
    with pytest.raises(ns.NaysayError, match=r"Mixture.posterior: `scores` must be finite, got inf at row 0"):
        detector.posterior([math.inf])
    with pytest.raises(ns.NaysayError, match=r"Mixture.weights: `scores` must be of shape \(B, n\), got shape \(1,\)"):
        detector.weights([0.5])
    with pytest.raises(
        ns.NaysayError, match=r"Mixture.weights: `scores` must be finite, got nan at row 0, slot 1 \(1 s"
    ):
        detector.weights([[0.5, math.nan]])
    with pytest.raises(
        ns.NaysayError, match=r"`mask` must be True or False of shape \(1, 2\), got bool of shape \(1, 1\)"
    ):
        detector.weights([[0.5, 0.1]], mask=[[True]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, r"Mixture.restore: `state` must be what `state` returned, got NoneType"),
        ({"iterations": -1}, r"`iterations` must be at least 1, got -1"),
        ({"iterations": np.array([1, 2])}, r"`iterations` must be a whole number, got array\(\[1, 2\]\)"),
        (
            {"family": 1},
            r"`family` must be 0, for beta, got 1. 0 is beta and 1 normal: create a Mixture of that family",
        ),
        ({"family": "normal"}, r"`family` must be a whole number, got 'normal'"),
        ({"converged": np.array([True, False])}, r"`converged` must be a whole number, got array"),
        ({"converged": 2}, r"`converged` must be at most 1, got 2"),
        (
            {"higher": (1e308, 2.0)},
            r"`higher` must be a component of numbers above 0 and at most 1e\+12, got \(1e\+308",
        ),
        ({"odd": 1}, r"`state` must be what `state` returned, got the unknown key 'odd'"),
        ({"share": 1.0}, r"`share` must be below 1, got 1.0"),
        ({"share": math.nan}, r"`share` must be finite, got nan"),
        ({"low": 2.0}, r"`low` must be below high, 1, got 2.0"),
        ({"lower": (0.0, 1.0)}, r"`lower` must be a component of numbers above 0 and at most 1e\+12, got \(0.0, 1.0\)"),
        (
            {"lower": (12.0, 4.0), "higher": (3.0, 12.0)},
            r"`lower` must be of a smaller mean than \(3.0, 12.0\), got \(12",
        ),
        ({"higher": (1.0,)}, r"`higher` must be numbers of shape \(2,\), got float64 of shape \(1,\)"),
    ],
)
def test_states_that_do_not_fit(change, message):
    detector = Mixture()
    detector.restore(detector_state())
    before = detector.components
    with pytest.raises(ns.NaysayError, match=message):
        detector.restore(None if change is None else {**detector_state(), **change})
    assert detector.components is before


def test_a_state_that_is_not_whole():
    state = detector_state()
    del state["gain"]
    with pytest.raises(
        ns.NaysayError, match=r"Mixture.restore: `state` must be what `state` returned, got no 'gain' in"
    ):
        Mixture().restore(state)
    with pytest.raises(
        ns.NaysayError, match=r"`state` must be what `state` returned, got no 'family' in \['centres'\]"
    ):
        Mixture().restore({"centres": None})
