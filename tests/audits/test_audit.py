"""The whole audit: findings on planted worlds and on sets made by hand, JSON, and errors."""

import json
from dataclasses import replace

import numpy as np
import pytest
from family_world import families
from small_sets import a_set

import naysay as ns
from naysay.audits import Audit, audit, report_audit
from naysay.audits.advice import advice_on
from naysay.audits.report import contents_of
from naysay.formats import read_negatives, write_negatives

WORLD = families(200, sizes=(2,), others=100)
SIDES = {"query_vectors": WORLD.anchor_vectors, "corpus_vectors": WORLD.item_vectors}
NEAREST = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 8, judge=None)
FOUND = audit(NEAREST, **SIDES)
TEXTS = {
    "query_texts": [f"question {row}" for row in range(200)],
    "corpus_texts": [f"document number {row} about {row % 7} things and {row % 31} more" for row in range(500)],
}


# ---- findings -------------------------------------------------------------------------------------------------------


def test_nearest_negatives_are_suspected_and_the_truth_is_in_the_interval():
    truth = WORLD.false_negative_rate(np.arange(200), NEAREST.ids)
    assert FOUND.false_share.low <= truth <= FOUND.false_share.high
    assert (FOUND.anchors, FOUND.negatives, FOUND.documents, FOUND.proven) == (200, 1600, 500, 0)
    threshold = FOUND.thresholds["half false"]
    by_score = NEAREST.scores >= np.float32(threshold)
    assert FOUND.suspected == sum(FOUND.suspected_by.values()) == by_score.sum()
    assert WORLD.is_false_negative(np.arange(200), NEAREST.ids)[by_score].mean() > 0.4  # about half, by estimate
    assert FOUND.rule == f"Score {threshold:.4g} or higher: at least half of these negatives are false by estimate."
    trade = FOUND.trade
    assert FOUND.advice[0] == (
        f"Mine again with naysay mine, or drop the {trade.dropped} negatives most likely to be false "
        f"({trade.dropped / 16:.1f} % of the set): this brings their share within 5 %, and lowers the mean score from "
        f"{trade.hardness_before:.3f} to {trade.hardness_after:.3f}."
    )
    assert trade.before == FOUND.false_share.estimate > 0.05 >= trade.after
    assert FOUND.gradient_share.counts["suspected"] == FOUND.suspected
    assert sum(FOUND.gradient_share.counts.values()) == 1600
    assert FOUND.gradient_share.shares["suspected"] > 0.5


def test_uniform_negatives_are_too_easy():
    drawn = ns.pools.Everything(WORLD.known).draw(ns.Query(np.arange(200)), 8, rng=ns.rng_for(0)).ids
    easy = audit(a_set(drawn, [*zip(*WORLD.known.pairs(), strict=True)], n_items=500), **SIDES)
    assert any("no gradient at temperature 0.05" in sentence for sentence in easy.advice)


def test_the_corpus_may_be_larger_than_the_set_and_in_another_order(tmp_path):
    NEAREST.write(tmp_path / "train.jsonl", "n-tuple", **TEXTS)
    read = read_negatives(tmp_path / "train.jsonl")
    assert len(read.corpus_texts) < 500
    rng = np.random.default_rng(0)
    mixed = [rng.permutation(200), rng.permutation(500)]
    found = audit(
        tmp_path / "train.jsonl",
        query_vectors=WORLD.anchor_vectors[mixed[0]],
        corpus_vectors=WORLD.item_vectors[mixed[1]],
        query_ids=[TEXTS["query_texts"][row] for row in mixed[0]],
        corpus_ids=[TEXTS["corpus_texts"][row] for row in mixed[1]],
    )
    assert (found.negatives, found.documents, found.duplicates) == (1600, 500, 0)
    assert found.thresholds["calibrated"] == FOUND.thresholds["calibrated"]
    assert found.gradient_share.shares["suspected"] == pytest.approx(FOUND.gradient_share.shares["suspected"], abs=0.02)
    assert found.k_verdict.auc == pytest.approx(FOUND.k_verdict.auc, abs=0.02)
    assert found.worst[0].negative_text == TEXTS["corpus_texts"][FOUND.worst[0].negative]


