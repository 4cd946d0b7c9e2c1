"""Negatives inside PyKEEN: through its pipeline, exactly filtered, on both sides, and with scores of the model."""

import pytest
import torch
from pykeen.datasets import Nations
from pykeen.losses import NSSALoss
from pykeen.models import ConvE, TransE
from pykeen.pipeline import pipeline
from pykeen.sampling import NegativeSampler
from pykeen.training import SLCWATrainingLoop
from pykeen.triples import CoreTriplesFactory

import naysay as ns
from naysay.integrations.pykeen import ExactNegativeSampler, score_of
from tests.integrations.upstream import check_signature

pytestmark = pytest.mark.filterwarnings("ignore", "error::naysay.NaysayWarning")  # PyKEEN warns of its own calls
NATIONS = Nations()
TRAIN = NATIONS.training.mapped_triples
TOY = torch.tensor([[0, 0, 1], [0, 0, 2], [0, 0, 3], [4, 1, 0]])


def made(triples=TRAIN, **options):
    return ExactNegativeSampler(mapped_triples=triples, **options)


def as_set(triples):
    return {tuple(triple) for triple in triples.reshape(-1, 3).tolist()}


def train(sampler_options, *, model="TransE", epochs=15, seed=0, **options):
    """Train on Nations through the pipeline, with little output."""
    return pipeline(
        dataset=NATIONS,
        model=model,
        model_kwargs={"embedding_dim": 16} if isinstance(model, str) else None,
        negative_sampler=ExactNegativeSampler,
        negative_sampler_kwargs=sampler_options,
        training_kwargs={"num_epochs": epochs, "batch_size": 256, "use_tqdm": False},
        evaluation_kwargs={"batch_size": 256, "use_tqdm": False},
        random_seed=seed,
        device="cpu",
        **options,
    )


# ---- the pipeline ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"choice": "bernoulli", "known": [NATIONS.validation, NATIONS.testing]},
        {"choice": "typed"},
        {"choice": "typed bernoulli", "corruption_scheme": ("h", "t")},
    ],
    ids=["filtered", "bernoulli", "typed", "typed bernoulli"],
)
def test_the_pipeline_trains_on_nations(options):
    result = train({"num_negs_per_pos": 8, **options})
    assert result.losses[-1] < 0.95 * result.losses[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda model: lambda pool: ns.samplers.Cached(pool, score_of(model), size=8, fresh=8),
        lambda model: lambda pool: ns.samplers.Dynamic(pool, score_of(model), candidates=12, temperature=1.0),
    ],
    ids=["cached", "self-adversarial"],
)
def test_samplers_that_use_the_model_train_on_nations(make):
    model = TransE(triples_factory=NATIONS.training, embedding_dim=16, loss="nssa", random_seed=0)
    result = train({"num_negs_per_pos": 4, "sampler": make(model)}, model=model)
    assert result.model is model
    assert result.losses[-1] < 0.95 * result.losses[0]


def test_self_adversarial_weights_are_a_loss_of_pykeen_that_goes_with_every_choice():
    result = train({"num_negs_per_pos": 8}, loss=NSSALoss)
    assert isinstance(result.model.loss, NSSALoss)
    assert result.losses[-1] < 0.95 * result.losses[0]


def test_the_seed_of_the_pipeline_decides():
    losses = [train({"num_negs_per_pos": 2}, epochs=2, seed=seed).losses for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]


# ---- what is drawn --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["uniform", "bernoulli", "typed", "typed bernoulli"])
def test_no_negative_is_known_and_each_differs_in_one_part(choice):
    """PyKEEN masks known triples, so that fewer than K are left, and its pseudo-typed sampler returns the positive."""
    sampler = made(num_negs_per_pos=20, choice=choice, known=(NATIONS.validation, NATIONS.testing))
    negatives, mask = sampler.sample(TRAIN[:300])
    everything = as_set(TRAIN) | as_set(NATIONS.validation.mapped_triples) | as_set(NATIONS.testing.mapped_triples)
    assert negatives.shape == (300, 20, 3)
    kept = negatives if mask is None else negatives[mask]
    assert not as_set(kept) & everything
    differ = (negatives != TRAIN[:300, None]).sum(dim=-1)
    assert set(differ[mask if mask is not None else ...].reshape(-1).tolist()) == {1}
    if choice.startswith("typed"):
        heads = {(r, h) for h, r, _ in as_set(TRAIN)}
        tails = {(r, t) for _, r, t in as_set(TRAIN)}
        assert all((r, h) in heads and (r, t) in tails for h, r, t in as_set(kept))


