"""Arms of a comparison: catalogue names that fit the data, and samplers of the user's own."""

from __future__ import annotations

import ast
import difflib
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

from naysay import catalog
from naysay.checks import public, raise_invalid, shown
from naysay.errors import NaysayError
from naysay.lab._kinds import KINDS
from naysay.text import first_line

Parts = Mapping[str, Any]
_OUTSIDE = re.compile(r",(?![^(]*\))")  # commas that are not in parentheses: a name is "DNS(M, N)"
_NEAR = 0.7  # how alike a suggestion must be, from 0 to 1
_SAMPLERS = ("where", "which")  # the questions of the catalogue that samplers answer
_OWN = re.compile(r"[\w.]+:[A-Za-z_][\w.]*")


@final
@public
@dataclass(frozen=True)
class Arm:
    """One kind of negatives.

    Args:
        name: How the user wrote it, such as "dynamic" or "uniform:8".
        k: Negatives per positive. Without a number in its name, that of all the task's default arms.
        code: The composition as the catalogue has it, or module:object.
        make: make(parts) -> sampler, for a sampler of the user's own; None evaluates `code`. A function
            step(rows, k, *, step) -> (loss, negatives or None) may take the place of a sampler.

    Examples:
        >>> Arm("uniform", 1, "Static(Everything(positives))").k
        1
    """

    name: str
    k: int
    code: str
    make: Callable[[Parts], Any] | None = None

    def sampler(self, parts: Parts) -> Any:
        """Make the sampler, or the function that makes a step, from what the model offers."""
        if self.make is None:
            return eval(self.code, dict(parts))  # text of the catalogue or of a task, which are part of the package
        sampler = self.make(parts)
        if not callable(getattr(sampler, "sample", None)) and not callable(sampler):
            raise_invalid("methods", "functions that return an object with sample(query, k, *, rng)", shown(sampler))
        return sampler


