"""The report in a real browser: it renders alone, the slider moves the figures, the search works, text stays text.

Debian's Chromium, driven by playwright. Where either is absent the tests are skipped, and say what to install.
"""

import importlib.util
import os
import shutil
from contextlib import contextmanager

import numpy as np
import pytest
from report_cases import HOSTILE, sample, whole

from naysay.report import Scores, at_threshold, write_report
from naysay.report._html_parts import slider_ends

BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = [
    what
    for what, there in (
        ("Chromium (apt-get install chromium)", BROWSER),
        ("playwright (pip install playwright)", importlib.util.find_spec("playwright")),
    )
    if not there
]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"The report was not opened in a browser: there is no {' and no '.join(MISSING)}."
)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
QUIET += ["--disable-sync", "--no-first-run"]


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("plain") / "report.html", whole())


@contextmanager
def opened(browser, path, **options):
    """A page without a network, checked at the end: no console message, error or dialog, no request but the file."""
    context = browser.new_context(offline=True, viewport={"width": 900, "height": 1100}, **options)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", timeout=30_000)
    try:
        yield page
        assert said == []
        assert asked == [path.as_uri()]
    finally:
        context.close()


def until(page, done):
    """Wait for what happens a moment later; the policy lets no waiting script into the page."""
    for _ in range(300):
        if done():
            return
        page.wait_for_timeout(100)
    pytest.fail("nothing happened")


def figures(page):
    read = (
        "cells => Object.fromEntries(cells.map(cell => [cell.dataset.figure, [cell.dataset.value, cell.textContent]]))"
    )
    return page.eval_on_selector_all("[data-figure]", read)


def check_figures(page, given, threshold):
    """The page's figures are those of Python, to the last digits of a double."""
    now = at_threshold(given, threshold)
    for name, (value, text) in figures(page).items():
        wanted = getattr(now, name)
        if np.isnan(wanted):
            assert (value, text in ("unknown", "none")) == ("", True)
        else:
            assert float(value) == pytest.approx(wanted, rel=1e-12), (name, threshold)


def test_it_renders_alone(chromium, plain):
    assert plain.stat().st_size < 2_000_000
    with opened(chromium, plain) as page:
        assert page.locator("[data-chart] svg").count() == 3
        assert page.title() == "A report"
        assert "could not be drawn" not in page.inner_text("main")
        marks = page.locator("[data-chart='0'] svg .mark-line path")
        assert marks.count() == 4  # positives, kept, and two reasons


def test_the_figures_before_and_after_the_script_are_the_same(chromium, plain):
    with opened(chromium, plain, java_script_enabled=True) as page:
        after = figures(page)
    context = chromium.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(plain.as_uri())
    before = {
        cell.get_attribute("data-figure"): [cell.get_attribute("data-value"), cell.text_content()]
        for cell in page.locator("[data-figure]").all()
    }
    context.close()
    assert {name: text for name, (_, text) in before.items()} == {name: text for name, (_, text) in after.items()}
    for name, (value, _) in before.items():
        assert float(after[name][0]) == pytest.approx(float(value), rel=1e-12)


def test_the_slider_moves_the_figures(chromium, plain):
    given = sample(of_anchors=100)
    low, high = slider_ends(given)
    some = float(given.scores[17])  # exactly at a score: such a candidate is suspected
    with opened(chromium, plain) as page:
        check_figures(page, given, 0.55)
        drawn = page.locator("[data-chart='0'] svg .mark-rule path, [data-chart='0'] svg .mark-rule line")
        where = "lines => lines.map(line => line.getAttribute('transform')).join()"
        places = drawn.evaluate_all(where)
        for threshold in (some, low, high, -1.0, 0.2, 0.4571, 7.0):
            page.fill("#exact", repr(threshold))
            check_figures(page, given, threshold)
        page.fill("#exact", "0.3")
        until(page, lambda: drawn.evaluate_all(where) != places)
        assert page.text_content("#command") == "mined.rethreshold(judge=Bands(0.3, 0.3))"
        page.click("#reset")
        check_figures(page, given, 0.55)
        page.fill("#exact", "")  # no number: nothing happens
        check_figures(page, given, 0.55)


def test_the_slider_moves_by_keyboard(chromium, plain):
    given = sample(of_anchors=100)
    low, high = slider_ends(given)
    with opened(chromium, plain) as page:
        page.focus("#threshold")
        for key, place in (("End", 1000), ("ArrowLeft", 999), ("Home", 0), ("ArrowRight", 1), ("ArrowUp", 2)):
            page.keyboard.press(key)
            assert page.input_value("#threshold") == str(place)
            check_figures(page, given, low + (high - low) * place / 1000)
            announced = float(page.get_attribute("#threshold", "aria-valuetext"))
            assert announced == pytest.approx(low + (high - low) * place / 1000, rel=1e-3, abs=1e-3)


def test_a_threshold_of_suspicion_moves(chromium, tmp_path):
    values = np.random.default_rng(3).random(1000).astype(np.float32)
    given = sample(by="suspicion", values=values, threshold=0.5, k=2, command="mined.rethreshold(THRESHOLD)")
    scores = Scores(given.positives, given.scores, [], [], sample=given)
    with opened(chromium, write_report(tmp_path / "report.html", whole(scores=scores))) as page:
        for threshold in (0.5, 0.25, 1.0, 0.0):
            page.fill("#exact", repr(threshold))
            check_figures(page, given, threshold)
        assert figures(page)["false_rate"] == ["", "unknown"]


