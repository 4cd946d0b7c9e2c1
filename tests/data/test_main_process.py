"""Which parts draw the same in a worker: each pool, sampler and detector says so, and the loader goes by it."""

import inspect

import numpy as np
import pytest
from catalog_programs import one_of_each_sampler

import naysay as ns
from naysay.types import needs_main_process

N, D = 12, 4
IDS = np.arange(N)
RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((N, D))
KNOWN = ns.Positives.from_pairs(IDS, IDS, N, N)
TRIPLES = ns.Triples([[0, 0, 1], [2, 1, 3], [1, 1, 0]])
GRAPH = ns.Positives.from_edges(np.r_[IDS, IDS], np.r_[(IDS + 1) % N, (IDS + 3) % N])
EVERYTHING = ns.pools.Everything(KNOWN)
STATIC = ns.samplers.Static(EVERYTHING)


def score(anchors, ids):
    return ids * 1.0


def fixed(anchors, ids):
    return ids * 1.0


fixed.needs_main_process = False


def embed(ids):
    return VECTORS[ids]


POOLS = {
    "Corruption": (lambda: ns.pools.Corruption(TRIPLES), False),
    "Everything": (lambda: EVERYTHING, False),
    "InBatch": (lambda: ns.pools.InBatch(KNOWN), False),
    "KHop": (lambda: ns.pools.KHop(GRAPH, 2), False),
    "Local": (lambda: ns.pools.Local(np.tile(IDS, (N, 1)), KNOWN), False),
    "Memory": (lambda: ns.pools.Memory(16, KNOWN), True),
    "Nearest": (lambda: ns.pools.Nearest(VECTORS, 5, KNOWN, queries=VECTORS), True),
    "PageRank": (lambda: ns.pools.PageRank(GRAPH, (1, 5)), False),
    "Walks": (lambda: ns.pools.Walks(GRAPH), False),
}
SAMPLERS = one_of_each_sampler()
DETECTORS = {
    "MaxScore": (lambda: ns.detectors.MaxScore(0.5), False),
    "Bands": (lambda: ns.detectors.Bands(0.2, 0.5), False),
    "ByReviewer": (lambda: ns.detectors.ByReviewer(lambda pairs: np.zeros(len(pairs))), True),
    "Calibrated": (lambda: ns.detectors.Calibrated(0.1), False),
    "Combined": (lambda: ns.detectors.Combined({"a": ns.detectors.MaxScore(0.5)}), False),
    "Duplicates": (lambda: ns.detectors.Duplicates(item_texts=[str(item) for item in IDS]), False),
    "Incremental": (lambda: ns.detectors.Incremental(N, (3,)), False),
    "Labelled": (ns.detectors.Labelled, False),
    "LearnedQuantile": (lambda: ns.detectors.LearnedQuantile(N, alpha=0.2), True),
    "Margin": (lambda: ns.detectors.Margin(0.1, np.ones(N)), False),
    "Mixture": (lambda: ns.detectors.Mixture("normal"), False),
    "Posterior": (ns.detectors.Posterior, False),
    "RankWindow": (lambda: ns.detectors.RankWindow(3), False),
    "ShareOfPositive": (lambda: ns.detectors.ShareOfPositive(np.ones(N), 0.9), False),
    "SoftClusters": (lambda: ns.detectors.SoftClusters(3), False),
    "SupportViews": (lambda: ns.detectors.SupportViews(lambda anchors: VECTORS[anchors], embed), True),
}


def classes_with(module, method):
    """The public classes of a module that have a method."""
    public = (getattr(module, name) for name in module.__all__)
    return {part.__name__ for part in public if inspect.isclass(part) and hasattr(part, method)}


def load(sampler, workers=1, known=KNOWN):
    return ns.data.loader(known, sampler, 4, k=2, workers=workers)


