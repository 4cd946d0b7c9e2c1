"""What users hand in for `Positives`, checked and turned into arrays: ids, CSR, sparse matrices, edges, triples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_lengths, check_range, check_whole, first_bad, refuse, whole_numbers
from naysay.types import HEAD, RELATION, TAIL
from naysay.vocabulary import Vocabulary

Ids = NDArray[np.int64]


def size_of(
    owner: str, name: str, of: str, given: int | None, ids: NDArray[Any], names: Vocabulary | None = None
) -> int:
    """The number of anchors, items or nodes: as given, by the vocabulary, or the largest id plus one; no id above."""
    if given is None:
        if ids.size and ids.min() < 0:
            refuse(owner, of, "at least 0", first_bad(ids, ids < 0))
        return len(names) if names is not None else (int(ids.max()) if ids.size else -1) + 1
    size = check_whole(owner, name, given, 0)
    check_range(owner, of, ids, size, name.removeprefix("n_"))
    return size


def aligned(owner: str, name: str, anchors: ArrayLike, others: ArrayLike, n_anchors: int) -> tuple[Ids, Ids]:
    """Anchors and a partner array broadcast to one shape; (B,) goes with (B, K) row by row."""
    owners, partners = np.asarray(to_numpy(anchors)), np.asarray(to_numpy(others))
    owners = whole_numbers(owner, "anchors", owners.ravel()).reshape(owners.shape)
    partners = whole_numbers(owner, name, partners.ravel()).reshape(partners.shape)
    check_range(owner, "anchors", owners.ravel(), n_anchors, "anchors")
    shapes = f"shapes {owners.shape} and {partners.shape}"
    if owners.ndim == 1 and partners.ndim == 2:
        owners = owners[:, None]
    try:
        owners, partners = np.broadcast_arrays(owners, partners)
    except ValueError:
        refuse(owner, name, "of shape (B,) or (B, K) for anchors (B,)", shapes)
    return owners.astype(np.int64, copy=False), partners.astype(np.int64, copy=False)


def csr_arrays(owner: str, indptr: ArrayLike, indices: ArrayLike) -> tuple[Ids, NDArray[Any]]:
    """Row starts that rise from 0 to the number of ids, and the ids."""
    starts = whole_numbers(owner, "indptr", to_numpy(indptr)).astype(np.int64)
    ids = whole_numbers(owner, "indices", to_numpy(indices))
    rule, falls = f"a rising sequence from 0 to the {len(ids)} indices", np.diff(starts) < 0
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != len(ids):
        got = f"{len(starts)} values, {starts[:1].tolist()} to {starts[-1:].tolist()}"
        refuse(owner, "indptr", rule, got)
    if falls.any():
        refuse(owner, "indptr", rule, f"a fall to {first_bad(starts[1:], falls)}")
    return starts, ids


def sparse_arrays(owner: str, matrix: Any) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Row starts, ids and the number of columns of a scipy.sparse matrix, explicit zeros left out."""
    if not hasattr(matrix, "tocsr"):
        refuse(owner, "matrix", "a scipy.sparse matrix", type(matrix).__name__)
    sparse = matrix.tocsr()
    if sparse.nnz and not sparse.data.all():
        sparse = sparse.copy()
        sparse.eliminate_zeros()
    return sparse.indptr, sparse.indices, int(sparse.shape[1])


def edge_ends(
    owner: str, sources: ArrayLike, targets: ArrayLike | None, n_nodes: int | None, *, directed: bool
) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Both ends of each edge, each edge both ways unless directed, and the number of nodes."""
    if targets is None:
        edges = np.asarray(to_numpy(sources))
        if edges.ndim != 2 or edges.shape[1] != 2:
            advice = "Pass targets, or one array of edges (n, 2)."
            refuse(owner, "sources", "of shape (n, 2) if there are no targets", f"shape {edges.shape}", advice)
        sources, targets = edges[:, 0], edges[:, 1]
    starts = whole_numbers(owner, "sources", to_numpy(sources))
    ends = whole_numbers(owner, "targets", to_numpy(targets))
    check_lengths(owner, sources=len(starts), targets=len(ends))
    size = max(
        size_of(owner, "n_nodes", "sources", n_nodes, starts), size_of(owner, "n_nodes", "targets", n_nodes, ends)
    )
    if directed:
        return starts, ends, size
    return np.concatenate([starts, ends]), np.concatenate([ends, starts]), size


def triple_array(owner: str, triples: Any) -> Ids:
    """(n, 3) int64: head, relation, tail."""
    array = np.asarray(to_numpy(triples))
    if array.ndim == 2 and array.shape[1] == 3:
        return whole_numbers(owner, "triples", array, "(n, 3)").astype(np.int64, copy=False)
    if array.ndim == 1 and array.size == 0:  # an empty list
        return np.empty((0, 3), np.int64)
    refuse(owner, "triples", "of shape (n, 3): head, relation, tail", f"shape {array.shape}")


def check_parts(owner: str, triples: Ids, n_entities: int, n_relations: int) -> None:
    """Refuse parts outside their ranges: the first bad triple and how many."""
    limits = np.array([n_entities, n_relations, n_entities])
    bad = (triples < 0) | (triples >= limits)
    if bad.any():
        rule = f"of ids within {n_entities} entities and {n_relations} relations"
        refuse(owner, "triples", rule, first_bad(triples, bad))


def triple_sizes(owner: str, triples: Ids, n_entities: int | None, n_relations: int | None) -> tuple[int, int]:
    """The numbers of entities and relations, as given or by the largest ids; every part must be below its size."""
    if n_entities is None:
        n_entities = int(triples[:, [HEAD, TAIL]].max(initial=-1)) + 1
    if n_relations is None:
        n_relations = int(triples[:, RELATION].max(initial=-1)) + 1
    sizes = check_whole(owner, "n_entities", n_entities, 0), check_whole(owner, "n_relations", n_relations, 0)
    for name, size in zip(("n_entities", "n_relations"), sizes, strict=True):
        if size >= 1 << 31:  # a key is the product of two ids
            refuse(owner, name, "below 2^31", size)
    check_parts(owner, triples, *sizes)
    return sizes
