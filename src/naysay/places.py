"""Where files are: a path on this machine, or a URL of a store that pyarrow or fsspec opens.

What is read in a store is copied to this machine first. A copy is checked: it has the size that the store reports, and
the store reports the same version before and after. Messages never show credentials.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, final
from urllib.parse import parse_qsl, unquote, urlencode

from naysay import files
from naysay.errors import MissingExtraError, NaysayError, raise_invalid
from naysay.text import first_line

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?]*)([^?]*)\??(.*)", re.DOTALL)  # one letter is a drive
_NOT_SECRET = ("endpoint_override", "region", "scheme")  # parts of a query that may be shown
_CONTAINERS = ("abfs", "abfss")  # schemes whose URLs have the container where others have the user
_SHORTEST_SECRET = 4  # characters; shorter ones would be replaced in ordinary words
_OF_PYARROW = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")  # schemes that pyarrow opens by itself
_WITH_BUCKETS = ("s3", "gs", "gcs")  # schemes whose paths start with a bucket, which is never made here
_HTTP = ("http", "https")
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub", "abfs": "adlfs",
             "abfss": "adlfs", "az": "adlfs", "sftp": "paramiko", "ssh": "paramiko", "http": "fsspec[http]",
             "https": "fsspec[http]", "oss": "ossfs", "oci": "ocifs", "webdav": "webdav4"}  # fmt: skip
_DENIED = re.compile(r"access.?denied|forbidden|unauthori[sz]ed|invalid.?access.?key|signature.?does|\b40[13]\b", re.I)
_MISSING = re.compile(r"no.?such.?(bucket|key|file)|not.?found|does not exist|\b404\b", re.I)
_CHUNK = 1 << 23  # bytes that are copied at a time
_SILENCE = 8.0  # seconds that an HTTP server may stay silent
_GS_RETRIES = 24  # seconds; by itself gs:// tries for a quarter of an hour
_READ, _WRITE = "a file that can be read", "a file that can be written"
_MAGIC = re.compile(r"[*?\[]")
_Result = TypeVar("_Result")


# ---- Paths and URLs --------------------------------------------------------------------------------------------------


@final
class Url:
    """A file, a folder or a glob in a store: s3://bucket/key.

    `given` is the whole text. str() and repr() leave out the user, the password, and the query but for the endpoint and
    the region. The path is literal: %20 is not a space.
    """

    def __init__(self, given: str) -> None:
        found = _URL.fullmatch(given)
        if found is None:
            message = "a URL has a scheme"
            raise ValueError(message)
        scheme, authority, path, query = map(str, found.groups())
        self.given, self.scheme, self.path, self.query = given, scheme.lower(), path.rstrip("/"), query
        self.user, _, self.host = authority.rpartition("@")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path or self.host).name

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return PurePosixPath(self.name).suffix

    def at(self, path: str) -> Url:
        """The URL of another path in the same store."""
        user = f"{self.user}@" if self.user else ""
        query = f"?{self.query}" if self.query else ""
        return Url(f"{self.scheme}://{user}{self.host}{path}{query}")

    def with_name(self, name: str) -> Url:
        """The URL of another file in the same folder."""
        return self.at(f"{self.path.rpartition('/')[0]}/{name}")

    def scrubbed(self, text: str) -> str:
        """A text of another library without the credentials of this URL, quoted or not."""
        pairs = [*parse_qsl(self.query), *(part.partition("=")[::2] for part in self.query.split("&"))]
        secrets = [value for name, value in pairs if name not in _NOT_SECRET]
        if self.scheme not in _CONTAINERS:
            secrets += [self.user, *self.user.split(":")]
        for secret in sorted({*secrets, *map(unquote, secrets)}, key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return text

    def __str__(self) -> str:
        query = urlencode([pair for pair in parse_qsl(self.query) if pair[0] in _NOT_SECRET], safe=":/")
        is_container = self.scheme in _CONTAINERS and ":" not in self.user
        user = f"{self.user}@" if self.user and is_container else ""
        return f"{self.scheme}://{user}{self.host}{self.path}{f'?{query}' if query else ''}"

    def __repr__(self) -> str:
        return repr(str(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and other.given == self.given

    def __hash__(self) -> int:
        return hash(self.given)


Place = Path | Url


def read_place(parameter: str, text: str) -> Place:
    """A path, or a URL; the URL of a file on this machine, file:///a/b, is a path."""
    if _URL.fullmatch(text) is not None:
        url = Url(text)
        if url.scheme != "file":
            return url
        if url.host in ("", "localhost"):  # file://a/b is no path of this machine: there is no such file
            from urllib.request import url2pathname  # slow to load

            text = url2pathname(url.path)
    if "\0" in text:
        raise_invalid(parameter, "a path without null bytes", repr(text))
    return Path(text)


