"""The catalogue: the program of every row runs and conforms, every row is complete, every name leads to its methods."""

import ast
import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from catalog_programs import known_of, maker_of, run
from review_names import REVIEW, TODAY

import naysay as ns
from naysay import catalog
from naysay.catalog import torch_world, world
from naysay.errors import NaysayError
from naysay.pools import Everything
from naysay.testing import PromiseBroken, _frequencies

ROOT = Path(__file__).parent.parent
METHODS = catalog.methods()
SAMPLERS = [one for one in METHODS if one.question in ("where", "which", "how_many") and not one.over]
FIRST_WITH_ITS_PARTS = {(one.parts, one.query): one.name for one in reversed(SAMPLERS)}
DETECTORS = catalog.methods("distrust")
LOSSES = catalog.methods("minimise")


def by_name(methods):
    return pytest.mark.parametrize("method", methods, ids=lambda method: method.name)


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    """A quarter of the draws for log_q: tests/pools has all of them, in smaller worlds, where mistakes show."""
    monkeypatch.setattr(_frequencies, "_DRAWS", 500)


# ---- every row runs ----


def check_the_sampler(names, method):
    """Pass a sampler of the catalogue, and the pool of one that draws from a pool as it is, to the public checks."""
    known, make_query = known_of(method), maker_of(method)
    sampler = names["sampler"]
    if isinstance(sampler, ns.samplers.Static):
        ns.check_pool(sampler.pool, known, query=make_query)
    ns.check_sampler(sampler, known, query=make_query)


@by_name(SAMPLERS)
def test_a_sampler_draws_trains_and_conforms(method):
    names = run(method)
    negatives = names["negatives"]
    assert (negatives.ids >= 0).any()
    if "loss" not in names:
        positive, scores = torch_world.model(getattr(world, method.query), negatives)
        names["loss"] = ns.losses.info_nce(positive, scores, mask=negatives.mask)
        names["loss"].mean().backward()
    assert names["loss"].isfinite().all()
    if FIRST_WITH_ITS_PARTS[method.parts, method.query] == method.name:  # the same parts need one check
        check_the_sampler(names, method)


@by_name(DETECTORS)
def test_a_detector_suspects_some_and_conforms(method):
    names = run(method)
    query = getattr(world, method.query)
    negatives = world.negatives if method.query == "query" else world.image_negatives
    assert np.shape(names["suspicion"]) == negatives.shape
    assert (np.asarray(names["suspicion"]) > 0).any()
    ns.check_detector(names["detector"], query, negatives)
    ns.check_detector(names["detector"], query, negatives.to("cpu"))


@by_name(LOSSES)
def test_a_loss_has_a_gradient_and_conforms(method):
    before = {name: getattr(torch_world, name) for name in ("positive", "z", "anchors", "keys")}
    for leaf in before.values():
        leaf.grad = None
    names = run(method)
    if method.over == "step":
        assert torch_world.encoder.weight.grad.abs().sum() > 0
        return
    values = names["values"]
    assert values.isfinite().all()
    leaves = [getattr(torch_world, name) for name in before]
    moved = [leaf.grad.abs().sum() for leaf in leaves if leaf.grad is not None]
    assert any(moved) or method.name in ("losses.all_items", "Yu et al.", "EHCF", "HDC")  # whose leaves are tables
    if method.over == "slots":
        ns.check_loss(names["loss"], needs_log_q=method.needs_log_q, without=method.without)


@by_name([one for one in LOSSES if one.without])
def test_a_promise_is_given_up_only_where_it_fails(method):
    loss = run(method)["loss"]
    for promise in method.without:
        rest = [other for other in method.without if other != promise]
        with pytest.raises(PromiseBroken, match=promise):
            ns.check_loss(loss, needs_log_q=method.needs_log_q, without=rest)


@by_name(catalog.methods("together"))
def test_a_plan_has_every_row_of_an_epoch_in_full_batches(method):
    batches = run(method)["batches"]
    assert batches.ndim == 2
    assert len(np.unique(batches[batches >= 0])) > 100


@by_name([one for one in catalog.methods("how_many") if one.over])
def test_a_number_is_at_least_1(method):
    assert run(method)["k"] >= 1


