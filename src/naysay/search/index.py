"""Index: an approximate search for corpora that are searched often or are too large for an exact one.

Its recall is a measurement, not a property: the same index with the same setting finds nearly all on one corpus and a
fifth on another. So it is measured against `search`, on a sample of the queries at hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number, check_one_of, check_whole, public, raise_invalid
from naysay.kernels import bounds_scan as opens
from naysay.kernels.threads import threads as usual_threads
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search import _index_faiss as faiss_parts
from naysay.search import _index_files as files
from naysay.search import _index_rules as rules
from naysay.search._bounds import Units, fits_float32, largest_score
from naysay.search._index_build import built
from naysay.search._index_centres import nearest
from naysay.search._index_euclid import Euclid
from naysay.search._index_excluded import excluded_counts, is_excluded
from naysay.search._survey import Survey, survey
from naysay.search._unresolved_pairs import Exact, norms_of
from naysay.search._workers import Workers
from naysay.search.exact import METRICS, search
from naysay.search.found import Found
from naysay.search.recall import Recall, recall_of
from naysay.search.vectors import Vectors, open_vectors

_STRIP, _STRIPS = 64, 64  # queries of one call of faiss; calls of a block


@final
@public
class Index:
    """Rows of a corpus in lists or in a graph, as 8-bit codes; answers are scored by the corpus itself.

    kind     "ivf"   4 sqrt(n) lists by k-means (40 rows a list, 10 rounds); a query reads the `effort` nearest lists,
                     nprobe. A byte a number, the quickest to build, on all threads
             "hnsw"  a graph with 16 links; a query walks it with `effort` candidates, efSearch. Larger, and slow to
                     build: on one thread, because with more it is another graph each time
             "auto"  "ivf": mining goes 100 deep and more, where a graph has to walk far
    effort   the setting in use. 8 lists, or 32 candidates, until `tune` finds a better one

    **When it pays.** An exact `search` needs no building. An index pays where a large corpus is asked more queries than
    building it takes, or where it is saved and used again. On vectors without clusters it may never pay.

    **What is promised.** Scores are those of `search`, to the byte, and so is the order: score falling, id rising.
    What is excluded never comes back. Rows can be missing; `measure` says how many. An answer depends on the index and
    the query alone: not on threads, blocks or the other queries. An index depends on the corpus and the seed alone,
    on one kind of processor; one that was saved gives the same answers after it was opened.

    Jégou, Douze, Schmid. Product Quantization for Nearest Neighbor Search. PAMI 2011 (inverted lists).
    Malkov, Yashunin. Efficient and Robust Approximate Nearest Neighbor Search Using Hierarchical Navigable Small World
    Graphs. PAMI 2020.

    Example:
        >>> import numpy as np
        >>> corpus = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
        >>> index = Index.build(corpus)
        >>> index.search(corpus[:3], 2).ids[:, 0].tolist()
        [0, 1, 2]
    """

    def __init__(
        self, index: Any, corpus: Vectors, about: files.About, seen: Survey, budget: int | None, threads: int
    ) -> None:
        """Made by `build` and `open`."""
        self.index, self.corpus, self.about, self.budget, self.threads = index, corpus, about, budget, threads
        self.kind, self.metric, self.effort = about.kind, about.metric, about.effort
        self.space = Euclid(METRICS[about.metric], about.largest)
        self.exact = Exact(Units(METRICS[about.metric], 1.0, 1.0), corpus, seen.norms)
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
        """An index of a corpus.

        Rows are added in blocks, in order; the corpus is never held as a whole. Two looks at all of it.

        Cost: ivf O(n sqrt(n) d), of the kind that `search` does; hnsw O(n log(n) d), of a slower kind.

        Args:
            corpus: (n, d), `Vectors` or what `open_vectors` takes; 1,000 rows at least.
            metric: "cosine", "dot" or "l2"; inside, each is a Euclidean distance (`euclid`).
            kind: "auto", "ivf" or "hnsw", see above.
            seed: Of the k-means and of the rows it looks at, or of the levels of the graph.
            budget: Bytes that the index may take, and each search by it; 1 GiB if not given. While it is built,
                lists take up to twice their size. A smaller budget than that is refused with what it takes.
            threads: Of building and searching; as `naysay.kernels.threads` says if not given.
        """
        check_one_of("metric", metric, tuple(METRICS))
        check_whole("seed", seed, 0)
        count = _threads(threads)
        given = _opened("corpus", corpus)
        chosen = rules.check_kind(kind, given.n)
        if given.n >= 1 << 31:
            raise_invalid("corpus", "of fewer than 2^31 rows", given.n, "Index its parts and merge.")
        width = given.width + (metric == "dot")
        room = rules.room_for(chosen, given, width, budget, building=True)
        seen = _seen("corpus", given, metric, count)
        space = Euclid(METRICS[metric], seen.largest)
        index = built(given, space, chosen, seed=seed, budget=room.total, threads=count)
        lowest = rules.ladder(chosen, given.n)[0]
        about = files.About(chosen, metric, given.n, given.width, seen.largest, lowest, seed)
        return cls(index, given, about, seen, budget, count)

    def search(self, queries: Any, depth: int, *, exclude: Positives | None = None) -> Found:
        """About the `depth` best corpus rows of each query.

        The index gives a quarter more than `depth` for each query, 16 at least. They are scored by the fixed float64
        kernel and the best are kept. Slots that stay empty are -1. Cost: that of the lists or the walk, and O(depth d).

        Args:
            queries: (n, d), `Vectors` or what `open_vectors` takes.
            exclude: Pairs (query row, corpus row) that never come back, ignored ones included; a query asks the
                index for as many more as it excludes.
        """
        depth = check_whole("depth", depth, 1)
        asked = _opened("queries", queries)
        if asked.width != self.corpus.width:
            raise_invalid("queries", f"of width {self.corpus.width}, like the corpus", asked.width)
        excluded = excluded_counts(exclude, asked.n, self.corpus.n)
        seen = _seen("queries", asked, self.metric, self.threads)
        most = largest_score(METRICS[self.metric], seen.largest, self.about.largest)
        if not fits_float32(most):
            advice = "Scale the vectors down."
            raise_invalid("queries", "of norms whose scores float32 holds", f"scores up to {most:.3g}", advice)
        self.space.check_queries(seen.largest)
        counts = np.minimum(rules.fetched(depth, excluded), self.corpus.n)
        left = self._left(asked, depth, int(counts.max(initial=0)))
        found = Found(np.full((asked.n, depth), -1, np.int64), np.full((asked.n, depth), -np.inf, np.float32))
        for count in np.unique(counts):
            rows = np.flatnonzero(counts == count)
            size = self._strip(int(count), left)
            for start in range(0, len(rows), size * _STRIPS):
                self._block(asked, rows[start : start + size * _STRIPS], int(count), size, exclude, found)
        return found

    def _left(self, asked: Vectors, depth: int, deepest: int) -> int:
        """The bytes of a step of a search; too few are refused, with what it takes."""
        room = rules.room_for(self.kind, self.corpus, self.space.width(self.corpus.width), self.budget, building=False)
        answer, least = 12 * asked.n * depth, self.threads * self._query_bytes(deepest) * 2
        if room.left < rules.WORK + answer + least:
            needed = room.held + rules.WORK + answer + least
            advice = f"Open the index with budget={needed} or more, or ask in parts."
            raise_invalid("queries", f"few enough for the budget of {room.total} bytes", asked.n, advice)
        return room.left - rules.WORK - answer

    def _query_bytes(self, count: int) -> int:
        """What a query takes while it is answered: its vector, lists, candidates; their rows if those are in a file."""
        probes = rules.probes_for(self.effort, rules.lists_for(self.corpus.n), self.corpus.n, count)
        rows = 0 if self.corpus.whole is not None else 24 * self.corpus.width
        return 32 * self.corpus.width + 32 * probes + count * (48 + rows)

    def _strip(self, count: int, left: int) -> int:
        """Queries of one call of faiss: what all threads hold at once fits in half of what is left."""
        return max(1, min(_STRIP, left // (2 * self.threads * self._query_bytes(count))))

    def _block(
        self, asked: Vectors, rows: NDArray[np.int64], count: int, size: int, exclude: Positives | None, found: Found
    ) -> None:
        """Answer some queries, that fetch `count` each, in strips."""
        queries = np.ascontiguousarray(asked.take(rows), np.float64)
        norms = norms_of(queries)
        near = self.space.queries(queries, norms)
        lists = np.empty((len(rows), 0), np.int64)
        if self.centres is not None:
            probes = rules.probes_for(self.effort, len(self.centres), self.corpus.n, count)
            budget = rules.WORK // 2 + 64 * probes * len(rows)
            lists = nearest(near, self.centres, probes, budget=budget, threads=self.threads)

        def answer(start: int) -> None:
            part = slice(start, start + size)
            if self.centres is not None:
                ids = faiss_parts.fetch_lists(self.index, near[part], count, lists[part])
            else:
                ids = faiss_parts.fetch_graph(self.index, near[part], count, self.effort)
            away = ids < 0
            if exclude is not None:
                away |= is_excluded(exclude, rows[part], ids)
            left = np.sort(np.where(away, np.iinfo(np.int32).max, ids).astype(np.int32), axis=1)
            counts = count - away.sum(axis=1)
            scores = self.exact.gathered(queries[part], norms[part], counts, left)
            best, best_scores = (np.empty((len(ids), found.ids.shape[1]), kind) for kind in (np.int64, np.float32))
            opens.best(0, len(ids), counts, left, scores, best, best_scores)
            found.ids[rows[part]], found.scores[rows[part]] = best, best_scores

        faiss_parts.in_threads(self.threads, answer, range(0, len(rows), size))

    def measure(self, queries: Any, depth: int, *, sample: int = 500, seed: int = 0) -> Recall:
        """The recall at `depth`, on a seeded sample of the queries, against the exact `search` of the same.

        Cost: an exact search of `sample` queries.
        """
        some, exact = self._sampled(queries, depth, sample, seed)
        return recall_of(self.search(some, depth), exact, self.setting)

    def tune(self, queries: Any, depth: int, *, wanted: float = 0.95, sample: int = 500, seed: int = 0) -> Recall:
        """Set `effort` to the lowest rung of the ladder whose recall on the sample is `wanted`; its recall comes back.

        Rungs double: nprobe from 8 to a 32nd of the lists, efSearch from 32 to n / 512. Beyond the last a search
        costs as much as an exact one. If that is not enough, `effort` is the last rung, and `Recall.note` says so. No
        clock is looked at, so the choice is the same on a busy machine.
        """
        target = check_number("wanted", wanted)
        if not 0 < target <= 1:
            raise_invalid("wanted", "above 0, at most 1", target)
        some, exact = self._sampled(queries, depth, sample, seed)
        for effort in rules.ladder(self.kind, self.corpus.n):
            self.effort = effort
            recall = recall_of(self.search(some, depth), exact, self.setting)
            if recall.value >= target:
                return recall
        note = f"Less than {target:g}, and more effort would cost as much as an exact search"
        return recall_of(self.search(some, depth), exact, self.setting, note)

    @property
    def setting(self) -> str:
        """The effort by the name that faiss has for it."""
        return f"{'nprobe' if self.kind == 'ivf' else 'efSearch'} {self.effort}"

    def __repr__(self) -> str:
        """Kind, shape, metric and setting."""
        return f"Index({self.kind}, {self.corpus.n} x {self.corpus.width}, {self.metric}, {self.setting})"

    def _sampled(self, queries: Any, depth: int, sample: int, seed: int) -> tuple[NDArray[Any], Found]:
        """Some queries, and their exact answers."""
        depth, sample = check_whole("depth", depth, 1), check_whole("sample", sample, 1)
        check_whole("seed", seed, 0)
        asked = _opened("queries", queries)
        if asked.n == 0:
            raise_invalid("queries", "of at least one row", 0)
        some = np.sort(rng_for(seed).choice(asked.n, min(sample, asked.n), replace=False))
        rows = asked.take(some)
        return rows, search(rows, self.corpus, depth, metric=self.metric, budget=self.budget, threads=self.threads)

    def save(self, path: str | Path) -> None:
        """Write the index to the folder `path`, whole or not at all; the corpus is not in it."""
        files.save(Path(path), self.index, self.about.at(self.effort), self.corpus)

    @classmethod
    def open(cls, path: str | Path, corpus: Any, *, budget: int | None = None, threads: int | None = None) -> Self:
        """The index that `save` wrote, for the corpus that it was built of.

        A corpus of another shape or type, or with other values in a sample of its rows, is refused. One look at all
        of it.
        """
        count = _threads(threads)
        given = _opened("corpus", corpus)
        about = files.about(Path(path), given)
        rules.room_for(about.kind, given, given.width + (about.metric == "dot"), budget, building=False)
        seen = _seen("corpus", given, about.metric, count)
        return cls(files.read(Path(path), about, given), given, about, seen, budget, count)


def _threads(threads: int | None) -> int:
    return usual_threads() if threads is None else check_whole("threads", threads, 1)


def _opened(parameter: str, given: Any) -> Vectors:
    return given if isinstance(given, Vectors) else open_vectors(parameter, given)


def _seen(parameter: str, vectors: Vectors, metric: str, threads: int) -> Survey:
    with Workers(threads, torch=False) as workers:
        return survey(parameter, vectors, METRICS[metric], workers)
