"""A study against the measures of its scores, the same for every budget and number of threads, its text and files."""

import json
import re
import sys
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch

import naysay as ns
from naysay import NaysayError, difficulty
from naysay.kernels import dots
from naysay.kernels.threads import set_threads, threads

TREE = [5, 5, 6, 6, 7, 8, 8, 9, 9, -1]
NAMES = ["cat", "dog", "car", "<b>bus</b>", "tree"]


def world(n=70, m=50, d=6, seed=0):
    """Vectors round five classes, and those of an earlier checkpoint."""
    rng = np.random.default_rng(seed)
    own, theirs = rng.integers(0, 5, n), rng.integers(0, 5, m)
    centres = rng.standard_normal((5, d))
    anchors, negatives = (centres[part] + rng.standard_normal((len(part), d)) for part in (own, theirs))
    early = [part + rng.standard_normal(part.shape) for part in (anchors, negatives)]
    return anchors.astype(np.float32), negatives.astype(np.float32), own, theirs, early


ANCHORS, NEGATIVES, OWN, THEIRS, EARLY = world()
EXCLUDE = ns.Positives.from_pairs([0, 0, 3, 60], [1, 49, 7, 7], n_anchors=61, n_items=50)
OPTIONS = {"hard": 0.2, "hardest": 0.04, "bins": 5, "temperature": 0.5}
WHOLE = {"labels": OWN, "negative_labels": THEIRS, "hierarchy": TREE, "other": tuple(EARLY), **OPTIONS}


def scores_of(anchors, negatives, cosine=True):
    """Scores by the fixed kernel."""
    ours, theirs = (np.empty(len(part)) for part in (anchors, negatives))
    for part, norms in ((anchors, ours), (negatives, theirs)):
        dots.norms(0, len(part), np.asarray(part, np.float64), norms)
    out = np.empty((len(anchors), len(negatives)), np.float32)
    dots.all_scores(0, len(anchors), dots.COSINE if cosine else dots.DOT, anchors, ours, negatives, theirs, out)
    return out


