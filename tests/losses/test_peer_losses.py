"""Ours against the losses of pytorch-metric-learning and sentence-transformers, run here: values and gradients.

First where they agree with the formula, on random vectors in float64; then, one test each, where ours differs.
"""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize as on_sphere
from torch.nn.functional import pad

from naysay.losses import attract, eliminate, gist, in_batch, info_nce, sup_con

ROWS, WIDTH = 20, 5
SMALL = {"block": 1}  # the smallest blocks: 16 rows, then 4
FOUR = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")


def peer(module, package):
    return pytest.importorskip(module, reason=f"{package} is not installed")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads take most of the time of operations as small as these."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def pml():
    """The losses of pytorch-metric-learning."""
    return peer("pytorch_metric_learning.losses", "pytorch-metric-learning")


@pytest.fixture(scope="session")
def st():
    """Those of sentence-transformers; once, as it takes long to import."""
    return peer("sentence_transformers.sentence_transformer.losses", "sentence-transformers")


def unit(vectors):
    return on_sphere(vectors, dim=-1)


def as_given(vectors):
    return vectors


SCORES = pytest.mark.parametrize("scored", [unit, as_given], ids=["cosine", "dot product"])


def vectors(count, rows=ROWS, seed=0, width=WIDTH):
    """`count` leaves (rows, width) of any length."""
    values = np.random.default_rng(seed).standard_normal((count, rows, width))
    return [torch.from_numpy(value).requires_grad_() for value in values]


def assert_same(ours, theirs, leaves):
    """Two numbers, and their gradients in every leaf."""
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    found, wanted = (torch.autograd.grad(value, leaves, retain_graph=True) for value in (ours, theirs))
    for one, other in zip(found, wanted, strict=True):
        assert other.abs().max() > 1e-6  # there is something to compare
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


# ---- pytorch-metric-learning: where it agrees ----------------------------------------------------------------------


def measured(scored):
    """Its default is a cosine."""
    from pytorch_metric_learning.distances import DotProductSimilarity

    return {} if scored is unit else {"distance": DotProductSimilarity(normalize_embeddings=False)}


LABELS = {
    "balanced": [label for label in range(5) for _ in range(4)],
    "unbalanced": [0] * 7 + [1] * 5 + [2] * 3 + [3] * 2 + [4, 5, 6],  # three rows are alone
}
CLASSES = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


def partners(labels):
    """How many others of its label each row has."""
    return torch.tensor([labels.count(label) - 1 for label in labels])


@SCORES
@CLASSES
def test_nt_xent_with_labels_is_a_mean_over_pairs(pml, labels, scored):
    (z,) = vectors(1)
    theirs = pml.NTXentLoss(temperature=0.5, **measured(scored))(z, torch.tensor(labels))
    rows = sup_con(scored(z), labels, temperature=0.5, denominator="negatives", **SMALL)
    pairs = partners(labels)
    assert_same((rows * pairs).sum() / pairs.sum(), theirs, [z])
    assert (abs(rows.mean() - theirs) < 1e-9) == (labels == LABELS["balanced"])  # a mean over rows is another number


@SCORES
def test_nt_xent_of_two_views(pml, scored):
    one, two = vectors(2)
    both = torch.cat([scored(one), scored(two)])
    loss = pml.NTXentLoss(temperature=0.3, **measured(scored))
    ours = in_batch(both, partner=torch.arange(2 * ROWS).roll(ROWS), temperature=0.3, **SMALL)
    assert_same(ours.mean(), pml.SelfSupervisedLoss(loss)(one, two), [one, two])
    ours = in_batch(scored(one), scored(two), temperature=0.3, **SMALL)
    assert_same(ours.mean(), pml.SelfSupervisedLoss(loss, symmetric=False)(one, two), [one, two])


