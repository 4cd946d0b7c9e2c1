"""Reports of tests weigh a few targets: each costs as much as the rest of the page."""

import pytest


@pytest.fixture(autouse=True)
def few_targets(monkeypatch):
    monkeypatch.setattr("naysay.mining._weigh._TARGETS", 6)
