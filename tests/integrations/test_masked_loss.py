"""mask_false_negatives: the package's own loss where nothing is suspected, and plain loops where something is."""

import inspect
import math

import numpy as np
import pytest
from gathered_losses import BATCH, CASES, SECONDS, Table, loss_of_rows, work

import naysay as ns
from naysay.errors import MissingExtraError
from naysay.integrations.sentence_transformers import mask_false_negatives
from tests.integrations import small_trainers as small

torch = small.torch
losses = small.losses
pytestmark = pytest.mark.filterwarnings(*small.QUIET)
NEVER, SCALE = "max_score:2", 7.0


def features(batch=6, columns=3):
    return [{"input_ids": torch.arange(batch)[:, None] + batch * column} for column in range(columns)]


def kinds(model, **options):
    yield losses.MultipleNegativesRankingLoss(model, scale=SCALE, **options)
    yield losses.CachedMultipleNegativesRankingLoss(model, scale=SCALE, mini_batch_size=4, **options)


def loss_in_loops(table, batch, columns, suspected, *, own_negatives=True):
    """The loss without cells (i, j) that are suspected: suspected(i, j, score of the positive, score)."""
    unit = [row / row.norm() for row in table]
    total, flagged = 0.0, 0
    for i in range(batch):
        positive = float(unit[i] @ unit[batch + i])
        below = math.exp(SCALE * positive)
        for j in range(batch * (columns - 1)):
            score = float(unit[i] @ unit[batch + j])
            is_judged = own_negatives or j % batch != i
            if j != i and is_judged and suspected(i, j, positive, score):
                flagged += 1
            elif j != i:
                below += math.exp(SCALE * score)
        total -= SCALE * positive - math.log(below)
    return total / batch, flagged


def gradient(loss, model, given=None, labels=None):
    model.zero_grad()
    value = loss(features() if given is None else given, labels)
    value.backward()
    return value.item(), model.table.grad.clone()


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("hardness", [{}, {"hardness_mode": "hard_negatives", "hardness_strength": 3.0}])
def test_where_nothing_is_suspected_it_is_the_loss(kind, hardness):
    model = Table(18)
    plain, own = ([*kinds(model, **hardness)][kind] for _ in range(2))
    masked = mask_false_negatives(own, NEVER)
    assert masked is own
    expected, found = gradient(plain, model), gradient(masked, model)
    assert found[0] == expected[0]
    assert torch.equal(found[1], expected[1])
    assert (int(masked.false_negatives.judged), int(masked.false_negatives.masked)) == (6 * 10, 0)
    assert masked.get_config_dict() == plain.get_config_dict()


RULES = [
    ("margin:-0.1", lambda i, j, positive, score: score > positive + 0.1),
    (ns.detectors.MaxScore(0.3), lambda i, j, positive, score: score >= 0.3),
    ({"low": ns.detectors.Margin(-0.5), "high": ns.detectors.MaxScore(0.6)},
     lambda i, j, positive, score: score > positive + 0.5 or score >= 0.6),
]  # fmt: skip


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("judge", "suspected"), RULES)
def test_what_is_suspected_counts_nothing(kind, judge, suspected, own):
    model = Table(18)
    loss = mask_false_negatives([*kinds(model)][kind], judge, own_negatives=own)
    found, slope = gradient(loss, model)
    expected, flagged = loss_in_loops(model.table.detach(), 6, 3, suspected, own_negatives=own)
    assert found == pytest.approx(expected, rel=1e-12)
    assert 0 < flagged == int(loss.false_negatives.masked)
    for row, column in ((0, 1), (7, 2), (14, 0)):  # an anchor, a positive and a hard negative
        ends = []
        for step in (1e-5, -1e-5):
            moved = model.table.detach().clone()
            moved[row, column] += step
            ends.append(loss_in_loops(moved, 6, 3, suspected, own_negatives=own)[0])
        assert slope[row, column].item() == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)


def test_where_all_is_suspected_only_the_positive_is_left():
    model = Table(18)
    found, slope = gradient(mask_false_negatives(next(kinds(model)), "max_score:-2", own_negatives=True), model)
    assert found == 0
    assert not slope.any()


@pytest.mark.parametrize("kind", [0, 1])
def test_without_the_batch_only_the_own_negatives_count(kind):
    model = Table(18)
    found, _ = gradient(mask_false_negatives([*kinds(model)][kind], NEVER, in_batch=False), model)
    assert found == pytest.approx(loss_in_loops(model.table.detach(), 6, 3, lambda i, j, *_: j % 6 != i)[0], rel=1e-12)
    with pytest.raises(ns.NaysayError) as caught:
        gradient(mask_false_negatives([*kinds(model)][kind], NEVER, in_batch=False), model, features(columns=2))
    assert caught.value.parameter == "in_batch"


def test_two_and_three_processes_give_the_loss_of_one(run_processes):
    processes = run_processes(work, 3, SECONDS)
    for size in (2, 3):
        for kind in (0, 1):
            for case in CASES:
                values, slopes, masked = zip(*(each[size, kind, case] for each in processes[:size]), strict=True)
                expected = loss_of_rows(kind, case, slice(0, BATCH), gather=False)
                assert np.mean(values) == pytest.approx(expected[0], rel=1e-12), (size, kind, case)
                torch.testing.assert_close(sum(slopes) / size, expected[1])
                assert sum(masked) == expected[2] > 0


