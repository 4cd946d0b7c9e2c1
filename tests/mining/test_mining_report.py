"""A report of what was mined: its figures are those of the job, its sample can be moved, and its examples are true."""

import json
import re

import numpy as np
import pytest

import naysay as ns
from naysay.detectors import Absolute, Bands, Calibrated, Margin, false_negative_rate
from naysay.errors import NaysayError
from naysay.mining import _report as reported
from naysay.mining import mine
from naysay.mining._report import report_mined
from naysay.mining._report_parts import Labels
from naysay.quantity import estimate
from naysay.report import Contents, at_threshold, html

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


def figures(contents):
    given = contents.scores.sample
    return at_threshold(given, given.threshold)


def check_job(mined, contents):
    """At the line as it is, the sample's figures are those of the job."""
    now = figures(contents)
    suspected = sum(int(counts.sum()) for reason, counts in mined.dropped.items() if reason.startswith("suspicious"))
    assert now.suspected == suspected
    assert now.negatives == mined.mask.sum()
    assert now.empty == mined.short.sum()
    assert now.mean_score == pytest.approx(mined.scores[mined.mask].mean(dtype=float), rel=1e-6)
    return now


def test_the_figures_are_those_of_the_job(tmp_path, monkeypatch):
    contents = told(JUDGED, tmp_path, monkeypatch)
    now = check_job(JUDGED, contents)
    given = contents.scores.sample
    assert (given.by, given.threshold, given.of_anchors, len(given.k)) == ("score", JUDGED.judge.high, 150, 150)
    assert now.miss_rate == (JUDGED.judge.rank - 1) / 150  # those below the line that the same positives set
    assert contents.scores.high == JUDGED.judge.high
    assert set(contents.scores.reasons) == REASONS - {"positive"}  # known ones were never found
    assert contents.numbers["negatives"] == f"{JUDGED.mask.sum():,}"
    assert contents.numbers["suspected candidates"] == f"{now.suspected:,.0f}"
    assert contents.advice[0].startswith("Train on these 750 negatives: at most ")
    assert contents.advice[1] == JUDGED.rule


def test_the_rate_is_that_of_the_detectors_and_holds(tmp_path, monkeypatch):
    contents = told(JUDGED, tmp_path, monkeypatch)
    given, now = contents.scores.sample, figures(contents)
    whole = mine(QUERIES, CORPUS, WORLD.known, 5, judge=None, depth=100).candidates
    table = np.zeros((150, 100), np.float32)
    for row in range(150):
        table[row] = given.scores[given.anchors == row]
    assert np.array_equal(table, whole.scores)
    kept = np.isin(np.arange(100) + 100 * np.arange(150)[:, None], np.flatnonzero(_taken(given)))
    lowest = np.where(kept, table, np.inf).min(axis=1)
    known = given.positives[given.retrieved]
    passed = (known < given.threshold) & (known >= lowest[given.positive_anchors[given.retrieved]])
    found = false_negative_rate(table, known, kept, kept_positives=passed)
    assert now.false_rate == pytest.approx(found.estimate, rel=1e-12)
    true = WORLD.false_negative_rate(np.arange(150), JUDGED.ids)
    assert true < found.high
    assert f"With 95% confidence at most {100 * found.high:.1f} %" in contents.advice[2]


def _taken(given):
    marks, seen = [], {}
    for anchor, value in zip(given.anchors.tolist(), given.values.tolist(), strict=True):
        take = value < given.threshold and seen.get(anchor, 0) < given.k[anchor]
        seen[anchor] = seen.get(anchor, 0) + take
        marks.append(bool(take))
    return np.array(marks)


def test_positives_that_the_search_would_not_find_are_set_apart(tmp_path, monkeypatch):
    mined = mine(QUERIES, CORPUS, WORLD.known, 2, judge=None, depth=10)
    given = told(mined, tmp_path, monkeypatch).scores.sample
    assert given.positive_anchors.tolist() == list(range(150))
    for row in range(150):
        assert given.retrieved[row] == (given.positives[row] >= mined.candidates.scores[row].min())
    assert 20 < given.retrieved.sum() < 130


def test_positives_that_were_drawn_before_are_taken(tmp_path, monkeypatch):
    drawn = np.where(np.arange(150) % 3, JUDGED.positive_scores, np.nan)
    given = told(JUDGED, tmp_path, monkeypatch, one_positive=drawn).scores.sample
    assert given.positive_anchors.tolist() == np.flatnonzero(np.arange(150) % 3).tolist()
    assert np.array_equal(given.positives, JUDGED.positive_scores[given.positive_anchors])


