"""AdaptiveOversampling: the marginal of the paper, the sign of a factor, exclusion with bounded work, and its state."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import adaptive_oversampling
from naysay.samplers._factor_ranks import ranks_below
from naysay.samplers.adaptive_oversampling import AdaptiveOversampling

COMPILING = settings(deadline=None, max_examples=30)  # a first call compiles
N_ANCHORS, N_ITEMS, D = 5, 12, 3
ITEMS = np.random.default_rng(0).normal(size=(N_ITEMS, D)) * [1.0, 0.5, 2.0]
USERS = np.random.default_rng(1).normal(size=(N_ANCHORS, D))
USERS[3] = 0.0
KNOWN = ns.Positives.from_pairs([0, 0, 1, 2, 2, 2, 3], [1, 4, 0, 3, 5, 7, 2], N_ANCHORS, N_ITEMS)


def embed(anchors):
    return torch.from_numpy(USERS)[anchors] if isinstance(anchors, torch.Tensor) else USERS[anchors]


def marginal(anchor, scale, known, users=USERS, items=ITEMS):
    """sum_f p(f | a) p(rank_f(j)) over what is not known, in plain loops."""
    n = len(items)
    raised = [math.exp(-r / scale) for r in range(1, n + 1)]
    shares = [abs(users[anchor][f]) * float(np.std(items[:, f])) for f in range(items.shape[1])]
    shares = shares if any(shares) else [1.0] * len(shares)
    chances = [0.0] * n
    for f, share in enumerate(shares):
        order = sorted(range(n), key=lambda j: items[j][f], reverse=bool(users[anchor][f] > 0))
        for rank, item in enumerate(order):
            chances[item] += share / sum(shares) * raised[rank] / sum(raised)
    chances = [0.0 if known.contains([anchor], [item])[0] else chance for item, chance in enumerate(chances)]
    return np.array(chances) / sum(chances)


def far_off(found, chances):
    """Chi-square over the items that can come, and a bound that chance does not reach."""
    counts = np.bincount(found, minlength=len(chances))
    assert counts[chances == 0].sum() == 0
    there = chances > 0
    expected = counts.sum() * chances[there]
    degrees = np.count_nonzero(there) - 1
    bound = degrees + 5 * math.sqrt(2 * degrees) + 25
    return ((counts[there] - expected) ** 2 / expected).sum() / bound


@pytest.mark.parametrize("anchor", range(N_ANCHORS))
@pytest.mark.parametrize("rounds", [8, 1, 0])
def test_draws_follow_the_marginal_however_they_are_made(anchor, rounds, monkeypatch):
    monkeypatch.setattr(adaptive_oversampling, "_ROUNDS", rounds)  # 0: every draw by the exact formula
    sampler = AdaptiveOversampling(KNOWN, ITEMS, embed, 3.0)
    taken = sampler.sample(ns.Query(np.full(5000, anchor)), 4, rng=ns.rng_for(anchor))
    assert far_off(taken.ids.ravel(), marginal(anchor, 3.0, KNOWN)) < 1
    assert taken.log_q is None
    assert taken.dropped == {}


def test_the_test_would_see_a_wrong_sign():
    sampler = AdaptiveOversampling(KNOWN, ITEMS, lambda anchors: -USERS[anchors], 3.0)
    taken = sampler.sample(ns.Query(np.zeros(5000, np.int64)), 4, rng=ns.rng_for(0))
    assert far_off(taken.ids.ravel(), marginal(0, 3.0, KNOWN)) > 10
    assert far_off(taken.ids.ravel(), marginal(0, 3.0, KNOWN, users=-USERS)) < 1


def test_turning_all_vectors_leaves_scores_and_changes_what_is_drawn():
    """Factors are the axes of the space: the same model turned about is oversampled in another way."""
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(D, D)))[0]
    users, items = USERS @ turn, ITEMS @ turn
    assert users @ items.T == pytest.approx(USERS @ ITEMS.T)
    sampler = AdaptiveOversampling(KNOWN, items, lambda anchors: users[anchors], 3.0)
    found = sampler.sample(ns.Query(np.zeros(5000, np.int64)), 4, rng=ns.rng_for(0)).ids[:, 0]
    assert far_off(found, marginal(0, 3.0, KNOWN, users, items)) < 1
    assert far_off(found, marginal(0, 3.0, KNOWN)) > 3


def test_a_negative_factor_ranks_from_the_lowest():
    items = np.arange(12.0)[:, None]
    known = ns.Positives.from_pairs([], [], 2, 12)
    sampler = AdaptiveOversampling(known, items, lambda anchors: np.array([[2.0], [-0.5]])[anchors], 0.05)
    assert sampler.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids.tolist() == [[11, 11, 11], [0, 0, 0]]


def test_flat_factors_are_never_drawn():
    items = np.stack([np.arange(12.0), np.ones(12)], axis=1)  # the second has no deviation
    known = ns.Positives.from_pairs([], [], 1, 12)
    sampler = AdaptiveOversampling(known, items, lambda anchors: np.array([[1e-6, 1e6]])[anchors], 0.05)
    assert sampler.sample(ns.Query([0]), 5, rng=ns.rng_for(0)).ids.tolist() == [[11] * 5]


@pytest.mark.parametrize("scale", [0.3, 3.0, 500.0])
def test_ranks_are_cut_exponentials(scale):
    found = ranks_below(12, scale, np.random.default_rng(0).random(50_000))
    chances = np.exp(-np.arange(12) / scale)
    assert found.min() == 0
    assert far_off(found[found < 6], chances[:6] / chances[:6].sum()) < 1
    assert abs((found < 6).mean() - chances[:6].sum() / chances.sum()) < 0.012
    assert ranks_below(12, scale, np.array([0.0, 1 - 2**-53])).tolist()[0] == 0
    assert ranks_below(12, scale, np.array([1 - 2**-53]))[0] <= 11


@COMPILING
@given(
    st.sets(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, N_ITEMS - 1))),
    st.lists(st.integers(0, N_ANCHORS - 1), max_size=6),
    st.sampled_from([0.001, 1.0, 1000.0]),
    st.integers(0, 5),
)
def test_nothing_known_comes_back_and_only_full_anchors_stay_empty(pairs, anchors, scale, k):
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], N_ANCHORS, N_ITEMS)
    taken = AdaptiveOversampling(known, ITEMS, embed, scale).sample(
        ns.Query(np.array(anchors, np.int64)), k, rng=ns.rng_for(0)
    )
    assert taken.shape == (len(anchors), k)
    missing = 0
    for anchor, ids in zip(anchors, taken.ids.tolist(), strict=True):
        liked = {item for owner, item in pairs if owner == anchor}
        assert not liked & set(ids)
        full = len(liked) == N_ITEMS
        assert all((item == -1) == full for item in ids)
        missing += k * full
    assert taken.dropped == ({"exhausted": missing} if missing else {})


def test_known_items_on_top_do_not_make_the_chances_vanish():
    items = np.arange(3000.0)[:, None]
    known = ns.Positives.from_pairs(np.zeros(2997, np.int64), np.arange(3, 3000), 1, 3000)
    sampler = AdaptiveOversampling(known, items, lambda anchors: np.ones((len(anchors), 1)), 1.0)
    taken = sampler.sample(ns.Query(np.zeros(2000, np.int64)), 3, rng=ns.rng_for(0))
    chances = np.exp([-2.0, -1.0, 0.0])
    assert far_off(taken.ids.ravel(), chances / chances.sum()) < 1


def test_exact_draws_in_blocks_are_those_of_one_block(monkeypatch):
    monkeypatch.setattr(adaptive_oversampling, "_ROUNDS", 0)
    sampler = AdaptiveOversampling(KNOWN, ITEMS, embed, 3.0)
    query = ns.Query([4, 0, 0, 3, 1, 2])
    whole = sampler.sample(query, 4, rng=ns.rng_for(0)).ids
    monkeypatch.setattr("naysay.samplers._factor_ranks._BLOCK", 2 * N_ITEMS)
    assert np.array_equal(sampler.sample(query, 4, rng=ns.rng_for(0)).ids, whole)


def test_ranks_move_with_update_and_the_paper_says_when():
    sampler = AdaptiveOversampling(KNOWN, ITEMS, embed, 3.0)
    limit = N_ITEMS * math.log(N_ITEMS)  # 29.8
    query = ns.Query([0, 1])
    for _ in range(7):
        assert not sampler.due
        sampler.sample(query, 2, rng=ns.rng_for(0))
    assert 4 * 7 < limit < 4 * 8
    sampler.sample(query, 2, rng=ns.rng_for(0))
    assert sampler.due
    sampler.update(torch.from_numpy(-ITEMS))
    assert not sampler.due
    taken = sampler.sample(ns.Query(np.zeros(5000, np.int64)), 4, rng=ns.rng_for(0))
    assert far_off(taken.ids.ravel(), marginal(0, 3.0, KNOWN, items=-ITEMS)) < 1


def test_a_restored_sampler_draws_the_same():
    one = AdaptiveOversampling(KNOWN, ITEMS, embed, 3.0)
    one.sample(ns.Query([0, 1]), 16, rng=ns.rng_for(0))
    other = AdaptiveOversampling(KNOWN, np.ones((N_ITEMS, D)), embed, 3.0)
    query = ns.Query(np.arange(5))
    assert not np.array_equal(*(sampler.sample(query, 8, rng=ns.rng_for(1)).ids for sampler in (one, other)))
    other.restore(one.state())
    assert one.due
    assert other.due
    assert np.array_equal(*(sampler.sample(query, 8, rng=ns.rng_for(1)).ids for sampler in (one, other)))


def test_numpy_and_torch_agree():
    sampler = AdaptiveOversampling(KNOWN, torch.from_numpy(ITEMS), embed, 3.0)
    plain = sampler.sample(ns.Query([0, 1, 2]), 2.5, rng=ns.rng_for(0))
    tensors = sampler.sample(ns.Query(torch.tensor([0, 1, 2])), 2.5, rng=ns.rng_for(0))
    assert isinstance(tensors.ids, torch.Tensor)
    assert tensors.ids.tolist() == plain.ids.tolist()
    leaf = torch.from_numpy(USERS.copy()).requires_grad_()
    graded = AdaptiveOversampling(KNOWN, ITEMS, lambda anchors: leaf[anchors], 3.0)
    assert graded.sample(ns.Query(torch.tensor([0, 1, 2])), 2.5, rng=ns.rng_for(0)).ids.tolist() == plain.ids.tolist()


def test_the_scale_may_follow_the_step():
    moving = AdaptiveOversampling(KNOWN, ITEMS, embed, lambda step: float(step))
    fixed = AdaptiveOversampling(KNOWN, ITEMS, embed, 2.0)
    query = ns.Query([0, 1, 2], step=2)
    assert np.array_equal(*(sampler.sample(query, 8, rng=ns.rng_for(1)).ids for sampler in (moving, fixed)))
    with pytest.raises(
        NaysayError, match=r"AdaptiveOversampling.sample: `scale` must be a finite number above 0, got 0\.0\."
    ):
        moving.sample(ns.Query([0]), 1, rng=ns.rng_for(0))


@pytest.mark.parametrize("anchors", [[], [2]])
@pytest.mark.parametrize("k", [0, 3, 2.5])
def test_no_row_and_one_row(anchors, k):
    query = ns.Query(np.array(anchors, np.int64))
    taken = AdaptiveOversampling(KNOWN, ITEMS, embed, 3.0).sample(query, k, rng=ns.rng_for(0))
    assert taken.shape == (len(anchors), np.ceil(k))


def test_it_keeps_the_promises_of_a_sampler():
    pairs = [(0, item) for item in range(N_ITEMS)] + [(1, item) for item in range(N_ITEMS - 2)] + [(2, 3), (3, 1)]
    known = ns.Positives.from_pairs(*zip(*pairs, strict=True), N_ANCHORS, N_ITEMS)
    ns.check_sampler(AdaptiveOversampling(known, ITEMS, embed, 3.0), known, k=3)


def test_the_sampler_rejects():
    def refusal(call, *arguments, **named):
        with pytest.raises(NaysayError) as caught:
            call(*arguments, **named)
        return str(caught.value)

    made, rng = AdaptiveOversampling, ns.rng_for(0)
    assert refusal(made, [1], ITEMS, embed, 1.0) == "AdaptiveOversampling: `positives` must be a Positives, got list."
    rule = "AdaptiveOversampling: `embed` must be a function embed(anchors), got ndarray."
    assert refusal(made, KNOWN, ITEMS, USERS, 1.0) == rule
    for bad in (0, -1.0, float("nan"), float("inf"), True, "1"):
        rule = f"AdaptiveOversampling: `scale` must be a finite number above 0, got {bad!r}."
        assert refusal(made, KNOWN, ITEMS, embed, bad) == rule
    rule = "AdaptiveOversampling: `item_factors` must be numbers of shape (12, d), got float64 of shape (11, 3)."
    assert refusal(made, KNOWN, ITEMS[1:], embed, 1.0) == rule
    assert refusal(made, KNOWN, ITEMS[:, :0], embed, 1.0).endswith("got float64 of shape (12, 0).")
    broken = ITEMS.copy()
    broken[2, 1] = np.nan
    with pytest.raises(
        NaysayError, match=r"AdaptiveOversampling: `item_factors` must be finite, got nan at row 2, slot 1 \(1 such"
    ):
        made(KNOWN, broken, embed, 1.0)
    assert refusal(made, KNOWN, ITEMS, embed, 1.0, on_short="x").startswith("AdaptiveOversampling: `on_short` must be")
    sampler = made(KNOWN, ITEMS, embed, 1.0)
    assert refusal(sampler.update, ITEMS[1:]).startswith(
        "AdaptiveOversampling.update: `item_factors` must be numbers of"
    )
    assert refusal(sampler.sample, [0], 1, rng=rng).startswith("AdaptiveOversampling.sample: `query` must be a Query")
    rule = "AdaptiveOversampling.sample: `anchors` must be between 0 and 4 (5 anchors), got 5 at row 0 (1 such row)."
    assert refusal(sampler.sample, ns.Query([5]), 1, rng=rng) == rule
    narrow = made(KNOWN, ITEMS, lambda anchors: USERS[anchors, :2], 1.0)
    rule = "AdaptiveOversampling.sample: `embed` must be a function that returns shape (1, 3), got shape (1, 2)."
    assert refusal(narrow.sample, ns.Query([0]), 1, rng=rng) == rule
    nothing = made(KNOWN, ITEMS, lambda anchors: USERS[anchors] * np.nan, 1.0)
    with pytest.raises(NaysayError, match=r"`embed` must be a function that returns finite numbers, got .* at row 0"):
        nothing.sample(ns.Query([0]), 1, rng=rng)
    full = ns.Positives.from_pairs([0] * N_ITEMS, np.arange(N_ITEMS))
    short = made(full, ITEMS, embed, 1.0, on_short="raise")
    with pytest.raises(
        NaysayError, match=r"AdaptiveOversampling\.sample: row 0 has 0 candidates left of the 1 requested"
    ):
        short.sample(ns.Query([0]), 1, rng=rng)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"order": np.zeros((3, 11), int)}, "`order` must be of shape (3, 12), as here, got shape (3, 11)."),
        ({"order": np.zeros((2, 12), int)}, "`order` must be of shape (3, 12), as here, got shape (2, 12)."),
        ({"order": np.zeros((3, 12), int)}, "`order` must be every item once for each factor, got "),
        ({"order": np.zeros((3, 12))}, "`order` must be whole numbers, got dtype float64."),
        ({"spread": [1.0, np.nan, 1.0]}, "`spread` must be a number, got nan at row 1 (1 such row)."),
        ({"spread": [1.0, 2.0, np.inf]}, "`spread` must be finite and at least 0, got inf at row 2 (1 such row)."),
        ({"spread": [-1.0, 2.0, 1.0]}, "`spread` must be finite and at least 0, got -1.0 at row 0 (1 such row)."),
        ({"spread": np.ones(4)}, "`spread` must be of shape (3,), got shape (4,)."),
        ({"draws": -1}, "`draws` must be a whole number of at least 0, got -1."),
    ],
)
def test_a_state_of_other_ranks_is_refused(change, rule):
    sampler = AdaptiveOversampling(KNOWN, ITEMS, embed, 1.0)
    before = sampler.state()
    with pytest.raises(NaysayError) as caught:
        sampler.restore({**before, **change})
    assert str(caught.value).startswith(f"AdaptiveOversampling.restore: {rule}")
    for name, value in sampler.state().items():
        np.testing.assert_array_equal(value, before[name])
