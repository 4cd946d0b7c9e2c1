"""A study against the measures of its scores and against plain loops, its file and its figures."""

import json
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch

import naysay as ns
from naysay import difficulty

TREE = [5, 5, 6, 6, 7, 8, 8, 9, 9, -1]


def world(n=70, m=50, d=6, seed=0):
    """Vectors round five classes."""
    rng = np.random.default_rng(seed)
    own, theirs = rng.integers(0, 5, n), rng.integers(0, 5, m)
    centres = rng.standard_normal((5, d))
    anchors, negatives = (centres[part] + rng.standard_normal((len(part), d)) for part in (own, theirs))
    return anchors.astype(np.float32), negatives.astype(np.float32), own, theirs


ANCHORS, NEGATIVES, OWN, THEIRS = world()
EXCLUDE = ns.Positives.from_pairs([0, 0, 3, 60], [1, 49, 7, 7], n_anchors=61, n_items=50)
OPTIONS = {"hard": 0.2, "hardest": 0.04, "bins": 5, "temperature": 0.5}
CLASSES = {"labels": OWN, "negative_labels": THEIRS}
WHOLE = {**CLASSES, "hierarchy": TREE, **OPTIONS}


def scores_of(anchors, negatives, metric="cosine"):
    """(n, m) float32, a pair at a time."""
    found = np.empty((len(anchors), len(negatives)), np.float32)
    for i, one in enumerate(np.asarray(anchors, np.float64)):
        for j, two in enumerate(np.asarray(negatives, np.float64)):
            length = np.sqrt((one @ one) * (two @ two)) if metric == "cosine" else 1.0
            found[i, j] = one @ two / length
    return found


def close(one, two):
    """Whether all numbers of two results are the same up to rounding."""
    if is_dataclass(one):
        return all(close(getattr(one, field.name), getattr(two, field.name)) for field in fields(one))
    if one is None or two is None:
        return one is two
    return np.allclose(one, two, rtol=1e-5, atol=1e-6, equal_nan=True)


# ---- what it finds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exclude", [None, EXCLUDE], ids=["all pairs", "some left out"])
@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_a_study_is_the_measures_of_its_scores(metric, exclude):
    found = difficulty.study(ANCHORS, NEGATIVES, metric=metric, exclude=exclude, **WHOLE)
    scores = scores_of(ANCHORS, NEGATIVES, metric)
    mask = np.ones(scores.shape, bool)
    if exclude is not None:
        mask[exclude.pairs()] = False
    assert found.pairs == mask.sum() == (3500 if exclude is None else 3496)
    wanted = {
        "gradient": difficulty.gradient_mass(scores, mask, temperature=0.5, bins=5),
        "same_class": difficulty.same_class_share(scores, OWN, THEIRS, mask, bins=5),
    }
    for name, curve in wanted.items():
        assert close(getattr(found.by_percentile, name), curve), name
    assert close(found.consistency, difficulty.consistency(scores, mask, negative_labels=THEIRS, hard=0.2))


def test_bands_and_gaps_against_loops():
    found = difficulty.study(ANCHORS, NEGATIVES, **WHOLE)
    scores = scores_of(ANCHORS, NEGATIVES)
    bands = difficulty.bands(scores, hard=0.2, hardest=0.04)
    depth = difficulty.common_depth(TREE, OWN, THEIRS)
    values = {"score": scores, "below_zero": scores < 0, "same_class": OWN[:, None] == THEIRS, "depth": depth}
    for name, value in values.items():
        curve = getattr(found.by_band, name)
        assert curve.pairs.tolist() == [40 * 70, 8 * 70, 2 * 70]
        assert curve.mean.tolist() == pytest.approx([float(value[bands == band].mean()) for band in range(3)])
    weights = np.exp(scores / 0.5)
    weights /= weights.sum(axis=1, keepdims=True)
    masses = [np.where(bands == band, weights, 0).sum(axis=1).mean() for band in range(3)]
    assert found.by_band.gradient.mean.tolist() == pytest.approx(masses, rel=1e-5)
    assert list(found.gaps) == ["same_class", "depth"]
    for name, gap in found.gaps.items():
        hard = np.array([values[name][i][bands[i] >= 1].mean() for i in range(70)])
        easy = np.array([values[name][i][bands[i] == 0].mean() for i in range(70)])
        difference = hard - easy
        half = 1.9949454 * difference.std(ddof=1) / 70**0.5  # Student's t of 69 degrees
        mean = difference.mean()
        assert (gap.hard, gap.easy, gap.difference.anchors) == (
            pytest.approx(hard.mean()),
            pytest.approx(easy.mean()),
            70,
        )
        assert (gap.difference.mean, gap.difference.low, gap.difference.high) == pytest.approx(
            (mean, mean - half, mean + half)
        )


