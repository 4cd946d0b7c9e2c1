"""Policies: what is done with suspicious negatives. A detector scores, a policy acts.

Each is a pure function: negatives and suspicion in, a changed copy of the negatives out, in their array type. Only
slots that are negatives are acted on (`Negatives.mask`): what an earlier policy made attract or ignore stays so. The
copy's `suspicion` is the largest that a policy was given for a slot, for reports, and to draw another line later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._slots import blanked, gather, of_kind
from naysay.arrays import is_torch, need_torch, to_numpy, to_torch
from naysay.checks import first_bad, public, raise_invalid, shown
from naysay.detectors._slots import SUSPICION_THRESHOLD, filled_slots
from naysay.samplers._numbers import check_number
from naysay.types import Array, Negatives

ATTRACT, IGNORE = 1, 2


@public
def drop(
    negatives: Negatives,
    suspicion: Any,
    *,
    line: float = SUSPICION_THRESHOLD,
    name: str | Sequence[str] = "detector",
    blame: Any = None,
) -> Negatives:
    """Empty the slots whose suspicion is at least `line`, and count them in `dropped`.

    Slots are emptied where they stand (-1, and 0 or -1 in every other field), so that arrays which are held beside the
    negatives, their scores among them, still fit; `compact` moves what is left to the front. Filled slots before are
    filled slots after and those counted. log_q becomes None: what is left was drawn on condition of not being suspect,
    and the share of all items that are is not known from those drawn. Where log_q is needed use `ignore`.

    Args:
        suspicion: (B, K) in [0, 1], of any detector.
        line: From which suspicion on to act.
        name: The reason that they are counted under; with `blame`, one for each detector.
        blame: None, or (B, K) whole numbers: which of the names a slot is counted under (`Combined.judge` says).

    Example:
        >>> import numpy as np, naysay as ns
        >>> kept = drop(ns.Negatives(np.array([[4, 7, 2]])), [[0.1, 0.9, 0.4]], name="duplicates")
        >>> kept.ids.tolist(), kept.dropped
        ([[4, -1, 2]], {'duplicates': 1})
    """
    given, flagged = _flagged(negatives, suspicion, line)
    names = (name,) if isinstance(name, str) else tuple(name)
    if not names or not all(isinstance(one, str) for one in names) or (blame is None and len(names) > 1):
        raise_invalid("name", "one name, or several with blame", shown(name))
    lost = np.asarray(to_numpy(flagged))
    counts = _counts(names, np.zeros(lost.shape, np.int64) if blame is None else blame, lost)
    ids = negatives.ids.masked_fill(flagged, -1) if is_torch(flagged) else np.where(flagged, -1, negatives.ids)
    dropped = dict(negatives.dropped)
    for reason, count in counts.items():
        dropped[reason] = dropped.get(reason, 0) + count
    return blanked(replace(negatives, ids=ids, suspicion=given, log_q=None, dropped=dropped))


@public
def reweight(negatives: Negatives, suspicion: Any, *, line: float | None = None) -> Negatives:
    """Multiply the weights by 1 - suspicion: a negative counts as far as it is trusted.

    Weights that were None count as 1, and as 0 where a slot is empty. log_q stays: it is that of the draw.

    Args:
        line: None: all negatives; else only those whose suspicion is at least that.

    Example:
        >>> import numpy as np, naysay as ns
        >>> reweight(ns.Negatives(np.array([[4, 7]])), [[0.25, 1.0]]).weights
        array([[0.75, 0.  ]])
    """
    given, flagged = _flagged(negatives, suspicion, 0.0 if line is None else line)
    trusted = 1 - _read(negatives, suspicion) * flagged
    if negatives.weights is None:
        weights = trusted * (negatives.ids >= 0)
    else:
        weights = of_kind(negatives.weights * trusted, negatives.weights)
    return replace(negatives, suspicion=given, weights=weights)


@public
def attract(negatives: Negatives, suspicion: Any, *, line: float = SUSPICION_THRESHOLD) -> Negatives:
    """Set `relation` to 1, attract, where suspicion is at least `line`: such slots join the positives.

    The ids and log_q stay; `mask` leaves the slots out.

    Example:
        >>> import numpy as np, naysay as ns
        >>> attract(ns.Negatives(np.array([[4, 7]])), [[0.2, 0.5]]).relation
        array([[0, 1]], dtype=int8)
    """
    return _related(negatives, suspicion, line, ATTRACT)


@public
def ignore(negatives: Negatives, suspicion: Any, *, line: float = SUSPICION_THRESHOLD) -> Negatives:
    """Set `relation` to 2, ignore, where suspicion is at least `line`: such slots are neither positive nor negative.

    The ids, with what is known of them, and log_q stay; `mask` leaves the slots out. Nothing is lost, so this is the
    policy to look at afterwards.

    Example:
        >>> import numpy as np, naysay as ns
        >>> ignore(ns.Negatives(np.array([[4, 7]])), [[0.2, 0.5]]).mask
        array([[ True, False]])
    """
    return _related(negatives, suspicion, line, IGNORE)


@public
def compact(negatives: Negatives) -> Negatives:
    """The same with the filled slots of each row first, in their order; K stays.

    Example:
        >>> import numpy as np, naysay as ns
        >>> compact(ns.Negatives(np.array([[-1, 7, -1, 3]]))).ids
        array([[ 7,  3, -1, -1]])
    """
    if not isinstance(negatives, Negatives):
        raise_invalid("negatives", "Negatives", type(negatives).__name__)
    order: Any = np.argsort(~filled_slots(negatives), axis=1, kind="stable")
    if is_torch(negatives.ids):
        order = to_torch(order, negatives.ids.device)
    per_slot = (field.name for field in fields(Negatives) if field.name not in ("source_names", "dropped"))
    held = {name: getattr(negatives, name) for name in per_slot}
    return replace(negatives, **{name: gather(value, order) for name, value in held.items() if value is not None})


def _related(negatives: Negatives, suspicion: Any, line: float, relation: int) -> Negatives:
    """The negatives with a relation for what is suspicious."""
    given, flagged = _flagged(negatives, suspicion, line)
    marks = flagged.to(need_torch().int8) if is_torch(flagged) else flagged.astype(np.int8)
    before = negatives.relation  # 0 wherever a slot is flagged
    marks = marks * relation
    return replace(negatives, suspicion=given, relation=marks if before is None else before + marks)


def _flagged(negatives: Negatives, suspicion: Any, line: float) -> tuple[Array, Array]:
    """The suspicion to keep, and which slots to act on: negatives with a suspicion of at least `line`."""
    check_number("line", line, "a number from 0 to 1", lambda number: 0 <= number <= 1)
    given = _read(negatives, suspicion)
    flagged = negatives.mask & (given >= line)
    if negatives.suspicion is not None:
        larger = need_torch().maximum if is_torch(given) else np.maximum
        given = larger(given, negatives.suspicion.to(given.dtype) if is_torch(given) else negatives.suspicion)
    return given, flagged


def _read(negatives: Negatives, suspicion: Any) -> Array:
    """Suspicion in the array type of the negatives, 0 in empty slots; refused unless it is one."""
    if not isinstance(negatives, Negatives):
        raise_invalid("negatives", "Negatives", type(negatives).__name__, "Pass what a sampler answered.")
    given = np.asarray(to_numpy(suspicion))
    if given.shape != negatives.shape:
        raise_invalid("suspicion", f"of shape {negatives.shape}, like the negatives", f"shape {given.shape}")
    if given.dtype.kind not in "iuf":
        raise_invalid("suspicion", "numbers from 0 to 1", f"dtype {given.dtype}")
    bad = ~((given >= 0) & (given <= 1)) & filled_slots(negatives)
    if bad.any():
        worst = np.where(bad, given, 0)
        raise_invalid("suspicion", "from 0 to 1", first_bad(worst[np.arange(len(bad)), bad.argmax(axis=1)], bad))
    given = np.where(filled_slots(negatives), given, 0).astype(np.result_type(given.dtype, np.float32), copy=False)
    return to_torch(given, negatives.ids.device) if is_torch(negatives.ids) else given


def _counts(names: tuple[str, ...], blame: Any, lost: NDArray[np.bool_]) -> dict[str, int]:
    """How many lost slots each name is blamed for; names with none are left out."""
    places = np.asarray(to_numpy(blame))
    if places.shape != lost.shape or places.dtype.kind not in "iu":
        rule = f"whole numbers of shape {lost.shape}, like the negatives"
        raise_invalid("blame", rule, f"shape {places.shape} {places.dtype}")
    found = places[lost]
    if found.size and not (found.min() >= 0 and found.max() < len(names)):
        raise_invalid("blame", f"from 0 to {len(names) - 1} where a slot is dropped", f"{found.min()} to {found.max()}")
    return {
        name: count
        for name, count in zip(names, np.bincount(found, minlength=len(names)).tolist(), strict=True)
        if count
    }