def test_both_sides_are_replaced_all_over_the_batch():
    """PyKEEN replaces heads in the first half of a batch, tails in the second, and each positive on one side only."""
    negatives, _ = made(num_negs_per_pos=16).sample(TRAIN[:200])
    heads = (negatives[..., 0] != TRAIN[:200, None, 0]).double().mean(dim=1)
    assert 0.4 < heads[:100].mean() < 0.6
    assert 0.4 < heads[100:].mean() < 0.6
    assert bool(((heads > 0) & (heads < 1)).double().mean() > 0.95)


def test_a_relation_without_triples_is_replaced_on_both_sides():
    """PyKEEN's Bernoulli sampler always replaces the tail there."""
    sampler = made(TOY, num_entities=9, num_relations=3, num_negs_per_pos=200, choice="bernoulli")
    negatives, _ = sampler.sample(torch.tensor([[1, 2, 3]]))
    assert 60 < int((negatives[0, :, 0] != 1).sum()) < 140


def test_parts_are_chosen_by_pykeens_letters():
    negatives, _ = made(num_negs_per_pos=4, corruption_scheme=("r",)).sample(TRAIN[:50])
    assert negatives[..., 0].equal(TRAIN[:50, None, 0].expand(-1, 4))
    assert bool((negatives[..., 1] != TRAIN[:50, None, 1]).all())


def test_a_triple_without_a_negative_is_masked():
    triples = torch.tensor([[0, 0, 0], [0, 0, 1], [1, 0, 0]])
    negatives, mask = made(triples, num_negs_per_pos=2, corruption_scheme=("t",)).sample(triples)
    assert mask.tolist() == [[False, False], [False, False], [True, True]]
    assert negatives[2].tolist() == [[1, 0, 1], [1, 0, 1]]
    assert negatives[0].tolist() == [[0, 0, 0]] * 2
    assert made(triples, corruption_scheme=("t",)).corrupt_batch(triples).shape == (3, 1, 3)


def test_a_masked_batch_trains():
    factory = CoreTriplesFactory(torch.tensor([[0, 0, 0], [0, 0, 1], [1, 0, 0]]), num_entities=2, num_relations=1)
    model = TransE(triples_factory=factory, embedding_dim=4)
    options = {"corruption_scheme": ("t",), "num_negs_per_pos": 2}
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=torch.optim.Adam(model.get_grad_params()),
        negative_sampler=ExactNegativeSampler,
        negative_sampler_kwargs=options,
    )
    assert len(loop.train(factory, num_epochs=2, batch_size=3, use_tqdm=False, pin_memory=False)) == 2


def test_further_dimensions_stay():
    assert made(num_negs_per_pos=5).sample(TRAIN[:6].reshape(2, 3, 3))[0].shape == (2, 3, 5, 3)


def test_known_triples_get_the_relations_of_a_training_with_inverses():
    inverse = Nations(create_inverse_triples=True)
    triples = inverse.training._add_inverse_triples_if_necessary(inverse.training.mapped_triples)
    sizes = {"num_entities": inverse.num_entities, "num_relations": inverse.training.num_relations}
    negatives, mask = made(triples, known=inverse.validation, num_negs_per_pos=30, **sizes).sample(triples[::7])
    valid = inverse.validation.mapped_triples
    doubled = torch.cat(
        [valid * torch.tensor([1, 2, 1]), (valid * torch.tensor([1, 2, 1]) + torch.tensor([0, 1, 0])).flip(1)]
    )
    assert as_set(triples) != as_set(TRAIN)
    assert not as_set(negatives if mask is None else negatives[mask]) & (as_set(doubled) | as_set(triples))


# ---- scores of the model --------------------------------------------------------------------------------------------


