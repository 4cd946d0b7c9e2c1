"""A store for tests, odd://, that behaves as its paths say: a file in lies/ is not as long as it says, and so on."""

import io

import fsspec


class OddStore(fsspec.AbstractFileSystem):
    """Files in memory. Which folder a file is in decides what goes wrong with it."""

    protocol = "odd"
    cachable = False
    files: dict[str, bytes] = {}  # noqa: RUF012 (shared by all instances, like a store)
    asked = 0

    @classmethod
    def _strip_protocol(cls, path):
        path = str(path).removeprefix("odd://").partition("?")[0]
        return path.rpartition("@")[2].strip("/")

    def info(self, path, **_):
        path = self._strip_protocol(path)
        if path.startswith("denied/"):
            raise PermissionError(path)
        if path.startswith("broken/"):
            message = "cannot GET odd://someone:pass%2Fword@broken/x?token=ABCDEFGH&sig=%2Bsign+ed: someone pass/word"
            raise OSError(message)
        if path in self.files:
            more = {"lies": 10, "hides": -10}.get(path.partition("/")[0], 0)
            found = {"name": path, "type": "file", "size": len(self.files[path]) + more}
            if path.startswith("changes/"):
                OddStore.asked += 1
                found["version"] = self.asked
            return found
        if any(name.startswith(f"{path}/") for name in self.files):
            return {"name": path, "type": "directory", "size": 0}
        raise FileNotFoundError(path)

    def ls(self, path, detail=True, **_):
        path = self._strip_protocol(path)
        names = sorted(
            {"/".join(name.split("/")[: path.count("/") + 2]) for name in self.files if name.startswith(f"{path}/")}
        )
        return [self.info(name) for name in names] if detail else names

    def _open(self, path, mode="rb", **_):
        path = self._strip_protocol(path)
        if mode == "wb" and path.startswith("readonly/"):
            raise PermissionError(path)
        return _Written(path) if mode == "wb" else _Read(path, self.files[path])

    def open(self, path, mode="rb", **_):
        return self._open(path, mode)

    def mv(self, path1, path2, **_):
        self.files[self._strip_protocol(path2)] = self.files.pop(self._strip_protocol(path1))

    def rm_file(self, path):
        del self.files[self._strip_protocol(path)]

    rm = rm_file


class _Read(io.BytesIO):
    def __init__(self, path, data):
        super().__init__(data)
        self.path = path

    def read(self, size=-1):
        if self.path.startswith("vanishes/") and self.tell() > 0:
            raise FileNotFoundError(self.path)
        return super().read(min(size, 100) if size > 0 else size)


class _Written(io.BytesIO):
    """What is written appears when it is closed, whole or not; in aborts/ not after an error, as in S3."""

    def __init__(self, path):
        super().__init__()
        self.path, self.kept = path, True

    def write(self, data):
        if self.path.startswith(("full/", "aborts/")) and self.tell() > 0:
            self.kept = self.path.startswith("full/")
            message = "no space in the store"
            raise OSError(message)
        return super().write(data)

    def close(self):
        if not self.closed and self.kept:
            OddStore.files[self.path] = self.getvalue()
        super().close()


def odd_store(monkeypatch, **files):
    """Register the store, with these files: {folder: {name: bytes}}."""
    fsspec.register_implementation("odd", OddStore, clobber=True)
    found = {f"{folder}/{name}": data for folder, given in files.items() for name, data in given.items()}
    monkeypatch.setattr(OddStore, "files", found)
    return found