@pytest.mark.parametrize("kind", [0, 1])
def test_labels_are_ids_for_detectors_that_go_by_id(kind):
    """The second model of GISTEmbed, with vectors by row of the training set; hard negatives have no row."""
    vectors = np.random.default_rng(3).standard_normal((50, 4))
    labels = torch.tensor([40, 3, 17, 8, 21, 5])
    asked = []

    def review(pairs):
        asked.extend(zip(pairs.anchors.tolist(), pairs.items.tolist(), strict=True))
        return (vectors[pairs.anchors] * vectors[pairs.items]).sum(axis=1) >= 0.5

    model = Table(18)
    judges = {"reviewer": ns.detectors.ByReviewer(review), "margin": ns.detectors.Margin(-0.3)}
    loss = mask_false_negatives([*kinds(model)][kind], judges)
    found, _ = gradient(loss, model, labels=labels)

    def suspected(i, j, positive, score):
        return j < 6 and (vectors[labels[i]] @ vectors[labels[j]] >= 0.5 or score > positive + 0.3)

    expected, flagged = loss_in_loops(model.table.detach(), 6, 3, suspected)
    assert found == pytest.approx(expected, rel=1e-12)
    assert 0 < flagged == int(loss.false_negatives.masked)
    assert set(asked) == {(int(a), int(b)) for a in labels for b in labels if a != b}
    plain = gradient(mask_false_negatives([*kinds(model)][kind], NEVER), model)[0]
    assert gradient(mask_false_negatives([*kinds(model)][kind], NEVER), model, labels=labels.double())[0] == plain


def test_it_trains_in_a_trainer_and_inside_of_another_loss(tmp_path):
    inner = mask_false_negatives(losses.MultipleNegativesRankingLoss(small.word_vectors()), "share:0.95")
    loss = losses.MatryoshkaLoss(inner.model, inner, [8, 4])
    run = small.trainer(tmp_path, [], loss=loss, num_train_epochs=1)
    before = run.model[0].embedding.weight.detach().clone()
    run.train()
    assert not torch.equal(before, run.model[0].embedding.weight)
    assert int(inner.false_negatives.judged) == 2 * 3 * 8 * 7  # widths, steps, rows, other rows
    assert int(inner.false_negatives.masked) > 0


def test_another_row_with_the_same_positive_is_always_masked():
    """Rows 0 and 3 have one positive: whatever the judge says, neither is a negative of the other."""
    labels = torch.tensor([7, 1, 2, 7, 4, 5])
    for own in (False, True):
        model = Table(18)
        loss = mask_false_negatives(next(kinds(model)), NEVER, own_negatives=own)
        found, _ = gradient(loss, model, labels=labels)
        expected, flagged = loss_in_loops(model.table.detach(), 6, 3, lambda i, j, *_: {i, j} == {0, 3})
        assert found == pytest.approx(expected, rel=1e-12)
        assert int(loss.false_negatives.masked) == flagged == 2


INVALID = [
    ({"directions": ("query_to_doc", "doc_to_query")}, NEVER, "loss"),
    ({}, "auto", "judge"),
    ({}, "calibrated", "judge"),
    ({}, "none", "judge"),
    ({}, "shares:1", "judge"),
    ({}, 3, "judge"),
]


@pytest.mark.parametrize(("options", "judge", "parameter"), INVALID)
def test_what_does_not_fit_is_named(options, judge, parameter):
    for loss in kinds(Table(18), **options):
        with pytest.raises(ns.NaysayError) as caught:
            mask_false_negatives(loss, judge)
        assert caught.value.parameter == parameter


def test_another_loss_is_named():
    for loss in (
        losses.TripletLoss(small.word_vectors()),
        mask_false_negatives(next(kinds(Table(18))), NEVER),  # masked already
    ):
        with pytest.raises(ns.NaysayError) as caught:
            mask_false_negatives(loss, NEVER)
        assert caught.value.parameter == "loss"


def test_a_package_that_is_too_old_is_named(monkeypatch):
    monkeypatch.setattr("naysay._packages.version", lambda name: "4.1.0")
    said = r"^mask_false_negatives: sentence-transformers must be at least 5.0 and below 7, got 4.1.0. "
    with pytest.raises(MissingExtraError, match=said):
        mask_false_negatives(next(kinds(Table(18))), NEVER)


def test_the_signatures_are_those_that_this_was_written_for():
    """Fails with a new version of sentence-transformers, in the words of the error that users get."""
    for loss, names in zip(kinds(Table(18)), (["embeddings"], ["reps"]), strict=True):
        mask_false_negatives(loss, NEVER)  # which checks them
        method = type(loss).compute_loss_from_embeddings if names == ["embeddings"] else type(loss).calculate_loss
        told = f"sentence-transformers changed {method.__qualname__}. Adapt naysay.integrations._masked_loss."
        assert [*inspect.signature(method).parameters][1:3] == [*names, "labels"], told
        queries, documents = (model.table.detach() for model in (Table(2), Table(4, seed=1)))
        found = loss.similarity_fct(queries, documents)  # called behind the back of the loss
        assert torch.equal(found, next(kinds(Table(18))).similarity_fct(queries, documents))


def test_a_loss_that_changed_is_an_error(monkeypatch):
    kind = losses.MultipleNegativesRankingLoss
    monkeypatch.setattr(kind, "compute_loss_from_embeddings", lambda self, vectors, labels: None)
    said = r"`sentence-transformers` must be of a version whose .*\.compute_loss_from_embeddings takes \(embeddings, "
    with pytest.raises(ns.NaysayError, match=said):
        mask_false_negatives(next(kinds(Table(18))), NEVER)
    monkeypatch.setattr(kind, "compute_loss_from_embeddings", lambda self, embeddings, labels: None)
    with pytest.raises(RuntimeError, match="0 rows were compared; this version of the loss differs"):
        mask_false_negatives(next(kinds(Table(18))), NEVER)(features(), None)
