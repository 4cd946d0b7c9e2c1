"""Every command: exit code 0 with its result, 2 with one sentence and nothing half-written, never a traceback."""

import json
import subprocess
import sys

import numpy as np
import pytest

import naysay as ns
from tests.contract import names
from tests.contract.command import ENVIRONMENT, run
from tests.contract.mined_world import Families

WORLD = Families(n=60, others=200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("cli")
    WORLD.write(made)
    np.save(made / "scores.npy", np.random.default_rng(0).uniform(-1, 1, 5000).astype(np.float32))
    (made / "curve.csv").write_text("auc\n0.52\n0.61\n0.66\n")
    nearest = ns.mine(WORLD.queries, WORLD.corpus, WORLD.labelled, 4, judge=None)
    nearest.write(made / "train.jsonl", format="ids", query_ids=[f"q{row}" for row in range(60)])
    users, items = np.nonzero(np.random.default_rng(2).random((40, 60)) < 0.2)
    pairs = [f"u{user},i{item}" for user, item in zip(users.tolist(), items.tolist(), strict=True)]
    (made / "clicks.csv").write_text("\n".join(["user,item", *pairs]) + "\n")
    monitor = ns.difficulty.Monitor(made / "run.jsonl", every=1)
    for step in range(3):
        query, scores = ns.Query([0, 1], step=step), np.array([[0.1, 0.5], [0.2, 0.9]])
        monitor.observe(query, ns.Negatives(np.array([[4, 5], [6, 7]])), scores, positive_scores=np.array([0.6, 0.7]))
    return made


MINE = ["mine", "pairs.parquet", "--corpus", "docs.parquet", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]
GOOD = {
    "version": ["--version"],
    "help": ["--help"],
    "mine": [*MINE, "-k", "3", "-o", "out.jsonl"],
    "audit": ["audit", "train.jsonl", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy", "--json", "audit.json"],
    "thresholds": ["thresholds", "scores.npy", "--positives", "100", "--json", "thresholds.json"],
    "howmany": ["howmany", "--train-auc", "0.75", "--val-auc", "curve.csv", "--json", "howmany.json"],
    "methods": ["methods"],
    "one method": ["methods", "DNS"],
    "report": ["report", "run.jsonl", "-o", "run.html"],
}
WRONG = {
    "no such command": ["mien"],
    "no such option": ["demo", "--quik"],
    "mine: no such file": ["mine", "absent.parquet", "-o", "bad.jsonl"],
    "mine: k of zero": [*MINE, "-k", "0", "-o", "bad.jsonl"],
    "mine: k is a word": [*MINE, "-k", "many", "-o", "bad.jsonl"],
    "mine: unknown judge": [*MINE, "--judge", "oracle", "-o", "bad.jsonl"],
    "mine: unknown metric": [*MINE, "--metric", "hamming", "-o", "bad.jsonl"],
    "mine: unknown format": [*MINE, "--format", "tripple", "-o", "bad.jsonl"],
    "mine: unknown suffix": [*MINE, "-o", "bad.docx"],
    "mine: misspelt column": [*MINE, "--anchor-column", "ancor", "-o", "bad.jsonl"],
    "mine: share above one": [*MINE, "--false-share", "1.5", "-o", "bad.jsonl"],
    "mine: wrong vectors": [*MINE[:-1], "q.npy", "-o", "bad.jsonl"],
    "audit: no such file": ["audit", "absent.jsonl"],
    "audit: not a training set": ["audit", "curve.csv"],
    "audit: bad gate": ["audit", "train.jsonl", "--fail-above", "lots"],
    "thresholds: no such file": ["thresholds", "absent.npy"],
    "thresholds: share": ["thresholds", "scores.npy", "--false-share", "2"],
    "howmany: no AUC": ["howmany"],
    "howmany: AUC above one": ["howmany", "--train-auc", "1.5", "--val-auc", "0.6"],
    "compare: no data": ["compare"],
    "compare: unknown method": ["compare", "clicks.csv", "--methods", "dynamc", "-o", "bad"],
    "compare: unknown task": ["compare", "clicks.csv", "--task", "chess", "-o", "bad"],
    "methods: unknown": ["methods", "no-such-method"],
    "report: no such file": ["report", "absent.jsonl"],
    "report: not a log": ["report", "curve.csv"],
    "demo: bad seed": ["demo", "--seed", "-1"],
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_command_exits_with_0(name, folder):
    done = run(*GOOD[name], folder=folder)
    assert done.code == 0, done.err
    assert done.out
    assert "Traceback" not in done.out + done.err


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_command_exits_with_2_says_why_in_one_sentence_and_writes_nothing(name, folder):
    before = sorted(path.name for path in folder.iterdir())
    done = run(*WRONG[name], folder=folder)
    assert done.code == 2
    lines = done.err.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("naysay: ")
    assert lines[0].endswith((".", "?"))
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_option_is_named_as_it_was_typed(folder):
    assert "--false-share" in run(*WRONG["mine: share above one"], folder=folder).err
    assert "--metric" in run(*WRONG["mine: unknown metric"], folder=folder).err
    assert "--false-share" in run(*WRONG["thresholds: share"], folder=folder).err


def test_the_real_program_ends_in_the_same_way(folder):
    command = [sys.executable, "-m", "naysay.cli", *WRONG["mine: no such file"]]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1


def test_thresholds_of_the_command_are_those_of_the_library(folder):
    run(*GOOD["thresholds"], folder=folder)
    found = json.loads((folder / "thresholds.json").read_text())
    wanted = ns.detectors.choose_thresholds(np.load(folder / "scores.npy"), n_positives=100)
    assert found["high"] == pytest.approx(float(wanted.high))
    assert found["low"] == pytest.approx(float(wanted.low))


def test_howmany_of_the_command_is_that_of_the_library(folder):
    run(*GOOD["howmany"], folder=folder)
    found = json.loads((folder / "howmany.json").read_text())
    assert found[0]["k"] == ns.quantity.estimate(0.75, [0.52, 0.61, 0.66]).k


def test_strings_of_judges_are_those_of_the_library(folder):
    for judge in ("none", "margin:0.05", "share:0.9", names.max_score_judge(0.5), "calibrated:0.1"):
        done = run(*MINE, "-k", 3, "--judge", judge, "--format", "ids", "-o", "judged.jsonl", folder=folder)
        assert done.code == 0, done.err
        rows = [json.loads(line) for line in (folder / "judged.jsonl").read_text().splitlines()]
        mined = ns.mine(WORLD.queries, WORLD.corpus, WORLD.labelled, 3, judge=None if judge == "none" else judge)
        found = [[int(name[1:]) for name in row["negatives"]] for row in rows]
        assert found == [row[row >= 0].tolist() for row in mined.ids]


def test_the_catalogue_shows_a_method_by_any_of_its_names(folder):
    for name in ("DNS", "dynamic", "MoCHi", "WARP", "IFND"):
        assert run("methods", name, folder=folder).code == 0, name
