"""TREC runs: `query Q0 document rank score tag`, one candidate per line."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import nan
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, check_whole, public, raise_invalid, shown
from naysay.files import check_target, draft_of
from naysay.formats._contents import Labels, check_distinct, labels_of, strings
from naysay.search.exact import Found
from naysay.tables import line_blocks
from naysay.vocabulary import Vocabulary

Ids = NDArray[np.int64]
_FIELDS = "lines of six fields (query Q0 document rank score tag)"
_SPACES = " \t\n\r\x0b\x0c"  # what ends a field; a space of Unicode may be in a name
_ASCII_SPACE = re.compile(f"[{_SPACES}]+")
_BLOCK = 4096


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A run file, as `read_run` returns it.

    Args:
        found: The candidates of each query: score descending, id ascending.
        tag: The name of the run, from the first line.
        lines: How many candidates the file has.
        dropped: {reason: lines} that are not in `found`.

    Examples:
        >>> Run(Found.empty(1, 2), "bm25", 3, {"unknown document": 3}).dropped
        {'unknown document': 3}
    """

    found: Found
    tag: str
    lines: int
    dropped: Mapping[str, int] = field(default_factory=dict)


@public
def read_run(
    path: str | Path,
    query_ids: Sequence[str] | Vocabulary | int,
    corpus_ids: Sequence[str] | Vocabulary | int,
    *,
    depth: int | None = None,
    unknown: str = "raise",
) -> Run:
    r"""Read a TREC run file, plain or compressed (.gz).

    Candidates are ranked by their scores, as trec_eval does; the ranks in the file are ignored.

    Args:
        path: The file.
        query_ids: The names of the queries, in order; or how many there are, if the file has row numbers.
        corpus_ids: The names of the documents, likewise.
        depth: The most candidates per query; all by default.
        unknown: What to do with a line of an unknown name: "raise", or "drop" (counted in `Run.dropped`).

    Returns:
        The candidates, and what was dropped.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "bm25.trec"
        >>> _ = path.write_text("q1 Q0 d2 1 0.5 bm25\nq1 Q0 d1 2 0.25 bm25\n")
        >>> read_run(path, ["q1"], ["d1", "d2"]).found.ids.tolist()
        [[1, 0]]
    """
    check_one_of("unknown", unknown, ("raise", "drop"))
    most = None if depth is None else check_whole("depth", depth, 1)
    queries, documents = _index("query_ids", query_ids), _index("corpus_ids", corpus_ids)
    dropped = Counter[str]()
    anchors, items, scores, kept_lines = array("q"), array("q"), array("f"), array("q")
    tag, lines = "", 0
    for number, fields in _lines(Path(path)):
        tag = tag or fields[5]
        lines += 1
        query, document = queries.get(fields[0]), documents.get(fields[2])
        if query is None or document is None:
            if unknown == "raise":
                _raise_unknown(*(("query_ids", fields[0]) if query is None else ("corpus_ids", fields[2])), number)
            dropped["unknown query" if query is None else "unknown document"] += 1
            continue
        anchors.append(query)
        items.append(document)
        scores.append(_score(fields[4], number))
        kept_lines.append(number)
    columns = (np.array(anchors, np.int64), np.array(items, np.int64), np.array(scores, np.float32))
    _check_once(*columns[:2], np.array(kept_lines, np.int64))
    found, below_depth = _ranked(*columns, len(queries), most)
    if below_depth:
        dropped["below depth"] = below_depth
    return Run(found, tag, lines, dict(dropped))


@public
def write_run(
    path: str | Path, found: Found, *, query_ids: Any = None, corpus_ids: Any = None, tag: str = "naysay"
) -> int:
    """Write candidates as a TREC run, ranked from 1 by score, then by row.

    Args:
        path: The file.
        found: The candidates of each query.
        query_ids: The names of the queries, without white space; row numbers by default.
        corpus_ids: The names of the documents, likewise.
        tag: The name of the run.

    Returns:
        The number of lines.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "run.trec"
        >>> write_run(path, Found(np.array([[1, 0]]), np.array([[0.5, 0.25]], np.float32)))
        2
        >>> print(path.read_text(), end="")
        0 Q0 1 1 0.5 naysay
        0 Q0 0 2 0.25 naysay
    """
    target = Path(path)
    check_target("path", target)
    queries = labels_of("query", len(found.ids), ids=query_ids)
    size = int(found.ids.max(initial=-1)) + 1 if corpus_ids is None else len(corpus_ids)
    corpus = labels_of("corpus", size, ids=corpus_ids)
    return write_lines(target, found.ids, found.scores, queries, corpus, tag)


