"""Every setting of every detector: it is in the repr, and a wrong type or value is one sentence that names it."""

import inspect

import numpy as np
import pytest
from naysay.detectors._states import Entry, read_state

import naysay as ns
from naysay import detectors

QUERY = ns.Query(np.arange(3), positives=np.arange(3))
NEGATIVES = ns.Negatives(np.array([[4, 5], [6, 7], [8, -1]]), scores=np.array([[0.1, 0.9], [0.5, 0.2], [0.7, 0.0]]))
SUSPICION = np.array([[0.1, 0.9], [0.5, 0.2], [0.7, 0.0]])
KNOWN = ns.Positives.from_pairs([0, 0, 1, 1, 2, 2], [1, 2, 2, 3, 3, 4], 3, 9)
SCORES = np.random.default_rng(0).normal(0, 1, (20, 30))
TEXTS = [f"text {item}" for item in range(9)]


def of_pairs(anchors, ids):
    return np.cos(anchors + ids)


def embed(ids):
    return np.stack([np.cos(ids), np.sin(ids)], axis=-1)


# What each is called with: all arguments that have no default, and some that have one.
CALLS = {
    "Absolute": {"high": 0.5},
    "Bands": {"low": 0.1, "high": 0.5},
    "Calibrated": {},
    "Combined": {"detectors": {"a": detectors.Absolute(0.5)}},
    "Duplicates": {"item_texts": TEXTS, "anchor_texts": TEXTS[:3], "positives": KNOWN, "transitive": 0.5},
    "Ecdf": {"scores": SCORES[0], "positive_scores": [0.5, 0.6, 0.7]},
    "Guide": {"score_pairs": of_pairs, "threshold": 0.5, "first": 0.3, "budget": 3, "total_budget": 9},
    "Incremental": {"n_samples": 9, "clusters": 2},
    "Labelled": {"groups": [0, 1, 0], "features": of_pairs, "false_share": 0.2},
    "LearnedQuantile": {"n_anchors": 3},
    "LinearAcceptance": {},
    "Margin": {"margin": 0.1, "positive_scores": [0.5, 0.6, 0.7]},
    "Mixture": {"bounds": (-1, 1)},
    "Posterior": {"positive_scores": [0.5, 0.6, 0.7], "alike": of_pairs},
    "RankWindow": {"skip": 1},
    "ScoreSketch": {},
    "Scoreboard": {},
    "ShareOfPositive": {"positive_scores": [0.5, 0.6, 0.7]},
    "SoftClusters": {"n_clusters": 2, "embed": embed, "embed_anchors": embed},
    "StepAcceptance": {},
    "SupportViews": {"views": np.ones((3, 2, 2)), "embed": embed},
    "attract": {"negatives": NEGATIVES, "suspicion": SUSPICION},
    "choose_thresholds": {"scores": SCORES},
    "compact": {"negatives": NEGATIVES},
    "cut": {"posterior": SUSPICION, "k": 2, "false_share": 0.1},
    "detection_rates": {"labels": [0, 0, 1], "classes": [0, 1, 1]},
    "drop": {"negatives": NEGATIVES, "suspicion": SUSPICION},
    "evaluate": {
        "detector": detectors.Absolute(0.5),
        "query": QUERY,
        "negatives": NEGATIVES,
        "truth": SUSPICION > 0.5,
    },
    "false_negative_rate": {"candidates": SCORES, "positives": SCORES[0], "kept": 0.5},
    "hidden_positives": {
        "detector": detectors.RankWindow(1),
        "query": QUERY,
        "hidden": KNOWN,
        "rng": ns.rng_for(0),
        "score": lambda anchors, ids: np.cos(anchors[:, None] + ids),
    },
    "ignore": {"negatives": NEGATIVES, "suspicion": SUSPICION},
    "judge_some": {"query": QUERY, "negatives": NEGATIVES, "judge": lambda a, i: i > 5, "rng": ns.rng_for(0)},
    "lowest_scores": {"anchors": [0, 0, 1], "scores": [0.1, 0.2, 0.3]},
    "normalised_mutual_information": {"labels": [0, 0, 1], "classes": [0, 1, 1]},
    "one_per_anchor": {"anchors": [0, 0, 1], "rng": ns.rng_for(0)},
    "reweight": {"negatives": NEGATIVES, "suspicion": SUSPICION},
    "split_known": {"positives": KNOWN, "rng": ns.rng_for(0)},
    "spot_check": {"query": QUERY, "negatives": NEGATIVES, "judge": lambda a, i: i > 5, "rng": ns.rng_for(0)},
    "unlabelled_share": {"candidates": SCORES, "positives": SCORES[0]},
}
RESULTS = {"DetectionRates", "Evaluation", "Judgement", "PairLabels", "Reliability", "Share", "Split", "Thresholds"}
RESULTS |= {"TwoComponentMixture", "Cut", "LabelCheck", "PosteriorSummary"}
WRONG = [
    *(None, object(), "x", b"x", "", True, -1, 0, 2.5, 1e300, 10**30, float("nan"), float("inf"), 1j),
    *([], [[]], [None], ["a"], [[1], [1, 2]], (), (1,), (2, 1), {}, {1: 2}, {"a": 1}, set(), int, len, range(0)),
    *(np.array(["a", "b"]), np.array([object()]), np.array([np.nan]), np.zeros((0, 2)), np.zeros((2, 2, 2))),
    *(np.datetime64("2020-01-01"), np.array([1 + 2j]), iter([]), np.float64("nan"), np.bool_(True), QUERY, NEGATIVES),
]


