"""Lines of text files, plain or compressed, and JSON among them; what is wrong is told with its line.

Bytes that are not UTF-8 become lone surrogates (PEP 383), so that no text is lost or changed on its way through.
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

_BLOCK = 1 << 22  # bytes of lines that are read at a time
_MARK = b"\xef\xbb\xbf"  # a byte order mark, which some editors put before the first line


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file as bytes, through .gz or .xz; a missing or damaged one is refused."""
    ways: dict[str, Any] = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile}
    try:
        stream: BinaryIO = ways.get(path.suffix, open)(path, "rb")
    except FileNotFoundError:
        raise_invalid("path", "an existing file", repr(str(path)))
    except OSError as error:
        raise_invalid("path", "a file that can be read", f"{shown(str(path))} ({error.strerror})")
    with stream:
        try:
            yield stream
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            raise_invalid("path", "a whole file", f"{shown(str(path))} ({str(error).splitlines()[0]})")


def line_blocks(path: Path) -> Iterator[tuple[list[int], list[bytes]]]:
    """Blocks of (numbers, lines), counted from 1; lines of white space alone are left out."""
    count = 0
    with opened(path) as stream:
        while lines := stream.readlines(_BLOCK):
            if count == 0:
                lines[0] = lines[0].removeprefix(_MARK)
            kept = [(number, line) for number, line in enumerate(lines, count + 1) if not line.isspace()]
            count += len(lines)
            if kept:
                numbers, texts = zip(*kept, strict=True)
                yield list(numbers), list(texts)


def json_blocks(path: Path) -> Iterator[tuple[list[int], list[Any]]]:
    """Blocks of (numbers, values), one JSON value a line."""
    for numbers, lines in line_blocks(path):
        texts = [decoded(line) for line in lines]
        try:
            yield numbers, list(map(json.loads, texts))
        except ValueError:
            _refuse_first(path, numbers, texts)


def _refuse_first(path: Path, numbers: list[int], texts: list[str]) -> None:
    """Find the line that is no JSON, and say what is wrong with it."""
    for number, text in zip(numbers, texts, strict=True):
        try:
            json.loads(text)
        except ValueError as error:
            what = getattr(error, "msg", str(error))
            where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
            raise_invalid("path", "a file of one JSON value a line", f"{what}{where} in line {number} of {path.name}")


def decoded(line: bytes) -> str:
    """The text of a line, nothing lost."""
    return line.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """The bytes that `decoded` gave."""
    return text.encode("utf-8", "surrogateescape")
