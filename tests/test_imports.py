"""What loads what: `import naysay` is light, dependencies point one way, and everything public is documented.

A folder may import the folders that LAYERS lists before it, and its own files.
"""

import ast
import dataclasses
import enum
import importlib
import inspect
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import naysay
from naysay import checks

SOURCE = Path(naysay.__file__).parent
FOLDERS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
LAYERS = [
    "errors",
    "_lock",
    "_packages",
    "text",
    "files",
    "places",
    "_console",
    "_intervals",
    "_options",
    "_commands",
    "arrays",
    "checks",
    "plots",
    "types",
    "_state",
    "_processes",
    "_slots",
    "rng",
    "kernels",
    "_rows",
    "vocabulary",
    "tables",
    "_interactions",
    "positives",
    "triples",
    "search",
    "pools",
    "quantity",
    "batches",
    "data",
    "encode",
    "detectors",
    "samplers",
    "losses",
    "distributed",
    "difficulty",
    "report",
    "formats",
    "mining",
    "jobs",
    "audits",
    "testing",
    "catalog",
    "lab",
    "demo",
    "integrations",  # which nothing imports
    "naysay",  # the package itself, which names all of the above
    "cli",
    "__main__",
]
# The only parts that may name a heavy package; NumPy and torch are crossed between in one place.
HEAVY = {
    "torch": {"arrays", "losses", "catalog", "lab", "demo", "integrations"},
    "numba": {"kernels"},
    "llvmlite": set(),
    "pyarrow": {
        *("places", "vocabulary", "tables", "detectors", "search", "encode", "formats", "mining", "jobs", "audits"),
        "integrations",
    },
    "scipy": {
        "_intervals",
        "pools",
        "samplers",
        "testing",
        "quantity",
        "detectors",
        "difficulty",
        "mining",
        "audits",
        "lab",
        "demo",
    },
    "faiss": set(),  # `_packages.need_faiss` imports it by name
    "rich": {"_console", "encode", "catalog", "demo", "quantity", "detectors", "jobs", "audits", "lab"},
    "typer": {"cli"},
    "jinja2": {"report"},
}


@cache
def trees():
    """{dotted name: syntax tree} of all source files."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ("naysay", *path.relative_to(SOURCE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    return found


def imported(tree):
    """The dotted names that a module imports; a name that is a module counts as that module, not as its package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0  # relative imports hide what they name
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in trees() else node.module


@cache
def all_imported():
    """{dotted name: what it imports} of all source files."""
    return {name: [*imported(tree)] for name, tree in trees().items()}


def planted(name, line):
    """What all modules import, with a line at the end of one of them."""
    return all_imported() | {name: [*all_imported()[name], *imported(ast.parse(line))]}


def layer(name):
    """The layer of a module: the first name below naysay, or naysay itself."""
    return [*name.split("."), "naysay"][1]


def upward(name, target):
    """Whether an import points to a higher layer."""
    return LAYERS.index(layer(target)) > LAYERS.index(layer(name))


def wrong_imports(imports):
    """Imports of a higher layer, or of a heavy package in the wrong layer."""
    wrong = []
    for name, targets in imports.items():
        if name == "naysay":
            continue
        for target in targets:
            root = target.split(".")[0]
            if root == "naysay" and upward(name, target):
                wrong.append((name, target))
            if root in HEAVY and layer(name) not in HEAVY[root]:
                wrong.append((name, target))
    return wrong


def in_order(imports):
    """The modules so that each stands after all it imports, or a CycleError."""
    graph = {name: imports.keys() & targets for name, targets in imports.items() if name != "naysay"}
    return list(TopologicalSorter(graph).static_order())


def undocumented(trees):
    """Public modules, classes and functions without a docstring."""
    missing = []

    def look(node, name):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
        if isinstance(node, kinds) and not ast.get_docstring(node):
            missing.append(name)
        if isinstance(node, ast.Module | ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, kinds) and not inner.name.startswith("_"):
                    look(inner, f"{name}.{inner.name}")

    for name, tree in trees.items():
        look(tree, name)
    return missing


# ---- a light import -------------------------------------------------------------------------------------