def test_a_golden_study():
    """Four anchors on the axes of a plane against negatives all round it, worked by hand."""
    anchors = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    found = difficulty.study(
        anchors, anchors * 3, labels=[0, 0, 1, 1], negative_labels=[0, 0, 1, 1], hard=0.5, hardest=0.25, bins=4
    )
    assert found.by_percentile.score.mean.tolist() == [-1, 0, 0, 1]
    assert found.by_percentile.same_class.mean.tolist() == [0, 0.5, 0.5, 1]
    assert found.by_percentile.below_zero.mean.tolist() == [1, 0, 0, 0]
    assert found.by_band.score.mean.tolist() == [-0.5, 0, 1]
    assert (found.gaps["same_class"].hard, found.gaps["same_class"].easy) == (0.75, 0.25)
    assert found.consistency.counts.tolist() == [3, 3, 1, 1]  # itself, and the earlier of its two neighbours
    assert found.consistency.expected.tolist() == [2, 2, 2, 2]
    assert found.consistency.shuffled.statistic == pytest.approx(0.75 * 4)  # 3/4 of four times (3 - 2)^2 / 1


def test_tensors_and_functions_give_the_same():
    wanted = difficulty.study(ANCHORS, NEGATIVES, **WHOLE)
    options = WHOLE | {"labels": torch.tensor(OWN)}
    tensors = difficulty.study(torch.tensor(ANCHORS), torch.tensor(NEGATIVES), **options)
    called = difficulty.study(ANCHORS, lambda anchors: scores_of(anchors, NEGATIVES), **WHOLE)
    assert (called.metric, wanted.metric) == ("given", "cosine")
    for found in (tensors, called):
        for name in ("by_band", "by_percentile", "consistency"):
            assert close(getattr(found, name), getattr(wanted, name)), name


def test_an_anchor_without_negatives_counts_in_nothing():
    none_left = ns.Positives.from_pairs([3] * 50, np.arange(50), n_anchors=70, n_items=50)
    found = difficulty.study(ANCHORS, NEGATIVES, exclude=none_left, **WHOLE)
    rest = np.arange(70) != 3
    wanted = difficulty.study(ANCHORS[rest], NEGATIVES, **WHOLE | {"labels": OWN[rest]})
    assert close(found.by_band, wanted.by_band)
    assert close(found.gaps["depth"], wanted.gaps["depth"])
    assert close(found.consistency, wanted.consistency)
    assert found.consistency.anchors == 69


# ---- file and pictures ----------------------------------------------------------------------------------------------


def test_the_file_holds_all_numbers(tmp_path):
    found = difficulty.study(ANCHORS, NEGATIVES, **WHOLE)
    path = tmp_path / "found.json"
    found.write(path)
    read = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert read == found.as_dict()
    assert [item.name for item in tmp_path.iterdir()] == ["found.json"]
    assert read["by_percentile"]["depth"]["mean"] == found.by_percentile.depth.mean.tolist()
    assert read["consistency"]["counts"] == found.consistency.counts.tolist()


def test_a_picture_has_all_three_figures(tmp_path):
    difficulty.study(ANCHORS, NEGATIVES, **WHOLE).plot(tmp_path / "found.svg")
    text = (tmp_path / "found.svg").read_text()
    for words in ("by band", "by percentile", "How often", "least common ancestor", "shuffled"):
        assert words in text


# ---- the arms of the training study ---------------------------------------------------------------------------------

N = 3000  # candidates of the pool
POOL = ns.pools.Everything(ns.Positives.from_pairs([0], [N], n_items=N + 1))


def id_as_score(anchors, ids):
    return ids * 1.0


def in_first_class(query, ids):
    return ids % 3 == 0


