"""The command `naysay mine`: files in, a training file out, as a job that can be stopped at any moment and resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from naysay.checks import check_one_of, raise_invalid
from naysay.files import check_apart, check_page
from naysay.formats.runs import check_fields
from naysay.jobs._files import room
from naysay.jobs._finalize import end
from naysay.jobs._folder import FORMAT, begun, check_unfinished, digest, folder_of, opened
from naysay.jobs._inputs import Side
from naysay.jobs._memory_budget import within
from naysay.jobs._option_names import in_options
from naysay.jobs._options import read_bytes, read_count, read_judge, read_quotas, read_ranks
from naysay.jobs._prepare import (
    Files,
    Ready,
    background_of,
    encoded,
    known_scores_of,
    line_of,
    read_tables,
    word_lists,
)
from naysay.jobs._run import mine_parts
from naysay.jobs._summary import MinedFile
from naysay.jobs._vectors import check_size, open_steady
from naysay.jobs._write import check_output
from naysay.mining._indexed import check_approximate, with_index
from naysay.mining._pipeline import task_of
from naysay.mining._requests import LEAST_DEPTH
from naysay.mining.select import HOW

STOPPED = "stopped; run again with --resume"


@in_options()
def mine_files(
    pairs: Path,
    *,
    output: Path,
    k: str = "8",
    corpus: Path | None = None,
    queries: Path | None = None,
    query_vectors: Path | None = None,
    corpus_vectors: Path | None = None,
    model: Any = None,
    encoded_folder: Path | None = None,
    ignore: Path | None = None,
    same_ids: bool = False,
    sources: Sequence[str] = (),
    report: Path | None = None,
    budget: str = "2GB",
    threads: int | None = None,
    resume: bool = False,
    fresh: bool = False,
    job: Path | None = None,
    format: str = "triplet",
    with_scores: bool = False,
    short: str | None = None,
    corpus_path: str | None = None,
    tag: str | None = None,
    metric: str = "cosine",
    judge: str = "auto",
    select: str = "top",
    temperature: float | None = None,
    balance: float | None = None,
    depth: int | None = None,
    ranks: str = "",
    floor: float | None = None,
    quotas: str = "",
    on_short: str = "pad",
    most: int = 32,
    seed: int = 0,
    approximate: str | None = None,
    min_recall: float = 0.9,
    columns: Mapping[str, str] | None = None,
    console: Console | None = None,
) -> MinedFile:
    """Mine negatives for the anchors of a file of pairs, and write a training file.

    The others are the arguments of `mine` and of `write_negatives`, as a shell writes them. **The same bytes come out
    for any budget and number of threads, and after any number of kills**: a part of the anchors is mined at a time, and
    kept; `resume` goes on after the last part. Files that changed in between are refused. The rule and the notes are
    printed on standard error, and the numbers, one line, on standard output.

    Args:
        pairs: .parquet, .jsonl, .csv or .tsv: an anchor and a positive a row; an anchor may have several.
        corpus: The documents: ids, texts, or both. Positives are its ids, its texts, or its row numbers. Without it
            the documents are the distinct positives, in the order of their first appearance.
        queries: The anchors: the same. Without it they are the distinct anchors in the order of their appearance.
        query_vectors: Row i is query i and document i; or a model, a folder or an object with encode().
        corpus_vectors: Row i is query i and document i; or a model, a folder or an object with encode().
        columns: {option: column} for columns with other names than the usual ones: anchor_column, positive_column,
            query_id_column, query_text_column, id_column, text_column, title_column.
        budget: Of memory above what the program takes for itself. Known pairs (some 40 bytes each, some 120 while
            they are read) and k results for each anchor (12 bytes each, mapped) come on top; the index of words of
            "bm25", and the texts that a model encodes, as well.
        job: The folder that the job is kept in: by default one beside the output, which goes when it is done.
    """
    out, errors = console or Console(), Console(stderr=True)
    count, size = read_count("-k", k), read_bytes("--budget", budget)
    make_judge = read_judge("--judge", judge)
    asked: dict[str, Any] = {
        "metric": metric,
        "seed": seed,
        "same_ids": same_ids,
        "depth": depth,
        "ranks": read_ranks("--ranks", ranks),
        "floor": floor,
        "select": select,
        "temperature": temperature,
        "balance": balance,
        "quotas": read_quotas("--quotas", quotas),
        "on_short": on_short,
        "most": most,
    }
    written = {"short": short, "corpus_path": corpus_path, "tag": tag}
    check_one_of("--select", select, [how for how in HOW if how != "groups"])  # which no option can give
    for source in sources:
        check_one_of("--source", source, ("bm25",))
    check_approximate(approximate, min_recall)
    check_output(output, format, written, with_scores=with_scores, texts=None)
    if report is not None:
        check_page("--report", report)
    if resume and fresh:
        raise_invalid("--fresh", "left out with --resume", "both")
    paths = _vector_paths(query_vectors, corpus_vectors, model)
    files = Files(pairs, queries, corpus, ignore, **(columns or {}))
    tables = {"pairs": pairs, "--queries": queries, "--corpus": corpus, "--ignore": ignore}
    read: dict[str, Path] = {option: path for option, path in tables.items() if path is not None}
    read |= {f"--{name}-vectors": path for name, path in paths.items()}
    check_apart({"--output": output, "--report": report}, read)
    place = job if job is not None else folder_of(output)
    check_unfinished(place, resume=resume, fresh=fresh)
    contents = {option: digest(option, path) for option, path in read.items()}
    what = _what(contents, files, asked, {"-k": count, "--judge": judge, "--source": list(sources)}, model)
    what |= {"--approximate": approximate, "--min-recall": min_recall, "--format": format, "--with-scores": with_scores}
    what |= {f"--{name.replace('_', '-')}": value for name, value in written.items()}

    def unchanged() -> None:
        for option, was in contents.items():
            check_size(option, read[option], was["bytes"])

    with opened(place, what, resume=resume, fresh=fresh) as folder, _progress(errors) as progress:
        known, asking, held = read_tables(folder, files, _sizes(paths), same_ids=same_ids)
        _check_texts(output, format, written, asking, held, with_scores=with_scores)
        if model is not None:
            paths = encoded(folder, encoded_folder, _model(model), {"query": asking, "corpus": held})
        vectors = {name: open_steady(f"--{name}-vectors", path) for name, path in paths.items()}
        lists = {}
        if sources:
            lists["bm25"] = word_lists(folder, asking, held, known, LEAST_DEPTH if depth is None else depth)
        task = task_of(
            vectors["query"],
            vectors["corpus"],
            known,
            count,
            lists,
            judge=make_judge(np.ones(max(1, asking.n), np.float32)),
            budget=None,
            threads=threads,
            **asked,
        )
        task, rows = within(task, size)
        scores, sample = known_scores_of(folder, task), background_of(folder, task)
        line = line_of(task, make_judge, scores, sample, floor)
        with room(folder / "index"):
            task, notes = with_index(task, approximate, min_recall, folder / "index")
        ready = Ready(task, line, asking, held, scores, np.sort(sample.scores), notes)
        begun(folder)
        bar = progress.add_task("mining", total=task.queries.n)
        mine_parts(folder, ready, rows, unchanged, partial(progress.advance, bar))
        bar = progress.add_task("writing", total=task.queries.n)
        found = end(
            folder,
            ready,
            output,
            format,
            written,
            with_scores=with_scores,
            report=report,
            title=f"Negatives of {pairs.name}",
            provenance=what,
            wrote=partial(progress.advance, bar),
        )
    for sentence in (found.rule, *found.notes):
        errors.print(sentence, markup=False, highlight=False, soft_wrap=True)
    out.print(str(found), markup=False, highlight=False, soft_wrap=True)
    return found


def _vector_paths(queries: Path | None, corpus: Path | None, model: Any) -> dict[str, Path]:
    """Where vectors are: both files, or none of them and a model."""
    if model is not None:
        if queries is not None or corpus is not None:
            raise_invalid("--model", "left out where vectors are given", "both", "Pass one of them.")
        return {}
    if queries is None or corpus is None:
        got = (
            "--query-vectors alone"
            if queries is not None
            else "--corpus-vectors alone"
            if corpus is not None
            else "none"
        )
        raise_invalid("--model", "given, or --query-vectors and --corpus-vectors", got)
    return {"query": queries, "corpus": corpus}


def _what(
    contents: Mapping[str, Any], files: Files, asked: Mapping[str, Any], rest: Mapping[str, Any], model: Any
) -> dict[str, Any]:
    """All that decides the result of a job, under the names that a user knows."""
    versions = {"naysay": version("naysay"), "numpy": np.__version__, "job format": FORMAT}
    what: dict[str, Any] = {**versions, **contents}
    columns = {name: value for name, value in asdict(files).items() if name.endswith("_column")}
    for name, value in {**columns, **asked}.items():
        what[f"--{name.replace('_', '-')}"] = value
    named = str(model) if isinstance(model, str | Path) else None if model is None else type(model).__name__
    return what | dict(rest) | {"--model": named}


def _sizes(paths: Mapping[str, Path]) -> tuple[int | None, int | None]:
    """How many vectors there are of queries and documents."""
    found = {name: open_steady(f"--{name}-vectors", path).n for name, path in paths.items()}
    return found.get("query"), found.get("corpus")


def _model(model: Any) -> Any:
    """A model, loaded if it is a name."""
    if not isinstance(model, str | Path):
        return model
    from naysay.encode.model import load_model

    return load_model(model)


def _check_texts(
    output: Path, format: str, options: Mapping[str, Any], queries: Side, corpus: Side, *, with_scores: bool
) -> None:
    """Refuse an output that needs texts that are not there, or that cannot hold them or the ids."""
    there = (queries.texts is not None, corpus.texts is not None)
    check_output(output, format, options, with_scores=with_scores, texts=there)
    utf8 = output.suffix.lower() in (".parquet", ".hf")
    for option, side in (("--queries", queries), ("--corpus", corpus)):
        if format == "trec" and side.ids is not None:
            check_fields(option, side.ids.blocks())
        for part, row in side.broken.items() if utf8 else ():
            advice = "Parquet holds UTF-8 only; .jsonl can escape what is broken."
            raise_invalid(option, f"{part} that UTF-8 can hold", f"row {row}", advice)


def _progress(errors: Console) -> Progress:
    """A bar with the time left, on standard error, if that is a terminal."""
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*bar, console=errors, transient=True, disable=not errors.is_terminal)
