"""From files to a problem that can be mined: tables, vectors, known scores, background, index and fit.

Each step is done once and kept in the folder of the job, so that a job that is resumed goes on with the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._options import command_fields, flag_of
from naysay.checks import raise_invalid, with_option_names
from naysay.detectors.by_reviewer import check_reviewers
from naysay.jobs import tables
from naysay.jobs.folder import COPY, INDEX, VECTORS, JobFolder, disk_errors
from naysay.jobs.options import JobOptions
from naysay.jobs.tables import PairColumn, Side
from naysay.mining.auto import choose_judge, fit_bytes, fit_posterior, unfitted
from naysay.mining.bm25 import bm25
from naysay.mining.fit import FitLists, FittedPosterior
from naysay.mining.judge import Judge
from naysay.mining.options import MiningOptions
from naysay.mining.problem import (
    SELECT_DEPTH,
    Background,
    Problem,
    checked_problem,
    known_pairs,
    with_index,
)
from naysay.mining.reviewing import choose_reviewed_judge, review, review_of_state, review_state
from naysay.places import Remote, copy_of, fetch
from naysay.positives import Positives
from naysay.search._scan import open_pairs
from naysay.search.vectors import as_vectors
from naysay.tables import check_memory

if TYPE_CHECKING:
    from naysay.jobs.on_ray import Cluster

# Bytes of memory. They were measured, with some room.
_SLOT_BYTES = 200  # of a candidate while the stages sort and judge it
_DEEP_SLOT_BYTES = 120  # of a candidate of a deeper search
_FIXED_BYTES = 112 << 20  # blocks of vectors and texts, and what the libraries take for themselves
_LEAST_BYTES = 152 << 20
MIN_PART_ROWS = 4096  # anchors of a part: each part reads the corpus again
MIN_PARTS = 16  # of a large job, so that a kill loses little
_REVIEW_COMMAND = "naysay mine ... --reviewer KIND --review 100"
_KNOWN_ARRAYS = ("indptr", "indices", "filter", "relation")


# ---- inputs in a store ---------------------------------------------------------------------------------------------


def version_of(remote: Remote) -> dict[str, Any]:
    """What the record of a job has of an input in a store: its size, and what changes when it is replaced."""
    versions = "\n".join(f"{path} {version}" for path, _, version in remote.files)
    return {"bytes": remote.size, "version": hashlib.sha256(versions.encode()).hexdigest()}


def with_copies(
    folder: JobFolder, job: JobOptions, remotes: Mapping[str, Remote], log: Callable[[str], None]
) -> tuple[JobOptions, dict[str, str]]:
    """The options with paths of copies in place of URLs, and {copy: what it is a copy of}. Each is made once."""
    paths: dict[str, Any] = {}
    names: dict[str, str] = {}
    fields_of_flags = {flag_of(one): one.name for one in command_fields(job)}
    for option, remote in remotes.items():
        stem = option.strip("-")
        step = f"copy of {option}"
        place = folder.path / f"{stem}{COPY}"
        copy = copy_of(remote, place, stem)
        if step not in folder.steps:
            log(f"{remote.url}: {remote.size:,} bytes are copied to {place}.")
            place.mkdir(exist_ok=True)
            fetch(option, remote, place, stem)
            folder.finish(step, remote.size)
        paths[fields_of_flags[option]] = copy.path
        names |= copy.names
    return replace(job, **paths), names


# ---- tables ---------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What a job read."""

    known: Positives  # pairs that are never negatives
    itself: Positives | None  # the anchors themselves in the corpus, by id or text
    same_text: NDArray[np.int64]  # anchors whose own text is in the corpus
    queries: Side
    corpus: Side


