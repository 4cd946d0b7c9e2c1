"""Polars, TensorBoard and Weights & Biases themselves; the other tests have stand-ins of their interfaces."""

import datetime
import json
import struct
import warnings

import numpy as np
import polars
import pytest

import naysay as ns


def test_a_data_frame_of_polars():
    days = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    frame = polars.DataFrame({"user": ["ann", "bob", "ann"], "item": [17, 940, 23], "day": days})
    known = ns.Positives.from_table(frame, "user", "item", item_names=True)
    assert known.contains(["ann", "bob", "bob"], ["23", "940", "17"]).tolist() == [True, True, False]
    early = ns.Positives.from_table(
        frame, "user", "item", item_names=known.item_names, times="day", before=datetime.date(2024, 1, 3)
    )
    assert len(early) == 2
    coded = frame.with_columns(polars.col("user").cast(polars.Categorical))
    assert np.array_equal(ns.Positives.from_table(coded, "user", "item", item_names=True).pairs(), known.pairs())
    with pytest.raises(ns.NaysayError, match=r"collect\(\)"):
        ns.Positives.from_table(frame.lazy(), "user", "item")
    pool = ns.pools.Everything(known, times=(frame["user"], frame["item"].cast(str), frame["day"]))
    query = ns.Query([0], times=np.array(["2024-01-02"], "M8[D]"))
    assert sorted(pool.draw(query, 2, rng=ns.rng_for(0)).ids[0].tolist()) == [1, 2]


def observe_three_steps(log):
    """The mean scores of three steps that a monitor has passed to a logger."""
    monitor, means = ns.difficulty.Monitor(log, histograms=2), []
    for step in range(3):
        scores = ns.rng_for(0, step).random((4, 5))
        means.append(scores.mean())
        negatives = ns.Negatives(np.arange(20).reshape(4, 5), dropped={"exhausted": step})
        monitor.observe(ns.Query([0, 1, 2, 3], step=step), negatives, scores, positive_scores=np.ones(4))
    return means


def test_a_summary_writer(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(tmp_path)
    means = observe_three_steps(writer)
    writer.close()
    found = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in found.Scalars("score/negatives")] == [
        (step, pytest.approx(mean, rel=1e-6)) for step, mean in enumerate(means)
    ]
    assert [event.value for event in found.Scalars("exhausted")] == [0, 1, 2]
    assert set(found.Tags()["histograms"]) == {"score/negatives", "score/positives"}


def logged_by(path):
    """The lines that a run of W&B has logged, from its file: a header of 7 bytes, then (crc, size, kind) and data."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, found = path.read_bytes(), 7, []
    while at < len(data):
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        assert kind == 1  # whole; larger ones are in parts
        record = Record.FromString(data[at + 7 : at + 7 + size])
        at += 7 + size
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            found.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items})
    return found


def test_a_run_of_weights_and_biases_offline(tmp_path, monkeypatch):
    """A number and a histogram of one name would replace each other."""
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import wandb

        run = wandb.init(mode="offline", dir=tmp_path, project="test", settings=wandb.Settings(silent=True))
        means = observe_three_steps(run)
        run.finish()
        wandb.teardown()  # waits until the file is complete
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    lines = logged_by(file)
    assert [(line["_step"], line["score/negatives"]) for line in lines] == [
        (step, pytest.approx(mean, rel=1e-6)) for step, mean in enumerate(means)
    ]
    assert [line["exhausted"] for line in lines] == [0, 1, 2]
    drawn = [line.get("histogram/score/negatives/values", []) for line in lines]
    assert [sum(counts) for counts in drawn] == [20, 0, 20]
