"""A stand-in for Vega, which takes a second to bundle."""

import sys
from types import ModuleType

import pytest

STAND_IN = "window.vegaEmbed = async () => ({ view: null });"


@pytest.fixture(scope="module")
def quick():
    """A few letters in place of Vega's script."""
    package = ModuleType("vl_convert")
    package.javascript_bundle = lambda code: STAND_IN
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "vl_convert", package)
        yield STAND_IN
