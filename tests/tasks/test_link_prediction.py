"""Link prediction: scores of plain formulas from both sides, filtered ranks of plain loops, and tables of triples."""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay._slots import corrupted_triples
from naysay.comparing import fitting_methods
from naysay.comparing._run import Run
from naysay.comparing.arms import read_arms
from naysay.errors import NaysayError
from naysay.tasks import KnowledgeGraph, LinkPrediction, TripleModel, read_triples, split_triples
from naysay.tasks.triple_models import TRIPLE_MODELS

ENTITIES, RELATIONS = 20, 3


def graph(seed=0):
    rng = np.random.default_rng(seed)
    triples = np.argwhere(rng.random((ENTITIES, RELATIONS, ENTITIES)) < 0.15)
    return split_triples(triples, ENTITIES, RELATIONS, seed=seed)


def plain(model, triple):
    """The score of a triple by its formula, in NumPy."""
    head, relation, tail = (
        table[row].detach().double().numpy()
        for table, row in zip((model.entities, model.relations, model.entities), triple, strict=True)
    )
    half = len(head) // 2
    first, last = (part[:half] + 1j * part[half:] for part in (head, tail))
    if model.kind == "transe":
        return -np.linalg.norm(head + relation - tail)
    if model.kind == "distmult":
        return (head * relation * tail).sum()
    if model.kind == "complex":
        return (first * (relation[:half] + 1j * relation[half:]) * last.conj()).sum().real
    return -np.linalg.norm(first * np.exp(1j * relation[:half]) - last)


@pytest.mark.parametrize("kind", TRIPLE_MODELS)
def test_scores_are_those_of_the_formulas_from_both_sides(kind):
    model = TripleModel(kind, 6, 2, seed=1, width=8)
    triples = torch.tensor([[h, r, t] for h in range(6) for r in range(2) for t in range(6)])
    scores = model.score(triples).detach().numpy()
    np.testing.assert_allclose(scores, [plain(model, triple) for triple in triples.tolist()], atol=1e-5)
    table = scores.reshape(6, 2, 6)
    given, between = torch.tensor([4, 5]), torch.tensor([1, 0])
    tails = model.order_all(model.queries(given, between, tails=True).detach())
    heads = model.order_all(model.queries(given, between, tails=False).detach())
    np.testing.assert_array_equal(tails.argsort(dim=1), table[[4, 5], [1, 0], :].argsort(axis=1))
    np.testing.assert_array_equal(heads.argsort(dim=1), table[:, [1, 0], [4, 5]].T.argsort(axis=1))


