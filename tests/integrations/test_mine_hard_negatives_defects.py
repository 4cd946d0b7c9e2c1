"""The defects of sentence-transformers' miner that the docstring lists, each as a test that ours does not have it."""

import numpy as np
import pytest
from stand_in_models import Encoder, Scorer, on_a_circle, random_table
from test_mine_hard_negatives import mined

from naysay.errors import NaysayError
from naysay.integrations._hard_negative_tables import measured
from naysay.integrations.sentence_transformers import mine_hard_negatives


class Weighted(Encoder):
    """A local checkpoint: no name, and weights that say which it is."""

    def __init__(self, table):
        super().__init__(table)
        self.state_dict = lambda: {"table": np.stack(list(self.table.values()))}


def test_0_the_cache_knows_the_weights(tmp_path):
    rows = {"q": ["q"], "p": ["p"]}
    near, far = (Weighted(on_a_circle(q=0, p=5, a=a, b=30)) for a in (10, 60))
    for model, nearest in ((near, "a"), (far, "b"), (near, "a")):
        options = {"corpus": ["a", "b"], "num_negatives": 1, "verbose": False, "cache_folder": str(tmp_path)}
        assert mine_hard_negatives(rows, model, **options)["negative"].to_pylist() == [nearest]
    assert len(near.calls) == len(far.calls) == 2


def test_1_an_anchor_is_not_its_own_negative():
    rows, table = [("A", "B"), ("C", "A"), ("D", "E")], on_a_circle(A=0, B=10, C=40, D=90, E=100)
    for options in ({}, {"duplicates": False}, {"sampling_strategy": "random"}, {"include_positives": True}):
        found = mined(rows, table, num_negatives=1, **options)
        column = found.get("negative", found.get("negative_1"))
        assert all(anchor != negative for anchor, negative in zip(found["anchor"], column, strict=True))
    spaces = mined([(" ", "B"), ("C", " "), ("D", "E")], {" ": table["A"], **table}, num_negatives=1)
    assert spaces["negative"][0] != " "  # a text that folds to nothing


