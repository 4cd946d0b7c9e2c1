"""The documentation is true: its code runs and prints what it says, its tables are complete, and the site builds."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from naysay import catalog
from naysay.testing import detectors, losses, pools, samplers

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FOLDERS = ("pools", "samplers", "detectors", "quantity", "losses", "difficulty", "mining", "audit", "report", "testing")
FENCE = re.compile(r"^```(\w*)\n.*?^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^```python\n(.*?)^```$(?:\s+^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "text", "sh"}


def programs(page):
    """(line, code, output) of every Python block; the output is the text block right after it, or nothing."""
    text = page.read_text()
    return [(text.count("\n", 0, m.start()) + 1, m[1], m[2] or "") for m in PROGRAM.finditer(text)]


def prose(page):
    return FENCE.sub("", page.read_text())


# ---- code -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if programs(page)], ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_in_order_and_prints_what_stands_below_it(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for line, code, output in programs(page):
        exec(compile("\n" * line + code, str(page), "exec"), names)
        printed = capsys.readouterr().out
        if page.parent == ROOT / "docs" or output:
            assert printed == output, f"{page.name}, line {line}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_page_of_a_folder_has_code(folder):
    assert programs(ROOT / "docs" / f"{folder}.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_code_escapes_by_its_fence(page):
    """A block marked `py`, or indented, would not be run."""
    assert set(FENCE.findall(page.read_text())) <= LANGUAGES
    assert "```" not in re.sub(r"`{4} ```\w+ `{4}", "", prose(page))  # quoted, not opened


# ---- tables ---------------------------------------------------------------------------------------------------------


def row(*cells):
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def method_rows():
    """What docs/methods.md has to say of each method, and of each other name."""
    for method in catalog.methods():
        name = f"**{method.name}**"
        yield row(name, ", ".join(method.names[1:]), method.kind, method.pool, method.formula, method.paper)
        yield row(name, method.summary, f"`{method.parts}`", method.cost)
        for also in method.also:
            yield row(also, method.name, "another name of the row", method.paper)
        for alias in method.aliases:
            yield row(alias.name, method.name, alias.note, alias.paper)
    for loss in catalog.losses():
        yield row(f"**{loss.name}**", ", ".join(loss.also), loss.over, f"`{loss.formula}`", loss.paper)
    for one in catalog.detectors():
        yield row(f"**{one.name}**", ", ".join(one.also), one.kind, f"`{one.formula}`", f"`{one.parts}`", one.paper)


def test_the_methods_are_those_of_the_catalogue():
    """A failure prints the rows to put in, and those to take out."""
    given = [line for line in (ROOT / "docs" / "methods.md").read_text().splitlines() if line.startswith("|")]
    missing = [wanted for wanted in method_rows() if wanted not in given]
    assert not missing, "missing in docs/methods.md:\n" + "\n".join(missing)
    bold = [line for line in given if line.startswith("| **")]
    stale = [line for line in bold if line not in set(method_rows())]
    assert not stale, "no longer in the catalogue:\n" + "\n".join(stale)


def test_every_name_of_the_catalogue_is_on_the_page():
    page = (ROOT / "docs" / "methods.md").read_text()
    rows = (*catalog.methods(), *catalog.losses(), *catalog.detectors())
    assert [name for one in rows for name in one.names if name not in page] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_public_name_of_a_folder_is_on_its_page(folder):
    page = prose(ROOT / "docs" / f"{folder}.md")
    names = importlib.import_module("naysay.auditing" if folder == "audit" else f"naysay.{folder}").__all__
    assert [name for name in names if not re.search(rf"`(?:[a-z]+\.)*{name}\b", page)] == []


def test_every_folder_has_a_page():
    folders = {path.parent.name for path in (ROOT / "src" / "naysay").glob("*/__init__.py")}
    assert folders - {"catalog", "demo"} <= {page.stem for page in DOCS}  # whose pages are methods.md and tutorial.md


@pytest.mark.parametrize(
    ("title", "promises"),
    [
        ("Of a pool", set(pools.PROMISES)),
        ("Of a sampler", set(samplers.PROMISES) - set(pools.PROMISES)),
        ("Of a detector", set(detectors.PROMISES)),
        ("Of a loss", set(losses.PROMISES)),
    ],
)
def test_every_promise_is_in_its_table(title, promises):
    section = re.split(r"^##+ ", (ROOT / "docs" / "testing.md").read_text(), flags=re.MULTILINE)
    table = next(part for part in section if part.startswith(title + "\n"))
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == promises


# ---- what pages point at --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tests_that_a_page_names_exist(page):
    for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text()):
        assert f"\ndef {name}(" in (ROOT / path).read_text(), f"{path}::{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_paths_exist(page):
    """mkdocs checks the links among its pages; this one also sees the README, and files named in passing."""
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", prose(page)):
        assert (page.parent / target).exists(), target
    for target in re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[\w/.-]+)", prose(page)):
        assert (ROOT / target).exists() or "NAME" in target, target


SPEED = re.compile(r"\d[\s-]*(?:[nuµm]s|(?:nano|micro|milli)?seconds?|minutes?|[kMG]/s)\b|\d\s+s\b")


def docstrings(path):
    """All docstrings of a module, joined."""
    nodes = ast.walk(ast.parse(path.read_text()))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return "\n".join(ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds))


@pytest.mark.parametrize("page", [page for page in DOCS if page.stem != "benchmarks"], ids=lambda page: page.stem)
def test_no_speed_is_typed_by_hand(page):
    """Figures of speed come from benchmarks/results, by way of benchmarks.md."""
    assert SPEED.findall(prose(page)) == []


def test_no_speed_is_typed_by_hand_in_a_docstring():
    """There costs are orders, O(n log n), and counts of bytes."""
    found = {path: SPEED.findall(docstrings(path)) for path in (ROOT / "src").rglob("*.py")}
    assert {str(path.relative_to(ROOT)): figures for path, figures in found.items() if figures} == {}


def test_figures_of_speed_are_told_from_others():
    for figure in ("0.05 s", "10 s for", "12 ms", "20ns", "some 50 nanoseconds", "1 second", "a 5-minute", "3 M/s"):
        assert SPEED.search(f"It takes {figure} here."), figure
    for figure in ("some nanoseconds", "the 1990s", "5 slots", "16 bytes", "64 MB", "8 steps", "2 samplers", "1 msg"):
        assert not SPEED.search(f"It takes {figure} here."), figure


# ---- the site -------------------------------------------------------------------------------------------------------


def build(folder, site):
    """Run mkdocs. Not with --quiet, which hides warnings from --strict too: then nothing fails."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_site_builds_without_a_warning(tmp_path):
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert {page.stem for page in DOCS} <= {page.stem for page in tmp_path.glob("*.html")}


def test_a_broken_link_an_unknown_anchor_and_a_page_outside_the_menu_would_be_seen(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "docs" / "quantity.md").write_text("[one](nowhere.md) [two](#nowhere)\n")
    (tmp_path / "docs" / "stray.md").write_text("Nobody links here.\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    assert all(word in done.stderr for word in ("'nowhere.md'", "'#nowhere'", "stray.md"))
