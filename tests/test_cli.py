"""The command line: output, wrong input, exit codes; never a traceback."""

import json
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
    for words in (["--help"], []):
        done = naysay(*words)
        assert done.code == (0 if words else 2)
        assert all(
            name in done.out for name in ("methods", "demo", "howmany", "thresholds", "mine", "audit", "compare")
        )


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
    assert process("naysay", "methods", "unifrom") == (done.code, done.out, done.err)
    assert naysay("--version").out == f"naysay {__version__}\n"


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


def test_methods_lists_every_row():
    done = naysay("methods")
    assert done.code == 0
    shown = " ".join(done.out.split())
    assert [method.name for method in catalog.methods() if method.name not in shown] == []
    assert all(f"({question})" in done.out for question in ("where", "which", "distrust", "how_many"))


def test_methods_says_what_a_name_is_that_is_no_row():
    done = naysay("methods", "SeqGAN")
    assert done.out.startswith("SeqGAN (elsewhere)\n")
    assert "samplers.Learned" in done.out
    assert "OHEM" in naysay("methods").out


@pytest.mark.parametrize("name", ["uniform", "word2vec", "TransE"])
def test_methods_shows_what_a_name_is_and_its_program(name):
    done = naysay("methods", name)
    [method] = catalog.find(name)
    for text in (method.like, method.note.split(" ")[0], method.program):
        assert text in done.out


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


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["demo", "--quik"], "--quik"),
        (["mien"], "mien"),
        (["thresholds"], "scores"),
        (["howmany", "--k-max", "many"], "--k-max"),
        (["mine", "pairs.csv", "--budg", "1GB"], "--budg"),
    ],
)
def test_a_wrong_word_is_one_sentence_and_exit_2(words, named):
    done = naysay(*words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("naysay: ")
    assert done.err.endswith((".\n", "?\n"))
    assert named in done.err


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
    ("words", "option"),
    [
        (["lost.npy"], "scores"),
        (["scores.csv"], "scores"),
        (["lost.npy", "--high-grid", "0.1"], "--low-grid"),
        (["lost.npy", "--low-grid", "0:1", "--high-grid", "0.1"], "--low-grid"),
        (["lost.npy", "--json", "no/a.json"], "--json"),
        (["scores.npy", "--false-share", "2"], "--false-share"),
        (["scores.npy", "--hard-share", "-1"], "--hard-share"),
        (["scores.npy", "--positives", "-1"], "--positives"),
        (["scores.npy", "--start-low", "nan"], "--start-low"),
        (["scores.npy", "--column", "a"], "--column"),
    ],
)
def test_an_invalid_option_of_thresholds_is_named(tmp_path, monkeypatch, words, option):
    monkeypatch.chdir(tmp_path)
    np.save("scores.npy", np.arange(10.0))
    done = naysay("thresholds", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"naysay: thresholds: `{option}` must be ")
