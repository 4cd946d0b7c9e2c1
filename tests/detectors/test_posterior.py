"""Posterior: the cut against every tau, estimates against planted truth, biased labels, laws, and its state."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posterior_worlds import planted

import naysay as ns
from naysay.detectors import Posterior, cut
from naysay.errors import NaysayError

# ---- the cut --------------------------------------------------------------------------------------------------------


def plain_cut(p, k, target):
    """(tau, kept slots) by trying every tau: 1, and each posterior."""
    best = (0.0, [])
    for tau in sorted({value for row in p for value in row if value is not None} | {1.0}):
        kept = []
        for row, values in enumerate(p):
            good = [slot for slot, value in enumerate(values) if value is not None and value <= tau]
            kept += [(row, slot) for slot in good[:k]]
        if kept and sum(p[row][slot] for row, slot in kept) / len(kept) <= target:
            best = (tau, kept)
    return best


grids = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from([None, *(n / 16 for n in range(17))]), min_size=width, max_size=width),
        min_size=1,
        max_size=5,
    )
)


@given(grids, st.integers(1, 4), st.sampled_from([n / 32 for n in range(33)]))
def test_the_cut_is_that_of_trying_every_tau(p, k, target):
    tau, kept = plain_cut(p, k, target)
    found = cut(np.array([[np.nan if value is None else value for value in row] for row in p]), k, target)
    assert sorted(zip(*(part.tolist() for part in np.nonzero(found.kept)), strict=True)) == sorted(kept)
    if kept:
        assert found.after <= target
        assert found.tau == tau or (tau == 1 and found.tau == max(p[row][slot] for row, slot in kept))
    assert found.before == pytest.approx(plain_before(p, k))


def plain_before(p, k):
    near = [value for row in p for value in [value for value in row if value is not None][:k]]
    return sum(near) / len(near) if near else 0.0


def test_hardness_and_shortfalls_are_reported():
    found = cut([[0.9, 0.0, 0.0], [0.9, 0.8, 0.0]], 2, 0.1, scores=[[3, 2, 1], [3, 2, 1]])
    assert (found.tau, found.hardness_before, found.short, found.dropped) == (0.0, 2.5, 1, 3)
    assert found.hardness_after == pytest.approx(4 / 3)


# ---- estimates ------------------------------------------------------------------------------------------------------


def kept_by(detector, scores, own, alike=None):
    return cut(detector.posterior(scores, own, alike=alike), detector.k, detector.false_share).kept


def test_the_returned_set_has_about_the_wanted_share():
    scores, own, truth, alike = planted(1)
    for similar in (None, alike):
        detector = Posterior().fit(scores, own, alike=similar)
        summary = detector.summary
        assert summary.reason == ""
        assert summary.after.estimate <= 0.05
        assert truth[:, :10].mean() > 0.15
        assert truth[kept_by(detector, scores, own, similar)].mean() < 0.075
        assert summary.hardness_after < summary.hardness_before


def test_the_posterior_is_calibrated():
    said, true = [], []
    for seed in range(4):
        scores, own, truth, alike = planted(seed)
        said.append(Posterior().fit(scores, own, alike=alike).posterior(scores, own, alike=alike)[:, :10].ravel())
        true.append(truth[:, :10].ravel())
    p, t = np.concatenate(said), np.concatenate(true)
    for low, high, error in ((0, 0.1, 0.06), (0.1, 0.5, 0.25), (0.5, 0.9, 0.25), (0.9, 1, 0.05)):
        inside = (p >= low) & (p < high)
        assert inside.sum() > 100
        assert abs(t[inside].mean() - p[inside].mean()) < error


def test_half_of_the_anchors_with_all_of_the_false_negatives_do_not_hide_them():
    """An anchor whose only positive is labelled says nothing about the others."""
    scores, own, truth, alike = planted(3, anchors=600, hidden=np.where(np.arange(600) % 2, 0, 5))
    for similar in (None, alike):
        detector = Posterior().fit(scores, own, alike=similar)
        before, share = detector.summary.before, truth[:, :10].mean()
        assert before.low < share < before.high
        assert before.estimate > 0.6 * share
        assert truth[kept_by(detector, scores, own, similar)].mean() < 0.5 * share


def test_the_share_of_any_set_and_of_what_is_behind_the_lists():
    scores, own, truth, _ = planted(1)
    detector = Posterior().fit(scores, own)
    mask = np.random.default_rng(0).random(scores.shape) < 0.3
    share = detector.share(scores, own, mask)
    assert share.estimate == pytest.approx(detector.posterior(scores, own)[mask].mean())
    assert share.low < truth[mask].mean() < share.high
    n = int(mask.sum())
    wider = detector.share(scores, own, mask, behind=n)
    assert wider.estimate == pytest.approx((share.estimate + detector.state()["beyond"]) / 2, abs=1e-7)
    assert detector.share(scores, own, np.zeros_like(mask)).high == 1


def test_another_cut_of_the_same_posterior():
    scores, own, _, alike = planted(0)
    one, other = (Posterior(false_share=share).fit(scores, own, alike=alike) for share in (0.05, 0.02))
    assert one.recut(0.02, scores, own, alike=alike).summary == other.summary
    counts, free = np.arange(len(own)) % 5, np.arange(scores.shape[1]) >= 3
    part = one.recut(0.05, scores, own, alike=alike, free=np.tile(free, (len(own), 1)), counts=counts)
    p = np.where(free, one.posterior(scores, own, alike=alike), 2)
    below = (p <= part.summary.tau) & (np.cumsum(p <= part.summary.tau, axis=1) <= counts[:, None])
    assert part.summary.after.estimate == pytest.approx(p[below].mean())
    assert one.summary.tau != part.summary.tau
    nothing = one.recut(0.05, scores, own, alike=alike, counts=np.zeros(len(own), int)).summary
    assert (nothing.tau, nothing.dropped, nothing.short) == (1.0, 0, 0)


def test_golden_numbers(world):
    scores, own, _, alike = world
    plain, better = (Posterior().fit(scores, own, alike=part).summary for part in (None, alike))
    for summary, expected in (
        (plain, (0.321902, 0.22472, 0.182672, 0.123386, 0.253928, 0.049989, 0.956014)),
        (better, (0.321902, 0.372978, 0.198383, 0.13759, 0.328372, 0.049901, 0.930044)),
    ):
        before, after = summary.before, summary.after
        numbers = (summary.c, summary.tau, before.estimate, before.low, before.high, after.estimate, summary.balance)
        assert numbers == pytest.approx(expected, abs=2e-5)
        assert summary.labelled == 300
    assert (plain.dropped, better.dropped) == (662, 580)
    assert better.check.by_vectors == pytest.approx(0.236789, abs=2e-5)


# ---- labels that are not random -------------------------------------------------------------------------------------


def biased(seed=0, anchors=500):
    """Labels are the best-scoring of three positives."""
    rng = np.random.default_rng(seed)
    positive = np.arange(150) < 2
    three = np.sort(rng.normal(2.5, 1, (anchors, 3)), axis=1)
    scores = rng.normal(0, 1, (anchors, 150))
    scores[:, :2] = three[:, :2]
    alike = rng.normal(0, 0.15, scores.shape) + 0.6 * positive
    order = np.argsort(-scores, axis=1)[:, :60]
    listed, similar = (np.take_along_axis(part, order, axis=1) for part in (scores, alike))
    return listed, three[:, 2], positive[order], similar


def test_item_vectors_find_and_mend_labels_that_are_the_easiest_positives():
    scores, own, truth, alike = biased()
    plain, mended = (Posterior().fit(scores, own, alike=part) for part in (None, alike))
    share = truth[:, :10].mean()
    check = mended.summary.check
    assert plain.summary.before.estimate < 0.4 * share
    assert check.shift > 0
    assert check.by_labels < check.by_vectors
    assert abs(check.by_vectors - share) < 0.5 * share
    assert abs(mended.summary.before.estimate - share) < 0.5 * share
    assert truth[kept_by(mended, scores, own, alike)].mean() < truth[kept_by(plain, scores, own)].mean()


def test_labels_that_are_the_easiest_are_a_reason():
    """Of random labels, half of the other positives score above the labelled one."""
    scores, own, _, alike = biased()
    detector = Posterior().fit(scores, own)
    assert detector.summary.balance < 0.5
    assert detector.reason.startswith("the labelled positives look like the easiest of their anchors")
    assert detector.fitted  # for a review to correct
    assert "easiest" not in Posterior().fit(scores, own, alike=alike).reason  # item vectors set the level
    assert Posterior(labelled_share=1 / 3).fit(scores, own).reason == ""
    random = [Posterior().fit(*planted(seed)[:2]).summary for seed in range(2)]
    assert all(abs(summary.balance - 1) < 4 * summary.balance_error for summary in random)
    assert {summary.reason for summary in random} == {""}


def test_a_hundred_labels_mend_biased_labels_and_lower_an_estimate_that_is_too_high():
    scores, own, truth, _ = biased()
    known = np.full(scores.shape, -1)
    asked = np.random.default_rng(0).choice(5000, 100, replace=False)
    known[asked // 10, asked % 10] = truth[asked // 10, asked % 10]
    yes = (known == 1).sum() / 100
    detector = Posterior().fit(scores, own)
    before = detector.summary.before.estimate
    after = detector.correct(scores, own, known).summary.before.estimate
    assert before < 0.5 * yes
    assert abs(after - yes) < 0.4 * yes
    share = detector.summary.before
    assert share.low < truth[:, :10].mean() < share.high
    kept = truth[kept_by(detector, scores, own)].mean()
    assert detector.summary.after.low < kept < detector.summary.after.high
    none = np.where(known == 1, 0, known)
    lowered = detector.correct(scores, own, none)
    assert lowered.summary.before.estimate < 0.02


def test_a_stated_share_of_labels_sets_the_level():
    scores, own, truth, _ = biased()
    stated = Posterior(labelled_share=1 / 3).fit(scores, own)
    assert stated.summary.c == pytest.approx(1 / 3)
    assert Posterior(labelled_share=0.5).fit(scores, own, n_labelled=np.full(500, 2)).summary.c == pytest.approx(1 / 3)
    assert abs(stated.summary.before.estimate - truth[:, :10].mean()) < 0.06


def test_a_model_whose_highest_scores_are_mostly_no_positives():
    """As in recommendation: 4 of 12 likes are known, and 8 % of the nearest are likes. Only a stated share helps."""
    draws = np.random.default_rng(0)
    pairs = draws.normal(0, 1, (1000, 600))
    pairs[:, :12] += 1.0
    own, pairs = pairs[np.arange(1000), draws.integers(0, 4, 1000)], pairs[:, 4:]
    nearest = np.argsort(-pairs, axis=1)[:, :100]
    scores, truth = np.take_along_axis(pairs, nearest, axis=1), float((nearest[:, :20] < 8).mean())
    alone = Posterior(20).fit(scores, own)
    assert alone.reason.startswith(("no cut reaches the target", "scores do not tell"))
    stated = Posterior(20, labelled_share=1 / 3).fit(scores, own, n_labelled=np.full(1000, 4))
    assert not stated.reason
    assert stated.summary.before.low < truth < stated.summary.before.high


# ---- what it cannot tell --------------------------------------------------------------------------------------------


def test_too_few_labels_are_a_reason():
    scores, own, _, _ = planted(0, anchors=14)
    detector = Posterior().fit(scores, own)
    assert not detector.fitted
    assert detector.reason.startswith("only 14 labelled positives") or detector.reason.startswith("only 1")
    with pytest.raises(NaysayError, match="cannot tell"):
        detector.posterior(scores, own)
    other = Posterior()
    other.restore(detector.state())
    assert other.reason == detector.reason
    assert other.describe() == f"Cannot estimate false negatives: {detector.reason}."


def test_an_encoder_whose_highest_scores_are_mixed_has_no_lower_end():
    scores, own, truth, _ = planted(0, anchors=1200, shift=2.0, hidden=np.arange(1200) % 10 == 0)
    before = Posterior().fit(scores, own).summary.before
    assert before.estimate > 3 * truth[:, :10].mean()
    assert before.low < truth[:, :10].mean()
    assert "far lower" in before.notes[0]
    clear = Posterior().fit(*planted(0, anchors=600)[:2]).summary.before
    assert clear.low > 0
    assert clear.notes == ()


def test_anchors_without_a_positive_and_short_lists_are_allowed():
    scores, own, _, alike = planted(0)
    scores[:50, 20:], own[100:150] = -np.inf, np.nan
    found = Posterior().fit(scores, own, alike=alike).posterior(scores, own, alike=alike)
    assert (found[:50, 20:] == 0).all()
    assert np.isfinite(found).all()
    assert (found[100:150, 0] > 0).all()


@settings(max_examples=15)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 60),
    st.integers(0, 70),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.sampled_from([0, 1, 9]),
)
def test_any_lists_have_a_posterior_or_a_reason(seed, anchors, width, shift, digits):
    """Few anchors, short and empty lists, equal scores, unknown positives and similarities."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(anchors, width)).round(digits)
    scores[rng.random(scores.shape) < 0.1] = np.nan
    own = np.where(rng.random(anchors) < 0.1, np.nan, rng.normal(shift, 1, anchors).round(digits))
    alike = np.where(rng.random(scores.shape) < 0.1, np.nan, rng.normal(size=scores.shape).round(digits))
    detector = Posterior(k=3).fit(scores, own, alike=alike)
    assert detector.describe()
    if not detector.fitted:
        assert detector.reason
        return
    found = detector.posterior(scores, own, alike=alike)
    assert ((found >= 0) & (found < 1)).all()
    assert (found[np.isnan(scores)] == 0).all()
    assert detector.summary.after.estimate <= 0.05


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


