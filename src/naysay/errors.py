"""The exceptions and the warning of the library. They import nothing, so that the command line can catch them first."""

from __future__ import annotations

from typing import NoReturn


class NaysayError(ValueError):
    """Invalid input, explained in one sentence. The command line prints the sentence and exits with code 2.

    Attributes:
        caller: The public function or class that was called, set by `naysay.checks.public`.
        parameter: The parameter that the sentence is about, if there is one.
    """

    caller: str | None = None
    parameter: str | None = None

    def __str__(self) -> str:
        """The sentence, with the name of the caller in front."""
        return _with_caller(self.caller, super().__str__())


class MissingExtraError(ImportError):
    """An optional dependency is not installed. The message names the pip command.

    Attributes:
        caller: The public function or class that was called, set by `naysay.checks.public`.
    """

    caller: str | None = None

    def __str__(self) -> str:
        """The sentence, with the name of the caller in front."""
        return _with_caller(self.caller, str(self.args[0]) if self.args else "")


class NaysayWarning(UserWarning):
    """Input that is valid but probably a mistake, explained in one sentence."""


def _with_caller(caller: str | None, message: str) -> str:
    return message if caller is None else f"{caller}: {message}"


def raise_invalid(parameter: str, rule: str, got: object, advice: str = "") -> NoReturn:
    """Raise the error for an invalid value of `parameter`: `parameter` must be RULE, got VALUE. ADVICE."""
    error = NaysayError(f"`{parameter}` must be {rule}, got {got}. {advice}".rstrip())
    error.parameter = parameter
    raise error


def how_to_install(extra: str) -> str:
    """The command that installs an extra. naysay is on no package index, so it is installed from a clone."""
    return f"Run in a clone of naysay: pip install '.[{extra}]'"
