"""The blocks of a training file, written one after another: the file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from naysay.formats import _whole_files as whole_files
from naysay.formats._blocks import Job
from naysay.formats._columns import rows_of
from naysay.formats._table import Format


def write_blocks(
    target: Path,
    chosen: Format,
    job: Job,
    corpus_path: str | None,
    wrote: Callable[[int], None] | None = None,
) -> int:
    """All blocks to a draft, which then takes the place of `target`; the number of rows comes back.

    Args:
        wrote: Called with the number of anchors of each block that is written, or None.
    """
    rows, kind = 0, target.suffix.lower()
    with (
        whole_files.draft_of(target) as draft,
        _opened(draft, kind, chosen, job, corpus_path) as write,
    ):
        for block in job.blocks():
            columns = chosen.columns(block)
            write(columns)
            rows += rows_of(columns)
            if wrote is not None:
                wrote(len(block.anchors))
    return rows


def _opened(
    draft: Path, kind: str, chosen: Format, job: Job, corpus_path: str | None
) -> AbstractContextManager[whole_files.Write]:
    """The writer of a kind of file."""
    if kind == ".json":
        return whole_files.json_document(draft, {"corpus": {"path": corpus_path}})
    if kind not in (".parquet", ".hf"):
        return whole_files.json_lines(draft, arrays=chosen.arrays)
    empty = chosen.columns(job.block(0, 0))
    return whole_files.parquet(draft, empty) if kind == ".parquet" else whole_files.data_set(draft, empty)
