"""Arms that change during a run: schedules of k, caches, generators, chains, mixed triples, and second measures."""

import numpy as np
import pytest
import torch
from lab_worlds import OF_VECTORS, TASKS, TEXT_PARTS, VECTORS, interactions
from test_lab_models import plain_score
from torch.nn.functional import softplus

import naysay as ns
from naysay.lab import ArmResult, Comparison, Point, RunResult
from naysay.lab._run import Run
from naysay.lab.arms import parts_of, read_arms


def run_of(task, name, steps, **options):
    task = TASKS[task](**options)
    [arm] = read_arms([name], task, parts_of(task, 0, steps), task.defaults)
    run = Run(task, arm, 0.01, 0, steps)
    run.train(steps)
    return run


def sampler_of(run):
    """The sampler of the last step."""
    return run.model._drawn[0]


@pytest.mark.parametrize(
    ("task", "name"),
    [("mf", "ANS:6"), ("skip-gram", "ANS (adaptive k):6"), ("adapter", "ANS:6"), ("transe", "ANS (adaptive k):6")],
)
def test_adaptive_k_rises_to_that_of_the_arm_and_falls_to_1(task, name):
    task = TASKS[task]()
    [arm] = read_arms([name], task, parts_of(task, 0, 20), task.defaults)
    assert arm.negatives_used(arm.sampler(parts_of(task, 0, 20))) == "up to 6"
    run, filled = Run(task, arm, 0.01, 0, steps=20), []
    for _ in range(20):
        run.train(1)
        filled.append(run.negatives.numpy().mask.sum(axis=1).mean())
    expected = ns.quantity.adaptive(6, 20)(np.arange(20))
    np.testing.assert_allclose(filled, expected, atol=0.35)  # fractions are drawn for each row
    assert (filled[0], filled[2], filled[-1]) == (1, 6, 1)


@pytest.mark.parametrize(
    ("task", "name"),
    [("mf", "cached"), ("mf", "SRNS"), ("transe", "cached"), ("transe", "NSCaching"), ("complex", "NSCaching")],
)
def test_a_cache_is_renewed_by_the_model_so_that_its_negatives_are_harder(task, name):
    run = run_of(task, name, 30)
    cache = sampler_of(run)
    assert cache.state()["renewals"] == 30
    uniform = run_of(task, "uniform", 30)
    assert run.hardness > uniform.hardness


@pytest.mark.parametrize(
    ("task", "name"), [("mf", "learned"), ("mf", "IRGAN"), ("skip-gram", "learned"), ("transe", "KBGAN")]
)
def test_a_generator_is_trained_by_the_rewards_of_the_model(task, name):
    run = run_of(task, name, 30)
    sampler = sampler_of(run)
    before = TASKS[task]().start(0).parts()
    name = "triple_optimizer" if task == "transe" else "generator_optimizer"
    first = before[name].param_groups[0]["params"][0]
    assert not torch.equal(sampler.optimizer.param_groups[0]["params"][0], first)
    assert sampler.state()["steps"] == 30


@pytest.mark.parametrize(("task", "name"), [("mf", "markov-chain"), ("skip-gram", "MCNS")])
def test_the_chain_of_an_anchor_goes_on(task, name):
    run = run_of(task, name, 5)
    last = sampler_of(run).state()["last"]
    ids = run.negatives.numpy().ids
    anchors = run.task.users[run.batch] if task == "mf" else run.task.pairs_of(run.batch)[0]
    assert all(last[anchor] in ids[anchors == anchor] for anchor in anchors)


def test_the_neighbours_of_a_chain_are_those_of_the_graph():
    parts = TASKS["skip-gram"]().start(0).parts()
    nodes, slots = np.nonzero(parts["neighbours"] >= 0)
    others = parts["neighbours"][nodes, slots]
    assert parts["graph"].contains(nodes, others).all()
    assert not (nodes == others).any()


def test_sans_draws_entities_within_two_steps():
    run = run_of("transe", "SANS", 1)
    train = run.task.data.train.array
    size = run.task.data.train.n_entities
    near = np.eye(size, dtype=bool)
    near[train[:, 0], train[:, 2]] = near[train[:, 2], train[:, 0]] = True
    within_two = near.astype(int) @ near > 0
    drawn = run.negatives.numpy()
    rows, slots = np.nonzero(drawn.mask)
    triples = run.task.triples.numpy()[run.batch][rows]
    replaced = drawn.side[rows, slots]
    kept = np.where(replaced == 2, triples[:, 0], triples[:, 2])
    assert within_two[kept, drawn.ids[rows, slots]].all()


@pytest.mark.parametrize("model", ["transe", "complex", "rotate"])
def test_mixed_triples_are_scored_by_their_vectors_with_the_loss_of_the_paper(model):
    run = run_of(model, "MixKG", 1)
    learner, query = run.model, run.model.query(run.batch, 0)
    negatives = sampler_of(run).sample(query, 3, rng=ns.rng_for(0))
    own, others = learner.scores(query, negatives)
    entities = learner.network.entities.detach().clone()
    rows = np.flatnonzero(query.anchors[:, 0].numpy() != 0)[:2]  # entity 0 gets the mixed vector in turn
    for row, slot in zip(rows.tolist(), (0, 2), strict=True):
        triple = query.anchors[row].tolist()
        learner.network.entities.data[0] = negatives.vectors[row, slot].detach()
        expected = plain_score(learner.network, [*triple[:2], 0])
        learner.network.entities.data.copy_(entities)
        assert others[row, slot].item() == pytest.approx(expected, abs=1e-5)
    margin = {"transe": 9.0, "rotate": 9.0, "complex": 0.0}[model]
    loss, _ = run.step_of(run.batch, k=3, step=0)
    own, others = (part.detach().double() for part in learner.scores(*learner._drawn[1:]))
    of_negatives = softplus(others + margin).mean(dim=1)
    expected = (softplus(-own - margin) + of_negatives) / 2
    assert loss.item() == pytest.approx(expected.mean().item(), rel=1e-4)


