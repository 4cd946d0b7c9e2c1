"""Tasks on a device: the processor by default, plain torch elsewhere, the same numbers, and shapes without values."""

import json
import sys

import numpy as np
import pytest
import torch
from pretend_device import NAME, PretendDevice

import naysay as ns
from naysay.arrays import to_numpy, to_torch
from naysay.comparing import fitting_methods
from naysay.comparing._run import Run
from naysay.comparing.arms import read_arms
from naysay.comparing.compare import compare
from naysay.errors import NaysayError
from naysay.kernels.random import uniforms
from naysay.rng import generator_of
from naysay.samplers import _top_k, _vectors
from naysay.tasks import _parts, _products
from naysay.tasks.conv import view
from naysay.tasks.triple_models import TRIPLE_MODELS, TripleModel
from tests.fuzz.rules import run as run_command

RNG = np.random.default_rng(0)
EDGES = np.argwhere(np.triu(RNG.random((40, 40)) < 0.25, 1))


def interactions():
    return ns.tasks.split_by_user(*np.nonzero(np.random.default_rng(1).random((30, 50)) < 0.3))


def triples():
    return ns.tasks.split_triples(np.argwhere(np.random.default_rng(2).random((20, 3, 20)) < 0.15), 20, 3)


def graph():
    return ns.tasks.split_edges(EDGES, 40, labels=np.arange(40) % 3)


def texts(*, vectors=True):
    parts = ns.tasks.split_by_document(ns.Positives.from_pairs(np.arange(120), np.arange(120) % 60, 120, 60))
    rng = np.random.default_rng(3)
    if vectors:
        return ns.tasks.TextPairs(
            *parts, query_vectors=rng.normal(size=(120, 8)), document_vectors=rng.normal(size=(60, 8))
        )
    words = np.array([f"word{i}" for i in range(30)])
    made = [[" ".join(rng.choice(words, 5)) for _ in range(size)] for size in (120, 60)]
    return ns.tasks.TextPairs(*parts, query_texts=made[0], document_texts=made[1])


def images(*, labels=True):
    rng = np.random.default_rng(4)
    return ns.tasks.Images(rng.random((120, 8, 8)), np.arange(120) % 3 if labels else None)


TASKS = {
    "mf": lambda **more: ns.tasks.Recommendation(interactions(), "mf", width=8, batch=32, **more),
    "lightgcn": lambda **more: ns.tasks.Recommendation(interactions(), "lightgcn", width=8, batch=32, **more),
    "transe": lambda **more: ns.tasks.LinkPrediction(triples(), "transe", width=8, batch=32, **more),
    "distmult": lambda **more: ns.tasks.LinkPrediction(triples(), "distmult", width=8, batch=32, **more),
    "complex": lambda **more: ns.tasks.LinkPrediction(triples(), "complex", width=8, batch=32, **more),
    "rotate": lambda **more: ns.tasks.LinkPrediction(triples(), "rotate", width=8, batch=32, **more),
    "skip-gram": lambda **more: ns.tasks.NodeEmbedding(graph(), "skip-gram", width=8, batch=32, **more),
    "graphsage": lambda **more: ns.tasks.NodeEmbedding(graph(), "graphsage", width=8, batch=32, **more),
    "adapter": lambda **more: ns.tasks.Retrieval(texts(), batch=32, **more),
    "subwords": lambda **more: ns.tasks.Retrieval(texts(vectors=False), batch=32, **more),
    "conv": lambda **more: ns.tasks.ImageContrast(images(), batch=32, **more),
    "conv without classes": lambda **more: ns.tasks.ImageContrast(images(labels=False), batch=32, **more),
}


def arms_of(task, names=None):
    return read_arms(names, task.start(0).parts(), task.defaults[:1], task.own)


def first_step(run):
    """The loss of the first step, its gradients, and the negatives of each row, sorted: equal scores have no order."""
    loss, negatives = run.step_of(run._batch(), k=run.arm.k, step=0)
    gradients = torch.autograd.grad(loss, run.model.parameters, allow_unused=True)
    made = [np.zeros(0) if part is None else to_numpy(part) for part in gradients]
    return float(loss.detach()), made, None if negatives is None else np.sort(to_numpy(negatives.ids))