@pytest.mark.parametrize("line", [0.3, 0.4, 0.6])
def test_the_command_that_the_page_shows_gives_what_it_promises(tmp_path, monkeypatch, line):
    given = told(JUDGED, tmp_path, monkeypatch).scores.sample
    promised = at_threshold(given, line)
    names = {"mined": JUDGED, "naysay": ns}
    done = eval(given.command.replace("THRESHOLD", repr(line)), names)
    assert promised.negatives == done.mask.sum()
    assert promised.suspected == done.dropped.get("suspicious", np.zeros(1)).sum()
    assert promised.mean_score == pytest.approx(done.scores[done.mask].mean(dtype=float), rel=1e-6)
    check_job(done, told(done, tmp_path, monkeypatch))


def test_every_kind_of_judge(tmp_path, monkeypatch):
    judges = {
        None: "score",
        Absolute(SOME): "score",  # at a score, which it keeps
        Bands(0.2, 0.5): "score",
        Bands(
            0.2, float(np.nextafter(np.float64(SOME), 9))
        ): "score",  # above a score, which 32 bits cannot tell from it
        Calibrated(0.2): "score",
        Margin(0.05, JUDGED.positive_scores): "suspicion",
    }
    for judge, by in judges.items():
        mined = mine(QUERIES, CORPUS, WORLD.known, 5, judge=judge, depth=100)
        contents = told(mined, tmp_path, monkeypatch)
        assert contents.scores.sample.by == by
        check_job(mined, contents)
    assert "of suspicion" not in contents.advice[0]
    assert contents.advice[0].startswith("Review the most suspicious examples before you train on these 7")
    assert contents.numbers["false negatives, upper estimate"] == "unknown"


def test_a_moved_line_is_found_again(tmp_path, monkeypatch):
    for other in (JUDGED.rethreshold(0.3), JUDGED.rethreshold(alpha=0.2)):
        contents = told(other, tmp_path, monkeypatch)
        assert contents.scores.sample.by == "score"
        check_job(other, contents)


def test_nothing_suspected_is_said_first(tmp_path, monkeypatch):
    mined = mine(QUERIES, CORPUS, WORLD.known, 5, judge=None)
    contents = told(mined, tmp_path, monkeypatch)
    assert contents.advice[0].startswith("Do not train on these yet: no candidate was judged")
    assert re.search(r"Up to [\d.]+ % of them may be unlabelled positives\.", contents.advice[0])
    assert [one.kind for one in contents.examples] == ["hardest", "dropped"][:1]


def test_many_false_negatives_are_said_first(tmp_path, monkeypatch):
    loose = JUDGED.rethreshold(alpha=0.6)
    assert WORLD.false_negative_rate(np.arange(150), loose.ids) > 0.05
    assert told(loose, tmp_path, monkeypatch).advice[0].startswith("Review examples before you train: up to ")


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


@pytest.mark.parametrize("n", [0, 1])
def test_few_anchors(tmp_path, monkeypatch, n):
    mined = mine(QUERIES[:n], CORPUS, None, 3)
    text = write_to_page(mined, tmp_path, monkeypatch)
    assert ("Move the threshold</h2>" in text) == bool(n)
    assert ("The threshold cannot be moved in this page" in text) == (not n)


def test_no_positives_and_equal_scores(tmp_path, monkeypatch):
    mined = mine(np.ones((3, 2), np.float32), np.ones((9, 2), np.float32), None, 2, keep_own_text=True)
    contents = told(mined, tmp_path, monkeypatch)
    assert np.isnan(figures(contents).false_rate)
    assert len(contents.tables) == 1  # no thresholds
    write_to_page(mined, tmp_path, monkeypatch)


def test_anchors_that_were_searched_past_their_suspects_are_left_out_and_counted(tmp_path, monkeypatch):
    mined = mine(QUERIES, CORPUS, WORLD.known, 2, judge=Bands(0, 0.12))
    past = mined.candidates.outside["suspicious"] > 0
    assert 0 < past.sum() < 150
    contents = told(mined, tmp_path, monkeypatch)
    assert len(contents.scores.sample.k) == (~past).sum()
    assert contents.scores.sample.of_anchors == 150
    assert any(
        note.startswith(f"The search skipped suspected candidates of {past.sum():,} anchors") for note in contents.notes
    )


def test_rescored_positives_are_those_that_were_scored(tmp_path, monkeypatch):
    def score(anchors, ids):
        return 2 * np.einsum("pd,pd->p", QUERIES[anchors], CORPUS[ids])

    mined = mine(QUERIES, CORPUS, WORLD.known, 5, rescore=score)
    contents = told(mined, tmp_path, monkeypatch)
    check_job(mined, contents)
    assert np.array_equal(contents.scores.positives, mined.positive_scores)
    assert all(row.positive.startswith("row ") for shelf in contents.examples for row in shelf.rows)


