"""Worlds for mining: families of documents, of which one is labelled, and the files of a job."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


class Families:
    """Anchors with three items each around them, one of them labelled at random, and many other items."""

    def __init__(self, n=300, others=1200, width=24, seed=1):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(n, width))
        own = centres[:, None] + 0.6 * rng.normal(size=(n, 3, width))
        self.n, self.n_items = n, 3 * n + others
        self.corpus = np.concatenate([own.reshape(-1, width), rng.normal(size=(others, width))]).astype(np.float32)
        self.queries = (centres + 0.3 * rng.normal(size=(n, width))).astype(np.float32)
        self.labelled = 3 * np.arange(n) + rng.integers(0, 3, n)

    def is_false(self, ids):
        """(n, k) whether a negative belongs to the anchor's family."""
        return (ids >= 0) & (ids < 3 * self.n) & (ids // 3 == np.arange(len(ids))[:, None])

    def false_share(self, ids):
        """The share of false negatives."""
        return self.is_false(ids).sum() / (ids >= 0).sum()

    def write(self, folder):
        """Vectors, pairs, queries and documents as files, and the words of a command line that reads them."""
        np.save(folder / "q.npy", self.queries)
        np.save(folder / "c.npy", self.corpus)
        queries = [f"question {row}" for row in range(self.n)]
        documents = [f"d{row}" for row in range(self.n_items)]
        pairs = {"anchor": queries, "positive": [documents[item] for item in self.labelled]}
        pq.write_table(pa.table(pairs), folder / "pairs.parquet")
        texts = [f"text of document {row}" for row in range(self.n_items)]
        pq.write_table(pa.table({"id": documents, "text": texts}), folder / "docs.parquet")
        return ["pairs.parquet", "--corpus", "docs.parquet", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]