def check_run(task, arm, other_task, other_arm):
    """The same first step and measures as another task, and all of a run without an error."""
    runs = Run(task, arm, 0.01, 0), Run(other_task, other_arm, 0.01, 0)
    one, other = (first_step(run) for run in runs)
    assert one[0] == pytest.approx(other[0], rel=1e-5)
    for ours, theirs in zip(one[1], other[1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert other[2] is None or one[2].tolist() == other[2].tolist()
    for part in ("validation", "test"):
        ours, theirs = (run.model.measure(run.model.snapshot(), part) for run in runs)
        assert ours == pytest.approx(theirs, abs=0.01)  # rounding may turn a tie
    runs[0].train(2)
    runs[0].look()
    assert all(np.isfinite(value) for value in runs[0].result().test.values())
    return runs[0]


@pytest.fixture
def pretend(monkeypatch):
    """A device that is not the processor; torch's own check would refuse its name."""
    monkeypatch.setattr(_parts, "check_device", lambda parameter, device: None)
    monkeypatch.setattr(sys.modules["naysay.comparing.compare"], "check_device", lambda parameter, device: None)
    # It has no generator of its own: noise is what the processor would draw.
    monkeypatch.setattr(_top_k, "uniform_on_device", lambda *given: moved(by_kernel, *given))
    monkeypatch.setattr(_vectors, "uniform_on_device", lambda *given: moved(by_numpy, *given))
    return PretendDevice()


def moved(drawn, shape, key, like):
    return to_torch(drawn(shape, key), like.device).to(like.dtype)


def by_kernel(shape, key):
    noise = np.empty(shape)
    uniforms(0, len(noise), key, noise)
    return noise


def by_numpy(shape, key):
    return generator_of(key).random(shape)


@pytest.mark.parametrize("name", TASKS)
def test_the_processor_is_the_default_and_not_recorded(name):
    usual, named = TASKS[name](), TASKS[name](device="cpu")
    assert usual.settings() == named.settings()
    assert "device" not in usual.settings()
    assert named.device == torch.device("cpu")
    runs = [Run(task, arms_of(task)[0], 0.01, 0) for task in (usual, named)]
    for run in runs:
        run.train(3)
        run.look()
    parts = [[part.detach().numpy().tobytes() for part in run.model.parameters] for run in runs]
    assert parts[0] == parts[1]
    assert runs[0].result().test == runs[1].result().test


@pytest.mark.parametrize("name", ["mf", "lightgcn", *TRIPLE_MODELS, "skip-gram", "graphsage"])
def test_plain_torch_trains_as_the_compiled_loops(name, monkeypatch):
    task, calls = TASKS[name](), []
    arm = arms_of(task)[0]
    run = Run(task, arm, 0.01, 0)
    compiled = first_step(run), run.model.measure(run.model.snapshot(), "test")
    monkeypatch.setattr(_products, "by_loops", lambda table: calls.append(table.device.type))
    run = Run(task, arm, 0.01, 0)
    plain = first_step(run), run.model.measure(run.model.snapshot(), "test")
    assert plain[0][0] == pytest.approx(compiled[0][0], rel=1e-5)
    for ours, theirs in zip(plain[0][1], compiled[0][1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert plain[1] == pytest.approx(compiled[1], abs=0.01)  # rounding may turn a tie
    assert set(calls) == {"cpu"}


def test_plain_torch_has_the_scores_and_gradients_of_the_compiled_loops(monkeypatch):
    rng = np.random.default_rng(5)
    table = torch.from_numpy(rng.normal(size=(9, 6))).float().requires_grad_()
    rows, others = (torch.from_numpy(rng.integers(0, 9, shape)) for shape in (4, (4, 5)))
    slopes = torch.from_numpy(rng.normal(size=(4, 5))).float()
    found = []
    for loops in (True, False):
        monkeypatch.setattr(_products, "by_loops", lambda _, loops=loops: loops)
        scores = _products.row_scores(table, rows, others)
        found.append([scores, *torch.autograd.grad(scores, table, slopes)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", TRIPLE_MODELS)
def test_plain_torch_has_the_scores_and_gradients_of_triples_of_the_compiled_loops(kind, monkeypatch):
    rng, model = np.random.default_rng(5), TripleModel(kind, 9, 3, seed=0, width=6)
    triples = torch.from_numpy(rng.integers(0, [9, 3, 9], (4, 3)))
    triples[0, 2] = triples[0, 0]  # the head is also the tail
    ids = torch.from_numpy(rng.integers(0, 9, (4, 5)))
    sides = torch.from_numpy(rng.choice([-1, 0, 2], (4, 5)))
    slopes = torch.from_numpy(rng.normal(size=(4, 6))).float()
    found = []
    for loops in (True, False):
        monkeypatch.setattr(_products, "by_loops", lambda _, loops=loops: loops)
        scores = model.scores(triples, ids, sides)
        found.append([scores, *torch.autograd.grad(scores, (model.entities, model.relations), slopes)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", TASKS)
def test_every_part_of_a_task_is_on_its_device(name, pretend):
    here = TASKS[name]()
    fitting = fitting_methods(here.start(0).parts(), here.own)
    names = dict.fromkeys([*here.defaults, *here.own, "closest farther negative"])  # which compares equal scores
    # The head for the tail is as similar as the tail for the head, and a device may take either of equal ones.
    names = [one for one in names if one.partition(":")[0] in {*fitting} - {"near-positive"}]
    names = names[:3] if name == "subwords" else names  # a large table; its arms are those of the adapter
    with pretend:
        there = TASKS[name](device=NAME)
        assert there.settings() == {**here.settings(), "device": NAME}
        for arm, other in zip(arms_of(there, names), arms_of(here, names), strict=True):
            run = check_run(there, arm, here, other)
            assert {part.device.type for part in run.model.parameters} == {NAME}
            assert run.negatives is None or run.negatives.ids.device.type == NAME


def test_a_tensor_of_another_device_is_noticed(pretend):
    with pretend:
        there, here = torch.ones(3, 2).to(NAME), torch.ones(3, 2)
        assert to_numpy(there @ there.T).tolist() == [[2.0] * 3] * 3
        with pytest.raises(RuntimeError, match="two devices"):
            there + here
        with pytest.raises(RuntimeError, match="another device"):
            here[there.long()]
        with pytest.raises(RuntimeError, match="not supported"):
            there.numpy()


def test_a_comparison_records_its_device(pretend, tmp_path):
    given = {"task": "knowledge-graph", "methods": "corruption:2", "steps": 4, "seeds": 1}
    with pretend:
        found = compare(triples(), **given, out=tmp_path / "there", device=NAME)
        assert found.settings["device"] == NAME
        kept = json.loads((tmp_path / "there" / "comparison.json").read_text())["settings"]
        assert kept["device"] == NAME
        compare(triples(), **given, out=tmp_path / "there", device=NAME)
    usual = compare(triples(), **given, out=tmp_path / "here")
    assert "device" not in usual.settings
    assert usual.arms[0].values("mrr")[0] == pytest.approx(found.arms[0].values("mrr")[0], abs=0.02)
    with pytest.raises(
        NaysayError, match="`out` must be the folder of a comparison with device cpu, got one with meta"
    ):
        compare(triples(), **given, out=tmp_path / "there")
    with pretend, pytest.raises(NaysayError, match="a comparison with device meta, got one with cpu"):
        compare(triples(), **given, out=tmp_path / "here", device=NAME)


@pytest.mark.parametrize("device", ["nowhere", "cuda:99"])
def test_devices_that_are_refused(device, tmp_path):
    message = f"`device` must be one that torch can use here, got '{device}'"
    with pytest.raises(NaysayError, match=f"Recommendation: {message}"):
        TASKS["mf"](device=device)
    with pytest.raises(NaysayError, match=f"compare: {message}"):
        compare(tmp_path / "missing.csv", out=tmp_path / "out", device=device)
    assert not (tmp_path / "out").exists()
    finished = run_command(["compare", "--quick", "--device", device, "-o", str(tmp_path / "out")])
    assert (finished.code, finished.out, finished.err.count("\n")) == (2, "", 1)
    assert finished.err.startswith(f"naysay: compare: {message.replace('device', '--device', 1)}")
    assert not (tmp_path / "out").exists()
    with pytest.raises(NaysayError, match="LinkPrediction: `device` must be a device that holds numbers, got 'meta'"):
        TASKS["transe"](device="meta")


def meta(*shape, dtype=torch.float32):
    """A tensor without values."""
    return torch.empty(shape, dtype=dtype, device="meta")


def ids(*shape):
    """Ids without values."""
    return meta(*shape, dtype=torch.int64)


def test_shapes_of_models_without_values():
    items = ns.tasks.LightGCN(interactions().train, 0, width=4, hops=0, device="meta")
    assert items.pooled(items.layers()).shape == (80, 4)
    assert items.vectors.is_meta
    scores = _products.row_scores(items.vectors, ids(5), ids(5, 3))
    assert (scores.shape, scores.device.type) == ((5, 3), "meta")
    for kind in TRIPLE_MODELS:
        model = ns.tasks.TripleModel(kind, 20, 3, 0, width=8, device="meta")
        queries = model.queries(ids(5), ids(5), tails=True)
        assert (queries.shape, model.order_all(queries).shape) == ((5, 8), (5, 20))
        assert model.score(ids(5, 2, 3)).shape == (5, 2)
    adapter = ns.tasks.Adapter(8).to("meta")
    assert adapter(meta(9, 8), np.array([1, 2])).shape == (2, 8)
    pieces = ns.tasks.Pieces(["one", "two words"])
    assert ns.tasks.SubwordEncoder([pieces], ns.rng_for(0)).to("meta")(pieces, np.array([1])).shape == (1, 64)
    encoder = ns.tasks.ConvEncoder(1, 0).to("meta")
    seen = view(meta(6, 1, 8, 8), torch.Generator().manual_seed(0))
    assert (seen.shape, encoder(seen).shape, encoder.features(seen).shape) == ((6, 1, 8, 8), (6, 64), (6, 256))
    assert encoder(seen).is_meta
