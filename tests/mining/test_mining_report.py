"""A report of what was mined: its figures are those of the job, its sample can be moved, and its examples are true."""

import numpy as np
import pytest
from families import Families

import naysay as ns
from naysay.detectors import Bands
from naysay.mining import Reason, mine
from naysay.mining import report as reported
from naysay.mining.report import report_mined
from naysay.report import Contents, html
from naysay.text import with_interval

WORLD = ns.planted_world(150, 600, per_anchor=10, noise=0.2, seed=2)
QUERIES, CORPUS = WORLD.anchor_vectors, WORLD.item_vectors
JUDGED = mine(QUERIES, CORPUS, WORLD.known, 5, judge="calibrated")
SOME = float(np.sort(JUDGED.candidates.scores.ravel())[-2000])
REASONS = {"positive", "suspicious", "not selected"}


def told(mined, tmp_path, monkeypatch, **options):
    """The contents that would be written."""
    caught = []

    def keep(path, contents):
        caught.append(contents)
        return path

    with monkeypatch.context() as patch:
        patch.setattr(reported, "write_report", keep)
        report_mined(mined, tmp_path / "report.html", **options)
    (contents,) = caught
    assert isinstance(contents, Contents)
    return contents


FAMILIES = Families()
AUTO = FAMILIES.mine(8)


def test_the_first_sentence_says_the_false_share_before_and_after(tmp_path, monkeypatch):
    contents = told(AUTO, tmp_path, monkeypatch)
    before, after = AUTO.fitted.before, AUTO.false_share

    def text(share):
        return with_interval(share.estimate, share.low, share.high)

    assert "2,400" in contents.advice[0]
    assert contents.advice[0].index(text(after)) < contents.advice[0].index(text(before))
    assert contents.advice[1:] == ("Train on them.", AUTO.rule)
    now = contents.trade.chosen
    assert (now.false_share, now.low, now.high) == (after.estimate, after.low, after.high)
    assert now.mean_score == pytest.approx(AUTO.scores.mean(), rel=1e-6)
    assert (now.target, contents.trade.curve[contents.trade.start].target) == (0.05, 0.05)
    assert contents.trade.command == "mined.rethreshold(false_share=TARGET)"
    assert contents.numbers["negatives"] == "2,400"
    assert contents.numbers["mean score of the nearest"] == f"{AUTO.judge.summary.hardness_before:.4g}"


def test_the_rules_of_the_trade_are_those_of_loops(tmp_path, monkeypatch):
    trade = told(AUTO, tmp_path, monkeypatch).trade
    detector, lists = AUTO.fitted.posterior, AUTO.fitted.lists
    posterior = detector.posterior(lists.scores, detector.positive_scores[lists.anchors], alike=lists.alike)
    limits = {
        "nearest": lambda own: np.inf,
        "share 0.95": lambda own: 0.95 * own,
        "margin 0.05": lambda own: own - 0.05,
    }
    assert [one.name for one in trade.rules] == list(limits)
    for one in trade.rules:
        taken, dropped = [], 0
        for row in range(300):
            limit = limits[one.name](float(AUTO.positive_scores[row]))
            free = [slot for slot in range(lists.ids.shape[1]) if lists.free[row, slot]]
            first = [slot for slot in free if lists.scores[row, slot] <= limit][:8]
            taken += [(row, slot) for slot in first]
            dropped += len(set(free[:8]) - set(first))
        assert (one.negatives, one.dropped, one.empty) == (len(taken), dropped, 2400 - len(taken))
        assert one.false_share == pytest.approx(np.mean([posterior[at] for at in taken]), rel=1e-9)
        assert one.mean_score == pytest.approx(np.mean([lists.scores[at] for at in taken]), rel=1e-9)
        assert one.low < one.false_share < one.high


def test_a_point_of_the_curve_is_what_its_command_gives(tmp_path, monkeypatch):
    trade = told(AUTO, tmp_path, monkeypatch).trade
    full = [point for point in trade.curve if not point.empty]
    assert len(full) > 5
    for point in full[::8]:
        again = AUTO.rethreshold(false_share=point.target)
        assert point.negatives == again.mask.sum()
        assert (point.false_share, point.mean_score) == pytest.approx(
            (again.false_share.estimate, again.scores.mean()), rel=1e-5
        )
    start = trade.curve[trade.start]
    assert (start.negatives, start.dropped) == (trade.chosen.negatives, trade.chosen.dropped)


@pytest.mark.parametrize("judge", [None, "calibrated"])
def test_another_judge_is_weighed_by_a_posterior_that_is_fitted_now(tmp_path, monkeypatch, judge):
    mined = FAMILIES.mine(8, judge=judge)
    contents = told(mined, tmp_path, monkeypatch)
    now, nearest, share, _ = contents.trade.chosen, *contents.trade.rules
    assert contents.trade.command == ""  # the target is that of the judge "auto"
    assert np.isnan(now.target)
    assert now.negatives == mined.mask.sum()
    if judge is None:
        assert "are the nearest, and none was dropped." in contents.advice[0] + "."
        assert contents.advice[1].startswith("Too many may be false to train on: move the target")
    same = {None: nearest, "share:0.95": share}.get(judge)
    if same is not None:
        assert (now.false_share, now.mean_score) == pytest.approx((same.false_share, same.mean_score), rel=1e-6)
    else:
        assert now.false_share < 0.5 * nearest.false_share
        assert now.mean_score < nearest.mean_score


