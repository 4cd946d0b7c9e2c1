"""Benchmarks: every script imports, every result names its versions, and pages quote what the results say."""

import importlib
import json
import re
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from benchmarks import study, tables
from benchmarks.data import DATA
from benchmarks.harness import spread
from benchmarks.speed import ray
from benchmarks.speed.samplers import cost_class, shape_of
from naysay import catalog

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SCRIPTS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.parent.name != "peers" and path.stem != "__init__"  # peers run in environments of their own
)
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
SCALES = (1, 100, 60, 1e3, 1e-6, 1e-9)  # shares in per cent, an hour's minutes, ms, MB, GB


def result(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def page(name):
    return (ROOT / name).read_text()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_imports_and_says_what_it_is_for(name):
    assert importlib.import_module(name).__doc__


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_a_result_has_the_versions_that_made_it(path):
    found = json.loads(path.read_text())
    versions = found["environment"] if "environment" in found else found["after"]["versions"]
    assert {"python", "numpy"} <= set(versions)


# ---- study.py --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", study.declared())
def test_a_declared_study_is_whole(name):
    found = study.declared()[name]
    assert found.protocol.strip()
    assert set(found.data) <= set(DATA)
    assert {arm for claim in found.claims for arm in (claim.arm, claim.base)} <= set(found.arms)
    assert {*found.tuned_like, *found.tuned_like.values()} <= {*found.arms, *found.tuned_like}
    assert set(found.tuned_like.values()) <= set(found.arms)
    assert {claim.measure for claim in found.claims} <= set(found.measures)


def test_a_study_without_data_runs_from_the_command_line(tmp_path, capsys):
    name, arm = "quantity-online", "separation 1"
    study.main([name, "--quick", "--arms", arm, "--out", str(tmp_path)])
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert written["arms"][arm]["seeds"] == 1
    assert f"{name}, seed 0, {arm}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        study.main([name, "--arms", "none of them"])


# ---- tables.py -------------------------------------------------------------------------------------------------------


def test_all_regions_are_up_to_date_and_declared(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tables", "--check"])
    with pytest.raises(SystemExit) as stop:
        tables.main()
    assert stop.value.code == 0
    marked = {
        path: re.findall(r"<!-- (.+?): made by benchmarks/tables.py -->", page(path))
        for path in ("README.md", *(f"docs/{one.name}" for one in (ROOT / "docs").glob("*.md")))
    }
    declared = {path: sorted(regions) for path, regions in tables.regions().items()}
    assert {path: sorted(names) for path, names in marked.items() if names} == declared


# ---- tables that are written by hand ---------------------------------------------------------------------------------
# All numbers of a row must be in one part of a result: an object of the file, with what describes the objects around
# it. What a section computes beside that is declared: a float that any row may have, a tuple that is a part of its own,
# or a list with one number a seed.
PART = 600  # numbers of a part at most


def of_coverage(found):
    """How often all intervals of planted worlds contain the truth, by labels."""
    for labels in ("random", "easiest"):
        cells = [cell for name, cell in found["cells"].items() if f", {labels}, " in name and "anchors" in name]
        yield tuple(
            sum(cell[kind].get(method, 0) for cell in cells) for method in tables.COVERED for kind in ("held", "told")
        )


def of_mining(found):
    """By size: the largest ratios to faiss of each judge, what auto adds, and the share of the products."""
    judges = ("mine, no judge", "mine, share 0.95", "mine, auto")
    for size in {run["size"] for run in found["against"]}:
        runs = [run for run in found["against"] if run["size"] == size]
        ratios = [run["contenders"][judge]["of_by_hand"] for judge in judges for run in runs]
        alone = [run for run in runs if "products_alone_cpu_seconds" in run]
        yield (
            size,
            *(value for ratio in ratios for value in ratio.values() if value is not None),
            *(run["auto_adds"] for run in runs),
            *(one["products_alone_cpu_seconds"] / one["contenders"][judges[0]]["cpu_seconds"] for one in alone),
        )


def of_workers(found):
    return [sum(worker["proportional_mb"] for worker in way["workers"]) for way in found["ways"].values()]


def of_ray(found):
    """The terms of the cost model in µs and ns, its projections, and the overhead of Ray."""
    terms = ray.fitted(found["model"])
    sizes = ((10**7, 10**5), (10**8, 10**6), (5 * 10**8, 5 * 10**6), (10**9, 10**6), (10**9, 10**8))
    costs = [ray.cost(terms, *size, shards=100) for size in sizes]
    hours = [value / 3600 for cost in costs for value in (cost["workers"], cost["workers"] / 1000, cost["driver"])]
    moved = [cost[name] / 1e12 for cost in costs for name in ("read", "sent")]
    runs = [(sum(row["worker_processor_seconds"]), row["processor_seconds"]) for row in found["speed"]]
    plain = min(row["processor_seconds"] for row in found["speed"] if not row["workers"])
    expected = ray.cost(terms, 10**6, 5000, 1)["workers"]
    ratios = [
        share for searched, all_of_it in runs if searched for share in (all_of_it / plain - 1, expected / searched - 1)
    ]
    scaled = [value * scale for value in terms.values() for scale in (1e6, 1e9)]
    return [
        *scaled,
        *hours,
        *moved,
        *ratios,
        *(searched for searched, _ in runs),
        *(float(n) for size in sizes for n in size),
    ]


def minus(one, other):
    """A difference by seed, of the seeds that both have."""
    return [mine - its for mine, its in zip(one, other, strict=False)]


def of_arms(found):
    """The difference of any two arms of a study in any measure."""
    groups = found["tasks"].values() if "tasks" in found else found.get("worlds", {}).values() or found["studies"]
    for arms in (group["arms"].values() for group in groups):
        measured = [{**arm, **arm.get("test", {})} for arm in arms]
        for one, other in permutations(measured, 2):
            shared = [name for name in one if name in other and isinstance(one[name], dict) and "values" in one[name]]
            yield from (minus(one[name]["values"], other[name]["values"]) for name in shared)


def of_detection(found):
    """Also how much larger one gap is than another, and the gain beyond half of the gap."""
    yield from of_arms(found)
    worlds = [found["worlds"][number]["arms"] for number in ("1", "2")]
    gaps, gains = [], []
    for arms in worlds:
        plain = arms["plain"]["accuracy"]["values"]
        gaps.append(minus(arms["oracle attract"]["accuracy"]["values"], plain))
        gains.append(minus(arms["linear to 100 %"]["accuracy"]["values"], plain))
    coarse = [worlds[0][arm]["group_accuracy"]["values"] for arm in ("oracle attract, groups", "plain")]
    yield from (minus(gaps[1], gaps[0]), minus(gaps[0], minus(*coarse)))
    yield from (minus(gain, [value / 2 for value in gap]) for gain, gap in zip(gains, gaps, strict=True))


def of_percentiles(found):
    """Also what is lost beyond a point, and a gain at one temperature against another."""
    yield from of_arms(found)
    warm, cold = (
        next(one["arms"] for one in found["studies"] if (one["parts"], one["temperature"]) == (2, temperature))
        for temperature in (0.2, 0.07)
    )
    yield [value + 1 for value in warm["only 95-100 %"]["over_all"]["accuracy"]["values"]]
    gains = [arms["all but 99.9-100 %"]["over_all"]["accuracy"]["values"] for arms in (cold, warm)]
    yield minus(*gains)


def of_losses(found):
    return [found["nt_xent"]["pml"]["seconds"] / found["nt_xent"]["naysay"]["seconds"]]


def nothing(_found):
    return []


RESULTS_PAGE, SPEED_PAGE, CHOOSE = "docs/results.md", "docs/speed.md", "docs/choose-negatives.md"
QUOTED = [
    (CHOOSE, "Measured on ml-100k", ["recommendation"], nothing),
    (CHOOSE, "What it costs", ["costs"], nothing),
    (RESULTS_PAGE, "How often the intervals hold", ["coverage"], of_coverage),
    (RESULTS_PAGE, "How many negatives", ["claims_quantity"], nothing),
    (RESULTS_PAGE, "Which negatives", ["claims_samplers"], of_arms),
    (RESULTS_PAGE, "Incremental detection of false negatives", ["claims_detection"], of_detection),
    (RESULTS_PAGE, "Which percentiles of hardness matter", ["claims_percentiles"], of_percentiles),
    (RESULTS_PAGE, "Debiased and hard negatives of the batch", ["claims_in_batch"], of_arms),
    (SPEED_PAGE, "Mining against sentence-transformers", ["mining"], of_mining),
    (SPEED_PAGE, "Mining on Ray", ["ray"], of_ray),
    (SPEED_PAGE, "Losses", ["losses"], of_losses),
    ("docs/several-processes.md", "Known pairs in memory once", ["shared_positives"], of_workers),
]


def section(name, title):
    """The text of a section outside generated regions."""
    text = re.sub(r"<!-- (.+?): made by .*?<!-- end of \1 -->", "", page(name), flags=re.DOTALL)
    return re.split(r"^##+ ", re.split(rf"\n##+ {title}\n", text)[1], flags=re.MULTILINE)[0]


def numbers(found):
    """All numbers of a result, also those in keys and texts."""
    if isinstance(found, str):
        yield from (float(number.replace(",", "")) for number in re.findall(NUMBER, found))
    elif isinstance(found, (int, float)):
        yield abs(found)
    elif isinstance(found, dict):
        yield from numbers([*found.keys(), *found.values()])
    elif found is not None:
        for value in found:
            yield from numbers(value)


def parts(found, around=()):
    """The numbers of each object of a result, with those of what contains it that are not objects."""
    if not isinstance(found, (dict, list)):
        return
    inside = [*numbers(found)]
    if len(inside) <= PART:
        yield [*inside, *around]
    children = found if isinstance(found, dict) else {str(place): child for place, child in enumerate(found)}
    alone = [value for value in children.values() if isinstance(found, dict) and not isinstance(value, (dict, list))]
    for key, child in children.items():
        named = numbers(key) if isinstance(found, dict) else ()
        yield from parts(child, [*around, *numbers(alone), *named])


def spreads(found):
    """All means with half their intervals."""
    if isinstance(found, list):
        for value in found:
            yield from spreads(value)
    if not isinstance(found, dict):
        return
    half = found.get("half", found.get("half_interval"))
    if "mean" in found and half is not None:
        yield found["mean"], half
    for value in found.values():
        yield from spreads(value)


def is_in(quoted, values):
    """Whether printed numbers, such as ("3.14", "0.64"), are those of one row of `values` but for rounding."""
    fits = np.ones((len(SCALES), len(values)), bool)
    for place, text in enumerate(quoted):
        digits, _, power = text.replace(",", "").partition("e")
        unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
        scaled = np.abs(np.multiply.outer(SCALES, values[:, place]))
        fits &= np.abs(scaled - float(text.replace(",", ""))) <= 0.500001 * unit
    return bool(fits.any())


def rows_of(text):
    """The rows of all tables, without the column of what papers say."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        headings, _, *rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
        for cells in rows:
            yield " | ".join(cell for name, cell in zip(headings, cells, strict=False) if name != "in the paper")


@pytest.mark.parametrize(("name", "title", "results", "computed"), QUOTED)
def test_numbers_of_tables_written_by_hand_are_in_the_results(name, title, results, computed):
    found = [result(one) for one in results]
    more = [value for one in found for value in computed(one)]
    anywhere = [value for value in more if isinstance(value, float)]
    known = [np.array([*part, *anywhere])[:, None] for part in parts(found)]
    known += [np.abs(value)[:, None] for value in more if isinstance(value, tuple)]
    by_seed = (spread(value) for value in more if isinstance(value, list))
    intervals = np.array([*spreads(found), *((one["mean"], one["half"] or 0.0) for one in by_seed)]).reshape(-1, 2)
    rows = [*rows_of(section(name, title))]
    assert rows
    for row in rows:
        alone = re.findall(rf"(?<![\w.^])({NUMBER})", re.sub(rf"{NUMBER} ± {NUMBER}", "", row))
        assert any(all(is_in([number], part) for number in alone) for part in known), row
        assert all(is_in(pair, intervals) for pair in re.findall(rf"({NUMBER}) ± ({NUMBER})", row)), row


def test_the_readme_quotes_the_rule_of_the_demonstration():
    quoted = re.findall(r"^> (.*)$", page("README.md"), re.MULTILINE)
    assert " ".join(quoted) == result("demonstration")["rule"]
    assert f"Python {result('demonstration')['python']}:" in page("README.md")


# ---- which one to take -----------------------------------------------------------------------------------------------


def test_the_table_of_the_readme_has_every_arm_and_its_gain_over_the_nearest():
    block = page("README.md").split("<!-- gains:")[1].split("<!-- end of gains -->")[0]
    headings, _, *rows = [line.strip("| ").split(" | ") for line in block.splitlines()[1:]]
    assert headings[2:4] == ["nDCG@10", "minus nearest"]
    quality = {row[0]: float(row[2]) for row in rows}
    assert {"in-batch", "random", "nearest", "95 % rule", "auto", "auto, 100 answers", "oracle"} <= quality.keys()
    for name, _, score, gain, *_ in rows:
        if name != "nearest":
            difference = float(score) - quality["nearest"]
            assert float(gain.split()[0]) == pytest.approx(difference, abs=0.11)  # each is rounded


@pytest.mark.parametrize("name", [CHOOSE, "docs/false-negatives.md"])
def test_a_gain_over_the_nearest_stands_beside_what_else_could_be_done(name):
    block = page(name).split("<!-- gains:")[1].split("<!-- end of gains -->")[0]
    headings, _, *rows = [line.strip("| ").split(" | ") for line in block.splitlines()[1:]]
    assert headings[2:6] == ["in-batch", "random", "nearest", "95 % rule"]
    assert [heading.partition(" - ")[2] for heading in headings[-2:]] == ["nearest", "95 % rule"]
    for row in rows:
        nearest, rule, arm, gain, over_rule = (float(row[place].split()[0]) for place in (4, 5, 6, 7, 8))
        assert gain == pytest.approx(arm - nearest, abs=0.11)  # each is rounded
        assert over_rule == pytest.approx(arm - rule, abs=0.11)


def test_classes_of_cost_are_those_that_were_measured():
    """The result is of 0.1: two methods have other names today, and two are gone."""
    renamed = {"ring": "percentile-range", "exposed": "multi-feedback"}
    found = {renamed.get(name, name): row for name, row in result("costs")["methods"].items()}
    samplers = (*catalog.methods("where"), *catalog.methods("which"))
    steps = {one.name: one.step for one in samplers if not one.like}
    assert found.keys() - steps.keys() == {"adversarial-bank", "decomposed"}
    assert steps == {name: row["class"] for name, row in found.items() if name in steps}
    for name, row in found.items():
        assert row["class"] == cost_class(row["ratio"])
        if name in steps:
            assert row["data"] == shape_of(catalog.find(name)[0])
