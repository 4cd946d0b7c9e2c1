"""Every benchmark script imports, and what it uses of the library exists: the long runs are not repeated here."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import naysay

FOLDER = Path(__file__).parent.parent / "benchmarks"
SCRIPTS = sorted(
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    for path in FOLDER.rglob("*.py")
    if path.parent.name != "peers" and path.stem != "__init__"  # workers of peers run in other environments
)


def chain(node):
    """["ns", "pools", "Everything"] of `ns.pools.Everything`, [] of anything else."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def value_of(names, module):
    """What a chain of names is, if it starts at `ns`, which is the library, or at a name that was imported from it."""
    if names[:1] == ["ns"]:
        value = naysay
    elif names and getattr(getattr(module, names[0], None), "__module__", "").startswith("naysay"):
        value = getattr(module, names[0])
    else:
        return None
    for name in names[1:]:
        value = getattr(value, name)
    return value


def check(tree, module):
    """Raise if a name of the library does not exist, or a call passes a parameter that it does not have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and chain(node)[:1] == ["ns"]:
            value_of(chain(node), module)
        if isinstance(node, ast.Call) and callable(called := value_of(chain(node.func), module)):
            parameters = inspect.signature(called).parameters
            if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):  # such as options of a chart
                continue
            unknown = {keyword.arg for keyword in node.keywords if keyword.arg} - set(parameters)
            if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
                unknown = set()
            assert not unknown, f"line {node.lineno}: {'.'.join(chain(node.func))} has no {unknown}"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_uses_names_and_parameters_that_exist(name):
    module = importlib.import_module(name)
    assert module.__doc__
    check(ast.parse(Path(module.__file__).read_text()), module)


def test_a_wrong_name_and_a_wrong_parameter_would_be_found():
    check(ast.parse("ns.pools.Everything(known, distinct=False)"), None)
    with pytest.raises(AttributeError, match="Nothing"):
        check(ast.parse("ns.pools.Nothing"), None)
    with pytest.raises(AssertionError, match="separate"):
        check(ast.parse("ns.pools.Everything(known, separate=True)"), None)


def test_there_are_no_edits_of_the_path():
    for path in FOLDER.rglob("*.py"):
        assert "sys.path" not in path.read_text(), path
