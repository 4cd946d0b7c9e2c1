"""Versions of the frameworks: stated in three places that agree, and named with a command if they do not fit."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from naysay import _packages
from naysay.errors import MissingExtraError
from naysay.integrations import _frameworks

ROOT = Path(__file__).parent.parent.parent


def test_the_extras_and_the_page_have_the_same_ranges():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = (ROOT / "docs" / "integrations.md").read_text().partition("\n\n## ")[0].lower()
    names = {"torch-geometric": "pytorch geometric"}  # as the page calls it
    for package, (extra, first, beyond) in _frameworks.VERSIONS.items():
        if package != "transformers":
            pattern = re.compile(rf"{package}(\[\w+\])?>={re.escape(first)},<{re.escape(beyond)}")
            assert [one for one in extras[extra] if pattern.fullmatch(one)], package
        assert f"\n| {names.get(package, package)} | {first} or newer, below {beyond} | " in table


@pytest.mark.parametrize("package", _frameworks.VERSIONS)
def test_a_missing_framework_is_named_with_its_command(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    with pytest.raises(MissingExtraError) as caught:
        _frameworks.need(package)
    extra = _frameworks.VERSIONS[package][0]
    assert str(caught.value) == f"{package} is not installed. Run in a clone of naysay: pip install '.[{extra}]'"


@pytest.mark.parametrize(
    ("version", "fits"),
    [("2.5.3", False), ("2.6.0", True), ("2.6", True), ("2.10.0a1", True), ("2.8.1+cpu", True), ("3.0", False)],
)
def test_a_version_that_does_not_fit_is_named(version, fits, monkeypatch):
    monkeypatch.setattr(_packages, "version", lambda package: version)
    if fits:
        _frameworks.need("torch-geometric")
        return
    with pytest.raises(MissingExtraError) as caught:
        _frameworks.need("torch-geometric")
    assert f"at least 2.6 and below 3, got {version}. " in str(caught.value)
    assert "pip install '.[pyg]'" in str(caught.value)


def test_a_torch_generator_decides_and_moves_on():
    one, other = (torch.Generator().manual_seed(5) for _ in range(2))
    drawn = [_frameworks.torch_rng(one).integers(1 << 60) for _ in range(2)]
    assert drawn == [_frameworks.torch_rng(other).integers(1 << 60) for _ in range(2)]
    assert drawn[0] != drawn[1]
