"""How many negatives: the golden numbers of the source's model, the adaptive schedule, fractional k."""

import math

import numpy as np
import pytest

import naysay as ns
from tests.contract import oracles

# separation of the labels: the best k over the simulated curve of 60 points, at weight 0.9
GOLDEN = {0.5: 26, 0.75: 6, 1: 4, 1.5: 6, 2: 11, 2.4: 20, 2.5: 24, 3: 61, 3.5: 189, 4: 733}


def estimate(separation, **options):
    curve = [oracles.auc_of(value) for value in oracles.simulated_curve(separation)]
    return ns.quantity.estimate(oracles.auc_of(separation), curve, **options)


@pytest.mark.parametrize(("auc", "separation"), [(0.5, 0.0), (0.75, 0.95387), (0.95, 2.32617), (0.998, 4.07034)])
def test_the_separation_of_an_auc_is_a_closed_form(auc, separation):
    assert ns.quantity.separation(auc) == pytest.approx(separation, abs=1e-5)


def test_the_separation_of_an_array_is_that_of_its_numbers():
    aucs = np.array([0.6, 0.75, 0.9])
    assert ns.quantity.separation(aucs).tolist() == [ns.quantity.separation(float(auc)) for auc in aucs]
    assert oracles.auc_of(ns.quantity.separation(0.83)) == pytest.approx(0.83, abs=1e-12)


@pytest.mark.parametrize(("separation", "k"), GOLDEN.items())
def test_the_golden_numbers_of_negatives(separation, k):
    found = estimate(separation)
    assert found.k == k
    assert not found.at_edge


@pytest.mark.parametrize(("auc", "k"), [(0.75, 4), (0.95, 18)])
def test_the_golden_numbers_from_aucs(auc, k):
    assert estimate(ns.quantity.separation(auc)).k == k


@pytest.mark.parametrize(("weight", "k"), [(0.95, 4), (0.9, 4), (0.85, 14), (0.8, 271)])
def test_the_golden_numbers_for_other_weights(weight, k):
    assert estimate(1.0, weight=weight).k == k


def test_an_optimum_at_the_edge_is_said():
    assert estimate(1.0, weight=0.7).at_edge
    assert estimate(4.0, k_max=50).at_edge
    assert estimate(4.0, k_max=50).k == 50
    assert not estimate(2.0, k_max=50).at_edge


@pytest.mark.parametrize("separation", [0.75, 2.0])
def test_the_curve_is_that_of_plain_integration(separation):
    found = estimate(separation, k_max=40)
    assert len(found.curve) == 40
    reached = oracles.simulated_curve(separation)
    for k in (1, 2, 7, 40):
        assert found.curve[k - 1] == pytest.approx(oracles.mean_effectiveness(k, separation, reached), abs=1e-7)
    assert found.k == int(np.argmax(found.curve)) + 1


def test_exact_cases_of_the_curve():
    """Labels that are noise: A = 1/(K+1). With K = 1, A = AUC. So v at K = 1 is known for any AUC."""
    found = ns.quantity.estimate(0.75, [0.6], k_max=3)
    good, bad = 0.75 * 0.4, 0.6 * 0.25
    assert found.curve[0] == pytest.approx(0.9 * (good - bad) + 0.1 * (1 - good - bad), abs=1e-10)


def test_the_number_of_negatives_rises_quickly_and_falls_slowly():
    at = ns.quantity.adaptive(peak=12, steps=1000)
    assert at(0) == pytest.approx(1)
    assert at(100) == pytest.approx(12)
    assert at(50) == pytest.approx(6.5)
    assert at(550) == pytest.approx(6.5, abs=0.02)
    assert at(1000) == pytest.approx(1)
    values = [at(step) for step in range(1001)]
    assert values.index(max(values)) == 100
    later = ns.quantity.adaptive(peak=12, steps=1000, turning=0.5)
    assert later(500) == pytest.approx(12)


def test_a_fractional_k_is_right_on_average():
    found = ns.quantity.realise(2.3, 20_000, ns.rng_for(0))
    assert set(found.tolist()) == {2, 3}
    assert abs(found.mean() - 2.3) < 4 * math.sqrt(0.3 * 0.7 / 20_000)
    assert ns.quantity.realise(3, 5, ns.rng_for(0)).tolist() == [3] * 5
    assert (ns.quantity.realise(2.3, 50, ns.rng_for(1)) == ns.quantity.realise(2.3, 50, ns.rng_for(1))).all()
    assert ns.quantity.realise(2.5, 0, ns.rng_for(0)).shape == (0,)


def test_a_schedule_goes_into_a_sampler_as_it_is():
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], 1, 50))
    at = ns.quantity.adaptive(peak=6, steps=100)
    counts = []
    for step in (0, 10, 100):
        query = ns.Query(np.zeros(400, int), step=step)
        counts.append(ns.samplers.Static(pool).sample(query, at(step), rng=ns.rng_for(0, step)).mask.sum(axis=1).mean())
    assert counts == pytest.approx([1, 6, 1], abs=0.1)


def test_an_online_estimate_finds_k_during_the_run():
    """A run whose separation rises to 1: K* of that curve, from a probe of scores, before the run ends."""
    online = ns.quantity.Online(1000)
    for step in range(0, 601, 50):
        level = 1 - math.exp(-step / 200)
        for place, split in enumerate(("validation", "training")):
            rng = ns.rng_for(1, step, rank=place)
            online.record(step, level + rng.standard_normal(2000), rng.standard_normal((2000, 2)), split)
    found = online.estimate()
    assert found.low <= found.k <= found.high
    assert 3 <= found.k <= 8
