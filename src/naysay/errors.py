"""The two refusals. They import nothing, so that the command line can name them before NumPy is loaded."""


class NaysayError(ValueError):
    """A refusal in one sentence. The command line prints it and exits with 2.

    said   owner, parameter, rule, what was got and advice, if `checks.refuse` made the sentence of these
    """

    said: tuple[str, str, str, str, str] | None = None


class MissingExtraError(ImportError):
    """An optional dependency is absent; the message names the pip command."""
