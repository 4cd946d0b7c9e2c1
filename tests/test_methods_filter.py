"""Which methods fit: the filter in Python, on the command line and on the page."""

import re
from itertools import product

import pytest

from benchmarks import tables
from naysay import catalog
from naysay._commands import MethodsOptions
from naysay.catalog._filter import DATA, NEEDS, STEPS
from naysay.catalog._show import show
from naysay.errors import NaysayError

METHODS = (*catalog.methods("where"), *catalog.methods("which"))


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
    made = tables.methods()
    for value in (*DATA, *NEEDS, *STEPS[:-1], "none", "scores,torch"):
        assert f"<option>{value}</option>" in made["filter"]
    assert '<form id="filter" hidden>' in made["filter"]  # shown by the script alone
    headings, _, *rows = made["methods"].splitlines()
    assert headings.split(" | ")[1:4] == ["data", "needs", "step"]
    for method, row in zip(METHODS, rows, strict=True):
        assert f"| {', '.join(method.data)} | {', '.join(method.needs) or 'none'} | {method.step} |" in row
    assert not re.search(r"https?://|src=", made["filter"])  # works without a network
