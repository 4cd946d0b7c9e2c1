"""The command line: output, wrong input, exit codes; never a traceback."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import typer

from naysay import __version__, catalog
from naysay._commands import AuditOptions, HowmanyOptions, ThresholdOptions
from naysay._options import command_fields, flag_of, option_names
from naysay.cli import app
from tests.fuzz.rules import run


def naysay(*arguments):
    """A command line in this process, which saves loading Python and the library each time."""
    return run(list(arguments))


def process(module, *arguments):
    """A command line in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_help_lists_the_commands():
    done = naysay("--help")
    assert done.code == 0
    assert "methods" in done.out
    assert "demo" in done.out
    assert "howmany" in done.out
    assert "thresholds" in done.out


@pytest.mark.parametrize(
    ("name", "declaration"), [("audit", AuditOptions), ("howmany", HowmanyOptions), ("thresholds", ThresholdOptions)]
)
def test_a_command_has_every_declared_option_and_errors_name_no_other(name, declaration):
    shown = {one.name: one for one in typer.main.get_command(app).commands[name].params}
    declared = list(command_fields(declaration))
    assert list(shown) == [one.name for one in declared]
    for one in declared:
        assert shown[one.name].opts == list(one.metadata["flags"] or [flag_of(one)])
        assert shown[one.name].help == one.metadata["help"]
        assert shown[one.name].required or shown[one.name].default == one.default
    assert set(option_names(declaration).values()) == {flag_of(one) for one in declared}


