"""Online: the known k from noiseless curves, an interval that covers, refusals while it cannot tell, and its state."""

import numpy as np
import pytest
from in_threads import in_threads

import naysay as ns
from naysay.errors import NaysayError
from naysay.quantity import adaptive, auc, estimate, simulated
from naysay.quantity.online import Online

STEPS = 3000
SHARES = np.linspace(0, 1, 21)


def grown(end, *, start=0.0, tau=1000.0, share=SHARES):
    return start + (end - start) * (1 - np.exp(-share * STEPS / tau))


def state_of(validation, training=None, *, comparisons=1e6, share=SHARES):
    """The state of a run whose separations were measured without error."""
    curves = [np.asarray(curve) for curve in (validation, training) if curve is not None]
    step = np.round(share * STEPS).astype(np.int64)
    aucs = np.concatenate([auc(curve) for curve in curves])
    return {
        "steps": STEPS,
        "split": np.repeat(np.arange(len(curves), dtype=np.int8), len(share)),
        "step": np.tile(step, len(curves)),
        "auc": aucs,
        "error": np.sqrt(aucs * (1 - aucs) / comparisons),
        "comparisons": np.full(len(aucs), float(comparisons)),
    }


def restored(*curves, share=SHARES, comparisons=1e6, **options):
    online = Online(STEPS, **options)
    online.restore(state_of(*curves, share=share, comparisons=comparisons))
    return online


def simulate(rng, curves, n, m, *, share=SHARES, steps=STEPS, **options):
    """A run with noise: scores N(mu', 1) against N(0, 1)."""
    online = Online(steps, **options)
    for place, at in enumerate(share):
        for split, curve in curves.items():
            positive = rng.standard_normal(n) + curve[place]
            online.record(round(at * steps), positive, rng.standard_normal((n, m)), split)
    return online


# ---- the known answer -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "k"), [(0.75, 6), (1, 4), (2.4, 20), (4, 733)])
def test_without_noise_it_is_the_paper_s_curve(mu, k):
    found = restored(grown(mu), grown(mu)).estimate()
    assert found.k == k
    assert (found.separation, found.start, found.end) == pytest.approx((mu, 0, mu), abs=1e-5)
    assert (found.tau, found.until, found.steps_seen) == (pytest.approx(1000, rel=1e-5), pytest.approx(3000), 3000)
    assert found.low <= k <= found.high
    assert 0 <= found.regret < 0.001
    exact = estimate(auc(mu), auc(simulated(mu)))
    assert found.curve == pytest.approx(exact.curve, abs=1e-6)
    assert (found.flat, found.at_edge, found.notes) == (exact.flat, False, ())


def known(mu, curve):
    return estimate(auc(mu), auc(curve)).k


@pytest.mark.parametrize("seen", [0.5, 1.0])
def test_it_knows_the_end_before_the_run_is_over(seen):
    share = seen * SHARES
    model, labels = grown(2, tau=1200, share=share), grown(2.6, tau=800, share=share)
    found = restored(model, labels, share=share).estimate()
    whole = grown(2, tau=1200, share=np.linspace(0, 1, 60))
    assert (found.k, found.until, found.steps_seen) == (known(2.6, whole), pytest.approx(3000), seen * 3000)


def test_a_long_run_counts_up_to_convergence():
    """At mu' = mu the model gives k no optimum, so what follows 3 tau is left out: k is that of a run of 3 tau."""
    found = restored(grown(1, tau=400), grown(1, tau=400)).estimate()
    assert (found.k, found.until) == (4, pytest.approx(1200))
    assert known(1, grown(1, tau=400, share=np.linspace(0, 1, 60))) == 1000


def test_a_model_that_was_trained_before_starts_above_chance():
    model, labels = grown(2, start=1, tau=900), grown(2.4, start=1.1, tau=900)
    found = restored(model, labels).estimate()
    assert (found.start, found.end, found.separation) == pytest.approx((1, 2, 2.4), abs=1e-4)
    assert found.k == known(2.4, grown(2, start=1, tau=900, share=np.linspace(0, 0.9, 60)))
    assert found.notes == (
        "The validation probes begin at an AUC of 0.76, not at chance, so the start is fitted too.",
        "The training probes begin at an AUC of 0.78, not at chance, so the start is fitted too.",
    )


def late(end, *, wait=900.0, tau=300.0, share=SHARES):
    """At chance up to a step, as matrix factorisation from small vectors is."""
    return end * (1 - np.exp(-np.maximum(share * STEPS - wait, 0) / tau))