def as_place(parameter: str, given: object) -> Place:
    """Return what users pass as a path or a URL; raise if it is neither."""
    if isinstance(given, Url):
        return given
    return read_place(parameter, given) if isinstance(given, str) else files.as_path(parameter, given)


# ---- Several files that are one table --------------------------------------------------------------------------------


def _is_part(name: str) -> bool:
    """Whether a file of a folder is a part of its table. What writers leave beside them starts with _ or a dot."""
    return name.lower().endswith(".parquet") and not name.startswith(("_", "."))


def shards(path: Path) -> list[Path]:
    """The files of a table, by name: those of a folder that end in .parquet, those that fit a glob, or the file."""
    if os.path.isdir(path):
        return sorted(path / name for name in os.listdir(path) if _is_part(name))
    if _MAGIC.search(str(path)) and not os.path.lexists(path):
        return sorted(map(Path, glob.glob(str(path))))
    return [path]


def table_suffix(path: Path) -> str:
    """The ending that tells the kind of a table: .parquet for a folder that is no data set."""
    suffix = path.suffix.lower()
    return ".parquet" if suffix != ".hf" and os.path.isdir(path) else suffix


def check_table(parameter: str, path: Path, advice: str = "") -> None:
    """Raise unless `path` is a file that can be read, or a folder or glob of Parquet files."""
    files.check_source(parameter, path)
    parts = shards(path)
    if not parts:
        got = f"the folder {str(path)!r}, which has no .parquet files" if os.path.isdir(path) else repr(str(path))
        raise_invalid(parameter, "an existing file", got, advice)
    for part in parts:
        files.check_file(parameter, part, advice)
    if parts != [path] and not all(_is_part(part.name) for part in parts):
        raise_invalid(parameter, "one file, or several that end in .parquet", repr(str(path)), advice)


# ---- Asking a store --------------------------------------------------------------------------------------------------


def _asked(parameter: str, url: Url, rule: str, ask: Callable[[], _Result]) -> _Result:
    """`ask()`, whose errors become one sentence without credentials."""
    try:
        return ask()
    except (NaysayError, MissingExtraError):
        raise
    except Exception as error:
        reason = url.scrubbed(_reason(error))
        got, advice = f"{str(url)!r} ({reason})", ""
        if isinstance(error, PermissionError) or _DENIED.search(reason):
            got, advice = f"{str(url)!r}, to which the store denies access", "Check the credentials."
        elif isinstance(error, OSError) and error.errno in files.FULL:
            rule, got = "a file that fits on this disk, where it is copied", f"{str(url)!r} ({reason})"
        elif isinstance(error, FileNotFoundError) or _MISSING.search(reason):
            got = f"{str(url)!r}, which is not there"
    raise_invalid(parameter, rule, got, advice)  # not above: the error of the store, with the whole URL, would go along


def _reason(error: BaseException) -> str:
    """Why a store did not do what it was asked, in words."""
    status = getattr(error, "status", None)
    if isinstance(status, int):  # of an HTTP answer
        return f"the server answers {status} {getattr(error, 'message', '')}".rstrip()
    if isinstance(error, TimeoutError):
        return f"the server has not answered for {_SILENCE:g} s"
    if isinstance(error, ConnectionRefusedError) or "onnect call failed" in str(error):
        return "the server refuses the connection"
    return files.disk_reason(error) if isinstance(error, OSError) else first_line(error)


def _opened(parameter: str, url: Url) -> tuple[Any, str]:
    """(filesystem, path): pyarrow's own for its schemes, else fsspec's; raise if no package has the scheme."""
    import pyarrow as pa
    from pyarrow import fs

    if url.scheme in _OF_PYARROW:
        with suppress(pa.ArrowNotImplementedError):  # a pyarrow that was built without it
            root_url = url.at("/").given
            if url.scheme in ("gs", "gcs") and "retry_limit_seconds" not in url.query:
                root_url += f"{'&' if url.query else '?'}retry_limit_seconds={_GS_RETRIES}"
            store, root = fs.FileSystem.from_uri(root_url)
            return store, f"{root.rstrip('/')}{url.path}"
    package = _PACKAGES.get(url.scheme, "fsspec")
    missing = f"{package} is not installed, which {url.scheme}:// needs. Run: pip install '{package}'"
    try:
        from fsspec.core import url_to_fs
        from fsspec.registry import known_implementations, registry

        if url.scheme not in registry and url.scheme not in known_implementations:
            rule = "a path, or a URL of a scheme that pyarrow or fsspec has, such as s3:// or gs://"
            raise_invalid(parameter, rule, f"{url.scheme}://")
        options: dict[str, Any] = {}
        if url.scheme in _HTTP:
            import aiohttp

            timeout = aiohttp.ClientTimeout(sock_connect=_SILENCE, sock_read=_SILENCE)
            options = {"client_kwargs": {"timeout": timeout}}
        store, path = url_to_fs(url.given, **options)
    except ImportError:
        raise MissingExtraError(missing) from None
    store.invalidate_cache()
    return fs.PyFileSystem(fs.FSSpecHandler(store)), path


