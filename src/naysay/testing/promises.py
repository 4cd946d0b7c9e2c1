"""A promise is a named function that looks at a part and says what it saw break, or None."""

from __future__ import annotations

import random  # noqa: TID251 - to see that nobody moved it
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np

from naysay.checks import check_one_of

_Subject = TypeVar("_Subject")
Promises = Mapping[str, Callable[[_Subject], str | None]]


class PromiseBroken(AssertionError):
    """A part broke its contract: `promise` is the short name of what broke, the message says what was seen."""

    def __init__(self, promise: str, seen: str) -> None:
        super().__init__(promise, seen)

    @property
    def promise(self) -> str:
        """The short name, one of those that the check's docstring lists."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"`{self.args[0]}`: {self.args[1]}"


def hold(label: str, promises: Promises[_Subject], subject: _Subject, without: Collection[str] = ()) -> None:
    """Raise PromiseBroken for the first promise that `subject` breaks; an exception on the way breaks it too.

    Args:
        label: What the messages call the part, e.g. "Everything.draw".
        without: Names of promises that the part does not make.
    """
    for name in without:
        check_one_of("without", name, tuple(promises))
    for name, promise in promises.items():
        if name in without:
            continue
        try:
            seen = promise(subject)
        except Exception as error:
            raise PromiseBroken(name, f"{label} raised {type(error).__name__}: {error}") from error
        if seen is not None:
            raise PromiseBroken(name, f"{label} {seen}")


def global_generators() -> dict[str, bytes]:
    """The state of every global generator, in a form that can be compared; torch's only if somebody imported it."""
    states = {
        "numpy.random": repr(np.random.get_state(legacy=False)).encode(),  # noqa: NPY002
        "random": repr(random.getstate()).encode(),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


def moved_generator(act: Callable[[], Any]) -> str | None:
    """What to say if `act` moved a global generator."""
    before = global_generators()
    act()
    moved = [name for name, state in global_generators().items() if before.get(name, state) != state]
    return f"moved the global generator of {', '.join(moved)}" if moved else None