def test_scores_alone():
    held = audit(NEAREST)  # it holds its candidates
    assert held.false_share.estimate == pytest.approx(FOUND.false_share.estimate, rel=0.1)
    assert held.k_verdict.verdict == "unknown"
    assert set(held.thresholds) == {"half false", "calibrated"}
    alone = audit(NEAREST, scores=NEAREST.scores, positive_scores=NEAREST.known_scores)
    assert alone.summary.startswith("At most ")
    assert alone.false_share.bound
    assert (alone.trade, set(alone.thresholds)) == (None, {"calibrated"})
    assert alone.advice[0] == "Review the worst rows."
    assert alone.suspected == 0
    given = audit(
        a_set(NEAREST.ids, list(zip(*WORLD.known.pairs(), strict=True)), n_items=500),
        scores=NEAREST.scores,
        positive_scores=NEAREST.known_scores,
    )
    assert (given.suspected, given.false_share) == (alone.suspected, alone.false_share)


@pytest.mark.parametrize(("name", "suffix"), [("triplet", "parquet"), ("labelled-list", "jsonl"), ("ids", "parquet")])
def test_scores_in_the_file(tmp_path, name, suffix):
    path = tmp_path / f"train.{suffix}"
    write_negatives(
        path,
        name,
        ids=NEAREST.ids,
        positives=WORLD.known,
        scores=NEAREST.scores,
        positive_scores=NEAREST.known_scores,
        with_scores=True,
        **({} if name == "ids" else TEXTS),
    )
    found = audit(path)
    alone = audit(NEAREST, scores=NEAREST.scores, positive_scores=NEAREST.known_scores)
    assert (found.suspected, found.thresholds) == (alone.suspected, alone.thresholds)
    assert found.gradient_share.shares == pytest.approx(alone.gradient_share.shares)
    assert found.k_verdict.verdict == "unknown"


def test_few_labels_suspect_nothing_by_score():
    few = a_set(NEAREST.ids, list(zip(*WORLD.known.pairs(), strict=True))[:10], n_items=500)
    found = audit(few, **SIDES)
    assert (found.is_unknown, "score" in found.suspected_by, set(found.thresholds)) == (True, False, {"low", "high"})
    alone = audit(few, scores=NEAREST.scores)
    assert (alone.gradient_share, alone.suspected, alone.thresholds) == (None, 0, {})


def test_neither_scores_nor_vectors():
    found = audit(
        a_set([[0, 1], [2, -1]], [(0, 0), (1, 3)], query_texts=["a", "b"], corpus_texts=["p", "q", "B.", "r"])
    )
    assert (found.proven, found.suspected_by) == (2, {"positive": 1, "anchor": 1})
    assert np.isnan(found.false_share.estimate)
    assert (found.false_share.low, found.false_share.high) == (2 / 3, 1.0)
    assert found.advice == ("Remove 2 negatives equal to the anchor or to a known positive: certainly false.",)
    assert found.gradient_share is None
    assert found.thresholds == {}
    assert "unknown without scores" in str(found)
    clean = audit(a_set([[1]], [(0, 0)], n_items=3))
    assert clean.advice == ("No copies or repeated documents found. Pass vectors or scores to check the rest.",)


def sides(queries, corpus):
    """In float32, as all vectors here: loops for float64 would be compiled for these sets alone."""
    return {"query_vectors": np.asarray(queries, np.float32), "corpus_vectors": np.asarray(corpus, np.float32)}


RNG = np.random.default_rng(0)
EDGE = np.stack([RNG.permutation(50)[:3] for _ in range(30)])
EDGE_SIDES = sides(RNG.normal(size=(30, 4)), RNG.normal(size=(50, 4)))
OWN = [(row, row) for row in range(30)]


