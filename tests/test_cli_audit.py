"""The command line of `naysay audit`: output, exit codes 0, 1 and 2, never a traceback."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import naysay as ns
from naysay import cli


@pytest.fixture
def naysay(capsys):
    """A function that runs the command line in this process: exit code, standard output and standard error."""

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main([*map(str, arguments)])
        return ended.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    world = ns.planted_world(100, 300, per_anchor=4, known_share=0.25, noise=0.1, spread=1.0)
    mined = ns.mine(world.anchor_vectors, world.item_vectors, world.known, 4, judge=None)
    mined.write(folder / "a.parquet", "ids")
    np.save(folder / "q.npy", world.anchor_vectors)
    np.save(folder / "c.npy", world.item_vectors)
    return folder


def test_it_prints_writes_and_passes(files, naysay):
    vectors = ("--query-vectors", files / "q.npy", "--corpus-vectors", files / "c.npy")
    words = ("audit", files / "a.parquet", *vectors, "--json", files / "out.json", "--top", "3")
    code, text, error = naysay(*words)
    assert code == 0, error
    assert "400 negatives of 100 anchors" in text
    assert len(json.loads((files / "out.json").read_text())["worst"]) == 3


def test_its_commands_can_be_pasted(files, naysay):
    vectors = ("--query-vectors", files / "q.npy", "--corpus-vectors", files / "c.npy")
    naysay("audit", files / "a.parquet", *vectors, "--json", files / "a.json")
    commands = json.loads((files / "a.json").read_text())["commands"]
    assert [shlex.split(command)[1] for command in commands] == ["mine", "audit"]
    for command in commands:
        code, _, error = naysay(*shlex.split(command)[1:])
        assert code == 0, error


def test_it_fails_with_1_above_the_limit(files, naysay):
    vectors = ("--query-vectors", files / "q.npy", "--corpus-vectors", files / "c.npy")
    code, text, error = naysay("audit", files / "a.parquet", *vectors, "--fail-above", "2%")
    assert (code, error) == (1, "")
    assert "The set fails --fail-above 2.0 %: the upper end of the 95 % CI" in " ".join(text.split())
    assert naysay("audit", files / "a.parquet", *vectors, "--fail-above", "100%")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["lost.parquet"], "negatives"),
        (["lost.parquet", "--fail-above", "much"], "--fail-above"),
        (["lost.parquet", "--json", "no/a"], "--json"),
    ],
)
def test_an_invalid_option_is_named_and_exit_2(arguments, option, naysay):
    code, text, error = naysay("audit", *arguments)
    assert (code, text, error.count("\n")) == (2, "", 1)
    assert error.startswith(f"naysay: audit: `{option}` must be ")


def test_an_unknown_estimate_is_null_and_the_gate_says_why(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = ({"anchor": f"q{row}", "positive": f"d{row}", "negative": f"d{row + 9}"} for row in range(5))
    Path("train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    rng = np.random.default_rng(0)
    np.save("q.npy", rng.normal(size=(5, 4)).astype(np.float32))
    np.save("c.npy", rng.normal(size=(10, 4)).astype(np.float32))
    vectors = ["--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]
    for name, ids in (("query", [f"q{row}" for row in range(5)]), ("corpus", [f"d{row}" for row in range(14)])):
        used = ids if name == "query" else [*ids[:5], *ids[9:]]
        Path(f"{name}.txt").write_text("\n".join(used))
        vectors += [f"--{name}-ids", f"{name}.txt"]
    for given in ([], vectors):
        with pytest.raises(SystemExit) as ended:
            cli.main(["audit", "train.jsonl", *given, "--json", "audit.json", "--fail-above", "2%"])
        error = capsys.readouterr().err
        assert ended.value.code == 2
        assert error.startswith("naysay: audit: `--fail-above` ")
        assert error.count("\n") == 1
        assert "unknown" in error
        assert "19 are needed" in error  # why
        assert ("Pass vectors" in error) == (not given)
        assert json.loads(Path("audit.json").read_text())["false_share"]["estimate"] is None
