"""Duplicates: the positive and the anchor under another id, whatever tells them apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.arrays import to_numpy
from naysay.detectors import Duplicates

TEXTS = ["Paris.", "paris", "Rome", "", " \u200f", "the eternal city", "What is the capital of France?", "ROME!"]
ASKED = ["what is the capital of france", "Where is the Colosseum", ""]


def names(duplicates, query, negatives):
    return [
        [Duplicates.reason_names[reason] for reason in row]
        for row in to_numpy(duplicates.reasons(query, negatives)).tolist()
    ]


# ---- what the peers get wrong ---------------------------------------------------------------------------


def test_the_anchor_is_not_its_own_negative_in_symmetric_data():
    """sentence-transformers 6.2.0 mines the triplet (A, B, A) from the pairs (A, B), (C, A), (D, E)."""
    anchors, items = ["A sentence", "C another", "D third"], ["B one", "A sentence", "E last"]
    known = ns.Positives.from_pairs([0, 1, 2], [0, 1, 2])
    pool = ns.pools.Everything(known)
    query = ns.Query([0, 1, 2], positives=[0, 1, 2])
    negatives = ns.samplers.Static(pool).sample(query, 2, rng=ns.rng_for(0))
    duplicates = Duplicates(item_texts=items, anchor_texts=anchors)
    found = duplicates.suspicion(query, negatives)
    assert (found == (negatives.ids == 1) * (np.arange(3) == 0)[:, None]).all()
    assert found.sum() == 1
    assert "anchor" in names(duplicates, query, negatives)[0]


def test_the_anchor_is_found_by_its_id_where_ids_are_shared():
    duplicates = Duplicates(shared_ids=True)
    query, negatives = ns.Query([3, 4]), ns.Negatives(np.array([[3, 4, -1], [3, 4, 9]]))
    assert duplicates.suspicion(query, negatives).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert names(duplicates, query, negatives) == [["anchor", "none", "none"], ["none", "anchor", "none"]]


def test_a_spelling_of_the_positive_is_not_the_top_negative():
    """sentence-transformers 6.2.0 returns "paris" as the top negative where "Paris." is the positive."""
    duplicates = Duplicates(item_texts=TEXTS, anchor_texts=ASKED)
    query, negatives = ns.Query([0], positives=[0]), ns.Negatives(np.array([[1, 2, 6, 0, 3, -1]]))
    assert duplicates.suspicion(query, negatives).tolist() == [[1, 0, 1, 1, 0, 0]]
    assert names(duplicates, query, negatives) == [["same text", "none", "anchor", "positive", "none", "none"]]


# ---- texts ----------------------------------------------------------------------------------------------


FOLDED = {"Paris": "p", "paris.": "p", "PARIS!": "p", "Rome": "r", "rome": "r", "": "", "\u200b": "", "x\ud800": "x"}


@given(st.data())
def test_equal_texts_as_in_loops(data):
    word = st.sampled_from([*FOLDED])
    items = data.draw(st.lists(word, min_size=1, max_size=8))
    anchors = data.draw(st.lists(word, min_size=3, max_size=3))
    some = st.integers(0, len(items) - 1)
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 2), some), max_size=6))
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], 3, len(items))
    rows = data.draw(st.lists(st.integers(0, 2), max_size=4))
    own = data.draw(st.none() | st.lists(some, min_size=len(rows), max_size=len(rows)))
    ids = np.array([[data.draw(st.integers(-1, len(items) - 1)) for _ in range(3)] for _ in rows], np.int64)
    query, negatives = ns.Query(np.array(rows, np.int64), positives=own), ns.Negatives(ids.reshape(len(rows), 3))
    duplicates = Duplicates(item_texts=items, anchor_texts=anchors, positives=known, jaccard=None)
    found, why = duplicates.suspicion(query, negatives), names(duplicates, query, negatives)
    for row, anchor in enumerate(rows):
        positives = [item for a, item in pairs if a == anchor] + ([] if own is None else [own[row]])
        for slot in range(3):
            item = ids[row, slot]
            text = "" if item < 0 else FOLDED[items[item]]
            reason = "none"
            if item in positives:
                reason = "positive"
            elif text and text == FOLDED[anchors[anchor]]:
                reason = "anchor"
            elif text and text in [FOLDED[items[p]] for p in positives]:
                reason = "same text"
            assert why[row][slot] == reason
            assert found[row, slot] == (reason != "none")


def varied(rng, text, share):
    """The same text with some words replaced."""
    words = text.split()
    for place in rng.choice(len(words), round(share * len(words)), replace=False):
        words[place] = f"new{place}"
    return " ".join(words)


def test_near_texts_are_found_in_a_planted_corpus():
    rng = np.random.default_rng(0)
    originals = [" ".join(f"w{word}" for word in rng.integers(0, 3000, 150)) for _ in range(100)]
    copies = [text.upper().replace(" ", ",  ", 20) + "." for text in originals]
    edited = [varied(rng, text, 0.01) for text in originals]  # 1 of 75 words: Jaccard about 0.95
    distant = [varied(rng, text, 0.3) for text in originals]  # Jaccard about 0.2
    duplicates = Duplicates(item_texts=[*originals, *copies, *edited, *distant])
    rows = np.arange(100)
    others = (rows + 1) % 100
    ids = np.stack([100 + rows, 200 + rows, 300 + rows, others, 100 + others, 200 + others], 1)
    query = ns.Query(rows, positives=rows)
    flagged = duplicates.suspicion(query, ns.Negatives(ids)) >= 0.5
    assert flagged[:, :2].all()
    assert not flagged[:, 2:].any()
    assert {reason for row in names(duplicates, query, ns.Negatives(ids[:, 1:2])) for reason in row} == {"near text"}


def test_jaccard_none_looks_for_equal_texts_only():
    text = " ".join(f"w{i}" for i in range(200))
    asked = ns.Query([0], positives=[0]), ns.Negatives(np.array([[1, 2]]))
    assert Duplicates(item_texts=[text, f"{text} end", text], jaccard=None).suspicion(*asked).tolist() == [[0, 1]]
    assert Duplicates(item_texts=[text, f"{text} end", text]).suspicion(*asked)[0, 0] > 0.9


def test_scripts_without_spaces_have_near_texts_too():
    text = "".join(chr(0x4E00 + i * 7) for i in range(120))
    duplicates = Duplicates(item_texts=[text, f"{text}新", text[:20]])
    found = duplicates.suspicion(ns.Query([0], positives=[0]), ns.Negatives(np.array([[1, 2]])))
    assert found[0, 0] >= 0.5 > found[0, 1]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("a dose of .5 mg", "a dose of 5 mg", False),
        ("a dose of .5 mg", "A dose of 0.5 mg.", True),
        ("-.5", "5", False),
        ("-.5", ".5", False),
        ("-.5", "-0.5", True),
        ("\u20135 °C", "5 °C", False),
        ("\u22125 °C", "5 °C", False),
        ("\u20135 °C", "-5 °C", True),
        ("\u22125 °C", "-5 °C", True),
        ("pages 3-5", "pages 3\u20135", True),
        ("x - 5", "x 5", True),  # a dash, like any other punctuation
        ("see p.12", "see p. 12", True),
        ("3\u20135 x \u20145", "3 5 x 5", True),
        ("fig.5", "fig 0.5", False),
        ("1.5", "1,5", True),
        ("C# and C++, 5% of a/b", "c# and C++ 5% of a/b", True),
        ("C#", "C", False),
        ("a/b", "a b", False),
        ("  PARIS \t\n ", "Paris.", True),
        ("Cafe\u0301", "caf\u00e9", True),
        ("\ufb01ne \uff30\uff21\uff32\uff29\uff33 \u2460", "fine paris 1", True),
        ("Stra\u00dfe", "strasse", True),
        ("don\u2019t", "don't", True),
        ("\u202b\u05e9\u05dc\u05d5\u05dd\u202c\u200f", "\u05e9\u05dc\u05d5\u05dd", True),
        ("zero\u200bwidth soft\u00adhyphen \ufeffmark", "zerowidth softhyphen mark", True),
        ("?!", "? !", False),
        ("a\x00b", "a b", True),
        (b"caf\xc3\xa9", "caf\u00e9", True),
        (b"\xff", b"\xfe", False),
        ("e" + "\u0301" * 3000, "e" + "\u0301" * 3001, False),  # in short pieces: not in hours
    ],
)
def test_texts_are_the_same_where_a_reader_would_say_so(one, other, alike):
    duplicates = Duplicates(item_texts=[one, other])
    query, negatives = ns.Query([0], positives=[0]), ns.Negatives(np.array([[1]]))
    assert (names(duplicates, query, negatives) == [["same text"]]) == alike
    assert (duplicates.suspicion(query, negatives)[0, 0] >= 0.5) == alike


def test_punctuation_may_matter():
    code = Duplicates(item_texts=["a.b()", "a b"], punctuation=False)
    asked = ns.Query([0], positives=[0]), ns.Negatives(np.array([[1]]))
    assert code.suspicion(*asked).tolist() == [[0]]
    assert Duplicates(item_texts=["a.b()", "a b"]).suspicion(*asked).tolist() == [[1]]


def test_strange_texts_are_texts():
    texts = ["\ud83d", b"\xff\xfe broken", "x" * 1_000_000, "\u202eabc\u202c", "abc", ""]
    duplicates = Duplicates(item_texts=texts)
    found = duplicates.suspicion(ns.Query([0, 1], positives=[3, 5]), ns.Negatives(np.array([[4, 0, 2], [5, 1, 2]])))
    assert found.tolist() == [[1, 0, 0], [1, 0, 0]]  # an empty text is its own positive by id alone


# ---- vectors --------------------------------------------------------------------------------------------


@given(st.data())
def test_the_nearest_vector_as_in_loops(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    items, anchors = rng.standard_normal((6, 3)), rng.standard_normal((2, 3)) * 100
    items[1] = items[0] * 7 + rng.standard_normal(3) * 0.1
    pairs = rng.integers(0, [2, 6], (data.draw(st.integers(0, 4)), 2))
    known = ns.Positives.from_pairs(pairs[:, 0], pairs[:, 1], 2, 6)
    with_anchors = data.draw(st.booleans())
    duplicates = Duplicates(
        item_vectors=items, anchor_vectors=anchors if with_anchors else None, positives=known, cosine=0.9
    )
    rows, ids = rng.integers(0, 2, 4), rng.integers(-1, 6, (4, 3))
    found = duplicates.suspicion(ns.Query(rows), ns.Negatives(ids))
    for row, anchor in enumerate(rows):
        others = [items[item] for a, item in pairs if a == anchor] + ([anchors[anchor]] if with_anchors else [])
        for slot, item in enumerate(ids[row]):
            if item < 0:
                assert found[row, slot] == 0
                continue
            cosines = [items[item] @ o / np.linalg.norm(items[item]) / np.linalg.norm(o) for o in others]
            v = max([0.0, *cosines])
            expected = 1.0 if (anchor, item) in set(map(tuple, pairs)) else formula(v, 0.9)
            assert found[row, slot] == pytest.approx(expected, abs=1e-5)


def formula(value, threshold):
    if value <= 0 or value >= 1:
        return float(value >= 1)
    logit = 2 * (np.log(value / (1 - value)) - np.log(threshold / (1 - threshold)))
    return 1 / (1 + np.exp(-logit))


# ---- what is known --------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=14), st.booleans())
def test_transitive_positives_as_in_loops(pairs, ignore):
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], 5, 7)
    if ignore:  # a pair to ignore is no positive, and links nothing
        known = known.with_ignored([0, 1, 2], [6, 6, 6])
    duplicates = Duplicates(positives=known, transitive=0.75)
    ids = np.tile(np.arange(7), (5, 1))
    found = duplicates.suspicion(ns.Query(np.arange(5)), ns.Negatives(ids))
    rows = {a: {i for b, i in pairs if b == a} for a in range(5)}
    for anchor in range(5):
        for item in range(7):
            if item in rows[anchor]:
                assert found[anchor, item] == 1
            else:
                linked = any(item in other and other & rows[anchor] for other in rows.values())
                assert found[anchor, item] == (0.75 if linked else 0)
