"""Folding and hashing texts: what a reader calls the same is the same, and no text is too strange."""

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay.detectors import _text_hash as text_hash
from naysay.detectors._text_hash import Folding, fold, folded_blocks, keys_of, read_texts

ANY = st.text(st.characters(exclude_categories=()), max_size=40)  # lone surrogates included
PLAIN, EXACT = Folding(punctuation=True), Folding(punctuation=False)


def keys(texts, *, punctuation=True):
    return np.concatenate([keys_of(block) for block in folded_blocks(texts, punctuation=punctuation)])


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Paris.", "paris"),
        ("  PARIS \t\n ", "paris"),
        ("¿Dónde está?", "dónde está"),
        ("Cafe\u0301", "café"),
        ("\ufb01ne \uff30\uff21\uff32\uff29\uff33 \u2460", "fine paris 1"),
        ("Straße", "strasse"),
        ("don\u2019t", "don t"),
        ("don't", "don t"),
        ("\u202b\u05e9\u05dc\u05d5\u05dd\u202c\u200f", "\u05e9\u05dc\u05d5\u05dd"),
        ("zero\u200bwidth soft\u00adhyphen \ufeffmark ❤\ufe0f", "zerowidth softhyphen mark ❤"),
        ("C# and C++, 5% of a/b", "c# and c++ 5% of a/b"),
        ("-5 is not 5", "\u22125 is not 5"),
        ("well-known 3-5", "well known 3 5"),
        ("\u20135, \u20125, \u20105, \u22125, \ufe635, \uff0d5", " ".join(["\u22125"] * 6)),
        ("(-5) or --5", "\u22125 or \u22125"),
        ("3\u20135 x - 5 \u20145", "3 5 x 5 5"),
        ("-.5 and \u2013.5", "\u22120 5 and \u22120 5"),
        ("a dose of .5 mg", "a dose of 0 5 mg"),
        (".5 (.5) $.5 x=.5", "0 5 0 5 $0 5 x=0 5"),
        ("0.5 1.5 1,5 .5.6", "0 5 1 5 1 5 0 5 6"),
        ("fig.5, no. 5 ...5 end.", "fig 5 no 5 5 end"),
        ("\u0663.\u0665 .\u0665", "\u0663 \u0665 0 \u0665"),
        ("東京タワー", "東 京 タ ワ ー"),
        ("สวัสดี", "ส ว ั ส ด ี"),
        ("?!", "?!"),
        (" ?\n! ", "? !"),
        ("", ""),
        (" \u200b\u200f\t\x00 ", ""),
        ("a\x00b", "a b"),
        ("\ud800x", "\ud800x"),
    ],
)
def test_what_is_left_of_a_text(text, folded):
    assert fold(text, Folding(punctuation=True)) == folded


def test_punctuation_may_be_kept():
    assert fold("x.y, (Z)", EXACT) == "x.y, (z)"
    assert fold("-5", EXACT) == "-5"
    assert fold(".5", EXACT) == ".5"


@given(ANY)
def test_folding_twice_changes_nothing(text):
    assert fold(fold(text, PLAIN), PLAIN) == fold(text, PLAIN)


@given(st.lists(ANY, min_size=1, max_size=6))
def test_keys_are_equal_where_folded_texts_are(texts):
    found = keys(texts)
    for i, one in enumerate(texts):
        assert (found[i] == 0) == (fold(one, PLAIN) == "")
        for j, other in enumerate(texts):
            assert (found[i] == found[j]) == (fold(one, PLAIN) == fold(other, PLAIN))


def test_keys_are_the_same_on_every_machine():
    assert keys(["Paris.", "", "paris", "\ud800"]).tolist() == [
        1657316678316814225,
        0,
        1657316678316814225,
        7497787021708494914,
    ]


def test_bytes_are_texts_and_broken_ones_stay_apart():
    found = keys([b"Paris", "Paris", b"\xff\xfe", b"\xff\xfd"])
    assert found[0] == found[1]
    assert len(set(found[1:].tolist())) == 3


@pytest.mark.parametrize("text", ["e" + "\u0301\u0316" * 3000, "é" * 5000, "wörd " * 2000, "東" * 4000])
def test_long_texts_are_normalised_in_short_pieces(text, monkeypatch):
    """Sorting n accents on one letter takes n^2 steps, so a megabyte of them would take hours in one piece."""
    lengths = []
    piece = text_hash._normal_piece
    monkeypatch.setattr(text_hash, "_normal_piece", lambda part: lengths.append(len(part)) or piece(part))
    fold(text, Folding(punctuation=True))
    assert sum(lengths) >= len(text.replace(" ", ""))
    assert max(lengths) <= 512 + 32


def test_long_words_fold_as_short_ones_do():
    word = "\uff21\u00e9" * 3000
    assert fold(word, PLAIN) == "aé" * 3000
    marked = "x" + "e\u0301" * 700  # a cut would fall between a letter and its accent
    assert fold(marked, PLAIN) == unicodedata.normalize("NFKC", marked)


@pytest.mark.parametrize("texts", [["a", "b"], ("a", "b"), np.array(["a", "b"]), pa.array(["a", "b"])])
def test_texts_come_in_many_forms(texts):
    assert read_texts("item_texts", texts) == ["a", "b"]
