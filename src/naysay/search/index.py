"""Approximate nearest-neighbour search with measured recall.

The same index with the same setting finds nearly all neighbours in one corpus and a fifth in another. So recall is
measured against the exact search, on a sample of the queries.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from naysay._packages import need_faiss
from naysay.checks import check_number, check_one_of, check_whole, public, raise_invalid
from naysay.files import HEADER, as_path, check_replaceable, digest_of, draft_of, raise_unreadable, read_header, sync
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search._plain import top
from naysay.search._plan import budget_bytes
from naysay.search._scores import METRICS, norms_of, pair_scores, thread_count
from naysay.search._survey import Survey, check_score_range, survey
from naysay.search.exact import Exact, Found, excluded_rows
from naysay.search.recall import Recall, recall_of
from naysay.search.vectors import Vectors, as_vectors, floats

_KINDS = ("auto", "ivf", "hnsw")
_LEAST_ROWS = 1000  # of a corpus; an exact search of fewer is faster
_LINKS = 16  # of a row of a graph; twice as many at the bottom
_ROUNDS = 10  # of k-means
_ROWS_PER_LIST = 40  # that k-means is trained with
_CODE_SAMPLE = 1 << 16  # rows that the ranges of 8-bit codes of a graph are taken from
_BLOCK_NUMBERS = 1 << 21  # coordinates of a block of the corpus that is added
_WORK = 96 << 20  # bytes beside the index that are enough for every step
_FIRST_EFFORT = {"ivf": 8, "hnsw": 32}  # nprobe and efSearch
_LISTS_SHARE = 32  # reading one list in so many costs as much as an exact search
_ROWS_PER_STEP = 512  # rows of an exact search that cost as much as one candidate of a graph
_FAR = 1e15  # times the norms of the corpus: the largest queries whose distances float32 can tell apart
_KIND, _FORMAT, _FILE = "approximate index", 2, "index.faiss"
_ENTRIES = ("kind", "format", "corpus", "file", "about", "seal")  # of the header
_COMPARED = 1024  # rows of the corpus that are compared when an index is opened


@final
@dataclass(frozen=True, slots=True)
class _About:
    """How an index was built, and of what."""

    kind: str
    metric: str
    n: int
    width: int
    largest: float  # norm of a row of the corpus
    effort: int  # nprobe or efSearch

    @property
    def lists(self) -> int:
        """4 sqrt(n), at most 65,536."""
        return min(4 * math.isqrt(self.n), 1 << 16)

    @property
    def sample(self) -> int:
        """Corpus rows that training uses."""
        return min(self.n, _ROWS_PER_LIST * self.lists if self.kind == "ivf" else _CODE_SAMPLE)

    @property
    def bytes(self) -> int:
        """The size of the index: codes of a byte per number, and ids and centres, or links."""
        if self.kind == "ivf":
            return self.n * (self.width + 8) + 8 * self.lists * self.width
        return self.n * (self.width + 9 * _LINKS + 16)

    @property
    def efforts(self) -> list[int]:
        """The settings that `Index.tune` tries: each twice the one before, the last at the cost of an exact search."""
        last = self.lists // _LISTS_SHARE if self.kind == "ivf" else self.n // _ROWS_PER_STEP
        values = [_FIRST_EFFORT[self.kind]]
        while values[-1] < last:
            values.append(min(2 * values[-1], last))
        return values


@final
@public
class Index:
    """An approximate index: inverted lists or a graph of 8-bit codes, whose candidates are scored exactly.

    An exact `search` needs no building. An index pays where a large corpus gets so many queries that they outweigh the
    building, or where it is saved and used again. On vectors without clusters it may never pay.

    Scores are those of `search`, to the byte, and so is the order: score descending, id ascending. Excluded pairs are
    never returned. Rows can be missing; `measure` reports how many. Which rows are missing may depend on the number of
    threads. A saved index gives the same results after it was opened.

    Attributes:
        kind: "ivf": 4 sqrt(n) lists by k-means; a query reads the `effort` nearest lists (nprobe). One byte per number,
            the fastest to build. "hnsw": a graph with 16 links; a query walks it with `effort` candidates (efSearch).
            Larger, and slower to build.
        effort: The setting in use: 8 lists, or 32 candidates, until `tune` finds a better one.
        corpus: The corpus, as `Vectors`.
        metric: "cosine", "dot" or "l2".

    Examples:
        >>> import numpy as np
        >>> corpus = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
        >>> index = Index.build(corpus)
        >>> index.search(corpus[:3], 2).ids[:, 0].tolist()
        [0, 1, 2]
    """

    def __init__(
        self, index: Any, about: _About, corpus: Vectors, measured: Survey, budget: int | None, threads: int
    ) -> None:
        """Use `Index.build` or `Index.open`."""
        self.kind, self.metric, self.effort, self.corpus = about.kind, about.metric, about.effort, corpus
        self._index, self._about, self._measured = index, about, measured
        self._budget, self._threads = budget, threads

    @classmethod
    def build(
        cls,
        corpus: Any,
        *,
        metric: str = "cosine",
        kind: str = "auto",
        seed: int = 0,
        budget: int | None = None,
        threads: int | None = None,
    ) -> Self:
        """Build an index of a corpus. It is read twice, in blocks, and never held as a whole.

        Cost: ivf O(n sqrt(n) d) in matrix products; hnsw O(n log(n) d) in slower steps.

        Args:
            corpus: (n, d) `Vectors` or anything that `open_vectors` takes; at least 1,000 rows.
            metric: "cosine", "dot" or "l2". Inside, each is a Euclidean distance.
            kind: "ivf", "hnsw", or "auto", which is "ivf": a graph has to walk far for 100 rows and more.
            seed: Of the k-means and its sample of rows, or of the levels of the graph.
            budget: Bytes for the index and for each search with it. 1 GiB by default. While it is built, an index takes
                up to twice its size.
            threads: Threads of building and searching. `naysay.kernels.threads` by default.

        Returns:
            The index, with the lowest effort.
        """
        check_one_of("metric", metric, tuple(METRICS))
        check_one_of("kind", kind, _KINDS)
        check_whole("seed", seed, 0)
        count, vectors = thread_count(threads), as_vectors("corpus", corpus)
        if vectors.n < _LEAST_ROWS:
            advice = "Use an exact search: it is faster there."
            raise_invalid("corpus", f"of at least {_LEAST_ROWS} rows for an index", vectors.n, advice)
        chosen = "ivf" if kind == "auto" else kind
        about = _About(chosen, metric, vectors.n, vectors.width, 0.0, _FIRST_EFFORT[chosen])
        _check_budget(about, budget, 2 * about.bytes + 16 * (vectors.width + 1) * about.sample)
        measured = survey("corpus", vectors, METRICS[metric], count)
        about = replace(about, largest=measured.largest)
        return cls(_built(about, vectors, seed, count), about, vectors, measured, budget, count)

    def search(self, queries: Any, depth: int, *, exclude: Positives | None = None) -> Found:
        """Find about the `depth` best corpus rows of each query.

        The index returns a quarter more candidates than `depth`, at least 16 more, which are scored exactly. Cost: that
        of the lists or the walk, and O(depth d) for each query.

        Args:
            queries: (n, d) `Vectors` or anything that `open_vectors` takes.
            depth: How many corpus rows to find for each query.
            exclude: Pairs (query row, corpus row) that are never returned. A query fetches as many more candidates as
                it excludes.

        Returns:
            Ids and scores, (n, depth) each.
        """
        depth, vectors = check_whole("depth", depth, 1), as_vectors("queries", queries)
        if vectors.width != self.corpus.width:
            raise_invalid("queries", f"of width {self.corpus.width}, like the corpus", vectors.width)
        n_excluded = np.diff(excluded_rows(exclude, vectors.n, self.corpus.n)[0])
        largest = survey("queries", vectors, METRICS[self.metric], self._threads).largest
        check_score_range(METRICS[self.metric], largest, self._about.largest)
        if self.metric == "l2" and largest > _FAR * (self._about.largest or 1.0):
            rule = f"of norms up to {_FAR:g} times those of the corpus"
            raise_invalid("queries", rule, f"{largest:.3g} and {self._about.largest:.3g}", "Search exactly.")
        free = budget_bytes(self._budget) - _WORK // 2 - self._about.bytes - 12 * vectors.n * depth
        if free < 0:
            parameter, got = ("depth", depth) if depth > self.corpus.n else ("queries", vectors.n)
            raise_invalid(parameter, "few enough for the budget of the index", got, "Search in parts.")
        found = Found.empty(vectors.n, depth)
        # Excluded ones are rounded up to a power of two, so that few sizes occur.
        extra = np.where(n_excluded > 0, 1 << np.ceil(np.log2(np.maximum(n_excluded, 1))).astype(np.int64), 0)
        wanted = min(depth, self.corpus.n)
        counts = np.minimum(wanted + max(16, wanted // 4) + extra, self.corpus.n)
        for count in np.unique(counts).tolist():
            rows = np.flatnonzero(counts == count)
            at_once = max(1, free // (32 * self.corpus.width + 128 * count))
            for start in range(0, len(rows), at_once):
                part = rows[start : start + at_once]
                ids, scores = self._best(vectors, part, count, exclude, depth)
                found.ids[part, : ids.shape[1]], found.scores[part, : ids.shape[1]] = ids, scores
        return found

    def _best(
        self, vectors: Vectors, rows: NDArray[np.int64], count: int, exclude: Positives | None, depth: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Fetch `count` candidates of some queries, leave out what is excluded, and score the others exactly."""
        faiss = need_faiss()

        library: Any = faiss
        queries = _euclidean(self._about, floats(vectors.take(rows)), are_queries=True)
        if self.kind == "ivf":
            lists_to_fill = -(-2 * count * self._about.lists // self.corpus.n)
            parameters = library.SearchParametersIVF(nprobe=min(self._about.lists, max(self.effort, lists_to_fill)))
        else:
            parameters = library.SearchParametersHNSW(efSearch=max(self.effort, count))
        ids = _with_threads(self._threads, lambda: self._index.search(queries, count, params=parameters)[1])
        if ids.max(initial=-1) >= self.corpus.n:
            raise_invalid("path", "an index of this corpus", f"row {ids.max()} of {self.corpus.n}")
        gone = ids < 0
        if exclude is not None:  # pairs past its last anchor or item are not in it
            inside = np.where((ids < exclude.n_items) & (rows[:, None] < exclude.n_anchors), ids, -1)
            gone |= exclude.contains(np.minimum(rows, max(0, exclude.n_anchors - 1)), inside, relation="any")
        scores = np.full(ids.shape, -np.inf, np.float32)
        pairs = rows[np.nonzero(~gone)[0]], ids[~gone]
        scores[~gone] = pair_scores(vectors, self.corpus, *pairs, self.metric, self._measured.norms)
        return top(ids, scores, depth)

    def measure(self, queries: Any, depth: int, *, sample: int = 500, seed: int = 0) -> Recall:
        """Measure recall@depth on `sample` of the queries, drawn by the seed, against an exact search of these."""
        some, exact = self._sampled(queries, depth, sample, seed)
        return recall_of(self.search(some, depth), exact, self.setting)

    def tune(self, queries: Any, depth: int, *, min_recall: float = 0.95, sample: int = 500, seed: int = 0) -> Recall:
        """Set `effort` to the lowest value whose recall on a sample of the queries is at least `min_recall`.

        Values double: nprobe from 8 to a 32nd of the lists, efSearch from 32 to n / 512. Beyond the last one a search
        costs as much as an exact one. If that is not enough, `effort` is the last value and `Recall.note` explains it.

        Returns:
            The recall with the chosen effort.
        """
        target = check_number("min_recall", min_recall, above=0, at_most=1)
        some, exact = self._sampled(queries, depth, sample, seed)
        for effort in self._about.efforts:
            self.effort = effort
            recall = recall_of(self.search(some, depth), exact, self.setting)
            if recall.value >= target:
                return recall
        return replace(recall, note=f"Less than {target:g}, and more effort would cost as much as an exact search")

    @property
    def setting(self) -> str:
        """The effort by faiss's name for it."""
        return f"{'nprobe' if self.kind == 'ivf' else 'efSearch'} {self.effort}"

    def __repr__(self) -> str:
        """Kind, shape, metric and setting."""
        return f"Index({self.kind}, {self.corpus.n} x {self.corpus.width}, {self.metric}, {self.setting})"

    def _sampled(self, queries: Any, depth: int, sample: int, seed: int) -> tuple[NDArray[Any], Found]:
        """Some queries, and their exact results."""
        check_whole("sample", sample, 1)
        check_whole("seed", seed, 0)
        vectors = as_vectors("queries", queries)
        if vectors.n == 0:
            raise_invalid("queries", "of at least one row", 0)
        rows = vectors.take(np.sort(rng_for(seed).choice(vectors.n, min(sample, vectors.n), replace=False)))
        limits: dict[str, Any] = {"budget": self._budget, "threads": self._threads}
        exact = Exact(self.corpus, self.metric, **limits, measured=self._measured)
        return rows, exact.search(rows, depth)

    def save(self, path: str | Path) -> None:
        """Write the index, without the corpus, to the folder `path`, whole or not at all."""
        faiss = need_faiss()

        folder = as_path("path", path)
        check_replaceable(folder, _ENTRIES, own=(_FILE,))
        if not folder.parent.is_dir():
            raise_invalid("path", "in an existing folder", repr(str(folder)))
        with draft_of(folder, "path") as draft:
            draft.mkdir()
            try:
                faiss.write_index(self._index, str(draft / _FILE))
            except RuntimeError as error:
                raise_invalid("path", "a place that can be written to", repr(str(folder)), str(error).splitlines()[-1])
            about = asdict(replace(self._about, effort=self.effort))
            header = {"kind": _KIND, "format": _FORMAT, "corpus": _content_of(self.corpus)}
            header |= {"file": digest_of(draft / _FILE), "about": about}
            header["seal"] = _seal_of(header)
            (draft / HEADER).write_text(json.dumps(header, indent=1) + "\n")
            for name in (_FILE, HEADER):
                sync(draft / name)

    @classmethod
    def open(cls, path: str | Path, corpus: Any, *, budget: int | None = None, threads: int | None = None) -> Self:
        """Open an index that `save` wrote, with the corpus that it was built of. Reads the corpus once.

        Raises:
            NaysayError: If the folder is damaged, or if the corpus has another shape, another dtype, or other values in
                a sample of its rows.
        """
        count, vectors, folder = thread_count(threads), as_vectors("corpus", corpus), as_path("path", path)
        header = read_header(folder, _ENTRIES)
        if header is None or header["kind"] != _KIND:
            raise_invalid("path", "an index that naysay wrote", repr(str(folder)))
        if header["format"] != _FORMAT or header["seal"] != _seal_of(header):
            raise_invalid("path", f"an index with a sound header of format {_FORMAT}", repr(str(folder / HEADER)))
        about = _About(**header["about"])
        if (vectors.n, vectors.width) != (about.n, about.width):
            raise_invalid(
                "corpus", f"the one of the index, {about.n} x {about.width}", f"{vectors.n} x {vectors.width}"
            )
        if _content_of(vectors) != header["corpus"]:
            raise_invalid("corpus", "the one of the index", "other values, or another dtype", "Build a new index.")
        _check_budget(about, budget, about.bytes)
        measured = survey("corpus", vectors, METRICS[about.metric], count)
        if measured.largest != about.largest:
            raise_invalid("path", f"an index of norms up to {measured.largest}, like the corpus", about.largest)
        return cls(_read(folder / _FILE, header["file"], about), about, vectors, measured, budget, count)


def _euclidean(about: _About, rows: NDArray[Any], *, are_queries: bool) -> NDArray[np.float32]:
    """Rows as float32 vectors whose Euclidean distance ranks as the metric does.

    cosine   x / |x|: |a - b|^2 = 2 - 2 cos
    l2       x / M, M the largest norm of the corpus
    dot      a corpus row becomes (x, sqrt(M^2 - |x|^2)) / M, a query (x, 0) / |x|: then |a - b|^2 = 2 - 2 q.c / (|q| M)

    Bachrach et al. Speeding Up the Xbox Recommender System Using a Euclidean Transformation for Inner-Product Spaces.
    RecSys 2014.
    """
    norms, largest = norms_of(rows), about.largest or 1.0
    by_own_norm = about.metric == "cosine" or (about.metric == "dot" and are_queries)
    divisors = np.where(norms > 0, norms, 1.0) if by_own_norm else np.full(len(rows), largest)
    scaled = (rows / divisors[:, None]).astype(np.float32)
    if about.metric == "dot":
        rest = np.zeros(len(rows)) if are_queries else np.sqrt(np.maximum(0.0, 1 - (norms / largest) ** 2))
        scaled = np.column_stack([scaled, rest.astype(np.float32)])
    return np.ascontiguousarray(scaled)


def _built(about: _About, corpus: Vectors, seed: int, threads: int) -> Any:
    """Train the index on a sample of the corpus, and add all rows."""
    faiss = need_faiss()

    library: Any = faiss
    sample_ids = np.sort(rng_for(seed).choice(corpus.n, about.sample, replace=False))
    sample = _euclidean(about, floats(corpus.take(sample_ids)), are_queries=False)
    if about.kind == "ivf":
        index = library.index_factory(sample.shape[1], f"IVF{about.lists},SQ8")
        index.cp.niter, index.cp.seed = _ROUNDS, seed & 0x7FFFFFFF
        index.cp.min_points_per_centroid = 1  # fewer than it likes, it would print a warning
    else:
        index = library.index_factory(sample.shape[1], f"HNSW{_LINKS}_SQ8")
        index.hnsw.rng = library.RandomGenerator(seed & 0x7FFFFFFF)
    _with_threads(threads, index.train, sample)
    rows_at_once = max(1, _BLOCK_NUMBERS // corpus.width)
    for start in range(0, corpus.n, rows_at_once):
        rows = _euclidean(about, floats(corpus.rows(start, start + rows_at_once)), are_queries=False)
        _with_threads(threads, index.add, rows)
    return index


def _with_threads(count: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of faiss with `count` threads, in a new thread, so that no setting of faiss changes elsewhere."""
    faiss = need_faiss()

    with ThreadPoolExecutor(1, initializer=faiss.omp_set_num_threads, initargs=(count,)) as pool:
        return pool.submit(function, *arguments).result()


def _check_budget(about: _About, budget: int | None, index_bytes: int) -> None:
    """Raise unless the budget holds the index, the norms of the corpus, and the work of every step."""
    total, needed = budget_bytes(budget), index_bytes + 8 * about.n + _WORK
    if total < needed:
        rule = f"at least {needed} bytes for an index of {about.n} rows"
        raise_invalid("budget", rule, total, f"Pass a `budget` of {needed} or more.")


def _read(file: Path, digest: Any, about: _About) -> Any:
    """Read the faiss index; raise before faiss reads it if the file has changed since it was written."""
    faiss = need_faiss()

    if not file.is_file() or digest_of(file) != digest:
        raise_invalid("path", "a folder as it was written", f"{_FILE}, missing or changed")
    try:
        index = faiss.read_index(str(file))
    except RuntimeError as error:
        raise_unreadable("path", "a folder as it was written", file, error)
    width = about.width + (about.metric == "dot")
    if (index.ntotal, index.d, hasattr(index, "nlist")) != (about.n, width, about.kind == "ivf"):
        raise_invalid("path", "a folder as it was written", f"{_FILE} of {index.ntotal} x {index.d}")
    return index


def _seal_of(header: dict[str, Any]) -> str:
    """A hash of all entries of a header but the seal itself, by which damage is found."""
    entries = {name: value for name, value in header.items() if name != "seal"}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _content_of(corpus: Vectors) -> str:
    """A hash of the dtype and of up to 1,024 rows, the first and the last among them."""
    some = np.unique(np.linspace(0, corpus.n - 1, min(_COMPARED, corpus.n)).astype(np.int64))
    digest = hashlib.sha256(str(corpus.dtype).encode())
    digest.update(floats(corpus.take(some)).tobytes())
    return digest.hexdigest()
