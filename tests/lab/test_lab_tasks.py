"""Tasks: losses and measures of plain loops, what arms draw, what counts as false, and that models learn."""

import numpy as np
import pytest
import torch
from lab_worlds import (
    ENTITIES,
    FEW_IMAGES,
    GRAPH,
    IMAGE_CLASSES,
    IMAGES,
    NODE_CLASSES,
    OF_TEXTS,
    OF_VECTORS,
    PICTURES,
    TASKS,
    interactions,
    triples,
)
from scipy.sparse import csr_array
from test_lab_models import plain_score

import naysay as ns
from naysay.lab import ImageContrast, Images, LinkPrediction, NodeEmbedding, Recommendation, Retrieval, fitting_methods
from naysay.lab import retrieval as retrieval_module
from naysay.lab._run import Run
from naysay.lab.arms import Arm, parts_of, read_arms

UNIFORM = "Static(Everything(positives))"


def first_arm(task):
    return read_arms(None, task, parts_of(task, 0, 100), task.defaults[:1])[0]


def anchors_of(task, batch):
    """The anchors of a batch, and what is known of them."""
    if task.name == "recommendation":
        return task.users[batch], task.data.train
    if task.name == "graph":
        return task.pairs_of(batch)[0], task.known
    if task.name == "text":
        return task.queries[batch], task.data.train
    return task.rows[batch], ns.Positives.from_pairs(np.arange(240), np.arange(240))


@pytest.mark.parametrize(
    ("task", "fits", "does_not"),
    [
        ("lightgcn", {"uniform", "popularity", "DNS", "AOBPR", "MixGCF"}, {"TransE", "MoCo", "ANCE", "DPR"}),
        ("transe", {"corruption", "bernoulli", "typed", "near-positive", "TransE"}, {"popularity", "MixGCF"}),
        ("graphsage", {"uniform", "k-hop", "walks", "dynamic", "word2vec"}, {"TransE", "MixGCF", "judged", "GRACE"}),
        ("adapter", {"in-batch", "nearest", "judged", "mixed-sources"}, {"TransE", "MixGCF", "k-hop", "SimSiam"}),
        ("conv", {"semi-hard", "mixed-sources", "SimCLR", "MoCo"}, {"TransE", "MixGCF", "dynamic", "popularity"}),
    ],
)
def test_every_fitting_method_trains_and_draws_nothing_known(task, fits, does_not):
    task = TASKS[task]()
    names = fitting_methods(task)
    assert fits <= {*names}
    assert not does_not & {*names}
    compositions = set()
    for arm in read_arms(names, task, parts_of(task, 0, 100), task.defaults):
        if arm.code in compositions or arm.name == "pagerank-window":  # which is slow
            continue
        compositions.add(arm.code)
        run = Run(task, arm, 0.01, 0)
        run.train(1)
        assert all(torch.isfinite(part).all() for part in run.model.network.parameters()), arm.name
        if run.negatives is None:
            continue
        drawn = run.negatives.numpy()
        assert drawn.ids.max() >= 0, arm.name
        if task.name == "knowledge-graph":
            rows = np.repeat(task.triples.numpy()[run.batch][:, None], drawn.ids.shape[1], axis=1)
            side = np.maximum(drawn.side, 0).astype(np.int64)[:, :, None]
            np.put_along_axis(rows, side, drawn.ids[:, :, None], axis=2)
            assert not task.data.train.contains(rows[drawn.mask]).any(), arm.name
        else:
            anchors, known = anchors_of(task, run.batch)
            assert not known.contains(anchors, drawn.ids, relation="any").any(), arm.name


@pytest.mark.parametrize("task", [Recommendation, LinkPrediction, NodeEmbedding, Retrieval, ImageContrast])
def test_the_default_arms_of_a_task_have_one_k(task):
    for names in (task.defaults, task.quick):
        assert {name.rpartition(":")[2] for name in names if ":" in name} == {str(task.k)}


