"""A promise is a named function that tests a part and yields what is wrong."""

from __future__ import annotations

import random  # noqa: TID251 - to test that it is not used
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from naysay.checks import check_one_of

_Subject = TypeVar("_Subject")
Promise = Callable[[_Subject], Iterator[str]]
Promises = Mapping[str, Promise[_Subject]]


def named(*promises: Promise[_Subject]) -> dict[str, Promise[_Subject]]:
    """{name: promise}, by the names of the functions; an underscore at their end is not part of it."""
    return {promise.__name__.rstrip("_"): promise for promise in promises}


class PromiseBroken(AssertionError):
    """A part broke its contract. `promise` is the name of the promise, the message says what happened."""

    def __init__(self, promise: str, complaint: str) -> None:
        super().__init__(promise, complaint)

    @property
    def promise(self) -> str:
        """The name of the promise, one of those in the check's docstring."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"`{self.args[0]}`: {self.args[1]}"


def check_promises(label: str, promises: Promises[_Subject], subject: _Subject, without: Collection[str] = ()) -> None:
    """Raise PromiseBroken for the first promise that `subject` breaks. An exception breaks the promise, too.

    `label` is the name of the part in messages, e.g. "Everything.draw".
    """
    for name in without:
        check_one_of("without", name, tuple(promises))
    for name, promise in promises.items():
        if name in without:
            continue
        try:
            complaint = next(promise(subject), None)
        except Exception as error:
            raise PromiseBroken(name, f"{label} raised {type(error).__name__}: {error}") from error
        if complaint is not None:
            raise PromiseBroken(name, f"{label} {complaint}")


def global_generators() -> dict[str, bytes]:
    """The state of every global generator, in a form that can be compared; torch's only if it was imported."""
    states = {
        "numpy.random": repr(np.random.get_state(legacy=False)).encode(),  # noqa: NPY002
        "random": repr(random.getstate()).encode(),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


def used_generator(act: Callable[[], Any]) -> Iterator[str]:
    """What is wrong if `act` changes a global generator."""
    before = global_generators()
    act()
    moved = [name for name, state in global_generators().items() if before.get(name, state) != state]
    if moved:
        yield f"used the global generator of {', '.join(moved)}"
