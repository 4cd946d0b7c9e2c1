"""Calls that raise: each names the parameter that is wrong. And what is taken although it looks odd."""

import math

import numpy as np
import pytest
import torch
from loss_calls import BATCH_LOSSES, BLOCKS, LOG_Q, ROWS, SLOT_LOSSES, SLOTS, SOFTMAX, random

from naysay import losses
from naysay.errors import NaysayError

POSITIVE, NEGATIVES = random(ROWS), random(ROWS, SLOTS, seed=1)
SCORES = POSITIVE, NEGATIVES
NAN, INF = math.nan, math.inf
EYE = torch.eye(4)
ONES = torch.ones(ROWS, SLOTS)
FOUR = [1, 0, 3, 2]


def changed(values, place, value):
    values = values.clone()
    values[place] = value
    return values


def assert_invalid(parameter, call, *arguments, **options):
    """The error is one sentence about that parameter."""
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **options)
    assert caught.value.parameter == parameter
    assert f"`{parameter}` must be " in str(caught.value)
    assert ", got " in str(caught.value)


# ---- what all slot losses and all losses of vectors check ------------------------------------------------------------

INVALID_SCORES = [
    ("negatives", (POSITIVE, torch.zeros(ROWS + 1, SLOTS))),
    ("negatives", (POSITIVE, POSITIVE)),
    ("positive", (POSITIVE[0], NEGATIVES)),
    ("positive", (POSITIVE.numpy(), NEGATIVES)),
    ("positive", (POSITIVE.long(), NEGATIVES)),
    ("negatives", (POSITIVE, NEGATIVES.cfloat())),
    ("negatives", (POSITIVE, NEGATIVES.double())),
    ("negatives", (POSITIVE.to("meta"), NEGATIVES)),
    ("positive", (changed(POSITIVE, 0, -INF), NEGATIVES)),
    ("negatives", (POSITIVE, changed(NEGATIVES, (1, 2), NAN))),
]
INVALID_OPTIONS = [
    ("mask", ONES.long()),
    ("mask", [True] * ROWS),
    ("mask", ONES.bool().to("meta")),
    ("mask", [[True, False], [True]]),
    ("mask", np.full((ROWS, SLOTS), "yes")),
    ("weights", changed(ONES, (1, 0), -1.0)),
    ("weights", changed(ONES, (1, 0), NAN)),
    ("weights", 2.0),
    ("weights", ONES.bool()),
    ("log_q", torch.full((ROWS, SLOTS), 0.25)),
    ("log_q", changed(LOG_Q, (0, 0), -INF)),
    ("log_q", LOG_Q[0]),
    *(("temperature", value) for value in (-0.5, NAN, INF, "0.5", True, None)),
    *(("temperature", torch.tensor(value)) for value in (0.0, NAN, 1, [1.0, 1.0])),
]


@pytest.mark.parametrize("name", SLOT_LOSSES)
def test_scores_and_masks_of_every_slot_loss(name):
    for parameter, scores in INVALID_SCORES:
        assert_invalid(parameter, SLOT_LOSSES[name], *scores)
    assert_invalid("mask", SLOT_LOSSES[name], *SCORES, mask=np.ones((ROWS, SLOTS + 1), bool))
    assert_invalid("weights", SLOT_LOSSES[name], *SCORES, weights=ONES[:, :1])


@pytest.mark.parametrize(("parameter", "value"), INVALID_OPTIONS)
def test_options_of_slot_losses(parameter, value):
    assert_invalid(parameter, losses.info_nce, *SCORES, **{parameter: value})


@pytest.mark.parametrize("name", BATCH_LOSSES)
def test_vectors_of_batch_losses(name):
    z = random(40, 3)
    parameter = "anchors" if name.startswith("in_batch") else "z"
    for invalid in (z.numpy(), changed(z, (3, 1), NAN), z[0]):
        assert_invalid(parameter, BATCH_LOSSES[name], invalid)
    for block in BLOCKS.values():
        assert_invalid(parameter, BATCH_LOSSES[name], torch.where(z > 0, 1e20, -1e20), block=block)  # overflow
    assert_invalid("block", BATCH_LOSSES[name], z, block=0)


# ---- one loss --------------------------------------------------------------------------------------------------------

