"""Files in stores that pyarrow or fsspec opens: found, copied to this machine with checks, and uploaded."""

from __future__ import annotations

import errno
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, final

from naysay._urls import Url
from naysay.checks import raise_invalid
from naysay.errors import MissingExtraError, NaysayError
from naysay.files import FULL, disk_reason
from naysay.text import first_line

_CHUNK = 1 << 23  # bytes that are copied at a time
_OWN = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")  # schemes that pyarrow opens by itself
_BUCKETS = ("s3", "gs", "gcs")  # those whose paths start with a bucket, which is never made here
# Schemes of stores in which an upload appears when it is complete. In others it has another name until then.
_COMPLETE = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "hf", "oss", "oci")
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub", "abfs": "adlfs",
             "abfss": "adlfs", "az": "adlfs", "sftp": "paramiko", "ssh": "paramiko", "http": "fsspec[http]",
             "https": "fsspec[http]", "oss": "ossfs", "oci": "ocifs", "webdav": "webdav4"}  # fmt: skip
_DENIED = re.compile(r"access.?denied|forbidden|unauthori[sz]ed|invalid.?access.?key|signature.?does|\b40[13]\b", re.I)
_MISSING = re.compile(r"no.?such.?(bucket|key|file)|not.?found|does not exist|\b404\b", re.I)
_READ, _WRITE = "a file that can be read", "a file that can be written"
_SILENCE, _TRIES = 8.0, 3  # seconds that a server may stay silent, and how often it is asked
_NO_ANSWER = 60.0  # seconds after which any store is given up that has not answered a question
_NO_BYTES = 300.0  # seconds after which a copy is given up of which no further part has come or gone
_HTTP, _NOT_FOUND = ("http", "https"), 404
MAGIC = re.compile(r"[*?\[]")
_Result = TypeVar("_Result")


def is_shard(name: str) -> bool:
    """Whether a file of a folder is a part of its table. What writers leave beside them starts with _ or a dot."""
    return name.lower().endswith(".parquet") and not name.startswith(("_", "."))


class _SilentError(TimeoutError):
    """A store that was given up, with the sentence."""


def _answer(work: Callable[[Callable[[], None]], _Result], silence: float) -> _Result:
    """work(on_part), in a thread; raise _SilentError if it neither ends nor calls `on_part` for so many seconds.

    Many stores have no limit of their own, and none is the same for all. The thread of a store that is given up ends
    with the process.
    """
    outcome: list[_Result] = []
    errors: list[BaseException] = []
    ended, last = threading.Event(), [time.monotonic()]

    def on_part() -> None:
        last[0] = time.monotonic()

    def run() -> None:
        try:
            outcome.append(work(on_part))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=run, name="naysay-store", daemon=True).start()
    while not ended.wait(max(0.01, last[0] + silence - time.monotonic())):
        if time.monotonic() - last[0] >= silence:
            raise _SilentError(_silent(silence))
    if errors:
        raise errors[0]
    return outcome[0]


def _silent(seconds: float) -> str:
    return f"the server has not answered for {seconds:g} s"


def _reason(error: BaseException) -> str:
    """Why a store did not do what it was asked, in words."""
    status = getattr(error, "status", None)
    if isinstance(status, int):  # of an HTTP answer
        return f"the server answers {status} {getattr(error, 'message', '')}".rstrip()
    if isinstance(error, TimeoutError):
        return str(error) if isinstance(error, _SilentError) else _silent(_SILENCE)
    if isinstance(error, ConnectionRefusedError) or getattr(error, "errno", None) == errno.ECONNREFUSED:
        return "the server refuses the connection"
    if isinstance(error, NotImplementedError):
        return "a store of this kind can only be read"
    return first_line(error)


