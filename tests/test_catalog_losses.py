"""The losses over vectors keep the promises of a loss: each gets vectors that have the scores of slots."""

import functools

import pytest
import torch

import naysay as ns
from naysay import catalog
from naysay.losses import (
    all_items,
    attract,
    eliminate,
    in_batch,
    in_batch_hinge,
    invariant_spreading,
    proto_nce,
    sup_con,
)

VECTORS = {
    loss.name for loss in catalog.methods("minimise") if loss.over == "vectors" and loss.name.startswith("losses.")
}


def as_slots(positive, negatives, mask, weights):
    """Vectors whose dot products are the given scores, row by row: (anchors, keys, mask, weights), keys row by row.

    Anchor i is the i-th unit vector; its positive and its negatives carry their scores in coordinate i. Row i sees its
    own columns only. A masked score never reaches a vector.
    """
    rows, slots = negatives.shape
    kept = torch.ones(rows, slots, dtype=torch.bool) if mask is None else torch.as_tensor(mask)
    anchors = torch.eye(rows, dtype=negatives.dtype)
    scores = torch.cat([positive[:, None], negatives.masked_fill(~kept, 0.0)], dim=1)
    keys = (scores[:, :, None] * anchors[:, None]).reshape(rows * (slots + 1), rows)
    own = torch.repeat_interleave(torch.eye(rows), slots + 1, dim=1).bool()
    shown = torch.cat([torch.ones(rows, 1).bool(), kept], dim=1).reshape(-1)
    counted = torch.ones(rows, slots + 1, dtype=torch.float64)
    if weights is not None:
        counted[:, 1:] = torch.as_tensor(weights).double()
    return anchors, keys, own & shown, counted.reshape(-1)


def batch(positive, negatives, *, mask=None, weights=None, form=None):
    """in_batch on such vectors: what it promises of a positive and its slots."""
    anchors, keys, shown, counted = as_slots(positive, negatives, mask, weights)
    partner = torch.arange(len(anchors)) * (negatives.shape[1] + 1)
    return in_batch(anchors, keys, partner=partner, mask=shown, weights=counted, **(form or {}))


def labelled(positive, negatives, *, mask=None, weights=None, loss=None):
    """eliminate or attract: z holds the anchors and their positives, keys the negatives; nobody has a label."""
    anchors, keys, shown, counted = as_slots(positive, negatives, mask, weights)
    rows, slots = negatives.shape
    first = torch.arange(rows) * (slots + 1)
    rest = torch.ones(len(keys), dtype=torch.bool)
    rest[first] = False
    z = torch.cat([anchors, keys[first]])
    nothing = torch.zeros(2 * rows, 2 * rows, dtype=torch.bool)
    mask = torch.cat([nothing, torch.cat([shown[:, rest], torch.zeros_like(shown[:, rest])])], dim=1)
    weights = torch.cat([torch.ones(2 * rows, dtype=counted.dtype), counted[rest]])
    partner = torch.arange(2 * rows).roll(rows)
    labels = torch.full((2 * rows,), -1)
    return loss(z, partner, labels, temperature=1.0, keys=keys[rest], mask=mask, weights=weights)[:rows]


def classes(positive, negatives, *, mask=None, weights=None, denominator="all"):
    """sup_con: the positive is the only one of the anchor's class."""
    anchors, keys, shown, counted = as_slots(positive, negatives, mask, weights)
    rows, slots = negatives.shape
    key_labels = torch.full((rows, slots + 1), -1)
    key_labels[:, 0] = torch.arange(rows)
    mask = torch.cat([torch.zeros(rows, rows, dtype=torch.bool), shown], dim=1)
    weights = torch.cat([torch.ones(rows, dtype=counted.dtype), counted])
    options = {"temperature": 1.0, "keys": keys, "key_labels": key_labels.reshape(-1), "mask": mask, "weights": weights}
    return sup_con(anchors, torch.arange(rows), denominator=denominator, **options)


def all_violations(positive, negatives, *, mask=None, weights=None, among=None):
    """in_batch_hinge; it has no weights."""
    anchors, keys, shown, _ = as_slots(positive, negatives, mask, None)
    partner = torch.arange(len(anchors)) * (negatives.shape[1] + 1)
    return in_batch_hinge(anchors, keys, partner=partner, mask=shown, among=among)


def row_by_row(loss):
    """A loss over vectors as one over slots: each row alone, loss(scores of what is not masked) -> (1,)."""

    def of_slots(positive, negatives, *, mask=None, weights=None):
        kept = torch.ones_like(negatives, dtype=torch.bool) if mask is None else torch.as_tensor(mask)
        rows = [loss(torch.cat([p[None], s[one]])) for p, s, one in zip(positive, negatives, kept, strict=True)]
        return torch.cat(rows) if rows else positive * 1.0

    return of_slots


def spread(scores):
    """The anchor is 1, and the rest are numbers: their products are the scores."""
    partner = torch.zeros(len(scores) + 1, dtype=torch.long)
    partner[0] = 1
    return invariant_spreading(torch.cat([scores.new_ones(1), scores])[:, None], partner, temperature=1.0)[:1]


def own_centre(scores):
    """The centres are unit vectors, so that the sample's coordinates are its scores."""
    return proto_nce(scores[None], torch.eye(len(scores), dtype=scores.dtype), [0], temperatures=1.0)


def over_all(positive, negatives, *, mask=None, weights=None):
    """all_items, where items of other rows score 0."""
    anchors, keys, shown, counted = as_slots(positive, negatives, mask, weights)
    first = torch.arange(len(anchors)) * (negatives.shape[1] + 1)
    return all_items(anchors, keys, (range(len(anchors)), first), weight=counted * shown.any(dim=0))


OVER_VECTORS = {
    "losses.in_batch_hinge": [
        (all_violations, ("weights",)),
        (functools.partial(all_violations, among=2), ("weights",)),
    ],
    "losses.invariant_spreading": [(row_by_row(spread), ("weights", "monotone"))],
    "losses.proto_nce": [(row_by_row(own_centre), ("weights",))],
    "losses.all_items": [(over_all, ("empty", "monotone"))],
    "losses.in_batch": [
        (batch, ()),
        (functools.partial(batch, form={"prior": 0.05, "min_score": -20.0}), ()),
        (functools.partial(batch, form={"prior": 0.05, "beta": 1.0, "min_score": -20.0}), ("monotone",)),
    ],
    "losses.eliminate": [(functools.partial(labelled, loss=eliminate), ())],
    "losses.attract": [(functools.partial(labelled, loss=attract), ())],
    "losses.sup_con": [(classes, ()), (functools.partial(classes, denominator="negatives"), ())],
}


def test_every_loss_over_vectors_is_here():
    assert set(OVER_VECTORS) == VECTORS


@pytest.mark.parametrize("name", OVER_VECTORS)
def test_every_loss_over_vectors_keeps_its_promises(name):
    for loss, without in OVER_VECTORS[name]:
        ns.check_loss(loss, without=without)
