"""How many source files `ns.mine` and `naysay mine` cross: those whose functions run, kernels and imports aside.

Run: python benchmarks/code/paths.py
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import naysay as ns

SOURCE = Path(ns.__file__).parent


def crossed(run: Callable[[], Any]) -> list[str]:
    """Call `run`, and list the files of naysay whose functions it calls, by path.

    Code at the top of modules and classes is not counted, since it runs at import; neither are kernels and what
    dataclasses generate.
    """
    files: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        inside = event == "call" and frame.f_code.co_flags & CO_NEWLOCALS and name.startswith(str(SOURCE))
        if inside and not _at_import(frame):
            files.add(str(Path(name).relative_to(SOURCE)))

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return sorted(name for name in files if not name.startswith("kernels"))


def _at_import(frame: FrameType | None) -> bool:
    """Whether a function runs because a module is being imported: a decorator, or a call at its top."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return True
        if frame.f_code.co_name == crossed.__name__:
            return False
        frame = frame.f_back
    return False


def main() -> None:
    """Print both lists."""
    world = ns.planted_world(60, 200, per_anchor=6, noise=0.2, seed=0)
    queries, corpus = world.anchor_vectors, world.item_vectors
    show("ns.mine(queries, corpus, positives, k)", crossed(lambda: ns.mine(queries, corpus, world.known, 4)))
    with tempfile.TemporaryDirectory() as folder:
        command = _files(Path(folder), world)
        show("naysay mine", crossed(lambda: _run(command)))


def show(title: str, files: list[str]) -> None:
    """Print how many files there are, by folder, and which."""
    print(f"{title}: {len(files)} files")
    for folder, count in Counter(name.rpartition("/")[0] or "naysay" for name in files).items():
        names = [name.rpartition("/")[2] for name in files if (name.rpartition("/")[0] or "naysay") == folder]
        print(f"  {folder:<12} {count:>3}  {' '.join(names)}")


def _files(folder: Path, world: Any) -> list[str]:
    """A tiny job in files, as the arguments of `naysay mine`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    np.save(folder / "q.npy", world.anchor_vectors)
    np.save(folder / "c.npy", world.item_vectors)
    anchors, items = world.known.pairs()
    pairs = {"anchor": [f"question {row}" for row in anchors], "positive": [f"d{row}" for row in items]}
    pq.write_table(pa.table(pairs), folder / "pairs.parquet")
    names = [f"d{row}" for row in range(len(world.item_vectors))]
    pq.write_table(pa.table({"id": names, "text": [f"text {name}" for name in names]}), folder / "docs.parquet")
    given = {"--corpus": "docs.parquet", "--query-vectors": "q.npy", "--corpus-vectors": "c.npy", "-o": "out.parquet"}
    options = [part for option, name in given.items() for part in (option, str(folder / name))]
    return ["mine", str(folder / "pairs.parquet"), *options, "-k", "4"]


def _run(arguments: list[str]) -> None:
    from naysay.cli import app

    app(arguments, standalone_mode=False)


if __name__ == "__main__":
    main()
