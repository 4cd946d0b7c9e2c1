"""The detectors of the catalogue: each is listed, runs, and keeps the promises of a detector."""

import inspect

import numpy as np
import pytest
from catalog_programs import run

import naysay as ns
from naysay import catalog
from naysay.testing import PromiseBroken

ROWS = {row.name: row for row in catalog.detectors()}
KINDS = ("threshold", "clustering", "mixture", "agreement", "opinion", "identity")


@pytest.mark.parametrize("name", ROWS)
def test_every_example_runs_and_its_detector_conforms(name):
    names = run(ROWS[name].example, name)
    query, negatives = names["query"], names["negatives"]
    assert np.shape(names["suspicion"]) == negatives.shape
    assert (np.asarray(names["suspicion"]) > 0).any()  # an example that suspects nobody shows nothing
    ns.check_detector(names["detector"], query, negatives)
    ns.check_detector(names["detector"], query, negatives.to("cpu"))


def test_every_detector_of_the_package_is_listed():
    public = {name for name in ns.detectors.__all__ if hasattr(getattr(ns.detectors, name), "suspicion")}
    public = {name for name in public if inspect.isfunction(getattr(ns.detectors, name).suspicion)}
    listed = {row.name.removeprefix("detectors.").split(" ")[0] for row in catalog.detectors()}
    assert public <= listed


@pytest.mark.parametrize("row", catalog.detectors(), ids=lambda row: row.name)
def test_kinds_and_parts_exist(row):
    assert row.kind in KINDS
    assert hasattr(ns.detectors, row.parts.split("(")[0]), row.parts


def test_find_knows_detectors_with_and_without_their_folder():
    assert catalog.find("detectors.calibrated") == catalog.find("Calibrated") == (ROWS["detectors.Calibrated"], None)
    assert catalog.find("ifnd")[0] is ROWS["detectors.Incremental"]


def test_a_detector_that_suspects_empty_slots_would_be_found():
    names = run(ROWS["detectors.Calibrated"].example)

    class Careless:
        def suspicion(self, query, negatives):
            return np.ones(negatives.shape)

    with pytest.raises(PromiseBroken, match="empty"):
        ns.check_detector(Careless(), names["query"], names["negatives"])
