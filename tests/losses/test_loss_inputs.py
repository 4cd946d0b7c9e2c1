"""What the slot losses raise_invalid, each with its whole sentence, and what they take."""

import math

import numpy as np
import pytest
import torch

from naysay import catalog, losses
from naysay.errors import NaysayError
from naysay.losses import (
    bounded_margin,
    bpr,
    debiased,
    decoupled,
    distinct_log_q,
    gbce,
    gist,
    hard_negative_nce,
    hinge,
    info_nce,
    margin_mse,
    mixture_log_q,
    normalised_hardness,
    sampled_bce,
    sampled_softmax,
    self_adversarial,
)

POSITIVE = torch.tensor([0.5, -0.25])
NEGATIVES = torch.tensor([[0.0, 1.0, -1.0], [0.5, 0.25, 2.0]])
SCORES = (POSITIVE, NEGATIVES)
LOG_Q = torch.full((2, 3), -2.0)
NAN, INF = math.nan, math.inf


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Cores are shared: torch's threads would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def changed(values, place, value):
    values = values.clone()
    values[place] = value
    return values


def refusal(loss, *arguments, **options):
    with pytest.raises(NaysayError) as caught:
        loss(*arguments, **options)
    return str(caught.value)


def gbce_of_ten(*scores, **options):
    return gbce(*scores, n_items=10, **options)


def sampled(*scores, **options):
    return sampled_softmax(*scores, **{"log_q": LOG_Q, **options})


def taught(*scores, **options):
    own, others = (np.zeros(np.shape(part)) for part in scores)
    return margin_mse(*scores, teacher_positive=own, teacher_negatives=others, **options)


EVERY = {
    "bpr": bpr,
    "hinge": hinge,
    "sampled_bce": sampled_bce,
    "gbce": gbce_of_ten,
    "info_nce": info_nce,
    "sampled_softmax": sampled,
    "decoupled": decoupled,
    "debiased": debiased,
    "hard_negative_nce": hard_negative_nce,
    "self_adversarial": self_adversarial,
    "gist": gist,
    "bounded_margin": bounded_margin,
    "margin_mse": taught,
    "normalised_hardness": normalised_hardness,
}
TEMPERED = ["info_nce", "sampled_softmax", "decoupled", "debiased", "hard_negative_nce", "gist"]
EACH = pytest.mark.parametrize("name", list(EVERY))
EACH_TEMPERED = pytest.mark.parametrize("name", TEMPERED)


def test_every_loss_of_slots_is_here():
    of_vectors = {loss.name.removeprefix("losses.") for loss in catalog.losses() if loss.over == "vectors"}
    helpers = {"distinct_log_q", "gather_rows", "mixture_log_q", "keep_hardest", "concentrations", "cached_step"}
    assert set(losses.__all__) - of_vectors == {*EVERY, *helpers}


# ---- scores ----------------------------------------------------------------------------------------------------------

WRONG_SCORES = {
    "more rows": (
        (POSITIVE, torch.zeros(3, 4)),
        "`negatives` must be of shape (2, any), got shape (3, 4).",
    ),
    "no slots": ((POSITIVE, POSITIVE), "`negatives` must be of shape (2, any), got shape (2,)."),
    "a column": ((POSITIVE[:, None], NEGATIVES), "`positive` must be of shape (any,), got shape (2, 1)."),
    "a number": ((POSITIVE[0], NEGATIVES), "`positive` must be of shape (any,), got shape ()."),
    "numpy": (
        (POSITIVE.numpy(), NEGATIVES),
        "`positive` must be a torch tensor, got ndarray. Pass a tensor: gradients flow through it.",
    ),
    "lists": (
        (POSITIVE, NEGATIVES.tolist()),
        "`negatives` must be a torch tensor, got list. Pass a tensor: gradients flow through it.",
    ),
    "whole": ((POSITIVE.long(), NEGATIVES), "`positive` must be of a floating dtype, got torch.int64."),
    "bool": ((POSITIVE, NEGATIVES > 0), "`negatives` must be of a floating dtype, got torch.bool."),
    "complex": ((POSITIVE, NEGATIVES.cfloat()), "`negatives` must be of a floating dtype, got torch.complex64."),
    "other dtype": (
        (POSITIVE, NEGATIVES.double()),
        "`negatives` must be of the dtype of positive, torch.float32, got torch.float64.",
    ),
    "other device": (
        (POSITIVE.to("meta"), NEGATIVES),
        "`negatives` must be on the device of positive, meta, got cpu.",
    ),
    "nan": (
        (changed(POSITIVE, 1, NAN), NEGATIVES),
        "`positive` must be finite, got nan at row 1 (1 such row).",
    ),
    "inf": (
        (torch.full((2,), -INF), NEGATIVES),
        "`positive` must be finite, got -inf at row 0 (2 such rows).",
    ),
    "nan in a slot": (
        (POSITIVE, changed(NEGATIVES, (1, 2), NAN)),
        "`negatives` must be finite, got nan at row 1, slot 2 (1 such row). Mask the slots that are empty.",
    ),
    "inf in a slot": (
        (POSITIVE, changed(NEGATIVES, (0, 1), INF)),
        "`negatives` must be finite, got inf at row 0, slot 1 (1 such row). Mask the slots that are empty.",
    ),
}


