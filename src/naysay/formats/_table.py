"""The formats of training files: what each is called, what its rows are, and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from naysay.checks import check_one_of
from naysay.formats._anchors import flag_embedding, nemo, nemo_inline, tevatron, tevatron_ids
from naysay.formats._blocks import Block
from naysay.formats._colbert import colbert, colbert_nway
from naysay.formats._columns import Columns
from naysay.formats._lists import labelled_list, labelled_pair, plain_ids
from naysay.formats._triplet import n_tuple, triplet

_TABLES = (".parquet", ".jsonl", ".hf")
_LINES = (".jsonl",)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """How a file is made of blocks.

    Args:
        name: What it is called.
        columns: The columns of a block of anchors.
        suffixes: The kinds of file that it comes in.
        rectangular: Whether a row needs all k negatives.
        scores: Whether there is a place for scores: "both", of positives and negatives together, "any" or "none".
        texts: Which texts it cannot do without: of "query" and "corpus".
        keeps: Whether anchors without a positive or a negative stay in the file.
        arrays: Whether a line is a JSON array without names.
    """

    name: str
    columns: Callable[[Block], Columns]
    suffixes: tuple[str, ...]
    rectangular: bool = False
    scores: str = "both"
    texts: tuple[str, ...] = ()
    keeps: bool = False
    arrays: bool = False


_BOTH = ("query", "corpus")
_FORMATS = (
    Format("triplet", triplet, _TABLES),
    Format("n-tuple", n_tuple, _TABLES, rectangular=True),
    Format("labelled-pair", labelled_pair, _TABLES, keeps=True),
    Format("labelled-list", labelled_list, _TABLES),
    Format("flagembedding", flag_embedding, _TABLES, texts=_BOTH),
    Format("tevatron", tevatron, _TABLES, scores="none", texts=_BOTH),
    Format("tevatron-ids", tevatron_ids, _TABLES, scores="none", texts=("query",)),
    Format("nemo", nemo, (".json",), scores="any", texts=("query",)),
    Format("nemo-inline", nemo_inline, _LINES, scores="none", texts=_BOTH),
    Format("colbert", colbert, _LINES, scores="none", arrays=True),
    Format("colbert-nway", colbert_nway, _LINES, rectangular=True, arrays=True),
    Format("ids", plain_ids, _TABLES, scores="any", keeps=True),
)

FORMATS: Mapping[str, Format] = MappingProxyType({each.name: each for each in _FORMATS})
_SPELT = MappingProxyType({"labeled-pair": "labelled-pair", "labeled-list": "labelled-list"})


def format_called(name: object, *others: str) -> str:
    """The name of a format, also in the spelling of sentence-transformers; an unknown one is refused."""
    name = _SPELT.get(name, name) if isinstance(name, str) else name
    check_one_of("format", name, (*FORMATS, *others))
    return str(name)