def _of_fsspec(store: Any) -> Any:
    """Return fsspec's store inside pyarrow's; None if it is pyarrow's own."""
    return getattr(getattr(store, "handler", None), "fs", None)


def _info(store: Any, path: str, url: Url) -> Any:
    """What a store tells of a path. Of HTTP, fsspec calls all that fails "not found": the true error is raised."""
    if url.scheme in _HTTP:
        try:
            _of_fsspec(store).info(path)
        except FileNotFoundError as error:
            cause = error.__cause__
            if cause is not None and getattr(cause, "status", None) != 404:
                raise cause from None
    return store.get_file_info(path)


# ---- Reading ---------------------------------------------------------------------------------------------------------


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
        if not self.many:
            return str(self.url)
        depth = self.url.path.count("/") + (not _MAGIC.search(self.url.path))
        return str(self.url.at("/" + "/".join(path.split("/")[-depth:])))


def find(parameter: str, url: Url) -> Remote:
    """List the files of a URL with their sizes and versions."""
    return _asked(parameter, url, _READ, lambda: _found(parameter, url))


def _found(parameter: str, url: Url) -> Remote:
    from pyarrow.fs import FileSelector, FileType

    store, path = _opened(parameter, url)
    info = _info(store, path, url)
    listed = [info]
    if info.type == FileType.Directory:
        listed = [one for one in store.get_file_info(FileSelector(path)) if _is_part(one.base_name)]
    elif info.type != FileType.File and _MAGIC.search(path):
        parts = PurePosixPath(path).parts
        fixed = next(place for place, part in enumerate(parts) if _MAGIC.search(part))
        folder = str(PurePosixPath(*parts[:fixed]))
        is_deep = len(parts) - fixed > 1
        below = store.get_file_info(FileSelector(folder, recursive=is_deep, allow_not_found=True))
        listed = [one for one in below if _fits(one.path, path)]
    found = sorted((one for one in listed if one.type == FileType.File), key=lambda one: str(one.path))
    if not found:
        what = " without .parquet files" if info.type == FileType.Directory else ", which is not there"
        raise_invalid(parameter, "an existing file", f"{str(url)!r}{what}")
    is_one = info.type == FileType.File
    if not is_one and not all(_is_part(one.base_name) for one in found):
        raise_invalid(parameter, "one file, or several that end in .parquet", repr(str(url)))
    entries = tuple((str(one.path), int(one.size or 0), _version(store, one)) for one in found)
    return Remote(url, store, entries, not is_one)


def _fits(path: str, pattern: str) -> bool:
    """Whether a path fits a glob; a star does not cross a slash."""
    return path.count("/") == pattern.count("/") and PurePosixPath(path).match(pattern)


def _version(store: Any, info: Any) -> str:
    """What changes when a file is replaced: its size, its time, and the store's own tag where it has one."""
    of_fsspec = _of_fsspec(store)
    if of_fsspec is not None:
        tag = of_fsspec.ukey(info.path)
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
    names = {str(folder): str(remote.url)}
    targets = []
    for place, (path, _, _) in enumerate(remote.files):
        name = PurePosixPath(path).name if remote.many else remote.url.name  # the path may have the query
        suffixes = PurePosixPath(name).suffixes
        ending = "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])
        target = folder / f"{stem}-{place:06d}{ending}"
        names |= {str(target): remote.shown(path), target.name: remote.url.scrubbed(name)}
        targets.append(target)
    return Copy(folder if remote.many else targets[0], tuple(targets), names)