def kept_by(name, size=N, in_torch=False):
    anchors = torch.tensor([0]) if in_torch else [0]
    sampler = ns.difficulty.arms(POOL, id_as_score, size, in_first_class)[name]
    ids = np.asarray(sampler.sample(ns.Query(anchors), size, rng=ns.rng_for(0)).ids[0])
    return sorted(ids[ids >= 0].tolist())


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("all", lambda i: True),
        ("only 95-100 %", lambda i: i >= 0.95 * N),
        ("only 90-95 %", lambda i: 0.9 * N <= i < 0.95 * N),
        ("all but 85-100 %", lambda i: i < 0.85 * N),
        ("all but 90-95 %", lambda i: not 0.9 * N <= i < 0.95 * N),
        ("easiest 50 %", lambda i: i < 0.5 * N),
        ("easiest 99.9 %", lambda i: i < 0.999 * N),
        ("without the same class", lambda i: i % 3 != 0),
        ("without the easiest 99.9 % of the same class", lambda i: i % 3 != 0 or i >= 0.999 * N),
    ],
)
@pytest.mark.parametrize("in_torch", [False, True])
def test_an_arm_keeps_what_its_name_says(name, inside, in_torch):
    assert kept_by(name, in_torch=in_torch) == [i for i in range(N) if inside(i)]


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("without the hardest 0.1 %", lambda i: True),
        ("without the hardest 0.1 % of the same class", lambda i: i % 3 == 0),
        ("without the hardest 0.1 % of other classes", lambda i: i % 3 != 0),
    ],
)
def test_arms_of_table_1_replace_what_they_leave_out(name, left_out):
    found = kept_by(name, 2000)
    assert len(found) == 2000
    assert not [i for i in found if i >= N - 1 and left_out(i)]


# ---- invalid calls --------------------------------------------------------------------------------------------------

HOLES = np.where(np.arange(70)[:, None] % 9 == 4, np.nan, ANCHORS)
ZERO = np.where(np.arange(50)[:, None] == 3, 0, NEGATIVES)


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"anchors": ANCHORS[:0]}, "anchors"),
        ({"anchors": np.ones((3, 6), int)}, "anchors"),
        ({"anchors": HOLES}, "anchors"),
        ({"anchors": ANCHORS * 1e30, "negatives": NEGATIVES * 1e30, "metric": "dot"}, "anchors"),
        ({"anchors": [], "negatives": lambda part: part}, "anchors"),
        ({"negatives": NEGATIVES.astype(float) * 1e-160}, "negatives"),
        ({"negatives": ZERO}, "negatives"),
        ({"negatives": lambda part: np.zeros((len(part), 0))}, "negatives"),
        ({"negatives": lambda part: np.zeros((1, 4))}, "negatives"),
        ({"negatives": lambda part: np.full((len(part), 2), np.nan)}, "negatives"),
        ({"labels": OWN}, "negative_labels"),
        ({"negative_labels": THEIRS}, "labels"),
        ({**CLASSES, "labels": OWN[:9]}, "labels"),
        ({**CLASSES, "negative_labels": THEIRS[:9]}, "negative_labels"),
        ({"hierarchy": TREE}, "hierarchy"),
        ({**CLASSES, "hierarchy": [1, 0]}, "hierarchy"),
        ({**CLASSES, "hierarchy": [1, -1]}, "labels"),
        ({"exclude": [(0, 1)]}, "exclude"),
        ({"exclude": ns.Positives.from_pairs([0], [50])}, "exclude"),
        ({"metric": "l2"}, "metric"),
        ({"hardest": 0.05}, "hardest"),
    ],
)
def test_an_invalid_argument_is_named(change, parameter):
    given = {"anchors": ANCHORS, "negatives": NEGATIVES} | change
    with pytest.raises(ns.NaysayError) as caught:
        difficulty.study(**given)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda found, here: found.write(here / "a.txt"), "path"),
        (lambda found, here: found.write(here / "no" / "a.json"), "path"),
        (lambda found, here: found.plot(here / "a.pdf"), "path"),
        (lambda found, here: found.plot(here / "no" / "a.svg"), "path"),
        (lambda found, here: difficulty.arms(POOL, id_as_score, 100, 3), "same_class"),
    ],
)
def test_an_invalid_argument_writes_nothing(call, parameter, tmp_path):
    found = difficulty.study(ANCHORS, NEGATIVES)
    with pytest.raises(ns.NaysayError) as caught:
        call(found, tmp_path)
    assert caught.value.parameter == parameter
    assert not list(tmp_path.iterdir())
