"""The documentation is true: its code runs and prints what it says, its tables are complete, and the site builds."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import readme_world

from naysay import catalog
from naysay.testing import detectors, losses, pools, samplers

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
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
    if page.stem == "README":
        readme_world.prepare(tmp_path, monkeypatch)
    names = {"__name__": page.stem}
    for line, code, output in programs(page):
        exec(compile("\n" * line + code, str(page), "exec"), names)
        printed = capsys.readouterr().out
        if page.parent == ROOT / "docs" or output:
            assert printed == output, f"{page.name}, line {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_code_escapes_by_its_fence(page):
    """A block marked `py`, or indented, would not be run."""
    assert set(FENCE.findall(page.read_text())) <= LANGUAGES
    assert "```" not in re.sub(r"`{4} ```\w+ `{4}", "", prose(page))  # quoted, not opened


def test_the_readme_is_short_and_so_is_its_code():
    assert len((ROOT / "README.md").read_text().splitlines()) < 130
    for line, code, _ in programs(ROOT / "README.md"):
        statements = [text for text in code.splitlines() if text.strip() and not text.startswith(("import ", "from "))]
        assert len(statements) < 10, line


# ---- tables ---------------------------------------------------------------------------------------------------------


def test_every_name_of_the_catalogue_is_on_the_page():
    page = (ROOT / "docs" / "methods.md").read_text()
    assert [name for one in catalog.methods() for name in one.names if name not in page] == []


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
    section = re.split(r"^##+ ", (ROOT / "docs" / "own-parts.md").read_text(), flags=re.MULTILINE)
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


@pytest.mark.parametrize("page", [page for page in DOCS if page.stem != "speed"], ids=lambda page: page.stem)
def test_no_speed_is_typed_by_hand(page):
    """Figures of speed come from benchmarks/results, by way of speed.md."""
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


def test_the_settings_find_broken_links_unknown_anchors_and_pages_outside_the_menu(tmp_path):
    """`make docs` builds the site itself; this checks, on two pages, that its settings would find a mistake."""
    (tmp_path / "docs").mkdir()
    settings = (ROOT / "mkdocs.yml").read_text()
    validation = re.search(r"^validation:.*$", settings, re.MULTILINE)[0]
    (tmp_path / "mkdocs.yml").write_text(f"site_name: two pages\n{validation}\nnav:\n  - One: index.md\n")
    (tmp_path / "docs" / "index.md").write_text("[one](nowhere.md) [two](#nowhere)\n")
    (tmp_path / "docs" / "stray.md").write_text("Nobody links here.\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    assert all(word in done.stderr for word in ("'nowhere.md'", "'#nowhere'", "stray.md"))


def test_every_page_is_in_the_menu():
    menu = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert menu == {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}


@pytest.mark.parametrize(
    "page", [page for page in DOCS if page.stem.startswith("tutorial-")], ids=lambda page: page.stem
)
def test_a_tutorial_begins_with_a_raw_file(page):
    """What it reads later, it has written before, in the first block."""
    first = programs(page)[0][1]
    assert re.search(r"\.(csv|tsv|jsonl|npz)\"", first)


def script(path):
    """A Python file of the documentation, which is not in a package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pictures_are_those_that_the_script_draws(tmp_path, monkeypatch):
    draw = script(ROOT / "docs" / "pictures" / "draw.py")
    monkeypatch.setattr(draw, "FOLDER", tmp_path)
    for picture in (draw.questions, draw.shapes, draw.bands):
        picture()
    drawn = sorted(tmp_path.glob("*.svg"))
    assert len(drawn) == 3
    for path in drawn:
        assert path.read_bytes() == (ROOT / "docs" / "pictures" / path.name).read_bytes()


def test_agents_get_a_copy_of_each_page_and_a_list_of_them(tmp_path):
    hooks = script(ROOT / "docs" / "hooks.py")
    nav = [{"Pages": [{"Install": "install.md"}, {"Losses": "api/losses.md"}]}, {"Changes": "changelog.md"}]
    hooks.on_post_build(
        SimpleNamespace(
            config_file_path=str(ROOT / "mkdocs.yml"),
            docs_dir=str(ROOT / "docs"),
            site_dir=str(tmp_path),
            site_name="naysay",
            site_description="Negatives.",
            nav=nav,
        )
    )
    listed = re.findall(r"^- \[\w+\]\((.+)\)$", (tmp_path / "llms.txt").read_text(), re.MULTILINE)
    assert listed == ["install.md", "api/losses.md", "changelog.md"]
    assert (tmp_path / "install.md").read_text() == (ROOT / "docs" / "install.md").read_text()
    assert "## info_nce\n\n    info_nce(positive, negatives, " in (tmp_path / "api" / "losses.md").read_text()
    assert (ROOT / "CHANGELOG.md").read_text().strip() in (tmp_path / "changelog.md").read_text()


def test_every_folder_is_in_the_api_reference():
    folders = {path.parent.name for path in (ROOT / "src" / "naysay").glob("*/__init__.py")}
    assert folders - {"kernels", "jobs", "demo"} == {page.stem for page in (ROOT / "docs" / "api").glob("*.md")} - {
        "naysay"
    }
