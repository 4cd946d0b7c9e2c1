"""Calls that are rejected: the error names the parameter, and nothing has changed."""

import numpy as np
import pytest

import naysay as ns
from naysay import detectors as d

QUERY = ns.Query([0, 1], positives=[0, 1])
SCORED = ns.Negatives(np.array([[2, 3], [4, -1]]), scores=np.array([[0.5, 0.1], [0.2, 0.0]]))
UNSCORED = ns.Negatives(SCORED.ids)
NAN = np.array([[0.5, np.nan], [0.2, 0.0]])
LISTS = -np.sort(-np.random.default_rng(0).normal(size=(30, 25)), axis=1)
KNOWN = ns.Positives.from_pairs([0, 1], [0, 1], 2, 6)
TEXTS = [f"text {n}" for n in range(6)]
VECTORS = np.eye(6)
STATED = d.Posterior(labelled_share=0.5)


def of_pairs(anchors, ids):
    return np.zeros(len(ids))


# What is called, with what, and the parameter that the error names.
MADE = [
    (d.MaxScore, {"high": np.inf}, "high"),
    (d.MaxScore, {"high": "0.5"}, "high"),
    (d.Margin, {"margin": 0.1, "positive_scores": [[0.5]]}, "positive_scores"),
    (d.Margin, {"margin": 0.1, "positive_scores": [np.inf]}, "positive_scores"),
    (d.Calibrated, {"standardise": "yes"}, "standardise"),
    (d.one_per_anchor, {"anchors": [], "rng": np.random.default_rng(0)}, "anchors"),
    (d.one_per_anchor, {"anchors": [0], "rng": np.random.default_rng(0), "share": 0}, "share"),
    (d.choose_thresholds, {"scores": [0.5, 0.5]}, "scores"),
    (d.choose_thresholds, {"scores": ["a", "b"]}, "scores"),
    (d.choose_thresholds, {"scores": 0.5}, "scores"),
    (d.choose_thresholds, {"scores": np.ones((2, 2, 2))}, "scores"),
    (d.choose_thresholds, {"scores": "scores.csv"}, "scores"),
    (d.choose_thresholds, {"scores": "lost.npy"}, "scores"),
    (d.choose_thresholds, {"scores": [0.1, 0.5], "false_share": 0.6, "hard_share": 0.5}, "hard_share"),
    (d.choose_thresholds, {"scores": [0.1, 0.5], "n_positives": 9, "hard_share": 0.9}, "hard_share"),
    (d.choose_thresholds, {"scores": [0.1, 0.5], "grid": [0.1]}, "grid"),
    (d.choose_thresholds, {"scores": [0.1, 0.5], "grid": ([], [0.1])}, "grid"),
    (d.choose_thresholds, {"scores": [0.1, 0.5], "grid": ([0.4], [0.3]), "false_share": 1, "hard_share": 0}, "grid"),
    (d.choose_thresholds, {"scores": [0.1, 0.5], "grid": ([0.4], [0.3])}, "false_share"),
    (d.choose_thresholds, {"scores": [0.1, 0.5], "grid": ([0.4], [0.6]), "hard_share": 0.9}, "hard_share"),
    (d.choose_thresholds, {"scores": [0.1, 0.5], "column": "a"}, "column"),
    (d.choose_thresholds, {"scores": [0.1, 0.5], "start_low": "0"}, "start_low"),
    (d.cut, {"posterior": [0.1], "k": 1, "false_share": 0.1}, "posterior"),
    (d.cut, {"posterior": [[1.5]], "k": 1, "false_share": 0.1}, "posterior"),
    (d.cut, {"posterior": [[0.5]], "k": 1, "false_share": 2}, "false_share"),
    (d.cut, {"posterior": [[0.5]], "k": 1, "false_share": 0.1, "scores": [0.5]}, "scores"),
    (d.Posterior, {"depth": 19}, "depth"),
    (d.Posterior, {"labelled_share": 1}, "labelled_share"),
    (d.Posterior, {"alike": 3}, "alike"),
    (d.Posterior, {"positive_scores": [[0.5]]}, "positive_scores"),
    (d.Posterior, {"seed": -1}, "seed"),
    (d.Combined, {"detectors": {"a/b": d.MaxScore(0.5)}}, "detectors"),
    (d.Combined, {"detectors": {"a": d.MaxScore}}, "detectors"),
    (d.Duplicates, {}, "item_texts"),
    (d.Duplicates, {"item_texts": "one text"}, "item_texts"),
    (d.Duplicates, {"item_texts": ["a", None]}, "item_texts"),
    (d.Duplicates, {"item_texts": []}, "item_texts"),
    (d.Duplicates, {"item_texts": TEXTS, "anchor_vectors": VECTORS}, "anchor_vectors"),
    (d.Duplicates, {"item_texts": TEXTS, "anchor_texts": TEXTS, "shared_ids": True}, "anchor_texts"),
    (d.Duplicates, {"item_texts": TEXTS, "item_vectors": VECTORS[:5]}, "item_texts"),
    (d.Duplicates, {"item_texts": TEXTS[:5], "positives": KNOWN}, "positives"),
    (d.Duplicates, {"item_texts": TEXTS, "transitive": 0.5}, "positives"),
    (d.Duplicates, {"item_texts": TEXTS, "positives": [0]}, "positives"),
    (d.Duplicates, {"item_vectors": np.zeros((2, 3))}, "item_vectors"),
    (d.Duplicates, {"item_vectors": VECTORS, "anchor_vectors": np.eye(3)}, "anchor_vectors"),
    (d.Duplicates, {"item_texts": TEXTS, "cosine": 0}, "cosine"),
    (d.Duplicates, {"positives": KNOWN, "transitive": 2}, "transitive"),
    (d.Duplicates, {"item_texts": TEXTS, "shingle": 0}, "shingle"),
    (d.Duplicates, {"item_texts": TEXTS, "signature": 0}, "signature"),
    (d.ByReviewer, {"reviewer": [of_pairs] * 3}, "reviewer"),
    (d.ByReviewer, {"reviewer": "someone"}, "reviewer"),
    (d.ByReviewer, {"reviewer": "llm:"}, "reviewer"),
    (d.ByReviewer, {"reviewer": of_pairs, "answers": 3}, "answers"),
    (d.CrossEncoder, {"path": ".", "threshold": np.nan}, "threshold"),
    (d.Encoder, {"path": ".", "threshold": 2}, "threshold"),
    (d.LLM, {"model": ""}, "model"),
    (d.LLM, {"model": "m", "prompt": "no such file"}, "prompt"),
    (d.LLM, {"model": "m", "prompt": __file__}, "prompt"),
    (d.LLM, {"model": "m", "in_flight": 0}, "in_flight"),
    (d.LLM, {"model": "m", "most_tokens": -1}, "most_tokens"),
    (d.Incremental, {"n_samples": 0, "clusters": 1}, "n_samples"),
    (d.Incremental, {"n_samples": 5, "clusters": 2, "accept": 1.5}, "accept"),
    (d.Incremental, {"n_samples": 5, "clusters": 2, "confidence": "both"}, "confidence"),
    (d.Incremental, {"n_samples": 5, "clusters": 2, "iterations": 0}, "iterations"),
    (d.Incremental, {"n_samples": 5, "clusters": 2, "seed": -1}, "seed"),
    (d.Labelled, {"features": 3}, "features"),
    (d.Labelled, {"scores": False}, "features"),
    (d.Labelled, {"cost": 0}, "cost"),
    (d.Labelled, {"false_share": 1}, "false_share"),
    (d.LearnedQuantile, {"n_anchors": 3, "alpha": 1}, "alpha"),
    (d.LearnedQuantile, {"n_anchors": 3, "rate": 0}, "rate"),
    (d.LearnedQuantile, {"n_anchors": 3, "decay": 0.9}, "decay"),
    (d.LearnedQuantile, {"n_anchors": 3, "bounds": (1, -1)}, "bounds"),
    (d.LearnedQuantile, {"n_anchors": 3, "start": -1}, "start"),
    (d.Mixture, {"bounds": (1, 0)}, "bounds"),
    (d.Mixture, {"false_share": 0}, "false_share"),
    (d.Mixture, {"iterations": 0}, "iterations"),
    (d.Mixture, {"tolerance": 0}, "tolerance"),
    (d.SoftClusters, {"n_clusters": 2, "embed": 3}, "embed"),
    (d.SoftClusters, {"n_clusters": 2, "freedom": 0}, "freedom"),
    (d.SupportViews, {"views": np.ones((2, 3))}, "views"),
    (d.SupportViews, {"views": np.ones((2, 3, 4)), "top": 0}, "top"),
    (d.SupportViews, {"views": np.ones((2, 3, 4)), "threshold": 1}, "threshold"),
]
SAID = [
    (d.drop, {"negatives": SCORED, "suspicion": np.zeros((2, 2)), "name": ["a", "b"]}, "name"),
    (
        d.drop,
        {"negatives": SCORED, "suspicion": np.ones((2, 2)), "name": ["a"], "blame": np.ones((2, 2), int)},
        "blame",
    ),
    (d.evaluate, {"detector": 3, "query": QUERY, "negatives": SCORED, "truth": np.zeros((2, 2), bool)}, "detector"),
    (
        d.evaluate,
        {"detector": d.MaxScore(0.3), "query": QUERY, "negatives": SCORED, "truth": np.zeros((2, 3), bool)},
        "truth",
    ),
    (d.evaluate, {"detector": d.MaxScore(0.3), "query": QUERY, "negatives": SCORED, "truth": [-1] * 6}, "truth"),
    (d.detection_rates, {"labels": [], "classes": []}, "labels"),
    (d.detection_rates, {"labels": [-2], "classes": [0]}, "labels"),
    (d.unlabelled_share, {"candidates": [[0.5]], "positives": [0.5]}, "candidates"),
    (d.unlabelled_share, {"candidates": [[0.5, np.nan]], "positives": [0.9]}, "candidates"),
    (d.unlabelled_share, {"candidates": [[0.5, 0.4]], "positives": []}, "positives"),
    (d.unlabelled_share, {"candidates": [[0.5]], "positives": [0.9], "confidence": 1}, "confidence"),
    (d.false_negative_rate, {"candidates": [[0.5]], "positives": [0.9], "kept": 0.1}, "kept"),
    (d.false_negative_rate, {"candidates": [[0.5]], "positives": [0.9], "kept": [[1]]}, "kept"),
    (
        d.false_negative_rate,
        {"candidates": [[0.5]], "positives": [0.9], "kept": 0.7, "kept_positives": [True]},
        "kept_positives",
    ),
    (d.hidden_positives, {"detector": d.MaxScore(0.3), "query": QUERY, "hidden": 3, "rng": ns.rng_for(0)}, "hidden"),
    (
        d.hidden_positives,
        {"detector": d.MaxScore(0.3), "query": QUERY, "hidden": KNOWN, "rng": ns.rng_for(0)},
        "query.positives",
    ),
    (
        d.hidden_positives,
        {"detector": d.MaxScore(0.3), "query": ns.Query([0, 1]), "hidden": KNOWN, "rng": ns.rng_for(0)},
        "score",
    ),
    (KNOWN.split, {"share": 0, "rng": ns.rng_for(0)}, "share"),
    (KNOWN.split, {"share": 0.5, "rng": 3}, "rng"),
    (d.spot_check, {"query": QUERY, "negatives": SCORED, "judge": 3, "rng": ns.rng_for(0)}, "judge"),
    (d.spot_check, {"query": QUERY, "negatives": SCORED, "judge": of_pairs, "rng": ns.rng_for(0)}, "judge"),
    (d.judge_some, {"query": QUERY, "negatives": SCORED, "judge": of_pairs, "m": 0, "rng": ns.rng_for(0)}, "m"),
    (d.Bands(0.1, 0.5).flag, {"scores": ["a"]}, "scores"),
    (d.Bands(0.1, 0.5).flag, {"scores": [np.nan]}, "scores"),
    (d.Calibrated(0.5).fit, {"positive_scores": [0.5, 0.5]}, "positive_scores"),
    (d.Calibrated(0.5).fit, {"positive_scores": [0.5, 0.6], "anchors": [0, 0]}, "anchors"),
    (d.Calibrated(0.5).fit, {"positive_scores": [0.5, 0.6], "rng": ns.rng_for(0)}, "anchors"),
    (d.Calibrated(0.5).fit, {"positive_scores": [0.5, 0.6], "background": [[0.1, 0.2]]}, "background"),
    (d.Calibrated(0.5, standardise=True).fit, {"positive_scores": [0.5, 0.6], "anchors": [0, 1]}, "background"),
    (
        d.Calibrated(0.5, standardise=True).fit,
        {"positive_scores": [0.5, 0.6], "anchors": [0, 1], "background": [[0.1, 0.1]] * 2},
        "background",
    ),
    (d.Posterior().fit, {"scores": np.where(LISTS > 2, np.inf, LISTS), "positive_scores": LISTS[:, 0]}, "scores"),
    (d.Posterior().fit, {"scores": LISTS, "positive_scores": LISTS[:, 0], "alike": LISTS[:3]}, "alike"),
    (d.Posterior().fit, {"scores": LISTS, "positive_scores": LISTS[:, 0], "anchors": [0] * 30}, "anchors"),
    (STATED.fit, {"scores": LISTS, "positive_scores": LISTS[:, 0], "n_labelled": 0}, "n_labelled"),
    (STATED.fit, {"scores": LISTS, "positive_scores": LISTS[:, 0], "n_labelled": -1}, "n_labelled"),
    (STATED.fit, {"scores": LISTS, "positive_scores": LISTS[:, 0], "n_labelled": []}, "n_labelled"),
    (d.Posterior().recut, {"to": 0.1, "scores": LISTS, "positive_scores": LISTS[:, 0], "counts": [1, 2]}, "counts"),
    (d.Posterior().recut, {"to": 0.1, "scores": LISTS, "positive_scores": LISTS[:, 0], "counts": [0.5] * 30}, "counts"),
    (d.Posterior().recut, {"to": 0.1, "scores": LISTS, "positive_scores": LISTS[:, 0], "counts": [-1] * 30}, "counts"),
    (d.Posterior().restore, {"state": {"code": 0}}, "state"),
    (d.Posterior().correct, {"scores": LISTS, "positive_scores": LISTS[:, 0], "truth": LISTS}, "truth"),
    (d.Incremental(4, 2).update, {"features": np.ones((4, 2)), "progress": 0.5}, "features"),
    (d.Incremental(4, 2).update, {"features": np.zeros((4, 2)), "progress": 0.5}, "features"),
    (d.Incremental(4, 2).update, {"features": np.ones((4, 2), int), "progress": 0.5}, "features"),
    (d.Labelled().fit, {"query": QUERY, "negatives": SCORED, "truth": np.ones((2, 2), bool)}, "truth"),
    (d.Mixture().update, {"scores": np.arange(9.0)}, "scores"),
    (d.Mixture().update, {"scores": np.ones(20)}, "scores"),
    (d.Mixture(bounds=(0, 1)).update, {"scores": np.arange(20.0)}, "scores"),
    (d.Mixture().update, {"scores": np.arange(20.0), "mask": np.ones(3, bool)}, "mask"),
    (d.SoftClusters(3).update, {"vectors": np.eye(2), "rng": ns.rng_for(0)}, "vectors"),
    (d.SoftClusters(2).update, {"vectors": np.ones((3, 2)), "rng": ns.rng_for(0)}, "vectors"),
    (d.SoftClusters(2).update, {"vectors": np.eye(3), "rng": 3}, "rng"),
]