def test_what_cannot_be_told_is_said_with_what_took_its_place(tmp_path, monkeypatch):
    assert JUDGED.fitted.posterior.reason
    contents = told(JUDGED, tmp_path, monkeypatch)
    reason = JUDGED.fitted.posterior.reason
    assert contents.trade is None
    assert contents.advice[0] == f"How many of these 750 negatives are false cannot be told: {reason}."
    assert contents.advice[1:] == ("Read the examples before you train, or label the pairs below.", JUDGED.rule)
    assert contents.scores is not None
    assert len(contents.review) == 100
    assert all(np.isnan(pair.posterior) for pair in contents.review)


def test_pairs_to_label_are_drawn_among_the_nearest(tmp_path, monkeypatch):
    texts = [f"text of {n}" for n in range(len(FAMILIES.corpus))]
    given = {"corpus_texts": texts, "query_ids": [f"q{n}" for n in range(300)]}
    pairs = told(AUTO, tmp_path, monkeypatch, **given).review
    nearest = FAMILIES.mine(8, judge=None)
    assert len({(pair.query_id, pair.document_id) for pair in pairs}) == 100
    for pair in pairs:
        row, item = int(pair.query_id[1:]), int(pair.document_id)
        assert item in nearest.ids[row]
        assert (pair.query_text, pair.document_text) == ("", f"text of {item}")
        (slot,) = np.flatnonzero(AUTO.candidates.ids[row] == item)
        assert pair.score == pytest.approx(AUTO.candidates.scores[row, slot])
        assert pair.posterior == pytest.approx(AUTO.candidates.suspicion[row, slot], abs=1e-7)
    other = told(AUTO, tmp_path, monkeypatch, seed=1, **given).review
    assert {pair.query_id for pair in other} != {pair.query_id for pair in pairs}


def test_short_rows_and_no_negatives(tmp_path, monkeypatch):
    short = mine(QUERIES, CORPUS, WORLD.known, 50, judge=Bands(0, 0.3), depth=60)
    assert any("of the slots are empty, in " in one for one in told(short, tmp_path, monkeypatch).advice)
    none = mine(QUERIES, CORPUS, WORLD.known, 5, judge=Bands(-9, -9), depth=20)
    contents = told(none, tmp_path, monkeypatch)
    assert contents.advice[0].startswith("There is nothing to train on")
    assert contents.numbers["mean score of the negatives"] == "none"
    write_to_page(none, tmp_path, monkeypatch)


def write_to_page(mined, tmp_path, monkeypatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr(html, "_library", lambda: "")
        path = report_mined(mined, tmp_path / "report.html", **options)
    return path.read_text(encoding="utf-8")


def test_examples_are_what_explain_says(tmp_path, monkeypatch):
    mined = mine(
        QUERIES, CORPUS, WORLD.known, 5, judge="calibrated", sources={"words": np.tile(np.arange(40), (150, 1))}
    )
    contents = told(mined, tmp_path, monkeypatch)
    assert [one.kind for one in contents.examples] == ["kept", "dropped"]
    for shelf in contents.examples:
        assert 1 <= len(shelf.rows) <= 10
        for row in shelf.rows:
            anchor, item = (int(text.removeprefix("row ")) for text in (row.anchor, row.candidate))
            why = mined.explain(anchor)
            (fate,) = [
                one for one in (*why.negatives, *why.candidates) if one.id == item and one.source in row.explanation
            ]
            assert row.outcome == f"{'kept' if fate.kept else 'dropped'}: {fate.by}"
            assert (row.rank, row.score, row.suspicion) == (fate.rank, fate.score, fate.suspicion)
            assert f"Found by {fate.source} at rank {fate.rank}." in row.explanation
            assert f"positives scores {why.positive_score:.4f}." in row.explanation
            positive = int(row.positive.removeprefix("row "))
            assert WORLD.known.contains([anchor], [positive]).all()
            assert float(QUERIES[anchor] @ CORPUS[positive]) == pytest.approx(why.positive_score, abs=1e-5)
    kept, dropped = (shelf.rows for shelf in contents.examples)
    assert contents.examples[0].title == "The most suspect that were kept"
    assert kept[0].suspicion == mined.suspicion.max()
    lost = mined.candidates.dropped_for(Reason.SUSPICIOUS)
    assert dropped[0].score == mined.candidates.scores[lost].max()
    assert {row.outcome for row in dropped} == {"dropped: suspicious"}
    assert [row[0] for row in contents.tables[1].rows] == ["search", "words"]
    plain = told(mine(QUERIES, CORPUS, WORLD.known, 5, judge=None), tmp_path, monkeypatch).examples
    assert [shelf.title for shelf in plain] == ["The hardest negatives"]


def test_the_tables_add_up(tmp_path, monkeypatch):
    contents = told(JUDGED, tmp_path, monkeypatch)
    (outcomes,) = contents.tables
    rows = {name: count for name, count, _ in outcomes.rows}
    assert rows == {"kept: top": 750} | {f"dropped: {why}": int(each.sum()) for why, each in JUDGED.dropped.items()}