def test_examples_are_what_explain_says(tmp_path, monkeypatch):
    mined = mine(QUERIES, CORPUS, WORLD.known, 5, sources={"words": np.tile(np.arange(40), (150, 1))})
    contents = told(mined, tmp_path, monkeypatch)
    assert [one.kind for one in contents.examples] == ["hardest", "suspect", "dropped"]
    for shelf in contents.examples:
        assert 1 <= len(shelf.rows) <= 30
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
    hardest, suspect, dropped = (shelf.rows for shelf in contents.examples)
    assert hardest[0].score == mined.scores[mined.mask].max()
    assert suspect[0].suspicion == mined.candidates.suspicion.max()
    assert {row.outcome.split(":")[0] for row in dropped} == {"dropped"}
    assert "dropped: not selected" not in {row.outcome for row in dropped}
    assert len({row.outcome for row in dropped}) == 3  # suspicious, and of the second list known or repeated
    assert [row[0] for row in contents.tables[1].rows] == ["search", "words"]


def test_another_selection_is_said(tmp_path, monkeypatch):
    mined = mine(QUERIES, CORPUS, WORLD.known, 5, select="random")
    contents = told(mined, tmp_path, monkeypatch)
    assert any(
        note.startswith("Some negatives were taken by other rules than the highest score: random.")
        for note in contents.notes
    )
    assert figures(contents).mean_score > mined.scores[mined.mask].mean() + 0.05
    assert not any("other rules" in note for note in told(JUDGED, tmp_path, monkeypatch).notes)


def test_texts_and_ids(tmp_path, monkeypatch):
    class Texts:
        """Only rows that are shown are asked for."""

        asked = 0

        def __len__(self):
            return 600

        def __getitem__(self, row):
            assert type(row) is int
            self.asked += 1
            return f"text of {row}"

    texts = Texts()
    contents = told(
        JUDGED,
        tmp_path,
        monkeypatch,
        corpus_texts=texts,
        query_ids=[f"q{n}" for n in range(150)],
        corpus_ids=np.arange(600),
    )
    row = contents.examples[0].rows[0]
    assert re.fullmatch(r"q\d+", row.anchor)
    assert re.fullmatch(r"(\d+): text of \1", row.candidate)
    assert texts.asked <= 180
    assert told(JUDGED, tmp_path, monkeypatch, query_texts=["a"] * 150).examples[0].rows[0].anchor == "a"


def test_hostile_texts_pass_through_the_page(tmp_path, monkeypatch):
    bad = "<script>window.hacked=1</script>\ud800\x00" + "<" * 100_000
    text = write_to_page(
        JUDGED,
        tmp_path,
        monkeypatch,
        title=bad,
        query_texts=[bad] * 150,
        corpus_texts=[bad] * 600,
        corpus_ids=[bad] * 600,
        numbers={bad: bad},
        provenance={bad: bad},
    )
    assert "<script>window" not in text
    assert "&lt;script&gt;window.hacked=1&lt;/script&gt;\ufffd\ufffd&lt;" in text
    assert len(text) < 1_000_000  # with Vega's 900 kB less than 2 MB


def test_the_tables_add_up(tmp_path, monkeypatch):
    contents = told(JUDGED, tmp_path, monkeypatch)
    fates, high, low = contents.tables
    rows = {name: count for name, count, _ in fates.rows}
    assert rows == {"kept: top": 750} | {f"dropped: {why}": int(each.sum()) for why, each in JUDGED.dropped.items()}
    assert "Of the 15,000 candidates that the search found, the nearest: not of all pairs." in high.caption
    assert sum(high.rows[0][1:5]) == 15_000
    assert sum(low.rows[0][1:5]) == 15_000
    (difficulty,) = contents.charts
    assert difficulty.title == "Difficulty by percentile"
    kept = [row[3] for row in difficulty.table.rows]
    assert sum(kept) * 15_000 / len(kept) == pytest.approx(750)
    assert contents.notes[-1].startswith("The best number of negatives is not estimated")


def test_random_pairs_tell_how_many_and_where(tmp_path, monkeypatch):
    anchors, items = np.repeat(np.arange(150), 600), np.tile(np.arange(600), 150)
    free = ~WORLD.known.contains(anchors, items)
    random = np.einsum("pd,pd->p", QUERIES[anchors[free]], CORPUS[items[free]])
    contents = told(JUDGED, tmp_path, monkeypatch, background=random)
    assert contents.tables[1].caption.startswith(
        f"Pairs by the upper threshold high, counted at low = 0. Of {len(random):,} random"
    )
    chart = contents.charts[0]
    assert chart.title == "How many negatives"
    scores = JUDGED.known_scores[ns.detectors.one_per_anchor(WORLD.known.pairs()[0], rng=ns.rng_for(0))]
    area = np.mean([(np.sum(random < one) + 0.5 * np.sum(random == one)) / len(random) for one in scores])
    assert f"have an AUC of {area:.4g}" in chart.caption
    run = estimate(0.8, [0.6, 0.7], k_max=50)
    given = told(JUDGED, tmp_path, monkeypatch, run=run).charts[0]
    assert f"v is largest at k = {run.k}" in given.description
    assert (5, float(run.curve[4]), "in use") in given.table.rows or run.k == 5
    worse = told(JUDGED, tmp_path, monkeypatch, background=np.full(9, 2.0))
    assert worse.notes[-1].endswith("positives against random pairs have AUC 0.")