def test_the_search_finds_and_hides(chromium, plain):
    with opened(chromium, plain) as page:
        seen = page.locator(".example:visible")
        assert (seen.count(), page.text_content("#matches")) == (6, "6 of 6 examples")
        page.fill("#find", "SEVEN candidate")
        assert (seen.count(), page.text_content("#matches")) == (1, "1 of 6 examples")
        assert page.locator(".kind:visible").count() == 1
        page.fill("#find", "")
        page.select_option("#kind", "hardest")
        assert (seen.count(), page.text_content("#matches")) == (4, "4 of 6 examples")
        page.fill("#find", "nothing like this")
        assert (seen.count(), page.text_content("#matches")) == (0, "0 of 6 examples")
        page.keyboard.press("Enter")  # does not send a form, and loads nothing
        assert page.text_content("#matches") == "0 of 6 examples"


def test_light_and_dark_differ_and_can_be_read(chromium, plain, tmp_path):
    found = {}
    for scheme in ("light", "dark"):
        with opened(chromium, plain, color_scheme=scheme) as page:
            page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)
            colours = page.evaluate(
                """() => {
                  const style = getComputedStyle(document.documentElement);
                  const curve = document.querySelector("[data-chart='0'] svg .mark-line path");
                  const names = ["ink", "muted", "accent", "positive", "kept", "first", "second", "third", "fourth"];
                  return {
                    paper: style.getPropertyValue("--paper"), raised: style.getPropertyValue("--raised"),
                    curve: getComputedStyle(curve).stroke,
                    texts: names.map(name => style.getPropertyValue("--" + name)),
                  };
                }"""
            )
        found[scheme] = colours
        for text in colours["texts"]:
            for paper in (colours["paper"], colours["raised"]):
                assert contrast(text, paper) >= 4.5, (scheme, text, paper)
        assert (tmp_path / f"{scheme}.png").stat().st_size > 20_000  # kept with the test's other files
    assert found["light"]["paper"] != found["dark"]["paper"]
    assert found["light"]["curve"] != found["dark"]["curve"]  # charts follow, too


def contrast(one, other):
    """The ratio of WCAG 2 for two colours #rrggbb; 4.5 is readable."""

    def luminance(colour):
        parts = [int(colour.strip()[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_it_can_be_used_without_a_mouse_and_without_eyes(chromium, plain):
    with opened(chromium, plain) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        assert {"threshold", "exact", "reset", "find", "kind", "SUMMARY"} <= reached
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("input, select, button")].filter(
                 one => !(one.labels && one.labels.length) && !one.textContent.trim()).map(one => one.id)"""
        )
        assert nameless == []
        snapshot = page.locator("body").aria_snapshot()
        for wanted in (
            'heading "A report" [level=1]',
            'slider "Threshold (score)"',
            'searchbox "Find"',
            "table",
            "img",
        ):
            assert wanted in snapshot, wanted
        assert page.locator("[aria-live=polite]").count() == 2
        charts = page.locator("[data-chart]").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        assert charts[0].startswith("Share of scores over the score")
        assert all(label and label != "Vega visualization" for label in charts)


def test_what_changes_is_said_once(chromium, plain):
    with opened(chromium, plain) as page:
        assert page.text_content("#announced") == ""
        page.fill("#exact", "0.3")
        page.fill("#exact", "0.4")
        until(page, lambda: page.text_content("#announced"))
        suspected = round(at_threshold(sample(of_anchors=100), 0.4).suspected)
        assert page.text_content("#announced").startswith(
            f"Threshold 0.4: suspected candidates {suspected}, negatives "
        )


def test_it_fits_a_small_screen(chromium, plain):
    with opened(chromium, plain) as page:
        for width in (320, 900, 1600):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints_with_nothing_folded_away(chromium, plain):
    with opened(chromium, plain) as page:
        assert page.locator("details[open]").count() == 0
        assert len(page.pdf()) > 20_000  # opens what is folded, for as long as it prints
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0


def test_hostile_text_is_shown_and_never_obeyed(chromium, tmp_path):
    path = write_report(tmp_path / "report.html", whole(" ".join(text[:2000] for text in HOSTILE)))
    with opened(chromium, path) as page:
        assert page.evaluate("typeof window.hacked") == "undefined"
        assert page.locator("img, svg[onload], iframe").count() == 0
        assert "<script>window.hacked=1;alert(1)</script>" in page.text_content("h1")
        page.fill("#find", "<script>window.hacked")
        assert page.locator(".example:visible").count() == 5
        check_figures(page, sample(of_anchors=100), 0.55)
        box = page.locator("h1 bdi")
        assert box.evaluate("one => getComputedStyle(one).display") == "inline-block"  # its direction ends with it


def test_what_slips_through_would_still_not_run(chromium, plain, tmp_path):
    """The policy by itself: a script planted in the file is refused, so escaping is not the only guard."""
    path = tmp_path / "planted.html"
    (tmp_path / "x").write_bytes(b"")
    planted = "<script>window.hacked=1</script><img src=x onerror=window.hacked=2><script src=x></script><h1>"
    path.write_text(plain.read_text(encoding="utf-8").replace("<h1>", planted, 1), encoding="utf-8")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    answered = []
    page.on("requestfinished", lambda request: answered.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", timeout=30_000)
    assert page.evaluate("typeof window.hacked") == "undefined"
    with pytest.raises(Exception, match=r"unsafe-eval|Content Security Policy|EvalError"):
        page.add_script_tag(content="window.hacked=3")
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert answered == [path.as_uri()]
    context.close()
