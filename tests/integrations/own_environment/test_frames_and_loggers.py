"""Polars and TensorBoard themselves; the other tests have stand-ins of their interfaces."""

import datetime
import warnings

import numpy as np
import polars
import pytest

import naysay as ns


def test_a_data_frame_of_polars():
    days = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    frame = polars.DataFrame({"user": ["ann", "bob", "ann"], "item": [17, 940, 23], "day": days})
    known = ns.Positives.from_polars(frame, "user", "item", item_names=True)
    assert known.contains(["ann", "bob", "bob"], ["23", "940", "17"]).tolist() == [True, True, False]
    early = ns.Positives.from_polars(
        frame, "user", "item", item_names=known.item_names, times="day", before=datetime.date(2024, 1, 3)
    )
    assert len(early) == 2
    coded = frame.with_columns(polars.col("user").cast(polars.Categorical))
    assert np.array_equal(ns.Positives.from_polars(coded, "user", "item", item_names=True).pairs(), known.pairs())
    with pytest.raises(ns.NaysayError, match=r"Pass frame.collect\(\)"):
        ns.Positives.from_polars(frame.lazy(), "user", "item")
    pool = ns.pools.Everything(known, times=(frame["user"], frame["item"].cast(str), frame["day"]))
    query = ns.Query([0], times=np.array(["2024-01-02"], "M8[D]"))
    assert sorted(pool.draw(query, 2, rng=ns.rng_for(0)).ids[0].tolist()) == [1, 2]


def test_a_summary_writer(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(tmp_path)
    monitor, means = ns.difficulty.Monitor(writer), []
    for step in range(3):
        scores = ns.rng_for(0, step).random((4, 5))
        means.append(scores.mean())
        negatives = ns.Negatives(np.arange(20).reshape(4, 5), dropped={"exhausted": step})
        monitor.observe(ns.Query([0, 1, 2, 3], step=step), negatives, scores, positive_scores=np.ones(4))
    writer.close()
    found = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in found.Scalars("score/negatives")] == [
        (step, pytest.approx(mean, rel=1e-6)) for step, mean in enumerate(means)
    ]
    assert [event.value for event in found.Scalars("exhausted")] == [0, 1, 2]
    assert set(found.Tags()["histograms"]) == {"score/negatives", "score/positives"}
