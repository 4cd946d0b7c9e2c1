"""RefreshNegatives in real trainers: which negatives the loss gets, after a refresh, a checkpoint and a failure."""

import importlib.metadata
import json
import re
import sys

import accelerate
import numpy as np
import pytest

import naysay as ns
from naysay.errors import MissingExtraError, NaysayWarning
from naysay.integrations.sentence_transformers import RefreshNegatives
from naysay.report import read_run
from tests.integrations import small_trainers as small
from tests.integrations.upstream import check_signature

torch, transformers = small.torch, small.transformers
pytestmark = pytest.mark.filterwarnings(*small.QUIET)
FIXED = {"judge": None}


def negatives_of(batch):
    """{anchor: [negatives]} of a batch."""
    anchors, _, *negatives = batch
    return {anchor: [column[row] for column in negatives] for row, anchor in enumerate(anchors)}


def test_each_epoch_gets_the_negatives_of_the_model_at_its_start(tmp_path):
    weights, refresh = small.Weights(), RefreshNegatives("epoch", 2, **FIXED)
    run = small.trainer(tmp_path, [weights, refresh])
    run.train()
    assert len(run.loss.seen) == 9
    kinds = []
    for step, batch in enumerate(run.loss.seen):
        expected = small.nearest(weights.at[step // 3 * 3], 2)
        kinds.append(json.dumps(expected))
        assert negatives_of(batch) == {anchor: expected[anchor] for anchor in batch[0]}
    assert len(set(kinds)) == 3  # each refresh did change them
    assert (refresh.refreshes, refresh.step) == (3, 6)
    assert run.train_dataset.format["type"] is None


def test_what_a_refresh_logs(tmp_path):
    written = tmp_path / "run.jsonl"
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2, log=written)])  # judge="auto"
    run.train()
    entries = [entry for entry in run.state.log_history if "refresh/score/negatives" in entry]
    assert [entry["step"] for entry in entries] == [0, 3, 6]
    assert "refresh/drift" not in entries[0]
    assert all(0 < entry["refresh/drift"] <= 1 for entry in entries[1:])
    assert any("refresh/false_share" in entry for entry in entries)
    assert all(-1 <= entry["refresh/score/negatives"] < entry["refresh/score/positives"] <= 1 for entry in entries)
    log = read_run(written)
    assert log.steps.tolist() == [0, 3, 6]
    assert np.allclose(log.scalars["drift"][1:], [entry["refresh/drift"] for entry in entries[1:]])


def test_any_judge_has_an_estimate_and_short_anchors_are_filled_at_random(tmp_path):
    refresh = RefreshNegatives("epoch", 3, judge=None, mining={"rank_range": (1, 2)})
    run = small.trainer(tmp_path, [refresh], num_train_epochs=1)
    run.train()
    assert run.state.log_history[0]["refresh/random"] == pytest.approx(1 / 3)  # known pairs have no rank
    for batch in run.loss.seen:
        for anchor, found in negatives_of(batch).items():
            assert len(set(found)) == 3
            assert small.POSITIVES[small.ANCHORS.index(anchor)] not in found
    tried = small.trainer(tmp_path, [RefreshNegatives("epoch", 1, judge="share:0.95")], num_train_epochs=1)
    tried.train()
    assert 0 <= tried.state.log_history[0]["refresh/false_share"] <= 1


def test_a_refresh_within_an_epoch_takes_effect_at_the_next_step(tmp_path):
    """Although accelerate has fetched its rows by then. Fails if accelerate moves batches in another way."""
    weights, refresh = small.Weights(), RefreshNegatives(2, 2, **FIXED)
    run = small.trainer(tmp_path, [weights, refresh], num_train_epochs=2)
    run.train()
    refreshed_at = [0, 0, 2, 2, 4, 4]  # the negatives of each batch; the fourth begins an epoch
    for batch, step in zip(run.loss.seen, refreshed_at, strict=True):
        expected = small.nearest(weights.at[step], 2)
        assert negatives_of(batch) == {anchor: expected[anchor] for anchor in batch[0]}
    assert len({json.dumps(small.nearest(weights.at[step], 2)) for step in (0, 2, 4)}) == 3
    assert (refresh.refreshes, refresh.step) == (3, 4)  # none after the last step