GUIDE = {"guide_positive": np.zeros(ROWS), "guide_negatives": np.zeros((ROWS, SLOTS))}
POINTS = {"anchors": EYE, "items": EYE, "positives": ([0], [0])}
CENTRES = {"z": EYE, "centroids": EYE, "labels": [0, 1, 2, 3], "temperatures": 1.0}
OF_SLOTS = [
    *((losses.hinge, {"margin": value}, "margin") for value in (-1.0, "wide")),
    *((losses.gbce, {"n_items": value}, "n_items") for value in (1, 10.0)),
    *((losses.gbce, {"n_items": 10, "calibration": value}, "calibration") for value in (2, NAN)),
    *((losses.decoupled, {"sigma": value}, "sigma") for value in (0.0, INF)),
    *((losses.debiased, {"prior": value}, "prior") for value in (-0.1, NAN)),
    *((losses.debiased, {"min_score": value}, "min_score") for value in (NAN, INF)),
    *((losses.hard_negative_nce, {"beta": value}, "beta") for value in (-1, INF)),
    *((losses.self_adversarial, {"alpha": value}, "alpha") for value in (-0.5, INF)),
    *((losses.self_adversarial, {"margin": value}, "margin") for value in (INF, "9")),
    *((losses.gist, {"margin": value}, "margin") for value in (-0.1, INF)),
    (losses.gist, {"guide_positive": np.zeros(ROWS)}, "guide_positive"),
    (losses.gist, GUIDE | {"guide_positive": [0.5]}, "guide_positive"),
    (losses.gist, GUIDE | {"guide_positive": [NAN] * ROWS}, "guide_positive"),
    (losses.gist, GUIDE | {"guide_negatives": np.zeros((ROWS, SLOTS + 1))}, "guide_negatives"),
    (losses.gist, GUIDE | {"guide_negatives": np.full((ROWS, SLOTS), INF)}, "guide_negatives"),
    (losses.info_nce, {"attract": ONES}, "attract"),
    (losses.info_nce, {"attract": ONES[:, 1:].bool()}, "attract"),
    (losses.sampled_softmax, {"log_q": None}, "log_q"),
    (losses.sampled_softmax, {"log_q": LOG_Q, "form": "refind"}, "form"),
    (losses.sampled_softmax, {"log_q": LOG_Q, "form": "classic"}, "positive_log_q"),
    *(
        (losses.sampled_softmax, {"log_q": LOG_Q, "positive_log_q": own, "form": form}, "positive_log_q")
        for own in ([0.25] * ROWS, [NAN] * ROWS, LOG_Q)
        for form in ("sampled", "refined", "classic")
    ),
    (losses.sampled_softmax, {"log_q": LOG_Q, "positive_log_q": [0.0] * ROWS}, "positive_log_q"),
    (losses.bounded_margin, {"low": 0.4}, "high"),
    (losses.normalised_hardness, {"scale": 0}, "scale"),
    (losses.normalised_hardness, {"shift": NAN}, "shift"),
    (
        losses.margin_mse,
        {"teacher_positive": np.zeros(ROWS), "teacher_negatives": np.full((ROWS, SLOTS), NAN)},
        "teacher_negatives",
    ),
]
OF_PAIRS = [  # in_batch(anchors, keys)
    ({"keys": EYE.double()}, "keys"),
    ({"keys": EYE[:2]}, "keys"),
    ({"keys": None}, "partner"),
    ({"keys": None, "partner": [1, 1, 0, 0]}, "partner"),
    ({"partner": [0, 4, 5, 1]}, "partner"),
    ({"partner": [0.0, 1.0, 2.0, 3.0]}, "partner"),
    ({"mask": torch.ones(2, 2).bool()}, "mask"),
    ({"mask": lambda rows: torch.ones(4).bool()}, "mask"),
    ({"mask": torch.ones(4, 4)}, "mask"),
    ({"labels": [0, 1], "key_labels": [0, 1, 2, 3]}, "labels"),
    ({"labels": [0, 1, 2, 3]}, "key_labels"),
    ({"key_labels": [0, 1, 2, 3]}, "key_labels"),
    ({"labels": [[0, 1, 2, 3]] * 2, "key_labels": [0, 1, 2, 3]}, "key_labels"),
]
OF_IN_BATCH = [
    ({"temperature": 0}, "temperature"),
    ({"weights": [-1.0, 1.0, 1.0, 1.0]}, "weights"),
    ({"negatives": torch.ones(2, 4, 4)}, "negatives"),
    ({"negative_mask": torch.ones(4, 4).bool()}, "negative_mask"),
    ({"negatives": torch.ones(4, 1, 4), "log_q": torch.full((4,), -1.0)}, "log_q"),
    ({"prior": 1.0}, "prior"),
    ({"form": "refined"}, "log_q"),
    ({"positive_log_q": [-1.0] * 4}, "log_q"),
    ({"form": "classic", "log_q": [-1.0] * 4}, "positive_log_q"),
    ({"positive_log_q": [0.0] * 4, "log_q": [-1.0] * 4}, "positive_log_q"),
    ({"form": "refined", "log_q": [-1.0] * 4, "beta": 1.0}, "form"),
]
OTHERS = [
    (losses.in_batch_hinge, {"anchors": EYE, "keys": EYE, "among": 0}, "among"),
    (
        losses.eliminate,
        {"z": EYE, "partner": FOUR, "labels": FOUR, "temperature": 1.0, "key_labels": [0]},
        "key_labels",
    ),
    (losses.attract, {"z": EYE, "partner": FOUR, "labels": [0.5, 1, 2, 3], "temperature": 1.0}, "labels"),
    (losses.attract, {"z": EYE, "partner": [0, 1, 3, 2], "labels": FOUR, "temperature": 1.0}, "partner"),
    (losses.sup_con, {"z": EYE, "labels": [0, -2, 0, 0]}, "labels"),
    (losses.sup_con, {"z": EYE, "labels": ["a", "b", "c", "d"]}, "labels"),
    (losses.invariant_spreading, {"z": EYE, "partner": FOUR, "weight": -1}, "weight"),
    (losses.proto_nce, CENTRES | {"labels": [0, 1, 2, 4]}, "labels"),
    (losses.proto_nce, CENTRES | {"temperatures": [1.0, 0.0]}, "temperatures"),
    (losses.proto_nce, CENTRES | {"temperatures": np.array([1.0, 0.0, 1.0, 1.0])}, "temperatures"),
    (losses.proto_nce, CENTRES | {"negatives": 1}, "rng"),
    (
        losses.concentrations,
        {"vectors": np.eye(2), "centroids": np.eye(2), "labels": [0, 1], "temperature": 0.2},
        "vectors",
    ),
    *(
        (losses.all_items, POINTS | {"positives": value}, "positives")
        for value in (3, ([4], [0]), ([0], [9]), ([0], [0, 1]))
    ),
    *((losses.all_items, POINTS | {"weight": value}, "weight") for value in (-0.1, [0, 0, -1, 0], [1.0])),
    *((losses.keep_hardest, {"values": torch.zeros(3), "keep": value}, "keep") for value in (0, 1.5)),
    (losses.keep_hardest, {"values": torch.zeros(3), "keep": 1, "groups": [0]}, "groups"),
    (losses.keep_hardest, {"values": torch.tensor([0.0, NAN]), "keep": 1}, "values"),
    (losses.distinct_log_q, {"log_q": [-1.0]}, "log_q"),
    (losses.distinct_log_q, {"log_q": [["a"]]}, "log_q"),
    (losses.distinct_log_q, {"log_q": [[-1.0]], "mask": [[1]]}, "mask"),
    *(
        (losses.mixture_log_q, {"log_qs": log_qs, "shares": shares}, parameter)
        for log_qs, shares, parameter in (
            ([], [], "log_qs"),
            ([[[-1.0]], [-1.0]], [1, 1], "log_qs"),
            ([[[-1.0]], [[0.5]]], [1, 1], "log_qs"),
            ([[[-1.0]], [[-1.0]]], [1.0, -1.0], "shares"),
            ([[[-1.0]], [[-1.0]]], [0, 0], "shares"),
        )
    ),
    (losses.cached_step, {"encode": 3, "inputs": EYE, "loss": torch.sum, "chunk": 1}, "encode"),
    (losses.cached_step, {"encode": torch.nn.BatchNorm1d(4), "inputs": EYE, "loss": torch.sum, "chunk": 2}, "encode"),
    (losses.cached_step, {"encode": torch.sin, "inputs": EYE, "loss": torch.sin, "chunk": 2}, "loss"),
    *((losses.gather_rows, {"vectors": value}, "vectors") for value in (np.eye(2), torch.ones(2, 2, 2), EYE > 0)),
]


