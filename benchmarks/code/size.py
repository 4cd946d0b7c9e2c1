"""How large the code is: lines, files, long files, long functions, long signatures.

python -m benchmarks.code.size [PATH] [--json]

PATH is a folder of Python files, src/naysay by default.
The body of a function starts after its signature and docstring. Compiled kernels, the folder `kernels/` and functions
that are decorated with `compiled` or `njit`, may have long bodies.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import ROOT

MAX_FILE, MAX_BODY, MAX_PARAMETERS = 300, 70, 8
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    """Every function and method of a file, nested ones included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Function):
            yield node


def body_lines(function: Function) -> int:
    """Lines of the body, without signature and docstring."""
    first = 1 if ast.get_docstring(function) is not None else 0
    statements = function.body[first:]
    return (function.end_lineno or 0) - statements[0].lineno + 1 if statements else 0


def n_parameters(function: Function) -> int:
    """Parameters, without `self` and `cls`."""
    arguments = function.args
    named = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    starred = sum(one is not None for one in (arguments.vararg, arguments.kwarg))
    return len(named) + starred - (bool(named) and named[0] in ("self", "cls"))


def is_kernel(path: Path, function: Function) -> bool:
    """Whether a function is compiled."""
    decorators = " ".join(ast.unparse(one) for one in function.decorator_list)
    return "kernels" in path.parts or "compiled" in decorators or "njit" in decorators


def measure(folder: Path) -> dict[str, Any]:
    """The sizes of one tree. Long things are listed, largest first, as [where, size]."""
    sources = [path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    long_bodies, long_signatures = [], []
    for path in sources:
        for function in functions(path):
            where = f"{path.relative_to(folder)}:{function.lineno} {function.name}"
            if not is_kernel(path.relative_to(folder), function):
                long_bodies.append((where, body_lines(function)))
                long_signatures.append((where, n_parameters(function)))
    return {
        "lines": sum(lengths[path] for path in sources),
        "files": len(sources),
        "median_lines": median(lengths[path] for path in sources) if sources else 0,
        f"files_over_{MAX_FILE}_lines": above([(str(p.relative_to(folder)), lengths[p]) for p in sources], MAX_FILE),
        f"bodies_over_{MAX_BODY}_lines": above(long_bodies, MAX_BODY),
        f"functions_over_{MAX_PARAMETERS}_parameters": above(long_signatures, MAX_PARAMETERS),
    }


def above(sizes: list[tuple[str, int]], limit: int) -> list[tuple[str, int]]:
    """Those above the limit, largest first."""
    return sorted((one for one in sizes if one[1] > limit), key=lambda one: (-one[1], one[0]))


def main() -> None:
    """Print the sizes of a tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", default=ROOT / "src" / "naysay")
    parser.add_argument("--json", action="store_true", help="all of it as JSON")
    args = parser.parse_args()
    if not args.path.is_dir():
        parser.error(f"{args.path} is not a folder")
    sizes = measure(args.path)
    if args.json:
        print(json.dumps(sizes, indent=1))
        return
    for name, value in sizes.items():
        label = name.replace("_", " ")
        if not isinstance(value, list):
            print(f"{label}: {value:,}")
            continue
        print(f"{label}: {len(value)}")
        for where, size in value[:10]:
            print(f"    {size:>5}  {where}")


if __name__ == "__main__":
    main()
