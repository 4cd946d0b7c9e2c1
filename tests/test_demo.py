"""The demonstration gives a real result: no known positive, and hard negatives that are more often false."""

import io

from rich.console import Console

from naysay import demo


def test_quick_demo():
    text = io.StringIO()
    lines = demo.run(quick=True, console=Console(file=text, width=200))
    by_name = {line.name: line for line in lines}
    assert [line.known for line in lines] == [0, 0, 0]
    # 12 of each anchor's 2,000 items are hidden positives, 28 are known: uniform draws hit 12 / 1,972.
    assert abs(by_name["uniform"].false_negative_rate - 12 / 1972) < 0.001
    assert by_name["nearest 100"].false_negative_rate > 10 * by_name["uniform"].false_negative_rate
    assert by_name["nearest 100"].score > by_name["uniform"].score + 0.2
    assert all(line.per_second > 1e5 for line in lines)
    printed = text.getvalue()
    assert "2,000 anchors x 2,000 items, 56,000 known positives and 24,000 that nobody labelled" in printed
    assert "0 returned a known positive" in printed


def test_a_seed_fixes_the_world():
    quiet = Console(file=io.StringIO())
    one, other, third = (demo.run(quick=True, seed=seed, console=quiet) for seed in (1, 1, 2))
    rates = [[line.false_negative_rate for line in lines] for lines in (one, other, third)]
    assert rates[0] == rates[1] != rates[2]
