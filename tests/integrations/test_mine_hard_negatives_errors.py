"""Errors of mine_hard_negatives, before any text is encoded."""

import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest
from stand_in_models import Encoder, Scorer, random_table

from naysay.detectors import Calibrated, RankWindow
from naysay.errors import MissingExtraError, NaysayError
from naysay.integrations.sentence_transformers import mine_hard_negatives

TABLE = random_table(["q", "d", "e"], 0)
ROWS = {"q": ["q"], "d": ["d"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_negatives": 0}, r"`num_negatives` must be at least 1, got 0\.$"),
        ({"num_negatives": 2.0}, r"`num_negatives` must be a whole number, got 2\.0\.$"),
        ({"range_min": -1}, r"`range_min` must be at least 0, got -1\.$"),
        (
            {"range_min": 2, "range_max": 4},
            r"`range_max` must be at least 5, range_min \+ num_negatives, got 4\. Lower num_negatives or range",
        ),
        ({"range_max": 0}, r"`range_max` must be at least 1, got 0\.$"),
        ({"max_score": float("nan")}, r"`max_score` must be "),
        ({"min_score": float("inf")}, r"`min_score` must be a finite number, got inf\.$"),
        ({"absolute_margin": "0.1"}, r"`absolute_margin` must be "),
        ({"relative_margin": True}, r"`relative_margin` must be "),
        (
            {"output_format": "triplets"},
            r"`output_format` must be one of 'triplet', .* got 'triplets'\. Did you mean 'trip",
        ),
        ({"batch_size": 0}, r"`batch_size` must be at least 1, got 0\.$"),
        ({"faiss_batch_size": 0}, r"`faiss_batch_size` must be at least 1, got 0\.$"),
        ({"seed": -1}, r"`seed` must be at least 0, got -1\.$"),
        ({"metric": "cos"}, r"`metric` must be one of 'dot', 'cosine', 'l2', got 'cos'\."),
        ({"temperature": 0.1}, r"`temperature` must be left out for 'top', got 0\.1\. It is for 'softmax'\.$"),
        ({"sampling_strategy": "softmax"}, r"`temperature` must be given for 'softmax', got None\.$"),
        (
            {"sampling_strategy": "softmax", "temperature": 0},
            r"`temperature` must be a finite number above 0, got 0\.$",
        ),
        ({"judge": "atuo"}, r"`judge` must be one of 'auto', 'none', .*, got 'atuo'\. Did you mean 'auto'\?$"),
        (
            {"judge": Calibrated(0.05)},
            r"`judge` must be fitted, or 19 anchors must have a positive, got 1 that have\.$",
        ),
        ({"judge": RankWindow(3)}, r"`judge` must be a detector that does not rank"),
        ({"judge": 3}, r"`judge` must be a detector with a method suspicion\(query, negatives\), got int"),
        ({"cross_encoder": 3}, r"`cross_encoder` must be an object with a method predict\(pairs\), got int\.$"),
        ({"corpus": "text"}, r"`corpus` must be a sequence of strings, got 'text'\.$"),
        ({"corpus": ["a", 3]}, r"`corpus` must be strings, got 3 at row 1 \(1 such row\)\.$"),
        (
            {"positive_column_name": "q"},
            r"`positive_column_name` must be another column than that of the anchors, got 'q'",
        ),
        ({"positive_column_name": "p"}, r"`positive_column_name` must be one of 'q', 'd', got 'p'\.$"),
    ],
)
def test_options(options, message):
    model = Encoder(TABLE)
    with pytest.raises(NaysayError, match="^mine_hard_negatives: " + message):
        mine_hard_negatives(ROWS, model, verbose=False, **options)
    assert model.calls == []


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"q": [], "d": []}, r"`dataset` must be of at least one row, got none\.$"),
        ({"q": ["q"]}, r"`dataset` must be of at least two columns, got 1: 'q'\.$"),
        ({"q": ["q"], "d": ["d", "e"]}, r"`dataset` must be columns of one length, got 1 anchors and 2 positives\.$"),
        ({"q": ["q"], "d": [None]}, r"`dataset\['d'\]` must be strings, got None at row 0 \(1 such row\)\.$"),
        (pa.table({"q": [1], "d": ["d"]}), r"`dataset\['q'\]` must be strings, got an Arrow column of int64\.$"),
        ([("q", "d")], r"`dataset` must be a datasets.Dataset, an Arrow table or a dictionary of columns, got list\.$"),
        (
            {"train": SimpleNamespace(column_names=[]), "test": SimpleNamespace(column_names=[])},
            r"`dataset` must be one split, got 2: 'train', 'test'\. Pass dataset\[name\]\.$",
        ),
        (
            SimpleNamespace(select_columns=1, column_names=["q"]),
            r"`dataset` must be a datasets.Dataset, .* SimpleNamespace",
        ),
        (
            {"q": ["q"], "negative": ["d"]},
            r"`positive_column_name` must be another name than 'negative', got 'negative'\. Rename it: the result",
        ),
    ],
)
def test_data_sets(dataset, message):
    model = Encoder(TABLE)
    with pytest.raises(NaysayError, match="^mine_hard_negatives: " + message):
        mine_hard_negatives(dataset, model, verbose=False)
    assert model.calls == []