def test_with_accumulated_gradients_all_batches_of_a_step_have_the_new_negatives(tmp_path):
    weights, refresh = small.Weights(), RefreshNegatives(1, 2, **FIXED)
    options = {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4, "num_train_epochs": 1}
    run = small.trainer(tmp_path, [weights, refresh], **options)
    run.train()
    for place, batch in enumerate(run.loss.seen):
        expected = small.nearest(weights.at[place // 2], 2)
        assert negatives_of(batch) == {anchor: expected[anchor] for anchor in batch[0]}
    assert len(run.loss.seen) == 6


def test_a_loader_that_moves_no_batches_is_one_step_late(tmp_path):
    class NotMoved(small.SentenceTransformerTrainer):
        def get_train_dataloader(self):
            loader = super().get_train_dataloader()
            loader.device = None
            return loader

    weights, loss = small.Weights(), small.Recorded(small.word_vectors())
    args = small.arguments(tmp_path, num_train_epochs=1)
    callbacks = [weights, RefreshNegatives(1, 2, **FIXED)]
    NotMoved(loss.model, args, train_dataset=small.training_set(), loss=loss, callbacks=callbacks).train()
    for batch, step in zip(loss.seen, [0, 0, 1], strict=True):
        expected = small.nearest(weights.at[step], 2)
        assert negatives_of(batch) == {anchor: expected[anchor] for anchor in batch[0]}


@pytest.mark.parametrize("every", ["epoch", 4])
def test_a_resumed_run_goes_on_with_the_same_negatives(tmp_path, every):
    saved = {"save_strategy": "steps", "save_steps": 4}
    whole = small.trainer(tmp_path, [RefreshNegatives(every, 2, **FIXED)], **saved)
    whole.train()
    fresh = RefreshNegatives(every, 2, **FIXED)
    again = small.trainer(tmp_path, [fresh], loss=small.Recorded(small.word_vectors(7)), **saved)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert again.loss.seen == whole.loss.seen[4:]
    assert torch.equal(*(run.model[0].embedding.weight for run in (whole, again)))
    assert (fresh.refreshes, fresh.step) == (3, 6 if every == "epoch" else 8)


def test_what_cannot_be_resumed_is_named(tmp_path):
    saved = {"save_strategy": "steps", "save_steps": 4}
    small.trainer(tmp_path / "plain", [], **saved).train()
    checkpoint = str(tmp_path / "plain" / "checkpoint-4")
    run = small.trainer(tmp_path / "plain", [RefreshNegatives("epoch", 2, **FIXED)], **saved)
    with pytest.raises(
        ns.NaysayError, match=r"`resume_from_checkpoint` must be a checkpoint of step 4 of this run with a"
    ):
        run.train(resume_from_checkpoint=checkpoint)
    small.trainer(tmp_path / "other", [RefreshNegatives("epoch", 1, **FIXED)], **saved).train()
    given = str(tmp_path / "other" / "checkpoint-4")  # another place than output_dir
    run = small.trainer(
        tmp_path / "plain", [RefreshNegatives("epoch", 2, **FIXED)], resume_from_checkpoint=given, **saved
    )
    with pytest.raises(
        ns.NaysayError, match=r"`train_dataset` must be the same texts, with the same `k` and columns, a"
    ):
        run.train(resume_from_checkpoint=given)


def failing(run, calls, how):
    """Let the model's encode go wrong from some call on."""
    own, count = run.model.encode, [0]

    def encode(texts, **options):
        count[0] += 1
        if count[0] <= calls:
            return own(texts, **options)
        if isinstance(how, Exception):
            raise how
        return np.full((len(texts), 8), how)

    run.model.encode = run.model.encode_query = run.model.encode_document = encode


FAILURES = [(float("nan"), "NaysayError: encode_texts: `model` must be a model that returns finite numbers"),
            (OSError(28, "No space left on device"), "NaysayError: encode_texts: `folder` .* \\(the disk is full\\)"),
            (OSError(5, "Input/output error"), r"OSError: \[Errno 5\] Input/output error")]  # fmt: skip


@pytest.mark.parametrize(("how", "said"), FAILURES)
def test_a_refresh_that_fails_keeps_the_negatives_and_says_so(tmp_path, how, said):
    refresh = RefreshNegatives("epoch", 2, **FIXED)
    run = small.trainer(tmp_path, [refresh])
    failing(run, 3, how)  # one try, then queries and documents of the first mining
    with pytest.warns(NaysayWarning) as caught:
        run.train()
    for warning, step in zip(caught, (3, 6), strict=True):
        expected = rf"RefreshNegatives: at step {step} the negatives stay as they were: {said}"
        assert re.match(expected, str(warning.message))
    assert len(run.loss.seen) == 9
    first = {anchor: found for batch in run.loss.seen[:3] for anchor, found in negatives_of(batch).items()}
    for batch in run.loss.seen[3:]:
        assert negatives_of(batch) == {anchor: first[anchor] for anchor in batch[0]}
    assert [entry["step"] for entry in run.state.log_history if "refresh/failed" in entry] == [3, 6]
    assert refresh.refreshes == 1


@pytest.mark.parametrize("how", [None, OSError(28, "No space left on device")])
def test_a_log_that_fails_ends_no_run_unless_asked_to(tmp_path, how):
    """A disk that is full for the vectors is full for the log, too."""

    def full(record):
        raise OSError(28, "No space left on device")

    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2, log=full, **FIXED)])
    if how is not None:
        failing(run, 3, how)
    with pytest.warns(NaysayWarning) as caught:
        run.train()
    said = [str(warning.message) for warning in caught if "`log` took no numbers" in str(warning.message)]
    error = "OSError: [Errno 28] No space left on device"
    assert said == [f"RefreshNegatives: at step {step} `log` took no numbers: {error}" for step in (0, 3, 6)]
    assert len(run.loss.seen) == 9
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2, log=full, on_error="raise", **FIXED)])
    with pytest.raises(OSError, match="No space left on device"):
        run.train()


