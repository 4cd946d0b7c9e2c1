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

from naysay.checks import check_one_of, refuse
from naysay.mining.formats.runs import check_fields
from naysay.mining.jobs.end import end
from naysay.mining.jobs.files import room
from naysay.mining.jobs.folder import FORMAT, begun, check_unfinished, digest, folder_of, opened
from naysay.mining.jobs.inputs import Side
from naysay.mining.jobs.numbers import MinedFile
from naysay.mining.jobs.options import read_bytes, read_count, read_judge, read_quotas, read_ranks
from naysay.mining.jobs.prepare import (
    Files,
    Ready,
    background_of,
    encoded,
    known_scores_of,
    line_of,
    read_tables,
    word_lists,
)
from naysay.mining.jobs.refusals import in_options
from naysay.mining.jobs.run import mine_parts
from naysay.mining.jobs.sizes import within
from naysay.mining.jobs.vectors import check_size, open_steady
from naysay.mining.jobs.write import check_output
from naysay.mining.select import HOW
from naysay.mining.task.indexed import check_approximate, with_index
from naysay.mining.task.requests import LEAST_DEPTH
from naysay.mining.task.task import task_of
from naysay.quantity.outputs import check_apart, check_page

_OWNER = "mine"
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

    pairs            .parquet, .jsonl, .csv or .tsv: an anchor and a positive a row; an anchor may have several
    corpus           the documents: ids, texts, or both. Positives are its ids, its texts, or its row numbers. Without
                     it the documents are the distinct positives, in the order of their first appearance
    queries          the anchors: the same. Without it they are the distinct anchors in the order of their appearance
    query_vectors, corpus_vectors   row i is query i and document i; or a model, a folder or an object with encode()
    columns          {option: column} for columns with other names than the usual ones: anchor_column, positive_column,
                     query_id_column, query_text_column, id_column, text_column, title_column
    budget           of memory above what the program takes for itself. Known pairs (some 40 bytes each, some 120 while
                     they are read) and k results for each anchor (12 bytes each, mapped) come on top; the index of
                     words of "bm25", and the texts that a model encodes, as well
    job              the folder that the job is kept in: by default one beside the output, which goes when it is done

    The others are the arguments of `mine` and of `write_negatives`, as a shell writes them. **The same bytes come out
    for any budget and number of threads, and after any number of kills**: a part of the anchors is mined at a time, and
    kept; `resume` goes on after the last part. Files that changed in between are refused. The rule and the notes are
    printed on standard error, and the numbers, one line, on standard output.
    """
    owner, out, errors = _OWNER, console or Console(), Console(stderr=True)
    count, size = read_count(owner, "-k", k), read_bytes(owner, "--budget", budget)
    make_judge = read_judge(owner, "--judge", judge)
    asked: dict[str, Any] = {
        "metric": metric,
        "seed": seed,
        "same_ids": same_ids,
        "depth": depth,
        "ranks": read_ranks(owner, "--ranks", ranks),
        "floor": floor,
        "select": select,
        "temperature": temperature,
        "balance": balance,
        "quotas": read_quotas(owner, "--quotas", quotas),
        "on_short": on_short,
        "most": most,
    }
    written = {"short": short, "corpus_path": corpus_path, "tag": tag}
    check_one_of(owner, "--select", select, [how for how in HOW if how != "groups"])  # which no option can give
    for source in sources:
        check_one_of(owner, "--source", source, ("bm25",))
    check_approximate(owner, approximate, min_recall)
    check_output(owner, output, format, written, with_scores=with_scores, texts=None)
    if report is not None:
        check_page(owner, "--report", report)
    if resume and fresh:
        refuse(owner, "--fresh", "left out with --resume", "both")
    paths = _vector_paths(query_vectors, corpus_vectors, model)
    files = Files(pairs, queries, corpus, ignore, **(columns or {}))
    tables = {"pairs": pairs, "--queries": queries, "--corpus": corpus, "--ignore": ignore}
    read: dict[str, Path] = {option: path for option, path in tables.items() if path is not None}
    read |= {f"--{name}-vectors": path for name, path in paths.items()}
    check_apart(owner, {"--output": output, "--report": report}, read)
    place = job if job is not None else folder_of(output)
    check_unfinished(owner, place, resume=resume, fresh=fresh)
    contents = {option: digest(owner, option, path) for option, path in read.items()}
    what = _what(contents, files, asked, {"-k": count, "--judge": judge, "--source": list(sources)}, model)
    what |= {"--approximate": approximate, "--min-recall": min_recall, "--format": format, "--with-scores": with_scores}
    what |= {f"--{name.replace('_', '-')}": value for name, value in written.items()}

    def unchanged() -> None:
        for option, was in contents.items():
            check_size(owner, option, read[option], was["bytes"])

    with opened(owner, place, what, resume=resume, fresh=fresh) as folder, _progress(errors) as progress:
        known, asking, held = read_tables(owner, folder, files, _sizes(paths), same_ids=same_ids)
        _check_texts(output, format, written, asking, held, with_scores=with_scores)
        if model is not None:
            paths = encoded(owner, folder, encoded_folder, _model(model), {"query": asking, "corpus": held})
        vectors = {name: open_steady(owner, f"--{name}-vectors", path) for name, path in paths.items()}
        lists = {}
        if sources:
            lists["bm25"] = word_lists(owner, folder, asking, held, known, LEAST_DEPTH if depth is None else depth)
        task = task_of(
            owner,
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
        task, rows = within(owner, task, size)
        scores, sample = known_scores_of(owner, folder, task), background_of(owner, folder, task)
        line = line_of(owner, task, make_judge, scores, sample, floor)
        with room(owner, folder / "index"):
            task, notes = with_index(owner, task, approximate, min_recall, folder / "index")
        ready = Ready(task, line, asking, held, scores, np.sort(sample.scores), notes)
        begun(folder)
        bar = progress.add_task("mining", total=task.queries.n)
        mine_parts(owner, folder, ready, rows, unchanged, partial(progress.advance, bar))
        bar = progress.add_task("writing", total=task.queries.n)
        found = end(
            owner,
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
            refuse(_OWNER, "--model", "left out where vectors are given", "both", "Pass one of them.")
        return {}
    if queries is None or corpus is None:
        got = (
            "--query-vectors alone"
            if queries is not None
            else "--corpus-vectors alone"
            if corpus is not None
            else "none"
        )
        refuse(_OWNER, "--model", "given, or --query-vectors and --corpus-vectors", got)
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
    found = {name: open_steady(_OWNER, f"--{name}-vectors", path).n for name, path in paths.items()}
    return found.get("query"), found.get("corpus")


def _model(model: Any) -> Any:
    """A model, loaded if it is a name."""
    if not isinstance(model, str | Path):
        return model
    from naysay.mining.encode.model import load_model

    return load_model(model)


def _check_texts(
    output: Path, format: str, options: Mapping[str, Any], queries: Side, corpus: Side, *, with_scores: bool
) -> None:
    """Refuse an output that needs texts that are not there, or that cannot hold them or the ids."""
    there = (queries.texts is not None, corpus.texts is not None)
    check_output(_OWNER, output, format, options, with_scores=with_scores, texts=there)
    utf8 = output.suffix.lower() in (".parquet", ".hf")
    for option, side in (("--queries", queries), ("--corpus", corpus)):
        if format == "trec" and side.ids is not None:
            check_fields(_OWNER, option, side.ids.blocks())
        for part, row in side.broken.items() if utf8 else ():
            advice = "Parquet holds UTF-8 only; .jsonl can escape what is broken."
            refuse(_OWNER, option, f"{part} that UTF-8 can hold", f"row {row}", advice)


def _progress(errors: Console) -> Progress:
    """A bar with the time left, on standard error, if that is a terminal."""
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*bar, console=errors, transient=True, disable=not errors.is_terminal)