def numbers(value):
    """All numbers of a result, to the last bit."""
    if is_dataclass(value):
        return [numbers(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, dict):
        return [numbers(part) for part in value.values()]
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


@pytest.fixture
def two_threads():
    before = threads()
    yield set_threads
    set_threads(before)


# ---- what it finds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exclude", [None, EXCLUDE], ids=["all pairs", "some left out"])
@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_a_study_is_the_measures_of_its_scores(metric, exclude):
    found = difficulty.study(ANCHORS, NEGATIVES, metric=metric, exclude=exclude, **WHOLE)
    scores, early = (scores_of(*part, cosine=metric == "cosine") for part in ((ANCHORS, NEGATIVES), EARLY))
    mask = None
    if exclude is not None:
        mask = np.ones(scores.shape, bool)
        mask[exclude.pairs()] = False
    assert found.pairs == 3500 - (0 if exclude is None else 4)
    labels, bins, hard = (OWN, THEIRS), {"bins": 5}, {"hard": 0.2}
    wanted = {
        "score": difficulty.mean_score(scores, mask, **bins),
        "below_zero": difficulty.below_zero_share(scores, mask, **bins),
        "gradient": difficulty.gradient_mass(scores, mask, temperature=0.5, **bins),
        "same_class": difficulty.same_class_share(scores, *labels, mask, **bins),
        "depth": difficulty.ancestor_depth(scores, *labels, TREE, mask, **bins),
    }
    for name, curve in wanted.items():
        one, two = getattr(found.by_percentile, name), curve
        assert (one.low.tolist(), one.high.tolist(), one.pairs.tolist()) == (
            two.low.tolist(),
            two.high.tolist(),
            two.pairs.tolist(),
        )
        # Not to the last bit: the bands cut some of the intervals, whose sums are then made of two.
        assert one.mean.tolist() == pytest.approx(two.mean.tolist(), rel=1e-12), name
        assert one.error.tolist() == pytest.approx(two.error.tolist(), rel=1e-6), name
    counted = difficulty.consistency(scores, mask, negative_labels=THEIRS, **hard)
    assert numbers(found.consistency) == numbers(counted)
    assert numbers(found.class_pairs) == numbers(difficulty.class_pairs(scores, *labels, mask, **hard))
    assert numbers(found.drift) == numbers(difficulty.drift(scores, early, mask, **hard))


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
    for name, gap in found.gaps.items():
        rows = [np.array([values[name][i][bands[i] >= 1].mean() for i in range(70)])]
        rows.append(np.array([values[name][i][bands[i] == 0].mean() for i in range(70)]))
        difference = rows[0] - rows[1]
        assert (gap.hard, gap.easy) == pytest.approx((rows[0].mean(), rows[1].mean()))
        half = 1.9949454 * difference.std(ddof=1) / 70**0.5  # Student's t of 69 degrees
        assert (gap.low, gap.difference, gap.high) == pytest.approx(
            (difference.mean() - half, difference.mean(), difference.mean() + half)
        )
        assert gap.anchors == 70
    assert list(found.gaps) == ["same_class", "depth"]


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
    assert found.class_pairs.mean.tolist() == [[0.5, -0.5], [-0.5, 0.5]]
    assert (found.gaps["same_class"].hard, found.gaps["same_class"].easy) == (0.75, 0.25)
    assert found.consistency.counts.tolist() == [3, 3, 1, 1]  # itself, and the earlier of its two neighbours
    assert found.consistency.expected.tolist() == [2, 2, 2, 2]
    assert found.consistency.shuffled.statistic == pytest.approx(0.75 * 4)  # 3/4 of four times (3 - 2)^2 / 1
    assert found.drift is None


# ---- blocks, threads, kinds of arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize("exclude", [None, EXCLUDE], ids=["all pairs", "some left out"])
def test_neither_budget_nor_threads_matter(exclude, two_threads, monkeypatch):
    anchors, negatives, own, theirs, early = world(301, 200)
    options = WHOLE | {"labels": own, "negative_labels": theirs, "other": tuple(early), "exclude": exclude}
    two_threads(1)
    wanted = numbers(difficulty.study(anchors, negatives, **options))
    seen = []
    module = sys.modules["naysay.difficulty.study"]
    rank = module.rank
    monkeypatch.setattr(module, "rank", lambda s, k: seen.append(len(s)) or rank(s, k))
    for count, budget in ((1, 150_000), (2, 150_000), (4, 200_000), (2, 400_000), (3, 1 << 28)):
        two_threads(count)
        seen.clear()
        assert numbers(difficulty.study(anchors, negatives, budget=budget, **options)) == wanted
        assert len(seen) > 2 or budget > 400_000  # blocks, of two checkpoints


def test_memory_is_that_of_the_budget(traced_peak):
    anchors, negatives, own, theirs, early = world(1200, 1000, 16)
    options = WHOLE | {"labels": own, "negative_labels": theirs, "other": tuple(early)}
    difficulty.study(anchors[:9], negatives, **options | {"labels": own[:9], "other": (early[0][:9], early[1])})
    for budget in (4_000_000, 8_000_000):
        peak = traced_peak(lambda budget=budget: difficulty.study(anchors, negatives, budget=budget, **options))
        assert 0.2 * budget < peak <= budget


def test_functions_tensors_and_halves():
    wanted = difficulty.study(ANCHORS, NEGATIVES, **WHOLE)
    tensors = difficulty.study(
        torch.tensor(ANCHORS),
        torch.tensor(NEGATIVES),
        **WHOLE | {"labels": torch.tensor(OWN), "other": tuple(map(torch.tensor, EARLY))},
    )
    assert numbers(tensors) == numbers(wanted)
    seen = []

    def score(block):
        seen.append(len(block))
        return scores_of(block, NEGATIVES)

    options = WHOLE | {"other": (np.arange(70), lambda ids: scores_of(EARLY[0][ids], EARLY[1]))}
    called = difficulty.study(ANCHORS, score, budget=60_000, **options)
    assert (called.metric, wanted.metric) == ("given", "cosine")
    assert len(seen) > 3
    for name in ("by_band", "by_percentile", "gaps", "consistency", "class_pairs", "drift"):
        assert numbers(getattr(called, name)) == numbers(getattr(wanted, name))
    half = difficulty.study(ANCHORS.astype(np.float16), NEGATIVES, **OPTIONS)
    assert half.by_band.score.mean.tolist() == pytest.approx(wanted.by_band.score.mean.tolist(), abs=1e-3)
    assert (half.gaps, half.class_pairs, half.drift, half.by_band.depth) == ({}, None, None, None)


def test_an_anchor_without_negatives_counts_for_nothing():
    everything = ns.Positives.from_pairs([1] * 50, range(50), n_items=50)
    found = difficulty.study(ANCHORS, NEGATIVES, exclude=everything, **WHOLE)
    rest = np.delete(np.arange(70), 1)
    without = WHOLE | {"labels": OWN[rest], "other": (EARLY[0][rest], EARLY[1])}
    wanted = difficulty.study(ANCHORS[rest], NEGATIVES, **without)
    assert found.by_band.depth.mean.tolist() == wanted.by_band.depth.mean.tolist()
    assert found.by_band.gradient.error.tolist() == wanted.by_band.gradient.error.tolist()
    assert found.consistency.anchors == 69
    assert found.consistency.shuffled.p_value == pytest.approx(wanted.consistency.shuffled.p_value)
    assert found.drift.overlap == wanted.drift.overlap


# ---- text, file, pictures -------------------------------------------------------------------------------------------


def test_text():
    lines = str(difficulty.study(ANCHORS, NEGATIVES, names=NAMES, **WHOLE)).splitlines()
    assert lines[0] == "70 anchors x 50 negatives, 3,500 pairs, score: cosine, gradient at temperature 0.5"
    assert lines[1].split() == [
        "band",
        "percentile",
        "pairs",
        "score",
        "below",
        "0",
        "gradient",
        "same",
        "class",
        "depth",
    ]
    assert [line.split()[0] for line in lines[2:5]] == ["easy", "hard", "hardest"]
    assert len({len(line) for line in lines[1:5]}) == 1
    starts = [
        "same class: hard",
        "depth of the common",
        "easiest 20 %: mean",
        "how often a",
        "the same within",
        "closest",
    ]
    starts += ["opposite", "unrelated", "between checkpoints: rank"]
    assert [line[: len(start)] for line, start in zip(lines[5:], starts, strict=True)] == starts
    assert any(name in lines[10] for name in NAMES)
    odd = difficulty.study(ANCHORS, NEGATIVES, names=[f"{name}\x1b[31m\n" for name in NAMES], **WHOLE)
    assert str(odd).count("\n") == len(lines) - 1
    assert "\\x1b[31m\\n" in str(odd)
    assert "\x1b" not in str(odd)
    plain = str(difficulty.study(ANCHORS, NEGATIVES)).splitlines()
    assert len(plain) == 7
    assert plain[4].split()[:2] == ["hardest", "99.9"]
    assert plain[4].split()[4:] == ["0", "none", "none", "0.0", "%"]  # 0.1 % of 50 is none
    one = str(difficulty.study(ANCHORS[:1], NEGATIVES[:1], labels=[0], negative_labels=[1], hierarchy=TREE))
    assert "too few to test" in one
    assert "nan" not in one


def test_the_file_holds_all_numbers(tmp_path):
    found = difficulty.study(ANCHORS, NEGATIVES, names=NAMES, **WHOLE)
    path = tmp_path / "found.json"
    found.write(path)
    read = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert read == found.as_dict()
    assert [item.name for item in tmp_path.iterdir()] == ["found.json"]
    assert read["by_band"]["names"] == ["easy", "hard", "hardest"]
    assert read["by_percentile"]["depth"]["mean"] == found.by_percentile.depth.mean.tolist()
    assert read["class_pairs"]["classes"] == NAMES
    assert read["class_pairs"]["mean"] == found.class_pairs.mean.tolist()
    first = read["class_pairs"]["anti_correlated"][0]
    assert first["mean"] == np.where(np.eye(5, dtype=bool), 9, found.class_pairs.mean).min()
    assert read["drift"]["quantiles_of_overlaps"]["0.5"] == np.median(found.drift.overlaps)
    assert read["consistency"]["counts"] == found.consistency.counts.tolist()
    assert (
        "mean"
        not in difficulty.study(
            np.ones((101, 1)), np.ones((101, 1)), labels=np.arange(101), negative_labels=np.arange(101)
        ).as_dict()["class_pairs"]
    )


def test_the_histogram_is_of_all_negatives_and_of_a_shuffle():
    """The baseline is what shuffled rows do: counts of 400 shuffles of 70 anchors, bar by bar."""
    numbers = difficulty.study(ANCHORS, NEGATIVES, **OPTIONS).as_dict()["consistency"]
    bars = numbers["histogram"]
    assert sum(bars["observed"]) == pytest.approx(1)
    assert sum(bars["shuffled"]) == pytest.approx(1, abs=1e-3)
    rng = np.random.default_rng(3)
    shuffled = np.concatenate([difficulty.consistency(rng.random((70, 50)), hard=0.2).counts for _ in range(400)])
    seen = np.histogram(shuffled, bars["edges"])[0] / len(shuffled)
    assert np.abs(seen - bars["shuffled"]).max() < 0.01
    assert numbers["spread_by_chance"] == pytest.approx((shuffled / 70).std(), rel=0.05)
    assert numbers["mean_rate"] == pytest.approx(0.2)


@pytest.mark.parametrize("part", ["all", "bands", "percentiles", "consistency"])
def test_pictures(part, tmp_path):
    found = difficulty.study(ANCHORS, NEGATIVES, names=NAMES, **WHOLE)
    found.plot(tmp_path / "found.svg", part)
    text = (tmp_path / "found.svg").read_text()
    titles = {
        "bands": "Negatives by band",
        "percentiles": "Negatives by percentile",
        "consistency": "How often a negative",
    }
    for name, title in titles.items():
        assert (title in text) == (part in ("all", name))
    assert ("depth of the least common ancestor" in text) == (part != "consistency")
    assert ("shuffled" in text) == (part in ("all", "consistency"))
    assert "bus" not in text
    if part == "consistency":
        difficulty.study(ANCHORS, NEGATIVES).plot(tmp_path / "plain.PNG")
        assert (tmp_path / "plain.PNG").read_bytes()[:4] == b"\x89PNG"


# ---- refusals -------------------------------------------------------------------------------------------------------

HOLES = np.where(np.arange(70)[:, None] % 9 == 4, np.nan, ANCHORS)
ZERO = np.where(np.arange(50)[:, None] == 3, 0, NEGATIVES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"anchors": ANCHORS[0]},
            r"^study: `anchors` must be of shape \(n, d\), at least one vector, got shape \(6,\)\.$",
        ),
        (
            {"anchors": ANCHORS[:0]},
            r"^study: `anchors` must be of shape \(n, d\), at least one vector, got shape \(0, 6\)",
        ),
        ({"negatives": NEGATIVES[:0]}, r"^study: `negatives` must be of shape \(n, d\), at least one vector"),
        ({"negatives": NEGATIVES[:, :4]}, r"^study: `negatives` must be of width 6, like the anchors, got 4\.$"),
        ({"anchors": np.ones((3, 6), int)}, "^study: `anchors` must be floats, got dtype int64. Convert"),
        ({"anchors": HOLES}, r"^study: `anchors` must be finite, got nan for the norm at row 4 \(8 such rows\)\.$"),
        (
            {"negatives": NEGATIVES.astype(float) * 1e-160},
            "^study: `negatives` must be vectors of a length above 0, got",
        ),
        (
            {"negatives": ZERO},
            r"^study: `negatives` must be vectors of a length above 0, got 0\.0 at row 3 \(1 such row\)\. A zero",
        ),
        (
            {"anchors": ANCHORS * 1e30, "negatives": NEGATIVES * 1e30, "metric": "dot"},
            "^study: `anchors` must be of norms whose",
        ),
        ({"labels": OWN}, "^study: `negative_labels` must be given with `labels`, got None"),
        ({"negative_labels": THEIRS}, "^study: `labels` must be given with `negative_labels`, got None"),
        (
            {"labels": OWN[:9], "negative_labels": THEIRS},
            "^study: `labels` must be one for each of the 70 anchors, got 9",
        ),
        (
            {"labels": OWN, "negative_labels": THEIRS[:9]},
            "^study: `negative_labels` must be one for each of the 50 negatives",
        ),
        ({"hierarchy": TREE}, r"^study: `hierarchy` must be left out without labels, got \[5, 5,"),
        (
            {"labels": OWN, "negative_labels": THEIRS, "hierarchy": [1, 0]},
            "^study: `hierarchy` must be without a cycle",
        ),
        (
            {"labels": OWN, "negative_labels": THEIRS, "hierarchy": [1, -1]},
            r"^study: `labels` must be between 0 and 1 \(2 classes",
        ),
        ({"names": NAMES}, "^study: `names` must be left out without labels"),
        (
            {"labels": OWN, "negative_labels": THEIRS, "names": NAMES[:4]},
            "^study: `names` must be a text for each class up to 4, got 4 of them",
        ),
        (
            {"labels": OWN, "negative_labels": THEIRS, "names": "abcde"},
            "^study: `names` must be a text for each class, got 'abcde'",
        ),
        ({"exclude": [(0, 1)]}, "^study: `exclude` must be a Positives, or None, got list"),
        (
            {"exclude": ns.Positives.from_pairs([0], [50])},
            "^study: `exclude` must be of at most 70 anchors and 50 items, .* got 1 x 51",
        ),
        (
            {"other": ANCHORS},
            r"^study: `other` must be a pair \(anchors, negatives\) of the other checkpoint, got array",
        ),
        (
            {"other": (ANCHORS[:9], NEGATIVES)},
            "^study: `other` must be of 70 anchors and 50 negatives, like the first, got 9 x 50",
        ),
        ({"other": (HOLES, NEGATIVES)}, "^study: `other anchors` must be finite"),
        ({"metric": "l2"}, "^study: `metric` must be one of 'cosine', 'dot', got 'l2'"),
        ({"temperature": -1}, "^study: `temperature` must be a finite number above 0, got -1"),
        ({"bins": 0}, "^study: `bins` must be at least 1, got 0"),
        ({"hard": 2}, "^study: `hard` must be a number above 0 and below 1, got 2"),
        ({"budget": 100}, r"^study: `budget` must be at least 3360, to hold 50 negatives of width 6, got 100\.$"),
        ({"budget": 4000}, r"^study: `budget` must be at least \d+ for 50 negatives and 1 class, got 4000\.$"),
        (
            {"anchors": [], "negatives": lambda part: part},
            r"^study: `anchors` must be at least one anchor, got shape \(0,\)",
        ),
        (
            {"negatives": lambda part: np.zeros((len(part), 0))},
            "^study: `negatives` must be at least one negative, got none",
        ),
        (
            {"negatives": lambda part: np.zeros(len(part))},
            r"^study: `negatives` must be of shape \(B, K\), a row per anchor",
        ),
        (
            {"negatives": lambda part: np.zeros((1, 4))},
            r"^study: `negatives` must be a function that returns scores of shape \(70, 4\), got shape \(1, 4\)",
        ),
        (
            {"negatives": lambda part: np.where(np.isin(part[:, :1], ANCHORS[4::9]), np.nan, 0)},
            r"^study: `negatives` must be finite, got nan at row 4, slot 0 \(8 such rows\)\. Leave out",
        ),
    ],
)
def test_what_a_study_rejects(change, message):
    given = {"anchors": ANCHORS, "negatives": NEGATIVES} | change
    with pytest.raises(NaysayError, match=message):
        difficulty.study(given.pop("anchors"), given.pop("negatives"), **given)