@pytest.mark.parametrize(
    ("ids", "pairs", "n_items", "options"),
    [
        (EDGE, [], 50, EDGE_SIDES),
        (EDGE, [], 50, {"scores": RNG.normal(size=(30, 3))}),
        ([[1, 2]], [(0, 0)], 50, sides(RNG.normal(size=(1, 4)), EDGE_SIDES["corpus_vectors"])),
        ([[0]], [(0, 0)], 1, sides([[1.0, 2.0]], [[2.0, 1.0]])),
        ([[0], [1]], [(0, 0), (0, 1), (1, 0)], 2, sides(np.eye(2), np.eye(2))),
        (np.where(np.arange(30)[:, None] % 2, EDGE, -1), OWN, 50, EDGE_SIDES),
        (EDGE, OWN, 50, sides(np.ones((30, 4)), np.ones((50, 4)))),
        (EDGE, OWN, 50, sides(EDGE_SIDES["query_vectors"], np.zeros((50, 4))) | {"metric": "l2"}),
        (EDGE, OWN, 50, EDGE_SIDES | {"top": 0}),
        ([[(row + 1) % 30] for row in range(30)], OWN, 30, sides(np.eye(30), np.eye(30))),
    ],
)
def test_odd_sets_are_answered(ids, pairs, n_items, options):
    found = audit(a_set(ids, pairs, n_items=n_items), **options)
    assert found.negatives == (np.array(ids) >= 0).sum()
    share = found.false_share
    estimate = share.low if found.is_unknown else share.estimate
    assert 0 <= share.low <= estimate <= share.high <= 1
    assert np.isnan(share.estimate) == found.is_unknown
    assert json.loads(found.to_json(), parse_constant=pytest.fail)["anchors"] == found.anchors
    assert str(found)
    assert contents_of(found).advice[: 1 + len(found.advice)] == (found.summary, *found.advice)


def test_a_report_of_each_kind(tmp_path):
    page = report_audit(FOUND, tmp_path / "a.html", title="<b>my</b> set").read_text()
    for part in ("&lt;b&gt;my&lt;/b&gt; set", "Gradient share", "Upper threshold", "random"):
        assert part in page
    plain = contents_of(audit(a_set([[1]], [(0, 0)], n_items=3)))
    assert (plain.scores, plain.charts, plain.examples) == (None, (), ())
    whole = contents_of(FOUND)
    assert len(whole.scores.kept) + len(whole.scores.dropped) == 1600
    assert len(whole.scores.dropped) == FOUND.suspected
    assert whole.scores.high == FOUND.thresholds["half false"]


def test_the_same_seed_gives_the_same_audit_and_metrics_differ():
    assert audit(NEAREST, **SIDES).to_json() == FOUND.to_json()
    for metric in ("dot", "l2"):
        other = audit(NEAREST, **SIDES, metric=metric)
        assert other.settings["metric"] == metric
        assert other.k_verdict.auc == pytest.approx(FOUND.k_verdict.auc, abs=1e-3)  # unit vectors: the same order


def test_commands_are_quoted_and_name_the_files(tmp_path):
    folder = tmp_path / "my 'sets'"
    folder.mkdir()
    NEAREST.write(folder / "train.parquet", "ids")
    for name, vectors in SIDES.items():
        np.save(folder / f"{name}.npy", vectors)
    files = {name: folder / f"{name}.npy" for name in SIDES}
    mine, again = audit(folder / "train.parquet", **files, metric="dot").commands
    assert mine.startswith("naysay mine '/")
    assert "'\"'\"'sets'\"'\"'" in mine
    assert "--metric dot -k " in mine
    assert "train-mined.parquet" in again
    odd = folder / "a\x1b[31m.parquet"
    (folder / "train.parquet").rename(odd)
    assert all("\x1b" not in command for command in audit(odd, **files).commands)


# ---- as text and as JSON --------------------------------------------------------------------------------------------


