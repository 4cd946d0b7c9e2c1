"""Parts that learn: state() holds arrays and numbers, and a fresh part that is given it answers the same."""

import io
import numbers

import numpy as np
import pytest
import torch

import naysay as ns
from tests.contract import names
from tests.contract.world import (
    ASKED,
    KNOWN,
    N_ANCHORS,
    N_ITEMS,
    NEGATIVES,
    POOL,
    QUERY,
    SCORES,
    VECTORS,
    of_pairs,
    score,
    torch_query,
)


def suspicion(part):
    return part.suspicion(QUERY, NEGATIVES)


def sample(part):
    return part.sample(QUERY, 4, rng=ns.rng_for(1)).ids


def draw(part):
    return part.draw(QUERY, 4, rng=ns.rng_for(1)).ids


def observe(part):
    part.observe(QUERY, NEGATIVES, vectors=VECTORS[:N_ANCHORS])


def combined():
    parts = {"quantile": ns.detectors.LearnedQuantile(N_ANCHORS, 0.2), "groups": ns.detectors.SoftClusters(3)}
    return ns.detectors.Combined(parts, "mean")


def teach_combined(part):
    part.detectors["quantile"].observe(QUERY, NEGATIVES)
    part.detectors["groups"].update(VECTORS, rng=ns.rng_for(0))


def posterior():
    return ns.detectors.Posterior(k=5, depth=20, positive_scores=SCORES[:, 0])


def teach_posterior(part):
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 1, (300, 150)) + 3.0 * (np.arange(150) < 2)
    part.fit(-np.sort(-scores, axis=1)[:, :40], rng.normal(3, 1, 300))
    assert part.fitted


def judged():
    inner = ns.samplers.Dynamic(POOL, score, candidates=12)
    return ns.samplers.Judged(inner, {"quantile": ns.detectors.LearnedQuantile(N_ANCHORS, 0.4)})


def teach_judged(part):
    for step in range(30):
        part.observe(QUERY, part.sample(QUERY, 4, rng=ns.rng_for(3, step)))


def learned():
    logits = torch.nn.Parameter(torch.zeros(N_ITEMS))
    return names.learned(POOL, lambda anchors, ids: logits[ids], torch.optim.SGD([logits], 0.5), score)


def teach_learned(part):
    for step in range(3):
        part.observe(torch_query(), part.sample(torch_query(), 2, rng=ns.rng_for(0, step)))


def teach_online(part):
    for step in range(0, 601, 50):
        level = 1 - np.exp(-step / 200)
        for place, split in enumerate(("validation", "training")):
            rng = ns.rng_for(1, step, rank=place)
            part.record(step, level + rng.standard_normal(2000), rng.standard_normal((2000, 2)), split)


def monitored(part):
    return np.array([part.observe(QUERY, NEGATIVES, positive_scores=SCORES[:, 0])["repeats"]])


