"""What the page of evidence for pictures says follows from the differences of the runs."""

import pytest

from benchmarks.docs import claims_detection
from benchmarks.docs import claims_images as pages
from benchmarks.training.seed_summaries import spread


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.0, 1.1, 0.9], "reproduced"),
        ([-1.0, -1.1, -0.9], "not reproduced"),
        ([1.0, -0.9, 0.5], "not shown, same sign"),
        ([-1.0, 0.9, -0.5], "not shown, other sign"),
        ([3.0], "one seed only"),
        (None, "not tried"),
    ],
)
def test_verdicts(values, verdict):
    seen = pages.Seen("it rains", "+1", None if values is None else spread(values))
    assert seen.verdict == verdict
    assert seen.cells()[3:] == ("0" if values is None else str(len(values)), verdict)


def test_differences_are_paired_by_seed():
    arms = {"a": {"accuracy": spread([5.0, 7.0, 9.0])}, "b": {"accuracy": spread([1.0, 4.0])}}
    assert pages.over(arms, "a", "b")["values"] == [4.0, 3.0]
    assert pages.over(arms, "a", "c") is None
    assert pages.points(pages.over(arms, "b", "b")) == "+0.00 ± 0.00"


def test_half_of_the_gap():
    rows = {"plain": [70.0, 70.0], "oracle attract": [74.0, 76.0], "linear to 100 %": [73.0, 72.0]}
    arms = {name: {"accuracy": spread(values)} for name, values in rows.items()}
    assert claims_detection._beyond_half(arms)["values"] == [1.0, -1.0]