def fetch(parameter: str, remote: Remote, folder: Path, stem: str = "copy") -> Copy:
    """Copy all files to a folder that exists; raise if one is not what the store reports."""
    free, copy = shutil.disk_usage(folder).free, copy_of(remote, folder, stem)
    if remote.size > free:
        got = f"{remote.size:,} bytes in {str(remote.url)!r}, and {free:,} free in {str(folder)!r}"
        raise_invalid(parameter, "a file that fits on this disk, where it is copied", got)
    for (path, size, version), target in zip(remote.files, copy.files, strict=True):
        rule = "a file that stays where it is while it is read"
        now = _asked(parameter, remote.url, rule, partial(_fetch, remote.store, path, target))
        count = target.stat().st_size
        if count != size:
            got = f"{count:,} of the {size:,} bytes that the store reports of {remote.shown(path)!r}"
            raise_invalid(parameter, "a file of the size that its store reports", got)
        if now != version:
            raise_invalid(parameter, "a file that does not change while it is read", repr(remote.shown(path)))
    return copy


def _fetch(store: Any, path: str, target: Path) -> str:
    """Copy one file; return its version after the copy."""
    from pyarrow import fs

    fs.copy_files(path, str(target), store, fs.LocalFileSystem(), chunk_size=_CHUNK)
    return _version(store, store.get_file_info(path))


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


# ---- Writing ---------------------------------------------------------------------------------------------------------


def check_target(parameter: str, place: Place) -> None:
    """Raise unless a file can be written there; permissions of a store show only when it is uploaded."""
    if isinstance(place, Path):
        files.check_target(parameter, place)
        return
    if not place.path:
        raise_invalid(parameter, "a file", repr(str(place)))
    if place.scheme in _HTTP:
        raise_invalid(parameter, _WRITE, f"{str(place)!r} (a store of this kind can only be read)")

    def check() -> None:
        from pyarrow.fs import FileType

        store, path = _opened(parameter, place)
        bucket = path.partition("/")[0]
        if place.scheme in _WITH_BUCKETS and store.get_file_info(bucket).type == FileType.NotFound:
            raise_invalid(parameter, "in an existing bucket", repr(str(place)))
        if store.get_file_info(path).type == FileType.Directory:
            raise_invalid(parameter, "a file", f"the folder {str(place)!r}")

    _asked(parameter, place, _WRITE, check)


def is_there(parameter: str, place: Place) -> bool:
    """Whether there is a file or a folder."""
    if isinstance(place, Path):
        return place.exists()

    def ask() -> bool:
        from pyarrow.fs import FileType

        store, path = _opened(parameter, place)
        return bool(_info(store, path, place).type != FileType.NotFound)

    return _asked(parameter, place, _WRITE, ask)


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
        tables = (one for one, source in sources.items() if _is_part_of(place, source))
        other = next(tables, used.setdefault(_key(place), name))
        if other != name:
            raise_invalid(name, f"another file than `{other}`", repr(str(place)))


def _key(place: Place) -> str:
    return str(place) if isinstance(place, Url) else os.path.realpath(place)


def _is_part_of(target: Place, source: Place) -> bool:
    """Whether a file that is written would be a part of a table that is read, now or the next time."""
    if isinstance(target, Url) or isinstance(source, Url):
        return False
    if os.path.isdir(source):
        return os.path.realpath(source) == os.path.realpath(target.parent) and _is_part(target.name)
    return _fits(os.path.realpath(target), os.path.realpath(source))


def write_whole(parameter: str, place: Place, data: bytes) -> None:
    """Write `data` to a file, which appears whole or not at all."""
    if isinstance(place, Path):
        files.write_whole(parameter, place, data)
        return
    with tempfile.TemporaryDirectory(prefix="naysay-") as folder:
        draft = Path(folder) / "draft"
        files.write_whole(parameter, draft, data)
        upload(parameter, draft, place)


def upload(parameter: str, draft: Path, url: Url) -> None:
    """Copy a whole file to a URL. After an error there is no part of it.

    A thread does it: Ctrl-C would end the upload, and a store takes what it has by then for the file.
    """
    with ThreadPoolExecutor(1) as thread:
        work = partial(_upload, parameter, draft, url)
        thread.submit(_asked, parameter, url, _WRITE, work).result()


def _upload(parameter: str, draft: Path, url: Url) -> None:
    store, path = _opened(parameter, url)
    before = store.get_file_info(path)
    try:
        with draft.open("rb") as source, store.open_output_stream(path, compression=None) as stream:
            shutil.copyfileobj(source, stream, _CHUNK)
        size_there, size = store.get_file_info(path).size, draft.stat().st_size
        if size_there != size:
            raise_invalid(parameter, _WRITE, f"{size_there} of {size:,} bytes in {str(url)!r}")
    except BaseException:
        with suppress(Exception):
            after = store.get_file_info(path)
            if (after.size, after.mtime_ns) != (before.size, before.mtime_ns):  # else it is the file from before
                store.delete_file(path)
        raise