@EACH
@pytest.mark.parametrize("case", list(WRONG_SCORES))
def test_scores(name, case):
    scores, sentence = WRONG_SCORES[case]
    assert refusal(EVERY[name], *scores) == f"{name}: {sentence}"


@pytest.mark.parametrize("score", [NAN, INF])
def test_a_guide_hides_no_score(score):
    """A score that is not finite is refused, also in a slot that the guide would leave out."""
    strange = changed(NEGATIVES, (0, 0), score)
    guide = {"guide_positive": [0.5, 0.5], "guide_negatives": [[0.9, 0.0, 0.0], [0.0, 0.0, 0.0]]}
    sentence = f"gist: `negatives` must be finite, got {score} at row 0, slot 0 (1 such row)."
    assert refusal(gist, POSITIVE, strange, **guide).startswith(sentence)


@EACH
@pytest.mark.parametrize("score", [NAN, INF, -INF])
def test_masked_slots_may_hold_anything(name, score):
    """Scores, weights, and log_q."""
    mask = torch.tensor([[True, False, True], [False, False, False]])
    plain = EVERY[name](*SCORES, mask=mask)
    weights = torch.ones(2, 3).masked_fill(~mask, score)
    strange = NEGATIVES.masked_fill(~mask, score)
    options = {"log_q": LOG_Q.masked_fill(~mask, score)} if name == "sampled_softmax" else {}
    assert EVERY[name](POSITIVE, strange, mask=mask, weights=weights, **options).tolist() == plain.tolist()


# ---- mask, weights, log_q --------------------------------------------------------------------------------------------

WRONG_OPTIONS = {
    "mask of numbers": (
        {"mask": torch.ones(2, 3, dtype=torch.int64)},
        "`mask` must be of dtype bool, got torch.int64. True keeps a slot; pass mask.bool().",
    ),
    "mask of shape": ({"mask": np.ones((2, 4), bool)}, "`mask` must be of shape (2, 3), got shape (2, 4)."),
    "mask of rows": ({"mask": [True, False]}, "`mask` must be of shape (2, 3), got shape (2,)."),
    "mask on meta": (
        {"mask": torch.ones(2, 3, dtype=torch.bool, device="meta")},
        "`mask` must be a tensor that can be moved to cpu, got one on meta, which has no values.",
    ),
    "ragged mask": (
        {"mask": [[True, False, True], [True]]},
        "`mask` must be rows of one length, got rows of different lengths.",
    ),
    "mask of strings": ({"mask": np.full((2, 3), "yes")}, "`mask` must be numbers, got dtype <U3."),
    "negative weights": (
        {"weights": changed(torch.ones(2, 3), (1, 0), -1.0)},
        "`weights` must be finite and at least 0, got -1.0 at row 1, slot 0 (1 such row).",
    ),
    "weights of nan": (
        {"weights": np.array([[1.0, NAN, 1.0], [1.0, 1.0, INF]])},
        "`weights` must be finite and at least 0, got nan at row 0, slot 1 (2 such rows).",
    ),
    "weights of shape": ({"weights": torch.ones(2, 1)}, "`weights` must be of shape (2, 3), got shape (2, 1)."),
    "one weight": ({"weights": 2.0}, "`weights` must be of shape (2, 3), got shape ()."),
    "bool weights": ({"weights": NEGATIVES > 0}, "`weights` must be numbers, got torch.bool."),
}


