"""The study of difficulty from end to end, on pictures made here: three kinds of stripes, in the format of MNIST."""

import json
import sys

import numpy as np
import pytest
from stripes import write_stripes

from benchmarks.difficulty import study as script
from naysay.difficulty import common_depth


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Classes 0, 2 and 5, the first two of one group."""
    return write_stripes(tmp_path_factory.mktemp("stripes"), {"train": 250}, (0, 2, 5))


def test_the_whole_study(data, tmp_path, monkeypatch, capsys):
    out = tmp_path / "difficulty.json"
    small = "--seeds 2 --epochs 2 --train 250 --batch 64 --width 4 --anchors 120 --negatives 100 --bins 10 --timed 310"
    monkeypatch.setattr(sys, "argv", ["difficulty.py", str(data), *small.split(), "--out", str(out)])
    script.main()
    found = json.loads(out.read_text())
    printed = capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"difficulty.json", *script.PARTS.values()}
    assert len(found["runs"]) == 2
    claims = [run["claims"] for run in found["runs"]]
    for claim, holds in found["seen"].items():
        assert holds == all(run[claim]["seen"] for run in claims)
        assert f"{'seen    ' if holds else 'not seen'} {claim}" in printed
    assert found["seen"]["hard negatives are more often of the anchor's class than easy ones"]
    assert not found["seen"]["most of the hardest 0.1 % are of the anchor's class"]  # of 100 there are none
    for run in found["runs"]:
        assert run["study"]["anchors"] == 120
        assert run["study"]["drift"]["correlation"]["anchors"] == 120
        assert run["gradient_of_hard_at_0.07"] > run["gradient_of_hard"]
        assert 0.5 < run["shuffled_once"] < 1.6
    assert set(found["speed"]["rows"]) == {"one checkpoint", "two checkpoints"}
    assert str(data.parent) not in out.read_text()


def test_the_tree_is_the_one_that_is_described():
    depth = common_depth(script.TREE, range(10), range(10))
    tops, long, shoes, bag = [0, 2, 4, 6], [1, 3], [5, 7, 9], [8]
    assert sorted(tops + long + shoes + bag) == list(range(10))
    for one in range(10):
        for two in range(10):
            if one == two:
                wanted = 1 if one in bag else 2 if one in shoes else 3
            elif any({one, two} <= set(group) for group in (tops, long)):
                wanted = 2
            else:
                wanted = int(any({one, two} <= set(group) for group in (tops + long, shoes)))
            assert depth[one, two] == wanted


def test_a_rise_needs_two_errors():
    def curve(mean):
        size = len(mean)
        zero = np.zeros(size)
        return script.Curve(np.arange(size) / size, zero, np.array(mean), np.full(size, 0.1), np.ones(size, int))

    assert script.rises(curve([1.0, 0.2, 0.5, 3.0]), 3)["seen"]
    assert not script.rises(curve([0.45, 0.2, 0.5, 3.0]), 3)["seen"]  # 0.25 is less than two times 0.14
    assert not script.rises(curve([0.2, 0.3, 0.5, 0.0]), 3)["seen"]