# How a part is made, what teaches it, and an answer that depends on what it was taught.
PARTS = {
    "Calibrated": (lambda: ns.detectors.Calibrated(0.1), lambda part: part.fit(SCORES.ravel()[:40]), suspicion),
    "Combined": (combined, teach_combined, suspicion),
    "Incremental": (lambda: ns.detectors.Incremental(N_ITEMS, (3, 5)), lambda p: p.update(VECTORS, 0.9), suspicion),
    "Labelled": (
        ns.detectors.Labelled,
        lambda part: part.fit(QUERY, NEGATIVES, lambda anchors, ids: score(anchors, ids) > 0.1),
        suspicion,
    ),
    "LearnedQuantile": (lambda: ns.detectors.LearnedQuantile(N_ANCHORS, 0.2), observe, suspicion),
    "Mixture": (lambda: ns.detectors.Mixture(bounds=(-1, 1)), lambda part: part.update(SCORES), suspicion),
    "Posterior": (posterior, teach_posterior, suspicion),
    "SoftClusters": (
        lambda: ns.detectors.SoftClusters(3),
        lambda part: part.update(VECTORS, rng=ns.rng_for(0)),
        suspicion,
    ),
    "Memory": (lambda: ns.pools.Memory(16, KNOWN), lambda p: p.push([23, 29, 24], [0, 1, 2], VECTORS[:3]), draw),
    "Nearest": (
        lambda: ns.pools.Nearest(VECTORS[::-1].copy(), 9, KNOWN, queries=VECTORS[:N_ANCHORS]),
        lambda part: part.update(VECTORS, age=3),
        draw,
    ),
    "StreamingFrequency": (
        lambda: ns.pools.StreamingFrequency(N_ITEMS, unseen=2.0),
        lambda part: part.observe(ns.Query(ASKED[0], positives=ASKED[0], step=7)),
        lambda part: np.exp(part.log_q(ASKED)),
    ),
    "Bank": (
        lambda: ns.samplers.Bank(POOL, N_ITEMS),
        observe,
        lambda part: part.sample(QUERY, 20, rng=ns.rng_for(1)).vectors,
    ),
    "Cached": (lambda: ns.samplers.Cached(POOL, score, 6, 6), observe, sample),
    "Judged": (judged, teach_judged, sample),
    "AdaptiveOversampling": (
        lambda: ns.samplers.AdaptiveOversampling(KNOWN, VECTORS, lambda anchors: VECTORS[anchors], scale=3.0),
        lambda part: part.update(-(VECTORS[::-1] ** 3)),
        sample,
    ),
    "MarkovChain": (
        lambda: ns.samplers.MarkovChain(KNOWN, lambda anchors, ids: ids * 1.0 + 1.0, steps=1),
        observe,
        sample,
    ),
    "Learned": (
        learned,
        teach_learned,
        lambda part: part.sample(torch_query(), 8, rng=ns.rng_for(9)).ids.numpy(),
    ),
    "ByLoss": (
        lambda: ns.batches.ByLoss(48, 6),
        lambda part: part.observe(np.arange(48), np.sin(np.arange(48))),
        lambda part: part.plan(0, rng=ns.rng_for(1)),
    ),
    "RandomWalkBatches": (
        lambda: names.RandomWalkBatches(48, 6, neighbours=4, candidates=9),
        lambda part: part.update(np.resize(VECTORS, (48, 4)), rng=ns.rng_for(0)),
        lambda part: part.plan(0, rng=ns.rng_for(1)),
    ),
    "Online": (lambda: ns.quantity.Online(1000), teach_online, lambda part: np.array([part.estimate().separation])),
    "Monitor": (ns.difficulty.Monitor, monitored, monitored),
}
EVERY = pytest.mark.parametrize("name", PARTS)


def through_a_file(state):
    """What comes back of a state that was saved without pickle."""
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    saved = io.BytesIO()
    np.savez(saved, **arrays)
    saved.seek(0)
    with np.load(saved, allow_pickle=False) as loaded:
        return {**state, **{name: loaded[name] for name in arrays}}


def flat(state):
    """The values of a state, whatever it nests."""
    for value in state.values():
        if isinstance(value, dict):
            yield from flat(value)
        else:
            yield value


def answer(part, how):
    try:
        return np.asarray(how(part))
    except ns.NaysayError:  # a part that knows nothing yet may say so
        return None


@EVERY
def test_a_restored_part_answers_as_the_one_that_was_taught(name):
    make, teach, how = PARTS[name]
    taught, restored, fresh = make(), make(), make()
    teach(taught)
    restored.restore(through_a_file(taught.state()))
    wanted = answer(taught, how)
    assert wanted is not None
    np.testing.assert_array_equal(answer(restored, how), wanted)
    untaught = answer(fresh, how)
    assert untaught is None or untaught.shape != wanted.shape or (untaught != wanted).any()


@EVERY
def test_a_state_is_arrays_and_numbers(name):
    make, teach, _ = PARTS[name]
    part = make()
    teach(part)
    for value in flat(part.state()):
        plain = isinstance(value, np.ndarray | torch.Tensor | numbers.Number | str | bytes | bool | None)
        assert plain, type(value)
        assert not (isinstance(value, np.ndarray) and value.dtype == object)


@EVERY
def test_a_state_does_not_change_with_the_part(name):
    make, teach, how = PARTS[name]
    part, other = make(), make()
    teach(part)
    state = part.state()
    other.restore(state)
    before = answer(other, how)
    if name not in ("Monitor", "Online", "StreamingFrequency"):  # which are not taught the same step twice
        teach(part)
        again = make()
        again.restore(state)
        np.testing.assert_array_equal(answer(again, how), before)


def test_a_reviewer_remembers_its_answers(tmp_path):
    asked = []

    class Named:
        name = "a model"

        def review(self, pairs):
            asked.append(len(pairs))
            return np.abs(of_pairs(pairs.anchors, pairs.items)) % 1

    def fresh():
        return names.ByReviewer(Named(), answers=tmp_path / "answers.jsonl")

    first = suspicion(fresh())
    count = len(asked)
    np.testing.assert_array_equal(suspicion(fresh()), first)
    assert len(asked) == count
