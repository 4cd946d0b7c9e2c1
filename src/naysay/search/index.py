"""Approximate nearest-neighbour search with measured recall.

The same index with the same setting finds nearly all neighbours in one corpus and a fifth in another. So recall is
measured against the exact `search`, on a sample of the queries.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number, check_one_of, check_whole, public, raise_invalid
from naysay.files import as_path
from naysay.kernels import bounds_scan
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search import _index_faiss as faiss_side
from naysay.search import _index_rules as rules
from naysay.search._scores import METRICS, ExactScores, norms_of, thread_count
from naysay.search._survey import Survey, check_score_range, survey
from naysay.search.exact import Found, SearchOptions, excluded_rows
from naysay.search.recall import Recall, recall_of
from naysay.search.vectors import Vectors, as_vectors

_STRIP, _STRIPS = 64, 64  # queries of one call of faiss; calls of a block


@final
@public
class Index:
    """An approximate index: inverted lists or a graph of 8-bit codes, whose candidates are scored exactly.

    **When it pays.** An exact `search` needs no building. An index pays where a large corpus gets so many queries that
    they outweigh the building, or where it is saved and used again. On vectors without clusters it may never pay.

    **What is guaranteed.** Scores are those of `search`, to the byte, and so is the order: score descending, id
    ascending. Excluded pairs are never returned. Rows can be missing; `measure` reports how many. A result depends on
    the index and the query alone: not on threads, blocks or the other queries. An index depends on the corpus and the
    seed alone, on one type of processor. A saved index gives the same results after it was opened.

    Jégou, Douze, Schmid. Product Quantization for Nearest Neighbor Search. PAMI 2011 (inverted lists).
    Malkov, Yashunin. Efficient and Robust Approximate Nearest Neighbor Search Using Hierarchical Navigable Small World
    Graphs. PAMI 2020.

    Attributes:
        kind: "ivf": 4 sqrt(n) lists by k-means (40 rows per list, 10 rounds); a query reads the `effort` nearest
            lists (nprobe). One byte per number, the fastest to build, on all threads. "hnsw": a graph with 16 links; a
            query walks it with `effort` candidates (efSearch). Larger, and slow to build: on one thread, because with
            more it would be another graph each time.
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
        self, index: Any, corpus: Vectors, about: faiss_side.About, norms: Survey, budget: int | None, threads: int
    ) -> None:
        """Use `Index.build` or `Index.open`."""
        self.index, self.corpus, self.about, self.budget, self.threads = index, corpus, about, budget, threads
        self.kind, self.metric, self.effort = about.kind, about.metric, about.effort
        self.space = rules.Euclid(METRICS[about.metric], about.largest)
        self.exact = ExactScores(METRICS[about.metric], corpus, norms.norms)
        self.centres = index.quantizer.reconstruct_n(0, index.nlist) if self.kind == "ivf" else None

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
        """Build an index of a corpus.

        Rows are added in blocks, in order; the corpus is never held as a whole. It is read twice.

        Cost: ivf O(n sqrt(n) d) in matrix products; hnsw O(n log(n) d) in slower steps.

        Args:
            corpus: (n, d) `Vectors` or anything that `open_vectors` takes; at least 1,000 rows.
            metric: "cosine", "dot" or "l2". Inside, each is a Euclidean distance.
            kind: "ivf", "hnsw", or "auto", which is "ivf": a graph has to walk far for 100 rows and more.
            seed: Of the k-means and its sample of rows, or of the levels of the graph.
            budget: Bytes for the index and for each search with it. 1 GiB by default. While it is built, lists take up
                to twice their size.
            threads: Threads of building and searching. `naysay.kernels.threads` by default.

        Returns:
            The index, with the lowest effort.

        """
        check_one_of("metric", metric, tuple(METRICS))
        check_whole("seed", seed, 0)
        count = thread_count(threads)
        vectors = as_vectors("corpus", corpus)
        chosen = rules.check_kind(kind, vectors.n)
        if vectors.n >= 1 << 31:
            raise_invalid("corpus", "of fewer than 2^31 rows", vectors.n, "Index its parts and merge.")
        total, _ = rules.memory_for(chosen, vectors, vectors.width + (metric == "dot"), budget, building=True)
        norms = survey("corpus", vectors, METRICS[metric], count)
        space = rules.Euclid(METRICS[metric], norms.largest)
        index = faiss_side.build_index(vectors, space, chosen, seed=seed, budget=total, threads=count)
        lowest = rules.efforts(chosen, vectors.n)[0]
        about = faiss_side.About(chosen, metric, vectors.n, vectors.width, norms.largest, lowest, seed)
        return cls(index, vectors, about, norms, budget, count)

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
        excluded = np.diff(excluded_rows(exclude, vectors.n, self.corpus.n)[0])
        norms = survey("queries", vectors, METRICS[self.metric], self.threads)
        check_score_range(METRICS[self.metric], norms.largest, self.about.largest)
        self.space.check_queries(norms.largest)
        counts = np.minimum(rules.fetched(min(depth, self.corpus.n), excluded), self.corpus.n)
        left = self._bytes_left(vectors, depth, int(counts.max(initial=0)))
        found = Found.empty(vectors.n, depth)
        for count in np.unique(counts):
            rows = np.flatnonzero(counts == count)
            size = max(1, min(_STRIP, left // (2 * self.threads * self._query_bytes(int(count)))))
            for start in range(0, len(rows), size * _STRIPS):
                self._block(vectors, rows[start : start + size * _STRIPS], int(count), size, exclude, found)
        return found

    def _bytes_left(self, queries: Vectors, depth: int, deepest: int) -> int:
        """The bytes for the steps of a search; raise, for the argument to change, if they are too few."""
        width = self.space.width(self.corpus.width)
        total, beside = rules.memory_for(self.kind, self.corpus, width, self.budget, building=False)
        result, one_step = 12 * queries.n * depth, self._query_bytes(deepest) * 2
        left = beside - rules.WORK - result
        if left < one_step * self.threads:
            rule = f"for the budget of {total} bytes"
            if left >= one_step * min(self.threads, thread_count(None)):
                raise_invalid("threads", f"at most {left // one_step} {rule}", self.threads)
            if depth > self.corpus.n:
                raise_invalid("depth", f"at most {self.corpus.n}, the rows of the corpus, {rule}", depth)
            advice = f"Open the index with a `budget` of {total - left + one_step * self.threads} or more, or "
            raise_invalid("queries", f"few enough {rule}", queries.n, f"{advice}search in parts.")
        return left

    def _query_bytes(self, count: int) -> int:
        """The memory of one query: its vector, lists, candidates, and their rows if those are in a file."""
        probes = rules.probes_for(self.effort, rules.lists_for(self.corpus.n), self.corpus.n, count)
        rows = 0 if self.corpus.whole is not None else 24 * self.corpus.width
        return 32 * self.corpus.width + 32 * probes + count * (48 + rows)

    def _block(
        self, vectors: Vectors, rows: NDArray[np.int64], count: int, size: int, exclude: Positives | None, found: Found
    ) -> None:
        """Search for some queries, that fetch `count` candidates each, in strips of `size`."""
        queries = np.ascontiguousarray(vectors.take(rows), np.float64)
        norms = norms_of(queries)
        near = self.space.queries(queries, norms)
        lists = np.empty((len(rows), 0), np.int64)
        if self.centres is not None:
            probes = rules.probes_for(self.effort, len(self.centres), self.corpus.n, count)
            budget = rules.WORK // 2 + 64 * probes * len(rows)
            lists = faiss_side.nearest(near, self.centres, probes, budget=budget, threads=self.threads)

        def fill(start: int) -> None:
            part = slice(start, start + size)
            if self.centres is not None:
                ids = faiss_side.fetch_lists(self.index, near[part], count, lists[part])
            else:
                ids = faiss_side.fetch_graph(self.index, near[part], count, self.effort)
            if ids.max(initial=-1) >= self.corpus.n:
                raise_invalid("path", "an index of this corpus", f"row {ids.max()} of {self.corpus.n}")
            gone = ids < 0
            if exclude is not None:  # pairs past its last anchor or item are not in it
                inside = np.where((ids < exclude.n_items) & (rows[part, None] < exclude.n_anchors), ids, -1)
                anchors = np.minimum(rows[part], max(0, exclude.n_anchors - 1))
                gone |= exclude.contains(anchors, inside, relation="any")
            left = np.sort(np.where(gone, np.iinfo(np.int32).max, ids).astype(np.int32), axis=1)
            counts = count - gone.sum(axis=1)
            scores = self.exact.of(queries[part], norms[part], counts, left)
            best, best_scores = (np.empty((len(ids), found.ids.shape[1]), kind) for kind in (np.int64, np.float32))
            bounds_scan.best(0, len(ids), counts, left, scores, best, best_scores)
            found.ids[rows[part]], found.scores[rows[part]] = best, best_scores

        faiss_side.in_threads(self.threads, fill, range(0, len(rows), size))

    def measure(self, queries: Any, depth: int, *, sample: int = 500, seed: int = 0) -> Recall:
        """Measure recall@depth on `sample` of the queries, against an exact `search` of these.

        `sample` of the queries are drawn by the seed.
        """
        some, exact = self._sampled(queries, depth, sample, seed)
        return recall_of(self.search(some, depth), exact, self.setting)

    def tune(self, queries: Any, depth: int, *, min_recall: float = 0.95, sample: int = 500, seed: int = 0) -> Recall:
        """Set `effort` to the lowest value whose recall on a sample of the queries is at least `min_recall`.

        Values double: nprobe from 8 to a 32nd of the lists, efSearch from 32 to n / 512. Beyond the last one a search
        costs as much as an exact one. If that is not enough, `effort` is the last value and `Recall.note` explains it.
        No time is measured, so the choice is the same on a busy machine.

        Returns:
            The recall with the chosen effort.
        """
        target = check_number("min_recall", min_recall, above=0, at_most=1)
        some, exact = self._sampled(queries, depth, sample, seed)
        for effort in rules.efforts(self.kind, self.corpus.n):
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
        depth, sample = check_whole("depth", depth, 1), check_whole("sample", sample, 1)
        check_whole("seed", seed, 0)
        vectors = as_vectors("queries", queries)
        if vectors.n == 0:
            raise_invalid("queries", "of at least one row", 0)
        some = np.sort(rng_for(seed).choice(vectors.n, min(sample, vectors.n), replace=False))
        rows = vectors.take(some)
        norms = survey("queries", as_vectors("queries", rows), METRICS[self.metric], self.threads)
        surveys = norms, Survey(self.about.largest, self.exact.norms)  # the corpus is not read again for that
        how = SearchOptions(self.metric, budget=self.budget, threads=self.threads, surveys=surveys)
        return rows, how.run(rows, self.corpus, depth)[0]

    def save(self, path: str | Path) -> None:
        """Write the index, without the corpus, to the folder `path`, whole or not at all."""
        faiss_side.save(as_path("path", path), self.index, replace(self.about, effort=self.effort), self.corpus)

    @classmethod
    def open(cls, path: str | Path, corpus: Any, *, budget: int | None = None, threads: int | None = None) -> Self:
        """Open an index that `save` wrote, with the corpus that it was built of. Reads the corpus once.

        Raises:
            NaysayError: If the folder is damaged, or if the corpus has another shape, another dtype, or other values in
                a sample of its rows.
        """
        count = thread_count(threads)
        vectors = as_vectors("corpus", corpus)
        folder = as_path("path", path)
        about = faiss_side.about(folder, vectors)
        rules.memory_for(about.kind, vectors, vectors.width + (about.metric == "dot"), budget, building=False)
        norms = survey("corpus", vectors, METRICS[about.metric], count)
        if norms.largest != about.largest:
            raise_invalid("path", f"an index of norms up to {norms.largest}, like the corpus", about.largest)
        return cls(faiss_side.read(folder, about, vectors), vectors, about, norms, budget, count)