def test_a_model_that_starts_late_counts_from_step_0_to_3_tau_after_it():
    share = 0.6 * SHARES
    found = restored(late(2, share=share), late(2.4, share=share), share=share).estimate()
    assert (found.start, found.end, found.separation) == pytest.approx((0, 2, 2.4), abs=1e-4)
    assert (found.tau, found.until) == (pytest.approx(300, rel=1e-5), pytest.approx(1800, rel=1e-5))
    assert found.k == known(2.4, late(2, share=np.linspace(0, 0.6, 60)))
    assert found.notes == (
        "The validation probes stay at their start up to step 900, so the rise is from there.",
        "The training probes stay at their start up to step 900, so the rise is from there.",
    )


def test_a_late_start_in_a_short_run_counts_up_to_the_end_of_the_run():
    found = restored(late(2, tau=1000), late(2.4, tau=1000)).estimate()
    assert (found.tau, found.until) == (pytest.approx(1000, rel=1e-5), pytest.approx(3000))
    assert found.k == known(2.4, late(2, tau=1000, share=np.linspace(0, 1, 60)))


def test_the_turn_is_found_within_one_probe_of_tau():
    """mu'(t) = mu (1 - e^(-t / tau)): the turn of the schedule is at tau, where the slope has fallen to 1 / e."""
    tau = 300.0
    curve = grown(2.0, tau=tau)
    found = restored(curve, curve).estimate()
    assert abs(found.turning * STEPS - tau) < STEPS * np.diff(SHARES).max()
    k_at = ns.quantity.adaptive(found.k, STEPS, found.turning)
    assert k_at(found.turning * STEPS) == pytest.approx(found.k)


def test_labels_from_validation_are_as_good_as_the_model_becomes():
    found = restored(grown(1.8), labels="validation").estimate()
    assert found.separation == found.end == pytest.approx(1.8, abs=1e-5)
    assert found.k == known(1.8, simulated(1.8))
    assert found.notes[0].startswith("The labels are assumed to be as good as the model becomes on validation pairs;")
    assert found.k < restored(grown(1.8), grown(2.4)).estimate().k


def test_weight_and_k_max_are_those_of_estimate():
    curves = grown(1.5), grown(2)
    whole = auc(grown(1.5, share=np.linspace(0, 1, 60)))
    found = restored(*curves, weight=0.95, k_max=30).estimate()
    exact = estimate(auc(2), whole, weight=0.95, k_max=30)
    assert (found.k, len(found.curve)) == (exact.k, 30)
    edge = restored(grown(4), grown(4), k_max=50).estimate()
    assert (edge.k, edge.high, edge.at_edge) == (50, 50, True)
    assert edge.notes == ("The best k equals k_max (50), so the optimum may lie beyond it: raise k_max.",)


# ---- the interval ---------------------------------------------------------------------------------------------------


def test_the_interval_covers_and_k_loses_little():
    """Confidence 0.9: of 12 runs 11 are expected, and fewer than 7 would be chance once in two thousand times."""
    mu, end = 2, 1.7
    rng = np.random.default_rng(0)
    v = estimate(auc(mu), auc(grown(end, share=np.linspace(0, 1, 60)))).curve
    best = int(v.argmax()) + 1
    curves = {"validation": grown(end, share=SHARES[::2]), "training": grown(mu, share=SHARES[::2])}
    found = [simulate(rng, curves, 300, 4, share=SHARES[::2], tolerance=0.5).estimate() for _ in range(12)]
    assert sum(one.low <= best <= one.high for one in found) >= 7
    lost = np.array([1 - v[one.k - 1] / v[best - 1] for one in found])
    assert (lost <= [one.regret for one in found]).sum() >= 7
    assert np.median([one.high / one.low for one in found]) < 3.5
    assert all(one.low <= one.k <= one.high for one in found)


def test_a_narrower_interval_for_less_confidence_and_for_larger_probes():
    wide, narrow = (restored(grown(2), grown(2), comparisons=1000, confidence=c).estimate() for c in (0.95, 0.6))
    assert wide.low <= narrow.low <= narrow.high <= wide.high
    assert (wide.low, wide.high) != (narrow.low, narrow.high)
    assert narrow.regret < wide.regret
    larger = restored(grown(2), grown(2), comparisons=10_000).estimate()
    assert larger.high - larger.low < wide.high - wide.low


def test_scatter_and_bends_are_noted():
    jumps = np.where(np.arange(21) % 2, 0.12, -0.12) * (SHARES > 0)
    found = restored(grown(2) + jumps, grown(2), comparisons=3000).estimate()
    assert len(found.notes) == 1
    assert found.notes[0].startswith("The validation probes scatter 3.1 times as widely as their errors explain;")
    power = 2 * (1 - 1 / (1 + 5 * SHARES))
    found = restored(power, 1.2 * power, comparisons=20_000).estimate()
    bends = [note for note in found.notes if "deviate from the curve by" in note]
    assert len(bends) == 2
    assert bends[0].endswith("of its rise; the interval does not include that.")


