"""Argument checks, and the one shape that every refusal has.

    Owner: `parameter` must be RULE, got VALUE. ADVICE.

For data the value is the first bad row and how many there are. Everything is refused before work starts.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from naysay.errors import NaysayError


def refuse(owner: str, parameter: str, rule: str, got: object, advice: str = "") -> NoReturn:
    """Raise the refusal of `parameter`."""
    said = owner, parameter, rule, str(got), advice
    refusal = NaysayError(sentence(*said))
    refusal.said = said
    raise refusal


def sentence(owner: str, parameter: str, rule: str, got: str, advice: str) -> str:
    """The sentence of a refusal."""
    return f"{owner}: `{parameter}` must be {rule}, got {got}. {advice}".rstrip()


@contextmanager
def as_typed(command: str, options: Mapping[str, Mapping[str, str]], words: Mapping[str, str]) -> Iterator[None]:
    """In the words of a shell: name options where a refusal in here names parameters of Python's functions.

    command   who refuses then
    options   {who refuses: {its parameter: the option}}; what is not listed stays as it is
    words     {what rules and advice say of arguments: the same of options}
    """

    def worded(text: str) -> str:
        for said, other in words.items():
            text = text.replace(said, other)
        return text

    try:
        yield
    except NaysayError as refusal:
        if refusal.said is not None:
            owner, parameter, rule, got, advice = refusal.said
            option = options.get(owner, {}).get(parameter)
            if option is not None:
                got = "nothing" if got == "None" else got
                refusal.args = (sentence(command, option, worded(rule), got, worded(advice)),)
        raise


def check_at_least(owner: str, parameter: str, value: float, least: float) -> None:
    """Refuse a number below `least`, NaN included."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        refuse(owner, parameter, "a number", shown(value))
    if not value >= least:
        refuse(owner, parameter, f"at least {least}", value)


def check_whole(owner: str, parameter: str, value: object, least: int) -> int:
    """`value` as an int, refused unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        refuse(owner, parameter, "a whole number", shown(value))
    if value < least:
        refuse(owner, parameter, f"at least {least}", value)
    return int(value)


def check_one_of(owner: str, parameter: str, value: object, options: Sequence[str]) -> None:
    """Refuse a name that is not among `options`, and offer the nearest."""
    if value in options:
        return
    near = difflib.get_close_matches(str(value), options, n=1)
    advice = f"Did you mean {near[0]!r}?" if near else ""
    refuse(owner, parameter, "one of " + ", ".join(map(repr, options)), shown(value), advice)


def check_generator(owner: str, rng: object) -> None:
    """Refuse anything but a NumPy Generator as the source of randomness."""
    if not isinstance(rng, np.random.Generator):
        refuse(owner, "rng", "a numpy Generator", shown(rng), "Pass rng=naysay.rng_for(seed, step).")


def as_array(owner: str, parameter: str, values: Any) -> NDArray[Any]:
    """`values` as a NumPy array; rows of different lengths are refused."""
    try:
        return np.asarray(values)
    except ValueError:
        refuse(owner, parameter, "rows of one length", "rows of different lengths")


def whole_numbers(owner: str, parameter: str, values: Any, shape: str = "(n,)") -> NDArray[Any]:
    """`values` as an integer array with as many dimensions as `shape` names; not copied if it is one."""
    array = as_array(owner, parameter, values)
    expected = shape.count(",") + (0 if shape.endswith(",)") else 1)
    if array.ndim != expected:
        refuse(owner, parameter, f"of shape {shape}", f"shape {array.shape}")
    if array.size == 0 and array.dtype.kind in "fO":  # what an empty list, tensor or column becomes
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        refuse(owner, parameter, "whole numbers", f"dtype {array.dtype}", "Ids count from 0.")
    if array.dtype == np.uint64:
        too_large = array > np.uint64(np.iinfo(np.int64).max)
        if too_large.any():
            refuse(owner, parameter, "below 2^63", first_bad(array, too_large))
        return array.astype(np.int64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def check_range(owner: str, parameter: str, ids: NDArray[Any], size: int, what: str, *, least: int = 0) -> None:
    """Refuse ids outside [least, size): the first bad row and how many."""
    if ids.size == 0 or (ids.min() >= least and ids.max() < size):
        return
    bad = (ids < least) | (ids >= size)
    rule = f"between {least} and {size - 1} ({size} {what})" if size else f"empty (there are 0 {what})"
    refuse(owner, parameter, rule, first_bad(ids, bad))


def check_lengths(owner: str, **lengths: int) -> None:
    """Refuse arrays that should be of one length and are not."""
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name} {length}" for name, length in lengths.items())
        refuse(owner, next(iter(lengths)), "as long as its partners", got)


def first_bad(values: NDArray[Any], bad: NDArray[np.bool_]) -> str:
    """'900 at row 3 (2 such rows)': the first offender and the count."""
    values, bad = np.atleast_1d(values, bad)
    rows = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
    first = values[rows[:1]].tolist()[0]
    return f"{shown(first)} at row {rows[0]} ({len(rows)} such row{'s' if len(rows) > 1 else ''})"


def shown(value: object) -> str:
    """A short form of any value, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
