"""RefreshNegatives: a callback of Trainer that mines the negatives again with the model as it is."""

from __future__ import annotations

import hashlib
import importlib
import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._packages import need_datasets
from naysay.checks import check_one_of, check_whole, public, raise_invalid, shown, shown_names
from naysay.detectors.by_reviewer import read_reviewers
from naysay.difficulty.monitor import Scalars, hardness, writer
from naysay.encode._inputs import text_array, texts_hash
from naysay.encode.texts import encode_texts
from naysay.errors import NaysayWarning
from naysay.files import load_folder, save_folder
from naysay.integrations import _hard_negative_inputs as inputs
from naysay.integrations._frameworks import need
from naysay.integrations._hard_negative_tables import names_of
from naysay.mining.mine import Mined, mine
from naysay.mining.options import MiningOptions
from naysay.search.vectors import as_vectors
from naysay.text import first_line

_PREFIX = "refresh/"
_NAME = "negative"  # of a column of negatives
_FOLDER, _KIND = "naysay_negatives", "refreshed negatives"
_ON_ERROR, _FULL = ("keep", "raise"), ("random", "relax", "raise")


@final
@public
class RefreshNegatives:
    """Mine the negatives of a training set again with the current model, at epoch ends or every n steps (ANCE).

    A callback for `SentenceTransformerTrainer`, and for `transformers.Trainer` with a model that has `encode`. The
    training set is a `datasets.Dataset` of two columns of texts, anchors and positives; the loss gets k columns of
    negatives after them. They are mined before the first step, unless the set has k columns `negative...` already,
    which are used until the first refresh. Each anchor has k negatives: what the judge leaves short is filled with
    random documents. Known positives, the anchor's own text and duplicates of both are never negatives.

    Each refresh adds to `log`, and to `trainer.state.log_history` with the prefix refresh/, as in `refresh/drift`:

    | name | meaning |
    |---|---|
    | `score/negatives`, `score/positives` | the mean scores by the current model |
    | `above_positive` | the share of negatives with a higher score than the lowest positive of their anchor |
    | `false_share` | the estimated share of false negatives, where it can be told |
    | `drift` | the share of negatives that the anchor did not have before |
    | `random` | the share that was filled with random documents |
    | `failed` | 1, and nothing else, if the refresh failed and the old negatives stay |

    The negatives are part of each checkpoint, in the folder naysay_negatives, and a resumed run goes on with them. A
    refresh within an epoch needs dataloader_num_workers=0 and takes effect at the next step; one step later with a
    loader that moves no batches to a device (TPU, dispatch_batches). Each process of a distributed run mines for
    itself. Cost of a refresh: encoding all distinct texts, and an exact search. Xiong et al. ANCE. ICLR 2021.

    Args:
        every: "epoch", which is before each epoch but the first; or a number of steps.
        k: Negatives of each anchor.
        corpus: More documents that may become negatives, besides the positives.
        judge: Which candidates to drop as likely false negatives, as for `mine`; the same at each refresh.
        model: What encodes, with encode(texts) as for `encode_texts`. By default the model that is trained.
        mining: More options of `mine`: {"false_share": 0.02, "rank_range": (10, None)}.
        log: Where the numbers go besides, as for `difficulty.Monitor`: a .jsonl path, TensorBoard, Weights & Biases, or
            a function.
        on_error: "keep" goes on with the old negatives if a refresh fails, and without a line in `log` if that fails,
            with a NaysayWarning; "raise" raises the error. The first mining always raises.

    Raises:
        MissingExtraError: If transformers or datasets is missing, or its version does not fit.

    Examples:
        >>> RefreshNegatives("epoch", 4, judge="share:0.95")
        RefreshNegatives(every='epoch', k=4, judge='share:0.95'; 0 refreshes)
    """

    def __init__(
        self,
        every: str | int = "epoch",
        k: int = 1,
        *,
        corpus: Any = None,
        judge: Any = "auto",
        model: Any = None,
        mining: Mapping[str, Any] | None = None,
        log: Any = None,
        on_error: str = "keep",
    ) -> None:
        """Check the settings."""
        need("transformers")
        need_datasets()
        if not isinstance(every, str):
            check_whole("every", every, 1)
        elif every != "epoch":
            raise_invalid("every", "'epoch' or a number of steps", shown(every))
        check_one_of("on_error", on_error, _ON_ERROR)
        self.every, self.k, self.on_error = every, check_whole("k", k, 1), on_error
        self.corpus = None if corpus is None else text_array("corpus", corpus)
        self.judge, self.model, self.options = judge, model, _options(judge, mining)
        self.refreshes, self.step = 0, 0
        self._within = False  # whether the next epoch is one that is resumed in the middle
        self._write = writer(log)
        self._set: TrainingSet | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Check that the trainer fits, then mine, or restore the negatives of the checkpoint."""
        if type(given["model"]).__module__.startswith("sentence_transformers."):
            need("sentence-transformers")
        loader = given["train_dataloader"]
        dataset, model = trained_on(loader), self._encoder(given["model"])
        check_loader(loader, self.every)
        columns, negatives, given_negatives = pair_columns(dataset, self.k)
        check_prompts(args, [*columns][1], negatives)
        self._set = TrainingSet(columns, negatives, self.corpus, dataset)
        self._set.try_out(model, args)
        if state.global_step:
            self._restore(args, state, (self.k, 0) if given_negatives else (self.k,))
        else:
            self.refreshes, self.step, self._within = 0, 0, False
            if not given_negatives:
                self._refresh(args, state, model, first=True)
        self._set.attach(loader, late=isinstance(self.every, int))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Refresh before each epoch but the first; not where an epoch is resumed in the middle."""
        within, self._within = self._within, False
        if self.every == "epoch" and state.global_step > self.step and not within:
            self._refresh(args, state, self._encoder(given["model"]))

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Refresh every so many steps, but not after the last."""
        if isinstance(self.every, int) and state.global_step % self.every == 0 and state.global_step < state.max_steps:
            self._refresh(args, state, self._encoder(given["model"]))

    def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Save the negatives in the checkpoint that the trainer has just written."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if self._set is not None and state.is_world_process_zero and folder.is_dir():
            numbers = {"refreshes": self.refreshes, "step": self.step, "saved": state.global_step}
            header = numbers | {"texts": self._set.key, "log": _logged(state)}
            ids = self._set.slots.ids
            save_folder(folder / _FOLDER, _KIND, header | {"ids": _checksum(ids)}, {"ids": ids})

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Leave the dataset as it was."""
        if self._set is not None:
            self._set.dataset.reset_format()

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Do nothing in all other events of a trainer."""
        if name.startswith("on_"):
            return _nothing
        if name in ("setup", "state_key"):  # what Lightning asks for before it trains
            rule, advice = "those of SentenceTransformerTrainer or transformers.Trainer", "There, call `naysay.mine`."
            raise_invalid("callbacks", rule, "Lightning's", advice)
        raise AttributeError(name)

    def _encoder(self, trained: Any) -> Any:
        model = trained if self.model is None else self.model
        if not callable(getattr(model, "encode", None)):
            advice = "Pass model=, which encodes texts with the weights in training."
            raise_invalid("model", "one with a method encode(texts)", type(model).__name__, advice)
        return model

    def _refresh(self, args: Any, state: Any, model: Any, *, first: bool = False) -> None:
        """Mine, measure and replace; where that fails, keep what there was."""
        current = self._set
        if current is None:  # not in a run
            return
        try:
            ids, found = current.mined(model, args, self.k, self.options, state.global_step)
            if current.slots.ids.shape[1]:
                found["drift"] = drift(ids, current.slots.ids)
        except Exception as error:
            if first or self.on_error == "raise":
                raise
            self._log(state, {"failed": 1.0})
            _warn(state, "the negatives stay as they were", error)
            return
        current.slots.ids = ids
        self.refreshes, self.step = self.refreshes + 1, state.global_step
        self._log(state, found)

    def _log(self, state: Any, found: Scalars) -> None:
        named = {f"{_PREFIX}{name}": value for name, value in found.items()}
        state.log_history.append({**named, "step": state.global_step, "epoch": state.epoch})
        if self._write is None:
            return
        try:
            self._write(state.global_step, found, {})
        except Exception as error:  # a full disk, most likely
            if self.on_error == "raise":
                raise
            _warn(state, "`log` took no numbers", error)

    def _restore(self, args: Any, state: Any, widths: tuple[int, ...]) -> None:
        """Read the negatives of the checkpoint that a run is resumed from; (n, 0) are those that the set has."""
        if self._set is None:
            return
        given = getattr(args, "resume_from_checkpoint", None)
        places = [Path(given)] if isinstance(given, str) else []
        places.append(Path(args.output_dir) / f"checkpoint-{state.global_step}")
        numbers = ("refreshes", "step", "saved")
        for folder in (place / _FOLDER for place in places if (place / _FOLDER).is_dir()):
            header, arrays = load_folder(folder, _KIND, mmap=False, numbers=numbers, needed=("ids",))
            if header["saved"] == state.global_step and header.get("log") == _logged(state):
                break
        else:
            advice = "Set args.resume_from_checkpoint to the folder of the checkpoint."
            rule = f"a checkpoint of step {state.global_step} of this run with a folder {_FOLDER}"
            raise_invalid("resume_from_checkpoint", rule, " or ".join(repr(str(place)) for place in places), advice)
        ids = arrays["ids"]
        if header.get("texts") != self._set.key or ids.ndim != 2 or ids.shape[1] not in widths:
            rule = "the same texts, with the same `k` and columns, as that of the checkpoint"
            raise_invalid("train_dataset", rule, f"another than in {str(folder)!r}")
        if ids.dtype != np.int64 or header.get("ids", "") != _checksum(ids):
            got = f"other ids than were saved in {str(folder)!r}"
            raise_invalid("resume_from_checkpoint", "a checkpoint whose negatives are as they were saved", got)
        self._set.slots.ids, self.refreshes, self.step = ids, header["refreshes"], header["step"]
        self._within = not float(state.epoch or 0).is_integer()

    def __repr__(self) -> str:
        settings = f"every={self.every!r}, k={self.k}, judge={self.judge!r}"
        return f"RefreshNegatives({settings}; {self.refreshes} refreshes)"


def _logged(state: Any) -> str:
    """A hash of what all refreshes have logged: the trainer loads it with a checkpoint, and no other run has it."""
    entries = [entry for entry in state.log_history if any(name.startswith(_PREFIX) for name in entry)]
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _checksum(ids: Any) -> str:
    """A hash of the ids of negatives."""
    return hashlib.sha256(np.ascontiguousarray(ids, np.int64).tobytes()).hexdigest()


def _warn(state: Any, what: str, error: Exception) -> None:
    """Warn of an error that does not end the run, in the name of the caller of the method that warns."""
    text = f"RefreshNegatives: at step {state.global_step} {what}: {type(error).__name__}: {first_line(error)}"
    warnings.warn(text, NaysayWarning, stacklevel=3)


def _nothing(*args: Any, **given: Any) -> None:
    """An event that this callback does not use."""


def _options(judge: Any, mining: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of `mine`, checked; each anchor must get k negatives."""
    given = {"on_short": "random", **(mining or {})}
    names = [one.name for one in fields(MiningOptions) if one.name != "judge"]
    for name in given:
        check_one_of("mining", name, names)
    check_one_of("on_short", given["on_short"], _FULL)
    MiningOptions(**given, judge=judge)
    if given.get("reviewer") is not None:
        read_reviewers(given["reviewer"])
    return {**given, "judge": judge}


