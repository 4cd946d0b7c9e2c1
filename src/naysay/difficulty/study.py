"""A study: all measures of difficulty, of every anchor against every negative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import Score
from naysay.arrays import is_torch, to_numpy
from naysay.checks import as_array, check_all, check_kind, check_one_of, public, raise_invalid, shown
from naysay.difficulty.bands import (
    BANDS,
    BINS,
    HARD,
    HARDEST,
    TEMPERATURE,
    Consistency,
    Curve,
    Floats,
    Mask,
    Pairs,
    Whole,
    band_edges,
    check_shares,
    check_temperature,
    consistency_of,
    depths_of_pairs,
    even_edges,
    mean_curve,
    rank_pairs,
    ratio_over_anchors,
    read_hierarchy,
    read_labels,
    read_scores,
    share_curve,
    softmax_shares,
)
from naysay.files import as_path, check_target, write_whole
from naysay.plots import Spec, as_picture, axis, check_picture, layer, stacked
from naysay.positives import Positives
from naysay.samplers.scored import PercentileRange, Where
from naysay.text import json_file, plain, short_repr
from naysay.types import Array, Pool, Query

METRICS = ("cosine", "dot")
_SHORTEST = 1e-150  # a shorter vector counts as zero
_MAX_BARS = 60  # of the histogram of rates
# Okabe and Ito's colours, distinguishable for colour-blind readers.
_BLUE, _ORANGE = "#0072B2", "#E69F00"
_TITLES = {
    "same_class": "share of the anchor's class",
    "depth": "depth of the least common ancestor",
    "score": "mean score",
    "gradient": "share of the gradient",
}


@final
@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over anchors, with its 95 % CI.

    Attributes:
        mean: NaN without anchors.
        low: Lower end of the 95 % CI, by Student's t.
        high: Upper end.
        anchors: The number of anchors.

    Example: see `Study.gaps`.
    """

    mean: float
    low: float
    high: float
    anchors: int


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """Hard negatives, with the hardest, against easy ones of the same anchor.

    Attributes:
        hard: The mean over hard pairs.
        easy: The mean over easy pairs.
        difference: The mean difference, over the anchors that have both, with its 95 % CI.

    Example: see `Study.gaps`.
    """

    hard: float
    easy: float
    difference: Mean


