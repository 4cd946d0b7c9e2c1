"""RefreshNegatives in real trainers: which negatives the loss gets, after a refresh, a checkpoint and a failure."""

import importlib.metadata
import json
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


def test_a_reviewer_is_asked_at_each_refresh_about_texts(tmp_path):
    budget, asked = 6, []

    def review(pairs):
        asked.append(list(zip(pairs.queries, pairs.documents, strict=True)))
        return [query in document.split() for query, document in asked[-1]]

    refresh = RefreshNegatives("epoch", 2, mining={"reviewer": review, "review": budget})
    run = small.trainer(tmp_path, [refresh], num_train_epochs=2)
    run.train()
    assert refresh.refreshes == 2
    pairs = [pair for each in asked for pair in each]
    positives = set(zip(small.ANCHORS, small.POSITIVES, strict=True))
    assert 0 < sum(pair not in positives for pair in pairs) <= 2 * budget
    assert {text for _, text in pairs} <= set(small.POSITIVES)
    assert all(0 <= each["refresh/false_share"] <= 1 for each in run.state.log_history if "refresh/drift" in each)


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


def test_a_resumed_run_goes_on_with_the_same_negatives(tmp_path):
    every = 4
    saved = {"save_strategy": "steps", "save_steps": 4}
    whole = small.trainer(tmp_path, [RefreshNegatives(every, 2, **FIXED)], **saved)
    whole.train()
    fresh = RefreshNegatives(every, 2, **FIXED)
    again = small.trainer(tmp_path, [fresh], loss=small.Recorded(small.word_vectors(7)), **saved)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert again.loss.seen == whole.loss.seen[4:]
    assert torch.equal(*(run.model[0].embedding.weight for run in (whole, again)))
    assert (fresh.refreshes, fresh.step) == (3, 8)


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


def test_a_refresh_that_fails_keeps_the_negatives_and_says_so(tmp_path):
    refresh = RefreshNegatives("epoch", 2, **FIXED)
    run = small.trainer(tmp_path, [refresh])
    failing(run, 3, OSError(28, "No space left on device"))  # one try, then queries and documents of the first mining
    with pytest.warns(NaysayWarning) as caught:
        run.train()
    for warning, step in zip(caught, (3, 6), strict=True):
        assert f"at step {step} the negatives stay as they were" in str(warning.message)
        assert "the disk is full" in str(warning.message)
    assert len(run.loss.seen) == 9
    first = {anchor: found for batch in run.loss.seen[:3] for anchor, found in negatives_of(batch).items()}
    for batch in run.loss.seen[3:]:
        assert negatives_of(batch) == {anchor: first[anchor] for anchor in batch[0]}
    assert [entry["step"] for entry in run.state.log_history if "refresh/failed" in entry] == [3, 6]
    assert refresh.refreshes == 1


def test_a_refresh_or_a_log_that_fails_stops_the_run_if_asked_to(tmp_path):
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2, on_error="raise", **FIXED)])
    failing(run, 3, float("nan"))
    with pytest.raises(ns.NaysayError) as error:
        run.train()
    assert error.value.parameter == "model"
    assert len(run.loss.seen) == 3
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2, log=full_disk, on_error="raise", **FIXED)])
    with pytest.raises(OSError, match="No space left on device"):
        run.train()


def full_disk(record):
    raise OSError(28, "No space left on device")


def test_a_log_that_fails_ends_no_run(tmp_path):
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2, log=full_disk, **FIXED)])
    with pytest.warns(NaysayWarning, match="`log` took no numbers") as caught:
        run.train()
    assert len(caught) == 3
    assert len(run.loss.seen) == 9


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
        self.read = getattr(self.inner, "preprocess", None) or self.inner.tokenize  # its name before 6.0

    def forward(self, **texts):
        self.seen.append([*texts.values()])
        vectors = [self.inner(self.read(column))["sentence_embedding"] for column in texts.values()]
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


def with_format(dataset):
    dataset.set_format("torch")
    return dataset


# (settings, a change of the training set, options of the trainer, parameter)
INVALID = [
    ({}, lambda data: data.select_columns(["anchor"]), {}, "train_dataset"),
    ({}, lambda data: data.add_column("label", ["1"] * small.N), {}, "train_dataset"),
    ({}, lambda data: data.add_column("negative", ["1"] * small.N), {}, "k"),
    ({}, with_format, {}, "train_dataset"),
    ({}, lambda data: small.datasets.DatasetDict({"a": data, "b": data}), {}, "train_dataset"),
    ({}, lambda data: data.select(range(2)), {}, "corpus"),
    ({}, None, {"batch_sampler": "no_duplicates_hashed"}, "batch_sampler"),
    ({"every": 3}, None, {"dataloader_num_workers": 1}, "dataloader_num_workers"),
    ({}, None, {"dataloader_num_workers": 1, "dataloader_persistent_workers": True}, "dataloader_persistent_workers"),
]


@pytest.mark.parametrize(("given", "change", "options", "parameter"), INVALID)
def test_a_trainer_that_does_not_fit_is_named(tmp_path, given, change, options, parameter):
    dataset = small.training_set()
    if change is not None:
        dataset = change(dataset)
    run = small.trainer(tmp_path, [RefreshNegatives(**({"k": 2} | FIXED | given))], dataset, **options)
    with pytest.raises(ns.NaysayError) as caught:
        run.train()
    assert caught.value.parameter == parameter
    assert run.loss.seen == []


def test_a_model_that_encodes_otherwise_is_named(tmp_path):
    run = small.trainer(tmp_path, [RefreshNegatives("epoch", 2)])
    run.model.encode = run.model.encode_query = lambda texts, **options: torch.ones(len(texts), 3, 4)
    said = r"`model` must be one that encodes each text as one vector, got SentenceTransformer \(.*shape \(1, 3, 4\)"
    with pytest.raises(ns.NaysayError, match=said):
        run.train()


SETTINGS = [
    ({"every": 0}, "every"),
    ({"every": "steps"}, "every"),
    ({"k": "auto"}, "k"),
    ({"corpus": "text"}, "corpus"),
    ({"judge": "shares:1"}, "judge"),
    ({"mining": {"rank_rang": 3}}, "mining"),
    ({"mining": {"on_short": "pad"}}, "on_short"),
    ({"mining": {"false_share": 2}}, "false_share"),
    ({"mining": {"reviewer": "someone", "review": 9}}, "reviewer"),
    ({"mining": {"reviewer": len}}, "review"),
    ({"on_error": "stop"}, "on_error"),
    ({"log": "run.txt"}, "log"),
]


@pytest.mark.parametrize(("given", "parameter"), SETTINGS)
def test_invalid_settings(given, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        RefreshNegatives(**given)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("version", ["4.40.2", "6.0"])
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
    monkeypatch.setattr("naysay._packages.version", lambda name: "2.7.0")
    said = r"^RefreshNegatives.on_train_begin: sentence-transformers must be .*, got 2.7.0. "
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
    check_signature("_refresh", "accelerate", accelerate.utils.send_to_device, expected)
    loader = accelerate.data_loader.DataLoaderShard(range(2), device="cpu")
    for name in ("base_dataloader", "device"):
        assert hasattr(loader, name), f"accelerate has no DataLoaderShard.{name}. Adapt naysay.integrations._refresh."
