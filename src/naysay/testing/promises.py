"""A promise is a named function that tests a part and returns what is wrong, or None."""

from __future__ import annotations

import random  # noqa: TID251 - to test that it is not used
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np

from naysay.checks import check_one_of

_Subject = TypeVar("_Subject")
Promises = Mapping[str, Callable[[_Subject], str | None]]


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

    Args:
        label: The name of the part in messages, e.g. "Everything.draw".
        promises: What to test, in this order.
        subject: What the promises are called with.
        without: Names of promises that the part does not make.
    """
    for name in without:
        check_one_of("without", name, tuple(promises))
    for name, promise in promises.items():
        if name in without:
            continue
        try:
            complaint = promise(subject)
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


def used_generator(act: Callable[[], Any]) -> str | None:
    """An error text if `act` changes a global generator, or None."""
    before = global_generators()
    act()
    moved = [name for name, state in global_generators().items() if before.get(name, state) != state]
    return f"used the global generator of {', '.join(moved)}" if moved else None