def write_lines(target: Path, ids: Ids, scores: NDArray[np.float32], queries: Labels, corpus: Labels, tag: str) -> int:
    """Write the lines of a run, a block of queries at a time, by way of a draft; return their number."""
    for parameter, labels in (("query_ids", queries), ("corpus_ids", corpus)):
        check_fields(parameter, labels.name_blocks())
    check_fields("tag", [[tag]])
    count = 0
    with draft_of(target, "path") as draft, draft.open("w", buffering=1 << 20, encoding="utf-8", newline="") as stream:
        for start in range(0, len(ids), _BLOCK):
            block, block_scores = ids[start : start + _BLOCK], scores[start : start + _BLOCK]
            rows, places = np.nonzero(block >= 0)
            items, values = block[rows, places], block_scores[rows, places]
            order = np.lexsort((items, -values, rows))
            rows, items, values = rows[order], items[order], values[order]
            ranks = np.arange(len(rows)) - np.searchsorted(rows, rows) + 1
            columns = (
                queries.names(rows + start).to_pylist(),
                corpus.names(items).to_pylist(),
                ranks.tolist(),
                values.astype(np.str_).tolist(),  # the shortest decimals of a float32
            )
            stream.writelines(f"{query} Q0 {item} {rank} {score} {tag}\n"
                              for query, item, rank, score in zip(*columns, strict=True))  # fmt: skip
            count += len(rows)
    return count


def check_fields(parameter: str, blocks: Iterable[Sequence[str]]) -> None:
    """Raise for names that would be two fields, or none."""
    for row, name in enumerate(chain.from_iterable(blocks)):
        if not isinstance(name, str) or not name or _ASCII_SPACE.search(name):
            raise_invalid(parameter, "without white space, and not empty", f"{shown(name)} at row {row}")


def _index(parameter: str, names: Sequence[str] | Vocabulary | int) -> dict[str, int]:
    """{name: row}."""
    if isinstance(names, int | np.integer):
        return {str(row): row for row in range(check_whole(parameter, names, 0))}
    listed = strings(parameter, names)
    check_distinct(parameter, listed)
    return {name: row for row, name in enumerate(listed)}


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, six fields)."""
    for numbers, lines in line_blocks(path):
        for number, line in zip(numbers, lines, strict=True):
            fields = _ASCII_SPACE.split(line.strip(_SPACES))
            if len(fields) != 6:
                raise_invalid("path", _FIELDS, f"{len(fields)} fields in line {number}: {shown(line.rstrip())}")
            yield number, fields


def _raise_unknown(parameter: str, name: str, number: int) -> NoReturn:
    advice = "Pass 'drop' for `unknown` to leave such lines out."
    raise_invalid(parameter, "all the names in the run", f"no {shown(name)} in line {number}", advice)


def _score(text: str, number: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = nan
    if not abs(score) <= float(np.finfo(np.float32).max):
        raise_invalid("path", "a run with finite scores", f"{shown(text)} in line {number}")
    return score


def _check_once(anchors: Ids, items: Ids, lines: Ids) -> None:
    """Raise if a document occurs twice for one query."""
    order = np.lexsort((lines, items, anchors))
    is_again = (np.diff(anchors[order]) == 0) & (np.diff(items[order]) == 0)
    if is_again.any():
        first = int(lines[order[1:][is_again]].min())
        got = f"it again in line {first} ({is_again.sum()} such lines)"
        raise_invalid("path", "a run with a document once for each query", got)


def _ranked(anchors: Ids, items: Ids, scores: NDArray[np.float32], n: int, depth: int | None) -> tuple[Found, int]:
    """Return the candidates, score descending, id ascending; and how many were below `depth`."""
    order = np.lexsort((items, -scores, anchors))
    anchors, items, scores = anchors[order], items[order], scores[order]
    places = np.arange(len(anchors)) - np.searchsorted(anchors, anchors)
    width = int(places.max(initial=-1)) + 1 if depth is None else depth
    kept = places < width
    ids = np.full((n, width), -1, np.int64)
    ids[anchors[kept], places[kept]] = items[kept]
    values = np.full((n, width), -np.inf, np.float32)
    values[anchors[kept], places[kept]] = scores[kept]
    return Found(ids, values), int((~kept).sum())
