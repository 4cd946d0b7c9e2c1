"""A row of the catalogue, and its parts as a program that runs as it is.

The imports of a program come from the names that its parts use. They are looked up in the text of the package, so that
printing a program needs neither torch nor the small data.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from naysay.checks import public

_PACKAGE = Path(__file__).parent.parent
_FOLDERS = ("samplers", "pools", "batches", "quantity", "mining", "losses", "detectors")
_WHOLE = {"np": "import numpy as np", "torch": "import torch"}
_SINGLE = {"partial": "functools", "replace": "dataclasses", "rng_for": "naysay", "Negatives": "naysay"}
_JUDGED = {"query": "negatives", "image_query": "image_negatives"}  # the negatives of a query that detectors judge


@public
@dataclass(frozen=True, kw_only=True)
class Method:
    """One row of the catalogue: a method of the literature, and the parts of naysay that make it.

    Attributes:
        name: Its name; `also` has others. Two methods may share one of those ("RNS").
        question: where, which, distrust, how_many, minimise, together, or elsewhere for a name without parts.
        summary: What it does, in one sentence; `note` what is special about this name.
        paper: Where it was published; `cited` adds "(not checked)" if it is `unchecked`.
        parts: The expression that makes it. Its names are those of the package, or of `naysay.catalog.world`.
        leaves_out: What the paper has and the parts do not; empty if nothing is known to be missing.
        like: The row that has most of its fields.
        query, k: With what a sampler is asked, and for how many.
        before, after: Statements between making and use, and after it.
        loss, batch_loss: The loss of its source, over scores, or over the vectors of a batch.
        over: Of a loss, "slots", "vectors" or "step"; of a number, "estimate" or "schedule".
        example: A script in the repository that trains with it.
        see: For a name without parts, what to use.
        data, needs, step: What it was made for, what it needs beside known pairs, and what a step costs.

    Examples:
        >>> from naysay import catalog
        >>> catalog.find("LightGCN")[0].parts
        'Static(Everything(positives, distinct=False))'
    """

    name: str
    question: str
    paper: str
    summary: str
    also: tuple[str, ...] = ()
    like: str = ""
    note: str = ""
    formula: str = ""
    cost: str = ""
    unchecked: bool = False
    parts: str = ""
    query: str = "query"
    k: str = "4"
    before: str = ""
    after: str = ""
    loss: str = ""
    batch_loss: str = ""
    over: str = ""
    needs_log_q: bool = False
    without: tuple[str, ...] = ()
    leaves_out: str = ""
    example: str = ""
    see: str = ""
    data: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    step: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All its names."""
        return (self.name, *self.also)

    @property
    def cited(self) -> str:
        """The paper, and that it was not checked if so."""
        return f"{self.paper} (not checked)" if self.unchecked else self.paper

    @property
    def program(self) -> str:
        """The parts as code that runs as it is: imports, parts, and their use; empty without parts."""
        if not self.parts:
            return ""
        body = _body(self)
        return f"{_imports(body)}\n\n{body}\n"


def _body(method: Method) -> str:
    """The program without its imports."""
    match method.question:
        case "distrust":
            judged = f"{method.query}, {_JUDGED[method.query]}"
            lines = [f"detector = {method.parts}", method.before, f"suspicion = detector.suspicion({judged})"]
        case "together":
            lines = [f"plan = {method.parts}", method.before, "batches = plan.plan(epoch=1, rng=rng_for(seed=0))"]
        case "minimise":
            lines = _loss_lines(method)
        case "how_many" if method.over == "estimate":
            lines = [f"estimate_of_k = {method.parts}", "k = estimate_of_k.k"]
        case "how_many" if method.over == "schedule":
            lines = [f"schedule = {method.parts}", "k = schedule.k_at(0)"]
        case _:
            lines = _sampler_lines(method)
    return "\n".join(line.strip("\n") for line in lines if line)


def _loss_lines(method: Method) -> list[str]:
    if method.over == "step":
        return [f"value = {method.parts}"]
    if method.over == "slots":
        log_q = ", log_q=log_q" if method.needs_log_q else ""
        use = f"values = loss(positive, scores{log_q})  # (64,), one for each row"
        return [f"loss = {method.parts}", use, "values.mean().backward()"]
    return [f"values = {method.parts}", "values.mean().backward()"]


def _sampler_lines(method: Method) -> list[str]:
    draw = f"negatives = sampler.sample({method.query}, {method.k}, rng=rng_for(seed=0))"
    lines = [f"sampler = {method.parts}", method.before, draw, method.after]
    if method.loss:
        lines += [f"positive, scores = model({method.query}, negatives)", f"loss = {method.loss}"]
    if method.batch_loss:
        lines += [f"loss = {method.batch_loss}"]
    if method.loss or method.batch_loss:
        lines += ["loss.mean().backward()"]
    return lines


def _imports(body: str) -> str:
    """The import statements for all names that the program uses and does not make."""
    names = _free_names(body)
    homes: dict[str, set[str]] = {}
    for name in names - _WHOLE.keys():
        homes.setdefault(_home(name), set()).add(name)
    whole = [statement for name, statement in _WHOLE.items() if name in names]
    single = [f"from {home} import {', '.join(sorted(homes[home]))}" for home in sorted(homes) if "world" not in home]
    world = [f"from {home} import {', '.join(sorted(homes[home]))}" for home in sorted(homes) if "world" in home]
    if world:
        world.insert(0, "# Small data to try it with; put your own in their place:")
    return "\n".join([*whole, *single, *world])


def _free_names(body: str) -> set[str]:
    """Names that are used and nowhere set; arguments of lambdas and variables of loops are set."""
    used: set[str] = set()
    made: set[str] = set()
    for node in ast.walk(ast.parse(body)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else made).add(node.id)
        elif isinstance(node, ast.arg):
            made.add(node.arg)
    return used - made - set(dir(builtins))


def _home(name: str) -> str:
    """The module that a name is imported from."""
    if name in _SINGLE:
        return _SINGLE[name]
    for module in ("world", "torch_world"):
        if name in _assigned(module):
            return f"naysay.catalog.{module}"
    return next(f"naysay.{folder}" for folder in _FOLDERS if name in _public(folder))


@cache
def _public(folder: str) -> frozenset[str]:
    """The names in `__all__` of a folder of the package and of its files, from their text."""
    names: set[str] = set()
    for path in (_PACKAGE / folder).glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names |= set(ast.literal_eval(node.value))
    return frozenset(names)


@cache
def _assigned(module: str) -> frozenset[str]:
    """The names that a module of this folder makes at its top level."""
    tree = ast.parse((Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.With):
            targets = (part for part in ast.walk(node) if isinstance(part, ast.Name))
            names |= {part.id for part in targets if isinstance(part.ctx, ast.Store)}
    return frozenset(name for name in names if not name.startswith("_"))