@SCORES
def test_nt_xent_over_pairs_that_are_named(pml, scored):
    """One partner each and a list of negatives: any mask, and elimination by labels of which -1 is none."""
    (z,) = vectors(1)
    partner, number = torch.arange(ROWS).roll(ROWS // 2), torch.arange(ROWS)
    loss = pml.NTXentLoss(temperature=0.4, **measured(scored))

    def theirs(keep):
        keep = keep & (number != number[:, None]) & (number != partner[:, None])
        return loss(z, indices_tuple=(number, partner, *torch.where(keep)))

    keep = torch.from_numpy(np.random.default_rng(1).random((ROWS, ROWS)) < 0.4)
    keep[3] = False  # a row with no negatives counts as 0 in both
    ours = in_batch(scored(z), partner=partner, mask=keep, temperature=0.4, **SMALL)
    assert_same(ours.mean(), theirs(keep), [z])
    labels = torch.from_numpy(np.random.default_rng(2).integers(-1, 3, ROWS))
    other = theirs((labels != labels[:, None]) | (labels == -1))
    assert_same(eliminate(scored(z), partner, labels, temperature=0.4, **SMALL).mean(), other, [z])
    assert_same(in_batch(scored(z), partner=partner, labels=labels, temperature=0.4).mean(), other, [z])


@SCORES
@CLASSES
def test_sup_con(pml, labels, scored):
    (z,) = vectors(1)
    theirs = pml.SupConLoss(temperature=0.5, **measured(scored))(z, torch.tensor(labels))
    rows, pairs = sup_con(scored(z), labels, temperature=0.5, **SMALL), partners(labels)
    # their mean is over the rows whose loss is above 0: here, those that are not alone in their class
    assert_same(rows[pairs > 0].mean(), theirs, [z])
    partner = [i - 1 if i and labels[i - 1] == label else (i + 1) % ROWS for i, label in enumerate(labels)]
    assert_same(attract(scored(z), partner, labels, temperature=0.5, **SMALL)[pairs > 0].mean(), theirs, [z])


@SCORES
@pytest.mark.parametrize("denominator", ["all", "negatives"])
def test_a_memory_with_labels(pml, denominator, scored):
    """Their columns are the memory alone; ours are the batch too, which the mask leaves out."""
    z, memory = vectors(2)
    labels, theirs = torch.tensor(LABELS["balanced"]), torch.tensor(LABELS["unbalanced"])
    kind = pml.SupConLoss if denominator == "all" else pml.NTXentLoss
    value = kind(temperature=0.5, **measured(scored))(z, labels, ref_emb=memory, ref_labels=theirs)
    rows = sup_con(
        scored(z),
        labels,
        keys=scored(memory),
        key_labels=theirs,
        mask=torch.arange(2 * ROWS) >= ROWS,
        temperature=0.5,
        denominator=denominator,
    )
    pairs = (labels[:, None] == theirs).sum(dim=1) if denominator == "negatives" else torch.ones(ROWS)
    assert_same((rows * pairs).sum() / pairs.sum(), value, [z, memory])


# ---- and where ours differs ----------------------------------------------------------------------------------------


def test_rows_of_no_class_do_not_attract_each_other(pml):
    """To theirs -1 is a class like any other; ours is theirs if every such row had a class of its own."""
    (z,) = vectors(1)
    unknown, alone, named = [torch.tensor(LABELS["balanced"]) for _ in range(3)]
    unknown[:4], alone[:4], named[:4] = -1, torch.tensor([5, 6, 7, 8]), 5
    loss = pml.NTXentLoss(temperature=0.5)
    rows = sup_con(unit(z), unknown, temperature=0.5, denominator="negatives")
    assert (rows[:4] == 0).all()
    assert_same(rows[4:].mean(), loss(z, alone), [z])
    assert loss(z, unknown) == loss(z, named)
    assert abs(loss(z, unknown) - loss(z, alone)) > 0.1


def test_a_loss_above_87_keeps_its_value_and_its_gradient_in_float32(pml):
    """Theirs adds the smallest float32 to a probability before the log: 87.34 and no gradient from there on."""
    labels, partner = torch.tensor([0, 0, 1, 1]), [1, 0, 3, 2]
    low = torch.tensor([[1.0, 0.0], [-1.0, 0.02], [1.0, 0.01], [-1.0, 0.03]], requires_grad=True)
    high = low.detach().double().requires_grad_()
    theirs, exact = (pml.NTXentLoss(temperature=0.01)(z, labels) for z in (low, high))
    assert exact.item() == pytest.approx(199.945, abs=1e-3)
    assert theirs.item() == pytest.approx(87.3365, abs=1e-3)
    assert torch.autograd.grad(theirs, low)[0].abs().max() == 0
    wanted = torch.autograd.grad(exact, high)[0].float()
    for ours in (
        sup_con(unit(low), labels, temperature=0.01, denominator="negatives").mean(),
        in_batch(unit(low), partner=partner, temperature=0.01).mean(),
    ):
        assert ours.item() == pytest.approx(exact.item(), rel=1e-6)
        torch.testing.assert_close(torch.autograd.grad(ours, low)[0], wanted, rtol=1e-4, atol=1e-4)


def test_a_row_that_is_solved_stays_in_the_mean(pml):
    """Theirs takes the mean over rows above 0, so that it rises as rows are solved; ours hands over the rows."""
    z = torch.tensor([[1, 0], [1, 0], [-1, 0], [0.6, 0.8]], dtype=torch.float64)  # the last is near the other class
    labels = torch.tensor([0, 0, 1, 1])
    rows = sup_con(z, labels, temperature=0.01)
    assert rows.tolist() == pytest.approx([0, 0, 0, 120 + math.log(2)], abs=1e-12)
    assert pml.SupConLoss(temperature=0.01)(z, labels).item() == pytest.approx(rows[3].item())


def test_positives_compete_in_a_batch_of_one_class_too(pml):
    """The denominator of SupCon holds all others, so there is a loss without negatives; theirs is then 0."""
    z, labels = torch.eye(3).double(), torch.zeros(3).long()
    assert sup_con(z, labels, temperature=1.0).tolist() == pytest.approx([math.log(2)] * 3)
    assert pml.SupConLoss(temperature=1.0)(z, labels) == 0
    for answer in (sup_con(z, labels, denominator="negatives").sum(), pml.NTXentLoss()(z, labels)):
        assert answer == 0  # there is nothing to tell apart


def test_a_single_triplet_has_a_loss(pml):
    """Theirs is 0 if there is no more than one pair of each kind."""
    (z,) = vectors(1, rows=3)
    triplet = [torch.tensor([row]) for row in (0, 1, 0, 2)]
    ours = in_batch(unit(z)[:1], unit(z)[1:], temperature=0.5)
    to_positive, to_negative = (unit(z)[1:] @ unit(z)[0]).tolist()
    assert ours.item() == pytest.approx(math.log1p(math.exp((to_negative - to_positive) / 0.5)))
    assert pml.NTXentLoss(temperature=0.5)(z, indices_tuple=triplet) == 0


# ---- sentence-transformers: multiple negatives ranking -------------------------------------------------------------


def ranking(st, columns, scored=unit, scale=7.0, **options):
    """Its loss over columns of vectors: anchors, positives, then any number of negatives."""
    from sentence_transformers.util import cos_sim, dot_score

    similarity = cos_sim if scored is unit else dot_score
    loss = st.MultipleNegativesRankingLoss(None, scale=scale, similarity_fct=similarity, **options)
    return loss.compute_loss_from_embeddings(columns, labels=None)


def shared(columns, scored=unit, scale=7.0, share=True, **options):
    """Ours over the same columns."""
    anchors, positives, *further = map(scored, columns)
    negatives = torch.stack(further, dim=1) if further else None
    return in_batch(
        anchors, positives, negatives=negatives, share_negatives=share, temperature=1 / scale, **options, **SMALL
    ).mean()


COLUMNS = pytest.mark.parametrize("count", [2, 3, 5], ids=["pairs", "triplets", "three negatives"])


@SCORES
@COLUMNS
def test_ranking_shares_all_negatives(st, count, scored):
    columns = vectors(count)
    assert_same(shared(columns, scored), ranking(st, columns, scored), columns)


@SCORES
def test_negatives_of_an_anchors_own(st, scored):
    """Theirs has no such form: it is theirs for one anchor at a time, with the others' positives as its negatives."""
    columns = vectors(4)
    ours = shared(columns, scored, share=False)
    one_by_one = []
    for i in range(ROWS):
        mine = [column[i : i + 1] for column in columns]
        others = [columns[1][j : j + 1] for j in range(ROWS) if j != i]
        one_by_one.append(ranking(st, [*mine, *others], scored))
    assert_same(ours, torch.stack(one_by_one).mean(), columns)
    assert shared(columns, scored) - ours > 0.1  # 38 negatives more


@SCORES
@COLUMNS
def test_both_directions(st, count, scored):
    columns = vectors(count)
    theirs = ranking(st, columns, scored, directions=FOUR[::2], partition_mode="per_direction")
    assert_same((shared(columns, scored) + shared(columns[1::-1], scored)) / 2, theirs, columns)


def facing(near, far):
    """Columns for anchors [q, d]: those of `near` score as q.x, those of `far` as d.x, all in one softmax."""
    return torch.cat([pad(near, (0, near.shape[1])), pad(far, (far.shape[1], 0))])


@SCORES
@COLUMNS
def test_four_directions_in_one_softmax(st, count, scored):
    columns = vectors(count)
    theirs = ranking(st, columns, scored, directions=FOUR)
    queries, docs, *further = map(scored, columns)
    documents = torch.cat([docs, *further])
    every, others = torch.ones(ROWS, len(documents)) > 0, torch.eye(ROWS) == 0
    # a doc is compared with all queries, its own among them: the positive is there again, as a negative
    mask = [others, every[:, ROWS:], others, every[:, :ROWS], others.repeat(1, count - 1)]
    options = {"mask": torch.cat(mask, dim=1), "temperature": 1 / 7}
    scores = [queries @ documents.T, queries @ queries.T, docs @ queries.T, docs @ documents.T]
    assert_same(info_nce((queries * docs).sum(dim=1), torch.cat(scores, dim=1), **options).mean(), theirs, columns)
    keys = facing(torch.cat([documents, queries]), torch.cat([queries, documents]))
    assert_same(in_batch(torch.cat([queries, docs], dim=1), keys, **options, **SMALL).mean(), theirs, columns)


def test_a_positive_counts_once_unless_it_is_handed_over_again(st):
    """With doc to query in one softmax theirs counts the positive twice, so that it cannot fall below log 2."""
    scores, others = torch.eye(6, dtype=torch.float64), torch.eye(6) == 0
    theirs = ranking(st, [scores, scores], scale=100.0, directions=FOUR[::2])
    both, options = torch.cat([scores, scores], dim=1), {"temperature": 0.01}
    once, twice = torch.cat([others, others], dim=1), torch.cat([others, torch.ones(6, 6) > 0], dim=1)
    assert info_nce(scores.diagonal(), both, mask=twice, **options).mean().item() == pytest.approx(theirs.item())
    assert theirs.item() == pytest.approx(math.log(2))
    assert info_nce(scores.diagonal(), both, mask=once, **options).mean() < 1e-40


HARDER = {
    "hard_negatives": lambda own, explicit: own & explicit,
    "in_batch_negatives": lambda own, explicit: ~own,
    "all_negatives": lambda own, explicit: ~own | explicit,
}


@SCORES
@COLUMNS
@pytest.mark.parametrize("mode", HARDER)
def test_hardness_is_a_weight_without_gradient(st, mode, count, scored):
    columns = vectors(count)
    theirs = ranking(st, columns, scored, hardness_mode=mode, hardness_strength=2.0)
    anchors, positives, *further = (scored(column.detach()) for column in columns)
    keys = torch.cat([positives, torch.stack(further, dim=1).flatten(0, 1)]) if further else positives
    owner = torch.cat([torch.arange(ROWS), torch.arange(ROWS).repeat_interleave(count - 2)])
    on = HARDER[mode](owner == torch.arange(ROWS)[:, None], torch.arange(len(keys)) >= ROWS)

    def weights(rows):
        return torch.exp(2.0 * on[rows] * (anchors[rows] @ keys.T))

    assert_same(shared(columns, scored, weights=weights), theirs, columns)
    assert_same(shared(columns, scored, weights=weights(slice(None))), theirs, columns)


# ---- sentence-transformers: GISTEmbed ------------------------------------------------------------------------------


def guided_ranking(st, columns, guides, *, cached=False, **options):
    """GISTEmbed over columns of vectors and what the guide makes of them."""
    from transformers import PreTrainedTokenizerBase

    class Words(PreTrainedTokenizerBase):
        __init__ = object.__init__

        def get_vocab(self):
            return {}

    class Model(torch.nn.Module):
        """Its embedding is among the features already. This is all that the loss asks of a model."""

        tokenizer, max_seq_length = Words(), 8

        def __init__(self, key):
            super().__init__()
            self.key = key

        def __getitem__(self, index):
            return torch.nn.Identity()

        def forward(self, features):
            return {"sentence_embedding": features[self.key]}

    models = Model("model"), Model("guide")
    if cached:
        loss = st.CachedGISTEmbedLoss(*models, mini_batch_size=7, **options)
        return loss.calculate_loss([[column] for column in columns], [[guide] for guide in guides])
    features = [{"model": column, "guide": guide} for column, guide in zip(columns, guides, strict=True)]
    return st.GISTEmbedLoss(*models, **options)(features, labels=None)


def slots(columns):
    """Cosines of anchor and positive (N,), and (N, slots) of anchor to positives, of each to its kind, to negatives."""
    anchors, positives, *further = map(unit, columns)
    parts = [anchors @ positives.T, anchors @ anchors.T, positives @ positives.T, *(anchors @ n.T for n in further)]
    return (anchors * positives).sum(dim=1), torch.cat(parts, dim=1)


def not_itself(count, rows=ROWS):
    """(N, slots): neither the positive, nor the anchor, nor the positive as its own kind."""
    return torch.cat([(torch.eye(rows) == 0).repeat(1, 3), torch.ones(rows, rows * (count - 2)) > 0], dim=1)


def in_one_batch(columns):
    """The same scores, as anchors and keys for `in_batch`."""
    anchors, positives, *further = map(unit, columns)
    return torch.cat([anchors, positives], dim=1), facing(torch.cat([positives, *further, anchors]), positives)


def trusted(guides, margin, relative, anchors, keys):
    """A function of rows: which keys the guide does not put above its threshold."""
    best = slots(guides)[0]
    threshold = best - margin * (best.abs() if relative else 1.0)
    return lambda rows: anchors[rows] @ keys.T <= threshold[rows, None]


GUIDED = pytest.mark.parametrize(
    ("margin", "relative"), [(0.0, False), (0.2, False), (0.3, True)], ids=["no margin", "absolute", "relative"]
)


@GUIDED
@pytest.mark.parametrize("count", [2, 3, 4], ids=["pairs", "triplets", "two negatives"])
def test_guided(st, count, margin, relative):
    columns = vectors(count)
    guides = [guide.detach() for guide in vectors(count, seed=1, width=3)]
    strategy = "relative" if relative else "absolute"
    options = {"cached": count > 3, "temperature": 0.1, "margin": margin, "margin_strategy": strategy}
    theirs = guided_ranking(st, columns, guides, **options)
    judged = dict(zip(("guide_positive", "guide_negatives"), slots(guides), strict=True))
    more = {"margin": margin, "relative": relative, "temperature": 0.1, "mask": not_itself(count)}
    assert_same(gist(*slots(columns), **judged, **more).mean(), theirs, columns)
    keep = trusted(guides, margin, relative, *in_one_batch(guides))
    assert_same(in_batch(*in_one_batch(columns), mask=keep, temperature=0.1, **SMALL).mean(), theirs, columns)
    plain = info_nce(*slots(columns), temperature=0.1, mask=not_itself(count)).mean()
    assert plain - theirs > 0.1  # the guide did leave something out


@GUIDED
@pytest.mark.parametrize("count", [2, 3], ids=["pairs", "triplets"])
def test_guided_from_anchors_only(st, count, margin, relative):
    columns = vectors(count)
    guides = [guide.detach() for guide in vectors(count, seed=1, width=3)]
    options = {"margin": margin, "margin_strategy": "relative" if relative else "absolute"}
    alone = {"contrast_anchors": False, "contrast_positives": False}
    theirs = guided_ranking(st, columns, guides, temperature=0.1, **options, **alone)
    keep = trusted(guides, margin, relative, unit(guides[0]), unit(torch.cat(guides[1:])))
    assert_same(shared(columns, scale=10.0, mask=keep), theirs, columns)


def test_a_row_is_not_its_own_negative_whatever_the_guide_says(st):
    """Theirs leaves a row out of its own negatives only if the guide puts its positive below a cosine of 1."""
    columns = [torch.eye(4, dtype=torch.float64)] * 2
    theirs = guided_ranking(st, columns, columns, temperature=0.01)
    assert theirs.item() == pytest.approx(math.log(3))  # itself as an anchor and its positive as a positive
    assert gist(*slots(columns), mask=not_itself(2, rows=4)).mean() < 1e-40


def test_a_model_that_is_its_own_guide_and_any_number_of_negatives(st):
    """Theirs takes one column of negatives, unless it is the cached form, and runs the model a second time."""
    columns = vectors(5)
    guides = [column.detach() for column in columns]
    with pytest.raises(ValueError, match="Expected 2 or 3"):
        guided_ranking(st, columns, guides)
    theirs = guided_ranking(st, columns, guides, cached=True, temperature=0.1)
    assert_same(gist(*slots(columns), mask=not_itself(5), temperature=0.1).mean(), theirs, columns)