@pytest.mark.parametrize(
    ("form", "scores", "name"),
    [
        ("triplet", True, "scores"),
        ("n-tuple", False, "negative_3"),
        ("n-tuple", True, "scores"),
        ("labeled-pair", False, "label"),
        ("labeled-pair", True, "score"),
        ("labeled-list", False, "labels"),
        ("labeled-list", True, "scores"),
    ],
)
def test_names_that_the_answer_needs(form, scores, name):
    options = {"output_format": form, "output_scores": scores, "verbose": False}
    with pytest.raises(
        NaysayError, match=rf"`anchor_column_name` must be another name than .*, got '{name}'\. Rename it"
    ):
        mine_hard_negatives({name: ["q"], "d": ["d"]}, Encoder(TABLE), **options)
    assert mine_hard_negatives({name + "_": ["q"], "d": ["d"]}, Encoder(TABLE), **options).column_names[0] == name + "_"


def test_a_name_is_no_model():
    with pytest.raises(NaysayError, match=r"^mine_hard_negatives: `model` must be a model, not its name, got 'MiniLM'"):
        mine_hard_negatives(ROWS, "MiniLM")


def test_equal_scores_hold_no_bound():
    names = [f"q{i}" for i in range(19)]
    table = dict.fromkeys([*names, "d", "e"], (1.0, 0.0))
    message = r"`judge` must be another, where all positives score the same, got 19 equal scores"
    with pytest.raises(NaysayError, match=message):
        mine_hard_negatives(
            {"q": names, "d": ["d"] * 19}, Encoder(table), corpus=["e"], judge="calibrated:0.05", verbose=False
        )


def test_a_cross_encoder_that_answers_with_two_numbers():
    scorer = Scorer(lambda one, other: (0.0, 1.0))
    with pytest.raises(
        NaysayError, match=r"a function that answers with 1 finite numbers for 1 pairs, got shape \(1, 2\)"
    ):
        mine_hard_negatives(ROWS, Encoder(TABLE), cross_encoder=scorer, verbose=False)


@pytest.mark.parametrize(
    ("options", "message", "columns"),
    [
        ({"as_triplets": True}, r"as_triplets is deprecated: pass output_format='triplet'\.$", ["negative"]),
        ({"as_triplets": False}, r"as_triplets is deprecated: pass output_format='n-tuple'\.$", ["negative_1"]),
        ({"margin": 0.1}, r"margin is deprecated: pass absolute_margin\.$", ["negative"]),
        ({"output_format": "n-tuple-scores"}, r"output_format='n-tuple-scores' is dep", ["negative_1", "scores"]),
    ],
)
def test_what_is_deprecated_works_and_says_so(options, message, columns):
    with pytest.warns(DeprecationWarning, match="^" + message) as caught:
        found = mine_hard_negatives(ROWS, Encoder(TABLE), corpus=["e"], num_negatives=1, verbose=False, **options)
    assert found.column_names[2:] == columns
    assert caught[0].filename == __file__


def test_the_margin_is_the_absolute_one():
    options = {"corpus": ["e"], "num_negatives": 1, "verbose": False}
    with pytest.warns(DeprecationWarning, match="margin"):
        assert mine_hard_negatives(ROWS, Encoder(TABLE), margin=2.0, **options).num_rows == 0


class Likeness:
    """Stands for a datasets.Dataset where that package is absent."""

    column_names = ("q", "d")

    def __len__(self):
        return 1

    def select_columns(self, names):
        return self

    def with_format(self, kind):
        return self

    def __getitem__(self, rows):
        return pa.table(ROWS)


def test_the_missing_package_is_named(monkeypatch):
    model = Encoder(TABLE)
    monkeypatch.setitem(sys.modules, "datasets", None)
    message = r"^mine_hard_negatives: datasets is not installed\. Run: pip install 'datasets>=4.0'$"
    with pytest.raises(MissingExtraError, match=message):
        mine_hard_negatives(Likeness(), model, verbose=False)
    assert model.calls == []
