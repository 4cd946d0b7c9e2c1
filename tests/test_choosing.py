"""Which method to take: the filter in Python, on the command line and on the page, and the figures of the questions."""

import json
import re
from itertools import product
from pathlib import Path

import pytest

from benchmarks.docs import methods as page
from benchmarks.docs import pages
from benchmarks.speed.catalogue import cost_class, shape_of
from naysay import catalog
from naysay._commands import MethodsOptions
from naysay.catalog._filter import DATA, NEEDS, STEPS
from naysay.catalog._show import show
from naysay.errors import NaysayError

ROOT = Path(__file__).parent.parent
METHODS = (*catalog.methods("where"), *catalog.methods("which"))
MEASURED = [method for method in METHODS if not method.like]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_fields_are_filled_and_fit_the_parts(method):
    assert method.data
    assert set(method.data) <= set(DATA)
    assert set(method.needs) <= set(NEEDS)
    assert method.step in STEPS
    if re.search(r"\b(score|similarity|embed|probability)\b", method.parts) and not method.like:
        assert "scores" in method.needs


def test_the_filter_is_that_of_a_plain_loop():
    given = ("", "none", "scores", "extra", "torch", "scores,torch", "torch, extra")
    for data, needs, cost in product(("", *DATA), given, ("", *STEPS)):
        wanted = []
        for method in METHODS:
            met = [need in needs for need in method.needs] if needs else []
            dear = cost and STEPS.index(method.step) > STEPS.index(cost)
            if (not data or data in method.data) and all(met) and not dear:
                wanted.append(method)
        assert list(catalog.matching(data, needs, cost)) == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": "grpah"}, r"`--data` must be one of 'pairs', .*, got 'grpah'\. Did you mean 'graph'\?$"),
        ({"needs": "scores,gpu"}, r"`--needs` must be one of 'scores', 'extra', 'torch', 'none', got 'gpu'\.$"),
        ({"needs": "none,torch"}, r"`--needs` must be 'none' alone, or a list without it, got 'none,torch'\.$"),
        ({"cost": "cheap"}, r"`--cost` must be one of 'low', 'medium', 'high', got 'cheap'\.$"),
        ({"name": "uniform", "cost": "low"}, r"`--cost` must be left out with a name, got 'low'\.$"),
    ],
)
def test_a_wrong_option_is_one_sentence(options, message):
    with pytest.raises(NaysayError, match=message):
        show(MethodsOptions(**options))


def test_the_command_prints_what_fits(capsys):
    show(MethodsOptions(data="triples", needs="none"))
    printed = capsys.readouterr().out
    fit = {method.name for method in catalog.matching("triples", "none")}
    assert {method.name for method in METHODS if f"│ {method.name} " in printed} == fit
    assert f"{len(fit)} of {len(METHODS)} methods." in printed


def test_the_page_has_the_choices_and_what_they_filter_by():
    made = page.blocks()
    for value in (*DATA, *NEEDS, *STEPS[:-1], "none", "scores,torch"):
        assert f"<option>{value}</option>" in made["filter"]
    assert '<form id="filter" hidden>' in made["filter"]  # shown by the script alone
    headings, _, *rows = made["methods"].splitlines()
    assert headings.split(" | ")[4:7] == ["data", "needs", "step"]
    for method, row in zip(METHODS, rows, strict=True):
        assert f"| {', '.join(method.data)} | {', '.join(method.needs) or 'none'} | {method.step} |" in row
    assert not re.search(r"https?://|src=", made["filter"])  # works without a network


def test_classes_are_those_that_were_measured():
    found = json.loads((ROOT / "benchmarks" / "results" / "costs.json").read_text())["methods"]
    assert {method.name: method.step for method in MEASURED} == {name: row["class"] for name, row in found.items()}
    for name, row in found.items():
        assert row["class"] == cost_class(row["ratio"])
        assert row["data"] == shape_of(catalog.find(name)[0])
        assert row["negatives"] > 0


def test_hard_sources_keep_their_limits():
    found = json.loads((ROOT / "benchmarks" / "results" / "hard_sources.json").read_text())
    for threads in ("threads_1", "threads_2"):
        for name, row in found[threads].items():
            other = "torch" if name == "Nearest" else "Dynamic"
            assert row["ratio"] <= found["limits"][f"{name.split(',')[0]} against {other}"], (threads, name)
    small = json.loads((ROOT / "benchmarks" / "results" / "costs.json").read_text())["methods"]["cached"]
    assert small["ratio"] <= found["limits"]["Cached against Dynamic"]  # batches of 1,024, 32 candidates
    assert found["walk"]["rows"] == 1_000_000
    assert found["walk"]["seconds"] < found["limits"]["Walk, seconds"]


def test_the_questions_quote_measured_figures():
    """The page of benchmarks is made from the result files."""
    text = (ROOT / "docs" / "choosing.md").read_text()
    measured = (ROOT / "docs" / "benchmarks.md").read_text()
    figures = re.findall(r"[+-]?\d+\.\d+ ± \d+\.\d+", text)
    assert len(figures) > 20
    assert [figure for figure in figures if figure not in measured] == []
    by_hand = re.sub(r"<!-- (costs|gains).*?end of (costs|gains) -->", "", text, flags=re.DOTALL)
    decimals = re.findall(r"(?<![\w.,])\d+\.\d+(?![\w,])", by_hand)
    printed = set(re.findall(r"(?<![\d.])\d+\.\d+", measured))
    settings = {"0.02", "0.05"}  # temperatures and alpha
    assert [figure for figure in decimals if figure not in printed | settings] == []
    generator = json.loads((ROOT / "benchmarks" / "results" / "hard_sources.json").read_text())["threads_1"]
    assert f"costs about {generator['Learned, exact']['ratio']:.1f} times `Dynamic`" in text
    assert len(re.findall(r"^## \d\. .*\?$", text, re.MULTILINE)) == 6


@pytest.mark.parametrize("name", ["README.md", "docs/choosing.md", "docs/thresholds.md"])
def test_a_gain_over_the_nearest_stands_beside_what_else_could_be_done(name):
    text = (ROOT / name).read_text()
    block = text.split("<!-- gains:")[1].split("<!-- end of gains -->")[0]
    headings, _, *rows = [line.strip("| ").split(" | ") for line in block.splitlines()[1:]]
    assert headings[2:6] == ["in-batch", "random", "nearest", "95 % rule"]
    assert headings[-2].endswith("- nearest")
    assert headings[-1].endswith("- 95 % rule")
    for row in rows:
        nearest, rule, arm, gain, over_rule = (float(row[place].split()[0]) for place in (4, 5, 6, 7, 8))
        assert gain == pytest.approx(arm - nearest, abs=0.11)  # each is rounded
        assert over_rule == pytest.approx(arm - rule, abs=0.11)
    assert "points more nDCG" not in text  # a gain is in a table, not in a sentence of its own


@pytest.mark.parametrize("name", ["distrust", "mining", "judging"])
def test_results_are_quoted_as_they_were_written(name):
    assert pages.result(name) == json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())
