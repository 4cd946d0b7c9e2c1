"""The filter of docs/methods.md in a real browser: the rows that it shows are those of `catalog.matching`."""

import importlib.util
import os
import shutil
from itertools import product
from pathlib import Path

import pytest

from naysay import catalog
from naysay.catalog._filter import DATA, STEPS

PAGE = Path(__file__).parent.parent / "docs" / "methods.md"
BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
THERE = {"Chromium": BROWSER} | {name: importlib.util.find_spec(name) for name in ("playwright", "markdown")}
MISSING = [name for name, there in THERE.items() if not there]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"The page was not opened in a browser: no {MISSING}.")
SHOWN = """() => {
  const tables = Array.from(document.querySelectorAll("table"));
  const one = tables.find((table) => table.tHead.textContent.includes("needs"));
  const seen = Array.from(one.tBodies[0].rows).filter((row) => row.checkVisibility());
  return seen.map((row) => row.cells[0].textContent);
}"""


def test_it_shows_the_rows_that_fit(tmp_path):
    from markdown import markdown
    from playwright.sync_api import sync_playwright

    made = tmp_path / "methods.html"
    made.write_text(f"<!doctype html><meta charset=utf-8>{markdown(PAGE.read_text(), extensions=['tables', 'toc'])}")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=quiet)
        page, said = browser.new_context(offline=True).new_page(), []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(made.as_uri())
        assert page.locator("#filter").is_visible()
        n_samplers = len(catalog.methods("where")) + len(catalog.methods("which"))
        for data, needs, cost in product(("", *DATA), ("", "none", "scores", "scores,torch"), ("", *STEPS[:-1])):
            for name, value in (("data", data), ("needs", needs), ("cost", cost)):
                page.select_option(f"select[data-filter={name}]", value)
            fit = [method.name for method in catalog.matching(data, needs, cost)]
            assert page.evaluate(SHOWN) == fit, (data, needs, cost)
            assert page.locator("#filter output").inner_text().strip() == f"{len(fit)} of {n_samplers}"
        assert said == []
        browser.close()
