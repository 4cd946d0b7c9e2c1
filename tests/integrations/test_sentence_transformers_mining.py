"""mine_hard_negatives against the function of sentence-transformers itself, where that package is installed."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_mining import cosine
from stand_in_models import Encoder, Scorer, on_a_circle, random_table

from naysay.integrations.sentence_transformers import mine_hard_negatives

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import datasets
    from sentence_transformers.util import mine_hard_negatives as theirs

FORMATS = ["triplet", "n-tuple", "labeled-pair", "labeled-list"]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@st.composite
def worlds(draw):
    """Pairs of questions and documents, some of them twice; a corpus or none; vectors for all of them."""
    n_questions, n_documents = draw(st.integers(1, 8)), draw(st.integers(2, 11))
    one = st.tuples(st.integers(0, n_questions - 1), st.integers(0, n_documents - 1))
    rows = [(f"question {a}", f"document {p}") for a, p in draw(st.lists(one, min_size=1, max_size=20))]
    extra = draw(st.none() | st.lists(st.integers(0, n_documents - 1), max_size=14))
    corpus = None if extra is None else [f"document {place}" for place in extra]
    names = [f"question {a}" for a in range(n_questions)] + [f"document {p}" for p in range(n_documents)]
    return rows, corpus, random_table(names, draw(st.integers(0, 2**32 - 1)))


SHAPES = st.fixed_dictionaries(
    {"num_negatives": st.integers(1, 4), "output_format": st.sampled_from(FORMATS), "output_scores": st.booleans()}
)
BOUNDS = st.fixed_dictionaries(
    {},
    optional={
        "absolute_margin": st.floats(-0.5, 0.5, width=16),
        "relative_margin": st.floats(0, 0.75, width=16),
        "max_score": st.floats(-0.5, 0.75, width=16),
        "min_score": st.floats(-0.75, 0.5, width=16),
    },
)


def both(rows, corpus, table, cross_encoder=None, **options):
    """Their answer and ours, to the same question."""
    columns = {"anchor": [a for a, _ in rows], "positive": [p for _, p in rows]}
    dataset = datasets.Dataset.from_dict(columns)
    answers = []
    for mine in (theirs, mine_hard_negatives):
        given = {"cross_encoder": cross_encoder, "verbose": False, **options}
        answers.append(mine(dataset, Encoder(table), corpus=corpus, **given))
    return answers


def assert_equal(expected, found):
    assert type(found) is type(expected)
    assert found.column_names == expected.column_names
    assert len(found) == len(expected)
    if len(expected):
        assert found.features == expected.features
    for name in expected.column_names:
        if name in ("score", "scores"):
            one, other = (
                np.array([n for row in answer[name] for n in np.atleast_1d(row)]) for answer in (expected, found)
            )
            assert np.abs(one - other).max(initial=0) < 1e-6
        else:
            assert list(found[name]) == list(expected[name])


@settings(max_examples=12)
@given(worlds(), SHAPES, st.integers(0, 3), st.none() | st.integers(0, 5), st.booleans())
def test_ranks_alone(world, shape, range_min, room, use_faiss):
    range_max = None if room is None else range_min + shape["num_negatives"] + room
    assert_equal(*both(*world, range_min=range_min, range_max=range_max, use_faiss=use_faiss, **shape))


@settings(max_examples=12)
@given(worlds(), SHAPES, BOUNDS)
def test_margins_and_bounds(world, shape, bounds):
    assert_equal(*both(*world, **bounds, **shape))


@settings(max_examples=12)
@given(worlds(), st.integers(1, 4), st.booleans())
def test_positives_included(world, count, output_scores):
    assert_equal(*both(*world, num_negatives=count, include_positives=True, output_scores=output_scores))


@settings(max_examples=12)
@given(worlds(), SHAPES, BOUNDS.filter(bool))
def test_a_cross_encoder_with_bounds(world, shape, bounds):
    table = random_table(world[2], 7)
    scorer = Scorer(lambda one, other: cosine(table[one], table[other]))
    assert_equal(*both(*world, cross_encoder=scorer, **bounds, **shape))


def test_rows_as_they_were_selected():
    rows = [(f"q{i}", f"d{i}") for i in range(6)]
    table = random_table([text for row in rows for text in row], 5)
    dataset = datasets.Dataset.from_dict(
        {"other": list(range(6)), "a": [a for a, _ in rows], "p": [p for _, p in rows]}
    )
    chosen = dataset.select([4, 2, 0])
    options = {"anchor_column_name": "a", "positive_column_name": "p", "num_negatives": 2, "verbose": False}
    expected, found = (mine(chosen, Encoder(table), **options) for mine in (theirs, mine_hard_negatives))
    assert_equal(expected, found)
    assert list(found["a"]) == ["q4"] * 2 + ["q2"] * 2 + ["q0"] * 2


def test_the_answer_is_a_data_set_that_works_on(tmp_path):
    table = random_table([f"q{i}" for i in range(5)] + [f"d{i}" for i in range(5)], 5)
    rows = [(f"q{i}", f"d{i}") for i in range(5)]
    _, found = both(rows, None, table, num_negatives=2, output_scores=True)
    longer = found.map(lambda row: {"length": len(row["negative"])}).filter(lambda row: row["anchor"] != "q0")
    assert longer["length"][0] == 2
    assert len(longer) == 8
    found.save_to_disk(tmp_path / "mined")
    assert datasets.load_from_disk(tmp_path / "mined")[3] == found[3]


# ---- what theirs does wrong: if one of these passes another way, the list in our docstring is out of date ------------


def test_theirs_mines_the_anchor_itself():
    rows, table = [("A", "B"), ("C", "A"), ("D", "E")], on_a_circle(A=0, B=10, C=40, D=90, E=100)
    expected, found = both(rows, None, table, num_negatives=1)
    assert (expected["anchor"][0], expected["negative"][0]) == ("A", "A")
    assert (found["anchor"][0], found["negative"][0]) == ("A", "E")


def test_theirs_skips_survivors():
    table = on_a_circle(q=0, p=20, **{"1": 1, "2": 2, "30": 30, "40": 40, "50": 50, "60": 60})
    expected, found = both([("q", "p")], ["1", "2", "30", "40", "50", "60"], table, range_min=2, absolute_margin=0.0)
    assert list(expected["negative"]) == ["50", "60"]
    assert list(found["negative"]) == ["30", "40", "50"]


def test_theirs_goes_beyond_range_max():
    texts = {f"d{angle}": angle for angle in range(10, 80, 10)}
    table = on_a_circle(q=0, p=5, r=3, s=80, t=81, u=82, **texts)
    rows = [("q", "p"), ("r", "s"), ("r", "t"), ("r", "u")]
    options = {"range_max": 3, "num_negatives": 3, "max_score": float(np.cos(np.deg2rad(25)))}
    expected, found = both(rows, list(texts), table, **options)
    of_q = [[n for a, n in zip(x["anchor"], x["negative"], strict=True) if a == "q"] for x in (expected, found)]
    assert of_q == [["d30", "d40", "d50"], ["d30"]]  # ranks 3, 4 and 5 of what is no positive


def test_their_signature_is_the_beginning_of_ours():
    import inspect

    expected, found = (inspect.signature(mine).parameters for mine in (theirs, mine_hard_negatives))
    shared = list(found.values())[: len(expected)]
    told = "sentence-transformers changed mine_hard_negatives. Adapt naysay.integrations.sentence_transformers."
    ours, wanted = ([(p.name, p.default, p.kind) for p in one] for one in (shared, expected.values()))
    assert ours == wanted, told
    assert {p.kind for p in list(found.values())[len(expected) :]} == {inspect.Parameter.KEYWORD_ONLY}
