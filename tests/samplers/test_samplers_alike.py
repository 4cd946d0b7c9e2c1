"""What all samplers do alike: settings that follow the step, one answer for NumPy and torch, and a warning of too few.

Conformance (shapes, exclusion, empty queries, keys) is checked for every row of the catalogue in tests/test_catalog.py.
"""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay import samplers

RNG = np.random.default_rng(0)
N_ANCHORS, N_ITEMS = 6, 20
KNOWN = ns.Positives.from_pairs(np.arange(N_ANCHORS), np.arange(N_ANCHORS), N_ANCHORS, N_ITEMS)
POOL = ns.pools.Everything(KNOWN)
INDEPENDENT = ns.pools.Everything(KNOWN, distinct=False)
SCORES = RNG.uniform(-0.9, 0.9, (N_ANCHORS, N_ITEMS))
VECTORS = RNG.standard_normal((N_ITEMS, 4))
MEMORY = ns.pools.Memory(16, KNOWN)
MEMORY.push(np.arange(12), np.full(12, -1), vectors=VECTORS[:12])


def score(anchors, ids):
    return torch.from_numpy(SCORES)[anchors[:, None], ids] if torch.is_tensor(ids) else SCORES[anchors[:, None], ids]


def embed(ids):
    return torch.from_numpy(VECTORS)[ids] if torch.is_tensor(ids) else VECTORS[ids]


def similar(one, ids):
    return score(one % N_ANCHORS, ids)


def query(step=0, *, in_torch=False):
    anchors, vectors = np.arange(N_ANCHORS), VECTORS[:N_ANCHORS]
    if in_torch:
        anchors, vectors = torch.from_numpy(anchors), torch.from_numpy(vectors)
    return ns.Query(anchors, positives=anchors, vectors=vectors, step=step)


# One of each, and the settings that may be functions of the step, with a value other than the default.
SAMPLERS = {
    "Dynamic": ((POOL, score, 9), {"candidates": 7, "temperature": 0.3, "top_m": 5}),
    "Dynamic with a ceiling": ((POOL, score, 9, 0.5), {"ceiling": 0.2}),
    "SemiHard": ((POOL, score, 9, 0.5), {"candidates": 7, "margin": 0.2}),
    "NearPositive": ((POOL, similar, 9), {"candidates": 7, "temperature": 0.3, "top_m": 5, "limit": 0.1}),
    "NearTarget": ((POOL, score, 9, lambda own, step: own - 0.1), {"candidates": 7, "sharpness": 2.0}),
    "DistanceWeighted": ((POOL, score, 9, 4), {"candidates": 7, "cutoff": 0.7, "nonzero_loss_cutoff": 1.2}),
    "Warp": ((INDEPENDENT, score, 9), {"trials": 7, "margin": 0.2}),
    "SoftmaxWeights": ((INDEPENDENT, score, 0.5), {"rho": 2.0}),
    "MoCHi": ((MEMORY, None, 5), {"n_hard": 3, "candidates": 8, "anchor_share": 1.0, "mix": (0.2, 0.3)}),
    "MixKG": ((POOL, score, embed, 9), {"candidates": 7, "n_hard": 3, "mix": (0.2, 0.3)}),
    "MixGCF": ((POOL, embed, 5), {"candidates": 3, "mix": (0.2, 0.3)}),
    "MultiFeedback": (({"a": KNOWN}, (1,), INDEPENDENT), {"share": 0.9}),
    "AdaptiveOversampling": ((KNOWN, VECTORS, embed, 9.0), {"scale": 2.0}),
    "MarkovChain": ((KNOWN, score), {"temperature": 0.2}),
}
ALWAYS = {"MixKG": {"n_hard": 4}, "MarkovChain": {"target": "softmax"}}
SETTINGS = [(name, setting) for name, (_, settings) in SAMPLERS.items() for setting in settings]


def make(name, **changes):
    kind = getattr(samplers, name.split()[0])
    names = [one for one in kind.__init__.__annotations__ if one != "return"]
    given = {**dict(zip(names, SAMPLERS[name][0], strict=False)), **ALWAYS.get(name, {}), **changes}
    return kind(**given)


def same(one, other):
    one, other = one.numpy(), other.numpy()
    assert (one.ids == other.ids).all()
    for field in ("weights", "vectors", "parents", "source"):
        ours, theirs = getattr(one, field), getattr(other, field)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
def test_a_setting_may_be_a_function_of_the_step(name, setting):
    value = SAMPLERS[name][1][setting]
    asked = []

    def at(step):
        asked.append(step)
        return value

    fixed = make(name, **{setting: value}).sample(query(7), 3, rng=ns.rng_for(1))
    same(make(name, **{setting: at}).sample(query(7), 3, rng=ns.rng_for(1)), fixed)
    assert set(asked) == {7}


@pytest.mark.parametrize("name", SAMPLERS)
def test_torch_gives_what_numpy_gives(name):
    plain, tensor = (make(name).sample(query(in_torch=kind), 3, rng=ns.rng_for(2)) for kind in (False, True))
    assert torch.is_tensor(tensor.ids)
    same(plain, tensor)
    assert tensor.scores is None or not tensor.scores.requires_grad


@pytest.mark.parametrize("name", ["Dynamic", "SemiHard", "NearPositive", "NearTarget", "DistanceWeighted", "Warp"])
def test_too_few_candidates_for_k_are_warned_of_once(name):
    setting = "trials" if name == "Warp" else "candidates"
    sampler = make(name, **{setting: 2})
    with pytest.warns(ns.NaysayWarning, match=rf"{name}: `{setting}` must be at least k .* got 2 for k 5") as caught:
        sampler.sample(query(), 5, rng=ns.rng_for(0))
    assert caught[0].filename == __file__  # the line that called `sample`
    sampler.sample(query(), 5, rng=ns.rng_for(0))  # warnings are errors here
    make(name).sample(query(), 5, rng=ns.rng_for(0))
