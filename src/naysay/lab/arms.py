"""Arms of a comparison: catalogue names that fit the data, and samplers of the user's own."""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from naysay import catalog
from naysay.checks import check_kind, public, raise_invalid, shown, with_parameter
from naysay.lab._task import Task
from naysay.text import first_line

Parts = Mapping[str, Any]
_OUTSIDE = re.compile(r",(?![^(]*\))")  # commas that are not in parentheses: a name is "DNS(M, N)"
_SAMPLERS = ("where", "which")  # the questions of the catalogue that samplers answer
_MODULE_OBJECT = re.compile(r"[\w.]+:[A-Za-z_][\w.]*")
_MOST_NEGATIVES = 100_000
_K_OF_SOURCE = {"EBR": 20}  # negatives per positive of a paper whose name stands for its number, too


@final
@dataclass(frozen=True)
class Arm:
    """One kind of negatives."""

    name: str  # how the user wrote it, such as "dynamic" or "uniform:8"
    k: int  # negatives per positive; without a number in its name, that of all the task's default arms
    code: str  # the composition as the catalogue has it, or module:object
    make: Callable[[Parts], Any] | None = None  # make(parts) -> sampler or step, of the user's own

    def sampler(self, parts: Parts) -> Any:
        """Make the sampler, or the function step(rows, k, *, step), from what the model offers."""
        if self.make is None:
            return eval(
                self.code, {**parts, "k": self.k}
            )  # text of the catalogue or of a task, which are part of the package
        sampler = self.make(parts)
        if not callable(getattr(sampler, "sample", None)) and not callable(sampler):
            raise_invalid("methods", "functions that return an object with sample(query, k, *, rng)", shown(sampler))
        return sampler

    def negatives_used(self, sampler: Any) -> int | str:
        """The number of negatives per positive, or what a step without such a number uses: "all", "batch", ..."""
        used: str | None = getattr(sampler, "negatives_used", None)
        if used is None:
            return self.k
        if "{k}" not in used and _name_and_number(self.name)[1] is not None:
            rule = f"names without a number for methods that draw no k: {self.name!r} uses {used}"
            raise_invalid("methods", rule, repr(self.name))
        return used.format(k=self.k)


def parts_of(task: Task, seed: int, steps: int) -> dict[str, Any]:
    """{name: value}: what an arm may name, of a model before training and a run of so many steps."""
    return {**task.start(seed).parts(), "steps": steps, "k": task.k}


@public
def fitting_methods(task: Task) -> tuple[str, ...]:
    """The names of a task's own methods, and of the catalogue's whose composition uses only what the task offers.

    Args:
        task: Such as a `lab.Recommendation`.

    Examples:
        >>> import naysay as ns
        >>> task = ns.lab.Recommendation(ns.lab.split_by_user([0] * 9 + [1] * 9, [*range(9)] * 2))
        >>> fitting_methods(task)[:3]
        ('whole-data', 'ANS', 'ANS (adaptive k)')
    """
    check_kind("task", task, Task, "a task of naysay.lab")
    return _fitting(task, parts_of(task, 0, 1))


def _fitting(task: Task, parts: Parts) -> tuple[str, ...]:
    compositions = dict(task.methods)
    for method in (*catalog.methods("where"), *catalog.methods("which")):
        compositions.setdefault(method.name, _expression(method))
    return tuple(name for name, code in compositions.items() if _missing(code, parts) == [])


def read_arms(methods: Any, task: Task, parts: Parts, defaults: Sequence[str]) -> list[Arm]:
    """The arms that are asked for, in their order.

    `methods` is None, "a,b", a sequence of names, or {name: function}; NAME:K asks for K negatives, NAME for `task.k`.
    """
    if methods is None or (isinstance(methods, str) and not methods.strip()):
        methods = defaults
    if isinstance(methods, str):
        methods = [name.strip() for name in _OUTSIDE.split(methods)]
    if not isinstance(methods, Sequence | Mapping) or not all(isinstance(name, str) for name in methods):
        raise_invalid("methods", "names, or {name: function}", shown(methods))
    if not methods:
        raise_invalid("methods", "at least one name", "none")
    functions = methods if isinstance(methods, Mapping) else {}
    arms = [_arm(name, task, parts, functions.get(name)) for name in methods]
    names = [arm.name for arm in arms]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise_invalid("methods", "different names", f"{repeated[0]!r} twice")
    return arms


def reference_for(arm: Arm, task: Task, parts: Parts, defaults: Sequence[str]) -> Arm | None:
    """What a single arm is compared to: the first default with the k of the arm; None if that is the arm itself."""
    reference = _arm(f"{defaults[0].partition(':')[0]}:{arm.k}", task, parts, None)
    return None if reference.code == arm.code else reference


def _name_and_number(text: str) -> tuple[str, int | None]:
    """The name of an arm, and the number of negatives that it asks for."""
    name, _, number = text.rpartition(":")
    return (name, int(number)) if name and number.isdecimal() else (text, None)


def _arm(text: str, task: Task, parts: Parts, make: Callable[[Parts], Any] | None) -> Arm:
    """One arm from its text: NAME, NAME:K, module:object or module:object:K."""
    name, number = _name_and_number(text)
    k = _K_OF_SOURCE.get(name, task.k) if number is None else number
    if not 1 <= k <= _MOST_NEGATIVES:
        raise_invalid("methods", f"names with a number of negatives from 1 to {_MOST_NEGATIVES:,}", repr(text))
    if make is None and _MODULE_OBJECT.fullmatch(name):
        make = _imported(name)
    if make is not None:
        if not callable(make):
            raise_invalid("methods", "functions that get {name: part} and return a sampler", f"{name!r}: {shown(make)}")
        return Arm(text, k, name, make)
    code = _composition(name, task)
    missing = _missing(code, parts)
    if missing != []:
        why = "has no composition of one sampler" if missing is None else f"needs {', '.join(missing)}"
        advice = f"These fit: {', '.join(_fitting(task, parts))}."
        raise_invalid("methods", "methods that fit the data", f"{name!r}, which {why}", advice)
    return Arm(text, k, code)


def _composition(name: str, task: Task) -> str:
    """The composition of a name: of the task's own, else of the catalogue, whose error suggests the nearest."""
    for known, code in task.methods.items():
        if known.casefold() == name.casefold():
            return code
    with with_parameter("methods", instead_of="name"):
        found = catalog.find(name)
    method = next((one for one in found if one.question in _SAMPLERS), found[0])
    if method.question == "elsewhere":
        raise_invalid("methods", "names of methods", repr(name), method.summary)
    return _expression(method)


def _expression(method: catalog.Method) -> str:
    """The composition of a sampler; empty for what is no sampler, or needs a loss over a batch."""
    is_sampler = method.question in _SAMPLERS and not method.batch_loss
    return method.parts if is_sampler else ""


def _missing(code: str, parts: Parts) -> list[str] | None:
    """The names that an expression uses and a task does not offer; None if it is not an expression."""
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        return None
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return sorted(names - arguments - parts.keys())


def _imported(name: str) -> Any:
    """The object of module:object, from the current folder or from the path of Python."""
    module, _, path = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module)
        for attribute in path.split("."):
            value = getattr(value, attribute)
    except (ImportError, AttributeError) as error:
        raise_invalid("methods", "names of the catalogue, or module:object", f"{name!r} ({first_line(error)})")
    finally:
        sys.path.pop(0)
    return value