@pytest.mark.parametrize(("loss", "options", "parameter"), OF_SLOTS)
def test_settings_of_a_slot_loss(loss, options, parameter):
    assert_invalid(parameter, loss, *SCORES, **options)


@pytest.mark.parametrize("loss", [losses.in_batch, losses.in_batch_hinge])
def test_columns(loss):
    for options, parameter in OF_PAIRS:
        assert_invalid(parameter, loss, EYE, **({"keys": EYE} | options))


@pytest.mark.parametrize(("options", "parameter"), OF_IN_BATCH)
def test_settings_of_in_batch(options, parameter):
    assert_invalid(parameter, losses.in_batch, EYE, EYE, **options)


@pytest.mark.parametrize(("call", "options", "parameter"), OTHERS)
def test_other_functions(call, options, parameter):
    assert_invalid(parameter, call, **options)


# ---- what is taken ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SLOT_LOSSES)
@pytest.mark.parametrize("value", [NAN, INF])
def test_masked_slots_may_hold_anything(name, value):
    """Scores, weights and log_q."""
    mask = random(ROWS, SLOTS, seed=7) > 0
    mask[1] = False
    given = {"log_q": LOG_Q} if name in SOFTMAX else {}
    plain = SLOT_LOSSES[name](*SCORES, mask=mask, **given)
    strange = {option: values.masked_fill(~mask, value) for option, values in {"weights": ONES, **given}.items()}
    found = SLOT_LOSSES[name](POSITIVE, NEGATIVES.masked_fill(~mask, value), mask=mask, **strange)
    assert found.tolist() == plain.tolist()


@pytest.mark.parametrize("score", [NAN, INF])
def test_a_guide_hides_no_score(score):
    guide = {"guide_positive": [0.0] * ROWS, "guide_negatives": np.ones((ROWS, SLOTS))}
    assert_invalid("negatives", losses.gist, POSITIVE, changed(NEGATIVES, (0, 0), score), **guide)


def test_log_q_of_certainty_may_be_rounded():
    for certain in (0.0, 1e-7):
        losses.info_nce(*SCORES, log_q=np.full((ROWS, SLOTS), certain))