@final
@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The measures of negatives by difficulty, a `Curve` each.

    Attributes:
        score: The mean score.
        below_zero: The share of scores below 0: of cosines, the anti-correlated tail.
        gradient: The share of the InfoNCE gradient, at the study's temperature.
        same_class: The share of negatives of the anchor's own class; None without labels.
        depth: The mean depth of the least common ancestor of the two classes, deeper is more similar; None without a
            hierarchy.

    Example: see `study`.
    """

    score: Curve
    below_zero: Curve
    gradient: Curve
    same_class: Curve | None
    depth: Curve | None

    __repr__ = short_repr


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The difficulty of a model's negatives.

    Attributes:
        anchors: The number of anchors.
        negatives: The number of negatives.
        pairs: The number of pairs, without excluded ones.
        hard: The share of hard negatives, with the hardest.
        hardest: The share of the hardest.
        temperature: The temperature of the gradient.
        metric: The metric of the scores; "given" if a function computed them.
        by_band: A `Profile` of easy, hard (without the hardest) and hardest.
        by_percentile: A `Profile` of intervals of one width, the easiest first.
        gaps: {"same_class": Gap, "depth": Gap}, as far as known: hard, with the hardest, against easy negatives of the
            same anchor.
        consistency: How often each negative is hard, against a shuffled baseline.

    Example: see `study`.
    """

    anchors: int
    negatives: int
    pairs: int
    hard: float
    hardest: float
    temperature: float
    metric: str
    by_band: Profile
    by_percentile: Profile
    gaps: dict[str, Gap]
    consistency: Consistency

    __repr__ = short_repr

    def as_dict(self) -> dict[str, Any]:
        """Return all results as plain numbers, NaN as None: what `write` writes."""
        numbers: dict[str, Any] = plain(self)
        return numbers

    def write(self, path: str | PathLike[str]) -> None:
        """Write all numbers as JSON (`as_dict`), atomically; NaN is null.

        Args:
            path: A file that ends in .json.
        """
        target = as_path("path", path)
        if target.suffix.lower() != ".json":
            raise_invalid("path", "a file that ends in .json", repr(str(target)))
        check_target("path", target)
        write_whole("path", target, json_file(self))

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw Figures 4 (bands), 5 (percentiles) and 6 (consistency) of Cai et al. for this study, by vl-convert.

        Args:
            path: A file that ends in .svg or .png.

        Raises:
            NaysayError: If the file cannot be written or ends otherwise.
            MissingExtraError: If vl-convert is not installed.
        """
        target = as_path("path", path)
        check_picture("path", target)
        check_target("path", target)
        rows = [_figure_of_bands(self), _figure_of_percentiles(self), _figure_of_consistency(self.consistency)]
        write_whole("path", target, as_picture(stacked(rows, spacing=40), target.suffix.lower()))


@public
def study(
    anchors: Any,
    negatives: Any,
    *,
    labels: Any = None,
    negative_labels: Any = None,
    hierarchy: Any = None,
    exclude: Positives | None = None,
    metric: str = "cosine",
    temperature: float = TEMPERATURE,
    bins: int = BINS,
    hard: float = HARD,
    hardest: float = HARDEST,
) -> Study:
    """Compute all measures of difficulty, of every anchor against every negative.

    All scores are held at once: take a sample of some thousand anchors and some thousand negatives. Cost: O(n m d) for
    the scores, a sort of each row, and about 80 bytes of memory for each pair.

    Cai, Frankle, Schwab, Morcos. Are All Negatives Created Equal in Contrastive Instance Discrimination? 2020.

    Args:
        anchors: (n, d) vectors, NumPy or torch.
        negatives: (m, d) vectors, or a function of `anchors` that returns the scores (n, m).
        labels: (n,) classes of the anchors, from 0 on.
        negative_labels: (m,) classes of the negatives.
        hierarchy: (nodes,) the parent of each class and group of classes, -1 for the root (`common_depth`).
        exclude: Pairs (anchor, negative) that do not count, with ignored ones: an anchor that is among the negatives,
            and its positives.
        metric: "cosine" or "dot", for vectors.
        temperature: Of InfoNCE, for the gradient.
        bins: The number of intervals of percentiles.
        hard: The share of hard negatives, with the hardest.
        hardest: The share of the hardest.

    Raises:
        NaysayError: If shapes or classes do not fit, a vector is zero or not finite, or an option is out of range.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> found = study(rng.standard_normal((50, 8)), rng.standard_normal((40, 8)), hard=0.1, hardest=0.025, bins=4)
        >>> found.by_band.score.mean.round(2).tolist(), found.by_band.score.pairs.tolist()
        ([-0.07, 0.54, 0.7], [1800, 150, 50])
    """
    check_one_of("metric", metric, METRICS)
    hard_share, hardest_share = check_shares(hard, hardest)
    t = check_temperature(temperature)
    even = even_edges(bins)
    scores = _score_matrix(anchors, negatives, metric)
    kept = _kept_pairs(exclude, scores.shape)
    own, theirs, parents = _read_classes(labels, negative_labels, hierarchy, scores.shape)

    pairs = rank_pairs(scores, kept)
    shares = softmax_shares(pairs, t)
    measures: dict[str, NDArray[Any]] = {"score": pairs.scores, "below_zero": pairs.scores < 0}
    if own is not None and theirs is not None:
        measures["same_class"] = own[pairs.anchors] == theirs[pairs.slots]
        if parents is not None:
            measures["depth"] = depths_of_pairs(pairs, parents, own, theirs)
    banded = band_edges(hard_share, hardest_share)
    by_class = [name for name in ("same_class", "depth") if name in measures]
    return Study(
        anchors=scores.shape[0],
        negatives=scores.shape[1],
        pairs=len(pairs.scores),
        hard=hard_share,
        hardest=hardest_share,
        temperature=t,
        metric="given" if _is_function(negatives) else metric,
        by_band=_profile(pairs, banded, measures, shares),
        by_percentile=_profile(pairs, even, measures, shares),
        gaps={name: _gap(pairs, banded, measures[name]) for name in by_class},
        consistency=consistency_of(pairs, theirs, hard_share),
    )


@public
def arms(pool: Pool, score: Score, candidates: int, same_class: Where) -> dict[str, PercentileRange]:
    """Return a sampler for each arm of the study of Cai et al., by name: 20, "all" among them.

    Its Fig. 2 keeps a percentile interval alone, or leaves it out, so that the set shrinks. Its Fig. 3 keeps the
    easiest. Its Table 1 replaces what is left out by further candidates, so that the number stays; here the two arms
    that leave out a whole class, or all but its hardest, shrink. Train one model with each, from the same start.

    Cai, Frankle, Schwab, Morcos. Are All Negatives Created Equal in Contrastive Instance Discrimination? 2020.

    Args:
        pool: Where candidates come from, such as a `Memory`.
        score: As in `PercentileRange`.
        candidates: How many candidates each anchor has; the hardest 0.1 % of fewer than 1,000 are none.
        same_class: same_class(query, ids (B, n)) -> (B, n) bool in the query's array type.

    Returns:
        {name: PercentileRange}, in the order of the paper.

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=2000))
        >>> made = arms(pool, lambda anchors, ids: ids * 1.0, 1000, lambda query, ids: ids % 2 == 0)
        >>> len(made), list(made)[:3]
        (20, ['all', 'only 85-90 %', 'only 90-95 %'])
    """
    if not callable(same_class):
        raise_invalid("same_class", "a function same_class(query, ids)", type(same_class).__name__)

    def other_class(query: Query, ids: Array) -> Array:
        return ~same_class(query, ids)

    settings: dict[str, dict[str, Any]] = {"all": {"keep": (0.0, 1.0)}}
    for low, high in ((85, 90), (90, 95), (95, 100)):
        settings[f"only {low}-{high} %"] = {"keep": (low / 100, high / 100)}
    for low, high in ((85, 90), (90, 95), (95, 100), (90, 100), (85, 100)):
        settings[f"all but {low}-{high} %"] = {"remove": (low / 100, high / 100)}
    for share in (50, 75, 85, 90, 95, 99.9):
        settings[f"easiest {share:g} %"] = {"keep": (0.0, share / 100)}
    more = candidates + candidates // 999  # so that `candidates` are left without the hardest 0.1 %
    top = {"remove": (0.999, 1.0), "candidates": more}
    settings["without the hardest 0.1 %"] = top
    settings["without the same class"] = {"keep": (0.0, 1.0), "where": other_class}
    settings["without the hardest 0.1 % of the same class"] = {**top, "where": same_class}
    settings["without the hardest 0.1 % of other classes"] = {**top, "where": other_class}
    settings["without the easiest 99.9 % of the same class"] = {"remove": (0.0, 0.999), "where": same_class}
    return {
        name: PercentileRange(pool, score, **{"candidates": candidates, **options})
        for name, options in settings.items()
    }


def mean_of(values: Any) -> Mean:
    """The mean of what is not NaN, with its 95 % CI."""
    from scipy.special import stdtrit

    known = np.asarray(values, np.float64)
    known = known[~np.isnan(known)]
    size = len(known)
    if not size:
        return Mean(np.nan, np.nan, np.nan, 0)
    mean = float(known.mean())
    half_width = np.nan
    if size > 1:
        half_width = float(stdtrit(size - 1, 0.975) * known.std(ddof=1) / size**0.5)
    return Mean(mean, mean - half_width, mean + half_width, size)


# ---- arguments ------------------------------------------------------------------------------------------------------


def _is_function(negatives: Any) -> bool:
    return callable(negatives) and not is_torch(negatives)


def _score_matrix(anchors: Any, negatives: Any, metric: str) -> NDArray[Any]:
    """(n, m) the scores of all pairs."""
    if _is_function(negatives):
        return _scores_of_function(anchors, negatives)
    ours = _read_vectors("anchors", anchors, metric)
    theirs = _read_vectors("negatives", negatives, metric)
    if ours.shape[1] != theirs.shape[1]:
        raise_invalid("negatives", f"of width {ours.shape[1]}, like the anchors", theirs.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        scores = (ours @ theirs.T).astype(np.float32)
    if not np.isfinite(scores).all():
        rule = "of norms whose scores float32 holds"
        raise_invalid("anchors", rule, "a score that is too large", "Scale the vectors down.")
    return scores


def _scores_of_function(anchors: Any, negatives: Any) -> NDArray[Any]:
    given = anchors if is_torch(anchors) else as_array("anchors", anchors)
    if given.ndim == 0 or len(given) == 0:
        raise_invalid("anchors", "at least one anchor", f"shape {tuple(given.shape)}")
    scores, _ = read_scores("negatives", negatives(given))
    if len(scores) != len(given) or not scores.shape[1]:
        rule = f"a function that returns scores of shape ({len(given)}, m)"
        raise_invalid("negatives", rule, f"shape {scores.shape}")
    return scores


def _read_vectors(parameter: str, given: Any, metric: str) -> Floats:
    """Return vectors (n, d) as float64; for cosines of length 1."""
    array = as_array(parameter, to_numpy(given))
    if array.ndim != 2 or 0 in array.shape:
        raise_invalid(parameter, "of shape (n, d), at least one vector", f"shape {array.shape}")
    if array.dtype.kind != "f":
        raise_invalid(parameter, "floats", f"dtype {array.dtype}", "Convert them with .astype(np.float32).")
    vectors = array.astype(np.float64)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(vectors, axis=1)
    check_all(parameter, norms, np.isfinite(norms), "vectors of a finite norm")
    if metric == "dot":
        return vectors
    advice = "A zero vector has no cosine; leave it out, or use metric='dot'."
    check_all(parameter, norms, norms >= _SHORTEST, "vectors of a length above 0", advice)
    return np.asarray(vectors / norms[:, None])


def _kept_pairs(exclude: Any, shape: tuple[int, ...]) -> Mask | None:
    """(n, m) which pairs count, or None if all do."""
    if exclude is None:
        return None
    check_kind("exclude", exclude, Positives, "a Positives, or None")
    if exclude.n_anchors > shape[0] or exclude.n_items > shape[1]:
        rule = f"of at most {shape[0]} anchors and {shape[1]} items, the anchors and the negatives"
        raise_invalid("exclude", rule, f"{exclude.n_anchors} x {exclude.n_items}")
    kept = np.ones(shape, np.bool_)
    anchors = np.repeat(np.arange(exclude.n_anchors), np.diff(exclude.indptr))
    kept[anchors, exclude.indices] = False
    return kept


def _read_classes(
    labels: Any, negative_labels: Any, hierarchy: Any, shape: tuple[int, ...]
) -> tuple[Whole | None, Whole | None, Whole | None]:
    """(n,) classes of the anchors, (m,) of the negatives, and the parents of the tree, each None if not given."""
    if labels is None and negative_labels is None:
        if hierarchy is not None:
            raise_invalid("hierarchy", "left out without labels", shown(hierarchy))
        return None, None, None
    if labels is None:
        raise_invalid("labels", "given with `negative_labels`", None)
    if negative_labels is None:
        raise_invalid("negative_labels", "given with `labels`", None)
    parents = None if hierarchy is None else read_hierarchy(hierarchy)
    own = read_labels("labels", labels, shape[0], "anchors", parents)
    theirs = read_labels("negative_labels", negative_labels, shape[1], "negatives", parents)
    return own, theirs, parents


# ---- parts of the result --------------------------------------------------------------------------------------------


def _profile(pairs: Pairs, edges: Floats, measures: dict[str, NDArray[Any]], shares: Floats) -> Profile:
    curves = {name: mean_curve(pairs, edges, values) for name, values in measures.items()}
    return Profile(
        score=curves["score"],
        below_zero=curves["below_zero"],
        gradient=share_curve(pairs, edges, shares),
        same_class=curves.get("same_class"),
        depth=curves.get("depth"),
    )


def _gap(pairs: Pairs, banded: Floats, values: NDArray[Any]) -> Gap:
    """Easy negatives against the two harder bands."""
    sums, counts = pairs.sum_by_interval(banded, values)
    sums = np.stack([sums[:, 0], sums[:, 1] + sums[:, 2]], axis=1)
    counts = np.stack([counts[:, 0], counts[:, 1] + counts[:, 2]], axis=1)
    easy, hard = ratio_over_anchors(sums, counts)[0].tolist()
    has_both = (counts > 0).all(axis=1)
    means = sums[has_both] / counts[has_both]
    return Gap(hard, easy, mean_of(means[:, 1] - means[:, 0]))


# ---- figures --------------------------------------------------------------------------------------------------------


def _figure_of_bands(study: Study) -> Spec:
    """Fig. 4: easy, hard and hardest negatives, a panel for each measure."""
    names = ("same_class", "depth", "gradient") if study.by_band.same_class else ("score", "gradient")
    x = {"field": "place", "type": "nominal", "sort": list(BANDS), "title": None, "axis": {"labelAngle": 0}}
    error = {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {"x": x, "y": axis("low"), "y2": {"field": "high"}},
    }
    panels = []
    for name, curve in _curves(study.by_band, names):
        bar = {
            "mark": {"type": "bar", "color": _BLUE, "width": 44},
            "encoding": {"x": x, "y": axis("mean", title=_TITLES[name])},
        }
        values = _points(curve, BANDS)
        panels.append({"width": 220, "height": 230, "data": {"values": values}, "layer": [bar, error]})
    shares = f"hard: the hardest {100 * study.hard:g} %, without the very hardest {100 * study.hardest:g} %"
    return _row_of_panels("Negatives by band", f"{shares}; lines: two standard errors", panels)


def _figure_of_percentiles(study: Study) -> Spec:
    """Fig. 5: the same by percentile, the easiest on the left."""
    ticks = {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}
    x = axis("place", title="percentile of the negative", scale={"domain": [0, 1]}, axis=ticks)
    panels = []
    for name, curve in _curves(study.by_percentile, ("same_class", "depth", "score")):
        y = {"title": _TITLES[name], "scale": {"zero": name != "depth"}}
        area = {
            "mark": {"type": "area", "color": _BLUE, "opacity": 0.25},
            "encoding": {"x": x, "y": axis("low", **y), "y2": {"field": "high"}},
        }
        line = {
            "mark": {"type": "line", "color": _BLUE, "strokeWidth": 2, "point": {"size": 18, "color": _BLUE}},
            "encoding": {"x": x, "y": axis("mean", **y)},
        }
        values = _points(curve, ((curve.low + curve.high) / 2).tolist())
        panels.append({"width": 300, "height": 230, "data": {"values": values}, "layer": [area, line]})
    subtitle = "100 % is the hardest; shaded: two standard errors over anchors"
    return _row_of_panels("Negatives by percentile", subtitle, panels)


def _figure_of_consistency(found: Consistency) -> Spec:
    """Fig. 6: how often negatives are hard, and the same for a shuffle.

    The shuffled shares are those of Binomial(anchors, p), the exact distribution of a shuffle if every anchor has every
    negative; otherwise p is the mean chance.
    """
    from scipy.special import bdtr

    anchors = max(found.anchors, 1)
    chance = float(np.clip(found.expected.mean() / anchors, 0.0, 1.0))
    deviation = (anchors * chance * (1 - chance)) ** 0.5
    last = int(max(found.counts.max(), np.ceil(anchors * chance + 4 * deviation))) + 1
    bar_width = -(-last // _MAX_BARS)
    edges = np.arange(0, last + bar_width, bar_width)
    below_edge = np.where(edges > 0, bdtr(np.clip(edges - 1.0, 0, anchors), anchors, chance), 0.0)
    bars = {"as measured": np.histogram(found.counts, edges)[0] / len(found.counts), "shuffled": np.diff(below_edge)}
    values = [
        {"from": float(edges[i] / anchors), "to": float(edges[i + 1] / anchors), "share": float(share), "kind": kind}
        for kind, shares in bars.items()
        for i, share in enumerate(shares)
    ]
    subtitle = f"the mean is {100 * found.rates.mean():.3g} % by definition"
    if np.isfinite(found.shuffled.ratio):
        subtitle += f"; the variance is {found.shuffled.ratio:.3g} times that of a shuffle"
    title = "share of anchors for which a negative is hard"
    colours = {"domain": list(bars), "range": [_BLUE, _ORANGE]}
    encoding = {
        "x": axis("from", bin={"binned": True}, axis={"format": "~%", "tickCount": 8}, title=title),
        "x2": {"field": "to"},
        "y": axis("share", title="share of negatives", stack=None),
        "color": {"field": "kind", "type": "nominal", "title": None, "scale": colours},
    }
    panel = {"width": 620, "height": 260, **layer(values, "bar", encoding, binSpacing=0, opacity=0.6)}
    return _row_of_panels("How often a negative is hard", subtitle, [panel])


def _curves(profile: Profile, names: Sequence[str]) -> Iterator[tuple[str, Curve]]:
    """The named curves of a profile that are known."""
    for name in names:
        if getattr(profile, name) is not None:
            yield name, getattr(profile, name)


def _points(curve: Curve, places: Sequence[Any]) -> list[Spec]:
    """The means that are known, each with two standard errors on either side."""
    points = []
    for place, mean, error in zip(places, curve.mean.tolist(), np.nan_to_num(curve.error).tolist(), strict=True):
        if np.isfinite(mean):
            points.append({"place": place, "mean": mean, "low": mean - 2 * error, "high": mean + 2 * error})
    return points


def _row_of_panels(title: str, subtitle: str, panels: list[Spec]) -> Spec:
    heading = {"text": title, "subtitle": subtitle, "fontSize": 17, "fontWeight": "bold", "offset": 12}
    return {"title": heading, "hconcat": panels, "spacing": 40, "resolve": {"scale": {"color": "independent"}}}
