"""Where files are: on this machine, or, by a URL, in a store. What is read in a store is copied to this machine first.

A copy is checked: it has the size that the store reports, and the store reports the same file before and after. What is
written to a store is whole before it is uploaded.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from naysay import files
from naysay._stores import MAGIC, Copy, check_url, fetch, find, is_shard, named_as, upload, url_is_there
from naysay._urls import Place, Url, read_place
from naysay.checks import raise_invalid


def as_place(parameter: str, given: object) -> Place:
    """Return what users pass as a path or a URL; raise if it is neither."""
    if isinstance(given, Url):
        return given
    return read_place(parameter, given) if isinstance(given, str) else files.as_path(parameter, given)


# ---- several files that are one table --------------------------------------------------------------------------------


def shards(path: Path) -> list[Path]:
    """The files of a table, by name: those of a folder that end in .parquet, those that fit a glob, or the file."""
    if os.path.isdir(path):
        return sorted(path / name for name in os.listdir(path) if is_shard(name))
    if MAGIC.search(str(path)) and not os.path.lexists(path):
        return sorted(map(Path, glob.glob(str(path))))
    return [path]


def table_suffix(path: Path) -> str:
    """The ending that tells the kind of a table: .parquet for a folder that is no data set."""
    suffix = path.suffix.lower()
    return ".parquet" if suffix != ".hf" and os.path.isdir(path) else suffix


def check_table(parameter: str, path: Path, advice: str = "") -> None:
    """Raise unless `path` is a file that can be read, or a folder or glob of Parquet files."""
    files.check_source(parameter, path)
    found = shards(path)
    if not found:
        what = f"the folder {str(path)!r}, which has no .parquet files" if os.path.isdir(path) else repr(str(path))
        raise_invalid(parameter, "an existing file", what, advice)
    for file in found:
        files.check_file(parameter, file, advice)
    if found != [path] and not all(is_shard(file.name) for file in found):
        raise_invalid(parameter, "one file, or several that end in .parquet", repr(str(path)), advice)


def _reads(source: Path, target: Path) -> bool:
    """Whether a file that is written would be a part of a table that is read, now or the next time."""
    if os.path.isdir(source):
        return os.path.realpath(source) == os.path.realpath(target.parent) and is_shard(target.name)
    return fnmatch.fnmatch(os.path.realpath(target), os.path.realpath(source))


# ---- reading ---------------------------------------------------------------------------------------------------------


def temporary_copy(parameter: str, url: Url) -> tuple[Copy, Path]:
    """Copy what a URL names to a new temporary folder, which the caller removes; return both."""
    remote = find(parameter, url)
    folder = Path(tempfile.mkdtemp(prefix="naysay-"))
    try:
        return fetch(parameter, remote, folder), folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def local(parameter: str, given: Any) -> Iterator[Path]:
    """Give the path of a file on this machine: itself, or a temporary copy of what a URL names."""
    place = as_place(parameter, given)
    if isinstance(place, Path):
        yield place
        return
    copy, folder = temporary_copy(parameter, place)
    try:
        with named_as(copy.names):
            yield copy.path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- writing ---------------------------------------------------------------------------------------------------------


def check_target(parameter: str, place: Place) -> None:
    """Raise unless a file can be written there; permissions of a store show only when it is uploaded."""
    if isinstance(place, Url):
        check_url(parameter, place)
    else:
        files.check_target(parameter, place)


def is_there(parameter: str, place: Place) -> bool:
    """Whether there is a file or a folder."""
    return url_is_there(parameter, place) if isinstance(place, Url) else place.exists()


def check_page(parameter: str, place: Place) -> None:
    """Raise unless an HTML file can be written there."""
    check_target(parameter, place)
    if place.suffix.lower() not in (".html", ".htm"):
        raise_invalid(parameter, "a file that ends in .html", repr(str(place)))


def check_apart(written: Mapping[str, Place | None], read: Mapping[str, Place | None]) -> None:
    """Raise if a file that is written is also read, or written twice, or if one that is read is a device or a pipe."""
    sources = {name: place for name, place in read.items() if place is not None}
    used = {}
    for name, source in sources.items():
        if isinstance(source, Path):
            files.check_source(name, source)
        used[_key(source)] = name
    for name, place in written.items():
        if place is None:
            continue
        other = used.setdefault(_key(place), name)
        tables = (one for one, source in sources.items() if isinstance(source, Path) and isinstance(place, Path)
                  and _reads(source, place))  # fmt: skip
        other = next(tables, other)
        if other != name:
            raise_invalid(name, f"another file than `{other}`", repr(str(place)))


def _key(place: Place) -> str:
    return str(place) if isinstance(place, Url) else os.path.realpath(place)


def write_whole(parameter: str, place: Place, data: bytes) -> None:
    """Write `data` to a file, which appears whole or not at all."""
    if isinstance(place, Path):
        files.write_whole(parameter, place, data)
        return
    with tempfile.TemporaryDirectory(prefix="naysay-") as folder:
        draft = Path(folder) / "draft"
        try:
            draft.write_bytes(data)
        except OSError as error:
            files.raise_unwritable(parameter, draft, error)
        upload(parameter, draft, place)