# ---- no estimate yet ------------------------------------------------------------------------------------------------

TWICE = 1 - np.exp(-40 * SHARES) + 0.5 * np.maximum(SHARES - 0.5, 0)
NO_ESTIMATE = {
    "no probe": (lambda: Online(STEPS), "validation"),
    "four steps": (lambda: restored(grown(2, share=SHARES[:4]), share=SHARES[:4]), "validation"),
    "no training probe": (lambda: restored(grown(2)), "training"),
    "at chance": (lambda: restored(np.zeros(21), grown(2), comparisons=500), "validation"),
    "flat": (lambda: restored(np.full(21, 1.5), grown(2), comparisons=500), "validation"),
    "falling": (lambda: restored(grown(2)[::-1], grown(2)), "validation"),
    "labels at chance": (lambda: restored(grown(2), np.zeros(21)), "training"),
    "before tau": (lambda: restored(*[grown(2, share=SHARES[:7])] * 2, share=SHARES[:7]), "validation"),
    "not slowing down": (lambda: restored(2 * SHARES**1.1, grown(2)), "validation"),
    "labels before tau": (lambda: restored(grown(2), grown(2, tau=3100)), "training"),
    "another shape": (lambda: restored(1.5 * TWICE, grown(2), comparisons=10_000), "validation"),
    "too uncertain": (lambda: restored(grown(2.4), grown(3), comparisons=70), "k"),
}


@pytest.mark.parametrize("case", NO_ESTIMATE)
def test_there_is_no_estimate_while_the_probes_do_not_suffice(case):
    make, parameter = NO_ESTIMATE[case]
    online = make()
    with pytest.raises(NaysayError) as caught:
        online.estimate()
    assert caught.value.parameter == parameter
    assert online.ready is False
    assert str(caught.value) == f"Online.estimate: {online.why}"
    assert online.k_at(1000) == 4.0


def test_more_probes_settle_it():
    """A run from its first probe to its last: refusals in order, then answers near the known k."""
    rng = np.random.default_rng(5)
    online, whys, answers = Online(STEPS), [], []
    for place, share in enumerate(SHARES):
        for split, curve in (("validation", grown(2)), ("training", grown(2.2))):
            positive = rng.standard_normal(1000) + curve[place]
            online.record(round(share * STEPS), positive, rng.standard_normal((1000, 8)), split)
        if online.ready:
            answers.append(online.estimate())
            assert online.why == ""
        else:
            assert not answers  # an estimate does not go away
            whys.append(online.why)
    assert len(whys) > 4
    assert 0.3 < answers[0].steps_seen / STEPS < 0.65
    best = known(2.2, grown(2, share=np.linspace(0, 1, 60)))
    assert all(found.low <= best <= found.high for found in answers)
    assert abs(answers[-1].k - best) <= 2


def test_k_at_follows_the_schedule_once_it_is_told():
    online = restored(grown(2.4), grown(2.4), comparisons=3000, start=7)
    assert online.estimate().low < online.estimate().k < online.estimate().high
    schedule = adaptive(peak=online.estimate().k, steps=STEPS)
    assert [online.k_at(step) for step in (0, 300, 1500, 2999, 3000)] == [
        schedule(s) for s in (0, 300, 1500, 2999, 3000)
    ]
    assert type(online.k_at(300)) is float
    assert Online(STEPS, start=7).k_at(300) == 7.0


# ---- the record -----------------------------------------------------------------------------------------------------


def filled(seed=0, n=40):
    rng = np.random.default_rng(seed)
    return simulate(rng, {"validation": grown(2), "training": grown(2.2)}, n, 3)


def probes(seed, n, m):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n) + 1, rng.standard_normal((n, m))


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_a_state_of_another_run_is_refused():
    with pytest.raises(NaysayError) as caught:
        filled().restore(state_of(grown(2), grown(2)) | {"steps": 10})
    assert caught.value.parameter == "state"


def test_threads_record_and_ask_at_once():
    """Every probe is kept, and no thread sees half of a change."""
    online = Online(1000)

    def work(split):
        for step in range(7):
            online.record(step, *probes(step, 20, 2), split)
            assert len({len(column) for name, column in online.state().items() if name != "steps"}) == 1
            assert online.k_at(step) == 4.0

    in_threads(lambda: work("validation"), lambda: work("training"))
    assert np.bincount(online.state()["split"]).tolist() == [7, 7]
