"""repr shows every setting: its name and value, an array by its shape, a function by its name."""

import inspect

import numpy as np
import pytest
from catalog_programs import one_of_each_sampler

import naysay as ns

KNOWN = ns.Positives.from_pairs([0, 1, 2], [3, 4, 5], n_items=9)
VECTORS = np.random.default_rng(0).standard_normal((9, 2))
GRAPH = ns.Positives.from_pairs([0, 1, 2, 3], [1, 2, 3, 0], 4, 4)
SAMPLERS = one_of_each_sampler()


def embed(ids):
    return VECTORS[ids]


# Parts with settings that are not their defaults, and what their repr has of them.
PARTS = [
    (ns.pools.Corruption([[0, 0, 1]], sides=("tail",), n_entities=11), ("tail", "11")),
    (ns.pools.Everything(KNOWN, np.arange(1.0, 10.0), distinct=False, on_short="raise"), ("False", "raise")),
    (ns.pools.KHop(GRAPH, (2, 3), distinct=False), ("(2, 3)", "False")),
    (ns.pools.Memory(17, KNOWN, on_short="raise"), ("17", "raise")),
    (ns.pools.Nearest(VECTORS, 5, window=(1, 4), metric="dot"), ("5", "(1, 4)", "dot")),
    (ns.pools.Walks(GRAPH, length=7, walks=5, stop=0.25), ("7", "5", "0.25")),
    (ns.batches.ByLoss(17, 3, pressure=2.5), ("n=17", "size=3", "pressure=2.5")),
    (ns.batches.Shuffled(17, 3, forbid=np.arange(17)), ("17", "3", "array[17]")),
    (ns.detectors.Calibrated(alpha=0.125, standardise=True), ("alpha=0.125", "standardise=True")),
    (ns.detectors.Combined({"a": ns.detectors.MaxScore(0.75)}, rule="mean"), ("MaxScore(high=0.75)", "mean")),
    (ns.detectors.ByReviewer(embed, queries=["a"]), ("reviewer=embed",)),
    (ns.detectors.LLM("m", "http://localhost:9/v1", in_flight=3), ("model='m'", "in_flight=3", "OPENAI_API_KEY")),
    (ns.detectors.Incremental(12, (2, 3), restarts=3), ("n_samples=12", "clusters=(2, 3)", "restarts=3")),
    (ns.detectors.SupportViews(VECTORS[:, None], embed, top=3), ("views=array[9, 1, 2]", "embed=embed", "top=3")),
    (ns.quantity.Online(1000, labels="validation", k_max=77), ("steps=1000", "labels='validation'", "k_max=77")),
]


@pytest.mark.parametrize(("part", "words"), PARTS, ids=lambda value: type(value).__name__)
def test_repr_shows_the_settings(part, words):
    text = repr(part)
    assert text.startswith(f"{type(part).__name__}(")
    assert "\n" not in text
    assert " at 0x" not in text
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize("name", SAMPLERS)
def test_repr_of_a_sampler_names_every_argument(name):
    sampler = SAMPLERS[name]
    text = repr(sampler)
    assert text.startswith(f"{name}(")
    wanted = [one for one in inspect.signature(type(sampler)).parameters if one not in ("initial", "rule")]
    assert [one for one in wanted if f"{one}=" not in text] == []
    assert "0x" not in text  # a function is shown by its name
