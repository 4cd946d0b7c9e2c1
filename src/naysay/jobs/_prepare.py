"""What a job does once, before its parts: reads pairs and texts, finds vectors, scores what is known.

Each step leaves a file in the job's folder, and is not done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.jobs._files import read_array, read_json, room, write_array, write_json
from naysay.jobs._folder import VECTORS, begun, digest
from naysay.jobs._inputs import Side, open_side, read_pairs, rows_in, strings_of, write_distinct, write_side
from naysay.jobs._options import MakeJudge
from naysay.mining import _requests as requests
from naysay.mining._auto import Background
from naysay.mining._known import known_of
from naysay.mining._pipeline import Task
from naysay.mining._threshold import Line, decide, floor_of, needs_sample, sample_of
from naysay.mining.bm25 import bm25
from naysay.mining.judge import lines_of
from naysay.positives import Positives
from naysay.search._pair_scores import lowest_of, pair_scores
from naysay.types import Query

Sizes = tuple[int | None, int | None]


@final
@dataclass(frozen=True, slots=True)
class Files:
    """The tables of a job, and which of their columns are meant; "" is the usual name.

    Args:
        pairs: Pairs of anchor and positive, and of anchor and what to leave alone.
        ignore: Pairs of anchor and positive, and of anchor and what to leave alone.
        queries: What anchors and documents are called and say.
        corpus: What anchors and documents are called and say.
    """

    pairs: Path
    queries: Path | None
    corpus: Path | None
    ignore: Path | None
    anchor_column: str = ""
    positive_column: str = ""
    query_id_column: str = ""
    query_text_column: str = ""
    id_column: str = ""
    text_column: str = ""
    title_column: str = ""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A job that can be mined: everything that its parts share.

    Args:
        queries: What anchors and documents are called.
        corpus: What anchors and documents are called.
        known_scores: Of all known pairs.
        background: Scores of random pairs, ascending.
        notes: What to know about it so far.
    """

    task: Task
    line: Line
    queries: Side
    corpus: Side
    known_scores: NDArray[np.float32]
    background: NDArray[np.float32]
    notes: tuple[str, ...]


def read_tables(folder: Path, files: Files, sizes: Sizes, *, same_ids: bool) -> tuple[Positives, Side, Side]:
    """What is known, the queries and the documents; read once, then from the folder.

    Args:
        sizes: How many vectors there are of queries and of documents, None where they are yet to be made.
    """
    done = folder / "read.json"
    state = read_json(done)
    if state is None:
        state = _read(folder, files, sizes, same_ids=same_ids)
        write_json(done, state)
    known = Positives.load(folder / "known")
    sides = [open_side(folder, name, state[name]["n"], state[name]["broken"]) for name in ("query", "corpus")]
    return known, sides[0], sides[1]


def _read(folder: Path, files: Files, sizes: Sizes, *, same_ids: bool) -> dict[str, Any]:
    given = [("pairs", files.pairs)] + ([("--ignore", files.ignore)] if files.ignore is not None else [])
    columns = [read_pairs(option, path, files.anchor_column, files.positive_column) for option, path in given]
    named = (
        ("query", "--queries", files.queries, (files.query_id_column, files.query_text_column, "")),
        ("corpus", "--corpus", files.corpus, (files.id_column, files.text_column, files.title_column)),
    )
    state: dict[str, Any] = {}
    rows: list[list[Any]] = []
    for place, (name, option, path, wanted) in enumerate(named):
        size, column = sizes[place], columns[0][place]
        broken: dict[str, int] = {}
        if path is not None:
            broken = write_side(option, path, folder, name, *wanted)
        elif column.numbers is None:
            broken = write_distinct(column, folder, name)
        elif size is None:
            raise_invalid(option, "given where pairs hold row numbers and --model is to encode texts", "none")
        side = open_side(folder, name, size or 0, broken)
        what = "queries" if name == "query" else "documents"
        if size is not None and size != side.n:
            source = f"the {side.n:,} {what}" + (f" of {str(path)!r}" if path is not None else " that the pairs name")
            raise_invalid(f"--{name}-vectors", f"a vector for each of {source}", f"{size:,} vectors")
        rows.append([rows_in(pair[place], side, what) for pair in columns])
        state[name] = {"n": side.n, "broken": broken}
    positives, *ignored = zip(*rows, strict=True)
    known = known_of(
        positives, ignored[0] if ignored else None, state["query"]["n"], state["corpus"]["n"], same_ids=same_ids
    )
    with room(folder / "known", lambda: known.nbytes):
        known.save(folder / "known")
    return state