def test_many_classes_are_rejected_before_their_table_is_made(monkeypatch):
    monkeypatch.setattr("naysay.difficulty._study_inputs.depths_of", lambda *_: pytest.fail("the table is made"))
    one_each = {"labels": np.arange(30_000), "negative_labels": np.arange(50)}
    with pytest.raises(NaysayError, match=r"^study: `budget` must be at least \d+ for 50 negatives and 30000 classes"):
        difficulty.study(np.ones((30_000, 2)), np.ones((50, 2)), hierarchy=[-1, *[0] * 29_999], **one_each)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda found, here: found.write(here / "a.txt"),
            "^Study.write: `path` must be a file that ends in .json, got",
        ),
        (
            lambda found, here: found.write(here / "no" / "a.json"),
            "^Study.write: `path` must be in an existing folder, got",
        ),
        (
            lambda found, here: found.plot(here / "a.pdf"),
            "^Study.plot: `path` must be a file that ends in .svg or .png, got",
        ),
        (
            lambda found, here: found.plot(here / "no" / "a.svg"),
            "^Study.plot: `path` must be in an existing folder, got",
        ),
        (
            lambda found, here: found.plot(here / "a.svg", "band"),
            r"^Study.plot: `part` must be one of .* got 'band'\. Did you mean 'bands'\?$",
        ),
    ],
)
def test_what_its_files_reject(call, message, tmp_path):
    found = difficulty.study(ANCHORS, NEGATIVES)
    with pytest.raises(NaysayError, match=message):
        call(found, tmp_path)
    assert not re.search("a", "".join(item.name for item in tmp_path.iterdir()))


