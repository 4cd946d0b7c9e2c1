"""The file: one, whole, with a policy that names its scripts, and users' text as text. No browser here."""

import base64
import hashlib
import os
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from report_cases import HOSTILE, Page, example, pair, point, trade, whole, written

from naysay.errors import NaysayError
from naysay.report import Chart, Contents, Examples, ReviewPair, Table, difficulty_by_percentile, write_report


def test_the_page_is_well_formed(quick, tmp_path):
    text = written(tmp_path, whole())
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert page.stack == []
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert text.index("Train on it.") < text.index("Then look.") < text.index("<nav")
    for given, _ in page.all("a"):
        assert f'id="{given["href"][1:]}"' in text
    names = [given["id"] for _, given in page.tags if "id" in given]
    assert len(names) == len(set(names))
    assert all(text for _, text in page.all("caption"))
    assert len(page.all("caption")) == len(page.all("table"))
    for given, _ in page.all("div", role="img"):
        assert given["aria-label"]
    assert page.all("html")[0][0]["lang"] == "en"


def test_the_main_table_comes_first_and_is_open(quick, tmp_path):
    table = Table("Arms", ("name", "recall"), (("first", 0.41),))
    text = written(tmp_path, whole(result=table))
    page = Page(text)
    assert page.all("h2")[0][1] == "Arms"
    start = text.index("<h2")
    assert "first" in text[start : text.index("</section>")]
    assert "<details" not in text[start : text.index("</section>")]


def test_the_policy_names_the_scripts_and_nothing_else(quick, tmp_path):
    page = Page(written(tmp_path, whole()))
    (policy,) = [given["content"] for given, _ in page.all("meta") if "http-equiv" in given]
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == parts["base-uri"] == parts["form-action"] == "'none'"
    assert set(parts) == {"default-src", "base-uri", "form-action", "script-src", "style-src"}
    scripts = [text for given, text in page.all("script") if "type" not in given]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert parts["script-src"].split() == [f"'sha256-{one}'" for one in hashes]
    assert scripts[0] == quick
    assert "unsafe-eval" not in policy


def test_nothing_points_outside(quick, tmp_path):
    page = Page(written(tmp_path, whole("https://example.org/x.js")))
    for tag, given in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "source", "video", "audio")
        assert "src" not in given
        assert given.get("href", "#").startswith("#")
        assert not [name for name in given if name.startswith("on") or name == "style"]


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_hostile_text_anywhere_is_text(quick, tmp_path, place):
    plain, hostile = Page(written(tmp_path, whole("x"))), Page(written(tmp_path, whole(HOSTILE[place])))
    assert [tag for tag, _ in hostile.tags if tag != "span"] == [tag for tag, _ in plain.tags if tag != "span"]
    assert [sorted(given) for tag, given in hostile.tags if tag != "span"] == [
        sorted(given) for tag, given in plain.tags if tag != "span"
    ]
    data = hostile.data
    assert data["trade"]["start"] == 4
    assert [row[0] for row in data["review"]] == [f"q{n}" for n in range(5)]
    assert all(len(cell) <= 400 for row in data["review"] for cell in row)
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


def test_texts_are_cut_and_shown(quick, tmp_path):
    text = written(tmp_path, whole(examples=(Examples("Long", "long", (example("y" * 1_000_000),)),)))
    assert len(re.findall("… 999,6[0-9]+ more characters", text)) == 3
    assert len(text) < 200_000


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: trade(curve=()), "curve"),
        (lambda: trade(curve=(point(),)), "curve"),
        (lambda: trade(chosen=3), "chosen"),
        (lambda: trade(command="f()"), "command"),
        (lambda: point(share=1.5), "false_share"),
        (lambda: point(empty=-1), "empty"),
        (lambda: Contents("t", ("do",), result=3), "result"),
        (lambda: Contents("t", ("do",), trade=3), "trade"),
        (lambda: Contents("t", ("do",), review=("x",)), "review[0]"),
    ],
)
def test_an_invalid_trade_or_pair(call, parameter):
    with pytest.raises(NaysayError) as caught:
        call()
    assert caught.value.parameter == parameter


def test_long_tables_end_with_a_count(quick, tmp_path):
    given = Table("Long", ("n",), tuple((n,) for n in range(1200)))
    page = Page(written(tmp_path, Contents("t", ("do",), tables=(given,))))
    assert len(page.all("tr")) == 201
    assert "1,000 more rows are not shown." in page.all("p", **{"class": "note"})[0][1]