# One process, in which less and less is left to be loaded. faiss is as if it were not installed.
PROGRAM = """
import sys
sys.modules["faiss"] = None
HEAVY = {heavy}


def loaded(*names):
    modules = {{name for name, module in sys.modules.items() if module is not None}}
    return sorted({{name.split(".")[0] for name in modules}} & HEAVY | {{*names}} & modules)


import naysay as ns
dir(ns)
assert loaded() == [], loaded()
ns.Query([0]), ns.Negatives, ns.rng_for(0), ns.NaysayError, ns.__version__
assert loaded() == [], loaded()

import numpy as np
rng = np.random.default_rng(1)
centres = rng.normal(size=(400, 1, 32))
own = (centres + 0.6 * rng.normal(size=(400, 3, 32))).reshape(-1, 32)
corpus = np.concatenate([own, rng.normal(size=(2000, 32))])
queries = centres[:, 0] + 0.3 * rng.normal(size=(400, 32))
found = ns.mine(queries, corpus, 3 * np.arange(400) + rng.integers(0, 3, 400), 10)
assert type(found.judge).__name__ == "Posterior"
needless = ("naysay.formats", "naysay.quantity", "naysay.report")
assert not {{"torch", *needless}} & {{*loaded(*needless)}}, loaded(*needless)

known = ns.Positives.from_pairs([0, 1], [1, 0], n_items=9)
pool = ns.pools.Everything(known)
for sampler in (ns.samplers.Static(pool), ns.samplers.Mixed({{"all": ns.samplers.Static(pool)}}, (1,))):
    assert sampler.sample(ns.Query([0, 1]), 2.5, rng=ns.rng_for(0)).numpy().mask.any()
known.with_ignored([0], [2]).union(known).contains([0], [1])
assert "torch" not in loaded() and "numba" in loaded(), loaded()

try:
    ns.detectors.Incremental(90, (3,)).update(corpus[:90], progress=0.5)
except ImportError as error:
    assert "faiss-cpu is not installed" in str(error) and "pip install '.[faiss]'" in str(error)
else:
    raise AssertionError("k-means without faiss")

from naysay.report import Contents
from naysay.report.html import as_html
assert "jinja2" not in loaded()
as_html(Contents("t", ("do",)))
assert "jinja2" in loaded()
"""


def test_nothing_heavy_is_loaded_before_it_is_needed():
    """A light import; types without numba; draws and mining without torch; only k-means and an index need faiss."""
    program = PROGRAM.format(heavy=set(HEAVY))
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr


# ---- the layers -----------------------------------------------------------------------------------------


def test_every_module_is_in_one_layer():
    assert {layer(name) for name in trees()} == set(LAYERS)
    assert len(LAYERS) == len(set(LAYERS))


def test_folders_are_two_deep():
    depths = {len(path.relative_to(SOURCE).parts) for path in SOURCE.rglob("*.py")}
    assert depths == {1, 2}


def test_dependencies_point_one_way():
    assert wrong_imports(all_imported()) == []


def test_no_module_needs_itself():
    assert set(in_order(all_imported())) == set(trees())


@pytest.mark.parametrize(
    ("where", "line", "target"),
    [
        ("checks.py", "from naysay.types import Query", "naysay.types"),
        ("pools/everything.py", "def late():\n    from naysay.samplers.static import Static", "naysay.samplers.static"),
        ("_rows.py", "if TYPE_CHECKING:\n    from naysay.positives import Positives", "naysay.positives"),
        ("samplers/static.py", "import naysay as ns", "naysay"),
        ("pools/local.py", "def late():\n    import pyarrow", "pyarrow"),
    ],
)
def test_a_planted_wrong_import_is_found(where, line, target):
    name = "naysay." + where.removesuffix(".py").replace("/", ".")
    assert wrong_imports(planted(name, line)) == [(name, target)]


def test_a_planted_cycle_is_found():
    imports = planted("naysay.kernels.random", "from naysay.kernels.uniform import TRIES")
    assert wrong_imports(imports) == []  # within its folder, so the layers cannot see it
    with pytest.raises(CycleError):
        in_order(imports)


# ---- names and docstrings -------------------------------------------------------------------------------


def test_everything_public_has_a_docstring():
    assert undocumented(trees()) == []


@pytest.mark.parametrize("name", naysay.__all__)
def test_every_public_name_resolves(name):
    value = getattr(naysay, name)
    assert value.__doc__
    assert name in dir(naysay)
    assert getattr(naysay, name) is value


def test_public_names_are_named_once_and_known_to_type_checkers():
    assert len(naysay.__all__) == len(set(naysay.__all__))
    assert dir(naysay) == sorted([*naysay.__all__, "__version__"])
    tree = trees()["naysay"]
    typed = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(naysay.__all__) <= typed


@pytest.mark.parametrize("folder", ["naysay", *(f"naysay.{name}" for name in FOLDERS)])
def test_what_a_folder_exports_is_there(folder):
    module = importlib.import_module(folder)
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        assert value.__doc__ or not callable(value)


# ---- errors are named at the public boundary ------------------------------------------------------------


def without_boundary(module):
    """The functions and classes that a module exports without `checks.public`."""
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if (inspect.isfunction(value) or inspect.isclass(value)) and not checks.is_public(value) and not exempt(value):
            yield name


def exempt(value):
    """Exceptions, protocols, and classes of plain results, which check nothing."""
    if not inspect.isclass(value):
        return False
    if issubclass(value, Exception | enum.Enum) or getattr(value, "_is_protocol", False):
        return True
    plain = issubclass(value, tuple | dict) or dataclasses.is_dataclass(value)
    return plain and not re.search(r"\b(raise_invalid|check_\w+)\(", inspect.getsource(value))


@pytest.mark.parametrize("folder", ["naysay", *(f"naysay.{name}" for name in FOLDERS)])
def test_everything_that_a_folder_exports_names_itself_in_errors(folder):
    assert list(without_boundary(importlib.import_module(folder))) == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'naysay' has no attribute 'Postives'$"):
        naysay.Postives  # noqa: B018
    assert not hasattr(naysay, "_nothing")
    with pytest.raises(ImportError, match="cannot import name 'Postives'"):
        from naysay import Postives  # noqa: F401