def test_2_there_is_a_seed():
    table = random_table([f"q{i}" for i in range(20)] + [f"d{i}" for i in range(40)], 0)
    rows, corpus = [(f"q{i}", f"d{i}") for i in range(20)], [f"d{i}" for i in range(40)]
    options = {"sampling_strategy": "random", "range_max": 20}
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    one, again, other = (mined(rows, table, corpus, seed=seed, **options) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_3_what_is_gone_is_not_counted_again(capsys):
    table = random_table([f"q{i}" for i in range(20)] + [f"d{i}" for i in range(40)], 0)
    columns = {"q": [f"q{i}" for i in range(20)], "d": [f"d{i}" for i in range(20)]}
    mine_hard_negatives(columns, Encoder(table), relative_margin=0.5, max_score=2.0, min_score=-1.0)
    printed = capsys.readouterr().out
    assert "relative_margin of 0.5" in printed
    assert "max_score" not in printed
    assert "min_score" not in printed


def test_4_a_dot_product_is_not_a_cosine():
    table = {"q": (1, 0), "p": (1, 0.1), "long": (10, 5), "short": (0.5, 0)}
    rows, corpus = {"q": ["q"], "p": ["p"]}, ["long", "short"]
    answers = {}
    for name in ("cosine", "dot", "euclidean"):
        model = Encoder(table)
        model.similarity_fn_name = name
        found = mine_hard_negatives(rows, model, corpus=corpus, num_negatives=1, output_scores=True, verbose=False)
        answers[name] = found.to_pydict()
    assert {name: found["negative"] for name, found in answers.items()} == {
        "cosine": ["short"], "dot": ["long"], "euclidean": ["short"],
    }  # fmt: skip
    assert answers["dot"]["scores"] == [[1.0, 10.0]]
    assert answers["euclidean"]["scores"][0][1] == -0.5
    model = Encoder(table)
    model.similarity_fn_name = "dot"
    options = {"num_negatives": 1, "output_scores": True, "verbose": False, "metric": "cosine"}
    assert mine_hard_negatives(rows, model, corpus=corpus, **options).to_pydict() == answers["cosine"]
    model.similarity_fn_name = "manhattan"
    with pytest.raises(
        NaysayError, match=r"`model` must be of a similarity that can be searched by, got 'manhattan'\. Pass"
    ):
        mine_hard_negatives(rows, model, verbose=False)


def test_5_statistics_of_many_scores():
    found = measured(np.ones((1 << 24) + 1, np.float32))
    assert {*found.values()} == {0.0, 1.0}
    assert found["Std"] == 0


def test_6_ranks_are_skipped_before_the_margin_not_after():
    table = on_a_circle(q=0, p=20, **{"1": 1, "2": 2, "30": 30, "40": 40, "50": 50, "60": 60})
    corpus = ["1", "2", "30", "40", "50", "60"]
    found = mined([("q", "p")], table, corpus, range_min=2, absolute_margin=0.0)
    assert found["negative"] == ["30", "40", "50"]
    assert mined([("q", "p")], table, corpus, range_min=3, absolute_margin=0.0)["negative"] == ["40", "50", "60"]


def test_7_the_positive_in_other_letters_is_no_negative():
    table = on_a_circle(**{"capital of France": 0, "Paris.": 5, "paris": 4, "CAPITAL of France?": 1, "Rome": 40})
    rows, corpus = [("capital of France", "Paris.")], ["paris", "CAPITAL of France?", "Rome"]
    assert mined(rows, table, corpus)["negative"] == ["Rome"]
    assert mined(rows, table, corpus, duplicates=False)["negative"] == ["CAPITAL of France?", "paris", "Rome"]
    assert mined(rows, table, corpus, num_negatives=1)["negative"] == ["Rome"]  # and takes no other's place


def test_8_a_cross_encoder_is_asked_in_batches_never_about_padding_and_acted_on():
    table = random_table([f"q{i}" for i in range(9)] + [f"d{i}" for i in range(9)], 0)
    rows = [(f"q{i}", f"d{i}") for i in range(9)]
    scorer = Scorer(lambda one, other: -int(other[1:]))
    found = mined(rows, table, cross_encoder=scorer, num_negatives=2, output_scores=True)
    assert [len(call) for call in scorer.calls] == [9, 72]  # the positives; eight candidates of each anchor
    assert len({pair for call in scorer.calls for pair in call}) == 81
    assert found["negative"][:4] == ["d1", "d2", "d0", "d2"]
    assert found["scores"][:2] == [[0.0, -1.0], [0.0, -2.0]]


def test_9_one_anchor_with_many_positives_does_not_widen_the_others(capsys):
    names = [f"d{i}" for i in range(500)]
    table = random_table(["q", "r", *names], 0)
    columns = {"q": ["q"] * 400 + ["r"], "d": [*names[:400], "d400"]}
    mine_hard_negatives(columns, Encoder(table), corpus=names, num_negatives=2, relative_margin=0.05)
    assert "Ranks 1 to 40 are considered." in capsys.readouterr().out
    found = mine_hard_negatives(columns, Encoder(table), corpus=names, num_negatives=90, verbose=False)
    assert found["q"].to_pylist().count("q") == 90 * 400  # its hundred candidates, none of them its positive


def test_10_random_is_not_the_only_way_but_the_top():
    with pytest.raises(
        NaysayError, match=r"`sampling_strategy` must be one of 'top', 'random', 'softmax', 'spread', got"
    ):
        mined([("q", "p")], on_a_circle(q=0, p=3), sampling_strategy="hard")


def test_11_nothing_beyond_range_max():
    texts = {f"d{angle}": angle for angle in range(10, 80, 10)}
    table = on_a_circle(q=0, p=5, r=3, s=80, t=81, u=82, **texts)
    rows = [("q", "p"), ("r", "s"), ("r", "t"), ("r", "u")]
    found = mined(rows, table, list(texts), range_max=3, max_score=float(np.cos(np.deg2rad(25))))
    assert [n for a, n in zip(found["anchor"], found["negative"], strict=True) if a == "q"] == ["d30"]


def test_12_a_misspelt_column_raises():
    columns = {"query": ["q"], "answer": ["p"]}
    message = (
        r"^mine_hard_negatives: `anchor_column_name` must be one of 'query', 'answer', got 'qeury'\. Did you mean 'qu"
    )
    with pytest.raises(NaysayError, match=message):
        mine_hard_negatives(columns, Encoder(on_a_circle(q=0, p=3)), "qeury")
