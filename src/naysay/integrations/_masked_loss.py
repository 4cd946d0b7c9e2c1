"""mask_false_negatives: MultipleNegativesRankingLoss without the negatives that a detector suspects."""

from __future__ import annotations

import functools
import inspect
from typing import Any, final

from naysay.arrays import need_torch, to_torch
from naysay.checks import public, raise_invalid, shown
from naysay.detectors._slots import suspicion_of, threshold_of
from naysay.integrations._frameworks import VERSIONS, need
from naysay.mining.judge import check_detector, check_judge_text, is_yet_to_fit, judge_of
from naysay.types import Negatives, Query

# {loss: the method that gets the vectors of a batch, and the names of its first parameters}
_LOSSES = {
    "MultipleNegativesRankingLoss": ("compute_loss_from_embeddings", ("embeddings", "labels")),
    "CachedMultipleNegativesRankingLoss": ("calculate_loss", ("reps", "labels")),
}


@public
def mask_false_negatives(loss: Any, judge: Any) -> Any:
    """Leave negatives that a detector suspects out of MultipleNegativesRankingLoss, in each batch.

        loss_i = -log( e^{s_ii / t} / sum over j not suspected of e^{s_ij / t} ),  the positive s_ii always counts

    The negatives of row i are all other documents of the batch: the positives of other rows, and all hard negatives.
    The detector is asked without gradients, for their scores by the model in training: `Query(0 ... B - 1)` and
    `Negatives` (B, M), whose ids are columns of the batch. So a rule by scores fits ("margin:-0.1" is the mask of
    Qwen3's batches, "share:0.95" that of NV-Retriever). If the dataset has a column `label` of whole numbers, which
    this loss does not use, the anchors and their positives have these numbers as ids, for detectors that go by id such
    as `Labelled`; hard negatives, which have none, are not judged then.

    With `CachedMultipleNegativesRankingLoss` (GradCache) each chunk of rows is judged as it comes.

    Zhang et al. Qwen3 Embedding: Advancing Text Embedding and Reranking Through Foundation Models. 2025; Solatorio.
    GISTEmbed. 2024, which asks a second model.

    Args:
        loss: A `MultipleNegativesRankingLoss` or `CachedMultipleNegativesRankingLoss`, with any scale, similarity and
            hardness, whose direction is "query_to_doc". It is changed.
        judge: A detector, {name: detector}, or a text: "margin:0.05", "share:0.95", "max_score:0.8" or "bands:0.3,0.7".

    Returns:
        The loss. Its `false_negatives` has `judged` and `masked`, the numbers of negatives so far.

    Raises:
        NaysayError: If the loss or the judge does not fit.
        MissingExtraError: If sentence-transformers is missing, or its version does not fit.
    """
    package = need("sentence-transformers")
    method, given = _method(package, loss)
    if loss.directions != ("query_to_doc",):
        raise_invalid("loss", "of directions=('query_to_doc',)", shown(loss.directions))
    if loss.gather_across_devices:
        advice = "The detector sees the batch of its own process."
        raise_invalid("loss", "with gather_across_devices=False", True, advice)
    if isinstance(judge, str):
        check_judge_text("judge", judge)
    tried = judge_of(judge, len)  # any function: the positives' scores come with each batch, and none is asked here
    if tried is None or is_yet_to_fit(tried):
        rule = "a detector that is ready to judge, or a text such as 'share:0.95'"
        raise_invalid("judge", rule, shown(judge))
    check_detector("judge", tried)
    if isinstance(loss.similarity_fct, _Masked):
        raise_invalid("loss", "masked once", "one that is masked already")
    masked = _Masked(loss.similarity_fct, judge)
    setattr(loss, method, masked.within(getattr(loss, method), given))
    loss.similarity_fct = loss.false_negatives = masked
    return loss


def _method(package: Any, loss: Any) -> tuple[str, tuple[str, ...]]:
    """The method of a loss that gets vectors; raise for other losses, and where its parameters have other names."""
    losses = package.sentence_transformer.losses
    for kind, (method, names) in _LOSSES.items():
        if type(loss) is getattr(losses, kind):
            found = getattr(loss, method, None)
            if found is None or tuple(inspect.signature(found).parameters)[: len(names)] != names:
                rule = f"of a version whose {kind}.{method} takes ({', '.join(names)})"
                _, first, beyond = VERSIONS["sentence-transformers"]
                advice = f"Run: pip install 'sentence-transformers>={first},<{beyond}'"
                raise_invalid("sentence-transformers", rule, package.__version__, advice)
            return method, names
    raise_invalid("loss", " or ".join(_LOSSES), type(loss).__name__)


@final
class _Masked:
    """A similarity of queries (b, d) and documents (M, d) whose suspected cells are -inf.

    The rows of a batch come in one call, or in several, in their order.
    """

    def __init__(self, similarity: Any, judge: Any) -> None:
        self.similarity, self.judge = similarity, judge
        self.judged: Any = 0
        self.masked: Any = 0
        self._labels: Any = None
        self._next = 0  # the row that comes next
        functools.update_wrapper(self, similarity)  # its name is in the model card

    def within(self, method: Any, names: tuple[str, ...]) -> Any:
        """The method of a loss that computes it from vectors, which begins with row 0."""

        @functools.wraps(method)
        def call(*args: Any, **given: Any) -> Any:
            vectors, labels = (*args, *(given[name] for name in names if name in given))[:2]
            parts = vectors[0] if isinstance(vectors[0], list) else [vectors[0]]
            self._next, self._labels = 0, labels
            found = method(*args, **given)
            if self._next != sum(map(len, parts)):
                message = f"mask_false_negatives: {self._next} rows were compared; this version of the loss differs."
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
        """(b, M) bool: the negatives of some rows of the batch that are suspected."""
        torch, own = need_torch(), rows - rows[0]
        columns = torch.arange(scores.shape[1], device=scores.device)
        names = columns
        if _are_ids(self._labels):
            names = torch.full_like(columns, -1)
            names[: len(self._labels)] = self._labels
        ids = names.repeat(len(rows), 1)
        ids[own, rows] = -1  # the positive is not a negative
        positive = scores[own, rows]
        detector = judge_of(self.judge, lambda query: positive)
        negatives = Negatives(ids, scores=scores)
        found = suspicion_of("judge", detector, Query(names[rows], positives=names[rows]), negatives)
        self.judged = self.judged + (ids >= 0).sum()
        return (to_torch(found, scores.device) >= threshold_of(detector)) & (ids >= 0)


def _are_ids(labels: Any) -> bool:
    """Whether the labels of a batch are whole numbers from 0 on."""
    if labels is None or labels.ndim != 1 or labels.is_floating_point():
        return False
    return bool((labels >= 0).all())
