"""The arguments of `mine_hard_negatives`, refused before any text is encoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from naysay.checks import check_number, check_one_of, check_whole, raise_invalid, shown
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.encode.texts import check_encoder
from naysay.mining._auto import ALPHA
from naysay.mining.judge import combined
from naysay.search._pair_scores import METRICS

STRATEGIES = ("top", "random", "softmax", "spread")
MORE = 10  # candidates for each negative, where some will be dropped
_METRIC_OF = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}


def check_bounds(bounds: Mapping[str, Any]) -> None:
    """Refuse a margin or a bound that is no number."""
    for name, value in bounds.items():
        if value is not None and not np.isfinite(check_number(name, value)):
            raise_invalid(name, "a finite number, or None", shown(value))


def check_strategy(strategy: Any, temperature: Any) -> None:
    """Refuse an unknown strategy, and a temperature that is missing or could not act."""
    check_one_of("sampling_strategy", strategy, STRATEGIES)
    if strategy != "softmax" and temperature is not None:
        raise_invalid("temperature", f"left out for {strategy!r}", shown(temperature), "It is for 'softmax'.")
    if strategy == "softmax":
        if temperature is None:
            raise_invalid("temperature", "given for 'softmax'", None)
        if not 0 < check_number("temperature", temperature) < np.inf:
            raise_invalid("temperature", "a number above 0", temperature)


def check_model(model: Any, cross_encoder: Any) -> None:
    """Refuse models that cannot be asked."""
    check_encoder(model)
    if cross_encoder is not None and not callable(getattr(cross_encoder, "predict", None)):
        raise_invalid("cross_encoder", "an object with a method predict(pairs)", type(cross_encoder).__name__)


def check_judge(judge: Any, n_anchors: int) -> None:
    """Refuse a judge that cannot be asked, and "auto" where there are too few anchors for its bound."""
    if judge is None:
        return
    if isinstance(judge, str):
        check_one_of("judge", judge, ("auto",))
        if n_anchors < least_positives(ALPHA):
            raise_invalid("judge", f"None or a detector for fewer than {least_positives(ALPHA)} anchors", "'auto'")
        return
    combined(judge, "judge")
    if isinstance(judge, Calibrated) and judge.n == 0:
        raise_invalid("judge", "fitted", "a Calibrated that is not", "judge='auto' fits one.")


def window(range_min: Any, range_max: Any, num_negatives: Any, largest: int, *, more: bool) -> tuple[int, int]:
    """(range_min, range_max): ranks from range_min + 1 to range_max.

    Without range_max it is range_min, what is needed, and room for positives. The search leaves positives out, so
    that one anchor with thousands of them need not widen the window of all: the room is at most ten for each negative.

    Args:
        largest: Rows of the anchor that has the most.
        more: Whether candidates may be dropped, or chosen from, so that more than `num_negatives` are needed.
    """
    count = check_whole("num_negatives", num_negatives, 1)
    first = check_whole("range_min", range_min, 0)
    if range_max is None:
        return first, first + (MORE if more else 1) * count + min(largest, MORE * count)
    last = check_whole("range_max", range_max, 1)
    if last - first < count:
        rule = f"at least {first + count}, range_min + num_negatives"
        raise_invalid("range_max", rule, last, "Lower num_negatives or range_min, or raise range_max.")
    return first, last


def metric_of(model: Any, metric: Any) -> str:
    """The metric of a search: as given, or that which the model compares by."""
    if metric is not None:
        check_one_of("metric", metric, tuple(METRICS))
        return str(metric)
    name = getattr(model, "similarity_fn_name", None)
    name = "cosine" if name is None else str(getattr(name, "value", name))
    if name not in _METRIC_OF:
        advice = "Pass metric='cosine', 'dot' or 'l2'."
        raise_invalid("model", "of a similarity that can be searched by", repr(name), advice)
    return _METRIC_OF[name]


def check_names(names: list[str], others: list[str]) -> None:
    """Refuse columns that are called like one of those that are added."""
    for parameter, name in zip(("anchor_column_name", "positive_column_name"), names, strict=True):
        if name in others:
            advice = "Rename it: the answer has a column of that name."
            raise_invalid(parameter, f"another name than {', '.join(map(repr, others))}", repr(name), advice)
