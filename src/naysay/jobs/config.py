"""The config file of `naysay mine`: `naysay mine job.toml`, `--print-config`, and the record of a job.

All three are the same text: a line for each option, in the words of the command line.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from naysay._options import command_fields
from naysay.checks import raise_invalid, shown, shown_names
from naysay.jobs.options import JobOptions
from naysay.mining.options import MiningOptions
from naysay.places import Place, Url, read_place

SUFFIX = ".toml"
MADE = "made"  # the table of versions and checksums, which is not read
_HEAD = """\
# All options of `naysay mine`. Run them by: naysay mine FILE.toml
# Options on the command line go first. A line that begins with # is not set. Paths are relative to the working folder.
"""
_HINTS = get_type_hints(JobOptions) | get_type_hints(MiningOptions)
_DECLARED = {one.name: one for one in command_fields(JobOptions, MiningOptions)}


def read_config(path: Path) -> dict[str, Any]:
    """{option: value} of a config file, with underscores. Raises if the file or the name of an option is invalid."""
    parameter = "pairs"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise_invalid(parameter, "a config file in TOML", f"{str(path)!r} ({error})")
    except OSError as error:
        raise_invalid(parameter, "a config file that can be read", f"{str(path)!r} ({error.strerror})")
    values.pop(MADE, None)
    settings = {name.replace("-", "_"): value for name, value in values.items()}
    for name, value in settings.items():
        if name not in _DECLARED:
            near = difflib.get_close_matches(name, _DECLARED, n=1)
            advice = f"Did you mean {near[0]!r}?" if near else "`naysay mine --print-config` lists them."
            raise_invalid(parameter, "a config file of options of `naysay mine`", shown(name), advice)
        if isinstance(value, Mapping):
            rule = f"a config file in which `{name}` is a number, a text or a list"
            raise_invalid(parameter, rule, f"a table of {shown_names(list(value))}")
    return settings


def config_text(values: Mapping[str, Any], made: Mapping[str, Any] | None = None) -> str:
    """The text of a config file with every option.

    Args:
        values: {option: value}, as text or as a value; options that are missing or None are not set.
        made: {name: value} of what else to write down, such as versions and checksums.
    """
    blocks = [_HEAD]
    for name, declared in _DECLARED.items():
        value = values.get(name)
        if name == "judge" and name in values and value is None:
            value = "none"
        if isinstance(value, str) and _HINTS[name] in (Place, Place | None):
            value = read_place(name, value)  # a URL is written without its password
        if declared.metadata["read"] and isinstance(value, str) and value.isdecimal():
            value = int(value)
        setting = f"# {name} =" if value is None else f"{name} = {_toml(value)}"
        blocks.append(f"# {declared.metadata['help']}\n{setting}\n")
    if made:
        lines = [f"{_toml(name)} = {_toml(value)}\n" for name, value in made.items()]
        blocks.append(f"[{MADE}]  # what was read and written, with SHA-256; not read again\n{''.join(lines)}")
    return "\n".join(blocks)


def options_used(*options: Any) -> dict[str, Any]:
    """{option: value} of instances of the dataclasses that declare options."""
    return {declared.name: getattr(each, declared.name) for each in options for declared in command_fields(each)}


def _toml(value: Any) -> str:
    """One value in TOML; ranks and quotas as the command line spells them."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case tuple() if len(value) == 2:
            first, last = value
            return _toml(f"{first}-{'' if last is None else last}")
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case Mapping():
            return _toml(",".join(f"{name}={count}" for name, count in value.items()))
        case str() | Path() | Url():
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case _:  # an object that only Python can pass, such as an encoder
            return _toml(f"<{type(value).__name__}>")
