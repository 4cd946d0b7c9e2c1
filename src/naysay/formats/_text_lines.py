"""Lines of text files, plain or compressed, and JSON lines. Errors name the line.

Bytes that are not UTF-8 become lone surrogates (PEP 383), so that no text is lost or changed.
"""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from naysay.checks import raise_invalid, shown
from naysay.files import raise_unreadable

_BYTES = 1 << 22  # bytes of lines that are read at a time
_MARK = b"\xef\xbb\xbf"  # a byte order mark, which some editors put before the first line


@contextmanager
def opened(path: Path, parameter: str = "path") -> Iterator[BinaryIO]:
    """Open a file as bytes, through .gz or .xz; raise if it is missing or damaged."""
    ways: dict[str, Any] = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile}
    try:
        stream: BinaryIO = ways.get(path.suffix, open)(path, "rb")
    except FileNotFoundError:
        raise_invalid(parameter, "an existing file", repr(str(path)))
    except OSError as error:
        raise_invalid(parameter, "a file that can be read", f"{shown(str(path))} ({error.strerror})")
    with stream:
        try:
            yield stream
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            raise_unreadable(parameter, "a whole file", path, error)


def line_blocks(path: Path, parameter: str = "path") -> Iterator[tuple[list[int], list[bytes]]]:
    """Yield blocks of (numbers, lines), counted from 1, without blank lines."""
    count = 0
    with opened(path, parameter) as stream:
        while lines := stream.readlines(_BYTES):
            if count == 0:
                lines[0] = lines[0].removeprefix(_MARK)
            kept = [(number, line) for number, line in enumerate(lines, count + 1) if not line.isspace()]
            count += len(lines)
            if kept:
                numbers, texts = zip(*kept, strict=True)
                yield list(numbers), list(texts)


def json_blocks(path: Path, parameter: str = "path") -> Iterator[tuple[list[int], list[Any]]]:
    """Yield blocks of (numbers, values), one JSON value per line."""
    for numbers, lines in line_blocks(path, parameter):
        texts = [decoded(line) for line in lines]
        try:
            yield numbers, list(map(json.loads, texts))
        except ValueError:
            _raise_first(parameter, path, numbers, texts)


def _raise_first(parameter: str, path: Path, numbers: list[int], texts: list[str]) -> None:
    """Raise for the first line that is not JSON."""
    for number, text in zip(numbers, texts, strict=True):
        try:
            json.loads(text)
        except ValueError as error:
            what = getattr(error, "msg", str(error))
            where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
            raise_invalid(
                parameter, "a file of one JSON value a line", f"{what}{where} in line {number} of {path.name}"
            )


def decoded(line: bytes) -> str:
    """Return the text of a line, without losing bytes."""
    return line.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return the bytes that `decoded` was given."""
    return text.encode("utf-8", "surrogateescape")
