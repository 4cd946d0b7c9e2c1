"""The examples in docstrings print what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import naysay

SOURCE = Path(naysay.__file__).parent
ELSEWHERE = {"naysay.integrations.pykeen"}  # its package is only in the environment of `make test-integrations`
MODULES = sorted(
    ".".join(("naysay", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", [name for name in MODULES if name not in ELSEWHERE])
def test_the_examples_of_a_module_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0