@public
def fitting_methods(parts: Parts, own: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
    """The names of a task's own methods, and of the catalogue's whose composition uses only what the task offers.

    Args:
        parts: {name: value} of what the task offers, such as `lab.Recommender.parts()`.
        own: {name: composition} of the task's own, such as `lab.Retrieval.own`.

    Examples:
        >>> from naysay import pools, samplers
        >>> fitting_methods({"Static": samplers.Static, "Everything": pools.Everything, "positives": None})[:2]
        ('uniform', 'BPR')
    """
    names = (method.name for method in _samplers() if method.name not in own)
    found = {**own, **{name: _code(name) for name in names}}
    return tuple(name for name, code in found.items() if _missing(code, parts) == [])


def read_arms(
    methods: Any, parts: Parts, defaults: Sequence[str], own: Mapping[str, str] = MappingProxyType({}), k: int = 8
) -> list[Arm]:
    """The arms that are asked for, in their order.

    methods   None, "a,b", a sequence of names, or {name: function}; NAME:K asks for K negatives, NAME for `k`
    own       {name: composition} of the task's own, which come before those of the catalogue
    """
    if methods is None or (isinstance(methods, str) and not methods.strip()):
        methods = defaults
    if isinstance(methods, str):
        methods = [name.strip() for name in _OUTSIDE.split(methods)]
    if not isinstance(methods, Sequence | Mapping) or not all(isinstance(name, str) for name in methods):
        raise_invalid("methods", "names, or {name: function}", shown(methods))
    made = methods if isinstance(methods, Mapping) else {}
    if not methods:
        raise_invalid("methods", "at least one name", "none")
    arms = [_arm(name, parts, own, made.get(name), k) for name in methods]
    names = [arm.name for arm in arms]
    if len(set(names)) < len(names):
        raise_invalid("methods", "different names", f"{next(name for name in names if names.count(name) > 1)!r} twice")
    return arms


def reference_for(
    arms: Sequence[Arm], parts: Parts, defaults: Sequence[str], own: Mapping[str, str] = MappingProxyType({})
) -> Arm | None:
    """What a single arm is compared to: the first default with the k of the arm. None for several arms, or itself."""
    if len(arms) > 1:
        return None
    reference = _arm(f"{defaults[0].partition(':')[0]}:{arms[0].k}", parts, own, None, arms[0].k)
    return None if reference.code == arms[0].code else reference


def negatives_of(arm: Arm, sampler: Any) -> int | str:
    """The number of negatives per positive, or what a step without such a number uses: "all", "batch", ..."""
    used: str | None = getattr(sampler, "negatives_used", None)
    if used is None:
        return arm.k
    if "{k}" not in used and _split(arm.name)[1] is not None:
        rule = f"names without a number for methods that draw no k: {arm.name!r} uses {used}"
        raise_invalid("methods", rule, repr(arm.name))
    return used.format(k=arm.k)


def _split(text: str) -> tuple[str, int | None]:
    """The name of an arm, and the number of negatives that it asks for."""
    name, _, count = text.rpartition(":")
    return (name, int(count)) if name and count.isdecimal() else (text, None)


def _arm(text: str, parts: Parts, own: Mapping[str, str], make: Callable[[Parts], Any] | None, usual_k: int) -> Arm:
    """One arm from its text: NAME, NAME:K, module:object or module:object:K."""
    name, asked = _split(text)
    k = usual_k if asked is None else asked
    if not 1 <= k <= 100_000:
        raise_invalid("methods", "names with a number of negatives from 1 to 100,000", repr(text))
    if make is None and _OWN.fullmatch(name):
        make = _imported(name)
    if make is not None:
        if not callable(make):
            raise_invalid("methods", "functions that get {name: part} and return a sampler", f"{name!r}: {shown(make)}")
        return Arm(text, k, name, make)
    code = _named(name, own)
    missing = _missing(code, parts)
    if missing != []:
        why = "has no composition of one sampler" if missing is None else f"needs {', '.join(missing)}"
        advice = f"These fit: {', '.join(fitting_methods(parts, own))}."
        raise_invalid("methods", "methods that fit the data", f"{name!r}, which {why}", advice)
    return Arm(text, k, code)


def _named(name: str, own: Mapping[str, str]) -> str:
    """The composition of a name: of the task's own, else of the catalogue. An unknown name gets the nearest."""
    for known, code in own.items():
        if known.casefold() == name.casefold():
            return code
    names = {one.casefold(): one for one in (*own, *(one for method in _samplers() for one in method.names))}
    if name.casefold() not in names:
        try:
            return _code(name)  # a loss or a detector
        except NaysayError:
            others = [kind.task.name for kind in KINDS.values() if name.casefold() in map(str.casefold, kind.task.own)]
            if others:
                raise_invalid("methods", "methods that fit the data", f"{name!r}, which is for {' and '.join(others)}")
            near = difflib.get_close_matches(name.casefold(), names, n=1, cutoff=_NEAR)
            hint = f"Did you mean {names[near[0]]!r}? " if near else ""
            raise_invalid("methods", "names of methods", repr(name), f"{hint}`naysay methods` lists them all.")
    return _code(names[name.casefold()])


def _code(name: str) -> str:
    """The composition of a sampler as an expression; empty for what is no sampler, or needs a loss over a batch."""
    method = catalog.find(name)[0]
    if method.question == "elsewhere":
        raise_invalid("methods", "names of methods", repr(name), method.summary)
    is_sampler = method.question in _SAMPLERS and not method.batch_loss
    return method.parts if is_sampler else ""


def _samplers() -> Iterator[catalog.Method]:
    for question in _SAMPLERS:
        yield from catalog.methods(question)


def _missing(code: str, parts: Parts) -> list[str] | None:
    """The names that an expression uses and a task does not offer; None if it is not an expression."""
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        return None
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return sorted(names - own - parts.keys())


def _imported(name: str) -> Callable[[Parts], Any]:
    """The object of module:object, from the folder of the user or from the path of Python."""
    module, _, path = name.partition(":")
    try:
        with _from_here():
            found: Any = importlib.import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise_invalid("methods", "names of the catalogue, or module:object", f"{name!r} ({first_line(error)})")
    made: Callable[[Parts], Any] = found
    return made


@contextmanager
def _from_here() -> Iterator[None]:
    """Let modules of the current folder be imported."""
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        sys.path.pop(0)
