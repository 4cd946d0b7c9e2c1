"""The training set of a trainer as `RefreshNegatives` needs it: checks, mining, and the transform of its rows."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown, shown_names
from naysay.difficulty.monitor import Scalars, hardness
from naysay.encode._inputs import texts_hash
from naysay.encode.texts import encode_texts
from naysay.formats._writing import need_datasets
from naysay.integrations import _hard_negative_inputs as inputs
from naysay.integrations._hard_negative_tables import names_of
from naysay.mining.mine import mine
from naysay.mining.mined import Mined
from naysay.search.vectors import as_vectors
from naysay.text import first_line

_NAME = "negative"


@final
class Slots:
    """The transform of a dataset: {column: texts} of some rows in, the same with the current negatives out.

    Rows are known by the text of their anchor, because a transform is not given their numbers.
    """

    def __init__(self, anchor: str, names: list[str], anchors: list[str], corpus: Any, ids: NDArray[np.int64]) -> None:
        self.anchor, self.names, self.corpus = anchor, names, corpus
        self.rows = dict(zip(anchors, range(len(anchors)), strict=True))
        self.ids = ids  # (n, k); (n, 0) while those of the dataset are used

    def __call__(self, batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Add, or replace, the columns of negatives."""
        import pyarrow as pa

        if not self.ids.shape[1] or self.anchor not in batch:
            return batch
        ids = self.ids[[self.rows[text] for text in batch[self.anchor]]]
        texts = [self.corpus.take(pa.array(column)).to_pylist() for column in ids.T]
        kept = {name: values for name, values in batch.items() if name not in self.names}
        return kept | dict(zip(self.names, texts, strict=True))


@final
class LateBatch:
    """Rows whose negatives are looked up, and which are collated, when the batch is moved to its device.

    That is when its step begins. accelerate fetches it one step before, with the negatives of that time.
    """

    def __init__(self, rows: list[dict[str, Any]], slots: Slots, collate: Callable[[Any], Any]) -> None:
        self.rows, self.slots, self.collate = rows, slots, collate

    def to(self, device: Any, non_blocking: bool = False) -> Any:  # noqa: FBT001  (as torch calls it)
        """The batch, as accelerate would have moved it."""
        names = [*self.rows[0]]
        now = self.slots({name: [row[name] for row in self.rows] for name in names})
        rows = [dict(zip(now, values, strict=True)) for values in zip(*now.values(), strict=True)]
        moved: Any = importlib.import_module("accelerate.utils")
        return moved.send_to_device(self.collate(rows), device, non_blocking=non_blocking)

    def pin_memory(self) -> LateBatch:
        """Nothing: there is no tensor yet."""
        return self


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


def pair_columns(dataset: Any, k: int) -> tuple[dict[str, Any], list[str], bool]:
    """{name: texts} of the first two columns, the names of the columns of negatives, and whether the set has them."""
    names = list(dataset.column_names)
    negatives = names[2:]
    if len(names) < 2 or not all(name.startswith(_NAME) for name in negatives):
        rule = "of two columns of texts, anchors and positives, and then none but negatives"
        got = shown_names(names)
        raise_invalid("train_dataset", rule, got, "Choose them: dataset.select_columns([anchor, positive]).")
    if negatives and len(negatives) != k:
        raise_invalid("k", f"{len(negatives)}, the columns of negatives that the training set has", k)
    new = names_of("triplet" if k == 1 else "n-tuple", k, with_scores=False)
    return inputs.read_columns(dataset, names[0], names[1]), negatives or new, bool(negatives)


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


def check_prompts(args: Any, positive: str, negatives: list[str]) -> None:
    """Raise if positives are trained with a prompt and negatives without, as prompts go by the name of the column."""
    missing = [name for name in negatives if prompts_of(args, name) is None]
    if prompts_of(args, positive) and missing:
        rule = f"with the columns of negatives, too, as {positive!r} has a prompt"
        raise_invalid("prompts", rule, f"none for {', '.join(map(repr, missing))}", "Add these keys.")


