"""The options of `naysay mine`, by the parameters that the library's errors name."""

from __future__ import annotations

from functools import partial

from naysay.checks import with_option_names

_SAME = (
    *("metric", "seed", "same_ids", "depth", "ranks", "floor", "select", "temperature", "balance", "quotas", "judge"),
    *("on_short", "most", "threads", "approximate", "min_recall", "format", "short", "corpus_path", "tag", "ignore"),
)
_OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in _SAME},
    "k": "-k",
    "queries": "--query-vectors",
    "corpus": "--corpus-vectors",
    "path": "--output",
    "query_ids": "--queries",
    "corpus_ids": "--corpus",
    "query_texts": "--queries",
    "corpus_texts": "--corpus",
    "name": "--model",
    "model": "--model",
    "folder": "--encoded",
}
in_options = partial(with_option_names, "mine", _OPTIONS)