def _asked(
    parameter: str, url: Url, rule: str, ask: Callable[[Callable[[], None]], _Result], silence: float = _NO_ANSWER
) -> _Result:
    """`ask(on_part)`, whose errors become one sentence without credentials. Each store raises errors of its own."""
    try:
        return _answer(ask, silence)
    except (NaysayError, MissingExtraError):
        raise
    except Exception as error:
        text = url.scrubbed(_reason(error))
        got, advice = f"{str(url)!r} ({text})", ""
        if isinstance(error, PermissionError) or _DENIED.search(text):
            got, advice = f"{str(url)!r}, to which the store denies access", "Check the credentials."
        elif isinstance(error, OSError) and error.errno in FULL:
            rule, got = "a file that fits on this disk, where it is copied", f"{str(url)!r} ({disk_reason(error)})"
        elif isinstance(error, FileNotFoundError) or _MISSING.search(text):
            got = f"{str(url)!r}, which is not there"
    raise_invalid(parameter, rule, got, advice)  # not above: an error of the store, with the whole URL, would go along


def _bounded(store: Any) -> Any:
    """The same store, which gives up on a silent server. By itself S3 takes two minutes, and gs:// many more."""
    from pyarrow import fs

    limits: dict[str, Any] = {}
    if store.type_name == "s3":
        limits = {"connect_timeout": _SILENCE, "request_timeout": _SILENCE}
        limits["retry_strategy"] = fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES)
    elif store.type_name == "gcs":
        limits = {"retry_time_limit": timedelta(seconds=_TRIES * _SILENCE)}
    if not limits:
        return store
    options = store.__reduce__()[1][0]  # all that it was made with
    given = {name: value for name, value in options.items() if name in limits and value not in (None, -1.0)}
    return type(store)(**options | limits | given)


def _opened(parameter: str, url: Url) -> tuple[Any, str]:
    """(filesystem, path): pyarrow's own for its schemes, else fsspec's; raise if no package has the scheme."""
    import pyarrow as pa
    from pyarrow import fs

    if url.scheme in _OWN:
        with suppress(pa.ArrowNotImplementedError):  # built without it
            store, root = fs.FileSystem.from_uri(url.at("/").given)
            return _bounded(store), f"{root.rstrip('/')}{url.path}"
    package = _PACKAGES.get(url.scheme, "fsspec")
    missing = f"{package} is not installed, which {url.scheme}:// needs. Run: pip install '{package}'"
    try:
        from fsspec.core import url_to_fs
        from fsspec.registry import known_implementations, registry
    except ImportError:
        raise MissingExtraError(missing) from None
    if url.scheme not in registry and url.scheme not in known_implementations:
        rule = "a path, or a URL of a scheme that pyarrow or fsspec has, such as s3:// or gs://"
        raise_invalid(parameter, rule, f"{url.scheme}://")
    try:
        store, path = url_to_fs(url.given, **_limits(url.scheme))
    except ImportError:
        raise MissingExtraError(missing) from None
    store.invalidate_cache()
    return fs.PyFileSystem(fs.FSSpecHandler(store)), path


def _limits(scheme: str) -> dict[str, Any]:
    """Options of fsspec's store for a scheme: how long its server may stay silent."""
    if scheme not in _HTTP:
        return {}
    import aiohttp

    silence = aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE, sock_read=_SILENCE)
    return {"client_kwargs": {"timeout": silence}}


def _own(store: Any) -> Any:
    """Return fsspec's store inside pyarrow's; None if it is pyarrow's own."""
    return getattr(getattr(store, "handler", None), "fs", None)


def _info(store: Any, path: str, url: Url) -> Any:
    """What a store tells of a path. Of HTTP, fsspec calls all that fails "not found": the true error is raised."""
    if url.scheme in _HTTP:
        try:
            _own(store).info(path)
        except FileNotFoundError as error:
            cause = error.__cause__
            if cause is not None and getattr(cause, "status", None) != _NOT_FOUND:
                raise cause from None
    return store.get_file_info(path)


@final
@dataclass(frozen=True, slots=True)
class Remote:
    """The files of a URL: one, or the parts of a table."""

    url: Url
    store: Any
    files: tuple[tuple[str, int, str], ...]  # (path in the store, bytes, version) of each, by name
    many: bool  # whether the URL is a folder or a glob

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(size for _, size, _ in self.files)

    def shown(self, path: str) -> str:
        """The URL of one of the files, without credentials."""
        depth = self.url.path.count("/") + (not MAGIC.search(self.url.path))
        return str(self.url.at("/" + "/".join(path.split("/")[-depth:]))) if self.many else str(self.url)