@pytest.mark.parametrize(("call", "arguments", "parameter"), MADE + SAID)
def test_the_error_names_the_parameter(call, arguments, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        call(**arguments)
    assert caught.value.parameter == parameter


# Detectors that are asked too early, or about something that they cannot judge.
ASKED = [
    (d.MaxScore(0.3), QUERY, UNSCORED, "negatives.scores"),
    (d.MaxScore(0.3), QUERY, ns.Negatives(SCORED.ids, scores=NAN), "negatives.scores"),
    (d.MaxScore(0.3), ns.Query([0]), SCORED, "negatives"),
    (d.MaxScore(0.3), QUERY, 3, "negatives"),
    (d.MaxScore(0.3), 3, SCORED, "query"),
    (d.Margin(0.1), QUERY, SCORED, "positive_scores"),
    (d.Margin(0.1, [0.5]), QUERY, SCORED, "query.anchors"),
    (d.Margin(0.1, [0.5, np.nan]), QUERY, SCORED, "positive_scores"),
    (d.Margin(0.1, lambda query: [0.5]), QUERY, SCORED, "positive_scores"),
    (d.Margin(0.1, lambda query: [0.5, np.nan]), QUERY, SCORED, "positive_scores"),
    (d.Calibrated(), QUERY, SCORED, "positive_scores"),
    (d.Posterior(), QUERY, SCORED, "scores"),
    (d.Labelled(), QUERY, SCORED, "truth"),
    (d.Mixture(), QUERY, SCORED, "scores"),
    (d.SoftClusters(2), QUERY, SCORED, "centres"),
    (d.Incremental(4, 2), QUERY, SCORED, "negatives.ids"),
    (d.LearnedQuantile(1), QUERY, SCORED, "query.anchors"),
    (d.LearnedQuantile(2, bounds=(0, 0.1)), QUERY, SCORED, "negatives.scores"),
    (d.Duplicates(item_texts=TEXTS), ns.Query([0, 1]), SCORED, "query.positives"),
    (d.Duplicates(item_texts=TEXTS[:3]), QUERY, SCORED, "negatives.ids"),
    (d.SupportViews(np.ones((2, 1, 3))), QUERY, SCORED, "negatives.vectors"),
    (d.SupportViews(np.ones((2, 1, 3)), lambda ids: VECTORS[ids]), QUERY, SCORED, "views"),
    (d.ByReviewer(lambda pairs: pairs.items[:1]), QUERY, SCORED, "reviewer"),
    (d.ByReviewer(lambda pairs: np.full(len(pairs), np.nan)), QUERY, SCORED, "reviewer"),
    (d.ByReviewer(lambda pairs: np.full(len(pairs), 1.5)), QUERY, SCORED, "reviewer"),
    (d.ByReviewer(d.LLM("m", "http://localhost:9")), QUERY, SCORED, "reviewer"),
]


@pytest.mark.parametrize(("detector", "query", "negatives", "parameter"), ASKED)
def test_a_question_that_cannot_be_answered_names_the_parameter(detector, query, negatives, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        detector.suspicion(query, negatives)
    assert caught.value.parameter == parameter