def test_results_print_in_a_few_lines():
    rng = np.random.default_rng(0)
    found = difficulty.study(rng.standard_normal((30, 4)), rng.standard_normal((500, 4)))
    for part in (found, found.by_band, found.by_band.score, found.consistency):
        assert len(repr(part)) < 400
    assert repr(found).startswith(
        "Study(anchors=30, negatives=500, pairs=15000, hard=0.05, hardest=0.001, temperature="
    )


SCORES = [[0.3, 0.1], [0.2, 0.4]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: difficulty.study(SCORES, SCORES, labels=[0, 1], negative_labels=[0, 1], names=3),
            "study: `names` must",
        ),
        (lambda: difficulty.study(SCORES, SCORES).write(None), "Study.write: `path` must be a path, got None."),
        (lambda: difficulty.study(SCORES, SCORES).plot(b"x.svg"), "Study.plot: `path` must be a path, got b'x.svg'."),
        (lambda: difficulty.drift(SCORES, [[1], [1, 2]]), "drift: `other` must be rows of one length"),
        (lambda: difficulty.drift(SCORES, [1, 2]), "drift: `other` must be of shape (B, K)"),
        (lambda: difficulty.mean_score(SCORES, bins=10**15), "mean_score: `bins` must be at most 1,000,000, got"),
        (lambda: difficulty.study(SCORES, SCORES, metric=np.zeros((2, 2))), "study: `metric` must be one of 'cosine'"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(call, message):
    with pytest.raises(NaysayError) as caught:
        call()
    assert str(caught.value).startswith(message)