@pytest.mark.parametrize("sides", [(-1, 0, 2), (0, 1, 2)])
@pytest.mark.parametrize("kind", TRIPLE_MODELS)
def test_scores_with_a_part_replaced_and_their_gradients_are_those_of_whole_triples(kind, sides):
    model, rng = TripleModel(kind, 6, 6, seed=1, width=8), np.random.default_rng(0)
    triples, ids = (torch.from_numpy(rng.integers(0, 6, shape)) for shape in ((5, 3), (5, 4)))
    side = torch.from_numpy(rng.choice(sides, (5, 4)))
    slopes = torch.from_numpy(rng.normal(size=(5, 5))).float()
    slopes[0, 1] = 0
    both = torch.cat([triples[:, None], corrupted_triples(triples, ids, side)], dim=1)
    found = []
    for scores in (model.scores(triples, ids, side), model.score(both)):
        gradients = torch.autograd.grad(scores, (model.entities, model.relations), slopes)
        found.append([scores.detach(), *gradients])
    for ours, plainly in zip(*found, strict=True):
        torch.testing.assert_close(ours, plainly, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", TRIPLE_MODELS)
def test_measures_are_filtered_on_both_sides(kind):
    data = graph()
    task = LinkPrediction(data, kind, width=8)
    learner = task.start(0)
    model, ranks = learner.network, []
    true = {tuple(row) for part in (data.train, data.validation, data.test) for row in part.array.tolist()}
    for head, relation, tail in data.test.array.tolist():
        own = plain(model, (head, relation, tail))
        for side in (0, 2):
            rank = 1
            for entity in range(ENTITIES):
                other = (entity, relation, tail) if side == 0 else (head, relation, entity)
                rank += other not in true and plain(model, other) > own
            ranks.append(rank)
    before = [part.detach().clone() for part in learner.parameters]
    found = learner.measure(learner.snapshot(), "test")
    assert found["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)), abs=1e-6)
    for n in (1, 3, 10):
        assert found[f"hits@{n}"] == pytest.approx(np.mean(np.array(ranks) <= n))
    assert all(torch.equal(one, other) for one, other in zip(before, learner.parameters, strict=True))


def test_a_snapshot_is_measured_and_not_what_came_later():
    task = LinkPrediction(graph(), width=8)
    run = Run(task, read_arms(None, task.start(0).parts(), task.defaults, task.own)[0], 0.1, 0)
    state = run.model.snapshot()
    first = run.model.measure(state)
    run.train(5)
    assert run.model.measure(run.model.snapshot()) != first
    assert run.model.measure(state) == first


def test_the_loss_is_info_nce_and_false_negatives_are_held_out():
    task = LinkPrediction(graph(), width=8)
    learner = task.start(0)
    rows = np.arange(12)
    loss, negatives = learner.loss(rows, ns.samplers.Static(ns.pools.Corruption(task.data.train)), 4, step=0)
    total, false, count = 0.0, 0, 0
    for place, row in enumerate(rows):
        triple = task.triples[row].tolist()
        others = []
        for entity, side in zip(negatives.ids[place].tolist(), negatives.side[place].tolist(), strict=True):
            other = [*triple]
            other[side] = entity
            others.append(plain(learner.network, other))
            false, count = false + task.held.contains([other])[0], count + 1
        total += np.log1p(np.exp(np.array(others) - plain(learner.network, triple)).sum())
    assert float(loss.detach()) == pytest.approx(total / 12, rel=1e-4)
    assert learner.false_share(rows, negatives) == pytest.approx(false / count)


TASK = LinkPrediction(graph(), width=8)
PARTS = TASK.start(0).parts()
FITTING = fitting_methods(PARTS, TASK.own)


def test_methods_of_triples_fit_and_those_of_pairs_do_not():
    mechanisms = {"corruption", "uniform", "bernoulli", "typed", "relation-corruption", "near-positive"}
    assert {*mechanisms, "dynamic-softmax", "margin-ranking", "self-adversarial", "TransE"} <= {*FITTING}
    assert not {"popularity", "MixGCF", "in-batch"} & {*FITTING}


@pytest.mark.parametrize(
    ("model", "papers"),
    [("transe", {"TransE"}), ("rotate", {"RotatE"}), ("distmult", {"DistMult"}), ("complex", set())],
)
def test_the_name_of_a_paper_is_an_arm_only_with_its_model_and_its_loss(model, papers):
    task = LinkPrediction(graph(), model, width=8)
    parts = task.start(0).parts()
    of_papers = {"TransE", "RotatE", "DistMult", "TransH", "TransG", "Shan et al.", "SNS"}
    assert of_papers & {*fitting_methods(parts, task.own)} == papers
    for name in of_papers - papers:
        with pytest.raises(NaysayError) as caught:
            ns.compare(graph(), task="knowledge-graph", model=model, methods=[name], steps=8, seeds=1)
        assert caught.value.parameter == "methods"


def losses_of(name, model, k=4):
    """The loss of an arm's first step, and the scores of its triples by the formula."""
    task = LinkPrediction(graph(), model, width=8)
    learner = task.start(0)
    arm = next(arm for arm in read_arms([name], learner.parts(), task.defaults, task.own) if arm.name == name)
    rows = np.arange(12)
    loss, negatives = arm.sampler(learner.parts())(rows, k, step=0)
    positive, others = [], []
    for place, row in enumerate(rows):
        triple = task.triples[row].tolist()
        positive.append(plain(learner.network, triple))
        for entity, side in zip(negatives.ids[place].tolist(), negatives.side[place].tolist(), strict=True):
            others.append(plain(learner.network, [*triple[:side], entity, *triple[side + 1 :]]))
    return float(loss.detach()), np.array(positive)[:, None], np.array(others).reshape(12, k)


@pytest.mark.parametrize(("name", "model"), [("RotatE", "rotate"), ("self-adversarial", "complex")])
def test_rotate_has_the_self_adversarial_loss(name, model):
    margin = 9.0 if model == "rotate" else 0.0
    loss, positive, others = losses_of(name, model)
    share = np.exp(others) / np.exp(others).sum(axis=1, keepdims=True)
    both = np.log1p(np.exp(-margin - positive[:, 0])) + (share * np.log1p(np.exp(margin + others))).sum(axis=1)
    assert loss == pytest.approx(both.mean() / 2, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "model"), [("TransE", "transe"), ("DistMult", "distmult"), ("margin-ranking", "rotate")]
)
def test_transe_and_distmult_have_the_margin_ranking_loss(name, model):
    loss, positive, others = losses_of(name, model)
    assert loss == pytest.approx(np.maximum(0, 1 + others - positive).sum(axis=1).mean(), rel=1e-4)


def test_default_arms_have_one_k():
    for names in (TASK.defaults, TASK.quick):
        assert {arm.k for arm in read_arms(names, PARTS, TASK.defaults, TASK.own)} == {8}


@pytest.mark.parametrize("validated", [1, 5, 10**11])
def test_validation_ranks_as_many_triples_as_it_is_told_and_the_test_ranks_all(validated):
    data = graph()
    some = LinkPrediction(data, width=8, validated=validated)
    assert some.validated == min(validated, len(data.validation))
    whole = LinkPrediction(data, width=8, validated=len(data.validation))
    vectors = some.start(0).snapshot()
    assert some.start(0).measure(vectors, "test") == whole.start(0).measure(vectors, "test")
    mrr = some.start(0).measure(vectors)["mrr"]
    assert (mrr == whole.start(0).measure(vectors)["mrr"]) == (validated == 10**11)
    assert some.settings()["validated"] == some.validated


def test_sizes_that_no_memory_holds_are_errors():
    for sizes in ({"n_entities": 10**11}, {"n_relations": 10**11}, {"width": 10**11}):
        with pytest.raises(NaysayError) as caught:
            TripleModel("transe", **{"n_entities": 4, "n_relations": 2, **sizes}, seed=0)
        assert caught.value.parameter == next(iter(sizes))
    with pytest.raises(NaysayError) as caught:
        LinkPrediction(graph(), width=10**11)
    assert caught.value.parameter == "width"


@pytest.mark.parametrize("name", FITTING)
def test_every_fitting_method_trains_and_draws_nothing_known(name):
    arm = next(arm for arm in read_arms([name], PARTS, TASK.defaults, TASK.own) if arm.name == name)
    run = Run(TASK, arm, 0.01, 0)
    run.train(2)
    drawn = run.negatives.numpy()
    triples = np.repeat(TASK.triples.numpy()[run.batch][:, None], drawn.ids.shape[1], axis=1)
    np.put_along_axis(triples, np.maximum(drawn.side, 0).astype(np.int64)[:, :, None], drawn.ids[:, :, None], axis=2)
    assert drawn.mask.any()
    assert not TASK.data.train.contains(triples[drawn.mask]).any()


def test_a_comparison_of_triples_runs_from_end_to_end():
    methods = ["corruption:8", "RotatE:8"]
    found = ns.compare(graph(), task="knowledge-graph", model="rotate", methods=methods, steps=8, seeds=2)
    assert [arm.name for arm in found.arms] == methods
    assert {"mrr", "minus corruption:8", "hits@10"} <= {*found.columns}
    assert "self_adversarial, margin=9.0, alpha=1.0" in found["RotatE:8"].code


def lines(triples):
    return "".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in triples)