def test_scores_leave_the_model_as_it_was():
    """ConvE has batch norm and dropout, and would change with every score in training mode."""
    model = ConvE(triples_factory=Nations(create_inverse_triples=True).training, embedding_dim=32)
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    corrupted = torch.tensor([[[0, 0, 1], [2, 0, 1]], [[3, 2, 4], [3, 2, 5]]])
    scores = score_of(model)(corrupted[:, 0], corrupted)
    assert model.training
    assert not scores.requires_grad
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())
    model.eval()
    torch.testing.assert_close(scores, model.score_hrt(corrupted.reshape(-1, 3)).reshape(2, 2).detach())
    assert score_of(model)(corrupted[:, 0], corrupted).equal(scores)
    assert not model.training


def test_the_cache_gets_harder_negatives_of_the_model():
    model = TransE(triples_factory=NATIONS.training, embedding_dim=16, random_seed=0)
    easy = made(num_negs_per_pos=4)
    hard = made(num_negs_per_pos=4, sampler=lambda pool: ns.samplers.Cached(pool, score_of(model), 6, 12, keep="top"))
    for _ in range(3):
        negatives, mask = hard.sample(TRAIN[:200])
    valid = negatives if mask is None else negatives[mask]
    assert not as_set(valid) & as_set(TRAIN)
    with torch.no_grad():
        assert (
            model.score_hrt(valid.reshape(-1, 3)).mean()
            > model.score_hrt(easy.sample(TRAIN[:200])[0].reshape(-1, 3)).mean()
        )


# ---- errors and signatures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"choice": "bernouli"},
            "`choice` must be one of 'uniform', 'bernoulli', 'typed', 'typed bernoulli', got 'bern",
        ),
        ({"num_negs_per_pos": 0}, "`num_negs_per_pos` must be at least 1, got 0."),
        ({"corruption_scheme": ("head",)}, "`corruption_scheme` must be one of 'h', 'r', 't', got 'head'."),
        ({"known": "validation"}, "`known` must be triples factories, such as dataset.validation, got str."),
        ({"known": TRAIN}, "`known` must be triples factories, such as dataset.validation, got Tensor."),
        ({"sampler": 3}, "`sampler` must be a function that gets the pool and returns a sampler, got 3."),
        (
            {"sampler": lambda pool: pool},
            "`sampler` must be a function that gets the pool and returns a sampler, got Corr",
        ),
        (
            {"known": CoreTriplesFactory(TOY, num_entities=5, num_relations=2)},
            "`known` must be factories of 14 entities and 55 relations, as the training, got 5 and 2.",
        ),
    ],
)
def test_a_bad_argument_is_named_before_training(options, message):
    with pytest.raises(ns.NaysayError) as caught:
        made(num_entities=14, num_relations=55, **options)
    assert str(caught.value).startswith(f"ExactNegativeSampler: {message}")


@pytest.mark.parametrize("model", [3, TransE])
def test_a_score_needs_a_model(model):
    with pytest.raises(ns.NaysayError, match=r"^score_of: `model` must be an instance of a PyKEEN model, got"):
        score_of(model)


def test_a_model_is_not_scored_in_another_process(monkeypatch):
    sampler = made(sampler=lambda pool: ns.samplers.Static(pool))
    worker = torch.utils.data._utils.worker.WorkerInfo(id=0, num_workers=2, seed=0, dataset=None)
    monkeypatch.setattr("naysay.integrations.pykeen.get_worker_info", lambda: worker)
    with pytest.raises(ns.NaysayError, match=r"`num_workers` must be 0 with a `sampler`, which uses the model, got 2"):
        sampler.sample(TRAIN[:2])
    assert made().sample(TRAIN[:2])[0].shape == (2, 1, 3)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (
            NegativeSampler.__init__,
            [
                *("self", "mapped_triples", "num_entities", "num_relations", "num_negs_per_pos"),
                *("filtered", "filterer", "filterer_kwargs"),
            ],
        ),
        (NegativeSampler.sample, ["self", "positive_batch"]),
        (NegativeSampler.corrupt_batch, ["self", "positive_batch"]),
        (TransE.score_hrt, ["self", "hrt_batch", "mode"]),
    ],
)
def test_pykeen_still_asks_as_it_did(function, expected):
    check_signature("pykeen", "pykeen", function, expected)