# A judge drops what scores like a positive, and AHNS takes what scores far below the positive.
NEVER_KNOWN = ("judged", "AHNS")


@by_name(
    [one for one in SAMPLERS if one.name not in NEVER_KNOWN and "Everything(" in one.parts and one.query == "query"]
)
def test_every_sampler_excludes_by_time_or_rejects_times(method, monkeypatch):
    """All pairs become known at time 1, so at time 0 nothing is excluded."""

    def timed(positives, *settings, **named):
        return Everything(positives, *settings, **named, times=(*positives.pairs(), np.ones(len(positives))))

    monkeypatch.setattr(ns.pools, "Everything", timed)
    sampler = run(method)["sampler"]
    query = dataclasses.replace(world.query, times=np.zeros(64))
    try:
        drawn = [sampler.sample(query, 4, rng=ns.rng_for(seed)).numpy().ids for seed in range(30)]
    except NaysayError as error:
        assert error.parameter == "query.times"  # noqa: PT017
        return
    ids = np.concatenate(drawn, axis=1)
    assert (world.positives.contains(query.anchors, np.maximum(ids, 0)) & (ids >= 0)).any()


def test_a_sampler_that_ignores_what_is_known_would_be_found():
    empty = ns.Positives.from_pairs([], [], n_anchors=400, n_items=400)
    careless = ns.samplers.Static(ns.pools.Nearest(world.item_vectors, 20, empty, queries=world.anchor_vectors))
    with pytest.raises(PromiseBroken, match="exclusion"):
        ns.check_sampler(careless, world.positives)


def test_a_detector_that_suspects_empty_slots_would_be_found():
    class Careless:
        def suspicion(self, query, negatives):
            return np.ones(negatives.shape)

    with pytest.raises(PromiseBroken, match="empty"):
        ns.check_detector(Careless(), world.query, world.negatives)


# ---- rows do what they say ----


def ranks_of(ids):
    """(64, K) the rank of each id among the items that are no positives, by the world's scores; 0 is the nearest."""
    order = np.argsort(np.argsort(-world._unlabelled[:64], axis=1, kind="stable"), axis=1)
    return np.take_along_axis(order, ids, axis=1)


def test_simans_draws_from_the_top_ranks():
    [method] = catalog.find("SimANS")
    drawn = run(method)["negatives"]
    assert ranks_of(drawn.ids).max() < 100
    assert ranks_of(drawn.ids).max() > 4  # not the nearest alone


def test_rotate_has_64_negatives_and_weighs_them_by_its_own_scores():
    [method] = catalog.find("RotatE")
    names = run(method)
    assert names["negatives"].shape == (64, 64)
    assert names["negatives"].side is not None
    positive, scores = names["positive"] + 6.0, names["scores"] + 6.0
    weighted = torch.softmax(scores, dim=1).detach() * torch.nn.functional.softplus(scores)
    wanted = (torch.nn.functional.softplus(-positive) + weighted.sum(dim=1)) / 2
    torch.testing.assert_close(names["loss"], wanted)


def test_the_closest_farther_negative_is_the_highest_below_the_positive():
    [method] = catalog.find("closest farther negative")
    sampler = run(method)["sampler"]
    drawn = sampler.sample(world.query, 1, rng=ns.rng_for(0))
    candidates = sampler.pool.draw(world.query, 64, rng=ns.rng_for(0))
    own = world.score(world.query.anchors, world.query.positives[:, None])
    assert (drawn.scores[drawn.mask] < np.broadcast_to(own, drawn.shape)[drawn.mask]).all()
    below = np.where(world.score(world.query.anchors, candidates.ids) < own, candidates.ids, -1)
    assert (drawn.ids >= 0).sum() == (below >= 0).any(axis=1).sum()


def test_the_two_stages_are_popularity_and_nearness_to_the_positive():
    [method] = catalog.find("two-stage")
    sampler = run(method)["sampler"]
    drawn = sampler.sample(world.query, 1, rng=ns.rng_for(0)).ids
    at_random = world.pool.draw(world.query, 1, rng=ns.rng_for(0)).ids
    near = [world.similarity(world.query.positives, ids).mean() for ids in (drawn, at_random)]
    assert near[0] > near[1] + 0.3
    assert (world.counts[drawn] > 0).all()


