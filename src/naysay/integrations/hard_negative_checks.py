"""The arguments of `mine_hard_negatives`, refused before any text is encoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from naysay.checks import check_one_of, check_whole, refuse, shown
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.mining.auto import ALPHA
from naysay.mining.encode.encode_texts import check_encoder
from naysay.mining.judge import combined
from naysay.mining.searching.search import METRICS
from naysay.quantity.numbers import one_number

STRATEGIES = ("top", "random", "softmax", "spread")
MORE = 10  # candidates for each negative, where some will be dropped
_METRIC_OF = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}


def check_bounds(owner: str, bounds: Mapping[str, Any]) -> None:
    """Refuse a margin or a bound that is no number."""
    for name, value in bounds.items():
        if value is not None and not np.isfinite(one_number(owner, name, value)):
            refuse(owner, name, "a finite number, or None", shown(value))


def check_strategy(owner: str, strategy: Any, temperature: Any) -> None:
    """Refuse an unknown strategy, and a temperature that is missing or could not act."""
    check_one_of(owner, "sampling_strategy", strategy, STRATEGIES)
    if strategy != "softmax" and temperature is not None:
        refuse(owner, "temperature", f"None for {strategy!r}", shown(temperature), "It is for 'softmax'.")
    if strategy == "softmax":
        if temperature is None:
            refuse(owner, "temperature", "given for 'softmax'", None)
        if not 0 < one_number(owner, "temperature", temperature) < np.inf:
            refuse(owner, "temperature", "a number above 0", temperature)


def check_model(owner: str, model: Any, cross_encoder: Any) -> None:
    """Refuse models that cannot be asked."""
    check_encoder(owner, model)
    if cross_encoder is not None and not callable(getattr(cross_encoder, "predict", None)):
        refuse(owner, "cross_encoder", "an object with a method predict(pairs)", type(cross_encoder).__name__)


def check_judge(owner: str, judge: Any, n_anchors: int) -> None:
    """Refuse a judge that cannot be asked, and "auto" where there are too few anchors for its bound."""
    if judge is None:
        return
    if isinstance(judge, str):
        check_one_of(owner, "judge", judge, ("auto",))
        if n_anchors < least_positives(ALPHA):
            refuse(owner, "judge", f"None or a detector for fewer than {least_positives(ALPHA)} anchors", "'auto'")
        return
    combined(owner, judge, "judge")
    if isinstance(judge, Calibrated) and judge.n == 0:
        refuse(owner, "judge", "fitted", "a Calibrated that is not", "judge='auto' fits one.")


def window(
    owner: str, range_min: Any, range_max: Any, num_negatives: Any, largest: int, *, more: bool
) -> tuple[int, int]:
    """(range_min, range_max): ranks from range_min + 1 to range_max.

    largest   rows of the anchor that has the most
    more      whether candidates may be dropped, or chosen from, so that more than `num_negatives` are needed

    Without range_max it is range_min, what is needed, and room for positives. The search leaves positives out, so
    that one anchor with thousands of them need not widen the window of all: the room is at most ten for each negative.
    """
    count = check_whole(owner, "num_negatives", num_negatives, 1)
    first = check_whole(owner, "range_min", range_min, 0)
    if range_max is None:
        return first, first + (MORE if more else 1) * count + min(largest, MORE * count)
    last = check_whole(owner, "range_max", range_max, 1)
    if last - first < count:
        rule = f"at least {first + count}, range_min + num_negatives"
        refuse(owner, "range_max", rule, last, "Lower num_negatives or range_min, or raise range_max.")
    return first, last


def metric_of(owner: str, model: Any, metric: Any) -> str:
    """The metric of a search: as given, or that which the model compares by."""
    if metric is not None:
        check_one_of(owner, "metric", metric, tuple(METRICS))
        return str(metric)
    name = getattr(model, "similarity_fn_name", None)
    name = "cosine" if name is None else str(getattr(name, "value", name))
    if name not in _METRIC_OF:
        advice = "Pass metric='cosine', 'dot' or 'l2'."
        refuse(owner, "model", "of a similarity that can be searched by", repr(name), advice)
    return _METRIC_OF[name]


def check_names(owner: str, names: list[str], others: list[str]) -> None:
    """Refuse columns that are called like one of those that are added."""
    for parameter, name in zip(("anchor_column_name", "positive_column_name"), names, strict=True):
        if name in others:
            advice = "Rename it: the answer has a column of that name."
            refuse(owner, parameter, f"another name than {', '.join(map(repr, others))}", repr(name), advice)