def test_a_refresh_that_fails_stops_the_run_if_asked_to(tmp_path):
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2, on_error="raise", **FIXED)])
    failing(run, 3, OSError(28, "No space left on device"))
    with pytest.raises(ns.NaysayError) as error:
        run.train()
    assert error.value.parameter == "folder"
    assert len(run.loss.seen) == 3
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 1, **FIXED)], run.train_dataset)  # with its transform
    run.train()
    assert {len(batch) for batch in run.loss.seen} == {3}


def test_given_negatives_are_used_until_the_first_refresh_and_more_documents_after(tmp_path):
    weights, extra = small.Weights(), ["w1 w2", "w3 w4"]
    given = small.training_set(negative=[f"w{(row + 5) % small.N}" for row in range(small.N)])
    run = small.trainer(
        tmp_path, [weights, RefreshNegatives("epoch", 1, corpus=extra, **FIXED)], given, num_train_epochs=2
    )
    run.train()
    for batch in run.loss.seen[:3]:
        assert batch[2] == [f"w{(int(anchor[1:]) + 5) % small.N}" for anchor in batch[0]]
    found = {text for batch in run.loss.seen[3:] for text in batch[2]}
    assert found & set(extra)
    assert found <= {*small.POSITIVES, *extra}
    assert {len(batch) for batch in run.loss.seen} == {3}


def test_batches_without_duplicates_know_the_negatives(tmp_path):
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 1, **FIXED)], batch_sampler="no_duplicates")
    run.train()
    assert len({json.dumps(batch[2]) for batch in run.loss.seen}) > 3
    for batch in run.loss.seen:
        texts = [text for column in batch for text in column]
        assert len(set(texts)) == len(texts)


def test_prompts_of_the_trainer_are_used(tmp_path):
    run = small.trainer(
        tmp_path, [RefreshNegatives("epoch", 1, **FIXED)], num_train_epochs=1, prompts={"anchor": "w9 "}
    )
    asked = []
    own = run.model.encode_query
    run.model.encode_query = lambda texts, **given: asked.append(given.get("prompt")) or own(texts, **given)
    run.train()
    assert asked == ["w9 ", "w9 "]  # one text to try, then all


# ---- transformers.Trainer ---------------------------------------------------------------------------------