@pytest.mark.parametrize("name", ["Shan et al.", "NSCaching", "SANS", "KBGAN", "BootEA", "SNS"])
def test_methods_of_triples_corrupt_triples(name):
    [method] = catalog.find(name)
    names = run(method)
    corrupted = ns.pools.Corruption(world.known_triples).corrupted(world.triple_query, names["negatives"])
    filled = corrupted[names["negatives"].ids >= 0]
    assert (filled[:, 1] >= 0).all()
    assert not world.known_triples.contains(filled).any()


def test_a_script_is_named_where_the_parts_are_not_all():
    [method] = catalog.find("bootstrapping")
    assert method.example in method.leaves_out
    for one in METHODS:
        assert not one.example or (ROOT / one.example).is_file(), one.name


def test_recns_takes_shown_items_and_items_of_the_third_hop():
    names = run(catalog.find("RecNS")[0])
    negatives = names["negatives"]
    nodes = world.node_query.anchors
    shown = world.viewed.contains(nodes, np.maximum(negatives.ids, 0))
    third = ns.pools.KHop(world.graph, hops=3).draw(world.node_query, 300, rng=ns.rng_for(0)).ids
    for row, ids in enumerate(negatives.ids):
        assert {*ids[(ids >= 0) & ~shown[row]].tolist()} <= {*third[row].tolist()}
    assert shown.any()
    assert not shown[negatives.ids >= 0].all()


def test_synco_makes_six_kinds():
    negatives = run(catalog.find("SynCo")[0])["negatives"]
    names = ("interpolated", "extrapolated", "mixed", "gradient", "signs", "noise")
    assert negatives.source_names == names
    assert set(negatives.source.ravel().tolist()) == set(range(6))
    moved = np.abs(negatives.vectors - world.item_vectors[negatives.ids])
    assert moved[negatives.source == 4].max() == pytest.approx(0.01, rel=1e-4)  # by signs
    lengths = np.sqrt((moved**2).sum(axis=2))
    assert lengths[negatives.source == 3] == pytest.approx(0.01, rel=1e-4)  # along the gradient


def test_reinforced_ns_has_one_candidate_that_was_shown():
    pool = run(catalog.find("Reinforced NS")[0])["sampler"].pool
    drawn = pool.draw(world.query, 30, rng=ns.rng_for(0)).ids
    assert (drawn >= 0).all()
    assert (world.viewed.contains(world.query.anchors, drawn).sum(axis=1) == 1).all()


def test_fairneg_follows_the_shares():
    sampler = run(catalog.find("FairNeg")[0])["sampler"]
    drawn = sampler.sample(world.query_of(np.arange(400)), 8, rng=ns.rng_for(0)).ids
    assert world.is_popular[drawn].mean() == pytest.approx(world.group_shares[0], abs=0.03)


def test_mvgrl_has_its_golden_value():
    """The paper's Jensen-Shannon loss by a loop: softplus(-own) + mean of softplus(others) - log 4."""
    names = run(catalog.find("MVGRL")[0])
    scores = (torch_world.anchors @ torch_world.keys.T).detach().numpy()
    wanted = [
        np.logaddexp(0, -scores[i, i]) + np.mean([np.logaddexp(0, scores[i, j]) for j in range(64) if j != i])
        for i in range(64)
    ]
    np.testing.assert_allclose(names["loss"].detach().numpy(), np.array(wanted) - np.log(4), atol=1e-6)


# ---- names ----


