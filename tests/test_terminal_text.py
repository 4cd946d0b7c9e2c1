"""Names of files and texts of users cannot move the cursor: control characters are printed as escapes."""

import json
import os
import re

import numpy as np
import pytest

from naysay import cli

ESCAPE = "\x1b[31m"
BELL_AND_MORE = f"a{ESCAPE}\x07\x08\x9b\u202e b"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("q.npy", np.eye(3, 4, dtype=np.float32))
    np.save("c.npy", np.eye(5, 4, dtype=np.float32) + 0.1)
    with open("pairs.csv", "w") as pairs:
        pairs.write("anchor,positive\nq0,d0\nq1,d1\nq2,d2\n")
    with open("docs.jsonl", "w") as docs:
        docs.writelines(json.dumps({"id": f"d{row}", "text": f"text {row}"}) + "\n" for row in range(5))
    return tmp_path


@pytest.fixture
def printed(folder, capsys):
    """Run a command; return its exit code, and all that it printed."""

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(list(words))
        said = capsys.readouterr()
        return ended.value.code, said.out + said.err

    return run


MINE = ["mine", "pairs.csv", "--corpus", "docs.jsonl", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]


def test_the_names_of_outputs_are_escaped(printed):
    for _ in range(2):  # the second time the file is there already
        code, text = printed(*MINE, "-k", "1", "-o", f"{BELL_AND_MORE}.jsonl")
        assert code == 0
        assert RAW.search(text) is None
        assert "a\\x1b[31m" in text
    assert os.path.exists(f"{BELL_AND_MORE}.jsonl")


def test_the_names_of_reports_are_escaped(printed):
    log = f"{BELL_AND_MORE}.jsonl"
    with open(log, "w") as file:
        file.write('{"naysay": "run", "format": 1}\n{"step": 1, "scalars": {"repeats": 0.5}}\n')
    code, text = printed("report", log)
    assert code == 0
    assert RAW.search(text) is None
    assert "a\\x1b[31m" in text


def test_texts_and_names_of_an_audit_are_escaped(printed):
    with open(f"{BELL_AND_MORE}.jsonl", "w") as file:
        row = {"anchor": BELL_AND_MORE, "positive": f"p{ESCAPE}", "negative": f"p{ESCAPE}"}
        file.write(json.dumps(row) + "\n")
    code, text = printed("audit", f"{BELL_AND_MORE}.jsonl")
    assert code == 0
    assert RAW.search(text) is None


@pytest.mark.parametrize(
    "words",
    [
        ["audit", f"{ESCAPE}.jsonl"],
        ["report", ESCAPE],
        ["thresholds", f"{ESCAPE}.npy"],
        ["howmany", "--separation", "1.5", "--json", f"no{ESCAPE}/x.json"],
        ["methods", ESCAPE],
        ["compare", ESCAPE, "--task", ESCAPE],
        [*MINE, "-k", "1", "-o", f"{ESCAPE}.what"],
        [*MINE, "-k", ESCAPE, "-o", "out.jsonl"],
        [*MINE, "-k", "1", "-o", "out.jsonl", "--judge", ESCAPE],
        [*MINE, "-k", "1", "-o", "out.jsonl", "--job", f"no{ESCAPE}/job"],
        [*MINE, "-k", "1", "-o", f"s3://{ESCAPE}/out.jsonl"],
        [*MINE, "-k", "1", "-o", f"odd{ESCAPE}://x/out.jsonl"],
        [ESCAPE],
        ["mine", f"--{ESCAPE}"],
    ],
)
def test_errors_are_escaped(printed, words):
    code, text = printed(*words)
    assert code == 2
    assert RAW.search(text) is None