def test_a_mined_brings_its_own_random_pairs(tmp_path, monkeypatch):
    caught = []
    monkeypatch.setattr(reported, "write_report", lambda path, contents: caught.append(contents) or path)
    JUDGED.report(tmp_path / "report.html")
    rescored = mine(QUERIES, CORPUS, WORLD.known, 5, rescore=lambda anchors, ids: ids * 0.001, judge=Absolute(9.0))
    rescored.report(tmp_path / "report.html")  # whose scores are of another kind than those of the vectors
    assert [contents.charts[0].title == "How many negatives" for contents in caught] == [True, False]


def test_many_anchors_are_sampled_and_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(reported, "_SLOTS", 5000)
    contents = told(JUDGED, tmp_path, monkeypatch)
    assert len(contents.scores.sample.k) == 50
    assert contents.scores.sample.of_anchors == 150
    assert len(contents.scores.dropped) < 50 * 100
    assert "Distributions, difficulty and examples are of 50 random anchors." in contents.notes
    assert figures(contents).negatives == 750
    assert contents.tables[0].rows == told(JUDGED, tmp_path, monkeypatch, seed=1).tables[0].rows


def test_numbers_provenance_and_a_part_of_the_anchors(tmp_path, monkeypatch):
    contents = told(
        JUDGED,
        tmp_path,
        monkeypatch,
        title="Job",
        numbers={"negatives": "9", "recall": "0.97"},
        provenance={"seed": "7"},
        of_anchors=3000,
    )
    assert contents.title == "Job"
    assert (contents.numbers["negatives"], contents.numbers["recall"], contents.numbers["anchors"]) == (
        "9",
        "0.97",
        "3,000",
    )
    assert contents.provenance["seed"] == "7"
    assert contents.provenance["metric"] == "cosine"
    assert len(contents.provenance["negatives, sha256 of the ids"]) == 64
    assert figures(contents).negatives == 15_000
    assert contents.advice[0].startswith("Train on these 9 negatives: ")
    assert "empty slots" not in contents.numbers  # of a part they say nothing
    assert contents.notes[0].startswith("This page shows 150 of 3,000 anchors")
    assert "false negatives, upper estimate" in contents.numbers
    theirs = told(JUDGED, tmp_path, monkeypatch, numbers={"estimated false negatives": "1 %"}, of_anchors=3000)
    assert "false negatives, upper estimate" not in theirs.numbers
    assert theirs.advice[0].startswith("Train on these negatives: ")


def test_the_same_job_gives_the_same_bytes(tmp_path, monkeypatch):
    first = write_to_page(JUDGED, tmp_path, monkeypatch)
    assert write_to_page(mine(QUERIES, CORPUS, WORLD.known, 5, judge="calibrated"), tmp_path, monkeypatch) == first
    data = json.loads(re.search(r'id="data">(.*?)</script>', first)[1])
    assert len(data["sample"]["scores"]) == 15_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"corpus_texts": ["a"]},
            r"^report_mined: `corpus_texts` must be of the same length as the others, got corpus_texts 1, rows 600",
        ),
        ({"query_ids": 3}, r"^report_mined: `query_ids` must be a sequence, or None, got int\.$"),
        (
            {"one_positive": [1.0]},
            r"`one_positive` must be of shape \(150,\), one for each anchor, got shape \(1,\)\.$",
        ),
        ({"run": 3}, r"^report_mined: `run` must be an Estimate, of quantity\.estimate, or None, got int\.$"),
        ({"of_anchors": 3}, r"^report_mined: `of_anchors` must be at least 150, got 3\.$"),
    ],
)
def test_errors(tmp_path, options, message):
    with pytest.raises(NaysayError, match=message):
        report_mined(JUDGED, tmp_path / "report.html", **options)


def test_what_is_no_mined_and_no_place(tmp_path):
    with pytest.raises(NaysayError, match=r"^report_mined: `mined` must be a Mined, got dict\.$"):
        report_mined({}, tmp_path / "report.html")
    with pytest.raises(NaysayError, match=r"^report_mined: `path` must be a file, got the folder"):
        report_mined(JUDGED, tmp_path)


def test_ids_of_any_size():
    labels = Labels("query", None, [7, 10**5000, "name"], 3)
    assert [labels[row] for row in range(3)] == ["7", "a number of more than 4,300 digits", "name"]