def read_tables(folder: JobFolder, job: JobOptions, *, keep_own_text: bool) -> Tables:
    """Return what is known, the queries and the documents; read once, then from the folder."""
    if not {*folder.steps.get("tables", {"files": [""]})["files"]} <= folder.files.keys():
        folder.finish("tables", _read_tables(folder, job, keep_own_text=keep_own_text))
    step = folder.steps["tables"]
    queries = tables.open_side(folder, "query", **step["query"])
    corpus = tables.open_side(folder, "corpus", **step["corpus"])
    arrays = folder.arrays("known.npz")
    known_arrays: dict[str, Any] = {name: arrays[name] for name in _KNOWN_ARRAYS if name in arrays}
    known = Positives(**known_arrays, n_items=corpus.n, duplicates=step["duplicates"])
    anchors, items = arrays["itself"]
    itself = Positives.from_pairs(anchors, items, queries.n, corpus.n) if len(anchors) else None
    return Tables(known, itself, arrays["same_text"], queries, corpus)


def _read_tables(folder: JobFolder, job: JobOptions, *, keep_own_text: bool) -> dict[str, Any]:
    pair_files = [("pairs", job.pairs), ("--ignore", job.ignore)]
    for option, path in (*pair_files, ("--queries", job.queries), ("--corpus", job.corpus)):
        if isinstance(path, Path):
            check_memory(option, path, job.budget)
    columns = [
        tables.read_pairs(option, path, job.anchor_column, job.positive_column)
        for option, path in pair_files
        if isinstance(path, Path)
    ]
    query_columns = (job.query_id_column, job.query_text_column, "")
    corpus_columns = (job.id_column, job.text_column, job.title_column)
    queries = _side(folder, job, "query", job.queries, query_columns, columns[0][0])
    corpus = _side(folder, job, "corpus", job.corpus, corpus_columns, columns[0][1])
    pairs = [
        (tables.rows_in(anchors, queries, "queries"), tables.rows_in(items, corpus, "documents"))
        for anchors, items in columns
    ]
    itself: tuple[Any, Any] = ([], [])
    if job.same_ids:
        itself = tables.same_id_pairs(queries, corpus)
    same_ids = Positives.from_pairs(*itself, queries.n, corpus.n) if len(itself[0]) else None
    ignored = pairs[1] if len(pairs) > 1 else None
    known = known_pairs(pairs[0], ignored, same_ids, queries.n, corpus.n)
    anchors, items = tables.same_text_pairs(queries, corpus) if not keep_own_text else tables.NO_PAIRS
    is_new = ~known.contains(anchors, items, relation="any")
    anchors, items = anchors[is_new], items[is_new]
    if len(anchors):
        known = known.with_ignored(anchors, items)
    arrays = {name: getattr(known, name) for name in _KNOWN_ARRAYS if getattr(known, name) is not None}
    arrays["itself"] = np.concatenate([np.array(itself, np.int64).reshape(2, -1), [anchors, items]], axis=1)
    arrays["same_text"] = np.unique(anchors)
    folder.write_arrays("known.npz", arrays)
    sides = {"query": queries, "corpus": corpus}
    return {name: {"n": side.n, "named": side.named} for name, side in sides.items()} | {
        "duplicates": known.duplicates,
        "files": list(folder.files),
    }


def _side(
    folder: JobFolder, job: JobOptions, name: str, path: Any, columns: tuple[str, str, str], named: PairColumn
) -> Side:
    """The queries or the documents: of a file, else the distinct values of the pairs, else as many as vectors."""
    option = "--queries" if name == "query" else "--corpus"
    vectors = job.vector_files.get(name)
    n_vectors = None if vectors is None else as_vectors(f"--{name}-vectors", vectors).n
    has_names = path is None and named.numbers is None
    if isinstance(path, Path):
        tables.write_side(option, path, folder, name, *columns)
    elif has_names:
        tables.write_distinct(named, folder, name)
    elif n_vectors is None:
        raise_invalid(option, "given where pairs hold row numbers and --model is to encode texts", "none")
    side = tables.open_side(folder, name, n_vectors or 0, named=has_names)
    if n_vectors is not None and n_vectors != side.n:
        what = "queries" if name == "query" else "documents"
        source = f"of {str(path)!r}" if path is not None else "that the pairs name"
        rule = f"a vector for each of the {side.n:,} {what} {source}"
        raise_invalid(f"--{name}-vectors", rule, f"{n_vectors:,} vectors")
    return side


