"""The rules that every run of `naysay` must keep, whatever it is given. A run is in this process."""

from __future__ import annotations

import gc
import io
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from naysay.cli import main
from tests.fuzz.generate import COMMANDS, WRITTEN, command_line, damaged_file
from tests.fuzz.world import OUT, make_world


@dataclass(frozen=True)
class Run:
    """One run of a command line: its words, exit code and what it printed."""

    words: list[str]
    code: Any
    out: str
    err: str


_PYTHON = re.compile(r"\bnaysay\.\w|\b\w+\(|`[a-z]+_\w+`|object at 0x|<class|\bPass \w+=")


def run(words: list[str]) -> Run:
    """Run a command line in this process. An exception that is not a SystemExit is a traceback for a user."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        code: Any = 0
        try:
            main(list(words))
        except SystemExit as stop:
            code = stop.code or 0
        except Exception as error:
            code = f"{type(error).__name__}: {error}"
    return Run(words, code, out.getvalue(), err.getvalue())


def problems(done: Run) -> list[str]:
    """What a run did that it must not do, by what it returned and printed."""
    found = []
    fails = done.code == 1 and "The set fails" in done.out
    if done.code not in (0, 2) and not fails:
        return [f"exit code {done.code}"]
    if "Traceback" in done.err + done.out:
        found.append("a traceback")
    if done.code != 2:
        return found
    lines = done.err.splitlines()
    if len(lines) != 1 or not lines[0].startswith("naysay: "):
        found.append(f"{len(lines)} lines of error")
    elif _PYTHON.search(lines[0].partition(", got ")[0]):
        found.append("an error that names Python")
    return found


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """{file: (size, time of change)} of a folder without what is in `out`."""
    found = {}
    for entry in os.scandir(folder):
        about = entry.stat(follow_symlinks=False)
        found[entry.name] = (about.st_size if entry.name != OUT else 0, about.st_mtime_ns if entry.name != OUT else 0)
    return found


def left(folder: Path) -> list[str]:
    """What is in `out`: drafts and folders of jobs are there only after an error."""
    if not (folder / OUT).is_dir():
        return ["nothing, not even the folder"]
    return [name for name in os.listdir(folder / OUT) if name.startswith(".") or name == "job"]


def check(words: list[str], world: Path) -> tuple[Run, list[str]]:
    """Run a command line in a world, and return what it did that it must not do. The world is as before afterwards."""
    before = state(world)
    done = run(words)
    found = problems(done)
    changed = {name for name, _ in {*state(world).items()} ^ {*before.items()}}
    after_flag = [place > 0 and words[place - 1] in WRITTEN for place in range(len(words))]
    written = {word.split("/")[0] for word, is_output in zip(words, after_flag, strict=True) if is_output}
    written |= {Path(word).stem + ".changes.jsonl" for word in written}  # beside what --fix writes
    read = {word for word, is_output in zip(words, after_flag, strict=True) if not is_output}
    if wrong := changed - (written - read):
        found.append(f"files outside of the output changed: {sorted(wrong)}")
    if done.code == 2 and words[:1] == ["mine"] and left(world):
        again = run(COMMANDS["mine"].split())
        if again.code != 0:
            found.append(f"the corrected run fails: {again.err}")
    elif left(world):
        found.append(f"left behind: {left(world)}")
    _restore(world, {OUT, *changed})
    return done, found


def _restore(world: Path, changed: set[str]) -> None:
    """Put files back from the copy of the world beside it."""
    for name in changed:
        path, copy = world / name, world.with_name(f"{world.name}-copy") / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if copy.is_dir():
            path.mkdir(exist_ok=True)
        elif copy.is_file():
            shutil.copyfile(copy, path)


@contextmanager
def world_in(folder: Path) -> Iterator[Path]:
    """A new world in an empty folder, which is the current one; temporary files must be gone at the end."""
    folder.mkdir()
    make_world(folder)
    copy = folder.with_name(f"{folder.name}-copy")
    copy.mkdir()
    (copy / OUT).mkdir()
    for path in folder.iterdir():
        if path.is_file():
            shutil.copyfile(path, copy / path.name)
    temporary = folder.with_name(f"{folder.name}-tmp")
    temporary.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(temporary)
    try:
        with chdir(folder), patch("os.fsync", lambda _: None):  # no power cut is tried
            yield folder
        gc.collect()
        # torch makes the folder of its compiler's cache where it is first imported; locks are empty files that stay.
        stays = re.compile(r"torchinductor_.*|naysay-.*\.lock")
        rest = [path for path in temporary.iterdir() if not stays.fullmatch(path.name)]
        if rest:
            message = f"temporary files are left: {rest}"
            raise AssertionError(message)
    finally:
        tempfile.tempdir = before


def command_runs(world: Path, runs: int, seed: int) -> Iterator[tuple[Run, list[str]]]:
    """Random command lines, and what each did that it must not do."""
    rng = np.random.default_rng([seed, 0])
    for _ in range(runs):
        yield check(command_line(rng), world)


def file_runs(world: Path, runs: int, seed: int) -> Iterator[tuple[Run, list[str]]]:
    """Random damage of files, and what the command that reads each did that it must not do."""
    rng = np.random.default_rng([seed, 1])
    for _ in range(runs):
        name, data, words = damaged_file(rng, world)
        (world / name).write_bytes(data)
        yield check(words, world)
        (world / name).unlink()
