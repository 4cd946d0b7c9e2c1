"""Users' text: escaped, cleaned, cut, and JSON that cannot end its element."""

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from report_cases import HOSTILE

from naysay.report._html_parts import attribute, boxed, script_data, shown_text
from naysay.report.charts import short_names

ANY = st.text(st.characters(codec=None, categories=None), max_size=60)


class Seen(HTMLParser):
    """What a browser would see: tags, and text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


@given(ANY)
@example("<script>")
@example("&lt;")
@example("\ud800\x00\x1b")
def test_a_text_is_seen_as_it_is_and_holds_no_tag(text):
    seen = Seen(shown_text(text))
    assert seen.tags == []
    without = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]", "\ufffd", text)
    assert "".join(seen.text) == without
    shown_text(text).encode()  # no half of a surrogate pair is left


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_text(text):
    assert set(Seen(boxed(text)).tags) <= {"bdi", "span"}
    assert Seen(boxed(text)).tags[0] == "bdi"
    inside = attribute(text)
    assert not set('<>"') & set(inside)
    assert "'" not in inside
    inside.encode()


def test_a_long_text_is_cut_and_says_by_how_much():
    assert shown_text("x" * 400) == "x" * 400
    assert shown_text("x" * 401) == "x" * 400 + '<span class="more"> … 1 more character</span>'
    assert shown_text("x" * 1_000_000).endswith('<span class="more"> … 999,600 more characters</span>')
    assert shown_text("abcdef", 3) == 'abc<span class="more"> … 3 more characters</span>'
    assert attribute("abcdef", 3) == "abc…"
    assert attribute("abc", 3) == "abc"


@pytest.mark.parametrize("letter", ["<", '"', "\U0001f600", "\u6f22", "a"])
def test_a_text_takes_a_bounded_room_whatever_its_letters(letter):
    shown = shown_text(letter * 10_000)
    head = shown.partition('<span class="more">')[0]
    assert 300 <= len(head.encode()) <= 1200
    missing = int(re.search(r"… ([\d,]+) more", shown)[1].replace(",", ""))
    assert "".join(Seen(head).text).count(letter) + missing == 10_000


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | ANY, lambda parts: st.lists(parts) | st.dictionaries(ANY, parts)
    )
)
@example("</script><!--\u2028\u2029&")
def test_json_comes_back_and_cannot_end_its_element(data):
    text = script_data(data)
    assert json.loads(text) == data
    assert not set("<>&\u2028\u2029\x7f\x85") & set(text)
    text.encode()


def test_short_names_are_cut_and_differ():
    assert short_names(["a", "b"]) == ["a", "b"]
    assert short_names(["x" * 70 + "1", "x" * 70 + "2", "x"]) == ["x" * 60 + "…", "x" * 60 + "… (2)", "x"]
    assert len(set(short_names(["ab"] * 5, 1))) == 5


def test_json_has_no_nan():
    with pytest.raises(ValueError, match="JSON"):
        script_data(float("nan"))