# ---- the problem ----------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A job that can be mined: everything that its parts share."""

    problem: Problem
    judge: Judge
    tables: Tables
    background: NDArray[np.float32]  # scores of random pairs, ascending
    part_rows: int  # anchors that are mined at a time

    @property
    def fitted(self) -> FittedPosterior:
        """What false negatives are estimated by, whatever the judge."""
        if self.judge.fitted is None:
            raise ValueError
        return self.judge.fitted


def prepare(
    folder: JobFolder, job: JobOptions, options: MiningOptions, job_tables: Tables, cluster: Cluster | None
) -> Ready:
    """Find the vectors, check everything, and decide what is suspected.

    Workers of the cluster, if there is one, read the corpus in place of this process.
    """
    files = job.vector_files
    if job.model is not None:
        files = _encoded(folder, job, job_tables, cluster)
    queries = as_vectors("--query-vectors", files["query"])
    corpus = as_vectors("--corpus-vectors", files["corpus"])
    sources = {}
    if job.source:
        sources["bm25"] = _bm25_lists(folder, job_tables, options.depth or SELECT_DEPTH)
    problem = checked_problem(queries, corpus, job_tables.known, job_tables.itself, job.k, sources, options)
    problem = replace(problem, review_command=_REVIEW_COMMAND)
    problem, part_rows = within_budget(problem, job.budget, parts_at_once=1 if cluster is None else 2)
    if cluster is None:
        problem = problem.with_exact_search()
    else:
        problem = replace(problem, searcher=cluster.corpus(files["corpus"], queries, corpus, problem.options))
    problem = problem.with_known_scores(folder.array("known_scores.npy", problem.score_known, mmap=False))
    problem = replace(problem, drawn_background=_background(folder, problem))
    if options.approximate is not None:
        index = folder.path / INDEX
        with disk_errors(index), with_option_names("mine", {"path": "--approximate"}):
            problem = with_index(problem, index)
    texts = job_tables.queries.texts, job_tables.corpus.texts
    problem = replace(problem, texts=texts, names=(job_tables.queries.ids, job_tables.corpus.ids))
    if options.reviewer is not None:
        check_reviewers(problem.reviewers, has_texts=None not in texts)
    fitted = _fit(folder, problem)
    if options.reviewer is None:
        judge = choose_judge(problem, fitted)
    else:
        state = folder.arrays("review.npz", lambda: review_state(review(problem, fitted)))  # it is done once
        judge = choose_reviewed_judge(problem, fitted, review_of_state(state))
    return Ready(problem, judge, job_tables, np.sort(problem.background.scores), part_rows)


