"""encode_texts: encode texts to a file of vectors, cached for the next run, and resumed after a kill."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_one_of, check_whole, public, raise_invalid, shown
from naysay.encode._inputs import Ids, distinct, text_array, texts_hash
from naysay.encode.model import settings_of, weights_hash
from naysay.files import FULL, checksummed_stream, disk_reason, draft_of, find_checksummed, raise_unwritable, shown_path

BLOCK = 512  # texts that are encoded, and written, at a time: the most that a kill can lose
_FORMAT = 2
_OWN = re.compile(r"part-\d+\.npz|\..+\.[0-9a-f]{16}")  # parts, and drafts of them and of the result
_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)  # what a damaged part raises


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

    The cache is keyed by contents: weights (`weights_hash`), layers, settings, tokenizer and packages of the model,
    prompt, side, and all texts. A model without weights needs a `cache_key`. Texts are written in blocks of 512, so a
    run that was killed continues where it was. Files have checksums: what is damaged is encoded again.

    Args:
        model: Anything with encode(texts, batch_size=, convert_to_numpy=, show_progress_bar=) -> (n, d), such as a
            SentenceTransformer (`load_model`). prompt, prompt_name and pool are passed on if they are given.
        texts: A list, an array or an Arrow column of strings; each distinct text is encoded once.
        folder: The folder of the file, created if needed; for one run of the same texts and model at a time.
        batch_size: Texts per batch of the model.
        prompt: Put before each text by the model.
        prompt_name: The name of one of the model's prompts.
        side: "query" or "document": use encode_query or encode_document of a model that has them.
        processes: True, or a list of devices: encode by the model's `start_multi_process_pool`.
        each: each(encode, blocks) -> the vectors of each block of texts, in order; `map` by default.
        cache: False encodes again whatever the folder holds; the file gets a name of its own.
        show: Whether to show progress on standard error.

    Returns:
        The path of the file.

    Raises:
        NaysayError: If the model returns something other than a finite vector for each text.

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
    distinct_texts, numbers = distinct(given)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise_invalid("folder", "a folder that can be written", f"{shown_path(target)} ({disk_reason(error)})")
    key = _key(model, texts_hash(distinct_texts, numbers), prompt, prompt_name, side) if cache else None
    if cache and key is None:
        text = f"encode_texts: {type(model).__name__} has no weights and no cache_key, so its vectors are not cached."
        warnings.warn(text, stacklevel=3)  # past the decorator
    stem = f"vectors-{key or secrets.token_hex(8)}"
    if (cached := find_checksummed(target, stem, ".npy")) is not None:
        return cached
    options: dict[str, Any] = {"prompt": prompt, "prompt_name": prompt_name}
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"batch_size": batch_size, "convert_to_numpy": True, "show_progress_bar": False}
    method = model.encode if side is None else getattr(model, f"encode_{side}", model.encode)
    with _one_run(target, stem), _parts(target, stem, resumable=key is not None) as parts:
        if (cached := find_checksummed(target, stem, ".npy")) is not None:  # another run has just finished
            return cached
        with pool_of(model, processes) as pool, _bar(len(distinct_texts), show=show) as advance:
            encode = partial(each or map, partial(method, **options, **pool))
            blocks = _blocks(encode, distinct_texts, parts, advance, save=key is not None)
            return _written(blocks, numbers, target, stem, parts)


def _key(model: Any, texts: str, prompt: str | None, prompt_name: str | None, side: str | None) -> str | None:
    """A hash of all that the vectors depend on; None for a model without weights and without a `cache_key`."""
    weights = weights_hash(model)
    if weights is None:
        return None
    depends_on = [_FORMAT, weights, settings_of(model), texts, prompt, prompt_name, side]
    return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()[:32]


def check_encoder(model: Any) -> None:
    """Raise unless `model` can encode texts; a name is not a model."""
    if isinstance(model, str | bytes | Path):
        raise_invalid("model", "a model, not its name", shown(model), "Pass load_model(name).")
    if not callable(getattr(model, "encode", None)):
        raise_invalid("model", "an object with a method encode(texts)", type(model).__name__)


@contextmanager
def _one_run(target: Path, stem: str) -> Iterator[None]:
    """Raise if another run is encoding the same; the lock ends with the process."""
    lock = FileLock(target / f"{stem}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        got = f"{str(target)!r}, where another run is encoding these texts"
        raise_invalid("folder", "used by one run at a time", got, "Wait for it, and run again.")
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps a file that is open
            Path(lock.lock_file).unlink()
        lock.release()


@contextmanager
def _parts(target: Path, stem: str, *, resumable: bool) -> Iterator[Path]:
    """Make a folder for parts, removed at the end; after a failure it stays if another run can continue."""
    parts = target / f"{stem}.parts"
    parts.mkdir(exist_ok=True)
    try:
        yield parts
        resumable = False
    finally:
        if not resumable:
            with suppress(OSError):  # the folder holds other files
                for file in parts.iterdir():
                    if _OWN.fullmatch(file.name):
                        file.unlink()
                parts.rmdir()


def _blocks(encode: Any, texts: Any, parts: Path, advance: Any, *, save: bool) -> Iterator[NDArray[np.float32]]:
    """Yield the vectors of each block of texts, read if they were saved and encoded if not."""
    starts = range(0, len(texts), BLOCK)
    files = {start: parts / f"part-{start:012d}.npz" for start in starts}
    missing = [start for start in starts if _read_part(files[start]) is None]
    encoded = iter(encode(texts.slice(start, BLOCK).to_pylist() for start in missing))
    width = None
    for start in starts:
        if start in missing:
            rows = _checked(next(encoded), texts.slice(start, BLOCK).to_pylist(), start, width)
            if save:
                with _disk_errors(files[start]), draft_of(files[start]) as draft, draft.open("wb") as stream:
                    np.savez(stream, vectors=rows)
        else:
            rows = _read_part(files[start])
        width = rows.shape[1]
        advance(len(rows))
        yield rows


def _read_part(file: Path) -> Any:
    """The vectors of a part, None if it is not there or damaged: a zip file has checksums."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as saved:
            return saved["vectors"]
    except _DAMAGED:
        return None


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


def _written(blocks: Iterator[NDArray[np.float32]], numbers: Ids, target: Path, stem: str, parts: Path) -> Path:
    """Write a row for each text to an .npy file; numbers[i] is that of text i among the distinct ones."""
    by_text = np.argsort(numbers, kind="stable")
    ordered = numbers[by_text]
    start, header_end = 0, 0
    with (
        _disk_errors(target / f"{stem}.npy"),
        checksummed_stream(target, stem, ".npy", drafts=parts) as (stream, made),
    ):
        for block in blocks:
            if start == 0:
                shape = len(numbers), block.shape[1]
                header: dict[str, Any] = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, header)
                header_end = stream.tell()
            first, last = np.searchsorted(ordered, [start, start + len(block)])
            places = np.sort(by_text[first:last])  # of the texts of this block; texts that repeat come later again
            vectors = np.ascontiguousarray(block[numbers[places] - start], "<f4")
            run_edges = np.flatnonzero(np.diff(places, prepend=-2, append=len(numbers) + 1) != 1)
            for begin, end in pairwise(run_edges):
                stream.seek(header_end + int(places[begin]) * vectors[0].nbytes)
                stream.write(vectors[begin:end].tobytes())
            start += len(block)
    return made[0]


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Raise the error of a full disk as one of `folder`."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise_unwritable("folder", path, error)


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