def test_the_name_of_a_source_stands_for_its_number_of_negatives():
    task = TASKS["mf"]()
    arms = read_arms(["EBR", "EBR:3", "BPR"], task, parts_of(task, 0, 10), task.defaults)
    assert [arm.k for arm in arms] == [20, 3, task.k]


@pytest.mark.parametrize(("task", "name"), [("mf", "IRGAN"), ("skip-gram", "IRGAN"), ("skip-gram", "MCNS")])
def test_the_name_of_a_source_stands_for_its_loss(task, name):
    run = run_of(task, name, 1)
    loss, _ = run.step_of(run.batch, k=3, step=1)
    positive, others = (part.detach().double() for part in run.model.scores(*run.model._drawn[1:]))
    if name == "MCNS":
        expected = (0.1 - positive[:, None] + others).clamp(min=0).sum(dim=1)
    else:
        expected = softplus(-positive) + softplus(others).sum(dim=1)
    assert loss.item() == pytest.approx(expected.mean().item(), rel=1e-4)


def test_what_changes_during_training_is_given_the_length_of_the_run_and_of_an_epoch():
    curriculum, switch = run_of("mf", "CuCo", 40), run_of("mf", "Wang and Gupta", 1)
    assert [sampler_of(curriculum).keep[1](step) for step in (0, 40, 100)] == pytest.approx([0.25, 1.0, 1.0])
    epoch = switch.task.pairs // switch.task.batch
    shares = sampler_of(switch).shares
    assert (shares(10 * epoch - 1), shares(10 * epoch)) == ((1, 0), (0, 1))


# ---- second measures ----


def test_recall_by_popularity_is_that_of_the_items_of_a_band():
    data = interactions(n_users=40, n_items=60, share=0.2)
    task = ns.lab.Recommendation(data, dim=8)
    learner = task.start(0)
    found = learner.measure(learner.snapshot(), "test")
    counts = data.train.item_counts()
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    vectors = learner.table.numpy()
    scores = vectors[:40] @ vectors[40:].T
    scores[data.train.union(data.validation).contains(np.arange(40), np.tile(np.arange(60), (40, 1)))] = -np.inf
    lists = np.argsort(-scores, axis=1)[:, :20]
    bands = [order[(3 * before >= at * counts.sum()) & (3 * before < (at + 1) * counts.sum())] for at in range(3)]
    assert sum(map(len, bands)) == 60
    for name, band in zip(("head", "middle", "tail"), bands, strict=True):
        recalls = []
        for user in range(40):
            wanted = {item for of, item in zip(*data.test.pairs(), strict=True) if of == user and item in band}
            if wanted:
                recalls.append(len(wanted & {*lists[user]}) / len(wanted))
        assert found[f"recall@20, {name}"] == pytest.approx(np.mean(recalls))


def test_what_a_review_found_counts_in_a_second_measure_of_texts():
    queries, documents = TEXT_PARTS[2].pairs()
    reviewed = ns.Positives.from_pairs(queries, (documents + 1) % 120, 120, 120)
    data = ns.lab.TextPairs(*TEXT_PARTS, query_vectors=VECTORS[0], document_vectors=VECTORS[1], reviewed=reviewed)
    learner = ns.lab.Retrieval(data, batch=32).start(0)
    found = learner.measure(learner.snapshot(), "test")
    scores = data.query_vectors @ data.document_vectors.T
    every = ns.lab.ranking(scores, reviewed.union(data.test), known=data.train.union(data.validation))
    assert found["ndcg@10, reviewed positives too"] == pytest.approx(every.ndcg(10))
    assert data.fingerprint() != OF_VECTORS.fingerprint()


def test_without_a_review_probable_positives_count():
    world = ns.planted_world(600, 900, per_anchor=4, known_share=0.5, noise=0.1, spread=0.5)
    parts = ns.lab.split_by_document(ns.Positives.from_pairs(np.arange(600), np.arange(600), 600, 900))
    data = ns.lab.TextPairs(*parts, query_vectors=world.anchor_vectors, document_vectors=world.item_vectors)
    learner = ns.lab.Retrieval(data).start(0)
    kind, estimated = learner.task.unlabelled(0)
    assert kind == "estimated"
    found = learner.measure(learner.snapshot(), "test")
    assert ("ndcg@10, estimated positives too" in found) == (estimated is not None)


def text_arm(name, labelled, counted):
    points = (Point(100, 1.0, 1.0, 0.3, 0.5, 0.0), Point(200, 2.0, 2.0, 0.2, 0.5, 0.0))
    measures = ("ndcg@10", "ndcg@10, estimated positives too")
    runs = [
        RunResult(seed, points, dict(zip(measures, values, strict=True)))
        for seed, values in enumerate(zip(labelled, counted, strict=True))
    ]
    return ArmResult(name, 8, "", 0.01, {}, tuple(runs))


@pytest.mark.parametrize(("judged", "disagree"), [((0.60, 0.61, 0.62), True), ((0.40, 0.61, 0.55), False)])
def test_a_comparison_says_when_labels_alone_prefer_another_arm(judged, disagree):
    nearest = text_arm("nearest", (0.50, 0.52, 0.51), (0.50, 0.52, 0.51))
    found = Comparison("ndcg@10", (nearest, text_arm("judged", (0.45, 0.46, 0.47), judged)), {"steps": 200})
    assert (found.disagreement is not None) == disagree
    if disagree:
        assert "nearest" in found.disagreement
        assert "judged is better by +0.1000" in found.disagreement