def test_a_process_of_its_own_gives_the_same():
    done = naysay("methods", "unifrom")
    for module in ("naysay", "naysay.cli"):
        assert process(module, "methods", "unifrom") == (done.code, done.out, done.err)
    assert process("naysay", "--version") == (0, f"naysay {__version__}\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_shell_completion(monkeypatch, capsys, shell):
    monkeypatch.setenv("_NAYSAY_COMPLETE", f"source_{shell}")
    with pytest.raises(SystemExit):
        app(prog_name="naysay")
    printed = capsys.readouterr().out
    assert f"complete_{shell}" in printed
    assert "naysay" in printed


def test_completion_can_be_shown_and_installed():
    shown = " ".join(naysay("--help").out.split())
    assert "--install-completion" in shown
    assert "--show-completion" in shown


@pytest.mark.parametrize(
    ("words", "prefix", "offered"),
    [([], "mi", "mine"), (["mine"], "--rank", "--rank-range"), (["thresholds"], "--fal", "--false-share")],
)
def test_commands_and_options_are_completed(monkeypatch, capsys, words, prefix, offered):
    monkeypatch.setenv("_NAYSAY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["naysay", *words, prefix]))
    monkeypatch.setenv("COMP_CWORD", str(len(words) + 1))
    with pytest.raises(SystemExit):
        app(prog_name="naysay")
    assert offered in capsys.readouterr().out.splitlines()


def test_completion_in_a_process_of_its_own():
    program = "import sys; sys.argv[0] = 'naysay'; from naysay.cli import main; main()"
    line = {"_NAYSAY_COMPLETE": "complete_bash", "COMP_WORDS": "naysay mine --rank", "COMP_CWORD": "2"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | line)
    assert "--rank-range" in done.stdout.splitlines()


def test_methods_lists_every_row():
    done = naysay("methods")
    assert done.code == 0
    shown = " ".join(done.out.split())
    assert [method.name for method in catalog.methods() if method.name not in shown] == []
    assert all(f"({question})" in done.out for question in ("where", "which", "distrust", "how_many"))


def test_methods_shows_one_row_in_full():
    done = naysay("methods", "uniform")
    [method] = catalog.find("uniform")
    for text in (method.formula, method.parts, "O(1) per draw", "Yang et al."):
        assert text in done.out
    assert method.program in done.out


def test_methods_can_be_filtered():
    done = naysay("methods", "--data", "graph", "--needs", "none", "--cost", "medium")
    assert done.code == 0
    assert "uniform" in done.out
    assert "corruption" not in done.out  # of triples
    assert "dynamic" not in done.out  # needs scores
    wrong = naysay("methods", "--data", "grpah")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("naysay: methods: `--data` must be one of 'pairs', 'graph', ")
    assert wrong.err.count("\n") == 1


def test_methods_says_what_a_name_is_that_is_no_row():
    done = naysay("methods", "SeqGAN")
    assert done.out.startswith("SeqGAN (elsewhere)\n")
    assert "samplers.Learned" in done.out
    assert "OHEM" in naysay("methods").out


@pytest.mark.parametrize("name", ["word2vec", "TransE", "DeepWalk"])
def test_methods_shows_what_a_name_is_and_its_program(name):
    done = naysay("methods", name)
    [method] = catalog.find(name)
    assert method.like in done.out
    assert method.note.split()[0] in done.out
    assert method.program in done.out


def test_methods_shows_all_meanings_of_a_name():
    done = naysay("methods", "RNS")
    assert "uniform (where)" in done.out
    assert "ReinforcedNS (which)" in done.out


def test_an_unknown_method_is_one_sentence_and_exit_2():
    done = naysay("methods", "wrd2vec")
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("naysay: methods: `name` must be a name of the catalogue, got 'wrd2vec'. ")
    assert done.err.endswith("Did you mean 'word2vec'? `naysay methods` lists them all.\n")
    assert done.err.count("\n") == 1


def test_a_wrong_option_is_exit_2_without_a_traceback():
    done = naysay("demo", "--quik")
    assert done.code == 2
    assert "--quik" in done.err
    assert "Traceback" not in done.err


def test_a_bad_seed_is_one_sentence():
    done = naysay("demo", "--quick", "--seed", "-1")
    assert done.code == 2
    assert done.out == ""
    assert done.err == "naysay: demo: `--seed` must be at least 0, got -1.\n"


def test_thresholds_of_a_file(tmp_path):
    np.save(tmp_path / "scores.npy", np.arange(1000.0) / 1000)
    out = tmp_path / "out.json"
    grids = ("--low-grid", "0.8:0.99:0.01", "--high-grid", "0.998,0.999,1")
    done = naysay("thresholds", str(tmp_path / "scores.npy"), "--n-positives", "10", *grids, "--json", str(out))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("low = 0.94, high = 0.999 for ")
    assert json.loads(out.read_text())["table"]["high"][1]["false"] == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lost.npy"], "naysay: thresholds: `scores` must be an existing file, got 'lost.npy'.\n"),
        (
            ["scores.csv"],
            "naysay: thresholds: `scores` must be a file that ends in .npy or .parquet, got 'scores.csv'.\n",
        ),
        (
            ["lost.npy", "--high-grid", "0.1"],
            "naysay: thresholds: `--low-grid` must be given together with --high-grid, got nothing.\n",
        ),
        (
            ["lost.npy", "--low-grid", "0:1", "--high-grid", "0.1"],
            "naysay: thresholds: `--low-grid` must be numbers separated by commas, or first:last:step, got '0:1'.\n",
        ),
        (
            ["lost.npy", "--plot", "a.html"],
            "naysay: thresholds: `--plot` must be a file that ends in .svg or .png, got 'a.html'.\n",
        ),
        (
            ["lost.npy", "--json", "no/a.json"],
            "naysay: thresholds: `--json` must be in an existing folder, got 'no/a.json'.\n",
        ),
    ],
)
def test_wrong_input_of_thresholds_is_one_sentence(arguments, sentence):
    done = naysay("thresholds", *arguments)
    assert (done.code, done.out, done.err) == (2, "", sentence)


SHARE = "a number at least 0 and at most 1"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--false-share", "2"], f"naysay: thresholds: `--false-share` must be {SHARE}, got 2.0.\n"),
        (["--hard-share", "-1"], f"naysay: thresholds: `--hard-share` must be {SHARE}, got -1.0.\n"),
        (["--positives", "-1"], "naysay: thresholds: `--positives` must be at least 0, got -1.\n"),
        (["--start-low", "nan"], "naysay: thresholds: `--start-low` must be a number, got nan.\n"),
        (
            ["--column", "a"],
            "naysay: thresholds: `--column` must be left out, unless scores is a .parquet file, got 'a'.\n",
        ),
    ],
)
def test_wrong_options_of_thresholds_are_one_sentence(tmp_path, options, sentence):
    np.save(tmp_path / "scores.npy", np.arange(10.0))
    done = naysay("thresholds", str(tmp_path / "scores.npy"), *options)
    assert (done.code, done.out, done.err) == (2, "", sentence)
