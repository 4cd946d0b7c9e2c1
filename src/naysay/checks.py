"""Argument checks, and the one sentence that every error has.

    Caller: `parameter` must be RULE, got VALUE. ADVICE.

For data the value is the first bad row and how many there are. Checks run before work starts.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import need_torch, to_numpy
from naysay.errors import MissingExtraError, NaysayError
from naysay.errors import raise_invalid as raise_invalid
from naysay.text import first_line
from naysay.text import shown as shown
from naysay.text import shown_names as shown_names

_BY_CLASS = ("__init__", "__call__")  # methods whose errors are reported under the name of the class
_MARK = "__naysay_public__"
_EXACT = 1 << 53  # whole numbers up to here are exact in float64
MOST_ROWS = (1 << 31) - 1  # of an array that is made with a number from the caller
_Public = TypeVar("_Public", bound=Callable[..., Any])


def public(boundary: _Public) -> _Public:
    """Mark a function or a class as public: errors raised inside are reported in its name.

    Checks below the boundary do not know who called them. The innermost public function or method that an error
    passes on its way up adds its own name (`Everything.draw`), once. A class is marked as a whole: its constructor
    reports as `Everything`, its methods as `Everything.draw`.
    """
    if isinstance(boundary, type):
        for name, member in list(vars(boundary).items()):
            if name in _BY_CLASS or not name.startswith("_"):
                caller = boundary.__qualname__ if name in _BY_CLASS else f"{boundary.__qualname__}.{name}"
                if inspect.isfunction(member):
                    setattr(boundary, name, _reporting(member, caller))
                elif isinstance(member, classmethod | staticmethod):
                    setattr(boundary, name, type(member)(_reporting(member.__func__, caller)))
                elif isinstance(member, property) and member.fget is not None:
                    setattr(boundary, name, property(_reporting(member.fget, caller), member.fset, doc=member.__doc__))
        setattr(boundary, _MARK, boundary)
        return boundary
    reporting = _reporting(boundary, boundary.__qualname__)
    setattr(reporting, _MARK, reporting)
    return cast(_Public, reporting)


def is_public(value: object) -> bool:
    """Whether a function or class itself, not a parent of it, was marked with `public`."""
    return getattr(value, _MARK, None) is value


def _reporting(function: Callable[..., Any], caller: str) -> Callable[..., Any]:
    """The same function; an error that has no caller yet gets this one."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (NaysayError, MissingExtraError) as error:
            if error.caller is None:
                error.caller = caller
            raise

    return call


@contextmanager
def with_option_names(command: str, options: Mapping[str, str]) -> Iterator[None]:
    """Report errors raised inside as `command` does; `options` is {parameter of the library's functions: option}."""
    try:
        yield
    except (NaysayError, MissingExtraError) as error:
        for parameter, option in options.items():
            _rename(error, parameter, option)
        error.caller = command
        raise


@contextmanager
def with_parameter(name: str, instead_of: str) -> Iterator[None]:
    """Report errors raised inside about the parameter `instead_of` as errors about `name`, which the caller passed."""
    try:
        yield
    except NaysayError as error:
        if error.parameter == instead_of:
            _rename(error, instead_of, name)
            error.parameter = name
            error.caller = None  # the public function that has the parameter adds its own name
        raise


def _rename(error: NaysayError | MissingExtraError, parameter: str, name: str) -> None:
    """Put another name where the sentence names a parameter, in backticks."""
    error.args = (str(error.args[0]).replace(f"`{parameter}`", f"`{name}`"),)


