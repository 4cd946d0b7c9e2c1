"""The command line in this process."""

import contextlib
import io
from types import SimpleNamespace

from naysay.cli import main


def run(*words, folder="."):
    """Run `naysay` in a folder: its exit code and what it prints. Any other exception is a traceback for a user."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = end.code or 0
    return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue())
