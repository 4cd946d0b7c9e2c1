"""Answers of several samplers as one: side by side, with what each slot came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, need_torch, to_numpy
from naysay.checks import public, raise_invalid
from naysay.samplers._draw import EMPTY
from naysay.samplers._vectors import like_query
from naysay.types import Array, Negatives, Query

_UNSAID = {"relation": 0, "weights": 1, "parents": -1}  # what the slots of a part that does not say stand for
_ALIKE = ("vectors", "side")  # all parts say, or none: a slot without them would be another thing
_APART = ("ids", "source", "source_names", "log_q", "dropped")


def side_by_side(names: tuple[str, ...], asked: Sequence[int], answers: Sequence[Negatives], query: Query) -> Negatives:
    """(B, sum of K + 1) the answers of the parts `asked`, in order, then an empty slot, so that a row has one."""
    end = np.full((len(query), 1), -1)
    columns = [*(answer.ids for answer in answers), like_query(end, query)]
    sources = [*(np.full(answer.shape, part, np.int8) for part, answer in zip(asked, answers, strict=True))]
    joined = Negatives(
        _columns(columns),
        source=like_query(np.concatenate([*sources, end.astype(np.int8)], axis=1), query),
        source_names=names,
        dropped=_added([answer.dropped for answer in answers]),
    )
    together: dict[str, Array] = {}
    for name in (field.name for field in fields(Negatives) if field.name not in _APART):
        given = [getattr(answer, name) for answer in answers]
        said = [one for one in given if one is not None]
        if not said or (len(said) < len(given) and name in ("scores", "suspicion")):
            continue
        if len(said) < len(given) and name in _ALIKE:
            silent = names[asked[next(i for i, one in enumerate(given) if one is None)]]
            raise_invalid("parts", f"samplers of which all answer with {name}, or none", f"{silent!r} without")
        beyond = {tuple(one.shape[2:]) for one in said}
        if len(beyond) > 1:
            raise_invalid("parts", f"samplers whose {name} are of one dimension", sorted(beyond))
        like = said[0][:, :0]
        filled = [
            _constant(like, answer.shape[1], _UNSAID[name]) if one is None else one
            for one, answer in zip(given, answers, strict=True)
        ]
        together[name] = _columns([*filled, _constant(like, 1, EMPTY.get(name, 0))])
    return replace(joined, **together)


def repeated(row: Negatives) -> NDArray[np.bool_]:
    """(B, N): slots whose id (with sides: side and id) an earlier part has in the row; mixed vectors repeat nothing."""
    ids, source = np.asarray(to_numpy(row.ids)), np.asarray(to_numpy(row.source))
    keys = ids if row.side is None else ids * 3 + np.asarray(to_numpy(row.side))
    mixed = np.zeros(ids.shape, np.bool_) if row.parents is None else np.asarray(to_numpy(row.parents))[:, :, 0] >= 0
    keys = np.where((ids < 0) | mixed, -1 - np.arange(ids.shape[1]), keys)  # each its own
    order = np.argsort(keys, axis=1, kind="stable")  # of one key, the earliest part first
    ordered, parts = np.take_along_axis(keys, order, axis=1), np.take_along_axis(source, order, axis=1)
    starts = np.ones(ids.shape, np.bool_)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(ids.shape[1]), 0), axis=1)
    again = np.empty(ids.shape, np.bool_)
    np.put_along_axis(again, order, parts > np.take_along_axis(parts, first, axis=1), axis=1)
    return again


@public
def blanked(chosen: Negatives) -> Negatives:
    """The same with nothing left in empty slots: -1 for ids, parents, side and source, 0 for the rest."""
    empty = chosen.ids < 0
    where = need_torch().where if is_torch(chosen.ids) else np.where
    changed: dict[str, Array] = {}
    for name in (field.name for field in fields(Negatives) if field.name not in ("ids", "source_names", "dropped")):
        array = getattr(chosen, name)
        if array is not None:
            mark = empty.reshape(*empty.shape, *(1,) * (array.ndim - 2))
            changed[name] = where(mark, _constant(array[:, :0], array.shape[1], EMPTY.get(name, 0)), array)
    return replace(chosen, **changed)


def _columns(arrays: list[Array]) -> Array:
    if is_torch(arrays[0]):
        return need_torch().cat(arrays, dim=1)
    return np.concatenate(arrays, axis=1)


def _constant(like: Array, width: int, value: int) -> Array:
    """(B, width, ...) of one value, in the array type and number type of `like` (B, 0, ...)."""
    shape = (like.shape[0], width, *like.shape[2:])
    return like.new_full(shape, value) if is_torch(like) else np.full(shape, value, like.dtype)


def _added(counts: Sequence[Any]) -> dict[str, int]:
    """One count for each reason."""
    reasons = {reason for dropped in counts for reason in dropped}
    return {reason: sum(dropped.get(reason, 0) for dropped in counts) for reason in sorted(reasons)}