class TwoTowers(torch.nn.Module):
    """A model as users of transformers.Trainer write it: forward returns the loss; encode is all that is added."""

    def __init__(self):
        super().__init__()
        self.inner, self.seen = small.word_vectors(), []

    def forward(self, **texts):
        self.seen.append([*texts.values()])
        vectors = [self.inner(self.inner.preprocess(column))["sentence_embedding"] for column in texts.values()]
        scores = vectors[0] @ torch.cat(vectors[1:]).T
        return {"loss": torch.nn.functional.cross_entropy(scores, torch.arange(len(scores)))}

    def encode(self, texts, **options):
        return self.inner.encode(texts, **options)


def rows_to_columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def plain_trainer(folder, model, callbacks, dataset=None):
    options = {"num_train_epochs": 2, "per_device_train_batch_size": 8, "learning_rate": 0.3, "save_strategy": "no"}
    options |= {"report_to": "none", "disable_tqdm": True, "remove_unused_columns": False, "use_cpu": True}
    args = transformers.TrainingArguments(str(folder), **options)
    dataset = small.training_set() if dataset is None else dataset
    given = {"train_dataset": dataset, "data_collator": rows_to_columns, "callbacks": callbacks}
    return transformers.Trainer(model, args, **given)


def test_a_plain_trainer(tmp_path):
    model = TwoTowers()
    before = small.nearest(model.inner[0].embedding.weight.detach().clone(), 2)
    plain_trainer(tmp_path, model, [RefreshNegatives("epoch", 2, **FIXED)]).train()
    assert len(model.seen) == 6
    for batch in model.seen[:3]:
        assert negatives_of(batch) == {anchor: before[anchor] for anchor in batch[0]}
    assert any(negatives_of(batch) != {anchor: before[anchor] for anchor in batch[0]} for batch in model.seen[3:])


def test_a_model_without_encode_is_named_and_another_may_encode(tmp_path):
    model = TwoTowers()
    model.encode = None
    with pytest.raises(ns.NaysayError, match=r"`model` must be one with a method encode\(texts\), got TwoTowers. Pass"):
        plain_trainer(tmp_path, model, [RefreshNegatives("epoch", 2, **FIXED)]).train()
    plain_trainer(tmp_path, model, [RefreshNegatives("epoch", 2, model=model.inner, **FIXED)]).train()
    assert len(model.seen[0]) == 4


# ---- invalid input: one sentence, before the first step -----------------------------------------------------

WRONG = [
    ({}, {"columns": ["anchor"]}, {}, r"`train_dataset` must be of two columns of texts, anchors and positives"),
    ({}, {"add": "label"}, {}, r"`train_dataset` must be of two columns .*, got 'anchor', 'positive', 'label'. Choose"),
    ({}, {"add": "negative"}, {}, r"`k` must be 1, the columns of negatives that the training set has, got 2\."),
    ({}, {"format": "torch"}, {}, r"`train_dataset` must be without a format or transform of its own, got 'torch'\."),
    ({}, {"split": True}, {}, r"`train_dataset` must be one datasets.Dataset, got ConcatDataset\."),
    (
        {},
        {"rows": 2},
        {},
        r"`corpus` must be of 2 documents for each anchor that are neither .*, got fewer for 2 of 2 an",
    ),
    ({}, {}, {"batch_sampler": "no_duplicates_hashed"}, r"`batch_sampler` must be another one, .* Use 'no_duplicates'"),
    ({"every": 3}, {}, {"dataloader_num_workers": 1}, r"`dataloader_num_workers` must be 0 with every=3, as the work"),
    (
        {},
        {},
        {"dataloader_num_workers": 1, "dataloader_persistent_workers": True},
        r"`dataloader_persistent_workers` m",
    ),
]


@pytest.mark.parametrize(("given", "data", "options", "said"), WRONG)
def test_a_trainer_that_does_not_fit_is_named(tmp_path, given, data, options, said):
    dataset = small.training_set(**({data["add"]: ["1"] * small.N} if "add" in data else {}))
    dataset = dataset.select(range(data["rows"])) if "rows" in data else dataset
    dataset = dataset.select_columns(data["columns"]) if "columns" in data else dataset
    if "format" in data:
        dataset.set_format(data["format"])
    if "split" in data:
        dataset = small.datasets.DatasetDict({"a": dataset, "b": dataset})
    run = small.trainer(tmp_path, [RefreshNegatives(**({"k": 2} | FIXED | given))], dataset, **options)
    with pytest.raises(ns.NaysayError, match=rf"^RefreshNegatives.on_train_begin: {said}"):
        run.train()
    assert run.loss.seen == []


