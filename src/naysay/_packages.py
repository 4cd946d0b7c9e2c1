"""Optional packages: imported late, and only in versions that fit."""

from __future__ import annotations

import importlib
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from naysay.errors import MissingExtraError, how_to_install


def need_package(name: str, least: str, *, below: str = "", module: str | None = None, extra: str = "") -> Any:
    """Import a package; raise with the pip command if it is missing, or its version does not fit.

    `name` is what pip knows, `module` what is imported if that differs, and `extra` the extra of naysay that has it.
    """
    command = how_to_install(extra) if extra else f"Run: pip install '{name}>={least}'"
    try:
        found: Any = importlib.import_module(module or name.replace("-", "_"))
    except ImportError as error:
        message = f"{name} is not installed. {command}"
        raise MissingExtraError(message) from error
    try:
        installed = version(name)
    except PackageNotFoundError:  # a copy on the path, which has no version to go by
        return found
    if below and not _numbers(least) <= _numbers(installed) < _numbers(below):
        message = f"{name} must be at least {least} and below {below}, got {installed}. {command}"
        raise MissingExtraError(message)
    if _numbers(installed) < _numbers(least):
        message = f"{name} {installed} is too old. {command}"
        raise MissingExtraError(message)
    return found


def need_datasets() -> Any:
    """Import the package `datasets`, which reads and writes data sets on disk."""
    return need_package("datasets", "4.0")


@cache
def need_faiss() -> Any:
    """Import faiss, which only the approximate index and k-means need."""
    return need_package("faiss-cpu", "1.9", module="faiss", extra="faiss")


def _numbers(version: str) -> list[int]:
    """The release of a version: [2, 8, 1] of '2.8.1+cpu'."""
    return [int(part) for part in re.split(r"[^\d.]", version)[0].split(".") if part]
