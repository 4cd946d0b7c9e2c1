"""The command line: output, wrong input, exit codes; never a traceback."""

import subprocess
import sys

import pytest

from naysay import __version__, catalog


def naysay(*arguments, **environment):
    command = [sys.executable, "-W", "error", "-m", "naysay.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_help_lists_the_commands():
    done = naysay("--help")
    assert done.returncode == 0
    assert "methods" in done.stdout
    assert "demo" in done.stdout


def test_version():
    assert naysay("--version").stdout == f"naysay {__version__}\n"


def test_methods_lists_every_row():
    done = naysay("methods")
    assert done.returncode == 0
    for method in catalog.methods():
        assert method.name in done.stdout


def test_methods_shows_one_row_in_full():
    done = naysay("methods", "uniform")
    method, _ = catalog.find("uniform")
    for text in (method.formula, method.parts, method.cost, "Yang et al.", "BPR, LightGCN"):
        assert text in done.stdout
    assert method.example in done.stdout


@pytest.mark.parametrize("name", ["word2vec", "TransE"])
def test_methods_shows_an_alias_with_its_own_example(name):
    done = naysay("methods", name)
    method, alias = catalog.find(name)
    assert f"{name}, a name for {method.name}" in done.stdout
    assert alias.example in done.stdout


def test_an_unknown_method_is_one_sentence_and_exit_2():
    done = naysay("methods", "wrd2vec")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("naysay: methods: `name` must be a name of the catalogue, got 'wrd2vec'. ")
    assert done.stderr.endswith("Did you mean 'word2vec'? `naysay methods` lists them all.\n")
    assert done.stderr.count("\n") == 1


def test_a_wrong_option_is_exit_2_without_a_traceback():
    done = naysay("demo", "--quik")
    assert done.returncode == 2
    assert "--quik" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_seed_is_one_sentence():
    done = naysay("demo", "--quick", "--seed", "-1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "naysay: demo: `seed` must be at least 0, got -1.\n"