def test_a_model_that_encodes_otherwise_is_named(tmp_path):
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2)])
    run.model.encode = run.model.encode_query = lambda texts, **options: torch.ones(len(texts), 3, 4)
    said = r"`model` must be one that encodes each text as one vector, got SentenceTransformer \(.*shape \(1, 3, 4\)"
    with pytest.raises(ns.NaysayError, match=said):
        run.train()


SETTINGS = [
    ({"every": 0}, "`every` must be at least 1, got 0."),
    ({"every": "steps"}, "`every` must be 'epoch' or a number of steps, got 'steps'."),
    ({"k": "auto"}, "`k` must be a whole number, got 'auto'."),
    ({"corpus": "text"}, "`corpus` must be a sequence of strings, got 'text'."),
    ({"judge": "shares:1"}, "`judge` must be one of 'auto', 'none', .* Did you mean 'share'?"),
    ({"mining": {"rank_rang": 3}}, "`mining` must be one of .*, got 'rank_rang'. Did you mean 'rank_range'?"),
    ({"mining": {"on_short": "pad"}}, "`on_short` must be one of 'random', 'relax', 'raise', got 'pad'."),
    ({"mining": {"false_share": 2}}, "`false_share` must be a number above 0 and below 1, got 2."),
    ({"on_error": "stop"}, "`on_error` must be one of 'keep', 'raise', got 'stop'."),
    ({"log": "run.txt"}, "`log` must be a file that ends in .jsonl"),
]


@pytest.mark.parametrize(("given", "said"), SETTINGS)
def test_invalid_settings(given, said):
    with pytest.raises(ns.NaysayError, match=rf"^RefreshNegatives: {said.replace('?', '[?]')}"):
        RefreshNegatives(**given)


@pytest.mark.parametrize("version", ["4.57.1", "6.0"])
def test_a_package_that_is_missing_or_of_another_version_is_named(monkeypatch, version):
    monkeypatch.setattr("naysay._packages.version", lambda name: version)
    command = r"Run in a clone of naysay: pip install '\.\[sentence-transformers\]'$"
    with pytest.raises(
        MissingExtraError, match=rf"^RefreshNegatives: transformers must be .*, got {version}. {command}"
    ):
        RefreshNegatives()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        MissingExtraError,
        match=r"^RefreshNegatives: transformers is not installed. Run in a clone of naysay: pip install",
    ):
        RefreshNegatives()


def test_a_trainer_of_another_version_is_named_before_training(tmp_path, monkeypatch):
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2, **FIXED)])
    monkeypatch.setattr("naysay._packages.version", lambda name: "5.1.0")
    said = r"^RefreshNegatives.on_train_begin: sentence-transformers must be .*, got 5.1.0. "
    with pytest.raises(MissingExtraError, match=said):
        run.train()
    assert run.loss.seen == []


# ---- what upstream promises ---------------------------------------------------------------------------------


def test_the_events_of_trainers_are_those_that_this_callback_was_written_for():
    """Fails with a new version: read what its new events mean, then add them here."""
    events = {name for name in dir(transformers.TrainerCallback) if name.startswith("on_")}
    known = {"init_end", "train_begin", "train_end", "epoch_begin", "epoch_end", "step_begin", "pre_optimizer_step"}
    known |= {"optimizer_step", "substep_end", "step_end", "evaluate", "predict", "save", "log", "prediction_step"}
    changed = {name.removeprefix("on_") for name in events} ^ (known | {"push_begin"})
    assert not changed, f"transformers {importlib.metadata.version('transformers')} has other events: {changed}"
    with pytest.raises(AttributeError, match="save_all"):
        RefreshNegatives().save_all  # noqa: B018


def test_accelerate_moves_batches_as_it_did():
    """Late batches are collated when its loader moves them to their device."""
    expected = ["tensor", "device", "non_blocking", "skip_keys"]
    check_signature("_refresh_inputs", "accelerate", accelerate.utils.send_to_device, expected)
    loader = accelerate.data_loader.DataLoaderShard(range(2), device="cpu")
    for name in ("base_dataloader", "device"):
        assert hasattr(loader, name), (
            f"accelerate has no DataLoaderShard.{name}. Adapt naysay.integrations._refresh_inputs."
        )
