"""`naysay compare`: what it prints, exit codes, and the page in a browser."""

import contextlib
import importlib.util
import io
import os
import shutil

import numpy as np
import pytest
from rich.console import Console

from naysay.cli import main
from naysay.lab import ArmResult, Comparison, Point, RunResult
from naysay.lab.command import _Progress, print_comparison
from tests.fuzz.rules import run

BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "clicks.csv"
    users, items = np.nonzero(np.random.default_rng(2).random((40, 60)) < 0.2)
    lines = [f"u{user},i{item}" for user, item in zip(users.tolist(), items.tolist(), strict=True)]
    path.write_text("\n".join(["user,item", *lines]) + "\n")
    return path


def naysay(*arguments, cwd):
    """A command line in this process, which saves loading torch."""
    with contextlib.chdir(cwd):
        return run(["compare", *map(str, arguments)])


@pytest.fixture(scope="module")
def done(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    return naysay(
        table, "--methods", "uniform,dynamic", "--seeds", 2, "--steps", 8, "-o", "out", cwd=folder
    ), folder / "out"


def test_it_prints_progress_a_table_and_the_recommendation(done):
    finished, out = done
    assert finished.code == 0, finished.err
    assert "uniform: seed 2 of 2, " in finished.err
    assert "s left" in finished.err
    assert "Interactions(40 users, 60 items" in finished.out
    assert "No recommendation" in " ".join(finished.out.split())  # 2 seeds of 8 steps
    lines = finished.out.splitlines()
    header = next(line for line in lines if line.startswith("negatives"))
    row = next(line for line in lines if line.startswith("dynamic"))
    assert header.split()[:2] == ["negatives", "k"]
    assert row.split()[:2] == ["dynamic", "8"]
    assert f"Report: out{os.sep}compare.html" in finished.out
    assert (out / "compare.html").is_file()


def test_bad_input_ends_in_one_sentence_and_code_2(tmp_path):
    finished = naysay("missing.csv", cwd=tmp_path)
    assert (finished.code, finished.out) == (2, "")
    assert finished.err == "naysay: compare: `data` must be an existing file, got 'missing.csv'.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("width", "shown"), [(80, 6), (150, 11)])
def test_no_cell_is_cut(width, shown):
    def arm(name, values):
        points = (Point(100, 12.25, 12.25, 0.4, 0.5, 0.0),)
        runs = [RunResult(seed, points, {"recall@20": value, "ndcg@20": value}) for seed, value in enumerate(values)]
        return ArmResult(name, 1, "Static(...)", 0.001, {}, tuple(runs))

    arms = (arm("uniform", (0.5, 0.6)), arm("adaptive-oversampling", (0.55, 0.6)))
    result = Comparison("recall@20", arms, {"data": "Interactions(...)"})
    console = Console(record=True, file=io.StringIO(), width=width)
    print_comparison(result, console)
    text = console.export_text()
    assert "…" not in text
    assert "ms per" in text  # headings break after ten letters, not after each word
    cells = result.rows()[0]
    assert [cell in text for cell in cells].count(True) >= shown
    assert all(len(line) <= width for line in text.splitlines())


def test_ctrl_c_ends_with_130_and_says_how_to_go_on(monkeypatch, capsys):
    def stop(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("naysay.lab.command.compare_command", stop)
    with pytest.raises(SystemExit) as ended:
        main(["compare", "--quick"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == (
        "naysay: compare: stopped. Finished runs are kept in the folder; the same command continues.\n"
    )


def test_the_time_left_is_that_of_what_is_not_kept(monkeypatch):
    now = iter([0.0, 10.0, 10.0, 30.0])
    monkeypatch.setattr("naysay.lab.command.time.perf_counter", lambda: next(now))
    console = Console(record=True, force_terminal=False, file=io.StringIO(), width=80)
    progress = _Progress(console)
    for what, share in (("a: kept", 0.4), ("a: kept", 0.5), ("b: seed 1", 0.5), ("b: seed 2", 0.75)):
        progress.update(what, share)
    assert console.export_text().splitlines()[-1] == "b: seed 2, 75 %, 20 s left"


@pytest.mark.skipif(
    not (BROWSER and importlib.util.find_spec("playwright")),
    reason="compare.html was not opened: no Chromium or playwright.",
)
def test_the_page_draws_its_charts_offline(done):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True).new_page()
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((done[1] / "compare.html").as_uri())
        page.wait_for_selector("html[data-ready=yes]", timeout=30_000)
        assert page.locator("[data-chart] svg").count() == 6
        assert "could not be drawn" not in page.inner_text("main")
        assert said == []
        browser.close()