def find(parameter: str, url: Url) -> Remote:
    """List the files of a URL with their sizes and versions."""
    return _asked(parameter, url, _READ, lambda _: _found(parameter, url))


def _found(parameter: str, url: Url) -> Remote:
    from pyarrow.fs import FileSelector, FileType

    store, path = _opened(parameter, url)
    info = _info(store, path, url)
    found = [info] if info.type == FileType.File else []
    if info.type == FileType.Directory:
        found = [one for one in store.get_file_info(FileSelector(path)) if is_shard(one.base_name)]
    elif not found and MAGIC.search(path):
        parts = PurePosixPath(path).parts
        base = PurePosixPath(*parts[: next(at for at, part in enumerate(parts) if MAGIC.search(part))])
        deep = len(parts) - len(base.parts) > 1
        listed = store.get_file_info(FileSelector(str(base), recursive=deep, allow_not_found=True))
        found = [one for one in listed if _fits(one.path, path)]
    found = sorted((one for one in found if one.type == FileType.File), key=lambda one: str(one.path))
    if not found:
        what = " without .parquet files" if info.type == FileType.Directory else ", which is not there"
        raise_invalid(parameter, "an existing file", f"{str(url)!r}{what}")
    if info.type != FileType.File and not all(is_shard(one.base_name) for one in found):
        raise_invalid(parameter, "one file, or several that end in .parquet", repr(str(url)))
    files = tuple((str(one.path), int(one.size or 0), _version(store, one)) for one in found)
    return Remote(url, store, files, info.type != FileType.File)


def _fits(path: str, pattern: str) -> bool:
    """Whether a path fits a glob; a star does not cross a slash."""
    one, other = PurePosixPath(path), PurePosixPath(pattern)
    return len(one.parts) == len(other.parts) and one.match(pattern)


def _version(store: Any, info: Any) -> str:
    """What changes when a file is replaced: its size, its time, and the store's own tag where it has one."""
    own = _own(store)
    if own is not None:
        tag = own.ukey(info.path)
    else:
        with store.open_input_stream(info.path, compression=None) as stream:
            tag = (stream.metadata() or {}).get("ETag", b"").decode("latin-1")
    return f"{info.size} {info.mtime_ns} {tag}"


@final
@dataclass(frozen=True, slots=True)
class Copy:
    """A copy on this machine of a file, or of the parts of a table in a folder."""

    path: Path
    files: tuple[Path, ...]
    names: Mapping[str, str]  # {path or name of a copy: what it is a copy of}


def copy_of(remote: Remote, folder: Path, stem: str) -> Copy:
    """Where the copies are that `fetch` makes."""
    names, made = {str(folder): str(remote.url)}, []
    for place, (path, _, _) in enumerate(remote.files):
        name = PurePosixPath(path).name if remote.many else remote.url.name  # the path may have the query
        suffixes = PurePosixPath(name).suffixes
        ending = "".join(suffixes[-2:] if suffixes[-1:] in ([".gz"], [".xz"]) else suffixes[-1:])
        made.append(folder / f"{stem}-{place:06d}{ending}")
        names |= {str(made[-1]): remote.shown(path), made[-1].name: remote.url.scrubbed(name)}
    return Copy(folder if remote.many else made[0], tuple(made), names)


def fetch(parameter: str, remote: Remote, folder: Path, stem: str = "copy") -> Copy:
    """Copy all files to a folder that exists, a few megabytes at a time; raise if one is not what the store reports."""
    free, copy = shutil.disk_usage(folder).free, copy_of(remote, folder, stem)
    if remote.size > free:
        got = f"{remote.size:,} bytes in {str(remote.url)!r}, and {free:,} free in {str(folder)!r}"
        raise_invalid(parameter, "a file that fits on this disk, where it is copied", got)
    for one, target in zip(remote.files, copy.files, strict=True):
        rule = "a file that stays where it is while it is read"
        _asked(parameter, remote.url, rule, partial(_copy, parameter, remote, one, target), _NO_BYTES)
    return copy


