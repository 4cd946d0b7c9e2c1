"""Invalid calls of the folder: each raises one sentence that names its parameter."""

import math

import numpy as np
import pytest

import naysay as ns
from naysay.errors import NaysayError
from naysay.quantity import Linear, Online

NAN = math.nan
quantity = ns.quantity


def recorded(step, split, *scores):
    """Record a probe after one of training pairs at step 300."""
    online = Online(3000)
    rows = np.ones(30), np.zeros((30, 2))
    online.record(300, *rows, "training")
    online.record(step, *(scores or rows), split)


INVALID = [
    *[(quantity.separation, (value,), {}, "auc") for value in (1.01, NAN, [0.5, 75], "0.5", True)],
    *[(quantity.auc, (value,), {}, "separation") for value in (NAN, "x")],
    *[(quantity.simulated, (value,), {}, "separation") for value in (math.inf, NAN, [1.0])],
    *[(quantity.simulated, (1.0, value), {}, "points") for value in (1, 60.0, 2**62)],
    *[(quantity.simulated, (1.0, 60, value), {}, "end") for value in (0, math.inf)],
    *[(quantity.reliability, (value, 1.0), {}, "k") for value in (0.5, math.inf, [1, 0], None)],
    *[(quantity.reliability, ([1, 2], value), {}, "separation") for value in (NAN, [1.0, 2.0, 3.0])],
    *[(quantity.shares, (1, [1.0, 2.0], value), {}, "reached") for value in ([1.0, 2.0, 3.0], "x")],
    *[(quantity.effectiveness, (1, 1.0, 0.0), {"weight": value}, "weight") for value in (1.0, 0, NAN)],
    (quantity.mean_effectiveness, ([1.0], [0.5]), {}, "separation"),
    *[(quantity.mean_effectiveness, (1.0, value), {}, "reached") for value in (0.5, [], [0.5, NAN])],
    *[(quantity.mean_effectiveness, (1.0, [0.5]), {"k_max": value}, "k_max") for value in (0, 10.0, 10**9)],
    *[(quantity.estimate, (value, [0.5]), {}, "train_auc") for value in (0.5, NAN, [0.7, 0.8])],
    *[(quantity.estimate, (0.7, value), {}, "val_auc") for value in ([], [0.5, NAN], [0.5, 1.5], [[0.5], [0.6]], None)],
    *[(quantity.estimate, (0.7, [0.5]), {"k_max": value}, "k_max") for value in (0, 10.5, 10**8)],
    *[(quantity.estimate, (0.7, [0.5]), {"weight": value}, "weight") for value in (1, -0.1)],
    *[(quantity.adaptive, (value, 10), {}, "peak") for value in (0, NAN, "3", math.inf)],
    *[(quantity.adaptive, (3, value), {}, "steps") for value in (0, 2.5)],
    *[(quantity.adaptive, (3, 10, value), {}, "turning") for value in (-0.1, 1.1)],
    *[(Linear, (value, 1.0, 1), {}, "start") for value in (True, NAN)],
    *[(Linear, (0.0, value, 1), {}, "stop") for value in (True, NAN)],
    *[(Linear, (0, 1, value), {}, "steps") for value in (0, 1.5)],
    *[(Linear(1, 2, steps=3), (value,), {}, "step") for value in ("x", NAN)],
    *[(quantity.realise, (value, 2, ns.rng_for(0)), {}, "k") for value in ([1, -2], 1e30, True, [[1]])],
    *[(quantity.realise, (1, value, ns.rng_for(0)), {}, "size") for value in (-1, 2.0, 2**62)],
    (quantity.realise, (2.5, 3, None), {}, "rng"),
    *[(Online, (), {"steps": value}, "steps") for value in (0, 10.0)],
    (Online, (10,), {"labels": "trainig"}, "labels"),
    *[(Online, (10,), {"start": value}, "start") for value in (0.5, math.inf, "4")],
    *[(Online, (10,), {"tolerance": value}, "tolerance") for value in (0, 2)],
    *[(Online, (10,), {"confidence": value}, "confidence") for value in (1, 0.4, NAN)],
    (Online, (10,), {"weight": 1}, "weight"),
    (Online, (10,), {"k_max": 0}, "k_max"),
    *[(recorded, (value, "training"), {}, "step") for value in (-1, 1.0, 3001, 299)],
    (recorded, (300, "train"), {}, "split"),
    (Online(10, labels="validation").record, (0, [1.0, 2.0], [[1.0], [0.0]], "training"), {}, "split"),
    *[
        (recorded, (300, "training", value, [[1.0], [2.0]]), {}, "positive")
        for value in ([[1.0]], ["a", "b"], [1.0, NAN])
    ],
    *[
        (recorded, (300, "training", [1.0, 2.0], value), {}, "negatives")
        for value in (
            [1.0, 2.0],
            [[1.0]],
            [[1.0], [1.0, 2.0]],
            [[True], [False]],
            [[1.0], [-math.inf]],
            np.empty((2, 0)),
        )
    ],
    *[
        (Online(10).record, (0, [1.0, 2.0], [[1.0], [2.0]]), {"mask": value}, "mask")
        for value in ([[1], [0]], [True, True])
    ],
    *[(Online(3000).k_at, (value,), {}, "step") for value in (-1, 3001, 0.5)],
    (Online(10).restore, ([1],), {}, "state"),
]


@pytest.mark.parametrize(("call", "arguments", "options", "parameter"), INVALID)
def test_an_invalid_argument_is_named(call, arguments, options, parameter):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **options)
    assert caught.value.parameter == parameter
    assert f"`{parameter}` must be" in str(caught.value)
