"""encode_texts: encode texts to a file of vectors, cached for the next run, and resumed after a kill."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_one_of, check_whole, public, raise_invalid, shown
from naysay.encode._inputs import Ids, distinct, text_array, texts_hash
from naysay.encode.model import settings_of, weights_hash
from naysay.files import FULL, checksummed_stream, disk_reason, find_checksummed, raise_unwritable, shown_path
from naysay.search._vector_files import npy

BLOCK = 2048  # texts that are encoded, and written, at a time: the most that a kill can lose
_FORMAT = 1
_OWN = re.compile(r"\.?(vectors-[0-9a-f]+|\d{12})\.[0-9a-f]+(\.npy)?")  # blocks, the joined file, and drafts of both


@public
def encode_texts(
    model: Any,
    texts: Any,
    *,
    folder: str | Path,
    batch_size: int = 32,
    prompt: str | None = None,
    prompt_name: str | None = None,
    side: str | None = None,
    processes: bool | list[str] = False,
    each: Callable[[Any, Iterable[list[str]]], Iterable[Any]] | None = None,
    cache: bool = True,
    show: bool = True,
) -> Path:
    """Encode texts and return the .npy file of their vectors, (n, d) float32, which `mine` and `search` read.

    Vectors are stored as the model returns them, not normalised.

    **The cache is keyed by contents**: weights (`weights_hash`), class, layers, settings, tokenizer and packages of the
    model, prompt, side, and all texts; not by batch size and device, which change the last bits of a vector at most. A
    model without weights needs a `cache_key`; without one a warning says that nothing is cached.

    Texts are written in blocks of 2,048, so a run that was killed continues where it was. Every file has a checksum of
    its bytes in its name, which is verified before reuse: damaged files are encoded again. The result appears whole or
    not at all. Memory: the texts, their rows, and a block of vectors.

    Args:
        model: Anything with encode(texts, batch_size=, convert_to_numpy=, show_progress_bar=) -> (n, d), such as a
            SentenceTransformer (`load_model`). prompt, prompt_name and pool are passed on if they are given.
        texts: A list, an array or an Arrow column of strings; each distinct text is encoded once.
        folder: The folder of the file, created if needed. A second run for the same texts and model at the same time
            raises an error.
        batch_size: Texts per batch of the model.
        prompt: Put before each text by the model.
        prompt_name: The name of one of the model's prompts.
        side: "query" or "document": use encode_query or encode_document of a model that has them.
        processes: True, or a list of devices: encode by the model's `start_multi_process_pool`.
        each: each(encode, blocks) -> the vectors of each block of texts, in order: by other processes, for example.
            None is `map`: one after another, here.
        cache: False encodes again whatever the folder holds; the file gets a name of its own.
        show: Whether to show progress on standard error: a bar on a terminal, else a line from time to time.

    Returns:
        The path of the file.

    Raises:
        NaysayError: If texts are not strings, the folder cannot be written, or the model returns something other than a
            finite vector for each text.

    Examples:
        >>> from tempfile import mkdtemp
        >>> from types import SimpleNamespace
        >>> def encode(texts, **options):
        ...     return np.array([[len(text), 1.0] for text in texts])
        >>> model = SimpleNamespace(encode=encode, cache_key="lengths, version 1")
        >>> np.load(encode_texts(model, ["a", "abc", "a"], folder=mkdtemp())).tolist()
        [[1.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
    """
    check_whole("batch_size", batch_size, 1)
    if side is not None:
        check_one_of("side", side, ("query", "document"))
    check_encoder(model)
    given = text_array("texts", texts)
    if len(given) == 0:
        raise_invalid("texts", "at least one text", "none")
    once, rows = distinct(given)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise_invalid("folder", "a folder that can be written", f"{shown_path(target)} ({disk_reason(error)})")
    weights = weights_hash(model) if cache else None
    key = None
    if weights is not None:
        parts = [_FORMAT, weights, settings_of(model), texts_hash(once, rows), prompt, prompt_name, side]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
    if cache and key is None:
        text = f"encode_texts: {type(model).__name__} has no weights and no cache_key, so its vectors are not cached."
        warnings.warn(text, stacklevel=3)  # past the decorator
    stem = f"vectors-{key or secrets.token_hex(8)}"
    found = partial(find_checksummed, target, stem, ".npy")
    cached = found() if key else None
    if cached is not None:
        return cached
    options: dict[str, Any] = {"prompt": prompt, "prompt_name": prompt_name}
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"batch_size": batch_size, "convert_to_numpy": True, "show_progress_bar": False}
    method = model.encode if side is None else getattr(model, f"encode_{side}", model.encode)
    with (
        _files(target, stem, kept=key is not None) as files,
        pool_of(model, processes) as pool,
        _bar(len(once), show=show) as advance,
    ):
        if key and (cached := found()) is not None:  # another run has just finished
            return cached
        blocks = _blocks(partial(each or map, partial(method, **options, **pool)), once, files, advance)
        return _assembled(blocks, len(once), rows, files)


def check_encoder(model: Any) -> None:
    """Raise unless `model` can encode texts; a name is not a model."""
    if isinstance(model, str | bytes | Path):
        raise_invalid("model", "a model, not its name", shown(model), "Pass load_model(name).")
    if not callable(getattr(model, "encode", None)):
        raise_invalid("model", "an object with a method encode(texts)", type(model).__name__)


@final
@dataclass(frozen=True, slots=True)
class _Files:
    """Where vectors are written."""

    target: Path  # the folder of the result
    stem: str  # the beginning of its name
    parts: Path  # the folder of blocks and drafts
    kept: bool  # whether another run may reuse them


@contextmanager
def _files(target: Path, stem: str, *, kept: bool) -> Iterator[_Files]:
    """Make a folder for blocks, removed at the end; after a failure it stays if another run can continue."""
    parts = target / f"{stem}.parts"
    parts.mkdir(exist_ok=True)
    handle = _locked(parts)
    try:
        yield _Files(target, stem, parts, kept)
        kept = False
    finally:
        if not kept:
            _clear(parts)
        if handle is not None:
            os.close(handle)


def _locked(parts: Path) -> int | None:
    """Make the folder of parts and lock it, so that no other run removes them; the lock ends with the process."""
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ImportError:  # Windows has none, nor can a folder be opened there
        return None
    while True:
        with suppress(FileNotFoundError):  # another run has just removed it
            handle = os.open(parts, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(handle), parts.stat()):
                    return handle
            except BlockingIOError:
                os.close(handle)
                got = f"{str(parts.parent)!r}, where another run is encoding these texts"
                raise_invalid("folder", "used by one run at a time", got, "Wait for it, and run again.")
            os.close(handle)
        parts.mkdir(exist_ok=True)


def _clear(parts: Path) -> None:
    """Remove the blocks and drafts of a folder, and the folder if nothing else is in it."""
    with suppress(OSError):
        for file in parts.iterdir():
            if _OWN.fullmatch(file.name):
                file.unlink()
        parts.rmdir()


def _blocks(encode: Any, texts: Any, files: _Files, advance: Any) -> Iterator[NDArray[np.float32]]:
    """Yield the vectors of each block of texts, read if they are cached and encoded if not."""
    width, starts = None, range(0, len(texts), BLOCK)
    kept = {start: find_checksummed(files.parts, f"{start:012d}", ".npy") if files.kept else None for start in starts}
    missing = iter(encode(texts.slice(start, BLOCK).to_pylist() for start in starts if kept[start] is None))
    for start in starts:
        there = kept[start]
        if there is not None:
            file = npy("folder", there)
            rows = file.read(0, file.n)
        else:
            rows = _checked(next(missing), texts.slice(start, BLOCK).to_pylist(), start, width)
            if files.kept:
                with _vector_file(files.parts, f"{start:012d}", rows.shape, files) as (stream, _):
                    stream.write(rows.astype("<f4", copy=False).tobytes())
        width = rows.shape[1]
        advance(len(rows))
        yield rows


def _checked(output: Any, block: list[str], start: int, width: int | None) -> NDArray[np.float32]:
    """Return (block, d) float32; raise unless there is a finite vector for each text."""
    array = as_array("model", to_numpy(output))
    rule = f"a model that returns ({len(block)}, {width or 'd'}) numbers for {len(block)} texts"
    if array.ndim != 2 or len(array) != len(block) or array.shape[1] != (width or max(1, array.shape[1])):
        raise_invalid("model", rule, f"shape {array.shape}")
    if array.dtype.kind not in "fiu":
        raise_invalid("model", rule, f"dtype {array.dtype}")
    rows = array.astype(np.float32, copy=False)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        got = f"NaN or infinity for {shown(block[bad[0]])}, distinct text {start + bad[0]}, and {len(bad) - 1} others"
        raise_invalid("model", "a model that returns finite numbers", got)
    return rows


def _assembled(blocks: Iterator[NDArray[np.float32]], n: int, rows: Ids, files: _Files) -> Path:
    """Join all blocks in one file; if texts repeat, write a second one with a row for each text."""
    first, repeats = next(blocks), len(rows) > n
    target, width = files.parts if repeats else files.target, first.shape[1]
    with _vector_file(target, files.stem, (n, width), files) as (stream, made):
        for block in chain([first], blocks):
            stream.write(block.tobytes())
    if not repeats:
        return made[0]
    source = npy("folder", made[0])
    with _vector_file(files.target, files.stem, (len(rows), width), files) as (stream, made):
        for start in range(0, len(rows), BLOCK):
            wanted, places = np.unique(rows[start : start + BLOCK], return_inverse=True)
            stream.write(source.take(wanted)[places].tobytes())
    return made[0]


@contextmanager
def _vector_file(
    folder: Path, stem: str, shape: tuple[int, ...], files: _Files
) -> Iterator[tuple[BinaryIO, list[Path]]]:
    """Open a stream for the rows of an .npy file of float32; the list gets its path once it is complete."""
    header: dict[str, Any] = {"descr": "<f4", "fortran_order": False, "shape": shape}
    try:
        with checksummed_stream(folder, stem, ".npy", drafts=files.parts, durable=files.kept) as (stream, made):
            np.lib.format.write_array_header_1_0(stream, header)
            yield stream, made
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise_unwritable("folder", folder / f"{stem}.npy", error)


@contextmanager
def pool_of(model: Any, processes: Any) -> Iterator[dict[str, Any]]:
    """Yield {"pool": the model's pool of processes}, or {}."""
    if not processes:
        yield {}
        return
    pool = model.start_multi_process_pool(target_devices=None if isinstance(processes, bool) else processes)
    try:
        yield {"pool": pool}
    finally:
        model.stop_multi_process_pool(pool)


@contextmanager
def _bar(total: int, *, show: bool) -> Iterator[Any]:
    """Yield a function that advances the progress bar."""
    from rich import progress as bars

    from naysay._console import SafeConsole, progress_on

    times = (bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
    columns = (bars.TextColumn("Encoding"), bars.BarColumn(), bars.MofNCompleteColumn(), *times)
    with progress_on(SafeConsole(stderr=True, quiet=not show), columns, transient=False) as progress:
        task = progress.add_task("encoding texts", total=total)
        yield lambda count: progress.advance(task, count)