def is_number(value: object) -> bool:
    """Whether `value` is one real number of Python's or NumPy's. True and False are not numbers."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_number(
    parameter: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    finite: bool = False,
    advice: str = "",
) -> float:
    """Return `value` as a float; raise if it is not one number (also an array of no dimensions) within the bounds.

    NaN is never within them; infinity is if `finite` is False.
    """
    plain = to_numpy(value)
    number = plain.item() if isinstance(plain, np.ndarray) and plain.ndim == 0 else plain
    try:
        found = float(number) if is_number(number) else math.nan
    except OverflowError:  # a whole number of more than 308 digits
        raise_invalid(parameter, "a number of at most 308 digits", shown(value), advice)
    good = (
        not math.isnan(found)
        and (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (below is None or number < below)
        and (at_most is None or number <= at_most)
        and not (finite and math.isinf(found))
    )
    if not good:
        bounds = [("above", above), ("at least", at_least), ("below", below), ("at most", at_most)]
        limits = " and ".join(f"{word} {limit:g}" for word, limit in bounds if limit is not None)
        raise_invalid(parameter, f"a{' finite' if finite else ''} number {limits}".rstrip(), shown(value), advice)
    return found


def check_whole(parameter: str, value: object, least: int, most: int | None = None) -> int:
    """Return `value` as an int, or raise if it is not a whole number of at least `least` and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise_invalid(parameter, "a whole number", shown(value))
    if value < least:
        raise_invalid(parameter, f"at least {least}", shown(int(value)))
    if most is not None and value > most:
        raise_invalid(parameter, f"at most {most:,}", shown(int(value)))
    if int(value) >= 1 << 64:  # which no array can have as a size, nor a generator as a seed
        raise_invalid(parameter, "below 2^64", shown(int(value)))
    return int(value)


def as_floats(parameter: str, values: Any) -> NDArray[np.float64]:
    """Return `values` as a float64 array of any shape, or raise if they are not numbers. NaN is not a number."""
    array = as_array(parameter, to_numpy(values))
    if array.dtype.kind not in "iuf":
        raise_invalid(parameter, "a number, or an array of numbers", shown(values))
    floats = array.astype(np.float64)
    check_all(parameter, floats, ~np.isnan(floats), "a number")
    return floats


def check_all(parameter: str, values: NDArray[Any], good: NDArray[np.bool_], rule: str, advice: str = "") -> None:
    """Raise unless all values are good: with the value itself, or as `first_bad` reports it."""
    if not good.all():
        raise_invalid(parameter, rule, values.item() if values.ndim == 0 else first_bad(values, ~good), advice)


def plain_number(values: NDArray[np.float64]) -> Any:
    """Return a float for an array of no dimensions, else the array."""
    return values.item() if values.ndim == 0 else values


def check_bool(parameter: str, value: object) -> bool:
    """Return `value` as a bool, or raise if it is not one: 'no' and 0.5 would be truthy."""
    if not isinstance(value, bool | np.bool_):
        raise_invalid(parameter, "True or False", shown(value))
    return bool(value)


def check_one_of(parameter: str, value: object, options: Sequence[str]) -> None:
    """Raise if `value` is not one of `options`; the message suggests the nearest."""
    if isinstance(value, str) and value in options:
        return
    near = difflib.get_close_matches(value if isinstance(value, str) else "", options, n=1)
    advice = f"Did you mean {near[0]!r}?" if near else ""
    raise_invalid(parameter, f"one of {shown_names(options)}", shown(value), advice)


def check_kind(parameter: str, value: object, kind: Any, rule: str, advice: str = "") -> None:
    """Raise if `value` is not of the type `kind`; `rule` is its name in the error."""
    if not isinstance(value, kind):
        raise_invalid(parameter, rule, type(value).__name__, advice)


def check_generator(rng: object) -> None:
    """Raise if `rng` is not a NumPy Generator."""
    if not isinstance(rng, np.random.Generator):
        raise_invalid("rng", "a numpy Generator", shown(rng), "Pass rng=naysay.rng_for(seed, step).")


def check_device(parameter: str, device: Any) -> None:
    """Raise unless torch can compute on a device here."""
    torch = need_torch()
    try:
        if torch.empty(0, device=device).is_meta:
            raise_invalid(parameter, "a device that holds numbers", shown(device))
    except NaysayError:
        raise
    except Exception as error:  # torch raises several kinds
        raise_invalid(parameter, "one that torch can use here", shown(device), first_line(error))


