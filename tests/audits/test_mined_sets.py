"""The advice, the examples and the next commands of an audit fit the set: mined negatives are not random ones."""

import json
import shlex

import numpy as np
import pytest
from family_world import families

import naysay as ns
from naysay.cli import main

WORLD = families(200, sizes=(2,), others=100)
VECTORS = {"query_vectors": WORLD.anchor_vectors, "corpus_vectors": WORLD.item_vectors}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    np.save(folder / "q.npy", WORLD.anchor_vectors)
    np.save(folder / "c.npy", WORLD.item_vectors)
    mined = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 8, judge=None)
    mined.write(folder / "mined.parquet", "ids")
    rng = np.random.default_rng(0)
    pool = ns.pools.Everything(WORLD.known)
    random = pool.draw(ns.Query(np.arange(200)), 8, rng=rng)
    ns.formats.write_negatives(folder / "random.parquet", "ids", ids=random.ids, positives=WORLD.known)
    return folder


def audited(files, name, capsys):
    vectors = ["--query-vectors", str(files / "q.npy"), "--corpus-vectors", str(files / "c.npy")]
    with pytest.raises(SystemExit) as ended:
        main(["audit", str(files / name), *vectors, "--json", str(files / "out.json")])
    assert not ended.value.code
    return json.loads((files / "out.json").read_text()), capsys.readouterr().out


def test_k_of_a_mined_set_is_not_judged_as_if_it_were_random(files, capsys):
    found, shown = audited(files, "mined.parquet", capsys)
    assert found["k_verdict"]["verdict"] == "unknown"
    assert found["k_verdict"]["best"] is None
    assert not any("per row" in sentence for sentence in found["advice"])
    assert any(line.startswith("k ") and " 8" in line for line in shown.splitlines())


def test_k_of_a_random_set_is_judged(files, capsys):
    found, _ = audited(files, "random.parquet", capsys)
    assert found["k_verdict"]["verdict"] in ("too small", "too large", "fits")
    assert [shlex.split(command)[1] for command in found["commands"]] == ["mine", "audit", "howmany"]


def test_the_next_commands_of_a_mined_set_mine_it_again_and_audit_that(files, capsys):
    before, _ = audited(files, "mined.parquet", capsys)
    commands = [shlex.split(command) for command in before["commands"]]
    assert [words[1] for words in commands] == ["mine", "audit"]
    for words in commands:
        with pytest.raises(SystemExit) as ended:
            main([*words[1:], *(["--json", str(files / "after.json")] if words[1] == "audit" else [])])
        assert not ended.value.code, capsys.readouterr().err
    after = json.loads((files / "after.json").read_text())
    assert after["false_share"]["estimate"] < before["false_share"]["estimate"]


def test_the_worst_rows_show_each_kind_of_finding(tmp_path):
    """30 anchors whose negative is the text of a positive must not hide the three other kinds."""
    n = 60
    queries = [f"question number {row} of the set" for row in range(n)]
    documents = [f"answer number {row} that belongs to question {row}, said once" for row in range(n)]
    copies = [text.upper() for text in documents]
    others = [f"something else, number {row}, about another matter" for row in range(n)]
    positives = ns.Positives.from_pairs(
        [*range(n), 50], [*range(n), 51], n, 3 * n
    )  # anchor 50 shares the positive of anchor 51
    ids = 2 * n + (np.arange(n)[:, None] + np.array([1, 2])) % n
    ids[:30, 0] = n + np.arange(30)  # the positive in capitals
    corpus = [*documents, *copies, *others]
    corpus[2 * n + 41] = queries[40]
    ids[40, 0] = 2 * n + 41  # the anchor itself
    ids[51, 0] = 50  # a positive of an anchor that shares a positive
    path = tmp_path / "set.jsonl"
    ns.formats.write_negatives(path, "n-tuple", ids=ids, positives=positives, query_texts=queries, corpus_texts=corpus)
    found = ns.audit(path, top=10)
    kinds = [each.reason for each in found.worst]
    assert set(kinds) >= {"same text", "anchor", "transitive"}
    assert kinds.count("same text") == 10 - len([kind for kind in kinds if kind != "same text"])
    assert len({each.anchor for each in found.worst}) == len(found.worst) == 10