def _copy(
    parameter: str, remote: Remote, file: tuple[str, int, str], target: Path, on_part: Callable[[], None]
) -> None:
    """Copy one of the files."""
    (path, size, version), count = file, 0
    with remote.store.open_input_stream(path, compression=None) as source, target.open("wb") as stream:
        while data := source.read(_CHUNK):
            stream.write(data)
            count += len(data)
            on_part()
    if count != size:
        got = f"{count:,} of the {size:,} bytes that the store reports of {remote.shown(path)!r}"
        raise_invalid(parameter, "a file of the size that its store reports", got)
    if _version(remote.store, remote.store.get_file_info(path)) != version:
        raise_invalid(parameter, "a file that does not change while it is read", repr(remote.shown(path)))


@contextmanager
def named_as(names: Mapping[str, str]) -> Iterator[None]:
    """Report errors about copies as errors about what they are copies of."""
    try:
        yield
    except (NaysayError, MissingExtraError) as error:
        message = str(error.args[0])
        for copy, original in sorted(names.items(), key=lambda pair: -len(pair[0])):
            message = message.replace(copy, original)
        error.args = (message,)
        raise


def check_url(parameter: str, url: Url) -> None:
    """Raise if a file cannot be written there, as far as the store tells before.

    Where an upload has another name until it is complete, an empty file of such a name is written and removed. In other
    stores the permissions show in the upload.
    """
    from pyarrow.fs import FileType

    def check(_: Callable[[], None]) -> None:
        store, path = _opened(parameter, url)
        if not url.path:
            raise_invalid(parameter, "a file", repr(str(url)))
        if url.scheme in _BUCKETS and store.get_file_info(path.partition("/")[0]).type == FileType.NotFound:
            raise_invalid(parameter, "in an existing bucket", repr(str(url)))
        if store.get_file_info(path).type == FileType.Directory:
            raise_invalid(parameter, "a file", f"the folder {str(url)!r}")
        if url.scheme not in _COMPLETE:
            draft = _draft(path, url)
            with store.open_output_stream(draft, compression=None):
                pass
            store.delete_file(draft)

    _asked(parameter, url, _WRITE, check)


def url_is_there(parameter: str, url: Url) -> bool:
    """Whether there is a file or a folder at a URL."""
    from pyarrow.fs import FileType

    def ask(_: Callable[[], None]) -> bool:
        store, path = _opened(parameter, url)
        return bool(_info(store, path, url).type != FileType.NotFound)

    return _asked(parameter, url, _WRITE, ask)


def _draft(path: str, url: Url) -> str:
    """A new name beside a file in a store."""
    return str(PurePosixPath(path).with_name(f".{url.name}.{secrets.token_hex(8)}"))


def upload(parameter: str, draft: Path, url: Url) -> None:
    """Copy a whole file to a URL, where it appears when it is complete.

    A thread does it: Ctrl-C would end the upload, and a store takes what it has by then for the file.
    """
    with ThreadPoolExecutor(1) as thread:
        work = partial(_upload, parameter, draft, url)
        thread.submit(_asked, parameter, url, _WRITE, work, _NO_BYTES).result()


def _upload(parameter: str, draft: Path, url: Url, on_part: Callable[[], None]) -> None:
    store, path = _opened(parameter, url)
    target = path
    if url.scheme not in _COMPLETE:
        target = _draft(path, url)
    drafted = cut = target != path  # cut: whether what is at the target is to be removed after an error
    try:
        with draft.open("rb") as source, store.open_output_stream(target, compression=None) as stream:
            while True:
                cut = True  # after an error of our disk, the store takes what it has for the file
                data = source.read(_CHUNK)
                cut = drafted  # an error of the store itself ends the upload, and what was there before stays
                if not data:
                    break
                stream.write(data)
                on_part()
        there, size = store.get_file_info(target).size, draft.stat().st_size
        if there != size:
            cut = True
            raise_invalid(parameter, _WRITE, f"{there} of {size:,} bytes in {str(url)!r}")
        if drafted:
            store.move(target, path)
    except BaseException:
        if cut:
            with suppress(Exception):
                store.delete_file(target)
        raise