@EACH
@pytest.mark.parametrize("case", list(WRONG_OPTIONS))
def test_mask_and_weights(name, case):
    options, sentence = WRONG_OPTIONS[case]
    assert refusal(EVERY[name], *SCORES, **options) == f"{name}: {sentence}"


WRONG_LOG_Q = {
    "a probability": (
        torch.full((2, 3), 0.25),
        "`log_q` must be finite and at most 0, got 0.25 at row 0, slot 0 (2 such rows). "
        "It is the logarithm of a probability.",
    ),
    "one of them": (
        changed(LOG_Q, (1, 2), 2.0),
        "`log_q` must be finite and at most 0, got 2.0 at row 1, slot 2 (1 such row). "
        "It is the logarithm of a probability.",
    ),
    "never drawn": (
        changed(LOG_Q, (0, 0), -INF),
        "`log_q` must be finite and at most 0, got -inf at row 0, slot 0 (1 such row). "
        "It is the logarithm of a probability.",
    ),
    "of shape": (LOG_Q[0], "`log_q` must be of shape (2, 3), got shape (3,)."),
}


@EACH_TEMPERED
@pytest.mark.parametrize("case", list(WRONG_LOG_Q))
def test_log_q(name, case):
    log_q, sentence = WRONG_LOG_Q[case]
    assert refusal(EVERY[name], *SCORES, log_q=log_q) == f"{name}: {sentence}"


def test_log_q_of_certainty_may_be_rounded():
    for certain in (0.0, 1e-7):
        info_nce(*SCORES, log_q=np.full((2, 3), certain))


# ---- temperature -----------------------------------------------------------------------------------------------------

WRONG_TEMPERATURES = {
    "zero": (0.0, "a finite number above 0, got 0.0."),
    "below": (-0.5, "a finite number above 0, got -0.5."),
    "nan": (NAN, "a finite number above 0, got nan."),
    "inf": (INF, "a finite number above 0, got inf."),
    "a string": ("0.5", "a finite number above 0, got '0.5'."),
    "a bool": (True, "a finite number above 0, got True."),
    "none": (None, "a finite number above 0, got None."),
    "tensor of zero": (torch.tensor(0.0), "a finite number above 0, got 0.0."),
    "tensor of nan": (torch.tensor(NAN), "a finite number above 0, got nan."),
    "learned, below": (torch.tensor(-0.5, requires_grad=True), "a finite number above 0, got -0.5."),
    "two": (torch.ones(2), "one number, got a tensor of torch.float32 and shape (2,)."),
    "whole": (torch.tensor(1), "one number, got a tensor of torch.int64 and shape ()."),
}


@EACH_TEMPERED
@pytest.mark.parametrize("case", list(WRONG_TEMPERATURES))
def test_temperature(name, case):
    temperature, sentence = WRONG_TEMPERATURES[case]
    assert refusal(EVERY[name], *SCORES, temperature=temperature) == f"{name}: `temperature` must be {sentence}"


# ---- settings of one loss --------------------------------------------------------------------------------------------

