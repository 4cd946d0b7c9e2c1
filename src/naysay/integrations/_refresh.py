"""RefreshNegatives: a callback of Trainer that mines the negatives again with the model as it is."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay.checks import check_one_of, check_whole, public, raise_invalid, shown
from naysay.difficulty.monitor import Scalars, writer
from naysay.encode._inputs import text_array
from naysay.errors import NaysayWarning
from naysay.files import load_folder, save_folder
from naysay.formats._writing import need_datasets
from naysay.integrations._frameworks import need
from naysay.integrations._refresh_inputs import (
    TrainingSet,
    check_loader,
    check_prompts,
    drift,
    pair_columns,
    trained_on,
)
from naysay.mining.options import MiningOptions
from naysay.text import first_line

_PREFIX = "refresh/"
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

    The negatives are part of each checkpoint, in the folder naysay_negatives. A run that is resumed goes on with them.
    A refresh within an epoch takes effect at the next step, although accelerate has fetched its rows by then: they get
    their negatives when the step begins. It needs dataloader_num_workers=0. With a loader that moves no batches to a
    device, as on a TPU, or that one process feeds (dispatch_batches), it takes effect one step later. Each process of a
    distributed run mines for itself.

    Cost of a refresh: encoding all distinct texts, and an exact search.

    Xiong et al. Approximate Nearest Neighbor Negative Contrastive Learning for Dense Text Retrieval. ICLR 2021.

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
            reason = f"{type(error).__name__}: {first_line(error)}"
            text = f"RefreshNegatives: at step {state.global_step} the negatives stay as they were: {reason}"
            warnings.warn(text, NaysayWarning, stacklevel=2)
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
            reason = f"{type(error).__name__}: {first_line(error)}"
            text = f"RefreshNegatives: at step {state.global_step} `log` took no numbers: {reason}"
            warnings.warn(text, NaysayWarning, stacklevel=2)

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
        self._set.check_ids(ids, folder)
        if header.get("ids", "") != _checksum(ids):
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
    return {**given, "judge": judge}