def test_a_small_report_has_only_what_it_was_given(quick, tmp_path):
    page = Page(written(tmp_path, Contents("Small", ("Do nothing.",))))
    assert page.all("h2") == []
    assert page.all("form") == []


def test_without_the_extra_there_are_tables_and_a_note(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    page = Page(written(tmp_path, whole()))
    assert page.all("div", role="img") == []
    assert len([1 for given, _ in page.all("script") if "type" not in given]) == 1
    assert len([1 for given, _ in page.all("details") if "open" in given]) == 4
    assert "pip install '.[report]'" in "".join(text for _, text in page.all("li"))
    assert "Share of scores over the score" in "".join(text for _, text in page.all("p"))


def test_the_same_contents_give_the_same_bytes(quick, tmp_path):
    first = write_report(tmp_path / "a.html", whole()).read_bytes()
    assert write_report(str(tmp_path / "b.html"), whole()).read_bytes() == first


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_report_is_written_whole_or_not_at_all(quick, tmp_path, monkeypatch, step):
    path = tmp_path / "report.html"
    path.write_text("before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(
        NaysayError, match=r"^write_report: `path` must be a file that can be written, got .*the disk is full"
    ):
        write_report(path, whole())
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".", r"^write_report: `path` must be a file, got the folder '.*'\.$"),
        ("none/report.html", r"^write_report: `path` must be in an existing folder, got '.*none/report\.html'\.$"),
        ("x" * 300, r"^write_report: `path` must be a file that can be written, got "),
    ],
)
def test_a_place_that_cannot_be_written_is_rejected(quick, tmp_path, path, message):
    with pytest.raises(NaysayError, match=message):
        write_report(tmp_path / path, whole())


def test_other_things_than_contents_are_rejected(tmp_path):
    with pytest.raises(NaysayError, match=r"^write_report: `contents` must be Contents, got dict\.$"):
        write_report(tmp_path / "a.html", {})


def test_a_page_that_would_be_too_large_is_rejected(quick, tmp_path):
    spec = {"data": {"values": [{"x": n / 7} for n in range(100_000)]}, "mark": "point"}
    contents = Contents("t", ("do",), charts=(Chart("c", spec, "points"),))
    message = (
        r"^write_report: `contents` must be of at most 2,000,000 bytes as a page, got 2,\d+,\d+\. Give charts fewer"
    )
    with pytest.raises(NaysayError, match=message):
        write_report(tmp_path / "a.html", contents)
    assert os.listdir(tmp_path) == []


def test_pairs_to_label_are_no_formulas_in_the_downloaded_file(quick, tmp_path):
    pair = ReviewPair("=1+1", "@query", "-7", "+text", -0.5, float("nan"))
    page = Page(written(tmp_path, Contents("t", ("do",), review=(pair,))))
    assert page.data["review"] == [["'=1+1", "'@query", "'-7", "'+text", "-0.5", ""]]


BLOCKS = {"caption", "dd", "dt", "figcaption", "h1", "h2", "h3", "label", "legend", "li", "p", "summary", "title", "tr"}


class Lines(HTMLParser):
    """The text of a page as a reader sees it, a line for each block, without the scripts and the style."""

    def __init__(self, text):
        super().__init__()
        self.lines, self.skipped = [""], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.skipped = tag in ("script", "style")
        if tag in BLOCKS:
            self.lines.append(f"{tag}: ")
        elif tag in ("td", "th"):
            self.lines[-1] += "| "

    def handle_endtag(self, tag):
        self.skipped = False

    def handle_data(self, data):
        if not self.skipped:
            self.lines[-1] += " ".join(data.split()) + (" " if data.strip() else "")


def test_the_text_of_a_page(quick, tmp_path, golden):
    """All that a reader sees. After a change of words run `pytest tests/report --update-golden`, and read the diff."""
    rows = (("first", 0.41), ("second", 0.52))
    table = Table("Encoders", ("name", "mean score"), rows, "3,200 negatives each.", "A note.", mark=(1,))
    chart = difficulty_by_percentile([25, 75], [0.2, 0.6], {"suspected": [0.0, 0.1]}, caption="Within an anchor.")
    groups = (Examples("The hardest", "hardest", (example(),), "One."), Examples("Dropped", "dropped", (example(),)))
    contents = whole(tables=(table,), charts=(chart,), examples=groups, review=(pair(1), pair(2)))
    lines = [line.strip() for line in Lines(written(tmp_path, contents)).lines]
    golden("report/page.txt", "".join(f"{line}\n" for line in lines if line))