def within_budget(problem: Problem, budget: int, parts_at_once: int) -> tuple[Problem, int]:
    """Return the problem with its share of the memory, and how many anchors to mine at a time.

    The search comes before the other stages, so each may have nearly all of it. The result is the same for any budget.
    """
    depth = problem.first_depth
    slots = depth + sum(ids.shape[1] for ids in problem.sources.values()) + problem.largest_k
    n_open = open_pairs(problem.corpus, depth)  # pairs of a query that a search scores exactly
    search_row_bytes = 12 * (depth + n_open) + 24 * problem.corpus.width + 96
    row_bytes = max(slots * _SLOT_BYTES, search_row_bytes)
    scored_bytes = 2 * 24 * n_open * problem.corpus.width
    needed = max(_LEAST_BYTES, _FIXED_BYTES + scored_bytes + row_bytes, _FIXED_BYTES * 3 // 4 + fit_bytes(problem))
    if budget < needed:
        raise_invalid("--budget", f"at least {-(-needed // 1_000_000)}MB for this job", f"{budget / 1e6:g}MB")
    free_bytes = budget - _FIXED_BYTES
    rows_that_fit = max(1, int(0.7 * free_bytes) // row_bytes // parts_at_once)
    rows_wanted = max(MIN_PART_ROWS, -(-problem.queries.n // MIN_PARTS))
    options = replace(problem.options, budget=int(0.9 * free_bytes))
    deep_slots = max(depth, int(0.4 * free_bytes) // _DEEP_SLOT_BYTES)
    block_slots = min(problem.block_slots, deep_slots)
    return replace(problem, options=options, block_slots=block_slots), min(rows_wanted, rows_that_fit)


def _encoded(folder: JobFolder, job: JobOptions, job_tables: Tables, cluster: Cluster | None) -> dict[str, Path]:
    """Encode queries and documents, a file each; raise if the vectors are not those that the job began with."""
    from naysay.encode.model import load_model
    from naysay.encode.texts import encode_texts

    sides = {"query": job_tables.queries, "corpus": job_tables.corpus}
    prompts = {"query": job.query_prompt, "corpus": job.corpus_prompt}
    for name, side in sides.items():
        if side.texts is None:
            raise_invalid("--model", f"given where the {name} has texts", "ids alone")
    model = load_model(job.model, device=job.device) if isinstance(job.model, str | Path) else job.model
    vectors_folder = job.encoded if isinstance(job.encoded, Path) else folder.path / VECTORS
    files: dict[str, Path] = {}
    with nullcontext() if cluster is None else cluster.encoding() as each:
        for name, side in sides.items():
            names = {"texts": "--queries" if name == "query" else "--corpus", "folder": "--encoded"}
            with disk_errors(vectors_folder), with_option_names("mine", names):
                files[name] = encode_texts(
                    model,
                    side.texts.column if side.texts is not None else [],
                    folder=vectors_folder,
                    batch_size=job.batch_size,
                    prompt=prompts[name] or None,
                    each=each,
                )
    digests = {name: folder.inputs.watch(f"--{name}-vectors", path)["sha256"] for name, path in files.items()}
    if folder.steps.get("encoded", digests) != digests:
        advice = "Put the model back, or start again with --fresh."
        raise_invalid("--resume", "given with the model that the job began with", "other vectors", advice)
    folder.finish("encoded", digests)
    return files


def _bm25_lists(folder: JobFolder, job_tables: Tables, depth: int) -> NDArray[Any]:
    """(n, depth) the best documents by BM25, computed once. Its index of all words is in memory meanwhile."""

    def lists() -> NDArray[np.int32]:
        texts = []
        for option, side in (("--queries", job_tables.queries), ("--corpus", job_tables.corpus)):
            if side.texts is None:
                raise_invalid(option, "a file with texts for --source bm25", "none")
            texts.append(side.texts.column)
        known = job_tables.known
        without_relation = Positives(known.indptr, known.indices, known.n_items, filter=known.filter)
        return bm25(texts[0], texts[1], depth, exclude=without_relation).ids.astype(np.int32)

    return folder.array("bm25.npy", lists)


def _background(folder: JobFolder, problem: Problem) -> Background:
    """The scores of random pairs, which hardness is measured by, and a threshold by shares."""

    def draw() -> dict[str, NDArray[Any]]:
        drawn = problem.background
        about = {"n_positives": np.asarray(drawn.n_positives), "whole": np.asarray(drawn.whole)}
        return {"scores": drawn.scores, **about}

    kept = folder.arrays("background.npz", draw)
    return Background(kept["scores"], int(kept["n_positives"]), bool(kept["whole"]))


def _fit(folder: JobFolder, problem: Problem) -> FittedPosterior:
    """The posterior of the job and its lists: fitted once, then restored, so that all parts have the same."""
    names = [each.name for each in fields(FitLists)]
    prefix = "posterior/"

    def fit() -> dict[str, NDArray[Any]]:
        done = fit_posterior(problem)
        state = {f"{prefix}{name}": np.asarray(value) for name, value in done.posterior.state().items()}
        return state | {name: getattr(done.lists, name) for name in names}

    kept = folder.arrays("fit.npz", fit)
    posterior = unfitted(problem)
    posterior.restore({name.removeprefix(prefix): kept[name] for name in kept if name.startswith(prefix)})
    return FittedPosterior(posterior, FitLists(**{name: kept[name] for name in names}))
