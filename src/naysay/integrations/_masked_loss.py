"""mask_false_negatives: MultipleNegativesRankingLoss without the negatives that a detector suspects."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any, final

from naysay._processes import rank_and_size
from naysay.arrays import need_torch, to_torch
from naysay.checks import check_bool, public, raise_invalid, shown
from naysay.detectors._suspicion import suspicion_of, threshold_of
from naysay.integrations._frameworks import VERSIONS, need
from naysay.mining.judge import check_detector, check_judge_text, is_yet_to_fit, judge_of
from naysay.types import Negatives, Query

# {loss: the method that gets the vectors of a batch, and the names of its first parameters}
_LOSSES = {
    "MultipleNegativesRankingLoss": ("compute_loss_from_embeddings", ("embeddings", "labels")),
    "CachedMultipleNegativesRankingLoss": ("calculate_loss", ("reps", "labels")),
}
_ALL_LOSSES_SINCE = "5.7"  # a version with both; the first is in 5.3, too


@public
def mask_false_negatives(loss: Any, judge: Any, *, own_negatives: bool = False, in_batch: bool = True) -> Any:
    """Leave negatives that a detector suspects out of MultipleNegativesRankingLoss, in each batch.

        loss_i = -log( e^{s_ii / t} / sum over j not suspected of e^{s_ij / t} ),  the positive s_ii always counts

    The negatives of row i are the positives and hard negatives of other rows, which are judged, and its own hard
    negatives, which are not unless asked: they were mined for this row. The detector gets their scores by the model in
    training, without gradients: "margin:-0.1" is the mask of Qwen3's batches, "share:0.95" that of NV-Retriever. A
    column `label` of whole numbers, which this loss does not use, gives anchors and positives these numbers as ids, for
    detectors such as `Labelled`; hard negatives are not judged then, and a positive of another row with the id of the
    row's own is always masked. With `gather_across_devices` the batch is that of all processes.

    Zhang et al. Qwen3 Embedding. 2025; Solatorio. GISTEmbed. 2024, which asks a second model.

    Args:
        loss: A `MultipleNegativesRankingLoss` or `CachedMultipleNegativesRankingLoss`, with any scale, similarity and
            hardness, whose direction is "query_to_doc". It is changed.
        judge: A detector, {name: detector}, or a text: "margin:0.05", "share:0.95", "max_score:0.8" or "bands:0.3,0.7".
        own_negatives: Whether the hard negatives of a row itself are judged, too.
        in_batch: Whether documents of other rows are negatives at all. Without them, only a row's own hard negatives
            are, and the dataset must have some.

    Returns:
        The loss. Its `false_negatives` has `judged` and `masked`, the numbers of negatives so far.

    Raises:
        NaysayError: If the loss or the judge does not fit.
        MissingExtraError: If sentence-transformers is missing, or its version does not fit.
    """
    package = need("sentence-transformers")
    method, given = _method(package, loss)
    if getattr(loss, "directions", ("query_to_doc",)) != ("query_to_doc",):  # older versions have no other
        raise_invalid("loss", "of directions=('query_to_doc',)", shown(loss.directions))
    check_bool("own_negatives", own_negatives)
    check_bool("in_batch", in_batch)
    if isinstance(judge, str):
        check_judge_text("judge", judge)
    tried = judge_of(judge, len)  # any function: the positives' scores come with each batch, and none is asked here
    if tried is None or is_yet_to_fit(tried):
        rule = "a detector that is ready to judge, or a text such as 'share:0.95'"
        raise_invalid("judge", rule, shown(judge))
    check_detector("judge", tried)
    if isinstance(loss.similarity_fct, _Masked):
        raise_invalid("loss", "masked once", "one that is masked already")
    masked = _Masked(loss, judge, own_negatives=own_negatives, in_batch=in_batch)
    setattr(loss, method, masked.within(getattr(loss, method), given))
    loss.similarity_fct = loss.false_negatives = masked
    return loss


def _method(package: Any, loss: Any) -> tuple[str, tuple[str, ...]]:
    """The method of a loss that gets vectors; raise for other losses, and where its parameters have other names."""
    try:
        losses = importlib.import_module("sentence_transformers.sentence_transformer.losses")
    except ModuleNotFoundError:  # before 6.0
        losses = importlib.import_module("sentence_transformers.losses")
    for kind, (method, names) in _LOSSES.items():
        if type(loss) is getattr(losses, kind):
            found = getattr(loss, method, None)
            if found is None or tuple(inspect.signature(found).parameters)[: len(names)] != names:
                rule = f"of a version whose {kind}.{method} takes ({', '.join(names)})"
                beyond = VERSIONS["sentence-transformers"][2]
                advice = f"Run: pip install 'sentence-transformers>={_ALL_LOSSES_SINCE},<{beyond}'"
                raise_invalid("sentence-transformers", rule, package.__version__, advice)
            return method, names
    raise_invalid("loss", " or ".join(_LOSSES), type(loss).__name__)


@final
class _Masked:
    """A similarity of queries (b, d) and documents (M, d) whose suspected cells are -inf.

    The rows of a batch come in one call, or in several, in their order.
    """

    def __init__(self, loss: Any, judge: Any, *, own_negatives: bool, in_batch: bool) -> None:
        self.loss, self.similarity, self.judge = loss, loss.similarity_fct, judge
        self.own_negatives, self.in_batch = own_negatives, in_batch
        self.judged: Any = 0
        self.masked: Any = 0
        self._labels: Any = None
        self._batch = 0  # rows of the whole batch, of all processes
        self._next = 0  # the row of it that comes next
        functools.update_wrapper(self, self.similarity)  # its name is in the model card

    def within(self, method: Any, names: tuple[str, ...]) -> Any:
        """The method of a loss that computes it from vectors, which begins with the first row of this process."""

        @functools.wraps(method)
        def call(*args: Any, **given: Any) -> Any:
            vectors, labels = (*args, *(given[name] for name in names if name in given))[:2]
            parts = vectors[0] if isinstance(vectors[0], list) else [vectors[0]]
            n_rows = sum(map(len, parts))
            rank, processes = rank_and_size() if self.loss.gather_across_devices else (0, 1)
            self._batch, self._next = n_rows * processes, n_rows * rank
            self._labels = labels if _are_ids(labels) else None
            if self._labels is not None and processes > 1:
                self._labels = _gathered(self._labels)
            if not self.in_batch and len(vectors) < 3:
                raise_invalid("in_batch", "True where the dataset has no hard negatives", False)
            found = method(*args, **given)
            if self._next != n_rows * (rank + 1):
                compared = self._next - n_rows * rank
                message = f"mask_false_negatives: {compared} rows were compared; this version of the loss differs."
                raise RuntimeError(message)
            return found

        return call

    def __call__(self, queries: Any, documents: Any) -> Any:
        """(b, M) the similarities."""
        scores = self.similarity(queries, documents)
        torch = need_torch()
        with torch.no_grad():
            rows = torch.arange(self._next, self._next + len(scores), device=scores.device)
            self._next += len(scores)
            suspected = self._suspected(scores.detach().float(), rows)
            self.masked = self.masked + suspected.sum()
        return scores.masked_fill(suspected, -torch.inf)

    def _suspected(self, scores: Any, rows: Any) -> Any:
        """(b, M) bool: the negatives of some rows of the batch that are suspected.

        The documents are the positives of all rows, then the first hard negatives of all rows, and so on.
        """
        torch = need_torch()
        columns = torch.arange(scores.shape[1], device=scores.device)
        is_positive = columns == rows[:, None]
        is_own = columns % max(1, self._batch) == rows[:, None] if self._batch else is_positive
        names = columns
        is_known = torch.zeros_like(is_positive)
        if self._labels is not None:
            names = torch.full_like(columns, -1)
            names[: len(self._labels)] = self._labels
            is_known = (names == names[rows][:, None]) & ~is_own
        is_judged = (names >= 0) & ~is_positive & ~is_known
        if not self.own_negatives:
            is_judged &= ~is_own
        if not self.in_batch:
            is_judged &= is_own
        positive = scores[is_positive]
        detector = judge_of(self.judge, lambda query: positive)
        negatives = Negatives(torch.where(is_judged, names, -1), scores=scores)
        suspicion = suspicion_of("judge", detector, Query(names[rows], positives=names[rows]), negatives)
        self.judged = self.judged + is_judged.sum()
        suspected = (to_torch(suspicion, scores.device) >= threshold_of(detector)) & is_judged
        return suspected | is_known if self.in_batch else suspected | ~is_own


def _are_ids(labels: Any) -> bool:
    """Whether the labels of a batch are whole numbers from 0 on."""
    if labels is None or labels.ndim != 1 or labels.is_floating_point():
        return False
    return bool((labels >= 0).all())


def _gathered(labels: Any) -> Any:
    """The labels of all processes, in the order of their ranks."""
    torch = need_torch()
    parts = [torch.empty_like(labels) for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather(parts, labels.contiguous())
    return torch.cat(parts)
