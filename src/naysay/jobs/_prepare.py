"""What a job does once, before its parts: read tables, find vectors, score known and random pairs.

Each step leaves a file in the job's folder, and is not done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, with_option_names
from naysay.formats._table_files import check_memory
from naysay.jobs._folder import INDEX, VECTORS, JobFolder
from naysay.jobs._guards import disk_errors, raise_damaged
from naysay.jobs._inputs import (
    Side,
    open_side,
    own_by_id,
    own_by_text,
    read_pairs,
    reading,
    rows_in,
    strings_of,
    write_distinct,
    write_side,
)
from naysay.jobs._ray import Cluster, encoding, sharded
from naysay.jobs._review import as_record as pairs_record
from naysay.jobs.options import JobOptions
from naysay.mining.auto import Fit, FitLists, choose_judge, fit_bytes, fit_posterior, unfitted
from naysay.mining.bm25 import bm25
from naysay.mining.judge import Judge
from naysay.mining.options import MiningOptions
from naysay.mining.problem import (
    SELECT_DEPTH,
    Background,
    Problem,
    checked_problem,
    exact_search,
    known_pairs,
    with_index,
)
from naysay.mining.review import drawn_pairs
from naysay.positives import Positives
from naysay.search._plan import open_pairs
from naysay.search.vectors import Vectors, as_vectors

_KNOWN = ("indptr", "indices", "filter", "relation")  # arrays of known pairs
_SLOT = 200  # bytes of a candidate while the stages sort and judge it
_DEEP = 120  # bytes of a candidate of a deeper search
_FIXED = 112 << 20  # blocks of vectors and texts, and what the libraries take for themselves
_SMALLEST = 152 << 20
PARTS_ON_WORKERS = 2  # parts at a time, so that workers search for one while another is judged here
_ROWS, _PARTS = 4096, 16  # the fewest anchors of a part, and the fewest parts of a large job, if the budget allows both


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What a job read: known pairs, the anchors themselves in the corpus, the queries and the documents."""

    known: Positives
    own: Positives | None
    by_text: NDArray[np.int64]  # anchors whose own text is left out
    queries: Side
    corpus: Side


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A job that can be mined: everything that its parts share."""

    problem: Problem
    judge: Judge  # its `fit` is what false negatives are estimated by, whatever the judge
    queries: Side
    corpus: Side
    background: NDArray[np.float32]  # scores of random pairs, ascending
    size: int  # how many anchors to mine at a time
    own_text: NDArray[np.int64]  # anchors that have their own text in the corpus, which is left out

    @property
    def fit(self) -> Fit:
        """The posterior and its lists."""
        fit: Any = self.judge.fit  # a job always has one
        return cast(Fit, fit)


def prepare(
    folder: JobFolder, job: JobOptions, options: MiningOptions, tables: Tables, cluster: Cluster | None = None
) -> Ready:
    """Find the vectors, check everything, and decide the threshold, for what `read_tables` returned.

    Workers of the cluster, if there is one, read the corpus in place of this process.
    """
    paths, queries, corpus = job.vector_files, tables.queries, tables.corpus
    if job.model is not None:
        paths = _encoded(folder, job, {"query": queries, "corpus": corpus}, cluster)
    vectors = {name: open_file(f"--{name}-vectors", path) for name, path in paths.items()}
    lists = {}
    if job.source:
        depth = SELECT_DEPTH if options.depth is None else options.depth
        lists["bm25"] = _word_lists(folder, queries, corpus, tables.known, depth)
    problem = checked_problem(vectors["query"], vectors["corpus"], tables.known, tables.own, job.k, lists, options)
    at_once = 1 if cluster is None else PARTS_ON_WORKERS
    problem, size = within(problem, job.budget, at_once)
    if cluster is None:
        searcher: Any = exact_search(problem.queries, problem.corpus, problem.options)
    else:
        searcher = sharded(cluster, job, paths["corpus"], problem.corpus, options.threads or 1)
        searcher.metric, searcher.engine = options.metric, options.engine
        searcher.check(problem.queries)
    problem = replace(problem, searcher=searcher)
    problem = problem.with_known_scores(_known_scores(folder, problem))
    problem = replace(problem, sampled=_background(folder, problem))
    place = folder.claim(INDEX) if options.approximate is not None else folder.path / INDEX
    with disk_errors(place), with_option_names("mine", {"path": "--approximate"}):
        problem = with_index(problem, place)
    if options.approximate is not None:
        folder.keep(INDEX)
    judge = choose_judge(problem, _fit(folder, problem, job.review))
    background = np.sort(problem.background.scores)
    return Ready(problem, judge, queries, corpus, background, size, tables.by_text)


def _fit(folder: JobFolder, problem: Problem, review: int | None) -> Fit:
    """The posterior of the job and its lists: fitted once, then restored, so that all parts have the same.

    `review` pairs are drawn for a person to label.
    """
    files = {each.name: f"fit_{each.name}.npy" for each in fields(FitLists)}
    if "posterior" not in folder.done:
        fit = fit_posterior(problem)
        for name, file in files.items():
            folder.write_array(file, getattr(fit.lists, name))
        if review is not None:
            counts = problem.counts_of(fit.lists.anchors)
            pairs = drawn_pairs(fit.posterior, fit.lists, counts, review, problem.reviewed)
            folder.finish("review", pairs_record(pairs))
        state = {name: np.asarray(part).tolist() for name, part in fit.posterior.state().items()}
        folder.finish("posterior", state)
    posterior = unfitted(problem)
    posterior.restore(folder.done["posterior"])
    return Fit(posterior, FitLists(**{name: folder.array(file) for name, file in files.items()}))


def read_tables(folder: JobFolder, job: JobOptions, *, keep_own_text: bool) -> Tables:
    """Return what is known, the queries and the documents; read once, then from the folder."""
    if "read" not in folder.done:
        folder.finish("read", _read(folder, job, keep_own_text=keep_own_text) | {"files": list(folder.files)})
    state = folder.done["read"]
    for name in state["files"]:
        if name not in folder.files:
            raise_damaged(name)
    files = {name: f"known_{name}.npy" for name in _KNOWN}
    arrays: dict[str, Any] = {name: folder.array(file) for name, file in files.items() if file in folder.files}
    known = Positives(**arrays, n_items=state["corpus"]["n"], duplicates=state["duplicates"])
    sides = [open_side(folder, name, **state[name]) for name in ("query", "corpus")]
    own = folder.array("own.npy", mmap=False)
    itself = Positives.from_pairs(own[0], own[1], known.n_anchors, known.n_items) if own.size else None
    return Tables(known, itself, folder.array("own_text.npy", mmap=False), sides[0], sides[1])


def _read(folder: JobFolder, job: JobOptions, *, keep_own_text: bool) -> dict[str, Any]:
    given = [(name, path) for name, path in (("pairs", job.pairs), ("--ignore", job.ignore)) if isinstance(path, Path)]
    for option, path in (*given, ("--queries", job.queries), ("--corpus", job.corpus)):
        if isinstance(path, Path):
            with reading(option):
                check_memory(option, path, job.budget)
    columns = [read_pairs(option, path, job.anchor_column, job.positive_column) for option, path in given]
    named = (
        ("query", "--queries", job.queries, (job.query_id_column, job.query_text_column, "")),
        ("corpus", "--corpus", job.corpus, (job.id_column, job.text_column, job.title_column)),
    )
    sizes = {name: open_file(f"--{name}-vectors", path).n for name, path in job.vector_files.items()}
    state: dict[str, Any] = {}
    rows: list[list[Any]] = []
    sides: list[Side] = []
    for place, (name, option, path, wanted) in enumerate(named):
        size, column = sizes.get(name), columns[0][place]
        broken: dict[str, int] = {}
        if isinstance(path, Path):
            broken = write_side(option, path, folder, name, *wanted)
        elif column.numbers is None:
            broken = write_distinct(column, folder, name)
        elif size is None:
            raise_invalid(option, "given where pairs hold row numbers and --model is to encode texts", "none")
        has_names = path is None and column.numbers is None
        side = open_side(folder, name, size or 0, broken, named=has_names)
        what = "queries" if name == "query" else "documents"
        if size is not None and size != side.n:
            source = f"the {side.n:,} {what}" + (f" of {str(path)!r}" if path is not None else " that the pairs name")
            raise_invalid(f"--{name}-vectors", f"a vector for each of {source}", f"{size:,} vectors")
        rows.append([rows_in(pair[place], side, what) for pair in columns])
        state[name] = {"n": side.n, "broken": broken, "named": has_names}
        sides.append(side)
    positives, *ignored = zip(*rows, strict=True)
    itself = np.array(own_by_id(sides[0], sides[1]) if job.same_ids else [(), ()], np.int64)
    own = Positives.from_pairs(itself[0], itself[1], sides[0].n, sides[1].n) if itself.size else None
    known = known_pairs(positives, ignored[0] if ignored else None, own, sides[0].n, sides[1].n)
    texts = np.array([(), ()] if keep_own_text else own_by_text(sides[0], sides[1]), np.int64)
    texts = texts[:, ~known.contains(texts[0], texts[1], relation="any")]
    if texts.size:
        known = known.with_ignored(texts[0], texts[1])
    folder.write_array("own.npy", np.concatenate([itself, texts], axis=1))
    folder.write_array("own_text.npy", np.unique(texts[0]))
    for name in _KNOWN:
        if getattr(known, name) is not None:
            folder.write_array(f"known_{name}.npy", getattr(known, name))
    return state | {"duplicates": known.duplicates}


def _encoded(folder: JobFolder, job: JobOptions, sides: Mapping[str, Side], cluster: Cluster | None) -> dict[str, Path]:
    """Encode queries and documents, a file each; raise if the vectors are not those that the job began with."""
    from naysay.encode.model import load_model
    from naysay.encode.texts import encode_texts

    model = load_model(job.model, device=job.device) if isinstance(job.model, str | Path) else job.model
    for name, side in sides.items():
        if side.texts is None:
            raise_invalid("--model", f"given where the {name} has texts", "ids alone")
    place, paths, prompts = job.encoded, {}, {"query": job.query_prompt, "corpus": job.corpus_prompt}
    if not isinstance(place, Path):
        place = folder.claim(VECTORS)
    with nullcontext() if cluster is None else encoding(cluster, job) as each:
        for name, side in sides.items():
            options = {"texts": "--queries" if name == "query" else "--corpus", "folder": "--encoded"}
            how: dict[str, Any] = {"batch_size": job.batch_size, "prompt": prompts[name] or None, "each": each}
            with disk_errors(place), with_option_names("mine", options):
                paths[name] = encode_texts(model, strings_of(side.texts), folder=place, **how)
    made = {name: folder.inputs.watch(f"--{name}-vectors", path)["sha256"] for name, path in paths.items()}
    if folder.done.get("encoded", made) != made:
        advice = "Put the model back, or start again with --fresh."
        raise_invalid("--resume", "given with the model that the job began with", "other vectors", advice)
    folder.finish("encoded", made)
    return paths


def _word_lists(folder: JobFolder, queries: Side, corpus: Side, known: Positives, depth: int) -> NDArray[Any]:
    """(n, depth) the best documents by BM25, computed once. Its index of all words is in memory meanwhile."""
    if "bm25.npy" not in folder.files:
        for name, side in (("--queries", queries), ("--corpus", corpus)):
            if side.texts is None:
                raise_invalid(name, "a file with texts for --source bm25", "none")
            if "texts" in side.broken:
                raise_invalid(name, "texts that are valid UTF-8 for --source bm25", f"row {side.broken['texts']}")
        texts, others = strings_of(queries.texts), strings_of(corpus.texts)
        plain = Positives(known.indptr, known.indices, known.n_items, filter=known.filter)
        folder.write_array("bm25.npy", bm25(texts, others, depth, exclude=plain).ids.astype(np.int32))
    return folder.array("bm25.npy")


def _known_scores(folder: JobFolder, problem: Problem) -> NDArray[np.float32]:
    """The scores of all known pairs."""
    if "known_scores.npy" not in folder.files:
        folder.write_array("known_scores.npy", problem.score_known())
    return folder.array("known_scores.npy", mmap=False)


def _background(folder: JobFolder, problem: Problem) -> Background:
    """The scores of random pairs, which hardness is measured by, and a threshold by shares."""
    if "background" not in folder.done or "background.npy" not in folder.files:
        sample = problem.background
        folder.write_array("background.npy", sample.scores)
        folder.finish("background", {"n_positives": sample.n_positives, "whole": sample.whole})
    return Background(folder.array("background.npy", mmap=False), **folder.done["background"])


def open_file(option: str, path: Path) -> Vectors:
    """Open the vectors of a file, with the name of its option in errors."""
    with reading(option):
        return as_vectors(option, path)


def within(problem: Problem, budget: int, parts_at_once: int = 1) -> tuple[Problem, int]:
    """Return the problem with its share of the memory budget, and how many anchors to mine at a time.

    The search comes before the stages, so each may have nearly all. A large job has 16 parts or more: a kill loses one
    of them at most. A part has at least 4,096 anchors, since each reads the corpus. The result is the same for any.
    """
    depth = problem.first_depth
    slots = depth + sum(ids.shape[1] for ids in problem.sources.values()) + problem.width
    pairs = open_pairs(problem.corpus, depth)
    searching = depth * 12 + pairs * 12 + problem.corpus.width * 24 + 96
    each = max(slots * _SLOT, searching)
    exact = pairs * problem.corpus.width * 24  # one query's open pairs while they are scored
    needed = max(_SMALLEST, _FIXED + exact * 2 + each, _FIXED * 3 // 4 + fit_bytes(problem))  # no texts
    if budget < needed:
        raise_invalid("--budget", f"at least {-(-needed // 1_000_000)}MB for this job", f"{budget / 1e6:g}MB")
    free = budget - _FIXED
    rows = max(1, min(int(0.7 * free) // each // parts_at_once, max(_ROWS, -(-problem.queries.n // _PARTS))))
    slots = min(problem.block_slots, max(depth, int(0.4 * free) // _DEEP))
    options = replace(problem.options, budget=int(0.9 * free))
    return replace(problem, options=options, block_slots=slots), rows
