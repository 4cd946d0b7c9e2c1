"""Who is in a batch with whom: rows that must not meet, neighbours among random rows, and walks over them.

A plan is made by one thread, because each batch depends on the ones before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.random import below, number, row_state

_UNIT = 2.0**-53
_S11 = np.uint64(11)


@inlined
def with_room(following: Any, batch: Any) -> Any:
    """The first batch from `batch` on that has room; following[b] = b where it has, else a later one."""
    found = batch
    while following[found] != found:
        found = following[found]
    while following[batch] != found:  # shorter paths for the next time
        following[batch], batch = found, following[batch]
    return found


@compiled
def place_labelled(order: Any, labels: Any, size: Any, following: Any, next_batch: Any, counts: Any, out: Any) -> Any:
    """Put each row of `order` into the first batch that is not full and has none of its label; -1 matches nothing.

    All batches before next_batch[label] have the label or are full. Returns how many rows found no batch.
    """
    left = 0
    n_batches = len(out)
    for i in range(len(order)):
        row = order[i]
        label = labels[row]
        batch = with_room(following, next_batch[label] if label >= 0 else 0)
        if batch == n_batches:
            left += 1
            continue
        out[batch, counts[batch]] = row
        counts[batch] += 1
        if counts[batch] == size:
            following[batch] = batch + 1
        if label >= 0:
            next_batch[label] = batch + 1
    return left


@compiled
def place_linked(
    order: Any, indptr: Any, indices: Any, size: Any, following: Any, batch_of: Any, marks: Any, counts: Any, out: Any
) -> Any:
    """Put each row of `order` into the first batch that is not full and has none of its links. Returns the rows left.

    batch_of (n,) is -1, and marks (n_batches + 1,) are -1 at the start.
    """
    left = 0
    n_batches = len(out)
    for i in range(len(order)):
        row = order[i]
        for position in range(indptr[row], indptr[row + 1]):
            other = batch_of[indices[position]]
            if other >= 0:
                marks[other] = row
        batch = with_room(following, 0)
        while batch < n_batches and marks[batch] == row:
            batch = with_room(following, batch + 1)
        if batch == n_batches:
            left += 1
            continue
        batch_of[row] = batch
        out[batch, counts[batch]] = row
        counts[batch] += 1
        if counts[batch] == size:
            following[batch] = batch + 1
    return left


@compiled
def nearest_of_random(start: Any, stop: Any, key: Any, vectors: Any, draws: Any, out: Any) -> None:
    """out[row] = the nearest of `draws` random other rows by dot product, each once; -1 where there are fewer."""
    n, width = vectors.shape
    kept = out.shape[1]
    best = np.empty(kept, np.float32)
    for row in range(start, stop):
        state = row_state(key, row)
        found = 0
        out[row, :] = -1
        for draw in range(draws):
            other = below(number(state, draw), n - 1)
            other += np.int64(other >= row)
            score = np.float32(0)
            for i in range(width):
                score += vectors[row, i] * vectors[other, i]
            if found == kept and not score > best[kept - 1]:
                continue
            again = False
            for place in range(found):
                again |= out[row, place] == other
            if again:
                continue
            place = min(found, kept - 1)
            while place > 0 and best[place - 1] < score:
                best[place] = best[place - 1]
                out[row, place] = out[row, place - 1]
                place -= 1
            best[place] = score
            out[row, place] = other
            found = min(found + 1, kept)


@compiled
def walk(key: Any, neighbours: Any, order: Any, restart: Any, cover: Any, steps: Any, used: Any, out: Any) -> Any:
    """Batches of the rows that walks visit, each from a row not used yet; how many rows were filled in at random.

    A step goes back to the start with the chance `restart`, and then to a random neighbour. After `steps` steps a
    batch is filled with the next rows of `order` (n,). With `cover` no row comes twice; else not in one batch. used
    (n,) is 0 at the start.
    """
    n, degree = neighbours.shape
    n_batches, size = out.shape
    next_start, filled = 0, 0
    for batch in range(n_batches):
        state = row_state(key, batch)
        mark = 1 if cover else batch + 1
        wanted = min(size, n - batch * size) if cover else size
        while used[order[next_start]] == mark:
            next_start = (next_start + 1) % n
        start = order[next_start]
        next_start = (next_start + 1) % n
        used[start] = mark
        out[batch, 0] = start
        count = 1
        node = start
        for step in range(steps):
            if count == wanted:
                break
            if float(number(state, 2 * step) >> _S11) * _UNIT < restart:
                node = start
            node = neighbours[node, below(number(state, 2 * step + 1), degree)]
            if node < 0:
                node = start
            elif used[node] != mark:
                used[node] = mark
                out[batch, count] = node
                count += 1
        spare = next_start
        while count < wanted:
            while used[order[spare]] == mark:
                spare = (spare + 1) % n
            used[order[spare]] = mark
            out[batch, count] = order[spare]
            count += 1
            filled += 1
        if cover:
            next_start = spare
    return filled