def encoded(folder: Path, keep: Path | None, model: Any, sides: Mapping[str, Side]) -> dict[str, Path]:
    """The vectors of queries and documents by a model, a file each; other ones than the job began with are refused."""
    from naysay.encode.texts import encode_texts

    paths, place = {}, keep if keep is not None else folder / VECTORS
    for name, side in sides.items():
        if side.texts is None:
            raise_invalid("--model", f"given where the {name} has texts", "ids alone")
    begun(folder)
    for name, side in sides.items():
        with room(place):
            paths[name] = Path(encode_texts(model, strings_of(side.texts), folder=place))
    made = {name: digest("--model", path)["sha256"] for name, path in paths.items()}
    before = read_json(folder / "encoded.json")
    if before is not None and before != made:
        advice = "Put the model back, or start anew with --fresh."
        raise_invalid("--resume", "given with the model that the job began with", "other vectors", advice)
    write_json(folder / "encoded.json", made)
    return paths


def word_lists(folder: Path, queries: Side, corpus: Side, known: Positives, depth: int) -> NDArray[Any]:
    """(n, depth) the best documents by BM25, made once. Its index of all words is in memory while it is made."""
    path = folder / "bm25.npy"
    if not path.is_file():
        for name, side in (("--queries", queries), ("--corpus", corpus)):
            if side.texts is None:
                raise_invalid(name, "a file with texts for --source bm25", "none")
        texts, others = strings_of(queries.texts), strings_of(corpus.texts)
        plain = Positives(known.indptr, known.indices, known.n_items, filter=known.filter)
        write_array(path, bm25(texts, others, depth, exclude=plain).ids.astype(np.int32))
    found: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return found


def known_scores_of(folder: Path, task: Task) -> NDArray[np.float32]:
    """The scores of all known pairs; before they are scored, all vectors are looked at."""
    path = folder / "known_scores.npy"
    if not path.is_file():
        requests.check_numbers(task.queries, task.corpus, task.metric, task.threads)
        whose, which = task.known.pairs()
        write_array(path, pair_scores(task.queries, task.corpus, whose, which, task.metric))
    return read_array(path)


def background_of(folder: Path, task: Task) -> Background:
    """The scores of random pairs: what hardness is measured by, and where a line by shares is drawn."""
    path, about = folder / "background.npy", folder / "background.json"
    if not about.is_file():
        sample = sample_of(task)
        write_array(path, sample.scores)
        write_json(about, {"n_positives": sample.n_positives, "whole": sample.whole})
    return Background(read_array(path), **read_json(about))


def line_of(
    task: Task, make_judge: MakeJudge, scores: NDArray[np.float32], sample: Background, floor: float | None
) -> Line:
    """The judge and the floor of the job, by the scores of what is known and of random pairs."""
    positive, auto_k = task.kinds["positive"], task.counts is None
    judge = make_judge(lowest_of(task.known.pairs()[0][positive], scores[positive], task.queries.n))
    one = scores[task.held_out()]
    if not needs_sample(judge, one, floor, auto_k=auto_k, rescored=False):
        low = floor_of(judge, floor, None, auto_k=auto_k)
        detector, rule = decide(judge, one, None)
    else:
        low = floor_of(judge, floor, sample, auto_k=auto_k)
        detector, rule = decide(judge, one, sample)
    if detector is not None:
        lines_of(detector, Query(np.arange(task.queries.n)))  # an anchor without a line is refused before the search
    return Line(detector, rule, low)
