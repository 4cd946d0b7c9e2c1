"""The scan on a device of torch's: the same bytes, for any arithmetic that the bounds allow for."""

import numpy as np
import pytest
import torch
from search_world import METRICS, same, world

import naysay as ns
from naysay.search import _multiply, search
from naysay.search import _products as engines

ENGINES = ("auto", "int8", "float32")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_device_gives_the_same_bytes(engine, metric):
    for n, size, width in ((5, 203, 11), (1, 9, 1)):
        queries, corpus = world(width, n, size, width)
        right = search(queries, corpus, 6, metric=metric, engine="float64")
        same(search(queries, corpus, 6, metric=metric, engine="float32", device="cpu"), right)
        same(search(queries, corpus, 6, metric=metric, engine=engine, device=torch.device("cpu"), threads=2), right)


def poor(rows, noise):
    """A product as a device may make it: factors cut to 10 bits, and sums off by `noise` in any direction."""

    def on_device(queries, corpus):
        if queries.dtype == torch.int8:
            return own(queries, corpus)
        cut = [(one.view(torch.int32) & -(1 << 13)).view(torch.float32).double() for one in (queries, corpus)]
        signs = torch.from_numpy(rows.choice([-1.0, 1.0], (len(queries), len(corpus))))
        return (cut[0] @ cut[1].T + noise * signs).float()  # codes have the norm 1

    own = _multiply.on_device
    return on_device


@pytest.mark.parametrize("metric", METRICS)
def test_a_device_that_cuts_and_rounds_gives_the_same_bytes(monkeypatch, metric):
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(30, 64)).astype(np.float32)
    corpus = np.concatenate([queries + 1e-3 * rng.normal(size=queries.shape) for _ in range(20)]).astype(np.float32)
    right = search(queries, corpus, 5, metric=metric, engine="float64")
    monkeypatch.setattr(_multiply, "on_device", poor(rng, 0.9 * 64 * 2.0**-21))
    same(search(queries, corpus, 5, metric=metric, engine="float32", device="cpu"), right)
    monkeypatch.setattr(_multiply, "on_device", poor(rng, 0.02))  # more than the bound allows for
    assert (search(queries, corpus, 5, metric=metric, engine="float32", device="cpu").ids != right.ids).any()


def test_the_engine_of_a_device(monkeypatch):
    sample = np.random.default_rng(0).normal(size=(50, 64))
    spiked = sample.copy()
    spiked[:, 0] = 1e6  # needs a fine grid
    assert engines.choose("auto", 1, 1, 64, lambda: sample, "cpu").name == "int8"
    assert engines.choose("auto", 1, 1, 64, lambda: spiked, "cpu").name == "float32"

    def refused(*_):
        raise RuntimeError

    monkeypatch.setattr(torch, "_int_mm", refused)
    assert engines.choose("auto", 1, 1, 64, lambda: sample, "cpu").name == "float32"
    with pytest.raises(ns.NaysayError) as error:
        engines.choose("int8", 1, 1, 64, lambda: sample, "cpu")
    assert error.value.parameter == "engine"


def test_mining_on_a_device_gives_the_same_bytes():
    planted = ns.planted_world(60, 150, per_anchor=8, noise=0.3, seed=3)
    given = (planted.anchor_vectors, planted.item_vectors, planted.known, 5)
    one, other = ns.mine(*given), ns.mine(*given, device="cpu")
    assert one.ids.tobytes() == other.ids.tobytes()
    assert one.scores.tobytes() == other.scores.tobytes()
    assert one.rule == other.rule