@pytest.mark.parametrize(
    ("data", "model", "lr", "arms"),
    [
        (OF_VECTORS, "adapter", 0.01, ("in_batch()", UNIFORM)),
        (OF_TEXTS, "subwords", 0.05, ("in_batch()", UNIFORM)),
    ],
)
def test_both_text_encoders_learn(data, model, lr, arms):
    task = Retrieval(data)
    assert task.model == model
    for code in arms:
        run = Run(task, Arm("some", 8, code), lr, 0)
        before = run.model.measure(run.model.snapshot(), "test")
        run.train(40)
        after = run.model.measure(run.model.snapshot(), "test")
        assert after["auc"] > max(0.75, before["auc"] + 0.05)


@pytest.mark.parametrize(("model", "lr"), [("skip-gram", 0.05), ("graphsage", 0.01)])
def test_both_graph_models_learn_classes_and_edges(model, lr):
    features = csr_array(np.eye(60)) if model == "graphsage" else None
    data = ns.lab.Graph(GRAPH.train, GRAPH.validation, GRAPH.test, 60, NODE_CLASSES, features=features)
    run = Run(NodeEmbedding(data, model, dim=16), Arm("uniform:5", 5, UNIFORM), lr, 0)
    before = run.model.measure(run.model.snapshot(), "test")
    run.train(40)
    after = run.model.measure(run.model.snapshot(), "test")
    assert after["accuracy"] >= 0.8
    assert after["auc"] > max(0.65, before["auc"])
    assert NodeEmbedding(ns.lab.split_edges(GRAPH.train, 60)).measure == "auc"


def test_an_image_encoder_learns_to_find_the_other_view():
    task = ImageContrast(Images(PICTURES), batch=64)
    assert task.measure == "view recall@1"
    run = Run(task, Arm("in-batch", 1, "in_batch()"), 0.01, 0)
    before = run.model.measure(run.model.snapshot())
    run.train(25)
    assert run.model.measure(run.model.snapshot())["mrr"] > before["mrr"] + 0.05


@pytest.mark.parametrize("name", ["uniform", "in-batch hard", "decoupled", "IFND", "MoCo"])
def test_every_arm_of_images_lowers_its_loss(name):
    task = ImageContrast(FEW_IMAGES, batch=64)
    run = Run(task, Arm(name, 16, task.methods[name]), 0.003, 0)
    run.train(4)  # the queue is full
    before = np.mean([run.step_of(run._next_batch(), k=16, step=0)[0].item() for _ in range(2)])
    run.train(16)
    after = np.mean([run.step_of(run._next_batch(), k=16, step=0)[0].item() for _ in range(2)])
    assert after < before


# ---- losses by loops ----


@pytest.mark.parametrize("model", ["mf", "lightgcn"])
@pytest.mark.parametrize("mixing", [False, True])
def test_the_loss_of_recommendation_is_that_of_plain_loops(model, mixing):
    task = Recommendation(interactions(), model, dim=8)
    learner = task.start(0)
    pool = ns.pools.Everything(task.data.train)
    sampler = ns.samplers.MixGCF(pool, learner.embed, 4) if mixing else ns.samplers.Static(pool)
    rows = np.arange(10)
    loss, negatives = learner.loss(rows, 3, step=5, sampler=sampler)
    vectors = learner.vectors.detach().double().numpy()
    total = 0.0
    for place, row in enumerate(rows):
        user, item = int(task.users[row]), int(task.items[row])
        others = negatives.vectors[place].detach().double() if mixing else vectors[20 + negatives.ids[place].numpy()]
        scores = np.asarray(others) @ vectors[user]
        total += np.log1p(np.exp(scores - vectors[20 + item] @ vectors[user]).sum())
    assert float(loss.detach()) == pytest.approx(total / 10, rel=1e-4)
    users, ids = torch.tensor([3, 0]), torch.tensor([[1, 2, 29], [0, 5, 5]])
    for row in range(2):
        others = vectors[20 + ids[row].numpy()]
        np.testing.assert_allclose(learner.score(users, ids)[row], others @ vectors[users[row]], atol=1e-6)
        np.testing.assert_allclose(learner.similarity(users, ids)[row], others @ vectors[20 + users[row]], atol=1e-6)


