"""batch_sampler: the trainer's batches are those of a plan of naysay.batches."""

import inspect
import pickle

import numpy as np
import pytest

import naysay as ns
from naysay.integrations import _planned_batches
from naysay.integrations.sentence_transformers import batch_sampler
from tests.integrations import small_trainers as small

pytestmark = pytest.mark.filterwarnings(*small.QUIET)
LABELS = [row // 2 for row in range(small.N)]  # two rows of a label never meet


def rows_of(batch):
    return [small.ANCHORS.index(anchor) for anchor in batch[0]]


def test_a_trainer_has_the_batches_of_the_plan_and_resumes_in_them(tmp_path):
    plan = ns.batches.Shuffled(small.N, 8, forbid=LABELS)
    options = {"batch_sampler": batch_sampler(plan), "seed": 5, "save_strategy": "steps", "save_steps": 4}
    run = small.trainer(tmp_path, [], num_train_epochs=2, **options)
    run.train()
    planned = np.concatenate([plan.plan(epoch, rng=ns.rng_for(5, epoch)) for epoch in range(2)])
    assert (planned[:-1] < 0).any()  # a batch in the middle is not full
    expected = [batch[batch >= 0].tolist() for batch in planned]
    assert [rows_of(batch) for batch in run.loss.seen] == expected
    again = small.trainer(tmp_path, [], num_train_epochs=2, **options)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert [rows_of(batch) for batch in again.loss.seen] == expected[4:]


def test_an_evaluation_set_has_random_batches(tmp_path):
    sampler = pickle.loads(pickle.dumps(batch_sampler(ns.batches.Shuffled(small.N, 8, forbid=LABELS))))
    loss = small.Recorded(small.word_vectors())
    args = small.arguments(tmp_path, num_train_epochs=1, batch_sampler=sampler, eval_strategy="epoch")
    data = {"train_dataset": small.training_set(), "eval_dataset": small.training_set().select(range(5))}
    run = small.SentenceTransformerTrainer(loss.model, args, loss=loss, **data)
    run.evaluate()  # before any training
    assert [sorted(rows_of(batch)) for batch in loss.seen] == [[0, 1, 2, 3, 4]]
    run.train()
    assert [len(batch[0]) for batch in loss.seen] == [5, 8, 8, 8, 5]
    run.predict(small.training_set().select(range(7)))
    assert len(loss.seen[-1][0]) == 7


def test_another_training_set_is_an_error_whatever_came_before(tmp_path):
    sampler = batch_sampler(ns.batches.Shuffled(small.N, 8, forbid=LABELS))
    options = {"batch_sampler": sampler, "num_train_epochs": 1}
    small.trainer(tmp_path, [], **options).train()
    said = "^`batch_sampler` must be a plan of 20 rows, as the training set has, got one of 24\\.$"
    other = small.trainer(tmp_path, [], small.training_set().select(range(20)), **options)
    with pytest.raises(ns.NaysayError, match=said):
        other.train()
    assert other.loss.seen == []
    larger = small.trainer(tmp_path, [], per_device_train_batch_size=6, **options)
    with pytest.raises(ns.NaysayError, match="`batch_sampler` must be a plan of batches of 6, as the trainer has"):
        larger.train()


WRONG = [
    (ns.batches.Shuffled(24, 6), {}, "`batch_sampler` must be a plan of batches of 8, .*, got batches of 6"),
    (ns.batches.Shuffled(24, 8), {"dataloader_drop_last": True}, "`dataloader_drop_last` must be False with a plan"),
]


@pytest.mark.parametrize(("plan", "options", "said"), WRONG)
def test_a_plan_that_contradicts_the_trainer_is_named(tmp_path, plan, options, said):
    run = small.trainer(tmp_path, [], batch_sampler=batch_sampler(plan), **options)
    with pytest.raises(ns.NaysayError, match=rf"^{said}"):
        run.train()
    assert run.loss.seen == []


def test_the_trainer_calls_a_sampler_as_this_was_written_for():
    """Fails with a new version of sentence-transformers that passes other arguments."""
    theirs = inspect.signature(small.SentenceTransformerTrainer.get_batch_sampler).parameters
    ours = inspect.signature(batch_sampler(ns.batches.Shuffled(2, 1))).parameters
    assert [*ours] == [*theirs][1:], "SentenceTransformerTrainer.get_batch_sampler has other parameters"
    for name in _planned_batches._EVALUATION:
        assert hasattr(small.SentenceTransformerTrainer, name), f"SentenceTransformerTrainer has no {name} any more"