# ---- the training set of a trainer -----------------------------------------------------------------------------------


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
        was_training = getattr(model, "training", None)
        with tempfile.TemporaryDirectory(prefix="naysay-") as folder:
            try:
                texts = (self.pairs.queries, self.pairs.corpus)
                vectors = [self._encoded(model, part, side, args, folder) for side, part in enumerate(texts)]
            finally:
                if was_training is not None:
                    model.train(was_training)
            if given.get("reviewer") is not None:
                given.setdefault("texts", tuple(part.to_pylist() for part in texts))
            mined = mine(*vectors, self.known, k, **given)
            n_short = int((mined.ids < 0).any(axis=1).sum())
            if n_short:
                rule = f"of {k} documents for each anchor that are neither known nor suspected"
                advice = "Pass more documents, or mining={'on_short': 'relax'}, which takes suspected ones."
                raise_invalid("corpus", rule, f"fewer for {n_short} of {len(mined.ids)} anchors", advice)
            return mined.ids, _measures(mined)

    def _encoded(self, model: Any, texts: Any, side: int, args: Any, folder: str) -> Any:
        prompt, size = prompts_of(args, self.names[side]), args.per_device_eval_batch_size
        name = ("query", "document")[side]
        path = encode_texts(
            model, texts, folder=folder, batch_size=size, prompt=prompt, side=name, cache=False, show=False
        )
        return as_vectors(name, path)


def _measures(mined: Mined) -> Scalars:
    """What the negatives are like by the model that mined them."""
    numbers = hardness(mined.scores, mined.mask, mined.positive_scores)
    if mined.false_share is not None:
        numbers["false_share"] = mined.false_share.estimate
    at_random = [place for place, name in enumerate(mined.source_names) if name == "random"]
    numbers["random"] = float(np.isin(mined.source, at_random).mean())
    return {name: value for name, value in numbers.items() if np.isfinite(value)}


def drift(ids: NDArray[np.int64], before: NDArray[np.int64]) -> float:
    """The share of (n, k) negatives that their anchor did not have before."""
    stayed = np.zeros(ids.shape, bool)
    for column in before.T:  # of k; all at once would be n k k cells
        stayed |= ids == column[:, None]
    return float(1.0 - stayed.mean())
