"""Options of mining: declared once, checked, read from text, and shown as keywords of `mine`."""

import inspect
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import naysay as ns
from naysay._options import from_command
from naysay.detectors import Bands, Calibrated, Margin, MaxScore, ShareOfPositive
from naysay.mining.options import MiningOptions
from naysay.search._scores import lowest_of

WORLD = ns.planted_world(40, 120, per_anchor=4, noise=0.2, seed=2)


def test_mine_shows_every_option():
    shown = inspect.signature(ns.mine).parameters
    assert list(shown)[:4] == ["queries", "corpus", "positives", "k"]
    assert list(shown)[4:] == [one.name for one in fields(MiningOptions)]
    for one in fields(MiningOptions):
        assert shown[one.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert shown[one.name].default == one.default
        assert f"\n        {one.name}: " in ns.mine.__doc__


def test_a_misspelt_keyword_names_the_nearest():
    for call in (
        lambda: ns.mine([[1.0]], [[1.0]], None, 1, min_scor=2),
        lambda: ns.mine([[1.0]], [[1.0]], None, k=1, min_scor=2),
    ):
        with pytest.raises(
            TypeError, match=r"^mine\(\) got an unexpected keyword argument 'min_scor'\. Did you mean 'min_score'\?$"
        ):
            call()


def test_options_are_frozen_and_by_keyword():
    with pytest.raises(FrozenInstanceError):
        MiningOptions().seed = 3
    with pytest.raises(TypeError):
        MiningOptions("dot")


def test_text_stands_for_values():
    made = from_command(
        MiningOptions, {"rank_range": "10-100", "quotas": "search=4, bm25=2", "judge": "none", "seed": 3}
    )
    assert (made.rank_range, made.quotas, made.judge, made.seed) == ((10, 100), {"search": 4, "bm25": 2}, None, 3)
    assert from_command(MiningOptions, {"rank_range": "10-"}).rank_range == (10, None)


def test_a_judge_as_text_is_the_detector():
    nearest = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 1, judge=None)
    lowest = lowest_of(WORLD.known.pairs()[0], nearest.known_scores, 40)
    judges = {
        "none": None,
        "calibrated": Calibrated(),
        "calibrated:0.1": Calibrated(0.1),
        "margin:0.05": Margin(0.05, lowest),
        "share:0.9": ShareOfPositive(lowest, 0.9),
        "max_score:0.4": MaxScore(0.4),
        "bands:0.1,0.5": Bands(0.1, 0.5),
    }
    for text, detector in judges.items():
        one, other = (
            ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 4, judge=judge) for judge in (text, detector)
        )
        assert one.ids.tobytes() == other.ids.tobytes()
        assert one.rule == other.rule
    rescored = {"rescore": lambda anchors, ids: np.cos(anchors * 3.0 + ids)}
    one = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 4, judge="max_score:0.4", **rescored)
    other = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 4, judge=MaxScore(0.4), **rescored)
    assert one.ids.tobytes() == other.ids.tobytes()
