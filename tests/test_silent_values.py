"""Values that NumPy would count in silence: those behind a mask, and whole numbers that float64 merges."""

import numpy as np
import pytest
import torch

import naysay as ns

KNOWN = ns.Positives.from_pairs(np.arange(3), np.arange(3), 3, 12)
POOL = ns.pools.Everything(KNOWN)
QUERY = ns.Query([0, 1, 2], positives=[0, 1, 2])
TABLE = np.arange(12).reshape(3, 4)
NEGATIVES = ns.Negatives(TABLE, scores=TABLE / 12)
MASKED_IDS = np.ma.array([0, 1, 2], mask=[False, True, False])
MASKED_SCORES = np.ma.array([0.1, 0.2, 0.3], mask=[False, True, False])
MASKED_TABLE = np.ma.array(TABLE / 12, mask=np.eye(3, 4))
FEW = ns.Positives.from_pairs([0, 1, 2], [0, 1, 2], 3, 4)


def sample(score, query=QUERY):
    return ns.samplers.Dynamic(POOL, score, 4).sample(query, 2, rng=ns.rng_for(0))


MASKED = {
    "Query.anchors": (lambda: ns.Query(MASKED_IDS), "anchors"),
    "Query.positives": (lambda: ns.Query([0, 1, 2], positives=MASKED_IDS), "positives"),
    "Query.vectors": (lambda: ns.Query([0, 1, 2], vectors=MASKED_TABLE), "vectors"),
    "Query.times": (lambda: ns.Query([0, 1, 2], times=MASKED_IDS), "times"),
    "Negatives.ids": (lambda: ns.Negatives(np.ma.array(TABLE, mask=TABLE > 5)), "ids"),
    "Negatives.scores": (lambda: ns.Negatives(TABLE, scores=MASKED_TABLE), "scores"),
    "Negatives.weights": (lambda: ns.Negatives(TABLE, weights=MASKED_TABLE), "weights"),
    "Positives": (lambda: ns.Positives.from_pairs(MASKED_IDS, [0, 1, 2]), "anchors"),
    "Positives, items": (lambda: ns.Positives.from_pairs([0, 1, 2], MASKED_IDS), "items"),
    "Positives.contains": (lambda: KNOWN.contains(MASKED_IDS, [0, 1, 2]), "anchors"),
    "Triples": (lambda: ns.Triples(np.ma.array([[0, 0, 1]], mask=[[False, True, False]])), "triples"),
    "Everything": (lambda: ns.pools.Everything(ns.Positives.from_pairs([0], [0], 1, 3), MASKED_SCORES), "weights"),
    "Local": (lambda: ns.pools.Local(np.ma.array(TABLE, mask=TABLE > 5)), "lists"),
    "Memory": (lambda: ns.pools.Memory(4).push(MASKED_IDS), "ids"),
    "Nearest": (lambda: ns.pools.Nearest(MASKED_TABLE, 2), "vectors"),
    "draw": (lambda: POOL.draw(QUERY, MASKED_IDS, rng=ns.rng_for(0)), "n"),
    "score": (lambda: sample(lambda anchors, ids: np.ma.array(ids * 1.0, mask=ids > 5)), "score"),
    "embed": (
        lambda: ns.samplers.MixGCF(POOL, lambda ids: np.ma.array(np.ones((*ids.shape, 4)), mask=True), 2).sample(
            ns.Query([0], positives=[0], vectors=np.ones((1, 4))), 1, rng=ns.rng_for(0)
        ),
        "embed",
    ),
    "mine": (lambda: ns.mine(MASKED_TABLE, TABLE / 12, FEW, k=1, judge=None), "queries"),
    "drop": (lambda: ns.detectors.drop(NEGATIVES, MASKED_TABLE), "suspicion"),
    "Calibrated": (lambda: ns.detectors.Calibrated(0.1).fit(MASKED_SCORES), "positive_scores"),
    "Posterior": (lambda: ns.detectors.Posterior().fit(MASKED_TABLE, [0.1, 0.2, 0.3]), "scores"),
    "choose_thresholds": (lambda: ns.detectors.choose_thresholds(MASKED_SCORES), "scores"),
    "ranking": (lambda: ns.lab.ranking(MASKED_TABLE, FEW), "scores"),
    "info_nce": (lambda: ns.losses.info_nce(torch.rand(3), torch.rand(3, 4), weights=MASKED_TABLE), "weights"),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_values_are_an_error(name):
    call, parameter = MASKED[name]
    with pytest.raises(ns.NaysayError, match="masked") as error:
        call()
    assert error.value.parameter == parameter


def test_masked_arrays_without_masked_values_are_arrays():
    assert len(ns.Query(np.ma.array([0, 1]))) == 2
    assert ns.Negatives(np.ma.array(TABLE)).shape == (3, 4)


# ---- whole numbers ---------------------------------------------------------------------------------------------------

LARGEST = 2**53
MERGED = np.array([LARGEST, LARGEST + 1])  # equal as float64
MERGED_TABLE = np.tile(np.arange(4) + LARGEST, (3, 1))
TIED = {
    "score": (lambda: sample(lambda anchors, ids: ids + LARGEST), "score"),
    "score, torch": (
        lambda: sample(lambda anchors, ids: ids - LARGEST - 99, ns.Query(torch.arange(3), positives=torch.arange(3))),
        "score",
    ),
    "MaxScore": (
        lambda: ns.detectors.MaxScore(0.5).suspicion(QUERY, ns.Negatives(TABLE, scores=MERGED_TABLE)),
        "negatives.scores",
    ),
    "lowest_scores": (lambda: ns.detectors.lowest_scores([0, 1], MERGED), "scores"),
    "Margin": (lambda: ns.detectors.Margin(0.1, MERGED), "positive_scores"),
    "Calibrated": (lambda: ns.detectors.Calibrated(0.1).fit(MERGED), "positive_scores"),
    "Posterior": (lambda: ns.detectors.Posterior().fit(MERGED_TABLE, [0.1, 0.2, 0.3]), "scores"),
    "choose_thresholds": (lambda: ns.detectors.choose_thresholds(MERGED), "scores"),
    "choose_thresholds, unsigned": (lambda: ns.detectors.choose_thresholds(MERGED.astype(np.uint64)), "scores"),
    "ranking": (lambda: ns.lab.ranking(MERGED_TABLE, FEW), "scores"),
    "auc": (lambda: ns.lab.auc(MERGED, MERGED), "positive"),
    "bands": (lambda: ns.difficulty.bands(MERGED_TABLE), "scores"),
    "Monitor": (lambda: ns.difficulty.Monitor().observe(QUERY, NEGATIVES, MERGED_TABLE), "scores"),
}


@pytest.mark.parametrize("name", TIED)
def test_whole_numbers_that_would_tie_are_an_error(name):
    call, parameter = TIED[name]
    with pytest.raises(ns.NaysayError, match=r"2\^53") as error:
        call()
    assert error.value.parameter == parameter


def test_whole_numbers_that_float64_can_tell_apart_are_scores():
    scores = np.tile(np.arange(4) + LARGEST - 3, (3, 1))
    assert ns.lab.ranking(scores, FEW).ranks.tolist() == [4.0, 3.0, 2.0]
    assert sample(lambda anchors, ids: ids - LARGEST).ids.shape == (3, 2)