def test_json_holds_all_of_it(tmp_path):
    kept = json.loads(FOUND.write(tmp_path / "out.json").read_text(), parse_constant=pytest.fail)
    assert kept["false_share"]["estimate"] == FOUND.false_share.estimate
    assert kept["gradient_share"]["shares"] == FOUND.gradient_share.shares
    assert kept["k_verdict"]["verdict"] == FOUND.k_verdict.verdict
    assert kept["repeats"]["most_frequent"] == [list(each) for each in FOUND.repeats.most_frequent]
    assert kept["worst"][0]["anchor_text"] == FOUND.worst[0].anchor_text
    assert kept["settings"] == {"metric": "cosine", "temperature": 0.05, "alpha": 0.05, "seed": 0}
    assert (kept["commands"], kept["notes"], kept["advice"]) == (
        list(FOUND.commands),
        list(FOUND.notes),
        list(FOUND.advice),
    )
    assert not [name for name in kept if name.startswith("_")]
    odd = audit(a_set([[1]], [(0, 0)], query_texts=["\ud800"], corpus_texts=["\x00", "b"]))
    assert json.loads(odd.to_json())["negatives"] == 1
    assert isinstance(FOUND, Audit)


# ---- errors ---------------------------------------------------------------------------------------------------------


def audited(negatives=NEAREST, **options):
    return audit(negatives, **options)


# (what is called, its keywords, the parameter that the error names)
INVALID = [
    (audited, {"negatives": "lost.parquet"}, "negatives"),
    (audited, {"negatives": "lost.jsonl", "format": "tripet"}, "format"),
    (audited, {"negatives": a_set([[-1]], [(0, 0)])}, "negatives"),
    (audited, {"metric": "cosin"}, "metric"),
    (audited, {"temperature": "warm"}, "temperature"),
    (audited, {"top": -1}, "top"),
    (audited, {"seed": -1}, "seed"),
    (audited, {"format": "ids"}, "format"),
    (audited, {"query_vectors": [[1.0]]}, "corpus_vectors"),
    (audited, {"corpus_vectors": [[1.0]]}, "query_vectors"),
    (audited, SIDES | {"scores": [[1.0]]}, "scores"),
    (audited, {"query_ids": ["a"]}, "query_ids"),
    (audited, {"positive_scores": [1.0]}, "positive_scores"),
    (audited, {"scores": [[1.0]]}, "scores"),
    (audited, {"scores": np.full((200, 8), "a")}, "scores"),
    (audited, {"scores": np.full((200, 8), np.nan)}, "scores"),
    (audited, SIDES | {"query_vectors": np.ones((200, 3))}, "query_vectors"),
    (audited, SIDES | {"query_vectors": np.ones((20, 48))}, "query_vectors"),
    (audited, SIDES | {"query_vectors": np.zeros((200, 48))}, "query_vectors"),
    (audited, SIDES | {"corpus_vectors": WORLD.item_vectors * np.nan}, "corpus_vectors"),
    (audited, SIDES | {"query_ids": np.array(3)}, "query_ids"),
    (audited, SIDES | {"corpus_ids": 1.5}, "corpus_ids"),
    (audited, SIDES | {"corpus_ids": ["a"]}, "corpus_ids"),
    (report_audit, {"audit": 3, "path": "a.html"}, "audit"),
    (report_audit, {"audit": FOUND, "path": None}, "path"),
    (report_audit, {"audit": FOUND, "path": "a.html", "files": 3}, "files"),
    (report_audit, {"audit": FOUND, "path": "a.html", "files": {"a": 1}}, "files['a']"),
    (report_audit, {"audit": FOUND, "path": "a.html", "title": 3}, "title"),
    (FOUND.write, {"path": b"x"}, "path"),
    (FOUND.write, {"path": "no/out.json"}, "path"),
]


@pytest.mark.parametrize(
    ("call", "options", "parameter"), INVALID, ids=[f"{row[2]}-{place}" for place, row in enumerate(INVALID)]
)
def test_an_invalid_call_names_its_parameter_and_writes_nothing(tmp_path, monkeypatch, call, options, parameter):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ns.NaysayError) as caught:
        call(**options)
    assert caught.value.parameter == parameter
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "parameter"),
    [("a\nb\n", "corpus_ids"), ("a\nb\nc\nd\n", None), ("a\nb\nx\nd\n", "corpus_ids")],
)
def test_names_of_vectors_are_read_from_a_file(tmp_path, text, parameter):
    """One name a line; all names of the set must be among them."""
    (tmp_path / "names.txt").write_text(text)
    (tmp_path / "set.jsonl").write_text('{"query": "q", "pos": ["c"], "neg": ["a", "d"]}\n')
    vectors = {"query_vectors": np.ones((1, 2), np.float32), "corpus_vectors": np.eye(4, 2, dtype=np.float32) + 1}
    given = {**vectors, "corpus_ids": tmp_path / "names.txt"}
    if parameter is None:
        assert audit(tmp_path / "set.jsonl", **given).documents == 4
        return
    with pytest.raises(ns.NaysayError) as caught:
        audit(tmp_path / "set.jsonl", **given)
    assert caught.value.parameter == parameter