def test_triples_are_read_from_a_file_from_three_and_from_a_folder(tmp_path):
    data = graph()
    parts = {"train": data.train, "valid": data.validation, "test": data.test}
    for name, part in parts.items():
        (tmp_path / f"{name}.txt").write_text(lines(part.array.tolist()))
    files = {"validation": tmp_path / "valid.txt", "test": tmp_path / "test.txt"}
    whole, given = read_triples(tmp_path), read_triples(tmp_path / "train.txt", **files)
    assert whole.fingerprint() == given.fingerprint()
    assert [len(part) for part in (whole.train, whole.validation, whole.test)] == [len(part) for part in parts.values()]
    tested = read_triples(tmp_path / "train.txt", test=files["test"])
    assert (len(tested.validation), len(tested.test)) == (len(data.train) // 10, len(data.test))
    assert len(tested.train) + len(tested.validation) == len(data.train)
    alone = read_triples(tmp_path / "train.txt")
    assert len(alone.test) == len(data.train) // 10


def test_bad_triples_are_explained(tmp_path):
    (tmp_path / "few.tsv").write_text(lines([(0, 0, 1)] * 20))
    with pytest.raises(NaysayError, match=r"`triples` must be at least ten different triples, for a split, got 1"):
        read_triples(tmp_path / "few.tsv")
    with pytest.raises(NaysayError, match=r"`path` must be a folder with train.txt or train.tsv, got"):
        read_triples(tmp_path)
    with pytest.raises(NaysayError, match=r"`path` must be an existing file"):
        read_triples(tmp_path / "no.tsv")
    with pytest.raises(NaysayError, match=r"`test` must be given along with `validation`, got nothing"):
        read_triples(tmp_path / "few.tsv", validation=tmp_path / "few.tsv")
    train, other, both = (ns.Triples(rows, 4, 1) for rows in ([[0, 0, 1]], [[2, 0, 3]], [[1, 0, 0], [2, 0, 3]]))
    with pytest.raises(NaysayError, match=r"`validation` must be at least one triple whose entities and relation"):
        KnowledgeGraph(train, other, other)
    made = KnowledgeGraph(train, both, both)
    assert made.notes[0] == "1 validation triple of 2 left out: entities or relations that training never saw."
    assert len(made.test) == 1
    with pytest.raises(NaysayError, match=r"`liked` must be left out for the task .knowledge-graph., got 3"):
        ns.compare(tmp_path / "few.tsv", task="knowledge-graph", liked=3)
