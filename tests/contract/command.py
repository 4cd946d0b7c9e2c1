"""The command line in this process."""

import contextlib
import io
import os
from pathlib import Path
from types import SimpleNamespace

import naysay as ns
from naysay.cli import main

# For a process of its own: the same copy of the library as here, wherever it stands, and one thread.
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(Path(ns.__file__).resolve().parents[1]),
    "OMP_NUM_THREADS": "1",
    "NAYSAY_THREADS": "1",
}


def run(*words, folder="."):
    """Run `naysay` in a folder: its exit code and what it prints. Any other exception is a traceback for a user."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = end.code or 0
    return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue())
