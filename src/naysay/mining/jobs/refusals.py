"""What `naysay mine` refuses, in the words of a shell: the checks are those of Python's functions, and name theirs."""

from __future__ import annotations

from functools import partial

from naysay.checks import as_typed

_OWNER = "mine"
_SAME = (
    *("metric", "seed", "same_ids", "depth", "ranks", "floor", "select", "temperature", "balance", "quotas", "judge"),
    *("on_short", "most", "threads", "approximate", "min_recall", "format", "short", "corpus_path", "tag"),
)
# {who refuses: {its parameter: the option}}
_OPTIONS = {
    _OWNER: {
        **{name: f"--{name.replace('_', '-')}" for name in _SAME},
        "k": "-k",
        "queries": "--query-vectors",
        "corpus": "--corpus-vectors",
        "path": "--output",
        "query_ids": "--queries",
        "corpus_ids": "--corpus",
    },
    "load_model": {"name": "--model"},
    "encode_texts": {"model": "--model", "folder": "--encoded"},
    "bm25": {"query_texts": "--queries", "corpus_texts": "--corpus", "depth": "--depth"},
    "Index.build": {"corpus": "--corpus-vectors"},
}
# What rules and advice say of arguments, as options.
_WORDS = {
    "None for ": "left out for ",
    "None with k='auto'": "left out with -k auto",
    "False unless": "left out unless",
    "like corpus": "like --corpus-vectors",
    "like k": "like -k",
    "Leave approximate out": "Leave --approximate out",
    "Use search: it is exact": "Leave --approximate out: the search is exact",
    "a lower min_recall": "a lower --min-recall",
    "ignore=(anchors, items)": "them by --ignore",
    "download=True to fetch it by its name": "the folder that it was saved in",
}

# in_options() names options where a refusal in it names parameters.
in_options = partial(as_typed, _OWNER, _OPTIONS, _WORDS)