GUIDE = {"guide_positive": [0.5, 0.5], "guide_negatives": np.zeros((2, 3))}
FORMS = "one of 'sampled', 'refined', 'classic'"
WRONG_SETTINGS = [
    (hinge, {"margin": -1.0}, "hinge: `margin` must be a finite number at least 0, got -1.0."),
    (hinge, {"margin": NAN}, "hinge: `margin` must be a finite number at least 0, got nan."),
    (hinge, {"margin": "wide"}, "hinge: `margin` must be a finite number at least 0, got 'wide'."),
    (gbce, {"n_items": 1}, "gbce: `n_items` must be at least 2, got 1."),
    (gbce, {"n_items": 10.0}, "gbce: `n_items` must be a whole number, got 10.0."),
    (gbce_of_ten, {"calibration": 2}, "gbce: `calibration` must be a number at least 0 and at most 1, got 2."),
    (gbce_of_ten, {"calibration": -0.1}, "gbce: `calibration` must be a number at least 0 and at most 1, got -0.1."),
    (gbce_of_ten, {"calibration": NAN}, "gbce: `calibration` must be a number at least 0 and at most 1, got nan."),
    (decoupled, {"sigma": 0.0}, "decoupled: `sigma` must be a finite number above 0, got 0.0."),
    (decoupled, {"sigma": INF}, "decoupled: `sigma` must be a finite number above 0, got inf."),
    (debiased, {"prior": 1.0}, "debiased: `prior` must be a number at least 0 and below 1, got 1.0."),
    (debiased, {"prior": -0.1}, "debiased: `prior` must be a number at least 0 and below 1, got -0.1."),
    (debiased, {"prior": NAN}, "debiased: `prior` must be a number at least 0 and below 1, got nan."),
    (debiased, {"min_score": NAN}, "debiased: `min_score` must be a number below inf, got nan."),
    (debiased, {"min_score": INF}, "debiased: `min_score` must be a number below inf, got inf."),
    (debiased, {"min_score": None}, "debiased: `min_score` must be a number below inf, got None."),
    (hard_negative_nce, {"beta": -1}, "hard_negative_nce: `beta` must be a finite number at least 0, got -1."),
    (hard_negative_nce, {"beta": NAN}, "hard_negative_nce: `beta` must be a finite number at least 0, got nan."),
    (hard_negative_nce, {"prior": 1.0}, "hard_negative_nce: `prior` must be a number at least 0 and below 1, got 1.0."),
    (hard_negative_nce, {"min_score": INF}, "hard_negative_nce: `min_score` must be a number below inf, got inf."),
    (self_adversarial, {"alpha": -0.5}, "self_adversarial: `alpha` must be a finite number at least 0, got -0.5."),
    (self_adversarial, {"margin": INF}, "self_adversarial: `margin` must be a finite number, got inf."),
    (self_adversarial, {"margin": NAN}, "self_adversarial: `margin` must be a finite number, got nan."),
    (self_adversarial, {"margin": "9"}, "self_adversarial: `margin` must be a finite number, got '9'."),
    (gist, {"margin": -0.1}, "gist: `margin` must be a finite number at least 0, got -0.1."),
    (
        gist,
        {"guide_positive": [0.5, 0.5]},
        "gist: `guide_positive` must be given with `guide_negatives`, or neither, got one of the two.",
    ),
    (
        gist,
        {"guide_negatives": np.zeros((2, 3))},
        "gist: `guide_positive` must be given with `guide_negatives`, or neither, got one of the two.",
    ),
    (gist, GUIDE | {"guide_positive": [0.5]}, "gist: `guide_positive` must be of shape (2,), got shape (1,)."),
    (
        gist,
        GUIDE | {"guide_negatives": np.zeros((2, 4))},
        "gist: `guide_negatives` must be of shape (2, 3), got shape (2, 4).",
    ),
    (
        gist,
        GUIDE | {"guide_positive": [0.5, NAN]},
        "gist: `guide_positive` must be finite, got nan at row 1 (1 such row).",
    ),
    (
        gist,
        GUIDE | {"guide_negatives": [[0.0, INF, 0.0], [0.0, 0.0, 0.0]]},
        "gist: `guide_negatives` must be finite, got inf at row 0, slot 1 (1 such row). "
        "Mask the slots that are empty.",
    ),
    (gist, GUIDE | {"guide_positive": [True, True]}, "gist: `guide_positive` must be numbers, got torch.bool."),
    (sampled, {"form": "wrong"}, f"sampled_softmax: `form` must be {FORMS}, got 'wrong'."),
    (
        sampled,
        {"form": "refind"},
        f"sampled_softmax: `form` must be {FORMS}, got 'refind'. Did you mean 'refined'?",
    ),
    (sampled, {"log_q": None}, "sampled_softmax: `log_q` must be given, got None. Without it, use `info_nce`."),
    (
        sampled,
        {"form": "classic"},
        "sampled_softmax: `positive_log_q` must be given for form 'classic', got None. "
        "It is the log-probability with which each positive would be drawn.",
    ),
]


@pytest.mark.parametrize(("loss", "options", "sentence"), WRONG_SETTINGS)
def test_settings(loss, options, sentence):
    assert refusal(loss, *SCORES, **options) == sentence


@pytest.mark.parametrize(
    ("loss", "setting"),
    [(hinge, "margin"), (gist, "margin"), (hard_negative_nce, "beta"), (self_adversarial, "alpha")],
)
def test_a_setting_without_end_is_rejected(loss, setting):
    """Infinity is at least 0, and gives a loss of NaN, of infinity, or one that leaves everything out."""
    assert refusal(loss, *SCORES, **{setting: INF}).startswith(f"{loss.__name__}: `{setting}` must be ")