def test_every_name_of_the_review_is_found():
    assert len(REVIEW) == len(set(REVIEW)) == 153
    found = {name: catalog.find(name) for name in (*REVIEW, *TODAY)}
    without = [name for name in REVIEW if not any(method.parts for method in found[name])]
    assert without == ["SeqGAN", "ProGAN", "CFGAN", "DSKReG", "SwAV"]  # which draw nothing


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("UNIFORM", {"uniform"}),
        ("RNS", {"uniform", "ReinforcedNS"}),
        ("Reinforced NS", {"ReinforcedNS"}),
        ("DCL", {"DCL (debiased)", "losses.decoupled"}),
        ("MoCo-V2", {"MoCo v2"}),
        ("moco_v2", {"MoCo v2"}),
        ("ANS", {"ANS (adaptive k)", "ANS (clusters)"}),
        ("BPR", {"BPR", "losses.bpr"}),
        ("info_nce", {"losses.info_nce"}),
        ("LOSSES.BPR", {"losses.bpr"}),
        ("detectors.calibrated", {"detectors.Calibrated"}),
        ("ifnd", {"detectors.Incremental"}),
        ("NT-Xent", {"losses.in_batch"}),
        ("SimANS", {"near-target"}),
    ],
)
def test_names_are_found_in_any_spelling_and_all_their_meanings(name, wanted):
    assert {method.name for method in catalog.find(name)} == wanted


def test_names_of_rows_differ_and_shared_names_are_few():
    names = [method.name.casefold() for method in METHODS]
    assert len(names) == len(set(names))
    every = [name.casefold() for method in METHODS for name in method.names]
    assert {name for name in every if every.count(name) > 1} == {"rns", "dcl", "ans", "pns"}


def suggestion(name):
    with pytest.raises(NaysayError) as caught:
        catalog.find(name)
    assert caught.value.parameter == "name"
    return str(caught.value).rpartition("Did you mean ")[2] if "Did you mean" in str(caught.value) else ""


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("wrd2vec", ["word2vec"]),
        ("Barlo", ["Barlow Twins"]),
        ("BRP", ["BPR"]),
        ("Barlwo Twins", ["Barlow Twins"]),
        ("SamWalker+", ["SamWalker++"]),
        ("popularrity", ["popularity"]),
        ("distnce-wieghted", ["distance-weighted"]),
        ("SimC", ["SimCLR", "SimCSE", "SimCLR loss"]),
    ],
)
def test_a_begun_or_mistyped_name_gets_the_names_that_it_may_be(name, suggested):
    said = suggestion(name)
    assert [one for one in suggested if repr(one) not in said] == []


@pytest.mark.parametrize("name", ["~~~~", "CoCo", "KGAT", "BERT", "TransD", "KBGAT", "MoCo v3", "Mix"])
def test_a_name_of_another_method_is_no_suggestion(name):
    assert suggestion(name) == ""


# ---- rows are complete ----


@by_name(METHODS)
def test_rows_are_complete(method):
    assert method.summary.endswith(".")
    assert method.paper
    for text in (method.note, method.leaves_out):
        assert not text or text.endswith((".", ")")), text
    assert bool(method.parts) != bool(method.question == "elsewhere")
    if method.question == "elsewhere":
        assert method.see
    else:
        ast.parse(method.parts, mode="eval")
    if method.question == "minimise":
        assert method.over in ("slots", "vectors", "step")


def test_every_sampler_pool_detector_loss_and_plan_of_the_package_has_a_row():
    code = "\n".join(one.program for one in METHODS if one.parts)
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    used |= {
        alias.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    verbs = {ns.samplers: "sample", ns.pools: "draw", ns.detectors: "suspicion", ns.batches: "plan"}
    made = {
        name
        for folder, verb in verbs.items()
        for name in folder.__all__
        if inspect.isclass(getattr(folder, name)) and inspect.isfunction(getattr(getattr(folder, name), verb, None))
    }
    helpers = {"check_values", "distinct_log_q"}
    # Shuffled batches are the baseline of the others; memory is in the world.
    assert made - used == {"Memory", "Shuffled"}
    assert set(ns.losses.__all__) - used == helpers


def test_programs_name_what_they_import_once():
    for method in METHODS:
        if method.parts:
            lines = [line for line in method.program.splitlines() if line.startswith(("from ", "import "))]
            assert len(lines) == len(set(lines)), method.name


def test_a_paper_that_was_not_checked_says_so():
    [method] = catalog.find("MixGCF")
    assert method.cited == method.paper
    assert dataclasses.replace(method, unchecked=True).cited == f"{method.paper} (not checked)"


def test_an_unknown_question_is_an_error():
    with pytest.raises(NaysayError) as caught:
        catalog.methods("whence")
    assert caught.value.parameter == "question"
