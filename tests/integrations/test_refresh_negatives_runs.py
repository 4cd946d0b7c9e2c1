"""RefreshNegatives in runs that are unusual: prompts, workers, epochs that stop early, and other checkpoints."""

import tracemalloc

import numpy as np
import pytest

import naysay as ns
from naysay.integrations._refresh import drift
from naysay.integrations.sentence_transformers import RefreshNegatives
from tests.integrations import small_trainers as small

pytestmark = pytest.mark.filterwarnings(*small.QUIET)
SAVED = {"save_strategy": "steps", "save_steps": 4}


def refresh(every="epoch", k=2, **options):
    return RefreshNegatives(every, k, judge=None, **options)


def assert_nearest(batch, table, k=2):
    expected = small.nearest(table, k)
    for row, anchor in enumerate(batch[0]):
        assert [column[row] for column in batch[2:]] == expected[anchor]


@pytest.mark.parametrize(
    ("prompts", "k", "missing"),
    [
        ({"positive": "w9 "}, 1, "'negative'"),
        ({"anchor": "w8 ", "positive": "w9 ", "negative_2": "w9 "}, 3, "'negative_1', 'negative_3'"),
    ],
)
def test_a_prompt_of_positives_alone_is_an_error(tmp_path, prompts, k, missing):
    run = small.trainer(tmp_path, [refresh(k=k)], prompts=prompts)
    said = (
        f"^RefreshNegatives.on_train_begin: `prompts` must be with the columns of negatives, too, .*none for {missing}"
    )
    with pytest.raises(ns.NaysayError, match=said):
        run.train()
    assert run.loss.seen == []


@pytest.mark.parametrize("prompts", ["w9 ", {"positive": "w9 ", "negative_1": "w9 ", "negative_2": "w9 "}])
def test_negatives_are_trained_with_the_prompt_that_they_were_mined_with(tmp_path, prompts):
    run = small.trainer(tmp_path, [refresh()], num_train_epochs=1, prompts=prompts)
    run.train()
    for batch in run.loss.seen:
        assert len(batch) == 4
        assert all(text.startswith("w9 ") for column in batch[1:] for text in column)


class StopEpoch(small.transformers.TrainerCallback):
    """Ends the first epoch after two of its three steps."""

    def on_step_end(self, args, state, control, **given):
        control.should_epoch_stop = state.global_step == 2


def test_an_epoch_that_was_stopped_early_is_followed_by_a_refresh(tmp_path):
    weights, callback = small.Weights(), refresh()
    run = small.trainer(tmp_path, [weights, callback, StopEpoch()], num_train_epochs=2)
    run.train()
    assert len(run.loss.seen) == 5
    for step, batch in enumerate(run.loss.seen):
        assert_nearest(batch, weights.at[0 if step < 2 else 2])
    assert (callback.refreshes, callback.step) == (2, 2)


def test_a_worker_gets_the_negatives_of_each_epoch(tmp_path):
    weights = small.Weights()
    run = small.trainer(tmp_path, [weights, refresh()], num_train_epochs=2, dataloader_num_workers=1)
    run.train()
    assert len(run.loss.seen) == 6
    for step, batch in enumerate(run.loss.seen):
        assert_nearest(batch, weights.at[step // 3 * 3])
    assert small.nearest(weights.at[0], 2) != small.nearest(weights.at[3], 2)


def test_the_negatives_of_another_run_are_not_resumed(tmp_path):
    """Same texts, k and step, in one folder after the other: only the trainer is told which checkpoint it resumes."""
    small.trainer(tmp_path / "one", [refresh()], **SAVED).train()
    other = small.trainer(tmp_path / "other", [refresh()], loss=small.Recorded(small.word_vectors(7)), **SAVED)
    other.train()
    again = small.trainer(tmp_path / "other", [refresh()], **SAVED)
    with pytest.raises(ns.NaysayError, match="`resume_from_checkpoint` must be a checkpoint of step 4 of this run"):
        again.train(resume_from_checkpoint=str(tmp_path / "one" / "checkpoint-4"))
    assert again.loss.seen == []
    again.train(resume_from_checkpoint=str(tmp_path / "other" / "checkpoint-4"))
    assert again.loss.seen == other.loss.seen[4:]


def test_a_set_whose_negatives_were_removed_is_not_resumed(tmp_path):
    given = small.training_set(negative=[f"w{(row + 5) % small.N}" for row in range(small.N)])
    saved = SAVED | {"save_steps": 2}
    whole = small.trainer(tmp_path, [refresh(k=1)], given, **saved)
    whole.train()
    checkpoint = str(tmp_path / "checkpoint-2")  # before the first refresh
    again = small.trainer(tmp_path, [refresh(k=1)], given, **saved)
    again.train(resume_from_checkpoint=checkpoint)
    assert again.loss.seen == whole.loss.seen[2:]
    without = small.trainer(tmp_path, [refresh(k=1)], given.select_columns(["anchor", "positive"]), **saved)
    with pytest.raises(
        ns.NaysayError, match="`train_dataset` must be the same texts, with the same `k` and columns, a"
    ):
        without.train(resume_from_checkpoint=checkpoint)
    assert without.loss.seen == []


def test_drift_is_the_share_of_new_negatives_in_little_memory():
    random = np.random.default_rng(0)
    before, after = (np.argsort(random.random((40, 9)), axis=1)[:, :5] for _ in range(2))
    new = [int(one not in row) for found, row in zip(after.tolist(), before.tolist(), strict=True) for one in found]
    assert drift(after, before) == pytest.approx(sum(new) / len(new))
    assert 0 < sum(new) < len(new)
    many = np.tile(np.arange(100), (2000, 1))
    tracemalloc.start()
    assert drift(many, many) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * many.size  # bytes; n k k would be 100 for each


def saved_ids(folder):
    """The file of negatives of a checkpoint."""
    return folder / "checkpoint-4" / "naysay_negatives" / "ids.npy"


@pytest.mark.parametrize(
    "changed",
    [lambda ids: ids + 10_000, lambda ids: ids[:-1], lambda ids: np.roll(ids, 1, axis=0)],
    ids=["too high", "short", "of other rows"],
)
def test_ids_of_a_checkpoint_that_are_not_of_this_run_are_an_error(tmp_path, changed):
    small.trainer(tmp_path, [refresh()], **SAVED).train()
    file = saved_ids(tmp_path)
    np.save(file, changed(np.load(file)))
    again = small.trainer(tmp_path, [refresh()], **SAVED)
    with pytest.raises(ns.NaysayError) as error:
        again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert error.value.parameter in ("resume_from_checkpoint", "train_dataset")
    assert again.loss.seen == []
