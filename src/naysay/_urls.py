"""URLs where a path may stand: the text as given, and what is shown of it, which has no credentials."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import final
from urllib.parse import parse_qsl, unquote, urlencode

from naysay.errors import NaysayError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?]*)([^?]*)\??(.*)", re.DOTALL)  # one letter is a drive
_SHOWN = ("endpoint_override", "region", "scheme")  # parts of a query that are no secrets
_CONTAINERS = ("abfs", "abfss")  # schemes whose URLs have the container where others have the user
_SHORTEST = 4  # characters of a secret that is looked for in a message


@final
class Url:
    """A file, a folder or a glob in a store: s3://bucket/key.

    `given` is the whole text; str() and repr() leave out the user, the password and the query but for the endpoint and
    the region. The path is literal: %20 is not a space.
    """

    __slots__ = ("given", "host", "path", "query", "scheme", "user")

    def __init__(self, given: str) -> None:
        found = _URL.fullmatch(given)
        if found is None:
            message = "a URL has a scheme"
            raise ValueError(message)
        self.given, self.scheme, self.path, self.query = given, found[1].lower(), found[3].rstrip("/"), found[4]
        user, _, host = str(found[2]).rpartition("@")
        self.user, self.host = user, host

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
        user, query = f"{self.user}@" if self.user else "", f"?{self.query}" if self.query else ""
        return Url(f"{self.scheme}://{user}{self.host}{path}{query}")

    def with_name(self, name: str) -> Url:
        """The URL of another file in the same folder."""
        return self.at(f"{self.path.rpartition('/')[0]}/{name}")

    def scrubbed(self, text: str) -> str:
        """A text of another library without the credentials of this URL."""
        values = [value for name, value in parse_qsl(self.query) if name not in _SHOWN]
        raw = [part.partition("=")[2] for part in self.query.split("&") if part.partition("=")[0] not in _SHOWN]
        users = [] if self.scheme in _CONTAINERS else [self.user, *self.user.split(":")]
        secrets = {part for one in (*values, *raw, *users) for part in (one, unquote(one))}
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= _SHORTEST:
                text = text.replace(secret, "***")
        return text

    def __str__(self) -> str:
        shown = urlencode([pair for pair in parse_qsl(self.query) if pair[0] in _SHOWN], safe=":/")
        user = f"{self.user}@" if self.user and self.scheme in _CONTAINERS and ":" not in self.user else ""
        return f"{self.scheme}://{user}{self.host}{self.path}{f'?{shown}' if shown else ''}"

    def __repr__(self) -> str:
        return repr(str(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and other.given == self.given

    def __hash__(self) -> int:
        return hash(self.given)


Place = Path | Url


def read_place(flag: str, text: str) -> Place:
    """A path, or a URL; the URL of a file on this machine, file:///a/b, is a path."""
    if _URL.fullmatch(text) is not None:
        url = Url(text)
        if url.scheme != "file":
            return url
        if url.host in ("", "localhost"):  # file://a/b is no path of this machine: there is no such file
            from urllib.request import url2pathname  # slow to load

            text = url2pathname(url.path)
    if "\0" in text:
        error = NaysayError(f"`{flag}` must be a path without null bytes, got {text!r}.")
        error.parameter = flag
        raise error
    return Path(text)
