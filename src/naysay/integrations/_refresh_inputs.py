"""The training set of a trainer as `RefreshNegatives` needs it, and the transform that adds its negatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.formats._whole_files import need_datasets
from naysay.integrations import _hard_negative_inputs as inputs

_NAME = "negative"


@final
class Slots:
    """The transform of a dataset: {column: texts} of some rows in, the same with the current negatives out.

    Rows are known by the text of their anchor, because a transform is not given their numbers.
    """

    def __init__(self, anchor: str, given: list[str], anchors: list[str], corpus: Any, ids: NDArray[np.int64]) -> None:
        self.anchor, self.given, self.corpus = anchor, given, corpus
        self.rows = dict(zip(anchors, range(len(anchors)), strict=True))
        self.ids = ids  # (n, k); (n, 0) while those of the dataset are used

    def __call__(self, batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Add, or replace, the columns of negatives."""
        import pyarrow as pa

        if not self.ids.shape[1] or self.anchor not in batch:
            return batch
        ids = self.ids[[self.rows[text] for text in batch[self.anchor]]]
        names = self.given or names_of(ids.shape[1])
        texts = [self.corpus.take(pa.array(column)).to_pylist() for column in ids.T]
        kept = {name: values for name, values in batch.items() if name not in self.given}
        return kept | dict(zip(names, texts, strict=True))


def names_of(k: int) -> list[str]:
    """The names of k columns of negatives, as sentence-transformers has them."""
    return [_NAME] if k == 1 else [f"{_NAME}_{place + 1}" for place in range(k)]


def trained_on(loader: Any) -> Any:
    """The dataset of a trainer, if it is one that negatives can be added to."""
    dataset, datasets = getattr(loader, "dataset", None), need_datasets()
    if not isinstance(dataset, datasets.Dataset):
        advice = "Several datasets need a trainer each; an iterable one has to be downloaded."
        raise_invalid("train_dataset", "one datasets.Dataset", type(dataset).__name__, advice)
    transform = dataset.format["format_kwargs"].get("transform")
    if dataset.format["type"] is not None and not isinstance(transform, Slots):
        got = shown(dataset.format["type"])
        raise_invalid("train_dataset", "without a format or transform of its own", got, "Call reset_format().")
    dataset.reset_format()  # that of a run that was interrupted
    return dataset


def pair_columns(dataset: Any, k: int) -> tuple[dict[str, Any], list[str]]:
    """{name: texts} of the anchors and positives, the first two columns, and the names of the columns of negatives."""
    names = list(dataset.column_names)
    negatives = names[2:]
    if len(names) < 2 or not all(name.startswith(_NAME) for name in negatives):
        rule = "of two columns of texts, anchors and positives, and then none but negatives"
        got = ", ".join(map(repr, names))
        raise_invalid("train_dataset", rule, got, "Choose them: dataset.select_columns([anchor, positive]).")
    if negatives and len(negatives) != k:
        raise_invalid("k", f"{len(negatives)}, the columns of negatives that the training set has", k)
    return inputs.read_columns(dataset, names[0], names[1]), negatives


def check_loader(loader: Any, every: str | int) -> None:
    """Raise where workers or a batch sampler would go on with the negatives of the first epoch."""
    workers, where = getattr(loader, "num_workers", 0), "the workers have copies of the training set"
    if workers and every != "epoch":
        raise_invalid("dataloader_num_workers", f"0 with every={every}, as {where}", workers)
    if getattr(loader, "persistent_workers", False):
        raise_invalid("dataloader_persistent_workers", f"False, as {where}", True)
    batches: Any = getattr(loader, "batch_sampler", None)
    for sampler in (batches, getattr(batches, "batch_sampler", None)):  # of several processes
        if getattr(sampler, "precompute_hashes", False):
            rule = "another one, as this one hashes the texts once"
            raise_invalid("batch_sampler", rule, "'no_duplicates_hashed'", "Use 'no_duplicates'.")


def prompts_of(args: Any, column: str) -> str | None:
    """The prompt that sentence-transformers trains a column with."""
    prompts = getattr(args, "prompts", None)
    if isinstance(prompts, Mapping):
        prompts = prompts.get(column)
    return prompts if isinstance(prompts, str) else None
