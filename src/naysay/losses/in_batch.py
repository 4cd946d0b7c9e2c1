"""Losses over vectors, with the rest of the batch as negatives, in bounded memory.

Scores are dot products of the vectors as given, so normalise first for cosines. All return losses (N,), unreduced, 0
for a row with no negatives. What they take in common:

    temperature   t, above 0: a number, or a tensor of one number, which may be learned
    partner       (N,) the column that is the row's positive
    mask          True where a column may be a negative: (M,), (N, M), or a function of a slice of rows that returns
                  (rows, M), which may be called twice for a block. The positive always counts
    weights       at least 0, in the same three shapes: how often a column counts
    labels        (N,), or (G, N) for G granularities, whose losses are averaged. -1 is no label and matches nothing
    key_labels    (M,) or (G, M), the labels of the keys
    block         scores in memory at once

The (N, M) matrix of scores is never stored: memory is a few copies of a block, and one gradient for each input. The
result is exact.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from naysay.checks import check_number, check_one_of, check_whole, public, raise_invalid
from naysay.losses._blocks import BLOCK, Batch, as_batch
from naysay.losses._inputs import (
    as_log_q,
    as_mask,
    as_partner,
    as_temperature,
    as_vectors,
    without_autocast,
)
from naysay.losses._slots import LOWEST, Slots, log_sum_exp, softplus
from naysay.losses.softmax import (
    FORMS,
    as_positive_log_q,
    check_debiasing,
    debiased_form,
    lowest_gap,
    sampled_form,
)


@public
def in_batch(
    anchors: Tensor,
    keys: Tensor | None = None,
    *,
    partner: Any = None,
    negatives: Tensor | None = None,
    negative_mask: Any = None,
    share_negatives: bool = False,
    temperature: Any = 1.0,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
    positive_log_q: Any = None,
    form: str = "sampled",
    labels: Any = None,
    key_labels: Any = None,
    prior: float = 0.0,
    beta: float = 0.0,
    min_score: float = -1.0,
    backprop_weights: bool = True,
    block: int = BLOCK,
) -> Tensor:
    """Compute InfoNCE of each anchor against all keys.

    For two views of a batch, in_batch(z, partner=...) with z of both is NT-Xent. For both directions of pairs take the
    mean of in_batch(a, b) and in_batch(b, a). Chen et al. SimCLR. ICML 2020.

    Args:
        anchors: (N, d).
        keys: (M, d), or None: the anchors are their own keys, and none is a negative of itself.
        partner: (N,) the key that is the anchor's positive. None, with keys only: key i for anchor i.
        negatives: (N, K, d) further negatives.
        negative_mask: (N, K) bool, True where a slot of `negatives` holds one.
        share_negatives: Whether further negatives are keys for all anchors, after the M, so that M below means
            M + N K; else they are those of their own anchor only.
        temperature: t.
        mask: (M,), (N, M) or a function: True where a key may be a negative.
        weights: In the same shapes, at least 0.
        log_q: (M,) log-probability with which each key came into the batch, as in `info_nce`. K_b is the number of
            keys in `mask` other than the positive; those that `labels` leave out count as drawn.
        positive_log_q: (N,) the same for the anchors' positives, as in `sampled_softmax`; it needs log_q.
        form: "sampled", "refined" or "classic", as in `sampled_softmax`; the last two need log_q.
        labels: (N,) or (G, N): keys with the anchor's own label are left out.
        key_labels: (M,) or (G, M), required with keys and labels; without keys, `labels` are used for both.
        prior: The share of false negatives, as in `debiased`.
        beta: How much more hard negatives count, as in `hard_negative_nce`.
        min_score: The lowest possible score, as in `debiased`.
        backprop_weights: Whether gradients flow through the weights of `beta`, as in `hard_negative_nce`.
        block: Scores in memory at once.

    Returns:
        (N,) losses.

    Examples:
        >>> import torch
        >>> in_batch(torch.eye(3), torch.eye(3))    # log(e + 2) - 1
        tensor([0.5514, 0.5514, 0.5514])
    """
    check_debiasing(prior, beta, min_score)
    _check_form(form, log_q, positive_log_q, corrected=bool(prior or beta))
    vectors = as_vectors("anchors", anchors)
    temperature = as_temperature(temperature, vectors)
    columns = vectors if keys is None else as_vectors("keys", keys, vectors)
    partners = as_partner(partner, len(vectors), len(columns), vectors.device, own=keys is None)
    further, holds_one = _further_negatives(negatives, negative_mask, vectors)
    filled = None
    if further is not None and share_negatives:
        filled = torch.cat([holds_one.new_ones(len(columns)), holds_one.flatten()])
        columns, further = torch.cat([columns, further.flatten(0, 1)]), None
    batch = as_batch(
        "anchors",
        vectors,
        columns,
        own=keys is None,
        block=block,
        temperature=temperature,
        mask=mask,
        weights=weights,
        labels=labels,
        key_labels=key_labels,
    )
    log_q_of_positives = as_positive_log_q(positive_log_q, form, batch.left)
    if log_q is not None:
        if further is not None:
            raise_invalid("log_q", "left out with `negatives` that are not shared", "log_q", "Theirs is not known.")
        log_q = as_log_q(log_q, (len(columns),), batch.left).detach()
    positive = (vectors.to(batch.right.dtype) * batch.right[partners]).sum(dim=1)
    row_inputs = {"positive": positive / temperature}
    if further is not None:
        with without_autocast(batch.left):
            row_inputs["further"] = torch.einsum("nd,nkd->nk", batch.left, further.to(batch.left.dtype))
    if prior or beta:
        row_inputs["lowest"] = lowest_gap(min_score, positive, temperature)

    def losses_of(scores: Tensor, rows: slice, *inputs: Tensor) -> Tensor:
        of_rows = dict(zip(row_inputs, inputs, strict=True))
        slots = _columns_as_slots(scores, rows, batch, partners, of_rows["positive"], filled, log_q)
        if "further" in of_rows:
            slots = _with_further(slots, of_rows["further"], holds_one[rows])
        logits, origin = slots.negatives, slots.positive

        def without(same_label: Tensor | None) -> Tensor:
            counted = slots if same_label is None else _without(slots, same_label)
            if "lowest" in of_rows:
                settings: dict[str, Any] = {"backprop_weights": backprop_weights, "origin": origin}
                return counted.answer(debiased_form(counted, logits, of_rows["lowest"], prior, beta, **settings))
            own_log_q = None if log_q_of_positives is None else log_q_of_positives[rows].detach()
            return counted.answer(sampled_form(counted, logits, form, own_log_q, origin))

        return batch.mean_over_labels(rows, without)

    return batch.losses(losses_of, *row_inputs.values())


def _check_form(form: str, log_q: Any, positive_log_q: Any, *, corrected: bool) -> None:
    """Raise if the form and what is given do not fit; `corrected`: whether there is a prior or beta."""
    check_one_of("form", form, FORMS)
    plain = form == "sampled" and positive_log_q is None
    if log_q is None and not plain:
        raise_invalid("log_q", "given with `positive_log_q` and for forms other than 'sampled'", "None")
    if corrected and not plain:
        raise_invalid("form", "'sampled', without positive_log_q, if there is a `prior` or `beta`", repr(form))


def _further_negatives(negatives: Any, mask: Any, anchors: Tensor) -> tuple[Tensor | None, Any]:
    """(N, K, d) vectors and (N, K) bool, or None and None."""
    if negatives is None:
        if mask is not None:
            raise_invalid("negative_mask", "given with negatives", "a mask without them")
        return None, None
    further = as_vectors("negatives", negatives, anchors, middle=True)
    shape = tuple(further.shape[:2])
    if mask is None:
        return further, torch.ones(shape, dtype=torch.bool, device=anchors.device)
    return further, as_mask(mask, shape, anchors.device, "negative_mask")


def _columns_as_slots(
    scores: Tensor,
    rows: slice,
    batch: Batch,
    partner: Tensor,
    positive: Tensor,
    filled: Tensor | None = None,
    log_q: Tensor | None = None,
) -> Slots:
    """Columns of a block as the slots of its rows: the partner is the positive, and no negative.

    The positive's score is in the block, and was computed row by row before. The value is the one in the block, so that
    equal scores have a gap of 0. The gradient flows through the other, (rows,), which spares passes over the block.
    `filled` (M,) says which columns hold a vector.
    """
    partner_column = partner[rows, None]
    drawn = batch.candidates(rows).scatter_(1, partner_column, False)
    if filled is not None:
        drawn &= filled
    positive = scores.detach().gather(1, partner_column)[:, 0] + (positive - positive.detach())
    weights = batch.weights_of(rows)
    kept = drawn
    if weights is not None:
        kept = drawn & (weights > 0)
        weights = weights.masked_fill(~kept, 0.0)
    log_q = None if log_q is None else log_q.expand_as(scores)
    return Slots(positive, scores, kept, weights, drawn, log_q, scores.dtype)


def _with_further(slots: Slots, logits: Tensor, valid: Tensor) -> Slots:
    """The same with (rows, K) slots more, of weight 1; they have no log_q."""
    weights = None if slots.weights is None else torch.cat([slots.weights, valid.to(logits.dtype)], dim=1)
    kept = torch.cat([cast(Tensor, slots.kept), valid], dim=1)  # `_columns_as_slots` always makes it
    negatives = torch.cat([slots.negatives, logits], dim=1)
    return Slots(slots.positive, negatives, kept, weights, drawn=None, log_q=None, dtype=slots.dtype)


def _without(slots: Slots, left_out: Tensor) -> Slots:
    """The same draw without these columns (rows, M); slots beyond the columns stay."""
    n_further = slots.negatives.shape[1] - left_out.shape[1]
    return slots.only(torch.nn.functional.pad(~left_out, (0, n_further), value=True))


# ---- the margin ------------------------------------------------------------------------------------------------------


@public
def in_batch_hinge(
    anchors: Tensor,
    keys: Tensor | None = None,
    *,
    partner: Any = None,
    margin: float = 0.2,
    among: int | None = None,
    mask: Any = None,
    labels: Any = None,
    key_labels: Any = None,
    block: int = BLOCK,
) -> Tensor:
    """Compute the hinge loss of each anchor against all keys: sum_j max(0, margin + s_ij - s_ip), p its positive.

    For both directions of pairs add in_batch_hinge(a, b) and in_batch_hinge(b, a). The hardest negative from the first
    step on can stall: lower `among` during training. Faghri et al. VSE++. BMVC 2018.

    Args:
        anchors: (N, d).
        keys: (M, d), or None: the anchors are their own keys.
        partner: (N,) the key that is the anchor's positive. None, with keys only: key i for anchor i.
        margin: At least 0.
        among: How many of the largest terms count: 1 is VSE++ and batch-hard triplets, None, all, is VSE0.
        mask: (M,), (N, M) or a function: True where a key may be a negative.
        labels: (N,) or (G, N): keys with the anchor's own label are left out, such as captions of one image.
        key_labels: (M,) or (G, M), required with keys and labels.
        block: Scores in memory at once.

    Returns:
        (N,) losses.

    Examples:
        >>> import torch
        >>> in_batch_hinge(torch.eye(3), torch.eye(3).roll(1, 0), margin=0.2, among=1)
        tensor([1.2000, 1.2000, 1.2000])
    """
    check_number("margin", margin, at_least=0, finite=True)
    if among is not None:
        check_whole("among", among, 1)
    vectors = as_vectors("anchors", anchors)
    columns = vectors if keys is None else as_vectors("keys", keys, vectors)
    own = keys is None
    partners = as_partner(partner, len(vectors), len(columns), vectors.device, own=own)
    batch = as_batch("anchors", vectors, columns, own=own, block=block, mask=mask, labels=labels, key_labels=key_labels)

    def losses_of(scores: Tensor, rows: slice) -> Tensor:
        partner_column = partners[rows, None]
        candidates = batch.candidates(rows).scatter_(1, partner_column, False)
        violations = (scores - scores.gather(1, partner_column) + margin).relu()

        def without(same_label: Tensor | None) -> Tensor:
            counted = candidates if same_label is None else candidates & ~same_label
            terms = violations.masked_fill(~counted, 0.0)
            if among is not None and among < len(columns):
                terms = terms.topk(among, dim=1).values
            return terms.sum(dim=1)

        return batch.mean_over_labels(rows, without)

    return batch.losses(losses_of)


# ---- labels ----------------------------------------------------------------------------------------------------------


def _batch_with_queue(z: Any, keys: Any, block: Any, **options: Any) -> Batch:
    """A batch whose columns are its own rows (N, d), then keys (M, d)."""
    vectors = as_vectors("z", z)
    columns = vectors if keys is None else torch.cat([vectors, as_vectors("keys", keys, vectors)])
    return as_batch("z", vectors, columns, own=True, block=block, **options)


@public
def eliminate(
    z: Tensor,
    partner: Any,
    labels: Any,
    *,
    temperature: Any,
    keys: Tensor | None = None,
    key_labels: Any = None,
    mask: Any = None,
    weights: Any = None,
    block: int = BLOCK,
) -> Tensor:
    """Compute InfoNCE without the negatives that have the anchor's own label: Eq. 3 of the paper.

        -log( e^{z_i.z_i'/t} / (e^{z_i.z_i'/t} + sum over j with y_j != y_i of w_ij e^{z_i.z_j/t}) )

    Without labels it is plain InfoNCE. A row whose negatives are all eliminated gives 0. Chen et al. ICLR 2022.

    Args:
        z: (N, d).
        partner: (N,) i', the row of i's positive, which stays whatever its label.
        labels: (N,) or (G, N) pseudo-labels.
        temperature: t.
        keys: (M, d) more columns after those of z, of a queue for example.
        key_labels: (M,) or (G, M); without them keys have no label.
        mask: (N + M,), (N, N + M) or a function: True where a column may be a negative. With a queue, mask the
            anchor's own older entries: mask=lambda rows: ids[rows, None] != ids_of_columns.
        weights: In the same shapes, at least 0.
        block: Scores in memory at once.

    Returns:
        (N,) losses.

    Examples:
        >>> import torch
        >>> eliminate(torch.eye(4), [1, 0, 3, 2], [7, 7, 7, -1], temperature=1.0)    # log 2: one negative left
        tensor([0.6931, 0.6931, 0.0000, 1.0986])
    """
    labelled = {"labels": labels, "key_labels": key_labels}
    batch = _batch_with_queue(z, keys, block, temperature=temperature, mask=mask, weights=weights, **labelled)
    partners = as_partner(partner, len(z), len(z), batch.left.device, own=True)
    positives = (batch.left * batch.right[partners]).sum(dim=1)

    def losses_of(scores: Tensor, rows: slice, positive: Tensor) -> Tensor:
        slots = _columns_as_slots(scores, rows, batch, partners, positive)

        def without(same_label: Tensor | None) -> Tensor:
            others = slots if same_label is None else slots.only(~same_label)
            return others.answer(softplus(others.log_sum(slots.negatives, slots.positive)))

        return batch.mean_over_labels(rows, without)

    return batch.losses(losses_of, positives)


@public
def attract(
    z: Tensor,
    partner: Any,
    labels: Any,
    *,
    temperature: Any,
    keys: Tensor | None = None,
    key_labels: Any = None,
    mask: Any = None,
    weights: Any = None,
    block: int = BLOCK,
) -> Tensor:
    """Compute the mean over positives of -log softmax, where all columns of the anchor's label are positives: Eq. 4.

        1/|P_i| sum over p in P_i of -log( e^{z_i.z_p/t} / sum over s != i of w_is e^{z_i.z_s/t} )

    P_i has the partner and every column with i's label; they stay in the denominator. Without labels it is plain
    InfoNCE. The coefficient of a positive in the gradient is 1/|P_i| minus its softmax, which is negative for a
    positive that is already close: it is then pushed away. That is not clamped. Chen et al. ICLR 2022.

    Args:
        z: (N, d).
        partner: (N,) the row of each anchor's positive.
        labels: (N,) or (G, N) pseudo-labels.
        temperature: t.
        keys: (M, d) more columns after those of z, of a queue for example.
        key_labels: (M,) or (G, M); without them keys have no label.
        mask: (N + M,), (N, N + M) or a function: True where a column counts.
        weights: In the same shapes: how often a column counts, also among the positives.
        block: Scores in memory at once.

    Returns:
        (N,) losses.

    Examples:
        >>> import torch
        >>> attract(torch.eye(4), [1, 0, 3, 2], [7, 7, -1, -1], temperature=1.0)    # all scores are 0: log 3
        tensor([1.0986, 1.0986, 1.0986, 1.0986])
    """
    labelled = {"labels": labels, "key_labels": key_labels}
    batch = _batch_with_queue(z, keys, block, temperature=temperature, mask=mask, weights=weights, **labelled)
    partners = as_partner(partner, len(z), len(z), batch.left.device, own=True)

    def losses_of(scores: Tensor, rows: slice) -> Tensor:
        return _several_positives(scores, rows, batch, partner=partners, apart=False)

    return batch.losses(losses_of)


@public
def sup_con(
    z: Tensor,
    labels: Any,
    *,
    temperature: Any = 0.1,
    denominator: str = "all",
    keys: Tensor | None = None,
    key_labels: Any = None,
    mask: Any = None,
    weights: Any = None,
    block: int = BLOCK,
) -> Tensor:
    """Compute the mean over an anchor's class P_i of -log( e^{z_i.z_p/t} / sum_s e^{z_i.z_s/t} ).

    A row that is alone in its class gives 0. For a mean over pairs, weight row i by |P_i|. Khosla et al. NeurIPS 2020.

    Args:
        z: (N, d).
        labels: (N,) or (G, N) classes.
        temperature: t.
        denominator: "all": over every s but i, as in the paper (its L_out). "negatives": over p and those of other
            classes, so that positives do not compete: NT-Xent with labels.
        keys: (M, d) more columns after those of z, of a queue for example.
        key_labels: (M,) or (G, M); without them keys have no class.
        mask: (N + M,), (N, N + M) or a function: True where a column counts.
        weights: In the same shapes, at least 0.
        block: Scores in memory at once.

    Returns:
        (N,) losses.

    Examples:
        >>> import torch
        >>> sup_con(torch.eye(3), [0, 0, 1], temperature=1.0)    # log 2 twice; the third is alone
        tensor([0.6931, 0.6931, 0.0000])
    """
    check_one_of("denominator", denominator, ("all", "negatives"))
    labelled = {"labels": labels, "key_labels": key_labels}
    batch = _batch_with_queue(z, keys, block, temperature=temperature, mask=mask, weights=weights, **labelled)

    def losses_of(scores: Tensor, rows: slice) -> Tensor:
        return _several_positives(scores, rows, batch, partner=None, apart=denominator == "negatives")

    return batch.losses(losses_of)


def _several_positives(scores: Tensor, rows: slice, batch: Batch, *, partner: Tensor | None, apart: bool) -> Tensor:
    """(rows,) the mean over a row's positives of -log softmax; 0 for a row without a positive.

    Positives are the columns with the row's label, and the partner whatever its label. The denominator has all columns,
    or, if `apart`, that positive and the columns that are no positives.
    """
    counted = batch.candidates(rows)
    weights = batch.weights_of(rows)
    if partner is not None:
        partner_column = partner[rows, None]
        counted = counted.scatter_(1, partner_column, True)
        weights = None if weights is None else weights.scatter(1, partner_column, 1.0)
    highest = scores.detach().masked_fill(~counted, LOWEST[scores.dtype]).amax(dim=1, keepdim=True)
    scores = scores - highest  # differences are exact where scores are close, and then logarithms of weights count
    logits = scores
    if weights is not None:
        counted = counted & (weights > 0)
        weights = weights.masked_fill(~counted, 0.0)
        logits = scores + weights.masked_fill(~counted, 1.0).log()
    log_all = None if apart else log_sum_exp(logits, counted)

    def mean_over_positives(same_label: Tensor | None) -> Tensor:
        positive = counted & cast(Tensor, same_label)  # these losses have labels
        if partner is not None:
            positive = positive.scatter(1, partner_column, True)
        count = positive.to(scores.dtype) if weights is None else weights * positive
        total = count.sum(dim=1, keepdim=True)
        share = count / total.masked_fill(total == 0, 1.0)
        if log_all is None:
            log_negatives = log_sum_exp(logits, counted & ~positive)
            return (share * softplus(log_negatives[:, None] - scores)).sum(dim=1)
        mean = log_all - (share * scores).sum(dim=1)
        return mean.masked_fill(total[:, 0] == 0, 0.0)

    return batch.mean_over_labels(rows, mean_over_positives)


# ---- instances -------------------------------------------------------------------------------------------------------


@public
def invariant_spreading(
    z: Tensor, partner: Any, *, temperature: Any = 0.1, weight: float = 1.0, mask: Any = None, block: int = BLOCK
) -> Tensor:
    """Compute -log P(i' | i) - weight * sum over j other than i, i' of log(1 - P(j | i)).

    P(j | i) is the softmax of z_i.z_j / t over all rows but i; i' is the other view of i. weight=0 is NT-Xent. The
    second term pushes on every negative whose probability is not small. It is exact also for probabilities close to 1.

    Ye et al. CVPR 2019. The paper sums log(1 - P(i | j)) over j: the total over a batch is the same. Its code takes no
    gradient through the keys; here all vectors get theirs.

    Args:
        z: (N, d).
        partner: (N,) i', the row of i's other view.
        temperature: t.
        weight: Of the second term, at least 0.
        mask: (N,), (N, N) or a function: True where a column may be a negative.
        block: Scores in memory at once.

    Returns:
        (N,) losses.

    Examples:
        >>> import torch
        >>> invariant_spreading(torch.eye(4), [1, 0, 3, 2], temperature=1.0)    # log 3 + 2 log 1.5
        tensor([1.9095, 1.9095, 1.9095, 1.9095])
    """
    check_number("weight", weight, at_least=0, finite=True)
    vectors = as_vectors("z", z)
    partners = as_partner(partner, len(vectors), len(vectors), vectors.device, own=True)
    batch = as_batch("z", vectors, vectors, own=True, block=block, temperature=temperature, mask=mask)

    def losses_of(scores: Tensor, rows: slice) -> Tensor:
        partner_column = partners[rows, None]
        candidates = batch.candidates(rows).scatter_(1, partner_column, True)
        # The likeliest column is apart: only its probability can be near 1, where 1 - P has no digits left. The others
        # have at most 1/2.
        top = scores.detach().masked_fill(~candidates, LOWEST[scores.dtype]).argmax(dim=1, keepdim=True)
        gaps = scores - scores.gather(1, top)
        rest = candidates.scatter(1, top, False)
        log_rest = log_sum_exp(gaps, rest)[:, None]  # of all but the likeliest, over the likeliest
        log_total = softplus(log_rest)
        log_not_top = (log_rest - log_total).masked_fill(top == partner_column, 0.0)
        others = rest.scatter(1, partner_column, False)
        log_not_others = torch.log1p(-(gaps - log_total).masked_fill(~others, LOWEST[gaps.dtype]).exp())
        of_partner = (log_total - gaps.gather(1, partner_column))[:, 0]
        of_others = log_not_top[:, 0] + log_not_others.sum(dim=1)
        return (of_partner - weight * of_others).masked_fill(~rest.any(dim=1), 0.0)

    return batch.losses(losses_of)
