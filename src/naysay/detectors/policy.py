"""Policies: what to do with suspicious negatives. A detector scores, a policy acts.

Each policy is a pure function from negatives and suspicion to a changed copy of the negatives, in the same array type.
Policies act on slots of `Negatives.mask` only, so slots that an earlier policy set to attract or ignore keep that
relation. `suspicion` of the copy is the largest that any policy was given for a slot, to apply another threshold later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._slots import PER_SLOT, blanked, gather, of_kind
from naysay.arrays import is_torch, need_torch, to_numpy
from naysay.checks import as_array, check_all, check_kind, check_number, public, raise_invalid, shown
from naysay.detectors._suspicion import SUSPICION_THRESHOLD, filled_slots, like
from naysay.types import Array, Negatives

ATTRACT, IGNORE = 1, 2


@public
def drop(
    negatives: Negatives,
    suspicion: Any,
    *,
    threshold: float = SUSPICION_THRESHOLD,
    name: str | Sequence[str] = "detector",
    blame: Any = None,
) -> Negatives:
    """Empty the slots whose suspicion is at least `threshold`, and count them in `dropped`.

    Emptied slots keep their place (id -1, and 0 or -1 in the other fields); `compact` moves the filled slots to the
    front. `log_q` becomes None, because the probability of what remains is unknown; `ignore` keeps it.

    Args:
        negatives: The negatives that a sampler returned.
        suspicion: (B, K) in [0, 1], from any detector.
        threshold: Slots of at least this suspicion are dropped. A suspicion, not a score: leave it out after
            `MaxScore`. For a detector with its own threshold pass detector.suspicion_threshold.
        name: The reason to count them under; with `blame`, one reason per detector.
        blame: (B, K) indices into the names, as in `Judgement.blame`. None: one name for all.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> kept = drop(ns.Negatives(np.array([[4, 7, 2]])), [[0.1, 0.9, 0.4]], name="duplicates")
        >>> kept.ids.tolist(), kept.dropped
        ([[4, -1, 2]], {'duplicates': 1})
    """
    recorded, flagged, _ = _flagged(negatives, suspicion, threshold)
    names = tuple(name) if isinstance(name, list | tuple) else (name,)
    if not names or not all(isinstance(one, str) for one in names) or (blame is None and len(names) > 1):
        raise_invalid("name", "one name, or several with `blame`", shown(name))
    lost = np.asarray(to_numpy(flagged))
    counts = _counts(names, np.zeros(lost.shape, np.int64) if blame is None else blame, lost)
    ids = negatives.ids.masked_fill(flagged, -1) if is_torch(flagged) else np.where(flagged, -1, negatives.ids)
    dropped = dict(negatives.dropped)
    for reason, count in counts.items():
        dropped[reason] = dropped.get(reason, 0) + count
    return blanked(replace(negatives, ids=ids, suspicion=recorded, log_q=None, dropped=dropped))


@public
def reweight(negatives: Negatives, suspicion: Any, *, threshold: float | None = None) -> Negatives:
    """Multiply the weights by 1 - suspicion.

    Missing weights count as 1, and as 0 in empty slots. log_q stays that of the draw.

    Args:
        negatives: The negatives that a sampler returned.
        suspicion: (B, K) in [0, 1], from any detector.
        threshold: Reweight only slots of at least this suspicion. None: all slots.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> reweight(ns.Negatives(np.array([[4, 7]])), [[0.25, 1.0]]).weights
        array([[0.75, 0.  ]])
    """
    recorded, flagged, given = _flagged(negatives, suspicion, 0.0 if threshold is None else threshold)
    factors = 1 - given * flagged
    if negatives.weights is None:
        weights = factors * (negatives.ids >= 0)
    else:
        weights = of_kind(negatives.weights * factors, negatives.weights)
    return replace(negatives, suspicion=recorded, weights=weights)


@public
def attract(negatives: Negatives, suspicion: Any, *, threshold: float = SUSPICION_THRESHOLD) -> Negatives:
    """Set `relation` to 1 (attract) where suspicion is at least `threshold`: these slots count as positives.

    Ids stay; `mask` excludes the slots, so a loss that is only given the mask ignores them. To attract them, pass
    `attract=negatives.relation == 1` to `losses.info_nce`. log_q changes as in `ignore`. For the arguments see `drop`.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> attract(ns.Negatives(np.array([[4, 7]])), [[0.2, 0.5]]).relation
        array([[0, 1]], dtype=int8)
    """
    return _with_relation(negatives, suspicion, threshold, ATTRACT)


@public
def ignore(negatives: Negatives, suspicion: Any, *, threshold: float = SUSPICION_THRESHOLD) -> Negatives:
    """Set `relation` to 2 (ignore) where suspicion is at least `threshold`: neither positive nor negative.

    Ids and scores stay; `mask` excludes the slots. For the arguments see `drop`.

    A loss divides by the number of slots in `mask`, but the row was drawn with more. So log(slots before / slots left)
    of the row is added to the log_q of the slots that are left: `info_nce(..., mask=negatives.mask,
    log_q=negatives.log_q)` estimates the sum over all items that are not flagged, without bias. Further policies add
    up. For a distinct row, convert log_q by `losses.distinct_log_q` before the policy, because that depends on how many
    slots were drawn.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> ignore(ns.Negatives(np.array([[4, 7]])), [[0.2, 0.5]]).mask
        array([[ True, False]])
    """
    return _with_relation(negatives, suspicion, threshold, IGNORE)


@public
def compact(negatives: Negatives) -> Negatives:
    """Move the filled slots of each row to the front, in their order. K stays.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> compact(ns.Negatives(np.array([[-1, 7, -1, 3]]))).ids
        array([[ 7,  3, -1, -1]])
    """
    check_kind("negatives", negatives, Negatives, "Negatives")
    order = like(np.argsort(~filled_slots(negatives), axis=1, kind="stable"), negatives.ids)
    values = {name: getattr(negatives, name) for name in PER_SLOT}
    return replace(negatives, **{name: gather(value, order) for name, value in values.items() if value is not None})


def _with_relation(negatives: Negatives, suspicion: Any, threshold: float, relation: int) -> Negatives:
    """Set the relation of flagged slots."""
    recorded, flagged, _ = _flagged(negatives, suspicion, threshold)
    marks = (flagged.to(need_torch().int8) if is_torch(flagged) else flagged.astype(np.int8)) * relation
    before = negatives.relation  # 0 wherever a slot is flagged
    changed = replace(negatives, suspicion=recorded, relation=marks if before is None else before + marks)
    if negatives.log_q is None:
        return changed
    return replace(
        changed, log_q=negatives.log_q + of_kind(log_left_out(negatives.mask, changed.mask), negatives.log_q)
    )


def log_left_out(drawn: Array, left: Array) -> Array:
    """(B, K) log(slots drawn / slots left) of the row in the slots that are left, 0 elsewhere; of two masks."""
    n_drawn = np.asarray(to_numpy(drawn)).sum(axis=1)
    n_left = np.asarray(to_numpy(left)).sum(axis=1)
    shift = np.log(np.maximum(n_drawn, 1) / np.maximum(n_left, 1))
    return like(np.where(to_numpy(left), shift[:, None], 0.0), drawn)


def _flagged(negatives: Negatives, suspicion: Any, threshold: float) -> tuple[Array, Array, Array]:
    """The suspicion to record, (B, K) the negatives with at least the threshold, and the suspicion that was given.

    Suspicion is in the array type of the negatives, with 0 in empty slots.
    """
    check_number("threshold", threshold, at_least=0, at_most=1)
    check_kind("negatives", negatives, Negatives, "Negatives", "Pass what a sampler returned.")
    values = as_array("suspicion", to_numpy(suspicion))
    if values.shape != negatives.shape:
        raise_invalid("suspicion", f"of shape {negatives.shape}, like the negatives", f"shape {values.shape}")
    if values.dtype.kind not in "iuf":
        raise_invalid("suspicion", "numbers from 0 to 1", f"dtype {values.dtype}")
    filled = filled_slots(negatives)
    check_all("suspicion", values, ((values >= 0) & (values <= 1)) | ~filled, "from 0 to 1")
    values = np.where(filled, values, 0).astype(np.result_type(values.dtype, np.float32), copy=False)
    given = recorded = like(values, negatives.ids)
    if negatives.suspicion is not None:
        larger = need_torch().maximum if is_torch(given) else np.maximum
        recorded = larger(given, negatives.suspicion.to(given.dtype) if is_torch(given) else negatives.suspicion)
    return recorded, negatives.mask & (given >= threshold), given


def _counts(names: tuple[str, ...], blame: Any, lost: NDArray[np.bool_]) -> dict[str, int]:
    """How many lost slots count under each name, without names that have none."""
    indices = as_array("blame", to_numpy(blame))
    if indices.shape != lost.shape or indices.dtype.kind not in "iu":
        rule = f"whole numbers of shape {lost.shape}, like the negatives"
        raise_invalid("blame", rule, f"shape {indices.shape} {indices.dtype}")
    used = indices[lost]
    if used.size and not (used.min() >= 0 and used.max() < len(names)):
        raise_invalid("blame", f"from 0 to {len(names) - 1} where a slot is dropped", f"{used.min()} to {used.max()}")
    counts = np.bincount(used, minlength=len(names)).tolist()
    return {name: count for name, count in zip(names, counts, strict=True) if count}
