"""The report in a real browser: it renders alone, the slider moves, labels download, the search works, text stays text.

Debian's Chromium, driven by playwright. Where either is absent the tests are skipped, and say what to install.
"""

import csv
import importlib.util
import io
import os
import shutil
from contextlib import contextmanager

import pytest
from report_cases import HOSTILE, point, trade, whole
from test_training_run import logged

from naysay.report import ReviewPair, Table, report_run, write_report
from naysay.report.trade import false_text
from naysay.text import number, percent

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


@pytest.fixture(scope="module")
def page(chromium, plain):
    """The plain report, opened once for all tests that leave it usable."""
    with opened(chromium, plain) as page:
        yield page


def until(page, done):
    """Wait for what happens a moment later; the policy lets no waiting script into the page."""
    for _ in range(300):
        if done():
            return
        page.wait_for_timeout(100)
    pytest.fail("nothing happened")


def figures(page):
    read = "cells => Object.fromEntries(cells.map(cell => [cell.dataset.figure, cell.textContent]))"
    return page.eval_on_selector_all("[data-figure]", read)


def figures_of(now):
    """What Python writes for a point of the trade."""
    return {
        "target": percent(now.target),
        "false_share": false_text(now),
        "mean_score": number(now.mean_score) or "none",
        "dropped": f"{now.dropped:,}",
        "negatives": f"{now.negatives:,}",
        "empty": f"{now.empty:,}",
    }


def test_it_renders_alone(page, plain):
    assert plain.stat().st_size < 2_000_000
    assert page.locator("[data-chart] svg").count() == 4
    assert page.title() == "A report"
    assert "could not be drawn" not in page.inner_text("main")
    assert page.locator("[data-chart=trade] svg .mark-line path").count() == 1  # the trade
    assert page.locator("[data-chart=scores] svg .mark-line path").count() == 4  # positives, kept, and two reasons


def test_the_slider_moves_the_figures_and_the_point(chromium, tmp_path):
    given = trade(
        curve=(
            *(point(share=n / 3000, score=0.3 + n / 70, dropped=9000 - n, target=n / 3000) for n in range(1, 7)),
            point(share=0.0123456, score=float("nan"), negatives=0, empty=12345, target=0.0123456),
            point(share=0.3, score=1.0, low=0.0, target=0.3),
        ),
        chosen=point("these negatives", 0.001, 0.34, target=0.001),
    )
    with opened(chromium, write_report(tmp_path / "report.html", whole(trade=given))) as page:
        assert figures(page) == figures_of(given.curve[2])
        drawn = page.locator("[data-chart=trade] svg .mark-symbol path").last
        before = drawn.get_attribute("transform")
        for place, now in enumerate(given.curve):
            page.fill("#target", str(place))
            assert figures(page) == figures_of(now), place
        until(page, lambda: drawn.get_attribute("transform") != before)
        assert page.text_content("#command").strip() == "mined.rethreshold(false_share=0.3)"
        page.click("#reset")
        assert figures(page) == figures_of(given.curve[2])
        until(page, lambda: drawn.get_attribute("transform") == before)


def test_the_slider_moves_by_keyboard(page):
    page.focus("#target")
    for key, place in (("End", 11), ("ArrowLeft", 10), ("Home", 0), ("ArrowRight", 1), ("ArrowUp", 2)):
        page.keyboard.press(key)
        assert page.input_value("#target") == str(place)
        assert figures(page) == figures_of(trade().curve[place])
        assert page.get_attribute("#target", "aria-valuetext") == percent(trade().curve[place].target)


FITS = "chart => chart.querySelector('svg').getBoundingClientRect().width === chart.clientWidth"  # drawn for this width


def test_the_labels_do_not_cover_each_other(page):
    """As drawn, at any width: the boxes of the four labels."""
    for width in (360, 390, 900):
        page.set_viewport_size({"width": width, "height": 900})
        until(page, lambda: page.locator("[data-chart=trade]").evaluate(FITS))
        texts = page.locator("[data-chart=trade] svg .mark-text.role-mark text")
        boxes = [one.bounding_box() for one in texts.all()]
        names = texts.evaluate_all("all => all.map(one => one.textContent)")
        found = {}
        for name, box in zip(names, boxes, strict=True):  # each is there twice: its outline, and itself
            found[name] = box
        assert set(found) == {"nearest", "share 0.95", "margin 0.05", "these negatives"}
        for one in found.values():
            assert one["x"] >= 0
            assert one["x"] + one["width"] <= width
            assert one["height"] > 10  # letters are not scaled down
            for other in found.values():
                apart = one["y"] + 12 <= other["y"] or other["y"] + 12 <= one["y"]
                beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
                assert one is other or apart or beside, (width, one, other)


