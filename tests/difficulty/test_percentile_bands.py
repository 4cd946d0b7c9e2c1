"""Each measure against plain loops over small worlds, laws of percentiles and bands, and numbers worked by hand."""

import math

import numpy as np
import plain_study as plain
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.difficulty import bands, common_depth, consistency, gradient_mass, percentiles, same_class_share, study

TREE = [5, 5, 6, 6, 7, 8, 8, 9, 9, -1]  # classes 0 to 4; 5 and 6 are below 8, 4 is alone below 7


@st.composite
def worlds(draw, most=6):
    """(scores, kept or None, labels, negative labels): scores of few values, -0 among them, or of many."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (draw(st.integers(1, most)), draw(st.integers(1, 30)))
    few = draw(st.booleans())
    scores = rng.choice([-0.9, -0.25, -0.0, 0.0, 0.125, 0.5], shape) if few else rng.uniform(-1, 1, shape)
    kept = rng.random(shape) < draw(st.sampled_from([0.2, 0.9])) if draw(st.booleans()) else None
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return scores.astype(dtype), kept, rng.integers(0, 5, shape[0]), rng.integers(0, 5, shape[1])


def even(bins):
    return [(i / bins, (i + 1) / bins) for i in range(bins)]


def agree(found, wanted):
    """A Curve against [(mean, error, pairs)]."""
    assert found.pairs.tolist() == [pairs for _, _, pairs in wanted]
    assert found.mean.tolist() == pytest.approx([mean for mean, _, _ in wanted], abs=1e-9, nan_ok=True)
    assert found.error.tolist() == pytest.approx([error for _, error, _ in wanted], abs=1e-6, nan_ok=True)


# ---- percentiles and bands ------------------------------------------------------------------------------------------


@given(worlds())
def test_percentiles_are_the_share_that_is_easier(world):
    scores, kept, _, _ = world
    found = percentiles(scores, kept)
    for row, line in enumerate(scores.tolist()):
        slots = plain.hardest_first(line, None if kept is None else kept[row])
        wanted = [math.nan] * len(line)
        for place, slot in enumerate(slots):
            wanted[slot] = (len(slots) - 1 - place) / len(slots)
        assert found[row].tolist() == pytest.approx(wanted, nan_ok=True)


@given(worlds(), st.floats(0.01, 0.99), st.floats(0, 0.99))
def test_bands_part_what_counts(world, hard, part):
    scores, kept, _, _ = world
    hardest = hard * part
    found = bands(scores, kept, hard=hard, hardest=hardest)
    assert found.dtype == np.int8
    for row, line in enumerate(scores.tolist()):
        slots = plain.hardest_first(line, None if kept is None else kept[row])
        top, very = (math.floor(share * len(slots) + 1e-9) for share in (hard, hardest))
        assert (found[row] == 2).sum() == very
        assert (found[row] == 1).sum() == top - very
        assert (found[row] == 0).sum() == len(slots) - top
        assert [int(found[row, slot]) for slot in slots] == sorted((found[row][slots]).tolist(), reverse=True)


@given(st.integers(1, 60), st.integers(0, 3000))
@settings(max_examples=15)
def test_intervals_part_every_size(parts, size):
    """Ends that are no decimals, too: of 3,000 negatives a third is 1,000 and not one fewer."""
    found = gradient_mass(np.zeros((1, size)), bins=parts).pairs.tolist()
    ends = [(i / parts, (i + 1) / parts) for i in range(parts)]
    wanted = [math.floor((1 - low) * size + 1e-9) - math.floor((1 - high) * size + 1e-9) for low, high in ends]
    assert found == wanted
    assert found[-1] == size // parts
    assert sum(found) == size


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.3), (0.8, 0.95), (0.9, 1.0), (0.999, 1.0)])
@pytest.mark.parametrize("size", [10, 1000])
def test_the_rule_is_that_of_ring(size, low, high):
    """PercentileRange keeps the negatives whose percentile is in the interval, of scores that are the ids."""
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [size], n_items=size + 1))
    ring = ns.samplers.PercentileRange(pool, lambda anchors, ids: ids * 1.0, candidates=size, keep=(low, high))
    kept = ring.sample(ns.Query([0]), size, rng=ns.rng_for(0)).ids
    where = percentiles(np.arange(size)[None] * 1.0)[0]
    inside = np.flatnonzero((where >= low - 1e-9) & (where < high - 1e-9))
    assert sorted(kept[kept >= 0].tolist()) == inside.tolist()


def test_by_hand():
    """20 negatives with scores 0.00 to 0.95: the hardest 5 % is one, the hardest 0.1 % none."""
    line = np.arange(20) / 20
    assert percentiles(line[None])[0].tolist() == pytest.approx((np.arange(20) / 20).tolist())
    assert bands(line[None])[0].tolist() == [0] * 19 + [1]
    assert bands(np.arange(1000)[None] / 1000)[0, 945:].tolist() == [0] * 5 + [1] * 49 + [2]
    assert bands(np.zeros((1, 40)))[0, :4].tolist() == [1, 1, 0, 0]  # of equal scores the earlier


# ---- curves ---------------------------------------------------------------------------------------------------------


@given(worlds(), st.integers(1, 7))
def test_curves_against_loops(world, bins):
    scores, kept, own, theirs = world
    given_kept = None if kept is None else kept.tolist()
    lines = scores.tolist()
    agree(
        same_class_share(scores, own, theirs, kept, bins=bins),
        plain.curve(lines, given_kept, lambda i, j: own[i] == theirs[j], even(bins)),
    )
    mass = gradient_mass(scores, kept, temperature=0.3, bins=bins)
    agree(mass, plain.shares(lines, given_kept, lambda i, j: math.exp(lines[i][j] / 0.3), even(bins)))
    if mass.pairs.any():
        assert mass.mean.sum() == pytest.approx(1)


@given(worlds(), st.integers(1, 7))
@settings(max_examples=15)
def test_curves_of_a_study_against_loops(world, bins):
    scores, kept, own, theirs = world
    lines, given_kept = scores.tolist(), None if kept is None else kept.tolist()
    exclude = None if kept is None else ns.Positives.from_pairs(*np.nonzero(~kept), *kept.shape)
    found = study(
        np.arange(len(scores)),
        lambda ids: scores,
        labels=own,
        negative_labels=theirs,
        hierarchy=TREE,
        exclude=exclude,
        bins=bins,
    ).by_percentile
    values = {
        "score": lambda i, j: lines[i][j],
        "below_zero": lambda i, j: lines[i][j] < 0,
        "depth": lambda i, j: plain.common_depth(TREE, own[i], theirs[j]),
    }
    for name, value in values.items():
        agree(getattr(found, name), plain.curve(lines, given_kept, value, even(bins)))


def test_the_gradient_is_that_of_the_loss():
    """The derivative of InfoNCE by each score, from torch, whatever the positive is."""
    from naysay.losses import info_nce

    rng = np.random.default_rng(1)
    scores = torch.tensor(rng.standard_normal((3, 8)), requires_grad=True)
    info_nce(torch.tensor([0.3, -0.5, 2.0], dtype=torch.float64), scores, temperature=0.4).sum().backward()
    gradient = scores.grad.numpy()
    order = np.argsort(scores.detach().numpy(), axis=1)
    wanted = np.take_along_axis(gradient, order, 1) / gradient.sum(1, keepdims=True)
    assert gradient_mass(scores, temperature=0.4, bins=8).mean.tolist() == pytest.approx(wanted.mean(0).tolist())


@given(st.integers(0, 1000), st.integers(1, 30))
def test_depths_by_walking_up(seed, size):
    rng = np.random.default_rng(seed)
    parents = [-1, *(int(rng.integers(0, i)) for i in range(1, size))]
    swap = rng.permutation(size)  # so that parents do not stand before their children
    tree = np.empty(size, int)
    tree[swap] = [-1 if parent < 0 else swap[parent] for parent in parents]
    found = common_depth(tree, np.arange(size), np.arange(size))
    for one in range(size):
        for two in range(size):
            assert found[one, two] == plain.common_depth(tree.tolist(), one, two)


# ---- consistency --------------------------------------------------------------------------


@given(worlds(most=8), st.sampled_from([0.05, 0.2, 0.5]))
def test_consistency_against_loops(world, hard):
    scores, kept, _, theirs = world
    found = consistency(scores, kept, negative_labels=theirs, hard=hard)
    given_kept, lines = (None if kept is None else kept.tolist()), scores.tolist()
    for labels, test in (([0] * len(theirs), found.shuffled), (theirs.tolist(), found.within_class)):
        counts, expected, variance, statistic, degrees = plain.dispersion(lines, given_kept, labels, hard)
        assert found.counts.tolist() == counts
        if test is found.shuffled:
            assert found.expected.tolist() == pytest.approx(expected, abs=1e-9)
            assert found.variance.tolist() == pytest.approx(variance, abs=1e-9)
        assert test.degrees == degrees
        if degrees:
            assert test.statistic == pytest.approx(statistic)
            assert test.ratio == pytest.approx(statistic / degrees)
        else:
            assert math.isnan(test.p_value)
    assert consistency(scores, kept, hard=hard).within_class is None


def test_the_test_holds_its_level_and_finds_what_is_there():
    """200 worlds of chance: p-values are uniform, their statistic has the mean m - 1; one with popular negatives."""
    rng = np.random.default_rng(5)
    p_values, ratios, inner = [], [], []
    for _ in range(200):
        found = consistency(rng.standard_normal((60, 40)), negative_labels=np.arange(40) % 4, hard=0.2)
        p_values.append(found.shuffled.p_value)
        ratios.append(found.shuffled.ratio)
        inner.append(found.within_class.ratio)
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)  # the error of the mean is 0.016
    assert np.mean(inner) == pytest.approx(1, abs=0.05)
    assert np.mean(np.array(p_values) < 0.05) < 0.09
    assert np.mean(np.array(p_values) < 0.5) == pytest.approx(0.5, abs=0.1)
    popular = rng.standard_normal((60, 40)) + np.linspace(0, 1, 40)
    found = consistency(popular, hard=0.2)
    assert found.shuffled.p_value < 1e-6
    assert found.rates.mean() == pytest.approx(0.2)  # the mean, by definition
    assert set(found.always_hard(5).tolist()) <= set(range(25, 40))


def test_classes_alone_do_not_pass_for_popular_negatives():
    """Anchors of one class like the negatives of one class, any of them alike."""
    rng = np.random.default_rng(6)
    theirs = np.arange(60) % 3
    scores = rng.standard_normal((300, 60)) + 3 * (theirs == 1)
    found = consistency(scores, negative_labels=theirs, hard=0.2)
    assert found.shuffled.ratio > 10
    assert 0.5 < found.within_class.ratio < 1.7


# ---- what is handed in ----------------------------------------------------------------------------------------------


def test_scores_that_do_not_count_may_be_anything():
    scores, mask = np.array([[0.5, np.nan, -np.inf, 0.1]]), np.array([[True, False, False, True]])
    assert percentiles(scores, mask)[0, [0, 3]].tolist() == [0.5, 0.0]
    assert gradient_mass(scores, mask, bins=1).mean.tolist() == pytest.approx([1.0])


ROW = [[0.1, 0.2]]


TREE_OF_TWO = [-1, 0]


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: percentiles([["a"]]), "scores"),
        (lambda: percentiles([[0.1], [0.1, 0.2]]), "scores"),
        (lambda: bands([[0, 1], [np.nan, 1], [np.inf, 2]]), "scores"),
        (lambda: percentiles(ROW, [[1, 0]]), "mask"),
        (lambda: percentiles(ROW, [True]), "mask"),
        (lambda: bands(ROW, hard=1), "hard"),
        (lambda: bands(ROW, hardest=0.05), "hardest"),
        (lambda: gradient_mass(ROW, bins=0), "bins"),
        (lambda: same_class_share(ROW, [0, 1], [0, 1]), "labels"),
        (lambda: same_class_share(ROW, [-1], [0, 1]), "labels"),
        (lambda: same_class_share(ROW, [0], [0]), "negative_labels"),
        (lambda: same_class_share(ROW, [0], [[0, -1]]), "negative_labels"),
        (lambda: common_depth([1, 2, 0, -1], [0], [3]), "hierarchy"),
        (lambda: common_depth([-1, -1], [0], [1]), "hierarchy"),
        (lambda: common_depth([2, -1], [0], [1]), "hierarchy"),
        (lambda: common_depth(TREE_OF_TWO, [-1], [1]), "first"),
        (lambda: common_depth(TREE_OF_TWO, [0], [2]), "second"),
        (lambda: consistency(ROW).always_hard(0), "many"),
        (lambda: consistency(ROW, negative_labels=[0]), "negative_labels"),
    ],
)
def test_an_invalid_argument_is_named(call, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        call()
    assert caught.value.parameter == parameter
