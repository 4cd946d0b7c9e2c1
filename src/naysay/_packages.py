"""Optional packages: imported late, and old ones refused."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from naysay.errors import MissingExtraError


def need_package(name: str, least: str, *, module: str | None = None) -> Any:
    """Import a package; raise with the pip command if it is missing, or older than `least`.

    Args:
        name: The name that pip knows.
        least: The oldest version that will do, such as "6.2".
        module: What to import, if its name is not that of the package with underscores.
    """
    command = f"Run: pip install '{name}>={least}'"
    try:
        found: Any = importlib.import_module(module or name.replace("-", "_"))
    except ImportError as error:
        message = f"{name} is not installed. {command}"
        raise MissingExtraError(message) from error
    try:
        installed = version(name)
    except PackageNotFoundError:  # a copy on the path, which has no version to go by
        return found
    if _numbers(installed) < _numbers(least):
        message = f"{name} {installed} is too old. {command}"
        raise MissingExtraError(message)
    return found


def _numbers(text: str) -> list[int]:
    """6.2.0.dev1 is [6, 2]: the numbers that are compared."""
    return [int(part) for part in re.findall(r"\d+", text)[:2]]