def test_labels_are_downloaded_as_the_file_that_mine_reads(chromium, tmp_path):
    hostile = '=1+1 "quoted", <b>bold</b>\nline'
    pairs = tuple(
        ReviewPair(f"q,{n}", f"{n} {hostile}", f"d{n}", "text", 0.5, 0.25 if n else float("nan")) for n in range(4)
    )
    with opened(chromium, write_report(tmp_path / "report.html", whole(review=pairs))) as page:
        page.click("summary:has-text('Label 4 pairs')")
        page.check("input[name=pair0][value=yes]")
        page.check("input[name=pair2][value=no]")
        page.check("input[name=pair3][value=yes]")
        page.check("input[name=pair3][value='']")  # a second thought
        assert page.text_content("#labelled") == "2 of 4 labelled"
        with page.expect_download() as waiting:
            page.click("#download")
        assert waiting.value.suggested_filename == "labels.csv"
        data = waiting.value.path().read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(data, newline="")))
    columns = ["query_id", "query_text", "document_id", "document_text", "score", "posterior", "false_negative"]
    assert list(rows[0]) == columns
    assert [row["false_negative"] for row in rows] == ["yes", "", "no", ""]
    assert [row["query_id"] for row in rows] == [pair.query_id for pair in pairs]
    assert [row["query_text"] for row in rows] == [pair.query_text for pair in pairs]
    assert [row["posterior"] for row in rows] == ["", "0.25", "0.25", "0.25"]


def test_the_search_finds_and_hides(page):
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


def test_figures_are_on_the_right_and_on_one_line(chromium, tmp_path):
    figures = ["0.41", "-3", "+0.0290 ± 0.0179", "1,200 (2 of 3)", "12 %", 7, 0.25]
    rows = tuple((cell, "first ± 2") for cell in figures)
    path = write_report(tmp_path / "report.html", whole(result=Table("Arms", ("recall", "name"), rows)))
    with opened(chromium, path) as page:
        page.set_viewport_size({"width": 320, "height": 900})
        read = "all => all.map(one => [getComputedStyle(one).textAlign, one.getBoundingClientRect().height])"
        cells = page.locator("section[aria-labelledby=result] td").evaluate_all(read)
    assert [side for side, _ in cells] == ["right", "left"] * len(figures)
    assert max(height for _, height in cells) < 1.5 * min(height for _, height in cells)


def test_light_and_dark_differ_and_can_be_read(chromium, plain, tmp_path):
    found = {}
    with opened(chromium, plain) as page:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)
            colours = page.evaluate(
                """() => {
                  const style = getComputedStyle(document.documentElement);
                  const curve = document.querySelector("[data-chart=scores] svg .mark-line path");
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
        assert {"target", "reset", "find", "kind", "download", "SUMMARY"} <= reached
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("input, select, button")].filter(
                 one => !(one.labels && one.labels.length) && !one.textContent.trim()).map(one => one.id)"""
        )
        assert nameless == []
        snapshot = page.locator("body").aria_snapshot()
        for wanted in (
            'heading "A report" [level=1]',
            'slider "Move the target: the largest estimated false share"',
            'searchbox "Find"',
            "table",
            "img",
        ):
            assert wanted in snapshot, wanted
        assert page.locator("[aria-live=polite]").count() == 3
        charts = page.locator("[data-chart]").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        assert charts[0].startswith("Estimated false share over mean score")
        assert all(label and label != "Vega visualization" for label in charts)


def test_what_changes_is_said_once(chromium, plain):
    with opened(chromium, plain) as page:
        assert page.text_content("#announced") == ""
        page.fill("#target", "7")
        page.fill("#target", "8")
        until(page, lambda: page.text_content("#announced"))
        now = figures_of(trade().curve[8])
        said = f"target {now['target']}, false negatives, estimated {now['false_share']}, hardness: mean score"
        assert page.text_content("#announced").startswith(said)


def test_it_fits_a_small_screen(page):
    for width in (320, 390, 900, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints_with_nothing_folded_away(page):
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
        assert figures(page) == figures_of(trade().curve[4])
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


@pytest.mark.parametrize(("scheme", "width"), [("dark", 360)])
def test_the_page_of_a_training_run(chromium, tmp_path, scheme, width):
    """Every measure that a run is judged by has a drawn curve, in each of the three ways to look at it."""
    path = report_run(logged(tmp_path / "run.jsonl"), tmp_path / "run.html")
    with opened(chromium, path, color_scheme=scheme) as page:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert "could not be drawn" not in page.inner_text("main")
        labels = "all => all.map(one => one.getAttribute('aria-label').split(' over the steps')[0])"
        drawn = page.eval_on_selector_all("[data-chart]:has(svg .mark-line path)", labels)
        for title in ("Scores", "Negatives above their positive", "False negatives", "Gradient by difficulty",
                      "How many negatives count", "Repeats", "Rows without negatives", "Empty slots"):  # fmt: skip
            assert title in drawn
            labelled = f"[data-chart][aria-label^='{title} over'] svg .role-axis:has(.role-axis-label text)"
            assert page.locator(labelled).count() == 2  # both axes, also where all is 0
        assert page.locator("[data-chart] svg .mark-rect path").count() > 10  # histograms over the steps
