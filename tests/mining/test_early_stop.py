"""A search that stops early finds the same negatives as one that lists all candidates."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import Bands, Calibrated, Combined, Margin, MaxScore, Posterior, ShareOfPositive
from naysay.errors import NaysayError
from naysay.mining import _search
from naysay.search import search
from naysay.search._below import SearchOptions

ARRAYS = ("ids", "scores", "rank", "suspicion", "source", "kept_by", "positive_scores", "thresholds", "counts")


def world(seed, n=60, items=180, kinds=40, width=6):
    """Vectors near a few centres, with copies among them, so that scores tie and duplicates exist."""
    rng = ns.rng_for(seed)
    centres = rng.normal(size=(kinds, width))
    corpus = centres[rng.integers(0, kinds, items)] + 0.4 * rng.normal(size=(items, width))
    corpus[rng.integers(0, items, items // 8)] = corpus[rng.integers(0, items, items // 8)]
    own = rng.integers(0, items, n)
    queries = corpus[own] + 0.4 * rng.normal(size=(n, width))
    some = rng.random(n) < 0.9
    more = rng.integers(0, n, n), rng.integers(0, items, n)
    positives = ns.Positives.from_pairs(
        np.append(np.flatnonzero(some), more[0]), np.append(own[some], more[1]), n, items
    )
    return queries.astype(np.float32), corpus.astype(np.float32), positives


def posterior(scores):
    """One that drops many, fitted to other scores of the same kind."""
    rng = ns.rng_for(5)
    own = scores[:, :4].mean(axis=1).astype(np.float64) + 0.01 * rng.normal(size=len(scores))
    lists = np.repeat(scores[:, :60], 4, axis=0) + 0.001 * rng.normal(size=(4 * len(scores), 60))
    return Posterior(3, 0.2, positive_scores=own).fit(lists, np.repeat(own, 4))


def same(one, other):
    for name in ARRAYS:
        assert np.asarray(getattr(one, name)).tobytes() == np.asarray(getattr(other, name)).tobytes(), name
    assert one.rule == other.rule
    # One that stopped early knows where a deeper search would not help.
    assert [note.split(" Search")[0] for note in one.notes] == [note.split(" Search")[0] for note in other.notes]


def both(monkeypatch, *arguments, **options):
    """The result that stops early, and the one that lists all."""
    found = []
    for listed in (0, 1 << 62):
        monkeypatch.setattr(_search, "LISTED", listed)
        monkeypatch.setattr(sys.modules["naysay.mining.mine"], "_FITTED_TO", listed)
        found.append(ns.mine(*arguments, **options))
    return found


JUDGES = {
    "none": lambda scores: None,
    "share": lambda scores: "share:0.95",
    "margin": lambda scores: "margin:0.05",
    "calibrated": lambda scores: "calibrated:0.2",
    "absolute": lambda scores: MaxScore(float(np.quantile(scores, 0.97))),
    "bands": lambda scores: Bands(-0.5, float(np.quantile(scores, 0.9))),
    "all": lambda scores: MaxScore(-2.0),
    "nothing": lambda scores: MaxScore(2.0),
    "auto": lambda scores: "auto",
    "posterior": lambda scores: posterior(scores),
}
OPTIONS = [{}, {"min_score": 0.3}, {"on_short": "drop"}, {"metric": "dot"}, {"metric": "l2"}]


@pytest.mark.parametrize("judge", JUDGES)
@settings(max_examples=6)
@given(
    st.integers(0, 1000),
    st.sampled_from([1, 3, 12, "each", "auto"]),
    st.sampled_from(OPTIONS),
    st.sampled_from([200, 1 << 19]),
)
def test_the_same_negatives_as_with_all_candidates(judge, seed, k, options, slots):
    queries, corpus, positives = world(seed)
    scores = search(queries, corpus, 100).scores
    if k == "each":
        k = ns.rng_for(seed, 1).integers(0, 9, len(queries))
    if judge == "none" and isinstance(k, str):
        return
    given = {"judge": JUDGES[judge](scores), "seed": seed, **options}
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("naysay.mining._pipeline._SLOTS", slots)
        early, whole = both(monkeypatch, queries, corpus, positives, k, **given)
    same(early, whole)


@pytest.mark.parametrize("judge", ["share:0.95", "calibrated:0.2", None, "auto"])
def test_what_is_not_listed_is_searched_for_when_it_is_asked_for(judge, monkeypatch, tmp_path):
    queries, corpus, positives = world(3)
    early, whole = both(monkeypatch, queries, corpus, positives, 5, judge=judge)
    monkeypatch.setattr(_search, "LISTED", 0)
    assert early.candidates.ids.shape[1] < whole.candidates.ids.shape[1] == 100
    assert str(early.explain(7)) == str(whole.explain(7))
    again = early.rethreshold(judge="margin:0.1")
    same(again, ns.mine(queries, corpus, positives, 5, judge="margin:0.1"))
    nothing = None if judge is None else MaxScore(2.0)  # with a judge, duplicates are dropped all the same
    expected = ns.mine(queries, corpus, positives, 5, judge=nothing)
    assert (early.rethreshold(judge="none").ids == expected.ids).all()
    assert early.rethreshold(judge="none").rule == "Nothing is suspected: the nearest are taken."
    if judge == "share:0.95":
        pages = [mined.report(tmp_path / "page.html").read_text() for mined in (early, whole)]
        assert pages[0] == pages[1]
    if judge == "auto":
        same(early.rethreshold(false_share=0.01), ns.mine(queries, corpus, positives, 5, false_share=0.01))
    if judge == "calibrated:0.2":
        other = ns.mine(queries, corpus, positives, 5, judge="calibrated:0.1")
        same(early.rethreshold(alpha=0.1), other)
        assert (early.rethreshold(0.25).ids == whole.rethreshold(0.25).ids).all()


def test_one_pass_however_many_are_suspected(monkeypatch):
    """No search lists more than k and a few, though nearly all of the corpus is above the threshold."""
    queries, corpus, positives = world(4, items=3000)
    depths = []
    run = SearchOptions.run

    def counted(self, queries, corpus, depth, below=None):
        depths.append(depth)
        return run(self, queries, corpus, depth, below)

    monkeypatch.setattr(SearchOptions, "run", counted)
    monkeypatch.setattr(_search, "LISTED", 0)
    mined = ns.mine(queries, corpus, positives, 5, judge=MaxScore(-0.8))
    assert depths == [7]
    assert mined.dropped["suspicious"].min() > 1000
    assert (mined.scores[mined.mask] < -0.8).all()
    ns.mine(queries, corpus, positives, 5, judge=None)
    assert depths == [7, 5]


@pytest.mark.parametrize(("near", "again"), [(True, 0), (False, 200)])
def test_anchors_that_a_fit_lists_are_not_searched_again(monkeypatch, near, again):
    """Unless all that it lists is suspected, where some positives are far away."""
    queries, corpus, positives = world(8, n=300, items=900)
    if near:
        positives = search(queries, corpus, 1).ids[:, 0]
    monkeypatch.setattr("naysay.mining._false_share.MOST", 200)
    early, whole = both(monkeypatch, queries, corpus, positives, 5, judge="auto")
    same(early, whole)
    searched, run = [], SearchOptions.run

    def counted(self, queries, corpus, depth, below=None):
        searched.append((queries.n, depth))
        return run(self, queries, corpus, depth, below)

    monkeypatch.setattr(SearchOptions, "run", counted)
    monkeypatch.setattr(_search, "LISTED", 0)
    monkeypatch.setattr(sys.modules["naysay.mining.mine"], "_FITTED_TO", 0)
    mined = ns.mine(queries, corpus, positives, 5, judge="auto")
    assert isinstance(mined.judge, Calibrated)
    assert searched[0] == (200, 53)  # those of the fit
    assert searched[1] == (100 + again, 7)  # all others, below the threshold
    assert mined.candidates.ids.shape[1] <= 7  # what the fit lists above it is only counted


def test_a_given_depth_lists_all(monkeypatch):
    queries, corpus, positives = world(5)
    monkeypatch.setattr(_search, "LISTED", 0)
    assert ns.mine(queries, corpus, positives, 5, judge=None, depth=30).candidates.ids.shape == (60, 30)


@pytest.mark.parametrize(
    ("judge", "text"),
    [
        (Margin(0.1), "margin:0.1"),
        (ShareOfPositive(share=0.9), "share:0.9"),
        (Calibrated(0.2), "calibrated:0.2"),
        (MaxScore(0.6), "max_score:0.6"),
        (Bands(0.1, 0.6), "bands:0.1,0.6"),
        (None, "none"),
    ],
)
def test_a_judge_means_the_same_as_text_and_as_an_object(judge, text):
    queries, corpus, positives = world(6)
    one, other = (ns.mine(queries, corpus, positives, 5, judge=given) for given in (judge, text))
    same(one, other)
    if text not in ("none", "calibrated:0.2"):
        start = ns.mine(queries, corpus, positives, 5, judge=None)
        same(start.rethreshold(judge=judge), start.rethreshold(judge=text))


def test_parts_of_several_get_the_positives_scores_too():
    queries, corpus, positives = world(6)
    lowest = ns.mine(queries, corpus, positives, 5, judge=None).positive_scores
    lowest = np.where(np.isnan(lowest), np.finfo(np.float32).max, lowest)
    for several in (dict, lambda parts: Combined(parts, "noisy_or")):
        given = several({"near": Margin(0.1), "high": MaxScore(0.9)})
        stated = several({"near": Margin(0.1, lowest), "high": MaxScore(0.9)})
        one, other = (ns.mine(queries, corpus, positives, 5, judge=judge) for judge in (given, stated))
        assert one.rule == f"{other.rule} 3 anchors have no positive, and nothing of them is suspected."
        same(one, replace(other, rule=one.rule))


def test_elsewhere_the_positives_scores_are_missing():
    said = r"`positive_scores` must be given outside of `mine`, got None\. Pass lowest_scores"
    with pytest.raises(NaysayError, match=said):
        Margin(0.1).threshold(ns.Query(np.arange(2)))


def test_a_short_repr():
    queries, corpus, positives = world(6)
    for judge in ("auto", "share:0.95", None):
        mined = ns.mine(queries, corpus, positives, 5, judge=judge)
        count = np.count_nonzero(mined.mask)
        start = f"Mined({count} of 300 negatives for 60 anchors, k=5, metric='cosine', judge="
        assert repr(mined).startswith(start)
        assert len(repr(mined)) < 400


def test_the_rule_of_calibrated_says_per_anchor():
    queries, corpus, positives = world(6)
    assert "per anchor" in ns.mine(queries, corpus, positives, 5, judge="calibrated").rule
