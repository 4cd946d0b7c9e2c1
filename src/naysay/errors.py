"""The two refusals. They import nothing, so that the command line can name them before NumPy is loaded."""


class NaysayError(ValueError):
    """A refusal in one sentence. The command line prints it and exits with 2."""


class MissingExtraError(ImportError):
    """An optional dependency is absent; the message names the pip command."""