def test_whole_data_is_the_squared_loss_of_every_pair():
    task = Recommendation(interactions(), dim=4)
    model = task.start(0)
    loss, negatives = model.parts()["whole_data"](weight=0.3)(np.arange(task.pairs), 1, step=0)
    assert negatives is None
    vectors = model.vectors.detach().double().numpy()
    scores = vectors[:20] @ vectors[20:].T
    known = task.data.train.contains(np.arange(20), np.tile(np.arange(30), (20, 1)))
    assert loss.item() * task.pairs == pytest.approx(np.where(known, (1 - scores) ** 2, 0.3 * scores**2).sum())


def loss_of_triples(name, model, k=4):
    """The loss of an arm's first step, and the scores of its triples by the formula."""
    task = LinkPrediction(triples(), model, dim=8)
    learner = task.start(0)
    [arm] = read_arms([name], task, learner.parts(), task.defaults)
    sampler, rows = arm.sampler(learner.parts()), np.arange(12)
    if hasattr(sampler, "sample"):
        loss, negatives = learner.loss(rows, k, step=0, sampler=sampler)
    else:
        loss, negatives = sampler(rows, k, step=0)
    positive, others, false = [], [], []
    for place, row in enumerate(rows):
        triple = task.triples[row].tolist()
        positive.append(plain_score(learner.network, triple))
        for entity, side in zip(negatives.ids[place].tolist(), negatives.side[place].tolist(), strict=True):
            other = [*triple[:side], entity, *triple[side + 1 :]]
            others.append(plain_score(learner.network, other))
            false.append(task.held.contains([other])[0])
    assert learner.false_share(rows, negatives) == pytest.approx(np.mean(false))
    return float(loss.detach()), np.array(positive)[:, None], np.array(others).reshape(12, k)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("corruption", "transe"),
        ("RotatE", "rotate"),
        ("self-adversarial", "complex"),
        ("TransE", "transe"),
        ("DistMult", "distmult"),
        ("margin-ranking", "rotate"),
    ],
)
def test_the_losses_of_triples_are_those_of_their_names(name, model):
    loss, positive, others = loss_of_triples(name, model)
    if name == "corruption":
        expected = np.log1p(np.exp(others - positive).sum(axis=1))
    elif name in ("RotatE", "self-adversarial"):
        margin = 9.0 if model == "rotate" else 0.0
        share = np.exp(others) / np.exp(others).sum(axis=1, keepdims=True)
        of_negatives = (share * np.log1p(np.exp(margin + others))).sum(axis=1)
        expected = (np.log1p(np.exp(-margin - positive[:, 0])) + of_negatives) / 2
    else:
        expected = np.maximum(0, 1 + others - positive).sum(axis=1)
    assert loss == pytest.approx(expected.mean(), rel=1e-4)


@pytest.mark.parametrize(
    ("model", "papers"),
    [("transe", {"TransE"}), ("rotate", {"RotatE"}), ("distmult", {"DistMult"}), ("complex", set())],
)
def test_the_name_of_a_paper_is_an_arm_only_with_its_model_and_its_loss(model, papers):
    task = LinkPrediction(triples(), model, dim=8)
    of_papers = {"TransE", "RotatE", "DistMult", "TransH", "TransG", "Shan et al.", "SNS"}
    assert of_papers & {*fitting_methods(task)} == papers


# ---- measures ----


