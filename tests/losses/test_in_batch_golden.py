"""The in-batch forms against values that the losses of other libraries gave for the same twelve vectors.

debiased and hard_negative_nce: their authors' code, in float32. The rest: pytorch-metric-learning 2.9.0 (NT-Xent,
SupCon) and sentence-transformers 6.2.0 (multiple negatives ranking, GISTEmbed), in float64.
"""

import pytest
import torch
from torch.nn.functional import normalize, pad

from naysay.losses import in_batch, sup_con

LABELS = [0, 0, 1, 1, 0, 1, 2, 2]


def vectors(dtype):
    """Anchors, positives and negatives, (4, 3) each."""
    count = torch.arange(1, 13, dtype=dtype)
    one = normalize(count.sin().view(4, 3), dim=1)
    two = normalize(one + 0.3 * count.cos().view(4, 3), dim=1)
    return one, two, normalize((2 * count).cos().view(4, 3), dim=1)


def two_views(one, two, _, **form):
    """NT-Xent: all eight, each with the other view as its positive."""
    return in_batch(torch.cat([one, two]), partner=torch.arange(8).roll(4), temperature=0.5, **form).mean()


def labelled(one, two, _, **options):
    return sup_con(torch.cat([one, two]), LABELS, **options)


def over_pairs(rows):
    """The mean over ordered pairs of one label: a row of a class of n is in n - 1 of them."""
    pairs = torch.tensor([LABELS.count(label) - 1 for label in LABELS])
    return (rows * pairs).sum() / pairs.sum()


def ranking(anchors, positives, *further, **options):
    """Multiple negatives ranking at a scale of 20: columns of further negatives, which all anchors share."""
    negatives = torch.stack(further, dim=1) if further else None
    return in_batch(anchors, positives, negatives=negatives, share_negatives=True, temperature=0.05, **options).mean()


def harder(strength, chosen, *columns):
    """Ranking with weights e^(strength cosine) on what is `chosen` by (it is the anchor's own, it is explicit)."""
    keys = torch.cat(columns[1:])
    number = torch.arange(len(keys))
    on = chosen(number % 4 == torch.arange(4)[:, None], number >= 4)
    return ranking(*columns, weights=torch.exp(strength * on * (columns[0] @ keys.T)))


def both_ways(one, two, *further):
    """The mean of the two directions; explicit negatives are in one of them."""
    return (ranking(one, two, *further) + ranking(two, one)) / 2


def facing(near, far):
    """Columns for anchors [q, d]: those of `near` score as q.x, those of `far` as d.x, all in one softmax."""
    return torch.cat([pad(torch.cat(near), (0, 3)), pad(torch.cat(far), (3, 0))])


def joint(queries, docs, *further, same=True):
    """One softmax over query to docs and doc to queries; if `same`, over query to queries and doc to docs too."""
    documents = torch.cat([docs, *further])
    every, others = torch.ones(4, len(documents)) > 0, torch.eye(4) == 0
    mask = [every, others & same, every[:, :4], others.repeat(1, 1 + len(further)) & same]
    keys = facing([documents, queries], [queries, documents])
    return in_batch(torch.cat([queries, docs], dim=1), keys, mask=torch.cat(mask, dim=1), temperature=0.05).mean()


def gist(one, two, negatives, columns=1, margin=0.0, relative=False, same=True):
    """GISTEmbed with 0, 1 or 2 columns of negatives; if `same`, over anchors to anchors and positives to positives too.

    The function of rows leaves out what the guide puts above its threshold, an anchor itself among it.
    """

    def laid_out(anchors, positives, other):
        near = [positives, *(other, other.flip(0))[:columns], anchors]
        return torch.cat([anchors, positives], dim=1), facing(near, [positives])

    guide = one, normalize(one + two.flip(0), dim=1), normalize(negatives + 0.5 * one, dim=1)
    seen, keys = laid_out(*guide)
    best = (guide[0] * guide[1]).sum(dim=1)
    threshold = best - margin * (best.abs() if relative else 1.0)
    allowed = (torch.arange(len(keys)) < 4 * (1 + columns)) | same
    keep = lambda rows: (seen[rows] @ keys.T <= threshold[rows, None]) & allowed  # noqa: E731
    return in_batch(*laid_out(one, two, negatives), mask=keep, temperature=0.05).mean()


BY_THEIR_AUTHORS = {
    "debiased": (0.973627, lambda *v: two_views(*v, prior=0.1)),
    "hard and debiased": (1.908181, lambda *v: two_views(*v, prior=0.1, beta=1.0)),
    "hard": (1.958880, lambda *v: two_views(*v, beta=2.0)),
}
BY_LIBRARIES = {
    "NT-Xent": (1.1262597087, two_views),
    "NT-Xent, one way": (0.6889511534, lambda one, two, _: in_batch(one, two, temperature=0.5).mean()),
    "NT-Xent, labels": (3.7484408415, lambda *v: over_pairs(labelled(*v, temperature=0.5, denominator="negatives"))),
    "SupCon": (4.0018207319, lambda *v: labelled(*v, temperature=0.5).mean()),
    "SupCon at 0.1": (15.5391067337, lambda *v: labelled(*v).mean()),
    "pairs": (0.7514101875, lambda *v: ranking(*v[:2])),
    "triplets": (0.7514247712, ranking),
    "two directions, pairs": (0.7453304691, lambda *v: both_ways(*v[:2])),
    "two directions, triplets": (0.7453377609, both_ways),
    "two directions at once, pairs": (1.6465909534, lambda *v: joint(*v[:2], same=False)),
    "four directions at once, pairs": (2.1210195581, lambda *v: joint(*v[:2])),
    "four directions at once, triplets": (2.1211202991, joint),
    "hard_negatives": (0.7514705939, lambda *v: harder(5.0, lambda own, explicit: own & explicit, *v)),
    "in_batch_negatives": (7.4659161730, lambda *v: harder(9.0, lambda own, explicit: ~own, *v)),
    "in_batch_negatives, pairs": (7.4659155606, lambda *v: harder(9.0, lambda own, explicit: ~own, *v[:2])),
    "all_negatives": (3.9364488308, lambda *v: harder(5.0, lambda own, explicit: ~own | explicit, *v)),
    "all_negatives, pairs": (3.9364416103, lambda *v: harder(5.0, lambda own, explicit: ~own | explicit, *v[:2])),
    "gist, pairs": (0.6973554667, lambda *v: gist(*v, columns=0)),
    "gist": (0.6973771584, gist),
    "gist, margin": (0.4767919551, lambda *v: gist(*v, margin=0.1)),
    "gist, relative": (0.6779386620, lambda *v: gist(*v, margin=0.05, relative=True)),
    "gist, from anchors only": (0.3966941501, lambda *v: gist(*v, same=False)),
    "gist, two negatives": (0.6973988486, lambda *v: gist(*v, columns=2)),
}
GOLDEN = BY_THEIR_AUTHORS | BY_LIBRARIES


@pytest.mark.parametrize(("value", "loss"), GOLDEN.values(), ids=GOLDEN)
def test_the_value_of_their_code(value, loss):
    assert loss(*vectors(torch.float32)).item() == pytest.approx(value, abs=2e-6)


@pytest.mark.parametrize(("value", "loss"), BY_LIBRARIES.values(), ids=BY_LIBRARIES)
def test_the_value_of_their_code_in_float64(value, loss):
    assert loss(*vectors(torch.float64)).item() == pytest.approx(value, abs=1e-9)
