"""What a job does once, before its parts: read tables, find vectors, score known and random pairs.

Each step leaves a file in the job's folder, and is not done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, with_option_names
from naysay.detectors.posterior import Posterior
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
from naysay.mining._false_share import FitLists, as_record, fit_bytes, is_auto, unfitted
from naysay.mining._known import known_of, own_note
from naysay.mining._pipeline import fit_posterior, pairs_to_review
from naysay.mining._rules import Background, sample_of, score_known, threshold_of
from naysay.mining._search import surveyed, with_index
from naysay.mining._task import LEAST_DEPTH, Task, task_of, without_own_vectors
from naysay.mining.bm25 import bm25
from naysay.mining.judge import Threshold
from naysay.mining.options import MiningOptions
from naysay.positives import Positives
from naysay.search._plan import open_pairs
from naysay.search.vectors import Vectors, as_vectors
from naysay.tables import check_memory

_KNOWN = ("indptr", "indices", "filter", "relation")  # arrays of known pairs
_SLOT = 200  # bytes of a candidate while the stages sort and judge it
_DEEP = 120  # bytes of a candidate of a deeper search
_FIXED = 112 << 20  # blocks of vectors and texts, and what the libraries take for themselves
_SMALLEST = 152 << 20
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

    task: Task
    threshold: Threshold  # the judge and the lowest score
    posterior: Posterior  # what false negatives are estimated by, whatever the judge
    lists: FitLists  # the candidates of the anchors that it was fitted to
    queries: Side
    corpus: Side
    known_scores: NDArray[np.float32]
    background: NDArray[np.float32]  # scores of random pairs, ascending
    notes: tuple[str, ...]
    size: int  # how many anchors to mine at a time
    own_text: int  # how many anchors have their own text in the corpus, which is left out


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
        depth = LEAST_DEPTH if options.depth is None else options.depth
        lists["bm25"] = _word_lists(folder, queries, corpus, tables.known, depth)
    task = task_of(vectors["query"], vectors["corpus"], tables.known, job.k, lists, options, tables.own)
    if cluster is not None:
        task = replace(task, shards=sharded(cluster, job, paths["corpus"], task.corpus, options.threads or 1))
    task, size = within(task, job.budget)
    task, by_vector = without_own_vectors(surveyed(task))
    own = np.union1d(tables.by_text, by_vector[0])
    scores, sample = _known_scores(folder, task), _background(folder, task)
    threshold = None if is_auto(task) else threshold_of(task, scores, lambda: sample)  # raises before the search
    place = folder.claim(INDEX) if options.approximate is not None else folder.path / INDEX
    with disk_errors(place), with_option_names("mine", {"path": "--approximate"}):
        task, notes = with_index(task, place)
    if options.approximate is not None:
        folder.keep(INDEX)
    posterior, fit_lists = _posterior(folder, task, scores, sample, size, job.review)
    if threshold is None:
        threshold = threshold_of(task, scores, lambda: sample, posterior)
    notes = (*own_note(own, "--keep-own-text", "text or vector"), *notes)
    parts = queries, corpus, scores, np.sort(sample.scores), notes, size, len(own)
    return Ready(task, threshold, posterior, fit_lists, *parts)


def _posterior(
    folder: JobFolder, task: Task, scores: NDArray[np.float32], sample: Background, size: int, review: int | None
) -> tuple[Posterior, FitLists]:
    """The posterior of the job and its lists: fitted once, then restored, so that all parts have the same.

    `review` pairs are drawn for a person to label.
    """
    files = {each.name: f"fit_{each.name}.npy" for each in fields(FitLists)}
    if "posterior" not in folder.done:
        found, lists = fit_posterior(task, scores, lambda: sample, size=size)
        for name, file in files.items():
            folder.write_array(file, getattr(lists, name))
        if review is not None:
            folder.finish("review", pairs_record(pairs_to_review(task, found, lists, review)))
        folder.finish("posterior", as_record(found))
    posterior = unfitted(task, scores)
    posterior.restore(folder.done["posterior"])
    return posterior, FitLists(**{name: folder.array(file) for name, file in files.items()})


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
    known = known_of(positives, ignored[0] if ignored else None, own, sides[0].n, sides[1].n)
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


def _known_scores(folder: JobFolder, task: Task) -> NDArray[np.float32]:
    """The scores of all known pairs."""
    if "known_scores.npy" not in folder.files:
        folder.write_array("known_scores.npy", score_known(task))
    return folder.array("known_scores.npy", mmap=False)


def _background(folder: JobFolder, task: Task) -> Background:
    """The scores of random pairs, which hardness is measured by, and a threshold by shares."""
    if "background" not in folder.done or "background.npy" not in folder.files:
        sample = sample_of(task)
        folder.write_array("background.npy", sample.scores)
        folder.finish("background", {"n_positives": sample.n_positives, "whole": sample.whole})
    return Background(folder.array("background.npy", mmap=False), **folder.done["background"])


def open_file(option: str, path: Path) -> Vectors:
    """Open the vectors of a file, with the name of its option in errors."""
    with reading(option):
        return as_vectors(option, path)


def at_once(task: Task) -> int:
    """How many parts are mined at a time: one, or two, so that workers search for one while another is judged here."""
    return 1 if task.shards is None else 2


def within(task: Task, budget: int) -> tuple[Task, int]:
    """Return the task with its share of the memory budget, and how many anchors to mine at a time.

    The search comes before the stages, so each may have nearly all. A large job has 16 parts or more: a kill loses one
    of them at most. A part has at least 4,096 anchors, since each reads the corpus. The result is the same for any.
    """
    slots = task.depth + sum(ids.shape[1] for ids in task.lists.values()) + task.width
    pairs = open_pairs(task.corpus, task.depth)
    searching = task.depth * 12 + pairs * 12 + task.corpus.width * 24 + 96
    each = max(slots * _SLOT, searching)
    exact = pairs * task.corpus.width * 24  # one query's open pairs while they are scored
    needed = max(_SMALLEST, _FIXED + exact * 2 + each, _FIXED * 3 // 4 + fit_bytes(task))  # no texts
    if budget < needed:
        raise_invalid("--budget", f"at least {-(-needed // 1_000_000)}MB for this job", f"{budget / 1e6:g}MB")
    free = budget - _FIXED
    rows = max(1, min(int(0.7 * free) // each // at_once(task), max(_ROWS, -(-task.queries.n // _PARTS))))
    options = replace(task.options, budget=int(0.9 * free))
    return replace(task, options=options, slots=max(task.depth, int(0.4 * free) // _DEEP)), rows