def test_everything_public_is_called_or_is_a_result():
    assert set(detectors.__all__) == set(CALLS) | RESULTS


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_one_sentence_that_names_it(name):
    function = getattr(detectors, name)
    function(**CALLS[name])
    failures = []
    for parameter in inspect.signature(function).parameters:
        given = CALLS[name].get(parameter)
        for value in WRONG:
            if callable(value) and (callable(given) or parameter in ("truth", "embed")):
                continue  # errors inside a user's function are the user's
            try:
                function(**{**CALLS[name], parameter: value})
            except ns.NaysayError as error:
                if "`" not in str(error) or "\n" in str(error):
                    failures.append((parameter, value, str(error)))
            except Exception as error:  # a raw error of NumPy or Python
                failures.append((parameter, value, f"{type(error).__name__}: {error}"))
    assert failures == [], failures


@pytest.mark.parametrize("name", [name for name in CALLS if isinstance(getattr(detectors, name), type)])
def test_the_repr_shows_every_setting_in_short(name):
    detector = getattr(detectors, name)(**CALLS[name])
    shown = repr(detector)
    missing = [setting for setting in inspect.signature(type(detector)).parameters if f"{setting}=" not in shown]
    assert missing == []
    assert len(shown) < 400
    assert "array(" not in shown


def test_numbers_from_files_and_tensors_are_read_as_arrays():
    torch = pytest.importorskip("torch")
    for value in (3, np.int32(3), np.array(3), torch.tensor(3)):
        found = read_state({"n": value}, {"n": Entry(whole=True, at_least=0)})["n"]
        assert (found.shape, found.dtype, int(found)) == ((), np.int64, 3)
    assert int(read_state({"done": np.array(True)}, {"done": Entry(whole=True, at_most=1)})["done"]) == 1


def test_a_letter_of_a_shape_is_one_length_in_all_entries():
    entries = {"a": Entry(("n",)), "b": Entry(("n", 2))}
    assert read_state({"a": [1.0, 2.0], "b": np.zeros((2, 2))}, entries)["a"].tolist() == [1.0, 2.0]
    with pytest.raises(ns.NaysayError, match=r"`b` must be numbers of shape \(2, 2\), got float64 of shape \(3, 2\)"):
        read_state({"a": [1.0, 2.0], "b": np.zeros((3, 2))}, entries)