@pytest.mark.parametrize(
    ("loss", "setting", "value"),
    [
        (hinge, "margin", 0.5),
        (gbce_of_ten, "calibration", 0.5),
        (info_nce, "temperature", 0.5),
        (decoupled, "sigma", 0.5),
        (debiased, "prior", 0.125),
        (debiased, "min_score", -2.0),
        (hard_negative_nce, "beta", 0.5),
        (self_adversarial, "alpha", 0.5),
        (self_adversarial, "margin", 0.5),
        (gist, "margin", 0.5),
    ],
)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_number_may_be_numpys(loss, setting, value, kind):
    assert loss(*SCORES, **{setting: kind(value)}).tolist() == loss(*SCORES, **{setting: value}).tolist()


@pytest.mark.parametrize(
    ("own", "got"),
    [([0.25, -1.0], "0.25 at row 0 (1 such row)"), ([-1.0, NAN], "nan at row 1 (1 such row)")],
)
@pytest.mark.parametrize("form", ["sampled", "refined", "classic"])
def test_the_log_q_of_a_positive_is_rejected_under_its_name(form, own, got):
    sentence = refusal(sampled, *SCORES, positive_log_q=own, form=form)
    assert sentence.startswith("sampled_softmax: `positive_log_q` must be ")
    assert f", got {got}. " in sentence
    of_shape = refusal(sampled, *SCORES, positive_log_q=LOG_Q, form=form)
    assert of_shape == "sampled_softmax: `positive_log_q` must be of shape (2,), got shape (2, 3)."


@pytest.mark.parametrize("certain", [0.0, 5e-7])
@pytest.mark.parametrize("form", ["sampled", "refined"])
def test_a_positive_that_is_always_drawn_leaves_nothing_to_draw(form, certain):
    """1 - q_p is 0, or below it by rounding, and its logarithm is no number."""
    own = torch.tensor([certain, -1.0], dtype=torch.float64)
    sentence = refusal(sampled, *SCORES, positive_log_q=own, form=form)
    assert sentence.startswith("sampled_softmax: `positive_log_q` must be ")


# ---- log_q of mixtures and of distinct rows --------------------------------------------------------------------------

ONE, TWO = np.log([[0.5, 0.25]]), np.log([[0.125, 0.5]])


@pytest.mark.parametrize(
    ("log_qs", "shares", "sentence"),
    [
        ([], [], "`log_qs` must be at least one array, got none."),
        ([ONE, TWO[0]], [1, 1], "`log_qs` must be of one shape, got (1, 2), (2,)."),
        ([ONE, TWO], [1], "`shares` must be 2 numbers, one for each of log_qs, got shape (1,)."),
        ([ONE, TWO], 1.0, "`shares` must be 2 numbers, one for each of log_qs, got shape ()."),
        ([ONE, TWO], [1.0, -1.0], "`shares` must be at least 0, and not all 0, got [1.0, -1.0]."),
        ([ONE, TWO], [1.0, NAN], "`shares` must be at least 0, and not all 0, got [1.0, nan]."),
        ([ONE, TWO], [0, 0], "`shares` must be at least 0, and not all 0, got [0, 0]."),
        (
            [ONE, [[0.125, 0.5]]],
            [1, 1],
            "`log_qs` must be at most 0, got 0.125 at row 0, slot 0 (1 such row). "
            "It is the logarithm of a probability.",
        ),
        (
            [ONE, [[-1.0, NAN]]],
            [1, 1],
            "`log_qs` must be at most 0, got nan at row 0, slot 1 (1 such row). It is the logarithm of a probability.",
        ),
    ],
)
def test_mixtures(log_qs, shares, sentence):
    assert refusal(mixture_log_q, log_qs, shares) == f"mixture_log_q: {sentence}"


def test_a_mixture_is_made_of_numbers():
    assert refusal(mixture_log_q, [np.array([["a", "b"]])], [1]).startswith("mixture_log_q: `log_qs` must be numbers")
    strings = refusal(mixture_log_q, [ONE, TWO], ["1", "2"])  # of the right shape
    assert strings == "mixture_log_q: `shares` must be numbers, got dtype <U1."