# ---- what is certain comes first ------------------------------------------------------------------------------------


def test_certain_findings_come_first_in_text_json_and_html():
    ids = NEAREST.ids.copy()
    anchors, items = WORLD.known.pairs()
    pairs = [*zip(anchors.tolist(), items.tolist(), strict=True), (0, int(items[1])), (0, int(ids[0, 7]))]
    ids[1, 0], ids[1, 1] = ids[0, 7], items[2]  # of anchor 1: a positive of anchor 0, which shares items[1] with it
    ids[3, 0] = items[3]
    found = replace(audit(a_set(ids, pairs, n_items=500), **SIDES), duplicates=2)
    found = replace(found, advice=advice_on(found))
    assert (found.suspected_by["positive"], found.suspected_by["transitive"]) == (2, 1)
    assert found.summary.startswith("2 of 1,600 negatives are certainly false. Estimated false negatives: ")
    starts = ("Remove 2 negatives equal to", "Review 1 negative that is a positive of another", "Remove 2 duplicates")
    assert all(sentence.startswith(start) for sentence, start in zip(found.advice, starts, strict=False))
    assert found.advice[3].startswith("Mine again with naysay mine")
    assert [*found.findings()][:5] == ["set", "certain", "copies", "duplicates", "false"]
    assert found.findings()["certain"] == "2 (0.12 %): positive 2"
    keys = [*json.loads(found.to_json())]
    order = ["summary", "name", "anchors", "negatives", "documents", "proven", "duplicates", "suspected_by"]
    assert keys[: len(order)] == order
    assert keys.index("false_share") > keys.index("suspected_by")
    page = contents_of(found)
    assert page.advice[:2] == (found.summary, found.advice[0])
    assert [*page.numbers][2:5] == ["certainly false", "copies", "false, estimated"]
    assert page.tables[0].title == "Suspected"


def test_within_the_target_nothing_need_be_dropped():
    """0.1 advised to drop 88 % of a set of which it estimated 0.78 % to be false."""
    judged = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 8)
    found = audit(judged, **SIDES)
    assert found.false_share.estimate <= 0.0505
    assert found.advice[0] == (
        "Nothing need be dropped: the estimate is within 5 %. To be sure, review the worst rows."
    )
    assert (found.trade.dropped, found.trade.after) == (0, found.false_share.estimate)
    sure = replace(found, false_share=replace(found.false_share, high=0.04))
    assert advice_on(sure)[0] == "Nothing need be dropped: even the upper end of the interval is within 5 %."
    much = replace(found, trade=replace(found.trade, dropped=1500))
    assert advice_on(much)[0] == (
        "Mine again with naysay mine: to come within 5 % by dropping alone, 93.8 % of the set would have to go."
    )


def test_an_encoder_that_hardly_separates_gives_no_number():
    world = ns.planted_world(200, 500, per_anchor=8, known_share=0.5, noise=1.0)
    mined = ns.mine(world.anchor_vectors, world.item_vectors, world.known, 8, judge=None)
    found = audit(mined, query_vectors=world.anchor_vectors, corpus_vectors=world.item_vectors)
    assert found.summary.startswith("How many of 1,600 negatives are false cannot be told; at most about ")
    assert (found.trade, "score" in found.suspected_by) == (None, False)
    assert any(note.startswith("Only an upper ") for note in found.notes)
    assert contents_of(found).numbers["false, estimated"] == "unknown"
