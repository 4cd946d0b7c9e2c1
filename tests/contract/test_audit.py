"""audit: how good the negatives of a training set are, where the truth is planted."""

import json

import numpy as np
import pytest

import naysay as ns
from tests.contract import names
from tests.contract.command import run
from tests.contract.mined_world import Families

WORLD = Families(n=250, others=700)
SIDES = {"query_vectors": WORLD.queries, "corpus_vectors": WORLD.corpus}


@pytest.fixture(scope="module")
def nearest():
    return ns.mine(WORLD.queries, WORLD.corpus, WORLD.labelled, 6, judge=None)


@pytest.fixture(scope="module")
def found(nearest):
    return ns.audit(nearest, **SIDES)


@pytest.fixture(scope="module")
def files(tmp_path_factory, nearest):
    folder = tmp_path_factory.mktemp("audit")
    WORLD.write(folder)
    nearest.write(folder / "train.jsonl", format="ids")
    return folder


def test_the_interval_holds_the_planted_share(found, nearest):
    truth = WORLD.false_share(nearest.ids)
    assert truth > 0.1
    assert found.false_share.low <= truth <= found.false_share.high
    assert found.false_share.estimate == pytest.approx(truth, abs=0.06)
    assert (found.anchors, found.negatives) == (WORLD.n, 6 * WORLD.n)


def test_the_worst_rows_are_mostly_false(found):
    ids = np.array([[worst.negative] for worst in found.worst])
    anchors = np.array([worst.anchor for worst in found.worst])
    false = (ids[:, 0] < 3 * WORLD.n) & (ids[:, 0] // 3 == anchors)
    assert false.mean() >= 0.7


def test_random_negatives_are_easy_and_hardly_false(found):
    pool = ns.pools.Everything(ns.Positives.from_pairs(np.arange(WORLD.n), WORLD.labelled, WORLD.n, WORLD.n_items))
    drawn = pool.draw(ns.Query(np.arange(WORLD.n)), 6, rng=ns.rng_for(0)).ids
    mined = ns.mine(WORLD.queries, WORLD.corpus, WORLD.labelled, 6, judge=None, select="random", depth=WORLD.n_items)
    easy = ns.audit(mined, **SIDES)
    assert easy.false_share.estimate < 0.05 < found.false_share.estimate
    assert easy.gradient_share.counts["easy"] > found.gradient_share.counts["easy"]
    assert drawn.shape == mined.ids.shape


def test_positives_among_the_negatives_are_proven(files, tmp_path):
    rows = [json.loads(line) for line in (files / "train.jsonl").read_text().splitlines()]
    for row in rows[:7]:
        row["negatives"][0] = row["positives"][0]
    (tmp_path / "bad.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert ns.audit(tmp_path / "bad.jsonl", format="ids", **SIDES).proven == 7


def test_a_file_and_what_was_mined_are_audited_alike(files, found):
    again = ns.audit(files / "train.jsonl", **SIDES)
    assert again.false_share.estimate == pytest.approx(found.false_share.estimate, abs=0.02)
    assert (again.anchors, again.negatives) == (found.anchors, found.negatives)


def test_the_command_writes_json_and_a_page_and_fails_a_gate(files):
    words = ["audit", "train.jsonl", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]
    done = run(*words, "--json", "a.json", "--report", "a.html", folder=files)
    assert done.code == 0, done.err
    told = json.loads((files / "a.json").read_text())
    assert told["false_share"]["estimate"] > 0.1
    assert "<html" in (files / "a.html").read_text()[:200].lower()
    assert run(*words, "--fail-above", "2%", folder=files).code == 1
    assert run(*words, "--fail-above", "90%", folder=files).code == 0


def test_an_audit_is_a_page_and_json(found, tmp_path):
    names.report_audit(found, tmp_path / "audit.html")
    assert (tmp_path / "audit.html").stat().st_size > 1000
    told = json.loads(found.to_json())
    assert told["false_share"]["estimate"] == pytest.approx(found.false_share.estimate)