def test_the_balance_is_that_of_plain_loops(world):
    """How much of the posterior is above the labelled positive of its anchor, of those that are in their lists."""
    scores, own, _, _ = world
    detector = Posterior(depth=40).fit(scores, own)
    posterior = detector.posterior(scores, own)
    above = below = total = 0.0
    for row in range(len(own)):
        if own[row] < scores[row, 39]:
            continue
        above += sum(posterior[row, slot] for slot in range(40) if scores[row, slot] > own[row])
        below += sum(posterior[row, slot] for slot in range(40) if scores[row, slot] < own[row])
        total += posterior[row, :40].sum()
    assert detector.summary.balance == pytest.approx(1 + (above - below) / total)


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


# ---- rows of any width ----------------------------------------------------------------------------------------------


def mean_of_nearest(detector, scores, width, nearest=8):
    """The mean suspicion of the nearest candidates in rows of a width."""
    ids = np.tile(np.arange(width), (len(scores), 1))
    query = ns.Query(np.arange(len(scores)))
    return float(detector.suspicion(query, ns.Negatives(ids, scores=scores[:, :width]))[:, :nearest].mean())


@pytest.mark.parametrize("width", [8, 32])
def test_a_candidate_has_the_same_suspicion_in_a_row_of_any_width(width):
    scores, own, truth, _ = planted(0, anchors=800, items=400, hidden=3, shift=3.0)
    detector = Posterior(k=8).fit(scores, own)
    whole = mean_of_nearest(detector, scores, 50)
    assert whole == pytest.approx(truth[:, :8].mean(), rel=0.15)
    assert mean_of_nearest(detector, scores, width) == pytest.approx(whole, rel=0.02)


@pytest.mark.parametrize("how", ["ids", "table"])
def test_the_background_of_a_known_anchor_is_its_own_in_any_row(how):
    """Anchors whose scores have different levels; the state keeps what the fit found."""
    scores, own, _, _ = planted(1, anchors=600, items=400, hidden=3, shift=3.0)
    level = np.random.default_rng(2).normal(0, 2, len(own))
    scores, own = scores + level[:, None], own + level
    rows = np.random.default_rng(3).permutation(len(own)) if how == "ids" else np.arange(len(own))
    detector = Posterior(k=8, positive_scores=own)
    detector.fit(scores[rows], own[rows], anchors=rows if how == "ids" else None)
    restored = Posterior(k=8, positive_scores=own)
    restored.restore(detector.state())
    ids = np.tile(np.arange(50), (len(own), 1))
    query = ns.Query(np.arange(len(own)))
    whole = detector.suspicion(query, ns.Negatives(ids, scores=scores[:, :50]))
    for width in (4, 16):
        part = ns.Negatives(ids[:, :width], scores=scores[:, :width])
        assert np.array_equal(detector.suspicion(query, part), whole[:, :width])
        assert np.array_equal(restored.suspicion(query, part), whole[:, :width])