def test_measures_of_recommendation_leave_out_what_is_known():
    task = Recommendation(interactions(), dim=8)
    learner = task.start(0)
    state = learner.snapshot()
    scores = (state["vectors"][:20] @ state["vectors"][20:].T).numpy()
    for part, known in (("validation", task.data.train), ("test", task.data.train.union(task.data.validation))):
        found = ns.lab.ranking(scores, getattr(task.data, part), known=known)
        expected = {"recall@20": found.recall(20), "ndcg@20": found.ndcg(20), "mrr": found.mrr, "auc": found.auc}
        measured = learner.measure(state, part)
        assert {name: measured[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["transe", "complex"])
def test_measures_of_triples_are_filtered_on_both_sides(kind):
    data = triples()
    learner = LinkPrediction(data, kind, dim=8).start(0)
    true = {tuple(row) for part in (data.train, data.validation, data.test) for row in part.array.tolist()}
    ranks = []
    for head, relation, tail in data.test.array.tolist():
        own = plain_score(learner.network, (head, relation, tail))
        for others in (
            [(entity, relation, tail) for entity in range(ENTITIES)],
            [(head, relation, entity) for entity in range(ENTITIES)],
        ):
            ranks.append(1 + sum(other not in true and plain_score(learner.network, other) > own for other in others))
    found = learner.measure(learner.snapshot(), "test")
    assert found["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)), abs=1e-6)
    for n in (1, 3, 10):
        assert found[f"hits@{n}"] == pytest.approx(np.mean(np.array(ranks) <= n))


@pytest.mark.parametrize("name", TASKS)
def test_a_snapshot_is_measured_and_not_what_came_later(name):
    task = TASKS[name]()
    run = Run(task, first_arm(task), 0.05, 0)
    state = run.model.snapshot()
    first = run.model.measure(state)
    run.train(5)
    later = run.model.snapshot()
    assert run.model.measure(state) == first
    assert all(torch.equal(value, later[name]) for name, value in run.model.snapshot().items())


@pytest.mark.parametrize("validated", [1, 5, 10**11])
def test_validation_ranks_as_many_triples_as_it_is_told_and_the_test_ranks_all(validated):
    data = triples()
    some = LinkPrediction(data, dim=8, validated=validated)
    whole = LinkPrediction(data, dim=8, validated=len(data.validation))
    vectors = some.start(0).snapshot()
    assert some.settings()["validated"] == min(validated, len(data.validation))
    assert some.start(0).measure(vectors, "test") == whole.start(0).measure(vectors, "test")
    same = some.start(0).measure(vectors) == whole.start(0).measure(vectors)
    assert same == (validated == 10**11)


def test_pairs_of_a_graph_are_those_of_walks_and_absent_pairs_have_no_edge():
    task = NodeEmbedding(GRAPH)
    assert task.known.contains(task.walks[:, :-1].ravel(), task.walks[:, 1:].ravel()).all()
    first, second = task.pairs_of(np.arange(task.pairs))
    adjacent = np.zeros((60, 60), bool)
    adjacent[tuple(GRAPH.train.T)] = True
    adjacent |= adjacent.T
    within = [adjacent]
    for _ in range(2):
        within.append(within[-1].astype(int) @ adjacent > 0)
    assert np.any([reached[first, second] for reached in within], axis=0).all()
    every = {tuple(edge) for name in ("train", "validation", "test") for edge in getattr(GRAPH, name).tolist()}
    for part in ("validation", "test"):
        assert len(task.absent[part]) == len(getattr(GRAPH, part))
        assert not every & {tuple(sorted(pair)) for pair in task.absent[part].tolist()}


# ---- false negatives ----


def test_false_negatives_are_held_out_pairs_edges_or_images_of_the_same_class():
    task = Recommendation(interactions())
    user, item = (ids[0] for ids in task.data.test.pairs())
    row = int(np.flatnonzero(task.users == user)[0])
    free = next(i for i in range(30) if not task.data.train.union(task.held).contains([user], [i])[0])
    assert task.start(0).false_share(np.array([row]), ns.Negatives(np.array([[item, free, -1]]))) == 0.5
    graph = NodeEmbedding(GRAPH)
    rows = np.arange(300)
    nodes = graph.pairs_of(rows)[0]
    held = np.concatenate([GRAPH.validation, GRAPH.test, GRAPH.validation[:, ::-1], GRAPH.test[:, ::-1]])
    partner = np.full(60, -1)
    partner[held[:, 0]] = held[:, 1]
    assert graph.start(0).false_share(rows, ns.Negatives(nodes[:, None])) == 0
    assert graph.start(0).false_share(rows, ns.Negatives(partner[nodes][:, None])) == 1
    images, rows = ImageContrast(IMAGES), np.arange(20)
    own = IMAGE_CLASSES[images.rows[rows]][:, None]
    ids = np.array([np.argsort(label != IMAGE_CLASSES, kind="stable")[[0, 1, -1, -2]] for label in own[:, 0]])
    assert images.start(0).false_share(rows, ns.Negatives(ids)) == 0.5
    assert np.isnan(ImageContrast(Images(PICTURES)).start(0).false_share(rows, ns.Negatives(ids)))


def test_the_share_of_false_negatives_of_texts_is_that_of_the_judge():
    world = ns.planted_world(400, 600, per_anchor=4, known_share=0.5, noise=0.1, spread=0.5)
    parts = ns.lab.split_by_document(ns.Positives.from_pairs(np.arange(400), np.arange(400), 400, 600))
    data = ns.lab.TextPairs(*parts, query_vectors=world.anchor_vectors, document_vectors=world.item_vectors)
    model, rows = Retrieval(data).start(0), np.arange(32)
    order = np.argsort(-(data.query_vectors[model.task.queries[rows]] @ data.document_vectors.T), axis=1)
    near, far = (model.false_share(rows, ns.Negatives(ids)) for ids in (order[:, :3], order[:, -3:]))
    assert np.isnan([near, far]).all() or near > far == 0


# ---- parts of arms that change during a run ----


def test_mined_negatives_are_the_nearest_before_training_and_are_made_once(monkeypatch):
    calls, mine = [], retrieval_module.mine
    monkeypatch.setattr(
        retrieval_module, "mine", lambda *given, **options: calls.append(options) or mine(*given, **options)
    )
    task, arm = Retrieval(OF_VECTORS), Arm("mined", 8, "Static(mined(None))")
    runs = [Run(task, arm, lr, seed) for lr, seed in ((0.1, 0), (0.01, 0), (0.1, 1))]
    assert len(calls) == 1
    assert all(run.processor_seconds >= runs[0].model.processor_seconds_spared > 0 for run in runs)
    runs[0].train(1)
    query = task.queries[runs[0].batch[0]]
    order = np.argsort(-(OF_VECTORS.query_vectors[query] @ OF_VECTORS.document_vectors.T))
    known = OF_VECTORS.train.contains(np.full(120, query), order)
    assert {*runs[0].negatives.numpy().ids[0]} == {*order[~known][:8]}


def test_the_vectors_of_nearest_are_renewed_every_epoch():
    task = Retrieval(OF_VECTORS, batch=48)
    made = []

    def make(parts):
        made.append(parts["Nearest"](parts["vectors"], depth=200, positives=parts["positives"]))
        return ns.samplers.Static(made[0])

    run = Run(task, Arm("nearest", 2, "", make), 0.1, 0)
    before = made[0].vectors.copy()
    run.train(1)
    np.testing.assert_array_equal(made[0].vectors, before)
    run.train(1)  # the last of an epoch
    assert not np.array_equal(made[0].vectors, before)


def test_the_share_of_accepted_labels_grows_linearly_over_a_run(monkeypatch):
    """Labels are made every 5 steps here; of 40 steps, the update at step 10 accepts a quarter of them."""
    monkeypatch.setattr("naysay.lab.images._RENEW", 5)
    update, shares = ns.detectors.Incremental.update, []

    def noted(self, features, progress):
        update(self, features, progress)
        shares.append((self.labels >= 0).mean())

    monkeypatch.setattr(ns.detectors.Incremental, "update", noted)
    task = ImageContrast(Images(PICTURES[:60, :4, :4], IMAGE_CLASSES[:60]))
    Run(task, Arm("IFND", 1, task.methods["IFND"]), 0.01, 0, steps=40).train(40)
    assert shares == pytest.approx([step / 40 for step in range(5, 40, 5)], abs=0.03)


def test_elimination_leaves_out_the_images_of_a_cluster(monkeypatch):
    monkeypatch.setattr("naysay.lab.images._RENEW", 2)
    task = ImageContrast(IMAGES, batch=192)
    run = Run(task, Arm("eliminate", 1, "eliminate((2,), steps)"), 0.003, 0, steps=4)  # half of the labels at step 2
    run.train(1)
    assert (run.negatives.numpy().ids < 0).sum() == 192  # the image itself
    run.train(2)
    assert (run.negatives.numpy().ids < 0).sum() > 192 + 1000


def test_the_queue_grows_and_never_has_the_image_itself():
    task = ImageContrast(IMAGES, batch=64)
    run = Run(task, Arm("MoCo", 1, "queue(150)"), 0.003, 0)
    for size in (64, 128, 150):
        run.train(1)
        ids = run.negatives.numpy().ids
        assert ids.shape == (64, size)
        assert not (ids == task.rows[run.batch][:, None]).any()