def test_mixtures_by_hand():
    assert np.exp(mixture_log_q([ONE, TWO], [3, 1])) == pytest.approx(np.array([[0.40625, 0.3125]]))
    assert np.exp(mixture_log_q([ONE], [0.2])) == pytest.approx(np.exp(ONE))
    with np.errstate(divide="ignore"):
        never = np.log([[0.0, 0.0]])
    assert np.exp(mixture_log_q([ONE, never], [1, 1])) == pytest.approx(np.exp(ONE) / 2)
    assert np.exp(mixture_log_q([ONE, TWO], [0, 1])) == pytest.approx(np.exp(TWO))
    assert mixture_log_q([never, never], [1, 1]).tolist() == [[-INF, -INF]]
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        found = mixture_log_q([torch.tensor(ONE, dtype=dtype), TWO], [1, 1])
        assert found.dtype == dtype
        assert found.exp().tolist()[0] == pytest.approx([0.3125, 0.375], rel=1e-2)


def test_distinct_rows():
    assert refusal(distinct_log_q, [-1.0]) == "distinct_log_q: `log_q` must be of shape (B, K), got shape (1,)."
    sentence = "distinct_log_q: `mask` must be bool, of shape (1, 2), got "
    assert refusal(distinct_log_q, ONE, np.ones((1, 3), bool)) == f"{sentence}bool, shape (1, 3)."
    assert refusal(distinct_log_q, ONE, np.ones((1, 2))) == f"{sentence}float64, shape (1, 2)."


@pytest.mark.parametrize("bad", [0.25, NAN, "a"])
def test_distinct_rows_have_log_probabilities(bad):
    """As for every other log_q: a probability, or what is no number, does not pass."""
    assert refusal(distinct_log_q, np.array([[-1.0, bad]])).startswith("distinct_log_q: `log_q` must be ")


def test_distinct_rows_by_hand():
    """Three of six, one after the other, uniformly: 6 + 2 slots after it, 5 + 1, 4."""
    drawn = -np.log([[6.0, 5.0, 4.0]])
    assert np.exp(-distinct_log_q(drawn)) == pytest.approx(np.array([[8.0, 6.0, 4.0]]))
    some = np.exp(-distinct_log_q(-np.log([[6.0, 9.0, 5.0]]), [[True, False, True]]))
    assert some == pytest.approx(np.array([[7.0, 1.0, 5.0]]))
    assert distinct_log_q(np.empty((0, 3))).shape == (0, 3)
    assert distinct_log_q(np.empty((2, 0))).shape == (2, 0)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        found = distinct_log_q(torch.tensor(drawn, dtype=dtype), torch.ones(1, 3, dtype=torch.bool))
        assert found.dtype == dtype
        assert (-found).exp().tolist()[0] == pytest.approx([8.0, 6.0, 4.0], rel=1e-2)


# ---- what passes -----------------------------------------------------------------------------------------------------


@EACH
def test_lists_arrays_and_tensors_are_options(name):
    mask, weights = [[True, False, True], [True, True, False]], [[1, 2, 3], [4, 0, 6]]
    expected = EVERY[name](*SCORES, mask=mask, weights=weights)
    frozen = np.array(mask)
    frozen.flags.writeable = False
    for option in (frozen, torch.tensor(mask), np.array(mask)[::-1][::-1]):
        for counts in (np.array(weights, np.float32), np.array(weights, np.int8), torch.tensor(weights)):
            assert EVERY[name](*SCORES, mask=option, weights=counts).tolist() == expected.tolist()


@EACH
@pytest.mark.parametrize(("rows", "slots"), [(0, 0), (0, 3), (2, 0)])
def test_nothing_at_all(name, rows, slots):
    """0 for each row, and a gradient of 0."""
    positive = torch.zeros(rows, requires_grad=True)
    options = {"log_q": torch.zeros(rows, slots)} if name == "sampled_softmax" else {}
    values = EVERY[name](positive, torch.zeros(rows, slots), **options)
    assert values.tolist() == [0.0] * rows
    values.sum().backward()
    assert positive.grad.tolist() == [0.0] * rows


def test_half_precision_does_not_move_the_threshold_of_a_guide():
    """1 <= 1 - 0.001 is false, though bfloat16 cannot tell the two apart: it is compared in float32."""
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        scores = torch.ones(1, dtype=dtype), torch.ones((1, 1), dtype=dtype)
        assert gist(*scores, margin=0.0).item() > 0.5
        assert gist(*scores, margin=0.001).item() == 0.0