def check_side(sampler, needs_main_process):
    known = TRIPLES if "Corruption" in repr(sampler) else KNOWN
    assert len(load(sampler, workers=0, known=known))
    if not needs_main_process:
        assert len(load(sampler, known=known))
        return
    with pytest.raises(ns.NaysayError) as error:
        load(sampler, known=known)
    assert error.value.parameter == "workers"


def test_the_tables_have_every_pool_sampler_and_detector():
    assert set(POOLS) == classes_with(ns.pools, "draw")
    assert set(SAMPLERS) == classes_with(ns.samplers, "sample")  # the catalogue has a row for each
    assert set(DETECTORS) == classes_with(ns.detectors, "suspicion") - {"Judgement", "Reliability"}  # results


@pytest.mark.parametrize("name", POOLS)
def test_a_pool_that_training_changes_needs_the_main_process(name):
    make, needs_main_process = POOLS[name]
    pool = make()
    check_side(ns.samplers.Static(pool), needs_main_process)
    check_side(ns.samplers.Dynamic(pool, fixed, candidates=2), needs_main_process)
    mixed = ns.samplers.Mixed({"a": STATIC, "b": ns.samplers.Static(pool)}, (1, 1))
    check_side(ns.samplers.Judged(mixed, ns.detectors.MaxScore(0.5)), needs_main_process)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_that_learns_or_calls_a_function_needs_the_main_process(name):
    sampler = SAMPLERS[name]
    parts = [getattr(sampler, one, None) for one in inspect.signature(type(sampler)).parameters]
    parts += [*sampler.parts.values()] if name == "Mixed" else []
    expected = (hasattr(sampler, "observe") and name != "Judged") or any(map(changes, parts))
    assert needs_main_process(sampler) == expected
    assert needs_main_process(ns.samplers.Mixed({"a": STATIC, "b": sampler}, (1, 1))) == expected


def changes(part):
    """Whether a part says so, or is a function, which may call the model."""
    is_part = any(hasattr(part, verb) for verb in ("draw", "sample", "suspicion"))
    return needs_main_process(part) if is_part else callable(part)


@pytest.mark.parametrize("name", DETECTORS)
def test_judged_needs_the_main_process_if_its_detector_does(name):
    make, needs_main_process = DETECTORS[name]
    check_side(ns.samplers.Judged(STATIC, make()), needs_main_process)
    check_side(ns.samplers.Judged(STATIC, {"one": ns.detectors.MaxScore(0.5), "two": make()}), needs_main_process)


@pytest.mark.parametrize(
    "make",
    [
        lambda f: ns.samplers.Dynamic(EVERYTHING, f, candidates=4),
        lambda f: ns.samplers.NearPositive(EVERYTHING, fixed, 4, first=f, shortlist=2),
        lambda f: ns.samplers.Judged(STATIC, ns.detectors.Posterior(alike=f)),
        lambda f: ns.samplers.Judged(STATIC, ns.detectors.Labelled(features=f)),
        lambda f: ns.samplers.Judged(STATIC, ns.detectors.Margin(0.1, f)),
    ],
)
def test_a_function_that_says_it_is_fixed_may_be_called_in_workers(make):
    check_side(make(fixed), False)
    check_side(make(score), True)


def test_a_users_own_sampler_may_say_it():
    class Own:
        def sample(self, query, k, *, rng):
            return STATIC.sample(query, k, rng=rng)

    class Watching(Own):
        def observe(self, query, negatives, *, positive_scores=None, vectors=None):
            pass

    own, watching = Own(), Watching()
    check_side(own, False)
    check_side(watching, True)
    own.needs_main_process, watching.needs_main_process = True, False
    check_side(own, True)
    check_side(watching, False)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_judged_sampler_of_fixed_parts_draws_the_same_in_workers():
    duplicates = ns.detectors.Duplicates(item_texts=["a", "b"] * (N // 2))
    sampler = ns.samplers.Judged(STATIC, duplicates)
    drawn = [[batch.negatives.ids.tolist() for batch in load(sampler, workers)] for workers in (0, 2)]
    assert drawn[0] == drawn[1]
