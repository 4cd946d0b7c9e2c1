"""Thresholds, bands and rules by scores, duplicates, policies, and how detectors are measured."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from tests.contract import names, oracles
from tests.contract.world import ANCHORS, ASKED, N_ANCHORS, NEGATIVES, QUERY, SCORES, of_pairs

# ---- the tables of the note on thresholds ---------------------------------------------------------------------------
# How many of its 1,163,686 negatives lie from each value up to the next; 11,540 positives.

VALUES = [-0.5, 0.0, 0.12, 0.121, 0.122, 0.123, 0.33, 0.335, 0.34, 0.35]
COUNTS = [546_459, 555_357, 1129, 1352, 1145, 56_562, 517, 29, 100, 1036]
LOWS, HIGHS = [0.12, 0.121, 0.122, 0.123], [0.35, 0.34, 0.335, 0.33]
NOTE = np.repeat(VALUES, COUNTS).astype(np.float32)


def test_the_tables_of_the_note_give_its_choice():
    found = ns.detectors.choose_thresholds(NOTE, n_positives=11_540, grid=(LOWS, HIGHS))
    assert (found.low, found.high) == (0.121, 0.335)
    high, low = found.table["high"], found.table["low"]
    assert list(high["value"]) == HIGHS
    assert list(high["positive"]) == [11_540] * 4
    assert list(high["false"]) == [1036, 1136, 1165, 1682]
    assert list(high["hard"]) == [616_191, 616_091, 616_062, 615_545]
    assert list(high["easy"]) == [546_459] * 4
    assert [round(100 * share, 4) for share in high["false_share"]] == [0.0882, 0.0967, 0.0991, 0.1431]
    assert list(low["value"]) == LOWS
    assert list(low["false"]) == [1165] * 4
    assert list(low["hard"]) == [60_705, 59_576, 58_224, 57_079]
    assert list(low["easy"]) == [1_101_816, 1_102_945, 1_104_297, 1_105_442]
    assert [round(100 * share, 3) for share in low["hard_share"]] == [5.165, 5.069, 4.954, 4.857]


def test_shares_of_negatives_alone_would_give_the_other_choice():
    found = ns.detectors.choose_thresholds(NOTE, grid=(LOWS, HIGHS))
    assert (found.low, found.high) == (0.122, 0.34)


@given(st.lists(st.floats(-2, 2, width=32), min_size=30, max_size=80, unique=True), st.integers(0, 20))
def test_without_a_grid_the_thresholds_are_quantiles(scores, n_positives):
    found = ns.detectors.choose_thresholds(
        np.array(scores), n_positives=n_positives, false_share=0.1, hard_share=0.3, start_low=-9.0
    )
    everything = len(scores) + n_positives
    false, hard = math.floor(0.1 * everything + 1e-9), math.floor(0.4 * everything + 1e-9)
    assert sum(score >= found.high for score in scores) == false
    assert sum(score >= found.low for score in scores) in (hard, hard + 1)
    easy, hard_ones, false_ones = oracles.count_bands(scores, found.low, found.high)
    flags = ns.detectors.Bands(found.low, found.high).flag(np.array(scores))
    assert [int((flags == band).sum()) for band in (0, 1, 2)] == [easy, hard_ones, false_ones]


def test_scores_may_come_as_a_file_or_a_tensor(tmp_path):
    scores = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    wanted = ns.detectors.choose_thresholds(scores, start_low=-9.0)
    np.save(tmp_path / "scores.npy", scores)
    pq.write_table(pa.table({"score": scores}), tmp_path / "scores.parquet")
    for given_as in (torch.from_numpy(scores), tmp_path / "scores.npy", tmp_path / "scores.parquet"):
        found = ns.detectors.choose_thresholds(given_as, start_low=-9.0)
        assert (found.low, found.high) == (wanted.low, wanted.high)


def test_bands_are_closed_below():
    flags = ns.detectors.Bands(0.25, 0.5).flag(np.array([[0.2, 0.25], [0.4999, 0.5]]))
    assert flags.dtype == np.int8
    assert flags.tolist() == [[0, 1], [1, 2]]


# ---- rules by scores ------------------------------------------------------------------------------------------------

LOWEST = np.array([0.8, 0.5, -0.4])


def asked(scores, ids=None):
    scores = np.asarray(scores, float)
    ids = np.arange(scores.size).reshape(scores.shape) if ids is None else np.asarray(ids)
    return ns.Query(np.arange(len(scores))), ns.Negatives(ids, scores=scores)


RULES = {
    "absolute": (lambda: names.MaxScore(0.4), lambda row, score: score >= 0.4),
    "margin": (lambda: ns.detectors.Margin(0.1, LOWEST), lambda row, score: score > LOWEST[row] - 0.1),
    "share": (
        lambda: ns.detectors.ShareOfPositive(LOWEST, 0.9),
        lambda row, score: score > LOWEST[row] - 0.1 * abs(LOWEST[row]),
    ),
    "bands": (lambda: ns.detectors.Bands(0.1, 0.4), lambda row, score: score >= 0.4),
}


@pytest.mark.parametrize("name", RULES)
@given(seed=st.integers(0, 1000))
def test_a_rule_suspects_what_its_formula_says(name, seed):
    make, formula = RULES[name]
    scores = np.random.default_rng(seed).uniform(-1, 1, (3, 7))
    query, negatives = asked(scores)
    suspicion = make().suspicion(query, negatives)
    wanted = [[formula(row, scores[row, slot]) for slot in range(7)] for row in range(3)]
    assert (suspicion >= 0.5).tolist() == wanted
    for row in range(3):  # a higher score is never less suspicious
        order = np.argsort(scores[row])
        assert (np.diff(suspicion[row][order]) >= 0).all()
    ns.check_detector(make(), query, negatives)


def test_a_rank_window_suspects_the_first_ranks():
    query, negatives = asked([[0.7, 0.8, 0.1, 0.8]])
    assert (ns.detectors.RankWindow(2).suspicion(query, negatives) >= 0.5).tolist() == [[False, True, False, True]]


def test_empty_slots_are_never_suspected():
    query, negatives = asked([[0.9, 0.9]], [[3, -1]])
    assert names.MaxScore(0.4).suspicion(query, negatives)[0, 1] == 0


# ---- calibrated -----------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1, 1), min_size=19, max_size=60, unique=True), st.sampled_from([0.05, 0.1, 0.3]))
def test_the_calibrated_threshold_is_an_order_statistic(scores, alpha):
    fitted = ns.detectors.Calibrated(alpha).fit(np.array(scores))
    rank = math.floor(alpha * (len(scores) + 1) + 1e-9)
    assert fitted.high == sorted(scores)[rank - 1]
    suspicion = fitted.suspicion(*asked([scores]))
    assert (suspicion[0] >= 0.5).tolist() == [score >= fitted.high for score in scores]


def test_too_few_positives_cannot_be_calibrated():
    with pytest.raises(ns.NaysayError):
        ns.detectors.Calibrated(0.05).fit(np.linspace(0, 1, 18))
    ns.detectors.Calibrated(0.05).fit(np.linspace(0, 1, 19))


def test_at_most_alpha_of_unlabelled_positives_are_let_through():
    rng, missed = np.random.default_rng(0), []
    for _ in range(400):
        fitted = ns.detectors.Calibrated(0.1).fit(rng.normal(size=29))
        missed.append((rng.normal(size=200) < fitted.high).mean())
    assert np.mean(missed) < 0.1 + 3 * np.std(missed) / math.sqrt(400)
    assert np.mean(missed) > 0.05


# ---- other detectors ------------------------------------------------------------------------------------------------


def test_duplicates_of_a_positive_are_found_by_text_and_by_vector():
    texts = ["The quick brown fox jumps over the lazy dog", "the quick  brown fox jumps over the lazy dog.", "A cat"]
    query, negatives = ns.Query([0], positives=[0]), ns.Negatives(np.array([[1, 2]]))
    by_text = ns.detectors.Duplicates(item_texts=texts)
    assert (by_text.suspicion(query, negatives) >= 0.5).tolist() == [[True, False]]
    vectors = np.array([[1.0, 0.0], [0.999, 0.01], [0.0, 1.0]])
    by_vector = ns.detectors.Duplicates(item_vectors=vectors)
    assert (by_vector.suspicion(query, negatives) >= 0.5).tolist() == [[True, False]]


def test_a_mixture_finds_two_groups_of_scores():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(0.1, 0.05, 900), rng.normal(0.7, 0.05, 100)])
    mixture = ns.detectors.Mixture("normal")
    mixture.update(scores[None])
    suspicion = mixture.suspicion(*asked([[0.1, 0.2, 0.65, 0.7]]))
    assert (suspicion >= 0.5).tolist() == [[False, False, True, True]]


def test_labelled_candidates_teach_a_detector():
    detector = ns.detectors.Labelled()
    detector.fit(QUERY, NEGATIVES, lambda anchors, ids: SCORES[anchors[:, None], ids] > 0.1)
    suspicion = detector.suspicion(QUERY, NEGATIVES)
    truth = NEGATIVES.scores > 0.1
    assert suspicion[truth].min() > suspicion[~truth].max() - 0.2
    assert ((suspicion >= 0.5) == truth).mean() > 0.9


def test_a_reviewer_s_answer_decides():
    reviewer = names.ByReviewer(lambda pairs: of_pairs(pairs.anchors, pairs.items) >= np.float32(0.2))
    suspicion = reviewer.suspicion(QUERY, NEGATIVES)
    assert ((suspicion >= 0.5) == (SCORES[ANCHORS[:, None], ASKED] >= np.float32(0.2))).all()


def test_soft_clusters_suspect_the_same_cluster():
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(0, 0.1, (20, 3)) + 3, rng.normal(0, 0.1, (20, 3)) - 3]).astype(np.float32)
    detector = ns.detectors.SoftClusters(2, embed=lambda ids: vectors[ids], embed_anchors=lambda ids: vectors[ids])
    detector.update(vectors, rng=ns.rng_for(0))
    suspicion = detector.suspicion(ns.Query([0, 20]), ns.Negatives(np.array([[5, 25], [5, 25]])))
    assert (suspicion >= 0.5).tolist() == [[True, False], [False, True]]


def test_support_views_suspect_what_resembles_any_view():
    views = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    items = np.array([[0.0, 1.0], [-1.0, 0.0]])
    detector = ns.detectors.SupportViews(lambda anchors: views[anchors], lambda ids: items[ids], top=None)
    assert (detector.suspicion(ns.Query([0]), ns.Negatives(np.array([[0, 1]]))) >= 0.5).tolist() == [[True, False]]


def test_learned_quantiles_flag_their_share():
    detector = ns.detectors.LearnedQuantile(N_ANCHORS, alpha=0.2)
    rng = np.random.default_rng(0)
    for step in range(400):
        scores = rng.uniform(0, 1, (N_ANCHORS, 20))
        detector.observe(ns.Query(ANCHORS, step=step), ns.Negatives(np.tile(np.arange(20), (8, 1)), scores=scores))
    scores = rng.uniform(0, 1, (N_ANCHORS, 400))
    suspicion = detector.suspicion(QUERY, ns.Negatives(np.tile(np.arange(400), (8, 1)), scores=scores))
    assert (suspicion >= 0.5).mean() == pytest.approx(0.2, abs=0.08)


def test_combined_detectors_take_the_largest_suspicion():
    parts = {"high": names.MaxScore(0.4), "margin": ns.detectors.Margin(0.1, np.full(8, 0.6))}
    combined = ns.detectors.Combined(parts).suspicion(QUERY, NEGATIVES)
    each = [part.suspicion(QUERY, NEGATIVES) for part in parts.values()]
    assert (combined == np.maximum(*each)).all()
    mean = ns.detectors.Combined(parts, "mean").suspicion(QUERY, NEGATIVES)
    assert mean == pytest.approx(sum(each) / 2)


# ---- policies -------------------------------------------------------------------------------------------------------

SUSPICION = np.array([[0.9, 0.2, 0.5]])
THREE = ns.Negatives(np.array([[4, 5, 6]]), log_q=np.log([[0.2, 0.3, 0.4]]))


def test_a_policy_returns_a_changed_copy():
    dropped = ns.detectors.drop(THREE, SUSPICION)
    assert dropped.mask.tolist() == [[False, True, False]]
    assert sum(dropped.dropped.values()) == 2
    assert dropped.log_q is None
    assert ns.detectors.ignore(THREE, SUSPICION).relation.tolist() == [[2, 0, 2]]
    assert ns.detectors.attract(THREE, SUSPICION).relation.tolist() == [[1, 0, 1]]
    assert ns.detectors.reweight(THREE, SUSPICION).weights.tolist() == [pytest.approx([0.1, 0.8, 0.5])]
    assert ns.detectors.drop(THREE, SUSPICION, threshold=0.95).mask.all()
    assert THREE.mask.all()
    assert THREE.relation is None


def test_compacting_moves_what_is_left_to_the_front():
    assert ns.detectors.compact(ns.detectors.drop(THREE, SUSPICION)).ids.tolist() == [[5, -1, -1]]


# ---- how good is a detector? ----------------------------------------------------------------------------------------


def test_evaluation_in_a_planted_world_is_counted_in_plain_loops():
    world = ns.planted_world(60, 120, per_anchor=8, noise=0.3, seed=1)
    ids = np.tile(np.arange(120), (60, 1))
    anchors = np.arange(60)
    negatives = ns.Negatives(
        np.where(world.known.contains(anchors, ids), -1, ids),
        scores=oracles.pair_scores(world.anchor_vectors, world.item_vectors),
    )
    detector = names.MaxScore(0.6)
    found = ns.detectors.evaluate(detector, ns.Query(anchors), negatives, world.is_false_negative)
    flagged = (detector.suspicion(ns.Query(anchors), negatives) >= 0.5) & negatives.mask
    truth = world.is_false_negative(anchors, ids) & negatives.mask
    assert found.precision == pytest.approx((flagged & truth).sum() / flagged.sum())
    assert found.recall == pytest.approx((flagged & truth).sum() / truth.sum())
    assert found.false_negatives == truth.sum()


def test_detection_rates_are_means_over_anchors():
    rng = np.random.default_rng(0)
    for _ in range(5):
        labels, classes = rng.integers(-1, 3, 15), rng.integers(0, 3, 15)
        found = ns.detectors.detection_rates(labels, classes)
        wanted = oracles.detection_rates(labels.tolist(), classes.tolist())
        assert (found.true_positive, found.true_negative) == pytest.approx(wanted)
    none = ns.detectors.detection_rates(np.full(6, -1), [0, 0, 1, 1, 2, 2])
    assert (none.true_positive, none.true_negative) == (0, 1)


def test_a_spot_check_covers_the_true_share():
    truth = np.arange(2000).reshape(200, 10) % 10 < 2
    negatives = ns.Negatives(np.arange(2000).reshape(200, 10))
    covered = 0
    for seed in range(40):
        found = ns.detectors.spot_check(
            ns.Query(np.arange(200)), negatives, lambda anchors, ids: truth.ravel()[ids], 60, rng=ns.rng_for(seed)
        )
        covered += found.low <= 0.2 <= found.high
    assert covered >= 34


def test_hidden_positives_are_a_part_of_the_known_ones():
    world = ns.planted_world(50, 100, per_anchor=6, seed=0)
    kept, hidden = names.split_positives(world.known, 0.3, ns.rng_for(0))
    pairs = [set(zip(*(part.tolist() for part in known.pairs()), strict=True)) for known in (world.known, kept, hidden)]
    assert pairs[1] | pairs[2] == pairs[0]
    assert not pairs[1] & pairs[2]
    assert len(pairs[2]) / len(pairs[0]) == pytest.approx(0.3, abs=0.1)
    found = ns.detectors.hidden_positives(
        names.MaxScore(-2.0), ns.Query(np.arange(50)), hidden, rng=ns.rng_for(0), score=lambda a, i: np.zeros(i.shape)
    )
    assert found.estimate == 1


def test_a_bound_on_false_negatives_holds_in_a_planted_world():
    world = ns.planted_world(400, 300, per_anchor=8, noise=0.3, seed=2)
    anchors = np.arange(400)
    scores = world.anchor_vectors @ world.item_vectors.T
    order = np.argsort(-scores, axis=1)[:, :40]
    free = ~world.known.contains(anchors, order)
    own = np.array([scores[row][world.known.contains(np.full(300, row), np.arange(300))][0] for row in anchors])
    top = np.take_along_axis(scores, order, axis=1)
    limit = float(np.quantile(own, 0.1))
    found = ns.detectors.false_negative_rate(top, own, limit, mask=free)
    kept = free & (top < limit)
    truth = world.is_false_negative(anchors, order)[kept].mean()
    assert found.high >= truth


def test_one_positive_of_each_anchor_is_chosen():
    anchors = np.array([0, 0, 1, 2, 2, 2])
    chosen = ns.detectors.one_per_anchor(anchors, rng=ns.rng_for(0))
    assert sorted(anchors[chosen].tolist()) == [0, 1, 2]
    lowest = ns.detectors.lowest_scores(anchors, [0.5, 0.2, 0.9, 0.3, 0.1, 0.4], 4)
    assert lowest[:3].tolist() == [0.2, 0.9, 0.1]
    assert math.isnan(lowest[3])
