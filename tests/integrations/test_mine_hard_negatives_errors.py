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


INVALID_OPTIONS = [
    ({"num_negatives": 0}, "num_negatives"),
    ({"num_negatives": 2.0}, "num_negatives"),
    ({"range_min": -1}, "range_min"),
    ({"range_min": 2, "range_max": 4}, "range_max"),
    ({"max_score": float("nan")}, "max_score"),
    ({"min_score": float("inf")}, "min_score"),
    ({"absolute_margin": "0.1"}, "absolute_margin"),
    ({"relative_margin": True}, "relative_margin"),
    ({"output_format": "triplets"}, "output_format"),
    ({"batch_size": 0}, "batch_size"),
    ({"faiss_batch_size": 0}, "faiss_batch_size"),
    ({"seed": -1}, "seed"),
    ({"metric": "cos"}, "metric"),
    ({"temperature": 0.1}, "temperature"),
    ({"sampling_strategy": "softmax"}, "temperature"),
    ({"judge": "atuo"}, "judge"),
    ({"judge": Calibrated(0.05)}, "judge"),
    ({"judge": RankWindow(3)}, "judge"),
    ({"judge": 3}, "judge"),
    ({"cross_encoder": 3}, "cross_encoder"),
    ({"corpus": "text"}, "corpus"),
    ({"corpus": ["a", 3]}, "corpus"),
    ({"positive_column_name": "q"}, "positive_column_name"),
    ({"positive_column_name": "p"}, "positive_column_name"),
    ({"model": "MiniLM"}, "model"),
    ({"dataset": {"q": [], "d": []}}, "dataset"),
    ({"dataset": {"q": ["q"]}}, "dataset"),
    ({"dataset": {"q": ["q"], "d": ["d", "e"]}}, "dataset"),
    ({"dataset": {"q": ["q"], "d": [None]}}, "dataset['d']"),
    ({"dataset": pa.table({"q": [1], "d": ["d"]})}, "dataset['q']"),
    ({"dataset": [("q", "d")]}, "dataset"),
    ({"dataset": {"train": SimpleNamespace(column_names=[])}}, "dataset"),
    ({"dataset": {"q": ["q"], "negative": ["d"]}}, "positive_column_name"),
    ({"dataset": {"negative_3": ["q"], "d": ["d"]}, "output_format": "n-tuple"}, "anchor_column_name"),
    ({"dataset": {"scores": ["q"], "d": ["d"]}, "output_scores": True}, "anchor_column_name"),
    ({"dataset": {"labels": ["q"], "d": ["d"]}, "output_format": "labeled-list"}, "anchor_column_name"),
]


@pytest.mark.parametrize(("options", "parameter"), INVALID_OPTIONS)
def test_an_invalid_argument_is_named_before_anything_is_encoded(options, parameter):
    model = Encoder(TABLE)
    with pytest.raises(NaysayError) as caught:
        mine_hard_negatives(**({"dataset": ROWS, "model": model, "verbose": False} | options))
    assert caught.value.parameter == parameter
    assert model.calls == []


def test_a_cross_encoder_that_answers_with_two_numbers():
    scorer = Scorer(lambda one, other: (0.0, 1.0))
    with pytest.raises(NaysayError, match=r"1 finite numbers for 1 pairs, got shape \(1, 2\)"):
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