@final
class TrainingSet:
    """The texts of a training set, and its current negatives."""

    def __init__(self, columns: dict[str, Any], negatives: list[str], corpus: Any, dataset: Any) -> None:
        self.names, self.dataset = tuple(columns), dataset
        self.pairs = inputs.pair_up(columns, corpus)
        self.known = inputs.never_negative(self.pairs, duplicates=True, include_positives=False)
        none = np.empty((len(self.pairs.queries), 0), np.int64)
        self.slots = Slots(self.names[0], negatives, self.pairs.queries.to_pylist(), self.pairs.corpus, none)
        parts = texts_hash(self.pairs.queries, self.pairs.anchors), texts_hash(self.pairs.corpus, self.pairs.items)
        self.key = "-".join(parts)

    def check_ids(self, ids: NDArray[Any], folder: Path) -> None:
        """Raise unless (n, k) ids of a checkpoint are negatives of this training set."""
        anchors, documents = len(self.pairs.queries), len(self.pairs.corpus)
        got = ""
        if ids.dtype != np.int64:
            got = f"dtype {ids.dtype}"
        elif len(ids) != anchors:
            got = f"{len(ids):,} rows"
        elif ids.size and (ids.min() < 0 or ids.max() >= documents):
            got = f"ids from {ids.min()} to {ids.max()}"
        elif self.known.contains(np.repeat(np.arange(anchors), ids.shape[1]), ids.reshape(-1), relation="any").any():
            got = "known positives"
        if got:
            rule = f"a checkpoint with negatives of {anchors:,} anchors among {documents:,} documents"
            raise_invalid("resume_from_checkpoint", rule, f"{got} in {str(folder)!r}")

    def attach(self, loader: Any, *, late: bool) -> None:
        """Let the dataset return the current negatives; `late` batches have those of the time when they are used.

        Late are only batches of accelerate's usual loader, which moves each one to its device.
        """
        slots, content = self.slots, vars(self.slots)
        slots.__dict__ = {}  # `datasets` hashes a transform, with all its texts
        try:
            self.dataset.set_transform(slots)
        finally:
            slots.__dict__ = content
        usual: Any = importlib.import_module("accelerate.data_loader").DataLoaderShard
        if late and type(loader) is usual and loader.device is not None:
            collate = loader.base_dataloader.collate_fn
            loader.base_dataloader.collate_fn = lambda rows: LateBatch(rows, slots, collate)

    def try_out(self, model: Any, args: Any) -> None:
        """Encode one text before training starts; raise if the model cannot."""
        with tempfile.TemporaryDirectory(prefix="naysay-") as folder:
            try:
                self._encoded(model, self.pairs.queries.slice(0, 1), 0, args, folder)
            except Exception as error:
                got = f"{type(model).__name__} ({first_line(error)})"
                raise_invalid("model", "one that encodes each text as one vector", got)

    def mined(
        self, model: Any, args: Any, k: int, options: Mapping[str, Any], step: int
    ) -> tuple[NDArray[np.int64], Scalars]:
        """Return (n, k) documents for each distinct anchor, and what they are like."""
        given = {"seed": args.seed + step, **options, "metric": inputs.metric_of(model, options.get("metric"))}
        trained = getattr(model, "training", None)
        with tempfile.TemporaryDirectory(prefix="naysay-") as folder:
            try:
                texts = (self.pairs.queries, self.pairs.corpus)
                vectors = [self._encoded(model, part, side, args, folder) for side, part in enumerate(texts)]
            finally:
                if trained is not None:
                    model.train(trained)
            if given.get("reviewer") is not None:
                given.setdefault("texts", tuple(part.to_pylist() for part in texts))
            found = mine(*vectors, self.known, k, **given)
            if (found.ids < 0).any():
                got = f"fewer for {int((found.ids < 0).any(axis=1).sum())} of {len(found.ids)} anchors"
                advice = "Pass more documents, or mining={'on_short': 'relax'}, which takes suspected ones."
                raise_invalid(
                    "corpus", f"of {k} documents for each anchor that are neither known nor suspected", got, advice
                )
            return found.ids, _measures(found)

    def _encoded(self, model: Any, texts: Any, side: int, args: Any, folder: str) -> Any:
        prompt, size = prompts_of(args, self.names[side]), args.per_device_eval_batch_size
        name = ("query", "document")[side]
        path = encode_texts(
            model, texts, folder=folder, batch_size=size, prompt=prompt, side=name, cache=False, show=False
        )
        return as_vectors(name, path)


def _measures(mined: Mined) -> Scalars:
    """What the negatives are like by the model that mined them."""
    found = hardness(mined.scores, mined.mask, mined.positive_scores)
    share = mined.false_share
    if share is not None:
        found["false_share"] = share.estimate
    drawn = [place for place, name in enumerate(mined.source_names) if name == "random"]
    found["random"] = float(np.isin(mined.source, drawn).mean())
    return {name: value for name, value in found.items() if np.isfinite(value)}


def drift(ids: NDArray[np.int64], before: NDArray[np.int64]) -> float:
    """The share of (n, k) negatives that their anchor did not have before."""
    stayed = np.zeros(ids.shape, bool)
    for column in before.T:  # of k; all at once would be n k k cells
        stayed |= ids == column[:, None]
    return float(1.0 - stayed.mean())
