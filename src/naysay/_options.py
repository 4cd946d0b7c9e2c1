"""Options that are declared once, as fields of a dataclass: keyword, command line, help, record and names in errors.

The options of mining are in `naysay.mining.options`, those of a job in `naysay.jobs.options`, those of the other
commands in `naysay._commands`.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from typing import Any, TypeVar, get_type_hints

from naysay.places import Place, read_place

_Result = TypeVar("_Result")


def option(
    default: Any = MISSING,
    help: str = "",
    *,
    flags: tuple[str, ...] = (),
    read: Callable[[str, str], Any] | None = None,
    written: str | None = None,
    record: bool = True,
    parameters: tuple[str, ...] = (),
    check: Callable[[str, Any], object] | None = None,
) -> Any:
    """Declare an option as a field of a dataclass.

    Args:
        default: Its default. Without one, the option is required.
        help: Its help on the command line. An option without help is for Python only.
        flags: How the command line spells it, such as ("--output", "-o"). By default its name with dashes.
        read: read(flag, text) -> value, for options that are not a plain number, string, path or switch.
        written: The default as the command line shows it, where `read` is given.
        record: Whether the option decides the result of a job, and so belongs in its record.
        parameters: Parameters of other functions that stand for this option in errors.
        check: check(name, value) raises if a value is invalid: see `check_options`.
    """
    metadata = {
        "help": help,
        "flags": flags,
        "read": read,
        "written": written,
        "record": record,
        "parameters": parameters,
        "check": check,
    }
    return field(default=default, metadata=metadata)


def check_options(options: Any) -> None:
    """Run the check of each option whose value is not its default. Raises if a value is invalid."""
    for one in fields(options):
        value = getattr(options, one.name)
        if one.metadata["check"] is not None and value is not one.default:
            one.metadata["check"](one.name, value)


def flag_of(declared: Field[Any]) -> str:
    """Return the option on the command line that a field declares."""
    flags = declared.metadata["flags"]
    return str(flags[0]) if flags else f"--{declared.name.replace('_', '-')}"


def reader_of(declared: Field[Any], hint: Any) -> Callable[[str, str], Any] | None:
    """Return what reads the text of an option: its own function; of a path, one that keeps the text of a URL."""
    read: Callable[[str, str], Any] | None = declared.metadata["read"]
    return read_place if hint in (Place, Place | None) else read


def command_fields(*declarations: Any) -> Iterator[Field[Any]]:
    """The fields of dataclasses that are options of the command line."""
    return (declared for one in declarations for declared in fields(one) if declared.metadata["help"])


def option_names(*declarations: Any) -> dict[str, str]:
    """{parameter: option}, for `checks.with_option_names`."""
    declared = list(command_fields(*declarations))
    names = {one.name: flag_of(one) for one in declared}
    return names | {name: flag_of(one) for one in declared for name in one.metadata["parameters"]}


def from_command(declaration: type[_Result], given: Mapping[str, Any]) -> _Result:
    """Build options from what the command line was given, where text may stand for any value."""
    values, hints = {}, get_type_hints(declaration)
    for one in command_fields(declaration):
        if one.name in given:
            value, read = given[one.name], reader_of(one, hints[one.name])
            values[one.name] = read(flag_of(one), value) if read is not None and isinstance(value, str) else value
    return declaration(**values)


def check_keywords(function: str, given: Iterable[str], names: Sequence[str]) -> None:
    """Raise a TypeError for a keyword that a function does not have, with the nearest that it has."""
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            advice = f" Did you mean {near[0]!r}?" if near else ""
            message = f"{function}() got an unexpected keyword argument {name!r}.{advice}"
            raise TypeError(message)


def takes_options(declaration: type) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
    """Make a function whose last parameter is `options` take the fields of a dataclass as keywords.

    The signature and the docstring show every keyword. A misspelt one raises a TypeError that names the nearest.
    """
    hints, names = get_type_hints(declaration), [one.name for one in fields(declaration)]

    def decorate(function: Callable[..., _Result]) -> Callable[..., _Result]:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> _Result:
            rest = {one.name: keywords.pop(one.name) for one in own if one.name in keywords}
            check_keywords(function.__name__, keywords, names)
            return function(*args, **rest, options=declaration(**keywords))

        options = [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
            for one in fields(declaration)
        ]
        shown_signature = signature.replace(parameters=[*own, *options])
        call.__signature__ = shown_signature  # type: ignore[attr-defined]
        call.__doc__ = _with_arguments(function, declaration)
        return call

    return decorate


def _with_arguments(function: Callable[..., Any], declaration: type) -> str:
    """The docstring of a function, whose `Args:` go on with those of a dataclass."""
    arguments = (declaration.__doc__ or "").partition("Args:\n")[2].rstrip()
    head, _, tail = (function.__doc__ or "").partition("\n    Returns:")
    own = head.partition("\n        options:")[0]  # which stands for the arguments that follow
    return f"{own.rstrip()}\n{arguments}\n\n    Returns:{tail}"
