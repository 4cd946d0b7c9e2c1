"""Results of `mine_hard_negatives`: Arrow tables in four formats, built without Python objects, and statistics."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.formats._contents import Block, labels_of
from naysay.formats._formats import FORMATS as _FORMATS
from naysay.formats._formats import format_called
from naysay.formats.write_negatives import with_types
from naysay.integrations._hard_negative_inputs import TextPairs
from naysay.integrations._hard_negatives import Picked

Ids = NDArray[np.int64]
FORMATS = ("triplet", "n-tuple", "labeled-pair", "labeled-list")
_CHUNK = 1 << 27  # bytes of text in a chunk: 32-bit offsets, which `datasets` uses, end at 2^31


def table_of(format: str, names: list[str], pairs: TextPairs, picked: Picked, *, with_scores: bool) -> Any:
    """Return an Arrow table in one of the four formats; `names` are those of its columns [anchor, positive]."""
    import pyarrow as pa

    scores, positive_scores = (picked.scores, picked.positive_scores) if with_scores else (None, None)
    block = Block(np.arange(len(picked.ids)), picked.ids, scores, pairs.anchors, pairs.items, positive_scores)
    table = _table(format, block, pairs.queries, pairs.corpus)
    table = table.rename_columns([*names, *table.column_names[2:]])
    short = {pa.large_string(): pa.string(), pa.float32(): pa.float64()}
    schema = pa.schema([(field.name, with_types(field.type, short)) for field in table.schema])
    rows_per_chunk = max(1, table.num_rows * _CHUNK // max(1, table.nbytes))
    chunks = [table.slice(start, rows_per_chunk).cast(schema) for start in range(0, table.num_rows, rows_per_chunk)]
    return pa.concat_tables([schema.empty_table(), *chunks])


def names_of(format: str, count: int, *, with_scores: bool) -> list[str]:
    """Return the names of the columns of a format after the first two."""
    none, ids = np.empty(0, np.int64), np.empty((0, count), np.int64)
    scores = (np.empty((0, count), np.float32), np.empty(0, np.float32)) if with_scores else (None, None)
    block = Block(none, ids, scores[0], none, none, scores[1])
    return list(_table(format, block, [], []).column_names[2:])


def _table(format: str, block: Block, queries: Any, corpus: Any) -> Any:
    labels = labels_of("query", None, texts=queries), labels_of("corpus", None, texts=corpus)
    return _FORMATS[format_called(format)].table(block, *labels)


def fingerprint(table: Any) -> str:
    """Return a hash of the contents of a table, in 16 hexadecimal digits.

    `datasets` would make its own from a pickle, which takes several times the memory of the table.
    """
    digest = hashlib.blake2b(str(table.schema).encode(), digest_size=8)
    for column in table.columns:
        for chunk in column.chunks:
            digest.update(len(chunk).to_bytes(8, "little"))
            for buffer in chunk.buffers():
                digest.update(b"" if buffer is None else buffer)
    return digest.hexdigest()


def measured(scores: NDArray[np.float32]) -> dict[str, float]:
    """Return {measure: value} of these scores; {} if there are none."""
    if not len(scores):
        return {}
    wide = scores.astype(np.float64)
    lowest, quarter, median, three, highest = np.quantile(wide, [0, 0.25, 0.5, 0.75, 1]).tolist()
    values = {"Mean": float(wide.mean()), "Std": float(wide.std()), "Min": lowest, "25%": quarter}
    return values | {"Median": median, "75%": three, "Max": highest}


def statistics(pairs: TextPairs, picked: Picked, values: dict[str, Any], wanted: int) -> str:
    """Return a table of scores, and of what was skipped and what is missing, as text.

    "Negative" is over (anchor, positive, negative), so an anchor with two positives has each of its negatives twice, as
    in a file of triplets. A candidate is counted for one rule, the first that it broke. Shares are of all candidates
    within the ranks. `values` are {parameter: value}, for the rules that dropped something; `wanted` is k.
    """
    places, columns = np.nonzero(picked.ids[pairs.anchors] >= 0)
    positive, negative = picked.positive_scores, picked.scores[pairs.anchors[places], columns]
    lines = [f"{'':<6} {'Positive':>14} {'Negative':>14} {'Difference':>14}"]
    lines.append(f"{'Count':<6} {len(positive):>14,} {len(negative):>14,}")
    measures = [measured(part) for part in (positive, negative, positive[places] - negative)]
    for name in measures[0]:
        cells = [f"{of[name]:.4f}" if of else "-" for of in measures]
        lines.append(f"{name:<6} {cells[0]:>14} {cells[1]:>14} {cells[2]:>14}")
    for rule, count in picked.dropped.items():
        setting = f" of {values[rule]}" if rule in values else ""
        share = count / max(1, picked.considered)
        lines.append(f"Skipped {count:,} of {picked.considered:,} candidates ({share:.2%}): {rule}{setting}.")
    missing = wanted - np.count_nonzero(picked.ids >= 0, axis=1)
    short = int(np.count_nonzero(missing))
    if short:
        share = short / len(pairs.queries)
        ways = ["a larger range_max"] * picked.cut + ["looser bounds"] * bool(picked.dropped)
        advice = f"{' or '.join(ways).capitalize()} would find more." if ways else "There are no more documents."
        lines.append(
            f"{short:,} of {len(pairs.queries):,} anchors ({share:.2%}) have fewer than {wanted} negatives; "
            f"{int(missing.sum()):,} are missing. {advice}"
        )
    return "\n".join(lines)
