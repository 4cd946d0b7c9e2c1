"""Users' text in the file: escaped, cleaned, cut, and data that cannot end its script element."""

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup
from report_cases import Page, whole, written

from naysay.report import Chart, Contents

ANY = st.text(st.characters(codec=None, categories=None), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY, lambda parts: st.lists(parts) | st.dictionaries(ANY, parts)
)
pytestmark = pytest.mark.usefixtures("quick")


def page_of(contents):
    with tempfile.TemporaryDirectory() as folder:
        return written(Path(folder), contents)


def lead_of(text):
    """The tags in the first sentence of a page, and its text."""
    page = Page(page_of(Contents("Title", (text,))))
    ((_, shown),) = page.all("p", **{"class": "lead"})
    return [tag for tag, _ in page.tags], shown


@given(ANY)
@example("<script>")
@example("&lt;")
@example("\ud800\x00\x1b")
@example("{{ 7 * 7 }} {% raw %} {# hidden #}")
def test_a_text_is_seen_as_it_is_and_holds_no_tag(text):
    tags, shown = lead_of(text)
    assert tags == lead_of("plain")[0]
    assert shown == re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]", "\ufffd", text)


def test_a_text_that_says_it_is_safe_markup_is_text():
    assert lead_of(Markup("<b>bold</b>"))[1] == "<b>bold</b>"
    assert "<b>" not in page_of(whole(Markup("<b>bold</b>")))


@pytest.mark.parametrize("letter", ["<", '"', "\U0001f600", "\u6f22", "a"])
def test_a_text_adds_a_bounded_number_of_bytes_whatever_its_letters(letter):
    text = page_of(Contents("Title", (letter * 10_000,)))
    empty = page_of(Contents("Title", ("",)))
    assert 300 <= len(text.encode()) - len(empty.encode()) <= 1300
    shown = lead_of(letter * 10_000)[1]
    missing = int(re.search(r"… ([\d,]+) more", shown)[1].replace(",", ""))
    assert shown.partition(" … ")[0].count(letter) + missing == 10_000


@given(JSON)
@example("</script><!--\u2028\u2029&")
@example("\ud800 \udfff")
def test_data_comes_back_and_cannot_end_its_element(data):
    text = page_of(Contents("Title", ("do",), charts=(Chart("c", {"name": data}, "d"),)))
    page = Page(text)
    assert page.data["charts"]["chart0"]["name"] == data
    assert not set("<>&") & set(page.all("script", id="data")[0][1])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes"])
def test_a_chart_holds_what_json_can_hold(value):
    with pytest.raises(ValueError, match="spec") as caught:
        Chart("Means", {"data": {"values": [{"x": value}]}}, "A point.")
    assert caught.value.parameter == "spec"