def as_array(parameter: str, values: Any) -> NDArray[Any]:
    """Return `values` as a NumPy array, or raise if rows have different lengths, or if values are masked."""
    if isinstance(values, np.ma.MaskedArray):
        check_not_masked(parameter, values)
    try:
        return np.asarray(values)
    except ValueError:
        raise_invalid(parameter, "rows of one length", "rows of different lengths")


def check_not_masked(parameter: str, values: Any) -> None:
    """Raise if values of a NumPy masked array are masked: what is behind the mask would count."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        got = f"{np.count_nonzero(np.ma.getmaskarray(values))} of {values.size} masked"
        advice = f"Pass {parameter}.compressed(), or fill them, as in {parameter}.filled(-1) for no id."
        raise_invalid(parameter, "without masked values", got, advice)


def check_exact(parameter: str, scores: NDArray[Any]) -> None:
    """Raise if whole numbers are beyond 2^53: float64 does not have all of them, so that different scores would tie."""
    if scores.dtype.kind not in "iu" or scores.dtype.itemsize < 8 or not scores.size:
        return
    bad = (scores > _EXACT) | (scores < -_EXACT) if scores.dtype.kind == "i" else scores > _EXACT
    if bad.any():
        advice = "Subtract a constant, or divide, so that different scores stay different."
        raise_invalid(parameter, "whole numbers between -2^53 and 2^53", first_bad(scores, bad), advice)


def whole_numbers(parameter: str, values: Any, shape: str = "(n,)") -> NDArray[Any]:
    """Return `values` as an integer array with as many dimensions as `shape` names; not copied if it is one."""
    array = as_array(parameter, values)
    expected = shape.count(",") + (0 if shape.endswith(",)") else 1)
    if array.ndim != expected:
        raise_invalid(parameter, f"of shape {shape}", f"shape {array.shape}")
    if array.size == 0 and array.dtype.kind in "fO":  # what an empty list, tensor or column becomes
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise_invalid(parameter, "whole numbers", f"dtype {array.dtype}", "Ids count from 0.")
    if array.dtype == np.uint64:
        too_large = array > np.uint64(np.iinfo(np.int64).max)
        if too_large.any():
            raise_invalid(parameter, "below 2^63", first_bad(array, too_large))
        return array.astype(np.int64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def check_range(parameter: str, ids: NDArray[Any], size: int, what: str, *, least: int = 0) -> None:
    """Raise if ids lie outside [least, size), with the first bad row and how many there are."""
    if ids.size == 0 or (ids.min() >= least and ids.max() < size):
        return
    bad = (ids < least) | (ids >= size)
    rule = f"between {least} and {size - 1} ({size} {what})" if size else f"empty (there are 0 {what})"
    raise_invalid(parameter, rule, first_bad(ids, bad))


def check_lengths(**lengths: int) -> None:
    """Raise if the lengths differ."""
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise_invalid(next(iter(lengths)), "of the same length as the others", got)


def first_bad(values: NDArray[Any], bad: NDArray[np.bool_], start: int = 0) -> str:
    """'900 at row 3, slot 7 (2 such rows)': the first bad value, and how many rows have one; rows count from `start`.

    If `bad` has one dimension, it marks whole rows of the values.
    """
    values, bad = np.atleast_1d(values, bad)
    row, *slot = map(int, np.unravel_index(int(bad.argmax()), bad.shape))
    value = values[(row, *slot)]
    text = str(value) if isinstance(value, np.number) else shown(np.asarray(value).tolist())
    rows = int(np.count_nonzero(bad.reshape(len(bad), -1).any(axis=1)))
    return at_row(text, start + row, rows, f", slot {', '.join(map(str, slot))}" if slot else "")


def at_row(value: object, row: int, count: int, slot: str = "") -> str:
    """'900 at row 3 (2 such rows)': what is wrong, where it is first, and in how many rows."""
    return f"{value} at row {row}{slot} ({count} such row{'s' if count > 1 else ''})"
