"""read_negatives: the anchors, positives and negatives of a training file."""

from __future__ import annotations

from pathlib import Path

from naysay.checks import public, raise_invalid, shown
from naysay.errors import NaysayError
from naysay.formats._readers import READERS, Rows
from naysay.formats._table import format_called
from naysay.formats._table_files import Table, opened_table
from naysay.formats.training_file import Collector, TrainingFile
from naysay.text import first_line

# Columns that only one format has. The four of sentence-transformers are recognised by labels and number of columns.
_MARKS = (
    ("flagembedding", ("query", "pos", "neg")),
    ("tevatron", ("query_id", "query", "positive_passages", "negative_passages")),
    ("tevatron-ids", ("query_id", "positive_document_ids", "negative_document_ids")),
    ("nemo", ("question_id", "question", "pos_doc", "neg_doc")),
    ("nemo-inline", ("query", "pos_doc", "neg_doc")),
    ("ids", ("anchor", "positives", "negatives")),
)
TEXT_ONLY = ("triplet", "n-tuple", "labelled-pair", "labelled-list", "flagembedding", "nemo-inline")


@public
def read_negatives(path: str | Path, format: str | None = None) -> TrainingFile:
    """Read a training file in any format that `write_negatives` writes, except "trec" (use `read_run`).

    In the formats of sentence-transformers the order of columns counts, not their names: the first is the anchor, the
    second the positive. Labelled pairs with scores instead of labels cannot be read: the file does not contain which
    are positives. Titles and texts of "tevatron" are joined by a space. Texts stay as they are, even broken ones.
    Memory: the distinct texts, and 20 bytes for each pair.

    Args:
        path: .parquet, .jsonl or .json (also .gz or .xz), or .hf, a data set on disk.
        format: The format; recognised by the columns by default.

    Returns:
        The contents as arrays, in the terms of `write_negatives`.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "train.jsonl"
        >>> _ = path.write_text('{"anchor": "cat", "positive": "a cat", "negative": "a dog"}')
        >>> training = read_negatives(path)
        >>> training.format, training.corpus_texts, training.ids.tolist()
        ('triplet', ['a cat', 'a dog'], [[1]])
    """
    name, into = collected(Path(path), format)
    return into.finished(Path(path), name, are_texts=name in TEXT_ONLY)


def collected(path: Path, format: str | None) -> tuple[str, Collector]:
    """Return the format of a file, and all its pairs as they are read, also repeated ones."""
    name = None if format is None else format_called(format)
    table = opened_table(path)
    name = name or _format_of(table)
    _check_fit(name, table)
    into = Collector()
    for numbers, rows in table.blocks:
        try:
            READERS[name](Rows(table.names, numbers, rows, table.where), into)
        except NaysayError:
            raise
        except (
            TypeError,
            ValueError,
            OverflowError,
        ) as error:  # a score that is text, a number too large
            got = f"{first_line(error)} in {table.where}s {numbers[0]} to {numbers[-1]}"
            raise_invalid("path", f"a file of the format {name!r}", got)
        into.rows += len(rows)
    return name, into


def _format_of(table: Table) -> str:
    """Recognise the format by the columns and the first row."""
    if table.first is None and not table.names:
        raise_invalid("path", "a file with rows", f"none in {str(table.path)!r}", "Pass `format` for an empty one.")
    if table.arrays:
        return "colbert" if len(table.first) == 3 and type(table.first[1]) is int else "colbert-nway"
    present = {*table.names}
    for name, marks in _MARKS:
        if present >= {*marks}:
            return name
    if "label" in present or "score" in present:
        return "labelled-pair"
    plain = [column for column in table.names if column not in ("labels", "scores")]
    if len(plain) == 2 and len(plain) < len(table.names):
        return "labelled-list"
    if len(plain) >= 3:
        return "triplet" if len(plain) == 3 else "n-tuple"
    if len(plain) == 2 and isinstance(table.first, dict) and not any(map(_is_list, table.first.values())):
        raise_invalid("path", "a file with negatives", f"{_listed(table)} alone", "Mine some: `naysay mine`.")
    got = _listed(table) if table.names else shown(table.first)
    raise_invalid("path", "a file of a known format", got, "Pass `format`.")


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _check_fit(name: str, table: Table) -> None:
    """Raise if the columns are not those of the format."""
    is_array = name.startswith("colbert")
    if table.first is None and not table.names:
        return
    if is_array != table.arrays:
        kind = "arrays" if is_array else "objects"
        raise_invalid("path", f"lines of JSON {kind} for the format {name!r}", shown(table.first))
    if is_array:
        return
    present = {*table.names}
    needed = dict(_MARKS).get(name, ())
    if missing := [column for column in needed if column not in present]:
        rule = f"a file with the columns {', '.join(map(repr, needed))} for the format {name!r}"
        raise_invalid("path", rule, f"no {missing[0]!r} among {', '.join(map(repr, table.names))}")
    plain = len([column for column in table.names if column not in ("label", "labels", "score", "scores")])
    if name == "labelled-pair" and ("label" not in present or plain != 2):
        advice = "Scores alone do not say which documents are positives." if "score" in present else ""
        raise_invalid("path", "a file with an anchor, a document and 'label'", _listed(table), advice)
    if name == "labelled-list" and (plain != 2 or not present & {"labels", "scores"}):
        raise_invalid("path", "a file with an anchor, documents and 'labels' or 'scores'", _listed(table))
    if (name == "triplet" and plain != 3) or (name == "n-tuple" and plain < 3):
        count = "three" if name == "triplet" else "three or more"
        raise_invalid("path", f"a file with {count} columns beside scores for the format {name!r}", _listed(table))


def _listed(table: Table) -> str:
    return "columns " + ", ".join(map(repr, table.names))
